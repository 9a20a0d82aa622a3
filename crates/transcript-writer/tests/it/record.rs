//! Recording, compared with a slow model on plain values: random lists of messages, compactions and
//! replays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use transcript_format::make::{Compaction, Trigger};
use transcript_testkit::fake_disk::FakeDisk;
use transcript_testkit::rng::Rng;
use transcript_writer::{Draft, EntryId, ErrorKind, RecordOptions, ResumePoint, Writer};

use crate::fake::{PATH, open, options, soak, values};

/// The expected contents of the file, and the state that decides the parent of the next entry.
#[derive(Default)]
struct Model {
    /// uuid, parent, logical parent.
    entries: Vec<[Option<String>; 3]>,
    known: BTreeSet<String>,
    leaf: Option<String>,
    calls: BTreeMap<String, String>,
    kept: BTreeSet<String>,
    /// Entries with calls that the last compaction abandoned.
    left: BTreeSet<String>,
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn blocks(message: &Value, key: &str) -> Vec<String> {
    let blocks = message["message"]["content"].as_array();
    let blocks = blocks.into_iter().flatten();
    blocks.filter_map(|block| text(&block[key])).collect()
}

impl Model {
    fn record(&mut self, messages: &[Value], start: Option<String>) -> Option<String> {
        let mut start = start;
        let mut new: Vec<&Value> = Vec::new();
        for message in messages {
            let kind = message["type"].as_str().unwrap();
            if !["user", "assistant", "system", "attachment"].contains(&kind) {
                continue;
            }
            let uuid = text(&message["uuid"]).unwrap();
            if self.known.contains(&uuid) {
                if new.is_empty() && !self.kept.contains(&uuid) {
                    start = Some(uuid);
                }
            } else if new.iter().all(|other| other["uuid"] != message["uuid"]) {
                new.push(message);
            }
        }
        let mut parent = start.clone().or(self.leaf.clone());
        for message in &new {
            let above = parent.clone();
            parent = text(&message["uuid"]);
            self.add(message, above);
        }
        new.last().map_or(start, |_| parent)
    }

    fn add(&mut self, message: &Value, above: Option<String>) {
        let uuid = text(&message["uuid"]).unwrap();
        let results = blocks(message, "tool_use_id");
        let mut calls = results.iter().filter_map(|id| self.calls.get(id).cloned());
        let call = calls.find(|entry| !self.left.contains(entry));
        if message["subtype"] == "compact_boundary" {
            let kept = &message["compactMetadata"]["preservedMessages"]["uuids"];
            let kept = kept.as_array().into_iter().flatten();
            self.kept = kept.filter_map(text).collect();
            let open = self.calls.values().cloned();
            self.left = open.filter(|entry| !self.kept.contains(entry)).collect();
            self.entries.push([Some(uuid.clone()), None, above]);
        } else {
            self.entries
                .push([Some(uuid.clone()), call.or(above), None]);
        }
        for id in results {
            self.calls.remove(&id);
        }
        for id in blocks(message, "id") {
            self.calls.insert(id, uuid.clone());
        }
        self.known.insert(uuid.clone());
        self.leaf = Some(uuid);
    }

