//! A thread that has a session open: divides the conversation into parts, and lays out, searches and
//! copies what it is asked for.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use memchr::{memchr, memrchr};
use transcript::{EntryId, ForkOptions, History};
use transcript_format::scan::ToolRole;
use transcript_reader::{
    Bodies, EntryNo, EntryRef, Index, LoadOptions, Said, Source, Subagent, ToolKey, subagents,
};
use transcript_render::{
    BranchNote, Conversation, Detail, Header, PrintedBlock, RenderOptions, StyledLine, call_line,
    count, is_folded_at_first, print_blocks,
};
use transcript_resume::items::{
    Displays, GroupRole, Item, ItemKind, ItemReader, Nesting, Origin, Speaker, sidechains,
    starts_turn,
};
use transcript_resume::{ConversationPath, Decision, Policy, Tree};

use crate::search::{Needle, lines_with};

/// How much of the end of a file is shown before all of it is indexed. Smaller files are read at
/// once.
const FIRST: u64 = 256 << 10;
/// The longest last line for which that is tried.
const MAX_FIRST: u64 = 8 << 20;
/// A part ends before the next prompt when it has this many bytes, and before any message when it
/// has eight times as many.
const PART: u64 = 64 << 10;
/// How many entries of a subagent or a branch are shown within the conversation.
const NESTED: usize = 400;
/// A raw line is shown up to this many bytes.
const MAX_RAW: u64 = 1 << 20;
/// How much of a prompt the outline has, in characters.
const OUTLINE: usize = 160;
/// How many rows of an outline are sent at once.
const OUTLINE_ROWS: usize = 500;

/// Names a block in all states of a file: the offset of its entry, and its number in that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) offset: u64,
    pub(crate) number: u32,
}

/// The numbers of branches at an entry start here.
const BRANCH: u32 = 1 << 31;

/// What is shown of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Folds {
    pub(crate) calls: Detail,
    pub(crate) thoughts: Detail,
    /// Blocks that are shown otherwise than their kind.
    pub(crate) changed: HashMap<Key, Detail>,
}

impl Folds {
    fn detail(&self, key: Key, item: &Item) -> Detail {
        let kind = match item.kind() {
            ItemKind::Call => self.calls,
            ItemKind::Thinking => self.thoughts,
            _ if item.group().is_some() => self.calls,
            _ if is_folded_at_first(item) => Detail::Folded,
            _ => Detail::Whole,
        };
        self.changed.get(&key).copied().unwrap_or(kind)
    }
}

/// A block of a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) key: Key,
    pub(crate) lines: Range<usize>,
    /// The line of its entry in the file, from 1; `None` while only the end was read.
    pub(crate) line: Option<u64>,
    pub(crate) is_prompt: bool,
    pub(crate) detail: Detail,
    /// Its items in the list of the part.
    items: Range<usize>,
    /// The offset of its last entry.
    pub(crate) last: u64,
}

/// A part of a conversation, laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) lines: Vec<StyledLine>,
    pub(crate) blocks: Vec<Block>,
}

/// How a page is laid out. A page with a larger version is newer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Layout {
    pub(crate) width: usize,
    pub(crate) folds: Arc<Folds>,
    pub(crate) version: u64,
}

/// What a thread is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// A part.
    Lay { part: usize, layout: Layout },
    /// The part with the entry at this offset, or the last one, and the part above it.
    Locate { offset: Option<u64>, layout: Layout },
    /// The next place with a text.
    Search(Search),
    /// All prompts.
    Outline,
    /// The text of a block.
    Copy { part: usize, key: Key },
    /// The line of an entry.
    Raw { offset: u64, width: usize },
    /// A new session of what is up to this entry.
    Fork { offset: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) id: u64,
    pub(crate) needle: Needle,
    pub(crate) part: usize,
    /// The block to start at, and the number of its hit after which it continues.
    pub(crate) key: Key,
    pub(crate) hit: Option<usize>,
    pub(crate) is_backward: bool,
    pub(crate) width: usize,
}

