//! The files of an export, and its report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use transcript_engine::redact::{KindInFile, RedactedDisk, Redactions, by_kind};
use transcript_engine::session_sets::is_file_of_session;
use transcript_engine::wire::RedactionRecord;
use transcript_format::units::size;
use transcript_render::{and_more, count};

use crate::pager::Output;
use crate::record;
use crate::ui::Ui;

/// The maximum number of lines that are named of a kind.
const MAX_LINES: usize = 12;

/// The files of an export.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) file: PathBuf,
    pub(crate) replaces: bool,
    pub(crate) redacted: Option<Arc<RedactedDisk>>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) is_plain: bool,
    pub(crate) has_lines: bool,
}

impl Target {
    /// Refuses to write over what is exported.
    pub(crate) fn check(&self, ui: &Ui, session: &Path) -> Result<()> {
        for file in [&self.file].into_iter().chain(&self.report) {
            if is_file_of_session(&ui.disk(), session, file) {
                let file = file.display();
                bail!("{file}: refusing to overwrite the session that is being exported");
            }
        }
        Ok(())
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<Output> {
        Output::named(&self.file, self.replaces)
    }

    /// Completes the file, when everything was read: with the list of redactions, which gets its name with it.
    pub(crate) fn finish(&self, ui: &Ui, output: Output) -> Result<()> {
        let Some(disk) = &self.redacted else {
            return Ok(output.finish()?);
        };
        let redactions = disk.redactions();
        output.with(self.list(&redactions)?).finish()?;
        summarize(ui, &redactions);
        Ok(())
    }

    /// Writes the list of redactions, if one is wanted. Returns it if it is to be a file.
    fn list(&self, redactions: &Redactions) -> Result<Option<Output>> {
        let Some(report) = &self.report else {
            return Ok(None);
        };
        let mut out = Output::named(report, self.replaces)?;
        for found in &redactions.secrets {
            record::write(&mut out, &RedactionRecord::new(found))?;
        }
        if report == Path::new("-") {
            return Ok(out.finish().map(|()| None)?);
        }
        Ok(Some(out))
    }
}

/// Prints the report: the redactions, the suspicious texts that were left, and the size of the search.
fn summarize(ui: &Ui, redactions: &Redactions) {
    let Redactions { secrets, left, .. } = redactions;
    let lines = count(redactions.lines, "line");
    let mut searched = format!("{lines} ({})", size(redactions.bytes));
    if redactions.files > 1 {
        searched.push_str(&format!(" of {}", count(redactions.files as u64, "file")));
    }
    let redacted = count(secrets.len() as u64, "secret");
    ui.note(&format!("{redacted} redacted in {searched}"));
    // The files of subagents are in a folder beside that of the session.
    let paths = secrets.iter().chain(left).map(|found| found.path.as_path());
    let session = paths.min_by_key(|path| path.components().count());
    for group in by_kind(secrets) {
        ui.note(&format!("  {}", in_words(ui, &group, session)));
    }
    let mut others: Vec<String> = Vec::new();
    for group in by_kind(left) {
        let group = in_words(ui, &group, session);
        others.push(format!("looks like a secret: {group}"));
    }
    if redactions.emails > 0 {
        let emails = count(redactions.emails, "e-mail address");
        others.push(format!("{emails} (--emails)"));
    }
    if redactions.homes > 0 {
        let names = count(redactions.homes, "name");
        others.push(format!("{names} of people in paths (--names)"));
    }
    if !others.is_empty() {
        ui.note("not redacted:");
    }
    for other in others {
        ui.note(&format!("  {other}"));
    }
    ui.note("no search finds everything: check the file before you share it");
}

/// `3 × password: lines 4, 9`, with the file if it is not the one of the session.
fn in_words(ui: &Ui, group: &KindInFile<'_>, session: Option<&Path>) -> String {
    let numbers = group.lines.iter().take(MAX_LINES).map(u64::to_string);
    let mut text = format!("{} × {}: ", group.count, group.kind);
    if Some(group.path) != session {
        text.push_str(&format!("{}, ", ui.path(group.path)));
    }
    text.push_str(match group.lines.len() {
        1 => "line ",
        _ => "lines ",
    });
    text.push_str(&numbers.collect::<Vec<_>>().join(", "));
    if group.lines.len() > MAX_LINES {
        text.push_str(&and_more(group.lines.len(), MAX_LINES));
        text.push_str(" (--json-report FILE lists them)");
    }
    text
}
