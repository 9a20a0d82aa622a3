//! Reads the metadata lines of a file: the last line of each kind, the queue, backups, turns and titles.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use transcript_format::kind::{AttachmentKind, EntryKind, SystemKind};
use transcript_format::metadata;
use transcript_format::object::{Object, Raw, Str};
use transcript_format::system::{MicrocompactBoundary, TurnDuration};
use transcript_format::title::{TITLE_SCAN_LEN, TitleLines, TitleSource};
use transcript_reader::{
    BodySource, ConversationPath, EntryNo, EntryRef, Id, Index, SessionFile, SessionRow, is_prompt,
    title_beside,
};

use super::metadata::{Costs, FileHistory, PullRequest, QueuedPrompt, owned, worktree};
use super::{ModelFallback, PathState, set};

/// Fills in the fields that do not come from the path. `permission_mode_at` is the entry of the path
/// that names the permission mode, if any does.
pub(super) fn read<B: BodySource>(
    mut sweep: Sweep<'_>,
    bodies: &mut B,
    state: &mut PathState,
    permission_mode_at: Option<EntryNo>,
) -> Result<(), B::Error> {
    let index = sweep.index;
    sweep.advance(index.len(), bodies)?;
    let last = sweep.finish(bodies, state)?;
    // Where only the end of the file was read, its first folder is one that the session changed to later.
    if index.starts_at() == 0 {
        state.original_cwd = first_cwd(index, bodies)?;
    }

    let mut said = |kind: EntryKind| match last.get(&kind) {
        Some(last) => last_text(index, *last, kind, bodies),
        None => Ok(None),
    };
    let text = |said: Option<(EntryNo, String)>| Some(said?.1).filter(|text| !text.is_empty());
    state.tag = text(said(EntryKind::Tag)?);
    state.mode = text(said(EntryKind::Mode)?);
    state.agent_name = text(said(EntryKind::AgentName)?);
    state.agent_color = text(said(EntryKind::AgentColor)?);
    state.agent_setting = text(said(EntryKind::AgentSetting)?);
    state.relocated_cwd = text(said(EntryKind::Relocated)?);
    // Prompts of the path name the mode as well; the one that is later in the file counts.
    let mode = said(EntryKind::PermissionMode)?;
    if let Some((_, mode)) = mode.filter(|(line, _)| Some(*line) > permission_mode_at) {
        state.permission_mode = Some(mode);
    }
    if let Some(line) = last.get(&EntryKind::WorktreeState) {
        state.worktree = worktree(bodies.body(&index.entry(*line))?);
    }
    if let Some(line) = last.get(&EntryKind::CostState) {
        state.costs = Costs::read(bodies.body(&index.entry(*line))?);
    }
    (state.title, state.title_source) = title(index, bodies)?.unzip();
    Ok(())
}

/// Returns the title and its source. Lines count in the whole file; of the end of one, as lists find it.
pub(crate) fn title<B: BodySource>(
    index: &Index,
    bodies: &mut B,
) -> Result<Option<(String, TitleSource)>, B::Error> {
    // A title may be anywhere before the end that was read. Lists read the start of the file, too, and a session must not
    // have two titles.
    if index.starts_at() > 0
        && let Some(source) = bodies.file()
    {
        let row = SessionRow::of_file(
            &source.disk(),
            &SessionFile::at(&*source.disk(), source.path()),
        );
        return Ok(row.title.zip(row.title_source));
    }
    let mut lines = TitleLines::default();
    let near = (index.starts_at() + index.byte_count()).saturating_sub(TITLE_SCAN_LEN);
    for line in index.entries().rev() {
        let title = match line.kind().row().title {
            Some(TitleSource::Custom) => &mut lines.custom,
            Some(TitleSource::Ai) => &mut lines.ai,
            _ => continue,
        };
        if title.is_some() {
            continue;
        }
        *title = own_text(&line, bodies)?;
        lines.is_near |= lines.custom.is_some() && line.offset() >= near;
    }
    let beside = bodies.file().and_then(title_beside);
    lines.title(|| beside, || own_summary(index, bodies))
}

