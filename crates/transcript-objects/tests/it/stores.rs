//! Stores for tests.

use std::env;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use transcript_objects::{Address, ObjectDisk};

/// The bucket of the stores in memory.
pub(crate) const BUCKET: &str = "s3://b";

/// Returns a disk over a store in memory.
pub(crate) fn in_memory() -> ObjectDisk {
    ObjectDisk::new(Arc::new(InMemory::new()), Path::new(BUCKET))
}

/// Returns the address of a folder on the server of `make remote-test`, which is not used by others.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
pub(crate) fn on_server(name: &str) -> Option<Address> {
    let Ok(endpoint) = env::var("TRANSCRIPT_TEST_S3") else {
        println!("skipped: no server that speaks S3 (make remote-test)");
        return None;
    };
    let address = format!(
        "s3://transcript-test/{name}-{}?endpoint={endpoint}",
        std::process::id()
    );
    Some(address.parse().expect("an address"))
}

/// A store that counts its requests, and fails the one with a given number: before it does something, or after.
pub(crate) struct Faulty {
    inner: InMemory,
    count: AtomicU64,
    fail: AtomicU64,
    is_done_before: AtomicBool,
}

impl Faulty {
    pub(crate) fn new(fail: u64, is_done_before: bool) -> Self {
        Self {
            inner: InMemory::new(),
            count: AtomicU64::new(0),
            fail: AtomicU64::new(fail),
            is_done_before: AtomicBool::new(is_done_before),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Fails the request with this number, counted from the next one on.
    pub(crate) fn fail_in(&self, requests: u64, is_done_before: bool) {
        self.is_done_before.store(is_done_before, Ordering::Relaxed);
        self.fail.store(self.count() + requests, Ordering::Relaxed);
    }

    /// Fails nothing from now on.
    pub(crate) fn heal(&self) {
        self.fail.store(0, Ordering::Relaxed);
    }

    fn failure() -> object_store::Error {
        object_store::Error::Generic {
            store: "test",
            source: "a canary in the answer of the server".into(),
        }
    }

    async fn run<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        let is_failed =
            self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.fail.load(Ordering::Relaxed);
        if is_failed && !self.is_done_before.load(Ordering::Relaxed) {
            return Err(Self::failure());
        }
        let done = request.await;
        if is_failed {
            Err(Self::failure())
        } else {
            done
        }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        to: &Location,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.run(self.inner.put_opts(to, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Location,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.run(self.inner.put_multipart_opts(to, options)).await
    }

    async fn get_opts(&self, from: &Location, options: GetOptions) -> Result<GetResult> {
        self.run(self.inner.get_opts(from, options)).await
    }

    async fn get_ranges(
        &self,
        from: &Location,
        ranges: &[Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        self.run(self.inner.get_ranges(from, ranges)).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.run(self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        self.run(self.inner.copy_opts(from, to, options)).await
    }
}
