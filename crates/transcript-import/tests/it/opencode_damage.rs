//! Damaged databases of OpenCode: what the pages hold is given back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use transcript_import::{BranchKind, Conversation, DamageKind, Policy};
use transcript_testkit::rng::Rng;

use crate::opencode_store::{Database, call, read, said, step};
use crate::support::{branch, live};

const PAGE_LEN: usize = 4096;

/// A database with many messages, some of them longer than a page, and some deleted. Each text is there once but for events.
fn large() -> Database {
    let mut database = Database::new();
    database.session("ses_2", "two", 2);
    for number in (1..60).step_by(2) {
        database.prompt(number, &format!("prompt{number}."));
        let long = "x".repeat(usize::try_from(number).expect("it is small") * 300);
        let output = format!("output{number}.{long}end{number}.");
        database.answer(
            number + 1,
            &[
                step(),
                said(&format!("answer{number}.")),
                call("c", &output),
            ],
        );
    }
    database.message(
        "ses_2",
        90,
        &json!({"role": "user"}),
        &[said("of another.")],
    );
    for number in 55..61 {
        database.delete("ses_1", number);
    }
    // Nothing is left of rows that moved or were deleted, so that every byte of a text is that of a row.
    database.execute("VACUUM");
    database
}

/// Returns the words that end with a full stop, which mark the texts.
fn marks(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| !c.is_ascii_alphanumeric() && c != '.';
    let words = text
        .split(is_part)
        .flat_map(|word| word.split_inclusive('.'));
    let marks = words.map(|word| word.trim_start_matches('x').to_owned());
    let is_mark = |mark: &String| {
        let name = mark
            .trim_end_matches('.')
            .trim_end_matches(|c: char| c.is_ascii_digit());
        mark.ends_with('.') && ["prompt", "answer", "output", "end"].contains(&name)
    };
    marks.filter(is_mark).collect()
}

fn held(conversation: &Conversation) -> BTreeSet<String> {
    let mut items = Vec::new();
    conversation.write_items(&mut items).expect("it is read");
    marks(&String::from_utf8_lossy(&items))
}

/// Returns the marks in the rows of a database without a log. Pages of other kinds and the unused middle of a page may repeat older
/// rows. The end of a long row lies in other pages than its beginning, and nothing leads there without it.
fn stored(home: &Path) -> BTreeSet<String> {
    let bytes = fs::read(home.join("opencode.db")).expect("it can be read");
    let leaf = |(number, page): (usize, &[u8])| {
        let header = if number == 0 { 100 } else { 0 };
        let start = usize::from(u16::from_be_bytes([page[header + 5], page[header + 6]]));
        let rows = page.get(start..).filter(|_| page[header] == 13);
        marks(&String::from_utf8_lossy(rows.unwrap_or_default()))
    };
    let rows: BTreeSet<String> = bytes
        .chunks_exact(PAGE_LEN)
        .enumerate()
        .flat_map(leaf)
        .collect();
    rows.into_iter()
        .filter(|mark| !mark.starts_with("end"))
        .collect()
}

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).expect("it can be read");
    change(&mut bytes);
    fs::write(file, bytes).expect("it can be written");
}

#[test]
fn a_lost_page_takes_only_what_lies_in_it() {
    let database = large();
    database.move_log();
    let whole = database.read();
    let all = held(&whole);
    assert_eq!(all.len(), 120);
    let len = fs::metadata(database.path().join("opencode.db"))
        .expect("it is there")
        .len();
    let pages = usize::try_from(len).expect("it is small") / PAGE_LEN;
    assert!(pages > 60, "{pages}");
    let mut changed = 0;
    for page in 0..pages {
        let home = database.copy();
        change(&home.path().join("opencode.db"), |bytes| {
            bytes[page * PAGE_LEN..][..PAGE_LEN].fill(0);
        });
        let left: BTreeSet<String> = stored(home.path()).intersection(&all).cloned().collect();
        let conversation = read(home.path(), "ses_1", Policy::Recover).expect("it is read");
        let held = held(&conversation);
        let lost: Vec<&String> = left.difference(&held).collect();
        assert!(lost.is_empty(), "page {page}: {lost:?}");
        changed += usize::from(!conversation.damage.is_empty());
        let vendor = read(home.path(), "ses_1", Policy::Vendor);
        let is_refused = vendor.is_ok_and(|conversation| conversation.refusal.is_some());
        if is_refused {
            assert!(!conversation.damage.is_empty(), "page {page}");
        }
    }
    assert!(changed > pages / 3, "{changed} of {pages}");
}

