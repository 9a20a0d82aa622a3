//! The search of `docs/search.md`, in the most obvious way: every text of every session is decoded
//! and looked at, character by character.
//!
//! Rules that are defined and tested elsewhere come in through [`ExternalRules`]: which bytes of a file are
//! entries, which of them are live, and which texts of user lines clients wrote.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use unicode_normalization::UnicodeNormalization;

use super::lines::replace_lone_surrogates;
use super::time;

/// The maximum length of a stored result that is searched, in bytes.
const MAX_STORED_RESULT_LEN: u64 = 64 << 20;

/// Rules that the model does not define.
pub trait ExternalRules {
    /// Returns the entries of a file, by offset.
    fn entries(&self, path: &Path) -> Vec<EntryPosition>;
    /// Returns whether a client wrote this text of a user line, which may say that a person wrote it, or not.
    fn is_of_client(&self, is_by_person: Option<bool>, text: &str) -> bool;
}

/// The position of an entry in its file, and its text.
#[derive(Clone, Debug)]
pub struct EntryPosition {
    /// The number of its line, from 1.
    pub line: Option<u64>,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its JSON text.
    pub text: String,
    /// Whether it is part of the story, and of the path.
    pub in_story: bool,
    #[expect(missing_docs, reason = "said above")]
    pub in_context: bool,
}

/// A match of a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The file of the entry; for a stored result without one, the stored file.
    pub path: PathBuf,
    /// The line of the entry.
    pub line: Option<u64>,
    /// The offset of the entry; 0 without one.
    pub offset: u64,
    /// The id of the session.
    pub session: String,
    /// The uuid of the entry.
    pub uuid: Option<String>,
    /// The stored result.
    pub stored: Option<PathBuf>,
    /// The role, if it has one.
    pub role: Option<&'static str>,
    /// The field of the text.
    pub field: &'static str,
    /// The block of the text.
    pub block: Option<usize>,
    /// The agent.
    pub agent: Option<String>,
    /// Whether it is on a branch that was not rewound.
    pub live: bool,
    /// Whether the model sees it.
    pub in_context: bool,
    /// The text that was found.
    pub text: String,
    /// The entries of the other copies.
    pub also: Vec<Copy>,
}

/// Session, file, line and uuid of a copy.
pub type Copy = (String, PathBuf, Option<u64>, Option<String>);

// ---------------------------------------------------------------------------------------------
// The texts of a store
// ---------------------------------------------------------------------------------------------

/// All units of a store.
#[derive(Debug, Default)]
pub struct Store {
    units: Vec<Unit>,
}

/// A unit, or an entry without texts.
#[derive(Clone, Debug)]
struct Unit {
    path: PathBuf,
    project: String,
    session: String,
    line: Option<u64>,
    offset: u64,
    uuid: Option<String>,
    stored: Option<PathBuf>,
    /// The session that the entry names.
    names_session: Option<String>,
    role: Option<&'static str>,
    agent: Option<String>,
    agent_type: Option<String>,
    model: Option<String>,
    branch: Option<String>,
    millis: Option<i64>,
    live: bool,
    in_context: bool,
    texts: Vec<Text>,
    /// Units with one of them in common are of one family.
    ids: Vec<String>,
    /// Its type and its texts.
    content: String,
    /// The file of its session, and the number of its own file in the session.
    order: (PathBuf, usize),
}

#[derive(Clone, Debug)]
struct Text {
    text: String,
    field: &'static str,
    block: Option<usize>,
    is_error: bool,
    /// The call that it is a part of, or the result of.
    call: Option<Call>,
}

/// Name and path of a call.
#[derive(Clone, Debug, Default)]
struct Call {
    tool: String,
    path: Option<String>,
}

/// A result, whether it has a text or not.
struct CallResult {
    entry: Unit,
    call_id: String,
    text: Text,
}

impl Store {
    /// Reads all sessions below `root`, in their project folders.
    #[must_use]
    pub fn read(root: &Path, rules: &dyn ExternalRules) -> Self {
        let mut store = Self::default();
        for project in sorted(root).into_iter().filter(|path| path.is_dir()) {
            for session in sessions(&project, rules) {
                store.read_session(&session, rules);
            }
        }
        store
    }

    fn read_session(&mut self, path: &Path, rules: &dyn ExternalRules) {
        let id = name_of(&path.with_extension(""));
        let mut files = Vec::new();
        if is_file(path) {
            files.push((path.to_owned(), None));
        }
        for agent in agents(path, &id, rules) {
            let agent_id = agent_of(&agent).map(str::to_owned);
            files.push((agent, agent_id));
        }
        let mut answers = Vec::new();
        for (number, (path_of_file, agent)) in files.iter().enumerate() {
            let file = File {
                path: path_of_file,
                order: (path.to_owned(), number),
                project: name_of(path.parent().expect("a project")),
                session: &id,
                agent: agent.as_deref(),
                rules,
            };
            file.read(&mut self.units, &mut answers);
        }
        let stored = sorted(&path.with_extension("").join("tool-results"));
        for (number, stored) in stored.iter().enumerate() {
            let size = fs::symlink_metadata(stored).map_or(0, |found| found.len());
            // An empty text is none.
            if is_file(stored) && (1..=MAX_STORED_RESULT_LEN).contains(&size) {
                let order = (path.to_owned(), files.len() + number);
                self.units.push(stored_result(stored, order, &id, &answers));
            }
        }
    }
}

