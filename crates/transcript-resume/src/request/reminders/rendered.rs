//! Renders attachments without stored texts, as the client does (NOTE-9).

use transcript_format::attachment_texts::{self as texts, filled};
use transcript_format::kind::AttachmentKind as Kind;
use transcript_format::texts::NO_CONTENT;

use super::fields::{Fields, first_units, text, units};
use super::piece::Piece;
use super::{changes, escape, files, modes, queued, work};

/// The messages that are sent for an attachment.
#[derive(Default)]
pub(super) struct Rendered {
    pub(super) parts: Vec<Vec<Piece>>,
    /// The text of the client is long: this one is ours.
    pub(super) is_own: bool,
}

impl Rendered {
    fn texts(texts: impl IntoIterator<Item = String>) -> Self {
        let parts = texts.into_iter().map(|text| vec![Piece::Text(text)]);
        Self::from(parts.collect::<Vec<_>>())
    }
}

impl From<Vec<Vec<Piece>>> for Rendered {
    fn from(parts: Vec<Vec<Piece>>) -> Self {
        Self {
            parts,
            is_own: false,
        }
    }
}

/// Returns the messages for an attachment: none for types that are not listed, as the client
/// sends none of them or their text depends on more than the attachment. `now` is the time of the
/// request in milliseconds. `sends_documents` is whether the documents of a queued prompt are sent, which the client leaves
/// out.
pub(super) fn rendered(
    attachment: &Fields<'_>,
    now: Option<i64>,
    sends_documents: bool,
) -> Rendered {
    match attachment.kind() {
        Kind::File => files::file(attachment).into(),
        Kind::Directory => Rendered::texts(files::directory(attachment)),
        Kind::QueuedCommand => vec![queued::queued_command(attachment, sends_documents)].into(),
        Kind::McpResource => {
            let texts = work::mcp_resource(attachment).into_iter();
            vec![texts.map(Piece::Text).collect()].into()
        }
        Kind::RelevantMemories => Rendered::texts(work::memories(attachment, now)),
        Kind::AsyncHookResponse => Rendered::texts(hook_response(attachment)),
        Kind::PlanMode => Rendered {
            is_own: modes::is_full_plan_mode(attachment),
            ..Rendered::texts([modes::plan_mode(attachment)])
        },
        Kind::AutoMode => Rendered {
            is_own: modes::asks_for_consent(attachment),
            ..Rendered::texts([modes::auto_mode(attachment)])
        },
        kind => Rendered::texts(one_text(kind, attachment)),
    }
}

/// Returns whether an image or a document is sent for an attachment.
pub(super) fn holds_media(attachment: &Fields<'_>, sends_documents: bool) -> bool {
    match attachment.kind() {
        Kind::File => files::holds_image(attachment),
        Kind::QueuedCommand => queued::media(attachment, sends_documents).next().is_some(),
        _ => false,
    }
}

/// Returns the text for the types that are sent as one; `None` when nothing is sent. The client fails
/// on those that lack what their text is about.
fn one_text(kind: Kind, attachment: &Fields<'_>) -> Option<String> {
    let text = |key: &str| attachment.text(key);
    let name = |key: &str| attachment.name(key);
    Some(match kind {
        Kind::EditedTextFile => files::edited_text(attachment),
        Kind::PdfReference => files::pdf_reference(attachment),
        Kind::CompactFileReference => {
            filled(texts::FILE_OF_SUMMARY, &[("filename", &name("filename"))])
        }
        Kind::SelectedLinesInIde => return selected_lines(attachment),
        Kind::OpenedFileInIde => filled(texts::FILE_OPENED, &[("filename", &name("filename"))]),
        Kind::NestedMemory => {
            attachment.present("content")?;
            let memory = attachment.within("content");
            let (path, content) = (memory.text("path"), memory.text("content"));
            escape::backslashes(&filled(
                texts::MEMORY_FILE,
                &[("path", &path), ("content", &content)],
            ))
        }
        Kind::PlanModeExit => modes::plan_mode_exit(attachment),
        Kind::PlanModeReentry => modes::plan_mode_reentry(attachment),
        Kind::PlanFileReference => modes::plan_file(attachment),
        Kind::AutoModeExit => texts::AUTO_MODE_EXIT.to_owned(),
        Kind::UltrathinkEffort => texts::ULTRATHINK.to_owned(),
        Kind::UltraEffortEnter => modes::ultra_effort(attachment).to_owned(),
        Kind::UltraEffortExit => texts::ULTRA_EFFORT_EXIT.to_owned(),
        Kind::WorkflowKeywordRequest => texts::WORKFLOW_KEYWORD.to_owned(),
        Kind::TaskReminder => return work::task_reminder(attachment),
        Kind::TaskStatus => work::task_status(attachment),
        Kind::InvokedSkills => return work::invoked_skills(attachment),
        Kind::Diagnostics => return work::diagnostics(attachment),
        Kind::OutputTokenUsage => work::output_tokens(attachment),
        Kind::AgentListingDelta => return changes::agents(attachment),
        Kind::McpInstructionsDelta => return changes::server_instructions(attachment),
        Kind::DeferredToolsDelta => return changes::deferred_tools(attachment),
        Kind::SkillListing => {
            attachment.is_set("content").then_some(())?;
            filled(texts::SKILLS, &[("skills", &text("content"))])
        }
        Kind::OutputStyle => {
            attachment.filled("style")?;
            filled(texts::OUTPUT_STYLE, &[("style", &name("style"))])
        }
        Kind::CriticalSystemReminder if attachment.is_set("content") => text("content"),
        Kind::CriticalSystemReminder => NO_CONTENT.to_owned(),
        Kind::Model => return model(attachment),
        Kind::TotalTokensReminder => text("text"),
        Kind::Date => {
            attachment.get("date")?;
            filled(texts::DATE, &[("date", &text("date"))])
        }
        Kind::DateChange => filled(texts::DATE_CHANGE, &[("date", &text("newDate"))]),
        Kind::HookBlockingError
        | Kind::HookSuccess
        | Kind::HookAdditionalContext
        | Kind::HookStoppedContinuation => escape::brackets(&hook_output(kind, attachment)?),
        Kind::TokenUsage => filled(
            texts::TOKEN_USAGE,
            &[
                ("used", &text("used")),
                ("total", &text("total")),
                ("remaining", &text("remaining")),
            ],
        ),
        Kind::BudgetUsd => filled(
            texts::BUDGET_USD,
            &[
                ("used", &text("used")),
                ("total", &text("total")),
                ("remaining", &text("remaining")),
            ],
        ),
        Kind::AgentMention => filled(texts::AGENT_MENTION, &[("agent", &text("agentType"))]),
        _ => return None,
    })
}

