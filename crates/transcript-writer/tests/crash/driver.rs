//! The child process that appends until it is stopped, and how to start it and read its reports.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use transcript_testkit::naive_writer::NaiveWriter;
use transcript_writer::{
    Draft, EntryId, Error, ErrorKind, OnBusy, Repair, ResumePoint, SyncPolicy, Writer,
    WriterOptions,
};

/// The task of the child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Task {
    /// Appends with the writer of this crate.
    #[default]
    Ours,
    /// Appends naively: the line, then the newline; no lock, no check of the end of the file.
    Naive,
    /// Holds the lock of the file until standard input ends.
    Hold,
    /// Opens and closes the session.
    Open,
    /// See `limit`.
    Limit,
    LimitNaive,
    /// See `full`.
    Full,
    FullNaive,
}

const TASKS: [(&str, Task); 8] = [
    ("ours", Task::Ours),
    ("naive", Task::Naive),
    ("hold", Task::Hold),
    ("open", Task::Open),
    ("limit", Task::Limit),
    ("limit-naive", Task::LimitNaive),
    ("full", Task::Full),
    ("full-naive", Task::FullNaive),
];

/// The job of the child process.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) path: PathBuf,
    pub(crate) writer: u64,
    /// The number of the first record; records are numbered in order.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The text sizes of the records in bytes, used in rotation.
    pub(crate) sizes: Vec<usize>,
    pub(crate) sync: SyncPolicy,
    /// The number of records between syncs; 0: never.
    pub(crate) sync_every: u64,
    pub(crate) on_busy: OnBusy,
    pub(crate) lock_wait: Duration,
    /// The last entry of the file, and the parent of the next one.
    pub(crate) leaf: Option<String>,
}

impl Job {
    pub(crate) fn new(task: Task, path: &Path) -> Self {
        Self {
            task,
            path: path.to_owned(),
            writer: 0,
            first: 0,
            count: u64::MAX,
            sizes: vec![100],
            sync: SyncPolicy::Interval(Duration::from_millis(100)),
            sync_every: 0,
            on_busy: OnBusy::Fail,
            lock_wait: Duration::from_secs(2),
            leaf: None,
        }
    }

    /// Starts the child.
    pub(crate) fn start(&self) -> Life {
        self.start_under(&[])
    }

