//! The native part of the npm package `transcript`: passes JSON to the bridge and hands on what it returns.
//!
//! Nothing is read, written or waited for on the thread of the event loop.

use std::sync::Arc;

use napi::bindgen_prelude::{AsyncTask, Buffer, Env, Error, Object, Result, ToNapiValue};
use napi::{JsDeferred, Task};
use napi_derive::napi;
use transcript_bridge::{self as bridge, Failure, Next, Reply, SessionHandle, SessionThread};

type Resolver<T> = Box<dyn FnOnce(Env) -> Result<T> + Send>;

/// The failure as the error that `lib/errors.js` reads.
fn error(failure: &Failure) -> Error {
    Error::from_reason(failure.json())
}

fn settle<T: ToNapiValue + Send + 'static>(
    deferred: JsDeferred<T, Resolver<T>>,
    answer: std::result::Result<T, Failure>,
) {
    match answer {
        Ok(answer) => deferred.resolve(Box::new(move |_| Ok(answer))),
        Err(failure) => deferred.reject(error(&failure)),
    }
}

/// Starts a function: options as JSON in, records out.
#[napi]
pub fn call(options: String) -> Result<Records> {
    let records = bridge::call(&options).map_err(|failure| error(&failure))?;
    Ok(Records(Arc::new(records)))
}

/// The version of the package.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The records of a function, in batches.
#[napi]
pub struct Records(Arc<bridge::Records>);

#[napi]
impl Records {
    /// Returns a promise of the next batch; `null` after the last.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred::<Option<Buffer>, Resolver<Option<Buffer>>>()?;
        self.0.then(move |next: Next| settle(deferred, next.map(|batch| batch.map(Buffer::from))));
        Ok(promise)
    }

    /// Ends the function.
    #[napi]
    pub fn close(&self) {
        self.0.close();
    }
}

/// A session that is open for writing.
#[napi]
pub struct Session(Arc<SessionThread>);

#[napi]
impl Session {
    /// The file of the session.
    #[napi(getter)]
    pub fn path(&self) -> String {
        self.0.handle().path().to_string_lossy().into_owned()
    }

    /// Runs a command: JSON in, a promise of JSON out.
    #[napi]
    pub fn run<'env>(&self, env: &'env Env, command: String) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred::<String, Resolver<String>>()?;
        self.0.run(command, move |reply: Reply| settle(deferred, reply));
        Ok(promise)
    }

    /// Appends what was received of a streamed reply.
    #[napi]
    pub fn append_reply<'env>(&self, env: &'env Env, reply: &StreamReply) -> Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred::<String, Resolver<String>>()?;
        self.0.append_reply(&reply.0, move |reply: Reply| settle(deferred, reply));
        Ok(promise)
    }

    /// Opens the session of a subagent.
    #[napi(ts_return_type = "Promise<Opened>")]
    pub fn agent(&self, options: String) -> AsyncTask<OpenAgent> {
        AsyncTask::new(OpenAgent {
            session: Arc::clone(&self.0),
            options,
        })
    }
}

/// A session, and what there is to say about it as JSON.
#[napi]
pub struct Opened {
    session: Arc<SessionThread>,
    about: String,
}

#[napi]
impl Opened {
    /// The session.
    #[napi(getter)]
    pub fn session(&self) -> Session {
        Session(Arc::clone(&self.session))
    }

    /// What there is to say about it, as JSON.
    #[napi(getter)]
    pub fn about(&self) -> String {
        self.about.clone()
    }
}

impl Opened {
    fn new((handle, about): (SessionHandle, String)) -> Result<Self> {
        let session = SessionThread::start(Arc::new(handle)).map_err(|failure| error(&failure))?;
        Ok(Self {
            session: Arc::new(session),
            about,
        })
    }
}

/// Opens a session: options as JSON in.
#[napi(ts_return_type = "Promise<Opened>")]
pub fn open(options: String) -> AsyncTask<OpenSession> {
    AsyncTask::new(OpenSession(options))
}

/// Opens a session on another thread.
pub struct OpenSession(String);

impl Task for OpenSession {
    type Output = (SessionHandle, String);
    type JsValue = Opened;

    fn compute(&mut self) -> Result<Self::Output> {
        SessionHandle::open(&self.0).map_err(|failure| error(&failure))
    }

    fn resolve(&mut self, _: Env, opened: Self::Output) -> Result<Opened> {
        Opened::new(opened)
    }
}

/// Opens the session of a subagent on another thread.
pub struct OpenAgent {
    session: Arc<SessionThread>,
    options: String,
}

impl Task for OpenAgent {
    type Output = SessionHandle;
    type JsValue = Opened;

    fn compute(&mut self) -> Result<SessionHandle> {
        let agent = self.session.handle().agent(&self.options);
        agent.map_err(|failure| error(&failure))
    }

    fn resolve(&mut self, _: Env, agent: SessionHandle) -> Result<Opened> {
        Opened::new((agent, "{}".to_owned()))
    }
}

/// Assembles a message from the events of a streamed reply.
#[napi]
pub struct StreamReply(bridge::StreamReply);

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
    #[napi(constructor)]
    #[expect(clippy::new_without_default, reason = "made by JavaScript")]
    pub fn new() -> Self {
        Self(bridge::StreamReply::new())
    }

    /// Applies an event, as JSON.
    #[napi]
    pub fn event(&mut self, event: String) -> Step {
        let (name, block) = self.0.event(&event);
        Step {
            name: name.to_owned(),
            block: block.and_then(|block| u32::try_from(block).ok()),
        }
    }

    /// Applies the events in the next bytes of a stream of server-sent events. Returns whether the reply is over.
    #[napi]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.0.push(bytes)
    }

    /// Whether the message is complete or the stream ended with an error.
    #[napi(getter)]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Returns what was received so far, as JSON.
    #[napi]
    pub fn json(&self) -> String {
        self.0.json()
    }
}
