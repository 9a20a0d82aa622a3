//! The state of the screen: events in, effects out. It reads no file and knows no terminal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use transcript_format::names::agent_of;
use transcript_format::unicode::comparable;
use transcript_render::Detail;

use crate::document::{Document, Motion};
use crate::find::SearchMessage;
use crate::find::{Find, KeyAction, SearchState, arrow, step};
use crate::list::{List, Session};
use crate::messages::{Answer, BlockId, OutlineRow, Request, Search, SessionFacts, Target};
use crate::needle::Needle;
use crate::reach::in_stored;

/// The minimum width for the list and the conversation side by side, in columns.
const MIN_SPLIT_WIDTH: u16 = 90;
/// The pause between two reads of a growing file, as a multiple of the time that the first of them took.
const RELOAD_BACKOFF: u32 = 4;

/// The keys and their effects, in the order of the help screen. At most 17 rows, so that it fits on a small one.
pub(crate) const KEYS: [(&str, &str, &str, &str); 17] = [
    ("", "CONVERSATION", "", "LIST OF SESSIONS"),
    ("j k ↓ ↑", "line down, up", "letters", "filter"),
    ("Space b", "page down, up", "↑ ↓", "select"),
    ("d u", "half a page down, up", "Enter", "read it"),
    ("g G", "start, end (follows)", "Tab", "conversation"),
    ("} {", "next block, previous", "Esc", "clear, leave"),
    ("] [", "next prompt, previous", "", ""),
    ("p", "outline of prompts", "", "ACTIONS"),
    ("/", "search", "y", "copy block, code"),
    ("n N", "next hit, previous", "o", "raw line"),
    ("Enter", "unfold or fold block", "f", "fork here"),
    ("c", "calls: short, all, none", "r", "resume in Claude"),
    ("t", "thinking: short, all", "Tab", "list of sessions"),
    ("? h", "this help", "q", "leave"),
    (
        "Ctrl-F",
        "search all sessions",
        "Ctrl-F",
        "search everything",
    ),
    ("", "a capital letter in a", "", "Ctrl-Z suspends"),
    ("", "search makes it exact", "", "Ctrl-C leaves"),
];

/// An input of the state machine.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Key(KeyEvent),
    Resize(u16, u16),
    Sessions(Vec<Session>),
    Answer(u64, Answer),
    /// The file of the open session changed.
    Grew(PathBuf),
    /// A text was copied, or not: in words.
    Copied(String),
    /// A message of the search over all sessions with this number.
    Found(u64, SearchMessage),
}

/// An output of the state machine: an action for the runtime.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Open a session in a thread with this number, after a while; the end alone, if it is large.
    Open {
        number: u64,
        path: PathBuf,
        is_end: bool,
        wait: Duration,
    },
    /// Ask a thread.
    Ask(u64, Request),
    /// End a thread.
    Close(u64),
    /// Watch a file, and no other.
    Follow(PathBuf),
    /// Put a text onto the clipboard.
    Copy(String),
    /// Read the list again.
    List,
    /// Search all sessions for this query, and end the search before; without one, end that alone.
    Find(u64, Option<String>),
    Suspend,
    Quit,
    /// Leave, and resume this session in this folder.
    Resume {
        id: String,
        folder: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Focus {
    #[default]
    List,
    Conversation,
    /// The search over all sessions.
    Find,
}

/// The overlay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Overlay {
    Help,
    Search(String),
    Outline {
        rows: Vec<OutlineRow>,
        filter: String,
        selected: usize,
        is_last: bool,
    },
    /// The text of a block, and the code in it.
    Copy {
        text: String,
        fences: Vec<(String, String)>,
    },
    Raw {
        lines: Vec<String>,
        text: String,
        top: usize,
    },
    Ask {
        question: String,
        yes: Effect,
    },
}

