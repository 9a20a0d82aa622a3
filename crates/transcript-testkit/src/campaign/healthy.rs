//! A session without defects.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::model;

/// The role of a line in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    System,
    Attachment,
    Progress,
    /// A blank line, or one that cannot be part of a chain.
    OutsideChain,
}

#[derive(Debug)]
pub(super) struct Line {
    /// The line as it is in the file, with its newline.
    pub(super) bytes: Vec<u8>,
    /// `null` for a blank line.
    pub(super) value: Value,
    pub(super) role: Role,
    pub(super) uuid: Option<String>,
    /// The line of the parent; `None` for a root.
    pub(super) parent: Option<usize>,
    pub(super) is_sidechain: bool,
}

impl Line {
    /// Returns the bytes without the line end.
    pub(super) fn content(&self) -> &[u8] {
        self.bytes.trim_ascii_end()
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self.role, Role::User | Role::Assistant)
    }

    /// Returns whether this is a message of the conversation, as `verify` counts them.
    pub(super) fn counts(&self) -> bool {
        self.is_message()
            && !self.is_sidechain
            && !self.value["teamName"].is_string()
            && self.value["isVirtual"] != true
    }

    pub(super) fn is_boundary(&self) -> bool {
        self.role == Role::System && self.value["subtype"] == "compact_boundary"
    }

    pub(super) fn is_queued(&self) -> bool {
        self.value["attachment"]["type"] == "queued_command"
    }

    /// Returns whether the line takes the conversation on.
    pub(super) fn continues(&self) -> bool {
        self.is_message() || self.is_boundary() || self.is_queued()
    }

    /// Returns whether a client wrote the user line by itself, as far as the line says so.
    pub(super) fn is_of_client(&self) -> bool {
        let content = &self.value["message"]["content"];
        let text = content
            .as_str()
            .or_else(|| content.get(0)?["text"].as_str());
        let text = text.unwrap_or_default();
        self.value["isMeta"] == true
            || text.starts_with("<task-notification>")
            || transcript_format::texts::is_synthetic(text)
    }

    pub(super) fn is_blank(&self) -> bool {
        self.value.is_null()
    }

    /// Returns the ids in `field` of the blocks of this type.
    pub(super) fn block_ids(&self, block_type: &str, field: &str) -> HashSet<&str> {
        let blocks = self.value["message"]["content"].as_array();
        let blocks = blocks
            .into_iter()
            .flatten()
            .filter(|block| block["type"] == block_type);
        blocks.filter_map(|block| block[field].as_str()).collect()
    }

    /// Returns whether this is a user line without tool results: typed by a person, or written to
    /// look like it.
    pub(super) fn is_prompt(&self) -> bool {
        self.role == Role::User && self.block_ids("tool_result", "tool_use_id").is_empty()
    }
}

/// A session without defects, and its path.
#[derive(Debug)]
pub struct Healthy {
    pub(super) lines: Vec<Line>,
    pub(super) line_of: HashMap<String, usize>,
    /// The line numbers of the entries of the path, from 0.
    pub(super) path: Vec<usize>,
    /// The leaf of the path and its ancestors by links alone, up to the start of the path.
    pub(super) chain: Vec<usize>,
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

    /// Returns every message of the session, of all branches and sidechains. A path that shows one
    /// of these without need is wrong.
    pub(super) fn known(&self) -> HashSet<String> {
        let is_known = |line: &&Line| line.counts() || (line.is_message() && line.is_sidechain);
        let known = self.lines.iter().filter(is_known);
        known.filter_map(|line| line.uuid.clone()).collect()
    }

    /// Returns the uuids of those of `lines` that are messages of the conversation.
    pub(super) fn uuids(&self, lines: &[usize]) -> Vec<String> {
        let lines = lines.iter().map(|line| &self.lines[*line]);
        lines
            .filter(|line| line.counts())
            .filter_map(|line| line.uuid.clone())
            .collect()
    }

    pub(super) fn link(&mut self) -> Option<()> {
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

    pub(super) fn check_links(&self) -> bool {
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

    /// Returns whether no entry after the first message but boundaries and the prompts of persons, and
    /// no progress line, is without a parent, and whether each of them says so with `null`.
    pub(super) fn has_prompts_as_roots(&self) -> bool {
        let first = self.lines.iter().position(Line::is_message);
        let after = self.lines.iter().skip(first.map_or(0, |first| first + 1));
        let is_entry = |line: &&Line| line.role != Role::OutsideChain && !line.is_sidechain;
        let mut roots = after.filter(|line| is_entry(line) && line.parent.is_none());
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
            let is_of_person = !content.contains("\"tool_result\"") && !line.is_of_client();
            line.role == Role::User && is_of_person && line.value["parentUuid"].is_null()
        };
        roots.all(|line| line.is_boundary() || is_prompt(line))
    }

    /// Returns whether what a client writes by itself follows the message before it, so that only
    /// persons start branches.
    pub(super) fn has_branches_of_persons(&self) -> bool {
        let mut last = None;
        self.lines.iter().enumerate().all(|(at, line)| {
            if line.is_sidechain || !line.continues() {
                return true;
            }
            let before = last.replace(at);
            let mut lines = self.lines[..at].iter().rev();
            let is_end =
                |line: &&Line| line.is_message() || line.value["type"] == "queue-operation";
            let is_from_queue = lines.find(is_end).is_some_and(|line| !line.is_message());
            let is_of_client =
                line.is_queued() || line.is_prompt() && (is_from_queue || line.is_of_client());
            let mut above = self.ancestors(at).skip(1);
            let above = above.find(|above| self.lines[*above].continues());
            // An answer behind entries of the client, without a prompt on its branch.
            let is_behind = line.parent.is_some() && line.parent != above;
            let is_left = is_behind
                && above.is_some_and(|above| {
                    let since = self.lines.get(above + 1..at).unwrap_or_default();
                    since
                        .iter()
                        .any(|line| line.is_prompt() && !line.is_sidechain)
                });
            let is_of_client = is_of_client || line.role == Role::Assistant && is_left;
            !is_of_client || above == before
        })
    }

    /// Returns `line` and its ancestors, nearest first. Ends after as many steps as there are lines,
    /// so that a cycle does not loop.
    pub(super) fn ancestors(&self, line: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(line), |line| self.lines[*line].parent)
            .take(self.lines.len() + 1)
    }

    pub(super) fn check_boundaries(&self) -> bool {
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
    pub(super) fn segment(&self, segment: &Value) -> Option<Vec<usize>> {
        let line = |name: &str| self.line_of.get(segment[name].as_str()?).copied();
        let (head, tail) = (line("headUuid")?, line("tailUuid")?);
        let mut lines: Vec<usize> = self.ancestors(tail).collect();
        lines.truncate(lines.iter().position(|line| *line == head)? + 1);
        lines.reverse();
        Some(lines)
    }

    pub(super) fn has_one_session(&self) -> bool {
        let messages = self.lines.iter().filter(|line| line.is_message());
        let sessions: HashSet<Option<&str>> = messages
            .map(|line| line.value["sessionId"].as_str())
            .collect();
        sessions.len() == 1
    }

    pub(super) fn follow(&mut self, bytes: &[u8]) -> Option<()> {
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
