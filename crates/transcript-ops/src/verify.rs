//! Findings about damaged sessions.

use std::path::PathBuf;
pub use transcript_verify::imported_findings;

use serde::Deserialize;
use transcript_reader::{Error, subagents_on};
use transcript_session::context_window;
use transcript_verify::{Report, VerifyOptions, verify as verify_file, verify_folder};

use crate::context::{Context, FoundBy, FoundSession};
use crate::sink::{Result, Sink, Stop};
use crate::wire::VerifyRecord;

/// The options of `verify`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifySettings {
    /// A session with its subagents, a file, or a folder: a path, an id, the start of one, a title, or `latest`.
    pub session: PathBuf,
    /// Whether every request that a client recorded in the file is built again, and compared.
    #[serde(default)]
    pub requests: bool,
    /// Sessions of a folder are reported that the client deletes within this number of days; 7 by default.
    pub sweep: Option<u32>,
}

impl VerifySettings {
    /// Returns the options of the verification.
    pub fn options(&self, context: &Context) -> VerifyOptions {
        let options = VerifyOptions::new()
            .requests(self.requests)
            .context_windows(context_window)
            .count_bytes(context.counter());
        match self.sweep {
            Some(days) => options.sweep_within(days),
            None => options,
        }
    }
}

/// Verifies a session; one that is named by its id is more than its file: its subagents as well. `each` gets the report of
/// each file, and whether it is that of the session; of a subagent that cannot be read it gets the error.
///
/// # Errors
/// When the session cannot be read, or its subagents not be listed.
pub fn each_report(
    settings: &VerifySettings,
    context: &Context,
    found: &FoundSession,
    each: &mut dyn FnMut(std::result::Result<Report, Error>, bool),
) -> std::result::Result<(), Error> {
    let (disk, path) = (context.read_disk(), &*found.path);
    let options = settings.options(context);
    // How much is read again for recorded requests is not known before.
    if !settings.requests {
        context.expect(2 * disk.metadata(path).map_or(0, |found| found.len));
    }
    each(Ok(verify_file(disk, path, &options)?), true);
    if found.by != FoundBy::Path {
        for agent in subagents_on(disk, path)? {
            each(verify_file(disk, &agent.path, &options), false);
        }
    }
    Ok(())
}

/// Verifies, and writes the records of the reports.
pub(crate) fn verify(
    settings: &VerifySettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut written = Ok(());
    let mut each = |report: std::result::Result<Report, Error>| {
        if written.is_ok() {
            written = match report {
                Ok(report) => sink.record(&VerifyRecord::new(&report)),
                Err(error) => Err(Stop::from(error)),
            };
        }
    };
    if context.live_disk().is_folder(&settings.session) {
        let options = settings.options(context);
        verify_folder(context.read_disk(), &settings.session, &options, &mut each)?;
    } else {
        let found = context.find(&settings.session, None)?;
        each_report(settings, context, &found, &mut |report, _| each(report))?;
    }
    written
}
