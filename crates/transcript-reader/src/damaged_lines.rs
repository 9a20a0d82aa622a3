//! Salvages complete entries from damaged lines.
//!
//! This is a separate pass after the parts are joined: healthy files do not pay for it, and the
//! result does not depend on how the lines were read. Consecutive damaged lines (ignoring blank
//! ones) are searched together, because an entry may be spread over them.

use std::ops::Range;

use transcript_format::finding::{Code, Finding};
use transcript_format::salvage;
use transcript_format::scan::Scanner;

use crate::error::Error;
use crate::index::{EntryMarks, EntryNo, Index, Record, ToolEnd};
use crate::partial_index::{PartialIndex, renumber};

/// Adds the entries of damaged lines to `index`, and narrows the findings of these lines to the
/// bytes that are still lost.
///
/// `read_at` reads bytes of the file from an offset on, as [`Source::read_at`] does.
///
/// # Errors
///
/// For I/O errors.
///
/// [`Source::read_at`]: crate::Source::read_at
pub(crate) fn salvage(
    index: &mut Index,
    read_at: impl Fn(u64, &mut [u8]) -> Result<usize, Error>,
    line_cap: usize,
) -> Result<(), Error> {
    index
        .findings
        .sort_by_key(|finding| (finding.offset, finding.code));
    let runs = runs(index, line_cap as u64);
    if runs.is_empty() {
        return Ok(());
    }
    let findings = std::mem::take(&mut index.findings);
    let mut rest = findings.as_slice();
    let mut salvaged = PartialIndex {
        side: std::mem::take(&mut index.side),
        ..PartialIndex::default()
    };
    let mut scanner = Scanner::new();
    let mut bytes = Vec::new();
    for numbers in runs {
        let run = &findings[numbers.clone()];
        let start = run[0].offset;
        let len = (end(&run[run.len() - 1]) - start) as usize;
        bytes.resize(len, 0);
        let read = read_at(start, &mut bytes)?;
        // If the file shrank in the meantime, nothing is salvaged: the remaining bytes may have
        // changed as well.
        let places = salvage::entries(&bytes[..if read < len { 0 } else { len }]);
        if places.is_empty() {
            continue;
        }
        let before = findings.len() - rest.len();
        salvaged
            .findings
            .extend_from_slice(&findings[before..numbers.start]);
        rest = &findings[numbers.end..];
        let run = Run {
            findings: run,
            bytes: &bytes,
            places: &places,
            ends_file: start + len as u64 == index.len,
        };
        run.add_entries(&mut scanner, &mut salvaged);
        run.report_lost(&mut salvaged.findings);
    }
    salvaged.findings.extend_from_slice(rest);
    index.findings = std::mem::take(&mut salvaged.findings);
    index.side = std::mem::take(&mut salvaged.side);
    if !salvaged.records.is_empty() {
        merge(index, salvaged);
    }
    Ok(())
}

/// Returns the runs of consecutive damaged lines, as ranges of findings. A run takes at most `cap`
/// bytes.
fn runs(index: &Index, cap: u64) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, finding) in index.findings.iter().enumerate() {
        if !is_damaged_line(finding.code) {
            continue;
        }
        // A line that was read between two damaged ones separates them: no entry can span it.
        match runs.last_mut() {
            Some(run)
                if run.end == number
                    && end(finding) - index.findings[run.start].offset <= cap
                    && !holds_a_record(index, end(&index.findings[number - 1]), finding.offset) =>
            {
                run.end += 1;
            }
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// Returns whether the finding covers a line (or the rest of one) that the client skips and that is
/// neither too long nor too deep to be searched.
pub(crate) fn is_damaged_line(code: Code) -> bool {
    matches!(
        code,
        Code::TornTail
            | Code::TornMid
            | Code::Glued
            | Code::Nul
            | Code::NotObject
            | Code::Bom
            | Code::Control
    )
}

fn holds_a_record(index: &Index, from: u64, to: u64) -> bool {
    let next = index.records.partition_point(|record| record.offset < from);
    index
        .records
        .get(next)
        .is_some_and(|record| record.offset < to)
}

fn end(finding: &Finding) -> u64 {
    finding.offset + finding.len
}

/// A run of consecutive damaged lines, and the entries found in it.
struct Run<'r> {
    findings: &'r [Finding],
    bytes: &'r [u8],
    places: &'r [Range<usize>],
    /// Whether the run is the end of the file.
    ends_file: bool,
}

impl Run<'_> {
    fn add_entries(&self, scanner: &mut Scanner, salvaged: &mut PartialIndex) {
        for place in self.places {
            let bytes = &self.bytes[place.clone()];
            let text = salvage::repaired_text(bytes);
            let Ok(envelope) = scanner.scan(text.as_bytes()) else {
                continue;
            };
            let offset = self.offset(place.start);
            let after = &self.bytes[place.end..];
            let mut marks = EntryMarks::SALVAGED;
            marks.set(
                EntryMarks::UNTERMINATED,
                self.ends_file && !after.contains(&b'\n'),
            );
            let first_line = self.finding_at(offset);
            salvaged.lines = first_line.line.unwrap_or_default();
            salvaged.push(&envelope, offset, text.as_bytes(), bytes.len(), marks);
            if let Some(code) = defect(bytes, &text, first_line.code) {
                salvaged.findings.push(Finding {
                    code,
                    line: first_line.line,
                    offset,
                    len: bytes.len() as u64,
                    detail: "the object was salvaged",
                });
            }
        }
    }

    /// Reports the stretches of bytes that belong to no entry. The findings of lines without a
    /// salvaged entry are kept.
    fn report_lost(&self, reported: &mut Vec<Finding>) {
        for finding in self.findings {
            let mut at = (finding.offset - self.offset(0)) as usize;
            let line_end = at + finding.len as usize;
            let first = self.places.partition_point(|place| place.end <= at);
            let last = self.places.partition_point(|place| place.start < line_end);
            if first == last {
                reported.push(finding.clone());
                continue;
            }
            for place in self.places[first..last]
                .iter()
                .chain([&(line_end..line_end)])
            {
                if at < place.start {
                    self.report_piece(at..place.start, finding, reported);
                }
                at = at.max(place.end);
            }
        }
    }

    fn report_piece(&self, piece: Range<usize>, line: &Finding, reported: &mut Vec<Finding>) {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let bytes = &self.bytes[piece.clone()];
        let Some(first) = bytes.iter().position(|byte| !is_space(byte)) else {
            return;
        };
        let last = bytes.iter().rposition(|byte| !is_space(byte));
        let bytes = &bytes[first..=last.unwrap_or(first)];
        let offset = self.offset(piece.start + first);
        let code = match line.code {
            _ if bytes.iter().all(|byte| *byte == 0) => Code::Nul,
            // These codes only describe one end of the line.
            Code::Nul | Code::Bom if offset != line.offset => Code::TornMid,
            Code::TornTail if piece.end as u64 != end(line) - self.offset(0) => Code::TornMid,
            code => code,
        };
        reported.push(Finding {
            code,
            line: line.line,
            offset,
            len: bytes.len() as u64,
            detail: "these bytes are not part of a complete object; another object on the line was salvaged",
        });
    }

    fn offset(&self, at: usize) -> u64 {
        self.findings[0].offset + at as u64
    }

    /// Returns the finding of the line that contains the byte at `offset`.
    fn finding_at(&self, offset: u64) -> &Finding {
        let next = self
            .findings
            .partition_point(|finding| finding.offset <= offset);
        &self.findings[next.saturating_sub(1)]
    }
}

