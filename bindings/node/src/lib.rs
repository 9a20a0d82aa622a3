//! The native part of the npm package `transcript`: passes JSON to what all bindings share, and returns its answers.
//!
//! Nothing is read or written on the thread of the event loop, which waits for nothing longer than it would take to wake it.

use std::sync::Arc;

use napi::Status;
use napi::bindgen_prelude::{Buffer, Env, Error, FnArgs, Function, Object, Result};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use transcript_bindings::{self as shared, Failure, Next, Reply, SessionHandle, SessionQueue};

type Resolver<T> = Box<dyn FnOnce(Env) -> Result<T> + Send>;

/// The failure as the error that `lib/errors.js` reads.
fn error(failure: &Failure) -> Error {
    Error::from_reason(failure.json())
}

/// The answer, if a string of JavaScript can have it: one that is too long would end the process, as nothing could catch
/// the error.
fn text(answer: String) -> Reply {
    /// The maximum length of a string of V8, in units of UTF-16.
    const MAX_STRING_UNITS: usize = (1 << 29) - 24;
    // A unit needs at most 3 bytes, and a byte is at most one unit.
    if answer.len() > MAX_STRING_UNITS && answer.encode_utf16().count() > MAX_STRING_UNITS {
        return Err(Failure::too_large(&format!(
            "the answer has {} bytes, more than a string of JavaScript can have",
            answer.len()
        )));
    }
    Ok(answer)
}

/// The function of JavaScript that gets the batches of a function: the batch, which is `null` after the last, or the
/// failure. It does not keep the event loop alive; `lib/records.js` does while a batch is due.
type SettleBatch = ThreadsafeFunction<
    FnArgs<(Option<Buffer>, Option<String>)>,
    (),
    FnArgs<(Option<Buffer>, Option<String>)>,
    Status,
    false,
    true,
>;

type SettleBatchFunction<'f> = Function<'f, FnArgs<(Option<Buffer>, Option<String>)>, ()>;

/// Starts a function: options as JSON in, records out, whose batches `settle` gets.
#[napi(catch_unwind)]
pub fn call(options: String, settle: SettleBatchFunction<'_>) -> Result<Records> {
    let records = shared::call(&options).map_err(|failure| error(&failure))?;
    let settle = settle
        .build_threadsafe_function()
        .callee_handled::<false>()
        .weak::<true>()
        .build()?;
    Ok(Records {
        records: Arc::new(records),
        settle: Arc::new(settle),
    })
}

/// The version of the package.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The records of a function, in batches.
#[napi]
pub struct Records {
    records: Arc<shared::Records>,
    settle: Arc<SettleBatch>,
}

#[napi]
impl Records {
    /// Asks for the next batch; one at a time.
    #[napi(catch_unwind)]
    pub fn next(&self) {
        let settle = Arc::clone(&self.settle);
        self.records.then(move |next: Next| {
            let arguments = match next {
                Ok(batch) => (batch.map(Buffer::from), None),
                Err(failure) => (None, Some(failure.json())),
            };
            // Fails when the event loop has ended, and no caller waits.
            let _ = settle.call(arguments.into(), ThreadsafeFunctionCallMode::NonBlocking);
        });
    }

    /// Returns a promise that is resolved when the function has started.
    #[napi(catch_unwind)]
    pub fn ready<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred::<(), Resolver<()>>()?;
        self.records
            .when_ready(move || deferred.resolve(Box::new(|_| Ok(()))));
        Ok(promise)
    }

    /// Ends the function.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.records.close();
    }
}

/// The function of JavaScript that gets the answers of a session: the number of the command, then its answer or the
/// failure. One function for all commands costs a third of a promise for each. It does not keep the event loop alive;
/// `lib/session.js` does while an answer is due.
type Settle = ThreadsafeFunction<
    FnArgs<(u32, Option<String>, Option<String>)>,
    (),
    FnArgs<(u32, Option<String>, Option<String>)>,
    Status,
    false,
    true,
>;

type SettleFunction<'f> = Function<'f, FnArgs<(u32, Option<String>, Option<String>)>, ()>;

/// A session that is open for writing.
#[napi]
pub struct Session {
    queue: Arc<SessionQueue>,
    settle: Arc<Settle>,
}

