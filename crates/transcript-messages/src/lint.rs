//! Checks whether a strict provider would accept a request.
//!
//! Providers have different rules; these are the rules of the strictest that users report, and those of a
//! [`Provider`].
//! The API that the client talks to joins adjacent messages of the same role first, and the client
//! relies on that: [`join_roles`] does the same.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use transcript_format::object::{JsonKind, Object, Raw};

use super::block::{ApiTool, Block, BlockKind, is_api_result, is_blank, kind_of};
use super::media::{self, CONTAINER_UPLOAD};
use super::message::{Message, Role};
use super::provider::Provider;
use super::rule::Rule;
use super::text::{is_space, safe};

/// The objections that a provider may have to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lint {
    /// The problems for which a strict provider refuses the request, in the order of the messages.
    pub problems: Vec<Problem>,
    /// Problems for which some providers refuse the request, and others that are worth knowing.
    pub warnings: Vec<Problem>,
}

impl Lint {
    /// Returns whether a strict provider would accept the request.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// One rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The rule.
    pub rule: Rule,
    /// The message, counted from 0; `None` when it is about the whole request.
    pub message: Option<usize>,
    /// The origin of the block, if any.
    pub origin: Option<usize>,
}

/// Kinds of blocks that only users send.
const SEARCH_RESULT: &str = "search_result";

/// Kinds of blocks that the Messages API documents in addition to those of [`BlockKind`].
const DOCUMENTED_BLOCKS: [&str; 11] = [
    SEARCH_RESULT,
    CONTAINER_UPLOAD,
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "tool_reference",
    "tool_search_tool_result",
];

/// Kinds of content that servers of MCP return and the Messages API does not know.
pub(super) const MCP_KINDS: [&str; 3] = ["resource", "resource_link", "audio"];

/// The maximum length of the name of a tool in a reference of a result, in characters.
const MAX_REFERENCE: usize = 64;

/// Joins adjacent messages of one role, as the API that the client talks to does before it checks a
/// request. The [`lint`] of the result is that of the API: it has no objection to two answers in a
/// row, but still one to a call without a result.
#[must_use]
pub fn join_roles(messages: Vec<Message>) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match joined.last_mut().filter(|last| last.role == message.role) {
            // Nothing is repaired here: a repair would hide the objections that the API has to the joined messages.
            Some(last) => last.blocks.extend(message.blocks.iter().cloned()),
            None => joined.push(message),
        }
    }
    joined
}

/// Returns the objections of a strict provider of the Messages API to `messages`.
#[must_use]
pub fn lint(messages: &[Message]) -> Lint {
    lint_for(messages, Provider::Messages)
}

/// Returns the objections of a provider to `messages`, when they are converted to the form of its API.
#[must_use]
pub fn lint_for(messages: &[Message], provider: Provider) -> Lint {
    let mut linter = Linter {
        provider,
        ..Linter::default()
    };
    let media = media::media_of(messages);
    let crowded = media::crowded_messages(&media, provider);
    if messages.is_empty() {
        linter.add(Rule::NoMessages, None);
    }
    for (at, message) in messages.iter().enumerate() {
        linter.at = Some(at);
        linter.check_place(
            message,
            at.checked_sub(1).map(|before| messages[before].role),
        );
        for (place, block) in message.blocks.iter().enumerate() {
            for rule in faults(block, message.role, provider) {
                linter.add(rule, block.origin());
            }
            match block.kind() {
                BlockKind::ToolUse if message.role == Role::Assistant => linter.check_call(block),
                BlockKind::ToolResult if message.role == Role::User => {
                    linter.check_result(message, place, block);
                    linter.check_names_within(block);
                }
                BlockKind::Other => linter.check_name(block),
                _ => {}
            }
        }
        if message.role == Role::Assistant {
            for place in unpaired_api_tools(&message.blocks) {
                linter.add(Rule::ApiToolPair, message.blocks[place].origin());
            }
        }
        // Once for a message, as no single image or document in it is at fault.
        if crowded.contains(&at) {
            linter.add(Rule::MessageMedia, None);
        }
        if let Some(document) = document_without_text(message, provider) {
            linter.add(Rule::DocumentText, message.blocks[document].origin());
        }
        linter.check_end(message, at + 1 == messages.len());
    }
    // Calls of the last message have no message after them in which a result could be.
    linter.close();
    linter.at = None;
    let size: usize = messages
        .iter()
        .flat_map(Message::blocks)
        .map(Block::json_len)
        .sum();
    if !media::are_within_limits(&media) {
        linter.add(Rule::RequestMedia, None);
    }
    if size > provider.limits().request {
        linter.add(Rule::RequestSize, None);
    }
    linter.lint
}

