//! Follows sessions while they are written.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use transcript_format::object::Object;
use transcript_tail::{
    Checkpoint, EventKind, FollowEvent, FollowOptions, FollowedEntry, Follower, StartAt, Watcher,
};

use crate::context::Context;
use crate::failure::Failure;
use crate::sink::{Result, Sink, shown};
use crate::wire::{EntryRecord, TailRecord};

/// The options of `follow`: the session, the start, the records.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FollowSettings {
    /// The session: a path, an id, the start of one, a title, the id of a subagent, or `latest`.
    session: PathBuf,
    /// The start: `start`, `end`, or the `checkpoint` of an entry after which to continue.
    #[serde(default = "first")]
    from: String,
    /// Starts with this number of the last entries instead.
    last: Option<usize>,
    /// Whether what entries change in the conversation is returned, too.
    #[serde(default)]
    changes: bool,
    /// Whether it ends at the end of the file.
    #[serde(default)]
    once: bool,
    /// Whether each entry has its whole line.
    #[serde(default)]
    raw_entries: bool,
}

/// The options of `watch`: the sessions, the start, the records.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchSettings {
    /// Folders of projects, and sessions; all sessions of the store if there are none.
    #[serde(default, rename = "in")]
    places: Vec<PathBuf>,
    /// The start: `start`, `end`, or the `checkpoint` of an entry after which to continue.
    #[serde(default = "end")]
    from: String,
    /// Starts with this number of the last entries instead.
    last: Option<usize>,
    /// Whether what entries change in the conversation is returned, too.
    #[serde(default)]
    changes: bool,
    /// Whether it ends at the ends of the files.
    #[serde(default)]
    once: bool,
    /// Whether each entry has its whole line.
    #[serde(default)]
    raw_entries: bool,
}

/// The followers of files, and the form of their events.
#[derive(Debug)]
pub struct Following {
    /// The files.
    pub files: FollowedFiles,
    /// Whether it ends where the files end.
    pub is_once: bool,
    /// Whether only what is written later is emitted.
    pub is_from_end: bool,
    raw_entries: bool,
}

/// The files that are followed.
#[derive(Debug)]
pub enum FollowedFiles {
    /// One session.
    Follower(Box<Follower>),
    /// Many sessions.
    Watcher(Box<Watcher>),
}

fn first() -> String {
    "start".to_owned()
}

fn end() -> String {
    "end".to_owned()
}

fn follow_options(
    (last, from): (Option<usize>, &str),
    changes: bool,
    once: bool,
) -> std::result::Result<FollowOptions, Failure> {
    let start = match (last, from) {
        (Some(last), _) => StartAt::Last(last),
        (None, "start") => StartAt::Beginning,
        (None, "end") => StartAt::End,
        (None, checkpoint) => {
            let checkpoint = checkpoint.parse::<Checkpoint>();
            StartAt::Checkpoint(checkpoint.map_err(|error| Failure::option("from", error))?)
        }
    };
    let mut options = FollowOptions::new().start(start);
    if changes {
        options = options.changes();
    }
    if once {
        options = options.once();
    }
    Ok(options)
}

impl FollowSettings {
    /// Opens the session. One that does not exist yet is waited for.
    ///
    /// # Errors
    /// When an option cannot be used, or the session is not found.
    pub fn open(&self, context: &Context) -> std::result::Result<Following, Failure> {
        let from = &*self.from;
        let mut options = follow_options((self.last, from), self.changes, self.once)?;
        let found = context.find(&self.session, None);
        let is_file = self.session.extension().is_some_and(|end| end == "jsonl");
        let path = match found {
            Err(error) if error.is_missing() && is_file => self.session.clone(),
            found => found?.path,
        };
        let path = std::path::absolute(&path)?;
        // A file that is only in the archive never grows: to wait for it would be to wait forever.
        let disk = context.read_disk();
        let live_disk = context.live_disk();
        let is_archived = live_disk.metadata(&path).is_err() && disk.metadata(&path).is_ok();
        options = if is_archived {
            options.disk(Arc::clone(disk)).once()
        } else {
            options.disk(Arc::clone(live_disk) as _)
        };
        Ok(Following {
            files: FollowedFiles::Follower(Box::new(Follower::new(&path, &options))),
            is_once: is_archived || self.once,
            is_from_end: self.last.is_none() && from == "end",
            raw_entries: self.raw_entries,
        })
    }
}

impl WatchSettings {
    /// Opens the folders and sessions.
    ///
    /// # Errors
    /// When an option cannot be used, or a session is not found.
    pub fn open(&self, context: &Context) -> std::result::Result<Following, Failure> {
        let from = &*self.from;
        let options = follow_options((self.last, from), self.changes, self.once)?;
        let options = options.disk(Arc::clone(context.live_disk()) as _);
        let mut watcher = Watcher::new(&options);
        for place in &self.places {
            if context.live_disk().is_folder(place) {
                watcher.add_folder(place);
            } else {
                watcher.add_session(&context.find(place, None)?.path);
            }
        }
        if self.places.is_empty() {
            for store in context.stores()? {
                watcher.add_folder(store.root());
            }
        }
        Ok(Following {
            files: FollowedFiles::Watcher(Box::new(watcher)),
            is_once: self.once,
            is_from_end: self.last.is_none() && from == "end",
            raw_entries: self.raw_entries,
        })
    }
}

impl Following {
    /// Writes the records of an event, and of the changes that it made. Returns about how many bytes they have.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write(&self, event: &FollowEvent, sink: &mut dyn Sink) -> Result<usize> {
        let EventKind::Entry(entry) = &event.kind else {
            if let Some(record) = TailRecord::from_event(&event.path, &event.kind) {
                sink.record(&record)?;
            }
            return Ok(0);
        };
        let mut record = entry_record(entry, self.raw_entries);
        record.path = Some(event.path.to_string_lossy());
        record.checkpoint = Some(event.checkpoint().to_string());
        let mut line = Vec::with_capacity(entry.text.len() + 512);
        let is_terminal = sink.is_terminal();
        record.write(&mut line, |json| shown(is_terminal, json))?;
        sink.json(&line)?;
        for change in &entry.changes {
            if let Some(record) = TailRecord::from_change(&event.path, change) {
                sink.record(&record)?;
            }
        }
        Ok(line.len())
    }
}

/// Returns the record of an entry.
#[must_use]
pub fn entry_record(entry: &FollowedEntry, raw_entry: bool) -> EntryRecord<'_> {
    let mut record = match entry.envelope() {
        Some(envelope) => EntryRecord::from_line(&entry.text, &envelope, raw_entry),
        None => {
            let object = Object::parse(&entry.text).ok();
            let id = |name| Some(object.as_ref()?.str(name)?.into_owned());
            let mut record = EntryRecord::from_body(&entry.text, raw_entry);
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
