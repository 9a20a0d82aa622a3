//! The options that select entries: the same, with the same meaning, for every operation.

use std::collections::VecDeque;
use std::result::Result;

use jiff::Zoned;
use serde::Deserialize;
use transcript_catalog::moment;
use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::{FromRaw, Raw};
use transcript_format::time;
use transcript_format::unicode::comparable;
use transcript_reader::{Bodies, EntryRef, Error, Index, Source};
use transcript_render::blocks::{blocks, message_content, plain_text};
use transcript_resume::items::{is_queued, starts_turn};
use transcript_resume::{ConversationPath, OmittedCalls};

use crate::failure::Failure;

/// At most this many calls wait for their results; the oldest is dropped.
const MAX_CALLS: usize = 1024;
/// The longest id of a call, in bytes.
const MAX_ID: usize = 256;

/// The options that select entries.
#[derive(Clone, Debug, Default)]
pub struct EntryOptions {
    /// Only entries with one of these roles.
    pub role: Vec<RoleName>,
    /// Only calls of one of these tools, and their results.
    pub tool: Vec<String>,
    /// Only entries that contain this text, ignoring case.
    pub text: Option<String>,
    /// Only from this time on.
    pub since: Option<String>,
    /// Only up to this time.
    pub until: Option<String>,
    /// Only entries that were written on this branch of git.
    pub branch: Option<String>,
    /// Only this number of the last ones.
    pub last: Option<usize>,
}

/// A range of times, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    pub(crate) since: i64,
    pub(crate) until: i64,
}

/// The entries that the options select.
#[derive(Clone, Debug)]
pub struct EntrySelection {
    options: EntryOptions,
    window: TimeWindow,
}

/// The author of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    /// A person, or the client in a person's place.
    User,
    /// The agent: its text and its calls.
    Assistant,
    /// Results of calls.
    Tool,
    /// The client: system entries and attachments.
    System,
}

/// The state of a filter after the entries above: they decide about results of calls, and about entries without a time.
#[derive(Debug, Default)]
pub struct FilterState {
    /// Open calls of the selected tools, oldest first. Their results are selected too.
    calls: OpenCalls,
    /// Whether the last time was within the window.
    is_in: Option<bool>,
}

#[derive(Debug, Default)]
struct OpenCalls(VecDeque<String>);

impl EntryOptions {
    /// Reads the times.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn selection(self) -> Result<EntrySelection, Failure> {
        let window = TimeWindow::read(self.since.as_deref(), self.until.as_deref())?;
        Ok(EntrySelection {
            options: self,
            window,
        })
    }
}

impl TimeWindow {
    const UNLIMITED: Self = Self {
        since: i64::MIN,
        until: i64::MAX,
    };

    /// Reads the options `since` and `until`.
    pub(crate) fn read(since: Option<&str>, until: Option<&str>) -> Result<Self, Failure> {
        let now = Zoned::now();
        let read = |option: &'static str, text: Option<&str>, default| match text {
            Some(text) => moment::parse(text, &now).map_err(|error| Failure::option(option, error)),
            None => Ok(default),
        };
        Ok(Self {
            since: read("since", since, i64::MIN)?,
            until: read("until", until, i64::MAX)?,
        })
    }

    /// Returns whether an entry of this time is inside. One without a time is where the one before is.
    fn holds(self, millis: Option<i64>, is_in: &mut Option<bool>) -> bool {
        if let Some(millis) = millis {
            *is_in = Some(self.since <= millis && millis <= self.until);
        }
        is_in.unwrap_or(self.since == i64::MIN)
    }
}

/// The kinds of entries that were omitted since the last one that was not.
#[derive(Debug, Default)]
struct OmittedEntries {
    has_prompt: bool,
    has_answer: bool,
}

impl OmittedEntries {
    fn note(&mut self, entry: &EntryRef<'_>) {
        self.has_prompt |= is_prompt(entry);
        self.has_answer |= entry.kind() == EntryKind::Assistant;
    }

