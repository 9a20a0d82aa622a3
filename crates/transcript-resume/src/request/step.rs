//! The entries of a path that matter for a request, one by one.

use std::sync::Arc;

use hashbrown::HashSet;
use transcript_format::cut_reply;
use transcript_format::kind::EntryKind;
use transcript_format::object::{JsonKind, Object, ParseObjectError, Raw, Str, unescape};
use transcript_format::scan::Body;
use transcript_messages::text::quoted;
use transcript_messages::{
    Block, BlockKind, BlockLocation, BlockStore, Log, OmissionReason, within_limits,
};
use transcript_reader::{EntryMarks, EntryNo, EntryRef, Index, Policy, Tree, is_queued};

use super::frames;
use super::recorded_usage::{RecordedTokens, RecordedUsage};
use super::reminders::Attachment;
use crate::state::{NO_MODEL, StateReader};

/// The model of answers that the client made itself.
const SYNTHETIC_MODEL: &str = NO_MODEL;

/// The key of answers without an id that are merged (MSG-2).
const SHARED_ID: &str = "";

/// The rules by which entries are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Texts that the client wrote are framed (MSG-20, MSG-23).
    pub(super) frames_notes: bool,
    /// The documents of queued prompts are sent, which the client leaves out (NOTE-11).
    pub(super) sends_documents: bool,
}

impl Rules {
    /// Returns the rules under [`Policy::Recover`].
    pub(super) fn of_index(index: &Index) -> Self {
        let version = index.client_version();
        Self {
            frames_notes: version.is_none_or(|version| version >= frames::FRAMES_NOTES),
            sends_documents: true,
        }
    }

