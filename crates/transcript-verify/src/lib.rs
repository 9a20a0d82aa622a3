//! Says what is wrong with a session, and what a resume would lose.

mod conversation;
pub mod repair;

pub use conversation::ConversationMeasure;
