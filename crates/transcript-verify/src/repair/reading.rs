//! A file that was read completely: its entries, and which of their bodies are not JSON.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::de::IgnoredAny;
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, OtherFiles, Source};
use transcript_resume::{Policy, Tree};

use super::clean_text::clean_text;

/// A file, its index, and the defects of the bodies of its entries.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) source: Source,
    pub(super) index: Index,
    others: OtherFiles,
    /// The defects of bodies; entries without defects are not in it.
    pub(super) defects: HashMap<EntryNo, Defects>,
    /// The entries that nothing can be read from.
    unusable: HashSet<EntryNo>,
}

/// Defects of the JSON of an entry in parts that the scan does not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Defects {
    /// It is not JSON, which the scan does not see in every place.
    pub(super) is_unusable: bool,
    pub(super) has_surrogate: bool,
    pub(super) has_nul: bool,
}

impl Reading {
    pub(super) fn new(source: Source) -> Result<Self, Error> {
        source.check_messages()?;
        let index = Index::load(&source)?;
        let mut defects = HashMap::new();
        let mut bodies = Bodies::new(&source);
        for entry in index.entries() {
            let found = Defects::of(bodies.get(&entry)?.text);
            if found != Defects::default() {
                defects.insert(entry.number(), found);
            }
        }
        let unusable = defects.iter().filter(|(_, defects)| defects.is_unusable);
        let unusable = unusable.map(|(entry, _)| *entry).collect();
        let mut reading = Self {
            source,
            index,
            others: OtherFiles::default(),
            defects,
            unusable,
        };
        if reading.source.path() != Path::new("-") {
            let missing = reading.tree(Policy::Recover).missing_parents();
            if !missing.is_empty() {
                reading.others = OtherFiles::search(&reading.source, &reading.index, &missing);
            }
        }
        Ok(reading)
    }

    /// Links the entries under `policy`, without those that are unusable: the client skips these
    /// lines, too (FILE-1). A client does not read the stream form, so there is one tree of it.
    pub(super) fn tree(&self, policy: Policy) -> Tree<'_> {
        let tree = match policy {
            _ if self.index.is_stream_form() => Tree::new(&self.index, Policy::Recover),
            Policy::Recover if !self.others.is_empty() => {
                Tree::with_others(&self.index, &self.others)
            }
            _ => Tree::new(&self.index, policy),
        };
        if self.unusable.is_empty() {
            tree
        } else {
            tree.without(&self.unusable)
        }
    }

    /// Returns the entry that `uuid` names.
    pub(super) fn entry(&self, uuid: &str) -> Option<EntryRef<'_>> {
        let mut lines = self.index.with_uuid(self.index.id(uuid)?);
        lines.next().map(|line| self.index.entry(line))
    }

    pub(super) fn uuid(&self, entry: &EntryRef<'_>) -> Option<String> {
        entry.uuid().map(|id| self.index.id_text(id))
    }
}

impl Defects {
    fn of(text: &str) -> Self {
        let mut found = Self::default();
        if let Some(clean) = clean_text(text) {
            found.has_surrogate = clean.had_surrogate;
            found.has_nul = clean.had_nul;
        }
        // A line with more members than are read is JSON, and stays as it is.
        found.is_unusable = serde_json::from_str::<IgnoredAny>(text).is_err();
        found
    }
}
