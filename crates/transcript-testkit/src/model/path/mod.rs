//! Stage 2: turns the objects of a file into the entries of the conversation, in order.
//!
//! This stage only uses the structure of the file (ids, parents, kinds, times), with one exception:
//! an entry whose body is unusable is treated as if its line did not exist (FILE-6).

mod compaction;
mod entry;
mod graph;
mod leaf;
mod siblings;

pub use self::entry::PathEntry;
use self::graph::Graph;
use super::lines::{self, Line};
use super::version::Version;

/// The conversation of a file: the entries on the way to its leaf.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The entries in the order in which they are sent, attachments and system lines included.
    pub entries: Vec<PathEntry>,
    /// The uuid of the leaf; `None` when there is no leaf or the leaf has no uuid.
    pub leaf: Option<String>,
    /// Whether every message of the file is on a sidechain, as in the file of a subagent.
    pub is_subagent: bool,
    /// The reason why the client refuses to resume this file.
    pub refusal: Option<String>,
}

/// Returns the path that the client would take through the file `bytes`.
///
/// The rules are those of the client that wrote the file. The file of a subagent has a path, although
/// the client would not resume it.
pub fn vendor_path(bytes: &[u8]) -> Path {
    let lines = lines::parse(bytes);
    path(&lines, Version::of(&lines))
}

/// Returns the path through the file with these lines, for a version of the client.
pub(super) fn path(lines: &[Line], version: Version) -> Path {
    let mut graph = Graph::new(lines);
    let tail = compaction::splice(&mut graph);

    if graph.entries.is_empty() {
        return refuse("the file holds no conversation");
    }
    if !graph.has_main_message() && (graph.has_message() || !graph.has_main_entry()) {
        return refuse("nothing but sidechains is left of the conversation");
    }
    let leaf = match leaf::leaf(&graph, lines, tail) {
        Ok(Some(leaf)) => leaf,
        // Nothing but lines that are not sent: the client resumes, with an empty history.
        Ok(None) => return Path::default(),
        Err(reason) => return refuse(reason),
    };
    if version.needs_time_of_leaf() && !graph.has_time_of_leaf(leaf) {
        // The client does not fall back to an older leaf: it refuses to resume.
        return refuse("the leaf has no valid timestamp");
    }

    let mut chain = graph.chain(leaf);
    // The attachments below the leaf belong to the path, even those that lead to another entry
    // (CHAIN-10). In a cycle they may be on the chain already.
    let children = graph.children();
    for attachment in siblings::attachments_under(&graph, &children, leaf) {
        if !chain.contains(&attachment) {
            chain.push(attachment);
        }
    }
    compaction::cut_at_boundary(&graph, &mut chain);
    let chain = siblings::with_siblings(&graph, &children, chain);

    let entries = chain
        .iter()
        .map(|&index| graph.entries[index].to_path_entry())
        .collect();
    Path {
        entries,
        leaf: graph.entries[leaf].uuid(),
        is_subagent: graph.is_subagent,
        refusal: None,
    }
}

fn refuse(reason: &str) -> Path {
    Path {
        refusal: Some(reason.to_owned()),
        ..Path::default()
    }
}
