//! `transcript append`: writes a session on behalf of a program in any language.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;
use serde_json::value::RawValue;
use transcript::{
    Compaction, Draft, EntryId, Error, Kept, OnBusy, RecordOptions, Repair, Rescue, Session,
    SessionOptions, SyncPolicy, Trigger, Written,
};
use transcript_format::kind::EntryKind;
use transcript_format::lines::{DEFAULT_LINE_CAP, Framed, Framer};
use transcript_format::object::{JsonKind, Object, Raw};
use transcript_writer::{ErrorKind, InvalidEntry};

use crate::ui::Ui;
use crate::{exit, json};

/// Append to a session: commands on standard input, answers on standard output
///
/// Commands and answers are JSON objects, one per line, in the same order. An answer means that the
/// bytes are written: they survive the end of this process, and after "sync" a power cut. The exit
/// code is 1 if any command failed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Path of a .jsonl file
    #[arg(value_name = "SESSION-FILE")]
    file: PathBuf,
    /// When to sync written bytes to disk
    #[arg(long, value_enum, default_value_t = Sync::Interval, value_name = "WHEN")]
    sync: Sync,
    /// Create the file if it does not exist
    #[arg(long)]
    create: bool,
    /// Session id for entries that have none [default: the file name]
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Working directory for entries that name none [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What to do when another process writes to the session
    #[arg(long, value_enum, default_value_t = Busy::Fail, value_name = "ACTION")]
    on_busy: Busy,
    /// Answer all commands of a batch after one write
    #[arg(long)]
    ack_batch: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sync {
    /// On a sync command and at the end
    None,
    /// 100 ms after a write
    Interval,
    /// Before each answer
    Each,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Busy {
    /// Refuse
    Fail,
    /// Share the file: each process continues from its own last entry, so that two that write at the
    /// same time make two branches
    Wait,
    /// Refuse with an error that asks the caller to fork
    Fork,
}

/// The version in the answer to `hello`, and in entries that have no version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How much input is read at once. Commands that are read together are written together.
const CHUNK_BYTES: usize = 256 << 10;

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    transcript::ignore_file_size_signal();
    let session = open(args)?;
    if session.path() != args.file {
        ui.note(&format!(
            "{}: another process is writing to it; continuing in a copy: {}",
            args.file.display(),
            session.path().display()
        ));
    }
    if session.writer().others_may_write() {
        ui.note(&format!(
            "{0}: other users may write to this file, and what they write becomes part of the \
             conversation; `chmod 600` prevents it",
            session.path().display()
        ));
    }
    if let Some(repair) = session.repair() {
        ui.note(&describe_repair(session.path(), repair));
    }
    if let [first, ..] = session.restored() {
        ui.note(&format!(
            "{}: entries that were only in damaged lines: {}, written again from byte {} on, \
             because other clients skip damaged lines",
            session.path().display(),
            session.restored().len(),
            first.offset
        ));
    }
    let mut server = CommandServer {
        session,
        pending: Vec::new(),
        answers: Answers {
            out: BufWriter::with_capacity(64 << 10, io::stdout().lock()),
            any_failed: false,
        },
        ack_batch: args.ack_batch,
    };
    let end = server.serve(io::stdin().lock());
    let CommandServer {
        session,
        mut answers,
        ..
    } = server;
    // Read the rescue files after the last sync, because that sync may be the one that fails.
    let synced = session.sync();
    let rescue = session.writer().rescue();
    let path = session.path().to_owned();
    let closed = synced.and(session.close());
    if let Some(rescue) = rescue.filter(|rescue| rescue.unsynced > 0) {
        ui.warn(&describe_rescue(&path, &rescue));
    }
    match end {
        Ok(End::Asked(id)) => {
            let answer = closed.map(|()| Answer::done());
            answers.give(id.as_deref(), answer.map_err(Failure::from))?;
            answers.out.flush()?;
        }
        Ok(End::OfInput) => closed?,
        Err(error) => {
            closed?;
            return Err(error);
        }
    }
    Ok(if answers.any_failed {
        exit::NO
    } else {
        exit::DONE
    })
}

fn open(args: &Args) -> Result<Session> {
    let path = &args.file;
    if path == Path::new("-") {
        bail!("append needs the path of a file; commands are read from standard input");
    }
    let cwd = match &args.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = cwd.context("cannot determine the current directory; set it with --cwd DIR")?;
    let mut options = SessionOptions::new()
        .cwd(cwd.to_string_lossy())
        .version(VERSION)
        .sync(match args.sync {
            Sync::None => SyncPolicy::None,
            Sync::Interval => SyncPolicy::Interval(Duration::from_millis(100)),
            Sync::Each => SyncPolicy::Each,
        })
        .on_busy(match args.on_busy {
            Busy::Fail => OnBusy::Fail,
            Busy::Wait => OnBusy::Share,
            Busy::Fork => OnBusy::Fork,
        });
    if let Some(id) = &args.session_id {
        options = options.session_id(id);
    }
    Ok(if args.create {
        Session::open_or_create(path, &options)?
    } else {
        Session::open(path, &options)?
    })
}

/// Describes the entries that a failed sync put at risk, and which of them are in rescue files.
fn describe_rescue(path: &Path, rescue: &Rescue) -> String {
    let (unsynced, saved) = (rescue.unsynced, rescue.saved);
    let files: Vec<_> = rescue
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let files = files.join(" and ");
    let which = match saved {
        0 => "none of them was saved".to_owned(),
        _ if saved == unsynced => format!("all of them were saved to {files}"),
        _ => format!("the last {saved} of them were saved to {files}, the others were not"),
    };
    let why = rescue.error.as_ref();
    let why = why.map_or_else(String::new, |error| format!(": {error}"));
    format!(
        "{}: entries that may not survive a power cut: {unsynced}; {which}{why}",
        path.display()
    )
}

fn describe_repair(path: &Path, repair: &Repair) -> String {
    let path = path.display();
    match repair {
        Repair::Completed { offset } => {
            format!("{path}: the last line had no newline; one was added at byte {offset}")
        }
        Repair::Cut { offset, len, saved } => format!(
            "{path}: a torn line of {len} bytes at byte {offset} was removed and saved to {}",
            saved.display()
        ),
        Repair::Sealed { offset, len, why } => {
            let why = match why {
                Kept::OtherWriter => "another process may be writing it".to_owned(),
                Kept::HoldsEntry => "it contains a whole entry".to_owned(),
                Kept::TooLong => "it is too long to be saved elsewhere".to_owned(),
                Kept::Failed(error) => format!("it cannot be saved elsewhere and removed: {error}"),
                _ => "it cannot be removed".to_owned(),
            };
            format!(
                "{path}: a damaged line of {len} bytes at byte {offset} was ended with a newline \
                 and kept, because {why}"
            )
        }
        _ => format!("{path}: the end of the file was repaired"),
    }
}

/// Runs commands and writes answers.
struct CommandServer<W: Write> {
    session: Session,
    /// Appends that were read but not written yet.
    pending: Vec<PendingAppend>,
    answers: Answers<W>,
    ack_batch: bool,
}

struct PendingAppend {
    id: Option<Box<RawValue>>,
    drafts: Vec<Draft>,
}

/// Why reading commands ended.
enum End {
    OfInput,
    /// The command `close`, with its id. It is not answered yet.
    Asked(Option<Box<RawValue>>),
}

impl<W: Write> CommandServer<W> {
    fn serve(&mut self, mut input: impl Read) -> Result<End> {
        let mut framer = Framer::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            // Answer everything before blocking on input: the caller may wait for it.
            self.write_waiting()?;
            self.answers.out.flush()?;
            let read = match input.read(&mut chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read standard input"),
            };
            let mut rest = &chunk[..read];
            while let Some(line) = framer.next(&mut rest) {
                if let Some(end) = self.take(line)? {
                    self.answers.out.flush()?;
                    return Ok(end);
                }
            }
            if read == 0 {
                let end = match framer.finish() {
                    Some(line) => self.take(line)?,
                    None => None,
                };
                self.write_waiting()?;
                self.answers.out.flush()?;
                return Ok(end.unwrap_or(End::OfInput));
            }
        }
    }

    fn take(&mut self, line: Framed<'_>) -> Result<Option<End>> {
        let Some(Request { id, command }) = Request::read(line) else {
            return Ok(None);
        };
        let answer = match command {
            Ok(Command::Append(drafts)) => {
                self.pending.push(PendingAppend { id, drafts });
                return Ok(None);
            }
            Ok(Command::Close) => {
                self.write_waiting()?;
                return Ok(Some(End::Asked(id)));
            }
            Ok(Command::Sync) => {
                self.write_waiting()?;
                let synced = self.session.sync();
                synced.map(|()| Answer::done()).map_err(Failure::from)
            }
            Ok(Command::Edit(turn)) => {
                self.write_waiting()?;
                self.run_edit(turn)
            }
            Ok(Command::Hello) => Ok(Answer::hello()),
            Err(failure) => Err(failure),
        };
        // Answers are in the order of the commands, so earlier appends are answered first.
        self.write_waiting()?;
        self.answers.give(id.as_deref(), answer)?;
        Ok(None)
    }

    /// Runs a command that depends on the current leaf.
    fn run_edit(&self, turn: EditCommand) -> Result<Answer, Failure> {
        let session = &self.session;
        Ok(match turn {
            EditCommand::Record(messages) => {
                let recorded = session.record(messages, RecordOptions::new())?;
                Answer::written_with_leaf(recorded.entries, recorded.last)
            }
            EditCommand::Compact(compact) => {
                let Compact {
                    compaction,
                    summary,
                    preserved,
                } = compact;
                let done = session.compact(compaction, &summary, &preserved)?;
                Answer::written(vec![done.boundary, done.summary])
            }
            EditCommand::Tombstone(entry) => {
                session.tombstone(&entry)?;
                Answer::written_with_leaf(Vec::new(), session.leaf())
            }
            EditCommand::Rewind(to) => {
                session.rewind(to)?;
                Answer::written_with_leaf(Vec::new(), session.leaf())
            }
        })
    }

    /// Writes the pending appends as one batch, and answers them.
    fn write_waiting(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        if pending.len() == 1 {
            for PendingAppend { id, drafts } in pending {
                self.write_one(id.as_deref(), drafts)?;
            }
        } else {
            let all = pending.iter().flat_map(|one| one.drafts.iter().cloned());
            match self.session.append_all(all) {
                Ok(written) => {
                    let mut written = written.into_iter();
                    for PendingAppend { id, drafts } in &pending {
                        let own = written.by_ref().take(drafts.len());
                        let answer = Answer::written(own.collect());
                        self.answers.give(id.as_deref(), Ok(answer))?;
                    }
                }
                // Retry one by one, so that one invalid entry does not fail the others.
                Err(error) if may_spare_others(&error) => {
                    for PendingAppend { id, drafts } in pending {
                        self.write_one(id.as_deref(), drafts)?;
                    }
                }
                Err(error) => {
                    let failure = Failure::from(error);
                    for PendingAppend { id, .. } in &pending {
                        self.answers.give(id.as_deref(), Err(failure.clone()))?;
                    }
                }
            }
        }
        if !self.ack_batch {
            self.answers.out.flush()?;
        }
        Ok(())
    }

    fn write_one(&mut self, id: Option<&RawValue>, drafts: Vec<Draft>) -> Result<()> {
        let written = self.session.append_all(drafts);
        let answer = written.map(Answer::written).map_err(Failure::from);
        Ok(self.answers.give(id, answer)?)
    }
}

