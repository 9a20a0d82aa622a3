//! A session for programs in any language: commands in, answers out, one JSON object per line.
//! `docs/cli.md` specifies the protocol; [`wire`] has its types.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use transcript_catalog::usage::{CallPrices, Prices};
use transcript_format::kind::EntryKind;
use transcript_format::lines::{DEFAULT_LINE_CAP, Framed, Framer};
use transcript_format::object::{Object, Raw};
use transcript_writer::{Draft, EntryId, ErrorKind, RecordOptions, Rescue, Written};

use crate::wire::{self, Answer, Append, Command, CommandError, Json};
use transcript_reader::Index;
use transcript_session::make::Compaction;
use transcript_session::{
    Error, ForkOptions, Keep, Request as SessionRequest, Session, TurnEnd, append_all_then,
    context_window,
};

/// The version in the answer to `hello`.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs commands on a session and writes an answer to each, in the same order.
///
/// Commands that are read together are written together: give it an input with a large buffer.
/// Everything that was read is answered before the input is read again, because the caller may wait
/// for it.
///
/// ```
/// use transcript_ops::serve::CommandServer;
/// use transcript_session::{Session, SessionOptions};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
/// let session = Session::create(&path, &SessionOptions::new().cwd("/work").version("1.0.0"))?;
/// let input = br#"{"id":1,"op":"append","user":"Which years have a leap day?"}"#;
/// let mut answers = Vec::new();
/// let served = CommandServer::new(session, &mut answers).run(&input[..]);
/// served.result?;
/// assert!(!served.any_failed);
/// assert!(answers.starts_with(br#"{"id":1,"ok":true,"entries":[{"uuid":"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CommandServer<W: Write> {
    session: Session,
    /// The prices of replies, for `count`.
    prices: Arc<CallPrices>,
    /// Appends that were read but not written yet.
    pending: Vec<PendingAppend>,
    out: W,
    any_failed: bool,
    ack_batch: bool,
}

#[derive(Debug)]
struct PendingAppend {
    id: Option<Json<'static>>,
    drafts: Vec<Draft>,
}

/// The result of serving.
#[derive(Debug)]
#[non_exhaustive]
pub struct Served {
    /// Whether any command failed.
    pub any_failed: bool,
    /// The entries that a failed sync put at risk, and the files that they were saved to; `None` if
    /// no sync failed.
    pub rescue: Option<Rescue>,
    /// Whether commands could be read and answers written until the end, and the session be closed.
    pub result: Result<(), ServeError>,
}

