//! Requests of sessions with any images and documents, checked by a stand-in for the API that decodes them.

use std::collections::HashSet;
use std::fs;
use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, ImageReader};
use serde_json::{Value, json};
use transcript_messages::OmissionReason;
use transcript_resume::Policy;
use transcript_resume::request::RequestOptions;
use transcript_testkit::rng::Rng;
use transcript_testkit::shared;

use crate::strict::{Loaded, for_each_session};
use crate::transcripts_under;

// ---------------------------------------------------------------------------------------------
// The API
// ---------------------------------------------------------------------------------------------

/// Returns why the API would refuse a request: shares no code with the crates, and decodes all media.
fn refusals(messages: &[Value]) -> Vec<String> {
    let mut check = Check::default();
    let mut before = None;
    for message in messages {
        check.message(message, before);
        before = message["role"].as_str();
    }
    check.end(messages);
    check.said
}

#[derive(Default)]
struct Check {
    said: Vec<String>,
    calls: HashSet<String>,
    open: HashSet<String>,
    /// The longer side of each image.
    sides: Vec<u32>,
}

impl Check {
    fn unless(&mut self, is_fine: bool, what: &str) {
        if !is_fine {
            self.said.push(what.to_owned());
        }
    }

    fn message(&mut self, message: &Value, before: Option<&str>) {
        let role = message["role"].as_str().unwrap_or_default();
        let follows = match before {
            None => "user",
            Some("user") => "assistant system",
            Some("system") => "assistant",
            Some(_) => "user",
        };
        self.unless(
            follows.split(' ').any(|next| next == role),
            "order of roles",
        );
        let text = json!([{"type": "text", "text": message["content"]}]);
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks,
            _ => text.as_array().unwrap(),
        };
        self.unless(!blocks.is_empty(), "empty message");
        let mut calls = HashSet::new();
        let mut is_behind_results = false;
        for block in blocks {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            let is_answer = role == "assistant";
            match text("type") {
                "text" => self.unless(!text("text").trim().is_empty(), "blank text"),
                "thinking" => self.unless(is_answer && !text("signature").is_empty(), "unsigned"),
                "redacted_thinking" => {
                    self.unless(is_answer && !text("data").is_empty(), "no data");
                }
                "tool_use" => {
                    let is_new = self.calls.insert(text("id").to_owned());
                    let is_call = is_answer && is_new && block["input"].is_object();
                    self.unless(is_call && !text("name").is_empty(), "call");
                    calls.insert(text("id").to_owned());
                }
                "tool_result" => {
                    let is_open = self.open.remove(text("tool_use_id"));
                    self.unless(!is_answer && is_open && !is_behind_results, "result");
                    let inner = block["content"].as_array();
                    inner
                        .into_iter()
                        .flatten()
                        .for_each(|part| self.medium(part));
                }
                "image" | "document" => {
                    self.unless(role == "user", "media of another role");
                    self.medium(block);
                }
                _ => {}
            }
            is_behind_results |= text("type") != "tool_result";
        }
        if role != "system" {
            self.unless(self.open.is_empty(), "a call without a result");
            self.open = calls;
        }
    }

    fn medium(&mut self, block: &Value) {
        let source = &block["source"];
        for part in source["content"].as_array().into_iter().flatten() {
            self.medium(part);
        }
        let text = |key: &str| source[key].as_str().unwrap_or_default();
        if text("type") != "base64" {
            return;
        }
        let Ok(bytes) = STANDARD.decode(text("data")) else {
            return self.said.push("base64".to_owned());
        };
        match block["type"].as_str() {
            Some("image") => {
                self.unless(text("data").len() <= 5 << 20, "an image over 5 MiB");
                let reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format();
                let format = reader.as_ref().ok().and_then(ImageReader::format);
                let media_type = format.map(|format| format.to_mime_type());
                self.unless(
                    media_type == Some(text("media_type")),
                    "the type of an image",
                );
                match reader.ok().and_then(|reader| reader.decode().ok()) {
                    Some(image) => self.sides.push(image.width().max(image.height())),
                    None => self.said.push("an image that cannot be decoded".to_owned()),
                }
            }
            Some("document") => match lopdf::Document::load_mem(&bytes) {
                Ok(pdf) => {
                    self.unless(!pdf.is_encrypted(), "an encrypted PDF");
                    self.unless(pdf.get_pages().len() <= 100, "a PDF of many pages");
                }
                Err(_) => self.said.push("no PDF".to_owned()),
            },
            _ => {}
        }
    }

    fn end(&mut self, messages: &[Value]) {
        self.unless(!messages.is_empty(), "no messages");
        self.unless(self.open.is_empty(), "a last call without a result");
        let max = match self.sides.len() {
            0..=20 => 8_000,
            _ => 2_000,
        };
        self.unless(self.sides.len() <= 100, "too many images");
        self.unless(self.sides.iter().all(|side| *side <= max), "pixels");
        let bytes: usize = messages
            .iter()
            .map(|message| message.to_string().len())
            .sum();
        self.unless(bytes <= 32 << 20, "32 MB");
    }
}

