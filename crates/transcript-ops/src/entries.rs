//! The entries of a conversation.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_reader::{Bodies, EntryNo};
use transcript_render::{PartKind, SessionPart, WantedParts, explain};
use transcript_resume::{Story, Tree};
use transcript_session::History;

use crate::context::{Context, PolicyName};
use crate::conversation_end::ConversationEnd;
use crate::sink::{Result, Sink, shown};
use crate::wire::{
    EntryRecord, ReplayBranch, ReplayEnd, ReplayHead, ReplayRecord, ReplaySidechain,
};

/// The options of `entries`: the session, and the entries to read.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntriesSettings {
    /// The session: a path, an id, the start of one, a title, the id of a subagent, or `latest`.
    pub session: PathBuf,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the client does.
    #[serde(default)]
    pub policy: PolicyName,
    /// Whether only what the model sees is returned: nothing that compactions removed.
    #[serde(default)]
    pub context: bool,
    /// Whether each entry has its whole line.
    #[serde(default)]
    pub raw_entries: bool,
}

/// The conversation of a session, in parts.
#[derive(Debug)]
pub struct Conversation<'h> {
    /// The session.
    pub history: &'h History,
    /// Its tree.
    pub tree: Tree<'h>,
    /// The conversation.
    pub story: Story,
    /// Whether it has only what the model sees.
    pub is_context: bool,
    /// The boundaries that closed its chapters.
    pub(crate) boundaries: Vec<EntryNo>,
}

impl<'h> Conversation<'h> {
    /// Chooses the conversation that ends at `end`; only what the model sees of it with `is_context`.
    ///
    /// # Errors
    /// When `end` names an entry that is not in it.
    pub fn new(
        history: &'h History,
        policy: transcript_session::Policy,
        end: &ConversationEnd,
        is_context: bool,
    ) -> std::result::Result<Self, crate::failure::Failure> {
        let tree = history.tree(policy);
        let (tree, story) = if is_context {
            let path = end.path(&tree)?;
            (tree, Story::from(path))
        } else {
            end.story(tree)?
        };
        Ok(Self {
            history,
            tree,
            boundaries: story.boundaries().collect(),
            story,
            is_context,
        })
    }

    /// Returns the conversation, followed by its branches and subagents if they are wanted.
    #[must_use]
    pub fn parts(&self, branches: bool, sidechains: bool) -> Vec<SessionPart> {
        let wanted = WantedParts {
            branches,
            sidechains,
            context: self.is_context,
        };
        SessionPart::of_story(&self.tree, &self.story, wanted)
    }

    /// Writes the records of entries, between those of the session and of the end. `name` stands for the path of the file.
    ///
    /// # Errors
    /// When an entry cannot be read; those of the sink.
    pub fn write(
        &self,
        parts: &[SessionPart],
        raw_entries: bool,
        name: Option<&str>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (history, path) = (self.history, &self.story.path);
        let mut head = ReplayHead::new(history, &self.tree, path);
        let chapters = self.story.chapters.len() as u64;
        head.chapters = (!self.is_context).then_some(chapters);
        if let Some(name) = name {
            head.path = name.to_owned();
        }
        sink.record(&ReplayRecord::Session(head))?;
        let (index, is_terminal) = (history.index(), sink.is_terminal());
        let mut bodies = Bodies::new(history.source());
        let mut line = Vec::new();
        for part in parts {
            match &part.kind {
                PartKind::Main => {}
                PartKind::Branch { from } => {
                    let branch = ReplayBranch::new(history, *from, &part.path);
                    sink.record(&ReplayRecord::Branch(branch))?;
                }
                PartKind::Sidechain(origin) => {
                    let sidechain = ReplaySidechain::new(origin.agent.as_deref());
                    sink.record(&ReplayRecord::Sidechain(sidechain))?;
                }
            }
            for entry in &part.path.entries {
                let entry_ref = index.entry(entry.entry_no());
                let body = bodies.get(&entry_ref)?;
                line.clear();
                EntryRecord::new(index, &entry_ref, body.text, entry, raw_entries)
                    .write(&mut line, |json| shown(is_terminal, json))?;
                sink.json(&line)?;
            }
        }
        let findings = explain::findings(&self.tree, path).len();
        sink.record(&ReplayRecord::End(ReplayEnd::new(findings, path)))
    }
}

/// Writes the records of the entries of a conversation.
pub(crate) fn entries(
    settings: &EntriesSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    context.follow_policy(settings.policy);
    let history = context.read(context.open(&settings.session)?)?;
    let end = ConversationEnd::default();
    let conversation = Conversation::new(&history, settings.policy.into(), &end, settings.context)?;
    let parts = conversation.parts(false, false);
    conversation.write(&parts, settings.raw_entries, None, sink)
}
