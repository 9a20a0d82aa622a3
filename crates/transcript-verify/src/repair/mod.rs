//! Repairs a session: plans the smallest changes, makes the new bytes, and proves that they are
//! better before anything is published.
//!
//! A repair never changes the file that it reads. It makes a new one, in which lines without
//! defects are copied byte for byte, and checks it: the client shows the same conversation as
//! policy `recover`, which shows all that it showed before, no entry is missing, and a repair of
//! the new file has nothing to do. If the links that `recover` decided on are not enough, the next
//! step writes its other decisions, too, and the last one links the conversation as a plain chain.
//! A repair that is not proved to keep the conversation is [refused](Repair::refusal).

mod action;
mod changes;
mod clean_text;
mod compact;
mod plan;
mod reading;
mod stronger;

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use transcript_format::finding::Code;
use transcript_format::ids::Uuid;
use transcript_format::named;
use transcript_messages::{Problem, Rule, join_roles, lint};
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, Source};
use transcript_resume::request::RequestOptions;
use transcript_resume::{ConversationPath, Policy, Tree};
use transcript_storage::TemporaryFile;

use crate::conversation::ConversationMeasure;
pub use action::{Action, ActionKind};
pub use compact::{Bloat, Compaction, KindSize, MovedLine, resumes_alike};
use plan::{Planner, RepairStep};
use reading::Reading;

/// The maximum length of a new file that is made in memory, in bytes. A larger one is a temporary file.
const MAX_IN_MEMORY_LEN: u64 = 64 << 20;

/// The maximum number of steps of a repair.
const MAX_STEPS: usize = 8;

/// Bytes of the old file that are not in the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Their offsets in the old file.
    pub range: Range<u64>,
    /// The code of the defect because of which they are not in the new one.
    pub code: Code,
}

/// A measure of the conversation in a file, and whether a provider accepts its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The number of messages that each policy shows.
    pub shown: ConversationMeasure,
    /// Whether the API of the client, which joins adjacent messages of one role, accepts the request of
    /// the client.
    pub vendor_lint: bool,
    /// Whether a strict provider, which does not, accepts that of policy `recover`.
    pub recover_lint: bool,
}

named! {
    /// The reason why a file is not repaired.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum RepairRefusal {
        /// The new file would show less than the old one, or something else.
        ShowsOther = "shows-other": "the repaired file would not show the same conversation",
        /// An entry would be missing.
        LosesEntry = "loses-entry": "an entry would be missing in the repaired file",
        /// A provider would refuse the request.
        Lint = "lint": "a provider would refuse the request of the repaired file",
        /// A resume of the file without the moved lines would differ.
        Compaction = "compaction": "the session would not resume as before without the moved lines",
    }
}

/// A repair of one file, planned and proved; nothing is published.
#[derive(Debug)]
pub struct Repair {
    original: Reading,
    repaired: Option<Source>,
    actions: Vec<Action>,
    lost: Vec<Lost>,
    foreign: Vec<EntryNo>,
    /// The number of entries that the new file does not have.
    omitted: usize,
    before: Health,
    after: Health,
    refusal: Option<RepairRefusal>,
    compaction: Option<Compaction>,
}

impl Repair {
    /// Plans the repair of `source` and makes the new bytes. `now` is the time of the repair
    /// (ISO 8601), `new_id` returns an id that it never returned before.
    ///
    /// # Errors
    /// When the session has another format; when the system fails to read, or to write a temporary
    /// file.
    pub fn new(source: Source, now: &str, new_id: &mut dyn FnMut() -> Uuid) -> Result<Self, Error> {
        let original = Reading::new(source)?;
        let before = Health::of(&original)?;
        let mut repair = Self {
            original,
            repaired: None,
            actions: Vec::new(),
            lost: Vec::new(),
            foreign: Vec::new(),
            omitted: 0,
            before,
            after: before,
            refusal: None,
            compaction: None,
        };
        repair.run(now, new_id)?;
        Ok(repair)
    }

