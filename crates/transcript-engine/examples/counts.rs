//! The work whose instructions `make bench-check` counts, one area for each run under callgrind:
//! `counts AREA`. Only what runs inside `measured` counts. The input is always the same, and of its
//! own kind, so that a change of the generators of the tests changes no count.

use std::error::Error;
use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;

use transcript_engine::{Draft, History, Policy, Session, SessionOptions, SyncPolicy};
use transcript_format::lines::{Framed, Framer};
use transcript_format::scan::Scanner;
use transcript_reader::{LoadOptions, Source};

/// About 3 MB in 2,400 lines.
const TURNS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let area = std::env::args().nth(1).ok_or("usage: counts AREA")?;
    let folder = tempfile::tempdir()?;
    let path = folder
        .path()
        .join("00000000-0000-4000-8000-000000000001.jsonl");
    std::fs::write(&path, session())?;
    match area.as_str() {
        "scan" => scan(&std::fs::read(&path)?),
        "index" => {
            let source = Source::open(&path)?;
            measured(&mut || drop(black_box(LoadOptions::new().threads(1).load(&source))));
        }
        "tree" => {
            let history = History::open(&path)?;
            measured(&mut || drop(black_box(history.tree(Policy::Recover))));
        }
        "path" => {
            let history = History::open(&path)?;
            let tree = history.tree(Policy::Recover);
            measured(&mut || drop(black_box(tree.path())));
        }
        "request" => {
            let history = History::open(&path)?;
            let options = SessionOptions::new();
            measured(&mut || drop(black_box(history.request(&options))));
        }
        "turn" => turn(&path)?,
        "append" => append(&path)?,
        _ => return Err("no such area".into()),
    }
    Ok(())
}

/// Callgrind counts from the entry of this function to its end.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
}

fn scan(bytes: &[u8]) {
    measured(&mut || {
        let (mut framer, mut scanner) = (Framer::new(), Scanner::new());
        let mut rest = bytes;
        while let Some(framed) = framer.next(&mut rest) {
            if let Framed::Line(line) = framed {
                black_box(scanner.scan(line.bytes).is_ok());
            }
        }
    });
}

/// The request after one more turn of an open session.
fn turn(path: &Path) -> Result<(), Box<dyn Error>> {
    let session = Session::open(path, &SessionOptions::new().sync(SyncPolicy::None))?;
    session.append(Draft::user("What is next?"))?;
    session.request()?;
    let answer = Draft::assistant(&block(7, r#"{"type":"text","text":"This."}"#))?;
    session.append_all(answer)?;
    session.append(Draft::user("And then?"))?;
    measured(&mut || drop(black_box(session.request())));
    Ok(())
}

fn append(path: &Path) -> Result<(), Box<dyn Error>> {
    let session = Session::open(path, &SessionOptions::new().sync(SyncPolicy::None))?;
    let drafts = vec![Draft::user(&text(2_000)); 500];
    let mut failed = None;
    measured(&mut || {
        for draft in &drafts {
            failed = session.append(draft.clone()).err().or(failed.take());
        }
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Turns with a prompt, thinking, text, two calls with long results, and lines without messages;
/// each tenth prompt is sent twice, the first time to no avail.
fn session() -> String {
    let mut out = String::new();
    let (mut parent, mut count) = ("null".to_owned(), 0);
    let mut entry = |parent: &str, members: &str| {
        count += 1;
        let uuid = format!("\"{count:08x}-0000-4000-8000-000000000000\"");
        let (minute, second) = (count / 60 % 60, count % 60);
        let hour = count / 3600;
        writeln!(
            out,
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/home/ada/src","sessionId":"00000000-0000-4000-8000-000000000001","version":"2.1.119",{members},"uuid":{uuid},"timestamp":"2026-01-02T{hour:02}:{minute:02}:{second:02}.000Z"}}"#
        )
        .expect("a string takes everything");
        uuid
    };
    for turn in 0..TURNS {
        let prompt = user(&format!("\"{}\"", text(120 + turn % 7 * 90)));
        if turn % 10 == 9 {
            entry(&parent, &prompt);
        }
        parent = entry(&parent, &prompt);
        let steps = [
            format!(
                r#"{{"type":"thinking","thinking":"{}","signature":"EqQB"}}"#,
                text(900)
            ),
            format!(r#"{{"type":"text","text":"{}"}}"#, text(300)),
            call(2 * turn),
            call(2 * turn + 1),
        ];
        for step in &steps {
            parent = entry(&parent, &assistant(turn, step));
        }
        for (at, id) in [2 * turn, 2 * turn + 1].into_iter().enumerate() {
            let long = text(1_200 + (turn * 37 + at) % 40 * 90);
            let result = format!(
                r#"[{{"tool_use_id":"toolu_{id}","type":"tool_result","content":"{long}"}}]"#
            );
            let copy = format!(r#"{},"toolUseResult":{{"stdout":"{long}"}}"#, user(&result));
            parent = entry(&parent, &copy);
        }
        let note = r#""type":"attachment","attachment":{"type":"hook_success","hookName":"h","content":"ok","toolUseID":"t","hookEvent":"Stop"}"#;
        parent = entry(&parent, note);
        let last = format!(r#"{{"type":"text","text":"{}"}}"#, text(500));
        parent = entry(&parent, &assistant(TURNS + turn, &last));
        let timing =
            r#""type":"system","subtype":"turn_duration","durationMs":9000,"isMeta":false"#;
        parent = entry(&parent, timing);
    }
    out
}

fn user(content: &str) -> String {
    format!(r#""type":"user","message":{{"role":"user","content":{content}}}"#)
}

fn assistant(message: usize, content: &str) -> String {
    format!(
        r#""type":"assistant","message":{}"#,
        block(message, content)
    )
}

/// An assistant message with one block.
fn block(message: usize, content: &str) -> String {
    format!(
        r#"{{"model":"m","id":"msg_{message}","type":"message","role":"assistant","content":[{content}],"stop_reason":null,"usage":{{"input_tokens":4,"output_tokens":90}}}}"#
    )
}

fn call(id: usize) -> String {
    format!(
        r#"{{"type":"tool_use","id":"toolu_{id}","name":"Bash","input":{{"command":"{}"}}}}"#,
        text(80)
    )
}

/// Text of about this many bytes inside of a JSON string: with escapes, and beyond ASCII.
fn text(bytes: usize) -> String {
    let sentence = r#"Read the \"tide\" table of März,\n\tthen → the next one: 潮. "#;
    sentence.repeat(bytes.div_ceil(sentence.len()))
}
