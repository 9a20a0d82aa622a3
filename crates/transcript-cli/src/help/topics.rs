//! `transcript help`: the commands, and texts about what several of them share.

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use clap::{Args as ClapArgs, Command};

use crate::definition::{nearest, print_help, whole};
use crate::exit;
use crate::help::layout;
use crate::help::page::{Block, Page, blocks};
use crate::help::texts::TOPICS;
use crate::ui::Ui;

/// Explain a command or a topic
///
/// Without a name, lists the commands and the topics.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A command or a topic
    topic: Option<String>,
}

/// Explains the command, or one of those of `root`.
pub(crate) fn run(ui: &Ui, args: &Args, root: &Command) -> Result<u8> {
    let Some(name) = &args.topic else {
        return Ok(print_help(root, &[]));
    };
    if let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == name) {
        print(ui, text)?;
        return Ok(exit::DONE);
    }
    let named = whole(root, layout::HelpForm::Short, ui.width);
    let command = named.find_subcommand(name);
    match command.filter(|command| !command.get_name().starts_with('_')) {
        Some(command) => Ok(print_help(root, &[command.get_name()])),
        None => Err(unknown(name, root)),
    }
}

/// Prints a text, fitted to the page.
fn print(ui: &Ui, text: &str) -> Result<()> {
    let page = Page::new(ui.width.min(layout::MAX_WIDTH));
    let styles = ui.render.styles();
    let bold = styles.bold(styles.plain);
    let mut out = io::stdout().lock();
    for (place, block) in blocks(text).iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        let text = page.block(block);
        match block {
            Block::Heading(_) => writeln!(out, "{bold}{}{bold:#}", text.trim_end())?,
            _ => out.write_all(text.as_bytes())?,
        }
    }
    Ok(())
}

fn unknown(name: &str, root: &Command) -> anyhow::Error {
    match nearest(name, root) {
        Some(command) => anyhow!(
            "`{name}` is neither a command nor a topic; is `transcript help {command}` meant? `transcript help` lists both"
        ),
        None => anyhow!("`{name}` is neither a command nor a topic; `transcript help` lists both"),
    }
}
