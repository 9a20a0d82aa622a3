//! The integration tests of transcript-format, one module per area.

mod lines;
mod model;
mod scan;
