//! Requests that a transcript records about itself.
//!
//! Clients from 2.1.3xx on write an `api-request` line for each request, with the hashes of its
//! messages (REQ-1). [`check`] builds the same messages from the entries alone and compares them,
//! so that a file itself proves path and request form, without a network. The recorded messages
//! (`api-request-blob`) are never read.
//!
//! The cost is that of one resume for each recorded request.

use std::collections::HashMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use transcript_format::kind::EntryKind;
use transcript_format::object::{JsonKind, Object, Raw};
use transcript_messages::text::quoted;
use transcript_messages::{Log, Message, Part};
use transcript_reader::{EntryNo, Id, Index};

use super::{BodySource, Loaded, messages, repair};
use crate::leaf::MessagesAbove;
use crate::tree::{NodeId, Policy, Tree};

/// One recorded request, and whether its messages could be built again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The entry of the `api-request` line.
    pub entry: EntryNo,
    /// Its id, which the entries of the reply name as their `requestRef`.
    pub id: String,
    /// What caused the request, as recorded.
    pub source: Option<String>,
    /// How many messages were recorded; `None` when that depends on a request that is not in the
    /// file.
    pub messages: Option<usize>,
    /// The result of building it again.
    pub outcome: ReplayOutcome,
}

/// The result of building a recorded request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayOutcome {
    /// All messages have the recorded hashes.
    Reproduced,
    /// This message, counted from 0, is the first with another hash, or that only one side has.
    Differs {
        /// Its place.
        message: usize,
        /// How many messages were built.
        built: usize,
    },
    /// The request extends one that is not in the file, or keeps more of it than there is.
    UnknownBase,
    /// There is no conversation before the line.
    NoConversation,
    /// The file changed: bodies of the path cannot be read.
    UnusableBody,
}

impl ReplayOutcome {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs { .. } => "differs",
            Self::UnknownBase => "unknown-base",
            Self::NoConversation => "no-conversation",
            Self::UnusableBody => "unusable-body",
        }
    }
}

/// Builds every recorded request of `index` from the entries that precede it.
///
/// # Errors
/// Those of `bodies`.
pub fn check<B: BodySource>(
    index: &Index,
    bodies: &mut B,
) -> Result<Vec<RecordedRequest>, B::Error> {
    let lines = index
        .entries()
        .filter(|entry_ref| entry_ref.kind() == EntryKind::ApiRequest);
    let mut requests = Vec::new();
    for entry_ref in lines {
        let line = Object::parse(bodies.body(&entry_ref)?);
        if let Some(line) = line.ok().and_then(|line| RequestLine::read(&line)) {
            requests.push((entry_ref.number(), line));
        }
    }
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let leaves = leaves(index, bodies)?;
    let mut known: HashMap<String, Vec<Hash>> = HashMap::new();
    let mut checked = Vec::with_capacity(requests.len());
    for (entry, line) in requests {
        let hashes = line.hashes(&known);
        let outcome = match &hashes {
            Some(hashes) => {
                let leaf = leaves.get(&line.id).copied();
                compare(index, bodies, entry, leaf, &line, hashes)?
            }
            None => ReplayOutcome::UnknownBase,
        };
        checked.push(RecordedRequest {
            entry,
            id: line.id.clone(),
            source: line.source,
            messages: hashes.as_ref().map(Vec::len),
            outcome,
        });
        known.insert(line.id, hashes.unwrap_or_default());
    }
    Ok(checked)
}

/// The hash of a message, in hexadecimal.
type Hash = Box<str>;

/// The contents of an `api-request` line.
struct RequestLine {
    id: String,
    source: Option<String>,
    model: Option<String>,
    base: Option<String>,
    keep: usize,
    tail: Vec<Hash>,
}

impl RequestLine {
    fn read(line: &Object<'_>) -> Option<Self> {
        let text = |object: &Object<'_>, key: &str| Some(object.get(key)?.str()?.into_owned());
        let params = line.get("params").and_then(Raw::object);
        let keep = line.get("keep").and_then(Raw::u64).unwrap_or(0);
        let tail = line.get("tail")?.array()?.into_iter();
        Some(Self {
            id: text(line, "id")?,
            source: text(line, "querySource"),
            model: params.and_then(|params| text(&params, "model")),
            base: text(line, "base"),
            keep: usize::try_from(keep).ok()?,
            tail: tail
                .map(|hash| hash.str().map(|hash| hash.into()))
                .collect::<Option<_>>()?,
        })
    }