// ---------------------------------------------------------------------------------------------
// Media
// ---------------------------------------------------------------------------------------------

/// Sound media to begin with: type, and bytes.
struct Media {
    sound: Vec<(&'static str, Vec<u8>)>,
    wide: Vec<u8>,
    too_wide: Vec<u8>,
    encrypted: Vec<u8>,
    many_pages: [Vec<u8>; 2],
}

fn encode(width: u32, format: ImageFormat) -> Vec<u8> {
    let pixel = |x: u32, y: u32| image::Rgb([(x * 7) as u8, (y * 31) as u8, (x ^ y) as u8]);
    let image = DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, 24, pixel));
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Makes a PDF of empty pages. The objects of a modern one, and its cross references, are in compressed streams.
fn pdf(pages: usize, is_encrypted: bool, is_modern: bool) -> Vec<u8> {
    use lopdf::xref::XrefType;
    use lopdf::{Document, Object, dictionary};
    let mut document = Document::with_version("1.4");
    let root = document.new_object_id();
    let page = |document: &mut Document| {
        let page = dictionary! { "Type" => "Page", "Parent" => root,
        "MediaBox" => vec![0.into(), 0.into(), 9.into(), 9.into()] };
        document.add_object(page).into()
    };
    let kids: Vec<Object> = (0..pages).map(|_| page(&mut document)).collect();
    let tree = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => pages as i64 };
    document.objects.insert(root, tree.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => root });
    document.trailer.set("Root", catalog);
    if is_encrypted {
        let rules = dictionary! { "Filter" => "Standard", "V" => 1, "R" => 2, "P" => -4,
        "O" => Object::string_literal("o".repeat(32)), "U" => Object::string_literal("u".repeat(32)) };
        let rules = document.add_object(rules);
        document.trailer.set("Encrypt", rules);
    }
    let mut bytes = Vec::new();
    if is_modern {
        document.save_modern(&mut bytes).unwrap();
    } else {
        let table = XrefType::CrossReferenceTable;
        document.reference_table.cross_reference_type = table;
        document.save_to(&mut bytes).unwrap();
    }
    let has = |part: &str| {
        bytes
            .windows(part.len())
            .any(|window| window == part.as_bytes())
    };
    assert_eq!(has("/MediaBox"), !is_modern);
    assert_eq!(has("/XRef"), is_modern);
    bytes
}

impl Media {
    fn new() -> Self {
        let formats = [
            ("image/png", ImageFormat::Png),
            ("image/jpeg", ImageFormat::Jpeg),
            ("image/gif", ImageFormat::Gif),
            ("image/webp", ImageFormat::WebP),
        ];
        let images = formats.map(|(media_type, format)| (media_type, encode(40, format)));
        let mut sound = images.to_vec();
        for is_modern in [false, true] {
            sound.push(("application/pdf", pdf(3, false, is_modern)));
            sound.push(("application/pdf", pdf(100, false, is_modern)));
        }
        Self {
            sound,
            wide: encode(2_001, ImageFormat::Png),
            too_wide: encode(8_001, ImageFormat::Png),
            encrypted: pdf(1, true, false),
            many_pages: [pdf(101, false, false), pdf(101, false, true)],
        }
    }

