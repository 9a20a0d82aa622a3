//! The buckets that archives are in, each opened when something in it is asked for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transcript_archive::{ArchiveOptions, Buckets};
use transcript_format::units::size;
use transcript_objects::{Address, ObjectDisk, local_folder};
use transcript_storage::Disk;

use crate::failure::Failure;

/// The buckets that archives are in.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownBuckets(Arc<Mutex<BTreeMap<PathBuf, Bucket>>>);

/// An address, and its disk if it was opened.
#[derive(Debug)]
struct Bucket {
    address: Address,
    disk: Option<ObjectDisk>,
}

impl KnownBuckets {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Bucket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an address, and returns the path that its folder has from now on: for `file://`, that of the folder of this machine.
    ///
    /// # Errors
    /// When it is not an address.
    pub(crate) fn add(&self, address: &Path) -> Result<PathBuf, Failure> {
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::options(format!("the address of the archive: {why}"))
                .with_next("the form is s3://BUCKET/PREFIX, gs://…, az://… or file:///FOLDER")
        };
        let text = address.to_str();
        let text = text.ok_or_else(|| wrong(&"it is not UTF-8"))?;
        if let Some(folder) = local_folder(text).map_err(|error| wrong(&error))? {
            return Ok(folder);
        }
        let address: Address = text.parse().map_err(|error| wrong(&error))?;
        let folder = address.folder();
        let bucket = Bucket {
            address,
            disk: None,
        };
        self.known().entry(folder.clone()).or_insert(bucket);
        Ok(folder)
    }

    /// Lets archives be opened in these buckets.
    pub(crate) fn in_options(&self, options: ArchiveOptions) -> ArchiveOptions {
        options.buckets(Arc::new(self.clone()))
    }

    /// Returns the address of a folder in a bucket; `None` for a folder of this machine.
    pub(crate) fn address_of(&self, folder: &Path) -> Option<String> {
        let known = self.known();
        Some(known.get(folder)?.address.to_string())
    }

    /// Says for each bucket that was used which requests were made.
    pub(crate) fn requests(&self) -> Vec<String> {
        let known = self.known();
        let used = known.iter().filter_map(|(folder, bucket)| {
            let requests = bucket.disk.as_ref()?.requests();
            let read = size(requests.bytes_read);
            let written = size(requests.bytes_written);
            let folder = folder.display();
            Some(format!(
                "{folder}: {requests}, {read} read, {written} written"
            ))
        });
        used.collect()
    }
}

impl Buckets for KnownBuckets {
    fn has(&self, folder: &Path) -> bool {
        self.known().keys().any(|known| folder.starts_with(known))
    }

    fn open(&self, folder: &Path) -> io::Result<Arc<dyn Disk>> {
        let mut known = self.known();
        let mut buckets = known.iter_mut();
        let bucket = buckets.find(|(known, _)| folder.starts_with(known));
        let (_, bucket) = bucket.ok_or(io::ErrorKind::NotFound)?;
        let disk = match &bucket.disk {
            Some(disk) => disk.clone(),
            None => bucket
                .disk
                .insert(ObjectDisk::connect(&bucket.address)?)
                .clone(),
        };
        Ok(Arc::new(disk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_path_of_its_folder_and_nothing_is_opened() {
        let known = KnownBuckets::default();
        let text = "s3://b/p?endpoint=http://127.0.0.1:1";
        let folder = known.add(Path::new(text)).expect("an address");
        assert_eq!(folder, Path::new("s3://b/p"));
        assert!(known.has(&folder.join("packs")) && !known.has(Path::new("s3://b/q")));
        assert_eq!(known.address_of(&folder).as_deref(), Some(text));
        assert!(known.requests().is_empty());
        let local = known.add(Path::new("file:///a%20b")).expect("a folder");
        assert_eq!(local, Path::new("/a b"));
        for wrong in ["s3://", "file://host/a", "s3://user:canary@b/p"] {
            let failure = known.add(Path::new(wrong)).expect_err(wrong);
            assert!(!failure.to_string().contains("canary"), "{failure}");
        }
    }
}
