//! A followed file with its conversation: the events of [`FileCursor`], and the changes that they
//! cause.

use std::path::Path;
use std::sync::Arc;

use transcript_reader::{Error, ErrorKind};

use crate::event::{EventKind, FollowEvent};
use crate::file_cursor::FileCursor;
use crate::file_position::Checkpoint;
use crate::last_turn::LastTurn;
use crate::live::{ConversationState, FollowedConversation};
use crate::options::FollowOptions;
use crate::start::{StartAt, Trailing};

#[derive(Debug)]
pub(crate) struct FollowedFile {
    path: Arc<Path>,
    cursor: FileCursor,
    options: FollowOptions,
    live: Option<FollowedConversation>,
    /// The entries before this offset still have to be added to `live`.
    catch_up_to: Option<u64>,
    /// `live` is the conversation of the last turn only, which is enough up to this offset.
    turn_end: Option<u64>,
    error: Option<ErrorKind>,
}

impl FollowedFile {
    pub(crate) fn new(path: Arc<Path>, options: &FollowOptions) -> Self {
        Self {
            cursor: FileCursor::new(&path, options),
            live: options.has_changes.then(|| conversation(&path, options)),
            path,
            options: options.clone(),
            catch_up_to: None,
            turn_end: None,
            error: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        self.cursor.checkpoint()
    }

    /// Returns the conversation up to the emitted events; `None` when it was not requested.
    pub(crate) fn live(&mut self) -> Option<ConversationState<'_>> {
        self.live.as_mut().map(FollowedConversation::state)
    }

    pub(crate) fn pending(&self) -> u64 {
        self.cursor.pending()
    }

    pub(crate) fn cursor(&mut self) -> &mut FileCursor {
        &mut self.cursor
    }

    /// Returns whether this error differs from the last one.
    pub(crate) fn is_new_error(&mut self, error: &Error) -> bool {
        self.error.replace(error.kind()) != Some(error.kind())
    }

    pub(crate) fn forget_error(&mut self) {
        self.error = None;
    }

    /// Returns the next event, if there is one now.
    pub(crate) fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        if let Some(offset) = self.catch_up_to {
            let turn = if self.options.is_quick {
                LastTurn::find(&self.path, &self.options, offset)?
            } else {
                None
            };
            let start = turn.map_or(StartAt::Beginning, |turn| StartAt::Offset(turn.start));
            self.catch_up(start, offset)?;
            self.catch_up_to = None;
            self.turn_end = turn.map(|turn| turn.end);
        }
        let offset = self.cursor.position().offset();
        if self.turn_end.take_if(|end| *end <= offset).is_some() {
            // The entries after the turn may depend on any entry before it, so the whole file is needed now. The caller handles the
            // entries before them first.
            self.options.is_quick = false;
            self.catch_up_to = Some(offset);
            return Ok(None);
        }
        let Some(event) = self.cursor.next(self.live.as_mut())? else {
            return Ok(None);
        };
        if let Some(live) = &mut self.live {
            match &event {
                EventKind::Reset { .. } => {
                    *live = conversation(&self.path, &self.options);
                    self.turn_end = None;
                }
                EventKind::Open { offset } if *offset > 0 && live.is_empty() => {
                    self.catch_up_to = Some(*offset);
                }
                _ => {}
            }
        }
        Ok(Some(FollowEvent {
            path: Arc::clone(&self.path),
            kind: event,
            position: self.cursor.position().clone(),
        }))
    }

    /// Reads the entries from `start` to `offset`, where following starts.
    fn catch_up(&mut self, start: StartAt, offset: u64) -> Result<(), Error> {
        let options = FollowOptions {
            trailing: Trailing::Pending,
            is_once: false,
            ..self.options.clone()
        };
        let mut before = FileCursor::new(&self.path, &options.start(start));
        let mut live = conversation(&self.path, &self.options);
        while before.position().offset() < offset {
            match before.next(Some(&mut live))? {
                // If the file was replaced, the next poll detects that.
                Some(EventKind::Reset { .. }) | None => break,
                Some(_) => {}
            }
        }
        live.start_here();
        if start == StartAt::Beginning {
            self.cursor.set_lines(before.position().lines());
        }
        self.live = Some(live);
        Ok(())
    }
}

/// Creates the conversation of a session file, before its first line.
fn conversation(file: &Path, options: &FollowOptions) -> FollowedConversation {
    FollowedConversation::new(file, options.line_cap)
}
