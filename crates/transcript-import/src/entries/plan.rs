//! The order of the lines, and the parent of each.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use transcript_format::time;

use super::chain::{Step, chain, is_made_summary};
use super::ids::Repeats;
use crate::Agent;
use crate::conversation::{BranchKind, Conversation, Holds, NodeId};
use crate::node::{Node, NodeKind};
use crate::place::Place;

/// The lines of a conversation, before they are written.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) conversation: Conversation,
    pub(super) session_id: String,
    pub(super) agent_id: Option<String>,
    pub(super) lines: Vec<Line>,
    pub(super) unknown: Vec<UnknownRecords>,
    pub(super) repeats: Repeats,
}

/// A line, and what decides its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) what: What,
    /// The line of its parent.
    pub(super) parent: Option<u32>,
    /// The first line of the response that it belongs to.
    pub(super) response: u32,
    /// Whether it is the first result of a call before it. Other results cannot be sent as such.
    pub(super) answers: bool,
    /// The time, in milliseconds since 1970: that of its record, or of the line before.
    pub(super) millis: i64,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Which agent wrote the session.
    Head,
    Title,
    Node(NodeId, Standing),
    /// A compaction; its parent is only logical.
    Boundary,
    /// A damaged part of a source, by its place in the list.
    Damage(u32),
    /// Records of unknown types between two nodes, by the number of the run.
    Unknown(u32),
    /// The agent refuses the session.
    Refusal,
    /// The lines of a branch end, whose first one this is. It follows them, so that lines do not change when they become a branch.
    BranchEnd(BranchKind, u32),
    /// The chain ends at this line, which is not the last one.
    Pin(u32),
}

/// The node after which a note stands; none at the start.
pub(super) type NoteAfter = Option<NodeId>;

/// How a node stands to the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// On the chain, or on a branch that was sent once.
    Said,
    /// The summary after a boundary.
    Summary,
    /// Never sent.
    Unsent,
    /// Of a subagent: the number of its branch.
    Sidechain(u32),
}

/// Records of unknown types between two nodes.
#[derive(Debug)]
pub(super) struct UnknownRecords {
    /// The first of them.
    pub(super) place: Place,
    /// The number of those of each type.
    pub(super) types: BTreeMap<String, u64>,
}

/// Returns the lines in their order, and the runs of unknown records.
pub(super) fn plan(of: &Conversation, elsewhere: &[PathBuf]) -> (Vec<Line>, Vec<UnknownRecords>) {
    let (steps, mut taken) = chain(of);
    for id in of.ids() {
        let origin = of.node(id).origin;
        let path = origin.map(|origin| &of.source(origin.source).path);
        taken[id.index()] |= path.is_some_and(|path| elsewhere.contains(path));
    }
    let mut plan = Plan {
        of,
        taken,
        lines: Vec::with_capacity(of.ids().len() + 2),
        notes: BTreeMap::new(),
        unknown: Vec::new(),
        open_calls: HashSet::new(),
    };
    let anchors = Anchors::new(of, &steps);
    let mut runs = plan.runs(&anchors);
    plan.find_notes();
    plan.push(What::Head, None);
    if of.metadata.title.is_some() {
        plan.push(What::Title, None);
    }
    if of.refusal.is_some() {
        plan.push(What::Refusal, None);
    }
    plan.add_notes(None);
    plan.add_runs(runs.remove(&None), None);
    let mut last = None;
    for (at, step) in steps.into_iter().enumerate() {
        last = Some(plan.add_step(step, last));
        plan.add_runs(runs.remove(&Some(at)), last);
    }
    plan.pin(last);
    (plan.lines, plan.unknown)
}

/// Nodes of a branch that follow each other.
struct Run {
    kind: BranchKind,
    nodes: Vec<NodeId>,
    standing: Standing,
}

struct Plan<'c> {
    of: &'c Conversation,
    /// Whether a node has a line.
    taken: Vec<bool>,
    lines: Vec<Line>,
    notes: BTreeMap<NoteAfter, Vec<What>>,
    unknown: Vec<UnknownRecords>,
    /// The ids of the calls on the chain without a result so far.
    open_calls: HashSet<&'c str>,
}

type Runs = BTreeMap<Option<usize>, Vec<Run>>;

