//! An open session, and its commands.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use transcript_engine::catalog::usage::{CallPrices, Prices};
use transcript_engine::serve::{append_each_then, drafts, execute};
use transcript_engine::wire::{self, Append, Command, CommandError, Json};
use transcript_engine::{
    AgentId, AgentMeta, Counters, Draft, ErrorKind, ForkOptions, History, OnBusy, Repair, Request,
    Session, SessionOptions, SyncPolicy, TurnEnd, Written, stream,
};
use transcript_format::object::{Object, Raw};
use transcript_reader::Index;

use transcript_ops::context::ArchiveChoice;
use transcript_ops::failure::read_options;
use transcript_ops::fit::{self, Limit};
use transcript_ops::{Context, Failure, Place, PolicyName, provider};

use crate::stream_reply::StreamReply;

/// The answer to a command: a JSON object.
pub type Reply = Result<String, Failure>;

/// A session that is open for writing. May be shared between threads.
#[derive(Debug)]
pub struct SessionHandle {
    session: Mutex<Option<Session>>,
    path: PathBuf,
    /// What replies cost that are counted.
    prices: Arc<CallPrices>,
    process: u32,
}

/// How a session is opened.
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
    /// Who gets the requests.
    provider: Option<String>,
    #[serde(default)]
    policy: PolicyName,
    /// A file of prices, in the form of LiteLLM.
    prices: Option<PathBuf>,
    sync: Option<Sync>,
    on_busy: Option<Busy>,
    /// The folder of projects; that of the client by default.
    root: Option<PathBuf>,
    /// The folder of an archive; `true` for that of this user.
    archive: Option<ArchiveChoice>,
    /// The file with the keys of an encrypted archive.
    identity: Option<PathBuf>,
}

/// What is known about a subagent.
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

