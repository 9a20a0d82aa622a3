//! What `resume --to`, `convert` and `export --to` share: options of the new session, and what is said about it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use transcript_format::units::size;
use transcript_ops::hand_over::{HandOverSettings, hand_over};
use transcript_ops::wire::HandOverRecord;
use transcript_render::TextStyle;
use transcript_storage::{ReadDisk, RealDisk};

use crate::path_args::PathArgs;
use crate::ui::{Ui, terminal_width};
use crate::wrapping::lines;
use crate::{continuation, exit, record, session};

/// The width of the labels of a summary, in columns.
const LABEL_WIDTH: usize = 13;

/// The names of agents and formats, as people know them.
const NAMES: [(&str, &str); 8] = [
    ("claude-code", "Claude Code"),
    ("codex", "Codex"),
    ("pi", "Pi"),
    ("qwen", "Qwen Code"),
    ("gemini", "Gemini CLI"),
    ("copilot", "Copilot CLI"),
    ("atif", "ATIF"),
    ("acp", "ACP"),
];

/// Options of the new session.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct NewSessionArgs {
    /// Title of the new session [default: that of the session]
    #[arg(long, value_name = "TEXT", requires = "to")]
    title: Option<String>,
    /// Working folder of the new session [default: that of the session]
    #[arg(long, value_name = "DIR", requires = "to")]
    cwd: Option<PathBuf>,
}

impl NewSessionArgs {
    /// Returns the settings of a hand-over. `name` is that of the session, and may be one of an agent or a file in a format.
    pub(crate) fn settings(
        &self,
        ui: &Ui,
        name: &Path,
        to: &str,
        path_args: &PathArgs,
    ) -> Result<HandOverSettings> {
        if name == Path::new("-") {
            bail!("standard input cannot be handed over: name a file, or a session");
        }
        session::follow_policy(ui, path_args.policy());
        let mut name = name.to_owned();
        // A file may be one that is not a session.
        if !RealDisk.is_file(&name) {
            name = session::find(ui, &name)?;
        }
        let mut settings = HandOverSettings {
            session: name,
            to: to.to_owned(),
            title: self.title.clone(),
            cwd: self.cwd.clone(),
            ..HandOverSettings::default()
        };
        path_args.choose_for(&mut settings);
        Ok(settings)
    }

    /// Returns whether a title is given, which only one session can have.
    #[cfg(feature = "import")]
    pub(crate) fn has_title(&self) -> bool {
        self.title.is_some()
    }
}

/// Hands a session over into the home folder of an agent, or says what that would do.
pub(crate) fn run(ui: &Ui, settings: &HandOverSettings, is_json: bool) -> Result<u8> {
    let record = hand_over(settings, &session::context(ui))?;
    let mut out = io::stdout().lock();
    if is_json {
        record::write(&mut out, &record)?;
    } else {
        write_text(&mut out, ui, &record)?;
    }
    Ok(exit::DONE)
}

/// Writes a summary for people: what is written and where, what is lost, and the command that continues the session.
fn write_text(out: &mut impl Write, ui: &Ui, record: &HandOverRecord) -> Result<()> {
    let source = record.source_session_id.as_deref();
    let source = source.map_or_else(|| ui.path(&record.source), |id| ui.escaping.one_line(id));
    let name = name_of(&record.target);
    let title = if record.written {
        format!("{source} is handed over to {name} as {}", record.session_id)
    } else {
        format!("{source} can be handed over to {name}; --write does it")
    };
    ui.write_wrapped(out, &title, "  ", TextStyle::default())?;
    write_line(
        out,
        ui,
        "title",
        record.title.as_deref().unwrap_or_default(),
    )?;
    write_line(out, ui, "where", &ui.render.below_home(&record.cwd))?;
    for (place, file) in record.files.iter().enumerate() {
        let path = ui.render.below_home(&file.path.display().to_string());
        let more = if file.is_new { "" } else { " more" };
        let text = format!("{path} · {}{more}", size(file.bytes));
        write_line(out, ui, if place == 0 { "file" } else { "" }, &text)?;
    }
    for (label, text) in losses(record) {
        write_line(out, ui, label, &text)?;
    }
    if let Some(command) = command(ui, record).filter(|_| record.written) {
        writeln!(out, "{}", continuation::line(&command))?;
    }
    Ok(())
}

