//! Measures how soon a follower gets a written line, the cost of waiting and of bursts, and how
//! fast a file is read from its start; compared with `tail -F` and Python. Every reader is a
//! separate process. The readers of a table take turns, or run at the same time on their own files
//! when there is next to nothing to do.
//!
//! `cargo bench -p transcript-tail`; after `--` the names of tables, `quick` for a shorter run, and
//! a session for the last table. Figures of processes need Linux.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for people"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use transcript_tail::{EventKind, FollowOptions, Follower};
use transcript_testkit::rng::Rng;

const LINE: usize = 1 << 10;
/// A reader ends after this many seconds without a line, because a line was lost.
const QUIET: u64 = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match text[..] {
        ["read", way, path, count, quiet] => {
            let quiet = Duration::from_secs(quiet.parse().unwrap());
            return read(way, Path::new(path), count.parse().unwrap(), quiet);
        }
        ["whole", way, path] => return whole(way, Path::new(path)),
        ["nap"] => loop {
            std::thread::sleep(Duration::from_millis(100));
        },
        _ if text.contains(&"--test") || text.contains(&"--list") => return,
        _ => {}
    }
    // In the build folder, because temporary folders may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bench = Bench {
        folder: folder.path(),
        is_quick: text.contains(&"quick"),
        ways: ways(),
    };
    let session = text
        .iter()
        .map(Path::new)
        .find(|path| fs::metadata(path).is_ok_and(|found| found.is_file()));
    let tables: [(&str, &dyn Fn()); 5] = [
        ("steady", &|| bench.steady()),
        ("gaps", &|| bench.gaps()),
        ("idle", &|| bench.idle()),
        ("burst", &|| bench.burst()),
        ("whole", &|| bench.whole(session)),
    ];
    let is_wanted =
        |name| !tables.iter().any(|(name, _)| text.contains(name)) || text.contains(name);
    for (_, table) in tables.iter().filter(|(name, _)| is_wanted(name)) {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("\nload {}\n", load.split(' ').next().unwrap_or_default());
        table();
    }
}

/// A way to follow a file: a program with the file, the number of lines, and the timeout in seconds
/// as arguments.
struct Way {
    name: &'static str,
    command: Vec<String>,
}

fn ways() -> Vec<Way> {
    let us = std::env::current_exe().unwrap().display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/watch.py");
    let ours = |name, way: &str| Way {
        name,
        command: vec![us.clone(), "read".into(), way.into()],
    };
    let python = |name, way: &str| Way {
        name,
        command: vec!["python3".into(), script.into(), way.into()],
    };
    let has_python = |code| {
        let mut python = Command::new("python3");
        python.args(["-c", code]).stderr(Stdio::null());
        python.status().is_ok_and(|status| status.success())
    };
    let mut ways = vec![
        ours("`Follower`", "events"),
        ours("`Follower`, `poll_only`", "poll"),
        ours("`tail -F`, through a pipe", "tail"),
    ];
    if has_python("pass") {
        ways.push(python("Python, a look every 100 ms", "poll"));
    }
    if has_python("import watchdog") {
        ways.push(python("Python, `watchdog`", "watchdog"));
    }
    ways
}

struct Bench<'a> {
    folder: &'a Path,
    is_quick: bool,
    ways: Vec<Way>,
}