/// Returns whether the error may concern only some entries of a batch.
fn may_spare_others(error: &Error) -> bool {
    let kind = error.as_writer().map(transcript_writer::Error::kind);
    matches!(
        kind,
        Some(
            ErrorKind::InvalidEntry
                | ErrorKind::UnknownParent
                | ErrorKind::RepeatedUuid
                | ErrorKind::Full
                | ErrorKind::Io
        )
    )
}

struct Request {
    id: Option<Box<RawValue>>,
    command: Result<Command, Failure>,
}

enum Command {
    Hello,
    Append(Vec<Draft>),
    Edit(EditCommand),
    Sync,
    Close,
}

enum EditCommand {
    Record(Vec<Draft>),
    Compact(Compact),
    Tombstone(EntryId),
    Rewind(Option<EntryId>),
}

struct Compact {
    compaction: Compaction,
    summary: String,
    preserved: Vec<EntryId>,
}

impl Request {
    /// Parses a line of the input; `None` if it is blank.
    fn read(line: Framed<'_>) -> Option<Self> {
        let bytes = match line {
            Framed::Line(line) => line.bytes.trim_ascii(),
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
                // Cannot fail: the text of a parsed value is valid JSON.
                id: object
                    .get("id")
                    .and_then(|id| RawValue::from_string(id.text().to_owned()).ok()),
                command: command(&object),
            },
            Err(error) => Self::nameless(format!("the line is {error}")),
        })
    }

    fn nameless(message: String) -> Self {
        Self {
            id: None,
            command: Err(Failure::bad_command(message)),
        }
    }
}