/// The model that answers.
fn model(attachment: &Fields<'_>) -> Option<String> {
    if let Some(text) = attachment.get("text").and_then(|text| text.str()) {
        return Some(text.into_owned());
    }
    let identity = Some(attachment.within("identity")).filter(Fields::exist)?;
    Some(filled(
        texts::MODEL,
        &[
            ("name", &identity.text("marketingName")),
            ("id", &identity.text("modelId")),
            ("cutoff", &identity.text("knowledgeCutoff")),
        ],
    ))
}

/// The output of a hook. Empty output is not sent.
fn hook_output(kind: Kind, attachment: &Fields<'_>) -> Option<String> {
    // Only the output for these events is meant for the model.
    const SENT_EVENTS: [&str; 3] = ["SessionStart", "UserPromptSubmit", "UserPromptExpansion"];
    let hook = attachment.text("hookName");
    Some(match kind {
        Kind::HookBlockingError => {
            attachment.present("blockingError")?;
            let error = attachment.within("blockingError");
            let (command, error) = (error.text("command"), error.text("blockingError"));
            filled(
                texts::HOOK_BLOCKING_ERROR,
                &[("hook", &hook), ("command", &command), ("error", &error)],
            )
        }
        Kind::HookSuccess if SENT_EVENTS.contains(&&*attachment.str("hookEvent")) => filled(
            texts::HOOK_SUCCESS,
            &[("hook", &hook), ("output", &attachment.filled("content")?)],
        ),
        Kind::HookAdditionalContext => {
            let context = Some(attachment.list("content")).filter(|list| !list.is_empty())?;
            let context = context.into_iter().map(|value| text(Some(value)));
            let context: Vec<String> = context.collect();
            filled(
                texts::HOOK_CONTEXT,
                &[("hook", &hook), ("context", &context.join("\n"))],
            )
        }
        Kind::HookStoppedContinuation => filled(
            texts::HOOK_STOPPED,
            &[("hook", &hook), ("message", &attachment.text("message"))],
        ),
        _ => return None,
    })
}

/// The texts of a hook that answered later.
fn hook_response(attachment: &Fields<'_>) -> Vec<String> {
    let response = attachment.within("response");
    let context = response.within("hookSpecificOutput");
    let texts = [
        response.filled("systemMessage"),
        context.filled("additionalContext"),
    ];
    let texts = texts.iter().flatten();
    texts.map(|text| escape::brackets(text)).collect()
}

fn selected_lines(attachment: &Fields<'_>) -> Option<String> {
    const MAX_SELECTION_LEN: usize = 2000;
    attachment.present("content")?;
    let mut content = attachment.text("content");
    if units(&content) > MAX_SELECTION_LEN {
        content = first_units(&content, MAX_SELECTION_LEN) + "\n... (truncated)";
    }
    Some(filled(
        texts::LINES_SELECTED,
        &[
            ("start", &attachment.text("lineStart")),
            ("end", &attachment.text("lineEnd")),
            ("filename", &attachment.name("filename")),
            ("content", &content),
        ],
    ))
}
