//! Attachments about the work of the session: tasks, skills, memories, diagnostics, counts.

use transcript_format::attachment_texts::{self as texts, filled};
use transcript_format::object::{JsonKind, Raw};

use super::escape;
use super::fields::{Fields, first_units, number_text, text, units};

/// The reminder of the tasks; `None` without a list.
pub(super) fn task_reminder(attachment: &Fields<'_>) -> Option<String> {
    attachment.get("content")?.array()?;
    let tasks = attachment.objects("content");
    let mut text = texts::TASK_TOOLS_UNUSED.to_owned();
    let lines: Vec<String> = tasks
        .map(|task| {
            let [id, status, subject] = ["id", "status", "subject"].map(|key| task.text(key));
            format!("#{id}. [{status}] {subject}")
        })
        .collect();
    if !lines.is_empty() {
        text += &filled(texts::TASKS, &[("tasks", &lines.join("\n"))]);
    }
    Some(text)
}

/// The state of a background task.
pub(super) fn task_status(attachment: &Fields<'_>) -> String {
    let name = |key: &str| attachment.name(key);
    let given = |key: &str| attachment.is_set(key);
    let (id, description) = (name("taskId"), name("description"));
    let (delta, path) = (name("deltaSummary"), name("outputFilePath"));
    let mut status = match &*attachment.str("status") {
        "killed" => {
            return filled(
                texts::TASK_STOPPED,
                &[("description", &description), ("id", &id)],
            );
        }
        "running" if attachment.str("taskType") == "local_bash" => {
            let description = attachment.present("description");
            let description = description.map_or_else(String::new, |description| {
                escape::backslashes(&text(Some(description)))
            });
            let mut status = filled(
                texts::SHELL_RUNS,
                &[("id", &id), ("description", &description)],
            );
            if given("outputFilePath") {
                status += &filled(texts::SHELL_OUTPUT, &[("path", &path)]);
            }
            return status;
        }
        "running" => {
            let mut status = filled(
                texts::AGENT_RUNS,
                &[("description", &description), ("id", &id)],
            );
            if given("deltaSummary") {
                status += &format!(" Progress: {delta}");
            }
            status += texts::AGENT_DUPLICATE;
            if given("outputFilePath") {
                status += &filled(texts::AGENT_OUTPUT, &[("path", &path)]);
            }
            return status;
        }
        _ => filled(
            texts::TASK_STATUS,
            &[
                ("id", &id),
                ("type", &name("taskType")),
                ("status", &name("status")),
                ("description", &description),
            ],
        ),
    };
    if given("deltaSummary") {
        status += &format!(" Delta: {delta}");
    }
    if given("outputFilePath") {
        status += &filled(texts::TASK_OUTPUT, &[("path", &path)]);
    }
    status
}

/// The skills that were used before a compaction; `None` if there are none.
pub(super) fn invoked_skills(attachment: &Fields<'_>) -> Option<String> {
    let skills = attachment.objects("skills");
    let skills: Vec<String> = skills
        .map(|skill| {
            let [name, path, content] = ["name", "path", "content"].map(|key| skill.text(key));
            format!("### Skill: {name}\nPath: {path}\n\n{content}")
        })
        .collect();
    if skills.is_empty() {
        return None;
    }
    Some(filled(
        texts::SKILLS_INVOKED,
        &[("skills", &skills.join("\n\n---\n\n"))],
    ))
}

/// Memories that may be relevant, each with its age at the time `now`.
pub(super) fn memories(attachment: &Fields<'_>, now: Option<i64>) -> Vec<String> {
    let mut intro = texts::MEMORIES;
    let memories = attachment.objects("memories").map(|memory| {
        let header = match memory.present("header") {
            Some(header) => text(Some(header)),
            None => age_and_path(&memory, now),
        };
        let content = memory.text("content");
        let content = escape::backslashes(&format!("{header}\n\n{content}"));
        std::mem::take(&mut intro).to_owned() + &content
    });
    memories.collect()
}

/// Returns the header of a memory without one. The age is given from two days on.
fn age_and_path(memory: &Fields<'_>, now: Option<i64>) -> String {
    const DAY_MILLIS: f64 = 86_400_000.0;
    let path = format!("Memory: {}:", memory.text("path"));
    let written = memory.number("mtimeMs");
    let age = now.zip(written);
    let days = age.map(|(now, written)| ((now as f64 - written) / DAY_MILLIS).floor());
    match days {
        Some(days) if days >= 2.0 => filled(
            texts::MEMORY_AGE,
            &[("days", &number_text(days)), ("path", &path)],
        ),
        _ => path,
    }
}

