//! Runs the state machine on a terminal.

use std::collections::HashMap;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};
use transcript_engine::follow::{FollowOptions, Follower, StartAt, Stopper};
use transcript_ops::Context;
use transcript_ops::context::Listed;
use transcript_render::RenderOptions;
use transcript_storage::folder_of;

use crate::app::{App, Effect, Event};
use crate::copy::copy;
use crate::finder::{self, SearchScope};
use crate::list::sessions;
use crate::messages::Request;
use crate::paint::Theme;
use crate::session::{self, Storage};
use crate::signals;
use crate::view::draw;

/// The maximum time that a frame waits for a page that is being laid out.
const LAYOUT_WAIT: Duration = Duration::from_millis(10);

/// The time that a query must stay the same before it is searched for.
const TYPING_PAUSE: Duration = Duration::from_millis(150);

/// The options of [`browse`].
#[derive(Clone, Debug)]
pub struct BrowseOptions {
    /// The sessions of the list, and archived ones whose files are gone. In its cache folder a search over all sessions
    /// keeps what makes the next one faster; without one, it reads every session.
    pub context: Context,
    /// The session to start with; without one, the list is shown.
    pub session: Option<PathBuf>,
    /// The line of that session to start at, from 1; without one, its end.
    pub line: Option<u64>,
    /// The rendering of text. Width and details are set by the view.
    pub render: RenderOptions,
    /// Whether there are colours.
    pub is_coloured: bool,
    /// The time zone of the list.
    pub zone: TimeZone,
    /// The time, in milliseconds since 1970.
    pub now_millis: i64,
}

/// The way in which the view was left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrowseEnd {
    /// The person left it, or the terminal is gone.
    Quit,
    /// This session is to be resumed in this folder.
    Resume {
        /// The id of the session.
        id: String,
        /// Its working folder, if it is known.
        folder: Option<PathBuf>,
    },
    /// This signal asked to end the process. The terminal is restored.
    Signal(i32),
}

enum LoopEvent {
    App(Event),
    Signal(i32),
    /// The terminal cannot be read any more.
    NoInput,
}

/// Shows the sessions of a store on the terminal of this process, until the person leaves. The
/// terminal is restored when this returns or panics.
///
/// Blocks. Writes nothing but what the person asks for: a copy of a session, and copied text.
///
/// # Errors
/// When the terminal cannot be set up or written.
pub fn browse(options: &BrowseOptions) -> io::Result<BrowseEnd> {
    let (sender, events) = channel();
    // Before the terminal is changed, so that no signal leaves it changed.
    let for_signals = sender.clone();
    signals::watch(move |signal| for_signals.send(LoopEvent::Signal(signal)).is_ok())?;
    let guard = TerminalGuard::new()?;
    let for_keys = sender.clone();
    thread::spawn(move || read_keys(&for_keys));
    let mut runtime = Runtime {
        options,
        sender,
        threads: HashMap::new(),
        follower: None,
        cancel: Arc::default(),
        turn: Arc::default(),
    };
    let left = runtime.run(&events);
    runtime.cancel.store(true, Ordering::Relaxed);
    drop(guard);
    left
}

/// The terminal, changed for the view; as it was when this is dropped.
struct TerminalGuard;

impl TerminalGuard {
    fn new() -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A panic of another thread must not leave its message on the screen alone.
            restore();
            before(info);
        }));
        enable_raw_mode()?;
        let guard = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(guard)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. Errors are ignored: it may be gone.
fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
}

fn read_keys(sender: &Sender<LoopEvent>) {
    loop {
        let event = match event::read() {
            Ok(TerminalEvent::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
            Ok(TerminalEvent::Resize(width, height)) => Event::Resize(width, height),
            Ok(_) => continue,
            Err(_) => {
                let _ = sender.send(LoopEvent::NoInput);
                return;
            }
        };
        if sender.send(LoopEvent::App(event)).is_err() {
            return;
        }
    }
}

struct Runtime<'o> {
    options: &'o BrowseOptions,
    sender: Sender<LoopEvent>,
    threads: HashMap<u64, Sender<Request>>,
    follower: Option<(PathBuf, Stopper)>,
    /// Ends the search over all sessions.
    cancel: Arc<AtomicBool>,
    /// The lock of searches over all sessions: one runs at a time.
    turn: Arc<Mutex<()>>,
}