impl Bench<'_> {
    /// One line every millisecond.
    fn steady(&self) {
        let (rounds, count) = if self.is_quick {
            (1, 1_000)
        } else {
            (5, 4_000)
        };
        let mut seen: Vec<Vec<Seen>> = self.ways.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for (way, seen) in self.ways.iter().zip(&mut seen) {
                let mut reader = self.start(way, count);
                let start = Instant::now();
                reader.write(1..count + 1, LINE, |number| {
                    let next = start + Duration::from_millis(number as u64);
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                });
                seen.push(reader.finish());
            }
        }
        latencies("a line every millisecond", &self.ways, seen);
    }

    /// Lines after 200 to 400 ms, so that a reader that backs off is at its longest pause.
    fn gaps(&self) {
        let count = if self.is_quick { 20 } else { 400 };
        let seen = std::thread::scope(|scope| {
            let follow = |(at, way)| {
                scope.spawn(move || {
                    let mut rng = Rng::new(at as u64);
                    let mut reader = self.start(way, count);
                    reader.write(1..count + 1, LINE, |_| {
                        std::thread::sleep(Duration::from_micros(
                            200_000 + rng.below(200_000) as u64,
                        ));
                    });
                    vec![reader.finish()]
                })
            };
            let threads: Vec<_> = self.ways.iter().enumerate().map(follow).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        latencies("a line every 200 to 400 ms", &self.ways, seen);
    }

    /// The processor time of waiting.
    fn idle(&self) {
        let seconds = if self.is_quick { 5 } else { 60 };
        let mut nap = Command::new(std::env::current_exe().unwrap());
        let mut waiting = vec![
            (
                "nothing but waking every 100 ms",
                nap.arg("nap").spawn().unwrap(),
            ),
            (
                "`Follower`, not one event yet",
                self.start(&self.ways[0], 2).child,
            ),
        ];
        for way in &self.ways {
            let mut reader = self.start(way, 2);
            reader.write_at_once(1..2, LINE);
            waiting.push((way.name, reader.child));
        }
        std::thread::sleep(Duration::from_secs(2));
        let before: Vec<Used> = waiting.iter().map(|(_, child)| used(child.id())).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        let after: Vec<Used> = waiting.iter().map(|(_, child)| used(child.id())).collect();
        println!(
            "| {seconds} s without a line | processor time | of the time | wake-ups a second |"
        );
        println!("| --- | ---: | ---: | ---: |");
        for (((name, mut child), before), after) in waiting.into_iter().zip(before).zip(after) {
            child.kill().unwrap();
            child.wait().unwrap();
            let time = after.nanoseconds.saturating_sub(before.nanoseconds) as f64;
            println!(
                "| {name} | {:.1} ms | {:.4} % | {:.1} |",
                time / 1e6,
                time / 1e7 / seconds as f64,
                after.waits.saturating_sub(before.waits) as f64 / seconds as f64
            );
        }
    }

    /// Many lines at once.
    fn burst(&self) {
        let scale = if self.is_quick { 10 } else { 1 };
        for (count, len, at_once) in [
            (200_000, LINE, 1),
            (200_000, LINE, 1_000),
            (500, 1 << 20, 1),
        ] {
            let count = count / scale;
            println!(
                "| {count} lines of {} KiB, {at_once} a write | lost | in order | until the last was read \
                | wake-ups | p50 | longest | memory grew by (two lines and 1 MiB: {} KiB) |",
                len >> 10,
                (2 * len + (1 << 20)) >> 10
            );
            println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
            for way in &self.ways {
                let mut reader = self.start(way, count);
                let (start, mut last) = (Instant::now(), Duration::ZERO);
                for first in (1..count + 1).step_by(at_once) {
                    last = start.elapsed();
                    reader.write_at_once(first..first + at_once, len);
                }
                let seen = reader.finish();
                let mut latencies = seen.latencies;
                let wall = last + Duration::from_nanos(latencies[count - 1]);
                latencies.sort_unstable();
                println!(
                    "| {} | {} | {} | {:.2} s | {} | {} | {} | {} KiB |",
                    way.name,
                    count - seen.count,
                    if seen.is_ordered { "yes" } else { "NO" },
                    wall.as_secs_f64(),
                    seen.waits,
                    time(latencies[count / 2]),
                    time(latencies[count - 1]),
                    seen.grown
                );
            }
            println!();
        }
    }

    /// A session from its first to its last byte.
    fn whole(&self, session: Option<&Path>) {
        let path = session.map_or_else(
            || {
                let path = self.folder.join("whole.jsonl");
                let mut file = File::create(&path).unwrap();
                for number in 0..200_000 {
                    file.write_all(&line(number, LINE)).unwrap();
                }
                path
            },
            Path::to_owned,
        );
        let us = std::env::current_exe().unwrap().display().to_string();
        let commands: [(&str, &[&str]); 5] = [
            ("`wc -l`", &["wc", "-l"]),
            ("`cat`", &["cat"]),
            ("`tail -n +1`", &["tail", "-n", "+1"]),
            ("`Follower`", &[&us, "whole", "lines"]),
            ("`Follower` with `changes`", &[&us, "whole", "changes"]),
        ];
        let mut seen = vec![Vec::new(); commands.len()];
        let mut said = vec![String::new(); commands.len()];
        for _ in 0..if self.is_quick { 1 } else { 7 } {
            for (at, (_, command)) in commands.iter().enumerate() {
                let mut process = Command::new(command[0]);
                process.args(&command[1..]).arg(&path);
                if command[0] == us {
                    process.stdout(Stdio::piped());
                } else {
                    process.stdout(Stdio::null());
                }
                let start = Instant::now();
                let output = process.spawn().unwrap().wait_with_output().unwrap();
                seen[at].push(start.elapsed());
                said[at] = String::from_utf8_lossy(&output.stdout).into_owned();
            }
        }
        let len = fs::metadata(&path).unwrap().len() as f64;
        println!("| {:.0} MB | median | a second | x `wc -l` | |", len / 1e6);
        println!("| --- | ---: | ---: | ---: | --- |");
        let medians: Vec<f64> = seen
            .iter_mut()
            .map(|seen| {
                seen.sort_unstable();
                seen[seen.len() / 2].as_secs_f64()
            })
            .collect();
        for (((name, _), median), said) in commands.iter().zip(&medians).zip(&said) {
            let (rate, ratio) = (len / 1e9 / median, median / medians[0]);
            println!("| {name} | {median:.3} s | {rate:.2} GB | {ratio:.1} | {said} |");
        }
    }

    /// Starts to follow a new file with one line.
    fn start(&self, way: &Way, count: usize) -> Reader {
        let path = tempfile::Builder::new()
            .suffix(".jsonl")
            .tempfile_in(self.folder)
            .unwrap();
        let path = path.into_temp_path().keep().unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&line(0, LINE)).unwrap();
        let mut command = Command::new(&way.command[0]);
        command
            .args(&way.command[1..])
            .arg(&path)
            .args([count.to_string(), QUIET.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n", "{}", way.name);
        // Time for the reader to find that there is no more, and to go to sleep.
        std::thread::sleep(Duration::from_millis(300));
        Reader {
            child,
            output,
            file,
            path,
        }
    }
}

/// A process that follows a file, and that file.
struct Reader {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    file: File,
    path: PathBuf,
}

impl Reader {
    fn write(&mut self, numbers: Range<usize>, len: usize, mut wait: impl FnMut(usize)) {
        for number in numbers {
            wait(number);
            self.write_at_once(number..number + 1, len);
        }
    }

    fn write_at_once(&mut self, numbers: Range<usize>, len: usize) {
        let lines: Vec<Vec<u8>> = numbers.map(|number| line(number, len)).collect();
        self.file.write_all(&lines.concat()).unwrap();
    }

    fn finish(mut self) -> Seen {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        fs::remove_file(&self.path).unwrap();
        let (head, latencies) = text.split_once('\n').unwrap();
        let head: Vec<&str> = head.split(' ').collect();
        let number = |at: usize| head[at].parse::<u64>().unwrap();
        Seen {
            count: number(0) as usize,
            is_ordered: head[1].eq_ignore_ascii_case("true"),
            waits: number(2),
            grown: number(4) - number(3),
            latencies: latencies
                .split_whitespace()
                .map(|text| text.parse().unwrap())
                .collect(),
        }
    }
}

/// The lines that a reader received, and their latencies.
struct Seen {
    count: usize,
    is_ordered: bool,
    /// How often the reading thread waited.
    waits: u64,
    /// The growth of its peak memory, in KiB.
    grown: u64,
    /// In the order of the lines, in nanoseconds.
    latencies: Vec<u64>,
}

fn latencies(title: &str, ways: &[Way], seen: Vec<Vec<Seen>>) {
    println!("| {title} | lines | lost | in order | p50 | p90 | p99 | p99.9 | longest |");
    println!("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for (way, seen) in ways.iter().zip(seen) {
        let came: usize = seen.iter().map(|seen| seen.count).sum();
        let is_ordered = seen.iter().all(|seen| seen.is_ordered);
        let mut all: Vec<u64> = seen.into_iter().flat_map(|seen| seen.latencies).collect();
        all.sort_unstable();
        let per_mille = |part: usize| time(all[(all.len() * part / 1_000).min(all.len() - 1)]);
        let (sent, ordered) = (all.len(), if is_ordered { "yes" } else { "NO" });
        let parts = [500, 900, 990, 999, 1_000].map(per_mille).join(" | ");
        println!(
            "| {} | {sent} | {} | {ordered} | {parts} |",
            way.name,
            sent - came
        );
    }
}

/// Returns a line of `len` bytes with the time and its number.
fn line(number: usize, len: usize) -> Vec<u8> {
    let mut line = vec![b'x'; len];
    line[len - 3..].copy_from_slice(b"\"}\n");
    let head = format!(
        "{{\"at\":\"{:020}\",\"n\":\"{number:010}\",\"text\":\"",
        now()
    );
    line[..head.len()].copy_from_slice(head.as_bytes());
    line
}

/// Parses the time and the number of a [`line`].
fn parse(line: &[u8]) -> Option<(u64, usize)> {
    let number = |range| str::from_utf8(line.get(range)?).ok()?.parse::<u64>().ok();
    Some((number(7..27)?, number(34..44)? as usize))
}

/// Returns the nanoseconds of a clock that all processes share, including Python.
#[cfg(unix)]
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(not(unix))]
fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// The resources used so far by a process and its children.
#[derive(Clone, Copy, Default)]
struct Used {
    nanoseconds: u64,
    waits: u64,
}

fn used(process: u32) -> Used {
    let mut used = Used::default();
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return used;
    };
    for thread in threads.map(|thread| thread.unwrap().path()) {
        let text = |name| fs::read_to_string(thread.join(name)).unwrap_or_default();
        let first = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
        used.nanoseconds += first(&text("schedstat")).unwrap_or_default();
        used.waits += status(&thread.join("status"), "voluntary_ctxt_switches");
        for child in text("children").split_whitespace() {
            let child = self::used(child.parse().unwrap());
            used.nanoseconds += child.nanoseconds;
            used.waits += child.waits;
        }
    }
    used
}

