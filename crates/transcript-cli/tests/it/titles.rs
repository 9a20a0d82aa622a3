//! A session has one title, whatever reads it: lists read the ends of its file, the others all lines.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_engine::{History, Policy};
use transcript_format::title::TitleSource;
use transcript_reader::SessionRow;
use transcript_render::{Header, RenderOptions};
use transcript_testkit::rng::Rng;

use crate::{stdout, transcript};

const SESSIONS: u64 = 600;
/// The number of bytes that clients read at the end of a file (LIST-1).
const NEAR: usize = 64 << 10;

/// A session with random lines about itself, and its title by the rule in words: the slowest reader there is.
struct Titled {
    path: PathBuf,
    title: Option<(String, TitleSource)>,
}

impl Titled {
    fn make(project: &Path, seed: u64) -> Self {
        let rng = &mut Rng::new(seed);
        let id = format!("{seed:08x}-1111-4222-8333-444455556666");
        let uuid = |number: usize| format!("{number:08x}-5555-4666-8777-888899990000");
        let messages = rng.range(1, 6);
        let is_long = rng.one_in(4);
        let mut lines: Vec<Vec<Value>> = Vec::new();
        for number in 0..messages {
            let kind = ["user", "assistant"][number % 2];
            // Some sessions are longer than what clients read at their end.
            let words = if is_long && rng.one_in(2) {
                "long ".repeat(9 << 10)
            } else {
                format!("message {number} of {seed}")
            };
            let parent = number.checked_sub(1).map(uuid);
            lines.push(vec![json!({"type": kind, "uuid": uuid(number), "parentUuid": parent, "isSidechain": false,
                "sessionId": id, "cwd": "/work/maps", "version": "2.1.240", "timestamp": format!("2026-03-01T10:00:{number:02}.000Z"),
                "message": {"role": kind, "id": format!("m{number}"), "model": "m", "content": [{"type": "text", "text": words}]}})]);
        }
        for number in 0..rng.below(7) {
            let text = match rng.below(6) {
                0 => json!(""),
                1 => json!(number),
                _ => json!(format!("name {number} of {seed} \"ü\"")),
            };
            let line = match rng.below(8) {
                0 | 1 => json!({"type": "custom-title", "customTitle": text, "sessionId": id}),
                2 => json!({"type": "custom-title", "sessionId": id}),
                3 | 4 => json!({"type": "ai-title", "aiTitle": text, "sessionId": id}),
                5 => json!({"type": "agent-name", "agentName": text, "sessionId": id}),
                // Of this conversation, or of another one.
                _ => {
                    json!({"type": "summary", "summary": text, "leafUuid": uuid(rng.below(messages * 2))})
                }
            };
            let place = rng.below(lines.len() + 1);
            // An entry that was written after a torn line is on the same line.
            let torn = rng.one_in(6).then_some(Value::Null);
            lines.insert(place, torn.into_iter().chain([line]).collect());
        }
        let mut text = String::new();
        let mut found: Vec<(usize, Value)> = Vec::new();
        for line in lines {
            let start = text.len();
            if line.len() > 1 {
                text.push_str(
                    r#"{"type":"user","uuid":"t","message":{"role":"user","content":"cut of"#,
                );
            }
            for value in line.into_iter().filter(|value| !value.is_null()) {
                // As clients write them: the type comes first.
                let mut rest = value.clone();
                let kind = rest.as_object_mut().unwrap().remove("type").unwrap();
                text.push_str(&format!("{{\"type\":{kind},{}", &rest.to_string()[1..]));
                found.push((start, value));
            }
            text.push('\n');
        }
        let path = project.join(format!("{id}.jsonl"));
        fs::write(&path, &text).unwrap();
        let mut beside = None;
        if rng.one_in(4) {
            let title = *rng.pick(&["beside", ""]);
            fs::create_dir(project.join(&id)).unwrap();
            let file = project.join(&id).join("custom-title.json");
            fs::write(file, json!({"customTitle": title}).to_string()).unwrap();
            beside = Some(title).filter(|title| !title.is_empty());
        }
        let title = by_the_rule(&found, text.len(), beside);
        Self { path, title }
    }
}

