//! Finds the entry that a person names.

use std::collections::HashSet;

use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_format::scan::ToolRole;
use transcript_reader::{EntryRef, Id, Index};
use transcript_writer::EntryId;

use crate::entry_match::EntryMatch;
use crate::error::{Error, ErrorKind};
use crate::history::History;
use crate::resume_point::entry_id;
use crate::store::MIN_PREFIX;

impl History {
    /// Finds the entry that `name` names, as [`entries_named`] does.
    ///
    /// ```
    /// use transcript_session::History;
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # session.close()?;
    /// let history = History::open(&path)?;
    /// let entry = history.find_entry("1")?;
    /// assert_eq!(history.find_entry(&entry.to_string()[..8])?, entry);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchEntry`]; [`ErrorKind::AmbiguousEntry`], with the matches in
    /// [`Error::entries`].
    pub fn find_entry(&self, name: &str) -> Result<EntryId, Error> {
        let file = self.source().path();
        let mut found = entries_named(self.index(), name);
        match found.len() {
            0 => Err(Error::new(ErrorKind::NoSuchEntry, file)),
            1 => Ok(found.remove(0).id),
            _ => Err(Error::ambiguous_entry(file, found)),
        }
    }
}

/// Returns the entries that a person may mean by `name`, in file order: a uuid, the number of a line,
/// or a prefix of at least 4 characters. The first of these that an entry has counts; more than one
/// entry means that the name is ambiguous. Case does not matter.
#[must_use]
pub fn entries_named(index: &Index, name: &str) -> Vec<EntryMatch> {
    let lower = name.to_ascii_lowercase();
    let whole = [name, &lower].into_iter().find_map(|text| index.id(text));
    let whole = whole.and_then(|id| index.with_uuid(id).next());
    if let Some(whole) = whole {
        return matches(index, |entry| entry.number() == whole);
    }
    let line = line_number(name);
    let found = matches(index, |entry| line.is_some() && entry.known_line() == line);
    if !found.is_empty() || name.len() < MIN_PREFIX {
        return found;
    }
    matches(index, |entry| match entry.uuid() {
        Some(Id::Uuid(uuid)) => uuid.text().starts_with(lower.as_bytes()),
        Some(odd) => index.id_text(odd).starts_with(name),
        None => false,
    })
}

/// Returns the entries with a uuid that `is_one` accepts; of copies the first.
fn matches(index: &Index, is_one: impl Fn(&EntryRef<'_>) -> bool) -> Vec<EntryMatch> {
    let mut known = HashSet::new();
    let found = index.entries().filter(is_one);
    let found = found.filter_map(|entry| {
        Some(EntryMatch {
            line: entry.known_line(),
            id: entry_id(&entry, index).filter(|id| known.insert(id.clone()))?,
            role: role(&entry),
            millis: entry.millis(),
        })
    });
    found.collect()
}

/// Returns whether `name` is a whole uuid, which needs no look-up.
pub(crate) fn is_whole(name: &str) -> bool {
    Uuid::parse(name.as_bytes()).is_some()
}

/// Reads the number of a line. A number is not padded with zeros, unlike the start of a uuid.
fn line_number(name: &str) -> Option<u64> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0');
    name.parse().ok().filter(|_| is_number)
}

fn role(entry: &EntryRef<'_>) -> &'static str {
    let mut tools = entry.tools().iter();
    match entry.kind() {
        EntryKind::User if tools.any(|end| end.role() == ToolRole::Result) => "tool",
        kind => kind.name(),
    }
}
