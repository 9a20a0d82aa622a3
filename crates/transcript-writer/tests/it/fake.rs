//! The real writer on the fake disk: shared by the tests of faults and of the model, and what a
//! power cut leaves.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_storage::Fingerprint;
use transcript_testkit::fake_disk::{FakeDisk, Fault, Loss, Op};
use transcript_testkit::naive_writer::NaiveWriter;
use transcript_testkit::rng::Rng;
use transcript_writer::{Draft, EntryId, OnBusy, ResumePoint, SyncPolicy, Writer, WriterOptions};

pub(crate) const PATH: &str = "/sessions/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl";

/// Returns how many times the usual number of seeds to try.
pub(crate) fn soak() -> u64 {
    let times = std::env::var("TRANSCRIPT_SOAK").ok();
    times.and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Returns options without a sync thread and without waits, so that runs differ only in their ids.
pub(crate) fn options(disk: &FakeDisk) -> WriterOptions {
    static IDS: AtomicU64 = AtomicU64::new(1);
    WriterOptions::new()
        .create()
        .sync(SyncPolicy::None)
        .lock_wait(Duration::ZERO)
        .cwd("/home/ada")
        .version("1.0.0")
        .disk(disk.process())
        .clock(Arc::new(|| UNIX_EPOCH + Duration::from_secs(1_000_000)))
        .ids(Arc::new(|| {
            Uuid(u128::from(IDS.fetch_add(1, Ordering::Relaxed)) << 64 | 0x4000)
        }))
}

/// Opens the file with a resume point, as a reader finds it.
pub(crate) fn open_with(disk: &FakeDisk, options: &WriterOptions) -> transcript_writer::Writer {
    let known = known(&disk.bytes(PATH).unwrap_or_default());
    match options.open(Path::new(PATH), known) {
        Ok(writer) => writer,
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) fn open(disk: &FakeDisk) -> Writer {
    open_with(disk, &options(disk))
}

/// Opens the file without reading it.
pub(crate) fn open_unread(disk: &FakeDisk) -> Writer {
    let writer = options(disk).open(Path::new(PATH), ResumePoint::default());
    writer.unwrap()
}

/// Returns text of odd length that contains its number.
pub(crate) fn text(number: usize) -> String {
    format!("r{number}:{}", "x".repeat(number * 37 % 211))
}

pub(crate) fn texts_of(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(text).collect()
}

pub(crate) fn user(number: usize) -> Draft {
    Draft::user(&text(number))
}

/// Returns a line as another tool writes it.
pub(crate) fn foreign_line(number: usize) -> Vec<u8> {
    let entry = json!({
        "type": "user", "uuid": format!("foreign-{number}"), "parentUuid": null,
        "message": {"role": "user", "content": text(number)},
    });
    format!("{entry}\n").into_bytes()
}

/// Returns the values of the lines of a file, `None` for one that is damaged or unfinished.
pub(crate) fn values(bytes: &[u8]) -> Vec<Option<Value>> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| serde_json::from_slice(line.strip_suffix(b"\n")?).ok())
        .collect()
}

pub(crate) fn damaged(bytes: &[u8]) -> usize {
    values(bytes).iter().filter(|value| value.is_none()).count()
}

/// Returns the texts of user entries, in file order.
pub(crate) fn texts(bytes: &[u8]) -> Vec<String> {
    texts_in(&values(bytes))
}

fn texts_in(values: &[Option<Value>]) -> Vec<String> {
    let values = values.iter().flatten();
    values
        .filter_map(|value| Some(value["message"]["content"].as_str()?.to_owned()))
        .collect()
}

/// Returns an error unless the entries of `acked` are in the file once and in order, those of
/// `maybe` at most once each, no others, and at most `damaged` damaged lines.
pub(crate) fn check_entries(
    bytes: &[u8],
    acked: &[String],
    maybe: &[String],
    most_damaged: usize,
) -> Result<(), String> {
    let short = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let values = values(bytes);
    let found = texts_in(&values);
    let mut seen = HashSet::new();
    if let Some(twice) = found.iter().find(|text| !seen.insert(*text)) {
        return Err(format!("{} is repeated", short(twice)));
    }
    if let Some(lost) = acked.iter().find(|text| !seen.contains(text)) {
        return Err(format!("{} is lost", short(lost)));
    }
    let promised: HashSet<&String> = acked.iter().collect();
    let sure = found.iter().filter(|text| promised.contains(text));
    if !sure.eq(acked) {
        return Err("the order is another".to_owned());
    }
    let known = |text: &&String| promised.contains(text) || maybe.contains(text);
    if let Some(alien) = found.iter().find(|text| !known(text)) {
        return Err(format!(
            "{} is there and was not acknowledged",
            short(alien)
        ));
    }
    let mut uuids = HashSet::new();
    for value in values.iter().flatten() {
        if let Some(uuid) = value["uuid"].as_str()
            && !uuids.insert(uuid)
        {
            return Err(format!("two entries have the uuid {uuid}"));
        }
    }
    let damaged = values.iter().filter(|value| value.is_none()).count();
    if damaged > most_damaged {
        return Err(format!("{damaged} lines are damaged"));
    }
    Ok(())
}

