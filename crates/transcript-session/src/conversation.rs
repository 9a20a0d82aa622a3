//! The conversation of a session as a list, and how much of it a compaction keeps.

use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw};
use transcript_messages::Role;
use transcript_reader::{Bodies, Prompt, shorten};
use transcript_resume::{ConversationPath, Policy, is_prompt};
use transcript_writer::EntryId;

use crate::error::Error;
use crate::history::History;
use crate::resume_point::{entry_id, splits_pair};

/// One entry of the conversation: a message, an attachment, a system line or a boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationEntry {
    /// The id to rewind, fork or compact with; `None` for a line without a `uuid`.
    pub id: Option<EntryId>,
    /// The kind of the line.
    pub kind: EntryKind,
    /// The role of the message; `None` for entries that are not messages.
    pub role: Option<Role>,
    /// Whether a person wrote it and a turn starts with it.
    pub is_prompt: bool,
    /// The preview: the text that a person typed, as [lists](transcript_reader::Prompt) show it, without the
    /// references before the question: `/compact`, `! ls -l`. Of other messages the first text on one line, at most
    /// 200 UTF-16 units long; of an answer without a text the names of the tools that it calls.
    pub preview: String,
    /// The number of tokens that the model was given for this answer, cached ones included: how full the context
    /// was. `None` where the line does not say.
    pub context_tokens: Option<u64>,
    /// The number of tokens of the answer; every line of one answer names the same number.
    pub output_tokens: Option<u64>,
}

/// An entry of a [story](History::story).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoryEntry {
    /// The entry.
    pub entry: ConversationEntry,
    /// The number of its chapter, from 0. Each one after the first starts with a boundary.
    pub chapter: usize,
    /// Whether the model sees it when the conversation continues.
    pub in_context: bool,
}

/// The entries that a compaction keeps word for word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// Only the summary continues the conversation.
    Nothing,
    /// These entries, in their order. A call is kept together with its result.
    Entries(Vec<EntryId>),
    /// The last turns, each from its prompt on. Earlier turns are kept as well where a call and its
    /// result would be separated otherwise; nothing is kept if that is so for every turn. Fewer are
    /// kept if the conversation does not have that many.
    LastTurns(usize),
}

impl From<&[EntryId]> for Keep {
    fn from(entries: &[EntryId]) -> Self {
        Self::Entries(entries.to_vec())
    }
}

impl From<&Vec<EntryId>> for Keep {
    fn from(entries: &Vec<EntryId>) -> Self {
        Self::Entries(entries.clone())
    }
}

impl From<Vec<EntryId>> for Keep {
    fn from(entries: Vec<EntryId>) -> Self {
        Self::Entries(entries)
    }
}

