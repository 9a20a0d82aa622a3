//! The live page: sessions of all projects in a browser, as they are written.
//!
//! The server listens on this machine alone, answers only clients that know the token in its address, and changes nothing. It
//! keeps nothing about its pages: what a page has is in the id of the last event that it got, so that it continues where it was
//! when the server is started again.

mod assets;
mod guard;
mod live;
mod live_file;
mod options;
mod routes;
mod shared;
mod shown;
mod views;

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use tokio::net::TcpListener;

pub use crate::options::ServeOptions;
use crate::shared::Shared;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// Serves until the process is interrupted or asked to end. `ready` gets the address once it can be opened.
///
/// # Errors
/// Those of [`Server::bind`] and [`Server::run`], and when no thread can be started.
pub fn serve(options: ServeOptions, ready: impl FnOnce(&str)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let server = Server::bind(options).await?;
        // Before `ready`, as a program that gets the address may send the signal at once.
        let end = end_signal()?;
        ready(&server.url());
        server.run(end).await
    });
    // Threads that read files are not waited for.
    runtime.shutdown_background();
    served
}

/// Returns a future that waits for Ctrl-C, or for the signal to end. From this call on neither of them ends the process.
#[cfg(unix)]
fn end_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Returns a future that ends with Ctrl-C.
#[cfg(not(unix))]
fn end_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

impl Server {
    /// Listens on 127.0.0.1. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the port is taken, or no random token can be made.
    pub async fn bind(options: ServeOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let token = match &options.token {
            Some(token) => token.clone(),
            None => new_token()?,
        };
        let shared = Shared {
            address: listener.local_addr()?,
            options,
            token,
            open: Mutex::default(),
        };
        Ok(Self {
            listener,
            shared: Arc::new(shared),
        })
    }

    /// Returns the address to open, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.shared.address, self.shared.token)
    }

    /// Serves until `end` is ready.
    ///
    /// # Errors
    /// When no connection can be accepted any more.
    pub async fn run(self, end: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let router = routes::router(self.shared);
        tokio::select! {
            served = axum::serve(self.listener, router) => served,
            // Pages that watch are not waited for: they connect again.
            () = end => Ok(()),
        }
    }
}

/// Returns 192 random bits as text.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
