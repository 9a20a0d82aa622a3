//! The header above a conversation: session, title, folder, branch, model, times, messages and tokens;
//! and the command that continues it, below.

use jiff::tz::TimeZone;
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::usage::Usage;
use transcript_reader::{Bodies, Source};
use transcript_resume::{ConversationPath, PathState, Tree};

use crate::Result;
use crate::imported::maker;
use crate::moment::clock;
use crate::options::RenderOptions;

/// The maximum number of entries, from the last one back, that are read to find folder, branch and model.
const MAX_SEARCHED_ENTRIES: usize = 64;

/// Facts about a session that do not require reading all of it.
#[derive(Debug, Default)]
pub struct Header {
    /// The id of the session.
    pub session_id: Option<String>,
    /// The agent that wrote it; `None` for Claude Code.
    pub maker: Option<String>,
    /// The name of the policy that chose the conversation.
    pub policy: &'static str,
    /// The last title.
    pub title: Option<String>,
    /// The working directory, relative to the home directory if possible.
    pub folder: Option<String>,
    /// The branch of the repository.
    pub branch: Option<String>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// The times of the first and the last entry.
    pub times: Option<String>,
    /// The number of messages of the user and the assistant.
    pub messages: usize,
    /// The number of tokens of the context at the last answer, which included.
    pub tokens: Option<u64>,
    /// The shell command that continues the conversation, if the caller knows it.
    pub command: Option<String>,
}

impl Header {
    /// Reads the facts about the conversation along `path`.
    ///
    /// # Errors
    /// When a body cannot be read.
    pub fn read(
        source: &Source,
        session_id: Option<String>,
        tree: &Tree<'_>,
        path: &ConversationPath,
        options: &RenderOptions,
    ) -> Result<Self> {
        let mut last = path.clone();
        last.entries
            .drain(..path.entries.len().saturating_sub(MAX_SEARCHED_ENTRIES));
        let state = PathState::read_heading(tree, &last, &mut Bodies::new(source))?;
        // Clients write `HEAD` outside a repository.
        let branch = state.git_branch.filter(|branch| branch != "HEAD");
        Ok(Self {
            command: None,
            messages: messages(tree, path),
            tokens: context_tokens(source, tree, &last)?,
            session_id,
            maker: maker(source, tree.index())?,
            policy: tree.policy().name(),
            title: state.title,
            folder: state.cwd.as_deref().map(|cwd| options.below_home(cwd)),
            branch,
            model: state.model,
            times: times(tree, path, &options.zone),
        })
    }

    /// Returns agent, folder, branch, model and times.
    #[must_use = "iterators are lazy"]
    pub fn place(&self) -> impl Iterator<Item = String> {
        let parts = [
            &self.maker,
            &self.folder,
            &self.branch,
            &self.model,
            &self.times,
        ];
        parts.into_iter().flatten().cloned()
    }
}

fn messages(tree: &Tree<'_>, path: &ConversationPath) -> usize {
    let index = tree.index();
    let entries = path.entries.iter();
    let kinds = entries.map(|entry| index.entry(entry.entry_no()).kind());
    kinds.filter(|kind| kind.is_message()).count()
}

/// Returns the tokens that the last answer of a path read and wrote.
fn context_tokens(
    source: &Source,
    tree: &Tree<'_>,
    path: &ConversationPath,
) -> Result<Option<u64>> {
    let mut bodies = Bodies::new(source);
    for entry in path.entries.iter().rev() {
        let entry = tree.index().entry(entry.entry_no());
        if entry.kind() != EntryKind::Assistant {
            continue;
        }
        let body = bodies.get(&entry)?;
        let parsed = Entry::parse(body.text).ok();
        let message = parsed.and_then(|parsed| parsed.object().object("message"));
        let usage = message.and_then(|message| message.read::<Usage<'_>>("usage"));
        let tokens = usage.and_then(|usage| usage.context_tokens());
        if tokens.is_some() {
            return Ok(tokens);
        }
    }
    Ok(None)
}

fn times(tree: &Tree<'_>, path: &ConversationPath, zone: &TimeZone) -> Option<String> {
    let index = tree.index();
    let entries = path.entries.iter();
    let millis = entries.filter_map(|entry| index.entry(entry.entry_no()).millis());
    let (first, last) = millis.fold(None, |range: Option<(i64, i64)>, at| {
        Some(range.map_or((at, at), |(first, last)| (first.min(at), last.max(at))))
    })?;
    let (first, last) = (clock(first, zone)?, clock(last, zone)?);
    let form = if first.date() == last.date() {
        "%H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    let (first, last) = (
        first.strftime("%Y-%m-%d %H:%M").to_string(),
        last.strftime(form).to_string(),
    );
    Some(if first.ends_with(&last) {
        first
    } else {
        format!("{first} – {last}")
    })
}
