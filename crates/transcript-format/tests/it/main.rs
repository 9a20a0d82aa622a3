//! The integration tests of transcript-format, one module per area.

mod model;
