//! Images and documents that the API refused.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw};
use transcript_format::texts;
use transcript_messages::block::{kind_of, text_of};
use transcript_messages::{
    Block, BlockKind, BlockStore, Log, Message, OmissionReason, Provider, Role, SyntheticKind,
    within_request_limits, without_refused_media,
};
use transcript_reader::{BodySource, ConversationPath, EntryNo, Policy, Tree};

use super::answers;
use super::load::{InFile, Loaded};
use super::reminders::is_sent_of_queued;
use super::step::{Rules, Step, StepContext, StepKind};

/// Removes the images or documents that the API refused from the entry that contained them, as the
/// API would refuse every later request too (ERR-2, ERR-3).
///
/// The client knows the errors by their whole text and looks at the entry right before them. `recover` knows more
/// texts, by a part of them, and looks at all entries since the last answer: what an answer followed was accepted.
pub(super) fn remove_rejected(steps: &mut Vec<Step>, policy: Policy, log: &mut Log) {
    match policy {
        Policy::Vendor => remove_as_client(steps, log),
        _ => replace_refused(steps, log),
    }
    // A prompt with nothing left is not sent (ERR-4).
    steps.retain(|step| step.kind != StepKind::User || !step.blocks.is_empty());
}

/// An entry of a path with images or documents that the API refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedMedia {
    /// The entry.
    pub entry: EntryNo,
    /// The member of the entry that they are in.
    pub member: &'static str,
    /// That member with notes in their places, or with their right form, as JSON.
    pub value: String,
    /// Whether an error of the API is the evidence for all of it.
    pub is_by_error: bool,
}

/// Returns the entries of `path` with images or documents that the API refuses in each request of the client, in order:
/// those that are beyond its limits or damaged, and those that an error is evidence against, unless the client knows the
/// error itself. If all media that are left are more than one request may hold, the oldest are among them.
///
/// # Errors
/// The errors of `bodies`.
pub fn refused_media<B: BodySource>(
    tree: &Tree<'_>,
    path: &ConversationPath,
    bodies: &mut B,
) -> Result<Vec<RefusedMedia>, B::Error> {
    let source = bodies.file().cloned();
    let is_lost = Arc::new(AtomicBool::new(false));
    let store = || {
        let (source, is_lost) = (source.clone()?, Arc::clone(&is_lost));
        Some(Arc::new(InFile { source, is_lost }) as Arc<dyn BlockStore>)
    };
    let context = || StepContext::new(Rules::of(tree), None, store());
    let mut log = Log::default();
    let loaded = Loaded::new(tree, path, &context, None, bodies, &mut log)?;
    let mut steps = loaded.steps;
    // The usual case: no body has to be read a second time.
    if !steps.iter().any(has_media) {
        return Ok(Vec::new());
    }
    // On copies of the steps: the client removes these itself, so a repair of the file need not.
    let mut of_client = Log::default();
    remove_as_client(&mut steps.clone(), &mut of_client);
    let known = of_client.omissions.iter().map(|omission| omission.origin);
    let known: HashSet<usize> = known.collect();
    answers::set_apart(&mut steps);
    let mut by_error = Log::default();
    replace_refused(&mut steps, &mut by_error);
    let rejected = by_error.omissions.iter().map(|omission| omission.origin);
    let rejected: HashSet<usize> = rejected.collect();
    let mut carriers = Vec::new();
    let mut messages = Vec::with_capacity(steps.len());
    for step in steps {
        let holds_media = has_media(&step);
        let (entry, kind) = (step.entry, step.kind);
        let parts = step.reminder.map(|reminder| reminder.parts);
        let blocks = parts.into_iter().flatten().flatten().chain(step.blocks);
        let blocks = blocks.map(|block| without_refused_media(block, &mut Log::default()));
        messages.push(Message::new(Role::User, blocks.collect()));
        carriers.push(entry.filter(|entry| {
            let is_rejected = rejected.contains(&entry.get());
            let is_known = is_rejected && known.contains(&entry.get());
            let may_hold_media = matches!(kind, StepKind::User | StepKind::Reminder);
            may_hold_media && !is_known && (is_rejected || holds_media)
        }));
    }
    // After the others, which no longer count for the limits of a request.
    within_request_limits(&mut messages, Provider::Messages, &mut Log::default());
    let mut refused = Vec::new();
    for (entry, message) in carriers.into_iter().zip(messages) {
        let Some(entry) = entry else { continue };
        let entry_ref = tree.index().entry(entry);
        let is_attachment = entry_ref.kind() == EntryKind::Attachment;
        let body = Object::parse(bodies.body(&entry_ref)?).ok();
        let changed = body.and_then(|body| {
            if is_attachment {
                Some(("attachment", new_attachment(&body, message.blocks())?))
            } else {
                Some(("message", new_message(&body, message.blocks())?))
            }
        });
        if let Some((member, value)) = changed {
            refused.push(RefusedMedia {
                entry,
                member,
                value,
                is_by_error: rejected.contains(&entry.get()),
            });
        }
    }
    Ok(refused)
}

