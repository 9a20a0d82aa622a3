//! Reads the entries of a path as steps.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transcript_format::scan::Flags;
use transcript_messages::{BlockStore, Log, OmissionReason};
use transcript_reader::{
    BodySource, ConversationPath, EntryNo, EntryRef, Index, PathEntry, Policy, Source, Tree,
};

use super::recorded_usage::{RecordedTokens, RecordedUsage};
use super::step::{Reading, Step, StepContext, Unusable, origin};
use super::thinking;
use crate::sent::may_be_sent;
use crate::state::StateReader;

/// The file that long blocks stay in.
#[derive(Debug)]
pub(super) struct InFile {
    pub(super) source: Source,
    /// A block could not be read again.
    pub(super) is_lost: Arc<AtomicBool>,
}

impl BlockStore for InFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.source
            .read_at(offset, buffer)
            .map_err(io::Error::other)
    }

    fn lost(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

/// The number of entries of a path that are read at once.
const ENTRIES_PER_READ: usize = 256;

/// The steps of a path, and the entries that could not be used.
pub(super) struct Loaded<'i> {
    pub(super) steps: Vec<Step>,
    pub(super) names: StepContext<'i>,
    /// The tokens of the answers that say them.
    pub(super) recorded: RecordedUsage,
    /// Signatures of thinking that another line of the same entry has with a text.
    pub(super) stored_thoughts: HashSet<Box<str>>,
    pub(super) unusable: Vec<EntryNo>,
}

impl<'i> Loaded<'i> {
    /// Reads a path, with a context for each of its parts.
    pub(super) fn new<B: BodySource>(
        tree: &Tree<'_>,
        path: &ConversationPath,
        context: &(dyn Fn() -> StepContext<'i> + Sync),
        record: Option<StateReader<'i>>,
        bodies: &mut B,
        log: &mut Log,
    ) -> Result<Self, B::Error> {
        let mut loaded = Self {
            steps: Vec::with_capacity(path.entries.len()),
            names: StepContext::default(),
            recorded: context().recorded,
            stored_thoughts: HashSet::new(),
            unusable: Vec::new(),
        };
        if record.is_some() {
            // The state follows from the bodies in their order.
            let mut names = context();
            names.record = record;
            loaded.add(
                PathPart::read(tree, &path.entries, &mut names, bodies)?,
                log,
            );
            loaded.names.record = names.record;
            return Ok(loaded);
        }
        let parts: Vec<&[PathEntry]> = path.entries.chunks(ENTRIES_PER_READ).collect();
        let read = |number: usize, bodies: &mut B| {
            let mut names = context();
            PathPart::read(tree, parts[number], &mut names, bodies)
        };
        bodies.in_parts(parts.len(), read, |part| {
            loaded.add(part?, log);
            Ok(())
        })?;
        Ok(loaded)
    }

    /// Adds the next part of the path.
    fn add(&mut self, part: PathPart, log: &mut Log) {
        self.steps.extend(part.steps);
        self.stored_thoughts.extend(part.stored_thoughts);
        self.unusable.extend(part.unusable);
        for (model, is_salvaged) in part.answerers {
            self.names.answered_by(&model, is_salvaged);
        }
        self.recorded.extend(part.recorded);
        log.append(part.log);
    }
}

/// The steps of some entries in a row. They do not depend on the entries before them.
#[derive(Default)]
struct PathPart {
    steps: Vec<Step>,
    stored_thoughts: Vec<Box<str>>,
    unusable: Vec<EntryNo>,
    /// The models that they name as those of answers, and whether on a salvaged line; those that
    /// are the same on lines in a row once.
    answerers: Vec<(Arc<str>, bool)>,
    /// The tokens of the answers that say them.
    recorded: Vec<RecordedTokens>,
    log: Log,
}

impl PathPart {
    fn read<B: BodySource>(
        tree: &Tree<'_>,
        entries: &[PathEntry],
        names: &mut StepContext<'_>,
        bodies: &mut B,
    ) -> Result<Self, B::Error> {
        let mut part = Self::default();
        part.steps.reserve(entries.len());
        for entry in entries {
            let entry_ref = tree.index().entry(entry.entry_no());
            if let Some(record) = &mut names.record
                && may_be_sent(&entry_ref)
            {
                record.read_before(&entry_ref, bodies)?;
            }
            let (index, policy, log) = (tree.index(), tree.policy(), &mut part.log);
            match read_entry(&entry_ref, index, policy, names, bodies, log)? {
                Ok(None) => {}
                Ok(Some((step, stored))) => {
                    part.steps.push(step);
                    part.stored_thoughts.extend(stored);
                }
                Err(Unusable) => part.unusable.push(entry_ref.number()),
            }
            let answerer = names.answerer.take();
            let answerer = answerer.map(|model| (model, entry_ref.is_salvaged()));
            if answerer.as_ref() != part.answerers.last() {
                part.answerers.extend(answerer);
            }
        }
        part.recorded = names.recorded.found().to_vec();
        Ok(part)
    }
}

/// A step, and the signatures of thinking that another line of its entry has with a text.
pub(super) type ReadStep = (Step, Vec<Box<str>>);

/// Reads an entry of a path; `None` for one that is not sent.
///
/// # Errors
/// The errors of `bodies`; inside of the result, that the body cannot be used.
pub(super) fn read_entry<B: BodySource>(
    entry_ref: &EntryRef<'_>,
    index: &Index,
    policy: Policy,
    names: &mut StepContext<'_>,
    bodies: &mut B,
    log: &mut Log,
) -> Result<Result<Option<ReadStep>, Unusable>, B::Error> {
    let number = entry_ref.number();
    if !may_be_sent(entry_ref) {
        return Ok(Ok(Some((Step::silent(entry_ref), Vec::new()))));
    }
    if entry_ref.flags().contains(Flags::TOO_MANY) {
        log.omit(origin(number), OmissionReason::TooMany);
        return Ok(Ok(None));
    }
    let step = match Step::read(bodies.body(entry_ref)?, entry_ref, names, log) {
        Ok(Reading::Step(step)) => step,
        Ok(Reading::Virtual) => {
            log.omit(origin(number), OmissionReason::Virtual);
            return Ok(Ok(None));
        }
        Ok(Reading::Silent(step, reason)) => {
            log.omit(origin(number), reason);
            return Ok(Ok(Some((step, Vec::new()))));
        }
        Err(unusable) => return Ok(Err(unusable)),
    };
    let stored = if policy == Policy::Recover && index.has_repeated_uuids() {
        thinking::stored_with_text(&step.blocks, entry_ref, index, bodies)?
    } else {
        Vec::new()
    };
    Ok(Ok(Some((step, stored))))
}