#[napi]
impl Session {
    fn then(&self, number: u32) -> impl FnOnce(Reply) + Send + 'static {
        let settle = Arc::clone(&self.settle);
        move |reply| {
            let reply = reply.and_then(text);
            let arguments = match reply {
                Ok(answer) => (number, Some(answer), None),
                Err(failure) => (number, None, Some(failure.json())),
            };
            // Fails when the event loop has ended, and no caller waits.
            let _ = settle.call(arguments.into(), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// The file of the session.
    #[napi(getter, catch_unwind)]
    pub fn path(&self) -> String {
        self.queue.handle().path().to_string_lossy().into_owned()
    }

    /// Runs a command: JSON in. Its answer is that to the command of this number.
    #[napi(catch_unwind)]
    pub fn run(&self, number: u32, command: String) {
        self.queue.run(command, self.then(number));
    }

    /// Runs a command: JSON in. Returns its answer if it is there at once, which is before the event loop could be woken.
    #[napi(catch_unwind)]
    pub fn ask(&self, number: u32, command: String) -> Result<Option<String>> {
        let answer = self.queue.ask(command, self.then(number));
        let answer = answer.map(|reply| reply.and_then(text)).transpose();
        answer.map_err(|failure| error(&failure))
    }

    /// Appends the received part of a streamed reply.
    #[napi(catch_unwind)]
    pub fn append_reply(&self, number: u32, reply: &StreamReply) {
        self.queue.append_reply(&reply.0, self.then(number));
    }

    /// Opens the session of a subagent.
    #[napi(ts_return_type = "Promise<Opened>", catch_unwind)]
    pub fn agent<'env>(&self, env: &'env Env, options: String) -> Result<Object<'env>> {
        let parent = Arc::clone(&self.queue);
        open_elsewhere(env, move || {
            Ok((parent.handle().agent(&options)?, "{}".to_owned()))
        })
    }
}

/// A session, and what there is to say about it as JSON.
#[napi]
pub struct Opened {
    queue: Arc<SessionQueue>,
    about: String,
}

#[napi]
impl Opened {
    /// Returns the session, whose answers `settle` gets.
    #[napi(catch_unwind)]
    pub fn session(&self, settle: SettleFunction<'_>) -> Result<Session> {
        let settle = settle
            .build_threadsafe_function()
            .callee_handled::<false>()
            .weak::<true>()
            .build()?;
        Ok(Session {
            queue: Arc::clone(&self.queue),
            settle: Arc::new(settle),
        })
    }

    /// The details of the session, as JSON.
    #[napi(getter, catch_unwind)]
    pub fn about(&self) -> String {
        self.about.clone()
    }
}

/// Opens a session: options as JSON in.
#[napi(ts_return_type = "Promise<Opened>", catch_unwind)]
pub fn open<'env>(env: &'env Env, options: String) -> Result<Object<'env>> {
    open_elsewhere(env, move || SessionHandle::open(&options))
}

/// Opens a session on a thread of the crew: those that Node has for files may be needed for others.
fn open_elsewhere(
    env: &Env,
    open: impl FnOnce() -> std::result::Result<(SessionHandle, String), Failure> + Send + 'static,
) -> Result<Object<'_>> {
    let (deferred, promise) = env.create_deferred::<Opened, Resolver<Opened>>()?;
    let start = move || -> std::result::Result<Opened, Failure> {
        let (handle, about) = open()?;
        let about = text(about)?;
        let queue = Arc::new(SessionQueue::new(Arc::new(handle))?);
        Ok(Opened { queue, about })
    };
    let run = move || match start() {
        Ok(opened) => deferred.resolve(Box::new(move |_| Ok(opened))),
        Err(failure) => deferred.reject(error(&failure)),
    };
    shared::run_once(run).map_err(|failure| error(&failure))?;
    Ok(promise)
}

/// Assembles a message from the events of a streamed reply.
#[napi]
#[derive(Default)]
pub struct StreamReply(shared::StreamReply);

/// The effect of an event.
#[napi(object)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// The number of the block that it concerns.
    pub block: Option<u32>,
}

#[napi]
impl StreamReply {
    /// Returns a reply before the first event.
    #[napi(constructor, catch_unwind)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an event, as JSON.
    #[napi(catch_unwind)]
    pub fn event(&mut self, event: String) -> Step {
        let (name, block) = self.0.event(&event);
        Step {
            name: name.to_owned(),
            block: block.and_then(|block| u32::try_from(block).ok()),
        }
    }

    /// Applies the events in the next bytes of a stream of server-sent events. Returns whether the reply is over.
    #[napi(catch_unwind)]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.0.push(bytes)
    }

    /// Whether the message is complete or the stream ended with an error.
    #[napi(getter, catch_unwind)]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Returns the received part of the reply, as JSON.
    #[napi(catch_unwind)]
    pub fn json(&self) -> String {
        self.0.json()
    }
}