/// Returns the last summary of this conversation.
fn own_summary<B: BodySource>(index: &Index, bodies: &mut B) -> Result<Option<String>, B::Error> {
    for line in index.entries().rev() {
        if line.kind().row().title == Some(TitleSource::Summary)
            && is_of_file(index, &line)
            && let Some(summary) = own_text(&line, bodies)?
        {
            return Ok(Some(summary));
        }
    }
    Ok(None)
}

/// Returns whether a `summary` is one of this conversation: most are of the one before, whose leaf
/// is in another file.
fn is_of_file(index: &Index, line: &EntryRef<'_>) -> bool {
    let leaf = line.leaf_uuid();
    leaf.is_some_and(|leaf| index.with_uuid(leaf).next().is_some())
}

fn text_of<B: BodySource>(
    line: &EntryRef<'_>,
    bodies: &mut B,
    key: &str,
) -> Result<Option<String>, B::Error> {
    let mut field = None;
    if let Ok(body) = Object::parse(bodies.body(line)?) {
        set(&mut field, body.get(key).and_then(Raw::str));
    }
    Ok(field)
}

/// Returns the text of a line that has one by the table of kinds.
fn own_text<B: BodySource>(
    line: &EntryRef<'_>,
    bodies: &mut B,
) -> Result<Option<String>, B::Error> {
    let body = Object::parse(bodies.body(line)?).ok();
    let text = body.and_then(|body| line.kind().text_of(&body).map(Str::into_owned));
    Ok(text)
}

/// Returns the text of the last line of a kind that has one, and that line; `last` is the last line of the kind.
fn last_text<B: BodySource>(
    index: &Index,
    last: EntryNo,
    kind: EntryKind,
    bodies: &mut B,
) -> Result<Option<(EntryNo, String)>, B::Error> {
    let lines = (0..=last.get()).rev();
    let lines = lines.map(|number| index.entry(EntryNo::new(number)));
    for line in lines.filter(|line| line.kind() == kind) {
        // A line whose text is lost or empty does not hide an earlier one: lists go on to look for a text as well.
        if let Some(text) = own_text(&line, bodies)? {
            return Ok(Some((line.number(), text)));
        }
    }
    Ok(None)
}

/// Returns the working folder of the first entry that has one, usually the first entry.
fn first_cwd<B: BodySource>(index: &Index, bodies: &mut B) -> Result<Option<String>, B::Error> {
    for line in index.entries().filter(|line| line.kind().is_chain()) {
        let cwd = text_of(&line, bodies, "cwd")?;
        if cwd.is_some() {
            return Ok(cwd);
        }
    }
    Ok(None)
}

/// Returns whether a line may be a prompt that was queued: sent by itself, or along with a result.
fn is_sent(line: &EntryRef<'_>) -> bool {
    is_prompt(line) || line.attachment_kind() == Some(AttachmentKind::QueuedCommand)
}

/// Returns the text of such a line, the first one of several.
fn sent_text<'a>(body: &Object<'a>) -> Option<Str<'a>> {
    let content = match body.object("attachment") {
        Some(attachment) => attachment.get("prompt"),
        None => body.object("message")?.get("content"),
    }?;
    content.str().or_else(|| {
        let mut blocks = content.array()?.into_iter();
        blocks.find_map(|block| block.object()?.str("text"))
    })
}

/// One pass over all lines of a file.
pub(super) struct Sweep<'i> {
    index: &'i Index,
    /// The number of lines that were added.
    done: usize,
    on_path: HashSet<Id>,
    /// The prompts of the path, in order.
    prompts: Vec<Id>,
    /// The last line of each kind of which only the last counts.
    last: HashMap<EntryKind, EntryNo>,
    queue: Queue,
    pull_requests: PullRequests,
    files: Files,
    turns: Option<(u64, u64)>,
    /// The calls and attachments whose texts a microcompaction removed from the context.
    cleared: BTreeSet<String>,
    /// The last change to another model.
    fallback: Option<ModelFallback>,
}

