//! A store, and the requests to it.

use std::future::Future;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use object_store::path::Path as Location;
use object_store::{
    GetOptions, GetResult, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, PutPayload,
};
use transcript_storage::{FileKind, Identity, Metadata, ReadFile};

use crate::error::to_io;
use crate::requests::{Counter, Requests};
use crate::runtime::wait;

/// The maximum length of an object that is written by one request, in bytes. A longer one is written in parts of this length.
const PART_LEN: usize = 16 << 20;
/// The maximum number of times that a list is asked for whose answers are cut, and the pause after the first one.
const MAX_LIST_ATTEMPTS: u32 = 6;
const LIST_PAUSE: Duration = Duration::from_millis(100);

/// Returns whether an answer was cut off.
fn is_cut(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::TimedOut
    )
}

/// A store, and the path of its bucket.
pub(crate) struct Store {
    store: Arc<dyn ObjectStore>,
    bucket: PathBuf,
    counter: Counter,
}

impl Store {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, bucket: &Path, counter: Counter) -> Self {
        Self {
            store,
            bucket: bucket.to_owned(),
            counter,
        }
    }

    pub(crate) fn bucket(&self) -> &Path {
        &self.bucket
    }

    pub(crate) fn requests(&self) -> Requests {
        self.counter.get()
    }

    /// Returns the name of the object at a path.
    pub(crate) fn location(&self, path: &Path) -> io::Result<Location> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let below = path.strip_prefix(&self.bucket).map_err(|_| invalid())?;
        let parts: Option<Vec<&str>> = below
            .components()
            .map(|part| match part {
                Component::Normal(part) => part.to_str(),
                _ => None,
            })
            .collect();
        Location::parse(parts.ok_or_else(invalid)?.join("/")).map_err(|_| invalid())
    }

    /// Runs requests, and waits for them.
    pub(crate) fn run<T, F>(
        &self,
        requests: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let done = wait(requests(Arc::clone(&self.store)))?;
        done.map_err(|error| to_io(&error))
    }

    /// Lists a folder. The library repeats requests, and not the rest of an answer that was cut: a list that is longer than one answer has many.
    pub(crate) fn list(&self, prefix: &Location) -> io::Result<ListResult> {
        let mut attempts = 1;
        loop {
            let prefix = prefix.clone();
            let listed = self
                .run(move |store| async move { store.list_with_delimiter(Some(&prefix)).await });
            match listed {
                Err(error) if is_cut(&error) && attempts < MAX_LIST_ATTEMPTS => {
                    std::thread::sleep(LIST_PAUSE * attempts);
                    attempts += 1;
                }
                listed => return listed,
            }
        }
    }

    pub(crate) fn head(&self, location: &Location) -> io::Result<ObjectMeta> {
        let location = location.clone();
        self.run(move |store| async move { store.head(&location).await })
    }

    /// Reads an object, or a range of it.
    pub(crate) fn get(
        &self,
        location: &Location,
        options: GetOptions,
    ) -> io::Result<(ObjectMeta, Vec<u8>)> {
        let location = location.clone();
        let (meta, bytes) = self.run(move |store| async move {
            let found: GetResult = store.get_opts(&location, options).await?;
            let meta = found.meta.clone();
            Ok((meta, found.bytes().await?))
        })?;
        self.counter.read(bytes.len());
        Ok((meta, bytes.into()))
    }

    /// Writes a small object, and returns its identity.
    pub(crate) fn put(
        &self,
        location: &Location,
        bytes: Vec<u8>,
        mode: PutMode,
    ) -> io::Result<Identity> {
        let (at, name) = (location.clone(), location.clone());
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        let written = self.run(move |store| async move {
            store.put_opts(&at, PutPayload::from(bytes), options).await
        })?;
        Ok(identity_of(
            &name,
            written.e_tag.as_deref(),
            written.version.as_deref(),
        ))
    }

    /// Writes the content of a file as an object. One that takes several requests appears when the last of them is done; that it
    /// is a new name is checked before the first of them and not again.
    pub(crate) fn put_file(
        &self,
        location: &Location,
        file: &dyn ReadFile,
        mode: PutMode,
    ) -> io::Result<()> {
        let len = file.metadata()?.len;
        let part = |at: u64| -> io::Result<Vec<u8>> {
            let len = usize::try_from(len - at).map_or(PART_LEN, |len| len.min(PART_LEN));
            let mut bytes = vec![0; len];
            match file.fill(at, &mut bytes)? {
                read if read == len => Ok(bytes),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        if len <= PART_LEN as u64 {
            return self.put(location, part(0)?, mode).map(drop);
        }
        if mode == PutMode::Create {
            match self.head(location) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            }
        }
        let at = location.clone();
        let mut upload = self.run(move |store| async move { store.put_multipart(&at).await })?;
        let mut at = 0;
        while at < len {
            let bytes = part(at);
            let sent = bytes.and_then(|bytes| {
                at += bytes.len() as u64;
                let sent = upload.put_part(PutPayload::from(bytes));
                wait(sent)?.map_err(|error| to_io(&error))
            });
            if let Err(error) = sent {
                // The store removes what is left of it after some days, if that fails, too.
                let _ = wait(async move { upload.abort().await });
                return Err(error);
            }
        }
        self.run(move |_| async move { upload.complete().await.map(drop) })
    }
}

/// Returns the properties of an object.
pub(crate) fn metadata(meta: &ObjectMeta) -> Metadata {
    let modified = Some(SystemTime::from(meta.last_modified));
    Metadata {
        kind: FileKind::File,
        len: meta.size,
        modified,
        changed: modified,
        mode: None,
        identity: identity(meta),
    }
}

pub(crate) fn identity(meta: &ObjectMeta) -> Identity {
    identity_of(
        &meta.location,
        meta.e_tag.as_deref(),
        meta.version.as_deref(),
    )
}

/// Returns the identity of a version of an object: of its name, and of what the store calls the version. Where a store does
/// not return the number of a version with a list, the entity tag alone counts.
fn identity_of(location: &Location, e_tag: Option<&str>, version: Option<&str>) -> Identity {
    let named = e_tag.or(version);
    let Some(named) = named else {
        return Identity::UNKNOWN;
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(location.as_ref().as_bytes());
    hasher.update(&[0]);
    hasher.update(named.as_bytes());
    Identity::of_version(*hasher.finalize().as_bytes())
}
