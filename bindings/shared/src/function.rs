//! The functions, by name.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use serde_json::json;
use transcript_engine::catalog::usage::{By, Prices, Report, UsageOptions, sort_rows};
use transcript_engine::catalog::{Query, SearchOptions, Sort, moment};
use transcript_engine::sdk::{
    ListOptions, MessageError, MessageOptions, SdkMessage, SdkSessions, created_millis,
};
use transcript_engine::verify::{VerifyOptions, verify, verify_folder};
use transcript_engine::wire::{
    ClientCostRecord, CostRecord, CostRow, CostTotal, HitRecord, Json, RepairReport, SearchEnd,
    SearchRecord, SessionRecord, VerifyRecord,
};
use transcript_engine::{SessionRepair, SessionRow, cache_folder, undo_repair};
use transcript_reader::subagents_on;

use crate::conversation::{self, EntriesOptions, ExportOptions, RedactArguments, RequestOptions};
use crate::failure::{Failure, read_options};
use crate::out::{Out, Result, Stop};
use crate::records::Records;
use crate::sessions::{NoOthers, Place, PolicyName, Selection};
use crate::tail::{self, FollowOptions, WatchOptions};

/// A function and its options, as the bindings write them.
#[derive(Debug, Deserialize)]
#[serde(tag = "function", rename_all = "camelCase")]
enum Function {
    ListSessions(ListArguments),
    GetSessionInfo(SdkArguments),
    GetSessionMessages(MessageArguments),
    ListSubagents(SdkArguments),
    GetSubagentMessages(MessageArguments),
    RenameSession(RenameArguments),
    TagSession(TagArguments),
    DeleteSession(SdkArguments),
    ForkSession(ForkArguments),
    SetArchived(ArchivedArguments),
    ListArchived(PlaceArguments),
    Entries(EntriesOptions),
    Request(RequestOptions),
    Verify(VerifyArguments),
    Repair(RepairArguments),
    Search(SearchArguments),
    Usage(UsageArguments),
    Export(ExportOptions),
    Redact(RedactArguments),
    Follow(FollowOptions),
    Watch(WatchOptions),
}

