//! The operations on sessions, with their names and options.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::context::{ArchiveChoice, Context, Listed, StoreOptions};
use crate::documents::{self, ExportSettings};
use crate::entries::{self, EntriesSettings};
use crate::failure::{Failure, read_options};
use crate::follow::{FollowSettings, WatchSettings};
use crate::fork::{self, ForkSettings};
use crate::hand_over::{self, HandOverSettings};
use crate::items::{self, ItemsSettings};
use crate::list::{self, ListSettings};
use crate::moving::{self, MoveSettings};
use crate::redact::{self, RedactSettings};
use crate::repair::{self, RepairSettings};
use crate::request::{self, RequestOptions};
use crate::sdk_functions::{
    ArchivedArguments, ForkArguments, ListArguments, MessageArguments, RenameArguments,
    SdkArguments, SubagentMessageArguments, TagArguments,
};
use crate::search::{self, SearchSettings};
use crate::sink::{Result, Sink};
use crate::tree::{self, TreeSettings};
use crate::usage::{self, UsageSettings};
use crate::verify::{self, VerifySettings};
use crate::wire::SessionRecord;

/// An operation and its options. As JSON, the name is under `function`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "function", rename_all = "camelCase")]
pub enum Operation {
    /// Lists sessions as the SDKs do, the one that was changed last first: those of the project at a folder and of the other
    /// worktrees of its repository, or those of all projects.
    ListSessions(ListArguments),
    /// Describes one session as the SDKs do; nothing if there is none with this id, or nothing to call it by.
    GetSessionInfo(SdkArguments),
    /// Returns the messages of a session, oldest first; none if there is no such session.
    GetSessionMessages(MessageArguments),
    /// Lists the ids of the subagents of a session that have a file of their own.
    ListSubagents(SdkArguments),
    /// Returns the messages of a subagent, oldest first; none if there is no such subagent.
    GetSubagentMessages(SubagentMessageArguments),
    /// Sets the title of a session. Fails with `not-an-id` for a text that is not the id of a session, with `blank` for a title
    /// without text, and with `not-found` if there is no such session.
    RenameSession(RenameArguments),
    /// Sets or clears the tag of a session. Fails as `renameSession` does.
    TagSession(TagArguments),
    /// Deletes a session with its subagents. Fails as `renameSession` does.
    DeleteSession(SdkArguments),
    /// Copies the conversation of a session into a new one. Fails as `renameSession` does, also when the session has no such
    /// entry or nothing to copy.
    ForkSession(ForkArguments),
    /// Marks a session as archived, or not: it stays where it is, and a prompt that is written in it later unmarks it. Fails
    /// as `renameSession` does.
    SetArchived(ArchivedArguments),
    /// Lists the sessions of an archive; without `archive` of that of this user.
    ListArchived(NoOptions),
    /// The sessions of all projects or of one, the last conversation first, with what a list shows of each. Reads only the
    /// start and the end of each file.
    List(ListSettings),
    /// The branches of a session: prompts that were rewound or edited, compactions, subagents, and the leaf of each policy.
    Tree(TreeSettings),
    /// Copies one conversation into a new session, which has only its entries, with new ids. The session is not changed.
    Fork(ForkSettings),
    /// Hands the conversation of a session of any agent over to another agent, as a new session that the agent lists, opens and continues.
    /// Without `write` nothing is written: the record is what would be, and what would be lost. Nothing is overwritten.
    /// docs/handover.md says what arrives.
    HandOver(HandOverSettings),
    /// Moves the sessions of a folder that was moved or renamed, and of folders below it, to the project of the new folder,
    /// with their subagents and side files. Nothing is overwritten. After an interruption the same call finishes the
    /// move. The folders themselves are not touched.
    Move(MoveSettings),
    /// Returns the conversation of a session: `session`, its entries, `end`.
    Entries(EntriesSettings),
    /// Returns a session of any agent as items, which no provider has for itself alone: what goes to the model, its branches, and what
    /// compactions took away.
    Items(ItemsSettings),
    /// Returns the request that continues a session: the `messages` for the API, and how they came about. Writes nothing. A file of
    /// another format is not an error: the record then has a `reason`, and `resumable` is false.
    Request(RequestOptions),
    /// Reports what is wrong with sessions, and what a resume would lose: a record for each session of a folder, for a file,
    /// or for a session that is named by its id and each of its subagents.
    Verify(VerifySettings),
    /// Repairs a session. Without `out`, `newSession` or `keepId` nothing is written: the record is what would be done.
    Repair(RepairSettings),
    /// Finds entries in all sessions, or in some: records `hit`, then `end`.
    Search(SearchSettings),
    /// Returns the cost of sessions: a record `row` for each combination of the kinds in `by`, then `total`.
    Usage(UsageSettings),
    /// Writes the conversation of a session to a file, without what looks like a secret. A page has the conversation and,
    /// folded, its subagents, branches and thinking. Fails with `exists` if the file exists, unless `force` is true.
    Export(ExportSettings),
    /// Returns a text in which `[redacted: KIND]` replaces secrets, and the number of each kind. docs/redaction.md has the
    /// rules.
    Redact(RedactSettings),
    /// Follows a session while it is written: each entry once, in order, as soon as its line is complete. A file that does
    /// not exist yet is waited for.
    Follow(FollowSettings),
    /// Follows many sessions, also those that are created later, and subagents.
    Watch(WatchSettings),
}

