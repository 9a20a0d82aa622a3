//! Attachments with the content of files.

use serde_json::{Value, json};
use transcript_format::attachment_texts::{self as texts, filled};

use super::escape;
use super::parts::{Part, field, part, wrapped};
use crate::model::js;

/// A mentioned file: the call that would have read it, and its result.
pub(super) fn file(attachment: &Value) -> Vec<Part> {
    let content = &attachment["content"];
    let file = &content["file"];
    let filename = field(attachment, "filename");
    let result = match content["type"].as_str() {
        Some("text") => text_file(file),
        Some("pdf") => Some(filled(
            texts::PDF_READ,
            &[
                ("path", &field(file, "filePath")),
                ("size", &size(file.get("originalSize"))),
            ],
        )),
        Some("notebook") => match file["cells"].as_array() {
            Some(cells) => {
                let blocks = notebook(cells);
                if blocks.iter().any(|block| block["type"] == "image") {
                    return vec![call("Read", &read_input(&filename)), wrapped(blocks)];
                }
                Some(escape::brackets_of_closing_tags(&blocks_as_json(&blocks)))
            }
            None => None,
        },
        Some("image") => {
            let source = json!({
                "type": "base64", "data": file["base64"], "media_type": file["type"],
            });
            let image = json!({"type": "image", "source": source});
            return vec![call("Read", &read_input(&filename)), vec![image]];
        }
        _ => return Vec::new(),
    };
    let mut parts = vec![call("Read", &read_input(&filename))];
    let Some(result) = result else {
        parts.push(part(texts::RESULT_ERROR));
        return parts;
    };
    parts.push(result_of("Read", &result));
    let is_text = content["type"] == "text" || content["type"] == "notebook";
    let json = file.to_string();
    let was_changed = is_text && escape::brackets_of_closing_tags(&json) != json;
    if was_changed {
        parts.push(part(&changed_note(attachment)));
    }
    if content["type"] == "text" && js::is_truthy(&attachment["truncated"]) {
        parts.push(part(&filled(
            texts::FILE_TRUNCATED,
            &[("filename", &filename)],
        )));
    }
    parts
}

fn read_input(filename: &str) -> String {
    let input = json!({"file_path": filename}).to_string();
    escape::brackets_of_closing_tags(&input)
}

fn call(tool: &str, input: &str) -> Part {
    part(&filled(texts::CALL, &[("tool", tool), ("input", input)]))
}

fn result_of(tool: &str, text: &str) -> Part {
    part(&filled(texts::RESULT, &[("tool", tool), ("result", text)]))
}

fn changed_note(attachment: &Value) -> String {
    filled(
        texts::FILE_ESCAPED,
        &[("filename", &escape::name(&attachment["filename"]))],
    )
}

/// Returns the lines of a text file with their numbers; `None` if there is no content to show.
fn text_file(file: &Value) -> Option<String> {
    if !file.is_object() {
        return None;
    }
    if !js::is_truthy(&file["content"]) {
        return Some(empty_file(file));
    }
    let content = file["content"].as_str()?;
    let lines = content.split('\n').enumerate();
    let last = content.split('\n').count() - 1;
    let numbered: Vec<String> = lines
        .map(|(index, line)| {
            let line = line
                .strip_suffix('\r')
                .filter(|_| index < last)
                .unwrap_or(line);
            format!("{}\t{line}", line_number(file, index))
        })
        .collect();
    Some(escape::brackets_of_closing_tags(&numbered.join("\n")))
}

/// Returns the number of the line `index` after the first one.
fn line_number(file: &Value, index: usize) -> String {
    let first = file.get("startLine");
    if index == 0 {
        return js::text(first);
    }
    let first = match first {
        Some(Value::String(text)) => text.parse().unwrap_or(f64::NAN),
        Some(Value::Null) => 0.0,
        other => other.and_then(Value::as_f64).unwrap_or(f64::NAN),
    };
    js::number_text(first + index as f64)
}

/// Returns what is shown of a file without content: an empty line, or a warning that the file is
/// empty or has fewer lines than the place where reading began.
fn empty_file(file: &Value) -> String {
    let number = |name: &str| file[name].as_f64();
    let lines_read = number("numLines").unwrap_or(0.0);
    let is_empty = number("totalLines") == Some(0.0);
    let is_one_line = file["totalLines"].is_null() && file.get("totalLines").is_some()
        || number("totalLines").is_some_and(|total| total <= 1.0);
    if is_empty || (lines_read > 0.0 && is_one_line) {
        return texts::FILE_EMPTY.to_owned();
    }
    if lines_read > 0.0 {
        return format!("{}\t", line_number(file, 0));
    }
    filled(
        texts::FILE_TOO_SHORT,
        &[
            ("offset", &js::text(file.get("startLine"))),
            ("lines", &js::text(file.get("totalLines"))),
        ],
    )
}