#[test]
fn what_was_lost_with_a_page_is_live_again_from_the_events_and_what_was_deleted_is_not() {
    let database = large();
    database.move_log();
    let expected = live(&database.read());
    let home = database.copy();
    change(&home.path().join("opencode.db"), |bytes| {
        // The first page has the schema, without which SQLite knows no table.
        bytes[..PAGE_LEN].fill(0);
        // The leaf pages of the parts: rows with a name of a part and of its message in front.
        for page in bytes.chunks_mut(PAGE_LEN).skip(1) {
            let has = |text: &[u8]| page.windows(text.len()).any(|window| window == text);
            if page[0] == 13 && has(b"prt_001_0msg_001ses_1") {
                page.fill(0);
            }
        }
    });
    let conversation = read(home.path(), "ses_1", Policy::Recover).expect("it is read");
    assert_eq!(live(&conversation), expected);
    assert!(branch(&conversation, BranchKind::Deleted).contains(&"U prompt55.".to_owned()));
    let vendor = read(home.path(), "ses_1", Policy::Vendor).expect("it is read");
    assert_eq!(vendor.refusal, Some("its database is damaged"));
    assert!(vendor.live.is_empty());
}

#[test]
fn half_a_database_gives_back_what_is_left() {
    let database = large();
    database.move_log();
    let all = held(&database.read());
    let file = database.path().join("opencode.db");
    let len = usize::try_from(fs::metadata(file).expect("it is there").len()).expect("it is small");
    for end in (PAGE_LEN..len).step_by(5 * PAGE_LEN - 700) {
        let home = database.copy();
        change(&home.path().join("opencode.db"), |bytes| {
            bytes.truncate(end);
        });
        let Ok(conversation) = read(home.path(), "ses_1", Policy::Recover) else {
            // No row of the session is left.
            assert!(stored(home.path()).is_disjoint(&all), "{end}");
            continue;
        };
        let rows = held(&conversation);
        let stored = stored(home.path());
        let lost: Vec<&String> = stored
            .intersection(&all)
            .filter(|mark| !rows.contains(*mark))
            .collect();
        assert!(lost.is_empty(), "{end}: {lost:?}");
        let kinds: BTreeSet<String> = conversation
            .damage
            .iter()
            .map(|damage| format!("{:?}", damage.kind))
            .collect();
        assert!(kinds.contains("DamagedPage"), "{end}: {kinds:?}");
    }
}

#[test]
fn changes_after_a_damaged_place_of_the_log_are_read() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let before = fs::metadata(database.path().join("opencode.db-wal"))
        .expect("it is there")
        .len();
    database.prompt(2, "two");
    let between = fs::metadata(database.path().join("opencode.db-wal"))
        .expect("it is there")
        .len();
    database.prompt(3, "three");
    let home = database.copy();
    let middle = usize::try_from(before.midpoint(between)).expect("it is small");
    change(&home.path().join("opencode.db-wal"), |bytes| {
        bytes[middle] ^= 1;
    });
    let vendor = read(home.path(), "ses_1", Policy::Vendor).expect("it is read");
    assert!(!live(&vendor).contains(&"U three".to_owned()));
    let conversation = read(home.path(), "ses_1", Policy::Recover).expect("it is read");
    assert_eq!(live(&conversation), ["U one", "U two", "U three"]);
    let kinds: Vec<DamageKind> = conversation
        .damage
        .iter()
        .map(|damage| damage.kind)
        .collect();
    assert!(kinds.contains(&DamageKind::DamagedLog), "{kinds:?}");
}

#[test]
fn a_log_that_was_being_written_is_not_damaged() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let whole = fs::metadata(database.path().join("opencode.db-wal"))
        .expect("it is there")
        .len();
    database.prompt(2, "two");
    let home = database.copy();
    let end = usize::try_from(whole).expect("it is small") + 1000;
    change(&home.path().join("opencode.db-wal"), |bytes| {
        bytes.truncate(end);
    });
    let conversation = read(home.path(), "ses_1", Policy::Recover).expect("it is read");
    assert_eq!(live(&conversation), ["U one"]);
    assert_eq!(conversation.damage, []);
}

#[test]
fn random_damage_never_fails_and_keeps_the_promises_of_a_conversation() {
    let database = large();
    let with_log = database.copy();
    database.move_log();
    let without = database.copy();
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let source = [&with_log, &without][usize::try_from(seed % 2).expect("it is small")];
        let home = tempfile::tempdir().expect("a folder can be made");
        for name in ["opencode.db", "opencode.db-wal"] {
            let mut bytes = fs::read(source.path().join(name)).expect("it can be read");
            for _ in 0..1 + rng.below(8) {
                if !bytes.is_empty() {
                    let at = rng.below(bytes.len());
                    let len = 1 + rng.below(64);
                    let end = (at + len).min(bytes.len());
                    let byte = u8::try_from(rng.below(256)).expect("it is small");
                    bytes[at..end].fill(byte);
                }
            }
            if rng.below(4) == 0 {
                bytes.truncate(rng.below(bytes.len() + 1));
            }
            fs::write(home.path().join(name), bytes).expect("it can be written");
        }
        for policy in [Policy::Recover, Policy::Vendor] {
            // The helper checks the promises. A session of which no row is left is not found.
            let _ = read(home.path(), "ses_1", policy);
        }
    }
}
