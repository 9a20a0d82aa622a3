//! Recorded requests: how many of them are built again from the entries alone, and where the first
//! one differs.

use std::cmp::Ordering as Order;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transcript_format::finding::Code;
use transcript_messages::Role;
use transcript_reader::{Bodies, EntryRef, Error, Index, Source};
use transcript_resume::request::BodySource;
use transcript_resume::request::recorded::{self, DifferenceKind, RecordedRequest, ReplayOutcome};

use crate::located_finding::LocatedFinding;
use crate::options::VerifyOptions;

/// The number of requests that clients recorded, and of those that are built again, in a file or in many.
///
/// It is the only test of the rules of the client that a store carries itself: a client with a rule
/// that this project lacks records requests that are not reproduced.
///
/// ```
/// use transcript_reader::Source;
/// use transcript_verify::{RebuiltRequests, VerifyOptions, verify_source};
///
/// let source = Source::from_bytes(b"{\"type\":\"mode\"}\n".as_slice(), "-".as_ref());
/// let report = verify_source(&source, &VerifyOptions::new().requests(true))?;
/// let mut sum = RebuiltRequests::default();
/// sum.add(report.requests.as_ref().expect("they were asked for"));
/// assert_eq!((sum.recorded(), sum.reproduced()), (0, 0));
/// # Ok::<(), transcript_reader::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RebuiltRequests {
    /// The requests of each version of a client, ordered by version.
    pub versions: Vec<VersionRequests>,
}

/// The recorded requests of one version of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionRequests {
    /// The version that the lines name; `None` if they name none, or not a plain one.
    pub version: Option<String>,
    /// The number of recorded requests.
    pub recorded: usize,
    /// The number of requests with the same messages when they are built from the entries alone.
    pub reproduced: usize,
    /// The number of requests that extend one that is not in the file, so that they cannot be compared.
    pub unknown: usize,
    /// The first that is not reproduced.
    pub first: Option<RequestDifference>,
}

/// A recorded request that is not reproduced, without anything of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestDifference {
    /// The file.
    pub path: PathBuf,
    /// The number of the line that records the request; `None` if it is not known.
    pub line: Option<u64>,
    /// The offset of that line.
    pub offset: u64,
    /// The number of bytes of that line.
    pub len: u64,
    /// The id of the request; `None` if it is not a plain one.
    pub request: Option<String>,
    /// The reason why it is not reproduced.
    pub reason: DifferenceReason,
    /// The first message that differs, if any does.
    pub message: Option<DifferentMessage>,
}

transcript_format::named! {
    /// The reason why a recorded request is not reproduced.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum DifferenceReason {
        /// A message was recorded and not built.
        MissingMessage = "missing-message": "a message is missing",
        /// A message was built and not recorded.
        ExtraMessage = "extra-message": "there is a message too many",
        /// A message was built with another content.
        DifferentHash = "different-hash": "a message has another hash",
        /// There is no conversation before the line.
        NoConversation = "no-conversation": "there is no conversation before it",
        /// Bodies of the path cannot be read.
        UnusableBody = "unusable-body": "bodies of its entries cannot be read",
    }
}

/// A message that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DifferentMessage {
    /// Its place, counted from 0.
    pub index: usize,
    /// Its role; `None` if it was recorded as a hash alone.
    pub role: Option<Role>,
    /// The entry that it comes from, of a missing one the last entry before it.
    pub entry: Option<DifferentEntry>,
}

/// The place of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DifferentEntry {
    /// The number of its line; `None` if it is not known.
    pub line: Option<u64>,
    /// Its uuid.
    pub uuid: Option<String>,
}

impl RebuiltRequests {
    /// Returns how many requests are recorded.
    #[must_use]
    pub fn recorded(&self) -> usize {
        self.versions.iter().map(|version| version.recorded).sum()
    }

    /// Returns how many of them have the same messages when they are built from the entries alone.
    #[must_use]
    pub fn reproduced(&self) -> usize {
        self.versions.iter().map(|version| version.reproduced).sum()
    }

    /// Adds the requests of a later file.
    pub fn add(&mut self, other: &Self) {
        for version in &other.versions {
            let own = self.of_version(version.version.as_deref());
            own.recorded += version.recorded;
            own.reproduced += version.reproduced;
            own.unknown += version.unknown;
            if own.first.is_none() {
                // Files are added in order, so the first one has the first example.
                own.first.clone_from(&version.first);
            }
        }
    }

    fn of_version(&mut self, version: Option<&str>) -> &mut VersionRequests {
        let order = |known: &VersionRequests| by_numbers(known.version.as_deref(), version);
        // Sorted by version, and there are few of them.
        let at = match self.versions.binary_search_by(order) {
            Ok(at) => at,
            Err(at) => {
                let new = VersionRequests {
                    version: version.map(str::to_owned),
                    recorded: 0,
                    reproduced: 0,
                    unknown: 0,
                    first: None,
                };
                self.versions.insert(at, new);
                at
            }
        };
        &mut self.versions[at]
    }
}

impl VersionRequests {
    /// Returns how many requests are not reproduced, though everything that they need is in the file.
    #[must_use]
    pub fn different(&self) -> usize {
        self.recorded - self.reproduced - self.unknown
    }
}

/// Orders versions as `2.1.9` before `2.1.10`; what has no version comes first.
fn by_numbers(one: Option<&str>, other: Option<&str>) -> Order {
    let numbers = |version: &str| -> Vec<Option<u64>> {
        version.split('.').map(|part| part.parse().ok()).collect()
    };
    let key = |version: Option<&str>| version.map(numbers);
    key(one).cmp(&key(other)).then_with(|| one.cmp(&other))
}

