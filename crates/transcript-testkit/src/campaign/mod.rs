//! The damage campaign: healthy sessions, one kind of damage each, and what a perfect recovery
//! would show.
//!
//! The expected result comes from this module, never from the tested code. It is the path of the
//! slow model ([`model::vendor_path`]) through the session before it was damaged. If lines were
//! destroyed, it is the path through the session without them, with every link past them repaired,
//! which only the generator can do. Entries that the damaged bytes do not prove (see `truth.rs`) are
//! optional: they may be shown or missing.

mod hurt;
pub mod several;
pub mod traces;
mod truth;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::model;
use crate::rng::Rng;

/// One kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The end of a line is missing, in half of the cases with its newline.
    Cut,
    /// A newline between two lines is missing, or a torn prefix precedes a whole line.
    Glue,
    /// NULs before, after, between or within lines, or in place of one.
    Nul,
    /// A line is missing.
    Drop,
    /// A line is in the file twice; the second is a copy, or has one newer field.
    Duplicate,
    /// A block of lines is in the file twice, the second time under a root of its own.
    Replay,
    /// Lines are up to ten places away from where they belong.
    Reorder,
    /// Two entries of the chain have each other's parents.
    SwappedParent,
    /// The parent of an entry is the entry itself or one of its descendants.
    Cycle,
    /// Bytes within a string that are not UTF-8.
    BadUtf8,
    /// Half of a surrogate pair, as an escape within a string.
    Surrogate,
    /// The line of a tool result is missing.
    RemovedResult,
    /// A pointer of a compact boundary names an entry that does not exist.
    DanglingPointer,
    /// Lines of another session.
    Foreign,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Cut,
        Self::Glue,
        Self::Nul,
        Self::Drop,
        Self::Duplicate,
        Self::Replay,
        Self::Reorder,
        Self::SwappedParent,
        Self::Cycle,
        Self::BadUtf8,
        Self::Surrogate,
        Self::RemovedResult,
        Self::DanglingPointer,
        Self::Foreign,
    ];

    /// Returns the name that reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Glue => "glue",
            Self::Nul => "nul",
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
            Self::Replay => "replay",
            Self::Reorder => "reorder",
            Self::SwappedParent => "swapped-parent",
            Self::Cycle => "cycle",
            Self::BadUtf8 => "bad-utf8",
            Self::Surrogate => "surrogate",
            Self::RemovedResult => "removed-result",
            Self::DanglingPointer => "dangling-pointer",
            Self::Foreign => "foreign",
        }
    }

    /// Returns the share of the truth that policy `recover` must show, in percent.
    #[must_use]
    pub const fn bar_percent(self) -> usize {
        match self {
            Self::Cut | Self::Glue | Self::Nul | Self::Drop | Self::Cycle | Self::RemovedResult => {
                99
            }
            _ => 95,
        }
    }
}

/// The role of a line in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    System,
    Attachment,
    Progress,
    /// A blank line, or one that cannot be part of a chain.
    OutsideChain,
}

#[derive(Debug)]
struct Line {
    /// The line as it is in the file, with its newline.
    bytes: Vec<u8>,
    /// `null` for a blank line.
    value: Value,
    role: Role,
    uuid: Option<String>,
    /// The line of the parent; `None` for a root.
    parent: Option<usize>,
    is_sidechain: bool,
}

impl Line {
    /// Returns the bytes without the line end.
    fn content(&self) -> &[u8] {
        self.bytes.trim_ascii_end()
    }

    fn is_message(&self) -> bool {
        matches!(self.role, Role::User | Role::Assistant)
    }

    /// Returns whether this is a message of the conversation, as `verify` counts them.
    fn counts(&self) -> bool {
        self.is_message()
            && !self.is_sidechain
            && !self.value["teamName"].is_string()
            && self.value["isVirtual"] != true
    }

    fn is_boundary(&self) -> bool {
        self.role == Role::System && self.value["subtype"] == "compact_boundary"
    }

    fn is_blank(&self) -> bool {
        self.value.is_null()
    }

    /// Returns the ids in `field` of the blocks of this type.
    fn block_ids(&self, block_type: &str, field: &str) -> HashSet<&str> {
        let blocks = self.value["message"]["content"].as_array();
        let blocks = blocks
            .into_iter()
            .flatten()
            .filter(|block| block["type"] == block_type);
        blocks.filter_map(|block| block[field].as_str()).collect()
    }

