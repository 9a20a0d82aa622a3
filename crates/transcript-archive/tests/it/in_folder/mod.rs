//! Tests of archives in folders of this machine.

#[path = "../damage.rs"]
mod damage;
#[path = "../moved.rs"]
mod moved;
#[path = "../repack.rs"]
mod repack;
#[path = "../round_trip.rs"]
mod round_trip;

use std::path::{Path, PathBuf};

use transcript_archive::{Archive, ArchiveOptions, Error};

pub(crate) fn opening() -> ArchiveOptions {
    ArchiveOptions::new()
}

pub(crate) fn open(place: &Path) -> Result<Archive, Error> {
    Archive::open_with(place, &opening())
}

pub(crate) fn open_or_create(place: &Path) -> Result<Archive, Error> {
    Archive::open_or_create_with(place, &opening())
}

/// Returns the folder in which projects appear.
pub(crate) fn projects(place: &Path) -> PathBuf {
    place.join("projects")
}

pub(crate) fn catalogue(place: &Path) -> PathBuf {
    place.join("catalogue")
}

/// The part of the random trees that is used.
pub(crate) const TREES_DIVISOR: u64 = 1;
