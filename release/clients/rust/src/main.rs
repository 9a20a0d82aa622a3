//! Continues a session, or begins it: a prompt and a scripted reply, acknowledged one by one.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use transcript_engine::{Draft, Session, SessionOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(env::args_os().nth(1).ok_or("usage: client SESSION.jsonl")?);
    let options = SessionOptions::new().cwd("/work").version("1.0.0");
    let (session, before) = if path.exists() {
        let resumed = Session::resume(&path, &options)?;
        (resumed.session, resumed.request.messages.len())
    } else {
        (Session::create(&path, &options)?, 0)
    };
    session.append(Draft::user("Which years have a leap day?"))?;
    let reply = r#"{"id":"msg_rust","type":"message","role":"assistant","model":"scripted",
        "content":[{"type":"text","text":"Rust: most fourth ones."}],"stop_reason":"end_turn","usage":{}}"#;
    session.append_all(Draft::assistant(reply)?)?;
    let after = session.request()?.messages.len();
    session.close()?;
    println!("resumed with {before} messages, closed with {after}");
    Ok(())
}
