//! The files of older versions: one for each session, message and part.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use transcript_format::object::Object;

use super::listed::Listed;
use super::rows::{Info, Row, Rows, repaired};
use crate::Error;
use crate::conversation::Conversation;
use crate::dialect::Session;
use crate::document;
use crate::place::{Place, SourceId};
use crate::source::{Store, is_file_name, name_of};

/// The folder of the files of older versions.
pub(super) const FILES_FOLDER: &str = "storage";

/// The largest file that is read: 256 MiB.
const MAX_LEN: usize = 256 << 20;

/// Returns the sessions that have files, in the order of their paths.
pub(super) fn sessions(store: Store<'_>) -> Result<Vec<Session>, Error> {
    let folder = store.path.join(FILES_FOLDER).join("session");
    if !store.disk.is_folder(&folder) {
        return Ok(Vec::new());
    }
    let of_sessions = Store {
        path: &folder,
        ..store
    };
    let files = of_sessions.files(&[""], &[".json"])?;
    let sessions = files.into_iter().map(|path| Session {
        id: id_of(&path),
        files: vec![path],
    });
    Ok(sessions.collect())
}

/// Returns what the file of a session says about where it is shown.
pub(super) fn describe(store: Store<'_>, session: &Session) -> Listed {
    let describe = |info: &Object<'_>| {
        let info = Info::of_json(info);
        Some((info.directory, info.parent))
    };
    let file = session.files.first();
    let described = file.and_then(|file| document::header(store, file, describe));
    let (directory, parent) = described.unwrap_or_default();
    Listed {
        id: session.id.clone(),
        directory,
        parent,
        version: None,
    }
}

/// Returns the id that a file is named after.
fn id_of(path: &Path) -> String {
    let name = name_of(path);
    name.strip_suffix(".json").unwrap_or(&name).to_owned()
}

/// The files of one session.
pub(super) struct Files {
    session: Option<(Place, String)>,
    messages: Vec<Row>,
    parts: Vec<Row>,
}

impl Files {
    /// Reads all of them.
    pub(super) fn open(
        store: Store<'_>,
        session: &Session,
        to: &mut Conversation,
    ) -> Result<Self, Error> {
        let root = store.path.join(FILES_FOLDER);
        let mut of_session = Vec::new();
        for path in &session.files {
            of_session.push(row(store, path, "", to)?);
        }
        let mut messages = Vec::new();
        for path in files(store, &root.join("message"), &session.id)? {
            messages.push(row(store, &path, "", to)?);
        }
        let mut parts = Vec::new();
        for message in &messages {
            for path in files(store, &root.join("part"), &message.id)? {
                parts.push(row(store, &path, &message.id, to)?);
            }
        }
        messages.sort_by(|a, b| (a.order, &a.id).cmp(&(b.order, &b.id)));
        parts.sort_by(|a, b| a.id.cmp(&b.id));
        let session = of_session.into_iter().next();
        Ok(Self {
            session: session.map(|row| (row.place, row.data)),
            messages,
            parts,
        })
    }
}

/// Returns the files in the folder that is named after an id.
fn files(store: Store<'_>, above: &Path, id: &str) -> Result<Vec<PathBuf>, Error> {
    let folder = above.join(id);
    if !is_file_name(id) || !store.disk.is_folder(&folder) {
        return Ok(Vec::new());
    }
    let of_folder = Store {
        path: &folder,
        ..store
    };
    of_folder.files(&[""], &[".json"])
}

/// Reads a file as a row.
fn row(store: Store<'_>, path: &Path, of: &str, to: &mut Conversation) -> Result<Row, Error> {
    let bytes = store.disk.read(path, MAX_LEN).map_err(Error::at(path))?;
    let source: SourceId = to.add_source(path.to_owned(), None);
    let len = bytes.len() as u64;
    to.sources[source.index()].len = len;
    let place = Place {
        source,
        offset: 0,
        len,
    };
    let is_utf8 = std::str::from_utf8(&bytes).is_ok();
    let data = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Row {
        place,
        id: id_of(path),
        of: of.to_owned(),
        order: created(&data).unwrap_or_default(),
        data,
        is_utf8,
    })
}

/// Returns when a message was made.
fn created(data: &str) -> Option<i64> {
    let closed;
    let info = match Object::parse(data) {
        Ok(info) => info,
        Err(_) => {
            closed = repaired(data)?;
            Object::parse(&closed).ok()?
        }
    };
    info.object("time")?.i64("created")
}

impl Rows for Files {
    type Error = Error;

    fn is_damaged(&self) -> bool {
        false
    }

    fn session(&mut self) -> Result<Option<(Place, Option<Info>)>, Error> {
        let session = self.session.as_ref();
        Ok(session.map(|(place, data)| {
            let info = Object::parse(data).ok();
            (*place, info.map(|info| Info::of_json(&info)))
        }))
    }

    fn messages(&mut self) -> Result<Vec<Row>, Error> {
        Ok(std::mem::take(&mut self.messages))
    }

    fn parts(&mut self, message: &str, take: &mut dyn FnMut(Row)) -> Result<(), Error> {
        let (of_message, rest): (Vec<Row>, _) = std::mem::take(&mut self.parts)
            .into_iter()
            .partition(|part| part.of == message);
        self.parts = rest;
        of_message.into_iter().for_each(take);
        Ok(())
    }

    fn lost_parts(&mut self, _: &BTreeSet<Place>) -> Result<Vec<Row>, Error> {
        Ok(Vec::new())
    }

    fn events(&mut self, _: &mut dyn FnMut(Row)) -> Result<(), Error> {
        Ok(())
    }

    fn others(&mut self, _: &mut Conversation) -> Result<(), Error> {
        Ok(())
    }
}
