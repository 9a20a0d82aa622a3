//! Describes in words the decisions that led to a path, and the findings.

use std::io::{self, Write};

use transcript_format::finding::Finding;
use transcript_reader::{EntryNo, EntryRef, Index};
use transcript_resume::{ConversationPath, Decision, Evidence, Policy, Refusal, Tree};

use crate::compaction;
use crate::words::count;

/// Returns the findings about the lines of a file, its links and the calls on a path, by offset.
pub fn findings(tree: &Tree<'_>, path: &ConversationPath) -> Vec<Finding> {
    let mut all = tree.index().findings().to_vec();
    all.extend(match tree.policy() {
        Policy::Recover => tree.findings(path),
        _ => Tree::new(tree.index(), Policy::Recover).findings(path),
    });
    all.sort_by_key(|finding| (finding.offset, finding.code));
    all
}

/// Writes every decision and every finding, one per line.
pub fn write(out: &mut impl Write, tree: &Tree<'_>, path: &ConversationPath) -> io::Result<()> {
    let index = tree.index();
    for decision in &path.decisions {
        writeln!(
            out,
            "decision {}: {}",
            decision.name(),
            describe(index, decision)
        )?;
    }
    if let Some(refusal) = path.refusal {
        writeln!(out, "refusal: {}", describe_refusal(index, refusal))?;
    }
    for finding in findings(tree, path) {
        writeln!(out, "finding {}", describe_finding(&finding))?;
    }
    Ok(())
}

/// Describes why a session cannot be continued.
pub fn describe_refusal(index: &Index, refusal: Refusal) -> String {
    match refusal {
        Refusal::NoConversation if index.line_count() == 0 => "the file is empty".to_owned(),
        Refusal::NoConversation => refusal.reason().to_owned(),
        _ => format!("the client would not resume: {}", refusal.reason()),
    }
}

/// `L-TORN-MID: line 3 at byte 812, 77 bytes: the line ends inside a value`
pub fn describe_finding(finding: &Finding) -> String {
    let code = finding.code.as_str();
    let (offset, len, detail) = (finding.offset, finding.len, finding.detail);
    let bytes = count(len, "byte");
    match finding.line {
        Some(line) => format!("{code}: line {line} at byte {offset}, {bytes}: {detail}"),
        None => format!("{code}: at byte {offset}, {bytes}: {detail}"),
    }
}

/// Describes a decision.
pub fn describe(index: &Index, decision: &Decision) -> String {
    let name = |entry| entry_name(index, entry);
    match *decision {
        Decision::Leaf { entry, reason } => {
            format!("{} ends the conversation: {}", name(entry), reason.words())
        }
        Decision::Bridge {
            entry,
            parent,
            evidence,
        } => {
            let problem = match evidence {
                Evidence::LaterCopy | Evidence::Exchanged => "names another parent",
                _ => "names a missing parent",
            };
            format!(
                "{} {problem}; it follows {} ({}): {}",
                name(entry),
                name(parent),
                evidence.confidence().name(),
                evidence.words()
            )
        }
        Decision::Gap {
            entry,
            reason,
            hidden,
        } => format!(
            "the parent of {} is missing and the history ends there, as {}; messages before it that \
             are not shown: {hidden}",
            name(entry),
            reason.words()
        ),
        Decision::Client { entry, more } => format!(
            "the path of the client to {} is used, because it shows {more} more messages than the \
             path that the evidence leads to",
            name(entry)
        ),
        Decision::Salvage { entry } => {
            format!("{} was salvaged from a damaged line", name(entry))
        }
        Decision::Foreign { entry, count } => format!(
            "entries of another session that are not part of the conversation: {count}, the first \
             is {}",
            name(entry)
        ),
        Decision::PinHidesNewer { entry, newer } => format!(
            "the conversation ends at {}, which a last-prompt line names; {} is newer and not shown",
            name(entry),
            name(newer)
        ),
        Decision::Repeated { entry, replaced } => {
            format!(
                "{} repeats the uuid of {}; the last one counts",
                name(entry),
                name(replaced)
            )
        }
        Decision::Progress { entry, parent } => {
            format!(
                "{} follows {}, past progress lines",
                name(entry),
                name(parent)
            )
        }
        Decision::Relink {
            entry,
            parent,
            gap_millis,
        } => format!(
            "the parent of {} is missing; {}, written {gap_millis} ms before it, replaces it",
            name(entry),
            name(parent)
        ),
        Decision::Truncated { entry } => format!(
            "the parent of {} is missing and no entry was written in the 5 s before it; the history ends",
            name(entry)
        ),
        Decision::Cycle { entry } => {
            format!(
                "the parent of {} is already on the path; the link counts as missing",
                name(entry)
            )
        }
        Decision::Cut { boundary, .. }
        | Decision::Splice { boundary, .. }
        | Decision::SpliceIgnored { boundary, .. } => {
            compaction::decided(&name(boundary), decision)
        }
        Decision::Siblings { entry, recovered } => format!(
            "{recovered} lines outside the path belong to the message of {} and were added",
            name(entry)
        ),
        _ => name(decision.entry()),
    }
}

/// Names an entry by its type and line.
pub fn entry_name(index: &Index, entry: EntryNo) -> String {
    Name(index.entry(entry)).to_string()
}

/// An entry by type and line: `assistant in line 12`.
struct Name<'i>(EntryRef<'i>);

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.0.kind().name() {
            "" => "entry",
            name => name,
        };
        match self.0.system_kind().map(|sub| sub.name()) {
            Some(sub) if !sub.is_empty() => f.write_str(sub)?,
            _ => f.write_str(kind)?,
        }
        match self.0.known_line() {
            Some(line) => write!(f, " in line {line}"),
            None => write!(f, " at byte {}", self.0.offset()),
        }
    }
}
