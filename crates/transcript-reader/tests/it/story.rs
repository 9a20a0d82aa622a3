//! A story holds all that a conversation ever was, each entry once, and ends with its context.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use transcript_format::kind::EntryKind;
use transcript_reader::{
    ConversationPath, Decision, EntryNo, Evidence, Index, PathEntry, Policy, Source, Story, Tree,
};
use transcript_testkit::{damage, generate, model, shared};

use crate::index;
use crate::same_index::transcripts_under;

const POLICIES: [Policy; 2] = [Policy::Recover, Policy::Vendor];

fn is_message(index: &Index, entry: &PathEntry) -> bool {
    index.entry(entry.entry_no()).kind().is_message()
}

fn numbers<'p>(entries: impl IntoIterator<Item = &'p PathEntry>) -> Vec<EntryNo> {
    entries.into_iter().map(PathEntry::entry_no).collect()
}

/// Checks the invariants of every story.
fn check_story(name: &str, index: &Index, context: &ConversationPath, story: &Story) {
    let entries = &story.path.entries;
    let once: HashSet<EntryNo> = numbers(entries).into_iter().collect();
    assert_eq!(once.len(), entries.len(), "{name}: an entry is shown twice");
    let seen = numbers(entries.iter().filter(|entry| entry.in_context));
    let sorted = |mut numbers: Vec<EntryNo>| {
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(sorted(seen), sorted(numbers(&context.entries)), "{name}");
    // Entries that are not shown further up are in the order of the context.
    let kept: HashSet<EntryNo> = numbers(entries.iter().filter(|entry| entry.kept))
        .into_iter()
        .collect();
    let own = |path: &ConversationPath| {
        let mut own = numbers(path.entries.iter().filter(|entry| entry.in_context));
        own.retain(|entry| !kept.contains(entry));
        own
    };
    assert_eq!(own(&story.path), own(context), "{name}");
    assert_eq!(
        (story.path.leaf, story.path.refusal),
        (context.leaf, context.refusal)
    );
    let mut end = 0;
    for (number, chapter) in story.chapters.iter().enumerate() {
        assert_eq!(chapter.entries.start, end, "{name}");
        end = chapter.entries.end;
        let is_last = number + 1 == story.chapters.len();
        assert_eq!(chapter.boundary.is_none(), is_last, "{name}");
        if let Some(boundary) = chapter.boundary {
            assert_eq!(entries[end].entry_no(), boundary, "{name}");
        }
        for place in chapter.entries.clone() {
            assert_eq!(story.chapter_of(place), number, "{name}");
        }
    }
    assert_eq!(end, entries.len(), "{name}");
    for decision in &story.path.decisions {
        if let Decision::Cut {
            hidden: Some(hidden),
            ..
        } = decision
        {
            let gone = entries
                .iter()
                .filter(|entry| !entry.in_context && is_message(index, entry));
            assert_eq!(*hidden as usize, gone.count(), "{name}");
        }
    }
}

fn story_of<'i>(index: &'i Index, policy: Policy) -> (Tree<'i>, ConversationPath, Story) {
    let tree = Tree::new(index, policy);
    let context = tree.path();
    let tree = tree.unspliced();
    let story = tree.story(&context);
    (tree, context, story)
}

fn lines(index: &Index, story: &Story) -> BTreeSet<usize> {
    let messages = story
        .path
        .entries
        .iter()
        .filter(|entry| is_message(index, entry));
    messages
        .map(|entry| index.entry(entry.entry_no()).line() as usize)
        .collect()
}

/// Compares the messages of a story with the slow count, and returns the number of chapters and in how
/// many messages the two differ; `None` when that does not apply.
fn counted(bytes: &[u8]) -> Option<(usize, usize)> {
    let index = index(bytes);
    let (_, context, story) = story_of(&index, Policy::Recover);
    let is_repaired = |decision: &Decision| {
        !matches!(
            decision,
            Decision::Leaf { .. }
                | Decision::PinHidesNewer { .. }
                | Decision::Cut { .. }
                | Decision::Chapter { .. }
                | Decision::Splice { .. }
                | Decision::Siblings { .. }
                | Decision::Progress { .. }
                | Decision::Bridge {
                    evidence: Evidence::FileOrder,
                    ..
                }
        )
    };
    let is_linked = |decision: &Decision| match decision {
        Decision::Bridge { entry, .. } => index.entry(*entry).is_boundary(),
        _ => true,
    };
    let decisions = &story.path.decisions;
    if decisions.iter().any(is_repaired)
        || !decisions.iter().all(is_linked)
        || story.path.entries.is_empty()
    {
        return None;
    }
    let leaf = context.leaf.map(|leaf| index.entry(leaf).line() as usize)?;
    let expected = model::story_lines(bytes, leaf)?;
    let shown = lines(&index, &story);
    let lost: Vec<_> = expected.difference(&shown).collect();
    let more = shown.difference(&expected).count();
    Some((story.chapters.len(), lost.len() + more))
}

