//! Says what is wrong with a session, and what a resume would lose.
//!
//! [`verify`] verifies one session and what is next to it, [`verify_folder`] all sessions in a folder,
//! [`verify_source`] the bytes of a file alone. A [`Report`] has every finding with its place, how much of
//! the conversation each policy shows ([`ConversationMeasure`]), and a [`Verdict`]. What to do about a
//! finding is in [`advice`] and, with examples, in `docs/findings.md`.
//!
//! Nothing here writes, takes a lock or needs write permission.

mod abridged;
mod advice;
mod bytes;
mod conversation;
mod located_finding;
mod options;
mod recorded_requests;
pub mod repair;
mod report;
mod running;
pub mod salvage;
mod secrets;
mod session;
mod store;
mod unknown_keys;
mod writers;

pub use advice::advice;
pub use conversation::ConversationMeasure;
pub use located_finding::LocatedFinding;
pub use options::VerifyOptions;
pub use recorded_requests::{
    DifferenceReason, DifferentEntry, DifferentMessage, RebuiltRequests, RequestDifference,
    VersionRequests,
};
pub use report::{PolicyLint, Report, Verdict};
pub use session::verify_source;
pub use store::{cleanup_days, days_until_deleted};

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use transcript_format::finding::Code;
use transcript_reader::{Error, Source};
use transcript_storage::ReadDisk;

/// Verifies the session at `path` on `disk`, as [`verify_source`] does, and what is next to it: the files of its
/// subagents, its folder, and in a folder that is named like a project also times and modes.
///
/// # Errors
/// When it is not a transcript or the system fails to read. Damage is no error.
pub fn verify(
    disk: &Arc<dyn ReadDisk>,
    path: &Path,
    options: &VerifyOptions,
) -> Result<Report, Error> {
    let source = Source::open_on(disk, path)?;
    source.check_messages()?;
    session::verify_with(&source, options, |index| {
        store::findings(disk, index, &source, options)
    })
}

/// Verifies every session in `folder` on `disk` and the folders below it, those of subagents included: a
/// project, a folder of projects, or any other. Several files are read at a time. `each` gets the
/// reports, and the errors about files that cannot be read, in the order of the paths; sessions that
/// are missing while their folder is there come last, and after them the errors about folders.
///
/// # Errors
/// When `folder` cannot be read.
pub fn verify_folder(
    disk: &Arc<dyn ReadDisk>,
    folder: &Path,
    options: &VerifyOptions,
    each: &mut dyn FnMut(Result<Report, Error>),
) -> Result<(), Error> {
    /// The number of reports that wait for an earlier one.
    const WAITING: usize = 256;
    let found = store::Found::in_folder(disk, folder)?;
    let processors = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(16);
    let threads = processors.min(found.files.len());
    let mut options = options.clone();
    options.is_single = threads > 1;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, reports) = sync_channel(WAITING);
        for _ in 0..threads {
            let sender = sender.clone();
            let (found, options, next) = (&found, &options, &next);
            scope.spawn(move || {
                while let Some(path) = found.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = verify(disk, path, options).map(|mut report| {
                        let copies = found.copies(path);
                        let copies = copies.map(|of| LocatedFinding::of_file(Code::SameId, of));
                        report.findings.splice(0..0, copies);
                        report
                    });
                    if sender.send((path, report)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut expected = found.files.iter().peekable();
        for (path, report) in reports {
            waiting.insert(path, report);
            while let Some(report) = expected.peek().and_then(|path| waiting.remove(*path)) {
                expected.next();
                each(report);
            }
        }
    });
    found
        .absent
        .into_iter()
        .for_each(|path| each(Ok(store::absent(path))));
    found
        .problems
        .into_iter()
        .for_each(|problem| each(Err(problem)));
    Ok(())
}
