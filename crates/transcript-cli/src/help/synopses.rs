//! The synopses of `docs/cli.md`: usage and options as `-h` prints them. The test writes them with `TRANSCRIPT_WRITE_DOCS=1`.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::definition::whole;
use crate::help::layout::HelpForm;

/// The width of a synopsis, in columns.
const WIDTH: usize = 100;

/// Returns the synopsis of each command, and of the options of all commands for the section Common, by section.
pub(crate) fn synopses() -> Vec<(String, String)> {
    let mut root = whole(&Cli::command(), HelpForm::Short, WIDTH);
    root.build();
    let commands = root.get_subcommands().filter(|one| !one.is_hide_set());
    let commands = commands.map(|command| {
        let template = "{usage-heading} {usage}\n\n{all-args}";
        (
            command.get_name().to_owned(),
            block(command.clone(), template),
        )
    });
    let globals =
        whole(&Cli::command(), HelpForm::Long, WIDTH).mut_subcommands(|command| command.hide(true));
    let common = ("Common".to_owned(), block(globals, "{all-args}"));
    [common].into_iter().chain(commands).collect()
}

fn block(command: Command, template: &'static str) -> String {
    let text = command.help_template(template).render_help().to_string();
    let lines = text.trim().split('\n').map(str::trim_end);
    format!("```text\n{}\n```\n", lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the page with these synopses in their places.
fn with_synopses(page: &str) -> String {
    let mut page = page.to_owned();
    for (name, synopsis) in synopses() {
        let heading = page.match_indices("\n## ").find_map(|(at, _)| {
            let line = page[at + 4..].split('\n').next()?;
            let mut names = line.split(", ");
            names
                .any(|one| one == name)
                .then_some(at + 4 + line.len() + 1)
        });
        let start = heading.unwrap_or_else(|| panic!("docs/cli.md has no section {name}"));
        let end = page[start..]
            .find("\n## ")
            .map_or(page.len(), |len| start + len);
        // The old one: a block that begins with the usage, in whichever form.
        let starts = [
            format!("```text\nUsage: transcript {name}"),
            format!("```\ntranscript {name} "),
            "```text\nGlobal options:".to_owned(),
        ];
        let old = starts.iter().find_map(|text| page[start..end].find(text));
        match old {
            Some(at) => {
                let at = start + at;
                let len = page[at + 3..].find("```\n").expect("a block has an end") + 7;
                page.replace_range(at..at + len, &synopsis);
            }
            None => page.insert_str(start, &format!("\n{synopsis}")),
        }
    }
    page
}

#[test]
fn the_synopses_of_the_page_are_those_of_the_parser() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = fs::read_to_string(&path).unwrap();
    let expected = with_synopses(&page);
    if std::env::var_os("TRANSCRIPT_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            page == expected,
            "docs/cli.md is stale: run this test with TRANSCRIPT_WRITE_DOCS=1"
        );
    }
}
