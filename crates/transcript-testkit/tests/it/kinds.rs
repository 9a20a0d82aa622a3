//! All crates take lines of a kind for what the table of kinds says, for each kind and for one that is not known.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::kind::{ChainRole, Counts, DisplayForm, EntryKind, Link};
use transcript_format::title::TitleSource;
use transcript_reader::{Bodies, EntryNo, Index, LoadOptions, SessionFile, SessionRow, Source};
use transcript_resume::items::Displays;
use transcript_resume::{PathState, Policy, Tree};
use transcript_storage::{MemoryDisk, ReadDisk};
use transcript_testkit::rng::Rng;
use transcript_verify::repair::{Bloat, Repair};

const PATH: &str = "/p/0b932c9f-9928-4cec-9e82-22c1703d5f54.jsonl";

/// Every kind with its name, and one that is not known.
fn kinds() -> impl Iterator<Item = (EntryKind, &'static str)> {
    let known = EntryKind::ALL.iter().map(|kind| (*kind, kind.name()));
    known.chain([(EntryKind::Other, "of-tomorrow")])
}

/// A line of the conversation.
fn message(kind: &str, uuid: &str, parent: Option<&str>) -> Value {
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "sessionId": "s", "cwd": "/w",
        "timestamp": "2026-11-20T10:00:00.000Z",
        "message": {"role": kind, "id": uuid, "content": [{"type": "text", "text": uuid}]},
    })
}

/// A line of a kind with this text.
fn line(kind: EntryKind, name: &str, text: &Value) -> Value {
    let mut line = json!({"type": name, "sessionId": "s"});
    line[kind.row().text.unwrap_or("text")] = text.clone();
    line
}

fn bytes(lines: &[Value]) -> Vec<u8> {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    lines.into_bytes()
}

fn source(lines: &[Value]) -> Source {
    Source::from_bytes(bytes(lines), Path::new(PATH))
}

fn index(source: &Source) -> Index {
    let options = LoadOptions::new().threads(1);
    options.load(source).expect("bytes in memory can be read")
}

fn state(lines: &[Value]) -> PathState {
    let source = source(lines);
    let index = index(&source);
    let tree = Tree::new(&index, Policy::Recover);
    let state = PathState::read(&tree, &tree.path(), &mut Bodies::new(&source));
    state.expect("bytes in memory can be read").0
}

/// The row of a list.
fn row(lines: &[Value]) -> SessionRow {
    let disk = MemoryDisk::new();
    disk.put(PATH, bytes(lines));
    let disk: Arc<dyn ReadDisk> = Arc::new(disk);
    SessionRow::of_file(&disk, &SessionFile::at(&*disk, &PathBuf::from(PATH)))
}

