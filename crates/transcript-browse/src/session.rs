//! A thread that has a session open, and lays out (`parts`), searches and copies what it is asked for.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use memchr::{memchr, memrchr};
use transcript_engine::{EntryId, ForkOptions, History};
use transcript_format::units::size;
use transcript_reader::{Bodies, EntryNo, EntryRef, Index, LoadOptions, MessageText, Source};
use transcript_render::blocks::{message_content, plain_text};
use transcript_render::imported::BranchReasons;
use transcript_render::{Escaping, Header, RenderOptions, call_line, wrapped};
use transcript_resume::items::{Displays, GroupRole, ItemKind, ItemReader, starts_turn};
use transcript_resume::{ConversationPath, Decision, Policy, Story, Tree};
use transcript_storage::{ReadDisk, RealDisk};

use crate::divide::divide;
use crate::messages::{
    Answer, BlockId, OutlineRow, Reply, Request, Search, SessionFacts, to_message,
};

/// The length of the end of a file that is shown before all of it is indexed, in bytes. Smaller files are read at
/// once.
const INITIAL_TAIL_LEN: u64 = 256 << 10;
/// The longest last line for which that is tried.
const MAX_TAIL_LEN: u64 = 8 << 20;
/// A raw line is shown up to this many bytes.
const MAX_RAW: u64 = 1 << 20;
/// The maximum length of a prompt in the outline, in characters.
const MAX_OUTLINE_CHARS: usize = 160;
/// The number of rows of an outline that are sent at once.
const OUTLINE_BATCH_ROWS: usize = 500;

/// The disk to read sessions from, and the folder for copies of them.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    pub(crate) disk: Arc<dyn ReadDisk>,
    /// The folder of copies, if that is not the one of the session.
    pub(crate) copies: Option<PathBuf>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            disk: Arc::new(RealDisk),
            copies: None,
        }
    }
}

/// Opens the session at `path` in a thread after a while, or its end alone.
pub(crate) fn open(
    path: &Path,
    storage: Storage,
    options: &RenderOptions,
    is_end: bool,
    wait: Duration,
    reply: Reply,
) -> Sender<Request> {
    let (sender, requests) = channel();
    let (path, options) = (path.to_owned(), options.clone());
    thread::spawn(move || {
        thread::sleep(wait);
        if let Err(error) = serve(&path, &storage, &options, is_end, &requests, &reply) {
            reply(Answer::Failed(error));
        }
    });
    sender
}

/// Returns whether a file is so large that its end is shown first.
pub(crate) fn is_large(storage: &Storage, path: &Path) -> bool {
    let found = storage.disk.metadata(path);
    found.is_ok_and(|found| found.len > 4 * INITIAL_TAIL_LEN)
}

fn serve(
    path: &Path,
    storage: &Storage,
    options: &RenderOptions,
    is_end: bool,
    requests: &Receiver<Request>,
    reply: &Reply,
) -> Result<(), String> {
    let started = Instant::now();
    let source = Source::open_on(&storage.disk, path).map_err(to_message)?;
    source.check_messages().map_err(to_message)?;
    let (mut source, mut base, mut load) = (source, 0, LoadOptions::new());
    if is_end {
        (source, base) = end_of(&source).map_err(to_message)?;
        load = load.threads(1);
    }
    let history = History::read_with(source, &load).map_err(to_message)?;
    let tree = if is_end {
        Tree::new(history.index(), Policy::Recover)
    } else {
        history.tree(Policy::Recover)
    };
    let context = tree.path();
    let tree = tree.unspliced();
    let story = tree.story(&context);
    drop(context);
    let closed: Vec<EntryNo> = story.boundaries().collect();
    let session = Session {
        storage: storage.clone(),
        ..Session::new(&history, &tree, story, &closed, options, base, !is_end)
    };
    let facts = session.facts(started)?;
    reply(Answer::Ready(Box::new(facts)));
    session.serve(requests, reply);
    Ok(())
}

