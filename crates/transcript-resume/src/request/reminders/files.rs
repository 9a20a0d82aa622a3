//! Attachments with the content of files.

use transcript_format::attachment_texts::{self as texts, filled};
use transcript_format::object::{JsonKind, Raw};
use transcript_messages::text::{is_js_space, quoted};

use super::escape;
use super::fields::{Fields, number, number_text, text};
use super::piece::Piece;

/// A mentioned file: the call that would have read it, and its result (NOTE-9, NOTE-11).
pub(super) fn file(attachment: &Fields<'_>) -> Vec<Vec<Piece>> {
    let Some(shown) = shown(&attachment.within("content")) else {
        return Vec::new();
    };
    let input = format!("{{\"file_path\":{}}}", quoted(&attachment.text("filename")));
    let mut parts = vec![vec![Piece::Text(call("Read", &input))]];
    match shown {
        SentContent::Blocks(pieces) => parts.push(pieces),
        SentContent::Nothing => {
            parts.push(vec![Piece::Text(texts::RESULT_ERROR.to_owned())]);
        }
        SentContent::Text(text) => {
            parts.push(vec![Piece::Text(result_of("Read", &text))]);
            let notes = notes(attachment).into_iter();
            parts.extend(notes.map(|note| vec![Piece::Text(note)]));
        }
    }
    parts
}

/// The content of a file that is sent.
enum SentContent {
    Text(String),
    /// An image, or the texts and images of a notebook.
    Blocks(Vec<Piece>),
    /// The file has no content that could be shown.
    Nothing,
}

/// Returns the content of a file that is sent; `None` for a kind of file of which nothing is sent.
fn shown(content: &Fields<'_>) -> Option<SentContent> {
    let file = content.within("file");
    Some(match &*content.str("type") {
        "text" => text_file(&file).map_or(SentContent::Nothing, SentContent::Text),
        "pdf" => SentContent::Text(filled(
            texts::PDF_READ,
            &[
                ("path", &file.text("filePath")),
                ("size", &size(file.get("originalSize"))),
            ],
        )),
        "notebook" if is_list(&file, "cells") => {
            let pieces = notebook(&file);
            if pieces.iter().any(is_image) {
                SentContent::Blocks(pieces)
            } else {
                let json = texts_as_json(&pieces);
                SentContent::Text(escape::brackets_of_closing_tags(&json))
            }
        }
        "notebook" => SentContent::Nothing,
        "image" => SentContent::Blocks(vec![image(file.get("base64"), file.get("type"))]),
        _ => return None,
    })
}

/// Returns whether an image is sent for a mentioned file.
pub(super) fn holds_image(attachment: &Fields<'_>) -> bool {
    let shown = shown(&attachment.within("content"));
    matches!(shown, Some(SentContent::Blocks(pieces)) if pieces.iter().any(is_image))
}

fn is_list(object: &Fields<'_>, key: &str) -> bool {
    object.get(key).map(Raw::kind) == Some(JsonKind::Array)
}

fn is_image(piece: &Piece) -> bool {
    matches!(piece, Piece::Media(_))
}

fn image(data: Option<Raw<'_>>, media_type: Option<Raw<'_>>) -> Piece {
    let json = |value: Option<Raw<'_>>| value.map_or("null", Raw::text).to_owned();
    Piece::Media(format!(
        r#"{{"type":"image","source":{{"type":"base64","data":{},"media_type":{}}}}}"#,
        json(data),
        json(media_type)
    ))
}

/// Returns notes for the model about a text that is not sent as it is on disk.
fn notes(attachment: &Fields<'_>) -> Vec<String> {
    let content = attachment.within("content");
    let kind = content.str("type");
    let is_escaped = || {
        // The values are compared without the escapes with which they may be stored.
        let file = content.within("file").raw();
        let file = file.and_then(|file| serde_json::from_str(file.text()).ok());
        file.is_some_and(|file: serde_json::Value| {
            let json = file.to_string();
            escape::brackets_of_closing_tags(&json) != json
        })
    };
    let mut notes = Vec::new();
    if ["text", "notebook"].contains(&&*kind) && is_escaped() {
        notes.push(changed_note(attachment));
    }
    if kind == "text" && attachment.is_set("truncated") {
        notes.push(filled(
            texts::FILE_TRUNCATED,
            &[("filename", &attachment.text("filename"))],
        ));
    }
    notes
}

fn call(tool: &str, input: &str) -> String {
    let input = escape::brackets_of_closing_tags(input);
    filled(texts::CALL, &[("tool", tool), ("input", &input)])
}

fn result_of(tool: &str, text: &str) -> String {
    filled(texts::RESULT, &[("tool", tool), ("result", text)])
}

fn changed_note(attachment: &Fields<'_>) -> String {
    filled(
        texts::FILE_ESCAPED,
        &[("filename", &attachment.name("filename"))],
    )
}

/// Returns the lines of a text file with their numbers; `None` if there is no content to show.
fn text_file(file: &Fields<'_>) -> Option<String> {
    if !file.exist() {
        return None;
    }
    if !file.is_set("content") {
        return Some(empty_file(file));
    }
    let content = file.get("content")?.str()?;
    // At the end of a line a carriage return belongs to the line feed.
    let content = content.replace("\r\n", "\n");
    let lines = content.split('\n').enumerate();
    let numbered: Vec<String> = lines
        .map(|(index, line)| format!("{}\t{line}", line_number(file, index)))
        .collect();
    Some(escape::brackets_of_closing_tags(&numbered.join("\n")))
}