    fn run(&mut self, now: &str, new_id: &mut dyn FnMut() -> Uuid) -> Result<(), Error> {
        let planner = Planner::new(&self.original);
        let mut step = planner.gentle(new_id)?;
        let goal = ExpectedConversation::new(&planner, &step);
        drop(planner);
        let mut made: HashSet<String> = HashSet::new();
        let mut at: Option<Reading> = None;
        let mut strength = 0;
        let mut refusal = Some(RepairRefusal::ShowsOther);
        // Each step is planned on the file that the step before has made, because one repair can reveal another defect.
        for _ in 0..MAX_STEPS {
            let reading = at.as_ref().unwrap_or(&self.original);
            let planner = Planner::new(reading);
            if at.is_some() {
                step = planner.gentle(new_id)?;
            }
            if step.actions.is_empty() {
                let tree = reading.tree(Policy::Vendor);
                let vendor = tree.path();
                // The weakest repair that reaches the goal is enough: all other lines keep their bytes.
                if goal.is_reached(&planner, &vendor, &made) {
                    refusal = None;
                    break;
                }
                // Each step is stronger than the one before; one that changes nothing is passed over.
                while step.actions.is_empty() && strength < 3 {
                    strength += 1;
                    step = match strength {
                        2 => planner.chain(&goal.path, &made)?,
                        _ => planner.decided((&tree, &vendor), goal.leaf.as_deref(), now)?,
                    };
                }
                if step.actions.is_empty() {
                    break;
                }
            }
            let drops = step.actions.iter();
            let drops = drops
                .filter(|action| action.action == ActionKind::Drop)
                .count();
            let added = step.made.len() + step.changes.end.len();
            // Counted for the check that no entry is lost without being named.
            let omitted = self.omitted + drops + step.lost.len() + step.foreign.len();
            self.omitted = omitted.saturating_sub(added);
            made.extend(step.made.iter().map(Uuid::to_string));
            let old = &reading.source;
            let source = new_source(old.path(), old.len(), |out| {
                step.changes.write(reading, out)
            })?;
            let noted = self.noted(&planner, step, at.is_none());
            drop(planner);
            let Some(noted) = noted else {
                refusal = Some(RepairRefusal::LosesEntry);
                break;
            };
            self.actions.extend(noted.actions);
            self.lost.extend(noted.lost);
            self.foreign.extend(noted.foreign);
            step = RepairStep::default();
            at = Some(Reading::new(source)?);
        }
        let Some(reading) = at else {
            self.refusal = refusal;
            return Ok(());
        };
        self.after = Health::of(&reading)?;
        self.refusal = refusal.or_else(|| self.check(&reading));
        self.repaired = Some(reading.source);
        self.lost.sort_by_key(|lost| lost.range.start);
        Ok(())
    }

    /// Returns a step in terms of the old file; `None` when that is not possible.
    fn noted(&self, planner: &Planner<'_>, step: RepairStep, is_first: bool) -> Option<StepNotes> {
        let index = &planner.reading.index;
        let mut noted = StepNotes {
            actions: step.actions,
            ..StepNotes::default()
        };
        let gaps = changes::Gaps::new(index);
        if is_first {
            noted.lost.extend(gaps.lost().iter().map(|finding| Lost {
                range: finding.offset..finding.offset + finding.len,
                code: finding.code,
            }));
        // A later step would lose bytes that an earlier one wrote; they are nowhere in the old file.
        } else if !gaps.lost().is_empty() {
            return None;
        }
        // Entries of later steps are those of the old file with the same id.
        let old = |entry: EntryNo| {
            if is_first {
                return Some(self.original.index.entry(entry));
            }
            self.original
                .entry(&planner.reading.uuid(&index.entry(entry))?)
        };
        for (entry, code) in step.lost {
            let entry = old(entry)?;
            let range = entry.offset()..entry.offset() + entry.byte_len();
            noted.lost.push(Lost { range, code });
        }
        for entry in step.foreign {
            noted.foreign.push(old(entry)?.number());
        }
        for action in &mut noted.actions {
            if !is_first {
                let entry = action
                    .uuid
                    .as_ref()
                    .and_then(|uuid| self.original.entry(uuid));
                action.line = entry.and_then(|entry| entry.known_line());
            }
        }
        Some(noted)
    }

    /// Checks the new file.
    fn check(&self, new: &Reading) -> Option<RepairRefusal> {
        let tree = self.original.tree(Policy::Recover);
        let lost = self.lost.iter().map(|lost| lost.range.start);
        let omitted: HashSet<u64> = lost
            .chain(self.foreign().map(|entry| entry.offset()))
            .collect();
        let is_missing = |entry: EntryRef<'_>| {
            let id = self.original.uuid(&entry);
            !omitted.contains(&entry.offset()) && id.is_some_and(|id| new.entry(&id).is_none())
        };
        let mut own = tree.nodes().filter(|node| !tree.is_foreign(*node));
        let is_short = new.index.len() + self.omitted < self.original.index.len();
        if is_short || own.any(|node| is_missing(tree.entry(node))) {
            return Some(RepairRefusal::LosesEntry);
        }
        let (before, after) = (&self.before.shown, &self.after.shown);
        // A repair must not show less than before, and the client must then show all of it.
        if after.recover < before.recover || after.vendor < after.recover {
            return Some(RepairRefusal::ShowsOther);
        }
        (before.recover > 0 && !self.after.recover_lint).then_some(RepairRefusal::Lint)
    }

    /// Returns whether there is nothing to repair, and no line to move.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.compaction.is_none()
    }

    /// Returns the changes, in the order of the steps that make them.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns the bytes that are not in the new file, by offset. Entries of other sessions are not
    /// among them.
    #[must_use]
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Returns the entries of other sessions, in file order.
    pub fn foreign(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let index = &self.original.index;
        self.foreign.iter().map(|entry| index.entry(*entry))
    }

    /// Returns the health of the old file.
    #[must_use]
    pub fn before(&self) -> Health {
        self.before
    }

    /// Returns the health of the new file.
    #[must_use]
    pub fn after(&self) -> Health {
        self.after
    }

    /// Returns why the new file must not be used, if it must not.
    #[must_use]
    pub fn refusal(&self) -> Option<RepairRefusal> {
        self.refusal
    }

    /// Returns the old file.
    #[must_use]
    pub fn original(&self) -> &Source {
        &self.original.source
    }

    /// Returns the index of the old file.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.original.index
    }

    /// Returns the new file, which has no name yet; the old one when there is nothing to repair.
    #[must_use]
    pub fn repaired(&self) -> &Source {
        self.repaired.as_ref().unwrap_or(&self.original.source)
    }
}

