//! Measures how fast entries of 2.4 KB are appended, compared with bare writes. The ways are
//! measured in turn, in five rounds; the table shows medians.
//!
//! `cargo bench -p transcript-writer --bench append`; parts of names after `--` run those ways only,
//! compared with the first of them.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for people"
)]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;
use transcript_writer::asynchronous::AsyncWriter;
use transcript_writer::{Draft, ResumePoint, SyncPolicy, Writer, WriterOptions};

const ROUNDS: usize = 5;
const ENTRIES: usize = 40_000;

fn main() {
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    // In the build folder, because temporary folders may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bench = Bench {
        folder: folder.path().to_owned(),
    };
    type Way = (&'static str, fn(&Bench) -> f64);
    let rows: &[Way] = &[
        ("one `write` per line, bare", Bench::bare),
        ("`append`, no sync", |bench| bench.append(SyncPolicy::None)),
        ("`append`, sync every 100 ms", |bench| {
            bench.append(interval())
        }),
        ("`append_all` of 64, sync every 100 ms", Bench::append_all),
        ("`queue` and a `flush` at the end", Bench::queue),
        ("tokio: `append` awaited", Bench::awaited),
        (
            "tokio: an empty oneshot to a thread and back",
            Bench::oneshot,
        ),
        ("tokio: 64 tasks that `append`", Bench::tasks),
        (
            "tokio: `File`, `write_all` and `flush` per line",
            Bench::tokio_file,
        ),
        ("raw: 1 MiB writes and one sync", Bench::raw_synced),
        (
            "`append` and one `sync`, sync every 100 ms",
            Bench::append_synced,
        ),
        ("8 threads, `append`, sync every 100 ms", |bench| {
            bench.threads(interval(), ENTRIES / 8)
        }),
        ("8 threads, `append`, sync each", |bench| {
            bench.threads(SyncPolicy::Each, 500)
        }),
        ("8 threads, 64 queued per `sync`", Bench::group_sync),
        (
            "one `write` and one `fdatasync` per line, bare",
            Bench::bare_synced,
        ),
    ];
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|text| !text.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
    let rows: Vec<&Way> = rows.iter().filter(|(name, _)| is_wanted(name)).collect();
    let mut seen = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (at, (_, run)) in rows.iter().enumerate() {
            seen[at].push(run(&bench));
        }
    }
    println!("| way | entries per second | relative to the first |\n| --- | ---: | ---: |");
    let medians: Vec<f64> = seen.into_iter().map(median).collect();
    for ((name, _), rate) in rows.iter().zip(&medians) {
        println!("| {name} | {rate:.0} | {:.2} |", rate / medians[0]);
    }
    if wanted.is_empty() {
        latency(&bench);
        memory(&bench);
    }
}

