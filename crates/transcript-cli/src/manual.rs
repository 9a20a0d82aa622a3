//! `transcript completions` and `transcript man`: made from the definitions of the command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::{Args as ClapArgs, Command, ValueEnum};
use transcript_storage::{Disk, RealDisk};

use crate::definition::whole;
use crate::exit;
use crate::help::layout::{HelpForm, MAX_WIDTH};
use crate::pager::Output;

/// Print the completions of a shell
///
/// The completions of bash, zsh and fish know commands, options and their values, and the sessions, entries and projects of
/// this machine. For bash, start a new shell after the first example; for zsh, add the folder to `fpath` in ~/.zshrc before
/// `compinit`: fpath=(~/.local/share/zsh $fpath).
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// Print or write the manual pages
///
/// Without an argument prints the page of transcript, in roff; with one that of a command.
#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Print the page of this command
    command: Option<String>,
    /// Write all pages to this folder, which is created
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions, root: &Command) -> Result<u8> {
    let generated = |shell: clap_complete::Shell| {
        let mut script = Vec::new();
        let mut root = whole(root, HelpForm::Short, MAX_WIDTH);
        clap_complete::generate(shell, &mut root, "transcript", &mut script);
        script
    };
    match args.shell {
        Shell::Bash => print(include_bytes!("completions/transcript.bash")),
        Shell::Fish => print(include_bytes!("completions/transcript.fish")),
        Shell::Zsh => print(include_bytes!("completions/_transcript")),
        Shell::Elvish => print(&generated(clap_complete::Shell::Elvish)),
        Shell::Powershell => print(&generated(clap_complete::Shell::PowerShell)),
    }
}

pub(crate) fn man(args: &Man, root: &Command) -> Result<u8> {
    let mut root = whole(root, HelpForm::Long, MAX_WIDTH);
    root.build();
    if let Some(folder) = &args.dir {
        return write_pages(&root, folder);
    }
    let page = match &args.command {
        None => root,
        Some(name) => {
            let found = root.find_subcommand(name).cloned();
            found.ok_or_else(|| anyhow!("man: there is no command {name}"))?
        }
    };
    print(&roff(page)?)
}

/// Writes the pages of all commands, and that of the whole.
fn write_pages(root: &Command, folder: &Path) -> Result<u8> {
    let named = || folder.display().to_string();
    RealDisk.create_folder(folder).with_context(named)?;
    let commands = root.get_subcommands();
    let commands = commands.filter(|command| !command.is_hide_set()).cloned();
    let pages: Vec<Command> = commands.chain([root.clone()]).collect();
    for page in pages {
        let name = page.get_display_name().unwrap_or(page.get_name());
        let path = folder.join(format!("{name}.1"));
        let mut out = Output::named(&path, true)?;
        out.write_all(&roff(page)?)?;
        out.finish().with_context(|| path.display().to_string())?;
    }
    Ok(exit::DONE)
}

fn roff(command: Command) -> Result<Vec<u8>> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(roff)
}

fn print(text: &[u8]) -> Result<u8> {
    io::stdout().lock().write_all(text)?;
    Ok(exit::DONE)
}
