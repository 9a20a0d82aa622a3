//! Thinking that is not sent: that of another model, that whose text was removed, and that which a program between client
//! and API signed in the name of Claude.
//!
//! Newer models return thinking as a signature with an empty text, and expect it back unchanged.
//! That looks the same as thinking whose text some program did not store, which the API refuses as
//! changed. An empty text alone therefore proves nothing, and the block stays unless there is proof
//! that it had a text:
//!
//! 1. the same signature appears with a text elsewhere, on another line or an earlier copy of this
//!    one;
//! 2. another signed thinking block of the same API message has a text: whether texts are returned
//!    is a setting of the request;
//! 3. it is the only signed thinking block of its model without a text, and the model's blocks
//!    before and after it have one. With several such blocks, a person may have changed the setting
//!    and changed it back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use transcript_format::object::{Object, Raw, Str};
use transcript_messages::block::is_signature;
use transcript_messages::{Block, BlockKind, Log, OmissionReason, Rule};
use transcript_reader::{BodySource, EntryRef, Index};

use super::step::{Step, StepKind};

/// Drops thinking that another model signed, and entries that held nothing else (MSG-10).
pub(super) fn drop_foreign(steps: &mut Vec<Step>, model: Option<&str>, log: &mut Log) {
    steps.retain_mut(|step| {
        let is_own = step.model().is_none_or(|own| Some(&**own) == model);
        if is_own || step.kind != StepKind::Assistant {
            return true;
        }
        let before = step.blocks.len();
        step.blocks
            .retain(|block| block.kind() != BlockKind::SealedThinking);
        let is_changed = step.blocks.len() < before;
        if is_changed {
            log.omit(step.origin(), OmissionReason::ForeignThinking);
        }
        !is_changed || !step.blocks.is_empty()
    });
}

/// Drops thinking that Claude cannot have signed, as its signatures are Base64, and entries that held nothing else.
pub(super) fn drop_unsigned(steps: &mut Vec<Step>, log: &mut Log) {
    steps.retain_mut(|step| {
        if !step.model().is_some_and(|model| model.contains("claude")) {
            return true;
        }
        let before = step.blocks.len();
        step.blocks.retain(|block| {
            // A sound one has a signature of the right form.
            let thought = Some(block).filter(|block| !block.is_sound());
            let thought = thought.and_then(Thought::read);
            let is_unsigned = thought.is_some_and(|thought| !is_signature(&thought.signature));
            if is_unsigned {
                let reason = OmissionReason::Refused(Rule::UnsignedThinking);
                log.omit(block.origin(), reason);
            }
            !is_unsigned
        });
        before == step.blocks.len() || !step.blocks.is_empty()
    });
}

/// Drops signed thinking whose text was provably removed, and entries that held nothing else.
/// `stored` are signatures that earlier copies of lines have with a text.
pub(super) fn drop_emptied(steps: &mut Vec<Step>, mut stored: HashSet<Box<str>>, log: &mut Log) {
    let is_empty = |block: &Block| Thought::read(block).is_some_and(|thought| !thought.has_text);
    let blocks = steps.iter().flat_map(|step| &step.blocks);
    // A sound one has its text.
    if !blocks.filter(|block| !block.is_sound()).any(is_empty) {
        return;
    }
    let mut with_text: HashSet<String> = HashSet::new();
    let mut of_model: HashMap<Arc<str>, Thoughts> = HashMap::new();
    for step in steps.iter() {
        for thought in step.blocks.iter().filter_map(Thought::read) {
            let model = step.model().cloned().unwrap_or_default();
            of_model.entry(model).or_default().add(&thought);
            if thought.has_text {
                stored.insert(thought.signature);
                with_text.extend(step.message_id().map(Str::into_owned));
            }
        }
    }
    steps.retain_mut(|step| {
        let is_reported = step.message_id().is_some_and(|id| with_text.contains(&*id));
        let model = step.model().cloned().unwrap_or_default();
        let is_exception = of_model
            .get(&model)
            .is_some_and(Thoughts::have_one_exception);
        let before = step.blocks.len();
        step.blocks.retain(|block| {
            let was_emptied = Thought::read(block).is_some_and(|thought| {
                let is_stored = || stored.contains(&thought.signature);
                !thought.has_text && (is_reported || is_exception || is_stored())
            });
            if was_emptied {
                log.omit(
                    block.origin(),
                    OmissionReason::Refused(Rule::EmptiedThinking),
                );
            }
            !was_emptied
        });
        before == step.blocks.len() || !step.blocks.is_empty()
    });
}

/// Returns the signatures that other lines of the same entry have with a text, when one of
/// `blocks`, the blocks of the entry, has lost its text.
///
/// # Errors
/// The errors of `bodies`.
pub(super) fn stored_with_text<B: BodySource>(
    blocks: &[Block],
    entry_ref: &EntryRef<'_>,
    index: &Index,
    bodies: &mut B,
) -> Result<Vec<Box<str>>, B::Error> {
    let unsound = blocks.iter().filter(|block| !block.is_sound());
    let mut found = Vec::new();
    if !unsound
        .filter_map(Thought::read)
        .any(|thought| !thought.has_text)
    {
        return Ok(found);
    }
    let lines = entry_ref.uuid().map(|id| index.with_uuid(id));
    for line in lines.into_iter().flatten() {
        if line == entry_ref.number() {
            continue;
        }
        let body = bodies.body(&index.entry(line))?;
        let body = Object::parse(body).ok();
        let message = body.and_then(|body| body.get("message")?.object());
        let content = message.and_then(|message| message.get("content")?.array());
        let blocks = content.into_iter().flatten().map(Block::read);
        let thoughts = blocks.filter_map(|block| Thought::read(&block));
        let thoughts = thoughts.filter(|thought| thought.has_text);
        found.extend(thoughts.map(|thought| thought.signature));
    }
    Ok(found)
}

/// A thinking block with a signature, with or without its text.
pub(super) struct Thought {
    pub(super) signature: Box<str>,
    pub(super) has_text: bool,
}

impl Thought {
    /// Returns `None` for other blocks, and for `redacted_thinking`, which never has a text.
    pub(super) fn read(block: &Block) -> Option<Self> {
        if block.kind() != BlockKind::SealedThinking {
            return None;
        }
        let thought = block.object()?;
        let text = thought.get("thinking").and_then(Raw::str);
        Some(Self {
            signature: thought.get("signature")?.str()?.into(),
            has_text: text.is_some_and(|text| !text.is_empty()),
        })
    }
}

/// The signed thinking blocks of a model, in order.
#[derive(Default)]
struct Thoughts {
    empty: usize,
    /// One with a text precedes the empty one.
    starts_with_text: bool,
    /// One with a text follows it.
    ends_with_text: bool,
}

impl Thoughts {
    fn add(&mut self, thought: &Thought) {
        if !thought.has_text {
            self.empty += 1;
        } else if self.empty == 0 {
            self.starts_with_text = true;
        } else {
            self.ends_with_text = true;
        }
    }

    fn have_one_exception(&self) -> bool {
        self.empty == 1 && self.starts_with_text && self.ends_with_text
    }
}
