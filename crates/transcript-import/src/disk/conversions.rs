//! Conversions that were made: each is made once for the same source files, and few are kept.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use transcript_storage::{Metadata, ReadDisk};

use super::known::{Known, all_sources};
use super::lock::lock;
use super::shown::Shown;
use crate::Error;
use crate::conversation::Conversation;
use crate::entries::Entries;
use crate::state::{FileState, states};

/// The maximum number of conversions that are kept. The sizes of all are.
const MAX_KEPT: usize = 8;

/// The maximum number of lines that they have together, because each takes memory. The last conversion is kept in any case.
const MAX_KEPT_LINES: usize = 100_000;

/// A session as a file.
#[derive(Debug)]
pub(super) struct Converted {
    pub(super) entries: Entries,
    /// The offset of the end of each line.
    pub(super) ends: Vec<u64>,
}

impl Converted {
    pub(super) fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Slot {
    known: Option<Known>,
    converted: Option<Arc<Converted>>,
}

/// A conversion that is kept.
#[derive(Debug)]
struct Kept {
    key: String,
    slot: Arc<Mutex<Slot>>,
    lines: usize,
}

/// Reads the conversation of a session.
pub(super) type Read<'r> = &'r dyn Fn(&Shown) -> Result<Conversation, Error>;

/// The conversions of one home folder.
#[derive(Debug, Default)]
pub(super) struct Conversions {
    slots: Mutex<HashMap<String, Arc<Mutex<Slot>>>>,
    /// The slots that have a conversion, the one that was used last at the end.
    kept: Mutex<Vec<Kept>>,
    /// Whether something was made that [`Self::known`] has not returned yet.
    has_new: AtomicBool,
}

impl Conversions {
    /// Returns a session as a file, as its source files are now.
    pub(super) fn convert(
        &self,
        disk: &dyn ReadDisk,
        shown: &Shown,
        read: Read<'_>,
    ) -> io::Result<Arc<Converted>> {
        let slot = self.slot(shown);
        let converted = self.refreshed(disk, &mut lock(&slot), shown, read)?;
        self.keep(shown, slot, converted.entries.len());
        Ok(converted)
    }

    /// Returns the properties of the file of a session.
    pub(super) fn metadata(
        &self,
        disk: &dyn ReadDisk,
        shown: &Shown,
        read: Read<'_>,
    ) -> io::Result<Metadata> {
        let slot = self.slot(shown);
        let mut locked = lock(&slot);
        let known = locked.known.as_ref();
        let current = known.filter(|known| known.is_current(disk, shown));
        if let Some(known) = current {
            return Ok(known.metadata(shown));
        }
        let converted = self.refreshed(disk, &mut locked, shown, read)?;
        let known = locked.known.clone();
        drop(locked);
        self.keep(shown, slot, converted.entries.len());
        let known = known.ok_or(io::ErrorKind::NotFound)?;
        Ok(known.metadata(shown))
    }

    /// Takes over what another process knew. It is used as far as it is still true.
    pub(super) fn remember(&self, known: BTreeMap<String, Known>) {
        let mut slots = lock(&self.slots);
        for (key, known) in known {
            let slot = Slot {
                known: Some(known),
                converted: None,
            };
            slots
                .entry(key)
                .or_insert_with(|| Arc::new(Mutex::new(slot)));
        }
    }

    /// Returns what another process can use; `None` if nothing is new.
    pub(super) fn known(&self) -> Option<BTreeMap<String, Known>> {
        if !self.has_new.swap(false, Ordering::Relaxed) {
            return None;
        }
        let slots = lock(&self.slots).clone();
        let now = SystemTime::now();
        let known = slots.into_iter().filter_map(|(key, slot)| {
            // One that is being converted has nothing to say yet.
            let slot = slot.try_lock().ok()?;
            let known = slot.known.as_ref().filter(|known| known.is_settled(now));
            Some((key, known?.clone()))
        });
        Some(known.collect())
    }

    fn slot(&self, shown: &Shown) -> Arc<Mutex<Slot>> {
        Arc::clone(lock(&self.slots).entry(shown.key.clone()).or_default())
    }

    fn refreshed(
        &self,
        disk: &dyn ReadDisk,
        slot: &mut Slot,
        shown: &Shown,
        read: Read<'_>,
    ) -> io::Result<Arc<Converted>> {
        let known = slot.known.as_ref();
        let is_current = known.is_some_and(|known| known.is_current(disk, shown));
        if let Some(converted) = slot.converted.as_ref().filter(|_| is_current) {
            return Ok(Arc::clone(converted));
        }
        // Its files, and their place on the disk, may be those of an earlier state.
        slot.converted = None;
        // Looked at before they are read: what changes meanwhile makes them differ.
        let before = states(
            disk,
            shown
                .read_files()
                .chain(shown.beside.iter().map(|path| &**path)),
        );
        let conversation = read(shown).map_err(io_error)?;
        let sources = sources_of(&conversation, before, disk, shown);
        let entries = Entries::new(conversation, shown.subject());
        let (known, ends) =
            Known::of(&entries, sources, shown.version, slot.known.as_ref()).map_err(io_error)?;
        let converted = Arc::new(Converted { entries, ends });
        slot.known = Some(known);
        slot.converted = Some(Arc::clone(&converted));
        self.has_new.store(true, Ordering::Relaxed);
        Ok(converted)
    }

    /// Drops the conversions that were used longest ago if there are too many.
    fn keep(&self, shown: &Shown, slot: Arc<Mutex<Slot>>, lines: usize) {
        let dropped: Vec<Kept> = {
            let mut kept = lock(&self.kept);
            kept.retain(|kept| kept.key != shown.key);
            let key = shown.key.clone();
            kept.push(Kept { key, slot, lines });
            let mut lines = 0;
            let last = kept.iter().rev().take(MAX_KEPT);
            let fits = last.take_while(|kept| {
                lines += kept.lines;
                lines <= MAX_KEPT_LINES
            });
            let gone = kept.len() - fits.count().max(1);
            kept.drain(..gone).collect()
        };
        // Outside of the lock: another thread may be converting into the slot, and waits for nothing here.
        for Kept { slot, .. } in dropped {
            lock(&slot).converted = None;
        }
    }
}

/// Returns the states of all files that a conversation was read from.
fn sources_of(
    conversation: &Conversation,
    before: Vec<FileState>,
    disk: &dyn ReadDisk,
    shown: &Shown,
) -> Vec<FileState> {
    // Rows of a whole database have a version of their own.
    let sources = conversation.sources.iter();
    let sources = sources.filter(|source| source.table.is_none() || shown.version.is_none());
    let mut others: Vec<PathBuf> = sources.map(|source| source.path.clone()).collect();
    others.dedup();
    if shown.has_folder_of_rows {
        let folders = others.iter().filter_map(|path| path.parent());
        let folders: Vec<PathBuf> = folders.map(PathBuf::from).collect();
        others.extend(folders);
    }
    all_sources(before, others, disk)
}

pub(super) fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io { error, path } => io::Error::new(
            error.kind(),
            format!("{}: {error}", std::path::Path::display(&path)),
        ),
        error @ Error::NoSession { .. } => io::Error::new(io::ErrorKind::NotFound, error),
        error => io::Error::other(error),
    }
}
