//! An open session, and its commands.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use transcript_engine::catalog::usage::{CallPrices, Prices};
use transcript_engine::serve::{append_each_then, drafts, embedded_prices, execute, request_text};
use transcript_engine::wire::{self, Command, CommandError};
use transcript_engine::{
    AgentId, AgentMeta, Draft, OnBusy, Repair, Session, SessionOptions, SyncPolicy, Written, stream,
};
use transcript_format::object::Object;

use transcript_ops::context::ArchiveChoice;
use transcript_ops::context::RootChoice;
use transcript_ops::failure::read_options;
use transcript_ops::fit::{self, Limit};
use transcript_ops::{Context, Failure, PolicyName, StoreOptions, provider};

use crate::stream_reply::StreamReply;

/// The answer to a command: a JSON object.
pub type Reply = Result<String, Failure>;

/// A session that is open for writing. May be shared between threads.
#[derive(Debug)]
pub struct SessionHandle {
    session: Mutex<Option<Session>>,
    path: PathBuf,
    /// The prices of replies, for `count`.
    prices: Arc<CallPrices>,
    process: u32,
}

/// The options for opening a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OpenOptions {
    mode: Mode,
    /// The path of a file, or, of a session that exists, its id or the start of one. A new session needs none.
    session: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
    git_branch: Option<String>,
    entrypoint: Option<String>,
    model: Option<String>,
    tools: Option<Vec<String>>,
    session_id: Option<String>,
    /// The maximum length of requests.
    fit: Option<Limit>,
    /// The number of turns at the end that are never changed.
    fit_turns: Option<usize>,
    /// The provider that receives the requests.
    provider: Option<String>,
    #[serde(default)]
    policy: PolicyName,
    /// A file of prices, in the form of LiteLLM.
    prices: Option<PathBuf>,
    sync: Option<Sync>,
    on_busy: Option<Busy>,
    /// The folder of projects; that of the client by default.
    root: Option<RootChoice>,
    /// The folder of an archive; `true` for that of this user.
    archive: Option<ArchiveChoice>,
    /// The file with the keys of an encrypted archive.
    identity: Option<PathBuf>,
}

/// The options of a subagent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AgentOptions {
    agent_id: String,
    agent_type: String,
    tool_use_id: String,
    description: Option<String>,
    parent_agent_id: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    Create,
    Open,
    OpenOrCreate,
    Resume,
}

