//! Finds which call started which subagent.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use transcript_format::object::Raw;
use transcript_reader::{ConversationPath, NodeId, PathEntry, Subagent, Tree, Via};

use super::{GroupKind, GroupRole, ItemList};

/// The known origin of a subagent: of a file by its name and its `.meta.json`, of a sidechain by
/// its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubagentOrigin {
    /// The id of the subagent.
    pub agent: Option<String>,
    /// `toolUseId`: the call that started it.
    pub tool_use_id: Option<String>,
    /// `parentAgentId`: the subagent that made this call; `None` for the main conversation.
    pub parent_agent: Option<String>,
}

impl From<&Subagent> for SubagentOrigin {
    fn from(file: &Subagent) -> Self {
        let meta = file.meta();
        let meta = meta.as_ref();
        Self {
            agent: Some(file.id.clone()),
            tool_use_id: meta.and_then(|meta| Some(meta.tool_use_id()?.into_owned())),
            parent_agent: meta.and_then(|meta| Some(meta.parent_agent_id()?.into_owned())),
        }
    }
}

/// A tree of item lists: the main conversation, and its subagents below their calls to any depth.
///
/// Lists are numbered: 0 is the main conversation, the subagents follow in the order in which they
/// were given, then the branches of the main conversation. Each subagent has exactly one place,
/// whatever the metadata contain. Branches are below nothing; subagents may be below their calls.
#[derive(Debug, Default)]
pub struct Nesting {
    /// For each subagent: its parent.
    places: Vec<GroupPlace>,
    /// The lists below each group, and those of a list below none.
    children: HashMap<GroupPlace, Vec<usize>>,
}

/// A group of a list, or the end of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GroupPlace {
    display: usize,
    group: Option<usize>,
}

const END_OF_CONVERSATION: GroupPlace = GroupPlace {
    display: 0,
    group: None,
};

impl Nesting {
    /// Finds the place of each subagent: `displays[1 + n]` is that of `origins[n]`. What follows the
    /// subagents in `displays` are branches.
    ///
    /// It becomes a child of the call that its metadata name, first in the conversation of its
    /// parent; else of the call whose result or progress names it; else of a call with exactly its
    /// prompt (each such call is used once). When no call is found it is placed at the end of its
    /// parent, or of the main conversation when that is unknown. When metadata form a cycle of
    /// subagents, one of them is placed at the end of the main conversation.
    ///
    /// Takes time proportional to the number of groups and subagents.
    #[must_use]
    pub fn new(displays: &[&ItemList], origins: &[SubagentOrigin]) -> Self {
        let mut finder = Finder::new(displays, origins);
        let count = displays.len().min(origins.len() + 1);
        let mut places: Vec<GroupPlace> = (1..count).map(|display| finder.named(display)).collect();
        for display in 1..count {
            if places[display - 1].group.is_none() {
                places[display - 1] = finder.by_prompt(display).unwrap_or(places[display - 1]);
            }
        }
        cut_circles(&mut places);
        let mut children: HashMap<GroupPlace, Vec<usize>> = HashMap::new();
        for (number, place) in places.iter().enumerate() {
            children.entry(*place).or_default().push(number + 1);
        }
        Self { places, children }
    }

    /// Returns the parent of `display` and the group there, `None` for one at the end of its
    /// parent. `None` for the main conversation and for branches.
    #[must_use]
    pub fn parent(&self, display: usize) -> Option<(usize, Option<usize>)> {
        let place = self.places.get(display.checked_sub(1)?)?;
        Some((place.display, place.group))
    }

