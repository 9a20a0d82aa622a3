//! Requests that a transcript records about itself.
//!
//! Clients from 2.1.3xx on write an `api-request` line for each request, with the hashes of its
//! messages (REQ-1). [`check`] builds the same messages from the entries alone and compares them,
//! so that a file itself proves path and request form, without a network. The recorded messages
//! (`api-request-blob`) are only read to say where a request differs, never to build it.
//!
//! The cost is that of one resume for each recorded request.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::rc::Rc;

use transcript_format::kind::EntryKind;
use transcript_format::named;
use transcript_format::object::{JsonKind, Object, Raw};
use transcript_messages::text::quoted;
use transcript_messages::{Block, Log, Message, Part, Provider, Role};
use transcript_reader::{BodySource, EntryNo, Id, Index, NodeId, Policy, Tree};

use super::build::messages;
use super::load::Loaded;
use super::references::{self, wants_system_role};
use super::repair;
use super::step::{Rules, StepContext};

/// One recorded request, and whether its messages could be built again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The entry of the `api-request` line.
    pub entry: EntryNo,
    /// Its id, which the entries of the reply name as their `requestRef`.
    pub id: String,
    /// The cause of the request, as recorded.
    pub source: Option<String>,
    /// The version of the client that recorded it.
    pub version: Option<String>,
    /// The number of messages that were recorded; `None` when that depends on a request that is not in the
    /// file.
    pub messages: Option<usize>,
    /// The result of building it again.
    pub outcome: ReplayOutcome,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
}

/// The first difference between a recorded request and the one that was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The kind of the difference.
    pub kind: DifferenceKind,
    /// The place of the message, counted from 0: of an extra one among those that were built, else
    /// among those that were recorded.
    pub message: usize,
    /// The role of the message; `None` if it was recorded as a hash alone.
    pub role: Option<Role>,
    /// The entry that the message comes from; the one that its first different block comes from, if
    /// the recorded message is in the file. Of a missing message the last entry before it. `None` if
    /// there is none, as of a synthetic message.
    pub entry: Option<EntryNo>,
}

named! {
    /// The kinds of differences between a request and the recorded one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DifferenceKind {
        /// A message was recorded and not built.
        Missing = "missing-message": "a message is missing",
        /// A message was built and not recorded.
        Extra = "extra-message": "there is a message too many",
        /// A message was built with another content.
        Hash = "different-hash": "a message has another hash",
    }
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
        /// The number of messages that were built.
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
/// The errors of `bodies`.
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
    // Most sessions have none, and are not read further.
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let answers = Answers::read(index, bodies)?;
    let tools = tools_of_shapes(index, bodies)?;
    let mut blobs = Blobs::default();
    let mut known: HashMap<String, Vec<Hash>> = HashMap::new();
    let mut checked = Vec::with_capacity(requests.len());
    for (entry, line) in requests {
        let hashes = line.hashes(&known);
        let tools = line.shape.as_ref().and_then(|shape| tools.get(shape));
        let (mut outcome, mut difference) = (ReplayOutcome::UnknownBase, None);
        if let Some(hashes) = &hashes {
            match build(index, bodies, entry, &answers, &line, tools)? {
                Err(impossible) => outcome = impossible,
                Ok(built) => {
                    let first;
                    (outcome, first) = compare(&built, hashes);
                    if let Some(first) = first {
                        let recorded = blobs.get(hashes.get(first.message), index, bodies)?;
                        difference = Some(first.locate(&built, recorded.as_ref()));
                    }
                }
            }
        }
        checked.push(RecordedRequest {
            entry,
            id: line.id.clone(),
            source: line.source,
            version: line.version,
            messages: hashes.as_ref().map(Vec::len),
            outcome,
            difference,
        });
        // A request whose base is missing has no hashes: one that extends it is unknown as well, not wrong.
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
    version: Option<String>,
    model: Option<String>,
    /// The effort that the request asks for.
    effort: Option<String>,
    /// The hash of system prompt and tools.
    shape: Option<String>,
    base: Option<String>,
    keep: usize,
    tail: Vec<Hash>,
}

