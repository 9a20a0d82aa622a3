//! The parts of a conversation, and how they are laid out.

use std::collections::HashSet;

use transcript_engine::History;
use transcript_reader::{EntryNo, Index, Source, Subagent, subagents_on};
use transcript_render::{
    BranchNote, Conversation, Detail, Escaping, PrintedBlock, count, print_blocks,
};
use transcript_resume::items::{
    Displays, Item, ItemKind, ItemMarks, Nesting, Speaker, SubagentOrigin, sidechains,
};
use transcript_resume::{ConversationPath, Policy};

use crate::messages::{Block, BlockId, Layout, Page, to_message};
use crate::session::Session;

/// The maximum number of entries of a subagent or a branch that are shown within the conversation.
pub(crate) const MAX_NESTED_ENTRIES: usize = 400;
/// The numbers of branches at an entry start here.
pub(crate) const FIRST_BRANCH_NUMBER: u32 = 1 << 31;

impl<'s> Session<'s> {
    /// Returns the part with the entry at an offset, or the one before it in the file if that is not
    /// on the path.
    pub(crate) fn part_at(&self, offset: u64) -> usize {
        let entries = self.path.entries.iter();
        let offsets = entries
            .map(|entry| self.offset(entry.entry_no()))
            .enumerate();
        let above = offsets.filter(|(_, at)| *at <= offset);
        let place = above
            .max_by_key(|(_, at)| *at)
            .map_or(0, |(place, _)| place);
        self.parts.partition_point(|part| part.end <= place)
    }

