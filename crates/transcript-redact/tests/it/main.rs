//! Tests of the public interface.

mod kinds;
mod samples;