fn command(object: &Object<'_>) -> Result<Command, Failure> {
    match object.str("op").as_deref() {
        Some("hello") => Ok(Command::Hello),
        Some("append") => drafts(object).map(Command::Append),
        Some("meta") => metadata(object).map(|draft| Command::Append(vec![draft])),
        Some("sync") => Ok(Command::Sync),
        Some("close") => Ok(Command::Close),
        Some("record") => messages(object).map(|drafts| Command::Edit(EditCommand::Record(drafts))),
        Some("compact") => {
            compact(object).map(|compact| Command::Edit(EditCommand::Compact(compact)))
        }
        Some("tombstone") => match object.str("uuid") {
            Some(uuid) => Ok(Command::Edit(EditCommand::Tombstone(EntryId::from(&*uuid)))),
            None => Err(Failure::bad_command("`uuid` must be a string")),
        },
        Some("rewind") => rewind(object).map(|to| Command::Edit(EditCommand::Rewind(to))),
        Some(_) => Err(Failure::bad_command("unknown op")),
        None => Err(Failure::bad_command("missing op")),
    }
}

/// Returns the entries of an `append`.
fn drafts(object: &Object<'_>) -> Result<Vec<Draft>, Failure> {
    let [entry, user, assistant] = ["entry", "user", "assistant"].map(|key| object.get(key));
    match (entry, user, assistant) {
        (Some(entry), None, None) => Ok(vec![Draft::entry(entry.text())?]),
        (None, Some(user), None) => match user.str() {
            Some(text) => Ok(vec![Draft::user(&text)]),
            None => Err(Failure::bad_command("`user` must be a string")),
        },
        (None, None, Some(message)) => Ok(Draft::assistant(message.text())?),
        _ => Err(Failure::bad_command(
            "append needs one of `entry`, `user` and `assistant`",
        )),
    }
}

