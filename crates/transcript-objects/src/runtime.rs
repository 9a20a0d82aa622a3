//! The one runtime of the process on which all requests run.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Runtime};

/// The number of threads for requests. They wait most of the time.
const THREADS: usize = 2;

/// Runs a future to its end. The caller may be on a thread of another runtime that may block.
pub(crate) fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    runtime()?.spawn(async move {
        // The receiver waits until it has the result.
        let _ = sender.send(future.await);
    });
    let stopped = |_| io::Error::other("the request was not finished");
    receiver.recv().map_err(stopped)
}

fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let start = || {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(THREADS).thread_name("objects");
        builder
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    };
    let runtime = RUNTIME.get_or_init(start).as_ref();
    runtime.map_err(|error| io::Error::other(error.clone()))
}