    pub(super) fn of(tree: &Tree<'_>) -> Self {
        Self {
            frames_notes: !tree.is_client_before(frames::FRAMES_NOTES),
            sends_documents: tree.policy() == Policy::Recover,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    User,
    Assistant,
    /// An assistant entry that reports a failed request: not sent, but it ends a turn (ERR-1).
    ApiError,
    /// The output of a command that the user ran by hand, as a system entry (MSG-6).
    LocalCommand,
    /// An attachment with a text.
    Reminder,
    /// An entry that is not sent, although it counts for the entries around it: an attachment
    /// without a text, another system entry, a user entry that is empty or only displayed.
    Silent,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    /// The entry; `None` for a synthetic step.
    pub(super) entry: Option<EntryNo>,
    /// The message that an assistant entry is a line of.
    pub(super) answer: Option<Arc<Answer>>,
    pub(super) is_meta: bool,
    /// For an attachment: it is a prompt that waited in the queue.
    pub(super) is_queued: bool,
    /// The kind of the entry; `None` for a synthetic step.
    pub(super) entry_kind: Option<EntryKind>,
    /// For a user entry: it is the summary of a compaction.
    pub(super) is_summary: bool,
    /// For an attachment: the client fails on it.
    pub(super) is_unusable: bool,
    /// For an answer: it reports a failed request.
    pub(super) is_error: bool,
    /// For an API error: the nearest entry with media is the cause (ERR-3).
    pub(super) heals_distinct_carrier: bool,
    /// For an API error: the request was too large, by the status that the entry has.
    pub(super) is_too_large: bool,
    /// For an API error: the API refused the request, by the status that the entry has.
    pub(super) is_bad_request: bool,
    pub(super) blocks: Vec<Block>,
    pub(super) reminder: Option<Box<Reminder>>,
}

/// The fields that the lines of one answer have in common.
#[derive(Debug)]
pub(super) struct Answer {
    /// The id of the message as JSON, empty without an id: lines with the same key are merged
    /// (MSG-2).
    merge_key: Arc<str>,
    model: Option<Arc<str>>,
    request: Option<Arc<str>>,
}

/// The messages of an attachment, and their form.
#[derive(Clone, Debug, Default)]
pub(super) struct Reminder {
    /// Newer models get it as a `system` message (NOTE-6).
    pub(super) is_for_system_role: bool,
    /// Newer models do not get it at all.
    pub(super) is_for_older_models: bool,
    /// It contains a file, which newer models get as user text (NOTE-7).
    pub(super) is_file: bool,
    /// Its messages, each a list of blocks.
    pub(super) parts: Vec<Vec<Block>>,
    /// The tools that it records with their definitions (MSG-14).
    pub(super) tools: Vec<String>,
}

/// The result of reading a body.
pub(super) enum Reading {
    Step(Step),
    /// An answer that is only displayed (MSG-6).
    Virtual,
    /// A user entry that is not sent, and why (MSG-6).
    Silent(Step, OmissionReason),
}

impl Step {
    /// Reads the body of `entry_ref`.
    ///
    /// # Errors
    /// When the text is not a JSON object, or belongs to another entry because the file changed.
    pub(super) fn read(
        text: &str,
        entry_ref: &EntryRef<'_>,
        names: &mut StepContext<'_>,
        log: &mut Log,
    ) -> Result<Reading, Unusable> {
        let body = Body::parse(text)?;
        // Bytes that are read as other ones cannot be read again.
        let odd_marks = EntryMarks::SALVAGED | EntryMarks::LOSSY | EntryMarks::GLUED;
        let is_verbatim =
            !entry_ref.marks().intersects(odd_marks) && text.len() as u64 == entry_ref.byte_len();
        let store = names.store.clone();
        let place = store
            .as_ref()
            .filter(|_| is_verbatim)
            .map(|store| BlockLocation {
                store,
                offset: entry_ref.offset(),
            });
        let object = &body.object;
        let type_name = object.get("type").and_then(Raw::str).unwrap_or_default();
        // The file was changed since it was indexed: another line is at this offset now.
        if EntryKind::from_name(&type_name) != entry_ref.kind() {
            return Err(Unusable);
        }
        // Here, as each body is read once for the request and for the state.
        if let Some(record) = &mut names.record {
            record.add(entry_ref, &body);
        }
        names.answerer = None;
        let origin = origin(entry_ref.number());
        let flag = |name: &str| object.get(name).and_then(Raw::bool) == Some(true);
        let of_message = |name: &str| body.message.as_ref()?.get(name);
        let model = of_message("model").and_then(Raw::str);
        let model = model.map(|model| names.model.shared(&model));
        if entry_ref.kind() == EntryKind::Assistant
            && let Some(model) = &model
            && **model != *NO_MODEL
        {
            names.answered_by(model, entry_ref.is_salvaged());
            if let (Some(answer), Some(usage)) = (origin, of_message("usage")) {
                names.recorded.add(answer, usage);
            }
        }
        // Other flags, such as `isMeta` and `isVisibleInTranscriptOnly`, and the model
        // `<synthetic>` do not keep an entry out of the request (MSG-7).
        let is_virtual = flag("isVirtual");
        let mut step = Self::silent(entry_ref);
        match entry_ref.kind() {
            EntryKind::User => {
                if is_virtual {
                    return Ok(Reading::Silent(step, OmissionReason::Virtual));
                }
                let blocks = blocks(&body, text, place, origin, log);
                if blocks.is_empty() {
                    return Ok(Reading::Silent(step, OmissionReason::Empty));
                }
                step.kind = StepKind::User;
                step.blocks = frames::framed(blocks, object, names.rules.frames_notes);
                step.is_meta = flag("isMeta");
                step.is_summary = flag("isCompactSummary");
            }
            EntryKind::Assistant if is_virtual => return Ok(Reading::Virtual),
            EntryKind::Assistant => {
                let is_error = flag("isApiErrorMessage");
                // The client goes by the model: an error under the name of another one is an answer
                // (MSG-6).
                let is_synthetic = model.as_deref() == Some(SYNTHETIC_MODEL);
                step.kind = if is_error && is_synthetic {
                    StepKind::ApiError
                } else {
                    StepKind::Assistant
                };
                step.is_error = is_error;
                step.heals_distinct_carrier = is_error && flag("healsDistinctCarrier");
                step.is_too_large = is_error && reports_too_large(object);
                step.is_bad_request = is_error && reports_bad_request(object);
                // Without an id only answers to a recorded request count as one (MSG-2).
                let id = of_message("id").filter(|id| !id.is_null());
                // Without either, the number of the entry is a key that no other line has.
                let own;
                let key = match id {
                    Some(id) => id.text(),
                    None if object.get("requestId").is_some() => SHARED_ID,
                    None => {
                        own = entry_ref.number().to_string();
                        &own
                    }
                };
                let request = object.get("requestId").and_then(Raw::str);
                let request = request.filter(|request| !request.is_empty());
                step.answer = Some(names.shared(key, model, request));
                step.blocks = blocks(&body, text, place, origin, log);
                let is_call = |block: &Block| block.kind() == BlockKind::ToolUse;
                if step.blocks.iter().any(is_call) && cut_reply::has_cut_call(object) {
                    step.blocks.iter_mut().for_each(Block::mark_cut_input);
                }
            }
            EntryKind::System => {
                // Output that only the person sees is not sent (MSG-6).
                let output = object.get("content").filter(|_| !flag("isDisplayOnly"));
                let Some(output) = output else {
                    return Ok(Reading::Step(step));
                };
                step.kind = StepKind::LocalCommand;
                step.blocks = match output.kind() {
                    JsonKind::String => vec![Block::plain(output).with_origin(origin)],
                    _ => {
                        let blocks = output.array().unwrap_or_default().into_iter();
                        let blocks = blocks.map(|raw| Block::read(raw).with_origin(origin));
                        blocks.map(|block| within_limits(block, log)).collect()
                    }
                };
            }
            EntryKind::Attachment => {
                let attachment = Attachment::of(object, names.rules.sends_documents);
                step.is_unusable = attachment.is_unusable();
                step.is_queued = is_queued(entry_ref);
                let reminder = Reminder {
                    is_for_system_role: attachment.is_for_system_role(),
                    is_for_older_models: attachment.is_for_older_models(),
                    is_file: attachment.is_file(),
                    parts: attachment.parts(origin, names.now, log),
                    tools: attachment.recorded_tools(),
                };
                if !reminder.parts.is_empty() {
                    step.kind = StepKind::Reminder;
                }
                // Tools are recorded by attachments that are not sent; references to them need the names (MSG-14).
                if !reminder.parts.is_empty() || !reminder.tools.is_empty() {
                    step.reminder = Some(Box::new(reminder));
                }
            }
            _ => {}
        }
        Ok(Reading::Step(step))
    }

    fn new(kind: StepKind, blocks: Vec<Block>) -> Self {
        Self {
            kind,
            entry: None,
            answer: None,
            is_meta: false,
            is_queued: false,
            entry_kind: None,
            is_summary: false,
            is_unusable: false,
            is_error: false,
            heals_distinct_carrier: false,
            is_too_large: false,
            is_bad_request: false,
            blocks,
            reminder: None,
        }
    }

    /// Returns the step of an entry that is not sent.
    pub(super) fn silent(entry_ref: &EntryRef<'_>) -> Self {
        Self {
            entry: Some(entry_ref.number()),
            entry_kind: Some(entry_ref.kind()),
            ..Self::new(StepKind::Silent, Vec::new())
        }
    }

    pub(super) fn is_attachment(&self) -> bool {
        self.entry_kind == Some(EntryKind::Attachment)
    }

    pub(super) fn is_system(&self) -> bool {
        self.entry_kind == Some(EntryKind::System)
    }

    pub(super) fn user(block: Block) -> Self {
        Self::new(StepKind::User, vec![block])
    }

    /// Returns an answer that is merged with no other.
    pub(super) fn assistant(block: Block) -> Self {
        let answer = Answer {
            merge_key: "synthetic".into(),
            model: None,
            request: None,
        };
        Self {
            answer: Some(Arc::new(answer)),
            ..Self::new(StepKind::Assistant, vec![block])
        }
    }

    /// Returns the origin of its blocks; `None` for a synthetic step.
    pub(super) fn origin(&self) -> Option<usize> {
        self.entry.and_then(origin)
    }

    /// Returns the id of the message that an assistant entry is a line of.
    pub(super) fn message_id(&self) -> Option<Str<'_>> {
        let json = &self.answer.as_ref()?.merge_key;
        Some(unescape(json.strip_prefix('"')?.strip_suffix('"')?))
    }

    /// Returns whether two lines of answers belong to one message: those of one id, and those without
    /// an id that are merged (MSG-2).
    pub(super) fn is_of_message(&self, other: &Self) -> bool {
        let key = |step: &Self| {
            let key = step.answer.as_ref()?.merge_key.clone();
            let is_shared = key.split('\0').next() == Some(SHARED_ID);
            (is_shared || step.message_id().is_some()).then_some(key)
        };
        key(self).is_some_and(|own| key(other) == Some(own))
    }

    /// Returns the same as JSON, as [`Answer`] has it.
    pub(super) fn merge_key(&self) -> Arc<str> {
        let answer = self.answer.as_ref();
        answer.map_or_else(Arc::default, |answer| Arc::clone(&answer.merge_key))
    }

    /// Returns the `requestId` of an assistant entry.
    pub(super) fn request(&self) -> Option<&Arc<str>> {
        self.answer.as_ref()?.request.as_ref()
    }

    /// Gives an answer whose id an earlier one has as well an id of its own.
    pub(super) fn set_apart(&mut self, number: u32) {
        if let Some(answer) = &self.answer {
            let merge_key = match self.message_id() {
                // A NUL, which no id of the API has: the new id is equal to none in the file.
                Some(id) => quoted(&format!("{id}\0{number}")),
                None => format!("{}\0{number}", answer.merge_key),
            };
            self.answer = Some(Arc::new(Answer {
                merge_key: merge_key.into(),
                model: answer.model.clone(),
                request: answer.request.clone(),
            }));
        }
    }

    /// Returns the model of an assistant entry.
    pub(super) fn model(&self) -> Option<&Arc<str>> {
        self.answer.as_ref()?.model.as_ref()
    }

    /// Returns the ids of the calls that the entry makes.
    pub(super) fn calls(&self) -> impl Iterator<Item = &str> {
        self.ids(BlockKind::ToolUse)
    }

    /// Returns whether the entry makes a call whose input was cut.
    pub(super) fn has_cut_call(&self) -> bool {
        self.blocks.iter().any(Block::has_cut_input)
    }

    /// Returns the ids of the calls that the entry answers.
    pub(super) fn results(&self) -> impl Iterator<Item = &str> {
        self.ids(BlockKind::ToolResult)
    }

    fn ids(&self, kind: BlockKind) -> impl Iterator<Item = &str> {
        let blocks = self.blocks.iter().filter(move |block| block.kind() == kind);
        blocks.filter_map(Block::call_id)
    }

    pub(super) fn has_results(&self) -> bool {
        self.results().next().is_some()
    }
}

/// Returns whether the entry of an error says by its fields that the request was too large.
fn reports_too_large(entry: &Object<'_>) -> bool {
    const STATUS: &str = "413";
    const TYPE: &str = "request_too_large";
    let is_status = entry
        .get("apiErrorStatus")
        .is_some_and(|status| status.text() == STATUS);
    let names = ["error", "apiErrorType"].into_iter();
    let mut names = names.filter_map(|key| entry.str(key));
    is_status || names.any(|name| name == TYPE)
}

/// Returns whether the entry of an error says by its fields that the API refused the request as it was.
fn reports_bad_request(entry: &Object<'_>) -> bool {
    match entry
        .get("apiErrorStatus")
        .filter(|status| !status.is_null())
    {
        Some(status) => status.text() == "400",
        None => entry.str("error").as_deref() == Some("invalid_request"),
    }
}

/// The body of an entry cannot be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unusable;

impl From<ParseObjectError> for Unusable {
    fn from(_: ParseObjectError) -> Self {
        Self
    }
}

/// Message ids and models, which are the same on many lines in a row.
#[derive(Default)]
pub(super) struct StepContext<'i> {
    answer: Option<Arc<Answer>>,
    model: LastName,
    /// The model of the last real answer (MSG-19).
    pub(super) last_answerer: Option<Arc<str>>,
    /// The models named on undamaged lines.
    answerers: HashSet<Arc<str>>,
    /// The model that the last line named, if it is an answer.
    pub(super) answerer: Option<Arc<str>>,
    /// The tokens that answers say they took, with their requests.
    pub(super) recorded: RecordedUsage,
    /// The state of the session, as the bodies describe it; `None` if it is not needed.
    pub(super) record: Option<StateReader<'i>>,
    /// The file in which long blocks stay.
    store: Option<Arc<dyn BlockStore>>,
    pub(super) rules: Rules,
    /// The time of the request.
    pub(super) now: Option<i64>,
}

