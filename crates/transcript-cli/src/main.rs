//! The command `transcript`.
//!
//! One module for each subcommand: its arguments and a `run`. The work is a call into the
//! libraries; this crate only has argument parsing, output and exit codes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod append;
mod closed;
mod exit;
mod filter;
mod fork;
mod json;
mod list;
mod manual;
mod moment;
mod pager;
mod path_args;
mod progress;
mod record;
mod replay;
mod resume;
mod screen;
mod session;
mod tail;
mod tree;
mod until;

/// Write, replay and resume agent conversations kept as JSON Lines
#[derive(Debug, Parser)]
#[command(name = "transcript", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    output: screen::OutputOptions,
    /// The folder that holds the projects [default: projects in $CLAUDE_CONFIG_DIR or ~/.claude]
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Append(append::Args),
    Fork(fork::Args),
    List(list::Args),
    Replay(replay::Args),
    Resume(resume::Args),
    Tail(tail::Args),
    Tree(tree::Args),
    Completions(manual::Completions),
    Man(manual::Man),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; everything else is a wrong command line.
            let code = if error.use_stderr() {
                exit::FAILED
            } else {
                exit::DONE
            };
            // Ignore a closed pipe.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let store_args = session::StoreArgs {
        root: cli.root,
        quiet: cli.output.quiet,
    };
    store_args.set();
    cli.output.apply();
    let result = match cli.command {
        Command::Append(args) => append::run(&args, &cli.output),
        Command::Fork(args) => fork::run(&args),
        Command::List(args) => list::run(&args, &cli.output),
        Command::Replay(args) => replay::run(&args, &cli.output),
        Command::Resume(args) => resume::run(&args, &cli.output),
        Command::Tail(args) => tail::run(&args, &cli.output),
        Command::Tree(args) => tree::run(&args, &cli.output),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::man(&args, Cli::command()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_closed_pipe(&error) => ExitCode::from(exit::DONE),
        Err(error) => {
            screen::complain(&error);
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Returns whether the reader of our output is gone: `transcript … | head` exits quietly.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}
