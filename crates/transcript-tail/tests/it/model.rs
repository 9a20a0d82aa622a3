//! A model of a follower: computes the expected events in the obvious way, from all bytes of all
//! files.

use std::path::Path;

use transcript_tail::{
    Checkpoint, EventKind, FollowEvent, FollowOptions, Follower, Reset, StartAt,
};

use crate::world::World;

/// An expected event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Due {
    Open(usize),
    FollowedEntry {
        offset: usize,
        line: u64,
        text: String,
    },
    /// A line that is not an object: some event must report it.
    Damaged {
        offset: usize,
        line: u64,
        bytes: Vec<u8>,
    },
    TooLong {
        offset: usize,
        line: u64,
        len: usize,
    },
    Torn {
        offset: usize,
        len: usize,
    },
    Reset(Reset, usize),
    Gone {
        offset: usize,
        torn: usize,
    },
}

/// The position of a perfect follower.
pub(crate) struct Model {
    pub(crate) cap: usize,
    current: Option<usize>,
    /// All bytes of the file that were emitted.
    pub(crate) emitted: Vec<u8>,
    open_reported: bool,
    is_gone: bool,
}

impl Model {
    pub(crate) fn new(cap: usize) -> Self {
        Self {
            cap,
            current: None,
            emitted: Vec::new(),
            open_reported: false,
            is_gone: false,
        }
    }

    /// The process ended, and another one continues from the checkpoint.
    pub(crate) fn restart(&mut self) {
        self.current = None;
        self.open_reported = false;
        self.is_gone = false;
    }

    pub(crate) fn pending(&self, world: &World) -> usize {
        let current = self.current.map(|number| &world.files[number].bytes);
        current.map_or(0, |bytes| bytes.len() - self.emitted.len())
    }

    /// Returns the events that a poll must emit now.
    pub(crate) fn look(&mut self, world: &World) -> Vec<Due> {
        let mut due = Vec::new();
        loop {
            let Some(current) = self.current else {
                match world.named {
                    Some(number) => self.open(number, None, world, &mut due),
                    None => return due,
                }
                continue;
            };
            let bytes = &world.files[current].bytes;
            self.compare(bytes, &mut due);
            self.tell_lines(bytes, &mut due);
            let (offset, torn) = (self.emitted.len(), bytes.len() - self.emitted.len());
            match world.named {
                None => {
                    if !self.is_gone {
                        due.push(Due::Gone { offset, torn });
                        self.is_gone = true;
                    }
                    return due;
                }
                Some(named) if named == current => {
                    if self.is_gone {
                        due.push(Due::Open(offset));
                        self.is_gone = false;
                    }
                    return due;
                }
                Some(named) => {
                    if torn > 0 {
                        due.push(Due::Torn { offset, len: torn });
                    }
                    self.open(named, Some(current), world, &mut due);
                }
            }
        }
    }

    fn open(&mut self, number: usize, old: Option<usize>, world: &World, due: &mut Vec<Due>) {
        let before = due.len();
        if old.is_some() && !self.emitted.is_empty() {
            due.push(Due::Reset(Reset::Replaced, self.emitted.len()));
            self.emitted.clear();
        }
        self.compare(&world.files[number].bytes, due);
        if due.len() == before && (self.is_gone || !self.open_reported) {
            due.push(Due::Open(self.emitted.len()));
        }
        self.open_reported = true;
        self.is_gone = false;
        self.current = Some(number);
    }

    /// Checks whether the emitted bytes are unchanged.
    fn compare(&mut self, bytes: &[u8], due: &mut Vec<Due>) {
        if bytes.starts_with(&self.emitted) {
            return;
        }
        let reason = if bytes.len() < self.emitted.len() {
            Reset::Truncated
        } else {
            Reset::Replaced
        };
        due.push(Due::Reset(reason, self.emitted.len()));
        self.emitted.clear();
    }

    fn tell_lines(&mut self, bytes: &[u8], due: &mut Vec<Due>) {
        while let Some(len) = bytes[self.emitted.len()..].iter().position(|b| *b == b'\n') {
            let offset = self.emitted.len();
            let line = 1 + self.emitted.iter().filter(|byte| **byte == b'\n').count() as u64;
            let content = &bytes[offset..offset + len];
            self.emitted.extend(&bytes[offset..=offset + len]);
            let object = serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(content);
            if len > self.cap {
                due.push(Due::TooLong { offset, line, len });
            } else if object.is_ok() {
                let text = String::from_utf8(content.to_vec()).unwrap();
                due.push(Due::FollowedEntry { offset, line, text });
            } else if !content.trim_ascii().is_empty() {
                let bytes = content.to_vec();
                due.push(Due::Damaged {
                    offset,
                    line,
                    bytes,
                });
            }
        }
    }
}

