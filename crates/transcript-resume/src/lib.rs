//! Rebuilds the conversation of a transcript from its index, and reports the reason for each step.
//!
//! [`Tree::new`] links the entries of an [`Index`](transcript_reader::Index) under a [`Policy`];
//! [`Tree::path`] walks from the leaf to the start of the conversation. Neither reads a file or a
//! clock: the same index always gives the same path. [`LiveConversation`] has the same path while
//! the file grows.
//!
//! The rules of [`Policy::Vendor`] are those of clients 2.1.329 and 2.1.331 as observed from outside. They are
//! listed in `docs/client-behaviour.md`; comments cite their ids, as in (LEAF-1). The tests compare
//! the results with an independent, slow model of these rules.

pub mod fork;
pub mod items;
mod live;
mod path;
pub mod prompts;
pub mod request;
mod sent;
mod state;
mod tail_first;
mod tree;

pub use live::{LiveConversation, LiveState};
pub use path::{
    BranchOff, Chapter, ConversationPath, OmittedCalls, PathEntry, Refusal, Story, Via,
};
pub use state::{
    Costs, Denial, FileAccess, FileHistory, KnownFile, ModelCosts, ModelFallback, PathState,
    PullRequest, QueuedPrompt, TitleSource, Todo, Usage, UsageTotals, Worktree,
};
pub use tail_first::{Unclosed, close, is_turn_closed};
pub use transcript_format::texts;
pub use tree::branches::{Branch, BranchStart, Branches, Sidechain, is_prompt};
pub use tree::decision::{Confidence, Decision, Evidence, GapReason, LeafReason, SpliceForm};
pub use tree::{KeptEntries, NodeId, Parent, Policy, Tree};
