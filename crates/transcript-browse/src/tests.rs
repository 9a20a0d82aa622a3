//! The state machine with real sessions and a screen in memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use transcript_engine::RootArchive;
use transcript_engine::archive::{Archive, ArchiveDisk, CaptureOptions};
use transcript_ops::Context;
use transcript_ops::context::Listed;
use transcript_ops::roots::Root;
use transcript_render::RenderOptions;

use crate::app::{App, Effect, Event, Focus, KEYS, Overlay};
use crate::document::Row;
use crate::find::SearchMessage;
use crate::find::SearchState;
use crate::finder::{self, MAX_HITS, SearchScope};
use crate::list::{Session, sessions};
use crate::messages::{Answer, Layout, Request};
use crate::paint::Theme;
use crate::session::{self, Storage};
use crate::view::draw;

/// The maximum time for an answer on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// An answer, with the number of its thread.
type Numbered = (u64, Answer);
/// A message of a search, with its number.
type NumberedFinding = (u64, SearchMessage);

struct Screen {
    app: App,
    terminal: Terminal<TestBackend>,
    threads: HashMap<u64, Sender<Request>>,
    answers: (Sender<Numbered>, Receiver<Numbered>),
    findings: (Sender<NumberedFinding>, Receiver<NumberedFinding>),
    cancel: Arc<AtomicBool>,
    /// The effects for others than the thread of a session.
    asked: Vec<Effect>,
    storage: Storage,
    folder: tempfile::TempDir,
}

impl Screen {
    /// Opens a session of these lines on a screen of this size.
    fn new(size: (u16, u16), lines: &str) -> Self {
        Self::at(size, lines, None)
    }