impl<'i> Sweep<'i> {
    pub(super) fn new(index: &'i Index, path: &ConversationPath) -> Self {
        let entries = path.entries.iter();
        let entries = entries.map(|entry| index.entry(entry.entry_no()));
        let mut prompts = Vec::new();
        let on_path = entries.filter_map(|entry| {
            let id = entry.uuid()?;
            if entry.kind() == EntryKind::User {
                prompts.push(id);
            }
            Some(id)
        });
        Self {
            on_path: on_path.collect(),
            prompts,
            index,
            done: 0,
            last: HashMap::new(),
            queue: Queue::default(),
            pull_requests: PullRequests::default(),
            files: Files::default(),
            turns: None,
            cleared: BTreeSet::new(),
            fallback: None,
        }
    }

    pub(super) fn index(&self) -> &'i Index {
        self.index
    }

    pub(super) fn is_on_path(&self, line: &EntryRef<'_>) -> bool {
        line.uuid().is_some_and(|id| self.on_path.contains(&id))
    }

    pub(super) fn take_cleared(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.cleared)
    }

    /// Adds the next lines, up to the `end`th of the file.
    pub(super) fn advance<B: BodySource>(
        &mut self,
        end: usize,
        bodies: &mut B,
    ) -> Result<(), B::Error> {
        for at in self.done..end {
            self.add(&self.index.entry(EntryNo::new(at)), bodies)?;
        }
        self.done = self.done.max(end);
        Ok(())
    }

    fn add<B: BodySource>(&mut self, line: &EntryRef<'_>, bodies: &mut B) -> Result<(), B::Error> {
        let body = match line.kind() {
            // Clients write these lines again at the end of each turn (META-1): only the last body is worth reading.
            kind if kind.is_state() => {
                self.last.insert(kind, line.number());
                return Ok(());
            }
            EntryKind::QueueOperation
            | EntryKind::PrLink
            | EntryKind::FileHistorySnapshot
            | EntryKind::FileHistoryDelta => Object::parse(bodies.body(line)?),
            EntryKind::System if self.is_about_the_path(line) => Object::parse(bodies.body(line)?),
            EntryKind::System if self.ends_a_turn(line) => Object::parse(bodies.body(line)?),
            // `dequeue` does not name its prompt: the next message that may come from the queue shows it.
            _ if self.queue.has_taken && is_sent(line) => Object::parse(bodies.body(line)?),
            _ => return Ok(()),
        };
        let Ok(body) = body else { return Ok(()) };
        match line.kind() {
            EntryKind::QueueOperation => self.queue.add(line.number(), &body.into()),
            EntryKind::PrLink => self.pull_requests.add(&body.into()),
            EntryKind::System => match line.system_kind() {
                Some(SystemKind::MicrocompactBoundary) => self.add_cleared(&body.into()),
                Some(SystemKind::ModelRefusalFallback) => {
                    self.fallback = Some(ModelFallback::read(line, body));
                }
                _ => self.add_turn(&body.into()),
            },
            EntryKind::User | EntryKind::Attachment => {
                self.queue.take_pending(sent_text(&body).as_deref());
            }
            _ => self.add_files(line.kind(), body),
        }
        Ok(())
    }

    /// Returns whether a line reports a change of the context or of the model, on the path or right
    /// below it.
    fn is_about_the_path(&self, line: &EntryRef<'_>) -> bool {
        let is_wanted = matches!(
            line.system_kind(),
            Some(SystemKind::MicrocompactBoundary | SystemKind::ModelRefusalFallback)
        );
        let mut ids = [line.uuid(), line.parent()].into_iter().flatten();
        is_wanted && ids.any(|id| self.on_path.contains(&id))
    }

    fn add_cleared(&mut self, line: &MicrocompactBoundary<'_>) {
        let Some(metadata) = line.microcompact_metadata() else {
            return;
        };
        let calls = metadata.compacted_tool_ids().unwrap_or_default();
        let attachments = metadata.cleared_attachment_uuids().unwrap_or_default();
        let ids = calls.into_iter().chain(attachments);
        self.cleared.extend(ids.map(Str::into_owned));
    }

    /// Returns whether a line contains the duration of a turn of the path. The last turn ends after
    /// the leaf: its line is a child of the last answer, with hooks possibly between them.
    fn ends_a_turn(&self, line: &EntryRef<'_>) -> bool {
        const MAX_HOOKS: usize = 64;
        // An entry may be in the file several times (FILE-7); its duration counts once.
        let same = line
            .uuid()
            .and_then(|id| self.index.with_uuid(id).next())
            .unwrap_or(line.number());
        if line.system_kind() != Some(SystemKind::TurnDuration) || same != line.number() {
            return false;
        }
        let above = |line: &EntryRef<'i>| {
            let parent = self.index.with_uuid(line.parent()?).next()?;
            Some(self.index.entry(parent))
        };
        let first = self.index.entry(line.number());
        // Damaged links can form a cycle, so the walk has a limit.
        let mut lines = std::iter::successors(Some(first), above).take(MAX_HOOKS);
        lines
            .find(|line| line.kind().is_message() || self.is_on_path(line))
            .is_some_and(|line| self.is_on_path(&line))
    }

    fn add_turn(&mut self, turn: &TurnDuration<'_>) {
        if let Some(duration) = turn.duration_ms() {
            let (turns, sum) = self.turns.unwrap_or_default();
            self.turns = Some((turns + 1, sum.saturating_add(duration)));
        }
    }

    /// A snapshot belongs to a later prompt, and later snapshots of the same prompt replace it; a
    /// delta adds a file.
    fn add_files(&mut self, kind: EntryKind, body: Object<'_>) {
        // The id is that of a prompt, not of the line. Prompts that a rewind has left are not restored.
        let prompt = |id: Option<Str<'_>>| {
            let id = self.index.id(&id?)?;
            self.on_path.contains(&id).then_some(id)
        };
        if kind == EntryKind::FileHistoryDelta {
            let delta = metadata::FileHistoryDelta::from(body);
            let named = delta.snapshot_message_id().or_else(|| delta.message_id());
            if let Some(id) = prompt(named)
                && let Some(file) = delta.tracking_path()
            {
                let (_, files) = self.files.of_prompt.entry(id).or_default();
                // The set may be that of earlier prompts, too, which must not get this file.
                Arc::make_mut(files).insert(file.as_ref().into());
            }
            return;
        }
        let line = metadata::FileHistorySnapshot::from(body);
        let Some(snapshot) = line.snapshot() else {
            return;
        };
        let named = snapshot.message_id().or_else(|| line.message_id());
        if let Some(id) = prompt(named)
            && let Some(backups) = snapshot.tracked_file_backups()
        {
            let files = self.files.list(&backups);
            let timestamp = snapshot.timestamp().map(Str::into_owned);
            self.files.of_prompt.insert(id, (timestamp, files));
        }
    }

    /// Fills in the state that all lines together give; returns the last line of each other kind.
    fn finish<B: BodySource>(
        mut self,
        bodies: &mut B,
        state: &mut PathState,
    ) -> Result<HashMap<EntryKind, EntryNo>, B::Error> {
        state.queued_prompts = self.queue.finish(self.index, bodies)?;
        state.pull_requests = self.pull_requests.list;
        state.model_fallback = self.fallback;
        state.timed_turns = self.turns.map(|(turns, _)| turns);
        state.turn_duration_ms = self.turns.map(|(_, sum)| sum);
        if !self.files.of_prompt.is_empty() {
            let history = self.prompts.iter().filter_map(|id| {
                let (timestamp, files) = self.files.of_prompt.remove(id)?;
                Some(FileHistory {
                    message_id: self.index.id_text(*id),
                    timestamp,
                    files,
                })
            });
            state.file_history = Some(history.collect());
        }
        Ok(self.last)
    }
}