/// Returns the number of the line `index` after the first one.
fn line_number(file: &Fields<'_>, index: usize) -> String {
    let first = file.get("startLine");
    if index == 0 {
        return text(first);
    }
    let first = first.map_or(f64::NAN, |first| match first.kind() {
        JsonKind::Null => 0.0,
        JsonKind::String => first.str().unwrap_or_default().parse().unwrap_or(f64::NAN),
        _ => number(first).unwrap_or(f64::NAN),
    });
    number_text(first + index as f64)
}

/// Returns the text for a file without content: an empty line, or a warning that the file is
/// empty or has fewer lines than the place where reading began.
fn empty_file(file: &Fields<'_>) -> String {
    let lines_read = file.number("numLines").unwrap_or(0.0);
    let total = file.number("totalLines");
    let is_empty = total == Some(0.0);
    let is_one_line =
        file.get("totalLines").is_some_and(Raw::is_null) || total.is_some_and(|total| total <= 1.0);
    if is_empty || (lines_read > 0.0 && is_one_line) {
        return texts::FILE_EMPTY.to_owned();
    }
    if lines_read > 0.0 {
        return format!("{}\t", line_number(file, 0));
    }
    filled(
        texts::FILE_TOO_SHORT,
        &[
            ("offset", &file.text("startLine")),
            ("lines", &file.text("totalLines")),
        ],
    )
}

/// Returns a text for each cell and output of a notebook, texts in a row as one, and the images of
/// outputs.
fn notebook(file: &Fields<'_>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let add_text = |pieces: &mut Vec<Piece>, text: String| match pieces.last_mut() {
        Some(Piece::Text(last)) => {
            last.push('\n');
            last.push_str(&text);
        }
        _ => pieces.push(Piece::Text(text)),
    };
    for cell in file.objects("cells") {
        add_text(&mut pieces, cell_text(&cell));
        for output in cell.objects("outputs") {
            if output.is_set("text") {
                add_text(&mut pieces, format!("\n{}", output.text("text")));
            }
            let shown = output.within("image");
            if shown.exist() {
                pieces.push(image(shown.get("image_data"), shown.get("media_type")));
            }
        }
    }
    pieces
}

fn cell_text(cell: &Fields<'_>) -> String {
    let (id, source) = (cell.text("cell_id"), cell.text("source"));
    let is_code = cell.str("cellType") == "code";
    let about = if !is_code {
        format!("<cell_type>{}</cell_type>", cell.text("cellType"))
    } else if cell.str("language") != "python" {
        format!("<language>{}</language>", cell.text("language"))
    } else {
        String::new()
    };
    format!("<cell id=\"{id}\">{about}{source}</cell id=\"{id}\">")
}

/// Returns texts as JSON blocks, with the keys in the order in which the client writes them.
fn texts_as_json(pieces: &[Piece]) -> String {
    let texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(format!("{{\"text\":{},\"type\":\"text\"}}", quoted(text))),
        Piece::Media(_) => None,
    });
    format!("[{}]", texts.collect::<Vec<String>>().join(","))
}

/// A mentioned folder: the call that would have listed it, and its result.
pub(super) fn directory(attachment: &Fields<'_>) -> [String; 2] {
    let path = attachment.text("path");
    let input = format!(
        "{{\"command\":{},\"description\":{}}}",
        quoted(&format!("ls {}", shell_quoted(&path))),
        quoted(&filled(texts::LISTING, &[("path", &path)]))
    );
    let listing = attachment.str("content");
    let listing = listing.trim_end_matches(is_js_space);
    [call("Bash", &input), result_of("Bash", listing)]
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
pub(super) fn edited_text(attachment: &Fields<'_>) -> String {
    let changes = if attachment.get("snippet").and_then(Raw::str).as_deref() == Some("") {
        texts::CHANGES_OMITTED.to_owned()
    } else {
        filled(texts::CHANGES, &[("snippet", &attachment.text("snippet"))])
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
            ("filename", &attachment.name("filename")),
            ("changes", &shown),
            ("note", &note),
        ],
    )
}

/// A PDF that is too large to include.
pub(super) fn pdf_reference(attachment: &Fields<'_>) -> String {
    let filename = attachment.name("filename");
    let size = size(attachment.get("fileSize"));
    let pages = match attachment.get("pageCount") {
        Some(count) if count.is_null() => {
            return filled(
                texts::PDF_OF_UNKNOWN_LENGTH,
                &[("filename", &filename), ("size", &size)],
            );
        }
        Some(count) if number(count) == Some(1.0) => "1 page".to_owned(),
        count => format!("{} pages", text(count)),
    };
    filled(
        texts::PDF_TOO_LARGE,
        &[("filename", &filename), ("pages", &pages), ("size", &size)],
    )
}

/// Returns a number of bytes with a unit and at most one decimal.
fn size(bytes: Option<Raw<'_>>) -> String {
    let bytes = match bytes {
        Some(bytes) if bytes.is_null() => return "null bytes".to_owned(),
        Some(bytes) if bytes.kind() == JsonKind::String => {
            bytes.str().and_then(|text| text.parse().ok())
        }
        bytes => bytes.and_then(number),
    };
    let Some(bytes) = bytes else {
        return "NaNGB".to_owned();
    };
    let mut value: f64 = bytes / 1024.0;
    if value < 1.0 {
        return format!("{} bytes", number_text(bytes));
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