/// An open session.
#[derive(Default)]
pub(crate) struct Open {
    pub(crate) path: PathBuf,
    /// The number of the thread that answers.
    pub(crate) number: u64,
    pub(crate) document: Document,
    /// The thread that reads a newer state of it, and what that is, once it is known.
    pub(crate) newer: Option<(u64, Option<SessionFacts>)>,
    has_grown: bool,
    pub(crate) error: Option<String>,
    search: u64,
    pub(crate) progress: Option<usize>,
    /// The last hit: its block, and the number in it.
    hit: Option<(BlockId, usize)>,
    is_backward: bool,
    /// The target of the cursor when all of the session was read.
    pub(crate) target: Option<Target>,
    /// Whether it was opened from what a search over all sessions found.
    pub(crate) is_found: bool,
}

impl Open {
    /// Returns whether it is the file of a subagent.
    pub(crate) fn is_of_agent(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        agent_of(&name.to_string_lossy()).is_some()
    }
}

/// The state of the screen.
#[derive(Default)]
pub(crate) struct App {
    pub(crate) list: List,
    pub(crate) find: Find,
    /// The focus to which Escape returns from the search over all sessions.
    before_find: Focus,
    pub(crate) open: Option<Open>,
    pub(crate) focus: Focus,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) message: Option<String>,
    pub(crate) size: (u16, u16),
    numbers: u64,
    effects: Vec<Effect>,
}

impl App {
    /// Starts with the list, or with a session and a line of it.
    pub(crate) fn new(
        size: (u16, u16),
        session: Option<&Path>,
        line: Option<u64>,
    ) -> (Self, Vec<Effect>) {
        let mut app = Self {
            size,
            effects: vec![Effect::List],
            ..Self::default()
        };
        if let Some(path) = session {
            app.open(path);
            if let Some(open) = &mut app.open {
                open.target = line.map(Target::Line);
            }
            app.focus = Focus::Conversation;
            // The session is first on the screen, and the list is read beside it.
            app.effects.rotate_left(1);
        }
        let effects = std::mem::take(&mut app.effects);
        (app, effects)
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.size.0 >= MIN_SPLIT_WIDTH
    }

    /// Returns the width of the list: the side that one looks at has more room.
    pub(crate) fn list_width(&self) -> u16 {
        match (self.is_wide(), self.focus) {
            (true, Focus::List) => (self.size.0 / 2).min(76),
            (true, _) => (self.size.0 / 3).clamp(28, 44),
            (false, Focus::List) => self.size.0,
            (false, _) => 0,
        }
    }

    /// Returns columns and rows of the text of the conversation.
    fn text_size(&self) -> (usize, usize) {
        let list = self.is_wide().then(|| self.list_width() + 1);
        let width = self.size.0.saturating_sub(list.unwrap_or(0) + 1);
        let height = self.size.1.saturating_sub(3);
        // A smaller terminal shows nothing of the text, but must not have it laid out in lines of no width.
        (usize::from(width).max(20), usize::from(height).max(1))
    }

