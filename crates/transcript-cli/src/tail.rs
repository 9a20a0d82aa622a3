//! `transcript tail`: prints the entries of sessions, and follows them while they are written.

mod json;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use signal_hook::consts::SIGINT;
use transcript_engine::{History, entries_named};
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_format::names::agent_of;
use transcript_format::scan::Flags;
use transcript_ops::find_entry;
use transcript_ops::selection::{EntrySelection, FilterState};
use transcript_reader::Source;
use transcript_render::{Change, FileEvent, FollowPrinter, FollowScope, NewEntry, ParsedEntry};
use transcript_storage::{ReadDisk, RealDisk};
use transcript_tail::{
    ChangeKind, ConversationState, EventKind, FollowEvent, FollowOptions, FollowedEntry, Follower,
    Reset, StartAt, Trailing, Watcher, offset_of_last,
};

use crate::closed::Closed;
use crate::filter::EntryFilter;
use crate::pager::Output;
use crate::progress::Progress;
use crate::record::Records;
use crate::ui::{ToolDetail, Ui};
use crate::until::Until;
use crate::{exit, session};
use json::Json;

/// The number of bytes of events that are read ahead at once.
const BATCH_BYTES: usize = 256 << 10;

/// Follow sessions while they are written
///
/// Prints the entries of sessions in file order, in the form of `replay`. With -f the command runs until Ctrl-C. When
/// it follows several sessions, each block starts with a label. Files are only read.
///
/// `--until` also stops at a condition, as soon as it is in the file: uuid:ENTRY, text:PREFIX (of a
/// message of the last turn), turn-end.
#[derive(Clone, Debug, ClapArgs)]
#[command(mut_arg("until", |arg| arg
    .value_name("TIME|WHAT")
    .help("Only up to TIME; or stop as soon as this is in the file: uuid:ENTRY, text:PREFIX, turn-end")))]
pub(crate) struct Args {
    /// A .jsonl file, a session id or a prefix of one, `latest`, a project folder, or the folder of
    /// all projects [default: latest]
    #[arg(value_name = "SESSION|DIR")]
    targets: Vec<PathBuf>,
    /// Follow: print entries as they are written, including files created later
    #[arg(short, long)]
    follow: bool,
    /// Start with the first line that begins at or after this byte offset, or with this entry: a uuid, the
    /// start of one, or line:N
    #[arg(long, value_name = "OFFSET|ENTRY", value_parser = StartPoint::parse, conflicts_with = "last")]
    from: Option<StartPoint>,
    /// Stop after this many seconds; the exit code is 1 if --until was not met
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    filter: EntryFilter,
    /// The condition of `--until`, if it is not a time.
    #[arg(skip)]
    condition: Option<Until>,
    /// For `-n` with `--tool`, the first entry of each file to print: its offset. Reading starts at the
    /// beginning, because a result belongs to a call above it.
    #[arg(skip)]
    first: HashMap<PathBuf, u64>,
    /// The disk with an archived session, if one is named.
    #[arg(skip)]
    archive: Option<Arc<dyn ReadDisk>>,
    /// Show thinking blocks
    #[arg(long)]
    thinking: bool,
    /// How much of tool calls and results to show
    #[arg(long, value_enum, default_value_t = ToolDetail::Short)]
    tools: ToolDetail,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Add the whole raw line to each entry of the JSON output
    #[arg(long, requires = "json")]
    raw_entries: bool,
    /// Add the changes of the conversation (moves, calls, turn ends) to the JSON output
    #[arg(long, requires = "json")]
    changes: bool,
}

impl Args {
    /// Returns whether the command waits for new entries.
    fn waits(&self) -> bool {
        self.follow || self.condition.is_some()
    }

