//! A session of any agent as items: kinds and fields that no provider has for itself alone.

use std::io::Write;
use std::path::PathBuf;

use serde::Deserialize;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{Object, Raw};
use transcript_format::scan::Flags;
use transcript_messages::{Block, Role};
use transcript_reader::{Bodies, EntryNo};
use transcript_render::PartKind;
use transcript_resume::{PathEntry, Policy};

use crate::context::{Context, PolicyName};
use crate::conversation_end::ConversationEnd;
use crate::entries::Conversation;
use crate::failure::Failure;
use crate::request::RequestSettings;
use crate::sink::{self, Sink};
use crate::wire::ItemsRecord;

/// A session as items: the session, and the rules that choose the conversation.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemsSettings {
    /// The session.
    pub session: PathBuf,
    /// The rules that choose the conversation.
    #[serde(default)]
    pub policy: PolicyName,
}

/// Writes the record of a session as items.
pub(crate) fn items(
    settings: &ItemsSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> sink::Result<()> {
    context.follow_policy(settings.policy);
    let history = context.read(context.open(&settings.session)?)?;
    let end = ConversationEnd::default();
    let policy = settings.policy.into();
    let conversation = Conversation::new(&history, policy, &end, false)?;
    let mut text = Vec::new();
    write_items(&conversation, (policy, &end), context, &mut text)?;
    let record = ItemsRecord::read(&text);
    let record = record.ok_or_else(|| Failure::new("unreadable", "the items are not JSON"));
    sink.record(&record?)
}

/// The version of the form.
const ITEMS_VERSION: u64 = 1;

/// Writes the conversation that ends at `end` under a policy as one object: `live` has what goes to the model in its order, `branches` a list for each branch and subagent, and
/// `compacted` what summaries took the place of. An item has a `kind` (`user`, `assistant`, `reasoning`, `tool_call`, `tool_result`,
/// `summary` or `context`), and of `text`, `name`, `callId`, `input`, `output`, `error` and `images` those that it has.
///
/// # Errors
/// When the session cannot be read, or `out` fails.
pub fn write_items(
    conversation: &Conversation<'_>,
    (policy, end): (Policy, &ConversationEnd),
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let path = conversation.history.source().path();
    if context.agent_homes().write_items(path, out)? {
        return Ok(());
    }
    let own = OwnItems { conversation };
    let live = own.live(policy, end)?;
    let parts = conversation.parts(true, true);
    let others = parts
        .iter()
        .filter(|part| !matches!(part.kind, PartKind::Main));
    let branches = others.map(|part| own.of_entries(&part.path.entries));
    let branches = branches.collect::<Result<Vec<_>, _>>()?;
    let story = conversation.story.path.entries.iter();
    let compacted: Vec<PathEntry> = story.filter(|entry| !entry.in_context).copied().collect();
    let items = ObjectBuf::new()
        .with("schema", ITEMS_VERSION)
        .with("live", Json::array(live))
        .with(
            "branches",
            Json::array(branches.into_iter().map(Json::array)),
        )
        .with("compacted", Json::array(own.of_entries(&compacted)?));
    Ok(out.write_all(items.text().as_bytes())?)
}

/// The items of a session of Claude Code.
struct OwnItems<'c, 'h> {
    conversation: &'c Conversation<'h>,
}

impl OwnItems<'_, '_> {
    /// Returns the items of the request that continues the session.
    fn live(&self, policy: Policy, end: &ConversationEnd) -> Result<Vec<Json>, Failure> {
        // The tree of the conversation that is shown also has what compactions removed.
        let settings = RequestSettings::of_conversation(policy, end.clone());
        let request = settings.build(self.conversation.history)?.request;
        let mut items = Vec::new();
        for message in &request.messages {
            let blocks = message.blocks().iter();
            for block in blocks {
                let flags = block
                    .origin()
                    .map(|origin| self.flags(EntryNo::new(origin)));
                items.extend(item_of(block, message.role(), flags.unwrap_or_default()));
            }
        }
        Ok(items)
    }

    fn flags(&self, entry: EntryNo) -> Flags {
        self.conversation.history.index().entry(entry).flags()
    }

    /// Returns the items of entries, as they are written.
    fn of_entries(&self, entries: &[PathEntry]) -> Result<Vec<Json>, Failure> {
        let history = self.conversation.history;
        let mut bodies = Bodies::new(history.source());
        let mut items = Vec::new();
        for entry in entries {
            let entry = history.index().entry(entry.entry_no());
            if !entry.kind().is_message() {
                continue;
            }
            let body = bodies.get(&entry)?;
            let Ok(line) = Object::parse(body.text) else {
                continue;
            };
            let Some(message) = line.object("message") else {
                continue;
            };
            let is_of_model = message.str("role").is_some_and(|role| role == "assistant");
            let role = if is_of_model {
                Role::Assistant
            } else {
                Role::User
            };
            let content = message.get("content");
            let blocks = content.and_then(|content| match content.array() {
                Some(blocks) => Some(blocks.into_iter().map(Block::read).collect()),
                None => content.str().map(|text| vec![Block::text(&text)]),
            });
            let blocks: Vec<Block> = blocks.unwrap_or_default();
            items.extend(
                blocks
                    .iter()
                    .filter_map(|block| item_of(block, role, entry.flags())),
            );
        }
        Ok(items)
    }
}

/// Returns a block as an item; `None` for a block of another kind.
fn item_of(block: &Block, role: Role, flags: Flags) -> Option<Json> {
    let Some(object) = block.object() else {
        let text = Raw::parse(block.json()).ok()?.str()?.into_owned();
        return Some(text_item(kind_of_text(role, flags), &text));
    };
    let text = |key: &str| object.str(key).unwrap_or_default();
    match &*object.str("type")? {
        "text" => Some(text_item(kind_of_text(role, flags), &text("text"))),
        "thinking" => Some(text_item("reasoning", &text("thinking"))),
        "redacted_thinking" => Some(text_item("reasoning", "")),
        "tool_use" => {
            let call = ObjectBuf::new()
                .with("kind", "tool_call")
                .with("name", &*text("name"))
                .with("callId", &*text("id"))
                .with("input", Json::from(object.get("input")));
            Some(call.into())
        }
        "tool_result" => Some(result_item(&object)),
        "image" | "document" => {
            let item = ObjectBuf::new()
                .with("kind", kind_of_text(role, flags))
                .with("text", "")
                .with("images", 1u64);
            Some(item.into())
        }
        // Of an unknown type: nothing that a person or the model said.
        _ => Some(text_item("context", block.json())),
    }
}

fn kind_of_text(role: Role, flags: Flags) -> &'static str {
    match role {
        Role::Assistant => "assistant",
        Role::System => "context",
        Role::User if flags.contains(Flags::COMPACT_SUMMARY) => "summary",
        Role::User if flags.contains(Flags::META) => "context",
        Role::User => "user",
    }
}

fn text_item(kind: &'static str, text: &str) -> Json {
    ObjectBuf::new()
        .with("kind", kind)
        .with("text", text)
        .into()
}

fn result_item(result: &Object<'_>) -> Json {
    let content = result.get("content");
    let parts = content.and_then(Raw::array).unwrap_or_default();
    let parts: Vec<Object<'_>> = parts.into_iter().filter_map(Raw::object).collect();
    let texts: Vec<_> = parts.iter().filter_map(|part| part.str("text")).collect();
    let output = match content.and_then(Raw::str) {
        Some(text) => text.into_owned(),
        None => texts.join("\n"),
    };
    let is_image = |part: &&Object<'_>| part.str("type").is_some_and(|kind| kind == "image");
    let images = parts.iter().filter(is_image).count() as u64;
    let is_error = result.bool("is_error") == Some(true);
    let item = ObjectBuf::new()
        .with("kind", "tool_result")
        .with("callId", &*result.str("tool_use_id").unwrap_or_default())
        .with("output", &*output)
        .with_some("error", is_error.then_some(true))
        .with_some("images", (images > 0).then_some(images));
    item.into()
}
