//! Two writers of one session.

use std::collections::HashMap;

use transcript_format::finding::{Code, Finding};
use transcript_format::object::Object;
use transcript_reader::{Bodies, EntryRef, Error, Source};
use transcript_resume::{BranchStart, Branches, Parent, Tree, is_prompt};

use crate::located_finding::LocatedFinding;

/// Returns the finding about branches that were written at the same time: where, and how many. One
/// process writes one branch at a time, so there were two.
pub(crate) fn overlap(tree: &Tree<'_>, of_links: &[Finding]) -> Option<LocatedFinding> {
    let forks: Vec<u64> = of_links
        .iter()
        .filter(|finding| finding.code == Code::Fork)
        .map(|finding| finding.offset)
        .collect();
    if forks.is_empty() {
        return None;
    }
    let index = tree.index();
    let branches = Branches::new(tree, &[]);
    let is_fork = |first| forks.contains(&index.entry(first).offset());
    let later = branches
        .all()
        .iter()
        .position(|branch| is_fork(branch.first))?;
    let siblings = |branch: &usize| {
        let (one, other) = (&branches.all()[*branch], &branches.all()[later]);
        one.parent == other.parent && one.start == BranchStart::Child
    };
    let earlier = (0..later).rev().find(siblings)?;
    let range = |branch: usize| {
        let mut entries = branches
            .entries(branch)
            .map(|entry| index.entry(entry).line());
        let first = entries.next()?;
        Some((first, entries.next_back().unwrap_or(first)))
    };
    let ((a, b), (c, d)) = (range(earlier)?, range(later)?);
    let detail = format!(
        "lines {a}–{b} and lines {c}–{d} are two branches, written at the same time{}",
        match forks.len() {
            1 => String::new(),
            count => format!("; so are {} more", count - 1),
        }
    );
    let entry = index.entry(branches.all()[later].first);
    Some(LocatedFinding::of_entry(Code::Writers, &entry, detail))
}

/// Fields that one process writes on every line, with the same value or with one that changes only between its own lines.
const PROCESS_FIELDS: [(&str, &str); 3] = [
    ("version", "the version of the client"),
    ("entrypoint", "the way it was started"),
    ("cwd", "the working folder"),
];
/// The maximum number of interruptions that are examined.
const MAX_INTERRUPTIONS: usize = 200;
/// The maximum number of results in a row that are followed up to the answer with their calls.
const MAX_ABOVE: usize = 64;
/// The maximum number of bytes of bodies that are read.
const MAX_READ_BYTES: u64 = 16 << 20;

/// Returns the finding about two processes that wrote in turns, and say so themselves: in the middle
/// of a turn of one there is a message of the other, and the other way round, and the two differ in
/// the version of the client, the way it was started, or the working folder. One process that was
/// updated, or that goes from one folder to another, writes each turn on its own.
pub(crate) fn in_turns(tree: &Tree<'_>, source: &Source) -> Result<Option<LocatedFinding>, Error> {
    let places = interruptions(tree);
    if places.len() < 2 {
        return Ok(None);
    }
    let mut bodies = Bodies::new(source);
    let mut left = MAX_READ_BYTES;
    let mut first: HashMap<(usize, String, String), [EntryRef<'_>; 3]> = HashMap::new();
    for place in places {
        let mut values: Vec<[Option<String>; PROCESS_FIELDS.len()]> = Vec::new();
        for entry in place {
            if entry.byte_len() > left {
                return Ok(None);
            }
            left -= entry.byte_len();
            let line = Object::parse(bodies.get(&entry)?.text).ok();
            let value = |key: &str| Some(line.as_ref()?.str(key)?.into_owned());
            values.push(PROCESS_FIELDS.map(|(key, _)| value(key)));
        }
        for (number, (_, words)) in PROCESS_FIELDS.iter().enumerate() {
            let [Some(above), Some(between), Some(entry)] =
                [0, 1, 2].map(|entry| values[entry][number].clone())
            else {
                continue;
            };
            if above != entry || between == entry {
                continue;
            }
            if let Some([.., at]) = first.get(&(number, between.clone(), entry.clone())) {
                let [one, other] = [at.line(), place[2].line()];
                let detail = format!(
                    "two processes wrote in turns: lines {one} and {other} each continue a turn in which the other one wrote, and differ in {words}"
                );
                return Ok(Some(LocatedFinding::of_entry(Code::Writers, at, detail)));
            }
            first.entry((number, entry, between)).or_insert(place);
        }
    }
    Ok(None)
}

/// Returns the messages that continue a turn after one that is not of it: each with the message that
/// it continues, and the one between them.
fn interruptions<'i>(tree: &Tree<'i>) -> Vec<[EntryRef<'i>; 3]> {
    let mut found = Vec::new();
    // The answer of an entry: lines of an answer and results of its calls are written in any order.
    let message = |entry: EntryRef<'i>| {
        let mut at = tree.entry_node(entry.number())?;
        for _ in 0..MAX_ABOVE {
            let entry = tree.entry(at);
            match (tree.message(at), tree.parent(at)) {
                (Some(message), _) => return Some(message),
                (None, Parent::Node(above)) if !is_prompt(&entry) => at = above,
                _ => return None,
            }
        }
        None
    };
    let mut before: Option<EntryRef<'i>> = None;
    for node in tree.nodes() {
        let entry = tree.entry(node);
        let is_of_main = entry.kind().is_message()
            && !tree.is_sidechain(node)
            && !tree.is_foreign(node)
            && !entry.is_salvaged();
        if !is_of_main {
            continue;
        }
        let Some(between) = before.replace(entry) else {
            continue;
        };
        let Parent::Node(above) = tree.parent(node) else {
            continue;
        };
        let above = tree.entry(above);
        let is_between = above.number() < between.number() && between.number() < entry.number();
        if !is_between || is_prompt(&entry) || !above.kind().is_message() {
            continue;
        }
        let of_between = message(between);
        let of_turn = [message(above), message(entry)];
        let is_of_turn = of_between.is_some() && of_turn.contains(&of_between);
        if !is_of_turn {
            found.push([above, between, entry]);
        }
        if found.len() == MAX_INTERRUPTIONS {
            break;
        }
    }
    found
}