    /// Returns the resume point of the file, without abandoned calls.
    fn known(&mut self) -> ResumePoint {
        self.calls.retain(|_, entry| !self.left.contains(entry));
        self.left.clear();
        let id = |text: &String| EntryId::from(text.as_str());
        let mut known = ResumePoint::default();
        known.uuids = self.known.iter().map(id).collect();
        known.leaf = self.leaf.as_ref().map(id);
        known.kept = self.kept.iter().map(id).collect();
        let calls = self.calls.iter();
        known.calls = calls
            .map(|(call, entry)| (call.clone(), id(entry)))
            .collect();
        known
    }
}

/// Creates messages as a client has them in memory; some of them are never written.
struct Client {
    rng: Rng,
    next: u64,
    /// All messages so far.
    past: Vec<Value>,
    open: Vec<String>,
}

impl Client {
    fn message(&mut self) -> Value {
        self.next += 1;
        let uuid = match self.rng.below(9) {
            0 => format!("odd-{}", self.next),
            _ => format!("00000000-0000-4000-8000-{:012x}", self.next),
        };
        let message = match self.rng.below(10) {
            0 => json!({"type": "progress", "uuid": uuid, "data": {"type": "hook_progress"}}),
            1 => json!({"type": "stream_event", "uuid": uuid, "event": {}}),
            2 => json!({"type": "system", "subtype": "informational", "uuid": uuid}),
            3 => json!({"type": "attachment", "uuid": uuid, "attachment": {"type": "date"}}),
            4 | 5 => {
                let id = format!("toolu_{}", self.next);
                self.open.push(id.clone());
                let call = json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
                json!({"type": "assistant", "uuid": uuid, "parentUuid": "what-it-was-elsewhere",
                    "message": {"role": "assistant", "content": [call]}})
            }
            6 | 7 if !self.open.is_empty() => {
                let id = self.open.remove(self.rng.below(self.open.len()));
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
                json!({"type": "user", "uuid": uuid,
                    "message": {"role": "user", "content": [result]}})
            }
            _ => json!({"type": "user", "uuid": uuid, "parentUuid": null,
                "message": {"role": "user", "content": "A word."}}),
        };
        self.past.push(message.clone());
        message
    }

    /// Returns a boundary that preserves some of the past, and its summary.
    fn compaction(&mut self, known: &BTreeSet<String>) -> Vec<Value> {
        let kept = self.kept(known);
        self.next += 2;
        let [boundary, summary] = [self.next - 1, self.next]
            .map(|number| format!("00000000-0000-4000-9000-{number:012x}"));
        let list = json!({"anchorUuid": summary, "uuids": kept, "allUuids": kept});
        let made = [
            json!({"type": "system", "subtype": "compact_boundary", "uuid": boundary,
                "compactMetadata": {"trigger": "auto", "preTokens": 9, "preservedMessages": list}}),
            json!({"type": "user", "uuid": summary, "isCompactSummary": true,
                "message": {"role": "user", "content": "What was."}}),
        ];
        self.past.extend(made.clone());
        made.into()
    }

    fn kept(&mut self, known: &BTreeSet<String>) -> Vec<String> {
        let uuids: Vec<&String> = known.iter().collect();
        let from = self.rng.below(uuids.len() + 1);
        let to = (from + self.rng.below(3)).min(uuids.len());
        uuids[from..to].iter().map(|uuid| (*uuid).clone()).collect()
    }

