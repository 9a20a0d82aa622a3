//! The output of `tree --json`.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use transcript_reader::{Boundary, EntryRef, Id, Index, Preserved};
use transcript_resume::{Branch, BranchStart, Branches, ConversationPath, Decision, Sidechain};

use super::{EntryLocation, Name, SCHEMA};
use transcript_session::History;

/// The branches of a session: the only object of `tree --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TreeReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `tree`.
    pub kind: Name,
    /// The id of the session; `None` if no entry names one.
    pub session_id: Option<String>,
    /// The path of the file; `-` for standard input.
    pub path: String,
    /// The number of physical lines of the file.
    pub lines: u64,
    /// The number of objects on them that may count as entries.
    pub entries: u64,
    /// The starts of the branches that no link of the file connects with a parent.
    pub roots: Vec<RootRecord>,
    /// The branches, by where they start in the file. Their ids are their positions here.
    pub branches: Vec<BranchRecord>,
    /// The compactions, in file order.
    pub boundaries: Vec<BoundaryRecord>,
    /// The subagents in the file, in the order of their first entry.
    pub sidechains: Vec<SidechainRecord>,
    /// The leaf of each policy.
    pub leaves: LeavesRecord,
}

impl TreeReport {
    /// Describes `branches` of `history`. `prompts` has the number of typed prompts of each branch;
    /// the main line ends with the branch of the leaf of `recover`.
    ///
    /// # Panics
    /// When `prompts` has fewer numbers than there are branches.
    #[must_use]
    pub fn new(
        history: &History,
        branches: &Branches,
        prompts: &[usize],
        boundaries: Vec<BoundaryRecord>,
        leaves: LeavesRecord,
    ) -> Self {
        let index = history.index();
        let main = leaves.recover.as_ref().and_then(|leaf| leaf.branch);
        let main = main.map_or(Vec::new(), |branch| branches.line_to(branch as usize));
        let main: HashSet<usize> = main.into_iter().collect();
        let sidechains = branches.sidechains().iter();
        let all = || branches.all().iter().enumerate();
        Self {
            schema: SCHEMA,
            kind: "tree".into(),
            session_id: history.session_id(),
            path: history.source().path().to_string_lossy().into_owned(),
            lines: index.line_count(),
            entries: index.len() as u64,
            roots: all()
                .filter(|(_, branch)| is_root(branch))
                .map(|(id, branch)| RootRecord::new(index, id, branch))
                .collect(),
            branches: all()
                .map(|(id, branch)| BranchRecord {
                    id: id as u64,
                    parent: branch.parent.map(|parent| parent as u64),
                    from: branch.from.map(|from| EntryLocation::new(index, from)),
                    start: branch.start.name().into(),
                    kind: if main.contains(&id) { "main" } else { "side" }.into(),
                    tip: branch.is_tip,
                    entries: branches.entries(id).len() as u64,
                    messages: branch.messages as u64,
                    prompts: prompts[id] as u64,
                    first: EntryLocation::new(index, branch.first),
                    last: EntryLocation::new(index, branch.last),
                    matches: None,
                })
                .collect(),
            boundaries,
            sidechains: sidechains
                .map(|sidechain| SidechainRecord::new(index, sidechain))
                .collect(),
            leaves,
        }
    }
}

/// Whether a branch starts with a root, or with an entry whose parent is missing or part of a cycle.
fn is_root(branch: &Branch) -> bool {
    match branch.start {
        BranchStart::Boundary => branch.parent.is_none(),
        start => start != BranchStart::Child,
    }
}

/// The start of a branch that no link of the file connects with a parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootRecord {
    /// The first entry of the branch.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// The start of the branch: its [`BranchRecord::start`].
    pub kind: Name,
    /// The parent that the entry names; `None` if it names none.
    pub parent_uuid: Option<String>,
    /// The id of the branch.
    pub branch: u64,
}

impl RootRecord {
    fn new(index: &Index, id: usize, branch: &Branch) -> Self {
        let parent = index.entry(branch.first).parent();
        Self {
            entry: EntryLocation::new(index, branch.first),
            kind: branch.start.name().into(),
            parent_uuid: parent.map(|id| index.id_text(id)),
            branch: id as u64,
        }
    }
}

/// A run of entries without a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BranchRecord {
    /// Its position in [`TreeReport::branches`], from 0.
    pub id: u64,
    /// The branch that it leaves; `None` for a root.
    pub parent: Option<u64>,
    /// The entry of that branch that it continues from.
    pub from: Option<EntryLocation>,
    /// Its start: `root`, `child`, `boundary`, `bridge`, `lost`, `sidechain` or `cycle`.
    pub start: Name,
    /// `main` on the path to the leaf of `recover`, else `side`.
    pub kind: Name,
    /// Whether no other branch continues from it.
    pub tip: bool,
    /// The number of its entries.
    pub entries: u64,
    /// The number of its messages.
    pub messages: u64,
    /// The number of prompts that a person typed.
    pub prompts: u64,
    /// Its first entry.
    pub first: EntryLocation,
    /// Its last entry: the one to pass to `--leaf`.
    pub last: EntryLocation,
    /// The number of its entries that are selected; absent without options that select entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
}

