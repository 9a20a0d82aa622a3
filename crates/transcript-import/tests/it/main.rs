//! Tests of the dialects. Fixtures are made here, in the formats of the agents.

mod codex;
mod contents;
mod copilot;
mod damage;
mod faults;
mod gemini;
mod growth;
mod handover;
mod pi;
mod qwen;
mod shared;
mod shared_damage;
mod support;