    /// Opens a session at a line.
    fn at((columns, rows): (u16, u16), lines: &str, line: Option<u64>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("-home-leap");
        std::fs::create_dir(&project).unwrap();
        let path = project.join("1a94a3e0-0000-4000-8000-000000000001.jsonl");
        std::fs::write(&path, lines).unwrap();
        let (app, effects) = App::new((columns, rows), Some(&path), line);
        let mut screen = Self {
            app,
            terminal: Terminal::new(TestBackend::new(columns, rows)).unwrap(),
            threads: HashMap::new(),
            answers: channel(),
            findings: channel(),
            cancel: Arc::default(),
            asked: Vec::new(),
            storage: Storage::default(),
            folder,
        };
        screen.perform(effects);
        screen.settle();
        screen
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Open { number, path, .. } => {
                    let sender = self.answers.0.clone();
                    let reply = move |answer| drop(sender.send((number, answer)));
                    let options = RenderOptions::new();
                    let thread = session::open(
                        &path,
                        self.storage.clone(),
                        &options,
                        false,
                        Duration::ZERO,
                        Arc::new(reply),
                    );
                    self.threads.insert(number, thread);
                }
                Effect::Ask(number, request) => {
                    let thread = self.threads.get(&number).expect("an open thread");
                    thread.send(request).expect("a thread that listens");
                }
                Effect::Close(number) => drop(self.threads.remove(&number)),
                Effect::Find(number, query) => self.search(number, query),
                other => self.asked.push(other),
            }
        }
    }

    fn search(&mut self, number: u64, query: Option<String>) {
        self.cancel.store(true, Ordering::Relaxed);
        self.cancel = Arc::default();
        let Some(query) = query else { return };
        let store = transcript_engine::Store::new(self.root());
        let sessions = SearchScope {
            context: Context::new(Some(store)).cache_folder(None),
            zone: jiff::tz::TimeZone::UTC,
            render: RenderOptions::new(),
            turn: Arc::default(),
        };
        let sender = self.findings.0.clone();
        let reply = move |finding| drop(sender.send((number, finding)));
        let cancel = Arc::clone(&self.cancel);
        finder::start(sessions, query, Duration::ZERO, cancel, reply);
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("projects")
    }

    /// Adds a session, or another file, to those that are searched.
    fn add(&self, name: &str, text: &str) {
        let path = self.root().join("-home-leap").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn control(&mut self, key: char) {
        let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        self.event(Event::Key(key));
        self.settle();
    }

    /// Searches all sessions, and opens the hit with this number; returns the screen and the message.
    fn open_hit(&mut self, query: &str, number: usize) -> (String, String) {
        self.control('f');
        self.control('u');
        self.keys(query);
        for _ in 0..number {
            self.key(KeyCode::Down);
        }
        self.key(KeyCode::Enter);
        let (shown, message) = (self.shown(), self.app.message.clone());
        assert_eq!(self.app.focus, Focus::Conversation, "{shown}");
        (shown, message.unwrap_or_default())
    }

    fn event(&mut self, event: Event) {
        let effects = self.app.handle(event);
        self.perform(effects);
    }

    /// Waits for answers until everything is on the screen.
    fn settle(&mut self) {
        while let SearchState::Searching(_) = self.app.find.state {
            let (number, finding) = self.findings.1.recv_timeout(SOON).expect("a finding");
            self.event(Event::Found(number, finding));
        }
        let is_whole = |app: &App| {
            let mut open = app.open.iter();
            open.all(|open| open.newer.is_none() || open.error.is_some())
        };
        while !self.app.is_settled() || !is_whole(&self.app) {
            let answer = self.answers.1.recv_timeout(SOON);
            let (number, answer) = answer.expect("an answer");
            self.event(Event::Answer(number, answer));
        }
        while let Ok((number, answer)) = self.answers.1.try_recv() {
            self.event(Event::Answer(number, answer));
        }
    }

    fn key(&mut self, code: KeyCode) {
        self.event(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        self.settle();
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            self.key(KeyCode::Char(key));
        }
    }

    /// Waits for one more answer: of a request that lays out nothing.
    fn answer(&mut self) {
        let (number, answer) = self.answers.1.recv_timeout(SOON).expect("an answer");
        self.event(Event::Answer(number, answer));
        self.settle();
    }

    fn shown(&mut self) -> String {
        let app = &self.app;
        let theme = Theme { is_coloured: false };
        let drawn = self
            .terminal
            .draw(|frame| draw(app, theme, frame.area(), frame.buffer_mut()));
        drawn.unwrap();
        let buffer = self.terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let row: String = (0..buffer.area.width)
                .map(|x| buffer[(x, y)].symbol())
                .collect();
            writeln!(text, "{}", row.trim_end()).unwrap();
        }
        text
    }

    /// Searches for the text of a line, until the cursor is there.
    fn find(&mut self, text: &str) {
        self.keys("/");
        self.keys(text);
        self.key(KeyCode::Enter);
        while self.at_cursor().trim() != text {
            self.answer();
        }
    }

    /// Writes the file again, and waits until that is shown.
    fn grow(&mut self, text: &str) {
        let open = self.app.open.as_ref().unwrap();
        let (number, path) = (open.number, open.path.clone());
        std::fs::write(&path, text).unwrap();
        self.event(Event::Grew(path));
        while self.app.open.as_ref().unwrap().number == number {
            self.answer();
        }
    }

    /// Forks at the cursor, and returns the text of the fork.
    fn fork(&mut self) -> String {
        self.keys("fy");
        loop {
            let message = self.app.message.clone().unwrap_or_default();
            if let Some(id) = message.strip_prefix("forked into ") {
                let beside = self.folder.path().join("-home-leap");
                let folder = self.storage.copies.clone().unwrap_or(beside);
                return std::fs::read_to_string(folder.join(format!("{id}.jsonl"))).unwrap();
            }
            self.answer();
        }
    }

    /// The text at the cursor.
    fn at_cursor(&self) -> String {
        let open = self.app.open.as_ref().unwrap();
        let rows = open.document.rows();
        let mut lines = rows.iter().filter_map(|row| match row {
            Row::Line {
                line,
                is_cursor: true,
                ..
            } => Some(line.text()),
            _ => None,
        });
        let line = lines.next().unwrap_or_default();
        assert_eq!(lines.next(), None, "one cursor");
        line
    }
}

const SESSION: &str = "1a94a3e0-0000-4000-8000-000000000001";

/// The uuid of the entry in a line, from 1.
fn uuid(line: usize) -> String {
    format!("{line:08x}-0000-4000-8000-000000000001")
}

/// Adds a line with these fields below the entry in another one.
fn add(text: &mut String, parent: usize, kind: &str, fields: &str) {
    let number = text.lines().count() + 1;
    let parent = match parent {
        0 => "null".to_owned(),
        parent => format!("\"{}\"", uuid(parent)),
    };
    writeln!(
        text,
        r#"{{"type":"{kind}","uuid":"{}","parentUuid":{parent},"sessionId":"{SESSION}","timestamp":"2026-03-04T05:{:02}:{:02}.000Z","cwd":"/home/leap",{fields}}}"#,
        uuid(number),
        number / 60 % 60,
        number % 60,
    )
    .unwrap();
}

