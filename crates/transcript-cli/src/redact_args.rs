//! Options of commands that show sessions without their secrets.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use transcript_engine::redact::{OwnRules, RedactOptions, Redactor};
use transcript_storage::{ReadDisk, RealDisk};

use crate::ui::Ui;

/// The name of a file with rules of a project.
const RULES_FILE_NAME: &str = ".transcript-redact";
/// The maximum length of a file with rules, in bytes.
const MAX_RULES: usize = 1 << 20;

/// Options for texts that are redacted in addition to secrets, and for those that are not.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct RedactArgs {
    /// Also redact e-mail addresses
    #[arg(long)]
    emails: bool,
    /// Also redact the names of people in paths, such as the one in /home/ada
    #[arg(long)]
    names: bool,
    /// Also redact the values of these names (`INTERNAL_ID=…`), or the words themselves where no value follows; or
    /// apply the rules in FILE
    #[arg(long, value_name = "NAMES|FILE", value_delimiter = ',')]
    also: Vec<String>,
    /// Do not redact these: a kind as the report names it, the value of a name, or a value; or the lines of FILE
    #[arg(long, alias = "keep", value_name = "NAMES|FILE", value_delimiter = ',')]
    except: Vec<String>,
}

impl RedactArgs {
    /// Makes the redactor of a command that redacts by option.
    pub(crate) fn if_wanted(&self, ui: &Ui, is_wanted: bool) -> Result<Option<Redactor>> {
        let has_details =
            self.emails || self.names || !self.also.is_empty() || !self.except.is_empty();
        anyhow::ensure!(
            is_wanted || !has_details,
            "--emails, --names, --also and --except need --redact"
        );
        is_wanted.then(|| self.redactor(ui)).transpose()
    }

    /// Makes the redactor. The rules of the project that the command runs in are followed as well.
    pub(crate) fn redactor(&self, ui: &Ui) -> Result<Redactor> {
        let mut own = OwnRules::default();
        if let Some(file) = project_rules() {
            let rules = read_rules(&file)?;
            ui.note(&format!("rules of {}: {}", file.display(), rules.len()));
            own.extend(rules);
        }
        for also in &self.also {
            if is_file(Path::new(also)) {
                own.extend(read_rules(Path::new(also))?);
            } else {
                own.add_name(also.trim());
            }
        }
        for keep in &self.except {
            if is_file(Path::new(keep)) {
                let text = read(Path::new(keep))?;
                let lines = text.lines().map(str::trim);
                lines
                    .filter(|line| !line.is_empty())
                    .for_each(|line| own.add_kept(line));
            } else {
                own.add_kept(keep.trim());
            }
        }
        let options = RedactOptions::new().emails(self.emails).homes(self.names);
        Ok(Redactor::with(options.own(own)))
    }
}

/// Returns the file with rules in this folder, or the nearest one above.
fn project_rules() -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let files = folder
        .ancestors()
        .map(|folder| folder.join(RULES_FILE_NAME));
    files.into_iter().find(|file| is_file(file))
}

fn read_rules(file: &Path) -> Result<OwnRules> {
    let rules = OwnRules::parse(&read(file)?);
    rules.with_context(|| format!("{}: rules for redaction", file.display()))
}

fn is_file(path: &Path) -> bool {
    RealDisk.metadata(path).is_ok_and(|found| found.is_file())
}

fn read(file: &Path) -> Result<String> {
    let bytes = RealDisk.read(file, MAX_RULES + 1);
    let bytes = bytes.with_context(|| file.display().to_string())?;
    anyhow::ensure!(
        bytes.len() <= MAX_RULES,
        "{}: longer than {MAX_RULES} bytes, the maximum for rules",
        file.display()
    );
    String::from_utf8(bytes).with_context(|| file.display().to_string())
}
