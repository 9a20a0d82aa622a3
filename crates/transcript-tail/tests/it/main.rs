//! Tests of the follow library.

mod follower;