#[test]
fn a_story_holds_the_messages_of_a_slow_count() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut files = Vec::new();
    transcripts_under(&folder, &mut files);
    match shared() {
        Some(shared) => transcripts_under(&shared.join("corpus/files"), &mut files),
        None => println!("skipped: no shared data"),
    }
    let mut chapters = Vec::new();
    for file in files {
        if Source::open(&file).is_ok() {
            let name = file.display().to_string();
            if let Some((of_file, more)) = counted(&fs::read(&file).unwrap()) {
                assert_eq!(more, 0, "{name}");
                chapters.push(of_file);
            }
        }
    }
    for seed in 0..1_000 {
        if let Some((of_seed, differ)) = counted(&generate::tidy_session(seed)) {
            assert_eq!(differ, 0, "seed {seed}");
            chapters.push(of_seed);
        }
    }
    let with = |least: usize| chapters.iter().filter(|number| **number >= least).count();
    let numbers = [with(1), with(2), with(3)];
    println!("sessions with one, two, three chapters or more: {numbers:?}");
    assert!(numbers[0] > 600 && numbers[1] > 150 && numbers[2] > 30);
}

#[test]
fn rules_of_stories_hold_for_damaged_and_shuffled_sessions() {
    for seed in 0..600 {
        let whole = generate::session(seed);
        let damaged = damage::damage(&whole, seed).0;
        let shuffled = generate::permute_lines(&whole, seed);
        for (form, bytes) in [
            ("whole", whole),
            ("damaged", damaged),
            ("shuffled", shuffled),
        ] {
            let index = index(&bytes);
            for policy in POLICIES {
                let (tree, context, story) = story_of(&index, policy);
                let name = format!("seed {seed}, {form}, {}", policy.name());
                check_story(&name, &index, &context, &story);
                let mut shown: HashSet<EntryNo> =
                    numbers(&story.path.entries).into_iter().collect();
                for branch in tree.branches_off_story(&story) {
                    for entry in &branch.path.entries {
                        assert!(shown.insert(entry.entry_no()), "{name}: shown twice");
                        assert!(!entry.in_context, "{name}");
                    }
                }
            }
        }
    }
}

