//! `transcript completions` and `transcript man`: made from the definitions of the command line.

use std::io::{self, Write};

use anyhow::Result;
use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;

use crate::exit;

/// Print a completion script for a shell
///
/// For bash, put the output into ~/.local/share/bash-completion/completions/transcript; for zsh
/// into a file _transcript of a folder in $fpath; for fish into
/// ~/.config/fish/completions/transcript.fish.
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, in roff
///
/// transcript man | man -l - shows it.
#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Print the page of this subcommand
    command: Option<String>,
}

pub(crate) fn completions(args: &Completions, mut command: Command) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "transcript", &mut script);
    print(&script)
}

pub(crate) fn man(args: &Man, mut command: Command) -> Result<u8> {
    command.build();
    let page = match &args.command {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            found.ok_or_else(|| anyhow::anyhow!("man: unknown subcommand {name}"))?
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    print(&roff)
}

fn print(text: &[u8]) -> Result<u8> {
    io::stdout().lock().write_all(text)?;
    Ok(exit::DONE)
}