    /// Returns the messages that the client records next: a part of the past, new messages, and the
    /// past among them.
    fn messages(&mut self, known: &BTreeSet<String>) -> Vec<Value> {
        let from = self.rng.below(self.past.len() + 1);
        let mut messages = self.past[from..].to_vec();
        if self.rng.one_in(3) {
            messages.truncate(self.rng.below(messages.len() + 1));
        }
        if self.rng.one_in(4) {
            let kept = std::mem::take(&mut messages);
            messages = self.compaction(known);
            messages.extend(kept);
        }
        for _ in 0..self.rng.below(5) {
            let new = self.message();
            messages.push(new);
            if self.rng.one_in(5) {
                let again = self.rng.pick(&self.past).clone();
                messages.push(again);
            }
        }
        messages
    }
}

fn drafts(messages: &[Value]) -> Vec<Draft> {
    let drafts = messages
        .iter()
        .map(|value| Draft::entry(&value.to_string()));
    drafts.collect::<Result<_, _>>().unwrap()
}

/// Returns uuid, parent and logical parent of each entry.
fn entries(disk: &FakeDisk) -> Vec<[Option<String>; 3]> {
    let values = values(&disk.bytes(PATH).unwrap_or_default());
    let values = values.into_iter().map(Option::unwrap);
    values
        .map(|value| ["uuid", "parentUuid", "logicalParentUuid"].map(|key| text(&value[key])))
        .collect()
}

fn reopen(disk: &FakeDisk, model: &mut Model, writer: Writer) -> Writer {
    writer.close().unwrap();
    options(disk).open(Path::new(PATH), model.known()).unwrap()
}

fn run(seed: u64) {
    let disk = FakeDisk::new(seed);
    let mut model = Model::default();
    let mut writer = options(&disk)
        .open(Path::new(PATH), ResumePoint::default())
        .unwrap();
    let mut client = Client {
        rng: Rng::new(seed),
        next: 0,
        past: Vec::new(),
        open: Vec::new(),
    };
    for _ in 0..client.rng.range(2, 9) {
        match client.rng.below(8) {
            0 => writer = reopen(&disk, &mut model, writer),
            1 if model.leaf.is_some() => {
                let kept = client.kept(&model.known);
                let ids: Vec<EntryId> = kept.iter().map(|id| EntryId::from(&**id)).collect();
                let compaction = Compaction::new(Trigger::Auto, 9);
                let compacted = writer.compact(compaction, "What was.", &ids).unwrap();
                let [boundary, summary] = [compacted.boundary, compacted.summary]
                    .map(|entry| entry.uuid.unwrap().to_string());
                let leaf = model.leaf.clone();
                let list = json!({"uuids": kept});
                let made = [
                    json!({"type": "system", "subtype": "compact_boundary", "uuid": boundary,
                        "compactMetadata": {"preservedMessages": list}}),
                    json!({"type": "user", "uuid": summary}),
                ];
                model.add(&made[0], leaf);
                model.add(&made[1], Some(boundary));
                client.past.extend(made);
            }
            _ => {
                let messages = client.messages(&model.known);
                let hints: Vec<&String> = model.known.iter().collect();
                let start = (!hints.is_empty() && client.rng.one_in(5))
                    .then(|| (*client.rng.pick(&hints)).clone());
                let hint = start.as_deref().map(EntryId::from);
                let options = RecordOptions::new();
                let options = match hint {
                    Some(hint) => options.start(hint),
                    None => options,
                };
                let recorded = writer.record(drafts(&messages), options).unwrap();
                let last = model.record(&messages, start);
                assert_eq!(recorded.last.map(|id| id.to_string()), last, "seed {seed}");
            }
        }
        assert_eq!(entries(&disk), model.entries, "seed {seed}");
    }
}

#[test]
fn recording_is_what_the_slow_model_says() {
    for seed in 0..10_000 * soak() {
        run(seed);
    }
}

fn user(uuid: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "A word."}})
}

#[test]
fn a_start_that_is_not_there_is_refused_and_nothing_is_written() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let refused = writer.record(
        drafts(&[user("a")]),
        RecordOptions::new().start(EntryId::from("gone")),
    );
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnknownParent);
    assert_eq!(entries(&disk).len(), 0);
    let nothing = writer.record(
        Vec::new(),
        RecordOptions::new().start(EntryId::from("hint")),
    );
    assert_eq!(nothing.unwrap().last, Some(EntryId::from("hint")));
    assert_eq!(
        writer
            .record(Vec::new(), RecordOptions::new())
            .unwrap()
            .last,
        None
    );
}

#[test]
fn entries_after_a_known_summary_are_not_children_of_kept_ones() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let (kept, next) = (user("kept"), user("next"));
    writer
        .record(drafts(std::slice::from_ref(&kept)), RecordOptions::new())
        .unwrap();
    let compaction = Compaction::new(Trigger::Manual, 9);
    let done = writer.compact(compaction, "What was.", &[EntryId::from("kept")]);
    let summary = done.unwrap().summary.uuid.unwrap();
    let in_memory = [user(&summary.to_string()), kept, next];
    let recorded = writer
        .record(drafts(&in_memory), RecordOptions::new())
        .unwrap();
    assert_eq!(recorded.entries.len(), 1);
    assert_eq!(recorded.entries[0].parent, Some(summary));
}

#[test]
fn messages_of_a_team_name_it() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let options = RecordOptions::new().team("moon", "crater");
    writer.record(drafts(&[user("a")]), options).unwrap();
    let line = values(&disk.bytes(PATH).unwrap()).remove(0).unwrap();
    assert_eq!([&line["teamName"], &line["agentName"]], ["moon", "crater"]);
}
