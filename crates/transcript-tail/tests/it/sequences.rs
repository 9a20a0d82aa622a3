//! Random sequences of everything that can happen to a file, compared with the model.

use tempfile::TempDir;
use transcript_tail::FollowOptions;
use transcript_testkit::rng::Rng;

use crate::model::{Model, Ours, Reader};
use crate::support::{fast_folder, folder, line, often, rng, soak};
use crate::world::{Link, World};

/// An operation on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Append,
    Cut,
    Refill,
    Overwrite,
    Replace,
    Rotate,
    Delete,
    Link,
    AwayAndBack,
    Folder,
    TakeBack,
    Restart,
}

pub(crate) const ALL: [Op; 15] = [
    // Common operations are more frequent.
    Op::Append,
    Op::Append,
    Op::Append,
    Op::Append,
    Op::Cut,
    Op::Refill,
    Op::Overwrite,
    Op::Replace,
    Op::Rotate,
    Op::Delete,
    Op::Link,
    Op::AwayAndBack,
    Op::Folder,
    Op::TakeBack,
    Op::Restart,
];

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sequences: usize,
    ops: usize,
    looks: usize,
    lines: usize,
    resets: usize,
    gone: usize,
    restarts: usize,
    bytes: usize,
}

/// One sequence.
pub(crate) struct Run<'a, R> {
    rng: Rng,
    world: World,
    model: Model,
    reader: R,
    /// The number of the next line.
    next: usize,
    trace: Vec<String>,
    tally: &'a mut Tally,
}

impl<'a, R: Reader> Run<'a, R> {
    /// Runs some of `ops` and polls now and then.
    pub(crate) fn sequence(
        seed: u64,
        folder: TempDir,
        ops: &[Op],
        cap: usize,
        reader: impl FnOnce(&World) -> R,
        tally: &'a mut Tally,
    ) -> Result<(), String> {
        let world = World::new(folder);
        let reader = reader(&world);
        let mut run = Self {
            rng: Rng::new(seed),
            world,
            model: Model::new(cap),
            reader,
            next: 0,
            trace: Vec::new(),
            tally,
        };
        run.tally.sequences += 1;
        let count = run.rng.range(2, 14);
        let mut done = Ok(());
        for _ in 0..count {
            let op = *run.rng.pick(ops);
            run.tally.ops += 1;
            run.trace.push(format!("{op:?}"));
            done = run.apply(op).and_then(|()| run.maybe_look());
            if done.is_err() {
                break;
            }
        }
        done = done.and_then(|()| run.look());
        done.map_err(|wrong| format!("seed {seed}: {}\n{wrong}", run.trace.join(", ")))
    }

    fn look(&mut self) -> Result<(), String> {
        let due = self.model.look(&self.world);
        self.trace.push("look".to_owned());
        self.tally.looks += 1;
        for due in &due {
            match due {
                crate::model::Due::Reset(..) => self.tally.resets += 1,
                crate::model::Due::Gone { .. } => self.tally.gone += 1,
                crate::model::Due::Open(_) => {}
                _ => self.tally.lines += 1,
            }
        }
        self.reader.look(&due)?;
        let place = (self.model.emitted.len(), self.model.pending(&self.world));
        let place = (place.0 as u64, place.1 as u64);
        match self.reader.place() {
            Some(at) if at != place => Err(format!("is at {at:?}, not {place:?}")),
            _ => Ok(()),
        }
    }

    fn maybe_look(&mut self) -> Result<(), String> {
        if self.rng.one_in(2) {
            self.look()
        } else {
            Ok(())
        }
    }

    /// Returns an entry; if all of it is compared, one whose bytes are similar to others in many
    /// places.
    fn entry(&self, number: usize, len: usize) -> Vec<u8> {
        let mut line = line(number, len).into_bytes();
        if self.model.cap < usize::MAX || len > 10_000 {
            let mut other = Rng::new(number as u64);
            let same = line.iter_mut().filter(|byte| **byte == b'x');
            same.for_each(|byte| *byte = b'a' + other.below(19) as u8);
        }
        line
    }

    fn line(&mut self) -> Vec<u8> {
        self.next += 1;
        let number = self.next;
        let len = match self.rng.below(12) {
            0 => self.rng.range(1_000, 9_000),
            // Longer than one read.
            1 if self.rng.one_in(12) => self.rng.range(60_000, 200_000),
            _ => self.rng.below(300),
        };
        let healthy = self.entry(number, len);
        match self.rng.below(24) {
            0 => b"\n".to_vec(),
            1 => b" \t\r\n".to_vec(),
            2 => vec![0; self.rng.range(1, 700)]
                .into_iter()
                .chain(*b"\n")
                .collect(),
            3 => [&vec![0; self.rng.range(1, 70)], &healthy[..]].concat(),
            // Torn, with or without the next line appended to it.
            4 => healthy[..self.rng.below(healthy.len())].to_vec(),
            5 => [&healthy[..self.rng.range(1, healthy.len() - 1)], b"\n"].concat(),
            6 => healthy[..healthy.len() - 1].to_vec(),
            7 => [&healthy[..healthy.len() - 1], b"\r\n"].concat(),
            8..14 => {
                let texts = ["日本の暦", "🌒👩‍🚀", "größer", "e\u{301}\u{2028}"];
                let text = self.rng.pick(&texts).repeat(self.rng.range(1, 40));
                format!("{{\"type\":\"user\",\"uuid\":\"u{number}\",\"text\":\"{text}\",\"n\":{number}}}\n")
                    .into_bytes()
            }
            _ => healthy,
        }
    }