/// The time of a sync after a write: `none`, `each`, or at most this number of milliseconds later.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`sync` must be `none`, `each` or a number of milliseconds"
)]
enum Sync {
    Named(NamedSync),
    Millis(u64),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NamedSync {
    None,
    Each,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Busy {
    Fail,
    Share,
    Fork,
}

impl OpenOptions {
    fn session_options(&self) -> Result<SessionOptions, Failure> {
        let policy = self.policy.into();
        let mut options = SessionOptions::new()
            .policy(policy)
            .provider(provider::named(self.provider.as_deref(), policy)?);
        if let Some(limit) = fit::limit(self.fit.as_ref(), self.fit_turns, policy)? {
            options = options.fit(limit);
        }
        if let Some(cwd) = &self.cwd {
            options = options.cwd(cwd);
        }
        if let Some(version) = &self.version {
            options = options.version(version);
        }
        if let Some(branch) = &self.git_branch {
            options = options.git_branch(branch);
        }
        if let Some(entrypoint) = &self.entrypoint {
            options = options.entrypoint(entrypoint);
        }
        if let Some(model) = &self.model {
            options = options.model(model);
        }
        if let Some(tools) = &self.tools {
            options = options.tools(tools);
        }
        if let Some(id) = &self.session_id {
            options = options.session_id(id);
        }
        if let Some(sync) = self.sync {
            options = options.sync(match sync {
                Sync::Named(NamedSync::None) => SyncPolicy::None,
                Sync::Named(NamedSync::Each) => SyncPolicy::Each,
                Sync::Millis(millis) => SyncPolicy::Interval(Duration::from_millis(millis)),
            });
        }
        if let Some(busy) = self.on_busy {
            options = options.on_busy(match busy {
                Busy::Fail => OnBusy::Fail,
                Busy::Share => OnBusy::Share,
                Busy::Fork => OnBusy::Fork,
            });
        }
        Ok(options)
    }

    fn prices(&self) -> Result<Arc<CallPrices>, Failure> {
        let prices = match &self.prices {
            Some(path) => {
                Prices::read(path).map_err(|error| Failure::options(error.to_string()))?
            }
            None => return Ok(embedded_prices()),
        };
        Ok(Arc::new(CallPrices::new(prices)))
    }

    /// Returns the path of the session: an absolute one, as a program may change its working folder.
    fn path(&self) -> Result<PathBuf, Failure> {
        let path = self.named_path()?;
        std::path::absolute(&path).map_err(|error| Failure::options(error.to_string()).at(&path))
    }

    fn context(&self) -> Result<Context, Failure> {
        let place = StoreOptions {
            root: self.root.clone(),
            agent: None,
            archive: self.archive.clone(),
            identity: self.identity.clone(),
        };
        place.context()
    }

    fn named_path(&self) -> Result<PathBuf, Failure> {
        match (self.mode, &self.session) {
            (Mode::Create | Mode::OpenOrCreate, Some(path)) if !path.is_empty() => {
                Ok(PathBuf::from(path))
            }
            (_, Some(session)) => Ok(self.context()?.find(Path::new(session), None)?.path),
            (Mode::Create | Mode::OpenOrCreate, None) => {
                let cwd = self.cwd.as_ref().map(PathBuf::from);
                let cwd = cwd.map_or_else(std::env::current_dir, Ok)?;
                Ok(self.context()?.store()?.new_session_path(&cwd))
            }
            (_, None) => Err(Failure::options("no session is named")),
        }
    }
}

impl SessionHandle {
    /// Opens a session as the options say. Returns it with what there is to say about it; of a session that is
    /// resumed that includes its request.
    ///
    /// # Errors
    /// When the options cannot be used, or the session not be opened.
    pub fn open(options: &str) -> Result<(Self, String), Failure> {
        guarded(|| Self::open_session(options))
    }

    fn open_session(options: &str) -> Result<(Self, String), Failure> {
        let options: OpenOptions = read_options(options)?;
        let (path, prices) = (options.path()?, options.prices()?);
        let session_options = options.session_options()?;
        let (session, resumed) = match options.mode {
            Mode::Create => (Session::create(&path, &session_options)?, None),
            Mode::Open => (Session::open(&path, &session_options)?, None),
            Mode::OpenOrCreate => (Session::open_or_create(&path, &session_options)?, None),
            Mode::Resume => {
                let resumed = Session::resume(&path, &session_options)?;
                let request = request_text(&resumed.request, resumed.history.index())?;
                let request = (request, resumed.added, resumed.forked_from);
                (resumed.session, Some(request))
            }
        };
        let mut about = json!({
            "path": session.path().to_string_lossy(),
            "sessionId": options.session_id,
            "uuid": session.leaf().map(|leaf| leaf.to_string()),
            "repair": session.repair().map(repair_record),
            "restored": session.restored().len(),
        });
        let mut request_json = None;
        if let Some((request, added, forked_from)) = resumed {
            about["added"] = json!(ids(&added));
            about["forkedFrom"] = json!(forked_from);
            request_json = Some(request);
        }
        let mut about = about.to_string();
        if let Some(request) = request_json {
            about.pop();
            about.push_str(",\"request\":");
            about.push_str(&request);
            about.push('}');
        }
        Ok((Self::of(session, prices), about))
    }

    fn of(session: Session, prices: Arc<CallPrices>) -> Self {
        Self {
            path: session.path().to_owned(),
            prices,
            session: Mutex::new(Some(session)),
            process: process::id(),
        }
    }

    /// Opens the session of a subagent, in its own file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn agent(&self, options: &str) -> Result<Self, Failure> {
        self.check_process()?;
        guarded(|| {
            let options: AgentOptions = read_options(options)?;
            let id =
                |id: &str| AgentId::new(id).map_err(|error| Failure::options(error.to_string()));
            let mut meta = AgentMeta::new(&options.agent_type, &options.tool_use_id);
            if let Some(description) = &options.description {
                meta = meta.description(description);
            }
            if let Some(parent) = &options.parent_agent_id {
                meta = meta.parent(&id(parent)?);
            }
            let guard = self.lock();
            let session = guard.as_ref().ok_or_else(|| self.closed())?;
            let agent = session.agent(&id(&options.agent_id)?, &meta)?;
            Ok(Self::of(agent, Arc::clone(&self.prices)))
        })
    }

    /// Returns the file of the session.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a command: an object with its name under `op`. Returns its answer.
    ///
    /// # Errors
    /// When it is not a command, or fails. After `close` every command fails as `closed`.
    pub fn run(&self, command: &str) -> Reply {
        self.check_process()?;
        let reply = guarded(|| self.run_command(command));
        reply.map_err(|failure| match failure.path {
            Some(_) => failure,
            None => failure.at(&self.path),
        })
    }

    /// Appends entries of several commands with one write. Returns the answers, or nothing if they have to be synced first:
    /// then `then` gets the answers.
    pub(crate) fn append_each(
        &self,
        batches: Vec<Vec<Draft>>,
        then: impl FnOnce(Vec<Reply>) + Send + 'static,
    ) -> Option<Vec<Reply>> {
        let count = batches.len();
        let path = self.path.clone();
        let synced = move |answers| then(replies(&path, answers));
        let answers = self.check_process().and_then(|()| {
            guarded(|| {
                let guard = self.lock();
                let session = guard.as_ref().ok_or_else(|| self.closed())?;
                let answers = append_each_then(session, batches, synced);
                Ok(answers.map(|answers| replies(&self.path, answers)))
            })
        });
        answers.unwrap_or_else(|failure| Some(vec![Err(failure); count]))
    }

    /// Appends the received part of a streamed reply: an entry for each block, marked if the stream ended early.
    ///
    /// # Errors
    /// As for the command `append`; when nothing of the reply can be kept.
    pub fn append_reply(&self, reply: &StreamReply) -> Reply {
        self.check_process()?;
        self.append_received(reply.reply().as_ref())
    }

    pub(crate) fn append_received(&self, reply: Option<&stream::Reply>) -> Reply {
        guarded(|| {
            let guard = self.lock();
            let session = guard.as_ref().ok_or_else(|| self.closed())?;
            let reply = reply.ok_or_else(|| {
                Failure::new("invalid-entry", "nothing of the reply can be kept").at(&self.path)
            })?;
            Ok(wire::text(&wire::Answer::written(
                session.append_reply(reply)?,
            ))?)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the session was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    pub(crate) fn closed(&self) -> Failure {
        Failure::new("closed", "the session is closed").at(&self.path)
    }

    /// A child that was forked has no thread that writes, and must not release the lock of its parent.
    pub(crate) fn check_process(&self) -> Result<(), Failure> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(Failure::new(
                "forked",
                "the session was opened by the parent process; open it again in the child",
            )
            .at(&self.path))
        }
    }

    fn run_command(&self, text: &str) -> Reply {
        let object = Object::parse(text)
            .map_err(|error| CommandError::bad_command(format!("the command is {error}")))?;
        let mut guard = self.lock();
        let op = object.str("op");
        if op.as_deref() == Some("close") {
            // A second close does nothing.
            if let Some(session) = guard.take() {
                session.close()?;
            }
            return Ok("{\"ok\":true}".to_owned());
        }
        let session = guard.as_ref().ok_or_else(|| self.closed())?;
        let command = Command::from_object(&object)?;
        reply(&self.path, execute(session, &self.prices, &command))
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        // In a child that was forked the threads that work for the session do not exist: its end would wait for them.
        if self.process != process::id() {
            std::mem::forget(self.lock().take());
        }
    }
}

fn replies(path: &Path, answers: Vec<Result<wire::Answer<'static>, CommandError>>) -> Vec<Reply> {
    let answers = answers.into_iter();
    answers.map(|answer| reply(path, answer)).collect()
}

fn reply(path: &Path, answer: Result<wire::Answer<'static>, CommandError>) -> Reply {
    let answer = answer.map_err(|error| Failure::from(error).at(path))?;
    Ok(wire::text(&answer)?)
}

/// Returns the entries of a command that appends some, to be written together with others.
pub(crate) fn appended(command: &str) -> Option<Vec<Draft>> {
    let object = Object::parse(command).ok()?;
    match Command::from_object(&object).ok()? {
        Command::Append(append) => drafts(&append).ok(),
        _ => None,
    }
}

/// Describes the repair of the end of a file when it was opened.
fn repair_record(repair: &Repair) -> Value {
    match repair {
        Repair::Completed { offset } => json!({ "kind": "completed", "offset": offset }),
        Repair::Cut { offset, len, saved } => {
            let saved = saved.to_string_lossy();
            json!({ "kind": "cut", "offset": offset, "len": len, "saved": saved })
        }
        Repair::Sealed { offset, len, .. } => {
            json!({ "kind": "sealed", "offset": offset, "len": len })
        }
        _ => json!({ "kind": "other" }),
    }
}

fn ids(written: &[Written]) -> Vec<Option<String>> {
    let ids = written.iter().map(|entry| entry.uuid.as_ref());
    ids.map(|id| id.map(ToString::to_string)).collect()
}

/// Runs what may panic: a defect of this program is a failure of the call, not the end of the process.
fn guarded<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Failure::panic(&*panic)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use crate::session_queue::SessionQueue;

    use super::*;

    fn open(path: &Path) -> SessionHandle {
        open_with(path, &Value::Null)
    }

    fn open_with(path: &Path, sync: &Value) -> SessionHandle {
        let options = json!({ "mode": "openOrCreate", "session": path, "cwd": "/", "version": "1", "sync": sync });
        SessionHandle::open(&options.to_string()).unwrap().0
    }

    #[test]
    fn commands_that_wait_together_are_answered_in_order_and_only_bad_ones_fail() {
        for sync in [json!("none"), json!("each")] {
            answer_in_order(&sync);
        }
    }

    fn answer_in_order(sync: &Value) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
        let session = open_with(&path, sync);
        let commands = [
            r#"{"op":"append","user":"one"}"#,
            r#"{"op":"append","user":"two"}"#,
            r#"{"op":"append","entry":{"type":"user","uuid":7}}"#,
            r#"{"op":"leaf"}"#,
            "no command",
            r#"{"op":"append","user":"three"}"#,
            r#"{"op":"close"}"#,
            r#"{"op":"append","user":"four"}"#,
        ];
        let session = Arc::new(session);
        let queue = SessionQueue::new(Arc::clone(&session)).unwrap();
        let (sender, answers) = mpsc::channel();
        for command in commands {
            let sender = sender.clone();
            queue.run(command.to_owned(), move |reply| sender.send(reply).unwrap());
        }
        let replies: Vec<Reply> = answers.iter().take(commands.len()).collect();
        let kinds: Vec<_> = replies
            .iter()
            .map(|reply| reply.as_ref().err().map(|failure| failure.kind.as_ref()))
            .collect();
        let (invalid, bad) = (Some("invalid-entry"), Some("bad-command"));
        assert_eq!(
            kinds,
            [None, None, invalid, None, bad, None, None, Some("closed")]
        );
        let written = std::fs::read_to_string(session.path()).unwrap();
        assert_eq!(written.lines().count(), 3);
        // The failure names the session.
        assert!(replies[2].as_ref().unwrap_err().path.is_some());
    }

