//! Reads the contents of the file without code of the project.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::driver::{Ack, size};

/// The lines of a session file, read incrementally as it grows.
pub(crate) struct Ledger {
    path: PathBuf,
    /// The text sizes of the records of each writer, used in rotation; those of the last one for
    /// any further writers.
    sizes: Vec<Vec<usize>>,
    /// The start of the first line that was not read yet.
    at: u64,
    pub(crate) records: Vec<Record>,
    by_uuid: HashMap<String, usize>,
    /// The number of lines with only a part of a record.
    pub(crate) torn: usize,
    /// The number of lines with a complete record after something else.
    pub(crate) spliced: usize,
    /// The number of other lines that are not records.
    pub(crate) bad: usize,
    pub(crate) doubled: usize,
}

/// A complete line.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) writer: u64,
    pub(crate) number: u64,
    pub(crate) uuid: String,
    pub(crate) parent: Option<String>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Deserialize)]
struct Line<'a> {
    uuid: &'a str,
    #[serde(rename = "parentUuid")]
    parent: Option<&'a str>,
    writer: u64,
    number: u64,
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    content: &'a str,
}

impl Ledger {
    pub(crate) fn new(path: &Path, sizes: &[usize]) -> Self {
        Self {
            path: path.to_owned(),
            sizes: vec![sizes.to_vec()],
            at: 0,
            records: Vec::new(),
            by_uuid: HashMap::new(),
            torn: 0,
            spliced: 0,
            bad: 0,
            doubled: 0,
        }
    }

    /// Sets the text sizes of the next writer.
    pub(crate) fn and(mut self, sizes: &[usize]) -> Self {
        self.sizes.push(sizes.to_vec());
        self
    }

    /// Reads the bytes appended since the last call; returns the bytes after the last newline.
    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(self.at)).unwrap();
                file.read_to_end(&mut bytes).unwrap();
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        }
        let mut start = 0;
        while let Some(len) = bytes[start..].iter().position(|byte| *byte == b'\n') {
            self.line(&bytes[start..start + len]);
            start += len + 1;
            self.at += len as u64 + 1;
        }
        bytes.split_off(start)
    }

    /// Returns the start of the line after the last newline.
    pub(crate) fn end(&self) -> u64 {
        self.at
    }

    pub(crate) fn leaf(&self) -> Option<String> {
        self.records.last().map(|record| record.uuid.clone())
    }

    fn line(&mut self, bytes: &[u8]) {
        if let Some(line) = self.parse(bytes) {
            let record = Record {
                writer: line.writer,
                number: line.number,
                uuid: line.uuid.to_owned(),
                parent: line.parent.map(str::to_owned),
                offset: self.at,
                len: bytes.len() as u64,
            };
            let again = self.by_uuid.insert(record.uuid.clone(), self.records.len());
            self.doubled += usize::from(again.is_some());
            self.records.push(record);
        } else if !bytes.is_empty() {
            // A record has at most three opening braces, and its text has none.
            let mut starts = (1..bytes.len()).filter(|at| bytes[*at] == b'{');
            if starts.any(|at| self.parse(&bytes[at..]).is_some()) {
                self.spliced += 1;
            } else if bytes[0] == b'{' {
                self.torn += 1;
            } else {
                self.bad += 1;
            }
        }
    }

    /// Returns the record if the line is one, and its text is the requested one.
    fn parse<'a>(&self, bytes: &'a [u8]) -> Option<Line<'a>> {
        let line: Line<'_> = serde_json::from_slice(bytes).ok()?;
        let text = line.message.content.as_bytes();
        let letter = b'a' + (line.number % 26) as u8;
        let sizes = self.sizes.get(line.writer as usize).or(self.sizes.last())?;
        let is_whole = text.len() == size(line.number, sizes);
        (is_whole && text.iter().all(|byte| *byte == letter)).then_some(line)
    }

    /// Counts the acknowledged records that are missing at their offset, or have other contents.
    pub(crate) fn lost(&self, acks: &[Ack]) -> usize {
        acks.iter().filter(|ack| !self.has(ack)).count()
    }

    /// Describes what is at the place of the first lost record.
    pub(crate) fn explain(&self, acks: &[Ack]) -> String {
        let bytes = std::fs::read(&self.path).unwrap();
        let lost = acks.iter().filter(|ack| !self.has(ack)).take(3);
        let texts = lost.map(|ack| {
            let offset = ack.place.map_or(0, |(offset, _)| offset as usize);
            let range = offset.saturating_sub(60).min(bytes.len())..(offset + 20).min(bytes.len());
            let copies = bytes
                .windows(ack.uuid.len())
                .filter(|window| *window == ack.uuid.as_bytes())
                .count();
            let there = String::from_utf8_lossy(&bytes[range]);
            format!("{ack:?}, {copies} copies of its id, there: {there:?}\n")
        });
        texts.collect()
    }

    fn has(&self, ack: &Ack) -> bool {
        self.by_uuid.get(&ack.uuid).is_some_and(|at| {
            let record = &self.records[*at];
            let is_there = match ack.place {
                Some(place) => place == (record.offset, record.len) && ack.parent == record.parent,
                None => true,
            };
            is_there && (record.writer, record.number) == (ack.writer, ack.number)
        })
    }

    /// Counts the records whose parent is not in an earlier line; the first one needs none.
    pub(crate) fn orphans(&self) -> usize {
        let has_parent = |(at, record): (usize, &Record)| match &record.parent {
            Some(parent) => self.by_uuid.get(parent).is_some_and(|before| *before < at),
            None => at == 0,
        };
        let records = self.records.iter().enumerate();
        records.filter(|record| !has_parent(*record)).count()
    }

    /// Returns whether the records of each writer are in numerical order.
    pub(crate) fn is_in_order(&self) -> bool {
        let mut last = HashMap::new();
        self.records.iter().all(|record| {
            let before = last.insert(record.writer, record.number);
            before.is_none_or(|before| before < record.number)
        })
    }
}
