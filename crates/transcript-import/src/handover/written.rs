//! A hand-over in one call.

use std::path::PathBuf;

use crate::Error;

use super::conversion::Conversion;
use super::home::Home;
use super::new_session::NewSession;
use super::options::Options;
use super::report::LossReport;
use super::source_item::Items;
use super::target::Target;

/// A hand-over that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The id of the new session.
    pub session_id: String,
    /// The paths of the files that are new or longer; that with the conversation is first.
    pub files: Vec<PathBuf>,
    /// What is omitted, changed and added.
    pub report: LossReport,
}

/// Writes a conversation as a session of another client.
///
/// The file with the conversation appears complete or not at all, and no file is overwritten; small files that list the sessions of a
/// client get a line or a member more. Equal arguments give equal bytes, so a second call with them fails.
///
/// # Errors
/// [`Error::Io`] when an item cannot be read, the file exists
/// ([`AlreadyExists`](std::io::ErrorKind::AlreadyExists)), or the system fails. If the error names another file than that of the
/// conversation, that one may be there.
pub fn handover(
    items: &dyn Items,
    target: Target,
    options: &Options,
    home: Home<'_>,
) -> Result<Written, Error> {
    let mut options = options.clone();
    if target == Target::Gemini && options.project.is_none() {
        let own = NewSession::of(target, &options, 0).project;
        options.project = Some(home.project(&options.cwd, &own)?);
    }
    let conversion = Conversion::plan(items, target, &options)?;
    let files = home.write(&conversion)?;
    Ok(Written {
        session_id: conversion.session_id(),
        files,
        report: conversion.into_report(),
    })
}
