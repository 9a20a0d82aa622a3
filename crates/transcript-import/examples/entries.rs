//! Writes the sessions of another agent as files of our own format.
//!
//! `entries --agent NAME --root STORE OUT`; STORE is the agent's home folder or one file of it. A file that exists is replaced.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use transcript_import::{Agent, ImportDisk};
use transcript_storage::{FileKind, ReadDisk, RealDisk};

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
    let (mut agent, mut root, mut out) = (None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("an option needs a value");
        match argument.as_str() {
            "--agent" => agent = Some(value()?.parse::<Agent>()?),
            "--root" => root = Some(PathBuf::from(value()?)),
            _ => out = Some(PathBuf::from(argument)),
        }
    }
    let (Some(agent), Some(root), Some(out)) = (agent, root, out) else {
        return Err("usage: entries --agent NAME --root STORE OUT".into());
    };
    let disk = ImportDisk::new(Arc::new(RealDisk), agent, &root);
    copy(&disk, &root, &out)
}

fn copy(disk: &ImportDisk, from: &Path, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(to)?;
    for entry in disk.list(from)? {
        let entry = entry?;
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        if entry.kind == FileKind::Folder {
            copy(disk, &from, &to)?;
        } else {
            std::fs::write(to, disk.read(&from, usize::MAX)?)?;
        }
    }
    Ok(())
}
