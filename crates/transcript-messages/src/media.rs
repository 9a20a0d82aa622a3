//! Images and documents that a provider would refuse.

use std::collections::{BTreeSet, HashMap};

use base64::Engine;
use transcript_format::object::{Object, Raw};
use transcript_format::texts;

use super::block::{Block, BlockKind, kind_of};
use super::estimate::TokenEstimate;
use super::image;
use super::log::{Log, OmissionReason, SyntheticKind};
use super::message::{Message, Role};
use super::pdf;
use super::provider::{Limits, Provider};
use super::rule::Rule;
use super::text::quoted;

/// Replaces every image and document of a block that is too large for the Messages API by a note: one of them makes the
/// API refuse this request and every one after it.
pub fn within_limits(mut block: Block, log: &mut Log) -> Block {
    let limits = Provider::Messages.limits();
    if !may_be_too_large(&block, limits) {
        return block;
    }
    let origin = block.origin();
    // The origin stays with the note, so that the report names the entry whose media are missing.
    let mut note = |why: Option<String>| {
        let note = Block::text(&note_text(&why?));
        log.omit(origin, OmissionReason::OversizedMedia);
        log.add_synthetic(SyntheticKind::MediaNote, Role::User, &note, origin);
        Some(note)
    };
    if block.kind() == BlockKind::ToolResult {
        // The result itself must stay: the API refuses a call without one.
        let content = block.object().and_then(|result| {
            let blocks = result.get("content")?.array()?;
            let notes: Vec<Option<Block>> = blocks
                .iter()
                .map(|raw| note(excess(*raw, limits)))
                .collect();
            let texts = blocks.iter().zip(&notes);
            let texts: Vec<&str> = texts
                .map(|(raw, note)| note.as_ref().map_or(raw.text(), Block::json))
                .collect();
            let is_changed = notes.iter().any(Option::is_some);
            is_changed.then(|| format!("[{}]", texts.join(",")))
        });
        if let Some(content) = content {
            block.set("content", &content);
        }
        return block;
    }
    let note = Raw::parse(block.json())
        .ok()
        .and_then(|raw| note(excess(raw, limits)));
    note.map_or(block, |note| note.with_origin(origin))
}

/// Returns whether a block is an image or a document larger than the provider accepts, or a result that
/// holds one.
pub(super) fn is_too_large(block: &Block, provider: Provider) -> bool {
    let limits = provider.limits();
    if !may_be_too_large(block, limits) {
        return false;
    }
    let Some(object) = block.object() else {
        return false;
    };
    let content = object.get("content").and_then(Raw::array);
    let blocks = content.into_iter().flatten();
    blocks
        .chain([object.raw()])
        .any(|raw| excess(raw, limits).is_some())
}

/// The maximum number of pixels of each side of an image.
const MAX_SIDE: u32 = 8_000;
/// The maximum number of pages of a PDF.
const MAX_PAGES: usize = 100;

/// The reason why the API refuses an image or a document, whatever else is in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MediaFault {
    pub(super) rule: Rule,
    /// The reason, for the note that replaces it.
    why: String,
    /// The type that an image has, if the one that it names is wrong.
    pub(super) media_type: Option<&'static str>,
    /// The padding that its Base64 lacks at the end.
    padding: &'static str,
}

impl MediaFault {
    fn unusable(why: &str) -> Option<Self> {
        Some(Self {
            rule: Rule::UnusableMedia,
            why: why.to_owned(),
            media_type: None,
            padding: "",
        })
    }

    fn too_large(why: String) -> Option<Self> {
        Some(Self {
            rule: Rule::MediaTooLarge,
            why,
            media_type: None,
            padding: "",
        })
    }

    /// Makes the fault of media that are named by an address or the id of a file. The note quotes that name: the model may know it.
    fn address(what: &str, named: &Object<'_>) -> Self {
        // A `data:` address can be as long as the file; the note would then be what it replaces.
        const MAX_ADDRESS: usize = 2_000;
        let name = ["url", "file_id"]
            .into_iter()
            .find_map(|key| named.str(key));
        let name = name.filter(|name| name.len() <= MAX_ADDRESS);
        let name = name.map_or(String::new(), |name| format!(" ({name})"));
        Self {
            rule: Rule::MediaAddress,
            why: format!(
                "{what} named by an address or a file id{name}, which the API does not read"
            ),
            media_type: None,
            padding: "",
        }
    }