impl std::fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepContext")
            .field("last_answerer", &self.last_answerer)
            .finish_non_exhaustive()
    }
}

impl<'i> StepContext<'i> {
    pub(super) fn new(rules: Rules, now: Option<i64>, store: Option<Arc<dyn BlockStore>>) -> Self {
        Self {
            store,
            rules,
            now,
            ..Self::default()
        }
    }

    /// Returns the known models, without the state.
    pub(super) fn models(&self) -> StepContext<'static> {
        StepContext {
            last_answerer: self.last_answerer.clone(),
            answerers: self.answerers.clone(),
            recorded: self.recorded.clone(),
            rules: self.rules,
            now: self.now,
            ..StepContext::default()
        }
    }

    /// Returns the tokens that the last entry that was read says, if it is this one.
    pub(super) fn recorded_by(&mut self, entry_no: EntryNo) -> Option<RecordedTokens> {
        let last = self.recorded.found().last().copied();
        last.filter(|recorded| recorded.answer == entry_no.get())
    }

    fn shared(
        &mut self,
        merge_key: &str,
        model: Option<Arc<str>>,
        request: Option<Str<'_>>,
    ) -> Arc<Answer> {
        // Lines of one answer are mostly next to each other, and share what they have in common.
        match &self.answer {
            Some(last)
                if *last.merge_key == *merge_key
                    && last.model == model
                    && last.request.as_deref() == request.as_deref() =>
            {
                Arc::clone(last)
            }
            _ => {
                let answer = Answer {
                    merge_key: merge_key.into(),
                    model,
                    request: request.map(|request| (*request).into()),
                };
                Arc::clone(self.answer.insert(Arc::new(answer)))
            }
        }
    }

    /// Records the model of an answer. Damage can change the name on a salvaged line, so that
    /// counts only when an undamaged line has it too, or none names a model.
    pub(super) fn answered_by(&mut self, model: &Arc<str>, is_salvaged: bool) {
        self.answerer = Some(Arc::clone(model));
        if !is_salvaged {
            self.answerers.insert(Arc::clone(model));
        } else if !self.answerers.is_empty() && !self.answerers.contains(model) {
            return;
        }
        self.last_answerer = Some(Arc::clone(model));
    }
}

