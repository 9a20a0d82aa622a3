//! Reads the bodies of a path: makes the items, and finds which of them belong together.

use std::collections::{HashMap, HashSet};

use transcript_format::author::Author;
use transcript_format::compact::CompactMetadata;
use transcript_format::entry::Entry;
use transcript_format::kind::{AttachmentKind, DisplayForm, EntryKind, ProgressKind, SystemKind};
use transcript_format::object::{JsonKind, Object, Raw};
use transcript_format::progress::AgentProgress;
use transcript_format::scan::{Body, Flags};
use transcript_format::tool_result::Agent;
use transcript_reader::{
    BodySource, ConversationPath, Decision, EntryNo, EntryRef, Id, Index, OmittedCalls, PathEntry,
    Policy, Tree, Via,
};

use super::item_reader::{HeldBodies, kind_of};
use super::nesting::prompt_hash;
use super::order::in_order;
use super::{
    CallGroup, CompactionItem, GroupKind, GroupRole, Item, ItemId, ItemKind, ItemList, ItemMarks,
    NONE, Span, Speaker, about,
};
use crate::texts;

/// The tools that start subagents: newer clients use the second name (MSG-15).
const AGENT_TOOLS: [&str; 2] = ["Task", "Agent"];

/// Items in the order of the path, and the parts of each group.
pub(super) struct Builder<'t, 'i> {
    tree: &'t Tree<'i>,
    tombstoned: &'t HashSet<Id>,
    index: &'i Index,
    pub(super) items: Vec<Item>,
    pub(super) groups: Vec<CallGroup>,
    /// For each group: its items, the head first.
    pub(super) members: Vec<Vec<u32>>,
    /// For items of the path: lines of progress that are shown after them and belong to no group.
    pub(super) after: HashMap<u32, Vec<u32>>,
    compactions: Vec<CompactionItem>,
    decisions: Vec<Decision>,
    prompt: Option<u64>,
    /// The groups with this id, in the order of the path.
    by_id: HashMap<Box<str>, Vec<u32>>,
    /// Items that name a group not yet seen, with their part in it.
    waiting: HashMap<Box<str>, Vec<(u32, GroupRole)>>,
    /// Whether a message was split: from there on ids are derived.
    is_split: bool,
    ids: HashSet<ItemId>,
}

impl<'t, 'i> Builder<'t, 'i> {
    pub(super) fn new(
        tree: &'t Tree<'i>,
        tombstoned: &'t HashSet<Id>,
        path: &ConversationPath,
    ) -> Self {
        let mut decisions = path.decisions.clone();
        // `about` searches them by entry, once for each entry of the path.
        decisions.sort_by_key(Decision::entry);
        Self {
            tree,
            tombstoned,
            index: tree.index(),
            items: Vec::with_capacity(path.entries.len()),
            groups: Vec::new(),
            members: Vec::new(),
            after: HashMap::new(),
            compactions: Vec::new(),
            decisions,
            prompt: None,
            by_id: HashMap::new(),
            waiting: HashMap::new(),
            is_split: false,
            ids: HashSet::new(),
        }
    }

    pub(super) fn build<B: BodySource>(
        mut self,
        path: &ConversationPath,
        progress: &mut Progress,
        held: &HeldBodies<'_>,
        bodies: &mut B,
    ) -> Result<ItemList, B::Error> {
        for entry in &path.entries {
            let entry_ref = self.index.entry(entry.entry_no());
            // A body with that many members cannot be parsed, so it is not even read.
            if entry_ref.flags().contains(Flags::TOO_MANY) {
                self.add(*entry, &entry_ref, ("", None));
            } else if let Some((text, body)) = held.get(entry.entry_no()) {
                self.add(*entry, &entry_ref, (text, body));
            } else {
                let text = bodies.body(&entry_ref)?;
                self.add(*entry, &entry_ref, (text, Body::parse(text).ok().as_ref()));
            }
        }
        self.mark_groups(&path.omitted);
        self.add_progress(path, progress, bodies)?;
        // Only needed for new ids; the sort of the items below takes memory of its own.
        self.ids = HashSet::new();
        self.compactions
            .sort_unstable_by_key(|compaction| compaction.boundary);
        let (items, groups) = in_order(self.items, self.groups, &self.members, &self.after);
        Ok(ItemList {
            items,
            groups,
            compactions: self.compactions,
            decisions: self.decisions,
            prompt: self.prompt,
        })
    }