/// The error that ended serving early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Commands cannot be read.
    #[error("commands cannot be read")]
    Read(#[source] io::Error),
    /// Answers cannot be written. All commands that were read are executed.
    #[error("answers cannot be written")]
    Write(#[from] io::Error),
    /// The session cannot be synced and closed.
    #[error("the session cannot be closed")]
    Close(#[source] Error),
}

/// The reason why no more commands are read.
enum StopReason {
    InputEnded,
    /// The command `close`, with its id. It is not answered yet.
    CloseCommand(Option<Json<'static>>),
}

impl<W: Write> CommandServer<W> {
    /// Serves `session`. Answers are flushed before the input is read again, so `out` should be
    /// buffered.
    #[must_use]
    pub fn new(session: Session, out: W) -> Self {
        Self {
            session,
            prices: embedded_prices(),
            pending: Vec::new(),
            out,
            any_failed: false,
            ack_batch: false,
        }
    }

    /// Answers all commands that were read together at once, after one write.
    #[must_use]
    pub fn ack_batch(mut self, ack_batch: bool) -> Self {
        self.ack_batch = ack_batch;
        self
    }

    /// Runs the commands of `input` up to `close` or the end, then syncs and closes the session.
    pub fn run(mut self, input: impl BufRead) -> Served {
        let end = self.serve(input);
        // Read the rescue files after the last sync, because that sync may be the one that fails.
        let synced = self.session.sync();
        let rescue = self.session.writer().rescue();
        let closed = synced.and(self.session.close());
        let result = match end {
            // The answer to `close` means that everything is durable, so it is written after the session was closed.
            Ok(StopReason::CloseCommand(id)) => {
                let answer = closed.map(|()| Answer::done());
                let answer = answer.map_err(CommandError::from);
                let written =
                    write_answer(&mut self.out, &mut self.any_failed, id.as_ref(), answer);
                written
                    .and_then(|()| self.out.flush())
                    .map_err(ServeError::Write)
            }
            Ok(StopReason::InputEnded) => closed.map_err(ServeError::Close),
            // A session that cannot be closed may lose entries; that the other end is gone does not.
            Err(error) => closed.map_err(ServeError::Close).and(Err(error)),
        };
        Served {
            any_failed: self.any_failed,
            rescue,
            result,
        }
    }

    fn serve(&mut self, mut input: impl BufRead) -> Result<StopReason, ServeError> {
        let mut framer = Framer::new();
        loop {
            // Answer everything before blocking on input: the caller may wait for it.
            self.write_waiting()?;
            self.out.flush()?;
            let mut rest = match input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ServeError::Read(error)),
            };
            let read = rest.len();
            while let Some(line) = framer.next(&mut rest) {
                if let Some(end) = self.handle_line(line)? {
                    self.out.flush()?;
                    return Ok(end);
                }
            }
            input.consume(read);
            if read == 0 {
                // A last command without a newline is run, too: the caller may have ended after it.
                let end = match framer.finish() {
                    Some(line) => self.handle_line(line)?,
                    None => None,
                };
                self.write_waiting()?;
                self.out.flush()?;
                return Ok(end.unwrap_or(StopReason::InputEnded));
            }
        }
    }

    fn handle_line(&mut self, line: Framed<'_>) -> io::Result<Option<StopReason>> {
        let Some(Request { id, command }) = Request::read(line) else {
            return Ok(None);
        };
        let id = id.as_ref();
        match command {
            // These two wait for the next batch: entries that were read together are one write.
            Ok(Command::Append(append)) => self.queue(id, drafts(&append))?,
            Ok(Command::Meta { entry }) => self.queue(id, metadata(&entry))?,
            Ok(Command::Close) => {
                self.write_waiting()?;
                return Ok(Some(StopReason::CloseCommand(
                    id.cloned().map(Json::into_owned),
                )));
            }
            Ok(command) => {
                let prices = Arc::clone(&self.prices);
                self.answer(id, |session| execute(session, &prices, &command))?;
            }
            Err(error) => self.answer(id, |_| Err(error))?,
        }
        Ok(None)
    }

    /// Adds entries to the next batch.
    fn queue(
        &mut self,
        id: Option<&Json<'_>>,
        drafts: Result<Vec<Draft>, CommandError>,
    ) -> io::Result<()> {
        match drafts {
            Ok(drafts) => {
                let id = id.cloned().map(Json::into_owned);
                self.pending.push(PendingAppend { id, drafts });
                Ok(())
            }
            // Not at once: the answers to the commands before it come first.
            Err(error) => self.answer(id, |_| Err(error)),
        }
    }

    /// Runs and answers a command that is not part of a batch. Answers are in the order of the
    /// commands, and a command sees the entries before it, so the batch is written first.
    fn answer(
        &mut self,
        id: Option<&Json<'_>>,
        run: impl FnOnce(&Session) -> Result<Answer<'static>, CommandError>,
    ) -> io::Result<()> {
        self.write_waiting()?;
        let answer = run(&self.session);
        self.write_answer(id, answer)
    }

    /// Writes the pending appends as one batch, and answers them.
    fn write_waiting(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let (ids, batches): (Vec<_>, Vec<_>) =
            pending.into_iter().map(|one| (one.id, one.drafts)).unzip();
        for (id, answer) in ids.iter().zip(append_each(&self.session, batches)) {
            self.write_answer(id.as_ref(), answer)?;
        }
        // The caller may wait for these answers while commands that were read with them take long.
        if !self.ack_batch {
            self.out.flush()?;
        }
        Ok(())
    }

    fn write_answer(
        &mut self,
        id: Option<&Json<'_>>,
        answer: Result<Answer<'static>, CommandError>,
    ) -> io::Result<()> {
        write_answer(&mut self.out, &mut self.any_failed, id, answer)
    }
}

/// Returns the prices that are part of the program.
#[must_use]
pub fn embedded_prices() -> Arc<CallPrices> {
    static PRICES: OnceLock<Arc<CallPrices>> = OnceLock::new();
    let prices = PRICES.get_or_init(|| Arc::new(CallPrices::new(Prices::embedded())));
    Arc::clone(prices)
}

/// Runs one command on a session. `prices` say what replies cost that are counted.
///
/// # Errors
/// The error for the answer. `close` ends a server, not a session: it is an error here.
pub fn execute(
    session: &Session,
    prices: &Arc<CallPrices>,
    command: &Command<'_>,
) -> Result<Answer<'static>, CommandError> {
    run(session, prices, command).map(|answer| answer.in_fork(fork_of(session).as_deref()))
}