/// Returns the messages of a `record`.
fn messages(object: &Object<'_>) -> Result<Vec<Draft>, Failure> {
    let Some(messages) = object.array("messages") else {
        return Err(Failure::bad_command("`messages` must be a list"));
    };
    let drafts = messages.iter().map(|message| Draft::entry(message.text()));
    Ok(drafts.collect::<Result<_, _>>()?)
}

fn compact(object: &Object<'_>) -> Result<Compact, Failure> {
    let trigger = match object.str("trigger").as_deref() {
        Some("manual") => Trigger::Manual,
        Some("auto") => Trigger::Auto,
        _ => {
            return Err(Failure::bad_command(
                "`trigger` must be \"manual\" or \"auto\"",
            ));
        }
    };
    let Some(summary) = object.str("summary") else {
        return Err(Failure::bad_command("`summary` must be a string"));
    };
    let preserved = match object.get("preserved") {
        None => Some(Vec::new()),
        Some(list) => list.array().and_then(|ids| {
            let ids = ids.into_iter().map(Raw::str);
            ids.map(|id| Some(EntryId::from(&*id?))).collect()
        }),
    };
    let Some(preserved) = preserved else {
        return Err(Failure::bad_command("`preserved` must be a list of uuids"));
    };
    let tokens = object.u64("preTokens").unwrap_or_default();
    Ok(Compact {
        compaction: Compaction::new(trigger, tokens),
        summary: summary.into_owned(),
        preserved,
    })
}