    /// Adds the items of an entry with this text and body.
    fn add(
        &mut self,
        entry: PathEntry,
        entry_ref: &EntryRef<'_>,
        (text, body): (&str, Option<&Body<'_>>),
    ) {
        let mut new = NewItem {
            id: ItemId::of_entry(self.index, entry_ref),
            marks: self.marks(entry, entry_ref),
            author: body.and_then(author).unwrap_or_default(),
            entry_ref: *entry_ref,
            text,
        };
        new.marks
            .set(ItemMarks::TYPED, new.author == Author::Person);
        let first = self.items.len();
        if entry_ref.flags().contains(Flags::TOO_MANY) {
            self.push(&new, ItemKind::TooMany, Speaker::Client);
            return;
        }
        // The file may have changed since it was indexed: a body of another kind is not that of the entry.
        match body.filter(|body| kind_of(body) == entry_ref.kind()) {
            Some(body) => match entry_ref.kind().row().shown {
                DisplayForm::Blocks => self.add_message(&new, body),
                DisplayForm::Attachment => self.add_attachment(&new, &body.object),
                _ => self.add_other(&new, &body.object),
            },
            None => {
                self.push(&new, ItemKind::Unusable, Speaker::Client);
            }
        }
        // Only on the first item: the others follow it within the entry, without any link.
        if let Some(first) = self.items.get_mut(first) {
            first.marks |= link_marks(&self.decisions, entry_ref);
        }
    }

    /// The properties that all items of an entry have in common.
    fn marks(&self, entry: PathEntry, entry_ref: &EntryRef<'_>) -> ItemMarks {
        let flags = entry_ref.flags();
        let is_sidechain = || {
            let node = self.tree.node(entry.entry_no());
            node.is_some_and(|node| self.tree.is_sidechain(node))
        };
        let is_tombstoned = || {
            let id = entry_ref.uuid();
            id.is_some_and(|id| self.tombstoned.contains(&id))
        };
        // A system entry reports an attempt that is repeated; the error that ends the attempts is an answer with the flag.
        let is_attempt = entry_ref.system_kind() == Some(SystemKind::ApiError);
        let all = [
            (ItemMarks::META, flags.contains(Flags::META)),
            (ItemMarks::VIRTUAL, flags.contains(Flags::VIRTUAL)),
            (
                ItemMarks::TRANSCRIPT_ONLY,
                flags.contains(Flags::TRANSCRIPT_ONLY),
            ),
            (ItemMarks::TEAM, flags.contains(Flags::TEAM)),
            (
                ItemMarks::API_ERROR,
                flags.contains(Flags::API_ERROR) || is_attempt,
            ),
            (ItemMarks::SUMMARY, flags.contains(Flags::COMPACT_SUMMARY)),
            (ItemMarks::SIDECHAIN, is_sidechain()),
            (ItemMarks::TOMBSTONED, is_tombstoned()),
            (ItemMarks::KEPT, entry.kept),
            (ItemMarks::AFTER_HIDDEN, entry.after_hidden),
            (ItemMarks::SALVAGED, entry.via.contains(Via::SALVAGE)),
            (ItemMarks::SIBLING, entry.via.contains(Via::SIBLING)),
        ];
        let set = all.into_iter().filter(|(_, holds)| *holds);
        set.map(|(mark, _)| mark).collect()
    }

    fn add_message(&mut self, new: &NewItem<'_>, body: &Body<'_>) {
        let message = body.message.as_ref();
        let content = message.and_then(|message| message.get("content"));
        let speaker = new.speaker();
        match content.map(|content| (content.kind(), content)) {
            Some((JsonKind::String, text)) => {
                let item = self.push_block(new, 0, text, ItemKind::Text, speaker);
                self.mark_text(item, text);
                self.set_prompt(text);
            }
            Some((JsonKind::Array, _)) => {
                let blocks = body.blocks.as_deref().unwrap_or_default();
                // As in the client: from the first split message on, the ids of all messages are derived.
                self.is_split |= blocks.len() > 1;
                let results = blocks.iter().filter(|(_, block)| is_result(block.as_ref()));
                // `toolUseResult` is one for the entry: with several results it does not show to which of them it belongs.
                let is_only_result = results.count() == 1;
                for (place, (raw, block)) in blocks.iter().enumerate() {
                    let block = (*raw, block.as_ref());
                    self.add_block(new, place as u32, block, speaker, body, is_only_result);
                }
                // Nothing of a path is omitted, not even a message without content.
                if blocks.is_empty() {
                    self.push(new, ItemKind::Empty, speaker);
                }
            }
            _ => {
                self.push(new, ItemKind::Empty, speaker);
            }
        }
        // The body of a skill: a user entry of the client that names the call which loaded it.
        if new.marks.contains(ItemMarks::META)
            && new.entry_ref.kind() == EntryKind::User
            && let Some(call) = body.object.get("sourceToolUseID").and_then(Raw::str)
        {
            self.attach_entry(new, &call, GroupRole::Added);
        }
    }

    fn add_block(
        &mut self,
        new: &NewItem<'_>,
        place: u32,
        (raw, object): (Raw<'_>, Option<&Object<'_>>),
        speaker: Speaker,
        body: &Body<'_>,
        is_only_result: bool,
    ) {
        let name = object.and_then(|object| object.get("type")?.str());
        let field = |key: &str| object.and_then(|object| object.get(key));
        let text = |key: &str| field(key).and_then(Raw::str);
        match name.as_deref().unwrap_or_default() {
            "text" => {
                let item = self.push_block(new, place, raw, ItemKind::Text, speaker);
                if let Some(text) = field("text") {
                    self.mark_text(item, text);
                    self.set_prompt(text);
                }
            }
            "thinking" | "redacted_thinking" => {
                self.push_block(new, place, raw, ItemKind::Thinking, speaker);
            }
            "image" | "document" => {
                self.push_block(new, place, raw, ItemKind::Media, speaker);
            }
            kind @ ("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                let item = self.push_block(new, place, raw, ItemKind::Call, speaker);
                let kind = match kind {
                    "tool_use" => GroupKind::Call,
                    _ => GroupKind::ApiCall,
                };
                let group = self.open(item, kind, &text("id").unwrap_or_default());
                let group = &mut self.groups[group as usize];
                group.tool = text("name").unwrap_or_default().into();
                // Where no metadata name the call that started a subagent, an equal prompt shows it.
                if AGENT_TOOLS.contains(&&*group.tool) {
                    let prompt = field("input").and_then(|input| input.object()?.get("prompt"));
                    group.prompt = prompt.and_then(prompt_hash);
                }
            }
            _ if is_result(object) => {
                let item = self.push_block(new, place, raw, ItemKind::Result, Speaker::Tool);
                let marks = &mut self.items[item as usize].marks;
                marks.set(
                    ItemMarks::FAILED,
                    field("is_error").and_then(Raw::bool) == Some(true),
                );
                marks.set(ItemMarks::ONLY_RESULT, is_only_result);
                if let Some(content) = field("content") {
                    self.mark_text(item, content);
                }
                let call = text("tool_use_id").unwrap_or_default();
                self.attach(item, &call, GroupRole::Result);
                if is_only_result && let Some(agent) = named_agent(body) {
                    self.name_agent(item, &agent);
                }
            }
            _ => {
                self.push_block(new, place, raw, ItemKind::Block, speaker);
            }
        }
    }

    fn add_attachment(&mut self, new: &NewItem<'_>, entry: &Object<'_>) {
        let kind = new.entry_ref.attachment_kind().unwrap_or_default();
        let speaker = match kind {
            AttachmentKind::QueuedCommand if new.author != Author::Other => Speaker::Person,
            _ => Speaker::Client,
        };
        self.push(new, ItemKind::Attachment, speaker);
        let Some(attachment) = entry.object("attachment") else {
            return;
        };
        let Some(id) = attachment.str("toolUseID") else {
            return;
        };
        let part = match attachment.str("hookEvent") {
            // Attachments of hooks name the call as well, but some of them ran before it.
            Some(event) => part_of_hook(&event),
            None => GroupRole::Added,
        };
        self.attach_entry(new, &id, part);
    }

    fn add_other(&mut self, new: &NewItem<'_>, entry: &Object<'_>) {
        if new.entry_ref.is_boundary() {
            self.push(new, ItemKind::Compaction, Speaker::Client);
            self.add_compaction(&new.entry_ref, entry);
            return;
        }
        let item = self.push(new, ItemKind::System, Speaker::Client);
        let id = Entry::from(entry.clone()).tool_use_id();
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return;
        };
        let is_summary = new.entry_ref.system_kind() == Some(SystemKind::StopHookSummary);
        // Hooks at the end of a turn have an id without a call: the summary of their run stands in for it.
        if is_summary && !self.by_id.contains_key(&*id) {
            self.open(item, GroupKind::Hooks, &id);
        } else {
            self.attach_entry(new, &id, GroupRole::Added);
        }
    }