/// The conversation as the slow model saw it before each compaction is in the story.
#[test]
fn a_story_holds_what_the_client_would_have_shown_before_each_compaction() {
    let mut compared = 0;
    for seed in 0..1_000 {
        let bytes = generate::tidy_session(seed);
        let index = index(&bytes);
        let (_, _, story) = story_of(&index, Policy::Vendor);
        let shown = lines(&index, &story);
        for chapter in &story.chapters {
            let Some(boundary) = chapter.boundary else {
                continue;
            };
            let last = &story.path.entries[chapter.entries.clone()];
            let last = last.iter().rev().map(|entry| index.entry(entry.entry_no()));
            let before = model::vendor_path(&bytes[..index.entry(boundary).offset() as usize]);
            let ends = last.filter_map(|entry| Some(index.id_text(entry.uuid()?)));
            // After a compaction that removed the entries before it, the client went by time.
            let by_time = Tree::before(&index, Policy::Vendor, boundary)
                .path()
                .decisions;
            let goes_by_time = |one: &Decision| {
                matches!(one, Decision::Relink { .. } | Decision::Truncated { .. })
            };
            if by_time.iter().any(goes_by_time) {
                continue;
            }
            // A pin or a rewind may have ended it elsewhere.
            let is_same = ends.take(3).any(|uuid| before.leaf.as_ref() == Some(&uuid));
            if !is_same || before.refusal.is_some() {
                continue;
            }
            let messages = before.entries.iter().filter(|entry| {
                ["user", "assistant"].contains(&entry.value["type"].as_str().unwrap_or_default())
            });
            for entry in messages {
                assert!(
                    shown.contains(&entry.line),
                    "seed {seed}, line {}",
                    entry.line
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}

/// Lines of a session, in order.
#[derive(Default)]
struct Session(Vec<Value>);

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the values in place"
)]
impl Session {
    fn line(mut self, uuid: &str, parent: Option<&str>, kind: &str, more: Value) -> Self {
        let time = format!("2026-01-01T00:{:02}:00.000Z", self.0.len());
        let mut line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": time});
        if kind != "system" {
            let content = json!([{"type": "text", "text": uuid}]);
            line["message"] = json!({"role": kind, "content": content});
        }
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.0.push(line);
        self
    }

    fn user(self, uuid: &str, parent: Option<&str>) -> Self {
        self.line(uuid, parent, "user", json!({}))
    }

    fn answer(self, uuid: &str, parent: &str) -> Self {
        self.line(uuid, Some(parent), "assistant", json!({}))
    }

    /// A boundary and its summary.
    fn compacted(self, name: &str, logical: Option<&str>, metadata: Value) -> Self {
        let boundary = json!({"subtype": "compact_boundary", "logicalParentUuid": logical,
            "compactMetadata": metadata});
        let summary = format!("s{name}");
        self.line(name, None, "system", boundary).line(
            &summary,
            Some(name),
            "user",
            json!({"isCompactSummary": true}),
        )
    }

    fn index(&self) -> Index {
        let lines: String = self.0.iter().map(|line| format!("{line}\n")).collect();
        index(lines.as_bytes())
    }

    /// The story as text: `*` marks entries in the context, `+` preserved ones.
    fn shown(&self, policy: Policy) -> String {
        let index = self.index();
        let (_, context, story) = story_of(&index, policy);
        check_story("session", &index, &context, &story);
        let words = story.path.entries.iter().map(|entry| {
            let uuid = index.entry(entry.entry_no()).uuid().unwrap();
            let mark = match (entry.in_context, entry.kept) {
                (true, true) => "+",
                (true, false) => "*",
                _ => "",
            };
            format!("{}{mark}", index.id_text(uuid))
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn shows(&self, expected: &str) {
        for policy in POLICIES {
            assert_eq!(self.shown(policy), expected, "{}", policy.name());
        }
    }
}

fn list(anchor: &str, uuids: &[&str]) -> Value {
    json!({"trigger": "auto", "preservedMessages": {"anchorUuid": anchor, "uuids": uuids}})
}

fn segment(anchor: &str, head: &str, tail: &str) -> Value {
    let segment = json!({"anchorUuid": anchor, "headUuid": head, "tailUuid": tail});
    json!({"trigger": "auto", "preservedSegment": segment})
}

fn start() -> Session {
    let session = Session::default().user("u1", None).answer("a1", "u1");
    session.user("u2", Some("a1")).answer("a2", "u2")
}

#[test]
fn a_session_without_a_compaction_is_one_chapter() {
    start().shows("u1* a1* u2* a2*");
    let index = start().index();
    assert_eq!(story_of(&index, Policy::Recover).2.chapters.len(), 1);
    let nothing = Session::default().index();
    assert_eq!(story_of(&nothing, Policy::Recover).2.chapters.len(), 0);
}

#[test]
fn compacted_history_comes_first() {
    let session = start().compacted("b", Some("a2"), json!({}));
    session
        .user("u3", Some("sb"))
        .shows("u1 a1 u2 a2 b* sb* u3*");
}

#[test]
fn kept_entries_are_shown_where_they_were_written() {
    for kept in [list("sb", &["u2", "a2"]), segment("sb", "u2", "a2")] {
        let session = start().compacted("b", Some("a2"), kept);
        // The next prompt may name the summary or the last kept entry.
        for parent in ["sb", "a2"] {
            let session = Session(session.0.clone()).user("u3", Some(parent));
            session.shows("u1 a1 u2+ a2+ b* sb* u3*");
        }
    }
}

#[test]
fn three_compactions_are_four_chapters() {
    let session = start()
        .compacted("b", Some("a2"), list("sb", &["u2", "a2"]))
        .user("u3", Some("a2"))
        .answer("a3", "u3")
        .line(
            "m",
            Some("a3"),
            "system",
            json!({"subtype": "microcompact_boundary"}),
        )
        .compacted("c", Some("m"), segment("sc", "u3", "a3"))
        .user("u4", Some("a3"))
        .answer("a4", "u4")
        .compacted("d", Some("a4"), list("sd", &["a4"]))
        .user("u5", Some("a4"));
    session.shows("u1 a1 u2 a2 b sb u3 a3 m c sc u4 a4+ d* sd* u5*");
    let index = session.index();
    let (_, _, story) = story_of(&index, Policy::Recover);
    let chapters = story
        .path
        .decisions
        .iter()
        .filter_map(|decision| match *decision {
            Decision::Chapter { messages, kept, .. } => Some((messages, kept)),
            _ => None,
        });
    assert_eq!(chapters.collect::<Vec<_>>(), [(4, Some(2)), (3, Some(2))]);
}

#[test]
fn entries_kept_by_two_compactions_are_shown_once() {
    let session = start()
        .compacted("b", Some("a2"), list("sb", &["a2"]))
        .user("u3", Some("a2"))
        .compacted("c", Some("u3"), list("sc", &["a2", "u3"]))
        .user("u4", Some("u3"));
    session.shows("u1 a1 u2 a2+ b sb u3+ c* sc* u4*");
}

#[test]
fn the_chapter_before_a_boundary_with_a_lost_logical_parent_is_found_by_file_order() {
    for logical in [Some("never-written"), None] {
        let session = start()
            .compacted("b", logical, json!({}))
            .user("u3", Some("sb"));
        session.shows("u1 a1 u2 a2 b* sb* u3*");
        let index = session.index();
        let (_, _, story) = story_of(&index, Policy::Recover);
        let guess = |decision: &Decision| match *decision {
            Decision::Bridge {
                entry, evidence, ..
            } => index.entry(entry).is_boundary() && evidence == Evidence::FileOrder,
            _ => false,
        };
        assert!(
            story.path.decisions.iter().any(guess),
            "{:?}",
            story.path.decisions
        );
    }
    // The end of the segment is named by the boundary itself.
    let session =
        start()
            .user("x", Some("u1"))
            .compacted("b", Some("lost"), segment("sb", "u2", "a2"));
    session
        .user("u3", Some("a2"))
        .shows("u1 a1 u2+ a2+ b* sb* u3*");
}

#[test]
fn a_branch_that_was_left_before_a_compaction_is_not_in_the_story() {
    let session = start()
        .user("u3", Some("a1"))
        .answer("a3", "u3")
        .compacted("b", Some("a3"), json!({}))
        .user("u4", Some("sb"));
    session.shows("u1 a1 u3 a3 b* sb* u4*");
    let index = session.index();
    let (tree, context, story) = story_of(&index, Policy::Recover);
    let branches = tree.branches_off_story(&story);
    let name = |entry: EntryNo| index.id_text(index.entry(entry).uuid().unwrap());
    let names: Vec<_> = branches[0]
        .path
        .entries
        .iter()
        .map(|entry| name(entry.entry_no()))
        .collect();
    assert_eq!(
        (branches.len(), names),
        (1, vec!["u2".to_owned(), "a2".to_owned()])
    );
    assert_eq!(branches[0].from.map(name).as_deref(), Some("a1"));
    let _ = context;
}

#[test]
fn a_branch_has_the_chapters_of_its_own_compactions() {
    let session = start()
        .compacted("b", Some("a2"), json!({}))
        .user("u3", Some("sb"))
        // The prompt was changed: back to before the compaction.
        .user("u4", Some("a1"))
        .answer("a4", "u4");
    session.shows("u1* a1* u4* a4*");
    let index = session.index();
    let (tree, _, story) = story_of(&index, Policy::Recover);
    let branches = tree.branches_off_story(&story);
    let name = |entry: &PathEntry| index.id_text(index.entry(entry.entry_no()).uuid().unwrap());
    let names: Vec<_> = branches[0].path.entries.iter().map(name).collect();
    assert_eq!(names.join(" "), "u2 a2 b sb u3");
}

#[test]
fn lines_beside_the_chain_belong_to_their_chapter() {
    let call = |id: &str| {
        let call = json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
        json!({"message": {"id": "m", "role": "assistant", "content": [call]}})
    };
    let result = |id: &str| {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
        json!({"message": {"role": "user", "content": [result]}})
    };
    Session::default()
        .user("u1", None)
        .line("c1", Some("u1"), "assistant", call("t1"))
        .line("c2", Some("c1"), "assistant", call("t2"))
        .line("r1", Some("c1"), "user", result("t1"))
        .line("r2", Some("c2"), "user", result("t2"))
        .answer("a1", "r2")
        .line("side", Some("u1"), "user", json!({"isSidechain": true}))
        .compacted("b", Some("a1"), json!({}))
        .user("u2", Some("sb"))
        .shows("u1 c1 c2 r1 r2 a1 b* sb* u2*");
}

#[test]
fn entries_written_again_after_a_compaction_stay_in_their_chapter() {
    let session = start().compacted("b", Some("a2"), json!({}));
    // The client wrote the first answer again, below the summary.
    let session = session.answer("a1", "sb").user("u3", Some("a2"));
    for policy in POLICIES {
        let shown = session.shown(policy);
        assert!(shown.starts_with("u1 a1"), "{}: {shown}", policy.name());
        assert!(shown.ends_with("b* sb* u3*"), "{}: {shown}", policy.name());
    }
}

#[test]
fn a_story_ends_where_it_is_cut() {
    let index = start()
        .compacted("b", Some("a2"), json!({}))
        .user("u3", Some("sb"))
        .compacted("c", Some("u3"), json!({}))
        .user("u4", Some("sc"))
        .index();
    let (tree, _, mut story) = story_of(&index, Policy::Recover);
    assert_eq!(story.chapters.len(), 3);
    assert!(!story.cut_after(EntryNo::new(99)));
    let at = tree.node_with_uuid(index.id("u3").unwrap()).unwrap();
    assert!(story.cut_after(tree.entry(at).number()));
    assert_eq!((story.path.entries.len(), story.chapters.len()), (7, 2));
    assert_eq!(story.chapters[1].entries, 4..7);
    assert_eq!(story.boundaries().count(), 1);
    assert_eq!(
        index.entry(story.path.leaf.unwrap()).kind(),
        EntryKind::User
    );
}

#[test]
fn a_leaf_in_an_older_chapter_has_its_own_context() {
    let index = start()
        .compacted("b", Some("a2"), list("sb", &["u2", "a2"]))
        .user("u3", Some("a2"))
        .compacted("c", Some("u3"), list("sc", &["u3"]))
        .user("u4", Some("u3"))
        .index();
    let tree = Tree::new(&index, Policy::Recover).unspliced();
    let leaf = tree.node_with_uuid(index.id("u3").unwrap()).unwrap();
    let tree = tree.as_of(leaf);
    let context = tree.path_to_leaf(leaf);
    let story = tree.unspliced().story(&context);
    let seen = |entry: &PathEntry| {
        let name = index.id_text(index.entry(entry.entry_no()).uuid().unwrap());
        format!("{name}{}", if entry.in_context { "*" } else { "" })
    };
    let seen: Vec<_> = story.path.entries.iter().map(seen).collect();
    assert_eq!(seen.join(" "), "u1 a1 u2* a2* b* sb* u3*");
}

#[test]
fn two_compactions_in_a_row_are_two_chapters() {
    let session = start()
        .compacted("b", Some("a2"), list("sb", &["u2", "a2"]))
        // Nothing was said since: the conversation ended with what the first one kept.
        .compacted("c", Some("a2"), list("sc", &["a2"]))
        .user("u3", Some("a2"));
    session.shows("u1 a1 u2 a2+ b sb c* sc* u3*");
}

#[test]
fn kept_entries_of_another_branch_follow_the_summary() {
    let session = start()
        .user("u3", Some("a1"))
        .compacted("b", Some("u3"), list("sb", &["u2", "a2"]))
        .user("u4", Some("a2"))
        .compacted("c", Some("u4"), json!({}))
        .user("u5", Some("sc"));
    session.shows("u1 a1 u3 b sb u2 a2 u4 c* sc* u5*");
}

/// Checks the stories of a session whose links make no sense, under both policies, also when an
/// entry that no path reaches is the leaf.
fn check_stories(name: &str, session: &Session) {
    let index = session.index();
    for policy in POLICIES {
        let (_, context, story) = story_of(&index, policy);
        check_story(name, &index, &context, &story);
        let tree = Tree::new(&index, policy);
        for node in tree.nodes() {
            let context = tree.path_to_leaf(node);
            let story = tree.as_of(node).unspliced().story(&context);
            let once: HashSet<EntryNo> = numbers(&story.path.entries).into_iter().collect();
            assert_eq!(once.len(), story.path.entries.len(), "{name}: {node:?}");
        }
    }
}

#[test]
fn entries_and_boundaries_in_a_circle_are_shown_once() {
    let circle = Session::default().user("u1", Some("a2"));
    let circle = circle.answer("a1", "u1").user("u2", Some("a1"));
    let circle = circle.answer("a2", "u2");
    check_stories("parents", &circle);
    let compacted = circle
        .compacted("b", Some("a2"), list("sb", &["u2", "a2"]))
        .user("u3", Some("a2"));
    check_stories("parents before a compaction", &compacted);
    let mutual = start()
        .compacted("b", Some("sc"), segment("sb", "sc", "u3"))
        .compacted("c", Some("sb"), segment("sc", "sb", "u3"))
        .user("u3", Some("sc"));
    check_stories("boundaries", &mutual);
    let itself = start()
        .compacted("b", Some("b"), list("b", &["b", "sb"]))
        .user("u3", Some("sb"));
    check_stories("a boundary and itself", &itself);
}

#[test]
fn overlapping_preserved_segments_are_shown_once() {
    let session = start()
        .compacted("b", Some("a2"), segment("sb", "a1", "a2"))
        .user("u3", Some("a2"))
        .answer("a3", "u3")
        .compacted("c", Some("a3"), segment("sc", "u2", "u3"))
        .user("u4", Some("u3"))
        .compacted("d", Some("u4"), segment("sd", "a1", "u4"))
        .user("u5", Some("u4"));
    check_stories("overlapping", &session);
    let shown = session.shown(Policy::Recover);
    for uuid in ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "u5"] {
        let named = shown
            .split(' ')
            .filter(|shown| shown.trim_end_matches(['*', '+']) == uuid);
        assert_eq!(named.count(), 1, "{uuid} in {shown}");
    }
}

/// The entries of a session that was compacted `count` times, each of which `boundary` writes.
fn compacted_often(count: usize, boundary: impl Fn(Session, usize) -> Session) -> Session {
    (0..count).fold(start(), boundary)
}

#[cfg(debug_assertions)]
#[test]
fn stories_take_time_in_proportion_to_their_lines() {
    use transcript_format::work;
    let again = |session: Session, number: usize| {
        let session = session.compacted(&format!("b{number}"), Some("a2"), json!({}));
        let above = format!("sb{number}");
        session
            .user("u1", Some(&above))
            .answer("a1", "u1")
            .user("u2", Some("a1"))
            .answer("a2", "u2")
    };
    let unfinished = |session: Session, number: usize| {
        let lost =
            json!({"preservedMessages": {"anchorUuid": format!("lost{number}"), "uuids": ["u2"]}});
        let boundary = json!({"subtype": "compact_boundary", "compactMetadata": lost});
        session.line(&format!("b{number}"), None, "system", boundary)
    };
    let chapters = |session: Session, number: usize| {
        let (said, name) = (format!("n{number}"), format!("b{number}"));
        let above = number.checked_sub(1).map(|before| format!("sb{before}"));
        let session = session.user(&said, Some(above.as_deref().unwrap_or("a2")));
        session.compacted(
            &name,
            Some(&said),
            segment(&format!("s{name}"), &said, &said),
        )
    };
    let cost = |count: usize, session: Session| {
        let index = session.index();
        let before = work::done();
        for policy in POLICIES {
            let (_, context, story) = story_of(&index, policy);
            check_story("often", &index, &context, &story);
        }
        (work::done() - before) / count as u64
    };
    for (name, few, many) in [
        (
            "again",
            compacted_often(50, again),
            compacted_often(400, again),
        ),
        (
            "unfinished",
            compacted_often(50, unfinished),
            compacted_often(400, unfinished),
        ),
        (
            "chapters",
            compacted_often(50, chapters),
            compacted_often(400, chapters),
        ),
    ] {
        let (few, many) = (cost(50, few), cost(400, many));
        assert!(
            many <= 2 * few + 4,
            "{name}: {few} steps a boundary, then {many}"
        );
    }
}