    /// Returns a block of a sound or bad medium.
    fn any(&self, rng: &mut Rng) -> Value {
        let (media_type, bytes) = &self.sound[rng.below(self.sound.len())];
        let (mut media_type, mut bytes) = (*media_type, bytes.clone());
        match rng.below(14) {
            0 => bytes.truncate(rng.below(bytes.len())),
            1 => {
                let at = rng.below(bytes.len());
                // Damage inside of the data of a JPEG only shows as other colours.
                if media_type == "image/png" {
                    bytes[at] ^= 1 << rng.below(8);
                }
            }
            2 => media_type = "image/jpeg",
            3 => (media_type, bytes) = ("image/png", self.too_wide.clone()),
            4 => (media_type, bytes) = ("image/png", self.wide.clone()),
            5 => (media_type, bytes) = ("application/pdf", self.encrypted.clone()),
            6 => (media_type, bytes) = ("application/pdf", self.many_pages[rng.below(2)].clone()),
            7 => bytes = b"<html>404</html>".to_vec(),
            8 => bytes.clear(),
            9 if rng.below(20) == 0 && media_type != "application/pdf" => {
                bytes.resize((5 << 20) / 4 * 3 + 1, 0);
            }
            _ => {}
        }
        let mut data = STANDARD.encode(bytes);
        if rng.below(20) == 0 {
            data.push('!');
        }
        if rng.below(20) == 0 {
            data.retain(|digit| digit != '=');
        }
        let kind = match media_type {
            "application/pdf" => "document",
            _ => "image",
        };
        let block = json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}});
        if kind == "image" && rng.below(6) == 0 {
            let parts = json!([{"type": "text", "text": "A page."}, block]);
            return json!({"type": "document", "source": {"type": "content", "content": parts}});
        }
        block
    }
}