/// What a session is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) place: String,
    /// Its working folder.
    pub(crate) cwd: Option<String>,
    pub(crate) parts: usize,
    pub(crate) entries: usize,
    pub(crate) lines: u64,
    /// Whether all of the file was read.
    pub(crate) is_whole: bool,
    /// How long that took.
    pub(crate) took: Duration,
}

/// A prompt in the outline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutlineRow {
    pub(crate) offset: u64,
    pub(crate) line: u64,
    pub(crate) millis: Option<i64>,
    pub(crate) text: String,
}

/// What a thread answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Ready(Box<Facts>),
    Failed(String),
    Laid {
        part: usize,
        version: u64,
        page: Page,
    },
    Located {
        part: usize,
        offset: Option<u64>,
        version: u64,
        pages: Vec<(usize, Page)>,
    },
    Found {
        id: u64,
        part: usize,
        key: Key,
        hit: usize,
        is_wrapped: bool,
    },
    NotFound {
        id: u64,
    },
    Searching {
        id: u64,
        percent: usize,
    },
    Outline {
        rows: Vec<OutlineRow>,
        is_last: bool,
    },
    Copied(String),
    Raw {
        lines: Vec<String>,
        text: String,
    },
    Forked(Result<String, String>),
}

/// Sends answers of one thread.
pub(crate) type Reply = Arc<dyn Fn(Answer) + Send + Sync>;

/// Opens the session at `path` in a thread: first its end, if it is large and `is_quick`; such a
/// thread knows the end alone.
pub(crate) fn open(
    path: &Path,
    options: &RenderOptions,
    is_end: bool,
    wait: Duration,
    reply: Reply,
) -> Sender<Request> {
    let (sender, requests) = channel();
    let (path, options) = (path.to_owned(), options.clone());
    thread::spawn(move || {
        thread::sleep(wait);
        if let Err(error) = serve(&path, &options, is_end, &requests, &reply) {
            reply(Answer::Failed(error));
        }
    });
    sender
}

/// Returns whether a file is so large that its end is shown first.
pub(crate) fn is_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.len() > 4 * FIRST)
}

fn serve(
    path: &Path,
    options: &RenderOptions,
    is_end: bool,
    requests: &Receiver<Request>,
    reply: &Reply,
) -> Result<(), String> {
    let started = Instant::now();
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let source = Source::open(path).map_err(|error| words(&error))?;
    let (source, base) = match is_end {
        true => end_of(&source).map_err(|error| words(&error))?,
        false => (source, 0),
    };
    let load = match is_end {
        true => LoadOptions::new().threads(1),
        false => LoadOptions::new(),
    };
    let history = History::read_with(source, &load).map_err(|error| words(&error))?;
    let tree = match is_end {
        true => Tree::new(history.index(), Policy::Recover),
        false => history.tree(Policy::Recover),
    };
    let path_of = shown_path(&tree);
    let session = Session::new(&history, &tree, path_of, options, base, !is_end);
    let facts = session.facts(started)?;
    reply(Answer::Ready(Box::new(facts)));
    session.serve(requests, reply);
    Ok(())
}

/// Returns the entries to be shown, oldest first.
fn shown_path(tree: &Tree<'_>) -> ConversationPath {
    tree.path()
}

/// Returns the last lines of a file as a source of its own, and their offset.
fn end_of(source: &Source) -> Result<(Source, u64), transcript_reader::Error> {
    let mut size = FIRST;
    loop {
        let start = source.len().saturating_sub(size);
        let mut bytes = vec![0; usize::try_from(source.len() - start).unwrap_or_default()];
        let mut read = 0;
        while read < bytes.len() {
            match source.read_at(start + read as u64, &mut bytes[read..])? {
                0 => break,
                more => read += more,
            }
        }
        bytes.truncate(read);
        let cut = match start {
            0 => 0,
            _ => memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1),
        };
        // At least one whole line.
        let is_enough = memrchr(b'\n', &bytes).is_some_and(|last| last > cut);
        if is_enough || start == 0 || size >= MAX_FIRST {
            let lines = bytes.split_off(cut);
            let source = Source::from_bytes(lines, source.path());
            return Ok((source, start + cut as u64));
        }
        size *= 4;
    }
}

