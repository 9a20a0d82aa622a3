//! The fast path against the slow model.

mod path;