#[derive(Default)]
struct Linter<'m> {
    lint: Lint,
    provider: Provider,
    /// The message that is checked.
    at: Option<usize>,
    /// The calls so far, by id, numbered in their order.
    calls: HashMap<&'m str, usize>,
    /// The calls of the message before, which are the last ones: origin, and whether the result was
    /// seen.
    open: Vec<(Option<usize>, bool)>,
}

impl<'m> Linter<'m> {
    fn add(&mut self, rule: Rule, origin: Option<usize>) {
        let list = if rule.is_warning() {
            &mut self.lint.warnings
        } else {
            &mut self.lint.problems
        };
        list.push(Problem {
            rule,
            message: self.at,
            origin,
        });
    }

    fn check_place(&mut self, message: &Message, before: Option<Role>) {
        let origin = message.blocks.first().and_then(Block::origin);
        let rule = match (before, message.role) {
            (None, Role::User) => None,
            (None, _) => Some(Rule::FirstNotUser),
            (Some(_), Role::System) if !self.provider.limits().has_system_role => {
                Some(Rule::SystemPlace)
            }
            (Some(before), Role::System) => (before != Role::User).then_some(Rule::SystemPlace),
            // Only the answer to the user message before a `system` message may follow it.
            (Some(Role::System), Role::User) => Some(Rule::SameRole),
            (Some(before), role) => (before == role).then_some(Rule::SameRole),
        };
        if let Some(rule) = rule {
            self.add(rule, origin);
        }
        if message.role != Role::User && message.role != Role::System {
            self.close();
        }
        if message.blocks.is_empty() {
            self.add(Rule::EmptyContent, None);
        }
    }

    fn check_name(&mut self, block: &Block) {
        if block.object().is_some_and(|block| is_unknown(&block)) {
            self.add(Rule::UnknownBlock, block.origin());
        }
    }

    /// Checks the names of the blocks within a result.
    fn check_names_within(&mut self, result: &Block) {
        // A sound one contains only texts, and may not be in memory.
        if result.is_sound() {
            return;
        }
        let object = result.object();
        let parts = object.and_then(|result| result.get("content")?.array());
        let mut objects = parts.into_iter().flatten().filter_map(Raw::object);
        if objects.any(|part| BlockKind::of(&part) == BlockKind::Other && is_unknown(&part)) {
            self.add(Rule::UnknownBlock, result.origin());
        }
    }

    fn check_call(&mut self, block: &'m Block) {
        let number = self.calls.len();
        // A repeated call is not open: its result would belong to the first one.
        match self.calls.entry(block.call_id().unwrap_or_default()) {
            Entry::Vacant(id) => {
                id.insert(number);
                self.open.push((block.origin(), false));
            }
            Entry::Occupied(_) => self.add(Rule::RepeatedCall, block.origin()),
        }
    }

    fn check_result(&mut self, message: &Message, place: usize, block: &Block) {
        let origin = block.origin();
        let id = block.call_id().unwrap_or_default();
        // Calls are numbered in order, so those of the message before are the last ones.
        let first_open = self.calls.len() - self.open.len();
        let call = self.calls.get(id).copied();
        match call.and_then(|call| self.open.get_mut(call.checked_sub(first_open)?)) {
            Some((_, true)) => self.add(Rule::RepeatedResult, origin),
            Some((_, is_answered)) => *is_answered = true,
            None => self.add(Rule::OrphanResult, origin),
        }
        // Results have to be the first blocks of their message.
        let before = place.checked_sub(1).map(|before| &message.blocks[before]);
        if before.is_some_and(|before| before.kind() != BlockKind::ToolResult) {
            self.add(Rule::ResultNotFirst, origin);
        }
    }