/// Returns the files of the sessions of a project, sorted. Those whose own file is gone count, too, if
/// files of subagents or stored results are left.
fn sessions(project: &Path, rules: &dyn ExternalRules) -> Vec<PathBuf> {
    let mut sessions = Vec::new();
    for path in sorted(project) {
        let named = |id: String| project.join(format!("{id}.jsonl"));
        if let Some(agent) = agent_of(&path) {
            // If it names no session it is one by itself.
            let id = session_of(&path, rules);
            sessions.push(named(id.unwrap_or(format!("agent-{agent}"))));
        } else if name_of(&path).ends_with(".jsonl") {
            sessions.push(path);
        } else if !own_agents(&path).is_empty() || path.join("tool-results").is_dir() {
            sessions.push(named(name_of(&path)));
        }
    }
    sessions.sort();
    sessions.dedup();
    sessions
}

/// Returns the files of subagents in the folder of a session.
fn own_agents(folder: &Path) -> Vec<PathBuf> {
    fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        for path in sorted(folder) {
            if path.is_dir() && depth > 0 {
                collect(&path, depth - 1, found);
            } else if is_file(&path) && agent_of(&path).is_some() {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&folder.join("subagents"), 4, &mut found);
    found
}

/// Returns the id in the name of the file of a subagent.
fn agent_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// Returns the session that the first line of a subagent's file names.
fn session_of(path: &Path, rules: &dyn ExternalRules) -> Option<String> {
    let first = rules.entries(path).into_iter().next();
    let first = first.filter(|first| first.line == Some(1))?;
    Json::parse(&first.text)
        .text("sessionId")
        .map(str::to_owned)
}

/// Returns the files of the subagents of a session: those in its folder, then those next to it that
/// name it in their first line.
fn agents(session: &Path, id: &str, rules: &dyn ExternalRules) -> Vec<PathBuf> {
    let project = session.parent().expect("a project");
    let mut next_to_it = sorted(project);
    next_to_it.retain(|path| {
        let named = || session_of(path, rules).unwrap_or(name_of(&path.with_extension("")));
        agent_of(path).is_some() && named() == id
    });
    [own_agents(&session.with_extension("")), next_to_it].concat()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the entries of a folder, sorted by name; nothing if there is no such folder.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// A file of entries.
struct File<'f> {
    path: &'f Path,
    order: (PathBuf, usize),
    project: String,
    session: &'f str,
    agent: Option<&'f str>,
    rules: &'f dyn ExternalRules,
}

impl File<'_> {
    /// Adds its units, and all its results.
    fn read(&self, units: &mut Vec<Unit>, answers: &mut Vec<CallResult>) {
        let places = self.rules.entries(self.path);
        let read = |place: EntryPosition| (Json::parse(&place.text), place);
        let entries: Vec<(Json, EntryPosition)> = places.into_iter().map(read).collect();
        let mut calls = HashMap::new();
        for (entry, _) in &entries {
            for block in entry["message"]["content"].list() {
                if let Some(id) = block.text("id").filter(|_| is_call(block)) {
                    // The last one counts.
                    calls.insert(id.to_owned(), call(block));
                }
            }
        }
        for (entry, place) in &entries {
            let unit = self.unit(entry, place, &calls);
            for (at, block) in entry["message"]["content"].list().iter().enumerate() {
                if is_result(block) && is_message(entry) {
                    let text = block_text(block, Some(at), entry, &calls, "");
                    answers.push(CallResult {
                        entry: unit.clone(),
                        call_id: block.text("tool_use_id").unwrap_or_default().to_owned(),
                        text: text.expect("a result has a field"),
                    });
                }
            }
            if !unit.texts.is_empty() {
                units.push(unit);
            }
        }
    }

    fn unit(&self, entry: &Json, place: &EntryPosition, calls: &HashMap<String, Call>) -> Unit {
        let kind = entry.text("type").unwrap_or_default();
        let is_chain = ["user", "assistant", "system", "attachment"].contains(&kind);
        let is_aside = entry["isSidechain"].is_true() && self.agent.is_none();
        let texts = texts(entry, calls, self.rules);
        let uuid = entry.text("uuid").filter(|uuid| !uuid.is_empty());
        let spelled = |text: &Text| format!("{} {:?} {:?}", text.field, text.block, text.text);
        let origin = entry["forkedFrom"].text("messageUuid");
        let origin = origin.filter(|origin| !origin.is_empty());
        let mut ids: Vec<String> = uuid.into_iter().chain(origin).map(str::to_owned).collect();
        if ids.is_empty() {
            ids.push(format!("file {}", self.path.display()));
        }
        let spelled: Vec<String> = texts.iter().map(spelled).collect();
        let content = format!("{kind} {spelled:?}");
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Unit {
            path: self.path.to_owned(),
            project: self.project.clone(),
            session: self.session.to_owned(),
            line: place.line,
            offset: place.offset,
            uuid: owned(uuid),
            stored: None,
            names_session: owned(entry.text("sessionId")),
            role: role(entry),
            agent: owned(self.agent.or(entry.text("agentId"))),
            agent_type: self.agent_type(),
            model: owned(entry["message"].text("model")),
            branch: owned(entry.text("gitBranch")),
            millis: entry.text("timestamp").and_then(time::parse),
            live: !is_chain || is_aside || place.in_story,
            in_context: is_chain && place.in_context,
            texts,
            ids,
            content,
            order: self.order.clone(),
        }
    }

    fn agent_type(&self) -> Option<String> {
        self.agent?;
        let meta = fs::read(self.path.with_extension("meta.json")).ok()?;
        let meta = Json::parse(&String::from_utf8(meta).ok()?);
        meta.text("agentType").map(str::to_owned)
    }
}

