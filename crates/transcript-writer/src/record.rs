//! Appends those messages of a list that the file does not contain yet.

use std::collections::HashSet;

use transcript_format::named;

use crate::chain::Chains;
use crate::draft::{Draft, EntryId, Parent};
use crate::error::{Error, ErrorKind};
use crate::writer::{WriteState, Writer, Written};

/// Options for recording a list of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RecordOptions {
    start: Option<EntryId>,
    team: Option<TeamMember>,
    tombstoned: Tombstoned,
}

/// The entries of the file that tombstones among the messages name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Tombstoned {
    /// The entries at the end of the conversation, oldest first, with no other entry between them.
    pub last: Vec<EntryId>,
    /// The entry before these; `None` for the start of the conversation.
    pub parent: Option<EntryId>,
    /// The entries that are not part of the conversation.
    pub aside: Vec<EntryId>,
    /// The entries that are tombstoned already.
    pub already: Vec<EntryId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TeamMember {
    name: String,
    agent: String,
}

impl RecordOptions {
    /// The list continues the conversation, and belongs to no team.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the parent of the first new message if the list does not start with a known one; the
    /// end of the conversation by default.
    pub fn start(mut self, parent: EntryId) -> Self {
        self.start = Some(parent);
        self
    }

    /// Sets which entries of the file the tombstones among the messages name, as only a reader of the
    /// file knows where they are.
    pub fn tombstoned(mut self, tombstoned: Tombstoned) -> Self {
        self.tombstoned = tombstoned;
        self
    }

    /// Sets the team that the messages belong to, and the name of the agent in it.
    pub fn team(mut self, name: impl Into<String>, agent: impl Into<String>) -> Self {
        self.team = Some(TeamMember {
            name: name.into(),
            agent: agent.into(),
        });
        self
    }
}

/// The result of recording a list of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordOutcome {
    /// The entries that were added.
    pub entries: Vec<Written>,
    /// The last entry that was added; without one, the last known entry at the start of the list,
    /// or else the given parent.
    pub last: Option<EntryId>,
    /// The messages that were not written, except those that are in the file: one element for each
    /// type and reason.
    pub skipped: Vec<Skipped>,
}

/// Messages of a list that were not written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Their `type`.
    pub type_name: String,
    /// The reason.
    pub reason: SkipReason,
    /// Their number.
    pub count: usize,
    /// The place of the first of them in the list, from 0.
    pub first: usize,
}

named! {
    /// The reason why a message of a list was not written.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum SkipReason {
        /// Sessions do not store messages of its type, such as `progress`, `stream_event` and `result`.
        NotStored = "not-stored": "sessions do not store messages of this type",
        /// A tombstone of the same list names the message, or the message is a tombstone that was
        /// written before.
        Tombstoned = "tombstoned": "it is tombstoned",
        /// It is a tombstone of an entry that is neither in the file nor in the list.
        UnknownEntry = "unknown-entry": "it is a tombstone of an entry that is not in the file",
    }
}

/// The drafts to append for a list of messages, and the skipped messages.
#[derive(Default)]
struct RecordPlan {
    drafts: Vec<Draft>,
    /// The parent of the first entry.
    start: Option<EntryId>,
    skipped: Vec<Skipped>,
}

impl Writer {
    /// Appends those of `messages` whose uuid is not in the file, with one write: all of them or
    /// none. Only user, assistant, system and attachment entries are written; progress, stream
    /// events and messages that only occur on a wire are [skipped](RecordOutcome::skipped).
    ///
    /// The parent of the first new message is the last of the known messages at the start of the
    /// list. If the list does not start with a known one, it is [`RecordOptions::start`], or else
    /// the end of the conversation. Known messages after a new one do not change the parent: after
    /// a compaction, the new boundary and summary precede the preserved messages and must not
    /// become children of them, and the entries after a known summary must not either. The parents
    /// in `messages` are ignored. A result becomes a child of its call, a boundary a new root.
    ///
    /// A tombstone among the messages ([`Draft::withdrawn`]) removes the message that it names. If
    /// that is not in the file, it is not written. If it is, [`RecordOptions::tombstoned`] has to
    /// contain it, and it is removed as [`tombstone_all`](Self::tombstone_all) does, in the same
    /// write as the new messages.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownParent`] when [`RecordOptions::start`] is not in the file,
    /// [`ErrorKind::NotTheLeaf`] when a tombstone names an entry of the file that
    /// [`RecordOptions::tombstoned`] does not contain, or the conversation does not end with the
    /// entries there, and as for [`append`](Self::append).
    pub fn record(
        &self,
        mut messages: Vec<Draft>,
        options: RecordOptions,
    ) -> Result<RecordOutcome, Error> {
        let RecordOptions {
            start,
            team,
            tombstoned,
        } = options;
        self.shared().identify(&mut messages);
        let plan = |now: WriteState<'_>| {
            let mut plan = RecordPlan::new(now.chains, messages, start, &tombstoned)?;
            if let Some(team) = &team {
                for draft in &mut plan.drafts {
                    draft.set("teamName", &team.name);
                    draft.set("agentName", &team.agent);
                }
            }
            let is_end_moved = !tombstoned.last.is_empty();
            let has_new = !plan.drafts.is_empty();
            let mut lines = Vec::new();
            if is_end_moved {
                now.chains
                    .check_last(&tombstoned.last, tombstoned.parent.as_ref())?;
            }
            let removed = [&*tombstoned.last, &*tombstoned.aside].concat();
            if !removed.is_empty() {
                lines.push(Draft::tombstones(&removed)?);
            }
            lines.append(&mut plan.drafts);
            if is_end_moved && !has_new {
                lines.push(Draft::ending_at(tombstoned.parent.clone()));
            }
            Ok::<_, ErrorKind>((lines, (plan.start, plan.skipped, has_new)))
        };
        let settle = |chains: &mut Chains, (_, _, has_new): &(_, _, bool)| match (
            tombstoned.last.is_empty(),
            has_new,
        ) {
            (true, _) => {}
            (false, true) => chains.abandon_withdrawn(&tombstoned.last),
            (false, false) => chains.rewind(tombstoned.parent.clone()),
        };
        let (mut entries, (start, skipped, _)) = self.shared().append_planned(plan, settle)?;
        // Not the lines about tombstones.
        entries.retain(|entry| entry.uuid.is_some());
        let last = entries.last().and_then(|entry| entry.uuid.clone());
        Ok(RecordOutcome {
            entries,
            last: last.or(start),
            skipped,
        })
    }
}