    fn check_end(&mut self, message: &Message, is_last: bool) {
        match message.role {
            Role::User => self.close(),
            Role::System => {}
            Role::Assistant => {
                let Some(last) = message.blocks.last() else {
                    return;
                };
                if last.is_thinking() {
                    self.add(Rule::ThinkingLast, last.origin());
                }
                // White space at the end is refused only of an answer that the model is to continue.
                let ends_blank = || {
                    last.text_field()
                        .is_some_and(|text| text.ends_with(is_space))
                };
                if is_last && last.kind() == BlockKind::Text && ends_blank() {
                    self.add(Rule::TrailingSpace, last.origin());
                }
            }
        }
    }

    /// Called when the message after the calls is read: a result that is missing now never comes.
    fn close(&mut self) {
        for (origin, is_answered) in std::mem::take(&mut self.open) {
            if !is_answered {
                self.add(Rule::MissingResult, origin);
            }
        }
    }
}

/// Returns whether a block is of a kind that the API does not document.
fn is_unknown(block: &Object<'_>) -> bool {
    let kind = block.str("type");
    kind.is_some_and(|kind| !DOCUMENTED_BLOCKS.contains(&&*kind))
}

/// Returns the rules that a block breaks in a message of `role`, at any place in it.
pub(super) fn faults(block: &Block, role: Role, provider: Provider) -> Vec<Rule> {
    let is_answer = role == Role::Assistant;
    // Fast path: the most blocks, and the longest.
    let is_placed = match block.kind() {
        BlockKind::Text => true,
        BlockKind::ToolResult => role == Role::User,
        _ => is_answer,
    };
    if block.is_sound_for(provider) && is_placed {
        return Vec::new();
    }
    let foreign = foreign_fault(block, provider).filter(|_| role != Role::System);
    let mut faults = match block.kind() {
        _ if foreign.is_some() => foreign.into_iter().collect(),
        // Texts come before the roles, as a message of any role may have them.
        BlockKind::Text if block.is_blank() => vec![Rule::BlankText],
        BlockKind::Text => Vec::new(),
        BlockKind::Other => other_faults(block, role, provider),
        _ if role == Role::System => vec![Rule::WrongRole],
        BlockKind::ToolUse | BlockKind::ServerToolUse if is_answer => call_faults(block, provider),
        BlockKind::Thinking if is_answer => vec![Rule::UnsignedThinking],
        BlockKind::SealedThinking if is_answer => sealed_fault(block).into_iter().collect(),
        BlockKind::ToolResult if !is_answer => result_faults(block, provider),
        BlockKind::Image | BlockKind::Document if !is_answer => media_fault(block, provider),
        _ => vec![Rule::WrongRole],
    };
    // Last, and only of blocks that are not sound: it looks at all of their text.
    if matches!(safe(block.json()), Cow::Owned(safe) if safe != block.json()) {
        faults.push(Rule::UnsafeText);
    }
    faults
}

/// Returns the rule that a block breaks because the provider does not run the tool of the API that it is of, or does not
/// know the file that it names.
fn foreign_fault(block: &Block, provider: Provider) -> Option<Rule> {
    if !matches!(block.kind(), BlockKind::ServerToolUse | BlockKind::Other) {
        return None;
    }
    let limits = provider.limits();
    let object = block.object()?;
    if object.str("type").as_deref() == Some(CONTAINER_UPLOAD) {
        return (!limits.takes_addresses).then_some(Rule::MediaAddress);
    }
    let is_of_api = block.api_tool().is_some();
    (is_of_api && !limits.runs(&object)).then_some(Rule::ApiTool)
}

/// Returns the place of the first document of a message of the user that needs a text beside it and has none.
pub(super) fn document_without_text(message: &Message, provider: Provider) -> Option<usize> {
    let is_kind = |kind: BlockKind| move |block: &Block| block.kind() == kind;
    let is_wanted = provider.limits().wants_text_beside_document && message.role == Role::User;
    let document = message.blocks.iter().position(is_kind(BlockKind::Document));
    document.filter(|_| is_wanted && !message.blocks.iter().any(is_kind(BlockKind::Text)))
}

