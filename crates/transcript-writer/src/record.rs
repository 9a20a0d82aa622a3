//! Appends what is not there yet of a list of messages.

use transcript_format::kind::EntryKind;

use crate::chain::Chains;
use crate::draft::{Draft, EntryId, Parent};
use crate::error::{Error, ErrorKind};
use crate::writer::{WriteState, Writer, Written};

/// The team that messages are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// The name of the team.
    pub name: String,
    /// The name of the agent in it.
    pub agent: String,
}

/// What recording a list of messages came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordOutcome {
    /// The entries that were added.
    pub entries: Vec<Written>,
    /// The last entry that was added; without one, the last known entry at the start of the list
    /// or else the parent that was given.
    pub last: Option<EntryId>,
}

/// What to add of a list.
#[derive(Default)]
struct Plan {
    drafts: Vec<Draft>,
    /// The entry that the first of them is a child of.
    start: Option<EntryId>,
}

impl Writer {
    /// Appends those of `messages` whose uuid the file does not hold, in one write: all of them or
    /// none. Only users, assistants, system entries and attachments are kept; progress, stream
    /// events and what only goes over a wire are passed over.
    ///
    /// The first new one is a child of the last known one, as long as known ones stand at the start of
    /// the list; else under `start`; else at the end of the conversation. Known ones behind it move
    /// nothing: after a compaction the new boundary and summary stand before the kept messages, and
    /// must not be chained to them, nor must what follows a summary that is known. What `messages`
    /// say of their parents does not count. A result is a child of its call, a boundary is a new root.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownParent`] when `start` is not in the file, and as for
    /// [`append`](Self::append).
    pub fn record(
        &self,
        mut messages: Vec<Draft>,
        start: Option<EntryId>,
        team: Option<&Team>,
    ) -> Result<RecordOutcome, Error> {
        self.shared().identify(&mut messages);
        let plan = |now: WriteState<'_>| {
            let Plan { mut drafts, start } = Plan::new(now.chains, messages, start);
            if let Some(team) = team {
                for draft in &mut drafts {
                    draft.set("teamName", &team.name);
                    draft.set("agentName", &team.agent);
                }
            }
            Ok::<_, ErrorKind>((drafts, start))
        };
        let (entries, start) = self.shared().append_planned(plan, |_, _| {})?;
        let last = entries.last().and_then(|entry| entry.uuid.clone());
        Ok(RecordOutcome {
            entries,
            last: last.or(start),
        })
    }
}

impl Plan {
    fn new(chains: &Chains, messages: Vec<Draft>, start: Option<EntryId>) -> Self {
        let mut plan = Self {
            start,
            ..Self::default()
        };
        let mut new = crate::ids::EntryIds::new();
        for message in messages.into_iter().filter(is_kept_on_disk) {
            match &message.uuid {
                Some(uuid) if chains.knows(uuid) => {
                    if plan.drafts.is_empty() && !chains.is_kept(uuid) {
                        plan.start = message.uuid;
                    }
                }
                Some(uuid) if !new.insert(uuid.clone()) => {}
                _ => plan.drafts.push(message),
            }
        }
        let mut parent = plan.start.as_ref().or(chains.leaf()).cloned();
        for (at, draft) in plan.drafts.iter_mut().enumerate() {
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
                    Some(start) if at == 0 && !is_answer => Parent::Entry(start.clone()),
                    _ => Parent::Chain,
                });
            }
            parent.clone_from(&draft.uuid);
        }
        plan
    }
}

/// Whether a message is one that sessions keep.
fn is_kept_on_disk(message: &Draft) -> bool {
    message.kind.is_chain() && message.kind != EntryKind::Progress
}