impl RecordPlan {
    fn new(
        chains: &Chains,
        messages: Vec<Draft>,
        start: Option<EntryId>,
        tombstoned: &Tombstoned,
    ) -> Result<Self, ErrorKind> {
        let mut plan = Self {
            start,
            ..Self::default()
        };
        let named = messages.iter().filter_map(Draft::withdrawn);
        let withdrawn: HashSet<EntryId> = named.cloned().collect();
        let of_list: HashSet<EntryId> = if withdrawn.is_empty() {
            HashSet::new()
        } else {
            messages.iter().filter_map(|one| one.uuid.clone()).collect()
        };
        let mut new = crate::ids::EntryIds::new();
        for (at, message) in messages.into_iter().enumerate() {
            if let Some(named) = message.withdrawn() {
                let is_known = chains.knows(named);
                let is_now = tombstoned.last.contains(named) || tombstoned.aside.contains(named);
                if tombstoned.already.contains(named) {
                    plan.skip(at, &message, SkipReason::Tombstoned);
                } else if is_known && !is_now {
                    return Err(ErrorKind::NotTheLeaf);
                } else if !is_known && !of_list.contains(named) {
                    plan.skip(at, &message, SkipReason::UnknownEntry);
                }
                continue;
            }
            if !is_kept_on_disk(&message) {
                plan.skip(at, &message, SkipReason::NotStored);
                continue;
            }
            match &message.uuid {
                Some(uuid) if withdrawn.contains(uuid) => {
                    if !chains.knows(uuid) {
                        plan.skip(at, &message, SkipReason::Tombstoned);
                    }
                }
                Some(uuid) if chains.knows(uuid) => {
                    if plan.drafts.is_empty() && !chains.is_kept(uuid) {
                        plan.start = message.uuid;
                    }
                }
                Some(uuid) if !new.insert(uuid.clone()) => {}
                _ => plan.drafts.push(message),
            }
        }
        let is_end_moved = !tombstoned.last.is_empty();
        if is_end_moved && plan.start.is_none() {
            plan.start.clone_from(&tombstoned.parent);
        }
        let end = chains.leaf().filter(|_| !is_end_moved);
        let mut parent = plan.start.as_ref().or(end).cloned();
        let first = plan.drafts.iter().position(|draft| !draft.is_sidechain());
        for (at, draft) in plan.drafts.iter_mut().enumerate() {
            let is_first = Some(at) == first;
            if draft.keeps.is_some() {
                if let Some(before) = &parent
                    && !draft.has_member("logicalParentUuid")
                {
                    draft.set("logicalParentUuid", &before.to_string());
                }
                draft.set_parent(Parent::Root);
            } else {
                let is_answer = chains.has_call_of(draft);
                draft.set_parent(match &plan.start {
                    Some(start) if is_first && !is_answer => Parent::Entry(start.clone()),
                    None if is_first && is_end_moved => Parent::Root,
                    _ => Parent::Chain,
                });
            }
            parent.clone_from(&draft.uuid);
        }
        Ok(plan)
    }

    /// Notes that a message is not written.
    fn skip(&mut self, at: usize, message: &Draft, reason: SkipReason) {
        let type_name = message.text_of("type").unwrap_or_default();
        let is_alike = |one: &&mut Skipped| one.reason == reason && one.type_name == type_name;
        match self.skipped.iter_mut().find(is_alike) {
            Some(alike) => alike.count += 1,
            None => self.skipped.push(Skipped {
                type_name,
                reason,
                count: 1,
                first: at,
            }),
        }
    }
}

/// Returns whether sessions contain messages of this kind.
fn is_kept_on_disk(message: &Draft) -> bool {
    message.kind.is_in_tree()
}
