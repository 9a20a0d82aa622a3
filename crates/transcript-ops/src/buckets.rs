//! Archives in buckets: `s3://BUCKET/PREFIX` in place of a folder.
//!
//! Without the feature `remote` every such address is refused.

use std::path::Path;

#[cfg(not(feature = "remote"))]
mod none;
#[cfg(feature = "remote")]
mod object_storage;

#[cfg(not(feature = "remote"))]
pub(crate) use none::KnownBuckets;
#[cfg(feature = "remote")]
pub(crate) use object_storage::KnownBuckets;

/// What the addresses of archives start with.
const SCHEMES: [&str; 4] = ["s3://", "gs://", "az://", "file://"];

/// Returns whether the place of an archive is an address, and not a path.
#[must_use]
pub fn is_address(place: &Path) -> bool {
    let place = place.as_os_str().as_encoded_bytes();
    SCHEMES
        .iter()
        .any(|scheme| place.starts_with(scheme.as_bytes()))
}