/// An operation has no options of its own.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}

/// An operation, and where it finds sessions.
#[derive(Debug)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The store and the archive.
    pub place: StoreOptions,
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut options = Map::<String, Value>::deserialize(deserializer)?;
        let mut place = Map::new();
        for name in StoreOptions::OPTION_NAMES {
            if let Some(value) = options.remove(name) {
                place.insert(name.to_owned(), value);
            }
        }
        let name = options.get("function").and_then(Value::as_str);
        let taken = Operation::place_options(name.unwrap_or_default());
        let operation = Operation::deserialize(Value::Object(options)).map_err(D::Error::custom)?;
        if let Some(other) = place.keys().find(|name| !taken.contains(&name.as_str())) {
            return Err(D::Error::custom(format_args!(
                "there is no option `{other}`"
            )));
        }
        let mut place =
            StoreOptions::deserialize(Value::Object(place)).map_err(D::Error::custom)?;
        if matches!(operation, Operation::ListArchived(_)) {
            // The archive is what is listed.
            place.archive.get_or_insert(ArchiveChoice::Default(true));
        }
        Ok(Self { operation, place })
    }
}

impl Call {
    /// Reads an operation and its options from JSON.
    ///
    /// # Errors
    /// When an option cannot be used: names it.
    pub fn parse(text: &str) -> std::result::Result<Self, Failure> {
        read_options(text)
    }
}

impl Operation {
    /// Returns the names of those options of [`StoreOptions`] that the operation of this name has.
    pub(crate) fn place_options(name: &str) -> &'static [&'static str] {
        match name {
            "listSessions"
            | "getSessionInfo"
            | "getSessionMessages"
            | "listSubagents"
            | "getSubagentMessages"
            | "renameSession"
            | "tagSession"
            | "deleteSession"
            | "forkSession"
            | "setArchived"
            | "move"
            // An archived file never grows, so `watch` has no archive.
            | "watch" => &["root"],
            "redact" => &[],
            _ => &StoreOptions::OPTION_NAMES,
        }
    }

    /// Returns the number of records of the operation of this name: `none`, `one`, `list` (few enough to wait for all), or
    /// `stream` (many, or those that are still to come).
    #[cfg(feature = "schema")]
    pub(crate) fn returns(name: &str) -> &'static str {
        match name {
            "renameSession" | "tagSession" | "deleteSession" | "setArchived" => "none",
            "forkSession" | "items" | "request" | "repair" | "export" | "redact" | "tree"
            | "fork" | "handOver" | "move" => "one",
            "getSessionMessages"
            | "getSubagentMessages"
            | "entries"
            | "search"
            | "follow"
            | "watch" => "stream",
            _ => "list",
        }
    }

    /// Runs the operation, and gives its records to `sink`.
    ///
    /// # Errors
    /// When it fails, or `sink` takes no more records. What follows files is started by its [`FollowSettings::open`] or
    /// [`WatchSettings::open`] instead.
    pub fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        match self {
            Self::ListSessions(options) => options.run(context, sink),
            Self::GetSessionInfo(options) => options.info(context, sink),
            Self::GetSessionMessages(options) => options.run(context, sink),
            Self::ListSubagents(options) => options.subagents(context, sink),
            Self::GetSubagentMessages(options) => options.run(context, sink),
            Self::RenameSession(options) => options.run(context),
            Self::TagSession(options) => options.run(context),
            Self::DeleteSession(options) => options.delete(context),
            Self::ForkSession(options) => options.run(context, sink),
            Self::SetArchived(options) => options.run(context),
            Self::ListArchived(NoOptions {}) => archived(context, sink),
            Self::List(options) => list::list(options, context, sink),
            Self::Tree(options) => tree::tree(options, context, sink),
            Self::Fork(options) => fork::fork(options, context, sink),
            Self::HandOver(options) => hand_over::write_record(options, context, sink),
            Self::Move(options) => moving::move_sessions(options, context, sink),
            Self::Entries(options) => entries::entries(options, context, sink),
            Self::Items(options) => items::items(options, context, sink),
            Self::Request(options) => request::request(options, context, sink),
            Self::Verify(options) => verify::verify(options, context, sink),
            Self::Repair(options) => repair::repair(options, context, sink),
            Self::Search(options) => search::search(options, context, sink),
            Self::Usage(options) => usage::usage(options, context, sink),
            Self::Export(options) => documents::export(options, context, sink),
            Self::Redact(options) => redact::redact(options, sink),
            Self::Follow(_) | Self::Watch(_) => Err(Failure::options("it follows files").into()),
        }
    }
}