impl RequestLine {
    fn read(line: &Object<'_>) -> Option<Self> {
        let text = |object: &Object<'_>, key: &str| Some(object.get(key)?.str()?.into_owned());
        let params = line.get("params").and_then(Raw::object);
        let output = params.as_ref();
        let output = output.and_then(|params| params.get("output_config")?.object());
        let keep = line.get("keep").and_then(Raw::u64).unwrap_or(0);
        let tail = line.get("tail")?.array()?.into_iter();
        Some(Self {
            id: text(line, "id")?,
            source: text(line, "querySource"),
            version: text(line, "version"),
            model: params.as_ref().and_then(|params| text(params, "model")),
            effort: output.and_then(|output| text(&output, "effort")),
            shape: text(line, "shapeHash"),
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
            // Requests are recorded as differences: a conversation that grows would repeat all hashes each time.
            Some(base) => known.get(base)?.get(..self.keep)?,
            None => &[],
        };
        Some(kept.iter().chain(&self.tail).cloned().collect())
    }
}

/// Returns the names of the tools of each shape that requests refer to.
fn tools_of_shapes<B: BodySource>(
    index: &Index,
    bodies: &mut B,
) -> Result<HashMap<String, BTreeSet<String>>, B::Error> {
    let mut found = HashMap::new();
    let lines = index
        .entries()
        .filter(|entry_ref| entry_ref.kind() == EntryKind::ApiRequestShape);
    for entry_ref in lines {
        let line = Object::parse(bodies.body(&entry_ref)?).ok();
        let read = |line: Object<'_>| {
            let tools = line
                .get("shape")?
                .object()?
                .get("tools")?
                .array()?
                .into_iter();
            let name = |tool: Raw<'_>| Some(tool.object()?.get("name")?.str()?.into_owned());
            Some((
                line.get("shapeHash")?.str()?.into_owned(),
                tools.filter_map(name).collect(),
            ))
        };
        found.extend(line.and_then(read));
    }
    Ok(found)
}

/// The leaves and efforts of the requests, by the answers of a file.
#[derive(Default)]
struct Answers {
    /// For each request that was answered: the entry that the answer is a child of.
    leaves: HashMap<String, Option<Id>>,
    /// The effort that was asked for, of each answer that names it.
    efforts: HashMap<EntryNo, Rc<str>>,
}

impl Answers {
    fn read<B: BodySource>(index: &Index, bodies: &mut B) -> Result<Self, B::Error> {
        let mut answers = Self::default();
        let entries = index
            .entries()
            .filter(|entry_ref| entry_ref.kind() == EntryKind::Assistant);
        for entry_ref in entries {
            let Ok(body) = Object::parse(bodies.body(&entry_ref)?) else {
                continue;
            };
            let text = |key| Some(body.get(key)?.str()?.into_owned());
            if let Some(request) = text("requestRef") {
                let leaf = entry_ref.parent();
                // The first line of the answer: the parents of the others are lines of the same answer.
                answers.leaves.entry(request).or_insert(leaf);
            }
            let effort = text("perTurnEffort").or_else(|| text("effort"));
            let effort = effort.map(|effort| (entry_ref.number(), effort.into()));
            answers.efforts.extend(effort);
        }
        Ok(answers)
    }

    /// Adds the efforts that a request in role form names: in the `system` message of each turn whose
    /// effort is not that of the turn before, which is empty if there is none otherwise (REQ-3).
    fn add_efforts(&self, built: Vec<Message>, line: &RequestLine) -> Vec<Sent> {
        let mut sent: Vec<Sent> = built.into_iter().map(Sent::from).collect();
        let Some(asked) = line.effort.as_deref() else {
            return sent;
        };
        if !line.model.as_deref().is_some_and(wants_system_role) {
            return sent;
        }
        let mut in_force: Option<Rc<str>> = None;
        let mut at = 0;
        while at < sent.len() {
            let is_answer = |sent: &Sent| sent.message.role() == Role::Assistant;
            if is_answer(&sent[at]) {
                at += 1;
                continue;
            }
            let turn = sent[at..]
                .iter()
                .take_while(|sent| !is_answer(sent))
                .count();
            at += turn;
            let effort = match sent.get(at) {
                None => Some(asked.into()),
                Some(answer) => {
                    let origins = answer.message.blocks().iter().filter_map(Block::origin);
                    let mut entries = origins.map(EntryNo::new);
                    let named = entries.find_map(|entry| self.efforts.get(&entry).cloned());
                    named
                        .or_else(|| in_force.clone())
                        .or_else(|| Some(asked.into()))
                }
            };
            // Only a change is sent; the same effort in each turn would be a `system` message too many (REQ-3).
            if effort == in_force {
                continue;
            }
            in_force.clone_from(&effort);
            if sent[at - 1].message.role() != Role::System {
                sent.insert(at, Message::new(Role::System, Vec::new()).into());
                at += 1;
            }
            sent[at - 1].effort = effort;
        }
        sent
    }
}

