//! Rebuilds the conversation of a transcript from its index, and says why it took each step.
//!
//! [`Tree::new`] links the candidates of an [`Index`](transcript_reader::Index) under a
//! [`Policy`]; [`Tree::path`] walks from the leaf to the entries of the conversation. Nothing here
//! touches a file or a clock: the same index gives the same path, always.
//!
//! The rules of [`Policy::Vendor`] are those of client 2.1.329 as it was observed: they stand in
//! `docs/format.md` of the project and are compared with an independent slow model in the tests.

pub mod api;
mod branches;
mod bridges;
mod chain;
mod client;
mod decision;
pub mod display;
mod findings;
pub mod fork;
mod islands;
mod leaf;
mod links;
mod neighbours;
mod recover;
mod siblings;
mod state;
mod stitch;
mod tombstones;

pub use api::builder;
pub use branches::{Branch, Branches, Sidechain, Start, is_prompt};
pub use chain::{BranchOff, Path, PathEntry, Refusal, Via};
pub use decision::{Confidence, Decision, Evidence, GapReason, LeafReason, SpliceForm};
pub use links::{NodeId, Parent, Policy, Tree};
pub use state::{
    Costs, FileHistory, ModelCosts, PullRequest, QueuedPrompt, State, TitleSource, Todo, Usage,
    UsageTotals, Worktree,
};
pub use transcript_format::texts;
