//! The disk.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};
use transcript_storage::{
    DirEntry, Disk, Entries, FileKind, Identity, LocalDisk, Metadata, NewFile, Opened, ReadDisk,
    ReadFile,
};

use crate::address::Address;
use crate::connect::connect;
use crate::new_object::NewObject;
use crate::object_file::ObjectFile;
use crate::requests::{Counter, Requests};
use crate::store::{Store, identity, metadata};

/// A disk whose files are the objects of a bucket. Clones are the same disk.
///
/// A path is that of the bucket, `s3://BUCKET`, and the name of an object below it. Folders are there as long as something is in
/// them. The identity of a file is that of its content: another one after each replacement.
///
/// Requests run on a runtime of the process, and the caller waits: on a thread of another runtime only if that thread may block. A
/// request that fails because of the server or the network is repeated, with growing pauses, for up to a minute.
#[derive(Clone)]
pub struct ObjectDisk(Arc<Store>);

impl fmt::Debug for ObjectDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectDisk").field(&self.0.bucket()).finish()
    }
}

impl ObjectDisk {
    /// Opens the bucket of an address, with the credentials of the environment. No request is made.
    ///
    /// For S3 these are `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, the profile `AWS_PROFILE` or `default` of the files of AWS, and
    /// those of the machine or the container; for Google Cloud Storage `GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_APPLICATION_CREDENTIALS`, and
    /// those of the machine; for Azure `AZURE_STORAGE_ACCOUNT_NAME` with a key, a token, or a client.
    ///
    /// # Errors
    /// When the environment has nothing with which a request could be made.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let counter = Counter::default();
        let store = connect(address, &counter)?;
        Ok(Self::with(store, &address.bucket_folder(), counter))
    }

    /// Shows a store, with its objects below `bucket`.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, bucket: &Path) -> Self {
        Self::with(store, bucket, Counter::default())
    }

    fn with(store: Arc<dyn ObjectStore>, bucket: &Path, counter: Counter) -> Self {
        Self(Arc::new(Store::new(store, bucket, counter)))
    }

    /// Returns the path below which the objects are.
    #[must_use]
    pub fn bucket(&self) -> &Path {
        self.0.bucket()
    }

    /// Returns the requests that were made until now.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.0.requests()
    }
}

impl ReadDisk for ObjectDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let location = self.0.location(path)?;
        let meta = self.0.head(&location)?;
        Ok(Arc::new(ObjectFile::new(
            Arc::clone(&self.0),
            path.to_owned(),
            meta,
        )))
    }

    fn open_listed(&self, path: &Path, listed: &Metadata) -> io::Result<Arc<dyn ReadFile>> {
        let meta = ObjectMeta {
            location: self.0.location(path)?,
            last_modified: listed.modified.unwrap_or(SystemTime::UNIX_EPOCH).into(),
            size: listed.len,
            // Known when something of it was read.
            e_tag: None,
            version: None,
        };
        let (store, path) = (Arc::clone(&self.0), path.to_owned());
        Ok(Arc::new(ObjectFile::listed(
            store,
            path,
            meta,
            listed.identity,
        )))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let prefix = self.0.location(folder)?;
        let is_bucket = prefix.is_root();
        let listed = self.0.list(&prefix)?;
        let of_folder = listed.common_prefixes.into_iter().filter_map(|location| {
            Some(DirEntry {
                name: location.filename()?.into(),
                kind: FileKind::Folder,
                metadata: Some(Metadata::of_folder_in_memory()),
            })
        });
        let mut entries: Vec<io::Result<DirEntry>> = of_folder.map(Ok).collect();
        entries.extend(listed.objects.into_iter().filter_map(|meta| {
            Some(Ok(DirEntry {
                name: meta.location.filename()?.into(),
                kind: FileKind::File,
                metadata: Some(metadata(&meta)),
            }))
        }));
        // A folder is there as long as something is in it; the bucket is there.
        if entries.is_empty() && !is_bucket {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Box::new(entries.into_iter()))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let location = self.0.location(path)?;
        if !location.is_root() {
            match self.0.head(&location) {
                Ok(meta) => return Ok(metadata(&meta)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.list(path).map(|_| Metadata::of_folder_in_memory())
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        None
    }

    fn read(&self, path: &Path, max_len: usize) -> io::Result<Vec<u8>> {
        self.read_version(path, max_len).map(|(bytes, _)| bytes)
    }

    fn read_version(&self, path: &Path, max_len: usize) -> io::Result<(Vec<u8>, Identity)> {
        let location = self.0.location(path)?;
        let options = GetOptions::default();
        let (meta, mut bytes) = self.0.get(&location, options)?;
        bytes.truncate(max_len);
        Ok((bytes, identity(&meta)))
    }
}

impl Disk for ObjectDisk {
    fn open(&self, _: &Path, _: bool) -> io::Result<Opened> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_name(&self, _: &Path) -> io::Result<()> {
        // The store acknowledged it.
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let location = self.0.location(path)?;
        self.0
            .put(&location, bytes.to_vec(), PutMode::Create)
            .map(drop)
    }

    fn new_file(&self, path: &Path) -> io::Result<NewFile> {
        self.0.location(path)?;
        Ok(NewFile::of_disk(Box::new(NewObject::new(Arc::clone(
            &self.0,
        ))?)))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        // It is there as soon as something is in it.
        self.0.location(path).map(drop)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let location = self.0.location(path)?;
        self.0
            .run(move |store| async move { store.delete(&location).await })
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        // A copy and a removal are two requests, and a reader between them would find both or neither.
        Err(io::ErrorKind::Unsupported.into())
    }

    fn replace(&self, path: &Path, _: &Path, bytes: &[u8]) -> io::Result<()> {
        let location = self.0.location(path)?;
        self.0
            .put(&location, bytes.to_vec(), PutMode::Overwrite)
            .map(drop)
    }

    fn replace_version(
        &self,
        path: &Path,
        known: Option<Identity>,
        bytes: &[u8],
    ) -> io::Result<Option<Identity>> {
        let location = self.0.location(path)?;
        let mode = match known {
            None => PutMode::Create,
            Some(known) => {
                // The identity is a hash, so the words of the store for it are asked for again.
                let meta = match self.0.head(&location) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    meta => meta?,
                };
                if identity(&meta) != known {
                    return Ok(None);
                }
                PutMode::Update(UpdateVersion {
                    e_tag: meta.e_tag,
                    version: meta.version,
                })
            }
        };
        match self.0.put(&location, bytes.to_vec(), mode) {
            Ok(meta) => Ok(Some(meta)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::ResourceBusy
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