/// Returns the file of a session that is a fork.
fn fork_of(session: &Session) -> Option<PathBuf> {
    let original = session.forked_from();
    original.map(|_| session.path().to_owned())
}

fn run(
    session: &Session,
    prices: &Arc<CallPrices>,
    command: &Command<'_>,
) -> Result<Answer<'static>, CommandError> {
    match command {
        Command::Append(append) => append_batch(session, drafts(append)?),
        Command::Meta { entry } => Ok(Answer::written(session.append_all(metadata(entry)?)?)),
        Command::Hello => Ok(Answer::hello(VERSION)),
        Command::Sync => {
            session.sync()?;
            Ok(Answer::done())
        }
        Command::Record { messages } => {
            let drafts = messages.iter().map(|message| Draft::entry(message.text()));
            let recorded =
                session.record(drafts.collect::<Result<Vec<_>, _>>()?, RecordOptions::new())?;
            let answer = Answer::written_with_leaf(recorded.entries, recorded.last);
            Ok(answer.skipping(recorded.skipped))
        }
        Command::Compact(compact) => {
            let preserved = compact.preserved.iter();
            let preserved: Result<Vec<_>, _> = preserved.map(|name| named(session, name)).collect();
            let turns = compact.keep_turns.map(usize::try_from);
            let keep = match turns {
                // More turns than this machine can count are all of them.
                Some(turns) => Keep::LastTurns(turns.unwrap_or(usize::MAX)),
                None => Keep::Entries(preserved?),
            };
            let compaction = Compaction::new(compact.trigger, compact.pre_tokens);
            let done = session.compact(compaction, &compact.summary, keep)?;
            Ok(Answer::written(vec![done.boundary, done.summary]))
        }
        Command::Rewind { to } => {
            session.rewind(to.as_ref().map(|name| named(session, name)).transpose()?)?;
            Ok(Answer::written_with_leaf(Vec::new(), session.leaf()))
        }
        Command::Tombstone { uuid } => {
            session.tombstone(&named(session, uuid)?)?;
            Ok(Answer::written_with_leaf(Vec::new(), session.leaf()))
        }
        Command::Prompt(prompt) => {
            let written = session.record_prompt(&prompt.assembled())?;
            Ok(Answer::written(written.into_iter().collect()))
        }
        Command::Changes(prompt) => {
            let new = prompt.assembled().fingerprint();
            let changes = session.prompt_changes(&new)?.map(Into::into);
            Ok(Answer::done_with(|answer| answer.changes = changes))
        }
        Command::Queue(append) => {
            let mut last = None;
            for draft in drafts(append)? {
                last = session.queue(draft)?.uuid().cloned();
            }
            Ok(Answer::written_with_leaf(Vec::new(), last))
        }
        Command::AppendAll { entries } => append_all(session, entries),
        Command::Title { title } => Ok(Answer::written(vec![session.set_title(title)?])),
        Command::Tag { tag } => {
            let written = session.set_tag(tag.as_deref().unwrap_or_default())?;
            Ok(Answer::written(vec![written]))
        }
        Command::EndTurn { prompt } => {
            let turn = prompt.iter().fold(TurnEnd::new(), |turn, prompt| {
                turn.prompt(prompt.to_string())
            });
            Ok(Answer::written(session.end_turn(turn)?))
        }
        Command::Count(count) => {
            count_missed(session, prices)?;
            let counters = session.count(|counters| {
                count.add_to(counters, prices);
                counters.clone()
            });
            answer_with(counters.costs(), |answer| &mut answer.counters)
        }
        Command::Counters => {
            count_missed(session, prices)?;
            answer_with(session.counters().costs(), |answer| &mut answer.counters)
        }
        Command::CompleteCalls { text } => Ok(Answer::written(session.complete_calls(text)?)),
        Command::Context {
            git_branch,
            entrypoint,
        } => {
            if let Some(branch) = git_branch {
                session.set_git_branch(branch)?;
            }
            if let Some(entrypoint) = entrypoint {
                session.set_entrypoint(entrypoint)?;
            }
            Ok(Answer::done())
        }
        Command::State => answer_with(&session.state()?, |answer| &mut answer.state),
        Command::Fork { at, title, out } => {
            let mut options = ForkOptions::new();
            if let Some(at) = at {
                options = options.at(session.find_entry(at)?);
            }
            if let Some(title) = title {
                options = options.title(&**title);
            }
            if let Some(out) = out {
                options = options.out(&**out);
            }
            let path = session.fork(&options)?;
            Ok(Answer::done_with(|answer| answer.path = Some(path)))
        }
        Command::Request => {
            let text = session.request_with(|request, index| request_text(&request, index))?;
            let text = text.map_err(|error| CommandError::bad_record(error.to_string()))?;
            let request = Some(Json::new(text));
            Ok(Answer::done_with(|answer| answer.request = request))
        }
        Command::Entries => {
            let entries = session.entries()?;
            let list: Vec<_> = entries.iter().map(wire::EntryPreview::new).collect();
            answer_with(&list, |answer| &mut answer.list)
        }
        Command::Story => {
            let story = session.story()?;
            let story: Vec<_> = story.iter().map(wire::StoryPreview::new).collect();
            answer_with(&story, |answer| &mut answer.story)
        }
        Command::FindEntry { name } => {
            let found = session.find_entry(name)?;
            Ok(Answer::written_with_leaf(Vec::new(), Some(found)))
        }
        Command::Usage => answer_with(&session.usage()?, |answer| &mut answer.models),
        Command::Leaf => Ok(Answer::written_with_leaf(Vec::new(), session.leaf())),
        Command::Close => Err(CommandError::bad_command("close ends the server")),
    }
}