    /// Returns whether this is a user line without tool results: typed by a person, or written to
    /// look like it.
    fn is_prompt(&self) -> bool {
        self.role == Role::User && self.block_ids("tool_result", "tool_use_id").is_empty()
    }
}

/// A session without defects, and its path.
#[derive(Debug)]
pub struct Healthy {
    lines: Vec<Line>,
    line_of: HashMap<String, usize>,
    /// The line numbers of the entries of the path, from 0.
    path: Vec<usize>,
    /// The leaf of the path and its ancestors by links alone, up to the start of the path.
    chain: Vec<usize>,
}

impl Healthy {
    /// Reads a session. Returns `None` when it already has a defect, or when its conversation has
    /// fewer than six messages.
    ///
    /// A session is healthy when every line is blank or one JSON object; every entry has a unique
    /// uuid; the parent of every entry exists, is not its descendant, and is not on a sidechain
    /// unless the entry is; the entries that boundaries keep exist; and all messages have a body and
    /// a time and are of one session.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut lines = Vec::new();
        let mut line_of = HashMap::new();
        for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = read_line(bytes)?;
            if let Some(uuid) = &line.uuid
                && line_of.insert(uuid.clone(), lines.len()).is_some()
            {
                return None;
            }
            lines.push(line);
        }
        let mut healthy = Self {
            lines,
            line_of,
            path: Vec::new(),
            chain: Vec::new(),
        };
        healthy.link()?;
        healthy.check_links().then_some(())?;
        healthy.has_prompts_as_roots().then_some(())?;
        healthy.has_branches_of_persons().then_some(())?;
        healthy.check_boundaries().then_some(())?;
        healthy.has_one_session().then_some(())?;
        healthy.follow(bytes)?;
        (healthy.conversation().len() >= 6).then_some(healthy)
    }

    /// Returns the uuids of the messages on the path, oldest first.
    #[must_use]
    pub fn conversation(&self) -> Vec<String> {
        self.uuids(&self.path)
    }

    /// Returns the session without any damage as a case.
    #[must_use]
    pub fn undamaged(&self) -> Case {
        let lines = self.lines.iter().map(|line| &line.bytes[..]);
        Case {
            bytes: lines.collect::<Vec<_>>().concat(),
            truth: self.conversation(),
            unproven: HashSet::new(),
            undecided: 0,
            foreign: HashSet::new(),
            known: self.known(),
        }
    }

    /// Returns every message of the session, of all branches and sidechains. A path that shows one
    /// of these without need is wrong.
    fn known(&self) -> HashSet<String> {
        let is_known = |line: &&Line| line.counts() || (line.is_message() && line.is_sidechain);
        let known = self.lines.iter().filter(is_known);
        known.filter_map(|line| line.uuid.clone()).collect()
    }

    /// Does one kind of damage in one to three places. Returns `None` when the session has no place
    /// for it. Equal arguments give equal results.
    #[must_use]
    pub fn hurt(&self, kind: Kind, seed: u64) -> Option<Case> {
        // Mixes the session into the seed, so that one seed damages different places in different
        // sessions.
        let salt = self.lines.iter().fold(kind as u64, |salt, line| {
            salt.wrapping_mul(31).wrapping_add(line.bytes.len() as u64)
        });
        let mut rng = Rng::new(seed ^ salt.rotate_left(20));
        let damage = hurt::hurt(self, kind, &mut rng)?;
        let truth = truth::truth(self, &damage);
        let gone = damage
            .loss
            .gone()
            .filter_map(|line| self.lines[line].uuid.as_ref());
        let gone: HashSet<&String> = gone.collect();
        let shown: HashSet<&String> = truth.uuids.iter().chain(gone).collect();
        let undecided = self.conversation();
        let undecided = undecided
            .iter()
            .filter(|uuid| !shown.contains(uuid))
            .count();
        Some(Case {
            bytes: damage.bytes,
            truth: truth.uuids,
            unproven: truth.unproven,
            undecided,
            foreign: damage.foreign,
            known: self.known(),
        })
    }

    /// Returns the uuids of those of `lines` that are messages of the conversation.
    fn uuids(&self, lines: &[usize]) -> Vec<String> {
        let lines = lines.iter().map(|line| &self.lines[*line]);
        lines
            .filter(|line| line.counts())
            .filter_map(|line| line.uuid.clone())
            .collect()
    }

    fn link(&mut self) -> Option<()> {
        for at in 0..self.lines.len() {
            if self.lines[at].role == Role::OutsideChain {
                continue;
            }
            self.lines[at].parent = match &self.lines[at].value["parentUuid"] {
                Value::Null => None,
                Value::String(uuid) if uuid.is_empty() => None,
                Value::String(uuid) => Some(*self.line_of.get(uuid)?),
                _ => return None,
            };
        }
        // In the file of a subagent every line is on a sidechain, which is then the main chain.
        let is_main = |line: &Line| line.is_message() && !line.is_sidechain;
        if !self.lines.iter().any(is_main) {
            for line in &mut self.lines {
                line.is_sidechain = false;
            }
        }
        Some(())
    }

    fn check_links(&self) -> bool {
        self.lines.iter().enumerate().all(|(at, line)| {
            let is_apart = line.parent.is_some_and(|parent| {
                let parent = &self.lines[parent];
                parent.role == Role::OutsideChain || (parent.is_sidechain && !line.is_sidechain)
            });
            !is_apart
                && self
                    .ancestors(at)
                    .last()
                    .is_some_and(|root| self.lines[root].parent.is_none())
        })
    }

    /// Returns whether no answer and no result after the first message, and no progress line, is
    /// without a parent.
    fn has_prompts_as_roots(&self) -> bool {
        let first = self.lines.iter().position(Line::is_message);
        let after = self.lines.iter().skip(first.map_or(0, |first| first + 1));
        let mut roots = after.filter(|line| line.parent.is_none() && !line.is_sidechain);
        let is_progress = |line: &Line| line.value["type"] == "progress";
        if self
            .lines
            .iter()
            .any(|line| line.parent.is_none() && is_progress(line))
        {
            return false;
        }
        let is_prompt = |line: &Line| {
            let content = line.value["message"]["content"].to_string();
            line.role == Role::User && !content.contains("\"tool_result\"")
        };
        roots.all(|line| !line.is_message() || is_prompt(line))
    }

    /// Returns whether what a client writes by itself follows the message before it, so that only
    /// persons start branches.
    fn has_branches_of_persons(&self) -> bool {
        let mut last = None;
        self.lines.iter().enumerate().all(|(at, line)| {
            if line.is_sidechain || !(line.is_message() || line.is_boundary()) {
                return true;
            }
            let before = last.replace(at);
            let content = &line.value["message"]["content"];
            let text = content
                .as_str()
                .or_else(|| content.get(0)?["text"].as_str());
            let text = text.unwrap_or_default();
            let is_result = content.to_string().contains("\"tool_result\"");
            let mut lines = self.lines[..at].iter().rev();
            let is_end =
                |line: &&Line| line.is_message() || line.value["type"] == "queue-operation";
            let is_queued = lines.find(is_end).is_some_and(|line| !line.is_message());
            let is_of_client = line.role == Role::User
                && !is_result
                && (line.value["isMeta"] == true
                    || is_queued
                    || text.starts_with("<task-notification>")
                    || transcript_format::texts::is_synthetic(text));
            let above = self.ancestors(at).skip(1).find(|above| {
                let above = &self.lines[*above];
                above.is_message() || above.is_boundary()
            });
            !is_of_client || above == before
        })
    }

    /// Returns `line` and its ancestors, nearest first. Ends after as many steps as there are lines,
    /// so that a cycle does not loop.
    fn ancestors(&self, line: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(line), |line| self.lines[*line].parent)
            .take(self.lines.len() + 1)
    }

    fn check_boundaries(&self) -> bool {
        let boundaries = self.lines.iter().filter(|line| line.is_boundary());
        boundaries.into_iter().all(|boundary| {
            let metadata = &boundary.value["compactMetadata"];
            // A progress line cannot be kept.
            let is_there = |uuid: &Value| {
                let line = uuid.as_str().and_then(|uuid| self.line_of.get(uuid));
                line.is_some_and(|line| self.lines[*line].value["type"] != "progress")
            };
            let (list, segment) = (
                &metadata["preservedMessages"],
                &metadata["preservedSegment"],
            );
            let uuids = list["uuids"].as_array();
            let list_is_good = list.is_null()
                || (is_there(&list["anchorUuid"])
                    && uuids.is_some_and(|uuids| uuids.iter().all(is_there)));
            let segment_is_good = segment.is_null()
                || (is_there(&segment["anchorUuid"]) && self.segment(segment).is_some());
            list_is_good && segment_is_good
        })
    }

    /// Returns the lines of a preserved segment, oldest first.
    fn segment(&self, segment: &Value) -> Option<Vec<usize>> {
        let line = |name: &str| self.line_of.get(segment[name].as_str()?).copied();
        let (head, tail) = (line("headUuid")?, line("tailUuid")?);
        let mut lines: Vec<usize> = self.ancestors(tail).collect();
        lines.truncate(lines.iter().position(|line| *line == head)? + 1);
        lines.reverse();
        Some(lines)
    }

    fn has_one_session(&self) -> bool {
        let messages = self.lines.iter().filter(|line| line.is_message());
        let sessions: HashSet<Option<&str>> = messages
            .map(|line| line.value["sessionId"].as_str())
            .collect();
        sessions.len() == 1
    }

    fn follow(&mut self, bytes: &[u8]) -> Option<()> {
        let path = model::vendor_path(bytes);
        self.path = path.entries.iter().map(|entry| entry.line - 1).collect();
        let leaf = *self.line_of.get(&path.leaf?)?;
        let on_path: HashSet<usize> = self.path.iter().copied().collect();
        let is_mixed = on_path.iter().any(|line| self.lines[*line].is_sidechain);
        // Progress lines are in the chain, but not on the path.
        let is_in =
            |line: &usize| on_path.contains(line) || self.lines[*line].role == Role::Progress;
        self.chain = self.ancestors(leaf).take_while(is_in).collect();
        (path.refusal.is_none() && !is_mixed).then_some(())
    }
}

