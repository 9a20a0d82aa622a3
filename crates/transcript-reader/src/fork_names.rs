//! Maps the old uuids that boundaries of a fork still use to the new ones.
//!
//! Forks give every entry a new uuid and record the old one in `forkedFrom`, but some leave the
//! uuids in `compactMetadata` unchanged.

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use transcript_format::object::{Object, Raw};

use crate::bodies::Bodies;
use crate::error::Error;
use crate::index::{Id, Index, Preserved};
use crate::source::Source;

/// Returns the new id of each old one that a boundary names and no line has. Reads the file again
/// only if there is such a boundary.
pub(crate) fn new_names(source: &Source, index: &Index) -> Result<HashMap<Id, Id>, Error> {
    let mut wanted: HashSet<Id> = HashSet::new();
    for boundary in &index.boundaries {
        let listed = match &boundary.preserved {
            Preserved::Nothing => continue,
            Preserved::List { anchor, uuids } => [&[*anchor], uuids.as_slice()].concat(),
            Preserved::Segment { anchor } => vec![*anchor],
        };
        let named = listed.into_iter().chain(boundary.ends).flatten();
        wanted.extend(named.filter(|id| index.with_uuid(*id).next().is_none()));
    }
    let mut names = HashMap::new();
    if wanted.is_empty() {
        return Ok(names);
    }
    let mut bodies = Bodies::new(source);
    let key = memmem::Finder::new("\"forkedFrom\"");
    for entry_ref in index.entries() {
        let Some(new) = entry_ref.uuid() else {
            continue;
        };
        let body = bodies.get(&entry_ref)?;
        if key.find(body.text.as_bytes()).is_none() {
            continue;
        }
        let entry = Object::parse(body.text).ok();
        let origin = entry.and_then(|entry| entry.get("forkedFrom")?.object());
        let old = origin.and_then(|origin| origin.get("messageUuid").and_then(Raw::str));
        if let Some(old) = old.and_then(|old| index.id(&old))
            && wanted.contains(&old)
        {
            names.insert(old, new);
        }
    }
    Ok(names)
}
