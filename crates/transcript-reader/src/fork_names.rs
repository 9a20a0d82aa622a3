//! Maps the old uuids that boundaries of a fork still use to the new ones.
//!
//! Forks give every entry a new uuid and record the old one in `forkedFrom`, but some leave the
//! uuids in `compactMetadata` unchanged.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use memchr::memmem;
use transcript_format::object::{Object, Raw};

use crate::bodies::Bodies;
use crate::error::Error;
use crate::index::{Boundary, Id, Index};
use crate::source::Source;

/// Returns the new id of each old one that a boundary names and no line has. Reads the file again
/// only if there is such a boundary.
pub(crate) fn new_names(source: &Source, index: &Index) -> Result<HashMap<Id, Id>, Error> {
    let named = index.boundaries.iter().flat_map(Boundary::ids);
    let is_missing = |id: &Id| index.with_uuid(*id).next().is_none();
    let wanted: HashSet<Id> = named.filter(is_missing).collect();
    let mut names = HashMap::new();
    if wanted.is_empty() {
        return Ok(names);
    }
    let mut bodies = Bodies::new(source);
    for entry_ref in index.entries() {
        let Some(new) = entry_ref.uuid() else {
            continue;
        };
        if let Some(old) = old_id(bodies.get(&entry_ref)?.text)
            && let Some(old) = index.id(&old)
            && wanted.contains(&old)
        {
            names.insert(old, new);
        }
    }
    Ok(names)
}

/// Returns the id that an entry had before a fork copied it.
pub(crate) fn old_id(text: &str) -> Option<Cow<'_, str>> {
    if !may_have_old_id(text.as_bytes()) {
        return None;
    }
    let origin = Object::parse(text).ok()?.get("forkedFrom")?.object()?;
    origin.get("messageUuid").and_then(Raw::str)
}

/// Returns whether an entry with this text may be a copy; a cheap test before a costly one.
pub(crate) fn may_have_old_id(text: &[u8]) -> bool {
    static KEY: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new("\"forkedFrom\""));
    KEY.find(text).is_some()
}