impl<'c> Plan<'c> {
    /// Divides the branches into runs, by the step of the chain that is the parent of each.
    fn runs(&mut self, anchors: &Anchors) -> Runs {
        let mut runs = Runs::new();
        // Nothing is live: no line may look as if it were.
        let is_empty = anchors.is_empty();
        for (number, branch) in self.of.branches.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let standing = match branch.kind {
                _ if is_empty => Standing::Sidechain(number),
                BranchKind::Subagent => Standing::Sidechain(number),
                BranchKind::Unsent => Standing::Unsent,
                _ => Standing::Said,
            };
            let is_scattered = matches!(
                branch.kind,
                BranchKind::Unsent | BranchKind::Superseded | BranchKind::Deleted
            );
            let mut anchor: Option<Option<usize>> = None;
            for id in &branch.nodes {
                if !self.take(*id) {
                    continue;
                }
                let own = match anchor {
                    Some(anchor) if !is_scattered => anchor,
                    _ => anchors.before(self.of.node(*id)),
                };
                let list = runs.entry(own).or_default();
                match list.last_mut().filter(|_| anchor == Some(own)) {
                    Some(run) => run.nodes.push(*id),
                    None => list.push(Run {
                        kind: branch.kind,
                        nodes: vec![*id],
                        standing,
                    }),
                }
                anchor = Some(own);
            }
        }
        runs
    }

    /// Returns whether a node of a branch gets a line here.
    fn take(&mut self, id: NodeId) -> bool {
        let node = self.of.node(id);
        let is_made = node.origin.is_none();
        let is_made_for_call = is_made && node.kind == NodeKind::ToolResult;
        let is_of_others = is_made && !node.made_of.is_empty() && !is_made_summary(self.of, id);
        let was_taken = std::mem::replace(&mut self.taken[id.index()], true);
        !was_taken && !is_made_for_call && !is_of_others
    }

    fn find_notes(&mut self) {
        for (number, damage) in self.of.damage.iter().enumerate() {
            let after = self.line_before(damage.place);
            let note = What::Damage(u32::try_from(number).unwrap_or(u32::MAX));
            self.notes.entry(after).or_default().push(note);
        }
        let mut last = None;
        for (place, name) in unknown_records(self.of) {
            let after = self.line_before(place);
            if last != Some((after, place.source)) {
                let run = What::Unknown(u32::try_from(self.unknown.len()).unwrap_or(u32::MAX));
                self.notes.entry(after).or_default().push(run);
                self.unknown.push(UnknownRecords {
                    place,
                    types: BTreeMap::new(),
                });
                last = Some((after, place.source));
            }
            if let Some(run) = self.unknown.last_mut() {
                *run.types.entry(name.to_owned()).or_default() += 1;
            }
        }
    }

    /// Returns the last node before a place in the same source that has a line.
    fn line_before(&self, place: Place) -> NoteAfter {
        let in_source = |id: &NodeId| {
            let origin = self.of.node(*id).origin;
            origin.is_some_and(|origin| origin.source == place.source)
        };
        let mut before = self.of.before(place).take_while(in_source);
        before.find(|id| self.taken[id.index()])
    }

    fn add_step(&mut self, step: Step, last: Option<u32>) -> u32 {
        let (id, standing) = match step {
            Step::Boundary => {
                self.open_calls.clear();
                return self.push(What::Boundary, last);
            }
            Step::Node(id) => (id, Standing::Said),
            Step::Summary(id) => (id, Standing::Summary),
        };
        let line = self.add_node(id, standing, last);
        if let Some((kind, call)) = self.call_of(id) {
            if kind == NodeKind::ToolResult {
                self.lines[line as usize].answers = self.open_calls.remove(call);
            } else {
                self.open_calls.insert(call);
            }
        }
        line
    }

    /// Returns the id of the call that a node makes or answers.
    fn call_of(&self, id: NodeId) -> Option<(NodeKind, &'c str)> {
        let kind = self.of.node(id).kind;
        let is_end = matches!(kind, NodeKind::ToolCall | NodeKind::ToolResult);
        let call = self.of.call_id(id).filter(|_| is_end)?;
        Some((kind, call))
    }

    fn add_runs(&mut self, runs: Option<Vec<Run>>, anchor: Option<u32>) {
        for run in runs.into_iter().flatten() {
            let is_sidechain = matches!(run.standing, Standing::Sidechain(_));
            let mut last = anchor.filter(|_| !is_sidechain);
            let mut own_calls = HashSet::new();
            let mut first = None;
            for id in run.nodes {
                let line = self.add_node(id, run.standing, last);
                first = first.or(Some(line));
                self.lines[line as usize].answers = match self.call_of(id) {
                    Some((NodeKind::ToolResult, call)) => {
                        own_calls.remove(call) || !is_sidechain && self.open_calls.contains(call)
                    }
                    Some((_, call)) => {
                        own_calls.insert(call);
                        false
                    }
                    None => false,
                };
                last = Some(line);
            }
            if let Some(first) = first.filter(|_| !is_sidechain) {
                self.push(What::BranchEnd(run.kind, first), None);
            }
        }
    }

    fn add_node(&mut self, id: NodeId, standing: Standing, parent: Option<u32>) -> u32 {
        let line = self.push(What::Node(id, standing), parent);
        let continued = parent.filter(|parent| self.is_one_response(*parent, id, standing));
        let response = continued.map(|parent| self.lines[parent as usize].response);
        self.lines[line as usize].response = response.unwrap_or(line);
        self.add_notes(Some(id));
        line
    }

    fn add_notes(&mut self, after: NoteAfter) {
        for note in self.notes.remove(&after).unwrap_or_default() {
            self.push(note, None);
        }
    }

    /// Returns whether a node is of the same response as its parent.
    fn is_one_response(&self, parent: u32, id: NodeId, standing: Standing) -> bool {
        let What::Node(before, of_parent) = self.lines[parent as usize].what else {
            return false;
        };
        let (before, node) = (self.of.node(before), self.of.node(id));
        // The records of Codex are parts of responses, those of the others are responses.
        let is_one_record = self.of.agent == Agent::Codex || before.record_id == node.record_id;
        of_parent == standing
            && before.kind.is_of_model()
            && node.kind.is_of_model()
            && before.usage.is_none()
            && is_one_record
    }

    fn push(&mut self, what: What, parent: Option<u32>) -> u32 {
        let line = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        let node = match what {
            What::Node(id, _) => Some(self.of.node(id)),
            _ => None,
        };
        let before = self.lines.last().map(|line| line.millis);
        let time = node.and_then(millis_of).or(before);
        let time = time.or_else(|| millis(self.of.metadata.started.as_deref()?));
        self.lines.push(Line {
            what,
            parent,
            response: line,
            answers: false,
            millis: time.unwrap_or_default(),
        });
        line
    }

    /// Says where the chain ends, if a reader would take another line for its end.
    fn pin(&mut self, leaf: Option<u32>) {
        let Some(leaf) = leaf else { return };
        let is_message = |line: &Line| match line.what {
            What::Node(_, standing) => !matches!(standing, Standing::Sidechain(_)),
            _ => false,
        };
        if self.lines[leaf as usize + 1..].iter().any(is_message) {
            self.push(What::Pin(leaf), None);
        }
    }
}

