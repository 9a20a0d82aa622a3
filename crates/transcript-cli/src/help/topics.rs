//! `transcript help`: the commands, and texts about what several of them share.

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use clap::Args as ClapArgs;

use crate::command_line::{nearest, print_help};
use crate::help::layout;
use crate::help::page::{Block, Page, blocks};
use crate::ui::Ui;
use crate::{command_line, exit};

/// The texts, by their names. The first line of each is its title.
const TOPICS: [(&str, &str); 8] = [
    ("sessions", include_str!("topics/sessions.txt")),
    ("queries", include_str!("topics/queries.txt")),
    ("recover", include_str!("topics/recover.txt")),
    ("archive", include_str!("topics/archive.txt")),
    ("files", include_str!("topics/files.txt")),
    ("environment", include_str!("topics/environment.txt")),
    ("json", include_str!("topics/json.txt")),
    ("exit-codes", include_str!("topics/exit-codes.txt")),
];

/// Explain a command or a topic
///
/// Without a name, lists the commands and the topics.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A command or a topic
    topic: Option<String>,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let Some(name) = &args.topic else {
        return Ok(print_help(&[]));
    };
    if let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == name) {
        print(ui, text)?;
        return Ok(exit::DONE);
    }
    let root = command_line::whole(layout::HelpForm::Short, ui.width);
    let command = root.find_subcommand(name);
    match command.filter(|command| !command.get_name().starts_with('_')) {
        Some(command) => Ok(print_help(&[command.get_name()])),
        None => Err(unknown(name)),
    }
}

/// Returns the names and titles of the topics.
pub(crate) fn titles() -> Vec<(String, String)> {
    let titled = TOPICS.iter().map(|(name, text)| {
        let title = text.split('\n').next().unwrap_or_default();
        (
            (*name).to_owned(),
            title.trim_start_matches("# ").to_owned(),
        )
    });
    titled.collect()
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

fn unknown(name: &str) -> anyhow::Error {
    match nearest(name) {
        Some(command) => anyhow!(
            "`{name}` is neither a command nor a topic; is `transcript help {command}` meant? `transcript help` lists both"
        ),
        None => anyhow!("`{name}` is neither a command nor a topic; `transcript help` lists both"),
    }
}