    /// Returns whether a turn starts with this entry, and forgets the omitted entries before it.
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

impl EntrySelection {
    /// Returns whether every entry is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.window == TimeWindow::UNLIMITED && !self.reads_bodies()
    }

    /// Returns the number of the last ones that are selected; `None` if it is not limited.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.options.last
    }

    /// Returns whether the results that are selected depend on the calls above them.
    #[must_use]
    pub fn follows_calls(&self) -> bool {
        !self.options.tool.is_empty()
    }

    fn reads_bodies(&self) -> bool {
        let options = &self.options;
        !options.role.is_empty()
            || !options.tool.is_empty()
            || options.text.is_some()
            || options.branch.is_some()
    }

    /// Returns whether an entry matches every given option. Must be called for every entry in file
    /// order.
    pub fn selects(&self, entry: &Entry<'_>, above: &mut FilterState) -> bool {
        let time = entry.object().str("timestamp");
        let millis = time.and_then(|time| time::millis(time.as_bytes()));
        self.selects_at(entry, millis, above)
    }

    fn selects_at(&self, entry: &Entry<'_>, millis: Option<i64>, above: &mut FilterState) -> bool {
        let EntryOptions { role, tool, .. } = &self.options;
        let content = message_content(entry);
        // Evaluated first: calls must be tracked even if another option rejects the entry.
        let has_tool = tool.is_empty() || self.has_selected_tool(content, &mut above.calls);
        let is_in = self.window.holds(millis, &mut above.is_in);
        let is_role = || role_of(entry, content).is_some_and(|one| role.contains(&one));
        let is_on = |branch: &String| entry.object().str("gitBranch").as_deref() == Some(&**branch);
        let text = self.options.text.as_deref();
        has_tool
            && is_in
            && (role.is_empty() || is_role())
            && self.options.branch.as_ref().is_none_or(is_on)
            && text.is_none_or(|text| contains_text(entry, content, text))
    }

    /// Removes the entries of a path that are not selected. Bodies are read only if an option needs
    /// them.
    ///
    /// # Errors
    /// When an entry cannot be read.
    pub fn apply(
        &self,
        source: &Source,
        index: &Index,
        path: &mut ConversationPath,
    ) -> Result<(), Error> {
        let entries = &mut path.entries;
        let mut removed = Vec::new();
        if !self.is_empty() {
            let (mut bodies, mut above) = (Bodies::new(source), FilterState::default());
            let all = std::mem::take(entries);
            let mut omitted = OmittedEntries::default();
            for mut path_entry in all {
                let entry = index.entry(path_entry.entry_no());
                let is_wanted = if self.reads_bodies() {
                    let body = bodies.get(&entry)?;
                    let parsed = Entry::parse(body.text);
                    parsed.is_ok_and(|parsed| self.selects_at(&parsed, entry.millis(), &mut above))
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
        if let Some(last) = self.options.last {
            let before = entries.drain(..entries.len().saturating_sub(last));
            removed.extend(before.map(|entry| entry.entry_no()));
        }
        path.omitted = OmittedCalls::of(index, &removed);
        Ok(())
    }

    fn has_selected_tool(&self, content: Option<Raw<'_>>, calls: &mut OpenCalls) -> bool {
        let mut is_any = false;
        for block in content.map(blocks).unwrap_or_default() {
            let Some(object) = block.object() else {
                continue;
            };
            if let Some(call) = object.str("tool_use_id") {
                is_any |= calls.close(&call);
            } else if let Some((name, id)) = object.str("name").zip(object.str("id"))
                && self.options.tool.iter().any(|tool| *tool == *name)
            {
                calls.open(&id);
                is_any = true;
            }
        }
        is_any
    }
}

impl OpenCalls {
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

fn role_of(entry: &Entry<'_>, content: Option<Raw<'_>>) -> Option<RoleName> {
    let blocks = content.map(blocks).unwrap_or_default();
    let is_result = |block: &Raw<'_>| {
        let object = block.object();
        object.is_some_and(|block| block.get("tool_use_id").is_some())
    };
    match entry.kind() {
        EntryKind::User if blocks.iter().any(is_result) => Some(RoleName::Tool),
        EntryKind::User => Some(RoleName::User),
        EntryKind::Assistant => Some(RoleName::Assistant),
        EntryKind::Attachment if queued(entry).is_some() => Some(RoleName::User),
        EntryKind::System | EntryKind::Attachment => Some(RoleName::System),
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
fn contains_text(entry: &Entry<'_>, content: Option<Raw<'_>>, text: &str) -> bool {
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
    use super::*;

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

    fn selected(options: EntryOptions, lines: &[impl AsRef<str>]) -> Vec<usize> {
        let (selection, mut above) = (options.selection().unwrap(), FilterState::default());
        let mut wants = |line: &str| selection.selects(&Entry::parse(line).unwrap(), &mut above);
        (0..lines.len())
            .filter(|number| wants(lines[*number].as_ref()))
            .collect()
    }

    /// Returns the numbers of the lines with these roles and calls of these tools.
    fn shown(role: &[RoleName], tool: &[&str]) -> Vec<usize> {
        let options = EntryOptions {
            role: role.to_vec(),
            tool: tool.iter().map(|&name| name.to_owned()).collect(),
            ..EntryOptions::default()
        };
        selected(options, &LINES)
    }

    #[test]
    fn every_entry_is_selected_without_options() {
        assert_eq!(shown(&[], &[]).len(), LINES.len());
    }

    #[test]
    fn roles_tell_results_from_prompts() {
        assert_eq!(shown(&[RoleName::User], &[]), [0, 6]);
        assert_eq!(shown(&[RoleName::Assistant], &[]), [1, 2]);
        assert_eq!(shown(&[RoleName::Tool, RoleName::System], &[]), [3, 4, 5]);
    }

    #[test]
    fn the_results_of_a_tool_come_with_its_calls_and_without_them() {
        assert_eq!(shown(&[], &["Read"]), [1, 4]);
        assert_eq!(shown(&[RoleName::Tool], &["Read"]), [4]);
        assert_eq!(shown(&[], &["Bash", "Read"]), [1, 2, 3, 4]);
        assert_eq!(shown(&[], &["read"]), [0; 0]);
    }

    #[test]
    fn texts_are_found_in_any_case_and_in_every_searched_field() {
        let shown = |text: &str, tool: &[&str]| {
            let options = EntryOptions {
                text: Some(text.to_owned()),
                tool: tool.iter().map(|&name| name.to_owned()).collect(),
                ..EntryOptions::default()
            };
            selected(options, &LINES)
        };
        assert_eq!(shown("maP", &[]), [0, 1, 3, 5, 6]);
        assert_eq!(shown("map", &["Bash"]), [3]);
        assert_eq!(shown("river", &[]), [4]);
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
        let shown = |since: Option<&str>, until: Option<&str>, branch: Option<&str>| {
            let options = EntryOptions {
                since: since.map(str::to_owned),
                until: until.map(str::to_owned),
                branch: branch.map(str::to_owned),
                ..EntryOptions::default()
            };
            selected(options, &lines)
        };
        let second = Some("2026-01-02T00:00:00Z");
        assert_eq!(shown(second, None, None), [2, 3, 4]);
        assert_eq!(shown(None, second, None), [0, 1, 2, 3]);
        assert_eq!(shown(None, None, Some("main")), [1, 4]);
        assert_eq!(shown(second, None, Some("main")), [4]);
    }

    #[test]
    fn calls_that_are_never_answered_are_given_up() {
        let options = EntryOptions {
            tool: vec!["Read".to_owned()],
            ..EntryOptions::default()
        };
        let (selection, mut above) = (options.selection().unwrap(), FilterState::default());
        for number in 0..3 * MAX_CALLS {
            let line = format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{number}","name":"Read"}}]}}}}"#
            );
            assert!(selection.selects(&Entry::parse(&line).unwrap(), &mut above));
        }
        let mut calls = above.calls;
        assert_eq!(calls.0.len(), MAX_CALLS);
        assert!(!calls.close("0"));
        assert!(calls.close(&(3 * MAX_CALLS - 1).to_string()));
    }
}
