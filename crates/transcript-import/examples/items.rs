//! Prints a session of another agent as items.
//!
//! `items --agent NAME --root STORE [--policy recover|vendor] [--count] SESSION`; STORE is the agent's home folder or one file
//! of it. With `--count` only the number of nodes is printed, and no content is read.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use transcript_import::{Agent, Policy, Store, dialect};
use transcript_storage::RealDisk;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a program")]
            {
                eprintln!("error: {error}");
            }
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (mut agent, mut root, mut session) = (None, None, None);
    let mut is_counted = false;
    let mut policy = Policy::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("an option needs a value");
        match argument.as_str() {
            "--agent" => agent = Some(value()?.parse::<Agent>()?),
            "--root" => root = Some(PathBuf::from(value()?)),
            "--count" => is_counted = true,
            "--policy" if value()? == "vendor" => policy = Policy::Vendor,
            "--policy" => {}
            _ => session = Some(argument),
        }
    }
    let (Some(agent), Some(root), Some(session)) = (agent, root, session) else {
        return Err("usage: items --agent NAME --root STORE [--policy POLICY] SESSION".into());
    };
    let store = Store {
        disk: &RealDisk,
        path: &root,
    };
    let conversation = dialect(agent).read(store, &session, policy)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if is_counted {
        writeln!(out, "{}", conversation.ids().len())?;
    } else {
        conversation.write_items(&mut out)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}
