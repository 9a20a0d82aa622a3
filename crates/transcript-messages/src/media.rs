//! Images and documents that the API would refuse.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem;
use transcript_format::object::Raw;
use transcript_format::texts;

use super::block::{Block, BlockKind, kind_of};
use super::image;
use super::lint::Rule;
use super::log::{Log, OmissionReason, SyntheticKind};
use super::message::{Message, Role};

/// The most that the API accepts, in bytes of the file itself.
pub(super) const MAX_IMAGE: usize = 5 << 20;
pub(super) const MAX_PDF: usize = 32 << 20;
pub(super) const MAX_TEXT_DOCUMENT: usize = 5 << 20;

/// Replaces every image and document of a block that is too large by a note: one of them makes the
/// API refuse this request and every one after it.
pub fn within_limits(mut block: Block, log: &mut Log) -> Block {
    if !may_be_too_large(&block) {
        return block;
    }
    let origin = block.origin();
    let mut note = |note: Option<String>| {
        let note = Block::text(&note?);
        log.omit(origin, OmissionReason::OversizedMedia);
        log.add_synthetic(SyntheticKind::MediaNote, Role::User, &note, origin);
        Some(note)
    };
    if block.kind() == BlockKind::ToolResult {
        let content = block.object().and_then(|result| {
            let blocks = result.get("content")?.array()?;
            let notes: Vec<Option<Block>> = blocks.iter().map(|raw| note(refusal(*raw))).collect();
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
        .and_then(|raw| note(refusal(raw)));
    note.map_or(block, |note| note.with_origin(origin))
}

/// Returns whether a block is an image or a document larger than the API accepts, or a result that
/// holds one.
pub(super) fn is_too_large(block: &Block) -> bool {
    if !may_be_too_large(block) {
        return false;
    }
    let Some(object) = block.object() else {
        return false;
    };
    let content = object.get("content").and_then(Raw::array);
    let blocks = content.into_iter().flatten();
    blocks
        .chain([object.raw()])
        .any(|raw| refusal(raw).is_some())
}

/// The largest image, in bytes of its base64 text and in pixels of each side.
pub(super) const MAX_IMAGE_TEXT: usize = 5 << 20;
const MAX_SIDE: u32 = 8_000;
/// The maximum number of pages of a PDF.
const MAX_PAGES: usize = 100;

/// Why the API refuses an image or a document, whatever else is in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) rule: Rule,
    /// What is wrong with it, for the note in its place.
    why: String,
    /// The type that an image has, if only the one that it names is wrong.
    pub(super) media_type: Option<&'static str>,
}

impl Fault {
    fn unusable(why: &str) -> Option<Self> {
        Some(Self {
            rule: Rule::UnusableMedia,
            why: why.to_owned(),
            media_type: None,
        })
    }

    fn too_large(why: String) -> Option<Self> {
        Some(Self {
            rule: Rule::MediaTooLarge,
            why,
            media_type: None,
        })
    }

    /// Returns the note in place of the image or document.
    pub(super) fn note(&self) -> Block {
        Block::text(&format!("{}{}]", texts::MEDIA_TOO_LARGE, self.why))
    }
}

/// Returns why the API refuses an image or a document.
///
/// Only its parts, their check sums and, of a PDF, its words are looked at: whether all of it can be decoded is not known. What is named by an address or an id is not looked at.
pub(super) fn fault(media: Raw<'_>) -> Option<Fault> {
    const NO_DATA: &str = "no usable data";
    let Some(media) = media.object() else {
        return Fault::unusable(NO_DATA);
    };
    let Some(source) = media.get("source").and_then(Raw::object) else {
        return Fault::unusable(NO_DATA);
    };
    let text = |key: &str| source.get(key).and_then(Raw::str).unwrap_or_default();
    let is_base64 = &*text("type") == "base64";
    let data = text("data");
    if (is_base64 || &*text("type") == "text") && data.is_empty() {
        return Fault::unusable(NO_DATA);
    }
    match BlockKind::of(&media) {
        _ if !is_base64 => None,
        BlockKind::Image => image_fault(&text("media_type"), &data),
        _ => document_fault(&data),
    }
}

/// Returns a short text in the place of long base64, of which no check of an image or a document says anything else; `None`
/// if the text is no such base64, or if it has to stay as it is.
///
/// For requests that are only checked: their images need not be in memory.
#[must_use]
pub fn abridged_media(data: &str) -> Option<String> {
    if !may_be_media(data) {
        return None;
    }
    const STAND_IN: &[u8] = b"%PDF-1.4 obj startxref %%EOF";
    let bytes = match data.starts_with("JVBERi") {
        true => document_fault(data).is_none().then(|| STAND_IN.to_vec()),
        false => {
            let start = start_of(data)?;
            let media_type = image::media_type(&start)?;
            let is_sound = image_fault(media_type, data).is_none();
            let (width, height) = image::dimensions(&start).filter(|_| is_sound)?;
            Some(image::stand_in(media_type, width, height))
        }
    };
    bytes.map(|bytes| BASE64.encode(bytes))
}

/// Returns whether a text starts as the base64 of an image or a document does.
#[must_use]
pub fn may_be_media(data: &str) -> bool {
    ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "JVBERi"]
        .iter()
        .any(|start| data.starts_with(start))
}

fn image_fault(media_type: &str, data: &str) -> Option<Fault> {
    if data.len() > MAX_IMAGE_TEXT {
        return Fault::too_large(format!(
            "{media_type}, {} characters of base64, more than the {MAX_IMAGE_TEXT} that the API takes",
            data.len()
        ));
    }
    let Some(start) = start_of(data) else {
        return Fault::unusable("an image that is not base64");
    };
    let Some(own_type) = image::media_type(&start) else {
        return Fault::unusable("bytes that are no image of a type that the API takes");
    };
    let Some((width, height)) = image::dimensions(&start) else {
        return Fault::unusable("an image whose size cannot be read");
    };
    if width.max(height) > MAX_SIDE {
        return Fault::too_large(format!(
            "{own_type}, {width} x {height} pixels, more than the {MAX_SIDE} of each side that the API takes"
        ));
    }
    if !decode(data.as_bytes()).is_some_and(|bytes| image::is_whole(&bytes)) {
        return Fault::unusable("an image that is cut off or damaged");
    }
    (own_type != media_type).then(|| Fault {
        rule: Rule::MediaType,
        why: String::new(),
        media_type: Some(own_type),
    })
}

fn document_fault(data: &str) -> Option<Fault> {
    const START: usize = 1 << 10;
    let Some(bytes) = decode(data.as_bytes()) else {
        return Fault::unusable("a document that is not base64");
    };
    let has = |part: &[u8]| memmem::find(&bytes, part).is_some();
    if memmem::find(&bytes[..bytes.len().min(START)], b"%PDF-").is_none() {
        return Fault::unusable("bytes that are no PDF");
    }
    // Its last lines say where its objects are.
    let table = memmem::rfind(&bytes, b"startxref");
    let has_end = table.is_some_and(|at| memmem::find(&bytes[at..], b"%%EOF").is_some());
    if !has(b"obj") || !has_end {
        return Fault::unusable("a PDF that is cut off or has no objects");
    }
    if has(b"/Encrypt") {
        return Fault::unusable("a PDF that a password protects");
    }
    // Pages in compressed objects are not seen.
    let pages = memmem::find_iter(&bytes, b"/Type").filter(|at| {
        let rest = bytes[at + 5..].trim_ascii_start();
        rest.strip_prefix(b"/Page")
            .is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
    });
    let pages = pages.count();
    (pages > MAX_PAGES).then_some(()).and_then(|()| {
        Fault::too_large(format!(
            "a PDF of {pages} pages, more than the {MAX_PAGES} that the API takes"
        ))
    })
}

/// What the API accepts in one request: the maximum number of images, of the pixels of each side if there are more images
/// than a few, and of bytes.
const MAX_IMAGES: usize = 100;
const MANY_IMAGES: usize = 20;
const MAX_SIDE_OF_MANY: u32 = 2_000;
pub(super) const MAX_REQUEST: usize = 32 << 20;

/// An image or a document in a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    pub(super) message: usize,
    pub(super) block: usize,
    /// Its place in the content of a result.
    inner: Option<usize>,
    pub(super) is_image: bool,
    /// The longer side of an image, in pixels, if that is known.
    side: Option<u32>,
    len: usize,
}

