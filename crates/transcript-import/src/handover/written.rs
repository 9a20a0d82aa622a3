//! A hand-over in one call.

use std::path::PathBuf;

use crate::Error;

use super::conversion::Conversion;
use super::home::Home;
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

/// Writes a conversation as a session of another client: [`Conversion::plan_in`], then [`Conversion::write_in`]. Equal arguments give
/// equal bytes, so a second call with them fails.
///
/// # Errors
/// As [`Conversion::write_in`].
pub fn handover(
    items: &dyn Items,
    target: Target,
    options: &Options,
    home: Home<'_>,
) -> Result<Written, Error> {
    let conversion = Conversion::plan_in(items, target, options, home)?;
    let files = conversion.write_in(home)?;
    Ok(Written {
        session_id: conversion.session_id(),
        files: files.into_iter().map(|file| file.path).collect(),
        report: conversion.into_report(),
    })
}
