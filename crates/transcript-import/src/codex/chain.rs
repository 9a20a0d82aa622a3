//! The conversation that the chain of a thread makes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::files::{Chain, Files, Segment};
use super::recover::recover;
use super::rollout::{Action, Compaction, Fact, Rollout, Step};
use crate::calls::Missing;
use crate::conversation::{BranchKind, Conversation, DamageKind, NodeId};
use crate::dialect::Policy;
use crate::node::NodeKind;
use crate::place::{Place, SourceId};
use crate::source::Store;
use crate::{Agent, Error, lines};

/// What Codex tells the model about a call whose result it does not have.
const MISSING: Missing = Missing {
    output: "aborted",
    is_error: false,
};

/// Reads the thread whose newest file is `head`.
pub(super) fn read(
    store: Store<'_>,
    files: &Files,
    head: usize,
    policy: Policy,
) -> Result<Conversation, Error> {
    let thread = &files.all[head].thread;
    let mut to = Conversation::new(Agent::Codex, thread);
    let chain = files.chain(head);
    let mut loaded = Loaded::default();
    for at in files_of(files, &chain, thread) {
        let mut rollout = Rollout::new(policy);
        let source = lines::read(store, &files.all[at].path, &mut to, &mut rollout)?;
        let matches = rollout.take_matches();
        let recovered = recover(&mut to, &mut rollout, matches, policy == Policy::Recover);
        if policy == Policy::Vendor {
            to.branch(BranchKind::Unsent, recovered);
        }
        loaded.by_file.insert(at, (source, rollout));
    }
    let chain = loaded.longer_copies(files, chain, policy);
    let mut replay = Replay::default();
    for segment in &chain.segments {
        for step in loaded.steps(*segment) {
            replay.step(&mut to, step);
        }
    }
    to.metadata.updated = Some(loaded.rollout(head).last_time.clone());
    loaded.branches(&mut to, files, &chain);
    replay.finish(&mut to, policy);
    loaded.report(&mut to, &chain, policy);
    Ok(to)
}

/// Returns the files to read for a thread: those of its chain, oldest first, then its other ones.
fn files_of(files: &Files, chain: &Chain, thread: &str) -> Vec<usize> {
    let mut all: Vec<usize> = chain.segments.iter().map(|segment| segment.file).collect();
    let ids: BTreeSet<&str> = all.iter().map(|at| &*files.all[*at].file).collect();
    for (at, rollout) in files.all.iter().enumerate() {
        let is_of_thread = rollout.thread == thread || ids.contains(&*rollout.file);
        if is_of_thread && !all.contains(&at) {
            all.push(at);
        }
    }
    all
}

/// The rollouts that were read, by their places in the list of files.
#[derive(Default)]
struct Loaded {
    by_file: BTreeMap<usize, (SourceId, Rollout)>,
}

impl Loaded {
    fn rollout(&self, file: usize) -> &Rollout {
        &self.by_file[&file].1
    }

    fn steps(&self, segment: Segment) -> impl Iterator<Item = &Step> {
        let steps = self.rollout(segment.file).steps.iter();
        steps.filter(move |step| segment.end.is_none_or(|end| step.ordinal < end))
    }

    /// Codex reads a plain file even where a compressed one of the same name is longer. To recover, the longer one is read.
    fn longer_copies(&self, files: &Files, mut chain: Chain, policy: Policy) -> Chain {
        if policy == Policy::Vendor {
            return chain;
        }
        for segment in &mut chain.segments {
            let id = &files.all[segment.file].file;
            let copies = self.by_file.keys().copied();
            let copies = copies.filter(|at| files.all[*at].file == *id);
            // The last maximum counts, so the one in use is last.
            let copies = copies
                .filter(|at| *at != segment.file)
                .chain([segment.file]);
            let longest = copies.max_by_key(|at| self.rollout(*at).steps.len());
            segment.file = longest.unwrap_or(segment.file);
        }
        chain
    }

    /// Sorts what the chain does not hold into branches.
    fn branches(&self, to: &mut Conversation, files: &Files, chain: &Chain) {
        let held = &files.held;
        let in_chain: BTreeMap<usize, Option<u64>> = chain
            .segments
            .iter()
            .map(|segment| (segment.file, segment.end))
            .collect();
        for (at, (_, rollout)) in &self.by_file {
            let is_in_chain = |step: &Step| match in_chain.get(at) {
                Some(end) => end.is_none_or(|end| step.ordinal < end),
                None => false,
            };
            let is_held = |step: &Step| match held[*at] {
                Some(end) => end.is_none_or(|end| step.ordinal < end),
                None => false,
            };
            let is_copy = in_chain
                .keys()
                .any(|other| other != at && files.all[*other].file == files.all[*at].file);
            let (mut forked, mut reverted) = (Vec::new(), Vec::new());
            for step in rollout.steps.iter().filter(|step| !is_in_chain(step)) {
                let list = if is_held(step) {
                    &mut forked
                } else {
                    &mut reverted
                };
                list.extend(step.nodes());
            }
            let of_copy = is_copy.then_some(BranchKind::Superseded);
            to.branch(of_copy.unwrap_or(BranchKind::Reverted), reverted);
            to.branch(of_copy.unwrap_or(BranchKind::Forked), forked);
        }
    }

