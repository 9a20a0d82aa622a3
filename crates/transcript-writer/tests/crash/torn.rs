//! A session that was truncated at any byte.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use transcript_writer::{Draft, EntryId, Repair, ResumePoint, SyncPolicy, WriterOptions};

use crate::driver::{Fix, Job, Task, acks, fix};
use crate::support::{beside, fast_folder, folder, mode, serial};

const ENTRIES: usize = 50;

#[test]
fn a_session_cut_at_any_byte_keeps_every_whole_line() {
    let _serial = serial();
    let folder = fast_folder();
    let path = folder.path().join("session.jsonl");
    let whole = conversation(&folder.path().join("whole.jsonl"));
    let side = folder.path().join("side");
    fs::create_dir(&side).unwrap();
    let path = side.join(path.file_name().unwrap());
    let (mut nothing, mut completed, mut cut) = (0, 0, 0);
    for len in 0..=whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let writer = WriterOptions::new()
            .sync(SyncPolicy::None)
            .open(&path, ResumePoint::default())
            .unwrap();
        let last = whole[..len].iter().rposition(|byte| *byte == b'\n');
        let start = last.map_or(0, |at| at + 1);
        let left = match writer.repair() {
            None => {
                nothing += 1;
                assert_eq!(start, len);
                len
            }
            Some(Repair::Completed { offset }) => {
                completed += 1;
                assert_eq!(offset, start as u64);
                assert_eq!(whole[len], b'\n', "{len}");
                len + 1
            }
            Some(Repair::Cut {
                offset,
                len: lost,
                saved,
            }) => {
                cut += 1;
                assert_eq!((offset, lost), (start as u64, (len - start) as u64));
                assert_eq!(fs::read(&saved).unwrap(), &whole[start..len]);
                assert_eq!(mode(&saved), 0o600);
                assert_eq!(beside(&path), std::slice::from_ref(&saved));
                fs::remove_file(saved).unwrap();
                start
            }
            other => panic!("{other:?}"),
        };
        let written = writer.append(Draft::user("Go on.")).unwrap();
        assert_eq!(written.offset, left as u64, "{len}");
        writer.close().unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes[..left], whole[..left], "{len}");
        assert_eq!(bytes.len() as u64, written.offset + written.len + 1);
        assert!(beside(&path).is_empty());
    }
    println!(
        "torn: {nothing} at the end of a line, {completed} completed, {cut} cut, 0 whole lines lost"
    );
    assert_eq!((nothing, completed), (ENTRIES + 1, ENTRIES));
}

/// Creates a file with one line followed by a hole of `len` bytes.
fn with_a_hole(path: &Path, len: u64) -> u64 {
    let line =
        "{\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n";
    fs::write(path, line).unwrap();
    let end = line.len() as u64;
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(end + len).unwrap();
    end
}

fn taken(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn a_hole_at_the_end_of_a_session_is_cut_and_its_copy_is_a_hole() {
    let _serial = serial();
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let len = 40 << 20;
    let end = with_a_hole(&path, len);
    let writer = WriterOptions::new()
        .open(&path, ResumePoint::default())
        .unwrap();
    let Some(Repair::Cut { saved, .. }) = writer.repair() else {
        panic!("{:?}", writer.repair());
    };
    assert_eq!(fs::metadata(&saved).unwrap().len(), len);
    assert!(taken(&saved) < 1 << 20, "{}", taken(&saved));
    assert_eq!(writer.append(Draft::user("new")).unwrap().offset, end);
}

#[test]
fn a_hole_longer_than_any_line_stays_and_takes_neither_memory_nor_space() {
    let _serial = serial();
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let len = 1 << 30;
    let end = with_a_hole(&path, len);
    let mut job = Job::new(Task::Ours, &path);
    job.count = 1;
    // Less than half of the hole.
    let (events, status) = job
        .start_under(&["sh", "-c", r#"ulimit -v 450000; exec "$0" "$@""#])
        .finish();
    assert!(status.success(), "{status} {events:?}");
    assert_eq!(fix(&events), Some(Fix::Sealed(end, len)));
    let [ack] = &acks(&events)[..] else {
        panic!("{events:?}");
    };
    assert_eq!(ack.place.unwrap().0, end + len + 1);
    assert!(beside(&path).is_empty());
    assert!(taken(&path) < 1 << 20, "{}", taken(&path));
}

/// Creates a session with prompts, calls, results and answers; returns its bytes.
fn conversation(path: &Path) -> Vec<u8> {
    let writer = WriterOptions::new()
        .create()
        .open(path, ResumePoint::default())
        .unwrap();
    let mut leaf: Option<EntryId> = None;
    for turn in 0..ENTRIES {
        let draft = match turn % 4 {
            0 => Draft::user(&format!("Prompt {turn}: Größe, \"quotes\" and {{braces}}\n")),
            1 => assistant(&format!(
                r#"{{"type":"tool_use","id":"toolu_{turn}","name":"Read","input":{{"file":"a.rs"}}}}"#
            )),
            2 => Draft::entry(&format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{}","content":"{}"}}]}}}}"#,
                turn - 1,
                "x".repeat(40 * turn),
            ))
            .unwrap(),
            _ => assistant(r#"{"type":"text","text":"Done \u00e9 }\n"}"#),
        };
        let written = writer.append(draft).unwrap();
        assert_eq!(written.parent, leaf);
        leaf = written.uuid;
    }
    writer.close().unwrap();
    fs::read(path).unwrap()
}

fn assistant(block: &str) -> Draft {
    let message = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{block}],"stop_reason":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
    );
    let mut drafts = Draft::assistant(&message).unwrap();
    assert_eq!(drafts.len(), 1);
    drafts.remove(0)
}
