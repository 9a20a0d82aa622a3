//! Generates sessions like those of real clients, from a seed.
//!
//! The sessions contain what real ones do (`docs/format.md`): turns with parallel tools in both
//! layouts, rewinds, pins, compactions, sidechains, and the defects that clients cause themselves
//! (repeated lines, missing lines, children before their parents). [`crate::damage`] adds damage
//! from outside.

mod today;

use serde_json::{Value, json};

use crate::rng::Rng;

/// A PNG of one pixel.
const PIXEL_PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk\
    +M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Returns a session of 5 to 300 lines. Equal seeds give equal bytes.
#[must_use]
pub fn session(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let habits = Habits {
        // From other random numbers than the session, so that a session without rare features does
        // not depend on this choice.
        rare: Rng::new(seed ^ 0x0A4E_F0A4).one_in(2),
        today: Rng::new(seed ^ 0x70DA_F11E).one_in(4),
        ..Habits::new(&mut rng)
    };
    Writer::new(rng, habits).session()
}

/// Like [`session`], but every entry has a uuid of its own: no line is repeated, and no uuid is
/// missing.
#[must_use]
pub fn session_of_unique_uuids(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let habits = Habits {
        repeats: false,
        missing_ids: false,
        ..Habits::new(&mut rng)
    };
    Writer::new(rng, habits).session()
}

/// Like [`session`], but nothing is lost, repeated or malformed. The other defects that clients cause
/// (missing results, a boundary without its summary, a time that runs backwards) are rare.
#[must_use]
pub fn tidy_session(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let habits = Habits {
        escaped_ids: false,
        odd_ids: false,
        missing_ids: false,
        bad_times: false,
        repeats: false,
        losses: false,
        forgets: true,
        ..Habits::new(&mut rng)
    };
    Writer::new(rng, habits).session()
}

/// Returns the lines of `bytes` in another order, each with a newline.
#[must_use]
pub fn permute_lines(bytes: &[u8], seed: u64) -> Vec<u8> {
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut lines: Vec<&[u8]> = whole.split(|byte| *byte == b'\n').collect();
    Rng::new(seed).shuffle(&mut lines);
    let mut out = lines.join(&b'\n');
    out.push(b'\n');
    out
}

/// The features that a whole session has, or that may occur in it.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// Written by a client up to 2.1.81: progress lines, no attachments, no pins.
    old_client: bool,
    /// Contains little except turns.
    calm: bool,
    /// All entries are on a sidechain: the file of a subagent.
    agent_file: bool,
    /// Writes `{"a": 1}`, as in files made by hand, instead of `{"a":1}`.
    spaced: bool,
    shuffled_names: bool,
    escaped_ids: bool,
    odd_ids: bool,
    missing_ids: bool,
    bad_times: bool,
    repeats: bool,
    losses: bool,
    /// After a compaction that removes the history (COMPACT-12), rewinds lead behind it at most, as a
    /// client has nothing else to offer.
    forgets: bool,
    crlf: bool,
    blank_lines: bool,
    no_final_newline: bool,
    /// May contain what is rare in real sessions: pins in the middle of a turn, loaded tools, calls
    /// before texts, blank texts, repeated ids, commands run by hand, a boundary as the last line.
    rare: bool,
    /// Contains lines that only clients from 2.1.331 on write: their notes and notifications, lines beside the
    /// chain, attachments without stored texts, calls with inputs that are changed.
    today: bool,
    target_lines: usize,
}

impl Habits {
    fn new(rng: &mut Rng) -> Self {
        let longest = *rng.pick(&[8, 20, 40, 80, 160, 300]);
        Self {
            old_client: rng.one_in(3),
            calm: rng.one_in(3),
            agent_file: rng.one_in(20),
            spaced: rng.one_in(8),
            shuffled_names: rng.one_in(8),
            escaped_ids: rng.one_in(12),
            odd_ids: rng.one_in(5),
            missing_ids: rng.one_in(8),
            bad_times: rng.one_in(4),
            repeats: rng.one_in(3),
            losses: rng.one_in(2),
            forgets: false,
            crlf: rng.one_in(25),
            blank_lines: rng.one_in(20),
            no_final_newline: rng.one_in(10),
            rare: false,
            today: false,
            target_lines: rng.range(5, longest),
        }
    }
}

