//! A whole life of a session against a scripted model, with this crate alone: streamed answers, tools, an
//! answer that is cut in the middle, a restart, a compaction that keeps the last turn, a rewind, a fork,
//! a follower, and what it all cost.
//!
//! ```sh
//! cargo run -p transcript-engine --example toy -- SESSION.jsonl
//! ```
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::error::Error;
use std::path::{Path, PathBuf};
use transcript_engine::follow::{EventKind, FollowOptions, Follower};
use transcript_engine::stream::{Accumulator, Sse, StreamOutcome};
use transcript_engine::{
    Compaction, Draft, ForkOptions, History, Keep, RequestSettings, Session, SessionOptions,
    Trigger, TurnEnd,
};

mod model;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let path = std::env::args_os().nth(1).map(PathBuf::from);
    let path = path.ok_or("usage: toy SESSION.jsonl, a file that does not exist yet")?;
    let options = SessionOptions::new().version("0.1.0").model("scripted");

    let session = Session::create(&path, &options)?;
    for year in 1999..2002 {
        session.append(Draft::user(&format!("How long is the year {year}?")))?;
        while !answer(&session, None)? {}
        session.end_turn(TurnEnd::new())?;
    }
    session.set_title("Years")?;

    // The connection breaks in the middle of an answer, and the program ends.
    session.append(Draft::user("And how long is 2004?"))?;
    answer(&session, Some(200))?;
    drop(session);

    // A restart: calls without a result have one now, and the turn is closed.
    let resumed = Session::resume(&path, &options)?;
    println!("resumed: {} entries were added", resumed.added.len());
    let session = resumed.session;
    session.append(Draft::user("I was interrupted: 2004?"))?;
    while !answer(&session, None)? {}

    let compaction = Compaction::new(Trigger::Auto, 150_000);
    let done = session.compact(compaction, "We talked about years.", Keep::LastTurns(1))?;
    println!("compacted: {} entries kept", done.kept.len());

    session.append(Draft::user("A question too many"))?;
    while !answer(&session, None)? {}
    // Back to the entry before the last prompt.
    let entries = session.entries()?;
    let last = entries.iter().rposition(|entry| entry.is_prompt);
    let target = last.and_then(|at| entries[..at].last()?.id.clone());
    session.rewind(target)?;
    let left = session.entries()?;
    println!(
        "rewound: {} entries before, {} after",
        entries.len(),
        left.len()
    );

    let copy = session.fork(&ForkOptions::new())?;
    println!(
        "forked: {} messages",
        History::open(&copy)?.request(&options)?.messages.len()
    );
    session.close()?;
    show(&path)
}

/// Sends the request and writes the answer and the results of its calls; `cut` ends the stream after so
/// many bytes. Returns whether the turn is over.
fn answer(session: &Session, cut: Option<usize>) -> Outcome<bool> {
    let request = session.request()?;
    let stream = model::answer(
        &request,
        &request.body(&RequestSettings::new("scripted", 1024).stream(true)),
    );
    let stream = &stream[..cut.unwrap_or(stream.len()).min(stream.len())];
    let (mut sse, mut message) = (Sse::new(), Accumulator::new());
    for bytes in stream.as_bytes().chunks(61) {
        sse.push(bytes, |_, event| _ = message.event(event));
    }
    let reply = match message.finish() {
        StreamOutcome::Whole(reply) => reply,
        _ => return Ok(true),
    };
    session.append_reply(&reply)?;
    let calls = reply.tool_calls();
    for call in &calls {
        session.append(Draft::tool_result(
            &call.id,
            &format!("{} of {}", call.name, call.input),
        ))?;
    }
    Ok(calls.is_empty())
}

/// Follows the file to its end, and prints what it cost.
fn show(path: &Path) -> Outcome<()> {
    let mut follower = Follower::new(path, &FollowOptions::new().poll_only());
    let mut lines = 0;
    while let Some(event) = follower.try_next()? {
        lines += usize::from(matches!(event.kind, EventKind::Entry(_)));
    }
    println!("followed: {lines} entries");
    for usage in History::open(path)?.usage()? {
        println!(
            "used: {} answers, {:?} tokens out",
            usage.answers, usage.output_tokens
        );
    }
    Ok(())
}
