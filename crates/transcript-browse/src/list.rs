//! The list of projects and sessions, and what is typed to filter it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use ratatui::crossterm::event::KeyCode;
use transcript_format::unicode::comparable;
use transcript_format::units::size;
use transcript_ops::Context;
use transcript_reader::SessionRow;
use transcript_render::{Escaping, clock, count};

use crate::find::step;

/// The number of equal bytes at the start of two titles that makes them look the same in a narrow list.
const ALIKE_PREFIX_LEN: usize = 20;

/// A session of the list, escaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Session {
    pub(crate) path: PathBuf,
    pub(crate) id: String,
    pub(crate) project: String,
    pub(crate) title: String,
    pub(crate) time: String,
    /// The facts about it, one a line.
    pub(crate) facts: Vec<String>,
    /// The folder in which it is resumed, if a client finds it.
    pub(crate) home: Option<String>,
    /// Whether it is in the archive, and its file is gone.
    pub(crate) is_archived: bool,
    /// The text that the filter is compared with.
    words: String,
}

/// A row on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ListRow<'l> {
    Project(&'l str, usize),
    Session(&'l Session, bool),
}

/// The sessions, newest first, and the one that is selected.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) filter: String,
    pub(crate) is_read: bool,
    /// The sessions; those of one project are together.
    sessions: Vec<Session>,
    /// The places of those that the filter leaves.
    shown: Vec<usize>,
    selected: usize,
}

/// Makes the rows of a list, those of one project together, the project with the newest one first.
pub(crate) fn sessions(
    rows: &[SessionRow],
    zone: &TimeZone,
    now_millis: i64,
    below_home: impl Fn(&str) -> String,
    context: &Context,
) -> Vec<Session> {
    let line = |text: &str| Escaping::Visible.one_line(text);
    let titles = rows
        .iter()
        .map(|row| row.title.as_ref().or(row.first_prompt.as_ref()));
    let mut same: HashMap<&String, usize> = HashMap::new();
    let mut titles: Vec<&String> = titles.flatten().collect();
    for title in titles.iter().copied() {
        *same.entry(title).or_default() += 1;
    }
    titles.sort_unstable();
    titles.dedup();
    let mut order: HashMap<String, usize> = HashMap::new();
    let mut found: Vec<Session> = Vec::new();
    for row in rows.iter().filter(|row| row.has_file) {
        let project = row.cwd.as_deref().map(&below_home);
        let mut project = line(project.as_deref().unwrap_or(&row.project));
        if let Some(root) = context.root_name(&row.path) {
            project = format!("{} · {project}", line(&root));
        }
        let place = order.len();
        order.entry(project.clone()).or_insert(place);
        let title = row.title.as_ref().or(row.first_prompt.as_ref());
        let is_same = title.is_some_and(|title| same.get(title).is_some_and(|same| *same > 1));
        let mut name = title.map_or("untitled".to_owned(), |title| line(title));
        // The last prompt distinguishes sessions with equal titles. Of prompts with a common start, the part
        // where they differ is shown.
        let last = row
            .last_prompt
            .as_ref()
            .filter(|last| is_same && Some(*last) != title);
        if let Some(last) = last {
            name = format!("{} · {name}", line(last));
        } else if is_same {
            let id: String = row.session_id.chars().take(8).collect();
            name = format!("{} · {name}", line(&id));
        } else if let Some(title) = title {
            let at = titles.partition_point(|other| *other < title);
            let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            let beside = beside.filter_map(|at| titles.get(at));
            let alike = beside.map(|other| common(title, other)).max().unwrap_or(0);
            if alike >= ALIKE_PREFIX_LEN {
                let start = title[..alike].rfind(' ').map_or(0, |at| at + 1);
                name = format!("…{} · {}", line(&title[start..]), line(title));
            }
        }
        let branch = row.branch.as_deref().filter(|branch| *branch != "HEAD");
        let mut place = vec![project.clone()];
        place.extend(branch.map(line));
        let maker = context.maker(&row.path);
        let mut about: Vec<String> = maker.map(str::to_owned).into_iter().collect();
        about.push(size(row.bytes));
        about.extend((row.subagents > 0).then(|| count(row.subagents, "subagent")));
        about.extend(row.state.map(|state| state.name().to_owned()));
        let is_archived = context.is_archived(&row.path);
        about.extend(is_archived.then(|| "archived".to_owned()));
        let mut facts = vec![
            name.clone(),
            place.join(" · "),
            about.join(" · "),
            row.session_id.clone(),
        ];
        facts.extend(
            row.last_prompt
                .as_deref()
                .map(|last| format!("last: {}", line(last))),
        );
        let first = row.first_prompt.as_deref().map(line).unwrap_or_default();
        let words = format!(
            "{} {first} {}",
            facts.join(" "),
            row.tag.as_deref().unwrap_or_default()
        );
        found.push(Session {
            path: row.path.clone(),
            id: line(&row.session_id),
            time: when(row.modified_millis(), zone, now_millis),
            title: name,
            project,
            facts: facts.iter().map(|fact| line(fact)).collect(),
            // Claude Code finds no session of another agent, wherever it is shown.
            home: row
                .continued_in()
                .filter(|_| maker.is_none())
                .map(str::to_owned),
            is_archived,
            words: comparable(&words),
        });
    }
    found.sort_by_key(|session| order.get(&session.project).copied());
    found
}

