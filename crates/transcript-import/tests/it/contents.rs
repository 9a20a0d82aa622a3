//! Contents that stay in their files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript_import::{
    Agent, Conversation, Error, ImageData, NodeId, Piece, Policy, Store, Text, dialect,
};
use transcript_storage::{Disk, MemoryDisk};

use crate::support::{lines, read_file};

/// Texts of all kinds that JSON escapes, longer than what is held in memory.
fn texts() -> [String; 5] {
    [
        "plain words ".repeat(20),
        "line\n\ttab \"quoted\" \\ back".repeat(10),
        "é 🙂 日本語 \u{2028}".repeat(10_000),
        "\u{1}\u{1f}\u{7f}".repeat(50_000),
        "x".repeat(300_000),
    ]
}

fn prompt(id: &str, parent: &str, text: &str) -> Value {
    let message = json!({"role": "user", "content": text});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message})
}

/// Returns a session of Pi with a prompt for each text, on a disk.
fn session(texts: &[String]) -> (MemoryDisk, PathBuf) {
    let mut records = vec![json!({"type": "session", "id": "s", "timestamp": "t"})];
    for (number, text) in texts.iter().enumerate() {
        let parent = number
            .checked_sub(1)
            .map_or(String::new(), |number| format!("p{number}"));
        records.push(prompt(&format!("p{number}"), &parent, text));
    }
    let (disk, path) = (MemoryDisk::new(), PathBuf::from("/s.jsonl"));
    disk.put(&path, lines(&records));
    (disk, path)
}

fn stored(conversation: &Conversation, id: NodeId) -> &Text {
    conversation.stored(id).text.expect("it has a text")
}

fn is_held(text: &Text) -> bool {
    text.pieces()
        .iter()
        .all(|piece| matches!(piece, Piece::Held(_)))
}

#[test]
fn long_texts_stay_in_the_file_and_are_read_whole() {
    let texts = texts();
    let (disk, path) = session(&texts);
    let conversation = read_file(&disk, Agent::Pi, &path, Policy::Recover);
    assert_eq!(conversation.live.len(), texts.len());
    for (id, text) in conversation.live.iter().zip(&texts) {
        assert!(!is_held(stored(&conversation, *id)));
        let content = conversation.content(*id).expect("it is read");
        assert_eq!(content.text.as_ref(), Some(text));
    }
}

#[test]
fn escaped_characters_of_any_kind_are_copied() {
    let body = r#"\u00e9\ud83d\ude42\ud83d \/\b\f\u0000 "#.repeat(10_000);
    let record = prompt("p", "", "TEXT").to_string().replace("TEXT", &body);
    let disk = MemoryDisk::new();
    disk.put(Path::new("/s.jsonl"), record);
    let conversation = read_file(&disk, Agent::Pi, Path::new("/s.jsonl"), Policy::Recover);
    let content = conversation
        .content(conversation.live[0])
        .expect("it is read");
    let expected = "é🙂\u{fffd} /\u{8}\u{c}\0 ".repeat(10_000);
    assert_eq!(content.text, Some(expected));
}

/// Writes other bytes into a file that stays the same one.
fn overwrite(disk: &MemoryDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, false).expect("it is there").file;
    file.truncate(0).expect("it is cut");
    file.append(bytes).expect("it is written");
}

#[test]
fn other_bytes_are_never_read_as_the_text() {
    let texts = texts();
    let (disk, path) = session(&texts);
    let whole = disk.bytes(&path).expect("it is there");
    let conversation = read_file(&disk, Agent::Pi, &path, Policy::Recover);
    let read = |at: usize| conversation.content(conversation.live[at]);
    let is_changed = |at: usize| matches!(read(at), Err(Error::Changed { .. }));
    // The last byte of the last text.
    let mut changed = whole.clone();
    let at = changed
        .iter()
        .rposition(|byte| *byte == b'x')
        .expect("it is there");
    changed[at] = b'y';
    overwrite(&disk, &path, &changed);
    assert!(is_changed(4));
    assert_eq!(
        read(0).expect("it is unchanged").text.as_ref(),
        Some(&texts[0])
    );
    let mut items = Vec::new();
    assert!(matches!(
        conversation.write_items(&mut items),
        Err(Error::Changed { .. })
    ));
    overwrite(&disk, &path, &whole[..whole.len() - 100]);
    assert!(is_changed(4));
    overwrite(&disk, &path, b"");
    assert!(is_changed(0));
    // What follows the texts changes nothing.
    overwrite(&disk, &path, &[&whole[..], b"{}\n"].concat());
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(read(at).expect("it is unchanged").text.as_ref(), Some(text));
    }
    // Another file with the name is not read.
    disk.put(&path, "");
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(read(at).expect("it is unchanged").text.as_ref(), Some(text));
    }
}

