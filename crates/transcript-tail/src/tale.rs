//! One file with the conversation in it: what [`Tailed`] finds, and what that changes.

use std::path::Path;
use std::sync::Arc;

use transcript_reader::{Error, ErrorKind};

use crate::event::{Event, Told};
use crate::live::LivePath;
use crate::options::Options;
use crate::place::Checkpoint;
use crate::start::{Start, Trailing};
use crate::tailed::Tailed;

#[derive(Debug)]
pub(crate) struct Tale {
    path: Arc<Path>,
    tailed: Tailed,
    options: Options,
    live: Option<LivePath>,
    /// The entries before this offset are not in `live` yet.
    behind: Option<u64>,
    error: Option<ErrorKind>,
}

impl Tale {
    pub(crate) fn new(path: Arc<Path>, options: &Options) -> Self {
        Self {
            tailed: Tailed::new(&path, options),
            live: options.has_changes.then(|| live_path(&path)),
            path,
            options: options.clone(),
            behind: None,
            error: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        self.tailed.checkpoint()
    }

    /// The conversation, as far as it was told; `None` when it is not asked for.
    pub(crate) fn live(&self) -> Option<&LivePath> {
        self.live.as_ref()
    }

    pub(crate) fn pending(&self) -> u64 {
        self.tailed.pending()
    }

    pub(crate) fn tailed(&mut self) -> &mut Tailed {
        &mut self.tailed
    }

    /// Whether the last error was another one.
    pub(crate) fn is_new_error(&mut self, error: &Error) -> bool {
        self.error.replace(error.kind()) != Some(error.kind())
    }

    pub(crate) fn forget_error(&mut self) {
        self.error = None;
    }

    /// Returns what comes next, if it is there by now.
    pub(crate) fn next(&mut self) -> Result<Option<Told>, Error> {
        if let Some(offset) = self.behind {
            self.catch_up(offset)?;
            self.behind = None;
        }
        let Some(mut event) = self.tailed.next()? else {
            return Ok(None);
        };
        if let Some(live) = &mut self.live {
            match &mut event {
                Event::Entry(entry) => live.add(entry.offset, &entry.text, &mut entry.changes),
                Event::Reset { .. } => *live = live_path(&self.path),
                Event::Open { offset } if *offset > 0 && live.is_empty() => {
                    self.behind = Some(*offset);
                }
                _ => {}
            }
        }
        Ok(Some(Told {
            path: Arc::clone(&self.path),
            event,
            place: self.tailed.place().clone(),
        }))
    }

    /// Reads the entries before `offset`, where following starts.
    fn catch_up(&mut self, offset: u64) -> Result<(), Error> {
        let options = Options {
            trailing: Trailing::Pending,
            is_once: false,
            ..self.options.clone()
        };
        let mut before = Tailed::new(&self.path, &options.start(Start::Beginning));
        let mut live = live_path(&self.path);
        let mut changes = Vec::new();
        while before.place().offset() < offset {
            match before.next()? {
                Some(Event::Entry(entry)) => {
                    live.add(entry.offset, &entry.text, &mut changes);
                    changes.clear();
                }
                // Should the file be another one by now, the next look will find out.
                Some(Event::Reset { .. }) | None => break,
                Some(_) => {}
            }
        }
        self.tailed.set_lines(before.place().lines());
        self.live = Some(live);
        Ok(())
    }
}

/// The conversation in the file of a session, before its first entry.
fn live_path(file: &Path) -> LivePath {
    let id = file.file_stem().and_then(|stem| stem.to_str());
    id.map_or_else(LivePath::new, LivePath::of_session)
}
