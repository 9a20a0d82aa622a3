//! Chooses the entries that `tail` prints.

use std::collections::VecDeque;

use clap::{Args, ValueEnum};
use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::{FromRaw, Raw};
use transcript_render::blocks::{blocks, message_content, plain_text};

/// At most this many calls wait for their results; the oldest is dropped.
const MAX_CALLS: usize = 1024;
/// The longest id of a call, in bytes.
const MAX_ID: usize = 256;

/// Options that select entries.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Filter {
    /// Only entries with one of these roles
    #[arg(long, value_enum, value_name = "ROLE")]
    role: Vec<Role>,
    /// Only calls of one of these tools, and their results
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// Only entries that contain this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

/// Who an entry is from.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Role {
    /// A person, or the client in a person's place
    User,
    /// The agent: its text and its calls
    Assistant,
    /// Results of calls
    Tool,
    /// The client: system entries and attachments
    System,
}

/// Open calls of the selected tools, oldest first. Their results are printed too.
#[derive(Debug, Default)]
pub(crate) struct Calls(VecDeque<String>);

impl Filter {
    /// Returns whether no option is given, so that every entry is printed.
    pub(crate) fn is_empty(&self) -> bool {
        self.role.is_empty() && self.tool.is_empty() && self.text.is_none()
    }

    /// Returns whether an entry matches every given option. Must be called for every entry in file
    /// order, because `calls` tracks which results belong to the selected tools.
    pub(crate) fn wants(&self, entry: &Entry<'_>, calls: &mut Calls) -> bool {
        let content = message_content(entry);
        // Evaluated first: calls must be tracked even if another option rejects the entry.
        let has_tool = self.tool.is_empty() || self.is_of_tool(content, calls);
        let role = || role(entry, content);
        let has_role = self.role.is_empty() || role().is_some_and(|role| self.role.contains(&role));
        let text = self.text.as_deref();
        has_tool && has_role && text.is_none_or(|text| says(entry, content, text))
    }

    fn is_of_tool(&self, content: Option<Raw<'_>>, calls: &mut Calls) -> bool {
        let mut is_any = false;
        for block in content.map(blocks).unwrap_or_default() {
            let Some(object) = block.object() else {
                continue;
            };
            if let Some(call) = object.str("tool_use_id") {
                is_any |= calls.close(&call);
            } else if let Some((name, id)) = object.str("name").zip(object.str("id"))
                && self.tool.iter().any(|tool| *tool == *name)
            {
                calls.open(&id);
                is_any = true;
            }
        }
        is_any
    }
}

impl Calls {
    fn open(&mut self, id: &str) {
        if id.len() > MAX_ID {
            return;
        }
        self.0.push_back(id.to_owned());
        if self.0.len() > MAX_CALLS {
            self.0.pop_front();
        }
    }

    /// Removes the call with this id, since a call has one result. Returns whether it was open.
    fn close(&mut self, id: &str) -> bool {
        let at = self.0.iter().position(|open| open == id);
        at.and_then(|at| self.0.remove(at)).is_some()
    }
}

fn role(entry: &Entry<'_>, content: Option<Raw<'_>>) -> Option<Role> {
    let blocks = content.map(blocks).unwrap_or_default();
    let is_result = |block: &Raw<'_>| {
        let object = block.object();
        object.is_some_and(|block| block.get("tool_use_id").is_some())
    };
    match entry.kind() {
        EntryKind::User if blocks.iter().any(is_result) => Some(Role::Tool),
        EntryKind::User => Some(Role::User),
        EntryKind::Assistant => Some(Role::Assistant),
        EntryKind::Attachment if queued(entry).is_some() => Some(Role::User),
        EntryKind::System | EntryKind::Attachment => Some(Role::System),
        _ => None,
    }
}

/// Returns the prompt that a person queued while the agent was working.
fn queued(entry: &Entry<'_>) -> Option<String> {
    let attachment = entry.object().object("attachment")?;
    let is_queued = attachment.str("type")? == "queued_command";
    let prompt = attachment.get("prompt").filter(|_| is_queued);
    prompt.map(plain_text)
}