    /// Returns the lists of the subagents that a call started, in the order in which they were
    /// given; without a group those at the end of `display`.
    #[must_use]
    pub fn under(&self, display: usize, group: Option<usize>) -> &[usize] {
        let place = GroupPlace { display, group };
        self.children.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Iterates over the items of the main conversation and of all lists below it in display order:
    /// a subagent is in the group of its call, before the result. Each item is visited once.
    pub fn walk<'n>(
        &'n self,
        displays: &'n [&'n ItemList],
    ) -> impl Iterator<Item = NestingStep> + 'n {
        let mut stack = Vec::new();
        if !displays.is_empty() {
            stack.push(Visit::new(0));
        }
        std::iter::from_fn(move || self.next_step(displays, &mut stack))
    }

    fn next_step(&self, displays: &[&ItemList], stack: &mut Vec<Visit>) -> Option<NestingStep> {
        loop {
            let depth = stack.len().checked_sub(1)?;
            let visit = stack.last_mut()?;
            let Some(display) = displays.get(visit.display) else {
                stack.pop();
                continue;
            };
            if !visit.is_checked {
                visit.is_checked = true;
                visit.waiting = self.due(display, visit);
                visit.waiting.reverse();
            }
            if let Some(child) = visit.waiting.pop() {
                stack.push(Visit::new(child));
                continue;
            }
            if visit.next == display.items().len() {
                stack.pop();
                continue;
            }
            let step = NestingStep {
                display: visit.display,
                item: visit.next,
                depth,
            };
            (visit.next, visit.is_checked) = (visit.next + 1, false);
            return Some(step);
        }
    }

    /// Returns the subagents that are shown before the next item: those of a group whose call and
    /// progress were shown, and after the last item those that belong to none.
    fn due(&self, display: &ItemList, visit: &Visit) -> Vec<usize> {
        let early_group = |place: usize| {
            let (group, part) = display.items().get(place)?.group()?;
            (part <= GroupRole::Progress).then_some(group)
        };
        let group = visit.next.checked_sub(1).and_then(early_group);
        let ended = group.filter(|group| early_group(visit.next) != Some(*group));
        let of_group = ended.map(|group| self.under(visit.display, Some(group)));
        let is_end = visit.next == display.items().len();
        let of_none = is_end.then(|| self.under(visit.display, None));
        let due = of_group.into_iter().chain(of_none).flatten();
        due.copied().collect()
    }
}

/// One item of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NestingStep {
    /// The number of the list.
    pub display: usize,
    /// The place of the item in [`ItemList::items`].
    pub item: usize,
    /// The number of lists that enclose it: 0 in the main conversation.
    pub depth: usize,
}

/// A list during a walk.
#[derive(Debug)]
struct Visit {
    display: usize,
    next: usize,
    /// Whether the subagents before `next` were collected.
    is_checked: bool,
    /// Subagents to visit before `next`, the last one first.
    waiting: Vec<usize>,
}

impl Visit {
    fn new(display: usize) -> Self {
        Self {
            display,
            next: 0,
            is_checked: false,
            waiting: Vec::new(),
        }
    }
}

/// Calls by their known properties.
struct Finder<'d> {
    displays: &'d [&'d ItemList],
    origins: &'d [SubagentOrigin],
    /// The list of each subagent.
    agents: HashMap<&'d str, usize>,
    /// The first call with this id in a list, and in any.
    by_call: HashMap<(usize, &'d str), GroupPlace>,
    by_call_anywhere: HashMap<&'d str, GroupPlace>,
    by_agent: HashMap<&'d str, GroupPlace>,
    /// Calls that name no subagent, the first one last.
    by_prompt: HashMap<u64, Vec<GroupPlace>>,
    /// Calls that metadata name.
    taken: HashSet<GroupPlace>,
}

impl<'d> Finder<'d> {
    fn new(displays: &'d [&'d ItemList], origins: &'d [SubagentOrigin]) -> Self {
        let mut finder = Self {
            displays,
            origins,
            agents: HashMap::new(),
            by_call: HashMap::new(),
            by_call_anywhere: HashMap::new(),
            by_agent: HashMap::new(),
            by_prompt: HashMap::new(),
            taken: HashSet::new(),
        };
        for (origin, number) in origins.iter().zip(1..displays.len()) {
            if let Some(agent) = &origin.agent {
                finder.agents.entry(agent).or_insert(number);
            }
        }
        for (number, display) in displays.iter().enumerate() {
            let groups = display.groups().iter().enumerate();
            for (group, call) in groups.filter(|(_, group)| group.kind != GroupKind::Hooks) {
                let place = GroupPlace {
                    display: number,
                    group: Some(group),
                };
                finder.add(call, place);
            }
        }
        for places in finder.by_prompt.values_mut() {
            places.reverse();
        }
        finder
    }

    fn add(&mut self, call: &'d super::CallGroup, place: GroupPlace) {
        if !call.id().is_empty() {
            let key = (place.display, call.id());
            self.by_call.entry(key).or_insert(place);
            self.by_call_anywhere.entry(call.id()).or_insert(place);
        }
        match (call.agent(), call.prompt) {
            (Some(agent), _) => {
                self.by_agent.entry(agent).or_insert(place);
            }
            (None, Some(prompt)) => self.by_prompt.entry(prompt).or_default().push(place),
            (None, None) => {}
        }
    }

    /// Returns the place according to names and ids.
    fn named(&mut self, display: usize) -> GroupPlace {
        let origin = &self.origins[display - 1];
        let parent = match &origin.parent_agent {
            Some(parent) => self.agents.get(parent.as_str()).copied(),
            None => Some(0),
        };
        let by_call = origin.tool_use_id.as_deref().and_then(|call| {
            let in_parent = parent.and_then(|parent| self.by_call.get(&(parent, call)));
            in_parent.or_else(|| self.by_call_anywhere.get(call))
        });
        let by_agent = || self.by_agent.get(origin.agent.as_deref()?);
        let at_the_end = GroupPlace {
            display: parent.unwrap_or(0),
            group: None,
        };
        let found = by_call.or_else(by_agent).copied();
        // A conversation does not start itself.
        let found = found.filter(|place| place.display != display);
        self.taken.extend(found);
        found.unwrap_or(at_the_end)
    }

    /// Returns the first call with the prompt of the subagent that started no other one.
    fn by_prompt(&mut self, display: usize) -> Option<GroupPlace> {
        let places = self.by_prompt.get_mut(&self.displays[display].prompt?)?;
        let taken = &self.taken;
        while places.pop_if(|place| taken.contains(place)).is_some() {}
        places.pop_if(|place| place.display != display)
    }
}