    /// Handles an event and returns the effects to run.
    pub(crate) fn handle(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => self.key(key),
            Event::Resize(width, height) => self.size = (width, height),
            Event::Sessions(sessions) => {
                self.list.set(sessions);
                match &self.open {
                    // The list is read again after a fork: the open session stays the selected one.
                    Some(open) => self.list.select(&open.path),
                    None => self.preview(),
                }
            }
            Event::Answer(number, answer) => self.answer(number, answer),
            Event::Grew(path) => {
                let open = self.open.as_mut().filter(|open| open.path == path);
                if let Some(open) = open {
                    open.has_grown = true;
                    self.read_again();
                }
            }
            Event::Copied(words) => self.message = Some(words),
            Event::Found(number, message) if number == self.find.number => {
                self.find.receive(message);
            }
            // A search that was replaced runs until it sees that it is cancelled: its results are of another query.
            Event::Found(..) => {}
        }
        // After every event, whatever it was: the width also depends on the focus, and a motion may need pages that are
        // not laid out. No handler of a key has to know that.
        let (width, height) = self.text_size();
        if let Some(open) = &mut self.open {
            open.document.resize(width, height);
            let requests = open.document.settle().into_iter();
            let asked = requests.map(|request| Effect::Ask(open.number, request));
            self.effects.extend(asked);
        }
        std::mem::take(&mut self.effects)
    }

    /// Returns whether everything on the screen is there.
    pub(crate) fn is_settled(&self) -> bool {
        self.open
            .as_ref()
            .is_none_or(|open| open.document.is_settled() && open.target.is_none())
    }

    fn new_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Opens a session: its end at once, and all of it.
    fn open(&mut self, path: &Path) {
        self.look_at(path);
        if let Some(open) = &mut self.open {
            // It may be open from a hit. Now Escape leads to the list, and not back to the hits.
            open.is_found = false;
        }
        self.read_whole();
    }

    /// Shows the selected session.
    fn preview(&mut self) {
        if self.is_wide()
            && let Some(path) = self.list.selected().map(|one| one.path.clone())
        {
            self.look_at(&path);
        }
    }

    /// Shows the end of a session.
    fn look_at(&mut self, path: &Path) {
        if self.open.as_ref().is_some_and(|open| open.path == path) {
            return;
        }
        // Each row that the selection passes is previewed: without this, each would leave a thread with an index.
        if let Some(old) = self.open.take() {
            self.close(&old);
        }
        let number = self.new_number();
        let (width, height) = self.text_size();
        self.open = Some(Open {
            path: path.to_owned(),
            number,
            document: Document::new(width, height),
            ..Open::default()
        });
        let path = path.to_owned();
        let wait = Duration::ZERO;
        self.effects.push(Effect::Open {
            number,
            path,
            is_end: true,
            wait,
        });
    }

    /// Shows the selected hit of the search over all sessions.
    fn open_hit(&mut self) {
        let Some(found) = self.find.chosen() else {
            self.message = match self.find.state {
                SearchState::Searching(_) => Some("still searching…".to_owned()),
                _ => None,
            };
            return;
        };
        let Some(target) = found.target.clone() else {
            // A stored result that belongs to no entry has no place in a conversation.
            self.message = Some(in_stored(&found.path));
            return;
        };
        let (path, needle) = (found.path.clone(), found.needle.clone());
        self.list.select(&found.session.clone());
        self.look_at(&path);
        self.read_whole();
        if let Some(open) = &mut self.open {
            open.document.needle = needle;
            // `n` continues from this hit, and not from one of an earlier search in the session.
            open.hit = None;
            open.is_backward = false;
            open.target = Some(target);
            open.is_found = true;
        }
        self.focus = Focus::Conversation;
        // Escape leads from the session to the hits. If the next one led to the session again, one could not leave.
        self.before_find = Focus::List;
        self.reach();
    }

    /// Asks where the target is, when all of the session was read.
    fn reach(&mut self) {
        let Some(open) = &self.open else { return };
        // The end of a file knows no line numbers, and a newer state is about to take the place of an old one.
        let is_ready = open.document.facts.is_whole && open.newer.is_none();
        if let Some(target) = open.target.clone().filter(|_| is_ready) {
            let request = Request::Reach {
                target,
                needle: open.document.needle.clone(),
                width: open.document.width(),
            };
            self.effects.push(Effect::Ask(open.number, request));
        }
    }

    fn close(&mut self, open: &Open) {
        self.effects.push(Effect::Close(open.number));
        if let Some((number, _)) = open.newer {
            self.effects.push(Effect::Close(number));
        }
    }

    /// Reads all of a session of which the end is shown, and follows it.
    fn read_whole(&mut self) {
        let Some(open) = &self.open else { return };
        // Before it is read: a line that is written in between would otherwise neither be read nor reported.
        self.effects.push(Effect::Follow(open.path.clone()));
        if !open.document.facts.is_whole && open.newer.is_none() {
            self.read_newer(Duration::ZERO);
        }
    }

    /// Reads a session that grew again, unless that is under way.
    fn read_again(&mut self) {
        let is_old = |open: &&mut Open| open.has_grown && open.newer.is_none();
        if let Some(open) = self.open.as_mut().filter(is_old) {
            open.has_grown = false;
            // Reading takes at most a fifth of the time: a large session that grows must not keep a core busy.
            let wait = open.document.facts.took * RELOAD_BACKOFF;
            self.read_newer(wait);
        }
    }

    fn read_newer(&mut self, wait: Duration) {
        let number = self.new_number();
        let Some(open) = &mut self.open else { return };
        open.newer = Some((number, None));
        self.effects.push(Effect::Open {
            number,
            path: open.path.clone(),
            is_end: false,
            wait,
        });
    }

    fn answer(&mut self, number: u64, answer: Answer) {
        let Some(open) = &mut self.open else { return };
        if let Some((newer, facts)) = open.newer.as_mut().filter(|(newer, _)| *newer == number) {
            let newer = *newer;
            match answer {
                Answer::Ready(ready) => {
                    // The old state stays on the screen, and answers keys, until pages of the newer one are laid out.
                    *facts = Some(*ready);
                    let request = open.document.locate();
                    self.effects.push(Effect::Ask(newer, request));
                }
                // Where the cursor went while the pages were laid out may be on none of them.
                Answer::Located {
                    offset, ref pages, ..
                } if facts.as_ref().is_some_and(|facts| facts.parts > 0)
                    && !open.document.is_within(offset, pages) =>
                {
                    let request = open.document.locate();
                    self.effects.push(Effect::Ask(newer, request));
                }
                Answer::Located {
                    part,
                    version,
                    pages,
                    ..
                } => {
                    let facts = facts.take().unwrap_or_default();
                    let old = std::mem::replace(&mut open.number, newer);
                    open.newer = None;
                    open.error = None;
                    open.document.replace(facts, part, version, pages);
                    self.effects.push(Effect::Close(old));
                    // Both waited for the whole session: the line or hit to go to, and a change that came meanwhile.
                    self.reach();
                    self.read_again();
                }
                Answer::Failed(error) => {
                    open.newer = None;
                    // Motions that wait for the whole file would wait forever.
                    open.document.facts.is_whole = true;
                    open.error = Some(error);
                    open.target = None;
                }
                _ => {}
            }
            return;
        }
        // The thread may have answered before it saw that it was closed.
        if number != open.number {
            return;
        }
        match answer {
            Answer::Ready(facts) => {
                open.document.facts = *facts;
                open.document.go(Motion::End);
            }
            Answer::Failed(error) => {
                open.target = None;
                // One request that failed must not hide a conversation that is on the screen.
                match open.document.facts.parts {
                    0 => open.error = Some(error),
                    _ => self.message = Some(error),
                }
            }
            Answer::Laid {
                part,
                version,
                page,
            } => open.document.add(part, version, page),
            Answer::Located {
                part,
                version,
                pages,
                offset,
            } => {
                for (part, page) in pages {
                    open.document.add(part, version, page);
                }
                if let Some(offset) = offset {
                    let key = BlockId { offset, number: 0 };
                    open.document.go(Motion::To(part, key, None));
                }
            }
            Answer::Found {
                id,
                part,
                key,
                hit,
                is_wrapped,
            } if id == open.search => {
                open.progress = None;
                open.hit = Some((key, hit));
                // A search also finds text in folded blocks, where the hit could not be seen.
                open.document.show(part, key);
                open.document.go(Motion::To(part, key, Some(hit)));
                if is_wrapped {
                    self.message = Some("search continued at the other end".to_owned());
                }
            }
            Answer::Reached { place, missing } => {
                open.target = None;
                if let Some((part, key, hit)) = place {
                    open.hit = hit.map(|hit| (key, hit));
                    open.document.show(part, key);
                    open.document.go(Motion::To(part, key, hit));
                }
                self.message = missing;
            }
            Answer::NotFound { id } if id == open.search => {
                open.progress = None;
                let needle = open.document.needle.as_ref();
                let needle = needle.map_or(String::new(), Needle::text);
                self.message = Some(format!("not found: {needle}"));
            }
            Answer::Searching { id, percent } if id == open.search => open.progress = Some(percent),
            Answer::Outline {
                rows: more,
                is_last,
            } => {
                let offset = open.document.block().map_or(0, |block| block.key.offset);
                if let Some(Overlay::Outline {
                    rows,
                    selected,
                    is_last: last,
                    filter,
                }) = &mut self.overlay
                {
                    // Rows arrive while bodies are still read. The prompt above the cursor is selected when all are there,
                    // unless the person has typed a filter by then: that decides what is selected.
                    rows.extend(more);
                    *last = is_last;
                    if is_last && filter.is_empty() {
                        let above = rows.iter().rposition(|row| row.offset <= offset);
                        *selected = above.unwrap_or(0);
                    }
                }
            }
            Answer::Copied(text) => {
                let fences = fences(&text);
                if fences.is_empty() {
                    self.effects.push(Effect::Copy(text));
                } else {
                    self.overlay = Some(Overlay::Copy { text, fences });
                }
            }
            Answer::Raw { lines, text } => {
                self.overlay = Some(Overlay::Raw {
                    lines,
                    text,
                    top: 0,
                });
            }
            Answer::Forked(Ok(id)) => {
                self.message = Some(format!("forked into {id}"));
                // The list was read before the new session was written.
                self.effects.push(Effect::List);
            }
            Answer::Forked(Err(error)) => self.message = Some(format!("not forked: {error}")),
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent) {
        // A message stays until the next key: by then it was seen.
        self.message = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        // Before overlays and inputs, which take letters: one must be able to leave from everywhere.
        match (key.code, is_control) {
            (KeyCode::Char('c'), true) => return self.effects.push(Effect::Quit),
            (KeyCode::Char('z'), true) => return self.effects.push(Effect::Suspend),
            (KeyCode::Char('f'), true) if self.overlay.is_none() => return self.go_to_find(),
            _ => {}
        }
        if let Some(overlay) = self.overlay.take() {
            self.overlay = self.overlay_key(overlay, key, is_control);
            return;
        }
        match self.focus {
            Focus::List => self.list_key(key, is_control),
            Focus::Conversation => self.conversation_key(key),
            Focus::Find => self.find_key(key, is_control),
        }
    }

    fn go_to_find(&mut self) {
        if self.focus != Focus::Find {
            let is_found = self.open.as_ref().is_some_and(|open| open.is_found);
            self.before_find = if is_found { Focus::List } else { self.focus };
            self.focus = Focus::Find;
        }
    }

    fn find_key(&mut self, key: KeyEvent, is_control: bool) {
        if key.code == KeyCode::F(1) {
            self.overlay = Some(Overlay::Help);
            return;
        }
        let page = usize::from(self.size.1 / 4).max(1);
        match self.find.key(key, is_control, page) {
            KeyAction::Nothing => {}
            KeyAction::Open => self.open_hit(),
            KeyAction::Leave => {
                self.focus = self.before_find;
                if let Some(open) = &mut self.open {
                    open.is_found = false;
                }
                // The conversation beside the list may still be that of a hit.
                if self.focus == Focus::List {
                    self.preview();
                }
            }
            KeyAction::Search => {
                let number = self.new_number();
                self.find.number = number;
                let query = self.find.query.trim().to_owned();
                let query = Some(query).filter(|query| !query.is_empty());
                // The hits of the query before stay, dimmed, until there are others: the screen does not flicker while one types.
                match query {
                    Some(_) => self.find.state = SearchState::Searching(None),
                    None => self.find.end(SearchState::Empty),
                }
                self.effects.push(Effect::Find(number, query));
            }
        }
    }

    fn list_key(&mut self, key: KeyEvent, is_control: bool) {
        let page = usize::from(self.size.1 / 2);
        let selected = self.list.selected().map(|one| one.path.clone());
        self.list.step(arrow(key, is_control), page);
        match key.code {
            KeyCode::Enter | KeyCode::Right => {
                if let Some(path) = selected {
                    self.focus = Focus::Conversation;
                    return self.open(&path);
                }
            }
            KeyCode::Tab if self.open.is_some() => {
                self.focus = Focus::Conversation;
                return self.read_whole();
            }
            KeyCode::Esc if self.list.filter.is_empty() => self.effects.push(Effect::Quit),
            KeyCode::Esc => self.list.clear(),
            KeyCode::Backspace => self.list.type_char(None),
            KeyCode::F(1) => self.overlay = Some(Overlay::Help),
            // Letters are the filter here, and a title may contain a question mark.
            KeyCode::Char('?') if self.list.filter.is_empty() => self.overlay = Some(Overlay::Help),
            KeyCode::Char('u') if is_control => self.list.clear(),
            KeyCode::Char(c) if !is_control => self.list.type_char(Some(c)),
            _ => {}
        }
        if self.list.selected().map(|one| one.path.clone()) != selected {
            self.preview();
        }
    }

    fn conversation_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Char('q') => return self.effects.push(Effect::Quit),
            KeyCode::Esc if self.open.as_ref().is_some_and(|open| open.is_found) => {
                self.focus = Focus::Find;
                return;
            }
            KeyCode::Tab | KeyCode::Esc | KeyCode::BackTab => {
                self.focus = Focus::List;
                return;
            }
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                self.overlay = Some(Overlay::Help);
                return;
            }
            _ => {}
        }
        // Two lines of the page before stay visible.
        let page = i64::from(self.size.1.saturating_sub(5)).max(1);
        let Some(open) = &mut self.open else { return };
        let document = &mut open.document;
        let ask = |request| Effect::Ask(open.number, request);
        let block = document.block().cloned();
        match key.code {
            KeyCode::Char('j') | KeyCode::Down => document.go(Motion::Lines(1)),
            KeyCode::Char('k') | KeyCode::Up => document.go(Motion::Lines(-1)),
            KeyCode::Char(' ') | KeyCode::PageDown => document.go(Motion::Page(page)),
            KeyCode::Char('b') | KeyCode::PageUp => document.go(Motion::Page(-page)),
            KeyCode::Char('d') => document.go(Motion::Page(page / 2)),
            KeyCode::Char('u') => document.go(Motion::Page(-page / 2)),
            KeyCode::Char('g') | KeyCode::Home => document.go(Motion::Top),
            KeyCode::Char('G') | KeyCode::End => document.go(Motion::End),
            KeyCode::Char('}') => document.go(Motion::Block(true)),
            KeyCode::Char('{') => document.go(Motion::Block(false)),
            KeyCode::Char(']') => document.go(Motion::Prompt(true)),
            KeyCode::Char('[') => document.go(Motion::Prompt(false)),
            KeyCode::Enter => document.toggle(),
            KeyCode::Char('c') => {
                document.fold_all(|folds| folds.calls = next_detail(folds.calls));
                self.message = Some(format!("calls: {}", detail_name(document.folds.calls)));
            }
            KeyCode::Char('t') => {
                document.fold_all(|folds| folds.thoughts = next_detail(folds.thoughts));
                self.message = Some(format!(
                    "thinking: {}",
                    detail_name(document.folds.thoughts)
                ));
            }
            KeyCode::Char('/') => self.overlay = Some(Overlay::Search(String::new())),
            KeyCode::Char('n') => self.search(false),
            KeyCode::Char('N') => self.search(true),
            KeyCode::Char('p') => {
                self.effects.push(ask(Request::Outline));
                let (rows, filter) = (Vec::new(), String::new());
                self.overlay = Some(Overlay::Outline {
                    rows,
                    filter,
                    selected: 0,
                    is_last: false,
                });
            }
            KeyCode::Char('y') => {
                let part = document.part();
                let request = block.map(|block| {
                    ask(Request::Copy {
                        part,
                        key: block.key,
                    })
                });
                self.effects.extend(request);
            }
            KeyCode::Char('o') => {
                let width = usize::from(self.size.0.saturating_sub(2));
                let request = block.map(|block| {
                    ask(Request::Raw {
                        offset: block.key.offset,
                        width,
                    })
                });
                self.effects.extend(request);
            }
            KeyCode::Char('f') if open.is_of_agent() => {
                self.message = Some("a subagent is forked with its session".to_owned());
            }
            KeyCode::Char('f') => {
                let Some(block) = block else { return };
                // It writes a file, so it is asked first.
                let yes = ask(Request::Fork { offset: block.last });
                let place = block
                    .line
                    .map_or(String::new(), |line| format!(" of line {line}"));
                let question =
                    format!("Copy the conversation up to this block{place} into a new session?");
                self.overlay = Some(Overlay::Ask { question, yes });
            }
            KeyCode::Char('r') => self.ask_resume(),
            _ => {}
        }
    }

    fn ask_resume(&mut self) {
        let Some(open) = &self.open else { return };
        if open.is_of_agent() {
            self.message = Some("a subagent is resumed with its session".to_owned());
            return;
        }
        if let Some(maker) = &open.document.facts.maker {
            let maker = transcript_render::Escaping::Visible.one_line(maker);
            self.message = Some(format!(
                "a session of {maker}, which Claude Code does not find"
            ));
            return;
        }
        let stem = open
            .path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let Some(id) = stem else { return };
        let listed = self.list.with_path(&open.path);
        if listed.is_some_and(|session| session.is_archived) {
            let message = format!("archived: run `transcript restore {id}` first");
            self.message = Some(message);
            return;
        }
        let home = listed.and_then(|session| session.home.clone());
        let Some(home) = home.or_else(|| open.document.facts.home.clone()) else {
            let message = "Claude Code cannot find this file: it is not named after its session, or not in the folder of its project";
            self.message = Some(message.to_owned());
            return;
        };
        // The folder is a text of the transcript: it must not control the terminal.
        let shown = transcript_render::Escaping::Visible.one_line(&home);
        let question = format!("Leave, and run: cd {shown} && claude --resume {id}");
        let folder = Some(PathBuf::from(home));
        self.overlay = Some(Overlay::Ask {
            question,
            yes: Effect::Resume { id, folder },
        });
    }

    fn search(&mut self, is_reversed: bool) {
        let number = self.numbers + 1;
        let Some(open) = &mut self.open else { return };
        let Some(needle) = open.document.needle.clone() else {
            self.overlay = Some(Overlay::Search(String::new()));
            return;
        };
        let key = open
            .document
            .block()
            .map(|block| block.key)
            .unwrap_or_default();
        let hit = open.hit.filter(|(at, _)| *at == key).map(|(_, hit)| hit);
        // The thread gives up a search when a newer one is wanted, and answers with another number are ignored here.
        open.search = number;
        open.progress = Some(0);
        let search = Search {
            id: number,
            needle,
            part: open.document.part(),
            key,
            hit,
            is_backward: open.is_backward != is_reversed,
            width: open.document.width(),
        };
        self.numbers = number;
        self.effects
            .push(Effect::Ask(open.number, Request::Search(search)));
    }

    fn overlay_key(
        &mut self,
        overlay: Overlay,
        key: KeyEvent,
        is_control: bool,
    ) -> Option<Overlay> {
        let page = usize::from(self.size.1.saturating_sub(4)).max(1);
        match overlay {
            Overlay::Help => None,
            Overlay::Search(mut text) => match key.code {
                KeyCode::Esc => None,
                KeyCode::Enter => {
                    let open = self.open.as_mut()?;
                    if let Some(needle) = Needle::new(&text) {
                        open.document.needle = Some(needle);
                        open.hit = None;
                    }
                    self.search(false);
                    None
                }
                KeyCode::Backspace => text.pop().map(|_| Overlay::Search(text)),
                KeyCode::Char(c) if !is_control => {
                    text.push(c);
                    Some(Overlay::Search(text))
                }
                _ => Some(Overlay::Search(text)),
            },
            Overlay::Outline {
                rows,
                mut filter,
                selected,
                is_last,
            } => {
                let shown = outline_rows(&rows, &filter);
                let stepped = step(key.code, selected, shown.len(), page);
                let selected = match key.code {
                    KeyCode::Esc => return None,
                    KeyCode::Enter => {
                        let row = shown.get(selected).map(|at| rows[*at].offset);
                        self.jump_to(row?);
                        return None;
                    }
                    KeyCode::Backspace => {
                        filter.pop();
                        0
                    }
                    KeyCode::Char(c) if !is_control => {
                        filter.push(c);
                        0
                    }
                    _ => stepped.unwrap_or(selected),
                };
                Some(Overlay::Outline {
                    rows,
                    filter,
                    selected,
                    is_last,
                })
            }
            Overlay::Copy { text, fences } => {
                let chosen = match key.code {
                    KeyCode::Char('y' | '0') | KeyCode::Enter => Some(text.clone()),
                    KeyCode::Char(c) => {
                        let number = c.to_digit(10).map_or(0, |digit| digit as usize);
                        let fence = number.checked_sub(1).and_then(|at| fences.get(at));
                        fence.map(|(_, code)| code.clone())
                    }
                    _ => return None,
                };
                match chosen {
                    Some(text) => {
                        self.effects.push(Effect::Copy(text));
                        None
                    }
                    None => Some(Overlay::Copy { text, fences }),
                }
            }
            Overlay::Raw { lines, text, top } => {
                let last = lines.len().saturating_sub(page);
                let top = match key.code {
                    KeyCode::Char('y') => {
                        self.effects.push(Effect::Copy(text));
                        return None;
                    }
                    KeyCode::Char('j') | KeyCode::Down => (top + 1).min(last),
                    KeyCode::Char('k') | KeyCode::Up => top.saturating_sub(1),
                    KeyCode::Char(' ') | KeyCode::PageDown => (top + page).min(last),
                    KeyCode::Char('b') | KeyCode::PageUp => top.saturating_sub(page),
                    KeyCode::Char('g') | KeyCode::Home => 0,
                    KeyCode::Char('G') | KeyCode::End => last,
                    _ => return None,
                };
                Some(Overlay::Raw { lines, text, top })
            }
            Overlay::Ask { question, yes } => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    self.effects.push(yes);
                    None
                }
                KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                    self.message = Some("nothing was done".to_owned());
                    None
                }
                _ => Some(Overlay::Ask { question, yes }),
            },
        }
    }

    /// Goes to the entry at an offset.
    fn jump_to(&mut self, offset: u64) {
        if let Some(open) = &mut self.open {
            self.effects
                .push(Effect::Ask(open.number, open.document.locate_at(offset)));
        }
    }
}