#[derive(Default)]
struct LastName(Option<Arc<str>>);

impl LastName {
    fn shared(&mut self, name: &str) -> Arc<str> {
        match &self.0 {
            Some(last) if **last == *name => Arc::clone(last),
            _ => Arc::clone(self.0.insert(name.into())),
        }
    }
}

/// Returns the content of the message as a list of blocks; media that are too large for the API are
/// omitted. `place` is that of `text`, the whole body.
fn blocks(
    body: &Body<'_>,
    text: &str,
    place: Option<BlockLocation<'_>>,
    origin: Option<usize>,
    log: &mut Log,
) -> Vec<Block> {
    let content = body
        .message
        .as_ref()
        .and_then(|message| message.get("content"));
    // A string stays one unless something is merged into it (MSG-18).
    if let Some(content) = content.filter(|content| content.kind() == JsonKind::String) {
        return vec![Block::plain(content).with_origin(origin)];
    }
    let blocks = body.blocks.as_deref().unwrap_or_default().iter();
    blocks
        .map(|(raw, object)| {
            let place = place.map(|place| BlockLocation {
                offset: place.offset + (raw.text().as_ptr() as u64 - text.as_ptr() as u64),
                ..place
            });
            let object = object.as_ref();
            let block = Block::of_body(*raw, object, body.may_hold_odd_escapes, place);
            within_limits(block.with_origin(origin), log)
        })
        .collect()
}

/// Returns the origin of the blocks of an entry: `transcript_messages` knows only plain numbers.
pub(super) fn origin(entry_no: EntryNo) -> Option<usize> {
    Some(entry_no.get())
}
