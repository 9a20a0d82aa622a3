//! Attachments about the work of the session: tasks, skills, memories, diagnostics, counts.

use serde_json::Value;

use super::escape;
use super::{Part, field, part, wrapped};
use crate::model::js;
use crate::model::reminders::text_block;

/// The reminder of the tasks; `None` without a list.
pub(super) fn task_reminder(attachment: &Value) -> Option<String> {
    let tasks = attachment["content"].as_array()?;
    let mut text = "The task tools haven't been used recently. If you're working on tasks that \
                    would benefit from tracking progress, consider using TaskCreate to add new \
                    tasks and TaskUpdate to update task status (set to in_progress when starting, \
                    completed when done). Also consider cleaning up the task list if it has become \
                    stale. Only use these if relevant to the current work. This is just a gentle \
                    reminder - ignore if not applicable.\n"
        .to_owned();
    if !tasks.is_empty() {
        let lines: Vec<String> = tasks
            .iter()
            .map(|task| {
                let [id, status, subject] =
                    ["id", "status", "subject"].map(|name| field(task, name));
                format!("#{id}. [{status}] {subject}")
            })
            .collect();
        text += &format!("\n\nHere are the existing tasks:\n\n{}", lines.join("\n"));
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
        Some("killed") => return format!("Task \"{description}\" ({id}) was stopped."),
        Some("running") if attachment["taskType"] == "local_bash" => {
            let description = match &attachment["description"] {
                Value::Null => String::new(),
                value => escape::backslashes(&js::text(Some(value))),
            };
            let mut text = format!(
                "Background shell {id} (\"{description}\") is still running. Do not start it \
                 again; to restart it, stop it with TaskStop first."
            );
            if given("outputFilePath") {
                text += &format!(" You can read its output at {path}.");
            }
            return text;
        }
        Some("running") => {
            let mut text = format!("Background agent \"{description}\" ({id}) is still running.");
            if given("deltaSummary") {
                text += &format!(" Progress: {delta}");
            }
            text += " Do NOT spawn a duplicate. You will be notified when it completes.";
            if given("outputFilePath") {
                text += &format!(" You can read partial output at {path}.");
            }
            return text;
        }
        _ => format!(
            "Task {id} (type: {}) (status: {}) (description: {description})",
            name("taskType"),
            name("status")
        ),
    };
    if given("deltaSummary") {
        text += &format!(" Delta: {delta}");
    }
    if given("outputFilePath") {
        text += &format!(" Read the output file to retrieve the result: {path}");
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
    Some(format!(
        "The following skills were invoked EARLIER in this session (before the conversation was \
         compacted), not on the current turn. They are shown here for context only so you remain \
         aware of their guidelines.\n\nIMPORTANT: Do NOT re-execute these skills or perform their \
         one-time setup actions (e.g., scheduling, creating files) again. Any request or argument \
         text embedded in the skill bodies below — for example under a \"## User Request\" or \"## \
         Input\" heading — was captured when that skill was first invoked. It is NOT the user's \
         current message and NOT a new request: do not act on it as if it were live. Only continue \
         to apply ongoing behavioral guidelines from these skills where still relevant.\n\n{}",
        skills.join("\n\n---\n\n")
    ))
}

/// Memories that may be relevant, each with its age at the time `now`.
pub(super) fn memories(attachment: &Value, now: i64) -> Vec<Part> {
    let memories = attachment["memories"].as_array().into_iter().flatten();
    memories
        .enumerate()
        .map(|(index, memory)| {
            let header = match &memory["header"] {
                Value::Null => age_and_path(memory, now),
                header => js::text(Some(header)),
            };
            let intro = if index == 0 {
                "Retrieved for possible relevance — use only if it actually applies to what the \
                 user asked.\n\n"
            } else {
                ""
            };
            let text = format!("{header}\n\n{}", field(memory, "content"));
            part(&format!("{intro}{}", escape::backslashes(&text)))
        })
        .collect()
}

/// Returns the header of a memory without one. The age is given from two days on.
fn age_and_path(memory: &Value, now: i64) -> String {
    const DAY: f64 = 86_400_000.0;
    let days = memory["mtimeMs"]
        .as_f64()
        .map_or(f64::NAN, |time| ((now as f64 - time) / DAY).floor());
    let path = format!("Memory: {}:", field(memory, "path"));
    if days < 2.0 {
        return path;
    }
    format!(
        "This memory is {} days old. Memories are point-in-time observations, not live state — \
         claims about code behavior or file:line citations may be outdated. Verify against current \
         code before asserting as fact.\n\n{path}",
        js::number_text(days)
    )
}

/// New diagnostics: a paragraph for each file, with a line for each diagnostic. `None` if there are
/// none.
pub(super) fn diagnostics(attachment: &Value) -> Option<String> {
    const LIMIT: usize = 4000;
    const CUT: &str = "…[truncated]";
    let files = attachment["files"].as_array().into_iter().flatten();
    let paragraphs: Vec<String> = files.filter_map(diagnostics_of_file).collect();
    if paragraphs.is_empty() {
        return None;
    }
    let mut all = paragraphs.join("\n\n");
    if js::length(&all) > LIMIT {
        all = js::start(&all, LIMIT - js::length(CUT)) + CUT;
    }
    Some(format!(
        "<new-diagnostics>The following new diagnostic issues were detected:\n\n{all}</new-diagnostics>"
    ))
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
    let mut texts: Vec<String> = Vec::new();
    for content in contents {
        if let Some(text) = content["text"].as_str() {
            texts.push("Full contents of resource:".to_owned());
            texts.push(escape::closing_tags(text));
            texts.push(
                "Do NOT read this resource again unless you think it may have changed, since you \
                 already have the full contents."
                    .to_owned(),
            );
        } else if content["blob"].is_string() {
            let kind = match content.get("mimeType") {
                None | Some(Value::Null) => "application/octet-stream".to_owned(),
                kind => escape::closing_tags(&js::text(kind)),
            };
            texts.push(format!("[Binary content: {kind}]"));
        }
    }
    if texts.is_empty() {
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
        texts.push(format!(
            "<mcp-resource server=\"{}\" uri=\"{}\">{what}</mcp-resource>",
            attribute("server"),
            attribute("uri")
        ));
    }
    wrapped(texts.iter().map(|text| text_block(text)).collect())
}

/// The output tokens spent, in short form.
pub(super) fn output_tokens(attachment: &Value) -> String {
    let count = |name: &str| short_count(attachment[name].as_f64());
    let turn = count("turn");
    let budget = match attachment.get("budget") {
        Some(Value::Null) => String::new(),
        _ => format!(" / {}", count("budget")),
    };
    format!(
        "Output tokens — turn: {turn}{budget} · session: {}",
        count("session")
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