    fn add_compaction(&mut self, boundary: &EntryRef<'_>, entry: &Object<'_>) {
        let number = boundary.number();
        let mut compaction = CompactionItem::read(boundary, entry);
        for decision in about(&self.decisions, number) {
            match *decision {
                Decision::Cut { hidden, .. } => compaction.hidden = hidden,
                Decision::Chapter { kept, .. } => compaction.kept = kept.unwrap_or_default(),
                Decision::Splice { form, kept, .. } => {
                    (compaction.form, compaction.kept) = (Some(form), kept);
                }
                Decision::SpliceIgnored { form, .. } => {
                    (compaction.form, compaction.is_keeping_ignored) = (Some(form), true);
                }
                _ => {}
            }
        }
        self.compactions.push(compaction);
    }

    /// Adds lines of progress: those of a call to its group, the others after the entry of the path
    /// whose children they are. Children of other entries belong to abandoned branches and are not
    /// even read: they can be most of a file.
    fn add_progress<B: BodySource>(
        &mut self,
        path: &ConversationPath,
        progress: &mut Progress,
        bodies: &mut B,
    ) -> Result<(), B::Error> {
        if progress.is_empty() || path.entries.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        for (place, item) in self.items.iter().enumerate() {
            let is_last =
                self.items.get(place + 1).map(|next| next.entry_no) != Some(item.entry_no);
            if let Some(own) = progress.under.get(&item.entry_no).filter(|_| is_last) {
                lines.extend(
                    own.iter()
                        .map(|line| (*line, ProgressParent::Item(place as u32))),
                );
            }
        }
        let calls = self.by_id.keys().map(|id| &**id);
        let lost = progress.take_lost(calls, self.index, bodies)?;
        lines.extend(lost.into_iter().map(|line| (line, ProgressParent::Nothing)));
        // In file order, in which they were written, whatever their parents.
        lines.sort_unstable_by_key(|(line, _)| *line);
        for (number, under) in lines {
            let line = self.index.entry(number);
            let content = match progress.contents.remove(&number) {
                Some(content) => content,
                None => match ProgressContent::read(bodies.body(&line)?, &line) {
                    Some(content) => content,
                    None => continue,
                },
            };
            let place = match under {
                ProgressParent::Item(place) => place,
                ProgressParent::Nothing => 0,
            };
            if let Some(group) = content.names.iter().find_map(|id| self.group_at(id, place)) {
                let item = self.push_progress(&line);
                self.join(item, group, GroupRole::Progress);
                if let Some(agent) = &content.agent {
                    self.name_agent(item, agent);
                }
            } else if under != ProgressParent::Nothing {
                // A line without a parent and a call may be of any branch, and is not shown.
                let item = self.push_progress(&line);
                self.after.entry(place).or_default().push(item);
            }
        }
        Ok(())
    }

