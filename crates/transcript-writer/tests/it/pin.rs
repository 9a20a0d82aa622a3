//! The pin that an entry gets where a reader would not follow the links to it.

use serde_json::{Value, json};
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_writer::{Draft, Writer};

use crate::fake::{PATH, known, options, user, values};

/// A session of one prompt, opened as one where a reader stays at an older pin.
fn open(disk: &FakeDisk) -> Writer {
    let writer = options(disk).open(PATH.as_ref(), known(&[])).unwrap();
    writer.append(user(0)).unwrap();
    writer.close().unwrap();
    let mut known = known(&disk.bytes(PATH).unwrap());
    known.is_pinned = true;
    known.needs_pin = true;
    options(disk).open(PATH.as_ref(), known).unwrap()
}

/// Returns the types of the lines after the first.
fn types(disk: &FakeDisk) -> Vec<Value> {
    let lines = values(&disk.bytes(PATH).unwrap()).into_iter().flatten();
    lines.skip(1).map(|mut line| line["type"].take()).collect()
}

#[test]
fn entries_and_their_pin_are_one_write_and_only_the_main_conversation_gets_one() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let agent = json!({"type": "user", "isSidechain": true, "agentId": "a1",
        "message": {"role": "user", "content": "x"}});
    let draft = Draft::entry(&agent.to_string()).unwrap();
    writer.append(draft).unwrap();
    writer.append(Draft::tag("sea")).unwrap();
    assert_eq!(types(&disk), ["user", "tag"]);
    let before = disk.count(Op::Append);
    writer.append_all(vec![user(1), user(2)]).unwrap();
    assert_eq!(disk.count(Op::Append), before + 1);
    writer.append(user(3)).unwrap();
    let expected = ["user", "tag", "user", "user", "last-prompt", "user"];
    assert_eq!(types(&disk), expected);
}

#[test]
fn next_entry_gets_the_pin_after_a_failed_write() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    disk.set(Fault::error(std::io::ErrorKind::StorageFull).at(Op::Append, 1));
    writer.append(user(1)).unwrap_err();
    assert_eq!(types(&disk), [Value::Null; 0]);
    let written = writer.append(user(2)).unwrap();
    assert_eq!(types(&disk), ["user", "last-prompt"]);
    let lines = values(&disk.bytes(PATH).unwrap());
    let pin = lines.into_iter().flatten().next_back().unwrap();
    assert_eq!(pin["leafUuid"], written.uuid.unwrap().to_string());
}
