//! The state that all requests share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::live::LiveSession;
use crate::options::ServeOptions;

/// The maximum number of sessions that are open at a time.
const MAX_OPEN: usize = 64;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ServeOptions,
    pub(crate) token: String,
    pub(crate) address: SocketAddr,
    pub(crate) open: Mutex<HashMap<PathBuf, LiveSession>>,
}

impl Shared {
    /// Returns the session of a file, which is opened if it is not.
    pub(crate) fn session(&self, path: &Path) -> LiveSession {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| !session.is_closed());
        if let Some(session) = open.get(path) {
            return session.clone();
        }
        if open.len() >= MAX_OPEN {
            // Those that are watched stay open without this table.
            open.clear();
        }
        let session =
            LiveSession::open(self.options.context.read_disk(), path, &self.options.render);
        open.insert(path.to_owned(), session.clone());
        session
    }
}