/// Returns the unit of a stored result.
fn stored_result(
    path: &Path,
    order: (PathBuf, usize),
    session: &str,
    answers: &[CallResult],
) -> Unit {
    let name = name_of(path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let bytes = fs::read(path).unwrap_or_default();
    let mut text = Text {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        field: "tool_result",
        block: None,
        is_error: false,
        call: None,
    };
    let is_its = |answer: &&CallResult| {
        let is_named = answer.call_id == stem || names(&answer.text.text, &name);
        is_named && !answer.text.text.is_empty()
    };
    let Some(answer) = answers.iter().find(is_its) else {
        return Unit {
            path: path.to_owned(),
            project: name_of(order.0.parent().expect("a folder")),
            session: session.to_owned(),
            line: None,
            offset: 0,
            uuid: None,
            stored: Some(path.to_owned()),
            names_session: None,
            role: Some("tool"),
            agent: None,
            agent_type: None,
            model: None,
            branch: None,
            millis: None,
            live: true,
            in_context: false,
            texts: vec![text],
            ids: vec![format!("file {}", path.display())],
            content: String::new(),
            order,
        };
    };
    text.block = answer.text.block;
    text.is_error = answer.text.is_error;
    text.call = answer.text.call.clone();
    Unit {
        stored: Some(path.to_owned()),
        role: Some("tool"),
        model: None,
        texts: vec![text],
        order,
        ..answer.entry.clone()
    }
}

/// Returns whether a text contains `tool-results/NAME`, where the name ends: neither a letter, a digit, `_`
/// or `-` follows, nor a point and one of them.
fn names(text: &str, name: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let name: Vec<char> = format!("tool-results/{name}").chars().collect();
    let is_part = |at: usize| {
        let c = chars.get(at);
        c.is_some_and(|c| c.is_alphanumeric() || *c == '_' || *c == '-')
    };
    (0..chars.len()).any(|at| {
        let end = at + name.len();
        let is_longer = is_part(end) || chars.get(end) == Some(&'.') && is_part(end + 1);
        chars[at..].starts_with(&name) && !is_longer
    })
}

// ---------------------------------------------------------------------------------------------
// The texts of an entry
// ---------------------------------------------------------------------------------------------

fn is_message(entry: &Json) -> bool {
    matches!(entry.text("type"), Some("user" | "assistant"))
}

fn is_call(block: &Json) -> bool {
    matches!(
        block.text("type"),
        Some("tool_use" | "server_tool_use" | "mcp_tool_use")
    )
}

fn is_result(block: &Json) -> bool {
    let kind = block.text("type").unwrap_or_default();
    kind == "tool_result" || kind.ends_with("_tool_result")
}

fn call(block: &Json) -> Call {
    let paths = ["file_path", "path", "notebook_path"];
    let mut paths = paths.iter().filter_map(|key| block["input"].text(key));
    Call {
        tool: block.text("name").unwrap_or_default().to_owned(),
        path: paths.next().map(str::to_owned),
    }
}

fn role(entry: &Json) -> Option<&'static str> {
    let kind = entry.text("type").unwrap_or_default();
    let is_queued = entry["attachment"].text("type") == Some("queued_command");
    match kind {
        "user" | "assistant" if entry["message"]["content"].list().iter().any(is_result) => {
            Some("tool")
        }
        "user" | "queue-operation" => Some("user"),
        "attachment" if is_queued => Some("user"),
        "assistant" => Some("assistant"),
        "system" | "attachment" => Some("system"),
        _ => None,
    }
}

/// Returns whether a user line says that a person wrote it. The prompt of a subagent is one from any sender.
fn is_by_person(entry: &Json) -> Option<bool> {
    if entry.text("type") != Some("user") {
        return None;
    }
    let origin = entry["origin"].text("kind").or(entry.text("origin"));
    let said = match (origin.unwrap_or_default(), entry.text("promptSource")) {
        ("human", _) | ("", Some("typed")) => Some(true),
        ("", Some("system")) => Some(false),
        ("", _) => match entry.text("rowSource") {
            Some("recorded" | "harness" | "hook") => Some(false),
            _ => (entry.text("commandMode") == Some("task-notification")).then_some(false),
        },
        _ => Some(false),
    };
    said.filter(|is_person| *is_person || !entry["isSidechain"].is_true())
}