    fn push_progress(&mut self, line: &EntryRef<'_>) -> u32 {
        let flags = line.flags();
        let mut marks = ItemMarks::empty();
        marks.set(ItemMarks::SALVAGED, line.is_salvaged());
        marks.set(
            ItemMarks::SIDECHAIN,
            flags.contains(Flags::SIDECHAIN) && !self.tree.is_all_sidechain(),
        );
        let new = NewItem {
            id: ItemId::of_entry(self.index, line),
            marks,
            author: Author::Unknown,
            entry_ref: *line,
            text: "",
        };
        self.push(&new, ItemKind::Progress, Speaker::Client)
    }

    fn push(&mut self, new: &NewItem<'_>, kind: ItemKind, speaker: Speaker) -> u32 {
        self.push_item(new, 0, Span::default(), kind, speaker)
    }

    fn push_block(
        &mut self,
        new: &NewItem<'_>,
        block: u32,
        raw: Raw<'_>,
        kind: ItemKind,
        speaker: Speaker,
    ) -> u32 {
        self.push_item(new, block, new.span(raw), kind, speaker)
    }

    fn push_item(
        &mut self,
        new: &NewItem<'_>,
        block: u32,
        span: Span,
        kind: ItemKind,
        speaker: Speaker,
    ) -> u32 {
        let is_derived = self.is_split && new.entry_ref.kind().is_message();
        let mut id = if is_derived {
            new.id.child(block)
        } else {
            new.id.clone()
        };
        // Derived ids replace the last digits of a uuid: two uuids made by hand may differ only there.
        if self.ids.contains(&id) {
            id = new.id.spelled_out(block);
        }
        while !self.ids.insert(id.clone()) {
            id = id.spelled_out(block);
        }
        self.items.push(Item {
            id,
            entry_no: new.entry_ref.number(),
            block,
            span,
            marks: new.marks,
            group: NONE,
            kind,
            entry: new.entry_ref.kind(),
            part: GroupRole::Opening,
            speaker,
        });
        (self.items.len() - 1) as u32
    }