    /// Returns the options to follow the files of folders.
    fn options(&self) -> FollowOptions {
        let start = match (self.filter.common.last, &self.from) {
            (Some(count), _) => StartAt::Last(count),
            (None, Some(StartPoint::Offset(offset))) => StartAt::Offset(*offset),
            // A person who follows folders does not want the history of every session.
            (None, None) if self.waits() && !self.json => StartAt::End,
            (None, _) => StartAt::Beginning,
        };
        let options = self.follow_options().start(start);
        match self.changes || self.condition == Some(Until::TurnEnd) {
            _ if !self.json => options.changes().quick_start(),
            true => options.changes(),
            false => options,
        }
    }

    /// Returns the disk of the sessions.
    fn disk(&self) -> Arc<dyn ReadDisk> {
        match &self.archive {
            Some(archive) => Arc::clone(archive),
            None => Arc::new(RealDisk),
        }
    }

    fn is_there(&self, file: &Path) -> bool {
        self.disk().metadata(file).is_ok()
    }

    /// Returns the treatment of a last line without a newline. With -f it is printed when its newline
    /// is written.
    fn trailing(&self) -> Trailing {
        if self.follow {
            Trailing::Pending
        } else {
            Trailing::Whole
        }
    }

    /// Returns the start in a file that is named on the command line.
    fn start(&self, file: &Path) -> Result<StartAt> {
        Ok(match (self.filter.common.last, &self.from) {
            (Some(_), _) if self.first.contains_key(file) => StartAt::Beginning,
            // It may be created later; now there are no entries to count.
            (Some(count), _) if !self.is_there(file) => StartAt::Last(count),
            (Some(count), _) => StartAt::Offset(last_printed(self, file, count)?),
            (None, Some(StartPoint::Offset(offset))) => StartAt::Offset(*offset),
            (None, _) => StartAt::Beginning,
        })
    }

    fn follow_options(&self) -> FollowOptions {
        let options = FollowOptions::new().trailing(self.trailing());
        options.disk(self.disk())
    }

    /// Takes the value of `--until` if it is not a time.
    fn read_condition(&mut self) -> Result<()> {
        let until = &mut self.filter.common.until;
        self.condition = until.as_deref().and_then(Until::parse);
        if self.condition.is_some() {
            *until = None;
        } else if self
            .filter
            .options()
            .selection()
            .is_err_and(|error| error.named_option() == Some("until"))
        {
            // The filter would say that it expects a time, and not mention the conditions.
            bail!(
                "--until: expected uuid:ENTRY, text:PREFIX, turn-end, or a time such as 2026-01-31 or 2h"
            );
        }
        Ok(())
    }

    /// Looks up the entries that `--from` and `--until` name in the files on the command line. An entry
    /// of `--until` may also be written later.
    fn look_up(&mut self, targets: &Targets) -> Result<()> {
        if let Some(count) = self.filter.common.last
            && self.filter.selection()?.follows_calls()
        {
            for file in &targets.files {
                if !self.is_there(file) {
                    continue;
                }
                let first = last_printed(self, file, count)?;
                self.first.insert(file.clone(), first);
            }
        }
        let file = match (&targets.folders[..], &targets.files[..]) {
            ([], [file]) => Some(file),
            _ => None,
        };
        if let Some(StartPoint::Entry(name)) = &self.from {
            let Some(file) = file else {
                bail!("--from: an entry is looked up in one session; name it");
            };
            let history = History::open_on(&self.disk(), file)?;
            let id = find_entry(history.index(), "from", name)?;
            let index = history.index();
            let id = index.id(&id.to_string());
            let entry = id.and_then(|id| index.with_uuid(id).next());
            let entry = entry.context("--from: the file has changed")?;
            self.from = Some(StartPoint::Offset(index.entry(entry).offset()));
        }
        // A whole uuid may be of an entry that is written later; only the start of one can be ambiguous.
        if let Some(Until::Entry(name)) = &self.condition
            && let Some(file) = file.filter(|file| self.is_there(file))
            && Uuid::parse(name.to_ascii_lowercase().as_bytes()).is_none()
        {
            let history = History::open_on(&self.disk(), file)?;
            if !entries_named(history.index(), name).is_empty() {
                let id = find_entry(history.index(), "until", name)?;
                self.condition = Some(Until::Entry(id.to_string()));
            }
        }
        Ok(())
    }

