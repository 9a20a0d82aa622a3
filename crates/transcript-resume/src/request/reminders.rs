//! The texts of attachments: what the client reports to the model about its environment (NOTE-1).

use transcript_format::kind::AttachmentKind as Kind;
use transcript_format::object::{JsonKind, Object, Raw, Str};
use transcript_messages::block::kind_of;
use transcript_messages::text::{quoted, wrapped};
use transcript_messages::{Block, BlockKind, Log, Role, SyntheticKind};

/// The start of the one reminder that is never folded into a tool result (NOTE-5).
const ATTRIBUTION: &str = "<system-reminder>\nAttribution for git commits and pull requests you \
                           create from here on";

pub(super) fn is_attribution(block: &Block) -> bool {
    block.kind() == BlockKind::Text
        && block.json().contains("Attribution for git commits")
        && block
            .text_field()
            .is_some_and(|text| text.starts_with(ATTRIBUTION))
}

/// Returns what an attachment is sent as: a list of messages, each a list of text blocks. Empty
/// when nothing is sent.
pub(super) fn parts(object: &Object<'_>, origin: Option<usize>, log: &mut Log) -> Vec<Vec<Block>> {
    // The text that was sent the first time counts, whatever the attachment contains (NOTE-1).
    if let Some(stored) = stored_parts(object, origin) {
        return stored;
    }
    let attachment = AttachmentFields(object.get("attachment").and_then(Raw::object));
    let Some(text) = attachment.text() else {
        return Vec::new();
    };
    let wrapped = |text: &String| Block::plain_text(&wrapped(text)).with_origin(origin);
    let texts = match text {
        Text::Client(texts) => texts,
        Text::Own(text) => {
            let texts = vec![text];
            log.add_synthetic(
                SyntheticKind::Reminder,
                Role::User,
                &wrapped(&texts[0]),
                origin,
            );
            texts
        }
    };
    texts.iter().map(|text| vec![wrapped(text)]).collect()
}

/// Returns the parts under `rendered`; `None` when there are none or one is not all text (NOTE-1).
fn stored_parts(object: &Object<'_>, origin: Option<usize>) -> Option<Vec<Vec<Block>>> {
    let rendered = object.get("rendered")?.array()?;
    if rendered.is_empty() {
        return None;
    }
    let part = |part: Raw<'_>| {
        let content = part.object()?.get("content")?;
        if content.kind() == JsonKind::String {
            return Some(vec![Block::plain(content).with_origin(origin)]);
        }
        let blocks = content.array()?;
        let is_text = blocks
            .iter()
            .all(|block| kind_of(*block) == BlockKind::Text);
        is_text.then(|| {
            blocks
                .into_iter()
                .map(|block| Block::read(block).with_origin(origin))
                .collect()
        })
    };
    rendered.into_iter().map(part).collect()
}

/// Returns whether a reminder goes into a `role: system` message in the role form. Without a stored
/// role all do except the files that the user mentioned (NOTE-6).
pub(super) fn is_for_system_role(object: &Object<'_>) -> bool {
    match object.get("renderedRole").and_then(Raw::str) {
        Some(role) => role != "user",
        None => !matches!(kind(object), Kind::File | Kind::Directory),
    }
}

/// Returns whether a reminder contains a file, a folder or a memory file (NOTE-7).
pub(super) fn is_file(object: &Object<'_>) -> bool {
    matches!(
        kind(object),
        Kind::File | Kind::Directory | Kind::NestedMemory
    )
}

fn kind(object: &Object<'_>) -> Kind {
    let attachment = object.get("attachment").and_then(Raw::object);
    let kind = attachment.and_then(|attachment| attachment.get("type")?.str());
    Kind::from_name(&kind.unwrap_or_default())
}

pub(super) fn unwrapped(text: &str) -> &str {
    let inner = text
        .trim_end_matches('\n')
        .strip_prefix("<system-reminder>\n");
    inner
        .and_then(|text| text.strip_suffix("\n</system-reminder>"))
        .unwrap_or(text)
}