    /// Returns the items of a part.
    pub(crate) fn conversation(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
    ) -> Result<Conversation<'s>, String> {
        let entries = self.parts.get(part).cloned().unwrap_or_default();
        let mut path = ConversationPath::default();
        path.entries.extend_from_slice(&self.path.entries[entries]);
        for entry in &path.entries {
            let number = entry.entry_no();
            let start = self.decisions.partition_point(|one| one.entry() < number);
            let about = self.decisions[start..].iter();
            path.decisions
                .extend(about.take_while(|one| one.entry() == number));
        }
        let main = Conversation::new(self.source, self.index, displays, &path, None);
        Ok(main.map_err(to_message)?.with_chapters(self.closed))
    }

    pub(crate) fn key(&self, item: &Item) -> BlockId {
        BlockId {
            offset: self.offset(item.entry_no()),
            number: u32::try_from(item.block()).unwrap_or(FIRST_BRANCH_NUMBER - 1),
        }
    }

    pub(crate) fn page(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
        layout: &Layout,
    ) -> Result<Page, String> {
        let main = self.conversation(displays, part)?;
        let detail = |item: &Item| layout.folds.detail(self.key(item), item);
        self.lay(displays, main, part, layout, &detail)
    }

    /// Lays out the items of a part, and what is unfolded of subagents and branches.
    pub(crate) fn lay(
        &self,
        displays: &mut Displays<'_, '_>,
        main: Conversation<'s>,
        part: usize,
        layout: &Layout,
        detail: &dyn Fn(&Item) -> Detail,
    ) -> Result<Page, String> {
        let agents = self.agents(&main, detail);
        let stories = agents.iter().map(|(_, one)| {
            let tree = one.tree(Policy::Recover);
            let context = tree.path();
            let tree = tree.unspliced();
            let path = tree.story(&context).path;
            (tree, path)
        });
        let stories: Vec<_> = stories.collect();
        let (mut conversations, mut origins) = (vec![main], Vec::new());
        for ((origin, history), (tree, path)) in agents.iter().zip(&stories) {
            let (title, mut displays) = (agent_title(origin), Displays::new(tree));
            let (source, index) = (history.source(), history.index());
            conversations.push(nested((source, index), &mut displays, path, title)?);
            origins.push(origin.clone());
        }
        self.old_agents(&mut conversations, &mut origins, displays, detail)?;
        let lists: Vec<_> = conversations.iter().map(Conversation::display).collect();
        let nesting = Nesting::new(&lists, &origins);
        let notes = self.branches(displays, part, layout, &mut conversations)?;
        let shown: Vec<BranchNote> = notes.iter().map(|(_, note)| note.clone()).collect();
        let options = self.options.clone().width(layout.width);
        let printed = print_blocks(&conversations, nesting, &shown, &options, detail);
        let (lines, blocks) = printed.map_err(to_message)?;
        let items = conversations[0].display().items();
        let of_block = |block: PrintedBlock| {
            let lines = block.lines.clone();
            if let Some(number) = block.branch {
                let (key, note) = &notes[number];
                return Block {
                    key: *key,
                    lines,
                    line: None,
                    is_prompt: false,
                    detail: note.shown.map_or(Detail::Folded, |_| Detail::Whole),
                    items: block.items,
                    last: key.offset,
                };
            }
            let item = &items[block.items.start];
            let last = items[block.items.clone()].iter().map(Item::entry_no).max();
            Block {
                key: self.key(item),
                lines,
                line: self
                    .entry(item.entry_no())
                    .known_line()
                    .filter(|_| self.is_whole),
                is_prompt: is_prompt(item),
                detail: detail(item),
                items: block.items,
                last: last.map_or(0, |last| self.offset(last)),
            }
        };
        let blocks = blocks.into_iter().map(of_block);
        let blocks = blocks.filter(|block| !block.lines.is_empty()).collect();
        Ok(Page { lines, blocks })
    }

    /// Reads the subagents below the calls that are shown whole.
    fn agents(
        &self,
        main: &Conversation<'_>,
        detail: &dyn Fn(&Item) -> Detail,
    ) -> Vec<(SubagentOrigin, History)> {
        let list = main.display();
        let open = list.groups().iter().filter(|group| {
            let head = list.items().get(group.items().start);
            head.is_some_and(|head| detail(head) == Detail::Whole)
        });
        let open: Vec<_> = open
            .filter(|group| is_of_agent(group.tool(), group.agent()))
            .collect();
        if open.is_empty() {
            return Vec::new();
        }
        let disk = &self.storage.disk;
        let found = subagents_on(disk, self.source.path()).unwrap_or_default();
        let is_open = |agent: &Subagent| {
            let origin = SubagentOrigin::from(agent);
            open.iter().any(|group| {
                group.agent() == Some(&agent.id)
                    || origin.tool_use_id.as_deref() == Some(group.id())
            })
        };
        let found = found.iter().filter(|agent| is_open(agent));
        found
            .filter_map(|agent| {
                let source = Source::open_on(disk, &agent.path).ok()?;
                Some((SubagentOrigin::from(agent), History::read(source).ok()?))
            })
            .collect()
    }

    /// Adds the subagents of clients up to 2.0.27, which are in the same file.
    fn old_agents(
        &self,
        conversations: &mut Vec<Conversation<'s>>,
        origins: &mut Vec<SubagentOrigin>,
        displays: &mut Displays<'_, '_>,
        detail: &dyn Fn(&Item) -> Detail,
    ) -> Result<(), String> {
        let list = conversations[0].display();
        let mut heads = list
            .groups()
            .iter()
            .filter(|group| is_of_agent(group.tool(), group.agent()));
        let is_open = heads.any(|group| {
            let head = list.items().get(group.items().start);
            head.is_some_and(|head| detail(head) == Detail::Whole)
        });
        if !is_open || !origins.is_empty() {
            return Ok(());
        }
        for (origin, path) in sidechains(self.tree) {
            let (title, of) = (agent_title(&origin), (self.source, self.index));
            conversations.push(nested(of, displays, &path, title)?);
            origins.push(origin);
        }
        Ok(())
    }

    /// Returns the branches that leave a part, and adds those that are shown to `conversations`.
    fn branches(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
        layout: &Layout,
        conversations: &mut Vec<Conversation<'s>>,
    ) -> Result<Vec<(BlockId, BranchNote)>, String> {
        let entries = self.parts.get(part).cloned().unwrap_or_default();
        let entries = self.path.entries[entries]
            .iter()
            .map(|entry| entry.entry_no());
        let entries: HashSet<EntryNo> = entries.collect();
        let mut notes = Vec::new();
        let here = self.branches.iter().enumerate();
        for (number, (from, path)) in here.filter(|(_, (from, _))| entries.contains(from)) {
            let key = BlockId {
                offset: self.offset(*from),
                number: FIRST_BRANCH_NUMBER | u32::try_from(number).unwrap_or(0),
            };
            let long = count(path.entries.len(), "entry");
            let first = path.entries.first().map(|entry| entry.entry_no());
            let branch = self.reasons.title(self.index, first);
            let branch = Escaping::Visible.one_line(&branch);
            let is_shown = layout.folds.changed.get(&key) == Some(&Detail::Whole);
            let mut note = BranchNote {
                from: *from,
                title: format!("{branch} · {long}; Enter shows it"),
                shown: None,
            };
            if is_shown {
                note.shown = Some(conversations.len());
                let (title, of) = (branch, (self.source, self.index));
                conversations.push(nested(of, displays, path, title)?);
            }
            notes.push((key, note));
        }
        Ok(notes)
    }
}

/// Returns the first items of a subagent or a branch.
fn nested<'s>(
    (source, index): (&'s Source, &'s Index),
    displays: &mut Displays<'_, '_>,
    path: &ConversationPath,
    title: String,
) -> Result<Conversation<'s>, String> {
    let mut path = path.clone();
    path.entries.truncate(MAX_NESTED_ENTRIES);
    let nested = Conversation::new(source, index, displays, &path, Some(title));
    Ok(nested.map_err(to_message)?.with_chapters(&[]))
}

fn agent_title(origin: &SubagentOrigin) -> String {
    let agent = origin.agent.as_deref().unwrap_or_default();
    let agent = Escaping::Visible.one_line(agent);
    format!("subagent {agent}").trim_end().to_owned()
}

fn is_of_agent(tool: &str, agent: Option<&str>) -> bool {
    agent.is_some() || matches!(tool, "Task" | "Agent")
}

fn is_prompt(item: &Item) -> bool {
    let is_hidden = item.marks().intersects(ItemMarks::HIDDEN);
    item.kind() == ItemKind::Text && item.speaker() == Speaker::Person && !is_hidden
}
