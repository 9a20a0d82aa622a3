//! Counts of requests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// The requests that a disk has made, those that were repeated after a failure included.
///
/// Its `Display` is one line for people: `12 requests (3 lists, 5 reads, 3 writes, 1 removal)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Lists: one for each page of 1,000 names.
    pub lists: u64,
    /// Reads of objects and their properties.
    pub reads: u64,
    /// Writes of objects and parts of them.
    pub writes: u64,
    /// Removals of objects.
    pub removals: u64,
    /// The bytes of objects that were read, as the answers state them.
    pub bytes_read: u64,
    /// The bytes of objects that were written.
    pub bytes_written: u64,
}

impl Requests {
    /// Returns the number of all requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lists + self.reads + self.writes + self.removals
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.lists, "list"),
            (self.reads, "read"),
            (self.writes, "write"),
            (self.removals, "removal"),
        ];
        let counted = |(count, name): (u64, &str)| {
            format!("{count} {name}{}", if count == 1 { "" } else { "s" })
        };
        let made = kinds
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(counted);
        let made: Vec<String> = made.collect();
        write!(f, "{}", counted((self.total(), "request")))?;
        if !made.is_empty() {
            write!(f, " ({})", made.join(", "))?;
        }
        Ok(())
    }
}

/// Counts while requests run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    lists: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    removals: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Counter {
    pub(crate) fn get(&self) -> Requests {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Requests {
            lists: load(&self.0.lists),
            reads: load(&self.0.reads),
            writes: load(&self.0.writes),
            removals: load(&self.0.removals),
            bytes_read: load(&self.0.bytes_read),
            bytes_written: load(&self.0.bytes_written),
        }
    }

    fn sent(&self, request: &HttpRequest) {
        let query = request.uri().query().unwrap_or_default();
        let is_list = |option: &str| {
            option.starts_with("list-type=")
                || option.starts_with("comp=list")
                || option == "prefix"
                || option.starts_with("prefix=")
        };
        let count = match request.method().as_str() {
            "GET" if query.split('&').any(is_list) => &self.0.lists,
            "GET" | "HEAD" => &self.0.reads,
            "DELETE" => &self.0.removals,
            _ => {
                let len = request.body().content_length() as u64;
                self.0.bytes_written.fetch_add(len, Ordering::Relaxed);
                &self.0.writes
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds bytes of an object that were read.
    pub(crate) fn read(&self, len: usize) {
        self.0.bytes_read.fetch_add(len as u64, Ordering::Relaxed);
    }
}

impl HttpConnector for Counter {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Counted {
            client: ReqwestConnector::default().connect(options)?,
            counter: self.clone(),
        }))
    }
}

#[derive(Debug)]
struct Counted {
    client: HttpClient,
    counter: Counter,
}

#[async_trait::async_trait]
impl HttpService for Counted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.counter.sent(&request);
        self.client.execute(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_one_line_that_leaves_out_the_kinds_that_were() {
        assert_eq!(Requests::default().to_string(), "0 requests");
        let some = Requests {
            lists: 1,
            reads: 2,
            bytes_read: 1_250_000,
            ..Requests::default()
        };
        assert_eq!(some.to_string(), "3 requests (1 list, 2 reads)");
    }
}
