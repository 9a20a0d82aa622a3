//! Options that choose what a command shows: the same ones, with the same meaning, for every command.

use std::collections::VecDeque;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use jiff::Zoned;
use transcript_engine::catalog::moment;
use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::{FromRaw, Raw};
use transcript_format::time;
use transcript_format::unicode::comparable;
use transcript_reader::{Bodies, EntryRef, Index, Source};
use transcript_render::blocks::{blocks, message_content, plain_text};
use transcript_resume::items::{is_queued, starts_turn};
use transcript_resume::{ConversationPath, OmittedCalls};

/// At most this many calls wait for their results; the oldest is dropped.
const MAX_CALLS: usize = 1024;
/// The longest id of a call, in bytes.
const MAX_ID: usize = 256;

/// Options of every command that shows sessions or entries.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Filter {
    /// Only what contains this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only from TIME on: 2026-01-31, 2026-01-31T12:00:00Z, 2h, 3d, yesterday
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only up to TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only sessions of the project at PATH, in any of its worktrees
    #[arg(long, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
    /// Only what was written on this branch of git
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Also show subagents
    #[arg(long)]
    pub(crate) sidechains: bool,
    /// Only the last N
    #[arg(short = 'n', value_name = "N")]
    pub(crate) last: Option<usize>,
}

/// Options of commands that read entries.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EntryFilter {
    /// Only entries with one of these roles
    #[arg(long, value_enum, value_name = "ROLE")]
    pub(crate) role: Vec<Role>,
    /// Only calls of one of these tools, and their results
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Filter,
}

/// A range of times, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) since: i64,
    pub(crate) until: i64,
}

/// The entries that the options select.
pub(crate) struct Selection<'f> {
    filter: &'f EntryFilter,
    window: Window,
}

/// Who an entry is from.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Role {
    /// A person, or the client in a person's place
    User,
    /// The agent: its text and its calls
    Assistant,
    /// Results of calls
    Tool,
    /// The client: system entries and attachments
    System,
}

/// What the entries above decide about the next one.
#[derive(Debug, Default)]
pub(crate) struct Above {
    /// Open calls of the selected tools, oldest first. Their results are selected too.
    calls: Calls,
    /// Whether the last time was within the window.
    is_in: Option<bool>,
}

#[derive(Debug, Default)]
struct Calls(VecDeque<String>);

impl Filter {
    /// Reads the times.
    pub(crate) fn window(&self) -> Result<Window> {
        let now = Zoned::now();
        let read = |option: &str, text: &Option<String>, default| match text {
            Some(text) => moment::parse(text, &now).map_err(|error| anyhow!("{option}: {error}")),
            None => Ok(default),
        };
        Ok(Window {
            since: read("--since", &self.since, i64::MIN)?,
            until: read("--until", &self.until, i64::MAX)?,
        })
    }
}

impl EntryFilter {
    pub(crate) fn selection(&self) -> Result<Selection<'_>> {
        Ok(Selection {
            filter: self,
            window: self.common.window()?,
        })
    }
}

impl Window {
    const ALWAYS: Self = Self {
        since: i64::MIN,
        until: i64::MAX,
    };

    /// Returns whether an entry of this time is inside. One without a time is where the one before is.
    fn holds(self, millis: Option<i64>, is_in: &mut Option<bool>) -> bool {
        if let Some(millis) = millis {
            *is_in = Some(self.since <= millis && millis <= self.until);
        }
        is_in.unwrap_or(self.since == i64::MIN)
    }
}

/// What was omitted since the last entry that was not.
#[derive(Debug, Default)]
struct Omitted {
    has_prompt: bool,
    has_answer: bool,
}

impl Omitted {
    fn note(&mut self, entry: &EntryRef<'_>) {
        self.has_prompt |= is_prompt(entry);
        self.has_answer |= entry.kind() == EntryKind::Assistant;
    }

    /// Returns whether a turn starts with this entry, and forgets what was omitted before it.
    fn is_turn_before(&mut self, entry: &EntryRef<'_>) -> bool {
        let Self {
            has_prompt,
            has_answer,
        } = std::mem::take(self);
        has_prompt || has_answer && is_prompt(entry)
    }
}

/// Returns whether an entry may be a prompt, also one that was queued.
fn is_prompt(entry: &EntryRef<'_>) -> bool {
    starts_turn(entry) || is_queued(entry)
}