    /// Returns the fault of media that are sound but name another type than they have, or lack the padding of their Base64.
    fn of_form(media_type: Option<&'static str>, padding: &'static str) -> Option<Self> {
        let rule = match media_type {
            Some(_) => Rule::MediaType,
            None => Rule::UnusableMedia,
        };
        (media_type.is_some() || !padding.is_empty()).then(|| Self {
            rule,
            why: String::new(),
            media_type,
            padding,
        })
    }

    /// Returns the source of an image or document without the fault; `None` if only a note can replace it.
    pub(super) fn corrected_source(&self, media: &Object<'_>) -> Option<String> {
        if self.media_type.is_none() && self.padding.is_empty() {
            return None;
        }
        let mut source = media.get("source")?.text().to_owned();
        if let Some(media_type) = self.media_type {
            source = Object::parse(&source)
                .ok()?
                .with("media_type", &quoted(media_type));
        }
        if !self.padding.is_empty() {
            let object = Object::parse(&source).ok()?;
            let data = format!("{}{}", object.str("data")?, self.padding);
            source = object.with("data", &quoted(&data));
        }
        Some(source)
    }

    /// Returns the note in place of the image or document.
    pub(super) fn note(&self) -> Block {
        Block::text(&note_text(&self.why))
    }
}

/// The kind of a block that only names a file that was uploaded.
pub(super) const CONTAINER_UPLOAD: &str = "container_upload";

/// Returns why the provider refuses an image, a document or a file.
///
/// Only its parts, their check sums and, of a PDF, its words and compressed objects are looked at: whether all of it can be
/// decoded is not known. Media that are named by an address or an id are not fetched. Of a document that is
/// a list of texts and images the first fault of one of these is returned.
pub(super) fn fault(media: Raw<'_>, provider: Provider) -> Option<MediaFault> {
    const NO_DATA: &str = "no usable data";
    let Some(media) = media.object() else {
        return MediaFault::unusable(NO_DATA);
    };
    let limits = provider.limits();
    if media.str("type").as_deref() == Some(CONTAINER_UPLOAD) {
        return (!limits.takes_addresses).then(|| MediaFault::address("a file", &media));
    }
    let Some(source) = media.get("source").and_then(Raw::object) else {
        return MediaFault::unusable(NO_DATA);
    };
    let text = |key: &str| source.get(key).and_then(Raw::str).unwrap_or_default();
    let is_base64 = &*text("type") == "base64";
    let data = text("data");
    if (is_base64 || &*text("type") == "text") && data.is_empty() {
        return MediaFault::unusable(NO_DATA);
    }
    match BlockKind::of(&media) {
        kind if matches!(&*text("type"), "url" | "file") => {
            let what = match kind {
                BlockKind::Image => "an image",
                _ => "a document",
            };
            (!limits.takes_addresses).then(|| MediaFault::address(what, &source))
        }
        // One bad image in such a list makes the API refuse every request, as an image outside of it does.
        BlockKind::Document if !is_base64 => {
            let parts = parts_of(&media).unwrap_or_default();
            excess(media.raw(), limits)
                .and_then(MediaFault::too_large)
                .or_else(|| {
                    parts
                        .into_iter()
                        .find_map(|part| part_fault(part, provider))
                })
        }
        _ if !is_base64 => excess(media.raw(), limits).and_then(MediaFault::too_large),
        BlockKind::Image => image_fault(&text("media_type"), &data, limits),
        // By the length first: a document beyond the limit need not be decoded to be refused.
        _ => excess(media.raw(), limits)
            .and_then(MediaFault::too_large)
            .or_else(|| document_fault(&data)),
    }
}

/// Returns the texts and images that a document is a list of; `None` for any other block.
pub(super) fn parts_of<'o>(document: &Object<'o>) -> Option<Vec<Raw<'o>>> {
    if BlockKind::of(document) != BlockKind::Document {
        return None;
    }
    document.get("source")?.object()?.get("content")?.array()
}

/// Returns why the provider refuses a part of such a document.
pub(super) fn part_fault(part: Raw<'_>, provider: Provider) -> Option<MediaFault> {
    match kind_of(part) {
        BlockKind::Image => fault(part, provider),
        BlockKind::Document => MediaFault::unusable("a document within a document"),
        _ => None,
    }
}