impl History {
    /// Returns the entries of the conversation, oldest first, from the last compaction on.
    ///
    /// ```
    /// use transcript_session::{History, Policy};
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # let answer = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    /// #     [{"type": "text", "text": "Most fourth ones."}], "usage": {"output_tokens": 5}}"#;
    /// # session.append_all(Draft::assistant(answer)?)?;
    /// # session.close()?;
    /// let entries = History::open(&path)?.entries(Policy::Recover)?;
    /// let prompts = entries.iter().filter(|entry| entry.is_prompt);
    /// let prompts: Vec<&str> = prompts.map(|entry| &*entry.preview).collect();
    /// assert_eq!(prompts, ["Which years have a leap day?"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn entries(&self, policy: Policy) -> Result<Vec<ConversationEntry>, Error> {
        self.listed(&self.tree(policy).path())
    }

    /// Returns the entries of the whole conversation, oldest first, each once: those that compactions
    /// removed, in chapters, and those that the model sees.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn story(&self, policy: Policy) -> Result<Vec<StoryEntry>, Error> {
        let tree = self.tree(policy);
        let context = tree.path();
        let story = tree.unspliced().story(&context);
        let listed = self.listed(&story.path)?.into_iter().enumerate();
        let entries = listed.map(|(place, entry)| StoryEntry {
            entry,
            chapter: story.chapter_of(place),
            in_context: story.path.entries[place].in_context,
        });
        Ok(entries.collect())
    }

    fn listed(&self, path: &ConversationPath) -> Result<Vec<ConversationEntry>, Error> {
        let mut bodies = Bodies::new(self.source());
        let mut entries = Vec::new();
        for entry in &path.entries {
            let entry_ref = self.index().entry(entry.entry_no());
            let body = bodies.get(&entry_ref)?;
            let mut listed = ConversationEntry {
                id: entry_id(&entry_ref, self.index()),
                kind: entry_ref.kind(),
                role: None,
                is_prompt: false,
                preview: String::new(),
                context_tokens: None,
                output_tokens: None,
            };
            if let Ok(entry) = Entry::parse(body.text) {
                listed.read(entry.object(), is_prompt(&entry_ref));
            }
            entries.push(listed);
        }
        Ok(entries)
    }

    /// The entries that `keep` names.
    pub(crate) fn kept(&self, keep: &Keep, policy: Policy) -> Result<Vec<EntryId>, Error> {
        let turns = match keep {
            Keep::Nothing => return Ok(Vec::new()),
            Keep::Entries(entries) => return Ok(entries.clone()),
            Keep::LastTurns(turns) => *turns,
        };
        let entries = self.entries(policy)?;
        let prompts = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.is_prompt);
        let starts: Vec<usize> = prompts.map(|(at, _)| at).collect();
        let first = starts.len().saturating_sub(turns);
        // A result may come turns after its call: then the turns between are kept too.
        for start in starts.iter().take(first + 1).rev() {
            if turns == 0 {
                break;
            }
            let kept = entries[*start..]
                .iter()
                .filter_map(|entry| entry.id.clone());
            let kept: Vec<EntryId> = kept.collect();
            if !splits_pair(self.index(), &kept) {
                return Ok(kept);
            }
        }
        Ok(Vec::new())
    }
}

impl ConversationEntry {
    fn read(&mut self, line: &Object<'_>, may_be_prompt: bool) {
        let message = line.object("message");
        self.role = match self.kind {
            EntryKind::User => Some(Role::User),
            EntryKind::Assistant => Some(Role::Assistant),
            _ => None,
        };
        if self.kind == EntryKind::User {
            self.is_prompt = may_be_prompt && Prompt::starts_turn(line);
        }
        let content = message.as_ref().and_then(|message| message.get("content"));
        self.preview = match typed(line).filter(|_| self.kind == EntryKind::User) {
            Some(text) => text,
            None => content.map(preview).unwrap_or_default(),
        };
        let usage = message.as_ref().and_then(|message| message.object("usage"));
        let count = |name: &str| usage.as_ref().and_then(|usage| usage.get(name)?.u64());
        let given = [
            count("input_tokens"),
            count("cache_creation_input_tokens"),
            count("cache_read_input_tokens"),
        ];
        let given = given.into_iter().flatten().reduce(u64::saturating_add);
        self.context_tokens = given.filter(|_| self.kind == EntryKind::Assistant);
        self.output_tokens = count("output_tokens");
    }
}

/// Returns the text that a person typed, as lists show it.
fn typed(line: &Object<'_>) -> Option<String> {
    match Prompt::of(line) {
        Prompt::Text(text) | Prompt::Command(text) => Some(text),
        _ => None,
    }
}

/// The first text of a content, or the names of the tools that it calls.
fn preview(content: Raw<'_>) -> String {
    if let Some(text) = content.str() {
        return shorten(&text);
    }
    let blocks = content.array().unwrap_or_default();
    let blocks: Vec<_> = blocks.into_iter().filter_map(Raw::object).collect();
    let texts = blocks.iter().filter_map(|block| block.str("text"));
    let mut texts = texts
        .map(|text| shorten(&text))
        .filter(|text| !text.is_empty());
    texts.next().unwrap_or_else(|| {
        let names = blocks.iter().filter_map(|block| block.str("name"));
        let names: Vec<_> = names.map(|name| name.into_owned()).collect();
        shorten(&names.join(", "))
    })
}
