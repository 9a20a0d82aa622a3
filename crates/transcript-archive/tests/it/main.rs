//! Tests of archives.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::duplicate_mod,
    reason = "the same tests run over folders and over buckets"
)]

mod crash;
mod encryption;
mod home_crash;
mod homes;
mod in_bucket;
mod in_folder;
mod prune;