/// Answers with a value in one of the fields.
fn answer_with(
    value: &impl Serialize,
    field: for<'f> fn(&'f mut Answer<'static>) -> &'f mut Option<Json<'static>>,
) -> Result<Answer<'static>, CommandError> {
    let text = wire::text(value);
    let text = text.map_err(|error| CommandError::bad_record(error.to_string()))?;
    let value = Json::new(text);
    Ok(Answer::done_with(|answer| *field(answer) = Some(value)))
}

/// Counts the replies that a kill kept from being counted; only the first call reads the file.
fn count_missed(session: &Session, prices: &Arc<CallPrices>) -> Result<(), Error> {
    let prices = Arc::clone(prices);
    session.count_missed(move |model, usage| prices.cost(model, usage))?;
    Ok(())
}

fn append_all(session: &Session, entries: &[Json<'_>]) -> Result<Answer<'static>, CommandError> {
    let drafts = entries.iter().enumerate().map(|(number, entry)| {
        Draft::entry(entry.text()).map_err(|error| {
            let mut error = CommandError::from(error);
            error.message = format!("entries[{number}]: {}", error.message);
            error
        })
    });
    let written = session.append_all(drafts.collect::<Result<Vec<_>, _>>()?)?;
    Ok(Answer::written(written))
}

/// Returns the record of a request: its messages, and what it has that the file has not, and the reverse.
///
/// # Errors
/// When the messages cannot be written as JSON.
pub fn request_text(request: &SessionRequest, index: &Index) -> io::Result<String> {
    let mut messages = Vec::new();
    wire::write_messages(&mut messages, &request.messages, |json| json.into())?;
    let messages = String::from_utf8_lossy(&messages);
    let resumable = request.is_resumable();
    let window = request.model.as_deref().and_then(context_window);
    let tokens = wire::TokensRecord::new(&request.tokens(), window, None);
    let accepted = resumable && request.lint().is_ok() && tokens.over.is_none();
    Ok(wire::text(&wire::RequestRecord {
        model: request.model.as_deref(),
        provider: request.provider.name(),
        resumable,
        accepted,
        tokens,
        messages: wire::Json::new(messages),
        diagnostics: wire::RequestDiagnostics::new(index, request),
    })?)
}

/// Appends several batches in one write, and answers each. If one cannot be written, each is tried alone, so
/// that it does not fail the others.
pub fn append_each(
    session: &Session,
    batches: Vec<Vec<Draft>>,
) -> Vec<Result<Answer<'static>, CommandError>> {
    let one = |drafts: Vec<Draft>| {
        let answer = append_batch(session, drafts);
        answer.map(|answer| answer.in_fork(fork_of(session).as_deref()))
    };
    // Tombstones cannot be mixed with entries in one write, and name the last entry, which may be in an earlier batch.
    if batches.len() == 1 || batches.iter().any(|batch| has_tombstone(batch)) {
        return batches.into_iter().map(one).collect();
    }
    match session.append_all(batches.iter().flatten().cloned()) {
        Err(error) if is_per_entry_error(&error) => batches.into_iter().map(one).collect(),
        written => divide(
            written,
            batches.iter().map(Vec::len),
            fork_of(session).as_deref(),
        ),
    }
}

/// As [`append_each`], but without waiting for a sync: where every append is synced, this returns nothing, and `then`
/// gets the answers after it, on a thread that it must not keep.
pub fn append_each_then(
    session: &Session,
    batches: Vec<Vec<Draft>>,
    then: impl FnOnce(Vec<Result<Answer<'static>, CommandError>>) + Send + 'static,
) -> Option<Vec<Result<Answer<'static>, CommandError>>> {
    if !session.writer().syncs_each() || batches.iter().any(|batch| has_tombstone(batch)) {
        return Some(append_each(session, batches));
    }
    let fork = fork_of(session);
    let lens: Vec<usize> = batches.iter().map(Vec::len).collect();
    let synced = move |written| then(divide(written, lens.into_iter(), fork.as_deref()));
    let entries = batches.iter().flatten().cloned();
    match append_all_then(session, entries, synced) {
        Ok(()) => None,
        // Nothing is written. The error may concern only some of them.
        Err(_) => Some(append_each(session, batches)),
    }
}

/// Appends the entries of one command, and answers it.
fn append_batch(session: &Session, drafts: Vec<Draft>) -> Result<Answer<'static>, CommandError> {
    let is_withdrawal = has_tombstone(&drafts);
    let written = session.append_all(drafts)?;
    Ok(if is_withdrawal {
        // As `tombstone`.
        Answer::written_with_leaf(Vec::new(), session.leaf())
    } else {
        Answer::written(written)
    })
}

