//! Prints a session of another agent as items.
//!
//! `items --agent NAME --root STORE [--policy recover|vendor] [--count|--lines] SESSION`; STORE is the agent's home folder or one file
//! of it. With `--count` only the number of nodes is printed, and no content is read. With `--lines` the session is printed as the file
//! of our own format that shows it.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use transcript_import::{Agent, ImportDisk, Policy, Store, dialect};
use transcript_storage::{ReadDisk, Reader, RealDisk};

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
    let (mut is_counted, mut is_shown) = (false, false);
    let mut policy = Policy::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("an option needs a value");
        match argument.as_str() {
            "--agent" => agent = Some(value()?.parse::<Agent>()?),
            "--root" => root = Some(PathBuf::from(value()?)),
            "--count" => is_counted = true,
            "--lines" => is_shown = true,
            "--policy" if value()? == "vendor" => policy = Policy::Vendor,
            "--policy" => {}
            _ => session = Some(argument),
        }
    }
    let (Some(agent), Some(root), Some(session)) = (agent, root, session) else {
        return Err("usage: items --agent NAME --root STORE [--policy POLICY] SESSION".into());
    };
    if is_shown {
        let disk = ImportDisk::with(Arc::new(RealDisk), agent, &root, policy);
        return write_lines(&disk, &root, &session);
    }
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

fn write_lines(
    disk: &ImportDisk,
    root: &Path,
    session: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("{session}.jsonl");
    let mut shown = disk.sessions()?.into_iter();
    let shown = shown.find(|path| path.ends_with(&name));
    let path = root.join(shown.ok_or("there is no such session")?);
    let mut file = Reader::new(disk.open_to_read(&path)?);
    io::copy(&mut file, &mut io::stdout().lock())?;
    Ok(())
}