/// Returns the texts of an entry, without the empty ones.
fn texts(entry: &Json, calls: &HashMap<String, Call>, rules: &dyn ExternalRules) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    let mut add = |text: Option<String>, field: &'static str| {
        texts.extend(text.map(|text| Text {
            text,
            field,
            block: None,
            is_error: entry["isApiErrorMessage"].is_true(),
            call: None,
        }));
    };
    let own = |key: &str| entry.text(key).map(str::to_owned);
    let prompt = |text: &str| {
        if entry["isCompactSummary"].is_true() {
            "summary"
        } else if entry["isMeta"].is_true() || rules.is_of_client(is_by_person(entry), text) {
            "attachment"
        } else {
            "prompt"
        }
    };
    match entry.text("type").unwrap_or_default() {
        kind @ ("user" | "assistant") => {
            let field = |text: &str| match kind {
                "user" => prompt(text),
                _ => "text",
            };
            let content = &entry["message"]["content"];
            if let Json::Text(text) = content {
                add(Some(text.clone()), field(text));
                texts[0].block = Some(0);
            }
            for (at, block) in content.list().iter().enumerate() {
                let field = field(block.text("text").unwrap_or_default());
                texts.extend(block_text(block, Some(at), entry, calls, field));
            }
        }
        "custom-title" => add(own("customTitle"), "title"),
        "ai-title" => add(own("aiTitle"), "title"),
        "summary" => add(own("summary"), "summary"),
        "system" => match entry.text("subtype") {
            Some("away_summary") => add(own("content"), "summary"),
            Some("local_command") => {
                let field = prompt(entry.text("content").unwrap_or_default());
                add(own("content"), field);
            }
            _ => {}
        },
        "queue-operation" => add(own("content"), "queued"),
        "attachment" => {
            let attachment = &entry["attachment"];
            let kind = attachment.text("type").unwrap_or_default();
            if kind == "queued_command" {
                add(joined(&attachment["prompt"]), "queued");
            }
            for part in entry["rendered"].list() {
                add(joined(&part["content"]), "attachment");
            }
            if kind == "plan_file_reference" {
                let plan = attachment.text("planContent").map(str::to_owned);
                add(plan, "attachment");
            }
            if ["todo_reminder", "task_reminder"].contains(&kind) {
                let mut parts = Vec::new();
                for element in attachment["content"].list() {
                    let keys = ["content", "subject", "description"];
                    parts.extend(keys.iter().filter_map(|key| element.text(key)));
                }
                add(Some(parts.join("\n")), "attachment");
            }
        }
        _ => {}
    }
    texts.retain(|text| !text.text.is_empty());
    texts
}

/// Returns the text of a block of a message; `field` is that of plain texts.
fn block_text(
    block: &Json,
    at: Option<usize>,
    entry: &Json,
    calls: &HashMap<String, Call>,
    field: &'static str,
) -> Option<Text> {
    let kind = block.text("type")?;
    let (text, field) = match kind {
        "text" => (block.text("text").map(str::to_owned), field),
        "thinking" => (block.text("thinking").map(str::to_owned), "thinking"),
        _ if is_call(block) => {
            let mut strings = Vec::new();
            let names = ["name", "server_name"].into_iter();
            let names = names.filter(|_| kind == "mcp_tool_use");
            strings.extend(names.filter_map(|key| block.text(key)));
            block["input"].add_strings(&mut strings);
            (Some(strings.join("\n")), "tool_input")
        }
        _ if is_result(block) => (joined(&block["content"]), "tool_result"),
        _ => (joined(block), "text"),
    };
    let call = if is_call(block) {
        Some(call(block))
    } else {
        block
            .text("tool_use_id")
            .and_then(|id| calls.get(id).cloned())
    };
    let is_error = if is_call(block) || is_result(block) {
        is_result(block) && block["is_error"].is_true()
    } else {
        entry["isApiErrorMessage"].is_true()
    };
    Some(Text {
        text: text.unwrap_or_default(),
        field,
        block: at,
        is_error,
        call,
    })
}

/// Returns the texts of a value, each on a line.
fn joined(value: &Json) -> Option<String> {
    let mut texts = Vec::new();
    add_texts(value, &mut texts);
    Some(texts.join("\n"))
}

fn add_texts<'j>(value: &'j Json, texts: &mut Vec<&'j str>) {
    let is_silent = |name: &str| {
        let ids = ["type", "id", "tool_use_id", "file_id", "signature"];
        let encrypted = ["encrypted_content", "encrypted_index", "encrypted_stdout"];
        let others = [
            "media_type",
            "cache_control",
            "caller",
            "citations",
            "retrieved_at",
        ];
        ids.contains(&name) || encrypted.contains(&name) || others.contains(&name)
    };
    match value {
        Json::Text(text) if !text.is_empty() => texts.push(text),
        Json::List(elements) => elements
            .iter()
            .for_each(|element| add_texts(element, texts)),
        Json::Object(members) => match (value.text("type"), value.text("text")) {
            (Some("text"), Some(text)) => texts.extend(Some(text).filter(|text| !text.is_empty())),
            (Some("image" | "redacted_thinking" | "base64" | "file"), _) => {}
            _ => {
                let members = members.iter().filter(|(name, _)| !is_silent(name));
                members.for_each(|(_, member)| add_texts(member, texts));
            }
        },
        _ => {}
    }
}

