//! Says what is wrong with a session, and what a resume would lose.

mod conversation;

pub use conversation::ConversationMeasure;