/// Returns the images and documents of a request, the oldest first.
pub(super) fn media_of(messages: &[Message]) -> Vec<Medium> {
    let mut found = Vec::new();
    let mut add = |message, block, inner, raw: Raw<'_>| {
        let kind = kind_of(raw);
        if matches!(kind, BlockKind::Image | BlockKind::Document) {
            let is_image = kind == BlockKind::Image;
            found.push(Medium {
                message,
                block,
                inner,
                is_image,
                side: side(raw).filter(|_| is_image),
                len: raw.text().len(),
            });
        }
    };
    for (at, message) in messages.iter().enumerate() {
        // A sound block has none.
        let blocks = message.blocks().iter().enumerate();
        for (number, block) in blocks.filter(|(_, block)| !block.is_sound()) {
            let Ok(raw) = Raw::parse(block.json()) else {
                continue;
            };
            if block.kind() == BlockKind::ToolResult {
                let content = raw
                    .object()
                    .and_then(|result| result.get("content")?.array());
                for (inner, raw) in content.into_iter().flatten().enumerate() {
                    add(at, number, Some(inner), raw);
                }
            } else {
                add(at, number, None, raw);
            }
        }
    }
    found
}

/// Returns the longer side of an image whose bytes are in the block, in pixels.
fn side(media: Raw<'_>) -> Option<u32> {
    let source = media.object()?.get("source")?.object()?;
    let data = source.get("data")?.str()?;
    let (width, height) = image::dimensions(&start_of(&data)?)?;
    Some(width.max(height))
}