/// An open session.
struct Session<'s> {
    history: &'s History,
    source: &'s Source,
    index: &'s Index,
    tree: &'s Tree<'s>,
    path: ConversationPath,
    /// The entries of each part.
    parts: Vec<Range<usize>>,
    decisions: HashMap<EntryNo, Vec<Decision>>,
    branches: Vec<(EntryNo, ConversationPath)>,
    options: RenderOptions,
    /// The offset of the source in the file.
    base: u64,
    is_whole: bool,
    found: AtomicU64,
}

impl<'s> Session<'s> {
    fn new(
        history: &'s History,
        tree: &'s Tree<'s>,
        path: ConversationPath,
        options: &RenderOptions,
        base: u64,
        is_whole: bool,
    ) -> Self {
        let index = tree.index();
        let mut decisions: HashMap<EntryNo, Vec<Decision>> = HashMap::new();
        for decision in path.decisions.iter().filter(|_| is_whole) {
            decisions
                .entry(decision.entry())
                .or_default()
                .push(*decision);
        }
        let first = path.entries.first().map(|entry| entry.entry_no());
        let branches = match is_whole {
            true => tree.branches_off(&path),
            false => Vec::new(),
        };
        let branches = branches.into_iter().filter_map(|branch| {
            let has_entries = !branch.path.entries.is_empty();
            Some((branch.from.or(first)?, branch.path)).filter(|_| has_entries)
        });
        Self {
            history,
            source: history.source(),
            index,
            tree,
            parts: divide(index, &path),
            branches: branches.collect(),
            path,
            decisions,
            options: options.clone().agent_hint("Enter shows it"),
            base,
            is_whole,
            found: AtomicU64::new(0),
        }
    }

    fn facts(&self, started: Instant) -> Result<Facts, String> {
        let header = Header::read(
            self.source,
            self.history.session_id(),
            self.tree,
            &self.path,
            &self.options,
        );
        let header = header.map_err(|error| error.to_string())?;
        let place = [header.folder, header.branch, header.model, header.times];
        let place: Vec<String> = place.into_iter().flatten().collect();
        // Without a home directory the folder is spelled out.
        let plain = RenderOptions::new();
        let plain = Header::read(self.source, None, self.tree, &self.path, &plain);
        Ok(Facts {
            id: header.session_id,
            title: header.title,
            place: place.join(" · "),
            cwd: plain.map_err(said)?.folder,
            parts: self.parts.len(),
            entries: self.path.entries.len(),
            lines: self.index.line_count(),
            is_whole: self.is_whole,
            took: started.elapsed(),
        })
    }

    /// Answers requests until nobody asks any more; searches in a thread of their own.
    fn serve(&self, requests: &Receiver<Request>, reply: &Reply) {
        thread::scope(|scope| {
            let (searches, todo) = channel::<Search>();
            scope.spawn(move || {
                let mut displays = Displays::new(self.tree);
                for search in todo {
                    let answer = self.search(&mut displays, &search, reply);
                    reply(answer.unwrap_or(Answer::NotFound { id: search.id }));
                }
            });
            let mut displays = Displays::new(self.tree);
            for request in requests {
                let answer = match request {
                    Request::Search(search) => {
                        self.found.store(search.id, Ordering::Relaxed);
                        // The thread ends with this scope.
                        let _ = searches.send(search);
                        continue;
                    }
                    Request::Outline => {
                        self.outline(reply);
                        continue;
                    }
                    other => self.answer(&mut displays, other),
                };
                reply(answer.unwrap_or_else(Answer::Failed));
            }
            // Ends a search that is under way.
            self.found.store(u64::MAX, Ordering::Relaxed);
            drop(searches);
        });
    }

