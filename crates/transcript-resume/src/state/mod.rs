//! The settings of a session at the end of a path, and its token usage.

mod calls;
mod earlier;
mod files;
mod metadata;
mod model;
mod reader;
mod sweep;
mod todos;
mod usage;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use transcript_format::object::Str;
pub use transcript_format::title::TitleSource;

pub use calls::Denial;
pub use files::{FileAccess, KnownFile};
pub use metadata::{Costs, FileHistory, ModelCosts, PullRequest, QueuedPrompt, Worktree};
pub use model::ModelFallback;
pub(crate) use reader::StateReader;
pub(crate) use sweep::title;
pub use todos::Todo;
pub(crate) use usage::NO_MODEL;
pub use usage::{Usage, UsageTotals};

/// The settings of a session at the end of its path. What no line contains is `None`.
///
/// Most of it comes from the entries of the path. Metadata lines count for the whole file, as they
/// do not show which branch they belong to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PathState {
    /// The working folder of the last entry of the path that names one.
    pub cwd: Option<String>,
    /// The working folder of the first entry of the file that names one.
    pub original_cwd: Option<String>,
    /// The folder that the session was moved to: a client that lists its sessions uses it before
    /// the others.
    pub relocated_cwd: Option<String>,
    /// The git branch of [`Self::cwd`]; `HEAD` outside of a repository.
    pub git_branch: Option<String>,
    /// The entrypoint of the client that wrote the last entry, such as `cli` or `sdk-py`.
    pub entrypoint: Option<String>,
    /// The version of the client that wrote the last entry.
    pub version: Option<String>,
    /// The versions on the path, in order of first use.
    pub versions: Option<Vec<String>>,
    /// The model of the last real answer.
    pub model: Option<String>,
    /// The models that answered, in order of first use.
    pub models: Option<Vec<String>>,
    /// The model that the last command `/model` chose: its argument, else the name that the client
    /// showed. `None` after a return to the default, and when a model was chosen outside of the
    /// session.
    pub model_override: Option<String>,
    /// The last change to another model because one refused.
    pub model_fallback: Option<ModelFallback>,
    /// The permission mode, from an entry of the path or a `permission-mode` line, whichever is
    /// last in the file.
    pub permission_mode: Option<String>,
    /// The mode, such as `normal`.
    pub mode: Option<String>,
    /// The title, by the rule of [`TitleLines`](transcript_format::title::TitleLines) as in lists.
    pub title: Option<String>,
    /// The origin of the title.
    pub title_source: Option<TitleSource>,
    /// The tag.
    pub tag: Option<String>,
    /// The to-do list at the end of the path; empty when it was cleared. Its state from before a
    /// compaction is known again from the first entry that repeats it.
    pub todos: Option<Vec<Todo>>,
    /// The files that the model has read or written, each once, those accessed last at the end. Those
    /// from before the last compaction are [not in the context](KnownFile::in_context) any more.
    pub files: Option<Vec<KnownFile>>,
    /// The calls that were denied, in the order of their results.
    pub denials: Option<Vec<Denial>>,
    /// The number of commits that the client recognised in the output of commands (`gitOperation`),
    /// without amended ones. Clients before 2.1.156 record none, and commits by other means than a
    /// command of the session are not known. Includes those before the last compaction.
    pub commits: Option<u64>,
    /// The files that a client can restore, for each prompt of the path that has a snapshot.
    pub file_history: Option<Vec<FileHistory>>,
    /// The worktree that the session works in; `None` also after it left the worktree.
    pub worktree: Option<Worktree>,
    /// The name of the session among its agents.
    pub agent_name: Option<String>,
    /// Its colour among them.
    pub agent_color: Option<String>,
    /// The agent that the session runs as.
    pub agent_setting: Option<String>,
    /// The prompts that were queued while the model worked and never sent, oldest first; empty when
    /// all were sent. Clients queue notices about finished background tasks as well.
    pub queued_prompts: Option<Vec<QueuedPrompt>>,
    /// The pull requests that the session created, each once.
    pub pull_requests: Option<Vec<PullRequest>>,
    /// The time of the last message of the path, as written in the file.
    pub last_interaction: Option<String>,
    /// The milliseconds that turns of the path took, as far as recorded.
    pub turn_duration_ms: Option<u64>,
    /// The number of these turns.
    pub timed_turns: Option<u64>,
    /// The counts of the client itself, over resumes and subagents.
    pub costs: Option<Costs>,
}

impl PathState {
    /// Notes that the texts of these entries are not in the context.
    pub(crate) fn forget_texts_of(&mut self, entries: &HashSet<String>) {
        for file in self.files.iter_mut().flatten() {
            let is_omitted = file
                .uuid
                .as_ref()
                .is_some_and(|uuid| entries.contains(uuid));
            file.in_context &= !is_omitted;
        }
    }

    /// Returns the state without the numbers of lines, which are others in a file with fewer lines of metadata.
    #[must_use]
    pub fn without_lines(mut self) -> Self {
        let files = self.files.iter_mut().flatten();
        files.for_each(|file| file.line = None);
        let denials = self.denials.iter_mut().flatten();
        denials.for_each(|denial| denial.line = None);
        if let Some(fallback) = &mut self.model_fallback {
            fallback.line = None;
        }
        self
    }
}

/// Sets `field` to a text that is not empty. Returns whether there was one.
fn set(field: &mut Option<String>, value: Option<Str<'_>>) -> bool {
    let Some(text) = value.filter(|text| !text.is_empty()) else {
        return false;
    };
    if field.as_deref() != Some(&*text) {
        *field = Some(text.into_owned());
    }
    true
}
