//! The native part of the Python package `transcript`: passes JSON to what all bindings share, and returns its answers.
//!
//! The GIL is released while anything is read, written or waited for.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use transcript_bindings::{self as shared, Failure, Next, Reply};

/// The interval at which a waiting call checks for interrupts.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

#[pymodule]
mod _transcript {
    #[pymodule_export]
    use super::{Records, Session, StreamReply, call, open, open_then};

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        use super::PyModuleMethods;
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}

/// Makes the exception of a failure.
fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let error = py
        .import("transcript_engine._errors")
        .and_then(|errors| errors.getattr("error_of")?.call1((failure.json(),)));
    match error {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Starts a function: options as JSON in, records out.
#[pyfunction]
fn call(py: Python<'_>, options: &str) -> PyResult<Records> {
    let records = py.detach(|| shared::call(options));
    let records = records.map_err(|failure| raised(py, &failure))?;
    Ok(Records(Arc::new(records)))
}

/// Opens a session: options as JSON in; the session, and what there is to say about it as JSON.
#[pyfunction]
fn open(py: Python<'_>, options: &str) -> PyResult<(Session, String)> {
    let opened = py.detach(|| shared::SessionHandle::open(options));
    let (handle, about) = opened.map_err(|failure| raised(py, &failure))?;
    Ok((Session::of(handle), about))
}

/// Opens a session on another thread, and calls `done` with what [`open`] returns or an exception there.
#[pyfunction]
fn open_then(py: Python<'_>, options: String, done: Py<PyAny>) -> PyResult<()> {
    open_elsewhere(py, done, move || shared::SessionHandle::open(&options))
}

fn open_elsewhere(
    py: Python<'_>,
    done: Py<PyAny>,
    open: impl FnOnce() -> Result<(shared::SessionHandle, String), Failure> + Send + 'static,
) -> PyResult<()> {
    let run = move || {
        let opened = open().map(|(handle, about)| Some(Answer::Opened(handle, about)));
        notify(&done, opened);
    };
    let started = py.detach(|| shared::run_once(run));
    started.map_err(|failure| raised(py, &failure))
}

/// The records of a function, in batches.
#[pyclass(frozen)]
struct Records(Arc<shared::Records>);

#[pymethods]
impl Records {
    /// Waits for the next batch; `None` after the last.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        loop {
            match py.detach(|| self.0.wait_for(INTERRUPT_INTERVAL)) {
                Some(next) => {
                    let next = next.map_err(|failure| raised(py, &failure))?;
                    return Ok(next.map(|batch| PyBytes::new(py, &batch)));
                }
                None => py.check_signals()?,
            }
        }
    }

    /// Waits until the function has started.
    fn wait_ready(&self, py: Python<'_>) -> PyResult<()> {
        while !py.detach(|| self.0.wait_ready(INTERRUPT_INTERVAL)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Calls `done` when the function has started, from any thread.
    fn when_ready(&self, py: Python<'_>, done: Py<PyAny>) {
        py.detach(|| self.0.when_ready(move || notify(&done, Ok(None))));
    }

    /// Calls `done` with the next batch (`None` after the last) or an exception, from any thread.
    fn then(&self, py: Python<'_>, done: Py<PyAny>) {
        let then = move |next: Next| {
            notify(&done, next.map(|next| next.map(Answer::Batch)));
        };
        py.detach(|| self.0.then(then));
    }

    /// Ends the function.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// The argument of a callback.
#[expect(
    clippy::large_enum_variant,
    reason = "it is made and taken apart at once"
)]
enum Answer {
    Batch(Vec<u8>),
    Text(String),
    Opened(shared::SessionHandle, String),
}

/// Calls `done` with an answer or an exception. Does nothing when the interpreter is ending: no caller
/// waits any more.
fn notify(done: &Py<PyAny>, answer: Result<Option<Answer>, Failure>) {
    Python::try_attach(|py| {
        let none = py.None();
        let called = match answer {
            Ok(None) => done.call1(py, (none.clone_ref(py), none)),
            Ok(Some(Answer::Batch(batch))) => done.call1(py, (PyBytes::new(py, &batch), none)),
            Ok(Some(Answer::Text(text))) => done.call1(py, (text, none)),
            Ok(Some(Answer::Opened(handle, about))) => {
                done.call1(py, ((Session::of(handle), about), none))
            }
            Err(failure) => done.call1(py, (none, raised(py, &failure))),
        };
        // The call of a closed event loop fails, and no caller waits in it.
        if let Err(error) = called
            && !error.is_instance_of::<PyRuntimeError>(py)
        {
            error.write_unraisable(py, Some(done.bind(py)));
        }
    });
}

