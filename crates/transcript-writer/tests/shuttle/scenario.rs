//! Shared by the tests: a disk on which other threads run during every write and sync, and a record
//! of the promises.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};
use transcript_format::ids::Uuid;
use transcript_storage::{
    Disk, Entries, File, LocalDisk, Metadata, Opened, ReadDisk, ReadFile, Status,
};
use transcript_testkit::fake_disk::FakeDisk;
use transcript_writer::{
    Draft, Error, ErrorKind, ResumePoint, SyncPolicy, Writer, WriterOptions, Written,
};

pub(crate) const PATH: &str = "/sessions/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl";

/// Makes every run of the tests the same; `SHUTTLE_RANDOM_SEED` in the environment selects another.
const SEED: u64 = 0x5e55_1043;

/// Runs a test under `schedules` schedules, times `TRANSCRIPT_SOAK` if that is set.
///
/// In half of them the next thread is chosen at random at each step. In the others one thread runs
/// as long as it can, with a few changes: bugs that need a long delay appear there.
pub(crate) fn check(schedules: usize, test: fn()) {
    let times = std::env::var("TRANSCRIPT_SOAK").ok();
    let times: usize = times.and_then(|times| times.parse().ok()).unwrap_or(1);
    let half = schedules.div_ceil(2) * times;
    let mut config = Config::default();
    config.stack_size = 256 << 10;
    config.max_steps = MaxSteps::FailAfter(100_000);
    // Nothing here depends on a weaker memory order than shuttle models.
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new_from_seed(SEED, half), config.clone()).run(test);
    Runner::new(PctScheduler::new_from_seed(SEED, 3, half), config).run(test);
}

/// Returns a random choice that is part of the schedule, as all choices must be.
pub(crate) fn pick<T: Clone>(choices: &[T]) -> T {
    choices[thread_rng().gen_range(0..choices.len())].clone()
}

pub(crate) fn one_in(odds: u32) -> bool {
    thread_rng().gen_ratio(1, odds)
}

/// Lets other threads run.
pub(crate) fn turn() {
    shuttle::thread::sleep(Duration::ZERO);
}

/// One session, and the promises about it. Its own locks are never held while other threads run.
pub(crate) struct Scenario {
    pub(crate) disk: FakeDisk,
    ledger: Mutex<Ledger>,
    has_failed_sync: Arc<AtomicBool>,
}

#[derive(Clone, Default)]
pub(crate) struct Ledger {
    /// Entries that are in the file.
    pub(crate) acked: BTreeMap<String, Written>,
    /// Entries that are in the file or queued.
    pub(crate) taken: BTreeSet<String>,
    /// Entries that are not in the file and never will be.
    pub(crate) refused: BTreeSet<String>,
    /// Entries whose caller got the error of a failed sync.
    pub(crate) unsure: BTreeSet<String>,
    /// Bytes that were only in the kernel may be lost.
    pub(crate) had_power_cut: bool,
}