fn add_message(text: &mut String, parent: usize, kind: &str, content: &str) -> usize {
    let number = text.lines().count() + 1;
    let id = match kind {
        "assistant" => format!(r#""id":"m{number}","model":"m","#),
        _ => String::new(),
    };
    let message = format!(r#""message":{{{id}"role":"{kind}","content":{content}}}"#);
    add(text, parent, kind, &message);
    number
}

/// Turns of a prompt, an answer and a call, each answer with this many lines.
fn turns(turns: usize, lines: usize) -> String {
    let mut text = String::new();
    add_turns(&mut text, 0..turns, lines);
    text
}

/// Adds turns below the last line.
fn add_turns(text: &mut String, turns: Range<usize>, lines: usize) {
    let mut parent = text.lines().count();
    for turn in turns {
        parent = add_message(text, parent, "user", &format!("\"prompt {turn}\""));
        let body: String = (0..lines)
            .map(|line| format!("turn {turn} line {line}\\n\\n"))
            .collect();
        let answer = format!(r#"[{{"type":"text","text":"{body}"}}]"#);
        parent = add_message(text, parent, "assistant", &answer);
        let call = format!(
            r#"[{{"type":"tool_use","id":"t{turn}","name":"Bash","input":{{"command":"echo {turn}"}}}}]"#
        );
        parent = add_message(text, parent, "assistant", &call);
        let result = format!(
            r#"[{{"type":"tool_result","tool_use_id":"t{turn}","content":"one\ntwo\nresult {turn}"}}]"#
        );
        parent = add_message(text, parent, "user", &result);
    }
}

/// Adds a compaction of the conversation that ends with the entry in the line `last`.
fn compact(text: &mut String, last: usize) {
    let boundary = format!(
        r#""subtype":"compact_boundary","content":"Conversation compacted","logicalParentUuid":"{}","compactMetadata":{{"trigger":"auto","preTokens":150000,"postTokens":9000}}"#,
        uuid(last)
    );
    add(text, 0, "system", &boundary);
    let summary = r#""isCompactSummary":true,"message":{"role":"user","content":"a summary"}"#;
    let number = text.lines().count();
    add(text, number, "user", summary);
}

#[test]
fn the_end_of_a_conversation_is_shown_first() {
    let mut screen = Screen::new((60, 20), &turns(3, 2));
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn list_and_conversation_are_side_by_side_on_a_wide_screen() {
    let mut screen = Screen::new((100, 24), &turns(2, 2));
    let store = transcript_engine::Store::new(screen.folder.path().join("projects"));
    let project = store.root().join("-home-leap");
    std::fs::create_dir_all(&project).unwrap();
    for (number, turns) in [(1, turns(1, 1)), (2, turns(2, 1))] {
        let path = project.join(format!("1a94a3e0-0000-4000-8000-00000000000{number}.jsonl"));
        std::fs::write(path, turns).unwrap();
    }
    let rows = listed(&Context::new(Some(store)));
    screen.event(Event::Sessions(rows));
    screen.key(KeyCode::Tab);
    insta::assert_snapshot!(screen.shown());
}

/// The rows of the list.
fn listed(context: &Context) -> Vec<Session> {
    let rows = context.listing(Listed::All).unwrap().rows;
    let zone = jiff::tz::TimeZone::UTC;
    sessions(&rows, &zone, 1_772_600_000_000, str::to_owned, context)
}

#[test]
fn sessions_of_several_roots_are_below_the_name_of_their_root() {
    let mut screen = Screen::new((100, 24), &turns(1, 1));
    let id = "1a94a3e0-0000-4000-8000-000000000002";
    let roots = ["work", "private"].map(|name| {
        let folder = screen.folder.path().join(name);
        let file = folder.join("-home-leap").join(format!("{id}.jsonl"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, turns(2, 1)).unwrap();
        Root {
            name: name.into(),
            store: transcript_engine::Store::new(folder),
            archives: Vec::new(),
        }
    });
    screen.event(Event::Sessions(listed(&Context::of(roots.into()))));
    screen.key(KeyCode::Tab);
    insta::assert_snapshot!(screen.shown());
}

#[test]
fn an_archived_session_is_read_and_forked_and_restored_before_it_is_resumed() {
    let mut screen = Screen::new((100, 24), &turns(1, 1));
    let project = screen.root().join("-home-leap");
    let id = "1a94a3e0-0000-4000-8000-000000000002";
    screen.add(&format!("{id}.jsonl"), &turns(2, 1));
    let place = screen.folder.path().join("archive");
    let mut archive = Archive::open_or_create(&place).unwrap();
    let captured = archive.capture(&screen.root(), &CaptureOptions::new());
    assert_eq!(captured.unwrap().sessions, 1);
    std::fs::remove_file(project.join(format!("{id}.jsonl"))).unwrap();
    let disk = Arc::new(ArchiveDisk::new(&place));
    let root = Root {
        name: "default".into(),
        store: transcript_engine::Store::new(screen.root()),
        archives: vec![RootArchive::new(Arc::clone(&disk))],
    };
    let rows = listed(&Context::of(vec![root]).disk(Arc::clone(&disk) as _));
    screen.storage = Storage {
        disk,
        copies: Some(project),
    };
    screen.event(Event::Sessions(rows));
    screen.key(KeyCode::Tab);
    screen.key(KeyCode::Enter);
    screen.settle();
    insta::assert_snapshot!(screen.shown());
    screen.keys("r");
    let message = screen.app.message.clone().unwrap_or_default();
    assert!(
        message.contains(&format!("transcript restore {id}")),
        "{message}"
    );
    assert_eq!(screen.app.overlay, None);
    // The copy is where the session was.
    screen.keys("G");
    assert!(screen.fork().contains("forkedFrom"));
}

#[test]
fn the_help_fits_on_a_small_screen() {
    let mut screen = Screen::new((60, 20), &turns(1, 1));
    screen.keys("?");
    assert_eq!(screen.app.overlay, Some(Overlay::Help));
    insta::assert_snapshot!(screen.shown());
    assert!(KEYS.len() <= 20 - 3);
    screen.keys("x");
    assert_eq!(screen.app.overlay, None);
}

/// A conversation that is walked through line by line is that of its parts laid out one by one.
#[test]
fn lines_are_walked_through_once_and_in_order() {
    let mut screen = Screen::new((60, 20), &turns(250, 12));
    let open = screen.app.open.as_ref().unwrap();
    let (parts, width) = (open.document.facts.parts, open.document.width());
    assert!(parts > 3, "{parts} parts");
    // A thread of its own: the answers of the other one are for the view.
    let (sender, answers) = channel();
    let reply = move |answer| drop(sender.send(answer));
    let options = RenderOptions::new();
    let thread = session::open(
        &open.path,
        Storage::default(),
        &options,
        false,
        Duration::ZERO,
        Arc::new(reply),
    );
    let mut laid = Vec::new();
    for part in 0..parts {
        let layout = Layout {
            width,
            ..Layout::default()
        };
        thread.send(Request::Lay { part, layout }).unwrap();
    }
    drop(thread);
    for answer in answers {
        if let Answer::Laid { page, .. } = answer {
            laid.extend(page.lines.iter().map(|line| line.text()));
        }
    }
    screen.keys("g");
    let mut walked = vec![screen.at_cursor()];
    for _ in 1..laid.len() {
        screen.keys("j");
        walked.push(screen.at_cursor());
    }
    assert_eq!(walked, laid);
    let mut upward = vec![screen.at_cursor()];
    for _ in 1..laid.len() {
        screen.keys("k");
        upward.push(screen.at_cursor());
    }
    upward.reverse();
    assert_eq!(upward, laid);
}

#[test]
fn the_cursor_stays_on_its_text_when_the_screen_changes() {
    let mut screen = Screen::new((60, 20), &turns(200, 12));
    // The first line of an answer has the name beside it, if there is room.
    for text in ["turn 77 line 5", "turn 77 line 0"] {
        screen.find(text);
        for size in [(100, 30), (40, 10), (200, 60), (60, 20)] {
            screen.event(Event::Resize(size.0, size.1));
            screen.terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
            screen.settle();
            assert!(screen.at_cursor().ends_with(text), "{size:?}");
            assert!(screen.shown().contains(text));
        }
        for key in ["c", "c", "c", "t"] {
            screen.keys(key);
            assert_eq!(screen.at_cursor().trim(), text, "{key}");
        }
    }
}

#[test]
fn irreversible_actions_ask_first() {
    let mut screen = Screen::new((60, 20), &turns(2, 1));
    let is_resume = |effect: &Effect| matches!(effect, Effect::Resume { .. });
    screen.keys("rn");
    assert!(!screen.asked.iter().any(is_resume));
    screen.keys("ry");
    let resume = Effect::Resume {
        id: "1a94a3e0-0000-4000-8000-000000000001".to_owned(),
        folder: Some(PathBuf::from("/home/leap")),
    };
    assert!(screen.asked.contains(&resume), "{:?}", screen.asked);
    let files = |screen: &Screen| {
        std::fs::read_dir(screen.folder.path().join("-home-leap"))
            .unwrap()
            .count()
    };
    screen.keys("fn");
    assert_eq!(files(&screen), 1);
    screen.fork();
    assert_eq!(files(&screen), 2);
}

#[test]
fn a_file_that_grows_or_is_replaced_is_shown_as_it_is() {
    let mut screen = Screen::new((60, 20), &turns(2, 1));
    screen.grow(&turns(40, 1));
    assert!(screen.shown().contains("result 39"), "{}", screen.shown());
    screen.keys("g");
    screen.grow(&turns(41, 1));
    assert!(screen.shown().contains("prompt 0"), "{}", screen.shown());
    screen.grow(&turns(1, 1));
    assert!(screen.shown().contains("prompt 0"));
    screen.grow("");
    assert!(
        screen.shown().contains("no conversation"),
        "{}",
        screen.shown()
    );
}

/// The cursor may move while the place where it was is looked for in the newer state of a session.
#[test]
fn a_key_during_reading_moves_the_cursor_for_good() {
    let mut screen = Screen::new((60, 20), &turns(200, 12));
    let path = screen.app.open.as_ref().unwrap().path.clone();
    std::fs::write(&path, turns(201, 12)).unwrap();
    screen.event(Event::Grew(path));
    let number = screen.app.open.as_ref().unwrap().number;
    let next = |screen: &mut Screen| {
        let (from, answer) = screen.answers.1.recv_timeout(SOON).expect("an answer");
        let is_located = from != number && matches!(answer, Answer::Located { .. });
        let event = Event::Answer(from, answer);
        if is_located {
            return Some(event);
        }
        screen.event(event);
        None
    };
    let located = loop {
        if let Some(located) = next(&mut screen) {
            break located;
        }
    };
    let key = KeyEvent::new(KeyCode::Char('g'), KeyModifiers::NONE);
    screen.event(Event::Key(key));
    while !screen.app.is_settled() {
        next(&mut screen);
    }
    assert!(screen.at_cursor().ends_with("line 1 ──"));
    screen.event(located);
    screen.settle();
    assert_ne!(screen.app.open.as_ref().unwrap().number, number);
    assert!(
        screen.at_cursor().ends_with("line 1 ──"),
        "{}",
        screen.at_cursor()
    );
}

#[test]
fn a_compacted_session_is_shown_from_its_first_entry_on() {
    let mut text = turns(3, 2);
    let abandoned = add_message(&mut text, 4, "user", "\"an abandoned prompt\"");
    add_message(&mut text, abandoned, "user", "\"and more of it\"");
    compact(&mut text, 12);
    add_turns(&mut text, 3..5, 2);
    let mut screen = Screen::new((80, 100), &text);
    insta::assert_snapshot!(screen.shown());
    // A branch of the first chapter.
    screen.keys("g]{");
    screen.key(KeyCode::Enter);
    let shown = screen.shown();
    assert!(shown.contains("and more of it"), "{shown}");
    // A fork that ends at an entry that was compacted away.
    screen.find("turn 0 line 1");
    let fork = screen.fork();
    assert!(
        fork.contains("turn 0 line 1") && !fork.contains("turn 1"),
        "{fork}"
    );
}

#[test]
fn text_on_screen_stays_when_it_is_compacted_away() {
    let mut text = turns(200, 12);
    let mut screen = Screen::new((60, 20), &text);
    screen.find("turn 77 line 5");
    let before = screen.shown();
    let last = text.lines().count();
    compact(&mut text, last);
    screen.grow(&text);
    add_turns(&mut text, 200..300, 12);
    screen.grow(&text);
    // Without the times of the session and the line of the cursor in the file.
    let body = |shown: &str| {
        shown
            .lines()
            .take(19)
            .skip(2)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(body(&screen.shown()), body(&before));
    assert_eq!(screen.at_cursor().trim(), "turn 77 line 5");
    screen.find("turn 299 line 3");
    screen.keys("G");
    let last = text.lines().count();
    compact(&mut text, last);
    screen.grow(&text);
    let shown = screen.shown();
    assert!(shown.contains("chapter 2 of 3"), "{shown}");
}

#[test]
fn damaged_and_hostile_files_are_shown_without_a_control_character() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
    let mut files = Vec::new();
    for folder in ["sessions", "hostile", "pains"] {
        for file in std::fs::read_dir(fixtures.join(folder)).unwrap() {
            let path = file.unwrap().path();
            files.extend(
                path.extension()
                    .is_some_and(|kind| kind == "jsonl")
                    .then_some(path),
            );
        }
    }
    assert!(files.len() > 20, "{files:?}");
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        for size in [(60, 20), (100, 40)] {
            let mut screen = Screen::new(size, &String::from_utf8_lossy(&bytes));
            for key in "gct G[]{}".chars() {
                screen.key(KeyCode::Char(key));
                let shown = screen.shown();
                assert!(
                    !shown.contains(|c: char| c.is_control() && c != '\n'),
                    "{path:?}\n{shown}"
                );
                assert!(!shown.contains('\u{202e}'), "{path:?}\n{shown}");
            }
        }
    }
}

#[test]
fn without_a_session_only_the_list_is_read() {
    let (app, effects) = App::new((60, 20), None, None);
    assert_eq!(effects, [Effect::List]);
    assert!(app.open.is_none());
}

/// Sessions to search: in one the word is in all kinds of places.
fn searched(size: (u16, u16)) -> Screen {
    let mut screen = Screen::new(size, &turns(1, 1));
    let mut text = turns(40, 12);
    let abandoned = add_message(&mut text, 80, "user", "\"the rewound lighthouse\"");
    add_message(
        &mut text,
        abandoned,
        "assistant",
        r#"[{"type":"text","text":"a lantern in it"}]"#,
    );
    compact(&mut text, 160);
    add_turns(&mut text, 40..80, 12);
    let last = text.lines().count();
    let line = |name: &str| format!("Full output saved to: tool-results/{name}");
    let call = r#"[{"type":"tool_use","id":"big","name":"Bash","input":{"command":"cat"}}]"#;
    let call = add_message(&mut text, last, "assistant", call);
    let result = format!(
        r#"[{{"type":"tool_result","tool_use_id":"big","content":"{}"}}]"#,
        line("big.txt")
    );
    add_message(&mut text, call, "user", &result);
    writeln!(
        text,
        r#"{{"type":"custom-title","customTitle":"A titular lamp","sessionId":"{SESSION}"}}"#
    )
    .unwrap();
    screen.add(&format!("{SESSION}.jsonl"), &text);
    screen.add(
        &format!("{SESSION}/tool-results/big.txt"),
        "much and the stored beacon",
    );
    let mut agent = String::new();
    add_message(&mut agent, 0, "user", "\"Count the buoys\"");
    let answer = r#"[{"type":"text","text":"the subagent counted buoys"}]"#;
    add_message(&mut agent, 1, "assistant", answer);
    let agent = agent.replace("\"type\":", "\"isSidechain\":true,\"type\":");
    screen.add(&format!("{SESSION}/subagents/agent-a1b2.jsonl"), &agent);
    let mut other = turns(2, 1);
    let hostile = "\"a gull\\u001b[2J\\u202e shrieks at line 3 of the Gull\"";
    let last = other.lines().count();
    add_message(&mut other, last, "user", hostile);
    // Entries of their own, not copies.
    let other = other.replace("-8000-000000000001", "-8000-000000000002");
    screen.add("2b94a3e0-0000-4000-8000-000000000002.jsonl", &other);
    screen.settle();
    screen
}

#[test]
fn all_sessions_are_searched_and_hits_are_grouped_by_session() {
    let mut screen = searched((60, 20));
    screen.control('f');
    screen.keys("prompt 1");
    insta::assert_snapshot!(screen.shown());
    // A screen of another size shows the same.
    screen.event(Event::Resize(100, 40));
    screen.terminal = Terminal::new(TestBackend::new(100, 40)).unwrap();
    assert!(
        screen.shown().contains("in 2 sessions"),
        "{}",
        screen.shown()
    );
}

#[test]
fn a_hit_opens_at_its_place_and_escape_goes_back_to_it() {
    let mut screen = searched((60, 20));
    screen.control('f');
    // In a result, which is folded at first.
    screen.keys("\"result 53\"");
    screen.key(KeyCode::Enter);
    assert!(
        screen.at_cursor().contains("result 53"),
        "{}",
        screen.shown()
    );
    // It is marked, and nothing else.
    screen.shown();
    let marked = |screen: &Screen| {
        let buffer = screen.terminal.backend().buffer();
        let cells = buffer.content.iter();
        let marked =
            cells.filter(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED));
        marked
            .map(|cell| cell.symbol().to_owned())
            .collect::<String>()
    };
    assert_eq!(marked(&screen), "result 53");
    screen.key(KeyCode::Esc);
    assert_eq!(screen.app.focus, Focus::Find);
    // Another hit of the same session, then back to the selected one.
    let (shown, _) = screen.open_hit("\"line 7\"", 3);
    assert!(shown.contains("Esc results"), "{shown}");
    let cursor = screen.at_cursor();
    screen.keys("n");
    while screen.at_cursor() == cursor {
        screen.answer();
    }
    screen.key(KeyCode::Esc);
    assert_eq!(screen.app.find.selected, 3);
    let selected = screen.shown();
    assert_eq!(
        selected
            .lines()
            .filter(|line| line.starts_with('›'))
            .count(),
        1
    );
    screen.key(KeyCode::Esc);
    assert_eq!(screen.app.focus, Focus::List);
}

#[test]
fn a_hit_outside_of_the_context_opens_where_it_is_shown_and_else_says_where_it_is() {
    let mut screen = searched((80, 24));
    // A chapter that was compacted away.
    let (shown, message) = screen.open_hit("\"turn 3 line 7\"", 0);
    assert!(screen.at_cursor().contains("turn 3 line 7"), "{shown}");
    assert_eq!(message, "");
    let (shown, message) = screen.open_hit("lantern", 0);
    assert!(screen.at_cursor().contains("a lantern in it"), "{shown}");
    assert_eq!(message, "");
    let (shown, message) = screen.open_hit("buoys subagent", 0);
    assert!(
        screen.at_cursor().contains("the subagent counted"),
        "{shown}"
    );
    assert!(shown.contains("subagent · "), "{shown}");
    assert_eq!(message, "");
    screen.keys("r");
    assert_eq!(screen.app.overlay, None);
    screen.keys("f");
    assert_eq!(screen.app.overlay, None);
    let (shown, message) = screen.open_hit("beacon", 0);
    assert!(shown.contains("Full output saved to"), "{shown}");
    assert!(
        message.starts_with("the text is in ") && message.ends_with("big.txt"),
        "{message}"
    );
    let (_, message) = screen.open_hit("in:title lamp", 0);
    assert!(
        message.starts_with("not shown: the title in line "),
        "{message}"
    );
}

#[test]
fn a_bad_query_says_what_is_wrong_and_stays() {
    let mut screen = searched((60, 20));
    screen.control('f');
    screen.keys("prompt \"1");
    let shown = screen.shown();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("prompt \"1▏"), "{shown}");
    let quote = lines[0].chars().position(|c| c == '"');
    assert_eq!(lines[1].chars().position(|c| c == '^'), quote, "{shown}");
    assert_eq!(lines[2], "the quote is not closed");
    assert_eq!(lines[3], "");
    // Nothing can be opened.
    screen.key(KeyCode::Enter);
    assert_eq!(screen.app.focus, Focus::Find);
    screen.keys("\"");
    assert!(
        screen.shown().contains("in 2 sessions"),
        "{}",
        screen.shown()
    );
    screen.control('w');
    assert_eq!(screen.app.find.query, "prompt ");
    screen.keys("since:x");
    assert!(
        screen.shown().contains("expected a time such as"),
        "{}",
        screen.shown()
    );
    screen.control('u');
    assert_eq!(screen.app.find.state, SearchState::Empty);
    assert!(
        screen.shown().contains("exactly these"),
        "{}",
        screen.shown()
    );
}

#[test]
fn only_the_last_query_is_answered() {
    let mut screen = searched((60, 20));
    screen.control('f');
    let type_char = |screen: &mut Screen, c: char| {
        screen.event(Event::Key(KeyEvent::new(
            KeyCode::Char(c),
            KeyModifiers::NONE,
        )));
    };
    type_char(&mut screen, 'l');
    let number = screen.app.find.number;
    type_char(&mut screen, 'z');
    let results = crate::find::Results::default();
    screen.event(Event::Found(number, SearchMessage::Done(Box::new(results))));
    assert_eq!(screen.app.find.state, SearchState::Searching(None));
    screen.key(KeyCode::Enter);
    assert!(
        screen.shown().contains("no hits in 2 sessions"),
        "{}",
        screen.shown()
    );
    assert_eq!(screen.app.focus, Focus::Find);
}

#[test]
fn no_control_character_of_a_hit_reaches_the_screen() {
    for size in [(60, 20), (100, 40)] {
        let mut screen = searched(size);
        screen.control('f');
        screen.keys("gull");
        let check = |shown: &str| {
            assert!(
                !shown.contains(|c: char| c.is_control() && c != '\n'),
                "{shown}"
            );
            assert!(!shown.contains('\u{202e}'), "{shown}");
        };
        check(&screen.shown());
        assert!(screen.shown().contains("shrieks"), "{}", screen.shown());
        screen.keys("\u{1b}\u{202e}");
        check(&screen.shown());
        screen.control('u');
        let (shown, _) = screen.open_hit("gull", 0);
        check(&shown);
        assert!(screen.at_cursor().contains("shrieks at"), "{shown}");
    }
}

#[test]
fn first_of_many_hits_are_kept_and_a_changed_session_is_marked() {
    let mut screen = searched((60, 20));
    screen.control('f');
    screen.keys("session:1a94");
    let shown = screen.shown();
    assert!(
        shown.contains(&format!("the first {MAX_HITS} are shown")),
        "{shown}"
    );
    assert_eq!(screen.app.find.hits().count(), MAX_HITS);
    screen.key(KeyCode::End);
    assert!(screen.shown().contains('›'));
    screen.control('u');
    screen.keys("\"turn 3 line 7\"");
    screen.add(&format!("{SESSION}.jsonl"), &turns(2, 30));
    screen.key(KeyCode::Enter);
    let message = screen.app.message.clone();
    assert_eq!(
        message.as_deref(),
        Some("the file has changed: search again")
    );
}

/// A terminal has its new size before the view has heard of it.
#[test]
fn each_view_is_drawn_on_a_screen_of_another_size_than_its_rows_are_for() {
    let sizes = [
        (160, 50),
        (100, 40),
        (60, 20),
        (100, 12),
        (30, 8),
        (31, 9),
        (5, 3),
        (1, 1),
    ];
    type View<'v> = (&'v str, &'v dyn Fn(&mut Screen));
    let views: [View<'_>; 8] = [
        ("a conversation", &|_| {}),
        ("the keys", &|screen| screen.keys("?")),
        ("the outline", &|screen| screen.keys("p")),
        ("a search", &|screen| screen.keys("/line")),
        ("hits in a conversation", &|screen| {
            screen.keys("/line");
            screen.key(KeyCode::Enter);
        }),
        ("a raw line", &|screen| screen.keys("o")),
        ("a copy", &|screen| screen.keys("y")),
        ("the search over all sessions", &|screen| {
            screen.control('f');
            screen.keys("line");
        }),
    ];
    for (name, open) in views {
        for size in sizes {
            let mut screen = Screen::new(size, &turns(6, 30));
            screen.add(&format!("{SESSION}.jsonl"), &turns(6, 30));
            open(&mut screen);
            for (columns, rows) in sizes {
                let area = Rect::new(0, 0, columns, rows);
                let mut buffer = Buffer::empty(area);
                let theme = Theme { is_coloured: true };
                draw(&screen.app, theme, area, &mut buffer);
                assert_eq!(buffer.area, area, "{name}");
            }
        }
    }
}

#[test]
fn a_session_opens_at_a_line() {
    let mut screen = Screen::at((60, 20), &turns(200, 12), Some(401));
    assert!(screen.shown().contains("prompt 100"), "{}", screen.shown());
    assert!(screen.shown().contains("line 401"), "{}", screen.shown());
    // A result is part of its call, and unfolded.
    screen = Screen::at((60, 20), &turns(200, 12), Some(404));
    assert!(screen.shown().contains("result 100"), "{}", screen.shown());
    screen = Screen::at((60, 20), &turns(2, 1), Some(9));
    assert_eq!(
        screen.app.message.as_deref(),
        Some("there is no entry in line 9")
    );
}