type PathSet = BTreeSet<Arc<str>>;

/// The tracked files of each prompt.
#[derive(Default)]
struct Files {
    of_prompt: HashMap<Id, (Option<String>, Arc<PathSet>)>,
    names: HashSet<Arc<str>>,
    /// The files of the last snapshot, in its order and sorted.
    last: (Vec<Arc<str>>, Arc<PathSet>),
}

impl Files {
    /// Returns the files of a snapshot. Each repeats all of the one before, and most add none.
    fn list(&mut self, backups: &Object<'_>) -> Arc<PathSet> {
        let names = backups.members().iter().map(|(name, _)| &**name);
        if !names.clone().eq(self.last.0.iter().map(|name| &**name)) {
            let names: Vec<_> = names.map(|name| shared(&mut self.names, name)).collect();
            let files = names.iter().cloned().collect();
            self.last = (names, Arc::new(files));
        }
        Arc::clone(&self.last.1)
    }
}

fn shared(names: &mut HashSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return Arc::clone(known);
    }
    let name = Arc::<str>::from(name);
    names.insert(Arc::clone(&name));
    name
}

/// The waiting prompts, by line. Their texts are read at the end.
#[derive(Default)]
struct Queue {
    /// Whether any line is about the queue.
    is_known: bool,
    /// A prompt was removed from the queue, and a later line shows which one.
    has_taken: bool,
    keys: RandomState,
    waiting: BTreeMap<EntryNo, u64>,
    // Hashes, as prompts can be long: only those that still wait at the end are read again.
    by_text: BTreeSet<(u64, EntryNo)>,
}

