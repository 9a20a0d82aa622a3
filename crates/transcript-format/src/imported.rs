//! The origin of a line that was made from a record of another agent.

use crate::object::Object;

/// The key of the origin of a line: its agent, and where the record is that it was made from.
pub const IMPORTED_KEY: &str = "imported";

/// Returns the origin of a line; `None` for a line of Claude Code, and for one that is not an object.
#[must_use]
pub fn imported(line: &str) -> Option<Object<'_>> {
    Object::parse(line).ok()?.object(IMPORTED_KEY)
}