/// Reads one line. Returns `None` for a line that no healthy session contains.
fn read_line(bytes: &[u8]) -> Option<Line> {
    let value = if bytes.trim_ascii().is_empty() {
        Value::Null
    } else {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        value.is_object().then_some(value)?
    };
    let role = match value["type"].as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("attachment") => Role::Attachment,
        Some("progress") if value["uuid"].is_string() => Role::Progress,
        _ => Role::OutsideChain,
    };
    let uuid = match &value["uuid"] {
        Value::String(uuid) if !uuid.is_empty() && role != Role::OutsideChain => Some(uuid.clone()),
        _ if role == Role::OutsideChain => None,
        _ => return None,
    };
    let line = Line {
        bytes: bytes.to_vec(),
        role,
        uuid,
        parent: None,
        is_sidechain: value["isSidechain"] == true,
        value,
    };
    let has_body =
        !line.value["message"]["content"].is_null() && line.value["timestamp"].is_string();
    (has_body || !line.is_message()).then_some(line)
}

/// A damaged session and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The bytes of the damaged file.
    pub bytes: Vec<u8>,
    /// The messages that a perfect recovery shows, oldest first.
    pub truth: Vec<String>,
    /// Messages that the bytes neither prove nor disprove; a path may show them or not.
    pub unproven: HashSet<String>,
    /// The number of messages that were on the path before, are still in the file, and are not in
    /// the truth.
    pub undecided: usize,
    /// Messages of another session, which must never be shown.
    pub foreign: HashSet<String>,
    /// Every message of the session itself, of all branches and sidechains.
    known: HashSet<String>,
}