    fn mark_text(&mut self, item: u32, text: Raw<'_>) {
        if is_synthetic(text) {
            let item = &mut self.items[item as usize];
            item.marks |= ItemMarks::SYNTHETIC;
            if item.kind == ItemKind::Text {
                item.speaker = Speaker::Client;
            }
        }
    }

    fn set_prompt(&mut self, text: Raw<'_>) {
        if self.prompt.is_none() && self.items.len() == 1 {
            self.prompt = prompt_hash(text);
        }
    }

    /// Opens a group with `item`, and adds the items that wait for it.
    fn open(&mut self, item: u32, kind: GroupKind, id: &str) -> u32 {
        let group = self.groups.len() as u32;
        self.groups.push(CallGroup {
            kind,
            id: id.into(),
            tool: Box::default(),
            items: 0..0,
            agent: None,
            prompt: None,
        });
        self.members.push(Vec::new());
        self.join(item, group, GroupRole::Opening);
        if !id.is_empty() {
            self.by_id.entry(id.into()).or_default().push(group);
            for (item, part) in self.waiting.remove(id).unwrap_or_default() {
                self.join(item, group, part);
            }
        }
        group
    }

    /// Adds `item` to the group with this id: the last one before it, or without any the first one
    /// after it.
    fn attach(&mut self, item: u32, id: &str, part: GroupRole) {
        if id.is_empty() {
            return;
        }
        match self.by_id.get(id).and_then(|groups| groups.last()) {
            Some(group) => self.join(item, *group, part),
            None => {
                let waiting = self.waiting.entry(id.into()).or_default();
                waiting.push((item, part));
            }
        }
    }

    /// Adds all items of the entry that was pushed last and that are in no group yet.
    fn attach_entry(&mut self, new: &NewItem<'_>, id: &str, part: GroupRole) {
        let entry_ref = new.entry_ref.number();
        let items = self.items.iter().enumerate().rev();
        let own = items.take_while(|(_, item)| item.entry_no == entry_ref);
        let free = own.filter(|(_, item)| item.group == NONE && item.kind != ItemKind::Result);
        let mut free: Vec<u32> = free.map(|(place, _)| place as u32).collect();
        free.reverse();
        for item in free {
            self.attach(item, id, part);
        }
    }

    fn join(&mut self, item: u32, group: u32, part: GroupRole) {
        self.members[group as usize].push(item);
        let item = &mut self.items[item as usize];
        (item.group, item.part) = (group, part);
    }

