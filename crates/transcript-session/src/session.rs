//! A session that is open for appending.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use transcript_format::cut_reply;
use transcript_format::ids::Uuid;
use transcript_format::json::Json;
use transcript_format::kind::EntryKind;
use transcript_format::make::{self, Compaction, NewEntry};
use transcript_format::object::{Object, Raw};
use transcript_messages::builder::{AssembledPrompt, PromptChanges, PromptFingerprint};
use transcript_messages::{BlockKind, Message, SyntheticKind};
use transcript_reader::{Bodies, Index};
use transcript_resume::request::Request;
use transcript_resume::{Costs, PathState, Policy, Tree, Usage, texts};
use transcript_storage::Fingerprint;
use transcript_writer::{
    AgentId, AgentMeta, Compacted, Draft, EntryId, ErrorKind as WriteError, InvalidEntry,
    RecordOptions, RecordOutcome, Repair, ResumePoint, Ticket, Tombstoned, TurnEnd, Writer,
    WriterOptions, Written,
};

use crate::conversation::{ConversationEntry, Keep, StoryEntry};
use crate::counters::Counters;
use crate::error::{Error, ErrorKind};
use crate::history::History;
use crate::live_session::LiveSession;
use crate::options::{ForkOptions, SessionOptions};
use crate::prompts::KnownPrompts;
use crate::stream::{BlockState, Reply};
use crate::{entry_name, resume_point, rewrite_salvaged};

/// One conversation, open for appending. May be shared between threads.
///
/// Every entry becomes a child of the previous one; tool results become children of their calls. An
/// acknowledged entry survives the end of the process. Dropping a session writes the queue and
/// leaves the last sync to a thread; only [`close`](Self::close) reports whether that worked.
#[derive(Debug)]
pub struct Session {
    /// Shared with an `AsyncSession` of the same session.
    pub(crate) writer: Arc<Writer>,
    path: PathBuf,
    forked_from: Option<PathBuf>,
    options: SessionOptions,
    repair: Option<Repair>,
    restored: Vec<Written>,
    /// The cached state of the last request, which the next one continues; `None` before the first one.
    live: Mutex<Option<LiveSession>>,
    counting: Mutex<Counting>,
    /// The options for the sessions of agents: branch and entrypoint may have changed.
    writer_options: Mutex<WriterOptions>,
    /// The system prompts in the file; `None` before the first one is recorded.
    prompts: Mutex<Option<KnownPrompts>>,
}

/// A resumed session, and the request that continues it. `S` is the front: [`Session`], or
/// `AsyncSession`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resumed<S = Session> {
    /// The session; the next entry becomes a child of the end of the conversation.
    pub session: S,
    /// The messages to send, without a new prompt, and lists of synthetic and omitted parts.
    pub request: Request,
    /// The history that the request was built from. It is as old as the request.
    pub history: History,
    /// The synthetic entries that were written to the file: results for calls that the end of the
    /// process interrupted, and the answer to a turn that has none (TURN-1, TURN-5). They are part
    /// of the request.
    pub added: Vec<Written>,
    /// The original session, if another process was writing to it, or a client running it, and this
    /// one is a fork.
    pub forked_from: Option<PathBuf>,
}

/// The counters of an open session.
#[derive(Debug)]
struct Counting {
    /// The id of the session, in the lines.
    session: String,
    counters: Counters,
    /// Whether anything was counted: only then lines are written.
    is_used: bool,
    /// The time up to which the duration of the session was counted.
    since: Instant,
    /// The part of the file after the counts that the session was opened with; `None` once its replies
    /// are counted.
    missed: Option<Range<u64>>,
}

/// As [`Session::append_all`], but `then` gets the entries when they are acknowledged, as
/// [`Writer::append_all_then`] says. For front ends that must not wait.
///
/// # Errors
/// As there, for what can be refused at once; `then` is not called then.
pub fn append_all_then(
    session: &Session,
    drafts: impl IntoIterator<Item = Draft>,
    then: impl FnOnce(Result<Vec<Written>, Error>) + Send + 'static,
) -> Result<(), Error> {
    let mut drafts: Vec<Draft> = drafts.into_iter().collect();
    session.check(&mut drafts)?;
    let then = |written: Result<_, transcript_writer::Error>| then(written.map_err(Error::from));
    Ok(session.writer.append_all_then(drafts, then)?)
}

impl Session {
    /// Starts a session at `path`, whose file name is the id of the session; see
    /// [`Store::new_session_path`](crate::Store::new_session_path). The file is created with the
    /// first entry. It and any new folders are accessible to their owner only.
    ///
    /// A crash before the first entry leaves no file.
    ///
    /// ```
    /// use transcript_session::{Draft, Session, SessionOptions, Store};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let cwd = folder.path();
    /// # let store = Store::new(cwd.join("projects"));
    /// let options = SessionOptions::new().cwd(cwd.to_string_lossy());
    /// let session = Session::create(&store.new_session_path(cwd), &options)?;
    /// session.append(Draft::user("Which years have a leap day?"))?;
    /// session.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] when the file exists and is not empty, and any error of opening it.
    pub fn create(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        let found = options.read_disk().metadata(path);
        if found.is_ok_and(|found| found.len > 0) {
            return Err(Error::new(ErrorKind::Exists, path));
        }
        // The fingerprint of an empty file: opening fails as `Changed` when something was written
        // since the check.
        let mut known = ResumePoint::default();
        known.fingerprint = Some(Fingerprint::start());
        let writer = options.writer_of(None).create().open(path, known)?;
        Ok(Self::new(path, options, None, writer))
    }

