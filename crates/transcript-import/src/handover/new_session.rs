//! The session that a hand-over makes: its ids and times.

use transcript_format::ids::Uuid;
use transcript_format::names::is_id;
use transcript_format::time;

use super::call_names::plain;
use super::options::Options;
use super::seed::Seed;
use super::target::Target;

/// The session that a hand-over makes.
pub(super) struct NewSession {
    pub(super) id: Uuid,
    pub(super) seed: Seed,
    pub(super) cwd: String,
    pub(super) title: Option<String>,
    pub(super) project: String,
    pub(super) agent: String,
    now: i64,
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
    /// Returns the session of a target. `age` is how long before the present it begins, in milliseconds.
    pub(super) fn of(target: Target, options: &Options, age: i64) -> Self {
        let now = options.now.clamp(age, MAX_TIME) - age;
        let seed = Seed::of(&[target.name(), &options.seed, &options.cwd, &now.to_string()]);
        let title = options.title.as_deref().map(str::trim);
        let named = options.cwd.trim_end_matches(['/', '\\']);
        let named = named.rsplit(['/', '\\']).next().unwrap_or_default();
        let own = plain(named).to_lowercase();
        // It becomes part of a path.
        let project = options.project.clone().filter(|name| is_id(name));
        let project = project.or(Some(own).filter(|name| is_id(name)));
        Self {
            id: seed.uuid("session"),
            seed,
            cwd: options.cwd.clone(),
            title: title.filter(|title| !title.is_empty()).map(str::to_owned),
            project: project.unwrap_or_else(|| DEFAULT_PROJECT.to_owned()),
            agent: options.agent.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            now,
        }
    }

    /// Returns when it begins, as `2026-11-28T16:40:31.250Z`.
    pub(super) fn started(&self) -> String {
        text_of(self.now)
    }

    pub(super) fn clock(&self) -> Clock {
        Clock {
            last: None,
            now: self.now,
        }
    }
}

/// Times of records: each is later than the one before.
pub(super) struct Clock {
    last: Option<i64>,
    now: i64,
}

impl Clock {
    /// Returns the time of the next record in milliseconds: that of its item if it has one and is later.
    pub(super) fn next(&mut self, of_item: Option<i64>) -> i64 {
        let earliest = self.last.map(|last| last + 1);
        let own = of_item.or(earliest).unwrap_or(self.now);
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