fn call_faults(block: &Block, provider: Provider) -> Vec<Rule> {
    let limits = provider.limits();
    let Some(call) = block.object() else {
        return vec![Rule::NoBlock];
    };
    let name = call.get("name").and_then(Raw::str);
    let is_fine = [
        (
            Rule::CallId,
            limits.is_call_id(block.call_id().unwrap_or_default()),
        ),
        (
            Rule::CallName,
            name.is_some_and(|name| limits.is_tool_name(&name)),
        ),
        (
            Rule::CallInput,
            call.get("input").map(Raw::kind) == Some(JsonKind::Object),
        ),
    ];
    let broken = is_fine.into_iter().filter(|(_, is_fine)| !is_fine);
    broken.map(|(rule, _)| rule).collect()
}

fn result_faults(block: &Block, provider: Provider) -> Vec<Rule> {
    let Some(result) = block.object() else {
        return vec![Rule::NoBlock];
    };
    let content = result.get("content");
    let blocks = content.and_then(Raw::array);
    let mut faults: Vec<Rule> = blocks
        .iter()
        .flatten()
        .copied()
        .filter_map(|raw| nested_fault(raw, provider))
        .collect();
    if content.is_some_and(|content| content.kind() != JsonKind::String) && blocks.is_none() {
        faults.push(Rule::ResultContent);
    }
    let is_silent = match blocks {
        Some(blocks) => blocks.is_empty(),
        None => content.is_none_or(|content| matches!(content.text(), "null" | "\"\"")),
    };
    if is_silent && result.get("is_error").and_then(Raw::bool) == Some(true) {
        faults.push(Rule::SilentError);
    }
    faults
}

/// Returns the rule that a block of the content of a result breaks.
pub(super) fn nested_fault(raw: Raw<'_>, provider: Provider) -> Option<Rule> {
    match kind_of(raw) {
        BlockKind::Text => is_blank(raw).then_some(Rule::BlankText),
        BlockKind::Image | BlockKind::Document => {
            media::fault(raw, provider).map(|fault| fault.rule)
        }
        BlockKind::Other => {
            let object = raw.object();
            let limits = provider.limits();
            let is_known = object.as_ref().map(|block| limits.knows_in_result(block));
            match object.as_ref().and_then(|block| block.get("type")?.str()) {
                None if object.as_ref().is_some_and(|block| limits.knows(block)) => {
                    (is_known == Some(false)).then_some(Rule::ResultContent)
                }
                None => Some(Rule::NoBlock),
                Some(_) if is_known == Some(false) => Some(Rule::ResultContent),
                Some(kind) if is_api_result(&kind) || MCP_KINDS.contains(&&*kind) => {
                    Some(Rule::ResultContent)
                }
                Some(kind) if kind == "tool_reference" => {
                    let name = object.as_ref().and_then(|block| block.str("tool_name"));
                    let is_long = name.is_some_and(|name| name.chars().count() > MAX_REFERENCE);
                    is_long.then_some(Rule::ResultContent)
                }
                Some(_) => None,
            }
        }
        _ => Some(Rule::ResultContent),
    }
}

fn media_fault(block: &Block, provider: Provider) -> Vec<Rule> {
    let fault = match Raw::parse(block.json()) {
        Ok(raw) => media::fault(raw, provider).map(|fault| fault.rule),
        Err(_) => Some(Rule::UnusableMedia),
    };
    fault.into_iter().collect()
}

fn other_faults(block: &Block, role: Role, provider: Provider) -> Vec<Rule> {
    let object = block.object();
    if object
        .as_ref()
        .is_some_and(|block| provider.limits().knows(block))
    {
        return match role {
            Role::System => vec![Rule::WrongRole],
            Role::User | Role::Assistant => Vec::new(),
        };
    }
    let Some(kind) = object.and_then(|block| block.get("type")?.str()) else {
        return vec![Rule::NoBlock];
    };
    let is_placed = match role {
        Role::System => false,
        Role::User => block.api_tool().is_none(),
        Role::Assistant => kind != SEARCH_RESULT,
    };
    if is_placed {
        Vec::new()
    } else {
        vec![Rule::WrongRole]
    }
}

