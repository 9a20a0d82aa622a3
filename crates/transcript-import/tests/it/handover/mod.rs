//! Tests of the hand-over. A model of each loader says what the client makes of a session.

mod claude_model;
mod codex_model;
mod converted;
mod expected;
mod files;
mod given;
mod handed_over;
mod rules;