/// The steps of a chain, to find the parent of a branch.
struct Anchors {
    /// The place of each node of the chain, and the number of its step, in the order of the places.
    by_place: Vec<(Place, usize)>,
    /// The latest time up to each step.
    times: Vec<i64>,
}

impl Anchors {
    fn new(of: &Conversation, steps: &[Step]) -> Self {
        let nodes = steps.iter().enumerate();
        let nodes = nodes.filter_map(|(at, step)| Some((step.node()?, at)));
        let mut by_place: Vec<(Place, usize)> = nodes
            .filter_map(|(id, at)| Some((of.node(id).origin?, at)))
            .collect();
        by_place.sort_unstable();
        let mut latest = i64::MIN;
        let times = steps.iter().map(|step| {
            let node = step.node().map(|id| of.node(id));
            latest = latest.max(node.and_then(millis_of).unwrap_or(i64::MIN));
            latest
        });
        Self {
            times: times.collect(),
            by_place,
        }
    }

    fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Returns the step before a node: in its source by the order of the bytes, else by time.
    fn before(&self, node: Node<'_>) -> Option<usize> {
        let place = node.origin?;
        let later = self.by_place.partition_point(|(other, _)| *other < place);
        let before = later.checked_sub(1).map(|at| self.by_place[at]);
        let is_same = |(other, _): &(Place, usize)| other.source == place.source;
        match before.filter(is_same) {
            Some((_, step)) => Some(step),
            None => {
                let time = millis_of(node)?;
                self.times
                    .partition_point(|other| *other <= time)
                    .checked_sub(1)
            }
        }
    }
}

/// Returns the records of unknown types, in the order of their bytes.
pub(super) fn unknown_records(of: &Conversation) -> impl Iterator<Item = (Place, &str)> {
    of.parts.iter().filter_map(|part| match &part.holds {
        Holds::Raw(name) if of.unknown.contains_key(&**name) => Some((part.place, &**name)),
        _ => None,
    })
}

fn millis_of(node: Node<'_>) -> Option<i64> {
    millis(&node.time?.text())
}

/// Returns a time in milliseconds since 1970. Some records have numbers: milliseconds, or seconds where that is too small.
fn millis(text: &str) -> Option<i64> {
    const SMALLEST_MILLIS: f64 = 1e11;
    match text.parse::<f64>() {
        Ok(seconds) if seconds.abs() < SMALLEST_MILLIS => Some((seconds * 1000.0) as i64),
        Ok(millis) => Some(millis as i64),
        Err(_) => time::millis(text.as_bytes()),
    }
}