    fn lines(&mut self) -> Vec<u8> {
        let count = self.rng.range(0, 4);
        let mut lines = Vec::new();
        for _ in 0..count {
            lines.extend(self.line());
        }
        lines
    }

    /// Returns the file with the name; creates one when there is none.
    fn named(&mut self) -> usize {
        match self.world.named {
            Some(number) => number,
            None => self.world.create(b""),
        }
    }

    /// Appends in pieces of any size.
    fn append(&mut self, number: usize) -> Result<(), String> {
        let mut bytes = self.lines();
        bytes.extend(self.line());
        self.append_in_pieces(number, &bytes)
    }

    fn append_in_pieces(&mut self, number: usize, bytes: &[u8]) -> Result<(), String> {
        self.tally.bytes += bytes.len();
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = match self.rng.below(4) {
                0 => 1,
                1 => self.rng.range(1, 40),
                _ => self.rng.range(1, rest.len()),
            };
            let (piece, others) = rest.split_at(len.min(rest.len()));
            self.world.append(number, piece);
            rest = others;
            // Long lines are not written byte by byte.
            if rest.len() > 4_000 {
                let (piece, others) = rest.split_at(rest.len() - self.rng.range(1, 4_000));
                self.world.append(number, piece);
                rest = others;
            }
            if self.rng.one_in(4) {
                self.look()?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Append => {
                let number = self.named();
                self.append(number)
            }
            Op::Cut => {
                let number = self.named();
                let (len, emitted) = (
                    self.world.files[number].bytes.len(),
                    self.model.emitted.len(),
                );
                let near = |rng: &mut Rng| (emitted + rng.below(7)).saturating_sub(3);
                let to = match self.rng.below(3) {
                    0 => near(&mut self.rng),
                    1 => emitted + self.rng.below(len.saturating_sub(emitted)),
                    _ => self.rng.below(len + 1),
                };
                self.world.cut(number, to.min(len));
                self.maybe_look()?;
                if self.rng.one_in(2) {
                    self.append(number)
                } else {
                    Ok(())
                }
            }
            Op::Refill => self.refill(),
            Op::Overwrite => self.overwrite(),
            Op::Replace => {
                let bytes = self.lines();
                let number = self.world.make_beside(&bytes);
                self.world.swap_in(number, Link::Move);
                Ok(())
            }
            Op::Rotate => {
                let number = self.named();
                self.world.move_away();
                self.maybe_look()?;
                self.append(number)?;
                self.maybe_look()?;
                let bytes = self.lines();
                let new = self.world.create(&bytes);
                if self.rng.one_in(2) {
                    let bytes = self.lines();
                    self.world.append(number, &bytes);
                }
                self.append(new)
            }
            Op::Delete => {
                let number = self.named();
                self.world.delete();
                self.maybe_look()?;
                if self.rng.one_in(2) {
                    self.append(number)?;
                }
                Ok(())
            }
            Op::Link => {
                let with_name =
                    (0..self.world.files.len()).filter(|n| self.world.has_other_name(*n));
                let with_name: Vec<usize> = with_name.collect();
                let number = if with_name.is_empty() || self.rng.one_in(3) {
                    let bytes = self.lines();
                    self.world.make_beside(&bytes)
                } else {
                    *self.rng.pick(&with_name)
                };
                let by = *self.rng.pick(&[Link::Hard, Link::Symbolic]);
                self.world.swap_in(number, by);
                self.maybe_look()?;
                self.append(number)
            }
            Op::AwayAndBack => {
                let number = self.named();
                self.world.move_away();
                self.maybe_look()?;
                if self.rng.one_in(2) {
                    self.append(number)?;
                }
                self.world.swap_in(number, Link::Move);
                Ok(())
            }
            Op::Folder => self.folder(),
            Op::TakeBack => {
                let number = self.named();
                let bytes = &self.world.files[number].bytes;
                let end = bytes
                    .iter()
                    .rposition(|b| *b == b'\n')
                    .map_or(0, |at| at + 1);
                let (part, whole) = (self.line(), self.line());
                let part = &part[..self.rng.below(part.len())];
                self.world.append(number, part);
                self.maybe_look()?;
                self.world.cut(number, end);
                self.maybe_look()?;
                // Sometimes exactly as long as the truncated part.
                let next = self.next;
                let other = self.entry(next, part.len());
                match self.rng.below(3) {
                    0 => self.world.append(number, &other),
                    1 => self.world.append(number, &whole),
                    _ => self.append_in_pieces(number, &whole)?,
                }
                Ok(())
            }
            Op::Restart => {
                self.look()?;
                self.tally.restarts += 1;
                self.reader.restart();
                self.model.restart();
                Ok(())
            }
        }
    }