    /// Returns the last group with this id that is open at `place` of the items; before all of them
    /// the first.
    fn group_at(&self, id: &str, place: u32) -> Option<u32> {
        let groups = self.by_id.get(id)?;
        let is_open = |group: &u32| {
            let opening = self.members[*group as usize].first();
            opening.is_some_and(|opening| *opening <= place)
        };
        let open = groups.partition_point(is_open);
        groups.get(open.saturating_sub(1)).copied()
    }

    fn name_agent(&mut self, item: u32, agent: &str) {
        let group = self.items[item as usize].group;
        if let Some(group) = self.groups.get_mut(group as usize)
            && group.agent.is_none()
        {
            group.agent = Some(agent.into());
        }
    }

    /// Marks calls without a result, results without a call, and repeated results; finds the
    /// summaries of compactions. The other half of a pair may be `omitted`.
    fn mark_groups(&mut self, omitted: &OmittedCalls) {
        for item in &mut self.items {
            let is_orphan = item.kind == ItemKind::Result && item.group == NONE;
            item.marks.set(ItemMarks::ORPHAN, is_orphan);
        }
        // The other half may be on the path and filtered out by the caller's selection.
        for (id, waiting) in &self.waiting {
            if omitted.has_call(id) {
                for (item, _) in waiting {
                    self.items[*item as usize].marks -= ItemMarks::ORPHAN;
                }
            }
        }
        for (group, members) in self.groups.iter().zip(&self.members) {
            let is_result = |item: &&u32| self.items[**item as usize].part == GroupRole::Result;
            let results: Vec<u32> = members.iter().filter(is_result).copied().collect();
            // For the client the first result counts (TURN-4).
            for again in results.iter().skip(1) {
                self.items[*again as usize].marks |= ItemMarks::REPEATED;
            }
            if let (true, Some(call)) = (results.is_empty(), members.first())
                && group.kind != GroupKind::Hooks
                && !omitted.has_result(&group.id)
            {
                self.items[*call as usize].marks |= ItemMarks::UNANSWERED;
            }
        }
        let mut compactions = self.compactions.iter_mut();
        let mut open: Option<&mut CompactionItem> = None;
        for item in &self.items {
            if item.kind == ItemKind::Compaction {
                open = compactions.next();
            } else if item.marks.contains(ItemMarks::SUMMARY)
                && let Some(compaction) = open.take()
            {
                compaction.summary = Some(item.entry_no());
            }
        }
    }
}

/// The parent of a line of progress, with other lines of progress passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressParent {
    /// The last item of an entry of the path.
    Item(u32),
    /// A missing entry.
    Nothing,
}

/// The lines of progress of a file, by their parents.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// By the number of the entry that is their parent.
    pub(super) under: HashMap<EntryNo, Vec<EntryNo>>,
    /// The lines whose parent is missing.
    pub(super) lost: Vec<EntryNo>,
    /// The lines whose parent is missing, by the calls that they name; once they have been read.
    lost_by_call: Option<HashMap<Box<str>, Vec<EntryNo>>>,
    /// Their contents.
    contents: HashMap<EntryNo, ProgressContent>,
}

/// The contents of a line of progress.
#[derive(Clone, Debug)]
struct ProgressContent {
    /// The calls that it names.
    names: Vec<Box<str>>,
    /// The subagent that it is about.
    agent: Option<Box<str>>,
}

impl ProgressContent {
    /// Returns `None` when the body is not an object.
    fn read(body: &str, line: &EntryRef<'_>) -> Option<Self> {
        let entry = Entry::parse(body).ok()?;
        let names = [entry.parent_tool_use_id(), entry.tool_use_id()];
        let is_of_agent = line.progress_kind() == Some(ProgressKind::AgentProgress);
        let data = entry.object().read::<AgentProgress<'_>>("data");
        let data = data.filter(|_| is_of_agent);
        Some(Self {
            names: names.into_iter().flatten().map(Box::from).collect(),
            agent: data.and_then(|data| Some(data.agent_id()?.into())),
        })
    }
}