/// A message as the client sends it.
struct Sent {
    message: Message,
    /// The effort that it names for what follows.
    effort: Option<Rc<str>>,
}

impl From<Message> for Sent {
    fn from(message: Message) -> Self {
        Self {
            message,
            effort: None,
        }
    }
}

/// Builds the messages of the `api-request` line `entry`, or says why that is not possible.
fn build<B: BodySource>(
    index: &Index,
    bodies: &mut B,
    entry: EntryNo,
    answers: &Answers,
    line: &RequestLine,
    tools: Option<&BTreeSet<String>>,
) -> Result<Result<Vec<Sent>, ReplayOutcome>, B::Error> {
    // The tree of that time: later lines may rewind, compact or repeat entries of the request.
    let tree = Tree::before(index, Policy::Vendor, entry);
    let answered = answers.leaves.get(&line.id).copied();
    let Some(leaf) = leaf_of(&tree, index, answered) else {
        return Ok(Err(ReplayOutcome::NoConversation));
    };
    let context = || StepContext::new(Rules::of(&tree), None, None);
    let mut log = Log::default();
    let Loaded {
        mut steps,
        unusable,
        ..
    } = Loaded::new(
        &tree,
        &tree.path_to_leaf(leaf),
        &context,
        None,
        bodies,
        &mut log,
    )?;
    if !unusable.is_empty() {
        return Ok(Err(ReplayOutcome::UnusableBody));
    }
    // Without the shape of the request it is not known which tools it has: then none is missing
    // (REQ-4).
    let of_references = tools.map_or(Policy::Recover, |_| Policy::Vendor);
    references::resolve(
        &mut steps,
        tools,
        line.model.as_deref(),
        of_references,
        &mut log,
    );
    // During a session nothing is completed: only on resume is an unfinished turn known as such.
    repair::drop_unfinished(&mut steps, Policy::Vendor, &mut log);
    let model = line.model.as_deref();
    let (policy, part, provider) = (Policy::Vendor, Part::WHOLE, Provider::Messages);
    let built = messages(steps, model, policy, part, provider, &mut log);
    Ok(Ok(answers.add_efforts(built, line)))
}

/// Compares the messages that were built with the hashes that were recorded.
fn compare(built: &[Sent], recorded: &[Hash]) -> (ReplayOutcome, Option<FirstDifference>) {
    let own: Vec<Hash> = built.iter().map(hash).collect();
    let all = 0..own.len().max(recorded.len());
    let Some(message) = { all }.find(|&at| own.get(at) != recorded.get(at)) else {
        return (ReplayOutcome::Reproduced, None);
    };
    let kind = match (own.get(message), recorded.get(message)) {
        (None, _) => DifferenceKind::Missing,
        (_, None) => DifferenceKind::Extra,
        // The next message is equal: one is missing or too many, and all further hashes are shifted by it.
        (built, _) if recorded.get(message + 1) == built => DifferenceKind::Missing,
        (_, recorded) if own.get(message + 1) == recorded => DifferenceKind::Extra,
        _ => DifferenceKind::Hash,
    };
    let outcome = ReplayOutcome::Differs {
        message,
        built: built.len(),
    };
    (outcome, Some(FirstDifference { kind, message }))
}

/// The place of the first difference.
struct FirstDifference {
    kind: DifferenceKind,
    message: usize,
}

impl FirstDifference {
    /// Finds the entry behind the difference; `recorded` is the message that was recorded at that
    /// place. Answers are not recorded.
    fn locate(&self, built: &[Sent], recorded: Option<&RecordedMessage>) -> Difference {
        let blocks = |at: usize| built.get(at).map_or(&[][..], |own| own.message.blocks());
        let role = match (self.kind, built.get(self.message)) {
            (DifferenceKind::Extra | DifferenceKind::Hash, Some(own)) => Some(own.message.role()),
            _ => recorded.map(|message| message.role),
        };
        let entry = match self.kind {
            DifferenceKind::Missing => {
                let before = (0..self.message).flat_map(blocks);
                before.filter_map(Block::origin).max()
            }
            DifferenceKind::Extra => blocks(self.message).iter().find_map(Block::origin),
            DifferenceKind::Hash => {
                let own = blocks(self.message);
                let same = own
                    .iter()
                    .zip(recorded.map_or(&[][..], |message| &message.blocks));
                let same = same
                    .take_while(|(own, recorded)| sorted(own) == **recorded)
                    .count();
                // Behind the last block, something is missing at the end.
                let here = own.get(same).and_then(Block::origin);
                here.or_else(|| own.iter().rev().find_map(Block::origin))
            }
        };
        Difference {
            kind: self.kind,
            message: self.message,
            role,
            entry: entry.map(EntryNo::new),
        }
    }
}

