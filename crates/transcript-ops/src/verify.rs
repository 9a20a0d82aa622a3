//! What is damaged in sessions.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_reader::subagents_on;
use transcript_session::context_window;
use transcript_storage::{ReadDisk, RealDisk};
use transcript_verify::{Report, VerifyOptions, verify as verify_file, verify_folder};

use crate::context::{Context, FoundBy};
use crate::failure::Failure;
use crate::sink::{Result, Sink, Stop};
use crate::wire::VerifyRecord;

/// What is verified: options.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifySettings {
    /// A session with its subagents, a file, or a folder.
    pub session: PathBuf,
    /// Whether every request is built again that a client recorded.
    #[serde(default)]
    pub requests: bool,
    /// Reports sessions that the client deletes within this number of days.
    pub sweep: Option<u32>,
}

impl VerifySettings {
    /// Returns how sessions are verified.
    #[must_use]
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

/// Verifies what is named: the sessions below a folder; a session that is named by its id, with its subagents; or a file.
/// `each` gets the report of each file, and whether it is the one that is named; of a file that cannot be read it gets the
/// error, and the others follow.
///
/// # Errors
/// When nothing is found, or what is named cannot be read.
pub fn each_report(
    settings: &VerifySettings,
    context: &Context,
    each: &mut dyn FnMut(std::result::Result<Report, transcript_reader::Error>, bool),
) -> std::result::Result<(), VerifyError> {
    let (disk, named) = (context.read_disk(), &*settings.session);
    let options = settings.options(context);
    if RealDisk.is_folder(named) {
        verify_folder(disk, named, &options, &mut |report| each(report, true))?;
        return Ok(());
    }
    let found = context.find(named, None)?;
    let path = &*found.path;
    // How much is read again for recorded requests is not known before.
    if !settings.requests {
        context.expect(2 * disk.metadata(path).map_or(0, |found| found.len));
    }
    each(Ok(verify_file(disk, path, &options)?), true);
    // A session that is named by its id is more than its file.
    if found.by != FoundBy::Path {
        for agent in subagents_on(disk, path)? {
            each(verify_file(disk, &agent.path, &options), false);
        }
    }
    Ok(())
}

/// Why nothing was verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The session was not found.
    #[error(transparent)]
    Find(#[from] crate::context::FindError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] transcript_reader::Error),
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Find(error) => error.into(),
            VerifyError::Read(error) => error.into(),
        }
    }
}

/// Verifies, and writes the records of the reports.
pub(crate) fn verify(
    settings: &VerifySettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut written = Ok(());
    each_report(settings, context, &mut |report, _| {
        if written.is_ok() {
            written = match report {
                Ok(report) => sink.record(&VerifyRecord::new(&report)),
                Err(error) => Err(Stop::from(error)),
            };
        }
    })?;
    written
}
