//! Attachments about the work of the session: tasks, skills, memories, diagnostics, counts.

use serde_json::Value;
use transcript_format::attachment_texts::{self as texts, filled};

use super::escape;
use super::parts::{Part, field, part, wrapped};
use crate::model::blocks::text_block;
use crate::model::js;

/// The reminder of the tasks; `None` without a list.
pub(super) fn task_reminder(attachment: &Value) -> Option<String> {
    let tasks = attachment["content"].as_array()?;
    let mut text = texts::TASK_TOOLS_UNUSED.to_owned();
    if !tasks.is_empty() {
        let lines: Vec<String> = tasks
            .iter()
            .map(|task| {
                let [id, status, subject] =
                    ["id", "status", "subject"].map(|name| field(task, name));
                format!("#{id}. [{status}] {subject}")
            })
            .collect();
        text += &filled(texts::TASKS, &[("tasks", &lines.join("\n"))]);
    }
    Some(text)
}

/// The state of a background task.
pub(super) fn task_status(attachment: &Value) -> String {
    let name = |name: &str| escape::name(&attachment[name]);
    let given = |name: &str| js::is_truthy(&attachment[name]);
    let (id, description) = (name("taskId"), name("description"));
    let (delta, path) = (name("deltaSummary"), name("outputFilePath"));
    let mut text = match attachment["status"].as_str() {
        Some("killed") => {
            return filled(
                texts::TASK_STOPPED,
                &[("description", &description), ("id", &id)],
            );
        }
        Some("running") if attachment["taskType"] == "local_bash" => {
            let description = match &attachment["description"] {
                Value::Null => String::new(),
                value => escape::backslashes(&js::text(Some(value))),
            };
            let mut text = filled(
                texts::SHELL_RUNS,
                &[("id", &id), ("description", &description)],
            );
            if given("outputFilePath") {
                text += &filled(texts::SHELL_OUTPUT, &[("path", &path)]);
            }
            return text;
        }
        Some("running") => {
            let mut text = filled(
                texts::AGENT_RUNS,
                &[("description", &description), ("id", &id)],
            );
            if given("deltaSummary") {
                text += &format!(" Progress: {delta}");
            }
            text += texts::AGENT_DUPLICATE;
            if given("outputFilePath") {
                text += &filled(texts::AGENT_OUTPUT, &[("path", &path)]);
            }
            return text;
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
        text += &format!(" Delta: {delta}");
    }
    if given("outputFilePath") {
        text += &filled(texts::TASK_OUTPUT, &[("path", &path)]);
    }
    text
}

/// The skills that were used before a compaction; `None` if there are none.
pub(super) fn invoked_skills(attachment: &Value) -> Option<String> {
    let skills = attachment["skills"]
        .as_array()
        .filter(|skills| !skills.is_empty())?;
    let skills: Vec<String> = skills
        .iter()
        .map(|skill| {
            let [name, path, content] = ["name", "path", "content"].map(|name| field(skill, name));
            format!("### Skill: {name}\nPath: {path}\n\n{content}")
        })
        .collect();
    Some(filled(
        texts::SKILLS_INVOKED,
        &[("skills", &skills.join("\n\n---\n\n"))],
    ))
}

/// Memories that may be relevant, each with its age at the time `now`.
pub(super) fn memories(attachment: &Value, now: Option<i64>) -> Vec<Part> {
    let memories = attachment["memories"].as_array().into_iter().flatten();
    memories
        .enumerate()
        .map(|(index, memory)| {
            let header = match &memory["header"] {
                Value::Null => age_and_path(memory, now),
                header => js::text(Some(header)),
            };
            let intro = if index == 0 { texts::MEMORIES } else { "" };
            let text = format!("{header}\n\n{}", field(memory, "content"));
            part(&format!("{intro}{}", escape::backslashes(&text)))
        })
        .collect()
}

/// Returns the header of a memory without one. The age, if it is known, is given from two days on.
fn age_and_path(memory: &Value, now: Option<i64>) -> String {
    const DAY_MILLIS: f64 = 86_400_000.0;
    let path = format!("Memory: {}:", field(memory, "path"));
    let (Some(now), Some(time)) = (now, memory["mtimeMs"].as_f64()) else {
        return path;
    };
    let days = ((now as f64 - time) / DAY_MILLIS).floor();
    if days < 2.0 {
        return path;
    }
    filled(
        texts::MEMORY_AGE,
        &[("days", &js::number_text(days)), ("path", &path)],
    )
}

/// New diagnostics: a paragraph for each file, with a line for each diagnostic. `None` if there are
/// none.
pub(super) fn diagnostics(attachment: &Value) -> Option<String> {
    const MAX_TEXT_LEN: usize = 4000;
    const TRUNCATION_MARK: &str = "…[truncated]";
    let files = attachment["files"].as_array().into_iter().flatten();
    let paragraphs: Vec<String> = files.filter_map(diagnostics_of_file).collect();
    if paragraphs.is_empty() {
        return None;
    }
    let mut all = paragraphs.join("\n\n");
    if js::length(&all) > MAX_TEXT_LEN {
        all = js::start(&all, MAX_TEXT_LEN - js::length(TRUNCATION_MARK)) + TRUNCATION_MARK;
    }
    Some(filled(texts::DIAGNOSTICS, &[("diagnostics", &all)]))
}

fn diagnostics_of_file(file: &Value) -> Option<String> {
    let path = file["uri"].as_str()?;
    let found = file["diagnostics"].as_array().into_iter().flatten();
    let lines: Vec<String> = found.filter_map(diagnostic).collect();
    // A path that ends with a slash has no last part, and is shown in full.
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    (!lines.is_empty()).then(|| format!("{}:\n{}", name.unwrap_or(path), lines.join("\n")))
}

fn diagnostic(found: &Value) -> Option<String> {
    let start = &found["range"]["start"];
    let place = |name: &str| Some(js::number_text(start[name].as_f64()? + 1.0));
    let severity = found["severity"].as_str().unwrap_or_default();
    let sign = match severity.to_lowercase().as_str() {
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
        field(found, "message")
    );
    let given = |name: &str| found[name].as_str().filter(|text| !text.is_empty());
    if let Some(code) = given("code") {
        line += &format!(" [{code}]");
    }
    if let Some(source) = given("source") {
        line += &format!(" ({source})");
    }
    Some(line)
}

/// The contents of a resource of an MCP server, as one message.
pub(super) fn mcp_resource(attachment: &Value) -> Part {
    let contents = attachment["content"]["contents"].as_array();
    let contents = contents.map(Vec::as_slice).unwrap_or_default();
    let mut shown: Vec<String> = Vec::new();
    for content in contents {
        if let Some(text) = content["text"].as_str() {
            shown.push(texts::RESOURCE_CONTENTS.to_owned());
            shown.push(escape::closing_tags(text));
            shown.push(texts::RESOURCE_READ.to_owned());
        } else if content["blob"].is_string() {
            let kind = match content.get("mimeType") {
                None | Some(Value::Null) => "application/octet-stream".to_owned(),
                kind => escape::closing_tags(&js::text(kind)),
            };
            shown.push(format!("[Binary content: {kind}]"));
        }
    }
    if shown.is_empty() {
        let attribute = |name: &str| {
            let text = match &attachment[name] {
                Value::Null => String::new(),
                value => js::text(Some(value)),
            };
            let text = text.replace('"', "&quot;");
            text.replace('<', "&lt;").replace('>', "&gt;")
        };
        let what = if contents.is_empty() {
            "(No content)"
        } else {
            "(No displayable content)"
        };
        shown.push(format!(
            "<mcp-resource server=\"{}\" uri=\"{}\">{what}</mcp-resource>",
            attribute("server"),
            attribute("uri")
        ));
    }
    wrapped(shown.iter().map(|text| text_block(text)).collect())
}

/// The output tokens spent, in short form.
pub(super) fn output_tokens(attachment: &Value) -> String {
    let count = |name: &str| short_count(attachment[name].as_f64());
    let turn = count("turn");
    let budget = match attachment.get("budget") {
        Some(Value::Null) => String::new(),
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
                js::number_text(rounded)
            } else {
                format!("{rounded:.1}{unit}")
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1}t")
}
