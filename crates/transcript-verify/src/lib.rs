//! Says what is wrong with a session, and what a resume would lose; and makes it right.

pub mod repair;
