//! Tests of the public interface.

mod disk;
mod kinds;
mod mutations;
mod samples;