/// The rule of `docs/listing.md`, word for word.
fn by_the_rule(
    lines: &[(usize, Value)],
    len: usize,
    beside: Option<&str>,
) -> Option<(String, TitleSource)> {
    let last = |kind: &str, key: &str, may_be_empty: bool| {
        let mut lines = lines.iter().rev();
        lines.find_map(|(start, line)| {
            let text = line[key].as_str().filter(|_| line["type"] == kind)?;
            (may_be_empty || !text.is_empty()).then_some((*start, text))
        })
    };
    let custom = last("custom-title", "customTitle", true);
    let is_near = custom.is_some_and(|(start, _)| start >= len.saturating_sub(NEAR));
    let custom = custom.map(|(_, text)| text);
    let custom = if is_near { custom } else { beside.or(custom) };
    let ai = last("ai-title", "aiTitle", false).map(|(_, text)| text);
    let uuids: HashSet<_> = lines
        .iter()
        .filter_map(|(_, line)| line["uuid"].as_str())
        .collect();
    let of_here = |line: &Value| {
        line["leafUuid"]
            .as_str()
            .is_some_and(|leaf| uuids.contains(leaf))
    };
    let here: Vec<_> = lines.iter().filter(|(_, line)| of_here(line)).collect();
    let summary = here
        .iter()
        .rev()
        .find_map(|(_, line)| line["summary"].as_str().filter(|text| !text.is_empty()));
    let given = [
        (custom, TitleSource::Custom),
        (ai, TitleSource::Ai),
        (summary, TitleSource::Summary),
    ];
    given.into_iter().find_map(|(title, source)| {
        let title = title.filter(|title| !title.is_empty())?;
        Some((title.to_owned(), source))
    })
}

fn project() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-work-maps");
    fs::create_dir(&project).unwrap();
    (root, project)
}

#[test]
fn lists_and_conversations_read_the_same_title() {
    let (_root, project) = project();
    let mut sources = HashMap::new();
    for seed in 0..SESSIONS {
        let Titled { path, title } = Titled::make(&project, seed);
        let row = SessionRow::at(&path);
        assert_eq!(
            row.title.zip(row.title_source),
            title,
            "a list, seed {seed}"
        );
        let history = History::open(&path).unwrap();
        for policy in [Policy::Vendor, Policy::Recover] {
            let state = history.state(policy).unwrap();
            assert_eq!(
                state.title.zip(state.title_source),
                title,
                "a state, seed {seed}"
            );
            let (tree, options) = (history.tree(policy), RenderOptions::default());
            let header = Header::read(history.source(), None, &tree, &tree.path(), &options);
            let expected = title.as_ref().map(|(title, _)| title);
            assert_eq!(
                header.unwrap().title.as_ref(),
                expected,
                "a header, seed {seed}"
            );
        }
        *sources.entry(title.map(|(_, source)| source)).or_insert(0) += 1;
    }
    // Each rule decided some of them.
    assert!(
        sources.len() == 4 && sources.values().all(|count| *count > 20),
        "{sources:?}"
    );
}

#[test]
fn every_command_prints_the_same_title() {
    let (root, project) = project();
    let sessions: Vec<_> = (0..12).map(|seed| Titled::make(&project, seed)).collect();
    let root = root.path().to_str().unwrap();
    let records = |arguments: &[&str]| {
        let output = transcript(&[arguments, &["--root", root]].concat());
        let text = stdout(&output);
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let listed = records(&["list", "--json"]);
    let found = records(&["search", "--json", "--no-cache", "message"]);
    let mut titled = 0;
    for Titled { path, title } in &sessions {
        let file = path.to_str().unwrap();
        let of = |records: &[Value]| {
            let record = records.iter().find(|record| record["path"] == file);
            record.map(|record| record["title"].clone())
        };
        let title = title.as_ref().map(|(title, _)| title.as_str());
        assert_eq!(of(&listed), Some(json!(title)), "{file}");
        if let (Some(title), Some(found)) = (title, of(&found)) {
            assert_eq!(found, title, "{file}");
        }
        let resumed = records(&["resume", "--json", file]);
        assert_eq!(resumed[0]["state"]["title"], json!(title), "{file}");
        let Some(title) = title else {
            continue;
        };
        titled += 1;
        for arguments in [
            &["replay"][..],
            &["replay", "--format", "markdown"],
            &["export", "--text", "-"],
            &["export", "--markdown", "-"],
        ] {
            let text = stdout(&transcript(&[arguments, &[file, "--root", root]].concat()));
            let head: String = text.lines().take(12).collect();
            assert!(head.contains(title), "{arguments:?} of {file}: {head}");
        }
    }
    assert!(titled > 4, "{titled} sessions with a title");
}