impl Progress {
    pub(super) fn new(tree: &Tree<'_>) -> Self {
        let recovers = tree.policy() == Policy::Recover;
        let mut progress = Self::default();
        let mut parents = Parents {
            tree,
            known: HashMap::new(),
        };
        for line in tree.index().entries() {
            if line.kind().row().shown != DisplayForm::UnderCall
                || (!recovers && line.is_salvaged())
            {
                continue;
            }
            let number = line.number();
            match parents.above(&line) {
                NearestEntry::Entry(entry) => progress.under.entry(entry).or_default().push(number),
                NearestEntry::Nothing => progress.lost.push(number),
                NearestEntry::Other => {}
            }
        }
        progress
    }

    fn is_empty(&self) -> bool {
        self.under.is_empty() && self.lost.is_empty()
    }

    /// Removes and returns the lines without a parent that name one of `calls`, so that each is
    /// shown once.
    fn take_lost<'c, B: BodySource>(
        &mut self,
        calls: impl Iterator<Item = &'c str>,
        index: &Index,
        bodies: &mut B,
    ) -> Result<Vec<EntryNo>, B::Error> {
        // Once for all lists of a file: each of these bodies would be read again for every branch.
        if self.lost_by_call.is_none() {
            let mut by_call: HashMap<Box<str>, Vec<EntryNo>> = HashMap::new();
            for line in &self.lost {
                let entry_ref = index.entry(*line);
                let Some(content) = ProgressContent::read(bodies.body(&entry_ref)?, &entry_ref)
                else {
                    continue;
                };
                for name in &content.names {
                    by_call.entry(name.clone()).or_default().push(*line);
                }
                self.contents.insert(*line, content);
            }
            self.lost_by_call = Some(by_call);
        }
        let mut taken = Vec::new();
        if let Some(by_call) = &mut self.lost_by_call
            && !by_call.is_empty()
        {
            taken = calls
                .filter_map(|call| by_call.remove(call))
                .flatten()
                .collect();
            // A line may name two calls of the path.
            taken.sort_unstable();
            taken.dedup();
        }
        Ok(taken)
    }
}

/// The link above a line of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NearestEntry {
    /// The number of an entry.
    Entry(EntryNo),
    /// A line that is not an entry.
    Other,
    /// A missing entry.
    Nothing,
}

struct Parents<'t, 'i> {
    tree: &'t Tree<'i>,
    /// The results for the parents that lines name.
    known: HashMap<Id, NearestEntry>,
}

impl Parents<'_, '_> {
    fn above(&mut self, line: &EntryRef<'_>) -> NearestEntry {
        let index = self.tree.index();
        let mut walked = Vec::new();
        let mut at = line.parent();
        let found = loop {
            let Some(id) = at else {
                break NearestEntry::Nothing;
            };
            if let Some(known) = self.known.get(&id) {
                break *known;
            }
            // Reaching it again is a cycle.
            self.known.insert(id, NearestEntry::Nothing);
            walked.push(id);
            if let Some(node) = self.tree.node_with_uuid(id) {
                break NearestEntry::Entry(self.tree.entry_no_of(node));
            }
            let lines = index.with_uuid(id).map(|line| index.entry(line));
            // The last line with an id counts, as in the tree (FILE-7).
            match lines.last() {
                Some(line) if line.kind() == EntryKind::Progress => at = line.parent(),
                Some(_) => break NearestEntry::Other,
                None => break NearestEntry::Nothing,
            }
        };
        for id in walked {
            self.known.insert(id, found);
        }
        found
    }
}

/// The properties that the items of one entry have in common.
struct NewItem<'b> {
    id: ItemId,
    marks: ItemMarks,
    author: Author,
    entry_ref: EntryRef<'b>,
    /// The text of the body.
    text: &'b str,
}

impl NewItem<'_> {
    /// The author of the content of a message.
    fn speaker(&self) -> Speaker {
        if self.marks.contains(ItemMarks::SUMMARY) {
            Speaker::Summary
        } else if self
            .marks
            .intersects(ItemMarks::META | ItemMarks::API_ERROR)
            || self.author == Author::Other
        {
            Speaker::Client
        } else if self.entry_ref.kind() == EntryKind::Assistant {
            Speaker::Agent
        } else {
            Speaker::Person
        }
    }

    /// Returns the range of `raw`, a value of the body, in the body.
    fn span(&self, raw: Raw<'_>) -> Span {
        // The value is a slice of the text, so the distance of the two is its place.
        let start = raw.text().as_ptr() as usize - self.text.as_ptr() as usize;
        Span {
            start: start as u32,
            len: raw.text().len() as u32,
        }
    }
}