/// A message as it was recorded.
struct RecordedMessage {
    role: Role,
    /// Its blocks, in the form that is hashed.
    blocks: Vec<String>,
}

impl RecordedMessage {
    fn read(message: &Object<'_>) -> Option<Self> {
        let role = match &*message.get("role")?.str()? {
            "user" => Role::User,
            "system" => Role::System,
            _ => Role::Assistant,
        };
        let content = message.get("content")?;
        let blocks = match content.str() {
            Some(text) => vec![format!(r#"{{"text":{},"type":"text"}}"#, quoted(&text))],
            None => content.array()?.into_iter().map(in_order).collect(),
        };
        Some(Self { role, blocks })
    }
}

/// The `api-request-blob` lines by their hash, found when the first of them is needed.
#[derive(Default)]
struct Blobs(Option<HashMap<Hash, EntryNo>>);

impl Blobs {
    fn get<B: BodySource>(
        &mut self,
        hash: Option<&Hash>,
        index: &Index,
        bodies: &mut B,
    ) -> Result<Option<RecordedMessage>, B::Error> {
        // Only for a request that differs, as every line with a message is read for it.
        if self.0.is_none() {
            self.0 = Some(Self::find(index, bodies)?);
        }
        let entry = hash.and_then(|hash| self.0.as_ref()?.get(hash));
        let Some(entry) = entry else {
            return Ok(None);
        };
        let line = Object::parse(bodies.body(&index.entry(*entry))?).ok();
        let message = line.and_then(|line| line.get("message")?.object());
        Ok(message.as_ref().and_then(RecordedMessage::read))
    }

    fn find<B: BodySource>(
        index: &Index,
        bodies: &mut B,
    ) -> Result<HashMap<Hash, EntryNo>, B::Error> {
        let mut found = HashMap::new();
        let lines = index
            .entries()
            .filter(|entry_ref| entry_ref.kind() == EntryKind::ApiRequestBlob);
        for entry_ref in lines {
            let line = Object::parse(bodies.body(&entry_ref)?).ok();
            let hash = line.and_then(|line| Some(line.get("hash")?.str()?.into()));
            found.extend(hash.map(|hash| (hash, entry_ref.number())));
        }
        Ok(found)
    }
}

/// Returns the entry after which the request was made. A request without an answer was made after
/// the last tip of that time.
fn leaf_of(tree: &Tree<'_>, index: &Index, under: Option<Option<Id>>) -> Option<NodeId> {
    let Some(parent) = under else {
        return Some(tree.last_tip()?.0);
    };
    // Between the request and its answer the client writes attachments that were not sent with it,
    // such as the definitions of tools (REQ-4).
    let mut parent = parent?;
    for _ in 0..index.len() {
        if let Some(node) = tree.node_with_uuid(parent) {
            return Some(node);
        }
        let above = index.entry(index.with_uuid(parent).next()?);
        parent = above.parent()?;
    }
    None
}

/// Returns the hash that the client records for a message: SHA-256 of its JSON with sorted keys, no
/// spaces and content as a list of blocks (REQ-2). The caller has removed cache breakpoints.
fn hash(sent: &Sent) -> Hash {
    let Sent { message, effort } = sent;
    let mut json = String::from(r#"{"content":["#);
    for (at, block) in message.blocks().iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        json += &sorted(block);
    }
    json.push(']');
    if let Some(effort) = effort {
        json += r#","output_config":{"effort":"#;
        json += &quoted(effort);
        json.push('}');
    }
    json += r#","role":"#;
    json += &quoted(message.role().name());
    json.push('}');
    let mut hex = String::with_capacity(64);
    for byte in hmac_sha256::Hash::hash(json.as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.into()
}

/// Returns a block as it is hashed.
fn sorted(block: &Block) -> String {
    Raw::parse(block.json()).map_or_else(|_| String::new(), in_order)
}

/// Returns a value as it is hashed.
fn in_order(value: Raw<'_>) -> String {
    let mut json = String::new();
    write_sorted(value, &mut json);
    json
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
