//! Continues, shows and copies the conversation of a transcript: the next request of a path, the items
//! that a person sees of it, the state of its session, and forks.
//!
//! The tree and the path are those of [`transcript_reader`], whose names are here as well.
//! [`request::RequestOptions`] makes the request that continues a path, [`items::ItemList`] has its
//! items, [`PathState`] the settings of the session at its end, and [`fork`] copies it into another
//! session. None of them reads a file or a clock: bodies come from a [`request::BodySource`].
//!
//! The rules of [`Policy::Vendor`] are those of clients 2.1.329 and 2.1.331 as observed from outside. They are
//! listed in `docs/client-behaviour.md`; comments cite their ids, as in (MSG-1). The tests compare
//! the results with an independent, slow model of these rules.

pub mod fork;
pub mod items;
pub mod prompts;
pub mod request;
mod sent;
mod state;

pub use state::{
    Costs, Denial, FileAccess, FileHistory, KnownFile, ModelCosts, ModelFallback, PathState,
    PullRequest, QueuedPrompt, TitleSource, Todo, Usage, UsageTotals, Worktree,
};
pub use transcript_format::texts;
pub use transcript_reader::tail_first::{TailDependency, is_turn_closed, self_contained_index};
pub use transcript_reader::{
    Branch, BranchOff, BranchStart, Branches, Chapter, Confidence, ConversationPath, Decision,
    Evidence, GapReason, KeptEntries, LeafReason, LiveConversation, LiveState, NodeId,
    OmittedCalls, Parent, PathEntry, Policy, Refusal, Sidechain, SpliceForm, Story, Tree, Via,
    is_prompt,
};