/// Returns whether an append removes entries.
fn has_tombstone(drafts: &[Draft]) -> bool {
    drafts.iter().any(|draft| draft.withdrawn().is_some())
}

/// Divides the written entries into answers about batches of these lengths.
fn divide(
    written: Result<Vec<Written>, Error>,
    lens: impl Iterator<Item = usize>,
    fork: Option<&Path>,
) -> Vec<Result<Answer<'static>, CommandError>> {
    match written {
        Ok(written) => {
            let mut written = written.into_iter();
            lens.map(|len| Answer::written(written.by_ref().take(len).collect()))
                .map(|answer| Ok(answer.in_fork(fork)))
                .collect()
        }
        // Nothing of the batch is in the file: every command of it failed.
        Err(error) => {
            let error = CommandError::from(error);
            lens.map(|_| Err(error.clone())).collect()
        }
    }
}

/// Writes an answer.
fn write_answer(
    out: &mut impl Write,
    any_failed: &mut bool,
    id: Option<&Json<'_>>,
    answer: Result<Answer<'static>, CommandError>,
) -> io::Result<()> {
    *any_failed |= answer.is_err();
    let mut answer = answer.unwrap_or_else(Answer::failed);
    // Also if the command failed: a caller that does not wait for each answer finds the command by it.
    answer.id = id.cloned().map(Json::into_owned);
    let mut line = wire::text(&answer)?;
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Returns whether the error may concern only some entries of a batch.
fn is_per_entry_error(error: &Error) -> bool {
    // `Full` and `Io`, too: an entry that is smaller than the batch may still fit.
    matches!(
        error.kind(),
        transcript_session::ErrorKind::Write(
            ErrorKind::InvalidEntry
                | ErrorKind::UnknownParent
                | ErrorKind::UnknownCall
                | ErrorKind::AnsweredCall
                | ErrorKind::RepeatedUuid
                | ErrorKind::Full
                | ErrorKind::Io
        )
    )
}

struct Request<'a> {
    id: Option<Json<'a>>,
    command: Result<Command<'a>, CommandError>,
}

