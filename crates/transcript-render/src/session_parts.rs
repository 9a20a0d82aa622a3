//! The parts of a session that documents show: the conversation, its subagents, and the branches that leave it.

use transcript_reader::{EntryNo, Index, Source};
use transcript_resume::items::{Cut, Displays, Nesting, SubagentOrigin, sidechains};
use transcript_resume::{ConversationPath, Story, Tree};

use crate::Result;
use crate::conversation::Conversation;
use crate::escape::Escaping;
use crate::html::HtmlConversations;
use crate::imported::BranchReasons;
use crate::words::count;

/// A part of the file of a session.
#[derive(Clone, Debug)]
pub struct SessionPart {
    /// Its entries.
    pub path: ConversationPath,
    /// Its kind.
    pub kind: PartKind,
}

/// The kind of a part of a session.
#[derive(Clone, Debug)]
pub enum PartKind {
    /// The conversation.
    Main,
    /// A branch that leaves the conversation.
    Branch {
        /// The entry after which it leaves; `None` of a branch with a root of its own.
        from: Option<EntryNo>,
    },
    /// A subagent in the same file.
    Sidechain(SubagentOrigin),
}

impl SessionPart {
    /// Returns the conversation, followed by its branches and by the subagents in the same file, if they are wanted.
    /// Without the entries that compactions removed, branches are those of the context.
    #[must_use]
    pub fn of_story(tree: &Tree<'_>, story: &Story, wanted: WantedParts) -> Vec<Self> {
        let mut parts = vec![Self {
            path: story.path.clone(),
            kind: PartKind::Main,
        }];
        if wanted.branches {
            let branches = if wanted.context {
                tree.branches_off(&story.path)
            } else {
                tree.branches_off_story(story)
            };
            parts.extend(branches.into_iter().map(|branch| Self {
                path: branch.path,
                kind: PartKind::Branch { from: branch.from },
            }));
        }
        if wanted.sidechains {
            let sidechains = sidechains(tree).into_iter();
            parts.extend(sidechains.map(|(origin, path)| Self {
                path,
                kind: PartKind::Sidechain(origin),
            }));
        }
        parts
    }

    fn first_entry(&self) -> Option<EntryNo> {
        self.path.entries.first().map(|entry| entry.entry_no())
    }

    /// Returns the title above it; `None` for the main conversation.
    fn title(&self, file: &ShownFile<'_>, reasons: &BranchReasons) -> Option<String> {
        match &self.kind {
            PartKind::Main => None,
            PartKind::Sidechain(origin) => Some(agent_title(origin, file.escaping)),
            PartKind::Branch { from } => {
                let entries = count(self.path.entries.len(), "entry");
                let branch = reasons.title(file.index, self.first_entry());
                let branch = file.escaping.one_line(&branch);
                Some(match from {
                    Some(from) => {
                        let line = file.index.entry(*from).line();
                        format!("{branch} · leaves at line {line} · {entries}")
                    }
                    None => format!("{branch} · with its own root · {entries}"),
                })
            }
        }
    }
}

/// The parts of a session that are shown besides the conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedParts {
    /// Branches.
    pub branches: bool,
    /// Subagents.
    pub sidechains: bool,
    /// Only the context: no entries that compactions removed.
    pub context: bool,
}

/// A file of a session.
#[derive(Clone, Copy, Debug)]
pub struct ShownFile<'s> {
    /// The file.
    pub source: &'s Source,
    /// Its index.
    pub index: &'s Index,
    /// The boundaries that closed the chapters of its story; `None` if only the context is shown.
    pub chapters: Option<&'s [EntryNo]>,
    /// The escaping of titles.
    pub escaping: Escaping,
}

impl<'s> ShownFile<'s> {
    /// Makes the conversation of a part as a whole.
    fn whole(
        &self,
        displays: &mut Displays<'_, '_>,
        path: &ConversationPath,
        title: Option<String>,
    ) -> Result<Conversation<'s>> {
        Conversation::new(self.source, self.index, displays, path, title)
    }

    /// Only the chapters of the main conversation are counted.
    fn other_chapters(&self) -> Option<&'static [EntryNo]> {
        self.chapters.map(|_| &[][..])
    }
}

/// The conversations of a session.
#[derive(Default)]
pub struct ShownSession<'s> {
    main: Vec<Conversation<'s>>,
    below: Vec<Conversation<'s>>,
    branches: Vec<Conversation<'s>>,
    /// For each branch, the entry after which it leaves.
    leaves_at: Vec<Option<EntryNo>>,
    origins: Vec<SubagentOrigin>,
}

