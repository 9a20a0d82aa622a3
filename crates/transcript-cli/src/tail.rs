//! `transcript tail`: what happens in sessions, while it happens.

mod json;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use jiff::tz::TimeZone;
use signal_hook::consts::SIGINT;
use transcript_format::names::agent_of;
use transcript_reader::Source;
use transcript_tail::{
    Entry, Error, Event, Follower, Options, Start, Told, Watcher, offset_of_last,
};

use crate::filter::{self, Filter};
use crate::pager::Output;
use crate::single::Single;
use crate::tell::{Live, Scope, Teller, Tools, Wanted};
use crate::text::Page;
use crate::until::Until;
use crate::{exit, screen, session};
use json::Json;

/// Print what is in sessions, and what comes
///
/// In the order of the file, as `replay` shows it. With -f it goes on until Ctrl-C; of several sessions
/// each has a label. Files are only read.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, the id of a session or the start of it, `latest`, or a folder: of a project, or
    /// of all
    #[arg(required = true, value_name = "SESSION|DIR")]
    targets: Vec<PathBuf>,
    /// Go on with what is written from now on, also to files that come later
    #[arg(short, long)]
    follow: bool,
    /// Start with the last N entries of each file; in text, of its conversation
    #[arg(short = 'n', value_name = "N", conflicts_with = "from")]
    last: Option<usize>,
    /// Start with the first line at or behind this byte
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
    /// Wait for this to be there, and stop: uuid:UUID, text:PREFIX (of a message), turn-end
    #[arg(long, value_name = "WHAT", value_parser = Until::parse)]
    until: Option<Until>,
    /// Stop after so many seconds; with --until the exit code is then 1
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Show subagents too
    #[arg(long)]
    sidechains: bool,
    #[command(flatten)]
    filter: Filter,
    /// Show what the agent thought
    #[arg(long)]
    thinking: bool,
    /// How much of tool calls and results to show
    #[arg(long, value_enum, default_value_t = Tools::Short)]
    tools: Tools,
    /// Print an object a line
    #[arg(long)]
    json: bool,
    /// Add the whole raw line to each entry of the JSON output
    #[arg(long, requires = "json")]
    raw_entries: bool,
    /// Add to the JSON output what each entry changes in the conversation
    #[arg(long, requires = "json")]
    changes: bool,
}

impl Args {
    /// Whether it waits for what comes.
    fn waits(&self) -> bool {
        self.follow || self.until.is_some()
    }

    /// How to follow `file`; without one, all files.
    fn options(&self, file: Option<&Path>) -> Result<Options> {
        let start = match (self.last, self.from, file) {
            (Some(count), _, Some(file)) if !self.json => Start::Offset(last_told(file, count)?),
            (Some(count), _, _) => Start::Last(count),
            (None, Some(offset), _) => Start::Offset(offset),
            (None, None, _) => Start::Beginning,
        };
        let options = Options::new().start(start);
        if self.changes || !self.json || self.until == Some(Until::TurnEnd) {
            Ok(options.changes())
        } else {
            Ok(options)
        }
    }
}

pub(crate) fn run(args: &Args, output: &screen::Options) -> Result<u8> {
    let targets = Targets::of(args)?;
    // Everything is written as soon as it is told.
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGINT, i32::from(exit::DONE), always)
        .context("cannot take Ctrl-C")?;
    let mut out = Output::plain();
    let mut tail = Tail {
        args,
        targets: &targets,
        look: look(args, &targets, &mut out, output),
        calls: filter::Calls::default(),
        mixed: HashSet::new(),
    };
    let is_met = match args.waits() {
        true => tail.follow()?,
        false => tail.once()?,
    };
    out.finish()?;
    Ok(match args.until.is_some() && !is_met {
        true => exit::NO,
        false => exit::DONE,
    })
}

/// What is followed.
#[derive(Default)]
struct Targets {
    folders: Vec<PathBuf>,
    /// They are told whatever they hold.
    files: Vec<PathBuf>,
}

impl Targets {
    fn of(args: &Args) -> Result<Self> {
        let mut targets = Self::default();
        for target in &args.targets {
            if target.is_dir() {
                targets.folders.push(target.clone());
                continue;
            }
            // A file may come later.
            let may_come = args.waits() && target.extension().is_some_and(|end| end == "jsonl");
            let file = match may_come {
                true => target.clone(),
                false => session::find(target)?,
            };
            let file = std::path::absolute(&file);
            targets
                .files
                .push(file.context("the current folder is unknown")?);
        }
        Ok(targets)
    }