    /// Returns whether entries of subagents are printed. JSON output always includes them.
    fn prints_agents(&self) -> bool {
        self.filter.common.sidechains || self.json
    }
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let mut args = args.clone();
    args.read_condition()?;
    let targets = Targets::of(ui, &args)?;
    let context = session::context(ui);
    let is_archived = |file: &PathBuf| context.is_archived(file);
    let is_of_other = |file: &PathBuf| context.maker(file).is_some();
    if targets
        .files
        .iter()
        .any(|file| is_archived(file) || is_of_other(file))
    {
        args.archive = Some(ui.disk());
    }
    // An archived file never grows.
    let never_grows = targets.folders.is_empty() && targets.files.iter().all(is_archived);
    let progress = Progress::start(ui);
    args.look_up(&targets)?;
    let args = &args;
    let selection = args.filter.selection()?;
    // Output is flushed whenever no event is pending, so Ctrl-C may end the process at any time.
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGINT, i32::from(exit::DONE), always)
        .context("cannot handle Ctrl-C")?;
    let mut out = Output::after(progress);
    let mut tail = TailCommand {
        ui,
        args,
        targets: &targets,
        printer: event_printer(ui, args, &targets, selection.is_empty(), &mut out),
        selection: &selection,
        above: FilterState::default(),
        mixed: HashSet::new(),
        text_matches: HashMap::new(),
        is_found: false,
        never_grows,
        is_incomplete: false,
    };
    let is_met = if args.waits() {
        tail.follow()?
    } else {
        tail.once()?
    };
    if args.condition.is_some() && !is_met {
        tail.note_earlier_match();
    }
    let is_incomplete = tail.is_incomplete;
    drop(tail);
    out.finish()?;
    let is_unmet = args.condition.is_some() && !is_met;
    Ok(exit::done_if(!is_incomplete && !is_unmet))
}

/// The files and folders to follow.
#[derive(Default)]
struct Targets {
    folders: Vec<PathBuf>,
    /// Printed whatever they contain, even files of subagents.
    files: Vec<PathBuf>,
}

impl Targets {
    fn of(ui: &Ui, args: &Args) -> Result<Self> {
        let mut targets = Self::default();
        let project = args.filter.common.project.as_deref();
        let latest = [PathBuf::from("latest")];
        let named = if args.targets.is_empty() {
            &latest[..]
        } else {
            &args.targets
        };
        for target in named {
            if RealDisk.is_folder(target) {
                if project.is_some() {
                    bail!("--project: name a session or nothing, not a folder");
                }
                targets.folders.push(target.clone());
                continue;
            }
            // With --follow or --until the file may be created later.
            let may_come = args.waits()
                && target.extension().is_some_and(|end| end == "jsonl")
                && !RealDisk.exists(target);
            let file = if may_come {
                target.clone()
            } else {
                session::find_in(ui, target, project)?.path
            };
            if !may_come || RealDisk.exists(&file) {
                check(ui, &file)?;
            }
            let file = std::path::absolute(&file);
            targets
                .files
                .push(file.context("cannot determine the current directory")?);
        }
        Ok(targets)
    }

    fn watcher(&self, args: &Args) -> Result<Watcher> {
        let options = if args.waits() {
            args.options()
        } else {
            // Only the names of the files are of interest.
            args.options().start(StartAt::Beginning).poll_only()
        };
        let mut watcher = Watcher::new(&options);
        for folder in &self.folders {
            watcher.add_folder(folder);
        }
        for file in &self.files {
            if args.waits() {
                watcher.add_file_at(file, args.start(file)?);
            } else {
                watcher.add_file(file);
            }
            if args.filter.common.sidechains {
                watcher.add_session(file);
            }
        }
        Ok(watcher)
    }

    fn has_folder(&self) -> bool {
        !self.folders.is_empty()
    }