fn rewind(object: &Object<'_>) -> Result<Option<EntryId>, Failure> {
    let to = object.get("to");
    match (to, to.and_then(Raw::str)) {
        (Some(_), Some(uuid)) => Ok(Some(EntryId::from(&*uuid))),
        (Some(to), None) if to.is_null() => Ok(None),
        _ => Err(Failure::bad_command(
            "`to` must be the uuid of an entry or null",
        )),
    }
}

/// Returns the entry of a `meta`, which must not be part of the conversation.
fn metadata(object: &Object<'_>) -> Result<Draft, Failure> {
    let Some(entry) = object
        .get("entry")
        .filter(|raw| raw.kind() == JsonKind::Object)
    else {
        return Err(Failure::bad_command("`entry` must be an object"));
    };
    let kind = entry.object().and_then(|entry| {
        let name = entry.get("type").and_then(Raw::str)?;
        Some(EntryKind::from_name(&name))
    });
    if kind.is_some_and(EntryKind::is_chain) {
        return Err(Failure::bad_command(
            "the entry is part of the conversation; write it with append",
        ));
    }
    Ok(Draft::entry(entry.text())?)
}

struct Answers<W: Write> {
    out: W,
    any_failed: bool,
}

impl<W: Write> Answers<W> {
    fn give(&mut self, id: Option<&RawValue>, answer: Result<Answer, Failure>) -> io::Result<()> {
        let body = answer.unwrap_or_else(|failure| {
            self.any_failed = true;
            Answer::failed(failure)
        });
        let mut line = json::text(&AnswerLine { id, body })?;
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }
}

#[derive(Serialize)]
struct AnswerLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(flatten)]
    body: Answer,
}

/// An answer without the id of its command.
#[derive(Default, Serialize)]
struct Answer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(flatten)]
    written: Option<WrittenRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Serialize)]
struct WrittenRecord {
    entries: Vec<EntryRecord>,
    /// The uuid of the last entry; null for metadata.
    uuid: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryRecord {
    uuid: Option<String>,
    parent_uuid: Option<String>,
    offset: u64,
    len: u64,
}

/// The error of a command. The message never quotes an entry.
#[derive(Clone, Serialize)]
struct Failure {
    kind: &'static str,
    message: String,
    /// Whether the same command may work later.
    retry: bool,
}

impl Answer {
    fn done() -> Self {
        Self {
            ok: true,
            ..Self::default()
        }
    }

    fn hello() -> Self {
        Self {
            schema: Some(1),
            version: Some(VERSION),
            ..Self::done()
        }
    }

    fn written(entries: Vec<Written>) -> Self {
        let last = entries.last().and_then(|last| last.uuid.clone());
        Self::written_with_leaf(entries, last)
    }

    /// Answers with the written entries and the current leaf.
    fn written_with_leaf(entries: Vec<Written>, last: Option<EntryId>) -> Self {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|entry| EntryRecord {
                uuid: entry.uuid.map(|id| id.to_string()),
                parent_uuid: entry.parent.map(|id| id.to_string()),
                offset: entry.offset,
                len: entry.len,
            })
            .collect();
        let uuid = last.map(|id| id.to_string());
        Self {
            written: Some(WrittenRecord { entries, uuid }),
            ..Self::done()
        }
    }

    fn failed(failure: Failure) -> Self {
        Self {
            error: Some(failure),
            ..Self::default()
        }
    }
}

impl Failure {
    fn bad_command(message: impl Into<String>) -> Self {
        Self {
            kind: "bad-command",
            message: message.into(),
            retry: false,
        }
    }
}

impl From<InvalidEntry> for Failure {
    fn from(invalid: InvalidEntry) -> Self {
        Self {
            kind: ErrorKind::InvalidEntry.name(),
            message: invalid.to_string(),
            retry: false,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let retry = error.is_retryable();
        let kind = error.kind().name();
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self {
            kind,
            message,
            retry,
        }
    }
}
