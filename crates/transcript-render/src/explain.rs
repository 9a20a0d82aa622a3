//! Describes in words the decisions that led to a path, and the findings.

use std::io::{self, Write};

use transcript_format::finding::Finding;
use transcript_reader::{EntryNo, EntryRef, Index};
use transcript_resume::{ConversationPath, Decision, Evidence, Policy, Refusal, Tree};

use crate::compaction;
use crate::words::count;

/// The number of printed characters of a uuid.
const SHORT_ID_CHARS: usize = 8;

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
        let text = describe(index, decision);
        writeln!(out, "decision {}: {text}", decision.name())?;
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
        _ => format!("Claude Code would not resume: {}", refusal.reason()),
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
    let entry = name(decision.entry());
    match *decision {
        Decision::Leaf { reason, .. } => {
            format!("{entry} ends the conversation: {}", reason.words())
        }
        Decision::Bridge {
            parent, evidence, ..
        } => {
            let problem = match evidence {
                Evidence::LaterCopy | Evidence::Exchanged => "names another parent",
                _ => "names a missing parent",
            };
            let (parent, confidence) = (name(parent), evidence.confidence().name());
            let words = evidence.words();
            format!("{entry} {problem}; it follows {parent} ({confidence}): {words}")
        }
        Decision::Gap { reason, hidden, .. } => format!(
            "the parent of {entry} is missing and the history ends there, as {}; messages before it \
             that are not shown: {hidden}",
            reason.words()
        ),
        Decision::Client { more, .. } => format!(
            "the path of the client to {entry} is used, because it shows {more} more messages than \
             the path that the evidence leads to"
        ),
        Decision::StreamForm { entries, .. } => format!(
            "the lines name no parents, as in the output of the SDK (stream-json); the {entries} \
             entries from {entry} on are linked in the order of the file"
        ),
        Decision::Salvage { .. } => format!("{entry} was salvaged from a damaged line"),
        Decision::Foreign { count, .. } => format!(
            "entries of another session that are not part of the conversation: {count}, the first \
             is {entry}"
        ),
        Decision::PinHidesNewer { newer, .. } => format!(
            "the conversation ends at {entry}, which a last-prompt line names; {} is newer and not \
             shown",
            name(newer)
        ),
        Decision::Repeated { replaced, .. } => {
            let replaced = name(replaced);
            format!("{entry} repeats the uuid of {replaced}; the last one counts")
        }
        Decision::Progress { parent, .. } => {
            format!("{entry} follows {}, past progress lines", name(parent))
        }
        Decision::Relink {
            parent, gap_millis, ..
        } => format!(
            "the parent of {entry} is missing; {}, written {gap_millis} ms before it, replaces it",
            name(parent)
        ),
        Decision::Truncated { .. } => format!(
            "the parent of {entry} is missing and no entry was written in the 5 s before it; the \
             history ends"
        ),
        Decision::Cycle { .. } => {
            format!("the parent of {entry} is already on the path; the link counts as missing")
        }
        Decision::Cut { .. }
        | Decision::Chapter { .. }
        | Decision::Splice { .. }
        | Decision::SpliceIgnored { .. } => compaction::decided(&entry, decision),
        Decision::Siblings { recovered, .. } => format!(
            "{recovered} lines outside the path belong to the message of {entry} and were added"
        ),
        _ => entry,
    }
}

/// Names an entry as a command line takes it: `line 12 · 5d179a07`, its line and the start of its uuid.
#[must_use]
pub fn short_name(index: &Index, entry: &EntryRef<'_>) -> String {
    let place = match entry.known_line() {
        Some(line) => format!("line {line}"),
        None => format!("byte {}", entry.offset()),
    };
    match entry.uuid().map(|id| index.id_text(id)) {
        Some(id) => format!(
            "{place} · {}",
            id.chars().take(SHORT_ID_CHARS).collect::<String>()
        ),
        None => format!("{place} · without a uuid"),
    }
}

/// Returns the type of an entry; of a system entry its subtype.
pub(crate) fn kind_name(entry: &EntryRef<'_>) -> &'static str {
    let subtype = entry.system_kind().map_or("", |kind| kind.name());
    match (subtype, entry.kind().name()) {
        ("", "") => "entry",
        ("", name) | (name, _) => name,
    }
}

/// Names an entry by its type and line: `assistant in line 12`.
pub fn entry_name(index: &Index, entry: EntryNo) -> String {
    let entry = index.entry(entry);
    let kind = kind_name(&entry);
    match entry.known_line() {
        Some(line) => format!("{kind} in line {line}"),
        None => format!("{kind} at byte {}", entry.offset()),
    }
}
