//! The same tests of archives in buckets. A folder is the bucket, so that tests can damage what is in it.
//!
//! Not those of joined packs, whose originals stay in a bucket for a day.

#[path = "../damage.rs"]
mod damage;
#[path = "../moved.rs"]
mod moved;
#[path = "../round_trip.rs"]
mod round_trip;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use object_store::local::LocalFileSystem;
use tempfile::TempDir;
use transcript_archive::{Archive, ArchiveOptions, Buckets, Error};
use transcript_objects::ObjectDisk;
use transcript_storage::Disk;

/// Every folder with an archive is in a bucket.
struct Folders;

impl Buckets for Folders {
    fn has(&self, _: &Path) -> bool {
        true
    }

    fn open(&self, archive: &Path) -> io::Result<Arc<dyn Disk>> {
        let bucket = archive.parent().unwrap();
        let store = LocalFileSystem::new_with_prefix(bucket).map_err(io::Error::other)?;
        Ok(Arc::new(ObjectDisk::new(Arc::new(store), bucket)))
    }
}

/// Returns the folder of this machine, in which that of each archive has a name of its own.
fn local() -> &'static TempDir {
    static LOCAL: OnceLock<TempDir> = OnceLock::new();
    LOCAL.get_or_init(|| TempDir::new().unwrap())
}

pub(crate) fn opening() -> ArchiveOptions {
    ArchiveOptions::new()
        .buckets(Arc::new(Folders))
        .machine("desk")
        .local_folder(local().path())
}

pub(crate) fn open(place: &Path) -> Result<Archive, Error> {
    Archive::open_with(place, &opening())
}

pub(crate) fn open_or_create(place: &Path) -> Result<Archive, Error> {
    Archive::open_or_create_with(place, &opening())
}

/// Returns the folder in which the projects of this machine appear.
pub(crate) fn projects(place: &Path) -> PathBuf {
    place.join("machines/desk/projects")
}

pub(crate) fn catalogue(place: &Path) -> PathBuf {
    let marker = std::fs::read_to_string(place.join("archive.json")).unwrap();
    let (_, id) = marker.split_once("\"id\"").unwrap();
    let id = id.split('"').nth(1).unwrap();
    local().path().join(id).join("catalogue")
}

/// The part of the random trees that is used.
pub(crate) const TREES_DIVISOR: u64 = 3;
