//! Tests of the dialects. Fixtures are made here, in the formats of the agents.

mod codex;
mod contents;
mod copilot;
#[cfg(feature = "sqlite")]
mod copilot_turns;
mod counted_disk;
mod damage;
mod desktop;
mod earlier;
mod faults;
mod files;
mod gemini;
mod gemini_document;
mod growth;
mod handover;
mod hostile;
#[cfg(feature = "sqlite")]
mod hostile_sqlite;
mod lengths;
mod memory;
#[cfg(feature = "sqlite")]
mod opencode;
#[cfg(feature = "sqlite")]
mod opencode_damage;
#[cfg(feature = "sqlite")]
mod opencode_follow;
#[cfg(feature = "sqlite")]
mod opencode_list;
#[cfg(feature = "sqlite")]
mod opencode_store;
#[cfg(feature = "sqlite")]
mod opencode_writing;
mod pi;
mod qwen;
mod shared;
mod shared_damage;
mod support;
mod test_clock;
mod tokens;
mod writing;