/// Returns whether a text of a message, a result or a system entry contains `text`.
fn says(entry: &Entry<'_>, content: Option<Raw<'_>>, text: &str) -> bool {
    let text = text.to_lowercase();
    let holds = |said: &str| said.to_lowercase().contains(&text);
    let Some(content) = content else {
        let said = queued(entry).or_else(|| Some(entry.object().str("content")?.into_owned()));
        return said.is_some_and(|said| holds(&said));
    };
    if let Some(said) = content.str() {
        return holds(&said);
    }
    blocks(content)
        .into_iter()
        .any(|raw| match Block::from_raw(raw) {
            Some(Block::Text(said)) => said.text().is_some_and(|said| holds(&said)),
            Some(Block::ToolResult(_)) => {
                let content = raw.object().and_then(|block| block.field("content"));
                content.is_some_and(|content| holds(&plain_text(content)))
            }
            _ => {
                let content = raw.object().and_then(|block| block.get("content"));
                content.and_then(Raw::str).is_some_and(|said| holds(&said))
            }
        })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        filter: Filter,
    }

    const LINES: [&str; 8] = [
        r#"{"type":"user","message":{"role":"user","content":"Read the MAP"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I read the map."},{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"map"}}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"ls"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"Map.txt"}]}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"A river."}]}}"#,
        r#"{"type":"system","subtype":"informational","content":"The map changed"}"#,
        r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"Where is the map?"}}"#,
        r#"{"type":"ai-title","aiTitle":"Maps"}"#,
    ];

    /// Returns the numbers of the lines that are printed.
    fn shown(arguments: &[&str]) -> Vec<usize> {
        let filter = Line::try_parse_from([&["tail"], arguments].concat())
            .unwrap()
            .filter;
        let mut calls = Calls::default();
        let mut wants = |line: &str| filter.wants(&Entry::parse(line).unwrap(), &mut calls);
        (0..LINES.len())
            .filter(|number| wants(LINES[*number]))
            .collect()
    }

    #[test]
    fn everything_is_printed_without_options() {
        assert_eq!(shown(&[]).len(), LINES.len());
    }

    #[test]
    fn roles_tell_results_from_prompts() {
        assert_eq!(shown(&["--role", "user"]), [0, 6]);
        assert_eq!(shown(&["--role", "assistant"]), [1, 2]);
        assert_eq!(shown(&["--role", "tool", "--role", "system"]), [3, 4, 5]);
    }

    #[test]
    fn the_results_of_a_tool_come_with_its_calls_and_without_them() {
        assert_eq!(shown(&["--tool", "Read"]), [1, 4]);
        assert_eq!(shown(&["--tool", "Read", "--role", "tool"]), [4]);
        assert_eq!(shown(&["--tool", "Bash", "--tool", "Read"]), [1, 2, 3, 4]);
        assert_eq!(shown(&["--tool", "read"]), [0; 0]);
    }

    #[test]
    fn texts_are_found_in_any_case_wherever_something_is_said() {
        assert_eq!(shown(&["--text", "maP"]), [0, 1, 3, 5, 6]);
        assert_eq!(shown(&["--text", "map", "--tool", "Bash"]), [3]);
        assert_eq!(shown(&["--text", "river"]), [4]);
    }

    #[test]
    fn calls_that_are_never_answered_are_given_up() {
        let filter = Filter {
            tool: vec!["Read".to_owned()],
            ..Filter::default()
        };
        let mut calls = Calls::default();
        for number in 0..3 * MAX_CALLS {
            let line = format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{number}","name":"Read"}}]}}}}"#
            );
            assert!(filter.wants(&Entry::parse(&line).unwrap(), &mut calls));
        }
        assert_eq!(calls.0.len(), MAX_CALLS);
        assert!(!calls.close("0"));
        assert!(calls.close(&(3 * MAX_CALLS - 1).to_string()));
    }
}
