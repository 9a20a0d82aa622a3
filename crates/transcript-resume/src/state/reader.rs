//! Reads state and usage at the end of a path.

use std::collections::HashSet;

use transcript_format::kind::{AttachmentKind, EntryKind};
use transcript_format::object::{Raw, Str};
use transcript_format::scan::Body;
use transcript_reader::{BodySource, ConversationPath, EntryNo, EntryRef, Index, Tree};

use super::calls::{Denial, OpenCalls, ResultBlock, is_commit};
use super::files::{AccessPosition, KnownFiles};
use super::model::ModelChoice;
use super::sweep::{self, Sweep};
use super::todos::Todos;
use super::usage::{NO_MODEL, Usage, UsageTotals};
use super::{PathState, earlier, set};
use crate::sent::may_be_sent;

impl PathState {
    /// Reads the state at the end of `path`, and the usage of its answers, by model ordered by
    /// name. [`RequestOptions::request_with_state`](crate::request::RequestOptions::request_with_state) returns both with a request.
    ///
    /// Holds one body at a time. Of `summary`, title, tag, mode, agent, worktree and cost lines
    /// only the last of each kind is read; lines about queues, files and pull requests all are, and
    /// before the last compaction the results of calls. The memory used grows with the answers of the
    /// path and the files that are tracked at its prompts or were read.
    ///
    /// # Errors
    /// The errors of `bodies`.
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
            if !may_be_sent(&entry_ref) {
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
    /// The errors of `bodies`.
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
            if may_be_sent(&entry_ref)
                && let Ok(body) = Body::parse(bodies.body(&entry_ref)?)
            {
                record.add(&entry_ref, &body);
            }
        }
        let (title, title_source) = sweep::title(index, bodies)?.unzip();
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
        if entry_ref.kind() != EntryKind::Assistant {
            self.usage.add_link(body);
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
            let call = self.calls.remove_answered(result.call.as_deref());
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
            if earlier::may_mention_work(text)
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
        sweep::read(self.metadata, bodies, &mut state, self.permission_mode_at)?;
        Ok((state, self.usage.models()))
    }
}

/// The work in a part of a conversation, by the results of calls and the texts of the client.
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

fn place(index: &Index, entry_ref: &EntryRef<'_>, body: &Body<'_>) -> AccessPosition {
    let call = ResultBlock::all(body).find_map(|result| result.call);
    AccessPosition {
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
