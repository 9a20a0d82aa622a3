//! Appends those messages of a list that the file does not contain yet.

use transcript_format::kind::EntryKind;

use crate::chain::Chains;
use crate::draft::{Draft, EntryId, Parent};
use crate::error::{Error, ErrorKind};
use crate::writer::{WriteState, Writer, Written};

/// Options for recording a list of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RecordOptions {
    start: Option<EntryId>,
    team: Option<Team>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Team {
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

    /// Sets the team that the messages belong to, and the name of the agent in it.
    pub fn team(mut self, name: impl Into<String>, agent: impl Into<String>) -> Self {
        self.team = Some(Team {
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
}

/// What to add of a list of messages.
#[derive(Default)]
struct Plan {
    drafts: Vec<Draft>,
    /// The parent of the first entry.
    start: Option<EntryId>,
}

impl Writer {
    /// Appends those of `messages` whose uuid is not in the file, with one write: all of them or
    /// none. Only user, assistant, system and attachment entries are written; progress, stream
    /// events and messages that only occur on a wire are skipped.
    ///
    /// The parent of the first new message is the last of the known messages at the start of the
    /// list. If the list does not start with a known one, it is [`RecordOptions::start`], or else
    /// the end of the conversation. Known messages after a new one do not change the parent: after
    /// a compaction, the new boundary and summary precede the preserved messages and must not
    /// become children of them, and the entries after a known summary must not either. The parents
    /// in `messages` are ignored. A result becomes a child of its call, a boundary a new root.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownParent`] when [`RecordOptions::start`] is not in the file, and as for
    /// [`append`](Self::append).
    pub fn record(
        &self,
        mut messages: Vec<Draft>,
        options: RecordOptions,
    ) -> Result<RecordOutcome, Error> {
        let RecordOptions { start, team } = options;
        self.shared().identify(&mut messages);
        let plan = |now: WriteState<'_>| {
            let Plan { mut drafts, start } = Plan::new(now.chains, messages, start);
            if let Some(team) = &team {
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

/// Returns whether sessions contain messages of this kind.
fn is_kept_on_disk(message: &Draft) -> bool {
    message.kind.is_chain() && message.kind != EntryKind::Progress
}
