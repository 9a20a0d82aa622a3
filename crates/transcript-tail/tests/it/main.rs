//! Tests of the follow library.

mod follower;
#[cfg(feature = "async")]
mod streams;
mod support;
mod watcher;
