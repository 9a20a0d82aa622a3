//! What a hand-over omits, changes and adds.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use super::target::Target;

/// What a hand-over omits, changes and adds. What it does not list arrives as it was.
///
/// Items are named by their numbers in the conversation that is handed over, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LossReport {
    /// The version of this form: 1.
    pub schema: u32,
    /// The client that gets the conversation.
    pub target: Target,
    /// The number of items of the conversation.
    pub items: usize,
    /// The number of those that are written, whole or in part.
    pub carried: usize,
    /// How often each thing of the lists below happens, by its name.
    pub counts: BTreeMap<&'static str, usize>,
    /// The items that are not written, in their order.
    pub omitted: Vec<Omitted>,
    /// The items that are written with a change, in their order; several changes of one item are several entries.
    pub changed: Vec<Changed>,
    /// What is added, by the hand-over or by the client when it continues the session.
    pub added: Vec<Added>,
    /// The models that wrote parts of it. No client receives them: each continues with its own.
    pub models: BTreeSet<String>,
    /// The number of items whose tokens are known. They are not written: the client would add them to its own.
    pub usage: usize,
    /// The number of thoughts that their maker signed or encrypted. Other makers refuse them.
    pub signatures: usize,
}

/// An item that is not written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Its number.
    pub item: usize,
    /// Its kind, as in items.
    pub kind: &'static str,
    /// Why it is not written.
    pub reason: Reason,
}

/// Why an item is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Reason {
    /// A thought: models of other makers refuse it, or take it for something that was said.
    Reasoning,
    /// Text that the agent added by itself: the client adds its own.
    Context,
    /// A result whose call is missing: the client would drop it without a word.
    ResultWithoutCall,
    /// A further result of a call that has one.
    RepeatedResult,
    /// It has no text and nothing else.
    Empty,
}

/// An item that is written with a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// Its number.
    pub item: usize,
    /// What changes.
    pub change: Change,
    /// What it was; only for ids and names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is now; only for ids and names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The number of images; only for images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<usize>,
}

/// What changes in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Change {
    /// The id of a call or of the call that a result answers: it has characters that are not allowed, is too long, missing, or that of an
    /// earlier call.
    CallId,
    /// The name of a tool: it has characters that are not allowed, is too long, or missing.
    ToolName,
    /// The input of a call is not an object: it becomes the field `input` of one.
    InputWrapped,
    /// A call without an input gets an empty object.
    InputMissing,
    /// That a result reports a failure is not written: the client has no place for it, or models refuse it without a text or with images.
    ErrorFlag,
    /// These images are not written: their data is not known, the client has no place for them, or their type is not one that models
    /// accept.
    ImagesOmitted,
    /// The images of a result stand beside it.
    ImagesBesideResult,
    /// Parts of a result that are neither texts nor images, such as references to tools, become text: their JSON.
    PartsAsText,
    /// A summary becomes a prompt.
    SummaryAsPrompt,
    /// A prompt that the agent and not the person wrote is one of the person now.
    PromptOfAgent,
    /// A prompt gets a word before it, because the client would take it for a command and not send it.
    CommandAsPrompt,
    /// The result stands at another place: behind its call.
    ResultMoved,
    /// The client sends the prompt and the next one as one message, a line each.
    JoinedWithNext,
}

/// What is added to a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    /// The item beside which it stands.
    pub item: usize,
    /// What it is.
    pub what: Addition,
}

/// What is added to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Addition {
    /// Before the first item: a prompt without content. Models of Claude Code refuse a conversation that does not begin with one.
    Prompt,
    /// Behind a call without a result: one that says so.
    Result,
    /// By the client, behind the last item: an answer, because there was none.
    Answer,
}

impl Reason {
    /// Returns its name in the counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Context => "context",
            Self::ResultWithoutCall => "resultWithoutCall",
            Self::RepeatedResult => "repeatedResult",
            Self::Empty => "empty",
        }
    }
}

impl Change {
    /// Returns its name in the counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CallId => "callId",
            Self::ToolName => "toolName",
            Self::InputWrapped => "inputWrapped",
            Self::InputMissing => "inputMissing",
            Self::ErrorFlag => "errorFlag",
            Self::ImagesOmitted => "imagesOmitted",
            Self::ImagesBesideResult => "imagesBesideResult",
            Self::PartsAsText => "partsAsText",
            Self::SummaryAsPrompt => "summaryAsPrompt",
            Self::PromptOfAgent => "promptOfAgent",
            Self::CommandAsPrompt => "commandAsPrompt",
            Self::ResultMoved => "resultMoved",
            Self::JoinedWithNext => "joinedWithNext",
        }
    }
}

impl Addition {
    /// Returns its name in the counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prompt => "addedPrompt",
            Self::Result => "addedResult",
            Self::Answer => "addedAnswer",
        }
    }
}

impl LossReport {
    pub(super) fn new(target: Target, items: usize) -> Self {
        Self {
            schema: 1,
            target,
            items,
            carried: items,
            counts: BTreeMap::new(),
            omitted: Vec::new(),
            changed: Vec::new(),
            added: Vec::new(),
            models: BTreeSet::new(),
            usage: 0,
            signatures: 0,
        }
    }

    /// Returns whether everything arrives as it was, but for models, tokens and signatures.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        self.omitted.is_empty() && self.changed.is_empty() && self.added.is_empty()
    }

    pub(super) fn omit(&mut self, item: usize, kind: &'static str, reason: Reason) {
        self.omitted.push(Omitted { item, kind, reason });
    }

    pub(super) fn change(&mut self, item: usize, change: Change) {
        self.push(item, change, None, None);
    }

    pub(super) fn rename(&mut self, item: usize, change: Change, from: Option<&str>, to: &str) {
        let names = (from.unwrap_or_default().to_owned(), to.to_owned());
        self.push(item, change, Some(names), None);
    }

    pub(super) fn change_images(&mut self, item: usize, change: Change, images: usize) {
        self.push(item, change, None, Some(images));
    }

    pub(super) fn add(&mut self, item: usize, what: Addition) {
        self.added.push(Added { item, what });
    }

    /// Puts the lists into the order of the items, and counts.
    pub(super) fn finish(&mut self) {
        let omitted = self
            .omitted
            .iter()
            .map(|omitted| omitted.item)
            .collect::<HashSet<_>>();
        self.changed
            .retain(|changed| !omitted.contains(&changed.item));
        self.changed
            .sort_by_key(|changed| (changed.item, changed.change));
        self.added.sort_by_key(|added| added.item);
        self.carried = self.items - self.omitted.len();
        let names = self.omitted.iter().map(|omitted| omitted.reason.name());
        let names = names.chain(self.changed.iter().map(|changed| changed.change.name()));
        for name in names.chain(self.added.iter().map(|added| added.what.name())) {
            *self.counts.entry(name).or_default() += 1;
        }
    }

    fn push(
        &mut self,
        item: usize,
        change: Change,
        names: Option<(String, String)>,
        images: Option<usize>,
    ) {
        let (from, to) = names.unzip();
        self.changed.push(Changed {
            item,
            change,
            from,
            to,
            images,
        });
    }
}