    #[test]
    fn the_json_of_an_entry_cannot_end_its_command_and_mistakes_write_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
        let session = open(&path);
        let entry = r#"{"type":"user","message":{"role":"user","content":"one"}}"#;
        let one = json!({ "op": "append", "entry": entry }).to_string();
        session.run(&one).unwrap();
        let before = std::fs::read_to_string(&path).unwrap();
        let two = format!("{entry},{entry}");
        let commands = [
            json!({ "op": "append", "entry": two }),
            json!({ "op": "append", "assistant": two }),
            json!({ "op": "queue", "entry": two }),
            json!({ "op": "appendAll", "entries": [entry, two] }),
            json!({ "op": "record", "messages": [two] }),
            json!({ "op": "title" }),
            json!({ "op": "title", "title": null }),
            json!({ "op": "tag", "tag": 5 }),
            json!({ "op": "endTurn", "prompt": 5 }),
            json!({ "op": "fork", "upTo": 1 }),
            json!({ "op": "fork", "at": [] }),
            json!({ "op": "compact", "trigger": "manual", "summary": "s", "preTokens": 5.5 }),
            json!({ "op": "compact", "trigger": "manual", "summary": "s", "keep": [1] }),
            json!({ "op": "prompt", "sections": [] }),
            json!({ "op": "prompt", "sections": [{ "name": "git" }] }),
            json!({ "op": "prompt", "sections": [{ "name": "git", "text": "main" }], "separator": 5 }),
            json!({ "op": "changes", "sections": [{ "name": "git", "text": "main" }], "limit": 5 }),
        ];
        for command in commands {
            let failure = session.run(&command.to_string()).unwrap_err();
            assert_eq!(failure.path.as_deref(), path.to_str(), "{command}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{command}");
        }
        session.run(r#"{"op":"close"}"#).unwrap();
    }

    #[test]
    fn a_second_session_of_a_file_is_busy_until_the_first_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
        let session = open(&path);
        session.run(r#"{"op":"append","user":"one"}"#).unwrap();
        let options = json!({ "mode": "open", "session": path }).to_string();
        assert_eq!(SessionHandle::open(&options).unwrap_err().kind, "busy");
        session.run(r#"{"op":"close"}"#).unwrap();
        let (session, about) = SessionHandle::open(&options).unwrap();
        assert!(about.contains("\"uuid\":\""), "{about}");
        session.run(r#"{"op":"close"}"#).unwrap();
    }
}