type Members = Vec<(&'static str, Value)>;

/// An entry of the main chain that later lines may refer to.
#[derive(Clone, Debug)]
struct Known {
    uuid: String,
    parent: Option<String>,
    members: Members,
}

#[derive(Debug)]
struct Writer {
    rng: Rng,
    habits: Habits,
    lines: Vec<String>,
    known: Vec<Known>,
    /// The place in `known` of the first entry that was not forgotten.
    first_known: usize,
    /// Whether a compaction named entries that it preserves.
    has_preserved: bool,
    /// The parent of the next line of the main chain.
    leaf: Option<String>,
    /// Set while the lines of a subagent are written.
    agent: Option<String>,
    session_id: String,
    model: &'static str,
    millis: i64,
    messages: usize,
    tools: usize,
}

const MODELS: [&str; 3] = [
    "claude-sonnet-4-5-20250929",
    "claude-opus-5-5",
    "claude-haiku-4-5",
];

const TEXTS: [&str; 12] = [
    "read the file and tell me what it does",
    "ok",
    "",
    "two\nlines and a \"quoted\" word",
    "back\\slashes \\\\ and \\\" ends",
    "tab\t, nul \u{0}, escape \u{1b}[31m",
    "grüße, 你好, \u{1f680}",
    "separators \u{2028} and \u{2029} stay inside",
    "{\"uuid\":\"not-this-one\",\"parentUuid\":null,\"type\":\"user\"}",
    "}{",
    "<system-reminder>\nkeep it short\n</system-reminder>",
    "a longer answer that goes past the first block of sixty-four bytes, and then past the second \
     one of them too, since most real answers do",
];

/// Steps of the clock between two lines. Many are near 5,000 ms, the largest distance over which
/// the client relinks a missing parent.
const STEPS_MILLIS: [i64; 20] = [
    0, 0, 1, 3, 17, 120, 250, 400, 800, 1_000, 1_500, 2_500, 4_000, 4_999, 5_000, 5_001, 5_100,
    9_000, 30_000, 600_000,
];

const ZERO_UUID: &str = "00000000-0000-0000-0000-000000000000";

impl Writer {
    fn new(mut rng: Rng, habits: Habits) -> Self {
        let session_id = uuid(&mut rng);
        let model = *rng.pick(&MODELS);
        Self {
            session_id,
            model,
            millis: 3_600_000 + rng.below(36_000_000) as i64,
            rng,
            habits,
            lines: Vec::new(),
            known: Vec::new(),
            first_known: 0,
            has_preserved: false,
            leaf: None,
            agent: None,
            messages: 0,
            tools: 0,
        }
    }

    fn session(mut self) -> Vec<u8> {
        if self.habits.agent_file {
            self.agent = Some(format!("a{:07x}", self.rng.below(1 << 28)));
        }
        if self.rare(30) {
            return self.without_messages();
        }
        self.habits.today &= !self.habits.old_client;
        if self.today(25) {
            return self.only_commands();
        }
        self.opening();
        while self.lines.len() < self.habits.target_lines {
            if self.today(4) {
                self.line_of_today();
            }
            let calm = self.habits.calm && !self.rng.one_in(5);
            match if calm { 39 } else { self.rng.below(40) } {
                0..=4 => self.rewind(),
                5..=7 => self.sidechain(),
                8..=10 => self.compaction(),
                11 => self.leaf = None,
                12..=13 => self.side_line(),
                14 => self.system_line(),
                15 => self.api_error(),
                16..=17 => self.odd_user(),
                18 => self.unknown_line(),
                19..=22 if !self.habits.old_client => self.pin(),
                23..=27 if self.habits.repeats => self.repeat(),
                28 => self.bare_answer(),
                _ => self.turn(),
            }
        }
        // A client can be killed at any moment.
        self.lines.truncate(self.habits.target_lines);
        if self.rare(3) {
            self.ending();
        } else if self.today(3) {
            self.ending_of_today();
        }
        self.joined()
    }

    /// Returns true once in `n` times, but only in sessions with rare features.
    fn rare(&mut self, n: usize) -> bool {
        self.habits.rare && self.rng.one_in(n)
    }

    /// Returns the lines as the bytes of a file.
    fn joined(self) -> Vec<u8> {
        let end = if self.habits.crlf { "\r\n" } else { "\n" };
        let mut text = self.lines.join(end);
        if !self.habits.no_final_newline {
            text.push_str(end);
        }
        text.into_bytes()
    }

    /// Writes a session without messages: system lines and attachments.
    fn without_messages(mut self) -> Vec<u8> {
        let count = self.rng.range(5, 9);
        while self.lines.len() < count {
            match self.rng.below(4) {
                0 => self.attachment(false),
                1 => self.bare_boundary(),
                2 => self.side_line(),
                _ => self.system_line(),
            }
        }
        self.joined()
    }

    /// Replaces the last lines by the end of a file whose client stopped at a bad moment.
    fn ending(&mut self) {
        // At most three lines are added, each of which may be followed by a blank one.
        match self.lines.len() {
            0..=10 => return,
            count => self.lines.truncate(count - 6),
        }
        if self.rng.one_in(3) {
            self.pin();
        }
        match self.rng.below(5) {
            0 => self.bare_boundary(),
            1 => {
                self.bare_boundary();
                self.attachment(true);
            }
            // A line without a parent, or with a missing one.
            2 => {
                self.leaf = None;
                self.system_line();
            }
            3 => {
                self.leaf = Some(uuid(&mut self.rng));
                self.system_line();
            }
            _ => {
                self.leaf = Some(uuid(&mut self.rng));
                self.attachment(true);
            }
        }
    }

    /// Writes a boundary without a summary and preserved entries.
    fn bare_boundary(&mut self) {
        let boundary_uuid = uuid(&mut self.rng);
        let mut members = vec![("subtype", json!("compact_boundary"))];
        if self.rng.one_in(2) {
            members.push(("compactMetadata", json!({"trigger": "manual"})));
        }
        self.put_with_uuid(&boundary_uuid, "system", None, members);
        self.leaf = Some(boundary_uuid);
    }

    // ---------------------------------------------------------------------------------------------
    // Lines
    // ---------------------------------------------------------------------------------------------

    fn push(&mut self, members: &Members) {
        let mut members: Vec<&(&str, Value)> = members.iter().collect();
        if self.habits.shuffled_names {
            self.rng.shuffle(&mut members);
        }
        let (colon, comma) = if self.habits.spaced {
            (": ", ", ")
        } else {
            (":", ",")
        };
        let members: Vec<String> = members
            .into_iter()
            .map(|(name, value)| {
                let is_id = matches!(*name, "uuid" | "parentUuid" | "leafUuid");
                let value = match value.as_str() {
                    Some(id) if is_id && self.habits.escaped_ids && self.rng.one_in(4) => {
                        escaped(id)
                    }
                    _ => value.to_string(),
                };
                format!("\"{name}\"{colon}{value}")
            })
            .collect();
        self.lines.push(format!("{{{}}}", members.join(comma)));
        if self.habits.blank_lines && self.rng.one_in(15) {
            self.lines.push(String::new());
        }
    }

    /// Writes an entry as a child of `parent`. Returns its uuid even when the line is lost.
    fn put(&mut self, kind: &'static str, parent: Option<&str>, more: Members) -> String {
        let uuid = self.fresh_uuid();
        let parent_value = match parent {
            Some(parent) => json!(parent),
            None if self.rng.one_in(12) => json!(""),
            None => Value::Null,
        };
        let mut members: Members = Vec::new();
        // Every client writes this key, so a line without it is damaged.
        if parent.is_some() || !(self.rng.one_in(12) && self.habits.missing_ids) {
            members.push(("parentUuid", parent_value));
        }
        members.push(("isSidechain", json!(self.agent.is_some())));
        members.push(("userType", json!("external")));
        members.push(("cwd", json!("/home/dev/work")));
        members.push(("sessionId", json!(self.session_id)));
        let version = self.version();
        members.push(("version", json!(version)));
        if let Some(agent) = &self.agent {
            members.push(("agentId", json!(agent)));
        } else if self.rng.one_in(400) {
            members.push(("teamName", json!("reviewers")));
        }
        members.push(("type", json!(kind)));
        members.extend(more);
        match self.rng.below(30) {
            0 if self.habits.missing_ids => {}
            1 if self.habits.missing_ids => members.push(("uuid", Value::Null)),
            2 if self.habits.missing_ids => members.push(("uuid", json!(""))),
            _ => members.push(("uuid", json!(uuid))),
        }
        members.extend(self.timestamp().map(|time| ("timestamp", time)));
        if self.habits.losses && self.rng.one_in(14) {
            return uuid;
        }
        self.push(&members);
        if self.agent.is_none() || self.habits.agent_file {
            let parent = parent.map(str::to_owned);
            self.known.push(Known {
                uuid: uuid.clone(),
                parent,
                members,
            });
        }
        uuid
    }

    /// Writes an entry as a child of the leaf. It becomes the leaf.
    fn append(&mut self, kind: &'static str, more: Members) -> String {
        let leaf = self.leaf.take();
        let uuid = self.put(kind, leaf.as_deref(), more);
        self.leaf = Some(uuid.clone());
        uuid
    }

    fn fresh_uuid(&mut self) -> String {
        let uuid = uuid(&mut self.rng);
        if !self.habits.odd_ids || !self.rng.one_in(12) {
            return uuid;
        }
        match self.rng.below(5) {
            0 => format!("u{}", self.lines.len()),
            1 => uuid.to_uppercase(),
            2 => uuid.replace('-', ""),
            3 => format!("größe {} \"\\", self.lines.len()),
            _ => format!("{uuid}-copy"),
        }
    }

    fn timestamp(&mut self) -> Option<Value> {
        self.millis += self.rng.pick(&STEPS_MILLIS);
        if self.rng.one_in(40) {
            self.millis -= self.rng.below(6_000) as i64;
        }
        if self.habits.bad_times && self.rng.one_in(12) {
            let bad = [
                json!("garbage"),
                json!(""),
                Value::Null,
                json!(1_795_168_808_250_i64),
            ];
            return if self.rng.one_in(2) {
                None
            } else {
                Some(self.rng.pick(&bad).clone())
            };
        }
        Some(json!(written_time(self.millis)))
    }

    fn text(&mut self) -> String {
        let text = *self.rng.pick(&TEXTS);
        // A number makes each text unique.
        if text.is_empty() {
            String::new()
        } else {
            format!("{text} {}", self.lines.len())
        }
    }

    // ---------------------------------------------------------------------------------------------
    // The main chain
    // ---------------------------------------------------------------------------------------------

    fn opening(&mut self) {
        if self.rng.one_in(3) {
            self.side_line();
        }
        if self.rng.one_in(6) {
            self.append("progress", hook_progress());
        }
        self.turn();
    }

    fn turn(&mut self) {
        if self.rng.one_in(8) {
            self.queue_operation("enqueue");
            self.queue_operation("dequeue");
        }
        if self.rare(6) {
            self.attachments();
        }
        if self.rare(8) {
            self.command_by_hand();
        }
        self.prompt();
        self.attachments();
        for _ in 0..self.rng.below(4).saturating_sub(1) {
            self.tool_message();
        }
        if !self.rng.one_in(10) {
            self.closing_message();
        }
        if self.rng.one_in(4) {
            self.system_line();
        }
        if !self.habits.old_client && self.rng.one_in(3) {
            self.plain_pin();
        }
        if self.rare(10) {
            self.command_by_hand();
        }
    }

    /// Writes a command that the user ran by hand: the caveat, its name, its output; or only some of
    /// these.
    fn command_by_hand(&mut self) {
        let name = *self.rng.pick(&[
            "<command-name>/cost</command-name>",
            "<command-name>/cost</command-name>",
            "<command-message>cost</command-message>",
        ]);
        let lines = [
            "<local-command-caveat>Caveat</local-command-caveat>",
            name,
            "<local-command-stdout>out</local-command-stdout>",
        ];
        let from = self.rng.below(8) / 7;
        let to = self.rng.range(from + 1, 3);
        for (number, content) in lines.iter().enumerate().take(to).skip(from) {
            let message = json!({"role": "user", "content": content});
            self.append(
                "user",
                vec![("message", message), ("isMeta", json!(number == 0))],
            );
        }
    }

    fn prompt(&mut self) {
        let text = self.text();
        let content = match self.rng.below(5) {
            0 if self.rare(3) => {
                let blank = *self.rng.pick(&["", " ", "\n\n"]);
                let blank = json!({"type": "text", "text": blank});
                let text = json!({"type": "text", "text": text});
                match self.rng.below(4) {
                    0 => json!([blank]),
                    1 => json!([text, blank]),
                    2 => json!([blank, text]),
                    _ => blank["text"].clone(),
                }
            }
            0 => json!([{"type": "text", "text": text}]),
            1 if self.rng.one_in(3) => json!([
                {"type": "text", "text": text},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL_PNG}},
            ]),
            _ => json!(text),
        };
        self.append(
            "user",
            vec![("message", json!({"role": "user", "content": content}))],
        );
    }

    /// Writes attachments as children of the leaf, in the chain or outside it.
    fn attachments(&mut self) {
        if self.habits.old_client {
            return;
        }
        for _ in 0..self.rng.below(4).saturating_sub(1) {
            if self.today(2) {
                self.attachment_to_render(true);
                continue;
            }
            if self.rare(3) {
                let in_chain = self.rng.one_in(2);
                self.attachment(in_chain);
                continue;
            }
            let text = self.text();
            let attachment = match self.rng.below(4) {
                0 => json!({"type": "hook_success", "hookName": "SessionStart", "content": text}),
                1 => {
                    json!({"type": "file", "filename": "a.rs", "content": {"type": "text", "uuid": "x"}})
                }
                2 => json!({"type": "task_reminder", "content": [], "itemCount": 0}),
                _ => json!({"type": "date", "date": "2026-11-20"}),
            };
            let mut members = vec![("attachment", attachment)];
            if self.rng.one_in(2) {
                let wrapped = format!("<system-reminder>\n{text}\n</system-reminder>");
                let role = *self.rng.pick(&["system", "system", "user"]);
                members.push(("rendered", json!([{"content": wrapped}])));
                members.push(("renderedRole", json!(role)));
            }
            if self.rng.one_in(4) {
                let leaf = self.leaf.clone();
                self.put("attachment", leaf.as_deref(), members);
            } else {
                self.append("attachment", members);
            }
        }
    }

    /// Writes an attachment with one or two stored texts, of a kind for which the role form matters.
    fn attachment(&mut self, in_chain: bool) {
        let kinds = ["file", "directory", "nested_memory", "queued_command"];
        let kind = *self
            .rng
            .pick(&[&kinds[..], &["remote_session_change", "date"]].concat());
        let mut texts = Vec::new();
        for _ in 0..self.rng.range(1, 2) {
            let text = match kind {
                "remote_session_change" => {
                    "Attribution for git commits and pull requests you create from here on: x"
                        .to_owned()
                }
                _ => self.text(),
            };
            let wrapped = format!("<system-reminder>\n{text}\n</system-reminder>");
            texts.push(json!({"content": wrapped}));
        }
        let role = *self.rng.pick(&["system", "user"]);
        let members = vec![
            ("attachment", json!({"type": kind})),
            ("rendered", json!(texts)),
            ("renderedRole", json!(role)),
        ];
        if in_chain {
            self.append("attachment", members);
        } else {
            let leaf = self.leaf.clone();
            self.put("attachment", leaf.as_deref(), members);
        }
    }

    fn chunk(&mut self, id: &str, block: &Value) -> Members {
        let message = json!({
            "model": self.model,
            "id": id,
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": null,
            "usage": {"input_tokens": 10, "output_tokens": self.rng.below(500)},
        });
        let message = self.without_id(message);
        vec![
            ("message", message),
            ("requestId", json!(format!("req_{id}"))),
        ]
    }

    /// Changes some messages: they lose their id, or get a second block in the same line.
    fn without_id(&mut self, mut message: Value) -> Value {
        if self.rare(12) {
            match self.rng.below(3) {
                0 => message["id"] = Value::Null,
                1 => message["id"] = json!(""),
                _ => _ = message.as_object_mut().map(|message| message.remove("id")),
            }
        }
        if self.rare(10) {
            let more = match self.rng.below(4) {
                0 => json!({"type": "thinking", "thinking": "again", "signature": "c2ln"}),
                1 => json!({"type": "text", "text": *self.rng.pick(&["", " "])}),
                2 => {
                    json!({"type": "mcp_tool_use", "id": "mcp_1", "name": "q", "server_name": "s", "input": {}})
                }
                _ => json!({"type": "text", "text": self.text()}),
            };
            if let Some(blocks) = message["content"].as_array_mut() {
                blocks.push(more);
            }
        }
        message
    }

    fn message_id(&mut self) -> String {
        // Rarely an id is used again, in the same turn or in a later one.
        if self.messages > 0 && self.rare(8) {
            let earlier = self.messages - self.rng.below(self.messages.min(3));
            return format!("msg_{earlier:04}");
        }
        self.messages += 1;
        format!("msg_{:04}", self.messages)
    }

    fn thinking(&mut self, id: &str) {
        let block = if self.rng.one_in(6) {
            json!({"type": "redacted_thinking", "data": "c2VjcmV0"})
        } else {
            json!({"type": "thinking", "thinking": self.text(), "signature": "c2ln"})
        };
        let chunk = self.chunk(id, &block);
        self.append("assistant", chunk);
    }

    fn closing_message(&mut self) {
        let id = self.message_id();
        if self.rng.one_in(4) {
            self.thinking(&id);
        }
        if self.rare(8) {
            let kind = *self.rng.pick(&["mcp_tool_use", "server_tool_use"]);
            let block = json!({"type": kind, "id": format!("srv_{id}"), "name": "q", "input": {}});
            let chunk = self.chunk(&id, &block);
            self.append("assistant", chunk);
            if self.rng.one_in(2) {
                return;
            }
        }
        let chunk = match self.rng.below(12) {
            0 => self.chunk(&id, &json!({"type": "server_tool_use", "id": format!("srv_{id}"), "name": "web_search", "input": {"query": "q"}})),
            1 => self.chunk(&id, &json!({"type": "web_search_tool_result", "tool_use_id": format!("srv_{id}"), "content": []})),
            _ => {
                let text = self.text();
                self.chunk(&id, &json!({"type": "text", "text": text}))
            }
        };
        self.append("assistant", chunk);
    }

    /// Writes a message that calls tools, and their results.
    fn tool_message(&mut self) {
        let id = self.message_id();
        if self.rng.one_in(4) {
            self.thinking(&id);
        }
        if self.rng.one_in(3) {
            let block = json!({"type": "text", "text": self.text()});
            let chunk = self.chunk(&id, &block);
            self.append("assistant", chunk);
        }
        if self.rare(6) {
            let block = json!({"type": "text", "text": "\n\n"});
            let chunk = self.chunk(&id, &block);
            self.append("assistant", chunk);
        }
        match self.rng.below(6) {
            0..=1 => self.comb(&id),
            2 => self.serial(&id),
            _ => {
                let call = self.call(&id);
                self.progress();
                self.result(&call);
                self.attachments();
            }
        }
    }

    /// Writes parallel tools in comb layout: all calls, then the results, each a child of its call.
    fn comb(&mut self, id: &str) {
        let mut calls: Vec<(String, String)> = Vec::new();
        for _ in 0..self.rng.range(2, 4) {
            calls.push(self.call(id));
            self.within_message(id);
        }
        if self.rng.one_in(2) {
            self.rng.shuffle(&mut calls);
        }
        // In old clients the last call is the parent of all results.
        let on_last = self.habits.old_client && self.rng.one_in(3);
        let last = self.leaf.clone();
        for call in &calls {
            if self.rng.one_in(12) {
                continue;
            }
            self.leaf = if on_last {
                last.clone()
            } else {
                Some(call.0.clone())
            };
            self.progress();
            self.result(call);
            if self.today(3) {
                self.beside();
            }
            self.within_turn(&calls);
            if self.rng.one_in(4) {
                self.attachments();
            }
        }
    }

    /// Writes what may be between the lines of one message: a text after a call, a pin.
    fn within_message(&mut self, id: &str) {
        if self.rare(6) {
            let text = self.text();
            let chunk = self.chunk(id, &json!({"type": "text", "text": text}));
            self.append("assistant", chunk);
        }
        if self.rare(8) {
            self.thinking(id);
        }
        if !self.habits.old_client && self.rare(5) {
            self.plain_pin();
        }
    }

    /// Writes what may be between the results of parallel calls: a pin on one of them or on a call,
    /// or attachments that are children of one of them.
    fn within_turn(&mut self, calls: &[(String, String)]) {
        if self.habits.old_client || !self.rare(2) {
            return;
        }
        let after = self.leaf.clone();
        if self.rng.one_in(2) {
            self.leaf = Some(self.rng.pick(calls).0.clone());
        }
        match self.rng.below(4) {
            0..=1 => self.plain_pin(),
            2 => self.attachment(false),
            _ => {
                self.attachment(true);
                self.attachment(false);
            }
        }
        self.leaf = after;
    }

    /// Writes parallel tools in serial layout: each call is a child of the result before it.
    fn serial(&mut self, id: &str) {
        for _ in 0..self.rng.range(2, 4) {
            let call = self.call(id);
            self.within_message(id);
            self.result(&call);
            if self.today(4) {
                self.beside();
            }
            self.within_turn(std::slice::from_ref(&call));
        }
    }

    /// Writes one tool call. Returns the uuid of its line and the id of the call.
    fn call(&mut self, id: &str) -> (String, String) {
        self.tools += 1;
        let tool = format!("toolu_{:04}", self.tools);
        let mut name = "Bash";
        let input = match self.rng.below(3) {
            _ if self.today(4) => {
                let (of_today, input) = self.call_of_today();
                name = of_today;
                input
            }
            0 => json!({"command": self.text(), "description": "d"}),
            1 => json!({"todos": [{"id": "1", "type": "tool_use", "uuid": "u"}]}),
            _ => json!({"file_path": "/home/dev/work/a.rs", "tool_use_id": "toolu_none"}),
        };
        let chunk = self.chunk(
            id,
            &json!({"type": "tool_use", "id": tool, "name": name, "input": input}),
        );
        (self.append("assistant", chunk), tool)
    }

    /// Writes progress lines of old clients, in the chain or outside it.
    fn progress(&mut self) {
        if !self.habits.old_client {
            return;
        }
        for _ in 0..self.rng.below(3) {
            let data =
                json!({"type": "bash_progress", "output": self.text(), "elapsedTimeSeconds": 3});
            let members = if self.rng.one_in(2) {
                hook_progress()
            } else {
                vec![("data", data)]
            };
            if self.rng.one_in(2) {
                self.append("progress", members);
            } else {
                let leaf = self.leaf.clone();
                self.put("progress", leaf.as_deref(), members);
            }
        }
    }

    /// Writes the result of a call as a child of the leaf.
    fn result(&mut self, call: &(String, String)) {
        if self.rng.one_in(25) {
            return;
        }
        let text = self.text();
        let content = match self.rng.below(4) {
            0 if self.rare(2) => self.rare_result(&text),
            0 => json!([{"type": "text", "text": text}]),
            1 if self.rng.one_in(4) => json!([]),
            _ => json!(text),
        };
        let block = json!({
            "tool_use_id": call.1,
            "type": "tool_result",
            "content": content,
            "is_error": self.rng.one_in(6),
        });
        let result =
            json!({"stdout": text, "uuid": "look-alike", "message": {"id": "msg_look_alike"}});
        self.append(
            "user",
            vec![
                ("message", json!({"role": "user", "content": [block]})),
                ("toolUseResult", result),
                ("sourceToolAssistantUUID", json!(call.0)),
            ],
        );
        // A fast tool can finish before its call is written.
        let count = self.lines.len();
        if count >= 2 && self.rng.one_in(20) {
            self.lines.swap(count - 2, count - 1);
        }
    }

    /// Returns the content of a result that takes no reminders, or that is reduced when the call
    /// failed.
    fn rare_result(&mut self, text: &str) -> Value {
        let text = json!({"type": "text", "text": text});
        let found = json!({"type": "search_result", "source": "s", "title": "t", "content": []});
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL_PNG}});
        let tool = self.referenced_tool();
        let reference = json!({"type": "tool_reference", "tool_name": tool});
        let gone = json!({"type": "tool_reference", "tool_name": "Gone"});
        match self.rng.below(8) {
            0 => json!([reference]),
            1 => json!([reference, gone]),
            2 => json!([text, reference]),
            3 => json!([gone, text]),
            4 => json!([found]),
            5 => json!([image]),
            6 => json!([text, image]),
            _ => Value::Null,
        }
    }

    fn bare_answer(&mut self) {
        let id = self.message_id();
        self.thinking(&id);
    }

    fn api_error(&mut self) {
        let message = json!({
            "id": uuid(&mut self.rng),
            "model": "<synthetic>",
            "role": "assistant",
            "content": [{"type": "text", "text": "API Error: 529 overloaded"}],
        });
        let members = vec![("message", message), ("isApiErrorMessage", json!(true))];
        self.append("assistant", members);
    }

    /// Writes a user message that no person typed: meta, virtual, or visible in the transcript only.
    fn odd_user(&mut self) {
        let flag = *self
            .rng
            .pick(&["isMeta", "isVirtual", "isVisibleInTranscriptOnly"]);
        let text = *self.rng.pick(&[
            "<local-command-caveat>Caveat</local-command-caveat>",
            "<command-name>/cost</command-name>",
            "[Request interrupted by user]",
        ]);
        let message = json!({"role": "user", "content": text});
        self.append("user", vec![("message", message), (flag, json!(true))]);
    }

    fn system_line(&mut self) {
        let mut members = match self.rng.below(6) {
            0 => vec![
                ("subtype", json!("local_command")),
                (
                    "content",
                    json!("<local-command-stdout>out</local-command-stdout>"),
                ),
            ],
            1 => vec![
                ("subtype", json!("informational")),
                ("content", json!(self.text())),
            ],
            2 => vec![
                ("subtype", json!("api_error")),
                ("error", json!({"status": 529, "type": "user", "uuid": "x"})),
            ],
            3 => vec![
                ("subtype", json!("stop_hook_summary")),
                ("hookCount", json!(1)),
            ],
            4 => vec![
                ("subtype", json!("microcompact_boundary")),
                ("microcompactMetadata", json!({"trigger": "auto"})),
            ],
            _ => vec![
                ("subtype", json!("turn_duration")),
                ("durationMs", json!(self.rng.below(90_000))),
            ],
        };
        members.push(("isMeta", json!(self.rng.one_in(2))));
        if self.rng.one_in(8) {
            let leaf = self.leaf.clone();
            self.put("system", leaf.as_deref(), members);
        } else {
            self.append("system", members);
        }
    }

    /// Rewinds to an earlier entry; the entries after it become an abandoned branch.
    fn rewind(&mut self) {
        let Some(place) = self.earlier() else { return };
        self.leaf = Some(self.known[place].uuid.clone());
        if !self.habits.old_client && self.rng.one_in(3) {
            self.pin_to(ZERO_UUID, true);
        }
        self.turn();
    }

    /// Returns the place of an earlier entry, as a rule one of the last eight.
    fn earlier(&mut self) -> Option<usize> {
        let count = self.known.len();
        let reach = if self.rng.one_in(4) {
            count
        } else {
            count.min(8)
        };
        let place = (count > 0).then(|| count - 1 - self.rng.below(reach))?;
        Some(place.max(self.first_known).min(count - 1))
    }

    // ---------------------------------------------------------------------------------------------
    // Compaction
    // ---------------------------------------------------------------------------------------------

    fn compaction(&mut self) {
        if self.rare(2) {
            self.pin();
        }
        let before = self.leaf.clone();
        let summary_uuid = uuid(&mut self.rng);
        let boundary_uuid = uuid(&mut self.rng);
        let anchor = if self.rng.one_in(5) {
            &boundary_uuid
        } else {
            &summary_uuid
        };
        let mut kept = self.last_of_chain();
        if self.rng.one_in(8) {
            // One of the preserved entries was never written.
            let at = self.rng.below(kept.len());
            kept.insert(at, uuid(&mut self.rng));
        }
        let tail = kept.last().cloned();
        let segment = json!({"headUuid": kept.first(), "anchorUuid": anchor, "tailUuid": tail});
        let messages = json!({"anchorUuid": anchor, "uuids": kept, "allUuids": kept});
        let mut metadata = json!({"trigger": "auto", "preTokens": 155_000});
        let mut preserves = true;
        let mut clears = false;
        match self.rng.below(7) {
            0..=1 => {
                metadata["preservedSegment"] = segment;
                metadata["preservedMessages"] = messages;
            }
            2 => metadata["preservedMessages"] = messages,
            3..=4 => metadata["preservedSegment"] = segment,
            5 if self.rng.one_in(2) => {
                metadata["preservedSegment"] = segment;
                metadata["preservedMessages"] =
                    json!({"anchorUuid": anchor, "uuids": [], "allUuids": []});
                clears = true;
            }
            _ => {
                preserves = false;
                clears = self.has_preserved;
            }
        }
        self.has_preserved |= preserves;
        if clears && self.habits.forgets {
            self.first_known = self.known.len();
        }

        let parent = if self.rng.one_in(12) {
            before.clone()
        } else {
            None
        };
        let boundary = vec![
            ("subtype", json!("compact_boundary")),
            ("content", json!("Conversation compacted")),
            ("level", json!("info")),
            ("logicalParentUuid", json!(before)),
            ("compactMetadata", metadata),
        ];
        self.put_with_uuid(&boundary_uuid, "system", parent.as_deref(), boundary);
        if self.rng.one_in(12) || self.rare(4) {
            // The client was killed before it wrote the summary.
            self.leaf = if self.rng.one_in(2) {
                before
            } else {
                Some(boundary_uuid)
            };
            return;
        }
        self.leaf = Some(boundary_uuid);
        if self.rng.one_in(5) {
            self.attachments();
        }
        let leaf = self.leaf.take();
        let message = json!({"role": "user", "content": "This session is being continued from a previous conversation"});
        let summary = vec![
            ("message", message),
            ("isCompactSummary", json!(true)),
            ("isVisibleInTranscriptOnly", json!(true)),
        ];
        self.put_with_uuid(&summary_uuid, "user", leaf.as_deref(), summary);
        let follows_tail = preserves && self.rng.one_in(4);
        self.leaf = if follows_tail {
            tail
        } else {
            Some(summary_uuid)
        };
        if self.rng.one_in(3) {
            self.attachments();
        }
    }

    /// Writes an entry with a uuid that was chosen before. The line is never lost or malformed.
    fn put_with_uuid(
        &mut self,
        uuid: &str,
        kind: &'static str,
        parent: Option<&str>,
        more: Members,
    ) {
        let mut members: Members = vec![
            ("parentUuid", json!(parent)),
            ("isSidechain", json!(self.agent.is_some())),
            ("sessionId", json!(self.session_id)),
            ("type", json!(kind)),
        ];
        members.extend(more);
        members.push(("uuid", json!(uuid)));
        members.extend(self.timestamp().map(|time| ("timestamp", time)));
        self.push(&members);
        let parent = parent.map(str::to_owned);
        self.known.push(Known {
            uuid: uuid.to_owned(),
            parent,
            members,
        });
    }

    /// Returns the last one to five uuids of the chain, oldest first.
    fn last_of_chain(&mut self) -> Vec<String> {
        let count = self.rng.range(1, 5);
        let mut uuids = Vec::new();
        let mut next = self.leaf.clone();
        while let Some(uuid) = next.filter(|_| uuids.len() < count) {
            let entry = self.known.iter().find(|known| known.uuid == uuid);
            next = entry.and_then(|known| known.parent.clone());
            uuids.push(uuid);
        }
        if uuids.is_empty() {
            uuids.push(uuid(&mut self.rng));
        }
        uuids.reverse();
        uuids
    }

    // ---------------------------------------------------------------------------------------------
    // Outside the chain
    // ---------------------------------------------------------------------------------------------

    /// Writes the entries of a subagent into the same file.
    fn sidechain(&mut self) {
        if self.habits.agent_file {
            return self.turn();
        }
        let main = self.leaf.take();
        self.leaf = main.clone().filter(|_| self.rng.one_in(4));
        self.agent = Some(format!("a{:07x}", self.rng.below(1 << 28)));
        self.prompt();
        for _ in 0..self.rng.below(3) {
            self.tool_message();
        }
        self.closing_message();
        self.agent = None;
        if !self.rng.one_in(8) {
            self.leaf = main;
        }
    }

    /// Writes the pin that a client writes at the end of a turn.
    fn plain_pin(&mut self) {
        if let Some(leaf) = self.leaf.clone() {
            self.pin_to(&leaf, false);
        }
    }

    /// Writes a pin to any entry, which may not exist.
    fn pin(&mut self) {
        let place = self.earlier().map(|place| self.known[place].uuid.clone());
        let explicit = self.rng.one_in(3);
        match (self.rng.below(8), place) {
            (0, _) => self.push(&vec![
                ("type", json!("last-prompt")),
                ("lastPrompt", json!("no pin")),
                ("sessionId", json!(self.session_id)),
            ]),
            (1, _) => {
                let unknown = uuid(&mut self.rng);
                self.pin_to(&unknown, explicit);
            }
            (2, _) => self.pin_to(ZERO_UUID, true),
            (_, Some(uuid)) => self.pin_to(&uuid, explicit),
            (_, None) => {}
        }
    }

    fn pin_to(&mut self, uuid: &str, explicit: bool) {
        let mut members = vec![
            ("type", json!("last-prompt")),
            ("lastPrompt", json!(self.text())),
            ("leafUuid", json!(uuid)),
        ];
        if explicit || self.rng.one_in(6) {
            members.push(("explicit", json!(explicit)));
        }
        members.push(("sessionId", json!(self.session_id)));
        self.push(&members);
    }

    fn queue_operation(&mut self, operation: &str) {
        let mut members = vec![
            ("type", json!("queue-operation")),
            ("operation", json!(operation)),
        ];
        if operation == "enqueue" {
            members.push(("content", json!(self.text())));
        }
        members.push(("sessionId", json!(self.session_id)));
        members.extend(self.timestamp().map(|time| ("timestamp", time)));
        self.push(&members);
    }

    /// Writes a metadata line.
    fn side_line(&mut self) {
        let id = uuid(&mut self.rng);
        let leaf = self.leaf.clone();
        let (kind, more) = match self.rng.below(10) {
            0 => return self.queue_operation("remove"),
            1 => (
                "summary",
                vec![("summary", json!(self.text())), ("leafUuid", json!(leaf))],
            ),
            2 => ("custom-title", vec![("customTitle", json!(self.text()))]),
            3 => ("ai-title", vec![("aiTitle", json!(self.text()))]),
            4 => ("mode", vec![("mode", json!("plan"))]),
            5 => (
                "permission-mode",
                vec![("permissionMode", json!("default"))],
            ),
            6 => (
                "file-history-snapshot",
                vec![
                    ("messageId", json!(id)),
                    (
                        "snapshot",
                        json!({"messageId": id, "timestamp": "2026-11-20T10:00:00.000Z", "trackedFileBackups": {}}),
                    ),
                    ("isSnapshotUpdate", json!(false)),
                ],
            ),
            7 => ("tag", vec![("tag", json!("later"))]),
            8 => (
                "pr-link",
                vec![
                    ("prNumber", json!(7)),
                    ("prUrl", json!("https://example.com/7")),
                ],
            ),
            _ => (
                "api-request",
                vec![("id", json!(id)), ("keep", json!(3)), ("tail", json!([]))],
            ),
        };
        let mut members = vec![("type", json!(kind))];
        members.extend(more);
        members.push(("sessionId", json!(self.session_id)));
        self.push(&members);
    }

    /// Writes an entry of an unknown type with ids, in the chain or outside it.
    fn unknown_line(&mut self) {
        let members = vec![(
            "payload",
            json!({"type": "user", "message": {"content": "x"}}),
        )];
        if self.rng.one_in(2) {
            self.append("future-kind", members);
        } else {
            let leaf = self.leaf.clone();
            self.put("future-kind", leaf.as_deref(), members);
        }
    }

    /// Writes an entry a second time: unchanged, or with another body, time or parent.
    fn repeat(&mut self) {
        let Some(place) = self.earlier() else { return };
        let other = uuid(&mut self.rng);
        let other_parent = match self.earlier() {
            Some(parent) if self.rng.one_in(2) => self.known[parent].uuid.clone(),
            _ => other,
        };
        let change = self.rng.below(5);
        let mut members = self.known[place].members.clone();
        let later = self.timestamp();
        for (name, value) in &mut members {
            match (change, *name) {
                (1, "message") if value["content"].is_string() => {
                    value["content"] = json!(self.text());
                }
                (1, "message") => value["stop_reason"] = json!("end_turn"),
                (2, "timestamp") => *value = later.clone().unwrap_or(Value::Null),
                (3, "parentUuid") => *value = json!(other_parent),
                _ => {}
            }
        }
        self.push(&members);
    }
}