    fn are_several(&self) -> bool {
        self.has_folder() || self.files.len() > 1
    }
}

/// Refuses a file that is not a session.
fn check(ui: &Ui, file: &Path) -> Result<(), transcript_reader::Error> {
    Source::open_on(&ui.disk(), file)?.check_messages()
}

/// Prints events as text or JSON.
enum EventPrinter<'o> {
    Text(Box<FollowPrinter<'o>>),
    Json(Json<'o>),
}

impl EventPrinter<'_> {
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Text(text) => text.flush(),
            Self::Json(json) => json.out.flush(),
        }
    }
}

fn event_printer<'o>(
    ui: &'o Ui,
    args: &Args,
    targets: &Targets,
    whole_turns: bool,
    out: &'o mut Output,
) -> EventPrinter<'o> {
    if args.json {
        return EventPrinter::Json(Json {
            ui,
            out: Records::new(out),
            opens: targets.has_folder(),
            changes: args.changes,
            raw_entries: args.raw_entries,
        });
    }
    let options = ui.render.clone();
    let options = options.thinking(args.thinking).tools(args.tools.tools());
    let scope = FollowScope {
        several: targets.are_several(),
        sidechains: args.filter.common.sidechains,
        whole_turns,
    };
    EventPrinter::Text(Box::new(FollowPrinter::new(out, &options, scope)))
}

struct TailCommand<'a, 'o> {
    ui: &'o Ui,
    args: &'a Args,
    targets: &'a Targets,
    printer: EventPrinter<'o>,
    selection: &'a EntrySelection,
    /// The state of the filter: the entries above decide about later ones.
    above: FilterState,
    /// The files with a message of the main conversation: sidechain entries there belong to a
    /// subagent. A file with only sidechain entries is the conversation of a subagent, whatever its
    /// name.
    mixed: HashSet<PathBuf>,
    /// The files that contain the text of `--until`, and whether it is in the last turn.
    text_matches: HashMap<PathBuf, bool>,
    /// Whether the entry of `--until` was found.
    is_found: bool,
    /// Whether there is nothing to wait for.
    never_grows: bool,
    /// Whether a file of a folder could not be read.
    is_incomplete: bool,
}

impl TailCommand<'_, '_> {
    /// Prints the current entries, file by file.
    fn once(&mut self) -> Result<bool> {
        let mut watcher = self.targets.watcher(self.args)?;
        // The first call makes the watcher list the files. Those that cannot be read are named below.
        let first = watcher.try_next();
        if let Err(error) = first
            && (!self.targets.has_folder() || RealDisk.is_folder(error.path()))
        {
            return Err(error.into());
        }
        let mut files: Vec<_> = watcher.files().map(Path::to_owned).collect();
        // Sorted, because the order of the file system differs between machines.
        files.sort();
        for file in files {
            let Err(error) = self.print_file(&file) else {
                continue;
            };
            // The other files of a folder are still printed.
            let is_of_file = error.downcast_ref::<transcript_reader::Error>().is_some();
            if !is_of_file || self.targets.files.contains(&file) {
                return Err(error);
            }
            self.ui.complain(&error);
            self.is_incomplete = true;
        }
        Ok(false)
    }

    fn print_file(&mut self, file: &Path) -> Result<()> {
        self.above = FilterState::default();
        check(self.ui, file)?;
        let options = self.args.options().start(self.args.start(file)?);
        self.print_all(file, &options.poll_only().once())?;
        match &mut self.printer {
            EventPrinter::Text(text) => Ok(text.finish()?),
            EventPrinter::Json(_) => Ok(()),
        }
    }

    /// Prints the current entries of a file, while another thread reads ahead by up to two batches.
    fn print_all(&mut self, file: &Path, options: &FollowOptions) -> Result<()> {
        thread::scope(|scope| {
            let (sender, batches) = mpsc::sync_channel::<Batch>(1);
            // An error means that the printing has ended, so the thread may end too.
            let read = move || _ = read_all(file, options, |batch| Ok(sender.send(batch)?));
            match thread::Builder::new().spawn_scoped(scope, read) {
                Ok(_) => batches
                    .iter()
                    .try_for_each(|batch| self.print_batch(file, batch)),
                // Without the other thread it takes longer.
                Err(_) => read_all(file, options, |batch| self.print_batch(file, batch)),
            }
        })
    }

