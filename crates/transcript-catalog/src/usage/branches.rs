//! The branches of a conversation to which requests belong.

use std::collections::{HashMap, HashSet};

use transcript_format::scan::Body;
use transcript_reader::{Error, Index, Source};
use transcript_resume::{NodeId, Policy, Tree};

use super::report::Key;
use crate::reading::entries;

/// The branches of the requests of a session's file.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// By the offset of the line.
    of_lines: HashMap<u64, Key>,
    /// By the id of the subagent: where its result is.
    of_agents: HashMap<String, Key>,
}

impl Branches {
    /// Finds the branches of the lines at these offsets, and of the results of subagents.
    pub(super) fn read(source: &Source, mut offsets: Vec<u64>) -> Result<Self, Error> {
        let wants = |line: &[u8]| memchr::memmem::find(line, b"\"agentId\"").is_some();
        let results: Vec<(u64, String)> =
            entries(source, wants, |found: &mut Vec<_>, place, text, _| {
                let result = Body::parse(text).ok().and_then(|body| body.tool_use_result);
                let agent = result.and_then(|result| Some(result.str("agentId")?.into_owned()));
                if let Some(agent) = agent.filter(|agent| !agent.is_empty()) {
                    found.push((place.offset, agent));
                }
            })?;
        offsets.extend(results.iter().map(|(offset, _)| *offset));
        offsets.sort_unstable();
        let index = Index::load(source)?;
        let of_lines = branches_of(&index, &offsets);
        let of_agents = results.into_iter().filter_map(|(offset, agent)| {
            let branch = of_lines.get(&offset)?.clone();
            Some((agent, branch))
        });
        Ok(Self {
            of_agents: of_agents.collect(),
            of_lines,
        })
    }

    pub(super) fn of_line(&self, offset: u64) -> Key {
        self.of_lines.get(&offset).cloned().unwrap_or(Key::None)
    }

    pub(super) fn of_agent(&self, agent: &str) -> Key {
        self.of_agents.get(agent).cloned().unwrap_or(Key::None)
    }
}

/// Returns the branches of the entries at these offsets, which are sorted.
fn branches_of(index: &Index, offsets: &[u64]) -> HashMap<u64, Key> {
    let tree = Tree::new(index, Policy::Recover);
    let context = tree.path();
    let tree = tree.unspliced();
    let story = tree.story(&context).path.entries;
    let nodes = story
        .iter()
        .filter_map(|entry| tree.entry_node(entry.entry_no()));
    let current = nodes.clone().next_back();
    let in_story: HashSet<NodeId> = nodes.collect();
    // From the last leaf on, so that the first one that reaches a node is the newest below it.
    let mut newest: HashMap<NodeId, NodeId> = HashMap::with_capacity(index.len());
    let leaves = tree
        .nodes()
        .rev()
        .filter(|node| tree.children(*node).next().is_none());
    for leaf in leaves {
        let mut node = Some(leaf);
        while let Some(here) = node
            && !newest.contains_key(&here)
        {
            newest.insert(here, leaf);
            node = tree.parent(here).node();
        }
    }
    let key = |node: NodeId| {
        let is_current = in_story.contains(&node);
        let leaf = if is_current {
            current?
        } else {
            *newest.get(&node)?
        };
        let entry = tree.entry(leaf);
        let leaf = match entry.uuid() {
            Some(uuid) => index.id_text(uuid),
            None => format!("line {}", entry.line()),
        };
        Some(Key::Branch {
            leaf: leaf.into(),
            is_current,
        })
    };
    let mut wanted = offsets.iter().copied().peekable();
    let mut found = HashMap::new();
    for entry in index.entries() {
        while wanted.next_if(|offset| *offset < entry.offset()).is_some() {}
        while wanted.next_if_eq(&entry.offset()).is_some() {
            if let Some(key) = tree.entry_node(entry.number()).and_then(&key) {
                found.insert(entry.offset(), key);
            }
        }
    }
    found
}