/// Returns the defect of an object itself or of its place. An object after a torn one has none.
fn defect(bytes: &[u8], text: &str, line: Code) -> Option<Code> {
    if bytes.contains(&b'\n') {
        Some(Code::Split)
    } else if bytes.contains(&0) {
        Some(Code::Nul)
    } else if std::str::from_utf8(bytes).is_err() {
        Some(Code::Utf8)
    } else if bytes != text.as_bytes() && Some(bytes) != text.strip_suffix('}').map(str::as_bytes) {
        // A text that only had its missing brace added does not count as changed.
        Some(Code::Control)
    } else {
        Some(line).filter(|line| *line == Code::Glued)
    }
}

/// Inserts salvaged records into the index, in file order.
fn merge(index: &mut Index, salvaged: PartialIndex) {
    let records = std::mem::take(&mut index.records);
    let tools = std::mem::take(&mut index.tools);
    index
        .records
        .reserve_exact(records.len() + salvaged.records.len());
    let mut rest = records.as_slice();
    // For each salvaged record, the number of other records before it.
    let mut in_front = Vec::with_capacity(salvaged.records.len());
    for (number, record) in salvaged.records.iter().enumerate() {
        let before = rest.partition_point(|other| other.offset < record.offset);
        let (before, after) = rest.split_at(before);
        append(index, before, &tools, after.first());
        rest = after;
        in_front.push(records.len() - rest.len());
        let next = salvaged.records.get(number + 1);
        append(index, &[*record], &salvaged.tools, next);
    }
    append(index, rest, &tools, None);

    for boundary in &mut index.boundaries {
        let number = boundary.entry_no.get();
        let added = in_front.partition_point(|others| *others <= number);
        boundary.entry_no = EntryNo::new(number + added);
    }
    let boundaries = salvaged.boundaries.into_iter().map(|mut boundary| {
        let number = boundary.entry_no.get();
        boundary.entry_no = EntryNo::new(number + in_front[number]);
        boundary
    });
    index.boundaries.extend(boundaries);
    index.boundaries.sort_by_key(|boundary| boundary.entry_no);

    // Names are numbered in file order.
    let sessions = index.records.iter_mut().map(|record| &mut record.session);
    renumber(&mut index.side.sessions, sessions);
    let agents = index.records.iter_mut().map(|record| &mut record.agent);
    renumber(&mut index.side.agents, agents);
}

/// Appends records and their part of `tools`, which ends where that of `next` starts.
fn append(index: &mut Index, records: &[Record], tools: &[ToolEnd], next: Option<&Record>) {
    let Some(first) = records.first() else {
        return;
    };
    let (old, new) = (first.tools, index.tools.len() as u32);
    let end = next.map_or(tools.len(), |next| next.tools as usize);
    index.tools.extend_from_slice(&tools[old as usize..end]);
    let moved = records.iter().map(|record| Record {
        tools: record.tools - old + new,
        ..*record
    });
    index.records.extend(moved);
}
