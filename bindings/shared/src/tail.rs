//! Follows sessions while they are written.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use transcript::follow::{
    self, Checkpoint, EventKind, FollowEvent, FollowedEntry, Follower, StartAt, Stopper, Watcher,
};
use transcript::wire::{EntryRecord, TailRecord};
use transcript_format::object::Object;

use crate::failure::Failure;
use crate::out::{Out, Result};
use crate::sessions::{NoOthers, Place};

/// How many bytes of entries are sent together while more of them are there.
const BATCH: usize = 64 << 10;

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

pub(crate) fn follow(options: &FollowOptions, out: &mut Out<'_>) -> Result<()> {
    // A session that does not exist yet is waited for.
    let path = match options.place.find(&options.session) {
        Err(failure) if failure.kind == "not-found" && options.session.ends_with(".jsonl") => {
            PathBuf::from(&options.session)
        }
        found => found?,
    };
    let path = std::path::absolute(&path)?;
    let mut how = options.shared.options("start")?;
    let disk = options.place.disk()?;
    // What is only in the archive does not grow.
    if !path.exists() && disk.metadata(&path).is_ok() {
        how = how.disk(disk).once();
    }
    let follower = Follower::new(&path, &how);
    let stopper = follower.stopper();
    run(
        follower,
        &stopper,
        Follower::try_next,
        Follower::next_within,
        (&options.shared, options.shared.is_from_end("start")),
        out,
    )
}

pub(crate) fn watch(options: &WatchOptions, out: &mut Out<'_>) -> Result<()> {
    let mut watcher = Watcher::new(&options.shared.options("end")?);
    for place in &options.places {
        match place.is_dir() {
            true => watcher.add_folder(place),
            false => watcher.add_session(&options.place.find(&place.to_string_lossy())?),
        }
    }
    if options.places.is_empty() {
        watcher.add_folder(options.place.store()?.root());
    }
    let stopper = watcher.stopper();
    run(
        watcher,
        &stopper,
        Watcher::try_next,
        Watcher::next_within,
        (&options.shared, options.shared.is_from_end("end")),
        out,
    )
}

type Polled = std::result::Result<Option<FollowEvent>, transcript_reader::Error>;

fn run<F>(
    mut source: F,
    stopper: &Stopper,
    try_next: impl Fn(&mut F) -> Polled,
    next_within: impl Fn(&mut F, Duration) -> Polled,
    (options, is_from_end): (&Shared, bool),
    out: &mut Out<'_>,
) -> Result<()> {
    out.sender().stop_with(stopper.clone());
    if is_from_end {
        // What is written from now on is emitted only if it is known where the files end. Nobody need read meanwhile.
        out.hold(true)?;
        while let Some(event) = try_next(&mut source)? {
            write(&event, options, out)?;
        }
        out.sender().ready();
        out.hold(false)?;
    } else {
        out.sender().ready();
    }
    let next = |source: &mut F| match options.once {
        true => try_next(source),
        false => next_within(source, Duration::MAX),
    };
    while let Some(event) = next(&mut source)? {
        let mut bytes = write(&event, options, out)?;
        while bytes < BATCH
            && let Some(event) = try_next(&mut source)?
        {
            bytes += write(&event, options, out)?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Writes an event, and the changes that it made. Returns about how many bytes it has.
fn write(event: &FollowEvent, options: &Shared, out: &mut Out<'_>) -> Result<usize> {
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