    /// [Opens](Self::open) the session at `path` if it exists, else [creates](Self::create) it.
    /// Programs that start at the same time all get the session, as far as
    /// [`SessionOptions::on_busy`] allows.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_or_create(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        match Self::create(path, options) {
            Err(error) if error.kind() == ErrorKind::Exists => Self::open(path, options),
            created => created,
        }
    }

    /// Opens the session at `path` at the end of its conversation. Adds nothing to the
    /// conversation, but entries that [`Policy::Recover`] salvages from damaged lines are written
    /// again, each on its own line, so that other clients can follow the links to them. A torn last
    /// line is completed, or saved next to the file and truncated.
    ///
    /// A crash during this call loses nothing; the next opening finishes the work.
    ///
    /// ```
    /// use transcript_session::{Draft, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let options = SessionOptions::new();
    /// # let created = Session::create(&path, &options)?;
    /// # created.append(Draft::user("Which years have a leap day?"))?;
    /// # let last = created.leaf();
    /// # created.close()?;
    /// let session = Session::open(&path, &options)?;
    /// assert_eq!(session.leaf(), last);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the session cannot be read or written: see
    /// [`WriterOptions::open`](transcript_writer::WriterOptions::open). A file that has no entry and does not
    /// start as one is refused, and not changed.
    pub fn open(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        Ok(open(path, options)?.0)
    }

    /// Opens the session at `path` and builds the request that continues it. To see the request
    /// without writing anything, use [`History::request`]. Results for interrupted calls, and the
    /// answer to a turn without one, are first written to the file, as the client does (TURN-1,
    /// TURN-5), so that the next entry continues the conversation that was sent.
    ///
    /// A crash during this call loses nothing; the synthetic entries are one write, all or none.
    ///
    /// ```
    /// use transcript_session::{Draft, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let options = SessionOptions::new();
    /// # let session = Session::create(&path, &options)?;
    /// # session.append(Draft::user("How long is the year 2000?"))?;
    /// // The process ended before the call had a result.
    /// let call = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    ///     [{"type": "tool_use", "id": "toolu_01", "name": "Calendar", "input": {}}]}"#;
    /// session.append_all(Draft::assistant(call)?)?;
    /// # session.close()?;
    ///
    /// let resumed = Session::resume(&path, &options)?;
    /// assert!(!resumed.added.is_empty(), "the call has a result now");
    /// resumed.session.append(Draft::user("And 1900?"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotResumable`] when the file has no conversation, and as for
    /// [`open`](Self::open).
    pub fn resume(path: &Path, options: &SessionOptions) -> Result<Resumed, Error> {
        let (session, history) = open(path, options)?;
        let request = history.request(&session.options)?;
        if let Some(refusal) = request.path.refusal {
            return Err(Error::new(ErrorKind::NotResumable(refusal), &session.path));
        }
        let persisted_drafts = persisted_drafts(&request, session.leaf())
            .map_err(|_| session.refused(WriteError::InvalidEntry))?;
        let added = session.append_if_any(persisted_drafts)?;
        Ok(Resumed {
            forked_from: session.forked_from.clone(),
            session,
            request,
            history,
            added,
        })
    }

    /// Writes one entry: a [`Draft`], or an entry of [`make`]. On return it is in the
    /// kernel and in the conversation.
    ///
    /// A kill of the process never loses it; a power cut may, until the next sync.
    ///
    /// ```
    /// use transcript_session::{Draft, Session, SessionOptions, make};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// let prompt = session.append(Draft::user("Which years have a leap day?"))?;
    /// session.append(make::ai_title("Leap days"))?;
    /// assert_eq!(session.leaf(), prompt.uuid, "a title is not part of the conversation");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is not an entry, or could not be written. The file has nothing of it then, except
    /// after a failed sync. See [`Writer::append`]. Also when it looks like a part of the conversation
    /// and no reader would find it there: see [`Draft::check_conversation`]; a result whose call is
    /// not in the conversation ([`UnknownCall`](WriteError::UnknownCall)) or has a result
    /// ([`AnsweredCall`](WriteError::AnsweredCall)).
    ///
    /// A tombstone of the stream protocol ([`Draft::withdrawn`]) is not written as it is: it removes the
    /// entry that it names, as [`tombstone`](Self::tombstone) does.
    pub fn append<D>(&self, entry: D) -> Result<Written, Error>
    where
        D: TryInto<Draft>,
        InvalidEntry: From<D::Error>,
    {
        let mut draft = self.draft(entry)?;
        let drafts = std::slice::from_mut(&mut draft);
        if let Some(withdrawn) = self.withdrawn(drafts)? {
            return self.tombstone_all(&withdrawn);
        }
        self.check(drafts)?;
        Ok(self.writer.append(draft)?)
    }

    /// Writes entries with one write: a crash leaves all of them or none. Tombstones remove what they
    /// name, as [`tombstone_all`](Self::tombstone_all) does; they cannot be mixed with entries, which
    /// [`record`](Self::record) can.
    ///
    /// A kill of the process never loses acknowledged entries; a power cut may, until the next
    /// sync.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn append_all(
        &self,
        drafts: impl IntoIterator<Item = Draft>,
    ) -> Result<Vec<Written>, Error> {
        let mut drafts: Vec<Draft> = drafts.into_iter().collect();
        if let Some(withdrawn) = self.withdrawn(&drafts)? {
            let written = self.tombstone_all(&withdrawn)?;
            return Ok(vec![written]);
        }
        self.check(&mut drafts)?;
        Ok(self.writer.append_all(drafts)?)
    }

    /// Writes a reply of a model that was streamed, with one write. Then run its
    /// [calls](Reply::tool_calls), and append a [`Draft::tool_result`] for each.
    ///
    /// Of a reply whose stream ended early, each entry is marked as such, and a call whose input did not
    /// arrive completely is marked in addition: it has no result, and the next request tells the
    /// model that it did not run ([`cut_reply`]).
    ///
    /// A kill of the process never loses acknowledged entries; a power cut may, until the next
    /// sync.
    ///
    /// ```
    /// use transcript_session::stream::{Accumulator, Sse, StreamOutcome};
    /// use transcript_session::{Draft, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("How long is the year 2000?"))?;
    /// # let events = [
    /// #     r#"{"type":"message_start","message":{"id":"msg_01","role":"assistant","model":"m","content":[]}}"#,
    /// #     r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_01","name":"Calendar","input":{}}}"#,
    /// #     r#"{"type":"content_block_stop","index":0}"#,
    /// #     r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
    /// #     r#"{"type":"message_stop"}"#,
    /// # ];
    /// # let network = events.map(|event| format!("data: {event}\n\n"));
    /// let (mut sse, mut message) = (Sse::new(), Accumulator::new());
    /// for bytes in network {
    ///     sse.push(bytes.as_bytes(), |_, event| _ = message.event(event));
    /// }
    /// let StreamOutcome::Whole(reply) = message.finish() else {
    ///     return Err("the stream was cut".into());
    /// };
    /// session.append_reply(&reply)?;
    /// for call in reply.tool_calls() {
    ///     session.append(Draft::tool_result(&call.id, "366 days"))?;
    /// }
    /// # assert_eq!(session.entries()?.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn append_reply(&self, reply: &Reply) -> Result<Vec<Written>, Error> {
        Ok(self.writer.append_all(self.reply(reply)?)?)
    }

    /// Queues an entry. It is written within 100 ms, before any entry that is appended later.
    ///
    /// A crash before that loses it.
    ///
    /// # Errors
    /// When the queue is full and cannot be written, or the writer has been closed or has failed.
    pub fn queue<D>(&self, entry: D) -> Result<Ticket, Error>
    where
        D: TryInto<Draft>,
        InvalidEntry: From<D::Error>,
    {
        let mut draft = self.draft(entry)?;
        self.check(std::slice::from_mut(&mut draft))?;
        Ok(self.writer.queue(draft)?)
    }

    /// Appends those of `messages` whose uuid is not in the file; see [`Writer::record`]. Messages that
    /// tombstones in the list name are removed from the conversation in the same write, or not written
    /// at all if they are not in the file.
    ///
    /// A crash leaves all of them or none.
    ///
    /// # Errors
    /// When a tombstone names no entry, [`NotTheLeaf`](WriteError::NotTheLeaf) when entries of the
    /// conversation follow one that a tombstone names, and as for [`append`](Self::append).
    pub fn record(
        &self,
        messages: Vec<Draft>,
        options: RecordOptions,
    ) -> Result<RecordOutcome, Error> {
        let leaf = self.writer.leaf();
        let recorded = self.record_messages(messages, options)?;
        // Messages continue after the last one that was in the file, wherever that is.
        let first = recorded.entries.first();
        if first.map_or(self.writer.leaf(), |first| first.parent.clone()) != leaf {
            self.forget_prompts();
        }
        Ok(recorded)
    }

    /// Restarts the conversation with a summary; the entries that `keep` selects are preserved word for
    /// word, and [`Compacted::kept`] lists them. See [`Writer::compact`].
    ///
    /// A crash leaves the complete compaction or nothing of it.
    ///
    /// ```
    /// use transcript_session::{Compaction, Draft, Keep, Session, SessionOptions, Trigger};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("How long is the year 1999?"))?;
    /// # session.append(Draft::user("And 2000?"))?;
    /// let compaction = Compaction::new(Trigger::Auto, 150_000);
    /// let done = session.compact(compaction, "We talked about years.", Keep::LastTurns(1))?;
    /// # assert_eq!(done.kept.len(), 1);
    /// println!("{} entries are kept word for word", done.kept.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::SplitPair`] when [`Keep::Entries`] contains a call without its result or a result
    /// without its call, and as for [`Writer::compact`].
    pub fn compact(
        &self,
        compaction: Compaction,
        summary: &str,
        keep: impl Into<Keep>,
    ) -> Result<Compacted, Error> {
        let keep = keep.into();
        if keep == Keep::Nothing || keep == Keep::Entries(Vec::new()) {
            return Ok(self.writer.compact(compaction, summary, &[])?);
        }
        // The writer does not remember calls that have results, so the file is read again.
        let history = self.read_again()?;
        let kept = history.kept(&keep, self.options.policy)?;
        if resume_point::splits_pair(history.index(), &kept) {
            return Err(Error::new(ErrorKind::SplitPair, &self.path));
        }
        Ok(self.writer.compact(compaction, summary, &kept)?)
    }

    /// Records the system prompt of the next turn: its fingerprint, and the texts of the sections
    /// that the file does not have yet. Nothing is written, and `None` is returned, if it is the one
    /// that was recorded last in the conversation. It is not part of the conversation, and a request
    /// does not contain it; [`History::prompts`] and [`Self::prompt_changes`] read it.
    ///
    /// The first call reads the file.
    ///
    /// A crash leaves the complete record or nothing of it. A kill of the process never loses it; a
    /// power cut may until the next sync.
    ///
    /// # Errors
    /// When the file cannot be read, and as for [`append`](Self::append).
    pub fn record_prompt(&self, prompt: &AssembledPrompt) -> Result<Option<Written>, Error> {
        self.with_prompts(|prompts| {
            let Some(line) = prompts.line(prompt, self.writer.leaf().as_ref()) else {
                return Ok(None);
            };
            let written = self.writer.append(self.draft(line)?)?;
            prompts.add(prompt);
            Ok(Some(written))
        })
    }

    /// Compares a system prompt with the one that was [recorded](Self::record_prompt) last in the
    /// conversation: what the model now reads differently from the turns before. `None` if none was
    /// recorded.
    ///
    /// The first call reads the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn prompt_changes(&self, new: &PromptFingerprint) -> Result<Option<PromptChanges>, Error> {
        self.with_prompts(|prompts| Ok(prompts.changes(new)))
    }

    /// Sets the title of the session.
    ///
    /// A kill of the process never loses it; a power cut may until the next sync.
    ///
    /// ```
    /// use transcript_session::{Draft, History, Policy, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// session.set_title("Leap days")?;
    /// session.set_tag("calendar")?;
    /// let state = History::open(session.path())?.state(Policy::Recover)?;
    /// assert_eq!(state.title.as_deref(), Some("Leap days"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn set_title(&self, title: &str) -> Result<Written, Error> {
        self.append(Draft::custom_title(title))
    }

    /// Sets the tag of the session.
    ///
    /// A kill of the process never loses it; a power cut may until the next sync.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn set_tag(&self, tag: &str) -> Result<Written, Error> {
        self.append(Draft::tag(tag))
    }

    /// Returns the entries of the conversation, oldest first, from the last compaction on, from the
    /// file as it is now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self) -> Result<Vec<ConversationEntry>, Error> {
        self.read_if_any(|history| history.entries(self.options.policy))
    }

    /// Returns the state of the session at the end of its conversation, from the file as it is now: the
    /// files that the model knows, denials, the to-do list, title, mode; see [`History::state`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn state(&self) -> Result<PathState, Error> {
        self.read_if_any(|history| history.state(self.options.policy))
    }

    /// Returns the tokens of all answers in the file, by model, from the file as it is now; see
    /// [`History::usage`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn usage(&self) -> Result<Vec<Usage>, Error> {
        self.read_if_any(History::usage)
    }

    /// Returns the entries of the whole conversation, with those that compactions removed, from the
    /// file as it is now; see [`History::story`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn story(&self) -> Result<Vec<StoryEntry>, Error> {
        self.read_if_any(|history| history.story(self.options.policy))
    }

    /// Goes back to an entry: the next one becomes a child of it, and the entries after it become
    /// an abandoned branch. Nothing is removed from the file. `None` goes back to before the first
    /// entry. See [`Writer::rewind`].
    ///
    /// A crash leaves the conversation as it was before or after the call.
    ///
    /// # Errors
    /// [`ErrorKind::BeforeCompaction`] when the entry is before a compaction and the file cannot
    /// express that, and as for [`Writer::rewind`].
    pub fn rewind(&self, to: Option<EntryId>) -> Result<Written, Error> {
        if let Some(to) = &to
            && is_before_compaction(&self.read_again()?, to)
        {
            return Err(Error::new(ErrorKind::BeforeCompaction, &self.path));
        }
        let written = self.writer.rewind(to)?;
        self.forget_prompts();
        Ok(written)
    }

    /// Finds the entry that `name` names, among those written so far; see [`History::find_entry`].
    /// A whole uuid is not looked up.
    ///
    /// # Errors
    /// As there, and when the session cannot be read.
    pub fn find_entry(&self, name: &str) -> Result<EntryId, Error> {
        if entry_name::is_whole(name) {
            return Ok(EntryId::from(name));
        }
        self.read_again()?.find_entry(name)
    }

    /// Removes the last entry from the conversation; see [`Writer::tombstone`].
    ///
    /// A crash leaves the conversation as it was before or after the call.
    ///
    /// # Errors
    /// When it is not the last entry, and as for [`append`](Self::append).
    pub fn tombstone(&self, entry: &EntryId) -> Result<Written, Error> {
        let history = self.read_again()?;
        let tree = self.tree_of(&history);
        let above = resume_point::above(&tree, entry);
        let written = self.writer.tombstone(entry, above)?;
        self.forget_prompts();
        Ok(written)
    }

    /// Removes the last entries from the conversation, such as all parts of an answer that a fallback
    /// to another model withdraws, in any order; see [`Writer::tombstone_all`].
    ///
    /// A crash leaves the conversation as it was before or after the call.
    ///
    /// # Errors
    /// When one of them is not in the file, when another entry follows them, and as for
    /// [`append`](Self::append).
    pub fn tombstone_all(&self, entries: &[EntryId]) -> Result<Written, Error> {
        let history = self.read_again()?;
        let tree = self.tree_of(&history);
        let found = resume_point::tombstoned(&tree, entries);
        let found = found.ok_or_else(|| self.refused(WriteError::NotTheLeaf))?;
        let named: HashSet<&EntryId> = entries.iter().collect();
        if found.last.len() < named.len() {
            let is_known = |entry: &EntryId| history.index().id(&entry.to_string()).is_some();
            return Err(self.refused(if entries.iter().all(is_known) {
                WriteError::NotTheLeaf
            } else {
                WriteError::UnknownEntry
            }));
        }
        let written = self.writer.tombstone_all(&found.last, found.parent)?;
        self.forget_prompts();
        Ok(written)
    }

    /// Ends a turn: records where the conversation ends, and appends those lines of `turn` (title,
    /// mode, cost) again that a reader of the end of the file would miss; see [`Writer::end_turn`].
    /// Once something was [counted](Self::count), it also writes the counts.
    ///
    /// A crash leaves all of these lines or none; they are not part of the conversation.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn end_turn(&self, turn: TurnEnd) -> Result<Vec<Written>, Error> {
        let mut counting = lock(&self.counting);
        if !counting.is_used {
            drop(counting);
            return Ok(self.writer.end_turn(turn)?);
        }
        // If the line is not written, its time is counted at the end of the next turn.
        let now = Instant::now();
        let mut counters = counting.counters.clone();
        counters.add_duration(now.saturating_duration_since(counting.since));
        let line = self.draft(counters.line_of(&counting.session))?;
        let written = self.writer.end_turn(turn.lines([line]))?;
        counting.counters = counters;
        counting.since = now;
        Ok(written)
    }

    /// Adds to the counters of the session: a reply of the model, the time of a tool, lines of code. The
    /// counts continue from those in the file, also in a fork, and [`end_turn`](Self::end_turn) writes
    /// them to it, with the time for which the session was open. A session in which nothing is counted
    /// keeps the counts that it has.
    ///
    /// A crash loses the counts since the last end of a turn; [`count_missed`](Self::count_missed)
    /// counts the replies again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use transcript_session::{Draft, History, Policy, Session, SessionOptions, TurnEnd};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// session.append(Draft::user("Which years have a leap day?"))?;
    /// session.count(|counters| counters.add_lines(12, 3));
    /// session.count(|counters| counters.add_tool(Duration::from_millis(40)));
    /// session.end_turn(TurnEnd::new())?;
    /// let state = History::open(&path)?.state(Policy::Recover)?;
    /// assert_eq!(state.costs.and_then(|costs| costs.lines_added), Some(12));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count<T>(&self, change: impl FnOnce(&mut Counters) -> T) -> T {
        let mut counting = lock(&self.counting);
        counting.is_used = true;
        change(&mut counting.counters)
    }

    /// Returns the counts as they are now: those of the file, and those [added](Self::count)
    /// since.
    #[must_use]
    pub fn counters(&self) -> Counters {
        lock(&self.counting).counters.clone()
    }

    /// Counts the replies that were in the file when it was opened and that its counts do not contain:
    /// those after the last `cost-state` line, all if there is none. That is what a kill in the middle of
    /// a turn leaves. `price` returns the cost of a reply in billionths of a dollar, as
    /// `CallPrices::cost` does. Returns the number of replies. How long they took is not known.
    ///
    /// A second call does nothing. A file without such replies is not read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn count_missed(
        &self,
        price: impl Fn(&str, &Object<'_>) -> Option<u128> + Send + 'static,
    ) -> Result<usize, Error> {
        let mut counting = lock(&self.counting);
        let Some(missed) = counting.missed.clone() else {
            return Ok(0);
        };
        let history = History::open_on(&self.options.read_disk(), &self.path)?;
        let replies = replies_in(&history, &missed)?;
        counting.missed = None;
        counting.is_used |= !replies.is_empty();
        for (model, usage) in &replies {
            if let Ok(usage) = Object::parse(usage) {
                let cost = price(model, &usage);
                counting
                    .counters
                    .add_reply(model, &usage, cost, Duration::ZERO);
            }
        }
        Ok(replies.len())
    }

    /// Completes the calls of the last answer that have no result yet, as after an interruption by the
    /// person: each gets a result with `text`, marked as an error. A call whose input was cut with
    /// its reply gets the text about that instead. With one write; nothing is written when no call is
    /// open.
    ///
    /// The results are found in the conversation as the file has it now, so a call that another
    /// process answered is not answered again.
    ///
    /// ```
    /// use transcript_session::{Draft, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("How long is the year 2000?"))?;
    /// let call = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    ///     [{"type": "tool_use", "id": "toolu_01", "name": "Calendar", "input": {}}]}"#;
    /// session.append_all(Draft::assistant(call)?)?;
    /// // The person presses Esc.
    /// assert_eq!(session.complete_calls("Stopped by the user")?.len(), 1);
    /// assert_eq!(session.complete_calls("Stopped by the user")?.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`append`](Self::append), and when the file cannot be read.
    pub fn complete_calls(&self, text: &str) -> Result<Vec<Written>, Error> {
        if self.writer.leaf().is_none() {
            return Ok(Vec::new());
        }
        let request = self.request()?;
        let open = request.synthetic.iter().filter_map(|synthetic| {
            let text = match synthetic.kind {
                SyntheticKind::PendingResult | SyntheticKind::InterruptedResult => text,
                SyntheticKind::CutCall => texts::CALL_CUT,
                _ => return None,
            };
            let call = synthetic.block.call_id()?;
            let output = Json::from(text);
            let output = Raw::parse(output.text()).ok()?;
            let result = make::ToolResult::text(call, text).failed().output(output);
            Some(make::tool_result(result))
        });
        let drafts = open
            .map(|entry| self.draft(entry))
            .collect::<Result<Vec<_>, _>>()?;
        self.append_if_any(drafts)
    }

    /// Sets the git branch of later entries that name none; an empty one for none. What is queued is
    /// written first, with the branch before.
    ///
    /// # Errors
    /// When queued entries could not be written.
    pub fn set_git_branch(&self, branch: &str) -> Result<(), Error> {
        self.writer.set_git_branch(branch)?;
        let mut options = lock(&self.writer_options);
        *options = options.clone().git_branch(branch);
        Ok(())
    }

    /// Sets how the client was started, such as `cli` or `sdk-py`, for later entries that do not say
    /// it; an empty text for nothing.
    ///
    /// # Errors
    /// As for [`set_git_branch`](Self::set_git_branch).
    pub fn set_entrypoint(&self, entrypoint: &str) -> Result<(), Error> {
        self.writer.set_entrypoint(entrypoint)?;
        let mut options = lock(&self.writer_options);
        *options = options.clone().entrypoint(entrypoint);
        Ok(())
    }

    /// Copies the conversation into a new session with new ids, next to this one unless `options`
    /// say otherwise. Returns the path of the copy, which can be resumed. This session does not
    /// change.
    ///
    /// A crash leaves the complete copy or none; on return it survives a power cut.
    ///
    /// ```
    /// use transcript_session::{Draft, ForkOptions, History, Policy, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let options = SessionOptions::new();
    /// # let session = Session::create(&path, &options)?;
    /// # session.append(Draft::user("How long is the year 1999?"))?;
    /// let at = session.leaf().ok_or("the session is empty")?;
    /// session.append(Draft::user("Another way to ask"))?;
    /// let copy = session.fork(&ForkOptions::new().at(at).title("First way"))?;
    /// assert_eq!(History::open(&copy)?.entries(Policy::Recover)?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotResumable`] when there is no conversation or no such entry,
    /// [`ErrorKind::Exists`] when the given path exists, [`ErrorKind::Fork`] when the copy cannot
    /// be written.
    pub fn fork(&self, options: &ForkOptions) -> Result<PathBuf, Error> {
        let history = self.read_again()?;
        let (path, _) = history.fork(self.options.policy, &self.options.fork(options))?;
        Ok(path)
    }

    /// Opens the session of a subagent in its own file, and writes its metadata file next to it.
    ///
    /// A crash leaves the previous metadata or `meta`, complete.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn agent(&self, agent: &AgentId, meta: &AgentMeta) -> Result<Self, Error> {
        let path = agent.path(&self.path);
        let mut options = self.options.clone();
        options.writer = lock(&self.writer_options).clone();
        let writer = &options.writer;
        writer.write_agent_meta(&self.path, agent, meta)?;
        let disk = options.read_disk();
        let is_there = disk.exists(&path);
        let history = is_there.then(|| History::open_on(&disk, &path));
        let history = history.transpose()?;
        let known = match &history {
            Some(history) => history.resume_point(&self.tree_of(history))?,
            None => ResumePoint::default(),
        };
        let writer = writer.open_agent(&self.path, agent, known)?;
        Ok(Self::new(&path, &options, history.as_ref(), writer))
    }

    /// Builds the request for the next answer, from the file as it is now. Nothing is written.
    ///
    /// The first call reads the file. Later ones read only the lines appended since, and make only
    /// the messages at the end again; the others are kept in memory and shared with the request. Where
    /// that could change the result (a model change, a rewind, damage, parts of the conversation in
    /// other files) the file is read again. The path of the request lists no decisions: for those,
    /// see [`History::request`].
    ///
    /// ```
    /// use transcript_session::{Draft, RequestSettings, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// session.append(Draft::user("Which years have a leap day?"))?;
    /// let request = session.request()?;
    /// let body = request.body(&RequestSettings::new("claude-sonnet-4-5", 1024).stream(true));
    /// assert!(body.starts_with('{'), "the JSON to send to a provider");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn request(&self) -> Result<Request, Error> {
        self.request_with(|request, _| request)
    }

    /// As [`request`](Self::request), and returns what `read` makes of the request and of the index
    /// that the numbers in it refer to: in which entries something was omitted or synthesized.
    ///
    /// # Errors
    /// As for [`request`](Self::request).
    pub fn request_with<T>(
        &self,
        read: impl FnOnce(Request, &Index) -> T + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        // The request is built from the file, so entries that are queued have to be in it.
        self.writer.flush()?;
        if self.options.policy == Policy::Recover {
            let mut live = lock(&self.live);
            // Taken, so that a panic or an error drops a half-updated state.
            let known = live.take().and_then(|mut known| {
                let is_current = known.is_current();
                is_current.then_some(known)
            });
            let mut known = match known {
                Some(known) => known,
                None => LiveSession::open(&self.path, &self.options)?,
            };
            // Without one, only a load of the whole file knows it.
            let request = known.request()?;
            let known = live.insert(known);
            if let Some(request) = request {
                return Ok(read(request, known.index()));
            }
        }
        let history = History::open_on(&self.options.read_disk(), &self.path)?;
        let request = history.build_request(&self.options, &self.options.request().live())?;
        Ok(read(request, history.index()))
    }

    /// Makes everything written so far survive a power cut.
    ///
    /// # Errors
    /// When the sync fails: [`Writer::rescue`] returns the saved entries, and the session accepts no
    /// more entries. See [`Writer::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        Ok(self.writer.sync()?)
    }

    /// Writes and syncs everything and closes the file. After that no crash loses any of
    /// it.
    ///
    /// ```
    /// use transcript_session::{Draft, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// let session = Session::create(&path, &SessionOptions::new())?;
    /// session.queue(Draft::user("Which years have a leap day?"))?;
    /// session.close()?;
    /// assert!(path.metadata()?.len() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When something may be lost; see [`Writer::close`].
    pub fn close(self) -> Result<(), Error> {
        Ok(Writer::close_shared(self.writer)?)
    }

    /// Returns the entry that the next one becomes a child of.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        self.writer.leaf()
    }

    /// Returns the file of the session.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the original session, if another process was writing to it, or a client running it, and
    /// this one is a fork.
    #[must_use]
    pub fn forked_from(&self) -> Option<&Path> {
        self.forked_from.as_deref()
    }

    /// Returns the repair of an unfinished last line when the file was opened, if any.
    #[must_use]
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Returns the entries of damaged lines that were written again when the file was opened.
    #[must_use]
    pub fn restored(&self) -> &[Written] {
        &self.restored
    }

    /// Returns the writer, for its statistics, its rescue files, and whether other users may write
    /// to the file.
    #[must_use]
    pub fn writer(&self) -> &Writer {
        &self.writer
    }
}