#[test]
fn texts_of_repaired_lines_are_held() {
    let (disk, path) = session(&[]);
    let line = prompt("p", "", &"word ".repeat(100))
        .to_string()
        .into_bytes();
    let mut invalid = line.clone();
    let at = invalid.len() / 2;
    invalid[at] = 0xff;
    let words = "word ".repeat(100);
    let torn = format!(
        r#"{{"type":"message","id":"p","parentId":null,"message":{{"role":"user","content":"{words}"#
    );
    let torn = torn.into_bytes();
    for (line, is_repaired) in [(line, false), (invalid, true), (torn, true)] {
        disk.put(&path, line);
        let conversation = read_file(&disk, Agent::Pi, &path, Policy::Recover);
        let text = stored(&conversation, conversation.live[0]);
        assert_eq!(is_held(text), is_repaired, "{text:?}");
    }
}

/// A process cannot have any number of files open.
#[test]
fn texts_of_many_files_are_read() {
    let disk = MemoryDisk::new();
    let text = |file: usize| format!("prompt of the file {file} ").repeat(10);
    for file in 0..300 {
        let header = json!({"sessionId": "s", "projectHash": "h"});
        let id = format!("m{file}");
        let prompt = json!({"id": id, "timestamp": "t", "type": "user", "content": text(file)});
        let name = format!("/home/tmp/w/chats/session-{file:03}.jsonl");
        disk.put(name, lines(&[header, prompt]));
    }
    let store = Store {
        disk: &disk,
        path: Path::new("/home"),
    };
    let read = dialect(Agent::Gemini).read(store, "s", Policy::Recover);
    let conversation = read.expect("it is read");
    assert_eq!(conversation.sources.len(), 300);
    let mut held = 0;
    for (file, id) in conversation.ids().enumerate() {
        let content = conversation.content(id).expect("it is read");
        assert_eq!(content.text, Some(text(file)));
        held += usize::from(is_held(stored(&conversation, id)));
    }
    assert_eq!(held, 300 - 256);
}

/// The parts of a text that the agent puts together are each in the file.
#[test]
fn text_around_stored_pieces_is_held() {
    let output = "of the command ".repeat(20);
    let message =
        json!({"role": "bashExecution", "command": "ls", "output": output, "exitCode": 2});
    let record = json!({"type": "message", "id": "p", "parentId": null, "message": message});
    let disk = MemoryDisk::new();
    disk.put(Path::new("/s.jsonl"), record.to_string());
    let conversation = read_file(&disk, Agent::Pi, Path::new("/s.jsonl"), Policy::Recover);
    let live = conversation.live[0];
    assert_eq!(stored(&conversation, live).pieces().len(), 3);
    let expected = format!("Ran `ls`\n```\n{output}\n```\n\nCommand exited with code 2");
    let content = conversation.content(live).expect("it is read");
    assert_eq!(content.text, Some(expected));
}

