//! What a follower must tell, in the obvious way: with all bytes of all files at hand.

use std::path::Path;

use transcript_tail::{Checkpoint, Event, Follower, Options, Reset, Start, Told};

use crate::world::World;

/// Something that must be told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Due {
    Open(usize),
    Entry {
        offset: usize,
        line: u64,
        text: String,
    },
    /// A line that is no object: something must be said about it.
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

/// Where a perfect follower stands.
pub(crate) struct Model {
    pub(crate) cap: usize,
    current: Option<usize>,
    /// All that was told of the file.
    pub(crate) told: Vec<u8>,
    is_open_told: bool,
    is_gone: bool,
}

impl Model {
    pub(crate) fn new(cap: usize) -> Self {
        Self {
            cap,
            current: None,
            told: Vec::new(),
            is_open_told: false,
            is_gone: false,
        }
    }

    /// The process ended, and another one goes on from the checkpoint.
    pub(crate) fn restart(&mut self) {
        self.current = None;
        self.is_open_told = false;
        self.is_gone = false;
    }

    pub(crate) fn pending(&self, world: &World) -> usize {
        let current = self.current.map(|number| &world.files[number].bytes);
        current.map_or(0, |bytes| bytes.len() - self.told.len())
    }

    /// What must be told when somebody looks now.
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
            let (offset, torn) = (self.told.len(), bytes.len() - self.told.len());
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
        if old.is_some() && !self.told.is_empty() {
            due.push(Due::Reset(Reset::Replaced, self.told.len()));
            self.told.clear();
        }
        self.compare(&world.files[number].bytes, due);
        if due.len() == before && (self.is_gone || !self.is_open_told) {
            due.push(Due::Open(self.told.len()));
        }
        self.is_open_told = true;
        self.is_gone = false;
        self.current = Some(number);
    }

    /// Whether what was told still stands there.
    fn compare(&mut self, bytes: &[u8], due: &mut Vec<Due>) {
        if bytes.starts_with(&self.told) {
            return;
        }
        let reason = match bytes.len() < self.told.len() {
            true => Reset::Truncated,
            false => Reset::Replaced,
        };
        due.push(Due::Reset(reason, self.told.len()));
        self.told.clear();
    }

    fn tell_lines(&mut self, bytes: &[u8], due: &mut Vec<Due>) {
        while let Some(len) = bytes[self.told.len()..].iter().position(|b| *b == b'\n') {
            let offset = self.told.len();
            let line = 1 + self.told.iter().filter(|byte| **byte == b'\n').count() as u64;
            let content = &bytes[offset..offset + len];
            self.told.extend(&bytes[offset..=offset + len]);
            let object = serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(content);
            if len > self.cap {
                due.push(Due::TooLong { offset, line, len });
            } else if object.is_ok() {
                let text = String::from_utf8(content.to_vec()).unwrap();
                due.push(Due::Entry { offset, line, text });
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

/// Somebody who looks at a file now and then.
pub(crate) trait Reader {
    /// What it says is due, compared with what is due.
    fn look(&mut self, due: &[Due]) -> Result<(), String>;
    /// Its process ends, and another one goes on.
    fn restart(&mut self);
    /// The offset and the pending bytes, if it says so.
    fn place(&self) -> Option<(u64, u64)>;
}

/// Our follower.
pub(crate) struct Ours {
    follower: Follower,
    options: Options,
}

impl Ours {
    pub(crate) fn new(path: &Path, options: Options) -> Self {
        Self {
            follower: Follower::new(path, &options),
            options,
        }
    }
}

impl Reader for Ours {
    fn look(&mut self, due: &[Due]) -> Result<(), String> {
        let mut told = Vec::new();
        loop {
            match self.follower.try_next() {
                Ok(Some(next)) => told.push(next),
                Ok(None) => break,
                Err(error) => return Err(format!("failed: {error}, after {told:?}")),
            }
        }
        compare(due, &told)
    }

    fn restart(&mut self) {
        let checkpoint = self.follower.checkpoint().to_string();
        let checkpoint: Checkpoint = checkpoint.parse().unwrap();
        let options = self.options.clone().start(Start::Checkpoint(checkpoint));
        self.follower = Follower::new(self.follower.path(), &options);
    }

    fn place(&self) -> Option<(u64, u64)> {
        Some((self.follower.offset(), self.follower.pending_bytes()))
    }
}

/// Compares what was told with what was due.
pub(crate) fn compare(due: &[Due], told: &[Told]) -> Result<(), String> {
    let mut rest = told;
    for due in due {
        let wrong = || {
            let short = |text: String| text.chars().take(600).collect::<String>();
            let (due, told) = (format!("{due:?}"), format!("{:?}", rest.first()));
            Err(format!("due: {}\ntold: {}", short(due), short(told)))
        };
        if let Due::Damaged {
            offset,
            line,
            bytes,
        } = due
        {
            let about = |told: &&Told| is_about(told, *offset, *line, bytes);
            let count = rest.iter().take_while(about).count();
            if count == 0 {
                return wrong();
            }
            rest = &rest[count..];
            continue;
        }
        match rest.split_first() {
            Some((told, others)) if is(due, &told.event) => rest = others,
            _ => return wrong(),
        }
    }
    match rest.first() {
        None => Ok(()),
        Some(told) => Err(format!("not due: {told:?}")),
    }
}

fn is(due: &Due, event: &Event) -> bool {
    match (due, event) {
        (Due::Open(due), Event::Open { offset }) => *due as u64 == *offset,
        (Due::Entry { offset, line, text }, Event::Entry(entry)) => {
            *offset as u64 == entry.offset
                && Some(*line) == entry.line
                && *text == entry.text
                && text.len() as u64 == entry.len
                && !entry.is_salvaged
        }
        (Due::TooLong { offset, line, len }, Event::Bad(bad)) => {
            bad.code.as_str() == "B-LINE"
                && (*offset as u64, Some(*line), *len as u64) == (bad.offset, bad.line, bad.len)
        }
        (Due::Torn { offset, len }, Event::Bad(bad)) => {
            bad.code.as_str() == "L-TORN-TAIL"
                && (*offset as u64, *len as u64) == (bad.offset, bad.len)
        }
        (Due::Reset(due, at), Event::Reset { reason, offset }) => {
            due == reason && *at as u64 == *offset
        }
        (Due::Gone { offset, torn }, other) => {
            let (offset, torn) = (*offset as u64, *torn as u64);
            *other == Event::Gone { offset, torn }
        }
        _ => false,
    }
}

/// Whether an event tells of a damaged line, and only what stands in it.
fn is_about(told: &Told, offset: usize, line: u64, bytes: &[u8]) -> bool {
    let within = |at: u64, len: u64| {
        let start = usize::try_from(at).ok()?.checked_sub(offset)?;
        bytes.get(start..start + len as usize)
    };
    match &told.event {
        Event::Bad(bad) => bad.line == Some(line) && within(bad.offset, bad.len).is_some(),
        Event::Entry(entry) => {
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