/// Returns the rule that signed or redacted thinking breaks.
fn sealed_fault(block: &Block) -> Option<Rule> {
    let thought = block.object()?;
    // A text that was removed is empty: the API refuses a value of another kind.
    let is_text = |text: Raw<'_>| text.kind() == JsonKind::String;
    let is_thinking = thought.str("type").as_deref() == Some("thinking");
    if is_thinking && !thought.get("thinking").is_some_and(is_text) {
        return Some(Rule::UnsignedThinking);
    }
    let has = |key: &str| {
        let text = thought.get(key).and_then(Raw::str);
        text.is_some_and(|text| !text.is_empty())
    };
    if has("thinking") || has("data") {
        None
    } else if has("signature") {
        Some(Rule::EmptiedThinking)
    } else {
        Some(Rule::UnsignedThinking)
    }
}

/// Returns the places of calls of API tools that no result follows, and of results of API tools
/// that no call precedes.
pub(super) fn unpaired_api_tools(blocks: &[Block]) -> BTreeSet<usize> {
    let mut unpaired = BTreeSet::new();
    let mut open = HashMap::new();
    for (place, block) in blocks.iter().enumerate() {
        match block.api_tool() {
            Some((ApiTool::Call, id)) => {
                open.entry(id).or_insert(place);
                unpaired.insert(place);
            }
            Some((ApiTool::Result, id)) => {
                if let Some(call) = open.remove(&id) {
                    unpaired.remove(&call);
                } else {
                    unpaired.insert(place);
                }
            }
            None => {}
        }
    }
    unpaired
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Log, Part, make_strict_part, pair};

    const MAX_NAME: usize = Provider::Messages.limits().tool_name;

    fn message(role: Role, blocks: &[&str]) -> Message {
        let read = |text: &&str| {
            let raw = Raw::parse(text).expect("test blocks are JSON");
            Block::read(raw).with_origin(Some(7))
        };
        Message::new(role, blocks.iter().map(read).collect())
    }

    fn user(blocks: &[&str]) -> Message {
        message(Role::User, blocks)
    }

    fn answer(blocks: &[&str]) -> Message {
        message(Role::Assistant, blocks)
    }

    fn broken(messages: &[Message]) -> Vec<Rule> {
        let problems = lint(messages).problems;
        problems.iter().map(|problem| problem.rule).collect()
    }

    const TEXT: &str = r#"{"type":"text","text":"hi"}"#;
    const BLANK: &str = r#"{"type":"text","text":" \n"}"#;
    const CALL: &str = r#"{"type":"tool_use","id":"a","name":"Bash","input":{}}"#;
    const OTHER_CALL: &str = r#"{"type":"tool_use","id":"b","name":"Bash","input":{}}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"a","content":"ok"}"#;
    const OTHER_RESULT: &str = r#"{"type":"tool_result","tool_use_id":"b","content":"ok"}"#;
    const SEALED: &str = r#"{"type":"thinking","thinking":"x","signature":"s"}"#;
    const SEARCH: &str = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#;
    const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#;
    const UNSIGNED: &str = r#"{"type":"thinking","thinking":"x"}"#;

    #[test]
    fn joined_roles_are_judged_as_one_message() {
        let broken_joined = |messages: &[Message]| broken(&join_roles(messages.to_vec()));
        let in_rows = [
            user(&[TEXT]),
            user(&[TEXT]),
            answer(&[CALL]),
            answer(&[TEXT]),
            user(&[RESULT]),
            user(&[TEXT]),
            answer(&[TEXT]),
        ];
        assert!(broken(&in_rows).contains(&Rule::MissingResult));
        assert_eq!(broken_joined(&in_rows), []);
        assert_eq!(join_roles(in_rows.to_vec()).len(), 4);
        // An API that joins two messages refuses the same things in them as in one.
        let rows: [(&[Message], Rule); 4] = [
            (
                &[
                    user(&[TEXT]),
                    answer(&[CALL]),
                    answer(&[TEXT]),
                    user(&[TEXT]),
                ],
                Rule::MissingResult,
            ),
            (
                &[
                    user(&[TEXT]),
                    answer(&[CALL]),
                    user(&[TEXT]),
                    user(&[RESULT]),
                ],
                Rule::ResultNotFirst,
            ),
            (&[user(&[TEXT]), user(&[BLANK])], Rule::BlankText),
            (&[answer(&[TEXT]), answer(&[TEXT])], Rule::FirstNotUser),
        ];
        for (messages, rule) in rows {
            assert_eq!(broken_joined(messages), [rule]);
        }
    }

    #[test]
    fn a_proper_request_has_no_problem() {
        let messages = [
            user(&[TEXT]),
            answer(&[SEALED, SEARCH, FOUND, TEXT, CALL, OTHER_CALL]),
            user(&[OTHER_RESULT, RESULT, TEXT]),
            message(Role::System, &[TEXT]),
            answer(&[TEXT]),
            user(&[TEXT]),
        ];
        assert_eq!(lint(&messages), Lint::default());
    }

    #[test]
    fn each_rule_is_broken_by_its_own_request() {
        let bad_call = |call: &str, rule: Rule| {
            let id = if rule == Rule::CallId { "a b" } else { "a" };
            let result = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":""}}"#);
            assert_eq!(
                broken(&[user(&[TEXT]), answer(&[call]), user(&[&result])]),
                [rule]
            );
        };
        bad_call(
            r#"{"type":"tool_use","id":"a b","name":"Bash","input":{}}"#,
            Rule::CallId,
        );
        bad_call(
            r#"{"type":"tool_use","id":"a","name":"","input":{}}"#,
            Rule::CallName,
        );
        bad_call(
            &CALL.replace("Bash", &"x".repeat(MAX_NAME + 1)),
            Rule::CallName,
        );
        bad_call(
            r#"{"type":"tool_use","id":"a","name":"Bash","input":"{}"}"#,
            Rule::CallInput,
        );
        let after_user = |blocks: &[&str]| broken(&[user(&[TEXT]), answer(blocks)]);
        let cases: [(Vec<Rule>, Rule); 15] = [
            (broken(&[]), Rule::NoMessages),
            (broken(&[answer(&[TEXT])]), Rule::FirstNotUser),
            (broken(&[user(&[TEXT]), user(&[TEXT])]), Rule::SameRole),
            (
                broken(&[
                    user(&[TEXT]),
                    answer(&[TEXT]),
                    message(Role::System, &[TEXT]),
                ]),
                Rule::SystemPlace,
            ),
            (broken(&[user(&[])]), Rule::EmptyContent),
            (broken(&[user(&[BLANK])]), Rule::BlankText),
            (broken(&[user(&["7"])]), Rule::NoBlock),
            (broken(&[user(&[CALL])]), Rule::WrongRole),
            (
                broken(&[user(&[TEXT]), answer(&[CALL, CALL]), user(&[RESULT])]),
                Rule::RepeatedCall,
            ),
            (broken(&[user(&[RESULT])]), Rule::OrphanResult),
            (
                broken(&[user(&[TEXT]), answer(&[CALL]), user(&[RESULT, RESULT])]),
                Rule::RepeatedResult,
            ),
            (after_user(&[CALL]), Rule::MissingResult),
            (
                broken(&[user(&[TEXT]), answer(&[CALL]), user(&[TEXT, RESULT])]),
                Rule::ResultNotFirst,
            ),
            (after_user(&[UNSIGNED, TEXT]), Rule::UnsignedThinking),
            (after_user(&[SEALED]), Rule::ThinkingLast),
        ];
        for (found, rule) in cases {
            assert_eq!(found, [rule]);
        }
        let results: [(&str, &[Rule]); 6] = [
            (r#""content":null"#, &[Rule::ResultContent]),
            (r#""content":["out"]"#, &[Rule::NoBlock]),
            (
                r#""content":[{"type":"text","text":""}]"#,
                &[Rule::BlankText],
            ),
            (r#""content":[{"type":"image"}]"#, &[Rule::UnusableMedia]),
            (r#""content":[{"type":"tool_use"}]"#, &[Rule::ResultContent]),
            (r#""content":"","is_error":true"#, &[Rule::SilentError]),
        ];
        for (content, rules) in results {
            let result = format!(r#"{{"type":"tool_result","tool_use_id":"a",{content}}}"#);
            let found = broken(&[user(&[TEXT]), answer(&[CALL]), user(&[&result])]);
            assert_eq!(found, rules, "{content}");
        }
        let null = r#"{"type":"thinking","thinking":null,"signature":"s"}"#;
        assert_eq!(after_user(&[null, TEXT]), [Rule::UnsignedThinking]);
        let sealed_nothing = r#"{"type":"redacted_thinking","data":""}"#;
        assert_eq!(
            after_user(&[sealed_nothing, TEXT]),
            [Rule::UnsignedThinking]
        );
        let bitmap =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"A"}}"#;
        assert_eq!(broken(&[user(&[bitmap])]), [Rule::UnusableMedia]);
        assert_eq!(after_user(&[SEARCH, TEXT]), [Rule::ApiToolPair]);
        assert_eq!(
            after_user(&[FOUND, SEARCH, FOUND, TEXT]),
            [Rule::ApiToolPair]
        );
        assert_eq!(broken(&[user(&[FOUND])]), [Rule::WrongRole]);
        for half in [r#""a\ud800""#, r#""a\u0000""#] {
            let mut messages = [user(&[TEXT])];
            messages[0].blocks[0].set("text", half);
            assert_eq!(broken(&messages), [Rule::UnsafeText]);
        }
        let trailing = r#"{"type":"text","text":"so: "}"#;
        assert_eq!(after_user(&[trailing]), [Rule::TrailingSpace]);
    }

    /// Blocks of the kinds that can be sound, in all combinations of fields.
    fn variants() -> Vec<String> {
        let texts = [
            "",
            r#""text":"hi""#,
            r#""text":"""#,
            r#""text":" \n""#,
            r#""text":"\u2003""#,
            r#""text":"\u0041""#,
            r#""text":"é""#,
            r#""text":"(no content)""#,
            r#""text":" (no content)""#,
            r#""text":" \n\t\"hi\"""#,
            r#""text":"\\""#,
            r#""text":" \b\n""#,
            r#""text":" \n\u0020""#,
            r#""text":null"#,
            r#""text":7"#,
            r#""text":"hi","text":"""#,
            r#""text":"a\ud800b""#,
            r#""text":"a\u0000""#,
        ];
        let ids = [
            "",
            r#""id":"a""#,
            r#""id":"a b""#,
            r#""id":"""#,
            r#""id":7"#,
        ];
        let [longest, too_long] =
            [MAX_NAME, MAX_NAME + 1].map(|len| format!(r#""name":"{}""#, "é".repeat(len)));
        let names = [
            "",
            &longest,
            &too_long,
            r#""name":"Bash""#,
            r#""name":"Task""#,
            r#""name":"T\u0061sk""#,
            r#""name":"""#,
            r#""name":7"#,
        ];
        let inputs = ["", r#""input":{}"#, r#""input":"{}""#, r#""input":null"#];
        let contents = [
            "",
            r#""content":"x""#,
            r#""content":"""#,
            r#""content":null"#,
            r#""content":7"#,
            r#""content":[]"#,
            r#""content":{"type":"text","text":"x"}"#,
            r#""content":["x"]"#,
            r#""content":[{"type":"text","text":"x"}]"#,
            r#""content":[{"type":"text","text":" "}]"#,
            r#""content":[{"type":"text","text":"x"},{"type":"image"}]"#,
            r#""content":[{"type":"tool_reference","tool_name":"x"}]"#,
            r#""content":[{"type":"text","text":"x","cache_control":{}}]"#,
        ];
        let errors = [
            "",
            r#""is_error":true"#,
            r#""is_error":false"#,
            r#""is_error":"true""#,
        ];
        let thoughts = [
            "",
            r#""thinking":"hm""#,
            r#""thinking":" \n\"hm""#,
            r#""thinking":"""#,
            r#""thinking":null"#,
        ];
        let signatures = ["", r#""signature":"s""#, r#""signature":"""#];
        let block = |kind: &str, fields: &[&str]| {
            let fields = fields.iter().filter(|field| !field.is_empty());
            let fields: String = fields.map(|field| format!(",{field}")).collect();
            format!(r#"{{"type":"{kind}"{fields}}}"#)
        };
        let mut blocks: Vec<String> = texts.map(|text| block("text", &[text])).into();
        for id in ids {
            for name in names {
                blocks.extend(inputs.map(|input| block("tool_use", &[id, name, input])));
            }
        }
        for content in contents {
            blocks.extend(errors.map(|error| block("tool_result", &[content, error])));
        }
        for thought in thoughts {
            for kind in ["thinking", "redacted_thinking"] {
                blocks.extend(signatures.map(|signature| block(kind, &[thought, signature])));
            }
        }
        blocks
    }

    #[test]
    fn a_sound_block_is_one_that_no_pass_changes_or_objects_to() {
        let mut sound = 0;
        for json in variants() {
            let raw = Raw::parse(&json).expect("test blocks are JSON");
            let block = Block::read(raw);
            let same = Block::verbatim(Raw::parse(block.json()).expect("blocks are JSON"));
            assert!(!same.is_sound(), "the copy has to take the slow path");
            sound += usize::from(block.is_sound());
            for role in [Role::User, Role::Assistant, Role::System] {
                for provider in Provider::ALL {
                    let faults = |block: &Block| faults(block, role, provider);
                    assert_eq!(faults(&block), faults(&same), "{json}");
                    let finished = |block: &Block| {
                        let messages = vec![Message::new(role, vec![block.clone()])];
                        let (mut paired, mut strict) = (Log::default(), Log::default());
                        let messages = (
                            pair(messages.clone(), &mut paired),
                            make_strict_part(messages, Part::WHOLE, provider, &mut strict),
                        );
                        (messages, paired.omissions, strict.omissions)
                    };
                    assert_eq!(finished(&block), finished(&same), "{json}");
                }
            }
        }
        assert!(sound > 12, "{sound}");
    }

    #[test]
    fn a_result_that_comes_too_late_is_missing_and_an_orphan() {
        let messages = [
            user(&[TEXT]),
            answer(&[CALL]),
            user(&[TEXT]),
            answer(&[TEXT]),
            user(&[RESULT]),
        ];
        assert_eq!(broken(&messages), [Rule::MissingResult, Rule::OrphanResult]);
    }

    #[test]
    fn media_over_the_limit_are_a_problem_and_size_and_strange_blocks_are_warnings() {
        let of = |kind: &str, media_type: &str, data: &str| {
            format!(
                r#"{{"type":"{kind}","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}"#
            )
        };
        let large = of("image", "image/png", &"A".repeat((5 << 20) + 1));
        assert_eq!(broken(&[user(&[&large])]), [Rule::MediaTooLarge]);
        // The start of a PDF, what looks like more of it, and its end.
        let pdf = of(
            "document",
            "application/pdf",
            &format!(
                "JVBERi0xLjcK{}b2JqIHN0YXJ0eHJlZiAlJUVPRiAg",
                "QUFB".repeat(3 << 19)
            ),
        );
        assert_eq!(broken(&[user(&[&pdf])]), []);
        let six = [&*pdf; 6];
        let strange = r#"{"type":"hologram"}"#;
        let warned = |messages: &[Message]| -> Vec<Rule> {
            let warnings = lint(messages).warnings;
            warnings.iter().map(|warning| warning.rule).collect()
        };
        let warnings = warned(&[user(&six), answer(&[strange])]);
        assert_eq!(warnings, [Rule::UnknownBlock, Rule::RequestSize]);
        // Also within a result.
        let result = RESULT.replace("\"ok\"", &format!("[{TEXT},{strange}]"));
        let messages = [user(&[TEXT]), answer(&[CALL]), user(&[&result])];
        assert_eq!(warned(&messages), [Rule::UnknownBlock]);
    }

    #[test]
    fn a_thought_that_lost_its_text_is_a_warning() {
        let emptied = r#"{"type":"thinking","thinking":"","signature":"s"}"#;
        let found = lint(&[user(&[TEXT]), answer(&[emptied, TEXT])]);
        let warning = Problem {
            rule: Rule::EmptiedThinking,
            message: Some(1),
            origin: Some(7),
        };
        assert_eq!((found.is_ok(), found.warnings), (true, vec![warning]));
    }

    #[test]
    fn a_problem_names_message_and_origin() {
        let problems = lint(&[user(&[TEXT]), answer(&[TEXT, BLANK])]).problems;
        assert_eq!(
            (problems[0].message, problems[0].origin),
            (Some(1), Some(7))
        );
    }
}