fn interval() -> SyncPolicy {
    SyncPolicy::Interval(Duration::from_millis(100))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns an entry of 2.4 KB, as a client creates it.
fn draft() -> Draft {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(44);
    Draft::user(&text)
}

fn line() -> String {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(52);
    format!("{{\"type\":\"user\",\"message\":\"{text}\"}}\n")
}

struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn path(&self) -> PathBuf {
        let path = self.folder.join("session.jsonl");
        let _ = fs::remove_file(&path);
        path
    }

    fn file(&self) -> File {
        let mut options = OpenOptions::new();
        options.append(true).create(true).open(self.path()).unwrap()
    }

    fn writer(&self, policy: SyncPolicy) -> Writer {
        let options = WriterOptions::new()
            .create()
            .sync(policy)
            .cwd("/home/ada/src")
            .version("0.1.0");
        options.open(&self.path(), ResumePoint::default()).unwrap()
    }

    fn rate(&self, entries: usize, work: impl FnOnce()) -> f64 {
        let start = Instant::now();
        work();
        entries as f64 / start.elapsed().as_secs_f64()
    }

    fn bare(&self) -> f64 {
        let (mut file, line) = (self.file(), line());
        self.rate(ENTRIES, || {
            for _ in 0..ENTRIES {
                file.write_all(line.as_bytes()).unwrap();
            }
        })
    }

    fn append(&self, policy: SyncPolicy) -> f64 {
        let (writer, draft) = (self.writer(policy), draft());
        self.rate(ENTRIES, || {
            for _ in 0..ENTRIES {
                writer.append(draft.clone()).unwrap();
            }
        })
    }

    fn append_all(&self) -> f64 {
        let (writer, draft) = (self.writer(interval()), draft());
        self.rate(ENTRIES, || {
            for _ in 0..ENTRIES / 64 {
                writer.append_all(vec![draft.clone(); 64]).unwrap();
            }
        })
    }

    fn queue(&self) -> f64 {
        let (writer, draft) = (self.writer(interval()), draft());
        self.rate(ENTRIES, || {
            for _ in 0..ENTRIES {
                writer.queue(draft.clone()).unwrap();
            }
            writer.flush().unwrap();
        })
    }

    fn awaited(&self) -> f64 {
        let (writer, draft) = (AsyncWriter::new(self.writer(interval())), draft());
        let entries = ENTRIES / 4;
        self.rate(entries, || {
            runtime().block_on(async {
                for _ in 0..entries {
                    writer.append(draft.clone()).await.unwrap();
                }
            });
        })
    }

    fn oneshot(&self) -> f64 {
        let (to_thread, work) = std::sync::mpsc::channel::<oneshot::Sender<()>>();
        let thread = std::thread::spawn(move || {
            for reply in work {
                let _ = reply.send(());
            }
        });
        let entries = ENTRIES / 4;
        let rate = self.rate(entries, || {
            runtime().block_on(async {
                for _ in 0..entries {
                    let (reply, answer) = oneshot::channel();
                    to_thread.send(reply).unwrap();
                    answer.await.unwrap();
                }
            });
        });
        drop(to_thread);
        thread.join().unwrap();
        rate
    }

    fn tasks(&self) -> f64 {
        let (writer, draft) = (AsyncWriter::new(self.writer(interval())), draft());
        self.rate(ENTRIES, || {
            runtime().block_on(async {
                let tasks: Vec<_> = (0..64)
                    .map(|_| {
                        let (writer, draft) = (writer.clone(), draft.clone());
                        tokio::spawn(async move {
                            for _ in 0..ENTRIES / 64 {
                                writer.append(draft.clone()).await.unwrap();
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        })
    }

    fn tokio_file(&self) -> f64 {
        let (file, line) = (self.file(), line());
        let entries = ENTRIES / 4;
        self.rate(entries, || {
            runtime().block_on(async {
                let mut file = tokio::fs::File::from_std(file);
                for _ in 0..entries {
                    file.write_all(line.as_bytes()).await.unwrap();
                    file.flush().await.unwrap();
                }
            });
        })
    }

    fn raw_synced(&self) -> f64 {
        let (mut file, line) = (self.file(), line());
        let block = line.repeat((1 << 20) / line.len());
        self.rate(ENTRIES, || {
            for _ in 0..ENTRIES / ((1 << 20) / line.len()) {
                file.write_all(block.as_bytes()).unwrap();
            }
            file.sync_data().unwrap();
        })
    }

    fn append_synced(&self) -> f64 {
        let (writer, draft) = (self.writer(interval()), draft());
        self.rate(ENTRIES, || {
            for _ in 0..ENTRIES {
                writer.append(draft.clone()).unwrap();
            }
            writer.sync().unwrap();
        })
    }

    fn threads(&self, policy: SyncPolicy, each: usize) -> f64 {
        let writer = self.writer(policy);
        self.rate(8 * each, || {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let draft = draft();
                        for _ in 0..each {
                            writer.append(draft.clone()).unwrap();
                        }
                    });
                }
            });
        })
    }

    fn group_sync(&self) -> f64 {
        let writer = self.writer(SyncPolicy::None);
        let each = ENTRIES / 8;
        self.rate(8 * each, || {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let draft = draft();
                        for _ in 0..each / 64 {
                            for _ in 0..64 {
                                writer.queue(draft.clone()).unwrap();
                            }
                            writer.sync().unwrap();
                        }
                    });
                }
            });
        })
    }

    fn bare_synced(&self) -> f64 {
        let (mut file, line) = (self.file(), line());
        self.rate(1_000, || {
            for _ in 0..1_000 {
                file.write_all(line.as_bytes()).unwrap();
                file.sync_data().unwrap();
            }
        })
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap()
}

/// Measures the latency of one append while syncs run, compared with a bare write under the same
/// load.
fn latency(bench: &Bench) {
    let measure = |write: &mut dyn FnMut()| {
        let mut times: Vec<Duration> = (0..20_000)
            .map(|_| {
                let start = Instant::now();
                write();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        (
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            times[times.len() - 1],
        )
    };
    let while_syncing = |file: Arc<File>, write: &mut dyn FnMut()| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    file.sync_data().unwrap();
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let times = measure(write);
            stop.store(true, Ordering::Relaxed);
            times
        })
    };
    println!(
        "\n| while another thread syncs every 10 ms | median | p99 | longest |\n| --- | ---: | ---: | ---: |"
    );
    for _ in 0..3 {
        let (file, line) = (Arc::new(bench.file()), line());
        let bare = while_syncing(Arc::clone(&file), &mut || {
            (&*file).write_all(line.as_bytes()).unwrap();
        });
        println!(
            "| bare `write` | {:?} | {:?} | {:?} |",
            bare.0, bare.1, bare.2
        );
        let (writer, draft) = (bench.writer(SyncPolicy::None), draft());
        writer.append(draft.clone()).unwrap();
        let file = Arc::new(File::open(writer.path()).unwrap());
        let ours = while_syncing(file, &mut || {
            writer.append(draft.clone()).unwrap();
        });
        println!("| `append` | {:?} | {:?} | {:?} |", ours.0, ours.1, ours.2);
    }
}

/// Measures the memory that 1 GB of appends takes.
fn memory(bench: &Bench) {
    let resident = || {
        let status = fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
    };
    let before = resident();
    let (writer, draft) = (bench.writer(interval()), draft());
    for _ in 0..400_000 {
        writer.append(draft.clone()).unwrap();
    }
    if let (Some(before), Some(after)) = (before, resident()) {
        println!(
            "\npeak memory grew by {} KiB over 400,000 appends (bound on held bytes: 16 MiB)",
            after - before
        );
    }
}