/// Returns whether the images of a request are within its limits.
pub(super) fn are_within_limits(messages: &[Message]) -> bool {
    let media = media_of(messages);
    let images = media.iter().filter(|medium| medium.is_image);
    let count = images.clone().count();
    let is_wide = |medium: &Medium| medium.side.is_some_and(|side| side > MAX_SIDE_OF_MANY);
    count <= MAX_IMAGES && (count <= MANY_IMAGES || !images.clone().any(is_wide))
}

/// Replaces images and documents by notes until a request is within the limits of the API: images of many pixels if there
/// are more than 20, and then the oldest ones, to the maximum number of images and of bytes.
pub fn within_request_limits(messages: &mut [Message], log: &mut Log) {
    let mut media = media_of(messages);
    let count = |media: &[Medium]| media.iter().filter(|medium| medium.is_image).count();
    let images = count(&media);
    if images > MANY_IMAGES {
        media.retain(|medium| {
            let is_wide = medium.side.is_some_and(|side| side > MAX_SIDE_OF_MANY);
            if is_wide {
                let why = format!(
                    "an image of more than {MAX_SIDE_OF_MANY} pixels, which the API does not take among {images}"
                );
                replace(messages, medium, &why, log);
            }
            !is_wide
        });
    }
    let mut surplus = count(&media).saturating_sub(MAX_IMAGES);
    media.retain(|medium| {
        let is_surplus = medium.is_image && surplus > 0;
        if is_surplus {
            surplus -= 1;
            let why = format!("an older image than the {MAX_IMAGES} that the API takes");
            replace(messages, medium, &why, log);
        }
        !is_surplus
    });
    let blocks = messages.iter().flat_map(Message::blocks);
    let mut size: usize = blocks.map(Block::json_len).sum();
    for medium in &media {
        if size <= MAX_REQUEST {
            break;
        }
        size = size.saturating_sub(medium.len);
        let why = format!(
            "older media than the {} MB of a request that the API takes",
            MAX_REQUEST >> 20
        );
        replace(messages, medium, &why, log);
    }
}