/// Writes a text behind its label, broken at spaces.
fn write_line(out: &mut impl Write, ui: &Ui, label: &str, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    // Escaped before it is broken: an escaped character is wider.
    let text = ui.escaping.one_line(text);
    let columns = terminal_width().map(|width| width.saturating_sub(LABEL_WIDTH));
    for (number, line) in lines(&text, columns).enumerate() {
        let label = if number == 0 { label } else { "" };
        writeln!(out, "  {label:<10} {line}")?;
    }
    Ok(())
}

/// Says what arrives and what does not, each with its label.
fn losses(record: &HandOverRecord) -> Vec<(&'static str, String)> {
    let report = &record.report;
    let of = |items: usize| format!("{items} of {}", report.items);
    let mut losses = vec![("arrive", format!("{} items", of(report.carried as usize)))];
    let omitted = report.omitted.iter().map(|omitted| &*omitted.reason);
    let changed = report.changed.iter().map(|changed| &*changed.change);
    let added = report.added.iter().map(|added| &*added.what);
    losses.push(("omitted", counted(omitted)));
    losses.push(("changed", counted(changed)));
    losses.push(("added", counted(added)));
    let models: Vec<&str> = report.models.iter().map(String::as_str).collect();
    let models = models.join(", ");
    if !models.is_empty() && !record.command.is_empty() {
        let name = name_of(&record.target);
        losses.push((
            "model",
            format!("{name} continues with its own, not {models}"),
        ));
    }
    if let Some(redactions) = record.redactions {
        losses.push(("redacted", redactions.to_string()));
    }
    losses.retain(|(_, text)| !text.is_empty());
    losses
}

/// Says in one line what arrives and what does not.
pub(crate) fn losses_in_line(record: &HandOverRecord) -> String {
    let losses = losses(record).into_iter();
    let losses = losses.map(|(label, text)| match label {
        "arrive" => format!("{text} arrive"),
        label => format!("{label}: {text}"),
    });
    losses.collect::<Vec<_>>().join("; ")
}

/// Counts equal names, in words: `2 reasoning, 1 result without call`.
fn counted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let counts = counts.iter();
    let counts = counts.map(|(name, count)| format!("{count} {}", in_words(name)));
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns a name of a record as words.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

fn name_of(target: &str) -> &str {
    let known = NAMES.iter().find(|(name, _)| *name == target);
    known.map_or(target, |(_, name)| name)
}

/// Returns the shell command that continues the new session; `None` if there is none, or it is not safe to paste.
fn command(ui: &Ui, record: &HandOverRecord) -> Option<String> {
    if record.command.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    for (name, value) in &record.environment {
        words.push(format!("{name}={}", continuation::shell_word(ui, value)?));
    }
    words.extend(record.command.iter().cloned());
    let folder = continuation::shell_word(ui, &record.cwd)?;
    Some(format!("cd {folder} && {}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use transcript_ops::hand_over::{AGENTS, FILE_FORMATS};

    use super::*;

    #[test]
    fn every_target_has_a_name_for_people() {
        for target in AGENTS.into_iter().chain(FILE_FORMATS) {
            assert_ne!(name_of(target), target);
        }
    }

    #[test]
    fn equal_names_are_counted_in_words() {
        let names = ["reasoning", "resultWithoutCall", "reasoning"];
        let counted = counted(names.into_iter());
        assert_eq!(counted, "2 reasoning, 1 result without call");
    }
}