/// What the functions of the SDKs share.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sdk {
    root: Option<PathBuf>,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListArguments {
    limit: Option<i64>,
    #[serde(default)]
    offset: i64,
    include_worktrees: Option<bool>,
    include_programmatic: Option<bool>,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SdkArguments {
    session_id: String,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageArguments {
    session_id: String,
    agent_id: Option<String>,
    limit: Option<i64>,
    #[serde(default)]
    offset: i64,
    #[serde(default)]
    compacted: bool,
    #[serde(default)]
    include_system_messages: bool,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RenameArguments {
    session_id: String,
    title: String,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TagArguments {
    session_id: String,
    tag: Option<String>,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArchivedArguments {
    session_id: String,
    archived: bool,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
struct PlaceArguments {
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkArguments {
    session_id: String,
    up_to_message_id: Option<String>,
    title: Option<String>,
    #[serde(flatten)]
    sdk: Sdk,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VerifyArguments {
    session: String,
    #[serde(default)]
    requests: bool,
    sweep: Option<u32>,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RepairArguments {
    session: String,
    /// Where to write the repaired session: nowhere by default, so that only the plan is returned.
    out: Option<PathBuf>,
    #[serde(default)]
    new_session: bool,
    #[serde(default)]
    keep_id: bool,
    #[serde(default)]
    compact: bool,
    #[serde(default)]
    undo: bool,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchArguments {
    query: String,
    limit: Option<usize>,
    #[serde(default)]
    sort: SortName,
    cache: Option<bool>,
    #[serde(flatten)]
    selection: Selection,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SortName {
    #[default]
    Rank,
    Time,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageArguments {
    #[serde(default)]
    by: Vec<String>,
    since: Option<String>,
    until: Option<String>,
    timezone: Option<String>,
    prices: Option<PathBuf>,
    cache: Option<bool>,
    #[serde(flatten)]
    selection: Selection,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

/// A session as the SDKs describe it. Times are in milliseconds since 1970.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionInfo<'a> {
    session_id: &'a str,
    summary: &'a str,
    last_modified: i64,
    file_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<bool>,
}

/// Starts a function. `options` is an object with the name of the function under `function` and its options.
///
/// # Errors
/// When the options cannot be used, or no thread can be started.
pub fn call(options: &str) -> std::result::Result<Records, Failure> {
    let function = match read_options(options)? {
        Function::Follow(options) => return tail::follow(options),
        Function::Watch(options) => return tail::watch(options),
        function => function,
    };
    Records::spawn(move |sender| {
        let mut out = Out::new(sender.clone());
        // Only what follows files has to find where they end before it has started.
        sender.ready();
        let result = function.run(&mut out);
        out.finish(result)
    })
}

/// Runs a function to its end, and returns all records as a JSON array. Texts that records name by their places
/// are not part of it.
///
/// # Errors
/// As [`call`], and those of the function.
pub fn answer(options: &str) -> std::result::Result<String, Failure> {
    let records = call(options)?;
    let mut all = String::from("[");
    while let Some(batch) = records.wait()? {
        let length = batch.get(..4).and_then(|length| length.try_into().ok());
        let length = length.map_or(0, u32::from_le_bytes) as usize;
        let head = batch.get(5..3 + length).unwrap_or_default();
        if all.len() > 1 {
            all.push(',');
        }
        all.push_str(&String::from_utf8_lossy(head));
    }
    all.push(']');
    Ok(all)
}

impl Function {
    fn run(&self, out: &mut Out) -> Result<()> {
        match self {
            Self::ListSessions(arguments) => list_sessions(arguments, out),
            Self::GetSessionInfo(arguments) => {
                let (sdk, id) = (&arguments.sdk, &arguments.session_id);
                let row = sdk.sessions()?.info(id, sdk.directory())?;
                row.map_or(Ok(()), |row| {
                    out.record(&SessionInfo::new(&sdk.in_directory(row)))
                })
            }
            Self::GetSessionMessages(arguments) if arguments.agent_id.is_some() => {
                Err(Failure::options("there is no option `agentId`").into())
            }
            Self::GetSessionMessages(arguments) => messages(arguments, out),
            Self::ListSubagents(arguments) => {
                let sessions = arguments.sdk.sessions()?;
                let agents =
                    sessions.subagents(&arguments.session_id, arguments.sdk.directory())?;
                agents.iter().try_for_each(|agent| out.record(agent))
            }
            // Nobody's messages are not those of the session.
            Self::GetSubagentMessages(arguments) if arguments.agent_id.is_none() => Ok(()),
            Self::GetSubagentMessages(arguments) => messages(arguments, out),
            Self::RenameSession(arguments) => {
                let (sdk, id) = (&arguments.sdk, &arguments.session_id);
                Ok(sdk
                    .sessions()?
                    .rename(id, &arguments.title, sdk.directory())?)
            }
            Self::TagSession(arguments) => {
                let (sdk, id) = (&arguments.sdk, &arguments.session_id);
                Ok(sdk
                    .sessions()?
                    .tag(id, arguments.tag.as_deref(), sdk.directory())?)
            }
            Self::DeleteSession(arguments) => {
                let sdk = &arguments.sdk;
                Ok(sdk
                    .sessions()?
                    .delete(&arguments.session_id, sdk.directory())?)
            }
            Self::ForkSession(arguments) => {
                let sdk = &arguments.sdk;
                let id = sdk.sessions()?.fork(
                    &arguments.session_id,
                    sdk.directory(),
                    arguments.up_to_message_id.as_deref(),
                    arguments.title.as_deref(),
                )?;
                out.record(&json!({ "sessionId": id }))
            }
            Self::SetArchived(arguments) => {
                let (sdk, id) = (&arguments.sdk, &arguments.session_id);
                Ok(sdk
                    .sessions()?
                    .set_archived(id, arguments.archived, sdk.directory())?)
            }
            Self::ListArchived(arguments) => {
                let listing = arguments.place.list_archived()?;
                listing.rows.iter().try_for_each(|row| {
                    let mut record = SessionRecord::new(row);
                    record.in_archive = true;
                    out.record(&record)
                })
            }
            Self::Entries(options) => conversation::entries(options, out),
            Self::Request(options) => conversation::request(options, out),
            Self::Verify(arguments) => verify_sessions(arguments, out),
            Self::Repair(arguments) => repair(arguments, out),
            Self::Search(arguments) => search(arguments, out),
            Self::Usage(arguments) => usage(arguments, out),
            Self::Export(options) => conversation::export(options, out),
            Self::Redact(arguments) => conversation::redact(arguments, out),
            Self::Follow(_) | Self::Watch(_) => Err(Failure::options("it follows files").into()),
        }
    }
}

impl Sdk {
    fn sessions(&self) -> std::result::Result<SdkSessions, Failure> {
        let place = Place::at(self.root.clone());
        Ok(SdkSessions::new(place.store()?).policy(self.policy.into()))
    }

    fn directory(&self) -> Option<&std::path::Path> {
        // The SDKs take an empty path for none.
        let directory = self.directory.as_deref();
        directory.filter(|directory| !directory.as_os_str().is_empty())
    }

    /// A session that names no folder is in the one that was asked for.
    fn in_directory(&self, mut row: SessionRow) -> SessionRow {
        let asked = || Some(self.directory()?.to_string_lossy().into_owned());
        row.cwd = row.cwd.or_else(asked);
        row
    }
}

/// Returns a number that is not below 0; the SDKs take other numbers for 0.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn list_sessions(arguments: &ListArguments, out: &mut Out) -> Result<()> {
    let sdk = &arguments.sdk;
    let options = ListOptions {
        directory: sdk.directory().map(ToOwned::to_owned),
        limit: arguments.limit.map(count),
        offset: count(arguments.offset),
        include_worktrees: arguments.include_worktrees.unwrap_or(true),
        include_programmatic: arguments.include_programmatic.unwrap_or(true),
    };
    let mut rows = sdk.sessions()?.list(&options)?.into_iter();
    rows.try_for_each(|row| out.record(&SessionInfo::new(&sdk.in_directory(row))))
}

impl<'a> SessionInfo<'a> {
    fn new(row: &'a SessionRow) -> Self {
        Self {
            session_id: &row.session_id,
            summary: row.summary.as_deref().unwrap_or_default(),
            last_modified: row.file_millis.unwrap_or_default(),
            file_size: row.bytes,
            custom_title: row.given_title(),
            first_prompt: row.first_prompt.as_deref(),
            git_branch: row.branch.as_deref(),
            cwd: row.cwd.as_deref(),
            tag: row.tag.as_deref(),
            created_at: created_millis(row),
            archived: row.archived,
        }
    }
}

/// What few messages have.
#[derive(Serialize)]
struct MessageMarks<'a> {
    #[serde(rename = "isCompactSummary", skip_serializing_if = "is_false")]
    is_compact_summary: bool,
    #[serde(skip_serializing_if = "is_false")]
    is_meta: bool,
    #[serde(rename = "isQueuedCommand", skip_serializing_if = "is_false")]
    is_queued_command: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Json<'a>>,
}

impl<'a> MessageMarks<'a> {
    fn of(message: &SdkMessage<'a>) -> Option<Self> {
        let marks = Self {
            is_compact_summary: message.is_compact_summary,
            is_meta: message.is_transcript_only,
            is_queued_command: message.is_queued,
            origin: message.origin.map(Json::new),
        };
        let is_marked = marks.is_compact_summary || marks.is_meta || marks.is_queued_command;
        (is_marked || marks.origin.is_some()).then_some(marks)
    }
}

fn is_false(mark: &bool) -> bool {
    !mark
}

fn messages(arguments: &MessageArguments, out: &mut Out) -> Result<()> {
    let sdk = &arguments.sdk;
    let options = MessageOptions {
        limit: arguments.limit.map(count),
        offset: count(arguments.offset),
        compacted: arguments.compacted,
        system: arguments.include_system_messages,
    };
    let sessions = sdk.sessions()?;
    let mut each = |message: SdkMessage<'_>| {
        out.with_text(message.message, |start, end| {
            (
                message.role,
                message.uuid,
                message.parent_uuid,
                message.session_id,
                message.timestamp,
                message.parent_tool_use_id,
                message.parent_agent_id,
                MessageMarks::of(&message),
                (start, end),
            )
        })
    };
    let id = &*arguments.session_id;
    let read = match &arguments.agent_id {
        None => sessions.messages(id, sdk.directory(), &options, &mut each),
        Some(agent) => {
            sessions.subagent_messages((id, agent), sdk.directory(), &options, &mut each)
        }
    };
    read.map_err(|error| match error {
        MessageError::Session(error) => Stop::from(error),
        MessageError::Stopped(stop) => stop,
    })
}

fn verify_sessions(arguments: &VerifyArguments, out: &mut Out) -> Result<()> {
    let mut options = VerifyOptions::new()
        .requests(arguments.requests)
        .context_windows(transcript_engine::context_window);
    if let Some(days) = arguments.sweep {
        options = options.sweep_within(days);
    }
    let disk = arguments.place.disk()?;
    let named = PathBuf::from(&arguments.session);
    if named.is_dir() {
        let mut written = Ok(());
        verify_folder(&disk, &named, &options, &mut |report| {
            if written.is_ok() {
                written = match report {
                    Ok(report) => out.record(&VerifyRecord::new(&report)),
                    Err(error) => Err(Stop::from(error)),
                };
            }
        })?;
        return written;
    }
    let path = arguments.place.find(&arguments.session)?;
    out.record(&VerifyRecord::new(&verify(&disk, &path, &options)?))?;
    // A session that is named by its id is more than its file.
    if path != named {
        for agent in subagents_on(&disk, &path)? {
            out.record(&VerifyRecord::new(&verify(&disk, &agent.path, &options)?))?;
        }
    }
    Ok(())
}

fn repair(arguments: &RepairArguments, out: &mut Out) -> Result<()> {
    let path = arguments.place.find(&arguments.session)?;
    if arguments.undo {
        let repaired = undo_repair(&path)?;
        return out.record(&json!({
            "path": path.to_string_lossy(),
            "repaired": repaired.to_string_lossy(),
        }));
    }
    let mut repair = SessionRepair::plan_on(&arguments.place.disk()?, &path)?;
    if arguments.compact {
        repair = repair.compact()?;
    }
    let mut report = RepairReport::new(repair.details());
    match &arguments.out {
        to if arguments.new_session => report.out = Some(repair.write_as_new(to.as_deref())?.0),
        Some(to) => {
            repair.write(to)?;
            report.out = Some(to.clone());
        }
        None if arguments.keep_id => report.old = repair.replace()?,
        None => {}
    }
    out.record(&report)
}

fn search(arguments: &SearchArguments, out: &mut Out) -> Result<()> {
    let now = Zoned::now();
    let read_time = |text: &str| moment::parse(text, &now);
    let query = Query::parse(&arguments.query, &read_time)
        .map_err(|error| Failure::new("bad-query", error.to_string()))?;
    let catalog = arguments.selection.catalog(&arguments.place)?;
    let mut options = SearchOptions::new().sort(match arguments.sort {
        SortName::Rank => Sort::Rank,
        SortName::Time => Sort::Time,
    });
    if let Some(limit) = arguments.limit {
        options = options.limit(limit);
    }
    if let Some(folder) = cache_folder().filter(|_| arguments.cache.unwrap_or(true)) {
        options = options.cache(folder);
    }
    let mut search = catalog
        .search(&query, &options)
        .map_err(|error| Failure::new("search-failed", error.to_string()))?;
    let end = search.end();
    for hit in &mut search {
        let hit = hit.map_err(|error| Failure::new("search-failed", error.to_string()))?;
        out.record(&SearchRecord::Hit(Box::new(HitRecord::new(&hit))))?;
    }
    out.record(&SearchRecord::End(SearchEnd::new(&end)))
}

fn usage(arguments: &UsageArguments, out: &mut Out) -> Result<()> {
    let prices = match &arguments.prices {
        Some(path) => Prices::read(path)
            .map_err(|error| Failure::new("bad-prices", error.to_string()).at(path))?,
        None => Prices::embedded(),
    };
    let zone = match &arguments.timezone {
        Some(name) => {
            TimeZone::get(name).map_err(|error| Failure::options(format!("timezone: {error}")))?
        }
        None => TimeZone::system(),
    };
    let now = Timestamp::now().to_zoned(zone);
    let by: Vec<By> = arguments
        .by
        .iter()
        .map(|name| kind(name))
        .collect::<std::result::Result<_, _>>()?;
    let time = |name: &str, text: Option<&String>| {
        let time = text.map(|text| moment::parse(text, &now)).transpose();
        time.map_err(|error| Failure::options(format!("{name}: {error}")))
    };
    let mut report = Report::by(&by);
    report.since = time("since", arguments.since.as_ref())?;
    report.until = time("until", arguments.until.as_ref())?;
    report.zone = now.time_zone().clone();
    let mut options = UsageOptions::new();
    if let Some(folder) = cache_folder().filter(|_| arguments.cache.unwrap_or(true)) {
        options = options.cache(folder);
    }
    let catalog = arguments.selection.catalog(&arguments.place)?;
    let usage = catalog.usage(&options);
    let rows = usage.rows(&report, &prices);
    let (total, without_time) = (rows.total().clone(), rows.without_time());
    let mut rows: Vec<_> = rows.collect();
    sort_rows(&mut rows, &by);
    let blocks = usage.blocks_by_key(&report, &prices, now.timestamp().as_millisecond());
    for row in rows {
        let block = row.keys.first();
        let block = block.and_then(|key| blocks.get(&key.to_string()));
        out.record(&CostRecord::Row(CostRow::new(&by, &row, block)))?;
    }
    // What a client counted is about whole sessions.
    if arguments.selection.is_named() && report.since.is_none() && report.until.is_none() {
        for total in usage.client_totals(&prices) {
            out.record(&CostRecord::Client(ClientCostRecord::new(&total)))?;
        }
    }
    let (searches, unread) = (usage.unmatched_searches(), usage.unread());
    let files = usage.problems().len() as u64;
    let end = CostTotal::new(&total, without_time, searches, unread, files, &prices);
    out.record(&CostRecord::Total(end))
}

fn kind(name: &str) -> std::result::Result<By, Failure> {
    let mut all = By::ALL.into_iter();
    let found = all.find(|by| by.name() == name);
    found.ok_or_else(|| {
        let names = By::ALL.map(By::name).join(", ");
        Failure::options(format!("by: {name} is none of {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let read: std::result::Result<Function, _> = serde_json::from_value(options.clone());
            assert!(read.is_ok(), "{name}: {read:?}");
            let refused = call(&with(&options, "other", json!(1)).to_string()).unwrap_err();
            let message = refused.json();
            assert!(
                message.contains("there is no option `other`"),
                "{name}: {message}"
            );
        }
    }
}
