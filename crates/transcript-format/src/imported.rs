//! What lines that were made from the session of another agent say about the records of that agent.

use crate::object::Object;

/// The key of the origin of a line: its agent, and where the record is that it was made from.
pub const IMPORTED_KEY: &str = "imported";

/// Returns the origin of a line; `None` for a line of Claude Code, and for one that is not an object.
#[must_use]
pub fn imported(line: &str) -> Option<Object<'_>> {
    Object::parse(line).ok()?.object(IMPORTED_KEY)
}

/// What is wrong with a part of a file of another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file begins with a byte order mark.
    ByteOrderMark,
    /// Bytes that are not UTF-8; they read as U+FFFD.
    InvalidUtf8,
    /// A record that shares its line with something else.
    SharedLine,
    /// The end of a record is missing. Its text up to there is read.
    TornRecord,
    /// Bytes outside of records.
    NoRecord,
    /// A line longer than the limit.
    TooLong,
    /// The rest of a compressed file is missing, or too long for a file of its length.
    TornCompression,
    /// The parent of a record is missing. The record before it stands in for it.
    LostParent,
    /// The parents of records form a circle.
    ParentCycle,
    /// The file on which this one is based is missing, too short, or based on this one.
    MissingBase,
    /// The first record, which describes the session, is missing.
    MissingHeader,
    /// A page of a database, or its end. The rows of its other pages are read.
    DamagedPage,
    /// A place in the log of changes of a database. The changes after it are read.
    DamagedLog,
    /// Rows of a database with numbers below zero, which have no place. They are not read.
    RowsWithoutPlace,
    /// A database beside the session cannot be read. What it alone has is missing.
    UnreadableDatabase,
}

impl DamageKind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::ByteOrderMark,
        Self::InvalidUtf8,
        Self::SharedLine,
        Self::TornRecord,
        Self::NoRecord,
        Self::TooLong,
        Self::TornCompression,
        Self::LostParent,
        Self::ParentCycle,
        Self::MissingBase,
        Self::MissingHeader,
        Self::DamagedPage,
        Self::DamagedLog,
        Self::RowsWithoutPlace,
        Self::UnreadableDatabase,
    ];

    /// Returns its name in lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// Returns the kind of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns it as part of a sentence.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::ByteOrderMark => ("byte-order-mark", "the file begins with a byte order mark"),
            Self::InvalidUtf8 => (
                "invalid-utf-8",
                "bytes that are not UTF-8 are read as U+FFFD",
            ),
            Self::SharedLine => (
                "shared-line",
                "a record shares its line with something else",
            ),
            Self::TornRecord => ("torn-record", "the end of a record is missing"),
            Self::NoRecord => ("no-record", "bytes outside of records"),
            Self::TooLong => ("too-long", "a line is longer than the limit"),
            Self::TornCompression => (
                "torn-compression",
                "the rest of the compressed file is missing, or too long for a file of its length",
            ),
            Self::LostParent => (
                "lost-parent",
                "the parent of a record is missing; the record before it stands in for it",
            ),
            Self::ParentCycle => ("parent-cycle", "the parents of records form a circle"),
            Self::MissingBase => (
                "missing-base",
                "the file on which it is based is missing, too short, or based on this one",
            ),
            Self::MissingHeader => (
                "missing-header",
                "the first record, which describes the session, is missing",
            ),
            Self::DamagedPage => (
                "damaged-page",
                "a page of the database, or its end, is damaged",
            ),
            Self::DamagedLog => (
                "damaged-log",
                "the log of changes of the database is damaged",
            ),
            Self::RowsWithoutPlace => (
                "rows-without-place",
                "rows with numbers below zero are not read",
            ),
            Self::UnreadableDatabase => (
                "unreadable-database",
                "the database cannot be read; what it alone has is missing",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        for kind in DamageKind::ALL {
            assert_eq!(DamageKind::of_name(kind.name()), Some(kind));
            assert_ne!(kind.description(), kind.name());
        }
        assert_eq!(DamageKind::of_name("another"), None);
    }
}
