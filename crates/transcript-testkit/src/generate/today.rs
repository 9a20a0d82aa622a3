//! Lines that only recent clients write.

use serde_json::{Value, json};
use transcript_format::client_tools::CLIENT_TOOLS;

use super::{Members, Writer, uuid};

const IMAGE: &str = super::PIXEL_PNG;

/// Attachments without stored texts, one for each shape that is sent in its own way.
fn attachments_to_render() -> Vec<Value> {
    let file = |content: Value| json!({"type": "file", "filename": "/w/a b", "content": content});
    let text = |content: &str, read: u32| {
        let file = json!({
            "filePath": "/w/a b", "content": content, "startLine": 1, "numLines": read,
            "totalLines": read,
        });
        json!({"type": "text", "file": file})
    };
    let image = json!({"type": "image", "file": {"base64": IMAGE, "type": "image/png"}});
    let cells = json!([
        {"cellType": "code", "cell_id": "c1", "source": "1", "language": "python",
            "outputs": [{"output_type": "stream", "text": "1\n"}]},
        {"cellType": "markdown", "cell_id": "c2", "source": "# T"},
    ]);
    let notebook = json!({"type": "notebook", "file": {"filePath": "/w/n.ipynb", "cells": cells}});
    let mut truncated = file(text("a\nb\n", 2));
    truncated["truncated"] = json!(true);
    let place = json!({"start": {"line": 0, "character": 2}});
    let diagnostics = json!([
        {"message": "M", "severity": "Error", "range": place, "code": "E1", "source": "ts"},
        {"message": "N", "severity": "Hint", "range": place},
    ]);
    vec![
        file(text("a\nb\n", 2)),
        file(text("", 0)),
        truncated,
        file(image),
        file(notebook),
        json!({"type": "directory", "path": "/w/it's", "content": "a\nb\n"}),
        json!({"type": "pdf_reference", "filename": "/w/d.pdf", "pageCount": 30, "fileSize": 2_202_010}),
        json!({"type": "edited_text_file", "filename": "/w/f", "snippet": ""}),
        json!({"type": "nested_memory", "path": "/w/x", "content": {"path": "/w/CLAUDE.md", "content": "MEM"}}),
        json!({"type": "relevant_memories", "memories": [
            {"path": "/w/m.md", "content": "A", "header": "H"},
            {"path": "/w/n.md", "content": "B", "header": "I"},
        ]}),
        json!({"type": "plan_mode_exit", "planFilePath": "/w/p.md", "planExists": true}),
        json!({"type": "auto_mode", "reminderType": "full"}),
        json!({"type": "skill_listing", "content": ""}),
        json!({"type": "invoked_skills", "skills": []}),
        json!({"type": "task_reminder", "content": [{"id": "1", "subject": "S", "status": "pending"}], "itemCount": 1}),
        json!({"type": "task_status", "taskId": "t", "taskType": "local_bash", "status": "running", "description": "d", "outputFilePath": "/o"}),
        json!({"type": "task_status", "taskId": "t", "taskType": "local_agent", "status": "completed", "description": "d", "deltaSummary": "x"}),
        json!({"type": "diagnostics", "files": [{"uri": "file:///w/f.ts", "diagnostics": diagnostics}]}),
        json!({"type": "mcp_resource", "server": "s", "uri": "u", "content": {"contents": [{"text": "R"}, {"blob": "QQ=="}]}}),
        json!({"type": "hook_success", "hookName": "SessionStart", "hookEvent": "SessionStart", "content": ""}),
        json!({"type": "hook_success", "hookName": "SessionStart", "hookEvent": "SessionStart", "content": "out"}),
        json!({"type": "hook_additional_context", "hookName": "PostToolUse", "content": []}),
        json!({"type": "queued_command", "prompt": "later", "commandMode": "prompt"}),
        json!({"type": "queued_command", "prompt": "done", "commandMode": "task-notification"}),
        json!({"type": "queued_command", "prompt": "hi", "isMeta": true}),
        json!({"type": "queued_command", "prompt": "hi", "origin": {"kind": "channel", "server": "s"}}),
        json!({"type": "deferred_tools_delta", "addedNames": [], "addedLines": [], "removedNames": ["X"]}),
    ]
}

/// A prompt with an image that was queued.
fn queued_image() -> Value {
    let source = json!({"type": "base64", "media_type": "image/png", "data": IMAGE});
    json!({"type": "queued_command", "prompt": [
        {"type": "text", "text": "look"},
        {"type": "image", "source": source},
    ]})
}

/// An attachment that records a tool of a server.
fn recorded_tool() -> Value {
    let schema = json!({"type": "object"});
    let tool = json!({
        "name": "mcp__s__q", "description": "d", "input_schema": schema, "defer_loading": true,
    });
    json!({"type": "deferred_tools_record", "entries": [tool]})
}

impl Writer {
    /// Returns true once in `n` times, but only in sessions of today.
    pub(super) fn today(&mut self, n: usize) -> bool {
        self.habits.today && self.rng.one_in(n)
    }