impl Session {
    /// `history` is what the file has; `None` for a new one.
    fn new(
        path: &Path,
        options: &SessionOptions,
        history: Option<&History>,
        writer: Writer,
    ) -> Self {
        Self {
            counting: Mutex::new(Counting::new(path, options, history)),
            writer_options: Mutex::new(options.writer.clone()),
            path: path.to_owned(),
            forked_from: None,
            options: options.clone(),
            repair: writer.repair(),
            restored: Vec::new(),
            live: Mutex::default(),
            prompts: Mutex::default(),
            writer: writer.into(),
        }
    }

    fn refused(&self, why: WriteError) -> Error {
        Error::new(ErrorKind::Write(why), &self.path)
    }

    fn tree_of<'h>(&self, history: &'h History) -> Tree<'h> {
        Tree::new(history.index(), self.options.policy)
    }

    fn append_if_any(&self, drafts: Vec<Draft>) -> Result<Vec<Written>, Error> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.writer.append_all(drafts)?)
    }

    pub(crate) fn draft<D>(&self, entry: D) -> Result<Draft, Error>
    where
        D: TryInto<Draft>,
        InvalidEntry: From<D::Error>,
    {
        let draft = entry.try_into();
        draft.map_err(|error| Error::entry(&self.path, InvalidEntry::from(error)))
    }

    /// Returns the entries that `drafts` withdraw, if these are tombstones; `None` if there is no
    /// tombstone among them.
    pub(crate) fn withdrawn(&self, drafts: &[Draft]) -> Result<Option<Vec<EntryId>>, Error> {
        let withdrawn: Vec<EntryId> = drafts
            .iter()
            .filter_map(|draft| draft.withdrawn().cloned())
            .collect();
        match withdrawn.len() {
            0 => Ok(None),
            all if all == drafts.len() => Ok(Some(withdrawn)),
            _ => Err(self.refused(WriteError::InvalidEntry)),
        }
    }

    /// Checks that entries that look like a part of the conversation become one.
    pub(crate) fn check(&self, drafts: &mut [Draft]) -> Result<(), Error> {
        let unknown = self.check_drafts(drafts)?;
        self.check_calls(&unknown)
    }

    /// Checks the entries without reading the file. Returns the calls that they have results for and
    /// that only the conversation in the file can tell to be open: after a rewind, or when another
    /// process wrote them.
    pub(crate) fn check_drafts(&self, drafts: &mut [Draft]) -> Result<Vec<String>, Error> {
        let mut made: HashSet<String> = HashSet::new();
        let mut unknown = Vec::new();
        for draft in drafts {
            self.check_conversation(draft)?;
            if draft.withdrawn().is_some() {
                // It would have no effect.
                return Err(self.refused(WriteError::InvalidEntry));
            }
            let is_open = |call: &str| made.contains(call) || self.writer.has_open_call(call);
            if draft.results().next().is_some() {
                let new: Vec<String> = draft
                    .results()
                    .filter(|call| !is_open(call))
                    .map(str::to_owned)
                    .collect();
                // Another thread may answer the call before this is written, so the writer checks it again.
                if new.is_empty() {
                    let known = std::mem::replace(draft, Draft::user(""));
                    *draft = known.needing_open_calls();
                } else if !draft.is_sidechain() {
                    // The request does not contain sidechains, so it cannot tell which of their calls are open.
                    unknown.extend(new);
                }
            }
            // A result may be in the same write as its call.
            made.extend(draft.calls().map(str::to_owned));
        }
        Ok(unknown)
    }

    fn check_conversation(&self, draft: &Draft) -> Result<(), Error> {
        let checked = draft.check_conversation();
        checked.map_err(|error| Error::entry(&self.path, error))
    }

    /// Checks that these calls are in the conversation and have no result there.
    pub(crate) fn check_calls(&self, calls: &[String]) -> Result<(), Error> {
        if calls.is_empty() {
            return Ok(());
        }
        if self.writer.leaf().is_none() {
            return Err(self.refused(WriteError::UnknownCall));
        }
        let request = self.request()?;
        if !request.is_resumable() {
            // A session that cannot be resumed for another reason must not refuse the results of its calls.
            return Ok(());
        }
        let blocks = || request.messages.iter().flat_map(Message::blocks);
        for call in calls {
            let ends = |kind| {
                blocks().filter(move |block| {
                    block.kind() == kind && block.call_id() == Some(call.as_str())
                })
            };
            if ends(BlockKind::ToolUse).next().is_none() {
                return Err(self.refused(WriteError::UnknownCall));
            }
            // A result without an entry is one that the request makes up.
            if ends(BlockKind::ToolResult).any(|result| result.origin().is_some()) {
                return Err(self.refused(WriteError::AnsweredCall));
            }
        }
        Ok(())
    }

    pub(crate) fn reply(&self, reply: &Reply) -> Result<Vec<Draft>, Error> {
        let cut: Vec<String> = reply
            .partial_calls()
            .into_iter()
            .filter(|call| call.state != BlockState::Whole)
            .map(|call| call.id)
            .collect();
        let makes_cut_call = |entry: &NewEntry| {
            let message = entry.get("message").map(Json::text).unwrap_or_default();
            let blocks = Object::parse(message)
                .ok()
                .and_then(|message| message.array("content"));
            let mut ids = blocks.into_iter().flatten().filter_map(|block| {
                let id = block.object()?.str("id")?;
                Some(id.into_owned())
            });
            ids.any(|id| cut.contains(&id))
        };
        let marked = |mut entry: NewEntry| {
            if !reply.is_whole() {
                entry = cut_reply::mark_reply(entry);
            }
            if !cut.is_empty() && makes_cut_call(&entry) {
                entry = cut_reply::mark_call(entry);
            }
            entry
        };
        let drafts = Draft::assistant_with(reply.message(), marked);
        drafts.map_err(|error| Error::entry(&self.path, error))
    }

    /// Calls `run` with the recorded prompts. After an error they are read from the file again.
    fn with_prompts<T>(
        &self,
        run: impl FnOnce(&mut KnownPrompts) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut known = lock(&self.prompts);
        let mut prompts = match known.take() {
            Some(prompts) => prompts,
            None => match self.read_again() {
                Ok(history) => KnownPrompts::read(&history, self.options.policy)?,
                Err(error) if error.kind() == NO_FILE => KnownPrompts::default(),
                Err(error) => return Err(error),
            },
        };
        let result = run(&mut prompts)?;
        *known = Some(prompts);
        Ok(result)
    }

    /// Forgets which prompt the conversation had last, because it continues elsewhere.
    fn forget_prompts(&self) {
        *lock(&self.prompts) = None;
    }

    fn record_messages(
        &self,
        messages: Vec<Draft>,
        options: RecordOptions,
    ) -> Result<RecordOutcome, Error> {
        let tombstones = || {
            let tombstones = messages.iter();
            tombstones.filter(|message| message.kind() == EntryKind::Tombstone)
        };
        if tombstones().next().is_none() {
            return Ok(self.writer.record(messages, options)?);
        }
        tombstones().try_for_each(|tombstone| self.check_conversation(tombstone))?;
        let named: Vec<EntryId> = tombstones()
            .filter_map(|tombstone| tombstone.withdrawn().cloned())
            .collect();
        let history = match self.read_again() {
            Ok(history) => history,
            Err(error) if error.kind() == NO_FILE => {
                let nothing = Tombstoned::default();
                return Ok(self.writer.record(messages, options.tombstoned(nothing))?);
            }
            Err(error) => return Err(error),
        };
        let tree = self.tree_of(&history);
        let Some(tombstoned) = resume_point::tombstoned(&tree, &named) else {
            return Err(self.refused(WriteError::NotTheLeaf));
        };
        Ok(self
            .writer
            .record(messages, options.tombstoned(tombstoned))?)
    }

    /// Reads something of the session as it is now; nothing of one without an entry, which has no file yet.
    fn read_if_any<T: Default>(
        &self,
        read: impl FnOnce(&History) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.read_again() {
            Ok(history) => read(&history),
            Err(error) if self.leaf().is_none() && error.kind() == NO_FILE => Ok(T::default()),
            Err(error) => Err(error),
        }
    }

    /// Reads the session as it is now.
    fn read_again(&self) -> Result<History, Error> {
        self.writer.flush()?;
        History::open_on(&self.options.read_disk(), &self.path)
    }
}