impl Selection<'_> {
    /// Returns whether every entry is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.window == Window::ALWAYS && !self.reads_bodies()
    }

    /// Returns whether the results that are selected depend on the calls above them.
    pub(crate) fn follows_calls(&self) -> bool {
        !self.filter.tool.is_empty()
    }

    fn reads_bodies(&self) -> bool {
        let EntryFilter { role, tool, common } = self.filter;
        !role.is_empty() || !tool.is_empty() || common.text.is_some() || common.branch.is_some()
    }

    /// Returns whether an entry matches every given option. Must be called for every entry in file
    /// order.
    pub(crate) fn wants(&self, entry: &Entry<'_>, above: &mut Above) -> bool {
        let time = entry.object().str("timestamp");
        let millis = time.and_then(|time| time::millis(time.as_bytes()));
        self.wants_at(entry, millis, above)
    }

    fn wants_at(&self, entry: &Entry<'_>, millis: Option<i64>, above: &mut Above) -> bool {
        let EntryFilter { role, tool, common } = self.filter;
        let content = message_content(entry);
        // Evaluated first: calls must be tracked even if another option rejects the entry.
        let has_tool = tool.is_empty() || self.is_of_tool(content, &mut above.calls);
        let is_in = self.window.holds(millis, &mut above.is_in);
        let is_role = || role_of(entry, content).is_some_and(|one| role.contains(&one));
        let is_on = |branch: &String| entry.object().str("gitBranch").as_deref() == Some(&**branch);
        let text = common.text.as_deref();
        has_tool
            && is_in
            && (role.is_empty() || is_role())
            && common.branch.as_ref().is_none_or(is_on)
            && text.is_none_or(|text| says(entry, content, text))
    }

    /// Removes the entries of a path that are not selected. Bodies are read only if an option needs
    /// them.
    pub(crate) fn apply(
        &self,
        source: &Source,
        index: &Index,
        path: &mut ConversationPath,
    ) -> Result<()> {
        let entries = &mut path.entries;
        let mut removed = Vec::new();
        if !self.is_empty() {
            let (mut bodies, mut above) = (Bodies::new(source), Above::default());
            let all = std::mem::take(entries);
            let mut omitted = Omitted::default();
            for mut path_entry in all {
                let entry = index.entry(path_entry.entry_no());
                let is_wanted = if self.reads_bodies() {
                    let body = bodies.get(&entry)?;
                    let parsed = Entry::parse(body.text);
                    parsed.is_ok_and(|parsed| self.wants_at(&parsed, entry.millis(), &mut above))
                } else {
                    self.window.holds(entry.millis(), &mut above.is_in)
                };
                if is_wanted {
                    path_entry.after_hidden = omitted.is_turn_before(&entry);
                    entries.push(path_entry);
                } else {
                    omitted.note(&entry);
                    removed.push(entry.number());
                }
            }
        }
        if let Some(last) = self.filter.common.last {
            let before = entries.drain(..entries.len().saturating_sub(last));
            removed.extend(before.map(|entry| entry.entry_no()));
        }
        path.omitted = OmittedCalls::of(index, &removed);
        Ok(())
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
                && self.filter.tool.iter().any(|tool| *tool == *name)
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

fn role_of(entry: &Entry<'_>, content: Option<Raw<'_>>) -> Option<Role> {
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
    let text = comparable(text);
    let holds = |said: &str| comparable(said).contains(&text);
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
        filter: EntryFilter,
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
        let (selection, mut above) = (filter.selection().unwrap(), Above::default());
        let mut wants = |line: &str| selection.wants(&Entry::parse(line).unwrap(), &mut above);
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
    fn times_and_branches_select_entries_and_one_without_a_time_is_like_the_one_before() {
        let at = |time: &str, branch: &str| {
            format!(r#"{{"type":"user","timestamp":"{time}","gitBranch":"{branch}"}}"#)
        };
        let lines = [
            r#"{"type":"user"}"#.to_owned(),
            at("2026-01-01T00:00:00Z", "main"),
            at("2026-01-02T00:00:00Z", "tides"),
            r#"{"type":"user"}"#.to_owned(),
            at("2026-01-03T00:00:00Z", "main"),
        ];
        let shown = |arguments: &[&str]| {
            let filter = Line::try_parse_from([&["tail"], arguments].concat());
            let filter = filter.unwrap().filter;
            let (selection, mut above) = (filter.selection().unwrap(), Above::default());
            let mut wants =
                |at: &usize| selection.wants(&Entry::parse(&lines[*at]).unwrap(), &mut above);
            (0..lines.len()).filter(|at| wants(at)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["--since", "2026-01-02T00:00:00Z"]), [2, 3, 4]);
        assert_eq!(shown(&["--until", "2026-01-02T00:00:00Z"]), [0, 1, 2, 3]);
        assert_eq!(shown(&["--branch", "main"]), [1, 4]);
        assert_eq!(
            shown(&["--branch", "main", "--since", "2026-01-02T00:00:00Z"]),
            [4]
        );
    }

    #[test]
    fn calls_that_are_never_answered_are_given_up() {
        let filter = EntryFilter {
            tool: vec!["Read".to_owned()],
            ..EntryFilter::default()
        };
        let (selection, mut above) = (filter.selection().unwrap(), Above::default());
        for number in 0..3 * MAX_CALLS {
            let line = format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{number}","name":"Read"}}]}}}}"#
            );
            assert!(selection.wants(&Entry::parse(&line).unwrap(), &mut above));
        }
        let mut calls = above.calls;
        assert_eq!(calls.0.len(), MAX_CALLS);
        assert!(!calls.close("0"));
        assert!(calls.close(&(3 * MAX_CALLS - 1).to_string()));
    }
}