#[test]
fn the_index_has_the_links_that_the_row_names() {
    for (kind, name) in kinds() {
        let lines = json!({
            "type": name, "uuid": "u", "parentUuid": "above", "leafUuid": "leaf", "tombstone": "gone",
        });
        let source = source(&[lines]);
        let index = index(&source);
        let entry = index.entry(EntryNo::new(0));
        let found = [
            entry.parent().is_some(),
            entry.leaf_uuid().is_some(),
            entry.tombstones().next().is_some(),
        ];
        let links = [Link::Parent, Link::Leaf, Link::Tombstones];
        let expected = links.map(|link| link == kind.row().link);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_tree_has_the_kinds_of_the_chain_but_progress() {
    for (kind, name) in kinds() {
        let lines = [message("user", "a", None), message(name, "b", Some("a"))];
        let source = source(&lines);
        let index = index(&source);
        let tree = Tree::new(&index, Policy::Recover);
        let is_in_tree = matches!(kind.row().place, ChainRole::Message | ChainRole::Context);
        assert_eq!(tree.node(EntryNo::new(1)).is_some(), is_in_tree, "{name}");
    }
}

#[test]
fn a_compaction_moves_out_what_does_not_count() {
    for (kind, name) in kinds().filter(|(kind, _)| kind.row().place == ChainRole::Outside) {
        let other = |text: &str| line(kind, name, &json!(text));
        let lines = [
            message("user", "a", None),
            other("one"),
            other("two"),
            other("two"),
            message("assistant", "b", Some("a")),
        ];
        let mut ids = (1..).map(Uuid);
        let mut new_id = || ids.next().expect("there is no end");
        let repair = Repair::new(source(&lines), "2026-11-22T12:00:00.000Z", &mut new_id);
        let mut repair = repair.expect("bytes in memory can be read");
        repair.compact().expect("a file can be written");
        assert_eq!(repair.refusal(), None, "{name}");
        let moved = repair.compaction().map(|compaction| compaction.moved());
        let moved = moved.unwrap_or_default().iter();
        let moved: Vec<_> = moved.map(|line| (line.line, line.why)).collect();
        let expected = match kind.row().counts {
            Counts::Each => vec![],
            Counts::Last => vec![(3, Bloat::Superseded)],
            Counts::New(_) => vec![(4, Bloat::Copy)],
            other => panic!("{other:?} is not tested"),
        };
        assert_eq!(moved, expected, "{name}");
    }
}

#[test]
fn lists_and_conversations_take_a_title_from_the_kinds_that_give_one() {
    for (kind, name) in kinds() {
        let mut about = line(kind, name, &json!("Tides"));
        about["leafUuid"] = json!("a");
        let lines = [
            message("user", "a", None),
            message("assistant", "b", Some("a")),
            about,
        ];
        let title = kind.row().title.map(|by| ("Tides".to_owned(), by));
        let (row, state) = (row(&lines), state(&lines));
        assert_eq!(row.title.zip(row.title_source), title, "{name}");
        assert_eq!(state.title.zip(state.title_source), title, "{name}");
    }
}

/// The settings that a list and a conversation both read from lines outside the chain.
#[derive(Debug, PartialEq, Eq)]
struct Settings {
    title: Option<(String, TitleSource)>,
    tag: Option<String>,
    relocated: Option<String>,
    before_worktree: Option<String>,
}

#[test]
fn last_line_with_a_text_of_each_setting_counts_for_lists_and_conversations() {
    let mut seen = [0; 3];
    for seed in 0..400 {
        let rng = &mut Rng::new(seed);
        let mut lines = vec![
            message("user", "a", None),
            message("assistant", "b", Some("a")),
        ];
        let settings = [
            EntryKind::CustomTitle,
            EntryKind::AiTitle,
            EntryKind::Tag,
            EntryKind::Relocated,
        ];
        for number in 0..rng.below(9) {
            let text = match rng.below(4) {
                0 => json!(""),
                1 => rng.pick(&[Value::Null, json!(7)]).clone(),
                _ => json!(format!("words {number}")),
            };
            let kind = *rng.pick(&settings);
            lines.push(line(kind, kind.name(), &text));
            if rng.one_in(5) {
                let inside = json!({"originalCwd": format!("/before/{number}")});
                let worktree = [inside, Value::Null];
                lines.push(json!({"type": "worktree-state", "sessionId": "s", "worktreeSession": rng.pick(&worktree)}));
            }
        }
        // The rule in words.
        let last = |kind: EntryKind| {
            let mut lines = lines.iter().rev();
            lines.find_map(|line| {
                let is_kind = line["type"] == kind.name();
                let text = line[kind.row().text?].as_str().filter(|_| is_kind)?;
                (kind.row().clears || !text.is_empty()).then(|| text.to_owned())
            })
        };
        let filled = |kind| last(kind).filter(|text| !text.is_empty());
        let custom = filled(EntryKind::CustomTitle).map(|text| (text, TitleSource::Custom));
        let ai = filled(EntryKind::AiTitle).map(|text| (text, TitleSource::Ai));
        let worktree = lines.iter().rfind(|line| line["type"] == "worktree-state");
        let before = worktree.and_then(|line| line["worktreeSession"]["originalCwd"].as_str());
        let expected = Settings {
            title: custom.or(ai),
            tag: filled(EntryKind::Tag),
            relocated: filled(EntryKind::Relocated),
            before_worktree: before.map(str::to_owned),
        };
        let (row, state) = (row(&lines), state(&lines));
        let listed = Settings {
            title: row.title.zip(row.title_source),
            tag: row.tag,
            relocated: row.relocated,
            before_worktree: row.before_worktree,
        };
        assert_eq!(listed, expected, "a list, seed {seed}");
        let settings = Settings {
            title: state.title.zip(state.title_source),
            tag: state.tag,
            relocated: state.relocated_cwd,
            before_worktree: state.worktree.and_then(|worktree| worktree.original_cwd),
        };
        assert_eq!(settings, expected, "a state, seed {seed}");
        let has = [
            expected.tag.is_some(),
            expected.relocated.is_some(),
            expected.before_worktree.is_some(),
        ];
        for (count, has) in seen.iter_mut().zip(has) {
            *count += usize::from(has);
        }
    }
    assert!(seen.iter().all(|count| *count > 40), "{seen:?}");
}

#[test]
fn the_conversation_shows_the_kinds_that_the_row_says() {
    for (kind, name) in kinds() {
        let mut shown = message(name, "b", Some("a"));
        shown["attachment"] = json!({"type": "file", "filename": "/w/a"});
        shown["subtype"] = json!("informational");
        shown["content"] = json!("b");
        let lines = [message("user", "a", None), shown];
        let source = source(&lines);
        let index = index(&source);
        let tree = Tree::new(&index, Policy::Recover);
        let display = Displays::new(&tree).display(&tree.path(), &mut Bodies::new(&source));
        let display = display.expect("bytes in memory can be read");
        let mut items = display.items().iter();
        let is_shown = items.any(|item| item.entry_no() == EntryNo::new(1));
        assert_eq!(is_shown, kind.row().shown != DisplayForm::Nowhere, "{name}");
    }
}
