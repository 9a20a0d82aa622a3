//! What can be wrong with a transcript, as data: a code, a place and a reason, never the content.
//!
//! Codes are stable strings that scripts may match on. Those of `facts/pains.md` keep their name
//! there; a few more name the rows of `facts/reliability.md` 5 that the pains list does not.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $Variant:ident = $code:literal, $severity:ident;)*) => {
        /// A stable name for one kind of damage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])* $Variant,)*
        }

        impl Code {
            /// Every code, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$Variant,)*];

            /// Returns the code as reports print it, for example `L-TORN-MID`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $code,)*
                }
            }

            /// Returns how much a finding of this code matters.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$Variant => Severity::$severity,)*
                }
            }
        }
    };
}

codes! {
    /// The last line has no newline and is no whole object: a write was cut short.
    TornTail = "L-TORN-TAIL", Damage;
    /// A line in the middle, or a part of it, does not hold one whole object.
    TornMid = "L-TORN-MID", Damage;
    /// A whole object is followed by more bytes on its line.
    Glued = "L-GLUED", Damage;
    /// A line holds NUL bytes (power loss, delayed allocation).
    Nul = "L-NUL", Damage;
    /// An object is spread over several lines by line feeds that were not escaped.
    Split = "L-SPLIT", Damage;
    /// The last line is whole but has no newline; the next append may glue to it.
    Unterminated = "L-UNTERMINATED", Note;
    /// A line is a JSON value but no object.
    NotObject = "L-NOT-OBJECT", Damage;
    /// A line is nested deeper than the limit.
    Depth = "L-DEPTH", Damage;
    /// A line is longer than the limit; its body was not read.
    TooLong = "B-LINE", Damage;
    /// An entry or its message has more members or blocks than are read; the line is kept, and what it
    /// says is not shown or sent.
    TooMany = "B-PARTS", Damage;
    /// A line holds bytes that are not UTF-8; they are read as U+FFFD.
    Utf8 = "T-UTF8", Damage;
    /// A byte order mark stands before the first line.
    Bom = "T-BOM", Damage;
    /// A string holds a control byte that JSON wants escaped.
    Control = "T-CONTROL", Damage;
    /// A string holds a surrogate escape without its partner; it reads as U+FFFD.
    Surrogate = "T-SURR", Note;
    /// A string holds U+0000 as an escape.
    NulEscape = "T-NUL", Note;
    /// The file became shorter while it was read; the bytes are gone.
    Shrunk = "L-SHRUNK", Damage;
    /// A known field has a value of an unexpected kind.
    Shape = "S-SHAPE", Note;
    /// A message has no uuid: nothing can name it, and only its place in the file says where it
    /// belongs.
    NoId = "S-NOID", Note;
    /// Entries of subagents stand in the file of a main conversation.
    Mixed = "S-MIXED", Note;
    /// Entries of another session stand in the file, and no link connects them with this one.
    OtherSession = "X-SESSION", Damage;
    /// An entry names a parent that no line of the file has.
    Dangling = "G-DANGLING", Damage;
    /// A uuid stands on more than one line.
    Repeated = "G-DUP", Damage;
    /// The parent links form a cycle, or an entry names itself.
    Cycle = "G-CYCLE", Damage;
    /// The conversation was taken back to an earlier entry; the branch that starts here was left.
    Rewind = "G-REWIND", Note;
    /// The conversation goes on in two branches that were written at the same time.
    Fork = "G-FORK", Damage;
    /// Lines of an answer, or results of its calls, hang outside the chain: a walk along parents does
    /// not meet them.
    Sibling = "G-SIBLING", Note;
    /// A `last-prompt` line names the leaf, and newer entries are not shown because of it.
    Leaf = "G-LEAF", Note;
    /// The `logicalParentUuid` of a boundary is in no line.
    LogicalParent = "C-LOGICAL", Note;
    /// The `logicalParentUuid` of a boundary leads to what was written under the boundary.
    LogicalCycle = "C-CYCLE", Note;
    /// Some of the entries that a boundary keeps, or their anchor, cannot be found by its words.
    Segment = "C-SEGMENT", Damage;
    /// None of the entries that a boundary keeps is in the file: it names those of the session that
    /// it was copied from.
    Stale = "C-STALE", Damage;
    /// The summary of a compaction stands without its boundary.
    NoBoundary = "C-NOBOUNDARY", Damage;
    /// A call on the path has no result.
    NoResult = "P-NORESULT", Damage;
    /// A result on the path has no call.
    NoUse = "P-NOUSE", Damage;
    /// A result on the path stands before its call, or behind a later answer.
    PairOrder = "P-ORDER", Damage;
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; nothing to do.
    Note,
    /// Bytes or entries are hurt.
    Damage,
}

/// One defect and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub code: Code,
    /// The 1-based number of the physical line; `None` where only the tail of a file was read.
    pub line: Option<u64>,
    /// The byte offset of the damaged bytes from the start of the file.
    pub offset: u64,
    /// How many bytes are concerned.
    pub len: u64,
    /// Why, in a few words that never quote the line.
    pub detail: &'static str,
}
