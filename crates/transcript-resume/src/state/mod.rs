//! The settings of a session at the end of a path, and its token usage.

mod calls;
mod earlier;
mod files;
mod metadata;
mod model;
mod todos;
mod usage;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use transcript_format::kind::{AttachmentKind, EntryKind};
use transcript_format::object::{Raw, Str};
use transcript_format::scan::Body;
pub use transcript_format::title::TitleSource;
use transcript_reader::{EntryNo, EntryRef, Index};

use crate::path::ConversationPath;
use crate::request::{self, BodySource};
use crate::tree::Tree;
pub use calls::Denial;
use calls::{OpenCalls, ResultBlock, is_commit};
pub use files::{FileAccess, KnownFile};
use files::{KnownFiles, Place};
use metadata::Sweep;
pub(crate) use metadata::title;
pub use metadata::{Costs, FileHistory, ModelCosts, PullRequest, QueuedPrompt, Worktree};
use model::ModelChoice;
pub use model::ModelFallback;
pub use todos::Todo;
use todos::Todos;
pub(crate) use usage::NO_MODEL;
pub use usage::{Usage, UsageTotals};

/// The settings of a session at the end of its path. What no line contains is `None`.
///
/// Most of it comes from the entries of the path. Metadata lines count for the whole file, as they
/// do not show which branch they belong to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
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
    /// How the client that wrote the last entry was started, such as `cli` or `sdk-py`.
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

    /// Reads the state at the end of `path`, and the usage of its answers, by model ordered by
    /// name. [`request::RequestOptions::request_with_state`] returns both with a request.
    ///
    /// Holds one body at a time. Of `summary`, title, tag, mode, agent, worktree and cost lines
    /// only the last of each kind is read; lines about queues, files and pull requests all are, and
    /// before the last compaction the results of calls. The memory used grows with the answers of the
    /// path and the files that are tracked at its prompts or were read.
    ///
    /// # Errors
    /// Those of `bodies`.
    ///
    /// # Panics
    /// When `path` does not belong to the index of `tree`.
    pub fn read<B: BodySource>(
        tree: &Tree<'_>,
        path: &ConversationPath,
        bodies: &mut B,
    ) -> Result<(Self, Vec<Usage>), B::Error> {
        let mut record = StateReader::new(tree.index(), path);
        for entry in &path.entries {
            let entry_ref = tree.index().entry(entry.entry_no());
            if !request::may_be_sent(&entry_ref) {
                continue;
            }
            record.read_before(&entry_ref, bodies)?;
            if let Ok(body) = Body::parse(bodies.body(&entry_ref)?) {
                record.add(&entry_ref, &body);
            }
        }
        record.finish(bodies)
    }

    /// Reads only folder, branch and model of the entries of `path`, which may be the last ones of a
    /// path, and the title. All other metadata lines are skipped.
    ///
    /// # Errors
    /// Those of `bodies`.
    ///
    /// # Panics
    /// When `path` does not belong to the index of `tree`.
    pub fn read_heading<B: BodySource>(
        tree: &Tree<'_>,
        path: &ConversationPath,
        bodies: &mut B,
    ) -> Result<Self, B::Error> {
        let index = tree.index();
        let mut record = StateReader::new(index, path);
        for entry in &path.entries {
            let entry_ref = index.entry(entry.entry_no());
            if request::may_be_sent(&entry_ref)
                && let Ok(body) = Body::parse(bodies.body(&entry_ref)?)
            {
                record.add(&entry_ref, &body);
            }
        }
        let (title, title_source) = metadata::title(index, bodies)?.unzip();
        Ok(Self {
            title,
            title_source,
            ..record.state
        })
    }
}