impl Runtime<'_> {
    fn run(&mut self, events: &Receiver<LoopEvent>) -> io::Result<BrowseEnd> {
        let theme = Theme {
            is_coloured: self.options.is_coloured,
        };
        let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let (mut app, mut effects) = {
            let session = self.options.session.as_deref();
            App::new(size()?, session, self.options.line)
        };
        loop {
            while !effects.is_empty() {
                match effects.remove(0) {
                    Effect::Quit => return Ok(BrowseEnd::Quit),
                    Effect::Resume { id, folder } => return Ok(BrowseEnd::Resume { id, folder }),
                    Effect::Suspend => {
                        suspend(&mut terminal)?;
                        let (width, height) = size()?;
                        effects.extend(app.handle(Event::Resize(width, height)));
                    }
                    other => self.perform(other),
                }
            }
            let next = if app.is_settled() {
                terminal.draw(|frame| draw(&app, theme, frame.area(), frame.buffer_mut()))?;
                events.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                events.recv_timeout(LAYOUT_WAIT)
            };
            let next = match next {
                Err(RecvTimeoutError::Timeout) => {
                    terminal.draw(|frame| draw(&app, theme, frame.area(), frame.buffer_mut()))?;
                    events.recv().map_err(|_| RecvTimeoutError::Disconnected)
                }
                next => next,
            };
            let mut next = next.ok();
            if next.is_none() {
                return Ok(BrowseEnd::Quit);
            }
            // Everything that has happened already is on the next frame.
            while let Some(event) = next {
                match event {
                    LoopEvent::App(event) => effects.extend(app.handle(event)),
                    LoopEvent::Signal(signal) if signals::is_suspend(signal) => {
                        effects.push(Effect::Suspend);
                    }
                    LoopEvent::Signal(signal) => return Ok(BrowseEnd::Signal(signal)),
                    LoopEvent::NoInput => return Ok(BrowseEnd::Quit),
                }
                next = events.try_recv().ok();
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Open {
                number,
                path,
                is_end,
                wait,
            } => {
                let sender = self.sender.clone();
                let reply = move |answer| {
                    // Fails after the end of the view, when the answer is no longer needed.
                    let _ = sender.send(LoopEvent::App(Event::Answer(number, answer)));
                };
                let storage = self.storage(&path);
                let is_end = is_end && session::is_large(&storage, &path);
                let render = &self.options.render;
                let thread = session::open(&path, storage, render, is_end, wait, Arc::new(reply));
                self.threads.insert(number, thread);
            }
            Effect::Ask(number, request) => {
                if let Some(thread) = self.threads.get(&number) {
                    // A thread that failed has said so.
                    let _ = thread.send(request);
                }
            }
            Effect::Close(number) => drop(self.threads.remove(&number)),
            Effect::Follow(path) => self.follow(&path),
            Effect::Copy(text) => {
                let copied = Event::Copied(copy(&text));
                let _ = self.sender.send(LoopEvent::App(copied));
            }
            Effect::List => self.list(),
            Effect::Find(number, query) => self.find(number, query),
            Effect::Quit | Effect::Resume { .. } | Effect::Suspend => {}
        }
    }

    /// Returns the disk to read a session from. Copies of archived ones go where their files were.
    fn storage(&self, path: &Path) -> Storage {
        let context = &self.options.context;
        let place = context.place_of_archived(path);
        Storage {
            disk: Arc::clone(context.read_disk()),
            copies: place.map(|place| folder_of(&place).to_owned()),
        }
    }

    /// Tells when the file grows, or another one takes its place. An archived one does not.
    fn follow(&mut self, path: &Path) {
        if self.storage(path).copies.is_some() {
            return;
        }
        if self
            .follower
            .as_ref()
            .is_some_and(|(followed, _)| followed == path)
        {
            return;
        }
        if let Some((_, stopper)) = self.follower.take() {
            stopper.stop();
        }
        let follower = Follower::new(path, &FollowOptions::new().start(StartAt::End));
        self.follower = Some((path.to_owned(), follower.stopper()));
        let (sender, path) = (self.sender.clone(), path.to_owned());
        thread::spawn(move || {
            // The first event is that the file was opened.
            let mut is_first = true;
            for event in follower {
                let is_open = std::mem::take(&mut is_first);
                let grew = LoopEvent::App(Event::Grew(path.clone()));
                if event.is_ok() && !is_open && sender.send(grew).is_err() {
                    return;
                }
            }
        });
    }

    /// Ends the search over all sessions, and starts one for this query.
    fn find(&mut self, number: u64, query: Option<String>) {
        self.cancel.store(true, Ordering::Relaxed);
        self.cancel = Arc::default();
        let Some(query) = query else { return };
        let sessions = SearchScope {
            context: self.options.context.clone(),
            zone: self.options.zone.clone(),
            render: self.options.render.clone(),
            turn: Arc::clone(&self.turn),
        };
        let sender = self.sender.clone();
        let reply = move |finding| {
            let _ = sender.send(LoopEvent::App(Event::Found(number, finding)));
        };
        finder::start(
            sessions,
            query,
            TYPING_PAUSE,
            Arc::clone(&self.cancel),
            reply,
        );
    }

    fn list(&self) {
        let (sender, options) = (self.sender.clone(), self.options.clone());
        thread::spawn(move || {
            let context = &options.context;
            // The sessions that are there are listed whatever is wrong with the archive.
            let listing = context.listing(Listed::All);
            let listing = listing.or_else(|_| context.listing(Listed::Live));
            let listing = listing.unwrap_or_default();
            let below_home = |path: &str| options.render.below_home(path);
            let (zone, now) = (&options.zone, options.now_millis);
            let rows = sessions(&listing.rows, zone, now, below_home, context);
            let _ = sender.send(LoopEvent::App(Event::Sessions(rows)));
        });
    }
}

/// Gives the terminal back and stops the process, until it is continued.
fn suspend(terminal: &mut Terminal<CrosstermBackend<io::Stdout>>) -> io::Result<()> {
    restore();
    signals::suspend()?;
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
    // A new one draws everything. To clear the old one it would ask for the place of the cursor, and
    // the thread that reads keys would get the answer.
    *terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    Ok(())
}
