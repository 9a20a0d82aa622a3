//! Which call started which subagent.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use transcript_format::object::Raw;
use transcript_reader::Subagent;

use super::{GroupKind, GroupRole, ItemList};
use crate::path::{ConversationPath, PathEntry, Via};
use crate::tree::{NodeId, Tree};

/// Where a subagent comes from, as far as it is known: of a file by its name and its `.meta.json`,
/// of a sidechain by its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The id of the subagent.
    pub agent: Option<String>,
    /// `toolUseId`: the call that started it.
    pub tool_use_id: Option<String>,
    /// `parentAgentId`: the subagent that made this call; `None` for the main conversation.
    pub parent_agent: Option<String>,
}

impl From<&Subagent> for Origin {
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

/// A forest of displays: the main conversation, and its subagents under their calls to any depth.
///
/// Displays are numbered: 0 is the main conversation, the subagents follow in the order in which they
/// were given. Each of them has exactly one place, whatever the metadata say.
#[derive(Debug, Default)]
pub struct Nesting {
    /// For each display but the first: what it is a child of.
    places: Vec<GroupPlace>,
    /// The displays under each story, and under none of a display.
    children: HashMap<GroupPlace, Vec<usize>>,
}

/// A story of a display, or the end of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GroupPlace {
    display: usize,
    group: Option<usize>,
}

const AT_THE_END: GroupPlace = GroupPlace {
    display: 0,
    group: None,
};

impl Nesting {
    /// Finds the place of each subagent: `displays[1 + n]` is that of `origins[n]`.
    ///
    /// It is a child of the call that its metadata name, in the conversation of its parent first; else
    /// under the one whose result or progress names it; else under the one that asked for what it was
    /// asked, in these words (each such call takes one). Where no call is found it stands at the end
    /// of its parent, and of the main conversation when that is not known. Metadata by which
    /// subagents start each other in a circle say nothing of one of these, which stands at the end
    /// of the main conversation.
    ///
    /// Takes time in the number of stories and subagents.
    #[must_use]
    pub fn new(displays: &[&ItemList], origins: &[Origin]) -> Self {
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

    /// Returns the display that `display` is a child of and the story there, `None` for one that stands
    /// at its end. `None` for the main conversation.
    #[must_use]
    pub fn parent(&self, display: usize) -> Option<(usize, Option<usize>)> {
        let place = self.places.get(display.checked_sub(1)?)?;
        Some((place.display, place.group))
    }

    /// Returns the displays of the subagents that a call started, in the order in which they were
    /// given; with no story those that stand at the end of `display`.
    #[must_use]
    pub fn under(&self, display: usize, group: Option<usize>) -> &[usize] {
        let place = GroupPlace { display, group };
        self.children.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Goes through the items of all displays in the order in which they are shown: a subagent stands
    /// in its story, before the result. Each item comes once.
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

    /// The subagents that are shown before the next item: those of a story whose call and progress
    /// are shown, and behind the last item those that belong to none.
    fn due(&self, display: &ItemList, visit: &Visit) -> Vec<usize> {
        let early_story = |place: usize| {
            let (group, part) = display.items().get(place)?.group()?;
            (part <= GroupRole::Progress).then_some(group)
        };
        let group = visit.next.checked_sub(1).and_then(early_story);
        let ended = group.filter(|group| early_story(visit.next) != Some(*group));
        let of_story = ended.map(|group| self.under(visit.display, Some(group)));
        let is_end = visit.next == display.items().len();
        let of_none = is_end.then(|| self.under(visit.display, None));
        let due = of_story.into_iter().chain(of_none).flatten();
        due.copied().collect()
    }
}

/// One item of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestingStep {
    /// The number of the display.
    pub display: usize,
    /// The place of the item in [`ItemList::items`].
    pub item: usize,
    /// How many displays it is inside of: 0 in the main conversation.
    pub depth: usize,
}

/// A display that is being walked through.
#[derive(Debug)]
struct Visit {
    display: usize,
    next: usize,
    /// Whether what comes before `next` was found.
    is_checked: bool,
    /// Subagents to go through before `next`, the last one first.
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

/// Calls by what is known of them.
struct Finder<'d> {
    displays: &'d [&'d ItemList],
    origins: &'d [Origin],
    /// The display of each subagent.
    agents: HashMap<&'d str, usize>,
    /// The first call with this id in a display, and in any.
    by_call: HashMap<(usize, &'d str), GroupPlace>,
    by_call_anywhere: HashMap<&'d str, GroupPlace>,
    by_agent: HashMap<&'d str, GroupPlace>,
    /// Calls that name no subagent, the first one last.
    by_prompt: HashMap<u64, Vec<GroupPlace>>,
    /// Calls that metadata named.
    taken: HashSet<GroupPlace>,
}

impl<'d> Finder<'d> {
    fn new(displays: &'d [&'d ItemList], origins: &'d [Origin]) -> Self {
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
        for (number, origin) in origins.iter().enumerate() {
            if let Some(agent) = &origin.agent {
                finder.agents.entry(agent).or_insert(number + 1);
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

    /// The place that names say.
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

    /// The first call that asked for what the subagent was asked and that started no other one.
    fn by_prompt(&mut self, display: usize) -> Option<GroupPlace> {
        let places = self.by_prompt.get_mut(&self.displays[display].prompt?)?;
        let taken = &self.taken;
        while places.pop_if(|place| taken.contains(place)).is_some() {}
        places.pop_if(|place| place.display != display)
    }
}

/// Puts one display of each circle at the end of the main conversation.
fn cut_circles(places: &mut [GroupPlace]) {
    /// Leads to the main conversation.
    const DONE: usize = usize::MAX;
    let mut walked_from = vec![0; places.len() + 1];
    walked_from[0] = DONE;
    for start in 1..=places.len() {
        let mut at = start;
        while walked_from[at] == 0 {
            walked_from[at] = start;
            at = places[at - 1].display;
        }
        if walked_from[at] == start {
            places[at - 1] = AT_THE_END;
        }
        let mut at = start;
        while walked_from[at] != DONE {
            walked_from[at] = DONE;
            at = places[at - 1].display;
        }
    }
}

/// What tells prompts apart. Two that share it by chance only lead to a wrong place.
pub(super) fn prompt_hash(text: Raw<'_>) -> Option<u64> {
    let text = text.str()?;
    let mut hasher = DefaultHasher::new();
    text.trim().hash(&mut hasher);
    Some(hasher.finish())
}

/// Returns the subagents that stand in the file of a main conversation, as clients up to 2.0.27 wrote
/// them, in the order of their first entries: the entries of each in file order, as subagents are
/// not rewound, and what its lines say of its origin.
///
/// Lines that name a subagent belong to that one; those without a name to the one whose first entry
/// they lead up to.
#[must_use]
pub fn sidechains(tree: &Tree<'_>) -> Vec<(Origin, ConversationPath)> {
    let mut found: Vec<(Origin, ConversationPath)> = Vec::new();
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
            let origin = Origin {
                agent: entry.agent().map(str::to_owned),
                ..Origin::default()
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

/// The entry of a sidechain that all others above `node` lead up to.
fn top(tree: &Tree<'_>, node: NodeId, tops: &mut HashMap<NodeId, NodeId>) -> NodeId {
    let mut walked = Vec::new();
    let mut at = node;
    let top = loop {
        if let Some(top) = tops.get(&at) {
            break *top;
        }
        walked.push(at);
        // Within a circle the entry that was met first stands for all.
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