fn status(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut words = text.split_whitespace();
    words.find(|word| word.strip_suffix(':') == Some(name));
    words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default()
}

fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        u64::MAX => "never".to_owned(),
        ..1_000_000 => format!("{:.1} µs", nanoseconds as f64 / 1e3),
        _ => format!("{:.2} ms", nanoseconds as f64 / 1e6),
    }
}

/// The reading process: reports when it is ready, and at the end what it has seen.
fn read(way: &str, path: &Path, count: usize, quiet: Duration) {
    let mut record = Record {
        count: 0,
        is_ordered: true,
        waits: 0,
        peak: 0,
        latencies: vec![u64::MAX; count],
    };
    if way == "tail" {
        let mut command = Command::new("tail");
        command
            .args(["-F", "-n", "+1"])
            .arg(path)
            .stdout(Stdio::piped());
        let mut tail = command.spawn().unwrap();
        let mut lines = BufReader::new(tail.stdout.take().unwrap()).split(b'\n');
        while !record.is_full() {
            record.add(&lines.next().unwrap().unwrap());
        }
        tail.kill().unwrap();
        tail.wait().unwrap();
    } else {
        let options = match way {
            "poll" => FollowOptions::new().poll_only(),
            _ => FollowOptions::new(),
        };
        let mut follower = Follower::new(path, &options);
        while !record.is_full() {
            let Some(emitted) = follower.next_within(quiet).unwrap() else {
                break;
            };
            match emitted.kind {
                EventKind::Open { .. } => {}
                EventKind::Entry(entry) => record.add(entry.text.as_bytes()),
                _ => record.is_ordered = false,
            }
        }
    }
    record.print();
}