impl<'a> Request<'a> {
    /// Parses a line of the input; `None` if it is blank.
    fn read(line: Framed<'a>) -> Option<Self> {
        let bytes = match line {
            Framed::Line(line) => line.bytes.trim_ascii(),
            // Its bytes were skipped, with the id in them.
            Framed::TooLong { .. } => {
                let cap = DEFAULT_LINE_CAP >> 20;
                return Some(Self::nameless(format!("the line is longer than {cap} MiB")));
            }
        };
        if bytes.is_empty() {
            return None;
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let at = error.valid_up_to();
                return Some(Self::nameless(format!("the line is not UTF-8 (byte {at})")));
            }
        };
        Some(match Object::parse(text) {
            Ok(object) => Self {
                id: object.get("id").map(Json::from),
                command: Command::from_object(&object),
            },
            Err(error) => Self::nameless(format!("the line is {error}")),
        })
    }

    fn nameless(message: String) -> Self {
        Self {
            id: None,
            command: Err(CommandError::bad_command(message)),
        }
    }
}

/// Returns the entry that a name means. A name that no entry has is taken for a uuid, which the command
/// then refuses.
fn named(session: &Session, name: &str) -> Result<EntryId, Error> {
    match session.find_entry(name) {
        Err(error) if error.kind() == transcript_session::ErrorKind::NoSuchEntry => {
            Ok(EntryId::from(name))
        }
        found => found,
    }
}

/// Returns the entries of an `append`.
///
/// # Errors
/// When one is not an entry.
pub fn drafts(append: &Append<'_>) -> Result<Vec<Draft>, CommandError> {
    Ok(match append {
        Append::Entry(entry) => vec![Draft::entry(entry.text())?],
        Append::User(text) => vec![Draft::user(text)],
        Append::Assistant(message) => Draft::assistant(message.text())?,
        Append::ToolResult(result) => vec![Draft::try_from(result.entry()?)?],
        Append::Client(action) => {
            let entries = action.entries()?;
            let drafts = entries.iter().map(Draft::try_from);
            drafts.collect::<Result<_, _>>()?
        }
    })
}

/// Returns the entry of a `meta`, which must not be part of the conversation.
fn metadata(entry: &Json<'_>) -> Result<Vec<Draft>, CommandError> {
    let object = Object::parse(entry.text()).ok();
    let kind = object.and_then(|entry| {
        let name = entry.get("type").and_then(Raw::str)?;
        Some(EntryKind::from_name(&name))
    });
    // `meta` promises a line outside the conversation: its caller does not expect the leaf to move.
    if kind.is_some_and(EntryKind::is_chain) {
        return Err(CommandError::bad_command(
            "the entry is part of the conversation; write it with append",
        ));
    }
    if kind == Some(EntryKind::Tombstone) {
        return Err(CommandError::bad_command(
            "the entry removes another one; write it with append or tombstone",
        ));
    }
    Ok(vec![Draft::entry(entry.text())?])
}
