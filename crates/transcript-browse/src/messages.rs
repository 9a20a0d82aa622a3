//! The requests of the view to the thread of a session, and the answers.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use transcript_render::{Detail, StyledLine, is_folded_at_first};
use transcript_resume::items::{Item, ItemKind};

use crate::needle::{MatchContext, Needle};

/// Names a block in all states of a file: the offset of its entry, and its number in that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    pub(crate) offset: u64,
    pub(crate) number: u32,
}

/// The parts of blocks that are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Folds {
    pub(crate) calls: Detail,
    pub(crate) thoughts: Detail,
    /// Blocks that are shown otherwise than their kind.
    pub(crate) changed: HashMap<BlockId, Detail>,
}

impl Folds {
    pub(crate) fn detail(&self, key: BlockId, item: &Item) -> Detail {
        let kind = match item.kind() {
            ItemKind::Call => self.calls,
            ItemKind::Thinking => self.thoughts,
            _ if item.group().is_some() => self.calls,
            _ if is_folded_at_first(item) => Detail::Folded,
            _ => Detail::Whole,
        };
        self.changed.get(&key).copied().unwrap_or(kind)
    }
}

/// A block of a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) key: BlockId,
    pub(crate) lines: Range<usize>,
    /// The line of its entry in the file, from 1; `None` while only the end was read.
    pub(crate) line: Option<u64>,
    pub(crate) is_prompt: bool,
    pub(crate) detail: Detail,
    /// Its items in the list of the part.
    pub(crate) items: Range<usize>,
    /// The offset of its last entry.
    pub(crate) last: u64,
}

/// A part of a conversation, laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) lines: Vec<StyledLine>,
    pub(crate) blocks: Vec<Block>,
}

/// The layout of a page. A page with a larger version is newer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Layout {
    pub(crate) width: usize,
    pub(crate) folds: Arc<Folds>,
    pub(crate) version: u64,
}

/// A request to a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// A part.
    Lay { part: usize, layout: Layout },
    /// The part with the entry at this offset, or the last one, and the part above it.
    Locate { offset: Option<u64>, layout: Layout },
    /// The next place with a text.
    Search(Search),
    /// The place that was named or found.
    Reach {
        target: Target,
        needle: Option<Needle>,
        width: usize,
    },
    /// All prompts.
    Outline,
    /// The text of a block.
    Copy { part: usize, key: BlockId },
    /// The line of an entry.
    Raw { offset: u64, width: usize },
    /// A new session of what is up to this entry.
    Fork { offset: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) id: u64,
    pub(crate) needle: Needle,
    pub(crate) part: usize,
    /// The block to start at, and the number of its hit after which it continues.
    pub(crate) key: BlockId,
    pub(crate) hit: Option<usize>,
    pub(crate) is_backward: bool,
    pub(crate) width: usize,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// A line, from 1.
    Line(u64),
    /// A hit of a search over all sessions.
    Hit {
        /// The place of the entry in its file.
        offset: u64,
        line: u64,
        block: Option<u32>,
        /// The name of the field that has the text.
        what: &'static str,
        around: MatchContext,
        /// The stored result that has the text.
        stored: Option<PathBuf>,
    },
}

impl Target {
    pub(crate) fn line(&self) -> u64 {
        match self {
            Self::Line(line) | Self::Hit { line, .. } => *line,
        }
    }
}

/// The facts about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionFacts {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) place: String,
    /// The agent that wrote it; `None` for Claude Code.
    pub(crate) maker: Option<String>,
    /// The folder in which it is resumed, if a client finds it.
    pub(crate) home: Option<String>,
    pub(crate) parts: usize,
    /// Whether all of the file was read.
    pub(crate) is_whole: bool,
    /// The duration of reading it.
    pub(crate) took: Duration,
}

/// A prompt in the outline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutlineRow {
    pub(crate) offset: u64,
    pub(crate) line: u64,
    pub(crate) millis: Option<i64>,
    pub(crate) text: String,
}

/// An answer of a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Ready(Box<SessionFacts>),
    Failed(String),
    Laid {
        part: usize,
        version: u64,
        page: Page,
    },
    Located {
        part: usize,
        offset: Option<u64>,
        version: u64,
        pages: Vec<(usize, Page)>,
    },
    Found {
        id: u64,
        part: usize,
        key: BlockId,
        hit: usize,
        is_wrapped: bool,
    },
    NotFound {
        id: u64,
    },
    Searching {
        id: u64,
        percent: usize,
    },
    Reached {
        place: Option<(usize, BlockId, Option<usize>)>,
        /// The reason why the text is not shown, for people.
        missing: Option<String>,
    },
    Outline {
        rows: Vec<OutlineRow>,
        is_last: bool,
    },
    Copied(String),
    Raw {
        lines: Vec<String>,
        text: String,
    },
    Forked(Result<String, String>),
}

/// Sends answers of one thread.
pub(crate) type Reply = Arc<dyn Fn(Answer) + Send + Sync>;

pub(crate) fn to_message(error: impl std::fmt::Display) -> String {
    error.to_string()
}