    /// Starts the child under another program with the arguments `prefix`.
    pub(crate) fn start_under(&self, prefix: &[&str]) -> Life {
        let binary = std::env::current_exe().unwrap();
        let own = [
            "driver::child",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ];
        let mut command = match prefix {
            [] => Command::new(&binary),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&binary);
                command
            }
        };
        let mut child = command
            .args(own)
            .env(VARIABLE, self.encode())
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Life {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn encode(&self) -> String {
        let task = TASKS.iter().find(|(_, task)| *task == self.task).unwrap().0;
        let sync = match self.sync {
            SyncPolicy::None => "none",
            SyncPolicy::Each => "each",
            _ => "interval",
        };
        let busy = match self.on_busy {
            OnBusy::Share => "wait",
            _ => "fail",
        };
        let sizes: Vec<String> = self.sizes.iter().map(usize::to_string).collect();
        [
            task,
            self.path.to_str().unwrap(),
            &self.writer.to_string(),
            &self.first.to_string(),
            &self.count.to_string(),
            &sizes.join(","),
            sync,
            &self.sync_every.to_string(),
            busy,
            &self.lock_wait.as_millis().to_string(),
            self.leaf.as_deref().unwrap_or(""),
        ]
        .join("\n")
    }

    fn decode(text: &str) -> Self {
        let parts: Vec<&str> = text.split('\n').collect();
        let number = |at: usize| parts[at].parse::<u64>().unwrap();
        Self {
            task: TASKS.iter().find(|(name, _)| *name == parts[0]).unwrap().1,
            path: parts[1].into(),
            writer: number(2),
            first: number(3),
            count: number(4),
            sizes: parts[5].split(',').map(|n| n.parse().unwrap()).collect(),
            sync: match parts[6] {
                "none" => SyncPolicy::None,
                "each" => SyncPolicy::Each,
                _ => SyncPolicy::Interval(Duration::from_millis(100)),
            },
            sync_every: number(7),
            on_busy: match parts[8] {
                "wait" => OnBusy::Share,
                _ => OnBusy::Fail,
            },
            lock_wait: Duration::from_millis(number(9)),
            leaf: Some(parts[10].to_owned()).filter(|leaf| !leaf.is_empty()),
        }
    }

    /// Opens the session for the job.
    pub(crate) fn open(&self) -> Result<Writer, Error> {
        let mut known = ResumePoint::default();
        if let Some(leaf) = &self.leaf {
            known.uuids.insert(EntryId::from(leaf.as_str()));
            known.leaf = Some(EntryId::from(leaf.as_str()));
        }
        WriterOptions::new()
            .create()
            .sync(self.sync)
            .on_busy(self.on_busy)
            .lock_wait(self.lock_wait)
            .open(&self.path, known)
    }

    /// Returns the record `number` as an entry without the fields that the writer fills in.
    pub(crate) fn draft(&self, number: u64) -> Draft {
        Draft::entry(&format!("{{{}}}", self.members(number))).unwrap()
    }

    /// Returns the line that the naive writer writes for the record `number`, without the newline.
    pub(crate) fn naive_line(&self, number: u64) -> String {
        let (id, members) = (naive_id(self.writer, number), self.members(number));
        format!(r#"{{"uuid":"{id}","parentUuid":null,{members}}}"#)
    }

    fn members(&self, number: u64) -> String {
        let (writer, text) = (self.writer, text(number, &self.sizes));
        format!(
            r#""type":"user","message":{{"role":"user","content":"{text}"}},"writer":{writer},"number":{number}"#
        )
    }
}

/// Returns the uuid that the naive writer gives to the record `number`.
fn naive_id(writer: u64, number: u64) -> String {
    format!("{writer:08x}-0000-4000-8000-{number:012x}")
}

/// Returns the text of the record `number`: one letter, repeated.
pub(crate) fn text(number: u64, sizes: &[usize]) -> String {
    let letter = char::from(b'a' + (number % 26) as u8);
    String::from(letter).repeat(size(number, sizes))
}

pub(crate) fn size(number: u64, sizes: &[usize]) -> usize {
    sizes[(number % sizes.len() as u64) as usize]
}

/// The running child.
pub(crate) struct Life {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// A report of the child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Opened(Fix),
    Ack(Ack),
    /// An open or an append failed: the name of the error kind, and the number of the record.
    Failed(String, u64),
    /// A sync: `ok` or the name of the error kind.
    Synced(String),
    Closed(String),
    /// A rescue file after a failed sync.
    Rescue(PathBuf),
    /// It holds the lock.
    Held,
    /// Counts of a test that runs in the child.
    Counts(Vec<u64>),
}

/// A record that the writer reported to be in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) writer: u64,
    pub(crate) number: u64,
    pub(crate) uuid: String,
    pub(crate) parent: Option<String>,
    /// Offset and length; `None` for the naive writer.
    pub(crate) place: Option<(u64, u64)>,
}

/// The repair of the end of the file on opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    None,
    Completed(u64),
    Cut(u64, u64, PathBuf),
    Sealed(u64, u64),
}

