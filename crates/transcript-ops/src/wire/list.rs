//! The output of `list --json`.

use serde::{Deserialize, Serialize};
use transcript_format::object::Str;
use transcript_format::title::TitleSource;
use transcript_reader::{SessionRow, SessionState};

use super::{Name, SCHEMA};

/// A session: a line of `list --json`. What the file does not have is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionRecord<'a> {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `session`.
    pub kind: Name,
    /// The name of the file without `.jsonl`.
    pub session_id: Str<'a>,
    /// The path of the file; without a file, the path where it would be.
    pub path: String,
    /// The name of the folder of the file.
    pub project: Str<'a>,
    /// The working folder: the one that the session moved to, else the one it started in.
    pub cwd: Option<Str<'a>>,
    /// The title.
    pub title: Option<Str<'a>>,
    /// The origin of the title.
    #[serde(default)]
    pub title_source: Option<TitleSource>,
    /// The first prompt of a person, on one line and truncated to 200 UTF-16 units.
    pub first_prompt: Option<Str<'a>>,
    /// The last prompt, likewise.
    pub last_prompt: Option<Str<'a>>,
    /// The time of the first line that has one.
    pub created: Option<Str<'a>>,
    /// The time of the last message; of the file if it has no message.
    pub modified: Option<Str<'a>>,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The git branch of the last entry.
    pub branch: Option<Str<'a>>,
    /// The tag.
    pub tag: Option<Str<'a>>,
    /// The number of subagents with a file of their own.
    pub subagents: u64,
    /// Its state: `finished`, `waiting`, `open-call` or `stalled`.
    pub state: Option<Name>,
    /// Whether the file exists. If only files of subagents are left, folder, branch and times are
    /// those of the last subagent.
    pub has_file: bool,
    /// The model of the last answer, if it is near the end of the file.
    pub model: Option<Str<'a>>,
    /// The number of entries of the conversation, where it is known without reading the whole file.
    pub message_count: Option<u64>,
    /// When the session was forked, if no message was added since.
    pub forked: Option<Str<'a>>,
    /// The cost of the session and its subagents, in nano-dollars, if `usage` has read it since its last change and
    /// knows all prices.
    #[serde(default)]
    pub cost_nano_usd: Option<u64>,
    /// Whether the session is read from the archive, as its file is gone.
    #[serde(default)]
    pub in_archive: bool,
    /// The name of the root that it is in, if several roots are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The agent that wrote it, such as `codex`; absent for Claude Code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The machine that captured it, if it is in an archive that several machines share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The ids of the subagents with a file of their own, with `--sidechains`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

impl<'a> SessionRecord<'a> {
    /// Describes one session of a listing.
    #[must_use]
    pub fn new(row: &'a SessionRow) -> Self {
        let text = |field: &'a Option<String>| field.as_deref().map(Str::Borrowed);
        Self {
            schema: SCHEMA,
            kind: "session".into(),
            session_id: Str::Borrowed(&row.session_id),
            path: row.path.display().to_string(),
            project: Str::Borrowed(&row.project),
            cwd: text(&row.cwd),
            title: text(&row.title),
            title_source: row.title_source,
            first_prompt: text(&row.first_prompt),
            last_prompt: text(&row.last_prompt),
            created: text(&row.created),
            modified: text(&row.modified),
            bytes: row.bytes,
            branch: text(&row.branch),
            tag: text(&row.tag),
            subagents: row.subagents as u64,
            state: row.state.map(|state| SessionState::name(state).into()),
            has_file: row.has_file,
            model: text(&row.model),
            message_count: row.messages,
            forked: text(&row.forked),
            cost_nano_usd: None,
            in_archive: false,
            root: None,
            agent: None,
            machine: None,
            agents: Vec::new(),
        }
    }
}