/// When written bytes are synced: `none`, `each`, or at most this number of milliseconds later.
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
            None => Prices::embedded(),
        };
        Ok(Arc::new(CallPrices::new(prices)))
    }

    /// Returns the path of the session: an absolute one, as a program may change its working folder.
    fn path(&self) -> Result<PathBuf, Failure> {
        let path = self.named_path()?;
        std::path::absolute(&path).map_err(|error| Failure::options(error.to_string()).at(&path))
    }

    fn context(&self) -> Result<Context, Failure> {
        let place = Place {
            root: self.root.clone(),
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

    /// Appends what was received of a streamed reply: an entry for each block, marked if the stream ended early.
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

    /// Counts the replies that a kill kept from being counted; only the first call reads the file.
    fn count_missed(&self, session: &Session) -> Result<(), Failure> {
        let prices = Arc::clone(&self.prices);
        session.count_missed(move |model, usage| prices.cost(model, usage))?;
        Ok(())
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
        match self.process == process::id() {
            true => Ok(()),
            false => Err(Failure::new(
                "forked",
                "the session was opened by the parent process; open it again in the child",
            )
            .at(&self.path)),
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
        let text = |name: &str| optional_text(&object, name);
        match op.as_deref() {
            Some("queue") => {
                let mut last = None;
                for draft in drafts(&unquoted(Append::of_object(&object)?))? {
                    last = session.queue(draft)?.uuid().map(ToString::to_string);
                }
                Ok(json!({ "ok": true, "uuid": last }).to_string())
            }
            Some("appendAll") => {
                let entries = object.array("entries").unwrap_or_default().into_iter();
                let drafts = entries.enumerate().map(|(number, entry)| {
                    Draft::entry(unquote(entry.into()).text()).map_err(|error| {
                        let mut failure = Failure::from(error);
                        failure.message = format!("entries[{number}]: {}", failure.message);
                        failure
                    })
                });
                let written = session.append_all(drafts.collect::<Result<Vec<_>, _>>()?)?;
                Ok(wire::text(&wire::Answer::written(written))?)
            }
            Some("title") => {
                let title = text("title")?.ok_or_else(|| not_text("title"))?;
                let written = session.set_title(&title)?;
                Ok(wire::text(&wire::Answer::written(vec![written]))?)
            }
            Some("tag") => {
                // Without a tag it is cleared, but not by mistake.
                if object.get("tag").is_none() {
                    return Err(not_text("tag").into());
                }
                let written = session.set_tag(&text("tag")?.unwrap_or_default())?;
                Ok(wire::text(&wire::Answer::written(vec![written]))?)
            }
            Some("endTurn") => {
                let mut turn = TurnEnd::new();
                if let Some(prompt) = text("prompt")? {
                    turn = turn.prompt(prompt);
                }
                let written = session.end_turn(turn)?;
                Ok(wire::text(&wire::Answer::written(written))?)
            }
            Some("count") => {
                let fields = [
                    "op",
                    "reply",
                    "apiMs",
                    "failedApiMs",
                    "toolMs",
                    "linesAdded",
                    "linesRemoved",
                ];
                refuse_others(&object, &fields)?;
                let counted = Counted::read(&object, &self.prices)?;
                self.count_missed(session)?;
                let counters = session.count(|counters| {
                    counted.add_to(counters);
                    counters.clone()
                });
                Ok(counters_text(&counters))
            }
            Some("counters") => {
                self.count_missed(session)?;
                Ok(counters_text(&session.counters()))
            }
            Some("completeCalls") => {
                let text = text("text")?.ok_or_else(|| not_text("text"))?;
                let written = session.complete_calls(&text)?;
                Ok(wire::text(&wire::Answer::written(written))?)
            }
            Some("context") => {
                refuse_others(&object, &["op", "gitBranch", "entrypoint"])?;
                if let Some(branch) = text("gitBranch")? {
                    session.set_git_branch(&branch)?;
                }
                if let Some(entrypoint) = text("entrypoint")? {
                    session.set_entrypoint(&entrypoint)?;
                }
                Ok("{\"ok\":true}".to_owned())
            }
            Some("state") => Ok(json!({ "ok": true, "state": session.state()? }).to_string()),
            Some("fork") => {
                refuse_others(&object, &["op", "at", "title", "out"])?;
                let mut options = ForkOptions::new();
                let line = object.get("at").and_then(Raw::u64);
                let at = match line.map(|line| line.to_string()) {
                    None => text("at")?,
                    line => line,
                };
                if let Some(at) = at {
                    options = options.at(session.find_entry(&at)?);
                }
                if let Some(title) = text("title")? {
                    options = options.title(title);
                }
                if let Some(out) = text("out")? {
                    options = options.out(out);
                }
                let path = session.fork(&options)?;
                Ok(json!({ "ok": true, "path": path.to_string_lossy() }).to_string())
            }
            Some("request") => {
                let text =
                    session.request_with(|request, index| request_text(&request, index))??;
                Ok(format!("{{\"ok\":true,\"request\":{text}}}"))
            }
            Some("entries") => {
                let listed = session.entries()?;
                let entries = listed.iter().map(|entry| {
                    json!({
                        "uuid": entry.id.as_ref().map(ToString::to_string),
                        "type": entry.kind.name(),
                        "role": entry.role.map(|role| role.name()),
                        "isPrompt": entry.is_prompt,
                        "preview": entry.preview,
                        "contextTokens": entry.context_tokens,
                        "outputTokens": entry.output_tokens,
                    })
                });
                let entries: Vec<_> = entries.collect();
                Ok(json!({ "ok": true, "list": entries }).to_string())
            }
            Some("usage") => {
                let usage = match History::open(&self.path) {
                    Ok(history) => history.usage()?,
                    // A session without an entry has no file yet.
                    Err(error)
                        if session.leaf().is_none()
                            && matches!(
                                error.kind(),
                                ErrorKind::Read(transcript_reader::ErrorKind::NotFound)
                            ) =>
                    {
                        Vec::new()
                    }
                    Err(error) => return Err(error.into()),
                };
                Ok(json!({ "ok": true, "models": usage }).to_string())
            }
            Some("leaf") => {
                let leaf = session.leaf().map(|leaf| leaf.to_string());
                Ok(json!({ "ok": true, "uuid": leaf }).to_string())
            }
            _ => {
                match op.as_deref() {
                    Some("compact") => {
                        let fields = ["op", "summary", "trigger", "preserved", "preTokens"];
                        refuse_others(&object, &fields)?;
                    }
                    Some("prompt" | "changes") => {
                        refuse_others(&object, &["op", "sections", "separator"])?;
                    }
                    _ => {}
                }
                let command = match Command::of_object(&object)? {
                    Command::Append(append) => Command::Append(unquoted(append)),
                    Command::Record { messages } => Command::Record {
                        messages: messages.into_iter().map(unquote).collect(),
                    },
                    command => command,
                };
                reply(&self.path, execute(session, &command))
            }
        }
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
    match Command::of_object(&object).ok()? {
        Command::Append(append) => drafts(&unquoted(append)).ok(),
        _ => None,
    }
}

/// Returns the JSON of an entry. A string has it as its text: whatever the text, it adds nothing to the command around it.
fn unquote(entry: Json<'_>) -> Json<'_> {
    if !entry.text().starts_with('"') {
        return entry;
    }
    let text = Raw::parse(entry.text()).ok().and_then(Raw::str);
    match text.map(Cow::into_owned) {
        Some(text) => Json::new(text),
        None => entry,
    }
}

fn unquoted(append: Append<'_>) -> Append<'_> {
    match append {
        Append::Entry(entry) => Append::Entry(unquote(entry)),
        Append::Assistant(message) => Append::Assistant(unquote(message)),
        append => append,
    }
}

/// What a command adds to the counters of a session.
struct Counted<'a> {
    /// The model of a reply, its usage, and its cost.
    reply: Option<(String, Object<'a>, Option<u128>)>,
    api: Duration,
    failed_api: Option<Duration>,
    tool: Option<Duration>,
    lines: [u64; 2],
}

impl<'a> Counted<'a> {
    fn read(command: &Object<'a>, prices: &CallPrices) -> Result<Self, CommandError> {
        let given = |name: &str| command.get(name).filter(|value| !value.is_null());
        let lines = |name: &str| match given(name) {
            None => Ok(0),
            Some(value) => value.u64().ok_or_else(|| {
                CommandError::bad_command(format!("`{name}` must be a whole number, 0 or more"))
            }),
        };
        // Clocks measure fractions of a millisecond.
        let millis = |name: &str| {
            let Some(value) = given(name) else {
                return Ok(None);
            };
            let seconds = value.f64().map(|millis| millis / 1000.0);
            let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let wrong = || format!("`{name}` must be a number of milliseconds, 0 or more");
            time.map(Some)
                .ok_or_else(|| CommandError::bad_command(wrong()))
        };
        let message = command.get("reply").filter(|value| !value.is_null());
        let reply = message.map(|message| {
            let message = message.object();
            let usage = message.as_ref().and_then(|message| message.object("usage"));
            let model = message.and_then(|message| message.str("model"));
            let (Some(model), Some(usage)) = (model, usage) else {
                return Err(CommandError::bad_command(
                    "`reply` must be a message of the API, with its `model` and `usage`",
                ));
            };
            let cost = prices.cost(&model, &usage);
            Ok((model.into_owned(), usage, cost))
        });
        Ok(Self {
            reply: reply.transpose()?,
            api: millis("apiMs")?.unwrap_or_default(),
            failed_api: millis("failedApiMs")?,
            tool: millis("toolMs")?,
            lines: [lines("linesAdded")?, lines("linesRemoved")?],
        })
    }

    fn add_to(&self, counters: &mut Counters) {
        if let Some((model, usage, cost)) = &self.reply {
            counters.add_reply(model, usage, *cost, self.api);
        }
        if let Some(took) = self.failed_api {
            counters.add_failed_request(took);
        }
        if let Some(took) = self.tool {
            counters.add_tool(took);
        }
        let [added, removed] = self.lines;
        counters.add_lines(added, removed);
    }
}

fn counters_text(counters: &Counters) -> String {
    json!({ "ok": true, "counters": counters.costs() }).to_string()
}

fn optional_text(object: &Object<'_>, name: &str) -> Result<Option<String>, CommandError> {
    match object.get(name).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(value) => match value.str() {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(not_text(name)),
        },
    }
}

fn not_text(name: &str) -> CommandError {
    CommandError::bad_command(format!("`{name}` must be a string"))
}

/// A misspelt option would otherwise be ignored.
fn refuse_others(object: &Object<'_>, known: &[&str]) -> Result<(), Failure> {
    let mut names = object.members().iter().map(|(name, _)| name);
    match names.find(|name| !known.contains(&name.as_ref())) {
        None => Ok(()),
        Some(name) => Err(Failure::options(format!("there is no option `{name}`"))),
    }
}

/// Describes what was done to the end of a file when it was opened.
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

/// Returns the record of a request: its messages, and what it has that the file has not, and the reverse.
fn request_text(request: &Request, index: &Index) -> Result<String, Failure> {
    let mut text = Vec::new();
    wire::write_messages(&mut text, &request.messages, |json| json.into())?;
    let model = json!(request.model);
    let provider = request.provider.name();
    let resumable = request.is_resumable();
    let window = request
        .model
        .as_deref()
        .and_then(transcript_engine::context_window);
    let tokens = wire::TokensRecord::new(&request.tokens(), window, None);
    let ok = resumable && request.lint().is_ok() && tokens.over.is_none();
    let tokens = wire::text(&tokens)?;
    let text = String::from_utf8_lossy(&text);
    let diagnostics = wire::RequestDiagnostics::new(index, request);
    let diagnostics = wire::text(&diagnostics)?;
    let diagnostics = diagnostics.trim_start_matches('{');
    Ok(format!(
        "{{\"model\":{model},\"provider\":\"{provider}\",\"resumable\":{resumable},\"accepted\":{ok},\"tokens\":{tokens},\"messages\":{text},{diagnostics}"
    ))
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
    fn commands_that_wait_together_are_answered_in_order_and_fail_alone() {
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
        // What failed names the session.
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