    /// Reports what is missing, and under the policy of the vendor what Codex refuses.
    fn report(&self, to: &mut Conversation, chain: &Chain, policy: Policy) {
        let mut refusal = None;
        let mut lacks_base = chain.is_broken;
        for segment in &chain.segments {
            let (source, rollout) = &self.by_file[&segment.file];
            lacks_base |= segment.end.is_some_and(|end| rollout.end < end);
            let start = Place {
                source: *source,
                offset: 0,
                len: 0,
            };
            if !rollout.has_header {
                to.report(start, DamageKind::MissingHeader);
                refusal = Some("its first record is missing");
            }
            if rollout.has_invalid_utf8 {
                refusal = Some("a byte of it is not UTF-8");
            }
            if lacks_base && segment.end.is_none() {
                to.report(start, DamageKind::MissingBase);
                refusal = Some("a file on which it is based is missing or too short");
            }
        }
        if let Some(reason) = refusal.filter(|_| policy == Policy::Vendor) {
            to.refuse(reason);
        }
    }
}

impl Step {
    fn nodes(&self) -> Vec<NodeId> {
        match &self.action {
            Action::Item(node) => vec![*node],
            Action::Compaction(compaction) => {
                let history = compaction.history.iter().flatten().copied();
                history.chain([compaction.summary]).collect()
            }
            Action::RollBack(_) | Action::Fact(_) => Vec::new(),
        }
    }
}

/// The items that a chain leads to.
#[derive(Default)]
struct Replay {
    items: Vec<NodeId>,
    /// The places of the prompts among them.
    prompts: Vec<usize>,
}

impl Replay {
    fn step(&mut self, to: &mut Conversation, step: &Step) {
        match &step.action {
            Action::Item(node) => self.add(to, *node),
            Action::Compaction(compaction) => self.compact(to, compaction),
            Action::RollBack(turns) => self.roll_back(to, *turns),
            Action::Fact(fact) => learn(to, fact),
        }
    }

    fn add(&mut self, to: &Conversation, node: NodeId) {
        if to.node(node).kind == NodeKind::User {
            self.prompts.push(self.items.len());
        }
        self.items.push(node);
    }

    /// Older versions write no history: the prompts stay, and the summary follows.
    fn compact(&mut self, to: &mut Conversation, compaction: &Compaction) {
        let before = std::mem::take(&mut self.items);
        let prompts = std::mem::take(&mut self.prompts);
        let after: Vec<NodeId> = match &compaction.history {
            Some(history) => history.clone(),
            None => {
                let prompts = prompts.into_iter().map(|at| before[at]);
                prompts.chain([compaction.summary]).collect()
            }
        };
        after.into_iter().for_each(|node| self.add(to, node));
        let stays: BTreeSet<NodeId> = self.items.iter().copied().collect();
        let gone = before.into_iter().filter(|id| !stays.contains(id));
        to.branch(BranchKind::Compacted, gone.collect());
    }

    fn roll_back(&mut self, to: &mut Conversation, turns: u64) {
        // More turns than there are: all of them go.
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let kept = self.prompts.len().saturating_sub(turns);
        let Some(at) = self.prompts.get(kept).copied() else {
            return;
        };
        self.prompts.truncate(kept);
        let gone = self.items.split_off(at);
        to.branch(BranchKind::Rewound, gone);
    }

    /// Sets what is sent: each call has a result, and under the policy of the vendor each result a call.
    fn finish(self, to: &mut Conversation, policy: Policy) {
        let calls = ids_of(to, &self.items, NodeKind::ToolCall);
        let results = ids_of(to, &self.items, NodeKind::ToolResult);
        let fates = self.items.iter().map(|node| {
            let id = to.stored(*node).call_id;
            let is_lost = |among: &HashSet<&str>| id.is_some_and(|id| !among.contains(id));
            match to.node(*node).kind {
                NodeKind::ToolResult if is_lost(&calls) && policy == Policy::Vendor => Fate::Unsent,
                NodeKind::ToolCall if is_lost(&results) => Fate::Aborted,
                _ => Fate::Sent,
            }
        });
        let fates: Vec<Fate> = fates.collect();
        for (node, fate) in self.items.into_iter().zip(fates) {
            match fate {
                Fate::Unsent => {}
                Fate::Sent => to.live.push(node),
                Fate::Aborted => {
                    let result = MISSING.result_of(to, node);
                    to.live.extend([node, result]);
                }
            }
        }
    }
}

/// What becomes of an item.
enum Fate {
    Sent,
    /// It is sent with a result that says that there is none.
    Aborted,
    Unsent,
}

fn ids_of<'t>(to: &'t Conversation, items: &[NodeId], kind: NodeKind) -> HashSet<&'t str> {
    let items = items.iter().filter(|id| to.node(**id).kind == kind);
    items.filter_map(|id| to.stored(*id).call_id).collect()
}

fn learn(to: &mut Conversation, fact: &Fact) {
    let metadata = &mut to.metadata;
    match fact {
        Fact::Header(header) => {
            metadata.cwd.clone_from(&header.cwd);
            metadata.version.clone_from(&header.version);
            metadata.started.clone_from(&header.started);
            metadata.forked_from.clone_from(&header.forked_from);
            metadata.subagent_of.clone_from(&header.parent);
        }
        Fact::Model(model) => to.metadata.model = Some(to.nodes.named(*model).to_owned()),
        Fact::Total(usage) => metadata.usage = Some(**usage),
    }
}