/// Returns the last lines of a file as a source of its own, and their offset.
fn end_of(source: &Source) -> Result<(Source, u64), transcript_reader::Error> {
    let mut size = INITIAL_TAIL_LEN;
    loop {
        let start = source.len().saturating_sub(size);
        let mut bytes = source.bytes(start..source.len())?;
        let cut = match start {
            0 => 0,
            _ => memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1),
        };
        // At least one whole line.
        let is_enough = memrchr(b'\n', &bytes).is_some_and(|last| last > cut);
        if is_enough || start == 0 || size >= MAX_TAIL_LEN {
            let lines = bytes.split_off(cut);
            let source = Source::from_bytes(lines, source.path());
            return Ok((source, start + cut as u64));
        }
        size *= 4;
    }
}

/// An open session.
pub(crate) struct Session<'s> {
    pub(crate) history: &'s History,
    pub(crate) source: &'s Source,
    pub(crate) index: &'s Index,
    pub(crate) tree: &'s Tree<'s>,
    /// The whole conversation, without decisions.
    pub(crate) path: ConversationPath,
    /// The boundaries that closed its chapters.
    pub(crate) closed: &'s [EntryNo],
    /// The entries of each part.
    pub(crate) parts: Vec<Range<usize>>,
    /// Sorted by the entries that they are about.
    pub(crate) decisions: Vec<Decision>,
    pub(crate) branches: Vec<(EntryNo, ConversationPath)>,
    pub(crate) reasons: BranchReasons,
    pub(crate) storage: Storage,
    pub(crate) options: RenderOptions,
    /// The offset of the source in the file.
    pub(crate) base: u64,
    pub(crate) is_whole: bool,
    /// The number of the search that is wanted.
    pub(crate) wanted: AtomicU64,
}

impl<'s> Session<'s> {
    fn new(
        history: &'s History,
        tree: &'s Tree<'s>,
        story: Story,
        closed: &'s [EntryNo],
        options: &RenderOptions,
        base: u64,
        is_whole: bool,
    ) -> Self {
        let index = tree.index();
        let first = story.path.entries.first().map(|entry| entry.entry_no());
        // Of an end alone, what is missing above it is not damage.
        let mut branches = Vec::new();
        if is_whole {
            branches = tree.branches_off_story(&story);
        }
        let branches = branches.into_iter().filter_map(|branch| {
            let has_entries = !branch.path.entries.is_empty();
            Some((branch.from.or(first)?, branch.path)).filter(|_| has_entries)
        });
        let branches: Vec<_> = branches.collect();
        // Without them the branches are shown all the same.
        let reasons = match &branches[..] {
            [] => BranchReasons::default(),
            _ => BranchReasons::read(history.source(), index).unwrap_or_default(),
        };
        let mut path = story.path;
        let mut decisions = std::mem::take(&mut path.decisions);
        decisions.retain(|_| is_whole);
        decisions.sort_by_key(Decision::entry);
        Self {
            history,
            source: history.source(),
            index,
            tree,
            parts: divide(index, &path),
            branches,
            reasons,
            path,
            closed,
            decisions,
            storage: Storage::default(),
            options: options.clone().agent_hint("Enter shows it"),
            base,
            is_whole,
            wanted: AtomicU64::new(0),
        }
    }

    fn facts(&self, started: Instant) -> Result<SessionFacts, String> {
        let id = self.history.session_id();
        let header = Header::read(self.source, id, self.tree, &self.path, &self.options);
        let header = header.map_err(to_message)?;
        let place: Vec<String> = header.place().collect();
        Ok(SessionFacts {
            id: header.session_id,
            title: header.title,
            place: place.join(" · "),
            home: self
                .history
                .row()
                .continued_in()
                .filter(|_| header.maker.is_none())
                .map(str::to_owned),
            maker: header.maker,
            parts: self.parts.len(),
            is_whole: self.is_whole,
            took: started.elapsed(),
        })
    }

