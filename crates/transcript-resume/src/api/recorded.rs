//! Requests that a transcript records about itself.