    /// Empties a file and refills it with fewer, as many, or more bytes.
    fn refill(&mut self) -> Result<(), String> {
        let number = self.named();
        let old = self.world.files[number].bytes.clone();
        let emitted = self.model.emitted.len();
        let mut new = Vec::new();
        // The first line may be the same.
        if let Some(end) = old.iter().position(|b| *b == b'\n')
            && self.rng.one_in(3)
        {
            new.extend(&old[..=end]);
        }
        let wanted = match self.rng.below(4) {
            0 => self.rng.below(emitted + 1),
            1 => emitted,
            2 => old.len(),
            _ => emitted + self.rng.below(5_000),
        };
        while new.len() < wanted {
            self.next += 1;
            let left = wanted - new.len();
            let len = if left > 400 {
                self.rng.range(60, 300)
            } else {
                left
            };
            new.extend(self.entry(self.next, len));
        }
        self.world.cut(number, 0);
        self.maybe_look()?;
        if self.rng.one_in(2) {
            self.world.append(number, &new);
            return Ok(());
        }
        self.append_in_pieces(number, &new)
    }

    /// Overwrites bytes that a follower remembers, or that were not emitted yet.
    fn overwrite(&mut self) -> Result<(), String> {
        let number = self.named();
        let (len, emitted) = (
            self.world.files[number].bytes.len(),
            self.model.emitted.len(),
        );
        if len == 0 {
            return Ok(());
        }
        let (from, to) = match self.rng.below(3) {
            0 => (0, emitted.min(256)),
            1 => (emitted.saturating_sub(64), emitted),
            // Of a line that waits for its newline, only the start is compared.
            _ => (emitted, emitted + 60_000),
        };
        let to = to.min(len);
        if from >= to {
            return Ok(());
        }
        let at = self.rng.range(from, to - 1);
        let most = (to - at).min(20);
        let count = self.rng.range(1, most);
        let byte = *self.rng.pick(b"Z7\"\n {");
        self.world.overwrite(number, at, &vec![byte; count]);
        Ok(())
    }

    fn folder(&mut self) -> Result<(), String> {
        if !self.world.has_folder() {
            return Ok(());
        }
        if self.rng.one_in(2) {
            self.world.delete_folder();
        } else {
            let named = self.world.named;
            let elsewhere = self.world.move_folder_away();
            self.maybe_look()?;
            if let Some(number) = named
                && self.rng.one_in(2)
            {
                self.append(number)?;
            }
            if self.rng.one_in(2) {
                self.world.move_folder_back(&elsewhere, named);
                return Ok(());
            }
        }
        self.maybe_look()?;
        let bytes = self.lines();
        if self.rng.one_in(3) {
            self.world.create(&bytes);
        }
        Ok(())
    }
}

/// Checks many sequences with our follower.
fn check(
    name: &str,
    count: usize,
    folder: fn() -> TempDir,
    ops: &[Op],
    cap: usize,
    options: &FollowOptions,
) {
    let mut rng = rng(name);
    let mut tally = Tally::default();
    for _ in 0..count {
        let read = |world: &World| Ours::new(&world.path, options.clone());
        Run::sequence(rng.next_u64(), folder(), ops, cap, read, &mut tally).unwrap();
    }
    println!("{name}: {tally:?}, lost = doubled = torn = 0");
}

#[test]
fn each_line_is_reported_once_whatever_happens_to_a_file() {
    let options = FollowOptions::new().poll_only();
    check(
        "sequences",
        often(2_500, 4_600),
        fast_folder,
        &ALL,
        usize::MAX,
        &options,
    );
}

#[test]
fn each_line_is_reported_once_on_a_disk() {
    let options = FollowOptions::new().poll_only();
    check(
        "sequences on a disk",
        100 * soak(),
        folder,
        &ALL,
        usize::MAX,
        &options,
    );
}

#[test]
fn each_line_is_reported_once_with_events_of_the_system() {
    let options = FollowOptions::new();
    check(
        "sequences with events",
        200 * soak(),
        fast_folder,
        &ALL,
        usize::MAX,
        &options,
    );
}

#[test]
fn each_line_is_reported_once_with_lines_beyond_the_cap() {
    // The bytes of a line beyond the cap are not remembered, and so not compared.
    let ops: Vec<Op> = ALL.into_iter().filter(|op| *op != Op::Overwrite).collect();
    let options = FollowOptions::new().poll_only().line_cap(500);
    check(
        "sequences with long lines",
        300 * soak(),
        fast_folder,
        &ops,
        500,
        &options,
    );
}