    fn answer(&self, displays: &mut Displays<'_, '_>, request: Request) -> Result<Answer, String> {
        Ok(match request {
            Request::Lay { part, layout } => Answer::Laid {
                part,
                version: layout.version,
                page: self.page(displays, part, &layout)?,
            },
            Request::Locate { offset, layout } => {
                let offset = offset.filter(|_| !self.parts.is_empty());
                let part = offset.and_then(|offset| self.part_with(offset));
                let part = part.unwrap_or(self.parts.len().saturating_sub(1));
                let mut pages = Vec::new();
                for part in part.saturating_sub(1)..=part {
                    pages.push((part, self.page(displays, part, &layout)?));
                }
                let version = layout.version;
                Answer::Located {
                    part,
                    offset,
                    version,
                    pages,
                }
            }
            Request::Copy { part, key } => Answer::Copied(self.copy(displays, part, key)?),
            Request::Raw { offset, width } => self.raw(offset, width)?,
            Request::Fork { offset } => Answer::Forked(self.fork(offset)),
            Request::Search(_) | Request::Outline => unreachable!("answered elsewhere"),
        })
    }

    fn entry(&self, number: EntryNo) -> EntryRef<'s> {
        self.index.entry(number)
    }

    fn offset(&self, number: EntryNo) -> u64 {
        self.base + self.entry(number).offset()
    }

    fn part_with(&self, offset: u64) -> Option<usize> {
        let mut entries = self.path.entries.iter();
        let at = entries.position(|entry| self.offset(entry.entry_no()) == offset)?;
        Some(self.parts.partition_point(|part| part.end <= at))
    }

    /// Returns the items of a part.
    fn conversation(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
    ) -> Result<Conversation<'s>, String> {
        let entries = self.parts.get(part).cloned().unwrap_or_default();
        let mut path = ConversationPath::default();
        path.entries.extend_from_slice(&self.path.entries[entries]);
        for entry in &path.entries {
            let about = self.decisions.get(&entry.entry_no());
            path.decisions.extend(about.into_iter().flatten());
        }
        Conversation::new(self.source, self.index, displays, &path, None).map_err(said)
    }

    fn key(&self, item: &Item) -> Key {
        Key {
            offset: self.offset(item.entry_no()),
            number: u32::try_from(item.block()).unwrap_or(BRANCH - 1),
        }
    }

    fn page(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
        layout: &Layout,
    ) -> Result<Page, String> {
        let main = self.conversation(displays, part)?;
        let detail = |item: &Item| layout.folds.detail(self.key(item), item);
        self.lay(displays, main, part, layout, &detail)
    }

    fn lay(
        &self,
        displays: &mut Displays<'_, '_>,
        main: Conversation<'s>,
        part: usize,
        layout: &Layout,
        detail: &dyn Fn(&Item) -> Detail,
    ) -> Result<Page, String> {
        let agents = self.agents(&main, detail);
        let trees: Vec<Tree<'_>> = agents
            .iter()
            .map(|(_, one)| one.tree(Policy::Recover))
            .collect();
        let (mut conversations, mut origins) = (vec![main], Vec::new());
        for ((origin, history), tree) in agents.iter().zip(&trees) {
            let mut path = tree.path();
            path.entries.truncate(NESTED);
            let title = agent_title(origin);
            let mut displays = Displays::new(tree);
            let (source, index) = (history.source(), history.index());
            let one = Conversation::new(source, index, &mut displays, &path, Some(title));
            conversations.push(one.map_err(said)?);
            origins.push(origin.clone());
        }
        self.old_agents(&mut conversations, &mut origins, displays, detail)?;
        let lists: Vec<_> = conversations.iter().map(Conversation::display).collect();
        let nesting = Nesting::new(&lists, &origins);
        let notes = self.branches(displays, part, layout, &mut conversations)?;
        let shown: Vec<BranchNote> = notes.iter().map(|(_, note)| note.clone()).collect();
        let options = self.options.clone().width(layout.width);
        let printed = print_blocks(&conversations, nesting, &shown, &options, detail);
        let (lines, blocks) = printed.map_err(said)?;
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
    ) -> Vec<(Origin, History)> {
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
        let found = subagents(self.source.path()).unwrap_or_default();
        let is_open = |agent: &Subagent| {
            let origin = Origin::from(agent);
            open.iter().any(|group| {
                group.agent() == Some(&agent.id)
                    || origin.tool_use_id.as_deref() == Some(group.id())
            })
        };
        let found = found.iter().filter(|agent| is_open(agent));
        found
            .filter_map(|agent| Some((Origin::from(agent), History::open(&agent.path).ok()?)))
            .collect()
    }

    /// Adds the subagents of clients up to 2.0.27, which are in the same file.
    fn old_agents(
        &self,
        conversations: &mut Vec<Conversation<'s>>,
        origins: &mut Vec<Origin>,
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
        for (origin, mut path) in sidechains(self.tree) {
            path.entries.truncate(NESTED);
            let title = Some(agent_title(&origin));
            let one = Conversation::new(self.source, self.index, displays, &path, title);
            conversations.push(one.map_err(said)?);
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
    ) -> Result<Vec<(Key, BranchNote)>, String> {
        let entries = self.parts.get(part).cloned().unwrap_or_default();
        let entries = self.path.entries[entries]
            .iter()
            .map(|entry| entry.entry_no());
        let entries: HashSet<EntryNo> = entries.collect();
        let mut notes = Vec::new();
        let here = self.branches.iter().enumerate();
        for (number, (from, path)) in here.filter(|(_, (from, _))| entries.contains(from)) {
            let key = Key {
                offset: self.offset(*from),
                number: BRANCH | u32::try_from(number).unwrap_or(0),
            };
            let long = count(path.entries.len(), "entry");
            let is_shown = layout.folds.changed.get(&key) == Some(&Detail::Whole);
            let mut note = BranchNote {
                from: *from,
                title: format!("branch · {long}; Enter shows it"),
                shown: None,
            };
            if is_shown {
                let mut path = path.clone();
                path.entries.truncate(NESTED);
                let title = Some("branch".to_owned());
                let one = Conversation::new(self.source, self.index, displays, &path, title);
                note.shown = Some(conversations.len());
                conversations.push(one.map_err(said)?);
            }
            notes.push((key, note));
        }
        Ok(notes)
    }

    /// Returns the next place with a text, and reports progress on the way.
    fn search(
        &self,
        displays: &mut Displays<'_, '_>,
        search: &Search,
        reply: &Reply,
    ) -> Result<Answer, String> {
        let parts = self.parts.len();
        let layout = Layout {
            width: search.width,
            ..Layout::default()
        };
        let mut bodies = Bodies::new(self.source);
        let mut reported = Instant::now();
        // The first part again at the end, for what is on the other side of the start.
        for step in 0..=parts {
            if self.found.load(Ordering::Relaxed) != search.id {
                return Ok(Answer::NotFound { id: search.id });
            }
            if reported.elapsed() > Duration::from_millis(200) {
                reported = Instant::now();
                let percent = step * 100 / parts.max(1);
                reply(Answer::Searching {
                    id: search.id,
                    percent,
                });
            }
            let part = match search.is_backward {
                false => (search.part + step) % parts.max(1),
                true => (search.part + parts - step % parts.max(1)) % parts.max(1),
            };
            if !self.may_have(&mut bodies, part, &search.needle) {
                continue;
            }
            let main = self.conversation(displays, part)?;
            let page = self.lay(displays, main, part, &layout, &|_| Detail::Whole)?;
            let start = page.blocks.iter().position(|block| block.key == search.key);
            let mut hits: Vec<(usize, Key, usize)> = Vec::new();
            for (at, block) in page.blocks.iter().enumerate() {
                let lines = &page.lines[block.lines.clone()];
                let found = lines_with(lines, &search.needle).len();
                hits.extend((0..found).map(|hit| (at, block.key, hit)));
            }
            let is_first = step == 0;
            let wanted = |&(at, _, hit): &(usize, Key, usize)| {
                let from = (start.unwrap_or(0), search.hit);
                match (is_first, search.is_backward, from.1) {
                    (false, _, _) => true,
                    (_, false, Some(last)) => (at, hit) > (from.0, last),
                    (_, false, None) => at >= from.0,
                    (_, true, Some(last)) => (at, hit) < (from.0, last),
                    (_, true, None) => at < from.0,
                }
            };
            let found = match search.is_backward {
                false => hits.iter().find(|hit| wanted(hit)),
                true => hits.iter().rev().find(|hit| wanted(hit)),
            };
            if let Some(&(_, key, hit)) = found {
                let is_wrapped = match search.is_backward {
                    false => part < search.part || step == parts,
                    true => part > search.part || step == parts,
                };
                return Ok(Answer::Found {
                    id: search.id,
                    part,
                    key,
                    hit,
                    is_wrapped,
                });
            }
        }
        Ok(Answer::NotFound { id: search.id })
    }

    /// Returns whether a part may have a text: its longest word is in one of its lines.
    fn may_have(&self, bodies: &mut Bodies<'_>, part: usize, needle: &Needle) -> bool {
        let Some(entries) = self.parts.get(part) else {
            return false;
        };
        self.path.entries[entries.clone()].iter().any(|entry| {
            let body = bodies.get(&self.entry(entry.entry_no()));
            body.map_or(true, |body| needle.may_be_in(body.text))
        })
    }

    /// Sends the prompts, in the order of the conversation.
    fn outline(&self, reply: &Reply) {
        let mut bodies = Bodies::new(self.source);
        let mut rows = Vec::new();
        for entry in &self.path.entries {
            let entry = self.entry(entry.entry_no());
            if !starts_turn(&entry) {
                continue;
            }
            let Ok(body) = bodies.get(&entry) else {
                continue;
            };
            let Ok(parsed) = transcript_format::entry::Entry::parse(body.text) else {
                continue;
            };
            let content = transcript_render::blocks::message_content(&parsed);
            let text = content
                .map(transcript_render::blocks::plain_text)
                .unwrap_or_default();
            let text = match Said::of(&text) {
                Said::Prompt(text) => text.to_owned(),
                Said::Command { name, arguments } => format!("{name} {arguments}"),
                Said::Shell(command) => format!("! {command}"),
                _ => continue,
            };
            let start: String = text.chars().take(OUTLINE).collect();
            rows.push(OutlineRow {
                offset: self.base + entry.offset(),
                line: entry.known_line().unwrap_or(0),
                millis: entry.millis(),
                text: transcript_render::Escaping::Visible.one_line(&start),
            });
            if rows.len() == OUTLINE_ROWS {
                let rows = std::mem::take(&mut rows);
                reply(Answer::Outline {
                    rows,
                    is_last: false,
                });
            }
        }
        reply(Answer::Outline {
            rows,
            is_last: true,
        });
    }

    /// Returns the text of a block as it is in the file: what was said, or a call and its result.
    fn copy(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
        key: Key,
    ) -> Result<String, String> {
        let main = self.conversation(displays, part)?;
        let items = main.display().items();
        let Some(place) = items.iter().position(|item| self.key(item) == key) else {
            return Err("this block has no text".to_owned());
        };
        let places = match items[place].group() {
            Some((group, GroupRole::Opening)) => main.display().groups()[group].items(),
            _ => place..place + 1,
        };
        let mut reader = ItemReader::new(main.display(), self.index, Bodies::new(self.source));
        let mut texts = Vec::new();
        for place in places {
            let item = &items[place];
            let loaded = reader.item(place).map_err(said)?;
            let text = match item.kind() {
                ItemKind::Call => {
                    let group = item
                        .group()
                        .map(|(group, _)| &main.display().groups()[group]);
                    let tool = group.map_or("", |group| group.tool());
                    call_line(tool, loaded.block().as_ref(), &self.options)
                }
                ItemKind::Result => {
                    let content = loaded.object().and_then(|block| block.field("content"));
                    content
                        .map(transcript_render::blocks::plain_text)
                        .unwrap_or_default()
                }
                _ => match loaded.text() {
                    Some(text) => text.into_owned(),
                    None => loaded
                        .raw()
                        .map(|raw| raw.text().to_owned())
                        .unwrap_or_default(),
                },
            };
            texts.extend(Some(text).filter(|text| !text.is_empty()));
        }
        Ok(texts.join("\n"))
    }

    /// Returns the line at an offset, escaped and broken to a width, and as it is.
    fn raw(&self, offset: u64, width: usize) -> Result<Answer, String> {
        let at = self
            .path
            .entries
            .iter()
            .map(|entry| self.entry(entry.entry_no()));
        let mut at = at.filter(|entry| self.base + entry.offset() == offset);
        let entry = at.next().ok_or("this block has no line of its own")?;
        let size = usize::try_from(entry.byte_len().min(MAX_RAW)).unwrap_or_default();
        let mut bytes = vec![0; size];
        let read = self
            .source
            .read_at(entry.offset(), &mut bytes)
            .map_err(said)?;
        bytes.truncate(read);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = transcript_render::wrapped(&text, width.max(8));
        if entry.byte_len() > MAX_RAW {
            lines.push(format!("⋯ {} more bytes", entry.byte_len() - MAX_RAW));
        }
        Ok(Answer::Raw { lines, text })
    }

    fn fork(&self, offset: u64) -> Result<String, String> {
        if !self.is_whole {
            return Err("the session is still being read".to_owned());
        }
        let mut entries = self
            .path
            .entries
            .iter()
            .map(|entry| self.entry(entry.entry_no()));
        let entry = entries.find(|entry| self.base + entry.offset() == offset);
        let uuid = entry.and_then(|entry| entry.uuid());
        let uuid = uuid.ok_or("this entry has no uuid; fork at another one")?;
        let at = EntryId::from(self.index.id_text(uuid).as_str());
        let forked = self
            .history
            .fork(Policy::Recover, &ForkOptions::new().at(at));
        let (_, id): (PathBuf, _) = forked.map_err(said)?;
        Ok(id.to_string())
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn agent_title(origin: &Origin) -> String {
    let agent = origin.agent.as_deref().unwrap_or_default();
    let agent = transcript_render::Escaping::Visible.one_line(agent);
    format!("subagent {agent}").trim_end().to_owned()
}

fn is_of_agent(tool: &str, agent: Option<&str>) -> bool {
    agent.is_some() || matches!(tool, "Task" | "Agent")
}

fn is_prompt(item: &Item) -> bool {
    let is_hidden = item
        .marks()
        .intersects(transcript_resume::items::ItemMarks::HIDDEN);
    item.kind() == ItemKind::Text && item.speaker() == Speaker::Person && !is_hidden
}

/// Divides a path into parts. Each has at least [`PART`] bytes and, if possible, starts with a
/// prompt; no part starts between a call and its result, unless there is none. Reads no bodies.
fn divide(index: &Index, path: &ConversationPath) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut size) = (0, 0);
    let mut open: HashSet<ToolKey> = HashSet::new();
    let first = path.entries.first().map(|entry| entry.entry_no());
    let mut message = None;
    for (place, entry) in path.entries.iter().enumerate() {
        let entry_ref = index.entry(entry.entry_no());
        let is_kept = first.is_some_and(|first| entry.entry_no() < first);
        let is_turn = starts_turn(&entry_ref);
        if is_turn {
            open.clear();
        }
        let is_new = entry_ref.kind().is_message()
            && (entry_ref.message().is_none() || entry_ref.message() != message);
        let ends = (is_turn && size >= PART)
            || (is_new && open.is_empty() && size >= 8 * PART)
            || size >= 64 * PART;
        if ends && !is_kept && place > start {
            parts.push(start..place);
            (start, size) = (place, 0);
            open.clear();
        }
        size += entry_ref.byte_len();
        message = entry_ref.message();
        for end in entry_ref.tools() {
            match end.role() {
                ToolRole::Use | ToolRole::ServerUse => open.insert(end.key()),
                _ => open.remove(&end.key()),
            };
        }
    }
    if start < path.entries.len() {
        parts.push(start..path.entries.len());
    }
    parts
}
