//! Turns the conversation of a session into text for people.
//!
//! For a terminal, [`ReplayPrinter`] prints recorded [`Conversation`]s and [`FollowPrinter`] those
//! that are being written. [`write_markdown`] writes a document,
//! [`write_html`] the pieces of a page, [`TreePrinter`] prints the branches
//! of a [`SessionTree`], [`explain`] has the wording of decisions and findings. [`RenderOptions`]
//! determines the form of the text.
//!
//! Everything from a transcript is escaped on its way to the output ([`Escaping`]).

pub mod blocks;
mod compaction;
mod conversation;
mod diff;
mod error;
mod escape;
pub mod explain;
mod header;
mod html;
pub mod imported;
mod markdown;
mod markdown_document;
mod markup;
mod moment;
mod options;
mod pace;
mod parsed_entry;
mod print_tree;
mod printer;
mod session_parts;
mod session_tree;
mod snippet;
mod styles;
mod text;
mod tool_summary;
mod tools;
mod view;
mod words;

pub use conversation::{Conversation, KnownCalls};
pub use error::{Error, Result};
pub use escape::Escaping;
pub use header::Header;
pub use html::{
    HtmlConversations, PagePart, Piece, Prompt, write as write_html, write_part as write_html_part,
};
pub use markdown_document::{tokens as tokens_in_words, usage, write as write_markdown};
pub use moment::{clock, minute};
pub use options::{CallPrice, RenderOptions, Tools};
pub use pace::Pace;
pub use parsed_entry::ParsedEntry;
pub use print_tree::TreePrinter;
pub use printer::{
    BranchNote, Change, Detail, FileEvent, FollowPrinter, FollowScope, NewEntry, PrintedBlock,
    ReplayPrinter, StyledLine, call_line, is_folded_at_first, print_blocks,
};
pub use session_parts::{
    OrderedConversations, PartKind, SessionPart, ShownFile, ShownSession, WantedParts,
};
pub use session_tree::{BoundaryFacts, SessionTree, leaf_decision};
pub use snippet::{Snippet, SnippetLine};
pub use styles::{Styles, TextStyle};
pub use text::{cut_text, wrapped};
pub use words::{and_more, count, joined};
