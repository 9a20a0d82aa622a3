//! The command line: the options of all commands, and each command with its own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[cfg(feature = "browse")]
use crate::browse;
#[cfg(feature = "import")]
use crate::convert;
#[cfg(not(all(feature = "browse", feature = "import", feature = "serve")))]
use crate::light;
#[cfg(feature = "serve")]
use crate::serve;
use crate::{
    append, complete, export, fork, help, import, keep, list, manual, merge, move_sessions, prune,
    pull, push, repair, replay, restore, resume, search, tail, tree, ui, usage, verify,
};

/// Find, read, repair, share and back up Claude Code sessions
#[derive(Debug, Parser)]
#[command(name = "transcript", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: ui::OutputOptions,
    /// The projects folder, or the name that the configuration file gives it; may be repeated [default: projects in
    /// $CLAUDE_CONFIG_DIR or ~/.claude]
    #[arg(long, global = true, value_name = "DIR|NAME")]
    pub(crate) root: Vec<PathBuf>,
    /// The agent whose sessions are meant, such as codex or claude-code; may be repeated. With --root, that is its home
    /// folder [default: Claude Code, and all agents found on the machine]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// The folder of the archive, or its address in a bucket: s3://BUCKET/PREFIX, gs://, az:// [default: $TRANSCRIPT_ARCHIVE, or one for each
    /// root in transcript in the data folder]
    #[arg(long, global = true, value_name = "DIR|URL", num_args = 0..=1)]
    pub(crate) archive: Option<Option<PathBuf>>,
    /// The file with the key of an encrypted archive, as `age-keygen` writes it [default: $TRANSCRIPT_IDENTITY]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Append(append::Args),
    #[cfg(feature = "browse")]
    Browse(browse::Args),
    #[cfg(not(feature = "browse"))]
    #[command(hide = true)]
    Browse(light::Args),
    #[cfg(feature = "import")]
    Convert(convert::Args),
    #[cfg(not(feature = "import"))]
    #[command(hide = true)]
    Convert(light::Args),
    Export(export::Args),
    Fork(fork::Args),
    Import(import::Args),
    Keep(keep::Args),
    List(list::Args),
    Merge(merge::Args),
    Move(move_sessions::Args),
    Prune(prune::Args),
    Pull(pull::Args),
    Push(push::Args),
    Repair(repair::Args),
    Replay(replay::Args),
    Restore(restore::Args),
    Resume(resume::Args),
    Search(search::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    #[cfg(not(feature = "serve"))]
    #[command(hide = true)]
    Serve(light::Args),
    Tail(tail::Args),
    Tree(tree::Args),
    Usage(usage::Args),
    Verify(verify::Args),
    Completions(manual::Completions),
    Man(manual::Man),
    Help(help::topics::Args),
    #[command(name = "__complete", hide = true)]
    Complete(complete::Args),
    /// Any other word, and the arguments after it.
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl Cli {
    /// Returns the terminal and the options of all commands.
    pub(crate) fn ui(&self) -> ui::Ui {
        let (root, archive) = (self.root.clone(), self.archive.clone());
        let roots = ui::AskedRoots {
            folders: root,
            agents: self.agent.clone(),
        };
        ui::Ui::new(&self.output, roots, archive, self.identity.clone())
    }
}