/// Builds the recorded requests of a file again.
pub(crate) fn rebuild(
    index: &Index,
    source: &Source,
    options: &VerifyOptions,
) -> Result<RebuiltRequests, Error> {
    let mut bodies = CountedBodies {
        bodies: Bodies::new(source),
        counter: options.counter.clone(),
    };
    let mut rebuilt = RebuiltRequests::default();
    for request in recorded::check(index, &mut bodies)? {
        let version = request
            .version
            .as_deref()
            .filter(|version| is_plain(version));
        let of_version = rebuilt.of_version(version);
        // By version, because each change of the client shows at the first version that has it.
        of_version.recorded += 1;
        match reason(&request) {
            _ if request.outcome == ReplayOutcome::Reproduced => of_version.reproduced += 1,
            None => of_version.unknown += 1,
            // One example for each version is enough for a report; all others mostly have the same cause.
            Some(_) if of_version.first.is_some() => {}
            Some(reason) => of_version.first = Some(first(index, source, &request, reason)),
        }
    }
    Ok(rebuilt)
}

/// Returns why a request is not reproduced; `None` if that cannot be said, or it is.
fn reason(request: &RecordedRequest) -> Option<DifferenceReason> {
    let of_message = |kind| match kind {
        DifferenceKind::Missing => DifferenceReason::MissingMessage,
        DifferenceKind::Extra => DifferenceReason::ExtraMessage,
        DifferenceKind::Hash => DifferenceReason::DifferentHash,
    };
    match request.outcome {
        ReplayOutcome::NoConversation => Some(DifferenceReason::NoConversation),
        ReplayOutcome::UnusableBody => Some(DifferenceReason::UnusableBody),
        _ => request
            .difference
            .map(|difference| of_message(difference.kind)),
    }
}

fn first(
    index: &Index,
    source: &Source,
    request: &RecordedRequest,
    reason: DifferenceReason,
) -> RequestDifference {
    let line = index.entry(request.entry);
    let message = request.difference.map(|difference| DifferentMessage {
        index: difference.message,
        role: difference.role,
        entry: difference.entry.map(|entry| {
            let entry = index.entry(entry);
            DifferentEntry {
                line: entry.known_line(),
                uuid: entry.uuid().map(|id| index.id_text(id)),
            }
        }),
    });
    RequestDifference {
        path: source.path().to_owned(),
        line: line.known_line(),
        offset: line.offset(),
        len: line.byte_len(),
        // Ids come from the file. Anything else than an id could be content, which findings never quote.
        request: Some(request.id.clone()).filter(|id| is_plain(id)),
        reason,
        message,
    }
}

/// Returns whether an id or a version is one, and no content.
fn is_plain(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_part)
}

/// Returns a finding for each version with requests that are not reproduced, at the first of them.
pub(crate) fn findings(rebuilt: &RebuiltRequests) -> impl Iterator<Item = LocatedFinding> {
    rebuilt.versions.iter().filter_map(|version| {
        let first = version.first.as_ref()?;
        Some(LocatedFinding {
            line: first.line,
            offset: first.offset,
            len: first.len,
            ..LocatedFinding::of_file(Code::Recorded, version.words(first))
        })
    })
}

impl VersionRequests {
    fn words(&self, first: &RequestDifference) -> String {
        let client = self.version.as_deref();
        let client = client
            .map(|version| format!(" of Claude Code {version}"))
            .unwrap_or_default();
        format!(
            "{} of {} recorded requests{client} reproduced; the first that is not: {}",
            self.reproduced,
            self.recorded,
            first.words()
        )
    }
}

impl RequestDifference {
    /// Returns the request and its difference in words, without file and line: `request ID: message 3
    /// (user, from line 12, UUID): a message has another hash`.
    #[must_use]
    pub fn words(&self) -> String {
        let request = self.request.as_deref().unwrap_or("(other)");
        let message = self.message.as_ref().map(|message| {
            let place = message.entry.as_ref().map(DifferentEntry::words);
            let place = match self.reason {
                DifferenceReason::MissingMessage => place.map(|place| format!("after {place}")),
                _ => place.map(|place| format!("from {place}")),
            };
            let role = message.role.map(|role| role.name().to_owned());
            let about: Vec<String> = role.into_iter().chain(place).collect();
            let about = if about.is_empty() {
                String::new()
            } else {
                format!(" ({})", about.join(", "))
            };
            format!("message {}{about}: ", message.index)
        });
        let message = message.unwrap_or_default();
        format!("request {request}: {message}{}", self.reason.words())
    }
}

impl DifferentEntry {
    fn words(&self) -> String {
        let line = self.line.map(|line| format!("line {line}"));
        let parts = [line, self.uuid.clone()].into_iter().flatten();
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Bodies whose bytes are counted, so that progress is seen while requests are built.
struct CountedBodies<'s> {
    bodies: Bodies<'s>,
    counter: Option<Arc<AtomicU64>>,
}

impl BodySource for CountedBodies<'_> {
    type Error = Error;

    fn body(&mut self, entry: &EntryRef<'_>) -> Result<&str, Error> {
        if let Some(counter) = &self.counter {
            // Building requests reads most bodies again; without the count, the progress would stop for that time.
            counter.fetch_add(entry.byte_len(), Ordering::Relaxed);
        }
        Ok(self.bodies.get(entry)?.text)
    }
}
