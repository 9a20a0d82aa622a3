//! How long an open session takes for the request after one more turn:
//! `cargo run --release -p transcript-engine --example turn -- SESSION.jsonl [TURNS]`. Works on a copy next
//! to the file, and prints one JSON object with times in seconds.

#![expect(clippy::print_stdout, reason = "a program")]

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use transcript_engine::{Draft, Session, SessionOptions, SyncPolicy};

const ANSWER: &str = r#"{"id":"msg_turn","type":"message","role":"assistant","model":"m",
    "content":[{"type":"text","text":"29.53 days."}],"stop_reason":"end_turn","usage":{}}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let session = arguments
        .next()
        .ok_or("usage: turn SESSION.jsonl [TURNS]")?;
    let turns = arguments.next().map_or(Ok(21), |turns| turns.parse())?;
    // A session is named by its id, and the id must not be that of a session next to it.
    let copy = Path::new(&session).with_file_name("00000000-0000-4000-8000-00000000b33c.jsonl");
    fs::copy(&session, &copy)?;
    let measured = measure(&copy, turns);
    fs::remove_file(&copy)?;
    measured
}

fn measure(path: &Path, turns: usize) -> Result<(), Box<dyn Error>> {
    let options = SessionOptions::new().sync(SyncPolicy::None);
    let (opened, session) = timed(|| Session::open(path, &options))?;
    session.append(Draft::user("How long is a lunar month?"))?;
    let (first, request) = timed(|| session.request())?;
    drop(request);
    let mut took = Vec::new();
    for _ in 0..turns.max(1) {
        session.append_all(Draft::assistant(ANSWER)?)?;
        session.append(Draft::user("And a year?"))?;
        let (turn, request) = timed(|| session.request())?;
        // Clients drop the request before the next one; that is not part of its time.
        drop(black_box(request));
        took.push(turn);
    }
    took.sort_unstable();
    println!(
        r#"{{"open":{:.6},"first":{:.6},"median":{:.6},"longest":{:.6}}}"#,
        opened.as_secs_f64(),
        first.as_secs_f64(),
        took[took.len() / 2].as_secs_f64(),
        took[took.len() - 1].as_secs_f64(),
    );
    session.close()?;
    Ok(())
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(Duration, T), E> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed(), done))
}
