//! An agent that talks to a scripted model. Every step is in the session before the next one
//! starts, so the agent can be killed at any moment and continues when it is started again.
//!
//! ```sh
//! cargo run -p transcript-engine --example agent -- SESSION.jsonl 5
//! ```
//!
//! It prints the id of each entry that is safe. The model is `script`; its replies are streamed. With
//! a third argument, a number of bytes, the connection of the first reply of each turn ends early:
//! after a given number of bytes in the first turn, and one more in each that follows.

#![expect(clippy::print_stdout, reason = "it prints what is safe")]

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use transcript_engine::stream::{Accumulator, Reply, Sse, StreamOutcome, ToolCall};
use transcript_engine::{
    AsyncSession, Compaction, Draft, EntryId, Object, Request, SessionOptions, Trigger, TurnEnd,
    Written, make,
};

/// The conversation is compacted after this many turns of one run.
const TURNS_IN_CONTEXT: usize = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or("usage: agent FILE [TURNS]")?;
    let turns = arguments.next().map_or(Ok(1), |turns| turns.parse())?;
    let cut: Option<usize> = arguments.next().map(|cut| cut.parse()).transpose()?;

    let session = open(&PathBuf::from(path)).await?;
    for turn in 1..=turns {
        let entries = take_turn(&session, turn, cut.map(|cut| cut + turn - 1)).await?;
        if turn % TURNS_IN_CONTEXT == 0 {
            let compaction = Compaction::new(Trigger::Auto, 150_000);
            let summary = format!("We went through {turn} questions.");
            let done = session.compact(compaction, &summary, entries).await?;
            report(&[done.boundary, done.summary]);
        }
        let title = Draft::try_from(make::ai_title("Questions about the calendar"))?;
        let end = TurnEnd::new().prompt(question(turn)).lines([title]);
        session.end_turn(end).await?;
    }
    Ok(session.close().await?)
}

/// Continues the session if it exists. Resuming adds results for interrupted calls, so the API
/// accepts the request. Replies of a turn that a kill interrupted are counted now.
async fn open(path: &Path) -> Result<AsyncSession, Box<dyn Error>> {
    let options = SessionOptions::new().cwd(env::current_dir()?.to_string_lossy());
    if std::fs::metadata(path).map_or(true, |found| found.len() == 0) {
        return Ok(AsyncSession::create(path, &options).await?);
    }
    let resumed = AsyncSession::resume(path, &options).await?;
    report(&resumed.added);
    resumed.session.count_missed(|_, _| None).await?;
    Ok(resumed.session)
}

/// Runs one prompt, up to its answer. Returns the entries. The first reply ends after `cut` bytes.
async fn take_turn(
    session: &AsyncSession,
    turn: usize,
    mut cut: Option<usize>,
) -> Result<Vec<EntryId>, Box<dyn Error>> {
    let prompt = session.append(Draft::user(&question(turn))).await?;
    let mut entries = report(&[prompt]);
    loop {
        let request = session.request().await?;
        let start = Instant::now();
        let reply = match answer(&request, cut.take()).await? {
            StreamOutcome::Whole(reply) => reply,
            // Keep the part that arrived. Its calls are not run, and the next request says so.
            StreamOutcome::Partial(reply, _) => {
                entries.extend(report(&session.append_reply(&reply).await?));
                count(session, &reply, start.elapsed())?;
                continue;
            }
            _ => continue,
        };
        entries.extend(report(&session.append_reply(&reply).await?));
        count(session, &reply, start.elapsed())?;
        let calls = reply.tool_calls();
        if calls.is_empty() {
            return Ok(entries);
        }
        for call in calls.iter().rev() {
            let result = Draft::tool_result(&call.id, &run_tool(call));
            entries.extend(report(&[session.append(result).await?]));
        }
    }
}

/// Counts a reply; the counts are written at the end of the turn. The scripted model has no price.
fn count(session: &AsyncSession, reply: &Reply, took: Duration) -> Result<(), Box<dyn Error>> {
    let message = Object::parse(reply.message())?;
    if let (Some(model), Some(usage)) = (message.str("model"), message.object("usage")) {
        session.count(|counters| counters.add_reply(&model, &usage, None, took));
    }
    Ok(())
}

/// The only tool: the length of a year.
fn run_tool(call: &ToolCall) -> String {
    let input: serde_json::Value = serde_json::from_str(&call.input).unwrap_or_default();
    match input["year"].as_u64() {
        Some(2000) => "366 days".to_owned(),
        Some(year) => format!("{year} is not what anybody asked for"),
        None => "no year".to_owned(),
    }
}

/// Sends the request, and assembles the reply from its events, of which `cut` bytes arrive.
async fn answer(request: &Request, cut: Option<usize>) -> Result<StreamOutcome, Box<dyn Error>> {
    let (send, mut network) = mpsc::channel::<Vec<u8>>(4);
    let mut reply = script(request);
    // It is ASCII, so that any byte is the end of a character.
    reply.truncate(cut.unwrap_or(reply.len()));
    tokio::spawn(async move {
        for bytes in reply.as_bytes().chunks(61) {
            // The receiver is gone when the program ends.
            let _ = send.send(bytes.to_vec()).await;
        }
    });
    let (mut sse, mut message) = (Sse::new(), Accumulator::new());
    while let Some(bytes) = network.recv().await {
        sse.push(&bytes, |_, event| _ = message.event(event));
    }
    Ok(message.finish())
}

fn question(turn: usize) -> String {
    format!("How long is the year {}?", 1999 + turn)
}

/// Returns the events of a reply: an answer if the request ends with results, else two calls.
fn script(request: &Request) -> String {
    let id = uuid::Uuid::new_v4().simple();
    let last = request.messages.last().map(|message| message.json());
    let call = |number| {
        let call = format!("toolu_{number}{id}");
        let delta = json!({"type": "input_json_delta", "partial_json": r#"{"year": 2000}"#});
        (
            json!({"type": "tool_use", "id": call, "name": "Calendar", "input": {}}),
            delta,
        )
    };
    let blocks = if last.is_some_and(|last| last.contains("366 days")) {
        let delta = json!({"type": "text_delta", "text": "366 days."});
        vec![(json!({"type": "text", "text": ""}), delta)]
    } else {
        vec![call(1), call(2)]
    };
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": format!("msg_{id}"),
        "role": "assistant", "model": "scripted", "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1}}}),
    ];
    for (at, (block, delta)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": at, "content_block": block}));
        events.push(json!({"type": "content_block_delta", "index": at, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": at}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 7}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

/// Prints the ids of entries that are in the file, and returns them.
fn report(entries: &[Written]) -> Vec<EntryId> {
    let ids: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry.uuid.clone())
        .collect();
    ids.iter().for_each(|id| println!("{id}"));
    ids
}