    /// Answers requests until their channel is closed. Searches have a thread of their own.
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
                let answer = self.answer(&mut displays, request, &searches, reply);
                if let Some(answer) = answer.unwrap_or_else(|error| Some(Answer::Failed(error))) {
                    reply(answer);
                }
            }
            // Ends a search that is under way.
            self.wanted.store(u64::MAX, Ordering::Relaxed);
            drop(searches);
        });
    }

    fn answer(
        &self,
        displays: &mut Displays<'_, '_>,
        request: Request,
        searches: &Sender<Search>,
        reply: &Reply,
    ) -> Result<Option<Answer>, String> {
        Ok(Some(match request {
            Request::Lay { part, layout } => Answer::Laid {
                part,
                version: layout.version,
                page: self.page(displays, part, &layout)?,
            },
            Request::Locate { offset, layout } => {
                let offset = offset.filter(|_| !self.parts.is_empty());
                let last = self.parts.len().saturating_sub(1);
                let part = offset.map_or(last, |offset| self.part_at(offset));
                let mut pages = Vec::new();
                for part in part.saturating_sub(1)..=part {
                    pages.push((part, self.page(displays, part, &layout)?));
                }
                Answer::Located {
                    part,
                    offset,
                    version: layout.version,
                    pages,
                }
            }
            Request::Search(search) => {
                self.wanted.store(search.id, Ordering::Relaxed);
                // The thread that searches ends after this one.
                let _ = searches.send(search);
                return Ok(None);
            }
            Request::Reach {
                target,
                needle,
                width,
            } => self.reach(displays, &target, needle.as_ref(), width)?,
            Request::Outline => self.outline(reply),
            Request::Copy { part, key } => Answer::Copied(self.copy(displays, part, key)?),
            Request::Raw { offset, width } => self.raw(offset, width)?,
            Request::Fork { offset } => Answer::Forked(self.fork(offset)),
        }))
    }

    pub(crate) fn entry(&self, number: EntryNo) -> EntryRef<'s> {
        self.index.entry(number)
    }

    /// Returns the entry of the conversation at an offset in the file.
    fn entry_at(&self, offset: u64) -> Option<EntryRef<'s>> {
        let entries = self.path.entries.iter();
        let mut entries = entries.map(|entry| self.entry(entry.entry_no()));
        entries.find(|entry| self.base + entry.offset() == offset)
    }

    pub(crate) fn offset(&self, number: EntryNo) -> u64 {
        self.base + self.entry(number).offset()
    }

    /// Sends the prompts in the order of the conversation, and returns the last ones.
    fn outline(&self, reply: &Reply) -> Answer {
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
            let text = message_content(&parsed).map(plain_text).unwrap_or_default();
            let Some(text) = MessageText::of(&text).typed() else {
                continue;
            };
            let start: String = text.chars().take(MAX_OUTLINE_CHARS).collect();
            rows.push(OutlineRow {
                offset: self.base + entry.offset(),
                line: entry.known_line().unwrap_or(0),
                millis: entry.millis(),
                text: Escaping::Visible.one_line(&start),
            });
            if rows.len() == OUTLINE_BATCH_ROWS {
                let rows = std::mem::take(&mut rows);
                reply(Answer::Outline {
                    rows,
                    is_last: false,
                });
            }
        }
        Answer::Outline {
            rows,
            is_last: true,
        }
    }

    /// Returns the text of a block as it is in the file: that of a message, or a call and its result.
    fn copy(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
        key: BlockId,
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
            let loaded = reader.item(place).map_err(to_message)?;
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
                    content.map(plain_text).unwrap_or_default()
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
        let entry = self.entry_at(offset);
        let entry = entry.ok_or("this block has no line of its own")?;
        let end = entry.offset() + entry.byte_len().min(MAX_RAW);
        let bytes = self.source.bytes(entry.offset()..end).map_err(to_message)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = wrapped(&text, width.max(8));
        if entry.byte_len() > MAX_RAW {
            lines.push(format!("⋯ {} more", size(entry.byte_len() - MAX_RAW)));
        }
        Ok(Answer::Raw { lines, text })
    }

    fn fork(&self, offset: u64) -> Result<String, String> {
        if !self.is_whole {
            return Err("the session is still being read".to_owned());
        }
        let uuid = self.entry_at(offset).and_then(|entry| entry.uuid());
        let uuid = uuid.ok_or("this entry has no uuid; fork at another one")?;
        let at = EntryId::from(self.index.id_text(uuid).as_str());
        let mut options = ForkOptions::new().at(at);
        if let Some(folder) = &self.storage.copies {
            options = options.folder(folder);
        }
        let forked = self.history.fork(Policy::Recover, &options);
        let (_, id): (PathBuf, _) = forked.map_err(to_message)?;
        Ok(id.to_string())
    }
}
