//! A hand-over that is planned: its report, its files, and their bytes.

use std::io::Write;
use std::path::Path;

use crate::Error;

use super::files::Files;
use super::new_session::NewSession;
use super::options::Options;
use super::output::Output;
use super::plan::Plan;
use super::report::LossReport;
use super::rules::Rules;
use super::source_item::Items;
use super::target::Target;
use super::{acp, atif, claude_code, codex, copilot, gemini, pi, qwen};

/// A hand-over that is planned: what it omits and where it goes are known, and nothing is written yet.
pub struct Conversion<'a> {
    items: &'a dyn Items,
    plan: Plan,
    session: NewSession,
    files: Files,
    room: Room,
}

/// The rules and the format of a target.
struct Room {
    rules: Rules,
    /// How long before its first item a session begins, in milliseconds.
    age: i64,
    files: fn(&NewSession) -> Files,
    write: fn(&mut Output<'_>) -> Result<(), Error>,
}

impl Room {
    fn of(target: Target) -> Self {
        let room = |rules, files, write| Self {
            rules,
            age: 0,
            files,
            write,
        };
        match target {
            Target::ClaudeCode => room(claude_code::RULES, claude_code::files, claude_code::write),
            Target::Codex => room(codex::RULES, codex::files, codex::write),
            Target::Pi => room(pi::RULES, pi::files, pi::write),
            Target::Qwen => room(qwen::RULES, qwen::files, qwen::write),
            Target::Gemini => Self {
                age: gemini::AGE,
                ..room(gemini::RULES, gemini::files, gemini::write)
            },
            Target::Copilot => room(copilot::RULES, copilot::files, copilot::write),
            Target::Atif => room(atif::RULES, atif::files, atif::write),
            Target::Acp => room(acp::RULES, acp::files, acp::write),
        }
    }
}

impl<'a> Conversion<'a> {
    /// Reads all items once, and plans what is written of them.
    ///
    /// # Errors
    /// When an item cannot be read.
    pub fn plan(items: &'a dyn Items, target: Target, options: &Options) -> Result<Self, Error> {
        let room = Room::of(target);
        let (plan, content) = Plan::of(items, target, &room.rules)?;
        let session = NewSession::of(target, options, content, room.age);
        Ok(Self {
            items,
            plan,
            files: (room.files)(&session),
            session,
            room,
        })
    }

    /// Returns what is omitted, changed and added.
    #[must_use]
    pub fn report(&self) -> &LossReport {
        &self.plan.report
    }

    /// Returns the id of the new session.
    #[must_use]
    pub fn session_id(&self) -> String {
        self.session.id.to_string()
    }

    /// Returns the files of the new session.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Reads all items again, and writes the file with the conversation. It is not flushed.
    ///
    /// # Errors
    /// When an item cannot be read, or `to` fails.
    pub fn write_to(&self, to: &mut dyn Write) -> Result<(), Error> {
        self.write_at(&self.files.main, to)
    }

    /// As [`write_to`](Self::write_to); `path` is named in errors.
    pub(super) fn write_at(&self, path: &Path, to: &mut dyn Write) -> Result<(), Error> {
        let mut output = Output {
            items: self.items,
            plan: &self.plan,
            session: &self.session,
            rules: &self.room.rules,
            clock: self.session.clock(),
            to,
            error: &Error::at(path),
        };
        (self.room.write)(&mut output)
    }

    pub(super) fn into_report(self) -> LossReport {
        self.plan.report
    }
}