fn archived(context: &Context, sink: &mut dyn Sink) -> Result<()> {
    let listing = context.listing(Listed::Archived)?;
    listing.rows.iter().try_for_each(|row| {
        let mut record = SessionRecord::new(row);
        record.in_archive = true;
        record.root = context.root_name(&row.path).map(|name| name.to_string());
        sink.record(&record)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_archive_of_the_user_is_listed_by_default() {
        let call = Call::parse(r#"{"function":"listArchived"}"#).unwrap();
        assert!(matches!(
            call.place.archive,
            Some(ArchiveChoice::Default(true))
        ));
        let call = Call::parse(r#"{"function":"listArchived","archive":"/x"}"#).unwrap();
        assert!(matches!(call.place.archive, Some(ArchiveChoice::Folder(_))));
    }

    #[test]
    fn an_option_that_a_function_does_not_have_is_refused() {
        let id = json!({ "sessionId": "x", "root": "/", "directory": "/" });
        let session = json!({ "session": "x", "root": "/", "archive": true });
        let selection = json!({ "in": ["x"], "project": "/", "root": "/", "archive": "/" });
        let with = |options: &serde_json::Value, name: &str, value: serde_json::Value| {
            let mut options = options.clone();
            options[name] = value;
            options
        };
        let export = with(&with(&session, "format", json!("html")), "out", json!("/x"));
        let functions = [
            ("listSessions", json!({ "limit": 1, "root": "/" })),
            ("getSessionInfo", id.clone()),
            ("getSessionMessages", id.clone()),
            ("listSubagents", id.clone()),
            ("getSubagentMessages", with(&id, "agentId", json!("a"))),
            ("renameSession", with(&id, "title", json!("x"))),
            ("tagSession", with(&id, "tag", json!("x"))),
            ("setArchived", with(&id, "archived", json!(true))),
            ("deleteSession", id.clone()),
            ("forkSession", id),
            ("listArchived", json!({ "archive": true, "root": "/" })),
            (
                "list",
                json!({ "state": ["open-call"], "by": "project", "sort": "title" }),
            ),
            ("tree", with(&session, "role", json!(["tool"]))),
            ("fork", with(&session, "at", json!("3"))),
            ("handOver", with(&session, "to", json!("codex"))),
            (
                "move",
                json!({ "old": "/a", "new": "/b", "dryRun": true, "root": "/" }),
            ),
            ("entries", session.clone()),
            ("request", session.clone()),
            ("verify", session.clone()),
            ("repair", session.clone()),
            ("search", with(&selection, "query", json!("x"))),
            ("usage", selection.clone()),
            ("export", export),
            (
                "redact",
                json!({ "text": "x", "line": true, "emails": true, "also": ["x"] }),
            ),
            ("follow", with(&session, "from", json!("end"))),
            ("watch", json!({ "in": ["x"], "root": "/", "once": true })),
        ];
        for (name, mut options) in functions {
            options["function"] = json!(name);
            let read = Call::parse(&options.to_string());
            assert!(read.is_ok(), "{name}: {read:?}");
            let refused = Call::parse(&with(&options, "other", json!(1)).to_string()).unwrap_err();
            let message = refused.json();
            assert!(
                message.contains("there is no option `other`"),
                "{name}: {message}"
            );
        }
    }
}