/// A reader that polls a file now and then.
pub(crate) trait Reader {
    /// Polls, and compares the events with the expected ones.
    fn look(&mut self, due: &[Due]) -> Result<(), String>;
    /// Its process ends, and another one continues.
    fn restart(&mut self);
    /// Returns the offset and the pending bytes, if known.
    fn place(&self) -> Option<(u64, u64)>;
}

/// Our follower.
pub(crate) struct Ours {
    follower: Follower,
    options: FollowOptions,
}

impl Ours {
    pub(crate) fn new(path: &Path, options: FollowOptions) -> Self {
        Self {
            follower: Follower::new(path, &options),
            options,
        }
    }
}

impl Reader for Ours {
    fn look(&mut self, due: &[Due]) -> Result<(), String> {
        let mut emitted = Vec::new();
        loop {
            match self.follower.try_next() {
                Ok(Some(next)) => emitted.push(next),
                Ok(None) => break,
                Err(error) => return Err(format!("failed: {error}, after {emitted:?}")),
            }
        }
        compare(due, &emitted)
    }

    fn restart(&mut self) {
        let checkpoint = self.follower.checkpoint().to_string();
        let checkpoint: Checkpoint = checkpoint.parse().unwrap();
        let options = self.options.clone().start(StartAt::Checkpoint(checkpoint));
        self.follower = Follower::new(self.follower.path(), &options);
    }

    fn place(&self) -> Option<(u64, u64)> {
        Some((self.follower.offset(), self.follower.pending_bytes()))
    }
}

/// Compares the emitted events with the expected ones.
pub(crate) fn compare(due: &[Due], emitted: &[FollowEvent]) -> Result<(), String> {
    let mut rest = emitted;
    for due in due {
        let wrong = || {
            let short = |text: String| text.chars().take(600).collect::<String>();
            let (due, emitted) = (format!("{due:?}"), format!("{:?}", rest.first()));
            Err(format!("due: {}\ntold: {}", short(due), short(emitted)))
        };
        if let Due::Damaged {
            offset,
            line,
            bytes,
        } = due
        {
            let about = |emitted: &&FollowEvent| is_about(emitted, *offset, *line, bytes);
            let count = rest.iter().take_while(about).count();
            if count == 0 {
                return wrong();
            }
            rest = &rest[count..];
            continue;
        }
        match rest.split_first() {
            Some((emitted, others)) if is(due, &emitted.kind) => rest = others,
            _ => return wrong(),
        }
    }
    match rest.first() {
        None => Ok(()),
        Some(emitted) => Err(format!("not due: {emitted:?}")),
    }
}

fn is(due: &Due, event: &EventKind) -> bool {
    match (due, event) {
        (Due::Open(due), EventKind::Open { offset }) => *due as u64 == *offset,
        (Due::FollowedEntry { offset, line, text }, EventKind::Entry(entry)) => {
            *offset as u64 == entry.offset
                && Some(*line) == entry.line
                && *text == entry.text
                && text.len() as u64 == entry.len
                && !entry.is_salvaged
        }
        (Due::TooLong { offset, line, len }, EventKind::Damaged(bad)) => {
            bad.code.as_str() == "B-LINE"
                && (*offset as u64, Some(*line), *len as u64) == (bad.offset, bad.line, bad.len)
        }
        (Due::Torn { offset, len }, EventKind::Damaged(bad)) => {
            bad.code.as_str() == "L-TORN-TAIL"
                && (*offset as u64, *len as u64) == (bad.offset, bad.len)
        }
        (Due::Reset(due, at), EventKind::Reset { reason, offset }) => {
            due == reason && *at as u64 == *offset
        }
        (Due::Gone { offset, torn }, other) => {
            let (offset, torn) = (*offset as u64, *torn as u64);
            *other == EventKind::Gone { offset, torn }
        }
        _ => false,
    }
}

/// Returns whether an event reports a damaged line, and only bytes of that line.
fn is_about(emitted: &FollowEvent, offset: usize, line: u64, bytes: &[u8]) -> bool {
    let within = |at: u64, len: u64| {
        let start = usize::try_from(at).ok()?.checked_sub(offset)?;
        bytes.get(start..start + len as usize)
    };
    match &emitted.kind {
        EventKind::Damaged(bad) => bad.line == Some(line) && within(bad.offset, bad.len).is_some(),
        EventKind::Entry(entry) => {
            entry.is_salvaged
                && entry.line == Some(line)
                && within(entry.offset, entry.len).is_some_and(|bytes| {
                    // Salvage drops the NULs of a hole.
                    let is_text = |byte: &u8| *byte != 0;
                    let text: Vec<u8> = bytes.iter().copied().filter(is_text).collect();
                    text.trim_ascii() == entry.text.as_bytes() || entry.text.contains('\u{fffd}')
                })
        }
        _ => false,
    }
}
