//! A session of another agent, as values: nodes, the path that goes to the model, branches, and a map of all bytes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use transcript_storage::ReadFile;

use crate::Agent;
use crate::content::NewContent;
use crate::node::{Node, NodeKind, Usage};
use crate::node_ids::NodeIds;
use crate::nodes::{Name, Nodes};
use crate::place::{Place, SourceId};
use crate::text::Stored;

pub(crate) use crate::node_ids::NodeId;
pub(crate) use crate::nodes::NewNode;

pub use transcript_format::imported::DamageKind;

/// A session of another agent.
///
/// Every node is live or in exactly one branch, and the [parts](Self::parts) of a source lie side by side without gaps: tests
/// hold both for any bytes.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The agent that wrote it.
    pub agent: Agent,
    /// What is known about the session as a whole.
    pub metadata: Metadata,
    /// The files that it was read from.
    pub sources: Vec<Source>,
    /// The nodes that go to the model with the next prompt, in their order. Thoughts that an agent keeps and does not send
    /// again stand among them.
    pub live: Vec<NodeId>,
    /// The nodes that do not.
    pub branches: Vec<Branch>,
    /// What each part of each source is, in the order of the bytes.
    pub parts: Vec<Part>,
    /// The number of records of each type that the dialect does not know. Their bytes are kept raw.
    pub unknown: BTreeMap<String, u64>,
    /// What is damaged, in the order in which it was found.
    pub damage: Vec<Damage>,
    /// The reason why the agent itself refuses the session; only under [`Policy::Vendor`](crate::Policy::Vendor), and nothing is
    /// live then.
    pub refusal: Option<&'static str>,
    /// What identifies a response in every copy of it, by its last node, where its record does not.
    pub(crate) responses: HashMap<NodeId, Box<str>>,
    pub(crate) nodes: Nodes,
    /// The branch of each node; `None` when it is live.
    branch_of: Vec<Option<u32>>,
}

/// A file that a conversation was read from, or one table of a database.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path of the file.
    pub path: PathBuf,
    /// The table; `None` for a file as a whole.
    pub table: Option<String>,
    /// Its length in bytes; of a compressed file, that of what it decompresses to; of a table, its highest row number and one more.
    pub len: u64,
    /// The version that it is of, if that is not the newest one.
    pub version: Option<Box<str>>,
    /// The open file, if texts can be read from it again. It stays the same file when another one takes its name.
    pub(crate) file: Option<Arc<dyn ReadFile>>,
}

/// What is known about a session as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// Its working folder.
    pub cwd: Option<String>,
    /// When it began, as it is written.
    pub started: Option<String>,
    /// The time of its last record, as it is written.
    pub updated: Option<String>,
    /// The version of the agent that wrote it last.
    pub version: Option<String>,
    /// The model in use at its end.
    pub model: Option<String>,
    /// The session that it was forked from.
    pub forked_from: Option<String>,
    /// The session whose subagent it is.
    pub subagent_of: Option<String>,
    /// The tokens that the agent counts for it.
    pub usage: Option<Usage>,
}

/// Nodes that do not go to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Why they do not.
    pub kind: BranchKind,
    /// The nodes, in their order.
    pub nodes: Vec<NodeId>,
}

/// The reason why nodes do not go to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BranchKind {
    /// The session was set back to an earlier state, which is kept in another file.
    Reverted,
    /// The person went back in the conversation.
    Rewound,
    /// A newer version took their place.
    Superseded,
    /// They belong to the session that this one was forked from and came after the fork.
    Forked,
    /// A summary took their place.
    Compacted,
    /// The agent deleted them, and a side table still has them, or an earlier version of the file.
    Deleted,
    /// A subagent said them; only its result goes to the model.
    Subagent,
    /// The agent stores them and never sends them: notes, commands, failed answers.
    Unsent,
}

impl BranchKind {
    /// Returns its name in lines and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reverted => "reverted",
            Self::Rewound => "rewound",
            Self::Superseded => "superseded",
            Self::Forked => "forked",
            Self::Compacted => "compacted",
            Self::Deleted => "deleted",
            Self::Subagent => "subagent",
            Self::Unsent => "unsent",
        }
    }
}

/// What a part of a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes.
    pub place: Place,
    /// What they are.
    pub holds: Holds,
}

/// What a part of a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// These nodes.
    Nodes(NodeIds),
    /// Something of the [metadata](Metadata).
    Metadata(&'static str),
    /// A record that is kept as it is, by the name of its type.
    Raw(Cow<'static, str>),
    /// Bytes outside of records.
    Damaged,
}

/// A damaged part of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The bytes; those around it when something is missing.
    pub place: Place,
    /// What is wrong.
    pub kind: DamageKind,
}

impl Conversation {
    pub(crate) fn new(agent: Agent, id: &str) -> Self {
        Self {
            agent,
            metadata: Metadata {
                id: id.to_owned(),
                ..Metadata::default()
            },
            sources: Vec::new(),
            live: Vec::new(),
            branches: Vec::new(),
            parts: Vec::new(),
            unknown: BTreeMap::new(),
            damage: Vec::new(),
            refusal: None,
            responses: HashMap::new(),
            nodes: Nodes::default(),
            branch_of: Vec::new(),
        }
    }