impl Life {
    /// Waits for the next report of the child; `None` when it has ended.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            let mut line = Vec::new();
            self.stdout.read_until(b'\n', &mut line).unwrap();
            // An unfinished last line does not count.
            line.pop_if(|last| *last == b'\n')?;
            let line = String::from_utf8(line).unwrap();
            if let Some(said) = line.strip_prefix("> ") {
                return Some(decode(said));
            }
        }
    }

    /// Waits for `acks` acknowledgements, and returns the reports until then.
    pub(crate) fn until(&mut self, acks: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let mut left = acks;
        while left > 0
            && let Some(event) = self.next()
        {
            left -= usize::from(matches!(event, Event::Ack(_)));
            events.push(event);
        }
        events
    }

    /// Kills the child and returns its reports before that.
    pub(crate) fn kill(mut self) -> Vec<Event> {
        self.child.kill().unwrap();
        self.finish().0
    }

    /// Waits for the child to end and returns its reports.
    pub(crate) fn finish(mut self) -> (Vec<Event>, ExitStatus) {
        drop(self.stdin.take());
        let events = std::iter::from_fn(|| self.next()).collect();
        (events, self.child.wait().unwrap())
    }

    /// Closes standard input of the child.
    pub(crate) fn release(&mut self) {
        drop(self.stdin.take());
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// Returns the acknowledgements among `events`.
pub(crate) fn acks(events: &[Event]) -> Vec<Ack> {
    let acks = events.iter().filter_map(|event| match event {
        Event::Ack(ack) => Some(ack.clone()),
        _ => None,
    });
    acks.collect()
}

/// Returns the repair on opening, if the child got that far.
pub(crate) fn fix(events: &[Event]) -> Option<Fix> {
    events.iter().find_map(|event| match event {
        Event::Opened(fix) => Some(fix.clone()),
        _ => None,
    })
}

fn decode(said: &str) -> Event {
    let words: Vec<&str> = said.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    match words[0] {
        "opened" => Event::Opened(match words[1] {
            "completed" => Fix::Completed(number(2)),
            "cut" => Fix::Cut(number(2), number(3), words[4].into()),
            "sealed" => Fix::Sealed(number(2), number(3)),
            _ => Fix::None,
        }),
        "ack" => Event::Ack(Ack {
            writer: number(1),
            number: number(2),
            uuid: words[3].to_owned(),
            parent: Some(words[4].to_owned()).filter(|parent| parent != "-"),
            place: (words[5] != "-").then(|| (number(5), number(6))),
        }),
        "failed" => Event::Failed(words[1].to_owned(), number(2)),
        "synced" => Event::Synced(words[1].to_owned()),
        "closed" => Event::Closed(words[1].to_owned()),
        "rescue" => Event::Rescue(words[1].into()),
        "held" => Event::Held,
        "counts" => Event::Counts((1..words.len()).map(number).collect()),
        other => panic!("unknown event: {other}"),
    }
}

const VARIABLE: &str = "TRANSCRIPT_CRASH_JOB";

/// The child; does nothing in an ordinary run of the tests.
#[test]
fn child() {
    let Ok(job) = std::env::var(VARIABLE) else {
        return;
    };
    let job = Job::decode(&job);
    let reporter = Reporter::new();
    match job.task {
        Task::Ours => append(&job, &reporter),
        Task::Naive => append_naively(&job, &reporter),
        Task::Hold => hold(&job, &reporter),
        Task::Open => open(&job, &reporter),
        Task::Limit | Task::LimitNaive => crate::limit::child(&job, &reporter),
        Task::Full | Task::FullNaive => crate::full::child(&job, &reporter),
    }
}

/// Unbuffered standard output, so that reports before a crash are not lost.
pub(crate) struct Reporter(File);

impl Reporter {
    fn new() -> Self {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
        let reporter = Self(stdout.into());
        // The test harness has begun a line.
        (&reporter.0).write_all(b"\n").unwrap();
        reporter
    }

    pub(crate) fn report(&self, what: &str) {
        (&self.0)
            .write_all(format!("> {what}\n").as_bytes())
            .unwrap();
    }
}

fn result(result: Result<(), Error>) -> &'static str {
    result.map_or_else(|error| error.kind().name(), |()| "ok")
}