impl Scenario {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            disk: FakeDisk::new(thread_rng().gen_range(0..u64::MAX)),
            ledger: Mutex::default(),
            has_failed_sync: Arc::default(),
        })
    }

    pub(crate) fn options(&self) -> WriterOptions {
        let ids = AtomicU64::new(1);
        WriterOptions::new()
            .create()
            .cwd("/home/ada")
            .version("1.0.0")
            .disk(Arc::new(SlowDisk {
                disk: self.disk.process(),
                has_failed_sync: Arc::clone(&self.has_failed_sync),
            }))
            .clock(Arc::new(|| UNIX_EPOCH + Duration::from_secs(1_000_000)))
            .ids(Arc::new(move || {
                Uuid(u128::from(ids.fetch_add(1, Ordering::Relaxed)) << 64 | 0x4000)
            }))
    }

    pub(crate) fn open(&self, policy: SyncPolicy) -> Writer {
        self.open_with(&self.options().sync(policy))
    }

    pub(crate) fn open_with(&self, options: &WriterOptions) -> Writer {
        options
            .open(Path::new(PATH), ResumePoint::default())
            .unwrap()
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    /// Returns whether a sync of the disk has failed.
    pub(crate) fn has_failed_sync(&self) -> bool {
        self.has_failed_sync.load(Ordering::Relaxed)
    }

    /// Appends entries with one call, and records the result.
    pub(crate) fn append(&self, writer: &Writer, texts: &[String]) -> Result<(), ErrorKind> {
        let drafts = texts.iter().map(|text| Draft::user(text)).collect();
        self.note_all(texts, writer.append_all(drafts))
    }

    pub(crate) fn note_all(
        &self,
        texts: &[String],
        outcome: Result<Vec<Written>, Error>,
    ) -> Result<(), ErrorKind> {
        match outcome {
            Ok(written) => {
                assert_eq!(written.len(), texts.len());
                for two in written.windows(2) {
                    assert_eq!(two[0].offset + two[0].len + 1, two[1].offset);
                    assert_eq!(two[0].uuid, two[1].parent);
                }
                for (text, written) in texts.iter().zip(written) {
                    self.note(text, Ok(written)).unwrap();
                }
                Ok(())
            }
            Err(error) => {
                for text in texts {
                    self.note(text, Err(error.clone())).unwrap_err();
                }
                Err(error.kind())
            }
        }
    }

    /// Records the result of an entry.
    pub(crate) fn note(
        &self,
        text: &str,
        outcome: Result<Written, Error>,
    ) -> Result<(), ErrorKind> {
        let mut ledger = self.ledger();
        match outcome {
            Ok(written) => {
                ledger.taken.insert(text.to_owned());
                ledger.acked.insert(text.to_owned(), written);
                Ok(())
            }
            Err(error) => {
                ledger.taken.remove(text);
                let ledger = &mut *ledger;
                let entries = match error.kind() {
                    ErrorKind::SyncFailed => &mut ledger.unsure,
                    _ => &mut ledger.refused,
                };
                entries.insert(text.to_owned());
                Err(error.kind())
            }
        }
    }

    /// Syncs; earlier accepted entries must be durable after that.
    pub(crate) fn sync(&self, writer: &Writer) -> Result<(), ErrorKind> {
        let had_failed = self.has_failed_sync();
        let taken = self.ledger().taken.clone();
        writer.sync().map_err(|error| error.kind())?;
        assert!(!had_failed, "a sync succeeded after one that failed");
        self.assert_durable(&taken);
        Ok(())
    }

    pub(crate) fn assert_durable<'a>(&self, texts: impl IntoIterator<Item = &'a String>) {
        let durable = self.durable();
        for text in texts {
            assert!(durable.contains(text), "{text} is not durable");
        }
    }

    pub(crate) fn durable(&self) -> BTreeSet<String> {
        let bytes = self.disk.durable(PATH).unwrap_or_default();
        texts(&bytes).into_iter().collect()
    }

    /// Returns the entries that survive a power cut in other files.
    pub(crate) fn texts_in(&self, files: &[PathBuf]) -> BTreeSet<String> {
        let bytes = files.iter().map(|file| self.disk.durable(file).unwrap());
        bytes.flat_map(|bytes| texts(&bytes)).collect()
    }

    pub(crate) fn cut_power(&self) {
        self.ledger().had_power_cut = true;
        self.disk.cut_power(thread_rng().gen_range(0..u64::MAX));
    }

    /// Returns whether the file would be the same after a power cut.
    pub(crate) fn is_durable(&self) -> bool {
        self.disk.bytes(PATH) == self.disk.durable(PATH)
    }

    /// Returns all entries of the file.
    pub(crate) fn all(&self) -> Vec<String> {
        texts(&self.disk.bytes(PATH).unwrap_or_default())
    }

    /// Returns the output tokens of a message in the file.
    pub(crate) fn usage(&self, text: &str) -> u64 {
        let bytes = self.disk.bytes(PATH).unwrap();
        let values = values(&bytes);
        let value = values.iter().find(|value| text_of(value) == text).unwrap();
        let usage = &value["message"]["usage"]["output_tokens"];
        usage.as_u64().unwrap()
    }

    /// Compares the file, which is undamaged, with the promises.
    pub(crate) fn check_promises(&self) {
        let bytes = self.disk.bytes(PATH).unwrap_or_default();
        let ledger = self.ledger();
        let mut last = None;
        let mut numbers = BTreeMap::new();
        let mut found = BTreeSet::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let value: Value = serde_json::from_slice(line).unwrap();
            let uuid = value["uuid"].as_str().map(str::to_owned);
            assert_eq!(value["parentUuid"].as_str(), last.as_deref(), "the chain");
            last = uuid;
            let text = text_of(&value);
            // Each caller numbers its entries, so the order is preserved and nothing is repeated.
            let (caller, number) = text.split_once('-').unwrap();
            let number: u32 = number.parse().unwrap();
            let before = numbers.insert(caller.to_owned(), number);
            assert!(before < Some(number), "{text} comes after {before:?}");
            found.insert(text);
        }
        for (text, written) in &ledger.acked {
            assert!(found.contains(text), "{text} is lost");
            let start = written.offset as usize;
            let line = &bytes[start..start + written.len as usize];
            let value: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(text_of(&value), *text);
            let uuid = written.uuid.as_ref().map(ToString::to_string);
            assert_eq!(value["uuid"].as_str(), uuid.as_deref());
            let parent = written.parent.as_ref().map(ToString::to_string);
            assert_eq!(value["parentUuid"].as_str(), parent.as_deref());
        }
        for text in &ledger.refused {
            assert!(!found.contains(text), "{text} was refused");
        }
    }

    /// After a successful close everything is in the file and durable.
    pub(crate) fn check_closed(&self) {
        self.check_promises();
        self.assert_durable(&self.ledger().taken);
        assert!(self.is_durable());
    }
}

fn text_of(value: &Value) -> String {
    let content = &value["message"]["content"];
    let text = content.as_str().or(content[0]["text"].as_str());
    text.unwrap().to_owned()
}

/// Returns the complete lines.
fn values(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line.strip_suffix(b"\n")?).ok())
        .collect()
}

/// Returns their texts.
fn texts(bytes: &[u8]) -> Vec<String> {
    values(bytes).iter().map(text_of).collect()
}

/// Lets other threads run right before and after operations that take long on a real disk.
#[derive(Debug)]
struct SlowDisk {
    disk: Arc<dyn Disk>,
    has_failed_sync: Arc<AtomicBool>,
}

impl ReadDisk for SlowDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open_to_read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        self.disk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.disk.metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        self.disk.local()
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        let opened = self.disk.open(path, create)?;
        Ok(Opened {
            file: Arc::new(SlowFile {
                file: opened.file,
                has_failed_sync: Arc::clone(&self.has_failed_sync),
            }),
            ..opened
        })
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_name(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        turn();
        let result = self.disk.write_new(path, bytes);
        turn();
        result
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
}

#[derive(Debug)]
struct SlowFile {
    file: Arc<dyn File>,
    has_failed_sync: Arc<AtomicBool>,
}

impl ReadFile for SlowFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl File for SlowFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        turn();
        let result = self.file.append(bytes);
        turn();
        result
    }

    fn position(&self) -> io::Result<u64> {
        self.file.position()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        turn();
        let result = self.file.sync();
        if result.is_err() {
            self.has_failed_sync.store(true, Ordering::Relaxed);
        }
        turn();
        result
    }

    fn status(&self) -> io::Result<Status> {
        self.file.status()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
}
