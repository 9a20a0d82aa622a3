//! Followers as scripts implement them, each with one flaw that the model must catch.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::model::{Due, Reader};
use crate::sequences::{ALL, Op, Run, Tally};
use crate::support::{fast_folder, rng};
use crate::world::World;

/// The flaw of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// None that lines can show: it reads the whole file at each poll.
    None,
    /// Counts the offset in characters.
    Characters,
    /// Decodes bytes before their line is complete.
    Decoded,
    /// Moves the offset past an unfinished line.
    Passed,
    /// Emits an unfinished line.
    Early,
    /// Waits for a file that became shorter to grow again.
    NotShorter,
    /// Detects another file by its length only.
    ByLength,
    /// Reads the open file, whichever file has the name.
    ByDescriptor,
    /// Does not read the old file to its end.
    NotDrained,
    /// Emits the unfinished rest as a line when the file is removed.
    TornAsLine,
    /// Starts over after a restart.
    Forgetful,
}

struct Naive {
    path: PathBuf,
    flaw: Flaw,
    file: Option<File>,
    /// The emitted bytes.
    emitted: Vec<u8>,
    /// The text that was read and not emitted yet.
    text: String,
}

impl Naive {
    fn new(path: &Path, flaw: Flaw) -> Self {
        Self {
            path: path.to_owned(),
            flaw,
            file: None,
            emitted: Vec::new(),
            text: String::new(),
        }
    }

    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.flaw == Flaw::NotDrained && self.is_other().unwrap_or(false) {
            self.open();
        }
        if self.file.is_none() {
            self.open();
        }
        loop {
            let Some(file) = &self.file else {
                return lines;
            };
            let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            self.read(&bytes, &mut lines);
            if self.flaw == Flaw::ByDescriptor {
                return lines;
            }
            match self.is_other() {
                Some(true) => self.open(),
                Some(false) => return lines,
                None => {
                    let rest = bytes.get(self.emitted.len()..).unwrap_or_default();
                    if self.flaw == Flaw::TornAsLine {
                        lines.push(String::from_utf8_lossy(rest).into_owned());
                        self.emitted = bytes;
                    }
                    return lines;
                }
            }
        }
    }

    /// Returns whether another file has the name; `None` when there is none.
    fn is_other(&self) -> Option<bool> {
        let named = fs::metadata(&self.path).ok()?;
        let file = self.file.as_ref()?.metadata().ok()?;
        Some(named.ino() != file.ino())
    }

    fn open(&mut self) {
        if self.file.is_some() {
            self.emitted.clear();
            self.text.clear();
        }
        self.file = File::open(&self.path).ok();
    }

    fn read(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        let is_other = match self.flaw {
            Flaw::NotShorter => false,
            Flaw::ByLength => bytes.len() < self.emitted.len(),
            Flaw::Characters | Flaw::Decoded | Flaw::Passed | Flaw::Early => {
                bytes.len() < self.emitted.len()
            }
            _ => !bytes.starts_with(&self.emitted),
        };
        if is_other {
            self.emitted.clear();
            self.text.clear();
        }
        let new = bytes.get(self.emitted.len()..).unwrap_or_default();
        match self.flaw {
            Flaw::Characters => {
                let end = new.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                let text = String::from_utf8_lossy(&new[..end]);
                // Treats the number of characters as a number of bytes.
                self.emitted
                    .resize(self.emitted.len() + text.chars().count(), 0);
                lines.extend(text.lines().map(str::to_owned));
            }
            Flaw::Decoded => {
                self.text += &String::from_utf8_lossy(new);
                self.emitted.extend(new);
                while let Some((line, rest)) = self.text.split_once('\n') {
                    lines.push(line.to_owned());
                    self.text = rest.to_owned();
                }
            }
            Flaw::Passed | Flaw::Early => {
                let text = String::from_utf8_lossy(new).into_owned();
                let whole = text.split_inclusive('\n');
                let is_emitted = |line: &&str| self.flaw == Flaw::Early || line.ends_with('\n');
                let emitted = whole.filter(is_emitted);
                lines.extend(emitted.map(|line| line.trim_end_matches('\n').to_owned()));
                self.emitted.extend(new);
            }
            _ => {
                let end = new.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                let text = String::from_utf8_lossy(&new[..end]);
                lines.extend(text.split_terminator('\n').map(str::to_owned));
                self.emitted.extend(&new[..end]);
            }
        }
    }
}

impl Reader for Naive {
    /// Only compares lines that are objects, because it cannot report others.
    fn look(&mut self, due: &[Due]) -> Result<(), String> {
        let emitted = self.lines();
        let is_object = |line: &String| {
            // Invalid UTF-8 was replaced by that character.
            let is_text = !line.contains('\u{fffd}');
            is_text && serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(line).is_ok()
                || self.flaw == Flaw::TornAsLine && line.starts_with('{') && !line.ends_with('}')
        };
        let emitted: Vec<String> = emitted.into_iter().filter(is_object).collect();
        let due = due.iter().filter_map(|due| match due {
            Due::FollowedEntry { text, .. } => Some(text.clone()),
            _ => None,
        });
        let due: Vec<String> = due.collect();
        if emitted == due {
            return Ok(());
        }
        let lost = due.iter().filter(|line| !emitted.contains(line)).count();
        let other = emitted.iter().filter(|line| !due.contains(line)).count();
        Err(format!("{lost} lost, {other} doubled or torn"))
    }

    fn restart(&mut self) {
        self.file = None;
        if self.flaw == Flaw::Forgetful {
            self.emitted.clear();
        }
    }

    fn place(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Returns how many of 200 sequences of `ops` the follower fails.
fn failures(flaw: Flaw, ops: &[Op]) -> usize {
    let mut rng = rng(&format!("naive, {flaw:?}"));
    let mut failures = 0;
    for _ in 0..200 {
        let read = |world: &World| Naive::new(&world.path, flaw);
        let mut tally = Tally::default();
        let seed = rng.next_u64();
        let run = Run::sequence(seed, fast_folder(), ops, usize::MAX, read, &mut tally);
        failures += usize::from(run.is_err());
    }
    failures
}

#[test]
fn each_flaw_of_a_naive_tail_is_caught_where_it_belongs() {
    use Op::{Append, Cut, Delete, Refill, Replace, Restart, Rotate, TakeBack};
    let areas: [(Flaw, &[Op]); 11] = [
        (Flaw::Characters, &[Append]),
        (Flaw::Decoded, &[Append]),
        (Flaw::Passed, &[Append]),
        (Flaw::Early, &[Append, Append, TakeBack]),
        (Flaw::NotShorter, &[Append, Cut]),
        (Flaw::ByLength, &[Append, Refill]),
        (Flaw::ByDescriptor, &[Append, Replace]),
        (Flaw::NotDrained, &[Append, Rotate]),
        (Flaw::TornAsLine, &[Append, Delete]),
        (Flaw::Forgetful, &[Append, Restart]),
        (Flaw::None, &ALL),
    ];
    for (flaw, ops) in areas {
        let failures = failures(flaw, ops);
        println!("naive, {flaw:?}: {failures} of 200 sequences of {ops:?} lose, double or tear");
        match flaw {
            Flaw::None => assert_eq!(failures, 0),
            _ => assert!(failures > 10, "{flaw:?}"),
        }
    }
}
