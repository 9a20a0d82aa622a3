//! Sessions for tests.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_engine::{Draft, EntryId, History, Session, SessionOptions, Written};
use transcript_reader::Bodies;
use transcript_resume::request::{self, Request};
use transcript_resume::{Decision, Policy};

pub(crate) const POLICIES: [Policy; 2] = [Policy::Vendor, Policy::Recover];

/// The path of a session in its own folder. The tests of this binary run one after another: while a
/// child process is being started it holds a copy of each open file of this process for a moment,
/// and an open session then looks as if another process wrote to it.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    folder: TempDir,
    _serial: MutexGuard<'static, ()>,
}

impl Place {
    pub(crate) fn new() -> Self {
        static SERIAL: Mutex<()> = Mutex::new(());
        let folder = tempfile::tempdir().unwrap();
        Self {
            path: Self::path_in(&folder),
            folder,
            _serial: SERIAL.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Switches to another folder.
    pub(crate) fn renew(&mut self) {
        self.folder = tempfile::tempdir().unwrap();
        self.path = Self::path_in(&self.folder);
    }

    fn path_in(folder: &TempDir) -> PathBuf {
        folder
            .path()
            .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl")
    }
}

pub(crate) fn options() -> SessionOptions {
    SessionOptions::new().cwd("/work").version("1.0.0")
}

pub(crate) fn create(path: &Path) -> Session {
    Session::create(path, &options()).unwrap()
}

pub(crate) fn id(entry: &Written) -> EntryId {
    entry.uuid.clone().unwrap()
}

pub(crate) fn say(session: &Session, text: &str) -> EntryId {
    id(&session.append(Draft::user(text)).unwrap())
}

/// Appends an answer with these blocks; returns the last of its entries.
pub(crate) fn answer(session: &Session, message: &str, content: &Value) -> EntryId {
    let message = json!({"id": message, "role": "assistant", "model": "m", "type": "message",
        "content": content, "stop_reason": "end_turn", "usage": {"output_tokens": 1}});
    let drafts = Draft::assistant(&message.to_string()).unwrap();
    id(session.append_all(drafts).unwrap().last().unwrap())
}

pub(crate) fn answer_text(session: &Session, text: &str) -> EntryId {
    answer(
        session,
        &format!("msg_{text}"),
        &json!([{"type": "text", "text": text}]),
    )
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

pub(crate) fn result(session: &Session, call: &str) -> EntryId {
    let result = transcript_engine::make::ToolResult::text(call, "done");
    let result = transcript_engine::make::tool_result(result);
    id(&session.append(Draft::try_from(&result).unwrap()).unwrap())
}

/// Returns the request that a client sends when it resumes the session.
pub(crate) fn request(path: &Path, policy: Policy) -> Request {
    let history = History::open(path).unwrap();
    let tree = history.tree(policy);
    request::RequestOptions::new()
        .request(&tree, &mut Bodies::new(history.source()))
        .unwrap()
}

pub(crate) fn messages(request: &Request) -> Vec<String> {
    request
        .messages
        .iter()
        .map(transcript_messages::Message::json)
        .collect()
}

/// Returns the uuids of the path.
pub(crate) fn path_of(path: &Path, policy: Policy) -> Vec<String> {
    let history = History::open(path).unwrap();
    let index = history.index();
    let path = history.tree(policy).path();
    let entries = path
        .entries
        .iter()
        .map(|entry| index.entry(entry.entry_no()));
    entries
        .filter_map(|entry| Some(index.id_text(entry.uuid()?)))
        .collect()
}

/// Returns the lines of a file that are JSON, and whether there is a torn one at its end.
pub(crate) fn lines(path: &Path) -> (Vec<Value>, bool) {
    let bytes = fs::read(path).unwrap();
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let lines = bytes[..whole]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).unwrap());
    (lines.collect(), whole < bytes.len())
}

/// Asserts that a session is undamaged: every line is complete except perhaps the last, no uuid is
/// repeated, every parent exists, no part of the conversation is on a branch, no link had to be
/// guessed, and the API would accept the request. Both policies agree.
pub(crate) fn assert_unhurt(path: &Path) {
    let (lines, _) = lines(path);
    let mut seen = HashSet::new();
    let mut conversation = HashSet::new();
    for line in &lines {
        let (Some(uuid), Some(parent)) = (line["uuid"].as_str(), line.get("parentUuid")) else {
            continue;
        };
        assert!(
            parent.is_null() || seen.contains(parent.as_str().unwrap()),
            "phantom: {line}"
        );
        assert!(seen.insert(uuid), "doubled: {line}");
        if line["subtype"] == "compact_boundary" {
            conversation.clear();
            let kept = line["compactMetadata"]["preservedMessages"]["uuids"].as_array();
            conversation.extend(kept.into_iter().flatten().filter_map(Value::as_str));
        }
        conversation.insert(uuid);
    }
    for policy in POLICIES {
        let on_path = path_of(path, policy);
        let on_path: HashSet<&str> = on_path.iter().map(String::as_str).collect();
        assert_eq!(on_path, conversation, "{policy:?}: a fork, or a gap");
        let request = request(path, policy);
        let lint = transcript_messages::lint(&request.messages);
        assert!(
            request.is_resumable() && lint.is_ok(),
            "{policy:?}: {:?}",
            lint.problems
        );
        let guessed = request.path.decisions.iter().find(|decision| {
            matches!(
                decision,
                Decision::Relink { .. }
                    | Decision::Truncated { .. }
                    | Decision::Bridge { .. }
                    | Decision::Gap { .. }
                    | Decision::SpliceIgnored { .. }
                    | Decision::Cycle { .. }
            )
        });
        assert_eq!(guessed, None, "{policy:?}");
    }
}