/// Returns the uuids that are tombstoned and were not written again.
pub(super) fn tombstoned(tree: &Tree<'_>) -> HashSet<Id> {
    let index = tree.index();
    let is_last = |line: EntryNo, id: Id| index.with_uuid(id).all(|copy| copy < line);
    let tombstoned = index.tombstones().filter(|(line, id)| is_last(*line, *id));
    tombstoned.map(|(_, id)| id).collect()
}

fn link_marks(decisions: &[Decision], entry_ref: &EntryRef<'_>) -> ItemMarks {
    let mark = |decision: &Decision| match decision {
        Decision::Bridge { .. } | Decision::Relink { .. } => ItemMarks::BRIDGED,
        Decision::Gap { .. } | Decision::Truncated { .. } => ItemMarks::GAP,
        _ => ItemMarks::empty(),
    };
    let own = about(decisions, entry_ref.number());
    own.iter().map(mark).collect()
}

/// Returns the author of a user line or of a queued prompt.
fn author(body: &Body<'_>) -> Option<Author> {
    match kind_of(body) {
        EntryKind::User => Some(Author::of(&body.object)),
        EntryKind::Attachment => Some(Author::of(&body.object.object("attachment")?)),
        _ => None,
    }
}

/// Returns whether a block is a result, of a tool of the client or of the API.
fn is_result(block: Option<&Object<'_>>) -> bool {
    let name = block.and_then(|block| block.get("type")?.str());
    name.is_some_and(|name| name == "tool_result" || name.ends_with("_tool_result"))
}

fn part_of_hook(event: &str) -> GroupRole {
    match event {
        "PreToolUse" | "PermissionRequest" => GroupRole::Before,
        _ => GroupRole::After,
    }
}

/// Returns the subagent that a result is about.
fn named_agent(body: &Body<'_>) -> Option<String> {
    let result = Agent::from(body.tool_use_result.clone()?);
    let agent = result.agent_id().filter(|agent| !agent.is_empty())?;
    Some(agent.into_owned())
}

/// Returns whether the text that is the whole content, a string or the only block, is synthetic.
fn is_synthetic(content: Raw<'_>) -> bool {
    let text = match content.array().as_deref() {
        Some([block]) => block.object().and_then(|block| block.get("text")),
        Some(_) => None,
        None => Some(content),
    };
    // Most texts are not, and long ones take time to decode.
    let first = text.and_then(|text| first_byte(text.text().get(1..)?));
    first.is_some_and(texts::may_start_with)
        && text
            .and_then(Raw::str)
            .is_some_and(|text| texts::is_synthetic(&text))
}

/// Returns the first byte of a JSON string after white space, which is ignored.
fn first_byte(mut string: &str) -> Option<u8> {
    loop {
        let rest = string.trim_start_matches(' ');
        let rest = ["\\n", "\\t", "\\r"]
            .iter()
            .find_map(|space| rest.strip_prefix(space))
            .unwrap_or(rest);
        if rest.len() == string.len() {
            return string.bytes().next();
        }
        string = rest;
    }
}

impl CompactionItem {
    /// Reads the fields of a boundary; the decisions about a path add the rest.
    #[must_use]
    pub fn read(boundary: &EntryRef<'_>, entry: &Object<'_>) -> Self {
        let metadata: Option<CompactMetadata<'_>> = entry.read("compactMetadata");
        let metadata = metadata.as_ref();
        Self {
            boundary: boundary.number(),
            trigger: metadata.and_then(|data| Some(data.trigger()?.into())),
            pre_tokens: metadata.and_then(CompactMetadata::pre_tokens),
            post_tokens: metadata.and_then(CompactMetadata::post_tokens),
            duration_millis: metadata.and_then(CompactMetadata::duration_ms),
            ..Self::default()
        }
    }
}
