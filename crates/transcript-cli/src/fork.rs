//! `transcript fork`: copies one conversation into a new session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use transcript_ops::fork::ForkSettings;

use crate::path_args::PolicyName;
use crate::ui::Ui;
use crate::{continuation, exit, record, session};

/// Copy a conversation into a new session
///
/// The new session has only the entries of that conversation, with new ids. It is written next to
/// the original, which is not changed. Prints the id of the new session.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, `latest`, or - for standard input; append
    /// `:LINE`, as `search` prints it, to stop at that line
    #[arg(value_name = "SESSION")]
    session: PathBuf,
    /// The rules that choose the conversation
    #[arg(long, value_enum, default_value_t = PolicyName::Recover)]
    policy: PolicyName,
    /// End the copy at this entry, which may be on any branch: a line number, a uuid, or the start of
    /// one
    #[arg(long, value_name = "ENTRY")]
    at: Option<String>,
    /// Path of the new file [default: next to the original, named after the new id]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Title of the new session [default: the original title with "(fork)" appended]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, mut args: Args) -> Result<u8> {
    transcript_engine::ignore_file_size_signal();
    if args.at.is_none()
        && let Some((session, line)) = session::with_line(&args.session)
    {
        (args.session, args.at) = (session, Some(line.to_string()));
    }
    if args.out.is_none() && args.session == Path::new("-") {
        bail!("a copy of standard input needs a path: name it with --out FILE");
    }
    session::follow_policy(ui, args.policy.policy());
    let (history, progress) = session::open(ui, &args.session, None)?;
    let settings = ForkSettings {
        session: args.session,
        policy: args.policy.into(),
        at: args.at,
        out: args.out,
        title: args.title,
    };
    let record = settings.copy(&history, &session::context(ui))?;
    drop(progress);
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &record)?;
    } else {
        writeln!(out, "{}", record.session_id).context("cannot print the id of the new session")?;
        continuation::note(ui, &[record.path]);
    }
    Ok(exit::DONE)
}