/// A step in terms of the old file.
#[derive(Default)]
struct StepNotes {
    actions: Vec<Action>,
    lost: Vec<Lost>,
    foreign: Vec<EntryNo>,
}

/// The conversation that the new file has to show: that of policy `recover` before the repair.
struct ExpectedConversation {
    /// The ids of its entries.
    path: Vec<String>,
    /// The ids of its messages.
    messages: Vec<String>,
    leaf: Option<String>,
}

impl ExpectedConversation {
    /// `step` gives ids to entries without.
    fn new(planner: &Planner<'_>, step: &RepairStep) -> Self {
        let mut goal = Self {
            path: Vec::new(),
            messages: Vec::new(),
            leaf: None,
        };
        for entry in &planner.path.entries {
            let line = planner.reading.index.entry(entry.entry_no());
            let new = step.ids.get(&entry.entry_no()).map(Uuid::to_string);
            let Some(id) = new.or_else(|| planner.reading.uuid(&line)) else {
                continue;
            };
            if planner.path.leaf == Some(entry.entry_no()) {
                goal.leaf = Some(id.clone());
            }
            if line.kind().is_message() {
                goal.messages.push(id.clone());
            }
            goal.path.push(id);
        }
        goal
    }

    /// Returns whether both policies show this conversation, apart from results that were `made`.
    fn is_reached(
        &self,
        planner: &Planner<'_>,
        vendor: &ConversationPath,
        made: &HashSet<String>,
    ) -> bool {
        let index = &planner.reading.index;
        let id = |entry: &EntryRef<'_>| entry.uuid().map(|id| index.id_text(id));
        let entries = |path: &ConversationPath| {
            let entries = path
                .entries
                .iter()
                .map(|entry| index.entry(entry.entry_no()));
            // The client does not know tombstones.
            let is_removed = |entry: &EntryRef<'_>| {
                let node = planner.tree.entry_node(entry.number());
                node.is_some_and(|node| planner.tree.is_tombstoned(node))
            };
            entries
                .filter(|entry| !is_removed(entry))
                .collect::<Vec<_>>()
        };
        let recover = entries(&planner.path);
        let shown: HashSet<EntryNo> = recover.iter().map(EntryRef::number).collect();
        // The client goes by message ids, and so may add lines of a subagent.
        let is_of_agent = |entry: &EntryRef<'_>| {
            let node = planner.tree.entry_node(entry.number());
            !shown.contains(&entry.number())
                && node.is_some_and(|node| planner.tree.is_sidechain(node))
        };
        let mut of_client = entries(vendor);
        of_client.retain(|entry| !is_of_agent(entry));
        let is_same = recover.iter().map(id).eq(of_client.iter().map(id));
        let messages = recover.iter().filter(|entry| entry.kind().is_message());
        let messages = messages.filter_map(id).filter(|id| !made.contains(id));
        let is_refused = vendor.refusal.is_some() && planner.path.refusal.is_none();
        is_same && !is_refused && messages.eq(self.messages.iter().cloned())
    }
}

impl Health {
    fn of(reading: &Reading) -> Result<Self, Error> {
        let is_accepted = |tree: &Tree<'_>| {
            let mut bodies = Bodies::new(&reading.source);
            let request = RequestOptions::new().request(tree, &mut bodies)?;
            let is_resumable = request.is_resumable();
            // The API of the client joins adjacent messages of one role itself, and a strict provider does not.
            let messages = match tree.policy() {
                Policy::Vendor => join_roles(request.messages),
                _ => request.messages,
            };
            let found = lint(&messages);
            let is_too_large = |problem: &Problem| problem.rule == Rule::RequestSize;
            let is_too_large =
                tree.policy() == Policy::Vendor && found.warnings.iter().any(is_too_large);
            Ok(is_resumable && found.is_ok() && !is_too_large)
        };
        let (recover, vendor) = (reading.tree(Policy::Recover), reading.tree(Policy::Vendor));
        Ok(Self {
            shown: ConversationMeasure::new(&recover, &recover.path(), &vendor.path()),
            vendor_lint: is_accepted(&vendor)?,
            recover_lint: is_accepted(&recover)?,
        })
    }
}

/// Makes a file without a name of about `len` bytes: in memory, or in the folder of `path`.
pub(crate) fn new_source(
    path: &Path,
    len: u64,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
) -> Result<Source, Error> {
    if len <= MAX_IN_MEMORY_LEN {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return Ok(Source::from_bytes(bytes, path));
    }
    let failed = |error| Error::io(path, None, error);
    let file = TemporaryFile::beside(path).map_err(failed)?;
    let mut out = io::BufWriter::with_capacity(256 << 10, file);
    write(&mut out)?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    Source::from_file(file.into_reader(), path)
}