/// How a path compares with the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The number of messages of the truth that the path shows.
    pub truth: usize,
    /// Whether it shows each of them once, in the right order.
    pub in_order: bool,
    /// The number of messages of the other session.
    pub foreign: usize,
    /// The number of messages that are not part of the conversation: of an abandoned branch, of a
    /// subagent, or from before a compaction.
    pub extra: usize,
    /// Messages that the bytes neither prove nor disprove; a path may show them or not.
    pub unproven: usize,
}

impl Case {
    /// Compares a path with the truth. `path` has the uuids of all its entries; entries that are not
    /// messages are ignored.
    #[must_use]
    pub fn compare<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Shown {
        let place: HashMap<&str, usize> = self
            .truth
            .iter()
            .enumerate()
            .map(|(at, uuid)| (uuid.as_str(), at))
            .collect();
        let mut shown = Shown {
            in_order: true,
            ..Shown::default()
        };
        let mut last = None;
        let mut seen = HashSet::new();
        for uuid in path {
            if let Some(at) = place.get(uuid) {
                shown.in_order &= last < Some(*at);
                last = last.max(Some(*at));
                shown.truth += usize::from(seen.insert(uuid));
            } else if self.foreign.contains(uuid) {
                shown.foreign += 1;
            } else if self.unproven.contains(uuid) {
                shown.unproven += 1;
            } else if self.known.contains(uuid) {
                shown.extra += 1;
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::generate::tidy_session;

    fn sessions() -> impl Iterator<Item = (u64, Healthy)> {
        (0..640).filter_map(|seed| Some((seed, Healthy::new(&tidy_session(seed))?)))
    }

    #[test]
    fn most_tidy_sessions_are_healthy_and_most_others_are_not() {
        let healthy = |bytes: Vec<u8>| usize::from(Healthy::new(&bytes).is_some());
        let tidy: usize = (0..300).map(|seed| healthy(tidy_session(seed))).sum();
        let wild: usize = (0..300)
            .map(|seed| healthy(crate::generate::session(seed)))
            .sum();
        assert!(tidy > 120 && wild < tidy / 2, "{tidy} {wild}");
    }

    #[test]
    fn the_truth_of_an_undamaged_session_is_the_path_of_the_model() {
        for (seed, healthy) in sessions() {
            let case = healthy.undamaged();
            assert!(case.bytes == tidy_session(seed), "seed {seed}");
            let path = model::vendor_path(&case.bytes);
            let shown = case.compare(
                path.entries
                    .iter()
                    .filter_map(|entry| entry.uuid.as_deref()),
            );
            let expected = Shown {
                truth: case.truth.len(),
                in_order: true,
                ..Shown::default()
            };
            assert_eq!(shown, expected, "seed {seed}");
        }
    }

    #[test]
    fn equal_seeds_do_equal_damage_and_every_kind_occurs() {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        for (seed, healthy) in sessions() {
            for kind in Kind::ALL {
                let (one, two) = (healthy.hurt(kind, seed), healthy.hurt(kind, seed));
                assert!(one == two, "{kind:?} of seed {seed}");
                let Some(case) = one else { continue };
                let is_hurt = case.bytes != healthy.undamaged().bytes;
                assert!(is_hurt, "{kind:?} of seed {seed}");
                *counts.entry(kind).or_default() += 1;
            }
        }
        println!("{counts:?}");
        for kind in Kind::ALL {
            assert!(
                counts.get(&kind).is_some_and(|count| *count >= 20),
                "{kind:?} is too rare"
            );
        }
    }

    #[test]
    fn little_of_the_conversation_is_unproven_and_nothing_of_the_truth() {
        let mut counts: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
        for (seed, healthy) in sessions() {
            for kind in Kind::ALL {
                let Some(case) = healthy.hurt(kind, seed) else {
                    continue;
                };
                assert!(case.truth.iter().all(|uuid| !case.unproven.contains(uuid)));
                assert!(case.truth.iter().all(|uuid| case.known.contains(uuid)));
                assert!(case.foreign.is_disjoint(&case.known));
                let (truth, all) = counts.entry(kind).or_default();
                *truth += case.truth.len();
                *all += healthy.conversation().len();
            }
        }
        println!("{counts:?}");
        for (kind, (truth, all)) in counts {
            assert!(truth * 100 >= all * 80, "{kind:?}: {truth} of {all}");
        }
    }

    // -----------------------------------------------------------------------------------------
    // Truth by hand
    // -----------------------------------------------------------------------------------------

    /// Builds a session from words: `name`, `name<parent` or `name<parent#message`. The first letter
    /// is the kind: user, assistant, result, boundary, summary. The default parent is the line
    /// before; `-` means no parent.
    fn session(words: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut before = None;
        for (at, word) in words.split(' ').enumerate() {
            let (word, message) = word.split_once('#').unwrap_or((word, word));
            let (name, parent) = match word.split_once('<') {
                Some((name, "-")) => (name, None),
                Some((name, parent)) => (name, Some(parent)),
                None => (word, before),
            };
            let entry = json!({
                "uuid": name, "parentUuid": parent, "isSidechain": false, "sessionId": "s",
                "timestamp": format!("2026-11-20T10:{at:02}:00.000Z"),
            });
            let mut entry = entry;
            let text = json!([{"type": "text", "text": name}]);
            match &name[..1] {
                "a" => {
                    entry["type"] = json!("assistant");
                    entry["message"] = json!({"id": message, "content": text});
                }
                "r" => {
                    let block =
                        json!({"type": "tool_result", "tool_use_id": message, "content": ""});
                    entry["type"] = json!("user");
                    entry["message"] = json!({"content": [block]});
                }
                "b" => {
                    entry["type"] = json!("system");
                    entry["subtype"] = json!("compact_boundary");
                }
                _ => {
                    entry["type"] = json!("user");
                    entry["message"] = json!({"content": text});
                    entry["isCompactSummary"] = json!(name.starts_with('s'));
                }
            }
            out.extend_from_slice(format!("{entry}\n").as_bytes());
            before = Some(name);
        }
        out
    }

    /// What is true, and what may be shown, when one line is gone.
    fn without(words: &str, gone: &str) -> (String, String) {
        let healthy = Healthy::new(&session(words)).expect("the session is healthy");
        let damage = hurt::without(&healthy, vec![healthy.line_of[gone]]).expect("a line to drop");
        let truth = truth::truth(&healthy, &damage);
        let mut unproven: Vec<String> = truth.unproven.into_iter().collect();
        unproven.sort_unstable();
        (truth.uuids.join(" "), unproven.join(" "))
    }

    fn check(words: &str, gone: &str, truth: &str, unproven: &str) {
        let expected = (truth.to_owned(), unproven.to_owned());
        assert_eq!(without(words, gone), expected, "{words} without {gone}");
    }

    #[test]
    fn all_but_the_lost_line_is_true_where_the_file_order_shows_what_stood_above() {
        check("u1<- a1 u2 a2 u3 a3", "u2", "u1 a1 a2 u3 a3", "u2");
        check("u1<- a1 u2 a2 u3 a3", "a3", "u1 a1 u2 a2 u3", "a3");
        check("u1<- a1 u2 a2 u3 a3", "u1", "a1 u2 a2 u3 a3", "u1");
    }

    #[test]
    fn a_prompt_after_a_prompt_may_be_a_rewind() {
        check("u1<- a1 u2 a2 u3 a3", "a2", "u3 a3", "a1 a2 u1 u2");
    }

    #[test]
    fn a_branch_whose_first_line_is_lost_may_follow_the_one_before_it() {
        check(
            "u1<- a1 u2 a2 u3<a1 a3 u4 a4",
            "u3",
            "a3 u4 a4",
            "a1 a2 u1 u2 u3",
        );
        // Further down it is plain again.
        check("u1<- a1 u2 a2 u3<a1 a3 u4 a4", "u4", "u1 a1 u3 a3 a4", "u4");
    }

    #[test]
    fn a_lost_leaf_leaves_what_the_file_shows_without_it() {
        check(
            "u1<- a1 u2 a2 u3 a3 u4<a3 u5<a3",
            "u5",
            "u1 a1 u2 a2 u3 a3 u4",
            "u5",
        );
        check(
            "u1<- a1 u2 a2 u3<a1 a3 u4 a4 u5<a4 u6<a4",
            "u6",
            "u1 a1 u3 a3 u4 a4 u5",
            "u6",
        );
    }

    #[test]
    fn history_before_a_boundary_stays_hidden_when_the_boundary_or_its_summary_is_lost() {
        let words = "u1<- a1 u2 a2 b<- s u3 a3 u4 a4 u5 a5";
        check(words, "b", "s u3 a3 u4 a4 u5 a5", "");
        check(words, "s", "u3 a3 u4 a4 u5 a5", "s");
    }

    #[test]
    fn lines_of_one_message_prove_each_other() {
        check(
            "u1<- a1#m a2#m a3#m u2 a4 u3 a5",
            "a2",
            "u1 a1 a3 u2 a4 u3 a5",
            "a2",
        );
    }
}
