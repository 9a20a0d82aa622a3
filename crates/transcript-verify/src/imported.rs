//! What the session of another agent lacks: damage of its source files, records that are not known, and what its agent refuses.
//!
//! Lines of a converted session say it, each at its place. What a client would do with the file is not asked: none reads it.

use transcript_format::finding::Code;
use transcript_format::imported::{DamageKind, imported};
use transcript_format::kind::EntryKind;
use transcript_format::object::Object;
use transcript_reader::{Bodies, EntryRef, Error, Index, Source};

use crate::located_finding::LocatedFinding;

/// The maximum length of the name of an unknown type that is shown.
const MAX_NAME_LEN: usize = 64;

/// Returns the agent that wrote a session; `None` for Claude Code.
///
/// # Errors
/// When the system fails to read.
pub fn agent(index: &Index, source: &Source) -> Result<Option<String>, Error> {
    let first = index.entries().next().filter(|_| index.is_imported());
    let Some(first) = first else { return Ok(None) };
    let mut bodies = Bodies::new(source);
    let body = bodies.get(&first)?;
    Ok(imported(body.text).and_then(|imported| imported.str("agent").map(String::from)))
}

/// Returns the findings that the lines of a session of another agent report; none for any other session.
///
/// # Errors
/// When the system fails to read.
pub fn imported_findings(index: &Index, source: &Source) -> Result<Vec<LocatedFinding>, Error> {
    let mut findings = Vec::new();
    if !index.is_imported() {
        return Ok(findings);
    }
    let mut bodies = Bodies::new(source);
    let lines = index.entries();
    for line in lines.filter(|line| line.kind() == EntryKind::TranscriptEngine) {
        let body = bodies.get(&line)?;
        if let Some(imported) = imported(body.text) {
            findings.extend(of_line(&line, &imported));
        }
    }
    Ok(findings)
}

/// Returns whether a finding is about what Claude Code does with a file, or about files of its own.
pub(crate) fn is_about_client(code: Code) -> bool {
    matches!(
        code,
        Code::NoBoundary
            | Code::Mode
            | Code::FileTime
            | Code::Mixed
            | Code::WrongFolder
            | Code::SameId
            | Code::OrphanAgent
            | Code::Leaf
            | Code::Sweep
            | Code::ForkSource
            // An older version of an answer is a branch.
            | Code::CountedTwice
    )
}

fn of_line(line: &EntryRef<'_>, imported: &Object<'_>) -> Option<LocatedFinding> {
    if let Some(damage) = imported.str("damage") {
        // A newer version may know more kinds.
        let damage = DamageKind::of_name(&damage).map_or("it is damaged", DamageKind::description);
        let detail = format!("{}: {damage}", place_of(imported));
        return Some(LocatedFinding::of_entry(Code::Imported, line, detail));
    }
    if let Some(refusal) = imported.str("refusal") {
        let agent = imported.str("agent").unwrap_or_default();
        let detail = format!("{agent} refuses the session: {refusal}");
        return Some(LocatedFinding::of_entry(Code::ImportRefused, line, detail));
    }
    let unknown = imported.object("unknown")?;
    let counts = unknown.members().iter().map(|(name, count)| {
        let count = count.u64().unwrap_or_default();
        format!("{count} of the type {}", shown_name(name))
    });
    let counts: Vec<String> = counts.collect();
    let detail = format!(
        "{}: records that are not known: {}",
        place_of(imported),
        counts.join(", ")
    );
    Some(LocatedFinding::of_entry(Code::ImportUnknown, line, detail))
}

fn place_of(imported: &Object<'_>) -> String {
    let file = imported.str("file").unwrap_or_default();
    let number = |key| imported.u64(key).unwrap_or_default();
    format!("{file}, {} bytes at {}", number("length"), number("offset"))
}

/// A name that is not a plain one could be content.
fn shown_name(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.$ ".contains(&byte);
    let is_shown = name.len() <= MAX_NAME_LEN && name.bytes().all(is_plain);
    if is_shown { name } else { "(other)" }
}
