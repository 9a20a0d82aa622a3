//! Calls that are running while a session is verified.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use transcript_format::finding::{Code, Finding};
use transcript_format::kind::EntryKind;
use transcript_reader::{EntryRef, Index, Source};
use transcript_resume::{ConversationPath, is_prompt};
use transcript_storage::Client;

/// The maximum age of the call, and of the last change of the file, where no client has registered the session.
const MAX_FRESH_AGE: Duration = Duration::from_secs(60);

/// Replaces the findings about calls without a result that may still get one. Such a call is of the
/// last answer, and the process that made it still runs:
///
/// - A client that runs has registered the session, and started before the call.
/// - Or no client has, not even one that was killed, as those that write no registrations; and both the
///   call and the last change of the file are of the last minute.
pub(crate) fn note_calls(
    findings: &mut [Finding],
    index: &Index,
    recover: &ConversationPath,
    source: &Source,
) {
    let is_open = |finding: &&mut Finding| finding.code == Code::NoResult;
    let mut open = findings.iter_mut().filter(is_open).peekable();
    if open.peek().is_none() {
        return;
    }
    let last = last_answer(index, recover);
    let earliest = earliest_start(source);
    for finding in open {
        let call = last.iter().find(|entry| entry.offset() == finding.offset);
        let time = call.and_then(EntryRef::millis);
        if time
            .zip(earliest)
            .is_some_and(|(time, earliest)| time >= earliest)
        {
            finding.code = Code::Running;
            finding.detail = "a call of this entry is running";
        }
    }
}

/// Returns the entries of the last answer of a path; none if a prompt follows it.
fn last_answer<'i>(index: &'i Index, path: &ConversationPath) -> Vec<EntryRef<'i>> {
    let entries = path.entries.iter().rev();
    let entries = entries.map(|entry| index.entry(entry.entry_no()));
    let mut messages = HashSet::new();
    entries
        .filter(|entry| entry.kind().is_message())
        .take_while(|entry| match entry.kind() {
            EntryKind::Assistant => {
                messages.insert(entry.message());
                messages.len() == 1
            }
            _ => !is_prompt(entry),
        })
        .collect()
}

/// Returns the earliest time, in milliseconds since 1970, of a call that may be running; `None` if
/// nothing runs.
fn earliest_start(source: &Source) -> Option<i64> {
    let client = Client::of_session(&*source.disk(), source.path());
    if client.running.is_some() {
        return Some(client.since.unwrap_or(i64::MIN));
    }
    let fresh = SystemTime::now().checked_sub(MAX_FRESH_AGE)?;
    let is_fresh = !client.was_killed && source.modified()? >= fresh;
    let fresh = fresh.duration_since(UNIX_EPOCH).ok()?.as_millis();
    is_fresh.then_some(i64::try_from(fresh).ok()?)
}