/// Puts a note in the place of an image or a document that is beyond the limits of a request.
fn replace(messages: &mut [Message], medium: &Medium, why: &str, log: &mut Log) {
    replace_by_note(messages, medium, why, OmissionReason::RequestLimit, log);
}

/// Puts a note in the place of an image or a document that is omitted for this reason.
pub(super) fn replace_by_note(
    messages: &mut [Message],
    medium: &Medium,
    why: &str,
    reason: OmissionReason,
    log: &mut Log,
) {
    let note = Block::text(&format!("{}{why}]", texts::MEDIA_TOO_LARGE));
    let message = &mut messages[medium.message];
    let role = message.role();
    let block = &mut message.blocks[medium.block];
    let origin = block.origin();
    log.omit(origin, reason);
    log.add_synthetic(SyntheticKind::MediaNote, role, &note, origin);
    let Some(inner) = medium.inner else {
        *block = note.with_origin(origin);
        return;
    };
    let content = block.object().and_then(|result| {
        let blocks = result.get("content")?.array()?;
        let texts: Vec<&str> = blocks
            .iter()
            .enumerate()
            .map(|(at, raw)| if at == inner { note.json() } else { raw.text() })
            .collect();
        Some(format!("[{}]", texts.join(",")))
    });
    if let Some(content) = content {
        block.set("content", &content);
    }
}

/// Base64 with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Decodes the first bytes of a base64 text, in which all formats have their size.
pub(super) fn start_of(text: &str) -> Option<Vec<u8>> {
    const START: usize = 256 << 10;
    match text.as_bytes().get(..START) {
        Some(start) => decode(start),
        None => decode(text.as_bytes()),
    }
}

/// Base64 is longer than the data it encodes, so a short block cannot hold a large file. A sound one
/// holds none.
fn may_be_too_large(block: &Block) -> bool {
    !block.is_sound() && block.json_len() > MAX_IMAGE.min(MAX_TEXT_DOCUMENT)
}

/// Returns the replacement for media that are too large; `None` for all others.
fn refusal(media: Raw<'_>) -> Option<String> {
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
        BlockKind::Image => MAX_IMAGE,
        _ if is_base64 => MAX_PDF,
        _ => MAX_TEXT_DOCUMENT,
    };
    (len > limit).then(|| {
        let megabytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        format!(
            "{}{media_type}, {:.1} MB, more than the {:.0} MB that the API takes]",
            texts::MEDIA_TOO_LARGE,
            megabytes(len),
            megabytes(limit)
        )
    })
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
        let data = BASE64.encode(bytes);
        let json = format!(
            r#"{{"type":"{kind}","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}"#
        );
        Block::read(Raw::parse(&json).expect("test blocks are JSON"))
    }

    fn fault_of(block: &Block) -> Option<(Rule, Option<&'static str>)> {
        let fault = fault(Raw::parse(block.json()).expect("blocks are JSON"));
        fault.map(|fault| (fault.rule, fault.media_type))
    }

    #[test]
    fn what_the_api_refuses_of_one_image_or_document_is_known_by_its_bytes() {
        let png = |side| image::stand_in("image/png", side, 1);
        let too_large = Some((Rule::MediaTooLarge, None));
        let unusable = Some((Rule::UnusableMedia, None));
        let page = b"1 0 obj << /Type /Page >>\n";
        let pdf = |pages: usize| {
            [
                b"%PDF-1.4\n<< /Type /Pages >>\n".as_slice(),
                &page.repeat(pages),
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
        within_request_limits(&mut messages, &mut log);
        assert!(are_within_limits(&messages));
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
        assert_eq!(sent(&[9; 103], 0), (3..103).collect::<Vec<_>>());
        // Of twelve images of 3 MiB, which are 4 MiB of base64, seven are sent.
        assert_eq!(sent(&[9; 12], 3 << 20), (5..12).collect::<Vec<_>>());
    }
}