fn append(job: &Job, reporter: &Reporter) {
    let writer = match job.open() {
        Ok(writer) => writer,
        Err(error) => {
            return reporter.report(&format!("failed {} {}", error.kind().name(), job.first));
        }
    };
    reporter.report(&match writer.repair() {
        None => "opened none".to_owned(),
        Some(Repair::Completed { offset }) => format!("opened completed {offset}"),
        Some(Repair::Cut { offset, len, saved }) => {
            format!("opened cut {offset} {len} {}", saved.display())
        }
        Some(Repair::Sealed { offset, len, .. }) => format!("opened sealed {offset} {len}"),
        Some(other) => panic!("unknown repair: {other:?}"),
    });
    let (mut number, mut left, mut failures) = (job.first, job.count, 0);
    while left > 0 && failures < 8 {
        match writer.append(job.draft(number)) {
            Ok(written) => {
                let id =
                    |id: Option<EntryId>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
                let (uuid, parent) = (id(written.uuid), id(written.parent));
                let (offset, len) = (written.offset, written.len);
                let writer_no = job.writer;
                reporter.report(&format!(
                    "ack {writer_no} {number} {uuid} {parent} {offset} {len}"
                ));
                (number, left, failures) = (number + 1, left - 1, 0);
            }
            // Retries the same record.
            Err(error) => {
                reporter.report(&format!("failed {} {number}", error.kind().name()));
                failures += 1;
            }
        }
        if job.sync_every > 0 && number % job.sync_every == 0 {
            reporter.report(&format!("synced {}", result(writer.sync())));
        }
    }
    if let Some(rescue) = writer.rescue().and_then(|mut rescue| rescue.files.pop()) {
        reporter.report(&format!("rescue {}", rescue.display()));
    }
    reporter.report(&format!("closed {}", result(writer.close())));
}

fn open(job: &Job, reporter: &Reporter) {
    let mut opened = 0;
    for number in 0..job.count {
        match job.open().and_then(Writer::close) {
            Ok(()) => opened += 1,
            Err(error) => reporter.report(&format!("failed {} {number}", error.kind().name())),
        }
    }
    reporter.report(&format!("counts {opened}"));
}

fn append_naively(job: &Job, reporter: &Reporter) {
    let writer = NaiveWriter::open_plain(&job.path).unwrap();
    reporter.report("opened none");
    for number in job.first..job.first.saturating_add(job.count) {
        writer.append(job.naive_line(number).as_bytes()).unwrap();
        let writer_no = job.writer;
        reporter.report(&format!(
            "ack {writer_no} {number} {} - - -",
            naive_id(writer_no, number)
        ));
    }
    reporter.report("closed ok");
}

/// A writer for the tests that run in the child.
pub(crate) enum AnyWriter {
    Ours(Box<Writer>),
    Naive(NaiveWriter),
}

impl AnyWriter {
    pub(crate) fn open(job: &Job) -> Self {
        match job.task {
            Task::LimitNaive | Task::FullNaive => {
                Self::Naive(NaiveWriter::open_plain(&job.path).unwrap())
            }
            _ => Self::Ours(Box::new(job.open().unwrap())),
        }
    }

    /// Appends the record `number`; `None` when there is no space for it.
    pub(crate) fn append(&self, job: &Job, number: u64) -> Option<Ack> {
        let writer = job.writer;
        match self {
            Self::Ours(ours) => match ours.append(job.draft(number)) {
                Ok(written) => Some(Ack {
                    writer,
                    number,
                    uuid: written.uuid.unwrap().to_string(),
                    parent: written.parent.map(|parent| parent.to_string()),
                    place: Some((written.offset, written.len)),
                }),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full);
                    assert!(error.is_retryable());
                    None
                }
            },
            Self::Naive(naive) => {
                let appended = naive.append(job.naive_line(number).as_bytes());
                appended.ok().map(|()| Ack {
                    writer,
                    number,
                    uuid: naive_id(writer, number),
                    parent: None,
                    place: None,
                })
            }
        }
    }
}

fn hold(job: &Job, reporter: &Reporter) {
    let file = fs::File::open(&job.path).unwrap();
    file.lock().unwrap();
    reporter.report("held");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    file.unlock().unwrap();
    reporter.report("closed ok");
}