/// Returns the blocks of a notebook: a text for each cell and output, texts in a row as one.
fn notebook(cells: &[Value]) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let add_text = |blocks: &mut Vec<Value>, text: String| match blocks.last_mut() {
        Some(last) if last["type"] == "text" => {
            let joined = format!("{}\n{text}", last["text"].as_str().unwrap_or_default());
            last["text"] = joined.into();
        }
        _ => blocks.push(json!({"type": "text", "text": text})),
    };
    for cell in cells {
        add_text(&mut blocks, cell_text(cell));
        for output in cell["outputs"].as_array().into_iter().flatten() {
            if js::is_truthy(&output["text"]) {
                add_text(&mut blocks, format!("\n{}", field(output, "text")));
            }
            if output["image"].is_object() {
                let source = json!({
                    "type": "base64",
                    "data": output["image"]["image_data"],
                    "media_type": output["image"]["media_type"],
                });
                blocks.push(json!({"type": "image", "source": source}));
            }
        }
    }
    blocks
}

fn cell_text(cell: &Value) -> String {
    let id = js::text(cell.get("cell_id"));
    let mut about = String::new();
    if cell["cellType"] != "code" {
        about = format!("<cell_type>{}</cell_type>", js::text(cell.get("cellType")));
    } else if cell["language"] != "python" {
        about = format!("<language>{}</language>", js::text(cell.get("language")));
    }
    let source = js::text(cell.get("source"));
    format!("<cell id=\"{id}\">{about}{source}</cell id=\"{id}\">")
}

/// Returns text blocks as JSON, with the keys in the order in which the client writes them.
fn blocks_as_json(blocks: &[Value]) -> String {
    let texts = blocks
        .iter()
        .map(|block| format!("{{\"text\":{},\"type\":\"text\"}}", block["text"]));
    format!("[{}]", texts.collect::<Vec<String>>().join(","))
}

/// A mentioned folder: the call that would have listed it, and its result.
pub(super) fn directory(attachment: &Value) -> Vec<Part> {
    let path = field(attachment, "path");
    let command = json!(format!("ls {}", shell_quoted(&path)));
    let description = json!(filled(texts::LISTING, &[("path", &path)]));
    let input = format!("{{\"command\":{command},\"description\":{description}}}");
    let listing = attachment["content"].as_str().unwrap_or_default();
    vec![
        call("Bash", &escape::brackets_of_closing_tags(&input)),
        result_of("Bash", js::trim_end(listing)),
    ]
}

/// Returns a word for a shell, in quotes if it has characters with a meaning.
fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./=,:@+-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

/// A file that changed on disk.
pub(super) fn edited_text(attachment: &Value) -> String {
    let changes = if attachment["snippet"] == "" {
        texts::CHANGES_OMITTED.to_owned()
    } else {
        filled(
            texts::CHANGES,
            &[("snippet", &field(attachment, "snippet"))],
        )
    };
    let shown = escape::brackets_of_closing_tags(&changes);
    let note = if shown == changes {
        String::new()
    } else {
        format!("\n{}", changed_note(attachment))
    };
    filled(
        texts::FILE_CHANGED,
        &[
            ("filename", &escape::name(&attachment["filename"])),
            ("changes", &shown),
            ("note", &note),
        ],
    )
}

/// A PDF that is too large to include.
pub(super) fn pdf_reference(attachment: &Value) -> String {
    let filename = escape::name(&attachment["filename"]);
    let size = size(attachment.get("fileSize"));
    let pages = match attachment.get("pageCount") {
        Some(Value::Null) => {
            return filled(
                texts::PDF_OF_UNKNOWN_LENGTH,
                &[("filename", &filename), ("size", &size)],
            );
        }
        Some(count) if count.as_f64() == Some(1.0) => "1 page".to_owned(),
        count => format!("{} pages", js::text(count)),
    };
    filled(
        texts::PDF_TOO_LARGE,
        &[("filename", &filename), ("pages", &pages), ("size", &size)],
    )
}

/// Returns a number of bytes with a unit and at most one decimal.
fn size(bytes: Option<&Value>) -> String {
    let number = match bytes {
        Some(Value::Null) => return "null bytes".to_owned(),
        Some(Value::String(text)) => text.parse().ok(),
        other => other.and_then(Value::as_f64),
    };
    let Some(number) = number else {
        return "NaNGB".to_owned();
    };
    let mut value = number / 1024.0;
    if value < 1.0 {
        return format!("{} bytes", js::number_text(number));
    }
    for unit in ["KB", "MB"] {
        if value < 1024.0 {
            return format!("{}{unit}", one_decimal(value));
        }
        value /= 1024.0;
    }
    format!("{}GB", one_decimal(value))
}

fn one_decimal(value: f64) -> String {
    let text = format!("{:.1}", (value * 10.0).round() / 10.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