impl Queue {
    /// Only `remove` names the prompt that it removes.
    fn add(&mut self, line: EntryNo, operation: &metadata::QueueOperation<'_>) {
        self.take_pending(None);
        let content = operation.content();
        match operation.operation().as_deref() {
            Some("enqueue") => {
                let text = self.keys.hash_one(content.as_deref());
                self.waiting.insert(line, text);
                self.by_text.insert((text, line));
            }
            Some("popAll") => {
                self.waiting.clear();
                self.by_text.clear();
            }
            Some("dequeue" | "remove") => {
                self.has_taken = true;
                // With one prompt in the queue there is no doubt which one leaves it; no message needs to follow.
                if content.is_some() || self.waiting.len() < 2 {
                    self.take_pending(content.as_deref());
                }
            }
            _ => return,
        }
        self.is_known = true;
    }

    /// Removes the prompt that the line before referred to: the first one with this text, else the
    /// oldest.
    fn take_pending(&mut self, text: Option<&str>) {
        if !std::mem::take(&mut self.has_taken) {
            return;
        }
        let named = text.and_then(|text| {
            let text = self.keys.hash_one(Some(text));
            let first = self.by_text.range((text, EntryNo::default())..).next();
            first.filter(|same| same.0 == text).map(|(_, line)| *line)
        });
        let oldest = self.waiting.keys().next().copied();
        if let Some(line) = named.or(oldest)
            && let Some(text) = self.waiting.remove(&line)
        {
            self.by_text.remove(&(text, line));
        }
    }

    fn finish<B: BodySource>(
        mut self,
        index: &Index,
        bodies: &mut B,
    ) -> Result<Option<Vec<QueuedPrompt>>, B::Error> {
        // The file ends right after a `dequeue`: the queue is in order, so the oldest prompt left it.
        self.take_pending(None);
        let mut prompts = Vec::with_capacity(self.waiting.len());
        for line in self.waiting.into_keys() {
            if let Ok(body) = Object::parse(bodies.body(&index.entry(line))?) {
                prompts.push(QueuedPrompt {
                    content: owned(body.str("content")),
                    timestamp: owned(body.str("timestamp")),
                });
            }
        }
        Ok(self.is_known.then_some(prompts))
    }
}

/// The pull requests in order of first appearance: clients repeat them (META-1).
#[derive(Default)]
struct PullRequests {
    list: Option<Vec<PullRequest>>,
    known: HashSet<(Option<String>, Option<u64>)>,
}

impl PullRequests {
    fn add(&mut self, link: &metadata::PrLink<'_>) {
        let request = PullRequest {
            number: link.pr_number(),
            url: owned(link.pr_url()),
            repository: owned(link.pr_repository()),
            timestamp: owned(link.object().str("timestamp")),
        };
        if request.url.is_none() && request.number.is_none() {
            return;
        }
        let place = request.url.clone().or_else(|| request.repository.clone());
        if self.known.insert((place, request.number)) {
            self.list.get_or_insert_default().push(request);
        }
    }
}