/// Returns whether an entry has images or documents, or notes in the places of some that were too large.
fn has_media(step: &Step) -> bool {
    let is_medium = |block: &Block| {
        // A sound block has none.
        !block.is_sound()
            && (matches!(block.kind(), BlockKind::Image | BlockKind::Document)
                || block.kind() == BlockKind::ToolResult
                || block.json().contains(texts::MEDIA_TOO_LARGE))
    };
    let parts = step.reminder.iter().flat_map(|reminder| &reminder.parts);
    step.blocks.iter().chain(parts.flatten()).any(is_medium)
}

/// Returns the message of an entry with its images and documents as they are in `blocks`, and with notes in the places of
/// those that the API refuses; `None` if nothing changes.
fn new_message(body: &Object<'_>, blocks: &[Block]) -> Option<String> {
    let message = body.object("message")?;
    let old = message.get("content")?.array()?;
    // Blocks were added or dropped, so it is not known which of them is which of the file.
    if old.len() != blocks.len() {
        return None;
    }
    let mut is_changed = false;
    let parts = old.into_iter().zip(blocks).map(|(raw, block)| {
        let holds_media = matches!(
            kind_of(raw),
            BlockKind::Image | BlockKind::Document | BlockKind::ToolResult
        );
        if !holds_media || block.is_sound() {
            return raw.text().to_owned();
        }
        // `read` makes blocks fit to be sent: compared with that, only refused media differ, and other bytes stay.
        let is_same = Block::read(raw).json() == block.json();
        is_changed |= !is_same;
        if is_same {
            raw.text().to_owned()
        } else {
            block.json().to_owned()
        }
    });
    let parts: Vec<String> = parts.collect();
    is_changed.then(|| message.with("content", &format!("[{}]", parts.join(","))))
}

/// Returns the attachment of a queued prompt with its images and documents as they are in `blocks`; `None` if nothing
/// changes, or if it is an attachment of another kind.
fn new_attachment(body: &Object<'_>, blocks: &[Block]) -> Option<String> {
    let attachment = body.object("attachment")?;
    let old = attachment.get("prompt")?.array()?;
    let is_medium = |raw: &Raw<'_>| is_sent_of_queued(kind_of(*raw));
    let media = old.iter().filter(|raw| is_medium(raw)).count();
    // They follow the text of the prompt.
    let mut sent = blocks.iter().skip(blocks.len().checked_sub(media)?);
    let mut is_changed = false;
    let parts = old.iter().map(|raw| {
        let block = Some(raw).filter(|raw| is_medium(raw));
        let block = block.and_then(|_| sent.next());
        let block = block.filter(|block| Block::read(*raw).json() != block.json());
        is_changed |= block.is_some();
        block.map_or(raw.text(), Block::json)
    });
    let parts: Vec<&str> = parts.collect();
    is_changed.then(|| attachment.with("prompt", &format!("[{}]", parts.join(","))))
}

