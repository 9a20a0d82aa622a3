//! Finds defects of a session, and the losses of a resume.
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
mod imported;
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
pub use imported::{agent as agent_of, imported_findings};
pub use located_finding::LocatedFinding;
pub use options::VerifyOptions;
pub use recorded_requests::{
    DifferenceReason, DifferentEntry, DifferentMessage, RebuiltRequests, RequestDifference,
    VersionRequests,
};
pub use report::{PolicyLint, Report, Verdict};
pub use session::verify_source;
pub use store::{cleanup_days, days_until_deleted};

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use transcript_format::finding::Code;
use transcript_reader::{Error, Source};
use transcript_storage::ReadDisk;
use transcript_storage::parallel::{self, Limits};

/// Verifies the session at `path` on `disk`, as [`verify_source`] does, and what is next to it: the files of its
/// subagents, its folder, and in a folder that is named like a project also times and modes.
///
/// # Errors
/// When it is not a transcript or the system fails to read. Damage is not an error.
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
    /// The maximum number of reports that wait for an earlier one: sessions differ much in length.
    const MAX_WAITING_REPORTS: NonZeroUsize = NonZeroUsize::new(256).unwrap();
    let found = store::FoundSessions::in_folder(disk, folder)?;
    let mut options = options.clone();
    options.is_single = parallel::threads(None, found.files.len()) > 1;
    let verify_file = |number: usize| {
        let path: &Path = &found.files[number];
        let mut report = verify(disk, path, &options)?;
        let copies = found.copies(path);
        let copies = copies.map(|of| LocatedFinding::of_file(Code::SameId, of));
        report.findings.splice(0..0, copies);
        Ok(report)
    };
    let limits = Limits {
        ahead: Some(MAX_WAITING_REPORTS),
        ..Limits::default()
    };
    let files = 0..found.files.len();
    let Ok(()) = parallel::in_order_within(
        limits,
        files,
        || verify_file,
        |_, report| {
            each(report);
            Ok::<(), Infallible>(())
        },
    );
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