/// Returns the source of such a document with each part as `new` returns it; `None` if it returns none.
pub(super) fn source_with_parts(
    document: &Object<'_>,
    new: impl FnMut((usize, Raw<'_>)) -> Option<String>,
) -> Option<String> {
    let parts = parts_of(document)?;
    let changed: Vec<Option<String>> = parts.iter().copied().enumerate().map(new).collect();
    changed.iter().any(Option::is_some).then_some(())?;
    let texts = parts.iter().zip(&changed);
    let texts = texts.map(|(raw, new)| new.as_deref().unwrap_or(raw.text()));
    let content = format!("[{}]", texts.collect::<Vec<_>>().join(","));
    Some(document.object("source")?.with("content", &content))
}

/// Returns the padding that strict readers of Base64 expect at the end of a text and that is not there.
fn missing_padding(data: &str) -> &'static str {
    match data.len() % 4 {
        2 => "==",
        3 => "=",
        _ => "",
    }
}

/// Returns a short base64 text to replace a long one, with the same result in every check of images and documents; `None`
/// if the text is not such base64, or if it has to stay as it is.
///
/// For requests that are only checked: their images need not be in memory.
#[must_use]
pub fn abridged_media(data: &str) -> Option<String> {
    if !may_be_media(data) {
        return None;
    }
    let limits = Provider::Messages.limits();
    // As short as a document can be that every check accepts; its bytes are not sent.
    const STAND_IN: &[u8] = b"%PDF-1.4 obj startxref %%EOF";
    let bytes = if data.starts_with("JVBERi") {
        document_fault(data).is_none().then(|| STAND_IN.to_vec())
    } else {
        let start = image::start_of(data)?;
        let media_type = image::media_type(&start)?;
        let is_sound = image_fault(media_type, data, limits).is_none();
        let (width, height) = image::size_of(data).filter(|_| is_sound)?;
        Some(image::stand_in(media_type, width, height))
    };
    bytes.map(|bytes| image::BASE64.encode(bytes))
}

/// Returns whether a text starts as the base64 of an image or a document does.
#[must_use]
pub fn may_be_media(data: &str) -> bool {
    // The signatures of PNG, JPEG, GIF, WebP and PDF, as base64 encodes their first bytes.
    ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "JVBERi"]
        .iter()
        .any(|start| data.starts_with(start))
}

fn image_fault(media_type: &str, data: &str, limits: &Limits) -> Option<MediaFault> {
    if data.len() > limits.image_text {
        return MediaFault::too_large(format!(
            "{media_type}, {} characters of base64, more than the {} that the API takes",
            data.len(),
            limits.image_text
        ));
    }
    let Some(bytes) = image::decode(data.as_bytes()) else {
        return MediaFault::unusable("an image that is not base64");
    };
    let Some(own_type) = image::media_type(&bytes) else {
        return MediaFault::unusable("bytes that are not an image of a type that the API takes");
    };
    let Some((width, height)) = image::dimensions(&bytes) else {
        return MediaFault::unusable("an image whose size cannot be read");
    };
    if width.max(height) > MAX_SIDE {
        return MediaFault::too_large(format!(
            "{own_type}, {width} x {height} pixels, more than the {MAX_SIDE} of each side that the API takes"
        ));
    }
    if !image::is_whole(&bytes) {
        return MediaFault::unusable("an image that is cut off or damaged");
    }
    let media_type = (own_type != media_type).then_some(own_type);
    MediaFault::of_form(media_type, missing_padding(data))
}

fn document_fault(data: &str) -> Option<MediaFault> {
    let Some(bytes) = image::decode(data.as_bytes()) else {
        return MediaFault::unusable("a document that is not base64");
    };
    if !pdf::is_pdf(&bytes) {
        return MediaFault::unusable("bytes that are not a PDF");
    }
    if !pdf::is_whole(&bytes) {
        return MediaFault::unusable("a PDF that is cut off or has no objects");
    }
    if pdf::is_encrypted(&bytes) {
        return MediaFault::unusable("a PDF that a password protects");
    }
    let pages = pdf::pages(&bytes);
    if pages > MAX_PAGES {
        return MediaFault::too_large(format!(
            "a PDF of {pages} pages, more than the {MAX_PAGES} that the API takes"
        ));
    }
    MediaFault::of_form(None, missing_padding(data))
}

