//! Tests of the follow library.

mod live;