/// Returns the resume point of a file.
pub(crate) fn known(bytes: &[u8]) -> ResumePoint {
    let mut known = ResumePoint::default();
    let mut calls: HashMap<String, EntryId> = HashMap::new();
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let start = offset;
        offset += line.len() as u64;
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let kind = value["type"].as_str().unwrap_or_default();
        if EntryKind::from_name(kind).is_state() {
            let line = std::str::from_utf8(line).unwrap();
            known.state.push((Draft::entry(line).unwrap(), start));
        }
        let Some(uuid) = value["uuid"].as_str().map(EntryId::from) else {
            continue;
        };
        known.uuids.insert(uuid.clone());
        if !["user", "assistant", "system", "attachment"].contains(&kind) {
            continue;
        }
        match (value["isSidechain"].as_bool(), value["agentId"].as_str()) {
            (Some(true), Some(agent)) => {
                known.agent_leaves.insert(agent.to_owned(), uuid.clone());
            }
            _ => known.leaf = Some(uuid.clone()),
        }
        for block in value["message"]["content"].as_array().into_iter().flatten() {
            if let Some(call) = block["id"].as_str() {
                calls.insert(call.to_owned(), uuid.clone());
            }
            if let Some(call) = block["tool_use_id"].as_str() {
                calls.remove(call);
            }
        }
    }
    known.calls = calls;
    known.fingerprint = Some(Fingerprint::of(bytes));
    known
}

/// Appends entries of random sizes and syncs now and then. Returns the acknowledged texts, and how
/// many of them were synced.
fn write_some(writer: &Writer, rng: &mut Rng, first: usize) -> (Vec<String>, usize) {
    let (mut acked, mut synced) = (Vec::new(), 0);
    for number in first..first + rng.range(1, 30) {
        let len = *rng.pick(&[1, 99, 500, 999, 4_097, 9_001]);
        let text = format!("{}{}", text(number), "y".repeat(rng.below(len)));
        match rng.below(8) {
            0 => {
                writer.queue(Draft::user(&text)).unwrap();
                writer.flush().unwrap();
            }
            1 => {
                writer.append_all(vec![Draft::user(&text)]).unwrap();
            }
            _ => {
                writer.append(Draft::user(&text)).unwrap();
            }
        }
        acked.push(text);
        if rng.one_in(6) {
            writer.sync().unwrap();
            synced = acked.len();
        }
    }
    (acked, synced)
}