/// The maximum number of images in one request.
const MAX_IMAGES: usize = 100;
/// The maximum number of images in a request that may have up to [`MAX_SIDE`] pixels of each side. In a request with more
/// images the limit for all of them is [`MAX_SIDE_OF_MANY`].
const MAX_LARGE_IMAGES: usize = 20;
/// The maximum number of pixels of each side in a request with more than [`MAX_LARGE_IMAGES`] images.
const MAX_SIDE_OF_MANY: u32 = 2_000;

/// An image or a document in a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    pub(super) message: usize,
    pub(super) block: usize,
    /// Its place in the content of a result, and in that of a document.
    inner: (Option<usize>, Option<usize>),
    pub(super) is_image: bool,
    /// The longer side of an image, in pixels, if that is known.
    side: Option<u32>,
    /// Its estimated tokens, if they are known.
    pub(super) tokens: Option<u64>,
    len: usize,
}

/// Returns the images and documents of a request, the oldest first. The images of a document count in its place.
pub(super) fn media_of(messages: &[Message]) -> Vec<Medium> {
    let mut found = Vec::new();
    let mut add_one = |message, block, inner, raw: Raw<'_>| {
        let kind = kind_of(raw);
        if matches!(kind, BlockKind::Image | BlockKind::Document) {
            let is_image = kind == BlockKind::Image;
            let estimate = TokenEstimate::part(raw);
            found.push(Medium {
                message,
                block,
                inner,
                is_image,
                side: side(raw).filter(|_| is_image),
                tokens: (estimate.unknown == 0).then_some(estimate.tokens),
                len: raw.text().len(),
            });
        }
    };
    let mut add = |message, block, inner, raw: Raw<'_>| {
        let parts = raw.object().and_then(|document| parts_of(&document));
        let parts = parts.into_iter().flatten().enumerate();
        let mut images = parts
            .filter(|(_, part)| kind_of(*part) == BlockKind::Image)
            .peekable();
        // The API counts the images of a document, and then not the document: counted twice, too much would be replaced.
        if images.peek().is_none() {
            add_one(message, block, (inner, None), raw);
        }
        for (part, image) in images {
            add_one(message, block, (inner, Some(part)), image);
        }
    };
    for (at, message) in messages.iter().enumerate() {
        // A sound block has none, and may be in its file still: to look into it would load it (decision 0023).
        let blocks = message.blocks().iter().enumerate();
        for (number, block) in blocks.filter(|(_, block)| !block.is_sound()) {
            match block.kind() {
                BlockKind::ToolResult => {
                    let result = block.object();
                    let content = result.and_then(|result| result.get("content")?.array());
                    for (inner, raw) in content.into_iter().flatten().enumerate() {
                        add(at, number, Some(inner), raw);
                    }
                }
                BlockKind::Image | BlockKind::Document => {
                    if let Ok(raw) = Raw::parse(block.json()) {
                        add(at, number, None, raw);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the longer side of an image whose bytes are in the block, in pixels.
fn side(media: Raw<'_>) -> Option<u32> {
    let source = media.object()?.get("source")?.object()?;
    let data = source.get("data")?.str()?;
    let (width, height) = image::size_of(&data)?;
    Some(width.max(height))
}

/// Returns whether the images of a request, of all its images and documents, are within its limits.
pub(super) fn are_within_limits(media: &[Medium]) -> bool {
    let images = media.iter().filter(|medium| medium.is_image);
    let count = images.clone().count();
    // An image of unknown size is not refused on a guess.
    let is_wide = |medium: &Medium| medium.side.is_some_and(|side| side > MAX_SIDE_OF_MANY);
    count <= MAX_IMAGES && (count <= MAX_LARGE_IMAGES || !images.clone().any(is_wide))
}

/// Returns the messages that have more of the images and documents of a request than the provider accepts in one.
pub(super) fn crowded_messages(media: &[Medium], provider: Provider) -> BTreeSet<usize> {
    let surplus = surplus_of_messages(media, provider);
    surplus.iter().map(|medium| medium.message).collect()
}

/// Returns the oldest images and documents of each message that has more than the provider accepts in one.
fn surplus_of_messages(media: &[Medium], provider: Provider) -> Vec<Medium> {
    let limits = provider.limits();
    let mut surplus = Vec::new();
    // Media are in the order of the messages, so those of one message are next to each other, the oldest first.
    for of_message in media.chunk_by(|one, other| one.message == other.message) {
        for (is_image, max_count) in [
            (true, limits.images_of_message),
            (false, limits.documents_of_message),
        ] {
            let of_kind = of_message.iter();
            let of_kind = of_kind.filter(|medium| medium.is_image == is_image);
            let count = of_kind.clone().count();
            surplus.extend(of_kind.copied().take(count.saturating_sub(max_count)));
        }
    }
    surplus
}

/// Replaces the oldest images and documents of a message by notes where it has more than the provider accepts in one.
pub(super) fn within_message_limits(messages: &mut [Message], provider: Provider, log: &mut Log) {
    let limits = provider.limits();
    // Most providers have no such limit: then the media need not be collected a second time.
    if limits.images_of_message.min(limits.documents_of_message) == usize::MAX {
        return;
    }
    let surplus = surplus_of_messages(&media_of(messages), provider);
    let replaced = surplus.into_iter().map(|medium| {
        let (what, max_count) = if medium.is_image {
            ("image", limits.images_of_message)
        } else {
            ("document", limits.documents_of_message)
        };
        let why = format!("an older {what} than the {max_count} of a message that the API takes");
        (medium, why)
    });
    let reason = OmissionReason::Refused(Rule::MessageMedia);
    replace_by_notes(messages, replaced.collect(), reason, log);
}

/// Of media beyond a limit of a request, a multiple of the limit by this is replaced, so that the requests of a growing
/// conversation start with the same messages as often as possible, for which a provider has a cache. Those of the last
/// message are replaced only as far as needed.
const LIMIT_PARTS: usize = 8;

/// Replaces images and documents by notes until a request is within the limits of the provider: the oldest ones of a
/// message that has too many, images of many pixels if there are more than 20, and then the oldest ones, to the maximum
/// number of images and of bytes, or up to an eighth less.
pub fn within_request_limits(messages: &mut [Message], provider: Provider, log: &mut Log) {
    within_message_limits(messages, provider, log);
    let max_request = provider.limits().request;
    let mut media = media_of(messages);
    let mut replaced = Vec::new();
    let count = |media: &[Medium]| media.iter().filter(|medium| medium.is_image).count();
    let is_wide = |medium: &mut Medium| medium.side.is_some_and(|side| side > MAX_SIDE_OF_MANY);
    // Wide images go first: each of them leaves less to replace for the two limits below.
    if count(&media) > MAX_LARGE_IMAGES {
        let why = format!(
            "an image of more than {MAX_SIDE_OF_MANY} pixels, which the API does not take among more than {MAX_LARGE_IMAGES}"
        );
        let wide = media.extract_if(.., is_wide);
        replaced.extend(wide.map(|medium| (medium, why.clone())));
    }
    let is_before_last = |medium: &Medium| medium.message + 1 < messages.len();
    // Rounded up: the border then stays for the next turns, and so do the messages before it in the provider's cache.
    let surplus = count(&media).saturating_sub(MAX_IMAGES);
    let rounded_surplus = surplus.next_multiple_of(MAX_IMAGES / LIMIT_PARTS);
    let why = format!("an older image than the {MAX_IMAGES} that the API takes");
    let mut taken = 0;
    let older = media.extract_if(.., |medium| {
        let is_surplus = taken < surplus || (taken < rounded_surplus && is_before_last(medium));
        taken += usize::from(medium.is_image && is_surplus);
        medium.is_image && is_surplus
    });
    replaced.extend(older.map(|medium| (medium, why.clone())));
    let blocks = messages.iter().flat_map(Message::blocks);
    let size: usize = blocks.map(Block::json_len).sum();
    let removed: usize = replaced.iter().map(|(medium, _)| medium.len).sum();
    let surplus = size.saturating_sub(removed).saturating_sub(max_request);
    let rounded_surplus = surplus.next_multiple_of(max_request / LIMIT_PARTS);
    let mut removed = 0;
    for medium in media {
        if removed >= surplus && (removed >= rounded_surplus || !is_before_last(&medium)) {
            break;
        }
        removed += medium.len;
        let why = format!(
            "older media than the {} MB of a request that the API takes",
            megabytes(max_request, max_request)
        );
        replaced.push((medium, why));
    }
    replace_by_notes(messages, replaced, OmissionReason::RequestLimit, log);
}

/// Returns the text of a note in the place of an image or a document.
pub(super) fn note_text(why: &str) -> String {
    format!("{}{why}]", texts::MEDIA_TOO_LARGE)
}

/// Puts notes, each with its words, in the places of images and documents that are omitted for this reason. Each block is
/// changed once, as a result may hold many.
pub(super) fn replace_by_notes(
    messages: &mut [Message],
    mut replaced: Vec<(Medium, String)>,
    reason: OmissionReason,
    log: &mut Log,
) {
    // They come in the order of the limits that they exceed; a block is written once, with all of its notes.
    replaced.sort_by_key(|(medium, _)| (medium.message, medium.block, medium.inner));
    let place = |(medium, _): &(Medium, String)| (medium.message, medium.block);
    for of_block in replaced.chunk_by(|one, other| place(one) == place(other)) {
        let (at, number) = place(&of_block[0]);
        let message = &mut messages[at];
        let role = message.role();
        let block = &mut message.blocks[number];
        let origin = block.origin();
        let mut notes = HashMap::new();
        for (medium, why) in of_block {
            let note = Block::text(&note_text(why));
            log.omit(origin, reason);
            log.add_synthetic(SyntheticKind::MediaNote, role, &note, origin);
            notes.insert(medium.inner, note);
        }
        // A note for the whole block replaces its parts, too.
        if let Some(note) = notes.remove(&(None, None)) {
            *block = note.with_origin(origin);
            continue;
        }
        let with_part_notes = |document: &Object<'_>, inner| {
            source_with_parts(document, |(part, _)| {
                let note: Option<&Block> = notes.get(&(inner, Some(part)));
                Some(note?.json().to_owned())
            })
        };
        let Some(object) = block.object() else {
            continue;
        };
        if let Some(source) = with_part_notes(&object, None) {
            block.set("source", &source);
            continue;
        }
        let content = object.get("content").and_then(Raw::array);
        let content = content.map(|parts| {
            let texts = parts.into_iter().enumerate().map(|(at, raw)| {
                if let Some(note) = notes.get(&(Some(at), None)) {
                    return note.json().to_owned();
                }
                let changed = raw.object().and_then(|document| {
                    let source = with_part_notes(&document, Some(at))?;
                    Some(document.with("source", &source))
                });
                changed.unwrap_or_else(|| raw.text().to_owned())
            });
            format!("[{}]", texts.collect::<Vec<_>>().join(","))
        });
        if let Some(content) = content {
            block.set("content", &content);
        }
    }
}

/// Base64 is longer than the data it encodes, so a short block cannot hold a large file. A sound one
/// holds none.
fn may_be_too_large(block: &Block, limits: &Limits) -> bool {
    !block.is_sound() && block.json_len() > limits.image.min(limits.text_document)
}

/// Returns by how much media are too large, for a note; `None` for all others.
fn excess(media: Raw<'_>, limits: &Limits) -> Option<String> {
    let media = media.object()?;
    let kind = BlockKind::of(&media);
    if !matches!(kind, BlockKind::Image | BlockKind::Document) {
        return None;
    }
    let source = media.get("source")?.object()?;
    let data = source.get("data")?.str()?;
    let media_type = source
        .get("media_type")
        .and_then(Raw::str)
        .unwrap_or_default();
    let is_base64 = source.get("type").and_then(Raw::str).as_deref() == Some("base64");
    let len = if is_base64 {
        base64_len(&data)
    } else {
        data.len()
    };
    let limit = match kind {
        BlockKind::Image => limits.image,
        _ if is_base64 => limits.pdf,
        _ => limits.text_document,
    };
    (len > limit).then(|| {
        format!(
            "{media_type}, {:.1} MB, more than the {} MB that the API takes",
            megabytes(len, limit),
            megabytes(limit, limit)
        )
    })
}

/// Returns bytes in the MB that a limit counts: of 1,024 or of 1,000.
fn megabytes(bytes: usize, limit: usize) -> f64 {
    // So that a note names the limit as the provider's documents do: 5 MB, not 5.2.
    let unit = if limit.is_multiple_of(1 << 20) {
        1 << 20
    } else {
        1_000_000
    };
    bytes as f64 / f64::from(unit)
}

/// Returns the number of bytes that a base64 text encodes.
fn base64_len(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits / 4 * 3 + digits % 4 * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(kind: &str, media_type: &str, bytes: &[u8]) -> Block {
        let data = image::BASE64.encode(bytes);
        let json = format!(
            r#"{{"type":"{kind}","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}"#
        );
        Block::read(Raw::parse(&json).expect("test blocks are JSON"))
    }

    fn fault_of(block: &Block) -> Option<(Rule, Option<&'static str>)> {
        let raw = Raw::parse(block.json()).expect("blocks are JSON");
        let fault = fault(raw, Provider::Messages);
        fault.map(|fault| (fault.rule, fault.media_type))
    }

    #[test]
    fn refused_images_and_documents_are_known_by_their_bytes() {
        let png = |side| image::stand_in("image/png", side, 1);
        let too_large = Some((Rule::MediaTooLarge, None));
        let unusable = Some((Rule::UnusableMedia, None));
        let page = |number: usize| format!("{number} 0 obj << /Type /Page >>\n").into_bytes();
        let pdf = |pages: usize| {
            [
                b"%PDF-1.4\n<< /Type /Pages >>\n".as_slice(),
                &(0..pages).flat_map(page).collect::<Vec<u8>>(),
                b"startxref %%EOF",
            ]
            .concat()
        };
        let cut = png(3);
        for (kind, media_type, bytes, expected) in [
            ("image", "image/png", png(8_000), None),
            ("image", "image/png", png(8_001), too_large),
            (
                "image",
                "image/jpeg",
                png(3),
                Some((Rule::MediaType, Some("image/png"))),
            ),
            (
                "image",
                "image/png",
                cut[..cut.len() - 8].to_vec(),
                unusable,
            ),
            ("image", "image/png", b"<html></html>".to_vec(), unusable),
            ("document", "application/pdf", pdf(100), None),
            ("document", "application/pdf", pdf(101), too_large),
            // Its pages are in it twice, as after an update; and a text that names what says how it is encrypted.
            (
                "document",
                "application/pdf",
                [pdf(60), pdf(60)].concat(),
                None,
            ),
            (
                "document",
                "application/pdf",
                [b"%PDF-1.4 1 0 obj (the /Encrypt key)".to_vec(), pdf(1)].concat(),
                None,
            ),
            (
                "document",
                "application/pdf",
                b"<html></html>".to_vec(),
                unusable,
            ),
            (
                "document",
                "application/pdf",
                b"%PDF-1.4 obj /Encrypt 2 0 R startxref %%EOF".to_vec(),
                unusable,
            ),
            (
                "document",
                "application/pdf",
                b"%PDF-1.4\n%%EOF".to_vec(),
                unusable,
            ),
        ] {
            assert_eq!(
                fault_of(&medium(kind, media_type, &bytes)),
                expected,
                "{media_type}"
            );
        }
    }

    #[test]
    fn a_step_does_not_take_the_media_of_the_last_message() {
        let image = |padding: usize| {
            let mut bytes = image::stand_in("image/png", 9, 1);
            bytes.resize(bytes.len() + padding, 0);
            medium("image", "image/png", &bytes).with_origin(Some(7))
        };
        for (before, last, expected) in [
            (vec![image(0)], vec![image(0); 100], 100),
            (vec![image(1 << 20)], vec![image(3 << 20); 8], 7),
            (vec![image(3 << 20)], vec![image(3 << 20); 7], 7),
        ] {
            let all = last.len();
            let mut messages = vec![
                Message::new(Role::User, before),
                Message::new(Role::User, last),
            ];
            within_request_limits(&mut messages, Provider::Messages, &mut Log::default());
            let images = messages[1].blocks().iter();
            let sent = images.filter(|block| block.kind() == BlockKind::Image);
            assert_eq!(sent.count(), expected, "of {all}");
        }
    }

    #[test]
    fn images_of_a_document_have_the_limits_of_images_and_its_texts_stay() {
        const TEXT: &str = r#"{"type":"text","text":"The plan."}"#;
        let image = |side: u32| image::stand_in("image/png", side, 1);
        let image = |side: u32| medium("image", "image/png", &image(side));
        let document = |parts: &[&str]| {
            let parts = parts.join(",");
            let json = format!(
                r#"{{"type":"document","source":{{"type":"content","content":[{parts}]}}}}"#
            );
            Block::read(Raw::parse(&json).expect("test blocks are JSON"))
        };
        let (small, wide) = (image(9), image(8_001));
        let (small, wide) = (small.json(), wide.json());
        let bad = document(&[TEXT, wide, small]);
        assert_eq!(fault_of(&document(&[TEXT, small])), None);
        assert_eq!(fault_of(&bad), Some((Rule::MediaTooLarge, None)));
        let parts = |block: &Block| -> Vec<String> {
            let document = block.object().expect("a document");
            let parts = parts_of(&document).expect("a list").into_iter();
            parts.map(|raw| raw.text().to_owned()).collect()
        };
        let note = |part: &str| part.contains(texts::MEDIA_TOO_LARGE);
        let repaired = crate::without_refused_media(bad, &mut Log::default());
        let [text, first, second] = &parts(&repaired)[..] else {
            panic!("{}", repaired.json())
        };
        assert_eq!((&**text, note(first), &**second), (TEXT, true, small));
        let inside = document(&[document(&[small]).json()]);
        assert_eq!(fault_of(&inside), Some((Rule::UnusableMedia, None)));
        let repaired = crate::without_refused_media(inside, &mut Log::default());
        assert!(note(&parts(&repaired)[0]), "{}", repaired.json());

        // They count among the images of a request, also within a result.
        let wide = image(2_001);
        let document = document(&[TEXT, wide.json(), small]);
        let result = format!(
            r#"{{"type":"tool_result","tool_use_id":"t","content":[{TEXT},{}]}}"#,
            document.json()
        );
        let result = Block::read(Raw::parse(&result).expect("test blocks are JSON"));
        for holder in [document, result] {
            let mut blocks = vec![image(9); 19];
            blocks.push(holder);
            let mut messages = [Message::new(Role::User, blocks)];
            assert!(!are_within_limits(&media_of(&messages)));
            let mut log = Log::default();
            within_request_limits(&mut messages, Provider::Messages, &mut log);
            assert!(are_within_limits(&media_of(&messages)));
            assert_eq!(log.omissions.len() + log.synthetic.len(), 1);
            let json = messages[0].blocks()[19].json();
            assert!(json.contains("The plan.") && json.contains(small), "{json}");
            assert!(note(json) && !json.contains(wide.json()), "{json}");
        }
    }

    #[test]
    fn base64_without_its_padding_gets_it() {
        for len in 1..4 {
            let bytes = [image::stand_in("image/png", 9, 9), vec![0; len]].concat();
            for media_type in ["image/png", "image/gif"] {
                let whole = medium("image", "image/png", &bytes);
                let cut = medium("image", media_type, &bytes).json().replace('=', "");
                let cut = Block::read(Raw::parse(&cut).expect("test blocks are JSON"));
                let repaired = crate::without_refused_media(cut, &mut Log::default());
                assert_eq!(repaired.json(), whole.json());
            }
        }
    }

    /// Which of the images are sent.
    fn sent(sides: &[u32], padding: usize) -> Vec<usize> {
        let image = |side: &u32| {
            let mut bytes = image::stand_in("image/png", *side, 1);
            bytes.resize(bytes.len() + padding, 0);
            medium("image", "image/png", &bytes).with_origin(Some(7))
        };
        let mut messages: Vec<Message> = sides
            .iter()
            .map(|side| Message::new(Role::User, vec![image(side)]))
            .collect();
        let mut log = Log::default();
        within_request_limits(&mut messages, Provider::Messages, &mut log);
        assert!(are_within_limits(&media_of(&messages)));
        let is_sent = |at: &usize| messages[*at].blocks()[0].kind() == BlockKind::Image;
        let sent: Vec<usize> = (0..sides.len()).filter(is_sent).collect();
        assert_eq!(log.omissions.len(), sides.len() - sent.len());
        sent
    }

    #[test]
    fn the_oldest_images_give_way_until_a_request_is_within_its_limits() {
        let with_wide = |count: usize| [vec![9; count - 1], vec![2_001]].concat();
        assert_eq!(sent(&with_wide(20), 0).len(), 20);
        assert_eq!(sent(&with_wide(21), 0), (0..20).collect::<Vec<_>>());
        // Steps are of 12 images.
        assert_eq!(sent(&[9; 101], 0), (12..101).collect::<Vec<_>>());
        assert_eq!(sent(&[9; 112], 0), (12..112).collect::<Vec<_>>());
        assert_eq!(sent(&[9; 113], 0), (24..113).collect::<Vec<_>>());
        // Of images of 3 MiB, which are 4 MiB of base64, as are the steps, seven or six are sent.
        assert_eq!(sent(&[9; 7], 3 << 20), (0..7).collect::<Vec<_>>());
        assert_eq!(sent(&[9; 12], 3 << 20), (5..12).collect::<Vec<_>>());
    }
}
