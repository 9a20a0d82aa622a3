//! Runs operations in tests.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use transcript_ops::follow::{FollowedFiles, Following};
use transcript_ops::sink::{Result, Sink};
use transcript_ops::{Context, Operation};

/// Keeps the records of an operation; `None` for those that a [`Value`] cannot hold.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Vec<Option<Value>>);

impl Sink for Kept {
    fn json(&mut self, record: &[u8]) -> Result<()> {
        // Valid JSON may have what a `Value` cannot hold: halves of surrogate pairs, numbers out of range.
        self.0.push(serde_json::from_slice(record).ok());
        Ok(())
    }
}

/// Runs an operation to its end.
pub(crate) fn run(operation: &Operation, context: &Context, kept: &mut Kept) -> Result<()> {
    match operation {
        Operation::Follow(settings) => follow(settings.open(context).unwrap(), kept),
        Operation::Watch(settings) => follow(settings.open(context).unwrap(), kept),
        operation => operation.run(context, kept),
    }
}

/// Writes the records of files that are followed to their ends.
fn follow(mut following: Following, kept: &mut Kept) -> Result<()> {
    while let Some(event) = match &mut following.files {
        FollowedFiles::Follower(follower) => follower.try_next()?,
        FollowedFiles::Watcher(watcher) => watcher.try_next()?,
    } {
        following.write(&event, kept)?;
    }
    Ok(())
}

/// Makes a store with a session that has a subagent, and a session with a torn line.
pub(crate) fn make_store(project: &Path, id: &str, torn: &str) {
    let line = json!({
        "type": "user", "uuid": "a0000000-0000-4000-8000-000000000001", "parentUuid": null,
        "sessionId": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/work/app", "version": "2.1.0",
        "message": { "role": "user", "content": "Where is the key?" },
    });
    let answer = json!({
        "type": "assistant", "uuid": "a0000000-0000-4000-8000-000000000002",
        "parentUuid": "a0000000-0000-4000-8000-000000000001", "sessionId": id,
        "timestamp": "2026-01-01T00:00:01.000Z", "requestId": "req_1",
        "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
            "content": [{ "type": "text", "text": "Under the mat." }],
            "usage": { "input_tokens": 10, "output_tokens": 5 },
        },
    });
    let agents = project.join(id).join("subagents");
    fs::create_dir_all(&agents).unwrap();
    let file = |id: &str| project.join(format!("{id}.jsonl"));
    fs::write(file(id), format!("{line}\n{answer}\n")).unwrap();
    fs::write(agents.join("agent-a1.jsonl"), format!("{line}\n")).unwrap();
    let half = &answer.to_string()[..60];
    let lines = format!("{line}\n{half}\n{answer}\n").replace(id, torn);
    fs::write(file(torn), lines).unwrap();
}