// ---------------------------------------------------------------------------------------------
// Queries
// ---------------------------------------------------------------------------------------------

/// A query.
#[derive(Debug, Default)]
pub struct Query {
    terms: Vec<(bool, Term)>,
    filters: Vec<(bool, String, String)>,
    /// Filters that were added to those of the text.
    added: Vec<(bool, String, String)>,
}

#[derive(Debug)]
enum Term {
    Words(Vec<char>),
    Expression(Regex),
}

const KEYS: [&str; 13] = [
    "in", "tool", "path", "error", "role", "model", "agent", "since", "until", "branch", "live",
    "project", "session",
];

impl Query {
    /// Reads a query; `None` if it is a bad one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let chars: Vec<char> = text.chars().collect();
        let mut query = Self::default();
        let mut at = 0;
        while at < chars.len() {
            if chars[at].is_whitespace() {
                at += 1;
                continue;
            }
            let next = chars.get(at + 1);
            let is_minus = |next: &char| !next.is_whitespace() && !['-', '>'].contains(next);
            let is_negative = chars[at] == '-' && next.is_some_and(is_minus);
            at += usize::from(is_negative);
            at = query.item(&chars, at, !is_negative)?;
        }
        let has_positive = query.terms.iter().any(|(is_positive, _)| *is_positive);
        (has_positive || !query.filters.is_empty()).then_some(query)
    }

    /// Adds a filter; returns false if it is a bad one.
    pub fn add(&mut self, key: &str, value: &str) -> bool {
        self.added.push((true, key.to_owned(), value.to_owned()));
        is_value(key, value)
    }

    /// Reads one item, and returns where it ends.
    fn item(&mut self, chars: &[char], at: usize, is_positive: bool) -> Option<usize> {
        let end = (at..chars.len()).find(|at| chars[*at].is_whitespace());
        let end = end.unwrap_or(chars.len());
        let word: String = chars[at..end].iter().collect();
        if chars[at] == '"' {
            let (phrase, end) = phrase(chars, at)?;
            self.terms
                .push((is_positive, Term::Words(phrase.chars().collect())));
            return Some(end);
        }
        if let Some((expression, end)) = expression(chars, at) {
            self.terms
                .push((is_positive, Term::Expression(expression?)));
            return Some(end);
        }
        let is_filter = |(key, value): &(&str, &str)| KEYS.contains(key) && !value.is_empty();
        if let Some((key, value)) = word.split_once(':').filter(is_filter) {
            let start = at + key.chars().count() + 1;
            let (value, end) = if value.starts_with('"') {
                phrase(chars, start)?
            } else {
                (value.to_owned(), end)
            };
            let (key, value) = match (key, value.as_str()) {
                ("branch", "live") => ("live", "true".to_owned()),
                ("branch", "rewound") => ("live", "false".to_owned()),
                _ => (key, value.clone()),
            };
            if !is_value(key, &value) {
                return None;
            }
            self.filters.push((is_positive, key.to_owned(), value));
            return Some(end);
        }
        self.terms
            .push((is_positive, Term::Words(chars[at..end].to_vec())));
        Some(end)
    }
}

/// Reads a phrase from its first quote on, and returns where it ends.
fn phrase(chars: &[char], start: usize) -> Option<(String, usize)> {
    let mut phrase = String::new();
    let mut at = start + 1;
    loop {
        match (chars.get(at)?, chars.get(at + 1)) {
            ('\\', Some('"')) => {
                phrase.push('"');
                at += 1;
            }
            ('"', next) => {
                let is_end = next.is_none_or(|next| next.is_whitespace());
                return (is_end && !phrase.is_empty()).then_some((phrase, at + 1));
            }
            (c, _) => phrase.push(*c),
        }
        at += 1;
    }
}

/// Reads an expression, if there is one at `start`, and returns where it ends; `Some(None)` if it is
/// one and is wrong.
fn expression(chars: &[char], start: usize) -> Option<(Option<Regex>, usize)> {
    if chars[start] != '/' {
        return None;
    }
    let mut source = String::new();
    let mut at = start + 1;
    loop {
        match (chars.get(at)?, chars.get(at + 1)) {
            ('\\', Some('/')) => {
                source.push('/');
                at += 1;
            }
            ('\\', Some(next)) => {
                source.extend(['\\', *next]);
                at += 1;
            }
            ('/', _) => break,
            (c, _) => source.push(*c),
        }
        at += 1;
    }
    let ignores_case = chars.get(at + 1) == Some(&'i');
    let end = at + 1 + usize::from(ignores_case);
    if source.is_empty() || chars.get(end).is_some_and(|c| !c.is_whitespace()) {
        return None;
    }
    let mut builder = RegexBuilder::new(&source);
    let expression = builder
        .multi_line(true)
        .case_insensitive(ignores_case)
        .build();
    Some((expression.ok(), end))
}