impl<'s> ShownSession<'s> {
    /// Reads the parts of the file of a session. With a `cut` the conversation is read
    /// [in parts](Conversation::in_parts): it must be the only part then, and no subagent be added.
    ///
    /// # Errors
    /// When a body cannot be read.
    pub fn read(
        file: ShownFile<'s>,
        tree: &'s Tree<'s>,
        parts: &[SessionPart],
        cut: Option<Cut>,
    ) -> Result<Self> {
        let mut session = Self::default();
        if let Some(cut) = cut {
            let paths = parts.iter().map(|part| &part.path);
            let shown = paths.map(|path| {
                let shown = Conversation::in_parts(file.source, file.index, tree, path, cut)?;
                Ok(numbered(shown, file.chapters))
            });
            session.main = shown.collect::<Result<_>>()?;
            return Ok(session);
        }
        let has_branches = parts
            .iter()
            .any(|part| matches!(part.kind, PartKind::Branch { .. }));
        let reasons = has_branches.then(|| BranchReasons::read(file.source, file.index));
        let reasons = reasons.transpose()?.unwrap_or_default();
        let mut displays = Displays::new(tree);
        for part in parts {
            let title = part.title(&file, &reasons);
            let shown = file.whole(&mut displays, &part.path, title)?;
            match &part.kind {
                PartKind::Main => session.main.push(numbered(shown, file.chapters)),
                PartKind::Branch { from } => {
                    session.leaves_at.push(*from);
                    let first = part.first_entry();
                    let reason = first.and_then(|first| reasons.of(file.index, first));
                    let shown = numbered(shown, file.other_chapters());
                    session.branches.push(shown.with_branch_reason(reason));
                }
                PartKind::Sidechain(origin) => {
                    session.origins.push(origin.clone());
                    session.below.push(shown);
                }
            }
        }
        Ok(session)
    }

    /// Adds the conversation of a subagent that has a file of its own.
    ///
    /// # Errors
    /// When a body cannot be read.
    pub fn add_agent(
        &mut self,
        origin: SubagentOrigin,
        file: ShownFile<'s>,
        tree: &Tree<'_>,
        path: &ConversationPath,
    ) -> Result<()> {
        let title = agent_title(&origin, file.escaping);
        let shown = file.whole(&mut Displays::new(tree), path, Some(title))?;
        self.below.push(numbered(shown, file.other_chapters()));
        self.origins.push(origin);
        Ok(())
    }

    /// Returns the conversations as documents show them: the main one, subagents, then branches.
    #[must_use]
    pub fn ordered(self) -> OrderedConversations<'s> {
        let order = self.main.into_iter().chain(self.below);
        let conversations: Vec<_> = order.chain(self.branches).collect();
        let displays: Vec<_> = conversations.iter().map(Conversation::display).collect();
        let nesting = Nesting::new(&displays, &self.origins);
        OrderedConversations {
            conversations,
            nesting,
            branches: self.leaves_at,
        }
    }
}

/// Makes a conversation a story whose chapters have numbers.
fn numbered<'s>(shown: Conversation<'s>, chapters: Option<&'s [EntryNo]>) -> Conversation<'s> {
    match chapters {
        Some(chapters) => shown.with_chapters(chapters),
        None => shown,
    }
}

fn agent_title(origin: &SubagentOrigin, escaping: Escaping) -> String {
    match &origin.agent {
        Some(agent) => format!("subagent {}", escaping.one_line(agent)),
        None => "subagent".to_owned(),
    }
}

/// The conversations of a session in the order in which documents show them.
pub struct OrderedConversations<'s> {
    /// The main one, those of subagents, then branches.
    pub conversations: Vec<Conversation<'s>>,
    /// Below which call each subagent is.
    pub nesting: Nesting,
    branches: Vec<Option<EntryNo>>,
}

impl OrderedConversations<'_> {
    /// Returns the conversations of a page.
    #[must_use]
    pub fn html(&self) -> HtmlConversations<'_> {
        HtmlConversations {
            conversations: &self.conversations,
            nesting: &self.nesting,
            branches: &self.branches,
        }
    }

    /// Returns the numbers of the branches among the conversations.
    #[must_use]
    pub fn branch_numbers(&self) -> std::ops::Range<usize> {
        let all = self.conversations.len();
        all - self.branches.len()..all
    }
}
