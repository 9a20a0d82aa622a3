//! Follows sessions while they are written.

use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::Deserialize;
use transcript_engine::follow::{
    self, Checkpoint, EventKind, FollowEvent, FollowedEntry, Follower, Polling, StartAt, Watcher,
};
use transcript_engine::wire::{EntryRecord, TailRecord};
use transcript_format::object::Object;
use transcript_storage::crew::{Next, Task};

use crate::failure::Failure;
use crate::out::{Out, Result};
use crate::records::Records;
use crate::sessions::{NoOthers, Place};

/// How many bytes of entries are sent together while more of them are there.
const BATCH: usize = 64 << 10;

/// How many events are found in one step before it is known where the files end.
const EVENTS: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FollowOptions {
    session: String,
    #[serde(flatten)]
    shared: Shared,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WatchOptions {
    /// Folders of projects, and sessions; all sessions of the store if there are none.
    #[serde(default, rename = "in")]
    places: Vec<PathBuf>,
    #[serde(flatten)]
    shared: Shared,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shared {
    /// Where to start: `start`, `end`, or a checkpoint.
    #[serde(default)]
    from: Option<String>,
    /// How many of the last entries to start with.
    last: Option<usize>,
    /// Whether to emit what entries change in the conversation.
    #[serde(default)]
    changes: bool,
    /// Whether to end at the end of the file.
    #[serde(default)]
    once: bool,
    /// Whether entries have their whole line.
    #[serde(default)]
    raw_entries: bool,
}

impl Shared {
    /// Returns whether only what is written later is emitted.
    fn is_from_end(&self, from: &str) -> bool {
        self.last.is_none() && self.from.as_deref().unwrap_or(from) == "end"
    }

    fn options(&self, from: &str) -> std::result::Result<follow::FollowOptions, Failure> {
        let start = match (self.last, self.from.as_deref().unwrap_or(from)) {
            (Some(last), _) => StartAt::Last(last),
            (None, "start") => StartAt::Beginning,
            (None, "end") => StartAt::End,
            (None, checkpoint) => StartAt::Checkpoint(
                checkpoint
                    .parse::<Checkpoint>()
                    .map_err(|error| Failure::options(format!("from: {error}")))?,
            ),
        };
        let mut options = follow::FollowOptions::new().start(start);
        if self.changes {
            options = options.changes();
        }
        if self.once {
            options = options.once();
        }
        Ok(options)
    }
}

/// Follows a session.
pub(crate) fn follow(options: FollowOptions) -> std::result::Result<Records, Failure> {
    start(Following::Follow(options))
}

/// Follows many sessions.
pub(crate) fn watch(options: WatchOptions) -> std::result::Result<Records, Failure> {
    start(Following::Watch(options))
}

fn start(following: Following) -> std::result::Result<Records, Failure> {
    let make = |sender| Tail {
        out: Some(Out::new(sender)),
        following,
        source: None,
        is_once: false,
        is_started: false,
    };
    Records::in_steps(make, |tail, task| match tail.step(task) {
        Ok(next) if next != Next::End => ControlFlow::Continue(next),
        result => ControlFlow::Break(match tail.out.take() {
            Some(out) => out.finish(result.map(drop)),
            None => Ok(()),
        }),
    })
}

/// A function that follows files, whose steps the crew runs.
struct Tail {
    following: Following,
    /// `None` before the first step.
    source: Option<Source>,
    /// Whether it ends where the files end.
    is_once: bool,
    /// Whether it is known where the files end, if that matters.
    is_started: bool,
    out: Option<Out>,
}

enum Following {
    Follow(FollowOptions),
    Watch(WatchOptions),
}

enum Source {
    Follower(Box<Follower>),
    Watcher(Box<Watcher>),
}

impl Source {
    fn try_next(&mut self) -> std::result::Result<Option<FollowEvent>, transcript_reader::Error> {
        match self {
            Self::Follower(follower) => follower.try_next(),
            Self::Watcher(watcher) => watcher.try_next(),
        }
    }

    fn poll_in(&mut self, task: &Task) -> std::result::Result<Polling, transcript_reader::Error> {
        match self {
            Self::Follower(follower) => follower.poll_in(task),
            Self::Watcher(watcher) => watcher.poll_in(task),
        }
    }
}

impl Following {
    fn shared(&self) -> &Shared {
        match self {
            Self::Follow(options) => &options.shared,
            Self::Watch(options) => &options.shared,
        }
    }

    fn default_start(&self) -> &'static str {
        match self {
            Self::Follow(_) => "start",
            Self::Watch(_) => "end",
        }
    }

    /// Returns what follows the files, and whether it ends where they end.
    fn open(&self) -> std::result::Result<(Source, bool), Failure> {
        let how = self.shared().options(self.default_start())?;
        match self {
            Self::Follow(options) => options.open(how),
            Self::Watch(options) => Ok((options.open(&how)?, options.shared.once)),
        }
    }
}

impl FollowOptions {
    fn open(&self, mut how: follow::FollowOptions) -> std::result::Result<(Source, bool), Failure> {
        // A session that does not exist yet is waited for.
        let path = match self.place.find(&self.session) {
            Err(failure) if failure.kind == "not-found" && self.session.ends_with(".jsonl") => {
                PathBuf::from(&self.session)
            }
            found => found?,
        };
        let path = std::path::absolute(&path)?;
        let disk = self.place.disk()?;
        // What is only in the archive does not grow.
        let is_archived = !path.exists() && disk.metadata(&path).is_ok();
        if is_archived {
            how = how.disk(disk).once();
        }
        let follower = Source::Follower(Box::new(Follower::new(&path, &how)));
        Ok((follower, is_archived || self.shared.once))
    }
}

impl WatchOptions {
    fn open(&self, how: &follow::FollowOptions) -> std::result::Result<Source, Failure> {
        let mut watcher = Watcher::new(how);
        for place in &self.places {
            match place.is_dir() {
                true => watcher.add_folder(place),
                false => watcher.add_session(&self.place.find(&place.to_string_lossy())?),
            }
        }
        if self.places.is_empty() {
            watcher.add_folder(self.place.store()?.root());
        }
        Ok(Source::Watcher(Box::new(watcher)))
    }
}

impl Tail {
    fn step(&mut self, task: &Task) -> Result<Next> {
        let Some(out) = &mut self.out else {
            return Ok(Next::End);
        };
        let options = self.following.shared();
        let Some(source) = &mut self.source else {
            let (source, is_once) = self.following.open()?;
            self.source = Some(source);
            self.is_once = is_once;
            return Ok(Next::Again);
        };
        if !self.is_started {
            // What is written from now on is emitted only if it is known where the files end. Nobody need read meanwhile.
            out.hold(true)?;
            let mut events = 0;
            while options.is_from_end(self.following.default_start())
                && let Some(event) = source.try_next()?
            {
                write(&event, options, out)?;
                events += 1;
                if events == EVENTS {
                    return Ok(Next::Again);
                }
            }
            self.is_started = true;
            out.sender().ready();
            out.hold(false)?;
        }
        if !out.sender().has_room() {
            return Ok(Next::Wait);
        }
        let mut bytes = 0;
        while bytes < BATCH {
            let polled = match self.is_once {
                true => source.try_next()?.map_or(Polling::Stopped, Polling::Event),
                false => source.poll_in(task)?,
            };
            match polled {
                Polling::Event(event) => bytes += write(&event, options, out)?,
                Polling::Wait(next) => {
                    out.flush()?;
                    return Ok(next);
                }
                Polling::Stopped => return Ok(Next::End),
            }
        }
        out.flush()?;
        Ok(Next::Again)
    }
}

/// Writes an event, and the changes that it made. Returns about how many bytes it has.
fn write(event: &FollowEvent, options: &Shared, out: &mut Out) -> Result<usize> {
    let EventKind::Entry(entry) = &event.kind else {
        if let Some(record) = TailRecord::of_event(&event.path, &event.kind) {
            out.record(&record)?;
        }
        return Ok(0);
    };
    let mut record = record(entry, options.raw_entries);
    record.path = Some(event.path.to_string_lossy());
    let mut line = Vec::with_capacity(entry.text.len() + 512);
    record.write(&mut line, |json| json.into())?;
    // Where a follower continues after this entry.
    line.truncate(line.trim_ascii_end().len().saturating_sub(1));
    let checkpoint = event.checkpoint();
    line.extend_from_slice(format!(",\"checkpoint\":\"{checkpoint}\"}}").as_bytes());
    out.json(&line)?;
    for change in &entry.changes {
        if let Some(record) = TailRecord::of_change(&event.path, change) {
            out.record(&record)?;
        }
    }
    Ok(line.len())
}

fn record(entry: &FollowedEntry, raw_entry: bool) -> EntryRecord<'_> {
    let mut record = match entry.envelope() {
        Some(envelope) => EntryRecord::of_line(&entry.text, &envelope, raw_entry),
        None => {
            let object = Object::parse(&entry.text).ok();
            let id = |name| Some(object.as_ref()?.str(name)?.into_owned());
            let mut record = EntryRecord::of_body(&entry.text, raw_entry);
            (record.uuid, record.parent_uuid) = (id("uuid"), id("parentUuid"));
            record
        }
    };
    record.line = entry.line;
    record.offset = entry.offset;
    record.len = entry.len;
    if entry.is_salvaged {
        record.via = vec!["salvage".into()];
    } else if record.parent_uuid.is_some() {
        record.via = vec!["parent".into()];
    }
    record
}