/// A compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BoundaryRecord {
    /// The boundary.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// Its origin: `manual` or `auto`; `None` if the boundary does not say.
    pub trigger: Option<String>,
    /// The number of tokens before; `None` if the boundary does not say.
    pub pre_tokens: Option<u64>,
    /// The leaf of the conversation before.
    pub logical_parent: Option<NamedEntry>,
    /// The entry that the preserved ones follow.
    pub anchor: Option<NamedEntry>,
    /// The first preserved entry.
    pub head: Option<NamedEntry>,
    /// The last preserved entry.
    pub tail: Option<NamedEntry>,
    /// The number of preserved entries; `None` if the boundary names only the ends of a segment that
    /// is on no path.
    pub kept: Option<u64>,
    /// The number of named entries that are not in the file.
    pub missing: u64,
}

impl BoundaryRecord {
    /// Returns the entries that a boundary names. The other fields, which its body contains, are
    /// empty.
    #[must_use]
    pub fn new(index: &Index, entry_ref: &EntryRef<'_>) -> Self {
        let named = |id: Option<Id>| id.map(|id| NamedEntry::new(index, id));
        let boundary = index.boundary(entry_ref.number());
        let [anchor, head, tail] = boundary.map_or([None; 3], ends);
        Self {
            entry: EntryLocation::new(index, entry_ref.number()),
            trigger: None,
            pre_tokens: None,
            logical_parent: named(boundary.and_then(|boundary| boundary.logical_parent)),
            anchor: named(anchor),
            head: named(head),
            tail: named(tail),
            kept: None,
            missing: 0,
        }
    }
}

/// Returns anchor, head and tail of the segment that a boundary preserves.
fn ends(boundary: &Boundary) -> [Option<Id>; 3] {
    match &boundary.preserved {
        Preserved::Nothing => [None; 3],
        Preserved::List { anchor, uuids } => {
            let end = |id: Option<&Option<Id>>| id.copied().flatten();
            [*anchor, end(uuids.first()), end(uuids.last())]
        }
        Preserved::Segment { anchor } => [*anchor, boundary.ends[0], boundary.ends[1]],
    }
}

/// A reference to an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NamedEntry {
    /// The uuid.
    pub uuid: String,
    /// Whether the file has an entry with that uuid.
    pub resolves: bool,
}

impl NamedEntry {
    fn new(index: &Index, id: Id) -> Self {
        Self {
            uuid: index.id_text(id),
            resolves: index.with_uuid(id).next().is_some(),
        }
    }
}

/// A subagent in the file of another conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SidechainRecord {
    /// Its id; `None` in files of old clients.
    pub agent: Option<String>,
    /// The number of its entries.
    pub entries: u64,
    /// The first of them.
    pub first: EntryLocation,
}

impl SidechainRecord {
    fn new(index: &Index, sidechain: &Sidechain) -> Self {
        Self {
            agent: sidechain.agent.clone(),
            entries: sidechain.entries as u64,
            first: EntryLocation::new(index, sidechain.first),
        }
    }
}

/// The leaf of each policy; `None` if there is no conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LeavesRecord {
    /// The leaf of policy `recover`.
    pub recover: Option<LeafRecord>,
    /// The leaf of policy `vendor`.
    pub vendor: Option<LeafRecord>,
}

impl LeavesRecord {
    /// The leaves of both policies.
    #[must_use]
    pub fn new(recover: Option<LeafRecord>, vendor: Option<LeafRecord>) -> Self {
        Self { recover, vendor }
    }
}

/// The leaf of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LeafRecord {
    /// The entry.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// The reason why it was chosen: `last-tip`, `last-entry`, `newest`, `pinned` or `after-pin`.
    pub reason: Name,
    /// The reason in words.
    pub detail: String,
    /// The id of its branch; `None` if it is on none.
    pub branch: Option<u64>,
    /// The number of entries of the path to it.
    pub entries: u64,
}

impl LeafRecord {
    /// Describes the leaf of a path; `None` if no decision chose it. `describe` says in words what a
    /// decision was.
    #[must_use]
    pub fn new(
        index: &Index,
        branches: &Branches,
        path: &ConversationPath,
        describe: impl Fn(&Decision) -> String,
    ) -> Option<Self> {
        let leaf = path.leaf?;
        path.decisions.iter().find_map(|decision| match decision {
            Decision::Leaf { reason, .. } => Some(Self {
                entry: EntryLocation::new(index, leaf),
                reason: reason.name().into(),
                detail: describe(decision),
                branch: branches.branch_of(leaf).map(|branch| branch as u64),
                entries: path.entries.len() as u64,
            }),
            _ => None,
        })
    }
}
