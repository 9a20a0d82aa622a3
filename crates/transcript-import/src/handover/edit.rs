//! What a hand-over changes outside of the file with the conversation, worked out before anything is written.

use std::io;
use std::path::{Path, PathBuf};

use transcript_format::json::Json;
use transcript_format::object::Object;

use crate::Error;

use super::files::Extra;
use super::home::Home;

/// A change of a small file.
pub(super) struct Edit {
    pub(super) path: PathBuf,
    pub(super) kind: EditKind,
}

/// What is done with a small file.
pub(super) enum EditKind {
    /// It is new, and has this text.
    Create(String),
    /// It gets longer by these bytes, or is new.
    Append { bytes: Vec<u8>, is_new: bool },
    /// It has this text in place of the old one, or of none.
    Replace { old: Option<String>, new: String },
}

impl Edit {
    /// Works out what an addition changes; `None` if it is there.
    pub(super) fn of(extra: &Extra, home: Home<'_>) -> Result<Option<Self>, Error> {
        let path = home.path.join(extra.path());
        let kind = match extra {
            Extra::File { .. } if home.disk.has_name(&path) => None,
            Extra::File { text, .. } => Some(EditKind::Create(text.clone())),
            Extra::Line { line, .. } => Some(appended(line, &path, home)?),
            Extra::Member {
                object, key, value, ..
            } => {
                let old = home.text(&path)?;
                let new = with_member(old.as_deref().unwrap_or_default(), object, key, value);
                new.map(|new| EditKind::Replace { old, new })
            }
        };
        Ok(kind.map(|kind| Self { path, kind }))
    }

    /// Returns the number of bytes by which the file gets longer.
    pub(super) fn added_len(&self) -> usize {
        match &self.kind {
            EditKind::Create(text) => text.len(),
            EditKind::Append { bytes, .. } => bytes.len(),
            EditKind::Replace { old, new } => {
                let old = old.as_ref().map_or(0, String::len);
                new.len().saturating_sub(old)
            }
        }
    }

    /// Returns whether there was no such file.
    pub(super) fn is_new(&self) -> bool {
        match &self.kind {
            EditKind::Create(_) => true,
            EditKind::Append { is_new, .. } => *is_new,
            EditKind::Replace { old, .. } => old.is_none(),
        }
    }
}

/// Returns a line as it is appended: a last line without an end gets one.
fn appended(line: &str, path: &Path, home: Home<'_>) -> Result<EditKind, Error> {
    let mut last = [b'\n'];
    let is_new = match home.disk.open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(Error::at(path)(error)),
        Ok(file) => {
            let len = file.metadata().map_err(Error::at(path))?.len;
            if len > 0 {
                file.fill(len - 1, &mut last).map_err(Error::at(path))?;
            }
            false
        }
    };
    let start = if last == [b'\n'] { "" } else { "\n" };
    let bytes = format!("{start}{line}\n").into_bytes();
    Ok(EditKind::Append { bytes, is_new })
}

/// Returns an object with a string in an inner object, or `None` if a string is there.
fn with_member(text: &str, object: &str, key: &str, value: &str) -> Option<String> {
    const NO_MEMBERS: &str = "{}";
    let parsed = |text| Object::parse(text).ok();
    let outer = parsed(text).or_else(|| parsed(NO_MEMBERS))?;
    let inner = outer.object(object).or_else(|| parsed(NO_MEMBERS))?;
    if inner.str(key).is_some() {
        return None;
    }
    let inner = inner.with(key, Json::from(value).text());
    Some(outer.with(object, &inner))
}