/// Moves one list of each cycle to the end of the main conversation.
fn cut_circles(places: &mut [GroupPlace]) {
    /// Connected to the main conversation or to a branch.
    const VISITED: usize = usize::MAX;
    let lists = places.iter().map(|place| place.display + 1).max();
    let lists = lists.unwrap_or(0).max(places.len() + 1);
    let mut walked_from = vec![0; lists];
    walked_from[0] = VISITED;
    walked_from[places.len() + 1..].fill(VISITED);
    for start in 1..=places.len() {
        let mut at = start;
        while walked_from[at] == 0 {
            walked_from[at] = start;
            at = places[at - 1].display;
        }
        if walked_from[at] == start {
            places[at - 1] = END_OF_CONVERSATION;
        }
        let mut at = start;
        while walked_from[at] != VISITED {
            walked_from[at] = VISITED;
            at = places[at - 1].display;
        }
    }
}

/// Distinguishes prompts. Two with the same value by chance only lead to a wrong place.
pub(super) fn prompt_hash(text: Raw<'_>) -> Option<u64> {
    let text = text.str()?;
    let mut hasher = DefaultHasher::new();
    text.trim().hash(&mut hasher);
    Some(hasher.finish())
}

/// Returns the subagents in the file of a main conversation, as clients up to 2.0.27 wrote them, in
/// the order of their first entries: the entries of each in file order, as subagents are not
/// rewound, and its origin as far as its lines contain it.
///
/// Lines with the id of a subagent belong to that one; those without an id to the one whose first
/// entry is their ancestor.
#[must_use]
pub fn sidechains(tree: &Tree<'_>) -> Vec<(SubagentOrigin, ConversationPath)> {
    let mut found: Vec<(SubagentOrigin, ConversationPath)> = Vec::new();
    let mut by_agent: HashMap<&str, usize> = HashMap::new();
    let mut by_top: HashMap<NodeId, usize> = HashMap::new();
    let mut tops: HashMap<NodeId, NodeId> = HashMap::new();
    let is_there = |node: &NodeId| tree.is_sidechain(*node) && !tree.is_removed(*node);
    for node in tree.nodes().filter(is_there) {
        let entry = tree.entry(node);
        let number = *match entry.agent() {
            Some(agent) => by_agent.entry(agent).or_insert(found.len()),
            None => by_top
                .entry(top(tree, node, &mut tops))
                .or_insert(found.len()),
        };
        if number == found.len() {
            let agent = entry.agent().map(str::to_owned);
            let origin = SubagentOrigin {
                // In the stream form a subagent has the name of the call that started it.
                tool_use_id: agent.clone().filter(|_| tree.is_stream_form()),
                agent,
                ..SubagentOrigin::default()
            };
            found.push((origin, ConversationPath::default()));
        }
        let mut via = Via::PARENT;
        via.set(Via::SALVAGE, entry.is_salvaged());
        let path = &mut found[number].1;
        path.entries.push(PathEntry::new(entry.number(), via));
        path.leaf = Some(entry.number());
    }
    found
}

/// Returns the topmost ancestor of `node` in its sidechain.
fn top(tree: &Tree<'_>, node: NodeId, tops: &mut HashMap<NodeId, NodeId>) -> NodeId {
    let mut walked = Vec::new();
    let mut at = node;
    let top = loop {
        if let Some(top) = tops.get(&at) {
            break *top;
        }
        walked.push(at);
        // In a cycle the entry that was reached first represents all.
        tops.insert(at, at);
        match tree
            .parent_node(at)
            .filter(|above| tree.is_sidechain(*above))
        {
            Some(above) => at = above,
            None => break at,
        }
    };
    for node in walked {
        tops.insert(node, top);
    }
    top
}