    fn watcher(&self, args: &Args) -> Result<Watcher> {
        let only = self
            .files
            .first()
            .filter(|file| !self.are_several() && !args.sidechains && file.exists());
        let mut watcher = Watcher::new(&args.options(only.map(PathBuf::as_path))?);
        for folder in &self.folders {
            watcher.add_folder(folder);
        }
        for file in &self.files {
            if args.sidechains {
                watcher.add_session(file);
            } else {
                watcher.add_file(file);
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

/// How events are told.
enum Look<'o> {
    Text(Box<Live<'o>>),
    Json(Json<'o>),
}

fn look<'o>(
    args: &Args,
    targets: &Targets,
    out: &'o mut Output,
    output: &screen::Options,
) -> Look<'o> {
    if args.json {
        return Look::Json(Json {
            out,
            opens: targets.has_folder(),
            changes: args.changes,
            raw_entries: args.raw_entries,
        });
    }
    let wanted = Wanted {
        thinking: args.thinking,
        tools: args.tools,
    };
    let page = Page::new(out, screen::width());
    let teller = Teller::new(output.styles(), wanted, TimeZone::system(), page);
    let scope = Scope {
        several: targets.are_several(),
        sidechains: args.sidechains,
        whole_turns: args.filter.is_empty(),
    };
    Look::Text(Box::new(Live::new(teller, scope)))
}

struct Tail<'a, 'o> {
    args: &'a Args,
    targets: &'a Targets,
    look: Look<'o>,
    calls: filter::Calls,
    /// The files in which the main conversation has spoken: what is a sidechain there is that of a
    /// subagent. Other files may be about one, whatever their names.
    mixed: HashSet<PathBuf>,
}

impl Tail<'_, '_> {
    /// Tells what is there, file after file.
    fn once(&mut self) -> Result<bool> {
        let mut watcher = self.targets.watcher(self.args)?;
        // It knows the files once it has looked.
        watcher.try_next()?;
        let mut files: Vec<_> = watcher.files().map(Path::to_owned).collect();
        files.sort();
        for file in files {
            let options = self.args.options(Some(&file))?.poll_only();
            let mut follower = Follower::new(&file, &options);
            self.tell(|| follower.try_next())?;
            if let Look::Text(live) = &mut self.look {
                live.finish()?;
            }
        }
        Ok(false)
    }

    /// Tells what is there and what comes. Returns whether it was what is waited for.
    fn follow(&mut self) -> Result<bool> {
        let mut watcher = self.targets.watcher(self.args)?;
        let end = self
            .args
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let left = || {
            end.map_or(Duration::MAX, |end| {
                end.saturating_duration_since(Instant::now())
            })
        };
        self.tell(|| watcher.next_within(left()))
    }

    /// Tells what `next` gives until that is nothing, or what is waited for.
    fn tell(&mut self, mut next: impl FnMut() -> Result<Option<Told>, Error>) -> Result<bool> {
        loop {
            let told = match next() {
                Ok(Some(told)) => told,
                Ok(None) => return Ok(false),
                // The others go on.
                Err(error) if self.targets.are_several() => {
                    screen::complain(&error.into());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let path = &*told.path;
            let is_named = || self.targets.files.iter().any(|file| file == path);
            if is_subagent(path) && !self.args.sidechains && !is_named() {
                continue;
            }
            match (&told.event, &mut self.look) {
                (Event::Entry(entry), _) => {
                    if self.entry(path, entry)? {
                        return Ok(true);
                    }
                }
                (event, Look::Text(live)) => live.event(path, event)?,
                (event, Look::Json(json)) => json.event(path, event)?,
            }
        }
    }

    /// Tells an entry, if it is wanted. Returns whether it is what is waited for.
    fn entry(&mut self, path: &Path, entry: &Entry) -> Result<bool> {
        let single = Single::read(entry)?;
        let is_of_agent = self.is_of_agent(path, &single);
        if self.args.sidechains || !is_of_agent {
            let wanted = match single.body() {
                Some(body) => self.args.filter.wants(&body, &mut self.calls),
                None => self.args.filter.is_empty(),
            };
            match &mut self.look {
                Look::Text(live) => live.entry(path, &single, is_of_agent, wanted)?,
                Look::Json(json) => json.entry(path, &single, wanted)?,
            }
        }
        let until = self.args.until.as_ref();
        Ok(until.is_some_and(|until| until.is_met(entry, is_of_agent)))
    }

    /// Whether an entry is that of a subagent in the file of another conversation.
    fn is_of_agent(&mut self, path: &Path, single: &Single<'_>) -> bool {
        if is_subagent(path) {
            return false;
        }
        if single.is_sidechain() {
            return self.mixed.contains(path);
        }
        let is_message = single
            .candidate()
            .is_some_and(|one| one.kind().is_message());
        if is_message && !self.mixed.contains(path) {
            self.mixed.insert(path.to_owned());
        }
        false
    }
}

/// Where the last `count` entries of the conversation in `file` start.
fn last_told(file: &Path, count: usize) -> Result<u64> {
    let source = Source::open(file)?;
    let is_told = |entry: &Entry| {
        let single = Single::read(entry);
        single.is_ok_and(|single| {
            let told = single.conversation();
            told.is_ok_and(|told| !told.display.items().is_empty())
        })
    };
    Ok(offset_of_last(&source, count, is_told)?)
}

/// Whether a file is named as that of a subagent.
fn is_subagent(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(agent_of).is_some()
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected a number of seconds, such as 2 or 0.5".to_owned())
}