struct Record {
    count: usize,
    is_ordered: bool,
    waits: u64,
    peak: u64,
    latencies: Vec<u64>,
}

impl Record {
    fn add(&mut self, line: &[u8]) {
        let now = now();
        let Some((written, number)) = parse(line) else {
            self.is_ordered = false;
            return;
        };
        if number == 0 {
            self.waits = waits();
            self.peak = peak();
            println!("ready");
            return;
        }
        self.count += 1;
        self.is_ordered &= number == self.count;
        self.latencies[number - 1] = now - written;
    }

    fn is_full(&self) -> bool {
        self.count == self.latencies.len()
    }

    fn print(&self) {
        let waits = waits() - self.waits;
        let (count, is_ordered, before, after) = (self.count, self.is_ordered, self.peak, peak());
        println!("{count} {is_ordered} {waits} {before} {after}");
        let latencies: Vec<String> = self.latencies.iter().map(u64::to_string).collect();
        println!("{}", latencies.join("\n"));
    }
}

/// Returns how often this thread has waited so far.
fn waits() -> u64 {
    status(
        Path::new("/proc/thread-self/status"),
        "voluntary_ctxt_switches",
    )
}

/// Returns the peak memory of this process, in KiB.
fn peak() -> u64 {
    status(Path::new("/proc/self/status"), "VmHWM")
}

/// The process that reads a session once.
fn whole(way: &str, path: &Path) {
    let options = match way {
        "changes" => FollowOptions::new().changes(),
        _ => FollowOptions::new(),
    };
    let mut follower = Follower::new(path, &options);
    let before = peak();
    let mut entries = 0;
    while let Some(emitted) = follower.try_next().unwrap() {
        entries += usize::from(matches!(emitted.kind, EventKind::Entry(_)));
    }
    let peak = peak() - before;
    print!("{entries} entries, memory grew by {peak} KiB");
}