/// The names of all fields.
pub(crate) const FIELDS: [&str; 9] = [
    "prompt",
    "text",
    "thinking",
    "tool_input",
    "tool_result",
    "title",
    "summary",
    "attachment",
    "queued",
];

fn is_value(key: &str, value: &str) -> bool {
    match key {
        "in" => FIELDS.contains(&value),
        "role" => ["user", "assistant", "tool", "system"].contains(&value),
        "error" | "live" => ["true", "false"].contains(&value),
        "since" | "until" => limit(value).is_some(),
        _ => !value.is_empty(),
    }
}

/// Returns the time of `since` or `until`; those before now are not used with the model.
fn limit(value: &str) -> Option<i64> {
    let is_date = value.len() == 10 && !value.contains('T');
    (is_date || value.contains('T')).then(|| time::parse(value))?
}

// ---------------------------------------------------------------------------------------------
// Matching
// ---------------------------------------------------------------------------------------------

/// Letters with diacritics in U+00C0 to U+024F and U+1E00 to U+1EFF, by the letter without.
const LETTERS: [(char, &str); 50] = [
    ('A', "ÀÁÂÃÄÅĀĂĄǍǞǠǺȀȂȦḀẠẢẤẦẨẪẬẮẰẲẴẶ"),
    ('B', "ḂḄḆ"),
    ('C', "ÇĆĈĊČḈ"),
    ('D', "ĎḊḌḎḐḒ"),
    ('E', "ÈÉÊËĒĔĖĘĚȄȆȨḔḖḘḚḜẸẺẼẾỀỂỄỆ"),
    ('F', "Ḟ"),
    ('G', "ĜĞĠĢǦǴḠ"),
    ('H', "ĤȞḢḤḦḨḪ"),
    ('I', "ÌÍÎÏĨĪĬĮİǏȈȊḬḮỈỊ"),
    ('J', "Ĵ"),
    ('K', "ĶǨḰḲḴ"),
    ('L', "ĹĻĽḶḸḺḼ"),
    ('M', "ḾṀṂ"),
    ('N', "ÑŃŅŇǸṄṆṈṊ"),
    ('O', "ÒÓÔÕÖŌŎŐƠǑǪǬȌȎȪȬȮȰṌṎṐṒỌỎỐỒỔỖỘỚỜỞỠỢ"),
    ('P', "ṔṖ"),
    ('R', "ŔŖŘȐȒṘṚṜṞ"),
    ('S', "ŚŜŞŠȘṠṢṤṦṨ"),
    ('T', "ŢŤȚṪṬṮṰ"),
    ('U', "ÙÚÛÜŨŪŬŮŰŲƯǓǕǗǙǛȔȖṲṴṶṸṺỤỦỨỪỬỮỰ"),
    ('V', "ṼṾ"),
    ('W', "ŴẀẂẄẆẈ"),
    ('X', "ẊẌ"),
    ('Y', "ÝŶŸȲẎỲỴỶỸ"),
    ('Z', "ŹŻŽẐẒẔ"),
    ('a', "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ('b', "ḃḅḇ"),
    ('c', "çćĉċčḉ"),
    ('d', "ďḋḍḏḑḓ"),
    ('e', "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ('f', "ḟ"),
    ('g', "ĝğġģǧǵḡ"),
    ('h', "ĥȟḣḥḧḩḫẖ"),
    ('i', "ìíîïĩīĭįǐȉȋḭḯỉị"),
    ('j', "ĵǰ"),
    ('k', "ķǩḱḳḵ"),
    ('l', "ĺļľḷḹḻḽ"),
    ('m', "ḿṁṃ"),
    ('n', "ñńņňǹṅṇṉṋ"),
    ('o', "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"),
    ('p', "ṕṗ"),
    ('r', "ŕŗřȑȓṙṛṝṟ"),
    ('s', "śŝşšșṡṣṥṧṩ"),
    ('t', "ţťțṫṭṯṱẗ"),
    ('u', "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ('v', "ṽṿ"),
    ('w', "ŵẁẃẅẇẉẘ"),
    ('x', "ẋẍ"),
    ('y', "ýÿŷȳẏẙỳỵỷỹ"),
    ('z', "źżžẑẓẕ"),
];

fn plain(c: char) -> Option<char> {
    match c {
        '\u{300}'..='\u{36f}' => None,
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => {
            let letter = LETTERS.iter().find(|(_, letters)| letters.contains(c));
            Some(letter.map_or(c, |(letter, _)| *letter))
        }
        _ => Some(c),
    }
}

fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) if c.is_ascii() || !one.is_ascii() => one,
        _ => c,
    }
}

/// Returns the places of a term in a text, in characters.
fn places(term: &Term, text: &str) -> Vec<(usize, usize)> {
    match term {
        Term::Expression(expression) => {
            let chars = |bytes: usize| text[..bytes].chars().count();
            let found = expression.find_iter(text);
            found
                .map(|found| (chars(found.start()), chars(found.end())))
                .collect()
        }
        Term::Words(term) => {
            let typed: String = term.iter().collect();
            let forms = [typed.clone(), typed.nfc().collect(), typed.nfd().collect()];
            let mut all: Vec<(usize, usize)> = Vec::new();
            for form in forms.iter().collect::<BTreeSet<_>>() {
                all.extend(places_of(&form.chars().collect::<Vec<_>>(), text));
            }
            all.sort_unstable();
            all
        }
    }
}

