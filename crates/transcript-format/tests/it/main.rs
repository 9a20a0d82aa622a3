//! The integration tests of transcript-format, one module per area.

mod context_refs;
mod findings;
mod lines;
mod make;
mod model;
mod recover;
mod scan;
mod stream;