fn remove_as_client(steps: &mut [Step], log: &mut Log) {
    let is_any_distinct = steps.iter().any(|step| step.heals_distinct_carrier);
    let mut carriers = Carriers::default();
    for at in 0..steps.len() {
        let (before, rest) = steps.split_at_mut(at);
        match rest[0].kind {
            // Only for ERR-3: most sessions need no list of carriers.
            StepKind::User if is_any_distinct => carriers.note(at, &rest[0]),
            StepKind::ApiError => {
                let Some(media) = rejected(&rest[0]) else {
                    continue;
                };
                let lines = if rest[0].heals_distinct_carrier {
                    carriers.nearest(before, media).into_iter().collect()
                } else {
                    lines_before(before)
                };
                for line in lines {
                    if strip(&mut before[line].blocks, media) {
                        let (origin, error) = (before[line].origin(), rest[0].origin());
                        log.omit_by(origin, OmissionReason::RejectedMedia, error);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Puts notes in the places of media for which an error is the evidence that the API refuses them.
fn replace_refused(steps: &mut [Step], log: &mut Log) {
    let is_any_distinct = steps.iter().any(|step| step.heals_distinct_carrier);
    let mut carriers = Carriers::default();
    // The entry that the last error was about: the same error again is about it, too.
    let mut last: Option<(usize, &[BlockKind])> = None;
    // The last refusal that does not say what it is about, and the media that it followed.
    let mut unexplained: Option<(String, usize)> = None;
    for at in 0..steps.len() {
        let (before, rest) = steps.split_at_mut(at);
        match rest[0].kind {
            StepKind::User | StepKind::Reminder if is_any_distinct => carriers.note(at, &rest[0]),
            StepKind::ApiError => {
                let mut kinds = refused(&rest[0]);
                if kinds.is_empty()
                    && let Some(text) = unexplained_refusal(&rest[0])
                    && let Some(line) = carrier_since_answer(before, MEDIA, None)
                {
                    // The same error twice after the same media is evidence against them.
                    let refusal = Some((text, line));
                    if refusal == unexplained {
                        kinds = MEDIA;
                    }
                    unexplained = refusal;
                }
                if kinds.is_empty() {
                    continue;
                }
                let carrier = if rest[0].heals_distinct_carrier {
                    kinds
                        .iter()
                        .find_map(|kind| carriers.nearest(before, *kind))
                } else {
                    carrier_since_answer(before, kinds, last)
                };
                // Without a carrier the error is about something else, and nothing is removed on a guess.
                let Some(line) = carrier else { continue };
                last = Some((line, kinds));
                for line in results_beside(before, line) {
                    let origin = before[line].origin();
                    for kind in kinds {
                        if replace_by_notes(blocks_mut(&mut before[line]), *kind, origin, log) {
                            log.omit_by(origin, OmissionReason::RejectedMedia, rest[0].origin());
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the blocks of a step that may be media, or results with some, and those of its reminder.
fn blocks(step: &Step) -> impl Iterator<Item = &Block> {
    let reminder = step.reminder.iter().flat_map(|reminder| &reminder.parts);
    step.blocks.iter().chain(reminder.flatten())
}

/// Like [`blocks`], to be changed.
fn blocks_mut(step: &mut Step) -> impl Iterator<Item = &mut Block> {
    let reminder = step.reminder.iter_mut();
    let reminder = reminder.flat_map(|reminder| &mut reminder.parts);
    step.blocks.iter_mut().chain(reminder.flatten())
}

/// Returns the nearest user entry or reminder with media of these kinds behind the last answer; `None` if that is the one that the
/// last error was about, or if notes are already in the places of some of its media.
fn carrier_since_answer(
    steps: &[Step],
    kinds: &[BlockKind],
    last: Option<(usize, &[BlockKind])>,
) -> Option<usize> {
    // An answer accepts all that precedes it, so media before the last one are not the cause.
    let first = start_of_new(steps);
    let mut entries = (first..steps.len()).rev();
    let found = entries.find(|at| {
        let step = &steps[*at];
        let has = |kind: &BlockKind| blocks(step).any(|block| carries(block, *kind));
        let is_same = last.is_some_and(|(line, of)| line == *at && of == kinds);
        let is_carrier = is_same || kinds.iter().any(has) || has_note(step);
        matches!(step.kind, StepKind::User | StepKind::Reminder) && is_carrier
    })?;
    let is_same = last.is_some_and(|(line, of)| line == found && of == kinds);
    (!is_same && !has_note(&steps[found])).then_some(found)
}

/// Returns where the entries start that were new in the last request: after the last answer, or, as the client writes
/// results between the lines of an answer, after the first of its lines.
fn start_of_new(steps: &[Step]) -> usize {
    let is_answer = |step: &Step| step.kind == StepKind::Assistant;
    let Some(last) = steps.iter().rposition(is_answer) else {
        return 0;
    };
    let is_between = |step: &Step| match step.kind {
        StepKind::Assistant => step.is_of_message(&steps[last]),
        StepKind::User => step.has_results(),
        StepKind::ApiError => false,
        StepKind::LocalCommand | StepKind::Reminder | StepKind::Silent => true,
    };
    let before = steps[..last].iter().rev();
    let answer = before.take_while(|step| is_between(step)).count();
    let first = steps[last - answer..].iter().position(is_answer);
    last - answer + first.unwrap_or(answer) + 1
}

/// Returns the entries that are one message with an entry since the last answer, if that has results: those of all calls
/// of the answer, which the API gets together.
fn results_beside(steps: &[Step], line: usize) -> Vec<usize> {
    let start = if steps[line].has_results() {
        start_of_new(steps)
    } else {
        line
    };
    let is_beside = |at: &usize| *at == line || steps[*at].has_results();
    (start..=line).filter(is_beside).collect()
}

/// Returns whether a note is in the place of an image or document of an entry: it was too large, or a repair of the file
/// put it there.
fn has_note(step: &Step) -> bool {
    let is_note =
        |text: &str| text == texts::MEDIA_REJECTED || text.starts_with(texts::MEDIA_TOO_LARGE);
    let is_note_in = |block: &Block| match block.kind() {
        BlockKind::Text => block.text_field().is_some_and(|text| is_note(&text)),
        BlockKind::ToolResult => {
            let content = block
                .object()
                .and_then(|result| result.get("content")?.array());
            let mut parts = content.into_iter().flatten();
            parts.any(|raw| text_of(raw).is_some_and(|text| is_note(&text)))
        }
        _ => false,
    };
    blocks(step).any(is_note_in)
}

/// The texts of errors about media as the client knows them, and the media (ERR-2).
const REJECTIONS: [(&str, BlockKind); 3] = [
    (
        "Image was too large. Try resizing the image or using a different approach.",
        BlockKind::Image,
    ),
    (
        "PDF is password protected. Try using a CLI tool to extract or convert the PDF.",
        BlockKind::Document,
    ),
    (
        "The PDF file was not valid. Try converting it to text first (e.g., pdftotext).",
        BlockKind::Document,
    ),
];

/// Parts of the texts of such errors in small letters, from reports of sessions that answered every prompt with one, and
/// what they are about.
const REFUSALS: [(&str, &[BlockKind]); 27] = [
    ("image was too large", IMAGES),
    ("image too large", IMAGES),
    ("image exceeds", IMAGES),
    ("image dimensions exceed", IMAGES),
    ("many-image requests", IMAGES),
    ("too many images", IMAGES),
    ("could not process image", IMAGES),
    ("image could not be processed", IMAGES),
    ("does not appear to match the provided image", IMAGES),
    ("does not match the provided media type", IMAGES),
    ("using the image/", IMAGES),
    ("image.source.base64", IMAGES),
    ("invalid image", IMAGES),
    ("unsupported image", IMAGES),
    ("unable to resize image", IMAGES),
    ("pdf is password protected", DOCUMENTS),
    ("pdf file was not valid", DOCUMENTS),
    ("pdf specified was not valid", DOCUMENTS),
    ("pdf too large", DOCUMENTS),
    ("could not process pdf", DOCUMENTS),
    ("pdf pages", DOCUMENTS),
    ("document.source.base64", DOCUMENTS),
    ("invalid base64", MEDIA),
    ("unable to download the file", MEDIA),
    ("request too large", MEDIA),
    ("request_too_large", MEDIA),
    ("exceeds the maximum allowed number of bytes", MEDIA),
];
const IMAGES: &[BlockKind] = &[BlockKind::Image];
const DOCUMENTS: &[BlockKind] = &[BlockKind::Document];
const MEDIA: &[BlockKind] = &[BlockKind::Image, BlockKind::Document];

/// Returns the media that the API refused, by the text of the error as the client knows it (ERR-2).
fn rejected(error: &Step) -> Option<BlockKind> {
    let text = error.blocks.first()?.text_field()?;
    let mut rejections = REJECTIONS.into_iter();
    rejections.find_map(|(whole, media)| (text == whole).then_some(media))
}

/// Returns the media that the API refused, by a part of the text of the error, or by the fields of its entry.
fn refused(error: &Step) -> &'static [BlockKind] {
    let text = text_in_small_letters(error);
    let mut refusals = REFUSALS.into_iter();
    let by_text = refusals.find_map(|(part, media)| text.contains(part).then_some(media));
    match by_text {
        Some(media) => media,
        None if error.is_too_large => MEDIA,
        None => &[],
    }
}

/// Parts of the texts of refused requests in small letters, which are about something else than media.
const OTHER_REFUSALS: [&str; 17] = [
    "too long",
    "context",
    "max_tokens",
    "credit balance",
    "billing",
    "usage limit",
    "limits",
    "organization",
    "api key",
    "model",
    "tool",
    "thinking",
    "signature",
    "cache_control",
    "role",
    "text content blocks",
    "at least one message",
];

/// Returns the text of an error if the API refused the request, and the text does not say of what it is about; without
/// the id of the request, by which the same errors differ.
fn unexplained_refusal(error: &Step) -> Option<String> {
    let text = text_in_small_letters(error);
    let marks = ["api error: 400", "invalid_request_error"];
    let is_refusal = error.is_bad_request || marks.iter().any(|mark| text.contains(mark));
    let is_explained = OTHER_REFUSALS.iter().any(|part| text.contains(part));
    let end = ["request_id", "request id"].iter();
    let end = end.filter_map(|id| text.find(id)).min();
    (is_refusal && !is_explained).then(|| text[..end.unwrap_or(text.len())].to_owned())
}

fn text_in_small_letters(error: &Step) -> String {
    let texts = error.blocks.iter().filter_map(Block::text_field);
    let texts: Vec<String> = texts.map(|text| text.to_lowercase()).collect();
    texts.join("\n")
}

/// Puts a note in the place of each medium of a kind. Returns whether there were any.
fn replace_by_notes<'b>(
    blocks: impl Iterator<Item = &'b mut Block>,
    media: BlockKind,
    origin: Option<usize>,
    log: &mut Log,
) -> bool {
    let note = Block::text(texts::MEDIA_REJECTED);
    let mut is_changed = false;
    for block in blocks {
        let is_medium = block.kind() == media;
        if is_medium {
            *block = note.clone().with_origin(origin);
        } else if block.kind() == BlockKind::ToolResult
            && let Some(content) = with_notes(block, media, &note)
        {
            block.set("content", &content);
        } else {
            continue;
        }
        is_changed = true;
        log.add_synthetic(SyntheticKind::MediaNote, Role::User, &note, origin);
    }
    is_changed
}

/// Returns the content of a result with a note in the place of each medium of a kind; `None` when it contains none.
fn with_notes(result: &Block, media: BlockKind, note: &Block) -> Option<String> {
    let blocks = result.object()?.get("content")?.array()?;
    let is_medium = |raw: &Raw<'_>| kind_of(*raw) == media;
    if !blocks.iter().any(is_medium) {
        return None;
    }
    let texts = blocks.iter().map(|raw| {
        if is_medium(raw) {
            note.json()
        } else {
            raw.text()
        }
    });
    Some(format!("[{}]", texts.collect::<Vec<_>>().join(",")))
}

/// Returns the entries that may contain it: the user entry right before the error, and while that
/// is `isMeta` the one before it (ERR-2).
fn lines_before(steps: &[Step]) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, step) in steps.iter().enumerate().rev() {
        // A system entry between them protects the media; an entry that is not sent does not.
        if step.kind == StepKind::Silent && !step.is_system() {
            continue;
        }
        let is_user = step.kind == StepKind::User;
        if is_user {
            lines.push(at);
        }
        if !is_user || !step.is_meta {
            break;
        }
    }
    lines
}

/// The user entries so far that contain an image, and those that contain a document. With
/// `healsDistinctCarrier` the nearest one is cleaned (ERR-3).
#[derive(Default)]
struct Carriers {
    images: Vec<usize>,
    documents: Vec<usize>,
}

impl Carriers {
    fn note(&mut self, at: usize, line: &Step) {
        for media in [BlockKind::Image, BlockKind::Document] {
            if blocks(line).any(|block| carries(block, media)) {
                self.lines(media).push(at);
            }
        }
    }

    /// Returns the last entry that still has some, which is about to lose them.
    fn nearest(&mut self, steps: &[Step], media: BlockKind) -> Option<usize> {
        let lines = self.lines(media);
        while let Some(at) = lines.pop() {
            if blocks(&steps[at]).any(|block| carries(block, media)) {
                return Some(at);
            }
        }
        None
    }

    fn lines(&mut self, media: BlockKind) -> &mut Vec<usize> {
        if media == BlockKind::Image {
            &mut self.images
        } else {
            &mut self.documents
        }
    }
}

fn carries(block: &Block, media: BlockKind) -> bool {
    block.kind() == media
        || (block.kind() == BlockKind::ToolResult && without_media(block, media).is_some())
}

/// Removes `media` from `blocks`. Returns whether there were any.
fn strip(blocks: &mut Vec<Block>, media: BlockKind) -> bool {
    let mut is_changed = false;
    blocks.retain(|block| {
        is_changed |= block.kind() == media;
        block.kind() != media
    });
    for block in blocks {
        if block.kind() == BlockKind::ToolResult
            && let Some(content) = without_media(block, media)
        {
            block.set("content", &content);
            is_changed = true;
        }
    }
    is_changed
}

/// Returns the content of a result without `media`, with a text if nothing else is left (ERR-4);
/// `None` when it contains none.
fn without_media(result: &Block, media: BlockKind) -> Option<String> {
    let blocks = result.object()?.get("content")?.array()?;
    let rest: Vec<&str> = blocks
        .iter()
        .filter(|raw| kind_of(**raw) != media)
        .map(|raw| raw.text())
        .collect();
    if rest.len() == blocks.len() {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("[{}]", Block::text(texts::MEDIA_REJECTED).json()));
    }
    Some(format!("[{}]", rest.join(",")))
}