    /// Returns the version of the client that writes the next line.
    pub(super) fn version(&mut self) -> &'static str {
        if self.habits.old_client {
            "2.1.22"
        } else if self.habits.today && !self.rng.one_in(20) {
            "2.1.331"
        } else {
            "2.1.329"
        }
    }

    /// Writes a line that only clients of today write.
    pub(super) fn line_of_today(&mut self) {
        match self.rng.below(6) {
            0 => self.note(),
            1 => self.notification(),
            2 => self.output_for_the_person(),
            3 => {
                self.append("attachment", vec![("attachment", recorded_tool())]);
            }
            4 => {
                self.append("attachment", vec![("attachment", queued_image())]);
            }
            _ => {
                let in_chain = !self.rng.one_in(4);
                self.attachment_to_render(in_chain);
            }
        }
    }

    /// Writes a note of the client itself.
    fn note(&mut self) {
        let content = match self.rng.below(3) {
            0 => json!([{"type": "text", "text": "Output token limit hit. Resume."}]),
            1 => json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
            _ => json!("Output token limit hit. Resume."),
        };
        let members = vec![
            ("message", json!({"role": "user", "content": content})),
            ("isMeta", json!(!self.rng.one_in(6))),
            ("ownNote", json!(true)),
        ];
        self.append("user", members);
    }

    /// Writes the line that says that a background task ended.
    fn notification(&mut self) {
        let text = "<task-notification>done </System-Reminder ></task-notification>";
        let kind = *self
            .rng
            .pick(&["task-notification", "task-notification", "human"]);
        let members = vec![
            ("message", json!({"role": "user", "content": text})),
            ("origin", json!({"kind": kind})),
        ];
        self.append("user", members);
    }

    /// Writes the output of a command that only the person sees.
    fn output_for_the_person(&mut self) {
        let members = vec![
            ("subtype", json!("local_command")),
            (
                "content",
                json!("<local-command-stdout>art</local-command-stdout>"),
            ),
            ("isDisplayOnly", json!(!self.rng.one_in(4))),
        ];
        self.append("system", members);
    }

    /// Writes an attachment without stored texts.
    pub(super) fn attachment_to_render(&mut self, in_chain: bool) {
        let attachment = self.rng.pick(&attachments_to_render()).clone();
        let mut members = vec![("attachment", attachment)];
        if self.rng.one_in(8) {
            members.push(("isVirtual", json!(true)));
        }
        self.put_beside("attachment", members, in_chain);
    }

    /// Writes lines beside the chain: lines of the client below a call or a result, some of which lead
    /// to another line.
    pub(super) fn beside(&mut self) {
        let after = self.leaf.clone();
        for _ in 0..self.rng.range(1, 2) {
            match self.rng.below(4) {
                0 => self.attachment_to_render(true),
                1 => self.output_for_the_person(),
                _ => {
                    let message =
                        json!({"role": "user", "content": "Base directory for this skill"});
                    self.append("user", vec![("message", message), ("isMeta", json!(true))]);
                }
            }
        }
        if self.rng.one_in(5) {
            self.prompt();
        }
        self.leaf = after;
    }

    /// Returns the name and the input of a call whose input the client changes.
    pub(super) fn call_of_today(&mut self) -> (&'static str, Value) {
        match self.rng.below(3) {
            0 => {
                let input = json!({"to": "a", "message": "m", "type": "message", "content": "m"});
                ("SendMessage", input)
            }
            1 => (
                "Bash",
                json!({"n": 12_345_678_901_234_567_890_u64, "m": -0.0, "k": 1e-7}),
            ),
            _ => (
                "Bash",
                json!({"n": 9_007_199_254_740_993_u64, "m": 1.0, "k": 1e21}),
            ),
        }
    }

    /// Returns a tool that the result of a search refers to.
    pub(super) fn referenced_tool(&mut self) -> &'static str {
        let unknown = ["Gone", "mcp__s__q", "Glob"];
        let known = CLIENT_TOOLS.iter().map(|tool| tool.name);
        // As many unknown names as there are known ones.
        let known = known.chain(unknown.into_iter().cycle().take(CLIENT_TOOLS.len()));
        let names: Vec<&str> = known.collect();
        let at = self.rng.below(names.len());
        names[at]
    }

    /// Replaces the last lines by an end at which today's clients differ from earlier ones.
    pub(super) fn ending_of_today(&mut self) {
        match self.lines.len() {
            0..=12 => return,
            count => self.lines.truncate(count - 8),
        }
        match self.rng.below(3) {
            // A compaction that was stopped after the summary.
            0 => self.compaction(),
            // A pin after a compaction, and a branch.
            1 => {
                self.compaction();
                self.pin();
            }
            // Calls without results.
            _ => {
                for _ in 0..self.rng.range(1, 3) {
                    let id = self.message_id();
                    let call = self.call(&id);
                    match self.rng.below(3) {
                        0 => self.result(&call),
                        1 => self.attachment_to_render(true),
                        _ => {}
                    }
                }
            }
        }
        self.lines.truncate(self.habits.target_lines);
    }

    fn put_beside(&mut self, kind: &'static str, members: Members, in_chain: bool) {
        if in_chain {
            self.append(kind, members);
        } else {
            let leaf = self.leaf.clone();
            self.put(kind, leaf.as_deref(), members);
        }
    }

    /// Writes a session of lines of a command and attachments alone.
    pub(super) fn only_commands(mut self) -> Vec<u8> {
        let count = self.rng.range(5, 8);
        while self.lines.len() < count {
            match self.rng.below(3) {
                0 => self.attachment_to_render(true),
                1 => self.output_for_the_person(),
                _ => self.system_line(),
            }
        }
        if self.rng.one_in(3) {
            self.leaf = Some(uuid(&mut self.rng));
            self.system_line();
        }
        self.joined()
    }
}