/// A session that is open for writing.
#[pyclass(frozen)]
struct Session {
    handle: Arc<shared::SessionHandle>,
    /// Runs the commands of tasks; made with the first of them.
    queue: Mutex<Option<Arc<shared::SessionQueue>>>,
}

impl Session {
    fn of(handle: shared::SessionHandle) -> Self {
        Self {
            handle: Arc::new(handle),
            queue: Mutex::new(None),
        }
    }

    fn queue(&self) -> Result<Arc<shared::SessionQueue>, Failure> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = &*queue {
            return Ok(Arc::clone(queue));
        }
        let made = shared::SessionQueue::new(Arc::clone(&self.handle))?;
        Ok(Arc::clone(queue.insert(Arc::new(made))))
    }
}

#[pymethods]
impl Session {
    /// Runs a command: JSON in, JSON out.
    fn run(&self, py: Python<'_>, command: &str) -> PyResult<String> {
        let reply = py.detach(|| self.handle.run(command));
        reply.map_err(|failure| raised(py, &failure))
    }

    /// Runs a command that may take long, on another thread: an interrupt raises at once, and the command continues.
    fn run_long(&self, py: Python<'_>, command: String) -> PyResult<String> {
        let (sender, answer) = mpsc::channel();
        let answer = Mutex::new(answer);
        let handle = Arc::clone(&self.handle);
        let thread = thread::Builder::new().name("transcript".into());
        let run = move || {
            // Fails after an interrupt, when the answer is no longer awaited.
            let _ = sender.send(handle.run(&command));
        };
        thread.spawn(run)?;
        loop {
            let wait = || {
                let answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
                answer.recv_timeout(INTERRUPT_INTERVAL)
            };
            match py.detach(wait) {
                Ok(reply) => return reply.map_err(|failure| raised(py, &failure)),
                Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "the command ended without an answer",
                    ));
                }
            }
        }
    }

    /// Runs a command on another thread, in order. Returns the answer if it is there at once; else returns nothing,
    /// and `done` is called with the answer or an exception on that thread.
    fn ask(&self, py: Python<'_>, command: String, done: Py<PyAny>) -> PyResult<Option<String>> {
        let then = move |reply: Reply| notify(&done, reply.map(|text| Some(Answer::Text(text))));
        let reply = py.detach(|| match self.queue() {
            Ok(queue) => queue.ask(command, then),
            Err(failure) => Some(Err(failure)),
        });
        let reply = reply.transpose();
        reply.map_err(|failure| raised(py, &failure))
    }

    /// Appends the received part of a streamed reply.
    fn append_reply(&self, py: Python<'_>, reply: &StreamReply) -> PyResult<String> {
        let answer = py.detach(|| self.handle.append_reply(&reply.0));
        answer.map_err(|failure| raised(py, &failure))
    }

    /// Appends a streamed reply on another thread, in order with the commands.
    fn append_reply_then(&self, py: Python<'_>, reply: &StreamReply, done: Py<PyAny>) {
        let then = move |reply: Reply| {
            notify(&done, reply.map(|text| Some(Answer::Text(text))));
        };
        py.detach(|| match self.queue() {
            Ok(queue) => queue.append_reply(&reply.0, then),
            Err(failure) => then(Err(failure)),
        });
    }

    /// Opens the session of a subagent.
    fn agent(&self, py: Python<'_>, options: &str) -> PyResult<Self> {
        let agent = py.detach(|| self.handle.agent(options));
        agent.map(Self::of).map_err(|failure| raised(py, &failure))
    }

    /// Opens the session of a subagent on another thread, and calls `done` as [`open_then`] does.
    fn agent_then(&self, py: Python<'_>, options: String, done: Py<PyAny>) -> PyResult<()> {
        let handle = Arc::clone(&self.handle);
        let open = move || Ok((handle.agent(&options)?, "{}".to_owned()));
        open_elsewhere(py, done, open)
    }

    /// The file of the session.
    #[getter]
    fn path(&self) -> &std::path::Path {
        self.handle.path()
    }
}

/// Assembles a message from the events of a streamed reply.
#[pyclass]
struct StreamReply(shared::StreamReply);

#[pymethods]
impl StreamReply {
    #[new]
    fn new() -> Self {
        Self(shared::StreamReply::new())
    }

    /// Applies an event, as JSON. Returns the name of its effect, and the number of the block that it concerns.
    fn event(&mut self, event: &str) -> (&'static str, Option<usize>) {
        self.0.event(event)
    }

    /// Applies the events in the next bytes of a stream of server-sent events. Returns whether the reply is over.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.0.push(bytes)
    }

    /// Whether the message is complete or the stream ended with an error.
    #[getter]
    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Returns the received part of the reply, as JSON.
    fn json(&self) -> String {
        self.0.json()
    }
}