    /// Returns the ids of all nodes: those that lie in sources in the order of their bytes, then those that are made.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    /// Returns a node.
    ///
    /// # Panics
    /// When the id is one of another conversation.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Node<'_> {
        self.nodes.node(id)
    }

    /// Returns a file that it was read from.
    ///
    /// # Panics
    /// When the id is one of another conversation.
    #[must_use]
    pub fn source(&self, id: SourceId) -> &Source {
        &self.sources[id.index()]
    }

    /// Returns the place of the branch of a node in [`branches`](Self::branches); `None` when it is live, or part of a made node
    /// that is.
    #[must_use]
    pub fn branch_of(&self, id: NodeId) -> Option<usize> {
        self.branch_of[id.0 as usize].map(|branch| branch as usize)
    }

    /// Returns the number of a name that many nodes have.
    pub(crate) fn name(&mut self, name: &str) -> Name {
        self.nodes.name(name)
    }

    /// Notes the tokens of a response: at the last of its nodes that the model wrote, as results of calls cost nothing by themselves.
    pub(crate) fn count(&mut self, nodes: &[NodeId], usage: Option<Usage>) {
        let mut nodes = nodes.iter().rev().copied();
        let last = nodes.find(|id| self.node(*id).kind.is_of_model());
        if let Some((last, usage)) = last.zip(usage) {
            *self.nodes.usage_mut(last) = usage;
        }
    }

    /// Adds a source. `file` is open if it can be read at an offset.
    pub(crate) fn add_source(
        &mut self,
        path: PathBuf,
        file: Option<Arc<dyn ReadFile>>,
    ) -> SourceId {
        let id = SourceId::at(self.sources.len());
        // A process cannot have any number of files open.
        let file = file.filter(|_| id.index() < Stored::MAX_SOURCES);
        self.sources.push(Source {
            path,
            table: None,
            len: 0,
            version: None,
            file,
        });
        id
    }

    /// Adds a table of a database as a source. Texts of rows are held.
    #[cfg(feature = "sqlite")]
    pub(crate) fn add_table(&mut self, path: PathBuf, table: &str) -> SourceId {
        let id = self.add_source(path, None);
        self.sources[id.index()].table = Some(table.to_owned());
        id
    }

    pub(crate) fn add(&mut self, node: NewNode) -> NodeId {
        self.nodes.add(node)
    }

    /// Adds a node that the agent makes for the request.
    pub(crate) fn make(&mut self, kind: NodeKind, content: NewContent, of: Vec<NodeId>) -> NodeId {
        let mut node = NewNode::new(kind, content);
        node.made_of = of;
        self.add(node)
    }

    pub(crate) fn report(&mut self, place: Place, kind: DamageKind) {
        self.damage.push(Damage { place, kind });
    }

    /// Counts a record of an unknown type and returns that its bytes are kept raw.
    pub(crate) fn unknown(&mut self, name: &str) -> Holds {
        *self.unknown.entry(name.to_owned()).or_default() += 1;
        Holds::Raw(Cow::Owned(name.to_owned()))
    }

    /// Adds a branch if it has nodes.
    pub(crate) fn branch(&mut self, kind: BranchKind, nodes: Vec<NodeId>) {
        if !nodes.is_empty() {
            self.branches.push(Branch { kind, nodes });
        }
    }

    /// Says that the agent refuses the session: the live nodes become a branch.
    pub(crate) fn refuse(&mut self, reason: &'static str) {
        let live = std::mem::take(&mut self.live);
        self.branch(BranchKind::Unsent, live);
        self.refusal = Some(reason);
    }

    /// Completes a conversation: each node gets exactly one place, and the nodes the order of their bytes.
    pub(crate) fn finish(mut self) -> Self {
        self.sort();
        let mut taken = vec![false; self.nodes.len()];
        let mut take = |id: NodeId| !std::mem::replace(&mut taken[id.0 as usize], true);
        self.live.retain(|id| take(*id));
        let mut within = self.live.clone();
        while let Some(id) = within.pop() {
            let parts = self.nodes.node(id).made_of.iter().copied();
            within.extend(parts.filter(|part| take(*part)));
        }
        for branch in &mut self.branches {
            branch.nodes.retain(|id| take(*id));
        }
        self.branches.retain(|branch| !branch.nodes.is_empty());
        let left: Vec<NodeId> = self.ids().filter(|id| !taken[id.0 as usize]).collect();
        self.branch(BranchKind::Unsent, left);
        self.branch_of = vec![None; self.nodes.len()];
        for (number, branch) in self.branches.iter().enumerate() {
            for id in &branch.nodes {
                self.branch_of[id.0 as usize] = u32::try_from(number).ok();
            }
        }
        self
    }

    /// Puts the nodes into the order of their bytes: some are known only after later ones.
    fn sort(&mut self) {
        let Some(new) = self.nodes.sort() else {
            return;
        };
        let renumber = |id: &mut NodeId| *id = new[id.0 as usize];
        self.live.iter_mut().for_each(renumber);
        let responses = std::mem::take(&mut self.responses).into_iter();
        let responses = responses.map(|(id, key)| (new[id.index()], key));
        self.responses = responses.collect();
        let branches = self.branches.iter_mut();
        branches.for_each(|branch| branch.nodes.iter_mut().for_each(renumber));
        for part in &mut self.parts {
            if let Holds::Nodes(ids) = &mut part.holds {
                ids.iter_mut().for_each(renumber);
            }
        }
    }
}

impl Conversation {
    /// Returns the id of the call that a node makes or answers.
    pub(crate) fn call_id(&self, id: NodeId) -> Option<&str> {
        self.stored(id).call_id
    }

    /// Returns the nodes that begin before a place or at it, in its source or an earlier one, the last one first.
    pub(crate) fn before(&self, place: Place) -> impl Iterator<Item = NodeId> + use<> {
        let is_before = |origin: Option<Place>| {
            origin.is_some_and(|at| (at.source, at.offset) <= (place.source, place.offset))
        };
        let count = self.nodes.count_before(is_before);
        (0..u32::try_from(count).unwrap_or(u32::MAX))
            .rev()
            .map(NodeId)
    }
}
