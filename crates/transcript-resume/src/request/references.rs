//! References to tools that a tool search found (MSG-14).

use std::collections::BTreeSet;

use transcript_format::object::{Object, Raw};
use transcript_format::{client_tools, texts};
use transcript_messages::{Block, BlockKind, Log, OmissionReason, Role, SyntheticKind};

use transcript_reader::Policy;

use super::step::{Step, StepKind};

/// Removes the references to tools that the request does not have, and adds a text after the blocks
/// of an entry that refers to one, as the API requires user content there (MSG-14).
pub(super) fn resolve(
    steps: &mut [Step],
    tools: Option<&BTreeSet<String>>,
    model: Option<&str>,
    policy: Policy,
    log: &mut Log,
) {
    let is_newer = model.is_some_and(wants_system_role);
    let reminders = steps.iter().filter_map(|step| step.reminder.as_ref());
    let recorded = reminders.flat_map(|reminder| reminder.tools.iter().cloned());
    let recorded: BTreeSet<String> = recorded.collect();
    let referred = referred_tools(steps);
    let is_referred = |name: &str| referred.contains(name);
    let is_of_client =
        |name: &str| client_tools::is_known(name, is_newer, is_referred) || recorded.contains(name);
    let is_known = |name: &str| match tools {
        Some(tools) => tools.contains(name),
        // The options a session was started with are not in its file, so `recover` removes nothing
        // on a guess.
        None => policy == Policy::Recover || is_of_client(name),
    };
    for step in steps.iter_mut().filter(|step| step.kind == StepKind::User) {
        let mut refers = false;
        for block in &mut step.blocks {
            refers |= resolve_block(block, is_known, log);
        }
        if refers {
            let block = Block::text(texts::TOOL_LOADED);
            log.add_synthetic(SyntheticKind::ToolLoaded, Role::User, &block, step.origin());
            step.blocks.push(block);
        }
    }
}

/// Returns the names of all tools that results refer to.
fn referred_tools(steps: &[Step]) -> BTreeSet<String> {
    let blocks = steps.iter().flat_map(|step| &step.blocks);
    let results = blocks.filter(|block| may_refer(block));
    let mut referred = BTreeSet::new();
    for result in results {
        let content = result.object();
        let content = content.and_then(|result| result.get("content")?.array());
        let blocks = content.unwrap_or_default().into_iter();
        referred.extend(blocks.filter_map(|raw| referred_tool(&raw.object()?)));
    }
    referred
}

/// Returns whether the block is a result that may refer to tools: a sound one holds only texts.
fn may_refer(block: &Block) -> bool {
    block.kind() == BlockKind::ToolResult
        && !block.is_sound()
        && block.json().contains("tool_reference")
}

/// Returns whether the block is a result with a reference to a known tool.
fn resolve_block(block: &mut Block, is_known: impl Fn(&str) -> bool, log: &mut Log) -> bool {
    if !may_refer(block) {
        return false;
    }
    let content = block.object();
    let content = content.and_then(|result| result.get("content")?.array());
    let content = content.unwrap_or_default();
    let (mut kept, mut refers) = (Vec::with_capacity(content.len()), false);
    for raw in &content {
        match raw.object().and_then(|object| referred_tool(&object)) {
            Some(name) if !is_known(&name) => continue,
            Some(_) => refers = true,
            None => {}
        }
        kept.push(raw.text());
    }
    if kept.len() < content.len() {
        let removed = Block::text(texts::TOOL_REFERENCES_REMOVED);
        if kept.is_empty() {
            kept.push(removed.json());
        }
        let content = format!("[{}]", kept.join(","));
        log.omit(block.origin(), OmissionReason::ToolReference);
        block.set("content", &content);
    }
    refers
}

/// Returns the tool that a block refers to; `None` for other blocks.
fn referred_tool(block: &Object<'_>) -> Option<String> {
    let is_reference = block.get("type")?.str()? == "tool_reference";
    let name = block.get("tool_name").and_then(Raw::str);
    is_reference.then(|| name.unwrap_or_default().into_owned())
}

/// Returns whether a model gets reminders as `role: system` messages: models after 4.7 do (NOTE-6).
pub(super) fn wants_system_role(model: &str) -> bool {
    let mut numbers = model.split('-').filter_map(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // A minor version of more than two digits is a date.
    (major, if minor > 99 { 0 } else { minor }) >= (4, 8)
}