/// Returns the images of the only live node of a file.
fn images(
    agent: Agent,
    name: &str,
    records: &[Value],
) -> Vec<(Option<String>, &'static str, String)> {
    let disk = MemoryDisk::new();
    disk.put(Path::new(name), lines(records));
    let conversation = read_file(&disk, agent, Path::new(name), Policy::Recover);
    let content = conversation
        .content(conversation.live[0])
        .expect("it is read");
    let images = content.images.iter().map(|image| {
        let (kind, text) = match &image.data {
            ImageData::Base64(text) => ("base64", text),
            ImageData::Url(text) => ("url", text),
            ImageData::Path(text) => ("path", text),
            other => panic!("{other:?}"),
        };
        let text = conversation.text(text).expect("it is read");
        (image.media_type.as_deref().map(str::to_owned), kind, text)
    });
    images.collect()
}

#[test]
fn images_have_their_bytes_or_their_place() {
    let data = "iVBORw0KGgo+/A==".repeat(100);
    let codex = |content: Value| {
        let payload = json!({"type": "message", "role": "user", "content": content});
        json!({"timestamp": "t", "type": "response_item", "payload": payload})
    };
    let image = |url: &str| json!({"type": "input_image", "image_url": url});
    let found = images(
        Agent::Codex,
        "/rollout-t.jsonl",
        &[codex(json!([
            {"type": "input_text", "text": "look"},
            image(&format!("data:image/png;base64,{data}")),
            image("https://example.org/a.png"),
        ]))],
    );
    let png = || Some("image/png".to_owned());
    let url = (None, "url", "https://example.org/a.png".to_owned());
    assert_eq!(found, [(png(), "base64", data.clone()), url]);
    let message = json!({"role": "user", "content": [{"type": "image", "data": data, "mimeType": "image/png"}]});
    let record = json!({"type": "message", "id": "p", "parentId": null, "message": message});
    let found = images(Agent::Pi, "/s.jsonl", &[record]);
    assert_eq!(found, [(png(), "base64", data.clone())]);
    for part in [
        json!({"inlineData": {"mimeType": "image/png", "data": data}}),
        json!({"fileData": {"mimeType": "image/png", "fileUri": data}}),
    ] {
        let kind = if part.get("fileData").is_some() {
            "url"
        } else {
            "base64"
        };
        let record = json!({"id": "a", "timestamp": "t", "type": "user", "content": [part]});
        let found = images(Agent::Gemini, "/session-s.jsonl", &[record]);
        assert_eq!(found, [(png(), kind, data.clone())]);
    }
    let attachment = json!({"type": "file", "mimeType": "image/png", "path": "/w/a.png"});
    let data = json!({"content": "look", "attachments": [attachment]});
    let record = json!({"type": "user.message", "data": data, "id": "a", "timestamp": "t"});
    let found = images(Agent::Copilot, "/events.jsonl", &[record]);
    assert_eq!(found, [(png(), "path", "/w/a.png".to_owned())]);
}

#[test]
fn inputs_are_json_or_text() {
    let long = "word ".repeat(30_000);
    let arguments = json!({"cmd": long, "lines": "a\u{2028}b", "n": [1, null]}).to_string();
    let pretty = arguments.replace("{\"cmd\"", "\n{ \"cmd\"");
    let cases = [
        (arguments.clone(), arguments.clone()),
        (
            pretty,
            format!(" {}", arguments.replace("{\"cmd\"", "{ \"cmd\"")),
        ),
        (long.clone(), Value::from(long).to_string()),
        (String::new(), "\"\"".to_owned()),
    ];
    for (arguments, expected) in cases {
        let payload =
            json!({"type": "function_call", "name": "n", "call_id": "c", "arguments": arguments});
        let record = json!({"timestamp": "t", "type": "response_item", "payload": payload});
        let disk = MemoryDisk::new();
        disk.put(Path::new("/rollout-t.jsonl"), record.to_string());
        let path = Path::new("/rollout-t.jsonl");
        let conversation = read_file(&disk, Agent::Codex, path, Policy::Recover);
        let input = conversation.stored(conversation.live[0]).input;
        let mut written = Vec::new();
        let input = input.expect("it has an input");
        conversation
            .write_input(input, &mut written)
            .expect("it is read");
        let written = String::from_utf8(written).expect("it is text");
        let expected = expected.replace('\u{2028}', "\\u2028");
        assert_eq!(written.trim_start(), expected.trim_start());
    }
}
