//! Defects of a transcript, as data: a code, a place and a reason, never the content.
//!
//! Codes are stable strings that scripts may match on; `docs/findings.md` explains each of them. The
//! first letter is the area: `L` and `T` concern lines, `S` shapes and subagents, `G` links, `X` and
//! `K` other sessions and writers, `C` compactions, `P` pairs of calls and results, `A` requests, `B`
//! sizes, `U` token counts, `W`, `F`, `R` and `Z` the files of a store, `I` sessions of other agents.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $Variant:ident = $code:literal, $severity:ident;)*) => {
        /// A stable name for one kind of defect.
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

            /// Returns the severity of findings of this code.
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
    /// The last line has no newline and is not a complete object: a write was interrupted.
    TornTail = "L-TORN-TAIL", Damage;
    /// A line in the middle of the file, or a part of it, is not a complete object.
    TornMid = "L-TORN-MID", Damage;
    /// A complete object is followed by more bytes on its line.
    Glued = "L-GLUED", Damage;
    /// A line holds NUL bytes (power loss, delayed allocation).
    Nul = "L-NUL", Damage;
    /// An object is spread over several lines by unescaped line feeds.
    Split = "L-SPLIT", Damage;
    /// The last line is complete but has no newline; the next append may glue to it.
    Unterminated = "L-UNTERMINATED", Note;
    /// A line is a JSON value but not an object.
    NotObject = "L-NOT-OBJECT", Damage;
    /// A line is nested deeper than the limit.
    Depth = "L-DEPTH", Damage;
    /// A line is longer than the limit; its body was not read.
    TooLong = "B-LINE", Damage;
    /// An entry or its message has more members or blocks than are read. The line is kept, but its
    /// content is neither shown nor sent.
    TooMany = "B-PARTS", Damage;
    /// A line holds bytes that are not UTF-8; they are read as U+FFFD.
    Utf8 = "T-UTF8", Damage;
    /// A byte order mark precedes the first line.
    Bom = "T-BOM", Damage;
    /// A string holds a control byte that JSON requires to be escaped.
    Control = "T-CONTROL", Damage;
    /// A string holds a surrogate escape without its partner; it reads as U+FFFD.
    Surrogate = "T-SURR", Note;
    /// A string holds U+0000 as an escape.
    NulEscape = "T-NUL", Note;
    /// The file shrank while it was read; the bytes are gone.
    Shrunk = "L-SHRUNK", Damage;
    /// A known field has a value of an unexpected type.
    Shape = "S-SHAPE", Note;
    /// A message line has a key, or an attachment a type, that this version of the format does not
    /// know: the client may send something else than this project expects.
    UnknownKey = "S-KEY", Note;
    /// A message has no uuid: no link can name it, so only its position in the file shows where it
    /// belongs.
    NoId = "S-NOID", Note;
    /// The file of a main conversation contains entries of subagents.
    Mixed = "S-MIXED", Note;
    /// The file contains entries of another session, and no link connects them with this one.
    OtherSession = "X-SESSION", Damage;
    /// An entry names a parent that no line of the file has.
    Dangling = "G-DANGLING", Damage;
    /// Several lines have the same uuid.
    Repeated = "G-DUP", Damage;
    /// A branch that no person started leaves the conversation at an earlier entry: what comes after
    /// that entry is cut off.
    Stranded = "G-STRANDED", Damage;
    /// The parent links form a cycle, or an entry names itself.
    Cycle = "G-CYCLE", Damage;
    /// The conversation was rewound to an earlier entry; the branch that starts here was abandoned.
    Rewind = "G-REWIND", Note;
    /// The conversation continues in two branches that were written at the same time.
    Fork = "G-FORK", Damage;
    /// Lines of an answer, or results of its calls, are outside the chain: following parents does
    /// not reach them.
    Sibling = "G-SIBLING", Note;
    /// A `last-prompt` line names the leaf, and newer entries are not shown because of it.
    Leaf = "G-LEAF", Note;
    /// The `logicalParentUuid` of a boundary is not in the file.
    LogicalParent = "C-LOGICAL", Note;
    /// The `logicalParentUuid` of a boundary leads to entries written below the boundary.
    LogicalCycle = "C-CYCLE", Note;
    /// Some of the entries that a boundary preserves, or their anchor, cannot be resolved.
    Segment = "C-SEGMENT", Damage;
    /// None of the entries that a boundary preserves is in the file: the boundary names those of
    /// the session that it was copied from.
    Stale = "C-STALE", Damage;
    /// The file has the summary of a compaction but not its boundary.
    NoBoundary = "C-NOBOUNDARY", Damage;
    /// A call on the path has no result.
    NoResult = "P-NORESULT", Damage;
    /// A call of the last answer has no result yet: it runs while the session is verified.
    Running = "P-RUNNING", Note;
    /// A result on the path has no call.
    NoUse = "P-NOUSE", Damage;
    /// A result on the path comes before its call, or after a later answer.
    PairOrder = "P-ORDER", Damage;
    /// An entry precedes its parent in the file, and not as clients write results and attachments.
    Forward = "G-FORWARD", Note;
    /// Lines record the files of a message more than once; their `messageId` is not a uuid of an entry.
    MessageId = "G-MSGID", Note;
    /// Two branches were written at the same time, which takes two writers.
    Writers = "X-WRITERS", Damage;
    /// The session was copied from one that is not in its folder.
    ForkSource = "K-FORK", Note;
    /// A signed thought has lost its text: an API refuses it, so it is not sent.
    EmptiedThought = "A-THINK", Note;
    /// An image or document on the path, or the whole request, is larger than the API accepts.
    MediaSize = "A-SIZE", Damage;
    /// The request is longer than the context window of its model.
    Window = "A-WINDOW", Note;
    /// A strict provider refuses the request of the client, and no other finding says why.
    Refused = "A-GROUP", Note;
    /// Requests that a client recorded in the file are not the ones that are built from its entries.
    Recorded = "A-RECORD", Note;
    /// The file is large; most of it is not conversation, or a few lines of it.
    Size = "B-SIZE", Note;
    /// A large part of the file are copies of lines.
    Copies = "B-DUP", Note;
    /// Answers are in the file again under other uuids: adding up lines counts their tokens twice.
    CountedTwice = "U-DUP", Note;
    /// A string looks like a secret.
    Secret = "Z-SECRET", Note;
    /// Other users may read or change the file or its folder.
    Mode = "Z-MODE", Note;
    /// Files of the session are newer than its last message: its writer stopped.
    Stalled = "W-STALLED", Damage;
    /// The folder of a session has files, but the session itself is missing.
    Absent = "W-ABSENT", Damage;
    /// The client deletes the file soon.
    Sweep = "R-SWEEP", Note;
    /// A subagent was started and its file is missing.
    MissingAgent = "S-MISSING", Damage;
    /// The file of a subagent that no call of the session started.
    OrphanAgent = "S-ORPHAN", Note;
    /// No entry of the session was written in the folder that its project is named after.
    WrongFolder = "F-DIR", Note;
    /// Another project has a session with the same id.
    SameId = "F-COPY", Note;
    /// The file is empty, or has a title and no conversation.
    Stub = "F-STUB", Note;
    /// The time of the file differs from that of its last entry by more than a day.
    FileTime = "F-PICK", Note;
    /// A part of a source file of another agent is damaged.
    Imported = "I-DAMAGE", Damage;
    /// A source file of another agent has records of types that are not known.
    ImportUnknown = "I-UNKNOWN", Note;
    /// The agent that wrote the session refuses it.
    ImportRefused = "I-REFUSED", Damage;
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; no action is needed.
    Note,
    /// Bytes or entries are damaged.
    Damage,
}

/// One defect and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of defect.
    pub code: Code,
    /// The 1-based number of the physical line; `None` when only the tail of a file was read.
    pub line: Option<u64>,
    /// The byte offset of the damaged bytes from the start of the file.
    pub offset: u64,
    /// The number of bytes concerned.
    pub len: u64,
    /// The reason, in a short text that never quotes the line.
    pub detail: &'static str,
}