    /// Returns the hashes of all messages; `None` when the request that it extends is not known.
    fn hashes(&self, known: &HashMap<String, Vec<Hash>>) -> Option<Vec<Hash>> {
        let kept = match &self.base {
            Some(base) => known.get(base)?.get(..self.keep)?,
            None => &[],
        };
        Some(kept.iter().chain(&self.tail).cloned().collect())
    }
}

/// For each request that was answered: the entry that the reply is a child of.
fn leaves<B: BodySource>(
    index: &Index,
    bodies: &mut B,
) -> Result<HashMap<String, Option<Id>>, B::Error> {
    let mut leaves = HashMap::new();
    let answers = index
        .entries()
        .filter(|entry_ref| entry_ref.kind() == EntryKind::Assistant);
    for entry_ref in answers {
        let body = Object::parse(bodies.body(&entry_ref)?);
        let request = body
            .ok()
            .and_then(|body| Some(body.get("requestRef")?.str()?.into_owned()));
        if let Some(request) = request {
            leaves.entry(request).or_insert(entry_ref.parent());
        }
    }
    Ok(leaves)
}

/// Builds the request of the `api-request` line `entry` and compares it.
fn compare<B: BodySource>(
    index: &Index,
    bodies: &mut B,
    entry: EntryNo,
    leaf: Option<Option<Id>>,
    line: &RequestLine,
    hashes: &[Hash],
) -> Result<ReplayOutcome, B::Error> {
    let tree = Tree::before(index, Policy::Vendor, entry);
    let Some(leaf) = leaf_of(&tree, leaf) else {
        return Ok(ReplayOutcome::NoConversation);
    };
    let mut log = Log::default();
    let Loaded {
        mut steps,
        unusable,
        ..
    } = Loaded::new(
        &tree,
        &tree.path_to_leaf(leaf),
        None,
        &|| None,
        bodies,
        &mut log,
    )?;
    if !unusable.is_empty() {
        return Ok(ReplayOutcome::UnusableBody);
    }
    // During a session nothing is completed: only on resume is an unfinished turn known as such.
    repair::drop_unfinished(&mut steps, Policy::Vendor, &mut log);
    let model = line.model.as_deref();
    let built = messages(steps, model, Policy::Vendor, Part::WHOLE, &mut log);
    let differs = (0..built.len().max(hashes.len())).find(|&at| {
        let built = built.get(at).map(hash);
        built.as_ref() != hashes.get(at)
    });
    Ok(differs.map_or(ReplayOutcome::Reproduced, |message| {
        ReplayOutcome::Differs {
            message,
            built: built.len(),
        }
    }))
}

/// Returns the entry after which the request was made. A request without an answer was made after
/// the last tip of that time.
fn leaf_of(tree: &Tree<'_>, under: Option<Option<Id>>) -> Option<NodeId> {
    match under {
        Some(parent) => tree.node_with_uuid(parent?),
        None => Some(tree.last_tip(&mut MessagesAbove::new(tree))?.0),
    }
}

/// Returns the hash that the client records for a message: SHA-256 of its JSON with sorted keys, no
/// spaces and content as a list of blocks (REQ-2). The caller has removed cache breakpoints.
fn hash(message: &Message) -> Hash {
    let mut json = String::from(r#"{"content":["#);
    for (at, block) in message.blocks().iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        if let Ok(raw) = Raw::parse(block.json()) {
            write_sorted(raw, &mut json);
        }
    }
    json += r#"],"role":"#;
    json += &quoted(message.role().name());
    json.push('}');
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(json) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.into()
}

/// Writes a value as `JSON.stringify` does: keys sorted, no white space, no needless escapes.
/// Numbers stay as they are, as the client wrote them itself.
fn write_sorted(value: Raw<'_>, out: &mut String) {
    match value.kind() {
        JsonKind::Object => {
            let object = value.object();
            let mut members: Vec<_> = object.iter().flat_map(Object::members).collect();
            // JavaScript sorts by UTF-16 units.
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                *out += &quoted(key);
                out.push(':');
                write_sorted(*value, out);
            }
            out.push('}');
        }
        JsonKind::Array => {
            out.push('[');
            for (at, value) in value.array().unwrap_or_default().into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_sorted(value, out);
            }
            out.push(']');
        }
        JsonKind::String => *out += &quoted(&value.str().unwrap_or_default()),
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => *out += value.text(),
    }
}