/// Returns the length of the common start of two texts, in bytes.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.char_indices().zip(other.chars());
    let mut differing = pairs.skip_while(|((_, one), other)| one == other);
    differing
        .next()
        .map_or(one.len().min(other.len()), |((at, _), _)| at)
}

/// A time of today, else a day.
fn when(millis: Option<i64>, zone: &TimeZone, now_millis: i64) -> String {
    let (Some(time), Some(now)) = (
        millis.and_then(|at| clock(at, zone)),
        clock(now_millis, zone),
    ) else {
        return String::new();
    };
    let form = match (time.date() == now.date(), time.year() == now.year()) {
        (true, _) => "%H:%M",
        (_, true) => "%m-%d",
        _ => "%Y",
    };
    time.strftime(form).to_string()
}

impl List {
    pub(crate) fn set(&mut self, sessions: Vec<Session>) {
        let selected = self.selected().map(|session| session.path.clone());
        self.sessions = sessions;
        self.is_read = true;
        self.narrow();
        if let Some(path) = selected {
            self.select(&path);
        }
    }

    pub(crate) fn select(&mut self, path: &Path) {
        let at = self
            .shown
            .iter()
            .position(|at| self.sessions[*at].path == path);
        self.selected = at.unwrap_or(self.selected);
    }

    pub(crate) fn len(&self) -> (usize, usize) {
        (self.shown.len(), self.sessions.len())
    }

    pub(crate) fn selected(&self) -> Option<&Session> {
        Some(&self.sessions[*self.shown.get(self.selected)?])
    }

    pub(crate) fn with_path(&self, path: &Path) -> Option<&Session> {
        self.sessions.iter().find(|session| session.path == path)
    }

    pub(crate) fn type_char(&mut self, c: Option<char>) {
        match c {
            Some(c) => self.filter.push(c),
            None => drop(self.filter.pop()),
        }
        self.selected = 0;
        self.narrow();
    }

    pub(crate) fn clear(&mut self) {
        self.filter.clear();
        self.narrow();
    }

    fn narrow(&mut self) {
        let filter = comparable(&self.filter);
        let words: Vec<&str> = filter.split_whitespace().collect();
        let is_shown = |session: &Session| words.iter().all(|word| session.words.contains(word));
        let all = self.sessions.iter().enumerate();
        self.shown = all
            .filter(|(_, session)| is_shown(session))
            .map(|(at, _)| at)
            .collect();
        self.selected = self.selected.min(self.shown.len().saturating_sub(1));
    }

    /// Selects the session to which a key leads, if it leads to one.
    pub(crate) fn step(&mut self, code: KeyCode, page: usize) {
        let stepped = step(code, self.selected, self.shown.len(), page);
        self.selected = stepped.unwrap_or(self.selected);
    }

    /// Returns the rows of a screen of this height, with the selected one among them.
    pub(crate) fn rows(&self, height: usize) -> Vec<ListRow<'_>> {
        let mut rows = Vec::new();
        let (mut project, mut at) = ("", 0);
        for (place, session) in self.shown.iter().enumerate() {
            let session = &self.sessions[*session];
            if session.project != project {
                project = &session.project;
                let many = self.shown[place..].iter();
                let many = many
                    .take_while(|at| self.sessions[**at].project == project)
                    .count();
                rows.push(ListRow::Project(project, many));
            }
            if place == self.selected {
                at = rows.len();
            }
            rows.push(ListRow::Session(session, place == self.selected));
        }
        let start = (at + 1 + height / 3)
            .saturating_sub(height)
            .min(rows.len().saturating_sub(height));
        rows.into_iter().skip(start).take(height).collect()
    }
}