/// Returns the places of a term as it is written.
fn places_of(term: &[char], text: &str) -> Vec<(usize, usize)> {
    let ignores_case = term.iter().all(|c| lower(*c) == *c);
    let ignores_diacritics = term.iter().all(|c| plain(*c) == Some(*c));
    // The characters that are compared, with their places in the text.
    let mut compared: Vec<(usize, char)> = text.chars().enumerate().collect();
    if ignores_diacritics {
        let plain = |(at, c)| Some((at, plain(c)?));
        compared = compared.into_iter().filter_map(plain).collect();
    }
    if ignores_case {
        compared = compared.into_iter().map(|(at, c)| (at, lower(c))).collect();
    }
    // A mark that is not compared belongs to the character before it.
    let end = |at: usize| {
        compared
            .get(at)
            .map_or(text.chars().count(), |(place, _)| *place)
    };
    let is_term = |at: &usize| {
        compared[*at..*at + term.len()]
            .iter()
            .map(|(_, c)| c)
            .eq(term.iter())
    };
    let starts = (0..(compared.len() + 1).saturating_sub(term.len())).filter(is_term);
    starts.map(|at| (end(at), end(at + term.len()))).collect()
}

fn contains(text: &str, part: &str) -> bool {
    let lower = |text: &str| text.chars().map(lower).collect::<String>();
    lower(text).contains(&lower(part))
}

fn equals(text: &str, other: &str) -> bool {
    text.chars().map(lower).eq(other.chars().map(lower))
}

fn starts_with(text: &str, start: &str) -> bool {
    let lower = |text: &str| text.chars().map(lower).collect::<String>();
    lower(text).starts_with(&lower(start))
}

impl Query {
    /// Returns whether, of the filters with one of the keys, the positive ones hold once for each
    /// key, and no negative one; those of the text and added ones apart.
    fn holds(&self, keys: &[&str], holds: impl Fn(&str, &str) -> bool) -> bool {
        let kinds = [&self.filters, &self.added];
        let kinds = kinds
            .iter()
            .flat_map(|filters| keys.iter().map(move |key| (filters, key)));
        kinds.into_iter().all(|(filters, key)| {
            let of_key = || filters.iter().filter(|(_, other, _)| other == key);
            let mut positive = of_key().filter(|(is_positive, ..)| *is_positive).peekable();
            let mut negative = of_key().filter(|(is_positive, ..)| !is_positive);
            let is_wanted =
                positive.peek().is_none() || positive.any(|(_, key, value)| holds(key, value));
            is_wanted && !negative.any(|(_, key, value)| holds(key, value))
        })
    }

    fn chooses(&self, text: &Text) -> bool {
        self.holds(&["in", "tool", "path", "error"], |key, value| {
            let call = text.call.as_ref();
            match key {
                "in" => text.field == value,
                "tool" => call.is_some_and(|call| equals(&call.tool, value)),
                "path" => {
                    let path = call.and_then(|call| call.path.as_ref());
                    path.is_some_and(|path| contains(path, value))
                }
                _ => text.is_error == (value == "true"),
            }
        })
    }

    fn chooses_unit(&self, unit: &Unit) -> bool {
        let keys = [
            "role", "model", "agent", "since", "until", "live", "project", "session",
        ];
        let has = |text: &Option<String>, part: &str| {
            text.as_ref().is_some_and(|text| contains(text, part))
        };
        self.holds(&[&keys[..], &["branch"]].concat(), |key, value| match key {
            "role" => unit.role == Some(value),
            "model" => has(&unit.model, value),
            "agent" if value == "none" => unit.agent.is_none(),
            "agent" => {
                let of_id = unit.agent.as_ref().is_some_and(|id| starts_with(id, value));
                let of_type = unit
                    .agent_type
                    .as_ref()
                    .is_some_and(|own| equals(own, value));
                of_id || of_type
            }
            "since" => unit.millis >= limit(value) && unit.millis.is_some(),
            "until" => unit.millis <= limit(value) && unit.millis.is_some(),
            "branch" => has(&unit.branch, value),
            "live" => unit.live == (value == "true"),
            "project" => {
                let key = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let forms = [
                    value.to_owned(),
                    value.nfc().collect(),
                    value.nfd().collect(),
                ];
                let has_key = |form: &String| {
                    contains(&unit.project, &form.chars().map(key).collect::<String>())
                };
                contains(&unit.project, value) || forms.iter().any(has_key)
            }
            _ => starts_with(&unit.session, value),
        })
    }
}

impl Query {
    /// Returns the places of each positive term in a text, in characters, those that overlap
    /// included.
    #[must_use]
    pub fn places(&self, text: &str) -> Vec<Vec<(usize, usize)>> {
        let positive = self.terms.iter().filter(|(is_positive, _)| *is_positive);
        positive.map(|(_, term)| places(term, text)).collect()
    }
}

