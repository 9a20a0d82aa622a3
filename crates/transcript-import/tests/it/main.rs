//! Tests of the dialects. Fixtures are made here, in the formats of the agents.

mod codex;
mod copilot;
mod damage;
mod gemini;
mod pi;
mod qwen;
mod shared;
mod support;
