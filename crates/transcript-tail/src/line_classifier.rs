//! Classifies lines.

use std::collections::VecDeque;
use std::path::Path;

use transcript_format::finding::{Code, Finding};
use transcript_format::lines::{Framed, Line};
use transcript_format::scan::{Envelope, ScanErrorKind, Scanner, utf8};
use transcript_reader::{Bodies, Error, Index, Source};

use crate::event::{EventKind, FollowedEntry};
use crate::live::FollowedConversation;

/// Turns lines into events. A line is classified as [`Index`] does; an undamaged one costs one
/// scan.
#[derive(Debug, Default)]
pub(crate) struct LineClassifier {
    scanner: Scanner,
}

impl LineClassifier {
    /// Adds the events of a line to `events`, and the line and its entries to `live`. `line` is its
    /// number, `path` its file, for messages.
    pub(crate) fn classify(
        &mut self,
        framed: Framed<'_>,
        line: Option<u64>,
        path: &Path,
        events: &mut VecDeque<EventKind>,
        mut live: Option<&mut FollowedConversation>,
    ) -> Result<(), Error> {
        let framed = match framed {
            Framed::Line(framed) => framed,
            Framed::TooLong { offset, len, .. } => {
                if let Some(live) = live {
                    live.push(framed, None);
                }
                events.push_back(EventKind::Damaged(Finding {
                    code: Code::TooLong,
                    line,
                    offset,
                    len,
                    detail: "longer than the cap on a line",
                }));
                return Ok(());
            }
        };
        let added = |envelope: &Envelope<'_>, text: &str| {
            if let Some(live) = &mut live {
                live.push(Framed::Line(framed), Some(envelope));
                live.add(framed.offset, envelope, text);
            }
        };
        if let Some(entry) = self.entry(&framed, line, added) {
            events.push_back(EventKind::Entry(entry));
            return Ok(());
        }
        if let Some(live) = &mut live {
            live.push(Framed::Line(framed), None);
        }
        let scanned = self.scanner.scan(framed.bytes).map(|_| ());
        if scanned.is_err_and(|error| error.kind == ScanErrorKind::Blank) {
            return Ok(());
        }
        self.classify_damaged(framed, line, path, events, live)
    }

    /// Returns the entry of a line that is undamaged, and passes its scan and its text to `see`.
    pub(crate) fn entry(
        &mut self,
        framed: &Line<'_>,
        line: Option<u64>,
        see: impl FnOnce(&Envelope<'_>, &str),
    ) -> Option<FollowedEntry> {
        let text = utf8(framed.bytes)?;
        let envelope = self.scanner.scan_text(text).ok()?;
        see(&envelope, text);
        Some(FollowedEntry {
            fields: Some(Box::new(envelope.fields())),
            offset: framed.offset,
            len: framed.bytes.len() as u64,
            line,
            text: text.to_owned(),
            is_salvaged: false,
            changes: Vec::new(),
        })
    }

    /// Adds the findings of a damaged line, then the entries that can be salvaged from it.
    fn classify_damaged(
        &mut self,
        framed: Line<'_>,
        line: Option<u64>,
        path: &Path,
        events: &mut VecDeque<EventKind>,
        mut live: Option<&mut FollowedConversation>,
    ) -> Result<(), Error> {
        // A byte order mark is only accepted at the start of a file, so other lines must not be at
        // the start of this buffer.
        let before: &[u8] = if framed.offset == 0 { b"" } else { b"\n" };
        let at = framed.offset - before.len() as u64;
        // The kind of damage depends on whether the line ends with the file.
        let newline: &[u8] = if framed.terminated { b"\n" } else { b"" };
        let source = Source::from_bytes([before, framed.bytes, newline].concat(), path);
        let index = Index::load(&source)?;
        events.extend(index.findings().iter().map(|finding| {
            EventKind::Damaged(Finding {
                line,
                offset: at + finding.offset,
                ..finding.clone()
            })
        }));
        let mut bodies = Bodies::new(&source);
        for entry_ref in index.entries() {
            let (offset, text) = (at + entry_ref.offset(), bodies.get(&entry_ref)?.text);
            if let Some(live) = &mut live
                && let Ok(envelope) = self.scanner.scan(text.as_bytes())
            {
                live.add(offset, &envelope, text);
            }
            events.push_back(EventKind::Entry(FollowedEntry {
                offset,
                len: entry_ref.byte_len(),
                line,
                text: text.to_owned(),
                is_salvaged: true,
                changes: Vec::new(),
                fields: None,
            }));
        }
        Ok(())
    }
}
