//! Without the feature `import` no session is handed over.

use std::io::Write;

use super::settings::HandOverSettings;
use crate::context::Context;
use crate::failure::Failure;
use crate::wire::HandOverRecord;

/// Hands a session over.
///
/// # Errors
/// Always: this build cannot.
pub fn hand_over(_: &HandOverSettings, _: &Context) -> Result<HandOverRecord, Failure> {
    Err(refusal())
}

/// Converts a session.
///
/// # Errors
/// Always: this build cannot.
pub fn convert(
    _: &HandOverSettings,
    _: &Context,
    _: &mut dyn Write,
) -> Result<HandOverRecord, Failure> {
    Err(refusal())
}

fn refusal() -> Failure {
    Failure::option("to", "this build hands no session over to another agent")
}