fn hook_progress() -> Members {
    let data = json!({"type": "hook_progress", "hookEvent": "PostToolUse", "command": "true"});
    vec![("data", data), ("toolUseID", json!("toolu_hook"))]
}

/// Returns a random uuid of version 4.
pub(crate) fn uuid(rng: &mut Rng) -> String {
    let (high, low) = (rng.next_u64(), rng.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFF,
        0x8000 | low >> 48 & 0x3FFF,
        low & 0xFFFF_FFFF_FFFF,
    )
}

/// Returns the string `id` as JSON, with its first character written as an escape.
fn escaped(id: &str) -> String {
    let json = Value::from(id).to_string();
    match id.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() => {
            format!("\"\\u{:04x}{}", u32::from(first), &json[2..])
        }
        _ => json,
    }
}

/// Returns the time `millis` after midnight of 2026-11-20. A session takes less than ten days.
fn written_time(millis: i64) -> String {
    let (day, time) = (20 + millis / 86_400_000, millis % 86_400_000);
    let (minutes, rest) = (time / 60_000, time % 60_000);
    format!(
        "2026-11-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        minutes / 60,
        minutes % 60,
        rest / 1000,
        rest % 1000
    )
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};
    use std::ops::Range;

    use super::*;

    const SEEDS: Range<u64> = 0..300;

    fn lines(bytes: &[u8]) -> Vec<&[u8]> {
        let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        whole.split(|byte| *byte == b'\n').collect()
    }

    #[test]
    fn equal_seeds_give_equal_bytes_and_others_do_not() {
        for seed in SEEDS {
            assert_eq!(session(seed), session(seed));
            assert_ne!(session(seed), session(seed + 1));
        }
    }

    #[test]
    fn a_session_has_5_to_300_lines_and_all_but_blank_ones_are_objects() {
        let mut counts = HashSet::new();
        for seed in SEEDS {
            let bytes = session(seed);
            let lines = lines(&bytes);
            counts.insert(lines.len());
            assert!(
                (5..=300).contains(&lines.len()),
                "seed {seed}: {}",
                lines.len()
            );
            for line in lines {
                let value: Option<Value> = serde_json::from_slice(line).ok();
                assert!(
                    line.trim_ascii().is_empty() || value.is_some_and(|value| value.is_object())
                );
            }
        }
        assert!(
            counts.contains(&5) && counts.iter().any(|count| *count > 250),
            "{counts:?}"
        );
    }

    #[test]
    fn unique_sessions_never_write_a_uuid_twice() {
        for seed in SEEDS {
            let mut seen = HashSet::new();
            for line in lines(&session_of_unique_uuids(seed)) {
                let Ok(value) = serde_json::from_slice::<Value>(line) else {
                    continue;
                };
                if value.get("isSidechain").is_some() {
                    let uuid = value["uuid"]
                        .as_str()
                        .expect("every entry has a uuid")
                        .to_owned();
                    assert!(!uuid.is_empty() && seen.insert(uuid), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn permuted_lines_are_the_same_lines() {
        for seed in SEEDS {
            let bytes = session(seed);
            let permuted = permute_lines(&bytes, seed);
            let (mut before, mut after) = (lines(&bytes), lines(&permuted));
            assert_ne!(before, after, "seed {seed}");
            before.sort_unstable();
            after.sort_unstable();
            assert_eq!(before, after, "seed {seed}");
        }
    }

    /// A session, read from its bytes.
    struct Seen {
        text: String,
        entries: Vec<Value>,
        /// The place of the first entry with each uuid.
        places: HashMap<String, usize>,
    }

    impl Seen {
        fn new(bytes: &[u8]) -> Self {
            let entries = lines(bytes)
                .into_iter()
                .filter_map(|line| serde_json::from_slice(line).ok());
            let entries: Vec<Value> = entries.collect();
            let mut places = HashMap::new();
            for (place, entry) in entries.iter().enumerate() {
                places
                    .entry(text(entry, "uuid").to_owned())
                    .or_insert(place);
            }
            places.remove("");
            Self {
                text: String::from_utf8_lossy(bytes).into_owned(),
                entries,
                places,
            }
        }

        fn any(&self, test: impl Fn(&Value) -> bool) -> bool {
            self.entries.iter().any(test)
        }

        fn place(&self, uuid: &str) -> Option<usize> {
            self.places.get(uuid).copied()
        }

        /// Returns the parent, or `null`.
        fn parent(&self, entry: &Value) -> &Value {
            self.place(text(entry, "parentUuid"))
                .map_or(&Value::Null, |place| &self.entries[place])
        }

        fn has_child(&self, entry: &Value) -> bool {
            self.any(|child| text(child, "parentUuid") == text(entry, "uuid"))
        }

        fn is_before_its_parent(&self, entry: &Value) -> bool {
            let place = self.place(text(entry, "parentUuid"));
            place.is_some_and(|place| place > self.place(text(entry, "uuid")).unwrap_or(usize::MAX))
        }

        /// Returns how much older the entry is to which the client relinks an entry with a missing
        /// parent.
        fn relink_gap_millis(&self, entry: &Value) -> Option<i64> {
            if text(entry, "parentUuid").is_empty() || !self.parent(entry).is_null() {
                return None;
            }
            let own = millis(text(entry, "timestamp"))?;
            let others = self
                .entries
                .iter()
                .filter(|e| e["isSidechain"] == false && *e != entry);
            let times = others.filter_map(|e| millis(text(e, "timestamp")));
            times
                .filter(|time| *time <= own)
                .max()
                .map(|newest| own - newest)
        }
    }

    /// Returns the milliseconds since the start of the month.
    fn millis(time: &str) -> Option<i64> {
        let number = |range: Range<usize>| time.get(range)?.parse::<i64>().ok();
        let hours = number(8..10)? * 24 + number(11..13)?;
        Some(((hours * 60 + number(14..16)?) * 60 + number(17..19)?) * 1000 + number(20..23)?)
    }

    fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
        entry[name].as_str().unwrap_or_default()
    }

    fn result_holds(entry: &Value, kind: &str) -> bool {
        let content = &entry["message"]["content"][0]["content"];
        let mut inner = content.as_array().into_iter().flatten();
        has_block(entry, "tool_result") && inner.any(|block| block["type"] == kind)
    }

    fn has_block(entry: &Value, kind: &str) -> bool {
        entry["message"]["content"][0]["type"] == kind
    }

    /// Returns whether both are calls of one message.
    fn are_calls_of_one(entry: &Value, other: &Value) -> bool {
        has_block(entry, "tool_use")
            && has_block(other, "tool_use")
            && entry["message"]["id"] == other["message"]["id"]
    }

    fn is_pin(entry: &Value) -> bool {
        entry["type"] == "last-prompt" && entry["leafUuid"].is_string()
    }

    fn preserves(entry: &Value, messages: bool, segment: bool) -> bool {
        let metadata = &entry["compactMetadata"];
        metadata.is_object()
            && metadata["preservedMessages"].is_object() == messages
            && metadata["preservedSegment"].is_object() == segment
    }

    type Feature = (&'static str, fn(&Seen, &Value) -> bool);
    type Spelling = (&'static str, fn(&str) -> bool);

    /// Features that single entries show; the tests count how often they occur.
    const FEATURES: [Feature; 85] = [
        ("plain prompt", |_, e| {
            e["type"] == "user" && e["message"]["content"].is_string()
        }),
        ("prompt of blocks", |_, e| {
            e["type"] == "user" && has_block(e, "text")
        }),
        ("thinking", |_, e| has_block(e, "thinking")),
        ("redacted thinking", |_, e| {
            has_block(e, "redacted_thinking")
        }),
        ("server tool", |_, e| has_block(e, "server_tool_use")),
        ("comb", |s, e| are_calls_of_one(e, s.parent(e))),
        ("serial", |s, e| {
            let above = s.parent(e);
            has_block(above, "tool_result") && are_calls_of_one(e, s.parent(above))
        }),
        ("call without result", |s, e| {
            let id = &e["message"]["content"][0]["id"];
            let has_result = |r: &Value| r["message"]["content"][0]["tool_use_id"] == *id;
            has_block(e, "tool_use") && !s.any(has_result)
        }),
        ("attachment", |_, e| {
            e["type"] == "attachment" && e.get("rendered").is_none()
        }),
        ("rendered attachment", |_, e| e["rendered"].is_array()),
        ("attachment in chain", |s, e| {
            e["type"] == "attachment" && s.has_child(e)
        }),
        ("attachment outside chain", |s, e| {
            e["type"] == "attachment" && !s.has_child(e)
        }),
        ("progress in chain", |s, e| {
            e["type"] == "progress" && s.has_child(e)
        }),
        ("progress outside chain", |s, e| {
            e["type"] == "progress" && !s.has_child(e)
        }),
        ("system line", |_, e| e["subtype"] == "turn_duration"),
        ("local command", |_, e| e["subtype"] == "local_command"),
        ("plain pin", |s, e| {
            is_pin(e) && s.place(text(e, "leafUuid")).is_some() && e["explicit"] != true
        }),
        ("explicit pin", |s, e| {
            s.place(text(e, "leafUuid")).is_some() && e["explicit"] == true
        }),
        ("zero pin", |_, e| is_pin(e) && e["leafUuid"] == ZERO_UUID),
        ("pin on nothing", |s, e| {
            is_pin(e) && e["leafUuid"] != ZERO_UUID && s.place(text(e, "leafUuid")).is_none()
        }),
        ("last-prompt without a pin", |_, e| {
            e["type"] == "last-prompt" && !is_pin(e)
        }),
        ("rewind", |s, e| {
            let is_prompt = |e: &Value| e["type"] == "user" && !has_block(e, "tool_result");
            let is_rival = |o: &Value| {
                is_prompt(o) && o["parentUuid"] == e["parentUuid"] && o["uuid"] != e["uuid"]
            };
            is_prompt(e) && !s.parent(e).is_null() && s.any(is_rival)
        }),
        ("sidechain", |s, e| {
            e["isSidechain"] == true && s.any(|e| e["isSidechain"] == false)
        }),
        ("agent file", |s, e| {
            e["isSidechain"] == true && !s.any(|e| e["isSidechain"] == false)
        }),
        ("main under sidechain", |s, e| {
            e["isSidechain"] == false && s.parent(e)["isSidechain"] == true
        }),
        ("compaction, both", |_, e| preserves(e, true, true)),
        ("compaction, messages", |_, e| preserves(e, true, false)),
        ("compaction, segment", |_, e| preserves(e, false, true)),
        ("compaction, nothing", |_, e| preserves(e, false, false)),
        ("compaction, empty list", |_, e| {
            e["compactMetadata"]["preservedMessages"]["uuids"] == json!([])
        }),
        ("two compactions", |s, e| {
            e["subtype"] == "compact_boundary" && s.any(|o| o["subtype"] == e["subtype"] && o != e)
        }),
        ("boundary under a parent", |s, e| {
            e["subtype"] == "compact_boundary" && !s.parent(e).is_null()
        }),
        ("boundary as a tip", |s, e| {
            e["subtype"] == "compact_boundary" && !s.has_child(e)
        }),
        ("summary", |s, e| {
            e["isCompactSummary"] == true && s.parent(e)["subtype"] == "compact_boundary"
        }),
        ("second root", |s, e| {
            let is_root = |e: &Value| {
                e["type"] == "user" && text(e, "parentUuid").is_empty() && e["isSidechain"] == false
            };
            is_root(e) && s.any(|o| is_root(o) && o["uuid"] != e["uuid"])
        }),
        ("repeated line", |s, e| {
            s.entries
                .iter()
                .filter(|o| *o == e && o["uuid"].is_string())
                .count()
                > 1
        }),
        ("repeated uuid", |s, e| {
            s.any(|o| !text(e, "uuid").is_empty() && o["uuid"] == e["uuid"] && o != e)
        }),
        ("child before parent", |s, e| s.is_before_its_parent(e)),
        ("result before call", |s, e| {
            has_block(e, "tool_result") && s.is_before_its_parent(e)
        }),
        ("queue operation", |_, e| e["type"] == "queue-operation"),
        ("title", |_, e| e["type"] == "custom-title"),
        ("snapshot", |_, e| e["type"] == "file-history-snapshot"),
        ("unknown type", |_, e| e["type"] == "future-kind"),
        ("no timestamp", |_, e| {
            e["type"] == "user" && e.get("timestamp").is_none()
        }),
        ("bad timestamp", |_, e| e["timestamp"] == "garbage"),
        ("odd uuid", |_, e| (1..36).contains(&text(e, "uuid").len())),
        ("no uuid", |_, e| {
            e["type"] == "user" && e.get("uuid").is_none()
        }),
        ("null uuid", |_, e| {
            e.get("uuid").is_some_and(Value::is_null)
        }),
        ("empty uuid", |_, e| e["uuid"] == ""),
        ("no parentUuid", |_, e| {
            e["type"] == "user" && e.get("parentUuid").is_none()
        }),
        ("api error", |_, e| e["isApiErrorMessage"] == true),
        ("virtual user", |_, e| e["isVirtual"] == true),
        ("meta user", |_, e| {
            e["type"] == "user" && e["isMeta"] == true
        }),
        ("relink", |s, e| {
            s.relink_gap_millis(e).is_some_and(|gap| gap < 5_000)
        }),
        ("relink over 5,000 ms", |s, e| {
            s.relink_gap_millis(e) == Some(5_000)
        }),
        ("no relink over 5,001 ms", |s, e| {
            s.relink_gap_millis(e) == Some(5_001)
        }),
        ("team", |_, e| e["teamName"].is_string()),
        ("pin on a parallel call or result", |s, e| {
            let pinned = s.place(text(e, "leafUuid")).map(|place| &s.entries[place]);
            let is_parallel =
                |e: &Value| s.any(|o| are_calls_of_one(e, o) || are_calls_of_one(o, e));
            e["type"] == "last-prompt"
                && pinned.is_some_and(|e| is_parallel(e) || is_parallel(s.parent(e)))
        }),
        ("pin before a boundary", |s, e| {
            let place = |kind: &str, value: &str| s.entries.iter().position(|e| e[kind] == value);
            e["subtype"] == "compact_boundary"
                && place("type", "last-prompt") < place("subtype", "compact_boundary")
                && place("type", "last-prompt").is_some()
        }),
        ("attachments under a call and a result", |s, e| {
            let parent = s.parent(e);
            e["type"] == "attachment"
                && has_block(parent, "tool_use")
                && s.any(|o| o["type"] == "attachment" && has_block(s.parent(o), "tool_result"))
        }),
        ("loaded tool", |_, e| result_holds(e, "tool_reference")),
        ("found document in a result", |_, e| {
            result_holds(e, "search_result")
        }),
        ("image in a result", |_, e| result_holds(e, "image")),
        ("result without content", |_, e| {
            has_block(e, "tool_result") && e["message"]["content"][0]["content"].is_null()
        }),
        ("text after a call", |s, e| {
            has_block(e, "text")
                && has_block(s.parent(e), "tool_use")
                && e["message"]["id"] == s.parent(e)["message"]["id"]
        }),
        ("several blocks in an answer", |_, e| {
            e["type"] == "assistant"
                && e["message"]["content"]
                    .as_array()
                    .is_some_and(|list| list.len() > 1)
        }),
        ("blank text before a call", |s, e| {
            has_block(e, "tool_use") && s.parent(e)["message"]["content"][0]["text"] == "\n\n"
        }),
        ("blank block of a user", |_, e| {
            e["type"] == "user" && e["message"]["content"][0]["text"] == " "
        }),
        ("command run by hand", |s, e| {
            let starts = |e: &Value, start: &str| text(&e["message"], "content").starts_with(start);
            starts(e, "<command-name>") && starts(s.parent(e), "<local-command-caveat>")
        }),
        ("mcp call", |_, e| has_block(e, "mcp_tool_use")),
        ("message id in two turns", |s, e| {
            let is_prompt = |e: &Value| e["type"] == "user" && e["message"]["content"].is_string();
            let id = &e["message"]["id"];
            e["type"] == "assistant"
                && id.is_string()
                && is_prompt(s.parent(e))
                && s.any(|o| {
                    o["message"]["id"] == *id
                        && is_prompt(s.parent(o))
                        && s.parent(o) != s.parent(e)
                })
        }),
        ("no message id", |_, e| {
            e["type"] == "assistant" && e["message"]["id"].as_str().is_none_or(str::is_empty)
        }),
        ("attachment of two texts", |_, e| {
            e["rendered"].as_array().is_some_and(|list| list.len() == 2)
        }),
        ("boundary last", |s, e| {
            e["subtype"] == "compact_boundary" && s.entries.last() == Some(e)
        }),
        ("no message", |s, _| !s.any(|e| e["message"].is_object())),
        ("meta line beside the chain", |s, e| {
            let parent = s.parent(e);
            e["type"] == "user"
                && e["isMeta"] == true
                && has_block(parent, "tool_result")
                && s.any(|o| o["parentUuid"] == e["parentUuid"] && o != e)
        }),
        ("note of the client", |_, e| e["ownNote"] == true),
        ("notification", |_, e| {
            e["origin"]["kind"] == "task-notification"
        }),
        ("output for the person", |_, e| e["isDisplayOnly"] == true),
        ("queued image", |_, e| {
            e["attachment"]["prompt"][1]["type"] == "image"
        }),
        ("mentioned image", |_, e| {
            e["attachment"]["content"]["type"] == "image"
        }),
        ("recorded tools", |_, e| {
            e["attachment"]["type"] == "deferred_tools_record"
        }),
        ("virtual attachment", |_, e| {
            e["type"] == "attachment" && e["isVirtual"] == true
        }),
        ("message to an agent", |_, e| {
            e["message"]["content"][0]["name"] == "SendMessage"
        }),
        ("two versions", |s, e| {
            e["version"] == "2.1.329" && s.any(|o| o["version"] == "2.1.331")
        }),
    ];

    /// Features that the bytes of a session show.
    const SPELLINGS: [Spelling; 6] = [
        ("CRLF", |text| text.contains("\r\n")),
        ("blank line", |text| text.contains("\n\n")),
        ("no final newline", |text| !text.ends_with('\n')),
        ("spaces", |text| text.contains("\"uuid\": ")),
        ("escaped uuid", |text| text.contains("\"uuid\":\"\\u")),
        ("uuid before parentUuid", |text| text.contains("{\"uuid\":")),
    ];

    #[test]
    fn every_feature_occurs_in_300_seeds() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in SEEDS {
            let seen = Seen::new(&session(seed));
            for (name, shows) in FEATURES {
                *counts.entry(name).or_default() += usize::from(seen.any(|e| shows(&seen, e)));
            }
            for (name, shows) in SPELLINGS {
                *counts.entry(name).or_default() += usize::from(shows(&seen.text));
            }
        }
        println!("{counts:#?}");
        assert!(
            counts.values().all(|count| *count >= 3),
            "too rare in {counts:#?}"
        );
    }
}