#[test]
fn synced_entries_survive_every_power_cut_and_the_rest_is_a_prefix() {
    let (mut cuts, mut lost, mut torn, mut nuls) = (0, 0, 0, 0);
    for seed in 0..2_000 * soak() {
        let mut rng = Rng::new(seed);
        let disk = FakeDisk::new(seed);
        let mut all = Vec::new();
        let mut old_damage = 0;
        for round in 0..3 {
            let writer = open_unread(&disk);
            let before = all.len();
            let (acked, synced) = write_some(&writer, &mut rng, round * 100);
            // The writer must not reach its last sync; its handles fail after the power cut.
            let loss = disk.cut_power(seed * 3 + round as u64);
            drop(writer);
            cuts += 1;
            let bytes = disk.bytes(PATH).unwrap();
            let is_torn = !bytes.is_empty() && bytes.last() != Some(&b'\n');
            let values = values(&bytes);
            let found = texts_in(&values);
            let damage = values.iter().filter(|value| value.is_none()).count();
            let damage = damage - usize::from(is_torn);
            all.extend(acked);
            let what = format!("seed {seed}, round {round}, {loss:?}");
            // All synced entries are in the file, once and in order.
            let sure = &all[..before + synced];
            assert_eq!(found.get(..sure.len()), Some(sure), "{what}");
            match loss {
                Loss::InOrder => {
                    assert_eq!(found[..], all[..found.len()], "{what}");
                    // Only the end was damaged.
                    assert!(damage <= old_damage, "{what}");
                }
                Loss::Reordered => {
                    // Some unsynced lines may be missing; none is new, repeated or in another
                    // place.
                    let mut rest = all.iter();
                    let is_there = |text: &String| rest.any(|other| other == text);
                    assert!(found.iter().all(is_there), "{what}");
                }
            }
            lost += usize::from(found.len() < all.len());
            torn += usize::from(is_torn);
            nuls += usize::from(bytes.contains(&0));
            // The next round continues from the lines found, which are durable by now.
            all = found;
            old_damage = damage;
        }
        let writer = open_unread(&disk);
        writer.append(Draft::user("last")).unwrap();
        writer.close().unwrap();
        all.push("last".to_owned());
        assert_eq!(texts(&disk.durable(PATH).unwrap()), all, "seed {seed}");
    }
    // The power cuts had an effect.
    assert!(lost * 2 > cuts, "{lost} of {cuts} lost something");
    assert!(torn * 20 > cuts, "{torn} of {cuts} left a torn line");
    assert!(nuls * 20 > cuts, "{nuls} of {cuts} left NULs");
}

#[test]
fn the_naive_writer_glues_an_entry_to_what_a_power_cut_left() {
    let mut spoilt = 0;
    for seed in 0..200 {
        let disk = FakeDisk::new(seed);
        let writer = NaiveWriter::open(&disk, Path::new(PATH)).unwrap();
        for number in 0..20 {
            let line = foreign_line(number);
            writer.append(&line[..line.len() - 1]).unwrap();
        }
        disk.cut_power(seed);
        let kept = texts(&disk.bytes(PATH).unwrap());
        let writer = NaiveWriter::open(&disk, Path::new(PATH)).unwrap();
        let line = foreign_line(99);
        writer.append(&line[..line.len() - 1]).unwrap();
        writer.sync().unwrap();
        let acked = [kept, vec![text(99)]].concat();
        spoilt +=
            usize::from(check_entries(&disk.durable(PATH).unwrap(), &acked, &[], 20).is_err());
    }
    assert!(spoilt > 50, "{spoilt}");
}

#[test]
fn the_naive_writer_believes_a_sync_that_lies() {
    let disk = FakeDisk::new(1);
    let writer = NaiveWriter::open(&disk, Path::new(PATH)).unwrap();
    writer.append(&foreign_line(1)[..]).unwrap();
    disk.set(Fault::lost_sync().at(Op::Sync, 1));
    writer.sync().unwrap_err();
    writer.sync().unwrap();
    disk.cut_power(1);
    assert!(check_entries(&disk.bytes(PATH).unwrap(), &[text(1)], &[], 9).is_err());
}

#[test]
fn timed_and_immediate_syncs_happen_without_a_call() {
    let disk = FakeDisk::new(1);
    let writer = open_with(&disk, &options(&disk).sync(SyncPolicy::Each));
    for number in 0..20 {
        writer.append(user(number)).unwrap();
        let sure = disk.durable(PATH).unwrap();
        assert_eq!(texts(&sure), texts_of(0..=number));
    }
    writer.close().unwrap();

    let disk = FakeDisk::new(1);
    let options = options(&disk).sync(SyncPolicy::Interval(Duration::from_millis(1)));
    let writer = open_with(&disk, &options);
    writer.append(user(0)).unwrap();
    while writer.stats().unsynced_bytes > 0 {
        std::thread::yield_now();
    }
    assert_eq!(texts(&disk.durable(PATH).unwrap()), texts_of([0]));
}

#[test]
fn every_append_on_a_network_is_synced_and_processes_do_not_take_turns() {
    let disk = FakeDisk::new(1);
    disk.set_remote(true);
    let writer = open(&disk);
    for number in 0..5 {
        writer.append(user(number)).unwrap();
        assert_eq!(texts(&disk.durable(PATH).unwrap()), texts_of(0..=number));
    }
    let options = options(&disk).on_busy(OnBusy::Share);
    let known = known(&disk.bytes(PATH).unwrap());
    let error = options.open(Path::new(PATH), known).unwrap_err();
    assert_eq!(error.kind(), transcript_writer::ErrorKind::Busy);
}
