//! Sessions that `transcript append` wrote need no mending.

use serde_json::{Value, json};
use transcript_format::finding::Severity;
use transcript_reader::{Index, Source};
use transcript_resume::{Decision, Policy, Tree};
use transcript_testkit::rng::Rng;

use crate::append::{Session, assistant, call, entry, result, user};

/// A conversation as a client writes it, one process after the other.
struct Client {
    session: Session,
    rng: Rng,
    /// The commands for the running process.
    commands: Vec<Value>,
    /// Whether each command is of the main conversation.
    is_main: Vec<bool>,
    next: usize,
    /// The uuids that a path has to show.
    shown: Vec<String>,
}

impl Client {
    fn new(seed: u64) -> Self {
        Self {
            session: Session::new(),
            rng: Rng::new(seed),
            commands: Vec::new(),
            is_main: Vec::new(),
            next: 0,
            shown: Vec::new(),
        }
    }

    fn push(&mut self, command: Value) {
        self.commands.push(command);
        self.is_main.push(true);
    }

    fn beside(&mut self, command: Value) {
        self.commands.push(command);
        self.is_main.push(false);
    }

    fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}_{:04}", self.next)
    }

    /// A prompt, rounds of calls, an answer.
    fn turn(&mut self, rounds: usize) {
        let text = self.id("Question");
        self.push(user(&text));
        for _ in 0..rounds {
            self.round();
        }
        if self.rng.one_in(4) {
            self.beside(
                json!({"op": "meta", "entry": {"type": "custom-title", "customTitle": "Tides"}}),
            );
        }
        let (id, text) = (self.id("msg"), self.id("Answer"));
        self.push(assistant(&id, &json!([{"type": "text", "text": text}])));
    }

    /// Calls of one message, and their results in whatever order they come.
    fn round(&mut self) {
        let mut calls: Vec<String> = (0..self.rng.range(1, 4))
            .map(|_| self.id("toolu"))
            .collect();
        let id = self.id("msg");
        let blocks = calls.iter().map(|id| call(id));
        let text = json!({"type": "text", "text": "I look."});
        let blocks: Vec<Value> = std::iter::once(text).chain(blocks).collect();
        self.push(assistant(&id, &json!(blocks)));
        if self.rng.one_in(3) {
            self.agent_at_work();
        }
        self.rng.shuffle(&mut calls);
        for id in calls {
            self.push(result(&id));
        }
    }

    /// A subagent writes between a call and its result.
    fn agent_at_work(&mut self) {
        let agent = self.id("a");
        for role in ["user", "assistant", "user", "assistant"] {
            let text = self.id("Agent");
            self.beside(entry(&json!({
                "type": role, "isSidechain": true, "agentId": agent,
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            })));
        }
    }

    /// A turn of its own, then a boundary and its summary; the turn is kept, or nothing.
    fn compaction(&mut self, keeps: bool) {
        self.turn(0);
        self.run();
        let uuid = |client: &mut Self| {
            client.next += 1;
            format!("00000000-0000-4000-8000-{:012}", client.next)
        };
        let (boundary, summary) = (uuid(self), uuid(self));
        let leaf = self.shown.last().cloned();
        let kept = if keeps {
            self.shown.split_off(self.shown.len() - 2)
        } else {
            Vec::new()
        };
        let preserved = json!({"anchorUuid": summary, "uuids": kept, "allUuids": kept});
        self.beside(entry(&json!({
            "type": "system", "subtype": "compact_boundary", "uuid": boundary, "parentUuid": null,
            "logicalParentUuid": leaf, "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 150_000, "preservedMessages": preserved},
        })));
        self.beside(entry(&json!({
            "type": "user", "uuid": summary, "isCompactSummary": true,
            "message": {"role": "user", "content": "So far: the tides."},
        })));
        self.shown = [vec![boundary, summary], kept].concat();
    }

    /// Lets processes write all of it, one after the other, and checks what they answer.
    fn run(&mut self) {
        let commands = std::mem::take(&mut self.commands);
        let is_main = std::mem::take(&mut self.is_main);
        // As many as a pipe has room for answers to.
        let answers = commands
            .chunks(100)
            .flat_map(|commands| self.session.append(commands));
        let mut answered = 0;
        for (answer, is_main) in answers.zip(is_main) {
            assert_eq!(answer["ok"], true, "{answer}");
            answered += 1;
            if is_main {
                let entries = answer["entries"].as_array().unwrap().iter();
                let uuids = entries.map(|entry| entry["uuid"].as_str().unwrap().to_owned());
                self.shown.extend(uuids);
            }
        }
        assert_eq!(answered, commands.len());
    }

    /// Checks that the path of each policy has exactly the written entries, without findings or repairs.
    fn check(&self, name: &str) {
        let source = Source::open(&self.session.path).unwrap();
        let index = Index::load(&source).unwrap();
        for policy in [Policy::Recover, Policy::Vendor] {
            let tree = Tree::new(&index, policy);
            let path = tree.path();
            let uuid = |entry_ref| index.id_text(index.entry(entry_ref).uuid().unwrap());
            let mut shown: Vec<String> = path
                .entries
                .iter()
                .map(|entry| uuid(entry.entry_no()))
                .collect();
            let mut expected = self.shown.clone();
            shown.sort();
            expected.sort();
            assert_eq!(shown, expected, "{name}, {}", policy.name());
            let is_repaired = |decision: &&Decision| {
                matches!(
                    decision,
                    Decision::Bridge { .. } | Decision::Gap { .. } | Decision::Salvage { .. }
                )
            };
            assert_eq!(path.decisions.iter().find(is_repaired), None, "{name}");
            let found = [index.findings(), &tree.findings(&path)].concat();
            let damage = found
                .iter()
                .find(|finding| finding.code.severity() == Severity::Damage);
            assert_eq!(damage, None, "{name}");
        }
    }
}

#[test]
fn a_session_that_we_wrote_needs_no_mending() {
    for seed in 0..40 {
        let mut client = Client::new(seed);
        for _ in 0..client.rng.range(1, 6) {
            for _ in 0..client.rng.range(1, 4) {
                let rounds = client.rng.below(3);
                client.turn(rounds);
            }
            if client.rng.one_in(3) {
                let keeps = !client.rng.one_in(3);
                client.compaction(keeps);
            }
            client.run();
            client.check(&format!("seed {seed}"));
        }
    }
}

#[test]
fn a_long_session_that_we_wrote_needs_no_mending() {
    let mut client = Client::new(0);
    for _ in 0..3 {
        for _ in 0..500 {
            let rounds = client.rng.below(4);
            client.turn(rounds);
        }
        client.run();
    }
    client.check("3 processes, 1500 turns");
}