/// Reads state and usage from the bodies of a path, oldest first, and the metadata lines between
/// them.
pub(crate) struct StateReader<'i> {
    metadata: Sweep<'i>,
    /// The boundary of the last compaction.
    boundary: Option<EntryNo>,
    calls: OpenCalls,
    denials: Vec<Denial>,
    work: Work,
    state: PathState,
    permission_mode_at: Option<EntryNo>,
    versions: Distinct,
    models: Distinct,
    todos: Todos,
    usage: UsageTotals,
}

impl<'i> StateReader<'i> {
    pub(crate) fn new(index: &'i Index, path: &ConversationPath) -> Self {
        Self {
            metadata: Sweep::new(index, path),
            boundary: earlier::boundary(index, path),
            calls: OpenCalls::default(),
            denials: Vec::new(),
            work: Work::default(),
            state: PathState::default(),
            permission_mode_at: None,
            versions: Distinct::default(),
            models: Distinct::default(),
            todos: Todos::default(),
            usage: UsageTotals::new(),
        }
    }

    /// Reads the metadata lines before an entry of the path, so that the file is read once, in its
    /// order.
    pub(crate) fn read_before<B: BodySource>(
        &mut self,
        entry_ref: &EntryRef<'_>,
        bodies: &mut B,
    ) -> Result<(), B::Error> {
        self.metadata.advance(entry_ref.number().get(), bodies)
    }

    pub(crate) fn add(&mut self, entry_ref: &EntryRef<'_>, body: &Body<'_>) {
        let state = &mut self.state;
        let object = &body.object;
        let text = |key: &str| object.get(key).and_then(Raw::str);
        set(&mut state.cwd, text("cwd"));
        set(&mut state.git_branch, text("gitBranch"));
        set(&mut state.entrypoint, text("entrypoint"));
        if set(&mut state.version, text("version")) {
            self.versions.add(state.version.as_deref());
        }
        if entry_ref.kind().is_message() {
            set(&mut state.last_interaction, text("timestamp"));
        }
        match entry_ref.kind() {
            EntryKind::User => {
                if set(&mut state.permission_mode, text("permissionMode")) {
                    self.permission_mode_at = Some(entry_ref.number());
                }
                if let Some(result) = &body.tool_use_result {
                    self.todos.add_result(result);
                }
                let file = self.add_results(entry_ref, body);
                let index = self.metadata.index();
                self.work.add(index, entry_ref, body, file.as_deref());
            }
            EntryKind::Assistant => self.add_answer(body),
            EntryKind::Attachment => match entry_ref.attachment_kind() {
                Some(AttachmentKind::TaskReminder) => self.todos.add_reminder(object, true),
                Some(AttachmentKind::TodoReminder) => self.todos.add_reminder(object, false),
                _ => self.work.add(self.metadata.index(), entry_ref, body, None),
            },
            EntryKind::System => self.work.add(self.metadata.index(), entry_ref, body, None),
            _ => {}
        }
    }

    /// Adds the results of a user entry. Returns the file that the input of the call named.
    fn add_results(&mut self, entry_ref: &EntryRef<'_>, body: &Body<'_>) -> Option<String> {
        let named = body.object.str("toolDenialKind");
        let named = named.as_deref().filter(|kind| !kind.is_empty());
        let mut file = None;
        for result in ResultBlock::all(body) {
            let call = self.calls.take(result.call.as_deref());
            let (tool, of_call) = call.map_or((None, None), |call| (call.tool, call.file));
            if let Some((kind, reason)) = result.denial(named) {
                let place = place(self.metadata.index(), entry_ref, body);
                self.denials.push(Denial {
                    call: result.call.map(Str::into_owned),
                    tool,
                    kind,
                    reason,
                    line: place.line,
                    timestamp: place.timestamp,
                });
            }
            file = file.or(of_call);
        }
        file
    }

    fn add_answer(&mut self, body: &Body<'_>) {
        let Some(message) = &body.message else {
            return;
        };
        self.calls.add(body);
        self.usage.add_message(&body.object, message);
        let model = message.str("model").filter(|name| name != NO_MODEL);
        if set(&mut self.state.model, model) {
            self.models.add(self.state.model.as_deref());
        }
    }

