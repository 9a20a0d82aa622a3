//! What the first records of a session say, without reading all of it: where it is shown depends on that.

use std::path::{Path, PathBuf};

use transcript_format::object::Object;

use crate::dialect::Session;
use crate::source::{Store, name_of};
use crate::{Agent, lines};

/// The number of records in which the working folder is looked for. Agents write it into the first one.
const MAX_RECORDS: usize = 16;

/// What decides where a session is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Its working folder.
    pub(super) cwd: Option<String>,
    /// The session whose subagent it is.
    pub(super) subagent_of: Option<String>,
}

impl Head {
    pub(super) fn of(store: Store<'_>, agent: Agent, session: &Session) -> Self {
        let Some(file) = session.files.first() else {
            return Self::default();
        };
        match agent {
            Agent::Gemini => Self::of_gemini(store, file),
            _ => Self::of_records(store, file),
        }
    }

    fn of_records(store: Store<'_>, file: &Path) -> Self {
        let mut left = MAX_RECORDS;
        let head = lines::header(store, file, |record| {
            left -= 1;
            let head = Self::of_record(record);
            (head.cwd.is_some() || left == 0).then_some(head)
        });
        head.unwrap_or_default()
    }

    fn of_record(record: &Object<'_>) -> Self {
        let text = |within: Option<&Object<'_>>, key| {
            within.and_then(|object| object.str(key).map(String::from))
        };
        let payload = record.object("payload");
        let context = record
            .object("data")
            .and_then(|data| data.object("context"));
        let source = payload
            .as_ref()
            .and_then(|payload| payload.object("source"));
        let spawn = source.and_then(|source| source.object("subagent")?.object("thread_spawn"));
        let places = [Some(record), payload.as_ref(), context.as_ref()];
        Self {
            cwd: places.into_iter().find_map(|place| text(place, "cwd")),
            subagent_of: text(spawn.as_ref(), "parent_thread_id"),
        }
    }

    /// A file beside the folder of chats names the working folder; the files of subagents lie one folder deeper.
    fn of_gemini(store: Store<'_>, file: &Path) -> Self {
        let mut folders = file.ancestors().skip(2).take(2);
        let root = folders.find_map(|folder| store.text(&folder.join(".project_root")));
        let folder: Option<PathBuf> = file.parent().map(Path::to_owned);
        let above = folder.as_deref().and_then(Path::parent).map(name_of);
        let is_of_subagent = above.is_some_and(|above| above == "chats");
        let parent = folder.filter(|_| is_of_subagent);
        Self {
            cwd: root.map(|root| root.trim_end().to_owned()),
            subagent_of: parent.map(|parent| name_of(&parent).into_owned()),
        }
    }
}
