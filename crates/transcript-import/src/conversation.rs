//! A session of another agent, as values: nodes, the path that goes to the model, branches, and a map of all bytes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use transcript_storage::ReadFile;

use crate::Agent;
use crate::content::StoredContent;
use crate::node_ids::NodeIds;
use crate::place::{Place, SourceId};
use crate::text::Stored;

pub(crate) use crate::node_ids::NodeId;

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
    /// The names of models, each once.
    names: BTreeSet<Arc<str>>,
    /// What identifies a response in every copy of it, by its last node, where its record does not.
    pub(crate) responses: HashMap<NodeId, Box<str>>,
    nodes: Vec<Node>,
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

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A prompt, or what the agent sends as one.
    User,
    /// A text of the model.
    Assistant,
    /// A thought of the model.
    Reasoning,
    /// A call of a tool.
    ToolCall,
    /// The result of a call.
    ToolResult,
    /// The summary of a compaction or of a branch.
    Summary,
    /// Text that the agent adds by itself, such as the date and the working folder.
    Context,
}

/// A message, or one block of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Where it lies. `None` for a node that the agent makes for the request and stores nowhere.
    pub origin: Option<Place>,
    /// The nodes that a made node stands for, such as the prompts that are sent as one. They are not live themselves.
    pub made_of: NodeIds,
    /// The id of its record.
    pub record_id: Option<Box<str>>,
    /// The time of its record, as it is written.
    pub time: Option<Box<str>>,
    /// The model that wrote it.
    pub model: Option<Arc<str>>,
    /// The tokens of the response that ends with it.
    pub usage: Option<Box<Usage>>,
    pub(crate) content: StoredContent,
}

/// Numbers of tokens, with one meaning for all agents: each token of a request and of a response is in exactly one of the first four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of requests that came from no cache and went into none.
    pub input: u64,
    /// Tokens of responses, those of thoughts included.
    pub output: u64,
    /// Tokens of requests that were read from the cache.
    pub cache_read: u64,
    /// Tokens of requests that were written to the cache.
    pub cache_write: u64,
    /// Tokens of thoughts, which are a part of the output.
    pub reasoning: u64,
}

impl Usage {
    /// Takes the tokens of the cache out of the input: an agent counted them as a part of it.
    pub(crate) fn of_whole_input(self) -> Self {
        let cached = self.cache_read.saturating_add(self.cache_write);
        Self {
            input: self.input.saturating_sub(cached),
            ..self
        }
    }

    /// Adds the tokens of thoughts to the output: an agent counted them apart.
    pub(crate) fn of_separate_thoughts(self) -> Self {
        Self {
            output: self.output.saturating_add(self.reasoning),
            ..self
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.input, other.input);
        add(&mut self.output, other.output);
        add(&mut self.cache_read, other.cache_read);
        add(&mut self.cache_write, other.cache_write);
        add(&mut self.reasoning, other.reasoning);
    }
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
            names: BTreeSet::new(),
            responses: HashMap::new(),
            nodes: Vec::new(),
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
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
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

    /// Returns a name that many nodes have.
    pub(crate) fn name(&mut self, name: &str) -> Arc<str> {
        match self.names.get(name) {
            Some(known) => known.clone(),
            None => {
                let new: Arc<str> = name.into();
                self.names.insert(new.clone());
                new
            }
        }
    }

    /// Notes the tokens of a response: at the last of its nodes that the model wrote, as results of calls cost nothing by themselves.
    pub(crate) fn count(&mut self, nodes: &[NodeId], usage: Option<Usage>) {
        let mut nodes = nodes.iter().rev().copied();
        let last = nodes.find(|id| self.node(*id).kind.is_of_model());
        if let Some((last, usage)) = last.zip(usage) {
            self.node_mut(last).usage = Some(Box::new(usage));
        }
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
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

    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        id
    }

    /// Adds a node that the agent makes for the request.
    pub(crate) fn make(
        &mut self,
        kind: NodeKind,
        content: StoredContent,
        of: Vec<NodeId>,
    ) -> NodeId {
        let mut node = Node::new(kind, content);
        node.made_of = of.into();
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
            let parts = self.nodes[id.0 as usize].made_of.iter().copied();
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
        let key = |node: &Node| (node.origin.is_none(), node.origin);
        if self.nodes.is_sorted_by_key(key) {
            return;
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| key(&self.nodes[*at]));
        let mut new = vec![NodeId(0); order.len()];
        for (number, at) in order.iter().enumerate() {
            new[*at] = NodeId(u32::try_from(number).unwrap_or(u32::MAX));
        }
        let mut nodes: Vec<Option<Node>> = self.nodes.drain(..).map(Some).collect();
        self.nodes = order.iter().filter_map(|at| nodes[*at].take()).collect();
        let renumber = |id: &mut NodeId| *id = new[id.0 as usize];
        self.live.iter_mut().for_each(renumber);
        let responses = std::mem::take(&mut self.responses).into_iter();
        let responses = responses.map(|(id, key)| (new[id.index()], key));
        self.responses = responses.collect();
        let branches = self.branches.iter_mut();
        branches.for_each(|branch| branch.nodes.iter_mut().for_each(renumber));
        let nodes = self.nodes.iter_mut();
        nodes.for_each(|node| node.made_of.iter_mut().for_each(renumber));
        for part in &mut self.parts {
            if let Holds::Nodes(ids) = &mut part.holds {
                ids.iter_mut().for_each(renumber);
            }
        }
    }
}

impl Node {
    pub(crate) fn new(kind: NodeKind, content: StoredContent) -> Self {
        Self {
            kind,
            origin: None,
            made_of: NodeIds::default(),
            record_id: None,
            time: None,
            model: None,
            usage: None,
            content,
        }
    }
}

impl NodeKind {
    /// Returns whether the model wrote it.
    pub(crate) fn is_of_model(self) -> bool {
        matches!(self, Self::Assistant | Self::Reasoning | Self::ToolCall)
    }
}

impl Conversation {
    /// Returns the id of the call that a node makes or answers.
    pub(crate) fn call_id(&self, id: NodeId) -> Option<&str> {
        self.stored(id).call_id.as_deref()
    }

    /// Returns the nodes that begin before a place or at it, in its source or an earlier one, the last one first.
    pub(crate) fn before(&self, place: Place) -> impl Iterator<Item = NodeId> + use<> {
        let is_before = |node: &Node| {
            let origin = node.origin;
            origin.is_some_and(|at| (at.source, at.offset) <= (place.source, place.offset))
        };
        let count = self.nodes.partition_point(is_before);
        (0..u32::try_from(count).unwrap_or(u32::MAX))
            .rev()
            .map(NodeId)
    }
}
