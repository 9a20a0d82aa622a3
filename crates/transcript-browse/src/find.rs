//! The state of the search over all sessions: the typed query, the hits, and the selected hit.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use transcript_render::Snippet;

use crate::messages::Target;
use crate::needle::Needle;

/// A message of a search over all sessions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchMessage {
    /// The query is wrong at this character, from 0.
    Bad {
        message: String,
        position: usize,
    },
    /// The progress: bytes searched, and their total.
    Searching {
        bytes: u64,
        all: u64,
    },
    Done(Box<Results>),
    /// The sessions cannot be searched.
    Failed(String),
}

/// The longest query that can be typed, in characters; as `transcript search` takes.
const MAX_QUERY: usize = 4096;

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    /// The sessions, in the order of their best hits.
    pub(crate) sessions: Vec<FoundSession>,
    /// The number of all hits, and of the sessions that have them.
    pub(crate) hits: u64,
    pub(crate) in_sessions: u64,
    /// The number of sessions that were searched.
    pub(crate) searched: u64,
    /// The number of lines and files of which not everything was searched.
    pub(crate) unread: u64,
    /// The number of files that could not be read.
    pub(crate) problems: u64,
    /// The number of hits that changed before they were read.
    pub(crate) changed: u64,
}

/// A session with hits; texts are escaped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundSession {
    pub(crate) title: String,
    /// Its time, folder and id.
    pub(crate) about: String,
    pub(crate) hits: Vec<FoundHit>,
}

/// A hit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundHit {
    /// The file of the session.
    pub(crate) session: PathBuf,
    /// The file with the text: of the session, of a subagent, or a stored result.
    pub(crate) path: PathBuf,
    /// Its kind, time and place; escaped.
    pub(crate) about: String,
    /// The text, as it is in the file.
    pub(crate) snippet: Snippet,
    /// The texts to mark.
    pub(crate) needle: Option<Needle>,
    /// Its target in the conversation; `None` for a stored result that belongs to no entry.
    pub(crate) target: Option<Target>,
}

/// The state of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum SearchState {
    /// Nothing was asked.
    #[default]
    Empty,
    /// The search is running: bytes searched, and their total.
    Searching(Option<(u64, u64)>),
    /// The query is wrong at this character, from 0.
    Bad(String, usize),
    Failed(String),
    Done,
}

/// The search over all sessions.
#[derive(Debug, Default)]
pub(crate) struct Find {
    pub(crate) query: String,
    pub(crate) state: SearchState,
    /// The results of the query, or of the previous one while the search is running.
    pub(crate) results: Results,
    /// The number of the selected hit.
    pub(crate) selected: usize,
    /// The number of the last search.
    pub(crate) number: u64,
}

/// The action of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyAction {
    Nothing,
    /// The query was changed.
    Search,
    /// The selected hit is to be opened.
    Open,
    Leave,
}

/// Returns the key that a key of a list stands for: Control-P and Control-N are arrows.
pub(crate) fn arrow(key: KeyEvent, is_control: bool) -> KeyCode {
    match key.code {
        KeyCode::Char('p') if is_control => KeyCode::Up,
        KeyCode::Char('n') if is_control => KeyCode::Down,
        code => code,
    }
}

/// Returns the row to which a key leads from the row `at` of `rows`; `None` if it leads to none.
pub(crate) fn step(code: KeyCode, at: usize, rows: usize, page: usize) -> Option<usize> {
    let last = rows.saturating_sub(1);
    Some(match code {
        KeyCode::Up => at.saturating_sub(1),
        KeyCode::Down => (at + 1).min(last),
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::PageDown => (at + page).min(last),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => return None,
    })
}

impl Find {
    pub(crate) fn key(&mut self, key: KeyEvent, is_control: bool, page: usize) -> KeyAction {
        let stepped = step(
            arrow(key, is_control),
            self.selected,
            self.hits().count(),
            page,
        );
        if let Some(selected) = stepped {
            self.selected = selected;
            return KeyAction::Nothing;
        }
        match key.code {
            KeyCode::Esc => return KeyAction::Leave,
            KeyCode::Enter => return KeyAction::Open,
            KeyCode::Backspace if self.query.pop().is_some() => return KeyAction::Search,
            KeyCode::Char('u') if is_control => {
                self.query.clear();
                return KeyAction::Search;
            }
            KeyCode::Char('w') if is_control => {
                let words = self.query.trim_end();
                let start = words.rfind(char::is_whitespace);
                // The white space stays.
                let start = start.and_then(|at| Some(at + words[at..].chars().next()?.len_utf8()));
                self.query.truncate(start.unwrap_or(0));
                return KeyAction::Search;
            }
            KeyCode::Char(c) if !is_control && self.query.chars().count() < MAX_QUERY => {
                self.query.push(c);
                return KeyAction::Search;
            }
            _ => {}
        }
        KeyAction::Nothing
    }

    /// Handles a message of a search.
    pub(crate) fn receive(&mut self, message: SearchMessage) {
        match message {
            SearchMessage::Bad { message, position } => {
                self.end(SearchState::Bad(message, position));
            }
            SearchMessage::Failed(message) => self.end(SearchState::Failed(message)),
            SearchMessage::Searching { bytes, all } => {
                self.state = SearchState::Searching(Some((bytes, all)));
            }
            SearchMessage::Done(results) => {
                self.end(SearchState::Done);
                self.results = *results;
            }
        }
    }

    /// Sets the state, and drops the hits of the earlier query.
    pub(crate) fn end(&mut self, state: SearchState) {
        self.state = state;
        self.results = Results::default();
        self.selected = 0;
    }

    /// Returns the hits in the order of the screen.
    pub(crate) fn hits(&self) -> impl Iterator<Item = &FoundHit> {
        self.results.sessions.iter().flat_map(|one| &one.hits)
    }

    /// Returns the selected hit of the query that is shown.
    pub(crate) fn chosen(&self) -> Option<&FoundHit> {
        let is_done = self.state == SearchState::Done;
        self.hits().nth(self.selected).filter(|_| is_done)
    }
}