    fn print_batch(&mut self, file: &Path, (events, error): Batch) -> Result<()> {
        for event in &events {
            self.print(file, event)?;
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Prints current and new entries. Returns whether the condition of `--until` was met.
    fn follow(&mut self) -> Result<bool> {
        let mut watcher = self.targets.watcher(self.args)?;
        let end = self.args.timeout;
        // The condition holds for the present entries, or never.
        let end = if self.never_grows {
            Some(Instant::now())
        } else {
            end.and_then(|timeout| Instant::now().checked_add(timeout))
        };
        let closed = Closed::stops(watcher.stopper());
        let mut is_live = false;
        loop {
            let mut event = watcher.try_next();
            if matches!(event, Ok(None)) {
                self.printer.flush()?;
                // Only now: an entry after a match may start another turn, and then the match does not count.
                if self.is_met(&mut watcher) {
                    return Ok(true);
                }
                is_live = true;
                let left = end.map_or(Duration::MAX, |end| {
                    end.saturating_duration_since(Instant::now())
                });
                event = watcher.next_within(left);
            }
            match event {
                Ok(Some(event)) => {
                    self.print(&event.path, &event.kind)?;
                    // Among several sessions, some turns have already ended. Only one that ends
                    // while following counts.
                    let is_end = is_live && self.targets.are_several() && ends_turn(&event);
                    if self.is_found || is_end && self.args.condition == Some(Until::TurnEnd) {
                        return Ok(true);
                    }
                }
                // The reader of the output is gone, which is only noticed by a write otherwise.
                Ok(None) if closed.is() => {
                    return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
                }
                Ok(None) => return Ok(false),
                // The other files are still followed.
                Err(error) if self.targets.are_several() => self.ui.complain(&error.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether the condition of `--until` holds. Called when all current entries are printed.
    fn is_met(&self, watcher: &mut Watcher) -> bool {
        match (&self.args.condition, &self.targets.files[..]) {
            (Some(Until::Text(_)), _) => self.text_matches.values().any(|is_last| *is_last),
            (Some(Until::TurnEnd), [file]) if !self.targets.are_several() => {
                let is_over =
                    |live: ConversationState<'_>| live.is_turn_over() && live.leaf().is_some();
                watcher.live(file).is_some_and(is_over)
            }
            _ => false,
        }
    }

    /// Prints one event.
    fn print(&mut self, path: &Path, event: &EventKind) -> Result<()> {
        let is_named = || self.targets.files.iter().any(|file| file == path);
        if is_subagent(path) && !self.args.prints_agents() && !is_named() {
            return Ok(());
        }
        match event {
            EventKind::Entry(entry) => return self.entry(path, entry),
            EventKind::Open { offset } => self.search_back(path, *offset)?,
            EventKind::Reset { .. } => _ = self.text_matches.remove(path),
            _ => {}
        }
        match &mut self.printer {
            EventPrinter::Text(text) => match file_event(event) {
                Some(event) => Ok(text.event(path, event)?),
                None => Ok(()),
            },
            EventPrinter::Json(json) => json.event(path, event),
        }
    }

    /// Prints an entry if the filter selects it, and checks the condition of `--until`.
    fn entry(&mut self, path: &Path, entry: &FollowedEntry) -> Result<()> {
        // Without a filter the JSON output needs only the envelope, and the line is not parsed.
        let is_every = self.selection.is_empty() && self.args.condition.is_none();
        if is_every
            && self.args.json
            && let Some(envelope) = entry.envelope()
        {
            let is_of_agent = self.is_of_agent(path, Some(envelope.kind()), envelope.flags());
            if let EventPrinter::Json(json) = &mut self.printer {
                return json.entry(path, entry, true, is_of_agent);
            }
        }
        let parsed = ParsedEntry::read(&entry.text)?;
        let one = parsed.entry_ref();
        let flags = one.map_or(Flags::empty(), |one| one.flags());
        let is_of_agent = self.is_of_agent(path, one.map(|one| one.kind()), flags);
        if self.args.prints_agents() || !is_of_agent {
            let selection = self.selection;
            let first = self.args.first.get(path);
            let is_late = first.is_none_or(|first| entry.offset >= *first);
            // The filter also sees the entries above the first one to print: a result is selected by its call.
            let wanted = selection.is_empty()
                || parsed
                    .body()
                    .is_some_and(|body| selection.selects(&body, &mut self.above) && is_late);
            match &mut self.printer {
                EventPrinter::Text(text) => {
                    let kinds = entry.changes.iter().map(|change| &change.kind);
                    let changes: Vec<_> = kinds.filter_map(change).collect();
                    let entry = NewEntry {
                        parsed: &parsed,
                        line: entry.line,
                        is_salvaged: entry.is_salvaged,
                        is_of_agent,
                        is_wanted: wanted,
                        changes: &changes,
                    };
                    text.entry(path, entry)?;
                }
                EventPrinter::Json(json) => json.entry(path, entry, wanted, is_of_agent)?,
            }
        }
        let Some(until) = &self.args.condition else {
            return Ok(());
        };
        // A prompt starts a turn, and `--until text:` is about the last one.
        if !is_of_agent
            && let Some(is_last) = self.text_matches.get_mut(path)
            && parsed.is_prompt()
        {
            *is_last = false;
        }
        if until.is(entry, is_of_agent) {
            match until {
                Until::Text(_) => _ = self.text_matches.insert(path.to_owned(), true),
                _ => self.is_found = true,
            }
        }
        Ok(())
    }

    /// Searches the entries before `offset`, where printing starts, for the condition of `--until`: an
    /// entry that already exists satisfies it. Prints the entry that does.
    fn search_back(&mut self, path: &Path, offset: u64) -> Result<()> {
        let until = match &self.args.condition {
            Some(until) if offset > 0 && *until != Until::TurnEnd => until.clone(),
            _ => return Ok(()),
        };
        let mut found = None;
        let source = Source::open_on(&self.args.disk(), path)?;
        offset_of_last(&source, 1, self.args.trailing(), |entry| {
            if until.is(entry, false) {
                found = Some(entry.clone());
            }
            let is_prompt =
                || ParsedEntry::read(&entry.text).is_ok_and(|parsed| parsed.is_prompt());
            // Read from the end: above the prompt of the last turn a text does not count.
            found.is_some() || matches!(until, Until::Text(_)) && is_prompt()
        })?;
        match found {
            Some(entry) if entry.offset < offset => self.entry(path, &entry),
            _ => Ok(()),
        }
    }

    fn note_earlier_match(&self) {
        if !self.text_matches.is_empty() {
            self.ui
                .note("the text is in an earlier turn; --until looks for it in the last turn");
        }
    }

    /// Returns whether an entry belongs to a subagent in the file of another conversation.
    fn is_of_agent(&mut self, path: &Path, kind: Option<EntryKind>, flags: Flags) -> bool {
        if is_subagent(path) {
            return false;
        }
        if flags.contains(Flags::SIDECHAIN) {
            return self.mixed.contains(path);
        }
        if kind.is_some_and(EntryKind::is_message) && !self.mixed.contains(path) {
            self.mixed.insert(path.to_owned());
        }
        false
    }
}

/// Some events, and the error after them.
type Batch = (Vec<EventKind>, Option<transcript_tail::Error>);

/// Passes the current events of a file to `take`.
fn read_all(
    file: &Path,
    options: &FollowOptions,
    mut take: impl FnMut(Batch) -> Result<()>,
) -> Result<()> {
    let mut follower = Follower::new(file, options);
    let (mut events, mut bytes) = (Vec::new(), 0);
    loop {
        let next = follower.try_next();
        if let Ok(Some(event)) = next {
            bytes += size_of::<EventKind>();
            if let EventKind::Entry(entry) = &event.kind {
                bytes += entry.text.len();
            }
            events.push(event.kind);
            if bytes >= BATCH_BYTES {
                take((std::mem::take(&mut events), None))?;
                bytes = 0;
            }
        } else {
            return take((events, next.err()));
        }
    }
}

/// Returns the offset of the last `count` entries of `file` that are printed; in text, only those of the
/// conversation count.
fn last_printed(args: &Args, file: &Path, count: usize) -> Result<u64> {
    let selection = args.filter.selection()?;
    let is_printed = |entry: &FollowedEntry, above: &mut FilterState| {
        let parsed = ParsedEntry::read(&entry.text);
        parsed.is_ok_and(|parsed| {
            let is_selected = selection.is_empty()
                || (parsed.body()).is_some_and(|body| selection.selects(&body, above));
            is_selected && (args.json || parsed.conversation().is_ok_and(|event| !event.is_empty()))
        })
    };
    if !selection.follows_calls() {
        let source = Source::open_on(&args.disk(), file)?;
        return Ok(offset_of_last(&source, count, args.trailing(), |entry| {
            is_printed(entry, &mut FilterState::default())
        })?);
    }
    // A result belongs to a call above it, so the file is read from its start.
    let (mut last, mut above, mut end) = (VecDeque::new(), FilterState::default(), 0);
    let options = args.follow_options().poll_only().once();
    read_all(file, &options, |(events, error)| {
        for event in &events {
            if let EventKind::Entry(entry) = event {
                end = entry.offset + entry.len;
                if is_printed(entry, &mut above) {
                    last.push_back(entry.offset);
                }
            }
            if last.len() > count {
                last.pop_front();
            }
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    })?;
    Ok(last.pop_front().unwrap_or(end))
}

/// Returns an event of a file, as text shows it.
fn file_event(event: &EventKind) -> Option<FileEvent<'_>> {
    Some(match event {
        EventKind::Open { .. } => FileEvent::Opened,
        EventKind::Damaged(finding) => FileEvent::Damaged(finding),
        EventKind::Reset { reason, .. } => match reason {
            Reset::Truncated => FileEvent::Truncated,
            _ => FileEvent::Replaced,
        },
        EventKind::Gone { torn, .. } => FileEvent::Gone { torn: *torn },
        _ => return None,
    })
}

/// Returns a change of the conversation, as text shows it.
fn change(change: &ChangeKind) -> Option<Change<'_>> {
    Some(match change {
        ChangeKind::Moved { from, fork, .. } => Change::Moved {
            from: from.as_deref(),
            fork: fork.as_deref(),
        },
        ChangeKind::Tombstoned { uuid } => Change::Tombstoned { uuid },
        ChangeKind::TurnEnded { .. } => Change::TurnEnded,
        _ => return None,
    })
}

fn ends_turn(event: &FollowEvent) -> bool {
    let EventKind::Entry(entry) = &event.kind else {
        return false;
    };
    let mut changes = entry.changes.iter().map(|change| &change.kind);
    changes.any(|change| matches!(change, ChangeKind::TurnEnded { .. }))
}

/// Returns whether the name of a file is that of a subagent.
fn is_subagent(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(agent_of).is_some()
}

/// The start that `--from` names.
#[derive(Clone, Debug)]
enum StartPoint {
    /// A byte of the file.
    Offset(u64),
    /// The name of an entry.
    Entry(String),
}

impl StartPoint {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match (text.parse(), text.strip_prefix("line:")) {
            (Ok(offset), _) => Self::Offset(offset),
            (Err(_), Some(line)) => Self::Entry(line.to_owned()),
            (Err(_), None) => Self::Entry(text.to_owned()),
        })
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected a number of seconds, such as 2 or 0.5".to_owned())
}