impl Counting {
    fn new(path: &Path, options: &SessionOptions, history: Option<&History>) -> Self {
        let named = history.and_then(History::session_id);
        let stem = || {
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
        };
        let session = options
            .session_id_given()
            .map(str::to_owned)
            .or(named)
            .or_else(stem);
        let last = history.and_then(|history| {
            let mut lines = history.index().entries().rev();
            lines.find(|line| line.kind() == EntryKind::CostState)
        });
        let costs = history.zip(last).and_then(|(history, line)| {
            let mut bodies = Bodies::new(history.source());
            // A line that changed on disk since it was indexed is skipped: opening the file detects it.
            Costs::read(bodies.get(&line).ok()?.text)
        });
        // Replies after the last counts: a process ended before the end of its turn, and they can be counted again.
        let missed = history.and_then(|history| {
            let start = last.map_or(0, |line| line.offset());
            let mut lines = history.index().entries().rev();
            let mut lines = lines.by_ref().take_while(|line| line.offset() >= start);
            let has_reply = lines.any(|line| line.kind() == EntryKind::Assistant);
            has_reply.then_some(start..history.index().byte_count())
        });
        Self {
            session: session.unwrap_or_default(),
            counters: costs.map_or_else(Counters::new, Counters::from),
            is_used: false,
            since: Instant::now(),
            missed,
        }
    }
}

