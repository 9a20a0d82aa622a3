//! The session that a hand-over makes: its ids and times.

use transcript_format::ids::Uuid;
use transcript_format::names::is_id;
use transcript_format::time;

use super::call_names::plain;
use super::options::Options;
use super::seed::{Seed, Texts};
use super::target::Target;

/// The session that a hand-over makes.
pub(super) struct NewSession {
    pub(super) id: Uuid,
    pub(super) seed: Seed,
    pub(super) cwd: String,
    pub(super) title: Option<String>,
    pub(super) project: String,
    pub(super) agent: String,
    start: i64,
    written: Option<i64>,
}

/// The latest time that has a text, in milliseconds since 1970: the end of the year 9999.
const MAX_TIME: i64 = 253_402_207_200_000;

/// The time that a text stands for when there is none.
const EPOCH: &str = "1970-01-01T00:00:00.000Z";

/// The name of a working folder that has none.
const DEFAULT_PROJECT: &str = "project";

/// The name of an agent that is not named, and its version.
pub(super) const UNKNOWN: &str = "unknown";

impl NewSession {
    /// Returns the session of a target for the content of a plan. `age` is how long before the first item it begins, in milliseconds.
    pub(super) fn of(
        target: Target,
        options: &Options,
        (content, first): (Texts, Option<i64>),
        age: i64,
    ) -> Self {
        let start = first.unwrap_or(options.start).clamp(age, MAX_TIME) - age;
        let title = options.title.as_deref().map(str::trim);
        let mut texts = content;
        for text in [target.name(), &options.seed, &options.cwd] {
            texts.add(text);
        }
        texts.add_some(title);
        texts.add_some(options.agent.as_deref());
        let seed = texts.seed();
        // It becomes part of a path.
        let project = options.project.clone().filter(|name| is_id(name));
        Self {
            id: seed.uuid("session"),
            seed,
            cwd: options.cwd.clone(),
            title: title.filter(|title| !title.is_empty()).map(str::to_owned),
            project: project.unwrap_or_else(|| project_of(&options.cwd)),
            agent: options.agent.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            start,
            written: options.written,
        }
    }

    /// Returns when it begins, as `2026-11-28T16:40:31.250Z`.
    pub(super) fn started(&self) -> String {
        text_of(self.start)
    }

    /// Returns when it is written.
    pub(super) fn written(&self) -> String {
        text_of(self.written.unwrap_or(self.start).clamp(0, MAX_TIME))
    }

    pub(super) fn clock(&self) -> Clock {
        Clock {
            last: None,
            start: self.start,
        }
    }
}

/// Returns the name of a working folder, as a part of a path.
pub(super) fn project_of(cwd: &str) -> String {
    let named = cwd.trim_end_matches(['/', '\\']);
    let named = named.rsplit(['/', '\\']).next().unwrap_or_default();
    let own = plain(named).to_lowercase();
    let own = Some(own).filter(|name| is_id(name));
    own.unwrap_or_else(|| DEFAULT_PROJECT.to_owned())
}

/// Times of records: each is later than the one before.
pub(super) struct Clock {
    last: Option<i64>,
    start: i64,
}

impl Clock {
    /// Returns the time of the next record in milliseconds: that of its item if it has one and is later.
    pub(super) fn next(&mut self, of_item: Option<i64>) -> i64 {
        let earliest = self.last.map(|last| last + 1);
        let own = of_item.or(earliest).unwrap_or(self.start);
        let next = own.max(earliest.unwrap_or(own)).clamp(0, MAX_TIME);
        self.last = Some(next);
        next
    }

    /// As [`next`](Self::next), as text.
    pub(super) fn next_text(&mut self, of_item: Option<i64>) -> String {
        text_of(self.next(of_item))
    }
}

/// Returns a time as `2026-11-28T16:40:31.250Z`.
pub(super) fn text_of(millis: i64) -> String {
    time::text(millis).unwrap_or_else(|| EPOCH.to_owned())
}