    /// Adds the metadata lines.
    pub(crate) fn finish<B: BodySource>(
        mut self,
        bodies: &mut B,
    ) -> Result<(PathState, Vec<Usage>), B::Error> {
        let mut state = self.state;
        state.versions = self.versions.finish();
        state.models = self.models.finish();
        state.todos = self.todos.finish();
        let index = self.metadata.index();
        let mut before = Work::default();
        let boundary = self.boundary.into_iter();
        for entry_no in boundary.flat_map(|boundary| earlier::entries(&self.metadata, boundary)) {
            let entry_ref = index.entry(entry_no);
            let text = bodies.body(&entry_ref)?;
            if earlier::may_count(text)
                && let Ok(body) = Body::parse(text)
            {
                before.add(index, &entry_ref, &body, None);
            }
        }
        let cleared = self.metadata.take_cleared();
        let commits = self.work.commits + before.commits;
        state.commits = (commits > 0).then_some(commits);
        state.files = self.work.files.finish(before.files, &cleared);
        state.model_override = self.work.model.finish(before.model);
        state.denials = (!self.denials.is_empty()).then_some(self.denials);
        metadata::read(self.metadata, bodies, &mut state, self.permission_mode_at)?;
        Ok((state, self.usage.models()))
    }
}

/// What the results of calls and the texts of the client say, of a part of a conversation.
#[derive(Debug, Default)]
struct Work {
    files: KnownFiles,
    commits: u64,
    model: ModelChoice,
}

impl Work {
    /// Adds an entry. `file` is the file that the input of its call named.
    fn add(
        &mut self,
        index: &Index,
        entry_ref: &EntryRef<'_>,
        body: &Body<'_>,
        file: Option<&str>,
    ) {
        let place = || place(index, entry_ref, body);
        match entry_ref.kind() {
            EntryKind::Attachment => self.files.add_attachment(&body.object, place),
            EntryKind::System => {
                if let Some(text) = body.object.str("content") {
                    self.model.add(&text);
                }
            }
            _ => {
                if let Some(result) = &body.tool_use_result {
                    let failed = ResultBlock::all(body).any(|block| block.is_error);
                    if !failed {
                        self.files.add_result(result, file, place);
                    }
                    self.commits += u64::from(is_commit(result));
                }
                if let Some(text) = tagged_text(body) {
                    self.model.add(&text);
                }
            }
        }
    }
}

/// Returns the text of a message that starts with a tag, as those of commands and their output do.
fn tagged_text<'a>(body: &Body<'a>) -> Option<Str<'a>> {
    let content = body.message.as_ref()?.get("content")?;
    let text = match &body.blocks {
        None => content,
        Some(blocks) => blocks.first()?.1.as_ref()?.get("text")?,
    };
    // Other texts, which may be long, need not be decoded.
    text.text().starts_with("\"<").then(|| text.str())?
}

fn place(index: &Index, entry_ref: &EntryRef<'_>, body: &Body<'_>) -> Place {
    let call = ResultBlock::all(body).find_map(|result| result.call);
    Place {
        call: call.map(Str::into_owned),
        uuid: entry_ref.uuid().map(|id| index.id_text(id)),
        line: entry_ref.known_line(),
        timestamp: body.object.str("timestamp").map(Str::into_owned),
    }
}

/// Names in order of first appearance, each once.
#[derive(Debug, Default)]
struct Distinct {
    seen: HashSet<String>,
    names: Vec<String>,
}

impl Distinct {
    fn add(&mut self, name: Option<&str>) {
        if let Some(name) = name
            && !self.seen.contains(name)
        {
            self.seen.insert(name.to_owned());
            self.names.push(name.to_owned());
        }
    }

    fn finish(self) -> Option<Vec<String>> {
        (!self.names.is_empty()).then_some(self.names)
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
