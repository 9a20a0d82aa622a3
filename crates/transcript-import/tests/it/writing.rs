//! Sessions that their agents are writing: each reading has the records up to that moment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use transcript_import::{Agent, Conversation, ImportDisk, Policy};
use transcript_storage::{Disk, MemoryDisk, ReadDisk};

use crate::damage::samples;
use crate::support::{lines, read_file};

/// Returns the texts of messages and results.
fn texts(conversation: &Conversation) -> BTreeSet<String> {
    let texts = conversation.ids().flat_map(|id| {
        let content = conversation.content(id).expect("it is read");
        [content.text, content.output]
    });
    texts.flatten().collect()
}

/// Calls `look` after each byte that is written to the file of each agent: with its records, all bytes so far, and the length of the whole lines.
fn write_byte_by_byte(mut look: impl FnMut(Agent, &Path, &[Value], &[u8], usize)) {
    for (agent, name, records) in samples() {
        let mut written = Vec::new();
        for count in 0..records.len() {
            let whole = written.len();
            let line = lines(&records[count..=count]);
            for byte in line.into_bytes() {
                written.push(byte);
                look(agent, Path::new(name), &records[..=count], &written, whole);
            }
        }
    }
}

#[test]
fn a_reading_after_any_byte_has_the_records_up_to_there() {
    let mut reads = 0;
    write_byte_by_byte(|agent, path, records, written, whole| {
        let read = |bytes: &[u8]| {
            let disk = MemoryDisk::new();
            disk.put(path, bytes);
            read_file(&disk, agent, path, Policy::Recover)
        };
        let now = read(written);
        reads += 1;
        let is_whole = written.ends_with(b"\n");
        for damage in &now.damage {
            let is_of_last = damage.place.offset >= whole as u64;
            // Without its first record a file has no header yet.
            assert!(
                !is_whole && (is_of_last || whole == 0),
                "{agent} {damage:?}"
            );
        }
        if is_whole {
            return;
        }
        let before = if whole == 0 {
            BTreeSet::new()
        } else {
            texts(&read(&written[..whole]))
        };
        let after = texts(&read(lines(records).as_bytes()));
        for text in texts(&now) {
            let is_begun = || after.iter().any(|whole| whole.starts_with(&text));
            assert!(before.contains(&text) || is_begun(), "{agent}: {text}");
        }
    });
    assert!(reads > 4_000, "{reads}");
}

#[test]
fn the_file_that_shows_a_session_grows_with_it() {
    let mut growths = 0;
    let mut before: Option<(Agent, ImportDisk, MemoryDisk, PathBuf, Vec<u8>)> = None;
    write_byte_by_byte(|agent, name, _, written, whole| {
        let is_new = before.as_ref().is_none_or(|before| before.0 != agent);
        if whole == 0 {
            // The file has no session yet.
            return;
        }
        if is_new {
            let source = MemoryDisk::new();
            source.put(name, written);
            let shown = ImportDisk::new(Arc::new(source.clone()), agent, name);
            let path = shown.path_of(name).expect("it is listed");
            let path = path.expect("it is shown");
            before = Some((agent, shown, source, path, Vec::new()));
        }
        let Some((_, disk, source, path, bytes)) = &mut before else {
            return;
        };
        let identity = disk.metadata(path).expect("it is there").identity;
        if !is_new {
            let file = source.open(name, false).expect("it is open").file;
            let last = &written[written.len() - 1..];
            file.append(last).expect("it is written");
        }
        let found = disk.metadata(path).expect("it is there");
        let now = disk.read(path, usize::MAX).expect("it is read");
        assert_eq!(found.len, now.len() as u64);
        if found.identity == identity && !bytes.is_empty() {
            assert!(
                now.starts_with(bytes),
                "{agent}: the same file has its lines"
            );
            growths += usize::from(now.len() > bytes.len());
        }
        for line in String::from_utf8_lossy(&now).lines() {
            let parsed: Result<Value, _> = serde_json::from_str(line);
            assert!(parsed.is_ok(), "{agent}: {line}");
        }
        *bytes = now;
    });
    assert!(growths >= 10, "{growths}");
}