/// The text of an attachment without a stored one.
enum Text {
    /// The text of the client, one for each message.
    Client(Vec<String>),
    /// The client sends a text here that is known only in part: this one is ours.
    Own(String),
}

/// An object; without any members when there is none.
struct AttachmentFields<'a>(Option<Object<'a>>);

impl AttachmentFields<'_> {
    /// Returns the text that 2.1.329 sends for it; `None` for types of which it sends nothing
    /// (NOTE-9).
    fn text(&self) -> Option<Text> {
        let one = |text: String| Some(Text::Client(vec![text]));
        let ours = |text: String| Some(Text::Own(text));
        match Kind::from_name(&self.str("type")) {
            Kind::QueuedCommand => self.queued_command(),
            Kind::EditedTextFile => one(format!(
                "Note: {} changed on disk since you last read it. That's usually deliberate, so \
                 take it as the current state rather than reverting it; if the change looks \
                 wrong, say so rather than undoing it yourself — otherwise no need to call it \
                 out. Here are the relevant changes (shown with line numbers):\n{}",
                self.str("filename"),
                self.str("snippet")
            )),
            Kind::File => self.file(),
            Kind::Directory => Some(Text::Client(vec![
                format!(
                    "Called the Bash tool with the following input: \
                     {{\"command\":{},\"description\":{}}}",
                    quoted(&format!("ls {}", self.str("path"))),
                    quoted(&format!("Lists files in {}", self.str("path")))
                ),
                format!("Result of calling the Bash tool:\n{}", self.str("content")),
            ])),
            Kind::Diagnostics => self.diagnostics(),
            Kind::CompactFileReference => one(format!(
                "Note: {} was read before the last conversation was summarized, but the contents \
                 are too large to include. Use Read tool if you need to access it.",
                self.str("filename")
            )),
            Kind::PdfReference => one(format!(
                "PDF file: {} ({} pages, {} bytes). This PDF is too large to read all at once. \
                 You MUST use the Read tool with the pages parameter to read specific page ranges \
                 (e.g., pages: \"1-5\"). Do NOT call Read without the pages parameter or it will \
                 fail. Start by reading the first few pages to understand the structure, then \
                 read more as needed. Maximum 20 pages per request.",
                self.str("filename"),
                self.raw("pageCount"),
                self.raw("fileSize")
            )),
            Kind::SelectedLinesInIde => one(format!(
                "The user selected the lines {} to {} from {}:\n{}\n\nThis may or may not be \
                 related to the current task.",
                self.raw("lineStart"),
                self.raw("lineEnd"),
                self.str("filename"),
                self.str("content")
            )),
            Kind::OpenedFileInIde => one(format!(
                "The user opened the file {} in the IDE. This may or may not be related to the \
                 current task.",
                self.str("filename")
            )),
            Kind::NestedMemory => one(format!(
                "Contents of {}:\n\n{}",
                self.str("path"),
                self.within("content").str("content")
            )),
            Kind::RelevantMemories => {
                let memories = self.list("memories").into_iter();
                let memories = memories.map(|memory| {
                    let memory = AttachmentFields(memory.object());
                    format!("{}\n\n{}", memory.str("header"), memory.str("content"))
                });
                one(format!(
                    "Retrieved for possible relevance — use only if it actually applies to what \
                     the user asked.\n\n{}",
                    memories.collect::<Vec<_>>().join("\n\n")
                ))
            }
            Kind::PlanModeExit => one(
                "## Exited Plan Mode\n\nYou have exited plan mode. You can now make edits, run \
                 tools, and take actions."
                    .to_owned(),
            ),
            Kind::PlanFileReference => one(format!(
                "A plan file exists from plan mode at: {}\n\nPlan contents:\n\n{}\n\nIf this plan \
                 is relevant to the current work and not already complete, continue working on it.",
                self.str("planFilePath"),
                self.str("planContent")
            )),
            Kind::AutoModeExit => one(
                "## Exited Auto Mode\n\nYou have exited auto mode. The user may now want to \
                 interact more directly. You should ask clarifying questions when the approach is \
                 ambiguous rather than making assumptions."
                    .to_owned(),
            ),
            Kind::SkillListing => one(format!(
                "The following skills are available for use with the Skill tool:\n\n{}",
                self.str("content")
            )),
            Kind::OutputStyle => one(format!(
                "{} output style is active. Remember to follow the specific guidelines for this \
                 style.",
                self.str("style")
            )),
            Kind::McpResource => self.mcp_resource(),
            Kind::AgentMention => one(format!(
                "The user has expressed a desire to invoke the agent \"{}\". Please invoke the \
                 agent appropriately, passing in the required context to it. ",
                self.str("agentType")
            )),
            Kind::CriticalSystemReminder => one(self.str("content").into()),
            Kind::TotalTokensReminder => one(self.str("text").into()),
            Kind::Date => one(format!("Today's date is {}.", self.str("date"))),
            Kind::DateChange => one(format!(
                "The date has changed. Today's date is now {}. No need to announce the new date — \
                 the user's own clock shows it.",
                self.str("newDate")
            )),
            Kind::UltrathinkEffort => one(
                "The user included the keyword \"ultrathink\", requesting deeper reasoning on \
                 this turn. Reason as thoroughly as the task warrants."
                    .to_owned(),
            ),
            Kind::TaskStatus => one(format!(
                "Task {} (type: {}) (status: {}) (description: {}) Read the output file to \
                 retrieve the result: {}",
                self.str("taskId"),
                self.str("taskType"),
                self.str("status"),
                self.str("description"),
                self.str("outputFilePath")
            )),
            Kind::AgentListingDelta => one(self.agents()),
            Kind::McpInstructionsDelta => one(self.mcp_instructions()),
            Kind::DeferredToolsDelta => self.deferred_tools(),
            Kind::HookBlockingError => one(format!(
                "{} hook blocking error from command: \"{}\": {}",
                self.str("hookName"),
                self.within("blockingError").str("command"),
                self.within("blockingError").str("blockingError")
            )),
            // Only the two events whose output is meant for the model.
            Kind::HookSuccess
                if ["SessionStart", "UserPromptSubmit"].contains(&&*self.str("hookEvent")) =>
            {
                one(format!(
                    "{} hook success: {}",
                    self.str("hookName"),
                    self.str("content")
                ))
            }
            Kind::HookAdditionalContext => one(format!(
                "{} hook additional context: {}",
                self.str("hookName"),
                self.lines("content")
            )),
            Kind::HookStoppedContinuation => one(format!(
                "{} hook stopped continuation: {}",
                self.str("hookName"),
                self.str("message")
            )),
            Kind::AsyncHookResponse => {
                let response = self.within("response");
                let context = response.within("hookSpecificOutput");
                let texts = [
                    response.str("systemMessage"),
                    context.str("additionalContext"),
                ];
                let texts: Vec<String> = texts
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .map(Str::into_owned)
                    .collect();
                (!texts.is_empty()).then_some(Text::Client(texts))
            }
            Kind::TokenUsage => one(format!(
                "Token usage: {}/{}; {} remaining",
                self.raw("used"),
                self.raw("total"),
                self.raw("remaining")
            )),
            Kind::OutputTokenUsage => one(format!(
                "Output tokens — turn: {} / {} · session: {}",
                self.raw("turn"),
                self.raw("budget"),
                self.raw("session")
            )),
            Kind::BudgetUsd => one(format!(
                "USD budget: ${}/${}; ${} remaining",
                self.raw("used"),
                self.raw("total"),
                self.raw("remaining")
            )),
            Kind::PlanMode => ours(format!(
                "Plan mode is active. Make no edits but to the plan file {}, and run nothing that \
                 changes the system.",
                self.str("planFilePath")
            )),
            Kind::PlanModeReentry => ours(format!(
                "Plan mode is active again. Read the plan of before in {} first.",
                self.str("planFilePath")
            )),
            Kind::AutoMode => ours(
                "Auto mode is active. Work on without stopping for clarifying questions."
                    .to_owned(),
            ),
            Kind::InvokedSkills => {
                let skills = self.list("skills").into_iter();
                let mut text = "These skills were invoked earlier in this session. Do not run \
                                them again; their guidelines still hold."
                    .to_owned();
                for skill in skills.map(|skill| AttachmentFields(skill.object())) {
                    let (name, content) = (skill.str("name"), skill.str("content"));
                    text += &format!("\n\n### Skill: {name}\n\n{content}");
                }
                ours(text)
            }
            Kind::TaskReminder => ours(
                "The task tools have not been used for a while. Use them if they help with the \
                 current work."
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn queued_command(&self) -> Option<Text> {
        let prompt = match self.get("prompt") {
            Some(prompt) if prompt.kind() == JsonKind::Array => {
                let blocks = self.list("prompt").into_iter().filter_map(Raw::object);
                let texts = blocks.filter_map(|block| block.get("text")?.str());
                texts.collect::<Vec<_>>().join("\n")
            }
            _ => self.str("prompt").into_owned(),
        };
        if self.str("commandMode") == "task-notification" {
            return Some(Text::Own(format!(
                "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated background-task \
                 event, NOT a message from the user.\n\n{prompt}"
            )));
        }
        Some(Text::Client(vec![format!(
            "The user sent a new message while you were working:\n{prompt}\n\nThis is how Claude \
             Code surfaces messages the user sends mid-turn — within the running turn, often \
             alongside the next tool result, rather than as a separate conversation turn. Address \
             the message above as you continue this turn."
        )]))
    }

    /// A text file with its line numbers; the form for other files is not known.
    fn file(&self) -> Option<Text> {
        let content = self.within("content");
        if !["", "text"].contains(&&*content.str("type")) {
            return None;
        }
        let file = content.within("file");
        let first = file.get("startLine").and_then(Raw::u64).unwrap_or(1);
        let body = file.str("content");
        let numbered = body.split('\n').zip(first..);
        let numbered: Vec<String> = numbered
            .map(|(line, number)| format!("{number}\t{line}"))
            .collect();
        Some(Text::Client(vec![
            format!(
                "Called the Read tool with the following input: {{\"file_path\":{}}}",
                quoted(&self.str("filename"))
            ),
            format!("Result of calling the Read tool:\n{}", numbered.join("\n")),
        ]))
    }

    /// The text of the client is known for errors; of other severities only their presence is.
    fn diagnostics(&self) -> Option<Text> {
        let mut are_errors = true;
        let mut files = Vec::new();
        for file in self.list("files") {
            let file = AttachmentFields(file.object());
            let path = file.str("uri");
            let mut text = format!("{}:", path.rsplit('/').next().unwrap_or_default());
            for found in file.list("diagnostics") {
                let found = AttachmentFields(found.object());
                let severity = found.str("severity");
                let sign = if severity == "Error" {
                    "✘"
                } else {
                    &severity
                };
                are_errors &= severity == "Error";
                let range = found.within("range");
                let start = range.within("start");
                let from_one = |key| {
                    start
                        .get(key)
                        .and_then(Raw::u64)
                        .unwrap_or(0)
                        .saturating_add(1)
                };
                let (line, column) = (from_one("line"), from_one("character"));
                text += &format!("\n  {sign} [Line {line}:{column}] {}", found.str("message"));
                if let Some(code) = found.get("code") {
                    let code = code.str().unwrap_or_else(|| code.text().into());
                    text += &format!(" [{code}]");
                }
                if let Some(source) = found.get("source").and_then(Raw::str) {
                    text += &format!(" ({source})");
                }
            }
            files.push(text);
        }
        let text = format!(
            "<new-diagnostics>The following new diagnostic issues were detected:\n\n{}\
             </new-diagnostics>",
            files.join("\n\n")
        );
        Some(if are_errors {
            Text::Client(vec![text])
        } else {
            Text::Own(text)
        })
    }

    fn mcp_resource(&self) -> Option<Text> {
        let content = self.within("content");
        let contents = content.list("contents");
        let texts = contents.into_iter().filter_map(Raw::object);
        let texts = texts.filter_map(|content| content.get("text")?.str().map(Str::into_owned));
        let mut parts = vec!["Full contents of resource:".to_owned()];
        parts.extend(texts);
        parts.push(
            "Do NOT read this resource again unless you think it may have changed, since you \
             already have the full contents."
                .to_owned(),
        );
        Some(Text::Client(parts))
    }

    fn agents(&self) -> String {
        if self.get("isInitial").and_then(Raw::bool) == Some(true) {
            return format!(
                "Available agent types for the Agent tool:\n{}",
                self.lines("addedLines")
            );
        }
        let mut parts = Vec::new();
        if !self.list("addedLines").is_empty() {
            parts.push(format!(
                "New agent types are now available for the Agent tool:\n{}",
                self.lines("addedLines")
            ));
        }
        if !self.list("removedTypes").is_empty() {
            let removed = self.list("removedTypes").into_iter().filter_map(Raw::str);
            let removed: Vec<String> = removed.map(|name| format!("- {name}")).collect();
            parts.push(format!(
                "The following agent types are no longer available:\n{}",
                removed.join("\n")
            ));
        }
        parts.push(AMBIENT.to_owned());
        parts.join("\n\n")
    }

    fn mcp_instructions(&self) -> String {
        let mut parts = Vec::new();
        if !self.list("addedBlocks").is_empty() {
            let added = self.list("addedBlocks").into_iter().filter_map(Raw::str);
            parts.push(format!(
                "# MCP Server Instructions\n\nThe following MCP servers have provided \
                 instructions for how to use their tools and resources:\n\n{}",
                added.collect::<Vec<_>>().join("\n\n")
            ));
        }
        if !self.list("removedNames").is_empty() {
            parts.push(format!(
                "The following MCP servers have disconnected. Their instructions above no longer \
                 apply:\n{}",
                self.lines("removedNames")
            ));
        }
        parts.push(AMBIENT.to_owned());
        parts.join("\n\n")
    }

    /// The text about removed tools is known only in part.
    fn deferred_tools(&self) -> Option<Text> {
        let mut parts = Vec::new();
        if !self.list("addedLines").is_empty() {
            parts.push(format!(
                "The following deferred tools are now available via ToolSearch. Their schemas are \
                 NOT loaded — calling them directly will fail with InputValidationError. Use \
                 ToolSearch with query \"select:<name>[,<name>...]\" to load tool schemas before \
                 calling them:\n{}",
                self.lines("addedLines")
            ));
        }
        if self.list("removedNames").is_empty() {
            return (!parts.is_empty()).then_some(Text::Client(parts));
        }
        parts.push(format!(
            "The following deferred tools are no longer available in this session:\n{}",
            self.lines("removedNames")
        ));
        Some(Text::Own(parts.join("\n\n")))
    }

    fn str(&self, key: &str) -> Str<'_> {
        self.get(key).and_then(Raw::str).unwrap_or_default()
    }

    /// Returns a number as it is written.
    fn raw(&self, key: &str) -> &str {
        self.get(key).map_or("null", Raw::text)
    }

    fn list(&self, key: &str) -> Vec<Raw<'_>> {
        self.get(key).and_then(Raw::array).unwrap_or_default()
    }

    fn lines(&self, key: &str) -> String {
        let lines = self.list(key).into_iter().filter_map(Raw::str);
        lines.collect::<Vec<_>>().join("\n")
    }

    fn within(&self, key: &str) -> AttachmentFields<'_> {
        AttachmentFields(self.get(key).and_then(Raw::object))
    }

    fn get(&self, key: &str) -> Option<Raw<'_>> {
        self.0.as_ref()?.get(key)
    }
}

const AMBIENT: &str = "This is ambient context — do not narrate it to the user unless they ask or \
                       it is directly relevant to their request.";