/// New diagnostics: a paragraph for each file, with a line for each diagnostic. `None` if there are
/// none.
pub(super) fn diagnostics(attachment: &Fields<'_>) -> Option<String> {
    const MAX_DIAGNOSTICS_LEN: usize = 4000;
    const TRUNCATION_MARK: &str = "…[truncated]";
    let files = attachment.objects("files");
    let paragraphs: Vec<String> = files
        .filter_map(|file| diagnostics_of_file(&file))
        .collect();
    if paragraphs.is_empty() {
        return None;
    }
    let mut all = paragraphs.join("\n\n");
    if units(&all) > MAX_DIAGNOSTICS_LEN {
        all = first_units(&all, MAX_DIAGNOSTICS_LEN - units(TRUNCATION_MARK)) + TRUNCATION_MARK;
    }
    Some(filled(texts::DIAGNOSTICS, &[("diagnostics", &all)]))
}

fn diagnostics_of_file(file: &Fields<'_>) -> Option<String> {
    let path = file.get("uri")?.str()?;
    let found = file.objects("diagnostics");
    let lines: Vec<String> = found.filter_map(|found| diagnostic(&found)).collect();
    // A path that ends with a slash has no last part, and is shown in full.
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    (!lines.is_empty()).then(|| format!("{}:\n{}", name.unwrap_or(&path), lines.join("\n")))
}

fn diagnostic(found: &Fields<'_>) -> Option<String> {
    let start = found.within("range").within("start");
    let place = |key: &str| Some(number_text(start.number(key)? + 1.0));
    let sign = match &*found.str("severity").to_lowercase() {
        "error" => "✘",
        "warning" => "⚠",
        "info" | "information" => "ℹ",
        "hint" => "★",
        _ => "●",
    };
    let mut line = format!(
        "  {sign} [Line {}:{}] {}",
        place("line")?,
        place("character")?,
        found.text("message")
    );
    if let Some(code) = found.filled("code") {
        line += &format!(" [{code}]");
    }
    if let Some(source) = found.filled("source") {
        line += &format!(" ({source})");
    }
    Some(line)
}

/// The contents of a resource of an MCP server, as the texts of one message.
pub(super) fn mcp_resource(attachment: &Fields<'_>) -> Vec<String> {
    let content = attachment.within("content");
    let mut shown: Vec<String> = Vec::new();
    for content in content.objects("contents") {
        if let Some(text) = content.get("text").and_then(Raw::str) {
            shown.push(texts::RESOURCE_CONTENTS.to_owned());
            shown.push(escape::closing_tags(&text));
            shown.push(texts::RESOURCE_READ.to_owned());
        } else if content.get("blob").map(Raw::kind) == Some(JsonKind::String) {
            let kind = content.present("mimeType").map_or_else(
                || "application/octet-stream".to_owned(),
                |kind| escape::closing_tags(&text(Some(kind))),
            );
            shown.push(format!("[Binary content: {kind}]"));
        }
    }
    if shown.is_empty() {
        shown.push(empty_resource(attachment));
    }
    shown
}

/// Returns the text for a resource without content that can be shown.
fn empty_resource(attachment: &Fields<'_>) -> String {
    let attribute = |key: &str| {
        let value = attachment.present(key);
        let value = value.map_or_else(String::new, |value| text(Some(value)));
        let value = value.replace('"', "&quot;");
        value.replace('<', "&lt;").replace('>', "&gt;")
    };
    let what = if attachment.within("content").list("contents").is_empty() {
        "(No content)"
    } else {
        "(No displayable content)"
    };
    format!(
        "<mcp-resource server=\"{}\" uri=\"{}\">{what}</mcp-resource>",
        attribute("server"),
        attribute("uri")
    )
}

/// The output tokens spent, in short form.
pub(super) fn output_tokens(attachment: &Fields<'_>) -> String {
    let count = |key: &str| short_count(attachment.number(key));
    let turn = count("turn");
    let budget = match attachment.get("budget") {
        Some(budget) if budget.is_null() => String::new(),
        _ => format!(" / {}", count("budget")),
    };
    filled(
        texts::OUTPUT_TOKENS,
        &[
            ("turn", &turn),
            ("budget", &budget),
            ("session", &count("session")),
        ],
    )
}

/// Returns a count with a unit, from a thousand on with one decimal.
fn short_count(count: Option<f64>) -> String {
    let Some(count) = count else {
        return "nan".to_owned();
    };
    let mut value = count;
    for unit in ["", "k", "m", "b"] {
        let rounded = (value * 10.0).round() / 10.0;
        if rounded.abs() < 1000.0 {
            return if unit.is_empty() {
                number_text(rounded)
            } else {
                format!("{rounded:.1}{unit}")
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1}t")
}
