//! What a client can hold of a conversation.

use crate::node::NodeKind;

use super::source_item::{Image, SourceItem};

/// What a client can hold of a conversation, and how it sends it.
pub(super) struct Rules {
    /// It stores thoughts as they are, and no model refuses them.
    pub(super) holds_reasoning: bool,
    /// It sends messages without text.
    pub(super) sends_empty: bool,
    /// Returns whether a text is nothing to it: it does not send it, or models refuse it.
    pub(super) is_nothing: fn(&str) -> bool,
    /// It sends several results of a call.
    pub(super) sends_repeated_results: bool,
    /// It stores inputs that are strings.
    pub(super) holds_string_inputs: bool,
    /// It stores whether a result reports a failure.
    pub(super) holds_errors: bool,
    /// Models accept results that report a failure without a word, or with images.
    pub(super) accepts_any_error: bool,
    /// It stores images of prompts.
    pub(super) holds_images: bool,
    /// Where it stores images of results.
    pub(super) images_of_results: ImagesOfResults,
    /// The order in which it sends results.
    pub(super) order: Order,
    /// It sends adjacent prompts as one.
    pub(super) joins_prompts: bool,
    /// Where it has a record for a summary.
    pub(super) summaries: Summaries,
    /// Returns whether it takes a prompt for a command, which it does not send.
    pub(super) is_command: fn(&str) -> bool,
    /// Its models refuse a conversation that does not begin with a prompt.
    pub(super) begins_with_prompt: bool,
    /// It adds results to calls without one, or they are added to it.
    pub(super) completes_calls: bool,
    /// It ends a conversation without a last answer with one of its own.
    pub(super) adds_answer: bool,
    /// What must not be in the id of a call.
    pub(super) id_separator: Option<&'static str>,
}

/// Where a client stores the images of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ImagesOfResults {
    /// In the result.
    Inside,
    /// Beside it.
    Beside,
    /// Nowhere.
    Nowhere,
}

/// The order in which a client sends a conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As it is stored.
    Stored,
    /// Results follow the response with their calls.
    ResultsBehindResponse,
    /// The same, and a response has its texts before its calls.
    TextsBeforeCalls,
    /// The same, and a response is at most a thought, then a text, then calls; the results are in the order of the calls.
    ResultsBehindCalls,
}

/// Where a client has a record for a summary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Summaries {
    /// At the start, and it may have prompts before it.
    AfterPrompts,
    /// At the start only.
    AtStart,
    /// Everywhere.
    Anywhere,
    /// Nowhere.
    Nowhere,
}

/// The types of images that models accept.
const MEDIA_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// Returns whether an image is of a type that models accept.
pub(super) fn is_accepted(image: &&Image) -> bool {
    MEDIA_TYPES.contains(&&*image.media_type)
}

/// Returns the number of images of an item that are written.
pub(super) fn carried_images(item: &SourceItem, rules: &Rules) -> usize {
    let has_place = match item.kind {
        NodeKind::User => rules.holds_images,
        NodeKind::ToolResult => rules.images_of_results != ImagesOfResults::Nowhere,
        _ => false,
    };
    let images = item.images.iter().filter(is_accepted);
    images.filter(|_| has_place).count()
}

/// Returns whether a result is written as one that reports a failure.
pub(super) fn is_written_as_error(item: &SourceItem, rules: &Rules) -> bool {
    let is_text = !item.output.is_empty() && carried_images(item, rules) == 0;
    item.is_error && rules.holds_errors && (rules.accepts_any_error || is_text)
}

/// Returns the text of a prompt as it is written.
pub(super) fn prompt_text(item: SourceItem, rules: &Rules) -> String {
    if item.kind == NodeKind::User && (rules.is_command)(&item.text) {
        return format!("{COMMAND_MARK}{}", item.text);
    }
    item.text
}

/// The word before a prompt that would be taken for a command.
pub(super) const COMMAND_MARK: &str = "Prompt: ";
