//! The branches of a session.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_format::entry::Entry;
use transcript_reader::{Bodies, EntryRef, Source};
use transcript_render::{BoundaryFacts, SessionTree, explain};
use transcript_resume::{Policy, Tree};
use transcript_session::History;

use crate::context::{Context, PolicyName};
use crate::failure::Failure;
use crate::selection::{EntryOptions, EntrySelection, FilterState, RoleName};
use crate::sink::{self, Sink};
use crate::wire::{BoundaryRecord, LeafRecord, LeavesRecord, TreeReport};

/// The branches of which session are returned, and which entries are counted in them: options.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TreeSettings {
    /// The session.
    pub session: PathBuf,
    /// Only a session of the project at this path.
    pub project: Option<PathBuf>,
    /// The rules by which a session of another agent is read. A record of Claude Code's sessions has the leaf of each policy in any case.
    #[serde(default)]
    pub policy: PolicyName,
    /// Counts only entries with one of these roles, as `matches` of each branch.
    #[serde(default)]
    pub role: Vec<RoleName>,
    /// Counts only calls of one of these tools, and their results.
    #[serde(default)]
    pub tool: Vec<String>,
    /// Counts only entries that contain this text, ignoring case.
    pub text: Option<String>,
    /// Counts only entries from this time on: `2026-01-31`, `2026-01-31T12:00:00Z`, `2h`, `3d`, `yesterday`.
    pub since: Option<String>,
    /// Counts only entries up to this time.
    pub until: Option<String>,
    /// Counts only entries that were written on this branch of git.
    pub branch: Option<String>,
    /// The maximum number of branches in which entries are counted: those whose last entries are the last of the file.
    pub last: Option<usize>,
}

/// The branches of a session, and how many entries of each are selected.
#[derive(Debug)]
pub struct BranchTree<'h> {
    history: &'h History,
    /// The branches.
    pub tree: SessionTree<'h>,
    /// The number of selected entries of each branch; `None` if every entry is selected.
    pub matches: Option<Vec<u64>>,
}

impl<'h> BranchTree<'h> {
    /// Reads the branches of a session.
    ///
    /// # Errors
    /// When an entry cannot be read.
    pub fn new(history: &'h History, selection: &EntrySelection) -> Result<Self, Failure> {
        let tree = history.tree(Policy::Recover);
        let vendor = Tree::new(history.index(), Policy::Vendor).path();
        let paths = [(Policy::Recover, tree.path()), (Policy::Vendor, vendor)];
        let tree = SessionTree::new(history.source(), history.session_id(), tree, paths)?;
        let is_all = selection.is_empty() && selection.last().is_none();
        let matches = (!is_all).then(|| matches(&tree, selection)).transpose()?;
        Ok(Self {
            history,
            tree,
            matches,
        })
    }

    /// Returns the record.
    ///
    /// # Errors
    /// When a boundary cannot be read.
    pub fn report(&self) -> Result<TreeReport, Failure> {
        let branches = &self.tree.branches;
        let index = self.tree.index();
        let describe = |decision: &_| explain::describe(index, decision);
        let leaf = |path| LeafRecord::new(index, branches, path, describe);
        let [recover, vendor] = &self.tree.paths;
        let leaves = LeavesRecord::new(leaf(&recover.1), leaf(&vendor.1));
        let (boundaries, prompts) = (boundaries(&self.tree)?, &self.tree.prompts);
        let mut report = TreeReport::new(self.history, branches, prompts, boundaries, leaves);
        let matches = self.matches.iter().flatten();
        for (branch, matches) in report.branches.iter_mut().zip(matches) {
            branch.matches = Some(*matches);
        }
        Ok(report)
    }
}

/// Writes the record of the branches of a session.
pub(crate) fn tree(
    settings: &TreeSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> sink::Result<()> {
    let TreeSettings {
        session,
        project,
        policy,
        role,
        tool,
        text,
        since,
        until,
        branch,
        last,
    } = settings.clone();
    let options = EntryOptions {
        role,
        tool,
        text,
        since,
        until,
        branch,
        last,
    };
    let selection = options.selection()?;
    context.follow_policy(policy);
    let path = context.find(&session, project.as_deref())?.path;
    let source = Source::open_on(context.read_disk(), &path)?;
    source.check_messages()?;
    let history = context.read(source)?;
    sink.record(&BranchTree::new(&history, &selection)?.report()?)
}

/// Returns the number of selected entries of each branch, for the `last` branches that have any.
fn matches(
    session_tree: &SessionTree<'_>,
    selection: &EntrySelection,
) -> Result<Vec<u64>, Failure> {
    let branches = &session_tree.branches;
    let mut matches = vec![0; branches.len()];
    let (mut bodies, mut above) = (Bodies::new(session_tree.source), FilterState::default());
    for entry in session_tree.index().entries() {
        let Some(branch) = branches.branch_of(entry.number()) else {
            continue;
        };
        let body = bodies.get(&entry)?;
        let parsed = Entry::parse(body.text);
        if selection.is_empty() || parsed.is_ok_and(|parsed| selection.selects(&parsed, &mut above))
        {
            matches[branch] += 1;
        }
    }
    if let Some(last) = selection.last() {
        let mut found: Vec<usize> = (0..matches.len()).filter(|at| matches[*at] > 0).collect();
        found.sort_by_key(|branch| std::cmp::Reverse(branches.all()[*branch].last));
        for branch in found.into_iter().skip(last) {
            matches[branch] = 0;
        }
    }
    Ok(matches)
}

fn boundaries(session_tree: &SessionTree<'_>) -> Result<Vec<BoundaryRecord>, Failure> {
    let index = session_tree.index();
    let mut bodies = Bodies::new(session_tree.source);
    let mut records = Vec::new();
    for entry_ref in index.entries().filter(EntryRef::is_boundary) {
        let facts = BoundaryFacts::read(session_tree, &entry_ref, &mut bodies)?;
        let mut record = BoundaryRecord::new(index, &entry_ref);
        record.trigger = facts.compaction.trigger.map(String::from);
        record.pre_tokens = facts.compaction.pre_tokens;
        record.kept = facts.kept.map(|kept| kept as u64);
        record.missing = facts.missing as u64;
        records.push(record);
    }
    Ok(records)
}