/// Makes a session with media in prompts, results and messages of the client, some with the error of the API.
fn session(media: &Media, seed: u64) -> Vec<u8> {
    const ERRORS: [&str; 5] = [
        "API Error: 400 Could not process image",
        "PDF too large (max 100 pages, 32MB)",
        "API Error: 413 request_too_large",
        "API Error: 400 image dimensions exceed max allowed size",
        "Prompt is too long",
    ];
    let mut rng = Rng::new(seed);
    let mut lines: Vec<Value> = Vec::new();
    let mut add = |kind: &str, content: Value, more: &[(&str, Value)]| {
        let number = lines.len();
        let parent = number.checked_sub(1).map(|parent| format!("e{parent}"));
        let mut line = json!({
            "type": kind, "uuid": format!("e{number}"), "parentUuid": parent, "sessionId": "s",
            "timestamp": "2026-11-01T10:00:00.000Z", "message": {"role": kind, "content": content},
        });
        if kind == "assistant" {
            line["message"]["id"] = json!(format!("m{number}"));
            line["message"]["model"] = json!("m");
        }
        for (key, value) in more {
            line[*key] = value.clone();
        }
        if line["isApiErrorMessage"] == true {
            line["message"]["model"] = json!("<synthetic>");
        }
        lines.push(line);
    };
    for turn in 0..rng.below(8) + 1 {
        let count = match rng.below(12) {
            0 => 25,
            1 => 60,
            _ => rng.below(4),
        };
        let mut some = || -> Vec<Value> { (0..count).map(|_| media.any(&mut rng)).collect() };
        let mut prompt = some();
        prompt.push(json!({"type": "text", "text": format!("Prompt {turn}.")}));
        add("user", json!(prompt), &[]);
        let id = format!("t{turn}");
        let call = json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
        add("assistant", call, &[]);
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": some()}]);
        add("user", result, &[]);
        if turn % 4 == 2 {
            let queued =
                json!({"type": "queued_command", "commandMode": "prompt", "prompt": some()});
            add("attachment", Value::Null, &[("attachment", queued)]);
        }
        if turn % 3 == 1 {
            add("user", json!(some()), &[("isMeta", json!(true))]);
        }
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        match rng.below(3) {
            0 => {
                let error = ERRORS[rng.below(ERRORS.len())];
                add(
                    "assistant",
                    text(error),
                    &[("isApiErrorMessage", json!(true))],
                );
            }
            _ => add("assistant", text("I see."), &[]),
        }
    }
    let lines = lines.iter().map(|line| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

fn messages(session: &Loaded, policy: Policy) -> Option<Vec<Value>> {
    let request = session.request(policy, &RequestOptions::new().prompt("Go on."));
    let json = request.messages.iter().map(|message| message.json());
    let messages = json.map(|json| serde_json::from_str(&json).unwrap());
    request.is_resumable().then(|| messages.collect())
}

fn count(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |count| count.parse().unwrap())
}

#[test]
fn the_api_accepts_requests_of_sessions_with_any_media() {
    let media = Media::new();
    let (mut refused_before, all) = (0, count("TRANSCRIPT_SEEDS", 200));
    for seed in 0..all {
        let session = Loaded::new(&session(&media, seed));
        let request = messages(&session, Policy::Recover).expect("it is resumable");
        assert_eq!(refusals(&request), Vec::<String>::new(), "seed {seed}");
        // The request of the client is the one that was sent before there were limits.
        let before = messages(&session, Policy::Vendor).expect("it is resumable");
        refused_before += u64::from(!refusals(&before).is_empty());
    }
    println!("{refused_before} of {all} requests of the client are refused");
    assert!(refused_before > all / 2, "{refused_before} of {all}");
}

#[test]
fn sound_media_are_sent() {
    let media = Media::new();
    for (media_type, bytes) in &media.sound {
        let kind = match *media_type {
            "application/pdf" => "document",
            _ => "image",
        };
        let data = STANDARD.encode(bytes);
        let block = json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}});
        let line = json!({"type": "user", "uuid": "e0", "parentUuid": null, "timestamp": "2026-11-01T10:00:00Z",
            "message": {"role": "user", "content": [block]}});
        let session = Loaded::new(format!("{line}\n").as_bytes());
        let request = session.request(Policy::Recover, &RequestOptions::new());
        assert_eq!(request.omissions, [], "{media_type}");
        let reasons = request.omissions.iter().map(|omission| omission.reason);
        assert!(
            !reasons
                .into_iter()
                .any(|reason| reason == OmissionReason::OversizedMedia)
        );
    }
}

#[test]
fn the_api_accepts_requests_of_any_session() {
    let mut checked = 0;
    let mut look = |name: &str, bytes: &[u8]| {
        let session = Loaded::new(bytes);
        if let Some(request) = messages(&session, Policy::Recover) {
            assert_eq!(refusals(&request), Vec::<String>::new(), "{name}");
            checked += 1;
        }
    };
    for_each_session(count("TRANSCRIPT_SEEDS", 500), &mut look);
    let mut files = Vec::new();
    if let Some(shared) = shared() {
        for folder in ["oracle2", "oracle3", "reports/cases"] {
            transcripts_under(&shared.join(folder), &mut files);
        }
    }
    for file in files {
        let bytes = fs::read(&file).unwrap();
        // Some reports are about files in UTF-16, which are not transcripts; and the GIF of one has fewer pixels than it
        // names, which most readers accept.
        let is_odd_gif = file
            .components()
            .any(|part| part.as_os_str() == "img-gif-as-png");
        if !bytes.starts_with(b"\xff\xfe") && !is_odd_gif {
            look(&file.display().to_string(), &bytes);
        }
    }
    assert!(checked > 500, "{checked}");
}