/// Returns the rows of an outline that a filter leaves.
pub(crate) fn outline_rows(rows: &[OutlineRow], filter: &str) -> Vec<usize> {
    let filter = comparable(filter);
    let words: Vec<&str> = filter.split_whitespace().collect();
    let is_shown = |row: &OutlineRow| {
        let text = comparable(&row.text);
        words.iter().all(|word| text.contains(word))
    };
    let all = rows.iter().enumerate();
    all.filter(|(_, row)| is_shown(row))
        .map(|(at, _)| at)
        .collect()
}

fn next_detail(detail: Detail) -> Detail {
    match detail {
        Detail::Folded => Detail::Whole,
        Detail::Whole => Detail::Hidden,
        Detail::Hidden => Detail::Folded,
    }
}

fn detail_name(detail: Detail) -> &'static str {
    match detail {
        Detail::Folded => "short",
        Detail::Whole => "all",
        Detail::Hidden => "none",
    }
}

/// Returns the first nine code fences of a text: the language, and the code.
fn fences(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(&str, String, String)> = None;
    for line in text.lines() {
        let start = line.trim_start();
        match &mut open {
            Some((fence, language, code)) => {
                if start
                    .trim_end()
                    .strip_prefix(&**fence)
                    .is_some_and(|rest| rest.trim_matches(['`', '~']).is_empty())
                {
                    found.push((std::mem::take(language), std::mem::take(code)));
                    open = None;
                } else {
                    code.push_str(line);
                    code.push('\n');
                }
            }
            None => {
                let mark = start
                    .chars()
                    .next()
                    .filter(|mark| matches!(mark, '`' | '~'));
                let length =
                    mark.map_or(0, |mark| start.len() - start.trim_start_matches(mark).len());
                if length >= 3 {
                    let language = start[length..].trim().to_owned();
                    open = Some((&start[..length], language, String::new()));
                }
            }
        }
    }
    found.truncate(9);
    found
}
