//! The integration tests of transcript-format, one module per area.

mod context_refs;
mod fields;
mod findings;
mod known_keys;
mod lines;
mod make;
mod model;
mod salvage;
mod scan;
mod texts;