impl Store {
    /// Returns the hits of a query, sorted.
    #[must_use]
    pub fn search(&self, query: &Query) -> Vec<Hit> {
        let found = self.units.iter();
        let found: Vec<(&Unit, Hit)> = found
            .filter_map(|unit| Some((unit, hit(unit, query)?)))
            .collect();
        let units: Vec<&Unit> = found.iter().map(|(unit, _)| *unit).collect();
        let mut groups: HashMap<(usize, &str), Vec<(&Unit, Hit)>> = HashMap::new();
        for ((unit, hit), family) in found.into_iter().zip(families(&units)) {
            let group = groups.entry((family, &unit.content)).or_default();
            group.push((unit, hit));
        }
        let mut hits = Vec::new();
        for mut copies in groups.into_values() {
            copies.sort_by_key(|(unit, _)| {
                let is_own = unit.names_session.as_ref() == Some(&unit.session);
                (
                    unit.stored.is_some(),
                    !is_own,
                    unit.order.clone(),
                    unit.offset,
                )
            });
            let mut copies = copies.into_iter().map(|(_, hit)| hit);
            let mut hit = copies.next().expect("at least one");
            let name = |hit: &Hit| {
                let session = hit.session.clone();
                (session, hit.path.clone(), hit.line, hit.uuid.clone())
            };
            for copy in copies {
                let copy = name(&copy);
                if copy != name(&hit) && !hit.also.contains(&copy) {
                    hit.also.push(copy);
                }
            }
            hits.push(hit);
        }
        hits.sort();
        hits
    }
}

/// Returns the number of the family of each unit: from each one to all that have one of its ids, and so
/// on.
fn families(units: &[&Unit]) -> Vec<usize> {
    let mut with_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, unit) in units.iter().enumerate() {
        for id in &unit.ids {
            with_id.entry(id).or_default().push(number);
        }
    }
    let mut families = vec![None; units.len()];
    for first in 0..units.len() {
        let mut open = vec![first];
        while let Some(number) = open.pop() {
            if families[number].is_none() {
                families[number] = Some(first);
                let ids = units[number].ids.iter();
                open.extend(ids.flat_map(|id| &with_id[&**id]));
            }
        }
    }
    families.into_iter().flatten().collect()
}

fn hit(unit: &Unit, query: &Query) -> Option<Hit> {
    if !query.chooses_unit(unit) {
        return None;
    }
    let chosen: Vec<&Text> = unit
        .texts
        .iter()
        .filter(|text| query.chooses(text))
        .collect();
    let is_in = |term: &Term, text: &Text| !places(term, &text.text).is_empty();
    for (is_positive, term) in &query.terms {
        if chosen.iter().any(|text| is_in(term, text)) != *is_positive {
            return None;
        }
    }
    let positive = || query.terms.iter().filter(|(is_positive, _)| *is_positive);
    let count = |text: &Text| positive().filter(|(_, term)| is_in(term, text)).count();
    let mut best = *chosen.first()?;
    for text in chosen {
        if count(text) > count(best) {
            best = text;
        }
    }
    Some(Hit {
        path: unit.path.clone(),
        session: unit.session.clone(),
        line: unit.line,
        offset: unit.offset,
        uuid: unit.uuid.clone(),
        stored: unit.stored.clone(),
        role: unit.role,
        field: best.field,
        block: best.block,
        agent: unit.agent.clone(),
        live: unit.live,
        in_context: unit.in_context,
        text: best.text.clone(),
        also: Vec::new(),
    })
}

// ---------------------------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------------------------

/// A JSON value that keeps its members in their order; of a repeated key the last one counts.
#[derive(Clone, Debug)]
enum Json {
    Text(String),
    True,
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
    Other,
}

impl Json {
    /// Reads a text; anything if it is not JSON.
    fn parse(text: &str) -> Self {
        let text = replace_lone_surrogates(text);
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Self>();
        values.next().and_then(Result::ok).unwrap_or(Self::Other)
    }

    fn text(&self, key: &str) -> Option<&str> {
        match &self[key] {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    fn is_true(&self) -> bool {
        matches!(self, Self::True)
    }

    fn add_strings<'j>(&'j self, strings: &mut Vec<&'j str>) {
        match self {
            Self::Text(text) => strings.push(text),
            Self::List(items) => items.iter().for_each(|item| item.add_strings(strings)),
            Self::Object(members) => {
                members
                    .iter()
                    .for_each(|(_, value)| value.add_strings(strings));
            }
            _ => {}
        }
    }
}

impl std::ops::Index<&str> for Json {
    type Output = Self;

    fn index(&self, key: &str) -> &Self {
        match self {
            Self::Object(members) => {
                let member = members.iter().rfind(|(name, _)| name == key);
                member.map_or(&Self::Other, |(_, value)| value)
            }
            _ => &Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(if value { Json::True } else { Json::Other })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object: Vec<(String, Json)> = Vec::new();
        while let Some((key, value)) = members.next_entry::<String, Json>()? {
            object.push((key, value));
        }
        Ok(Json::Object(object))
    }
}
