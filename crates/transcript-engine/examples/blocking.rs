//! The same without tokio: one question and one answer in a new or existing session.
//!
//! ```sh
//! cargo run -p transcript-engine --no-default-features --example blocking -- SESSION.jsonl
//! ```

#![expect(clippy::print_stdout, reason = "it prints what it does")]

use std::env;
use std::error::Error;
use std::path::PathBuf;

use transcript_engine::{Draft, Session, SessionOptions, TurnEnd};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os()
        .nth(1)
        .ok_or("usage: blocking SESSION.jsonl")?;
    let path = PathBuf::from(path);
    let options = SessionOptions::new().cwd(env::current_dir()?.to_string_lossy());
    let session = if path.exists() {
        let resumed = Session::resume(&path, &options)?;
        println!(
            "continuing after {} messages",
            resumed.request.messages.len()
        );
        resumed.session
    } else {
        Session::create(&path, &options)?
    };
    session.append(Draft::user("How long is a lunar month?"))?;

    // A real client sends this request to a provider.
    let request = session.request()?;
    println!("sending {} messages", request.messages.len());
    let reply = r#"{"id":"msg_01","type":"message","role":"assistant","model":"scripted",
        "content":[{"type":"text","text":"29.53 days."}],"stop_reason":"end_turn","usage":{}}"#;

    session.append_all(Draft::assistant(reply)?)?;
    session.end_turn(TurnEnd::new().prompt("How long is a lunar month?"))?;
    session.close()?;
    Ok(())
}