/// Returns the model and the usage of each reply in a part of a file, each reply once: its last line
/// has the final usage.
fn replies_in(history: &History, part: &Range<u64>) -> Result<Vec<(String, String)>, Error> {
    let mut bodies = Bodies::new(history.source());
    let mut replies: Vec<(String, String)> = Vec::new();
    let mut places = HashMap::new();
    let lines = history.index().entries();
    let lines =
        lines.filter(|line| line.kind() == EntryKind::Assistant && part.contains(&line.offset()));
    for line in lines {
        let Ok(body) = Object::parse(bodies.get(&line)?.text) else {
            continue;
        };
        let Some(message) = body.object("message") else {
            continue;
        };
        let (Some(model), Some(usage)) = (message.str("model"), message.object("usage")) else {
            continue;
        };
        let reply = (model.into_owned(), usage.text().to_owned());
        // A reply without an id is a line of its own.
        let id = message.str("id").filter(|id| !id.is_empty());
        let known = id.as_ref().and_then(|id| places.get(id.as_ref()).copied());
        match known {
            Some(place) => replies[place] = reply,
            None => {
                if let Some(id) = id {
                    places.insert(id.into_owned(), replies.len());
                }
                replies.push(reply);
            }
        }
    }
    // These are texts of a client, for which no model was paid.
    replies.retain(|(model, _)| model != make::SYNTHETIC_MODEL);
    Ok(replies)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
/// The first entry of a session creates its file.
const NO_FILE: ErrorKind = ErrorKind::Read(transcript_reader::ErrorKind::NotFound);

/// The maximum number of times that a session is read again because it was replaced before it was
/// opened for writing.
const MAX_REPLACED: usize = 3;

/// Opens a session at the end of its conversation: reads it, rewrites salvaged entries, and reads
/// it again if it wrote any.
fn open(path: &Path, options: &SessionOptions) -> Result<(Session, History), Error> {
    let (mut repair, mut restored) = (None, Vec::new());
    // The client salvages nothing: under its policy no entries are written again.
    let mut is_repaired = options.policy == Policy::Vendor;
    let mut replaced = 0;
    loop {
        let history = History::open_on(&options.read_disk(), path)?;
        history.source().check_messages()?;
        // Where a conversation ends does not depend on other files, and reading them is slow.
        let tree = Tree::new(history.index(), options.policy);
        let mut known = history.resume_point(&tree)?;
        let lost = if is_repaired {
            Vec::new()
        } else {
            rewrite_salvaged::entries(&history, &tree, &mut known)?
        };
        // The file is read again after these.
        known.needs_pin &= lost.is_empty();
        let writer = options.writer_of(history.session_id());
        let writer = match writer.open(path, known) {
            Ok(writer) => writer,
            Err(error) if error.kind() == WriteError::Fork => {
                let fork = options.fork(&ForkOptions::new());
                let (copy, _) = history.fork(options.policy, &fork)?;
                let (mut session, history) = open(&copy, options)?;
                session.forked_from = Some(path.to_owned());
                return Ok((session, history));
            }
            // Another file has taken its place since it was read, as by `SessionRepair::replace`.
            Err(error) if replaced < MAX_REPLACED && is_replaced(error.kind()) => {
                replaced += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let repaired = writer.repair();
        let is_cut = matches!(repaired, Some(Repair::Cut { .. }));
        repair = repair.or(repaired);
        if is_cut {
            // The conversation may have ended in the line that opening the file has truncated, so
            // the file must be read again.
            writer.close()?;
            continue;
        }
        if lost.is_empty() {
            let mut session = Session::new(path, options, Some(&history), writer);
            (session.repair, session.restored) = (repair, restored);
            return Ok((session, history));
        }
        match writer.append_all(lost) {
            Ok(written) => restored = written,
            Err(error) if replaced < MAX_REPLACED && is_replaced(error.kind()) => {
                replaced += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        writer.close()?;
        is_repaired = true;
    }
}

/// Returns whether this may mean that the name leads to another file than before.
fn is_replaced(error: WriteError) -> bool {
    matches!(
        error,
        WriteError::Changed | WriteError::Replaced | WriteError::NotFound
    )
}

/// Returns the synthetic entries that are written to the file, each a child of the previous one and
/// the first a child of `leaf`. A result below its call would abandon the other children of the
/// call.
fn persisted_drafts(request: &Request, leaf: Option<EntryId>) -> Result<Vec<Draft>, InvalidEntry> {
    let mut above = leaf;
    let mut drafts = Vec::new();
    for synthetic in &request.synthetic {
        let entry = match synthetic.kind {
            SyntheticKind::InterruptedResult | SyntheticKind::CutCall => {
                let Ok(block) = Raw::parse(synthetic.block.json()) else {
                    continue;
                };
                let entry = make::user_blocks(&[block]);
                // The text is what the tool returned, as far as programs can know.
                match block.object().and_then(|block| block.get("content")) {
                    Some(content) => entry.with("toolUseResult", content),
                    None => entry,
                }
            }
            SyntheticKind::NoResponse => {
                make::synthetic(texts::NO_RESPONSE, &uuid::Uuid::new_v4().to_string())
            }
            // The other blocks are synthesized again for each request.
            _ => continue,
        };
        let id = EntryId::Uuid(Uuid(uuid::Uuid::new_v4().as_u128()));
        let draft = Draft::try_from(&entry.uuid(&id))?;
        drafts.push(match above.replace(id) {
            Some(above) => draft.parent(above),
            None => draft,
        });
    }
    Ok(drafts)
}

/// Returns whether a child of `entry` would appear after the entries that a compaction preserved
/// instead of after `entry` (COMPACT-7).
fn is_before_compaction(history: &History, entry: &EntryId) -> bool {
    let index = history.index();
    let Some(id) = index.id(&entry.to_string()) else {
        return false;
    };
    // Both policies agree on what a compaction dropped, and another client may read the file.
    let tree = Tree::new(index, Policy::Vendor);
    let mut entry_refs = index.with_uuid(id).peekable();
    entry_refs.peek().is_some() && entry_refs.all(|entry_ref| tree.node(entry_ref).is_none())
}
