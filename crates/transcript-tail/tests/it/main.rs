//! Tests of the follow library.
