//! The commands and answers of `append`.

use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use transcript_format::object::{JsonKind, Object, Raw, Str};
use transcript_messages::builder::{AssembledPrompt, PromptChanges, SystemPrompt};
use transcript_writer::{EntryId, Skipped, Written};

use super::client::ClientAction;
use super::command_error::CommandError;
use super::count::CountCommand;
use super::text::Json;
use super::{Name, SCHEMA};
use transcript_session::make::{self, NewEntry, ToolResult, Trigger};

/// A line of the input of `append`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CommandLine<'a> {
    /// Any value; the answer repeats it. Absent if the caller does not need it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Json<'a>>,
    /// The command.
    #[serde(flatten)]
    pub command: Command<'a>,
}

/// A command of `append`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "op", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Command<'a> {
    /// Asks for the versions of the protocol and of the program.
    Hello,
    /// Adds to the conversation.
    Append(Append<'a>),
    /// Adds a line outside the conversation, such as `custom-title`.
    Meta {
        /// The line: an object that is not part of a conversation.
        entry: Json<'a>,
    },
    /// Adds the messages whose uuid is not in the file, in one write.
    Record {
        /// The messages, oldest first: entries, or messages of the stream protocol.
        messages: Vec<Json<'a>>,
    },
    /// Restarts the conversation with a summary.
    Compact(CompactCommand<'a>),
    /// Goes back to an entry.
    Rewind {
        /// Its name ([`History::find_entry`](transcript_session::History::find_entry)); `None` goes back to before the first entry.
        to: Option<Str<'a>>,
    },
    /// Removes the last entry of the conversation.
    Tombstone {
        /// Its name, as for `rewind`.
        uuid: Str<'a>,
    },
    /// Records the system prompt of the next turn, if it is not the one that was recorded last.
    Prompt(PromptCommand<'a>),
    /// Compares a system prompt with the one that was recorded last.
    Changes(PromptCommand<'a>),
    /// Queues an addition to the conversation: a later write adds it with all others that are queued by then.
    Queue(Append<'a>),
    /// Adds entries in one write.
    AppendAll {
        /// The entries, oldest first.
        entries: Vec<Json<'a>>,
    },
    /// Gives the session a title.
    Title {
        /// The title.
        title: Str<'a>,
    },
    /// Gives the session a tag, or takes it.
    Tag {
        /// The tag; `None` takes it.
        tag: Option<Str<'a>>,
    },
    /// Ends a turn: writes what a client keeps at its end.
    EndTurn {
        /// The last prompt, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<Str<'a>>,
    },
    /// Adds the cost of a turn to the counters.
    Count(CountCommand<'a>),
    /// Returns the counters.
    Counters,
    /// Adds a result with this text for each call that has none.
    CompleteCalls {
        /// The text.
        text: Str<'a>,
    },
    /// Changes what the entries that follow say about where they were written.
    #[serde(rename_all = "camelCase")]
    Context {
        /// The branch of git.
        #[serde(skip_serializing_if = "Option::is_none")]
        git_branch: Option<Str<'a>>,
        /// The way in which the client was started.
        #[serde(skip_serializing_if = "Option::is_none")]
        entrypoint: Option<Str<'a>>,
    },
    /// Returns the state of the session.
    State,
    /// Copies the conversation into a session of its own.
    Fork {
        /// The last entry of the copy; that of the conversation if it is absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<Str<'a>>,
        /// Its title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<Str<'a>>,
        /// Its file.
        #[serde(skip_serializing_if = "Option::is_none")]
        out: Option<Str<'a>>,
    },
    /// Returns the request that continues the conversation.
    Request,
    /// Lists the entries of the conversation.
    Entries,
    /// Returns the token counts that the answers of the file report.
    Usage,
    /// Lists the entries of the whole conversation, with those that compactions removed.
    Story,
    /// Finds an entry.
    FindEntry {
        /// Its name: the start of its uuid, the number of its line, or its uuid, which is not looked up.
        name: Str<'a>,
    },
    /// Returns the last entry of the conversation.
    Leaf,
    /// Waits until everything so far is synced.
    Sync,
    /// Syncs and ends the process.
    Close,
}

/// The content of the command `append`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Append<'a> {
    /// An entry, unchanged; missing fields are filled in.
    Entry(Json<'a>),
    /// A message of the user with this text.
    User(Str<'a>),
    /// A message of the API: one entry for each of its blocks.
    Assistant(Json<'a>),
    /// An action of a person in a client: one entry, or a command with its output.
    Client(ClientAction<'a>),
    /// The result of a call of a tool.
    #[serde(rename = "toolResult")]
    ToolResult(ToolResultRecord<'a>),
}

/// The result of a call of a tool, as `append` takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolResultRecord<'a> {
    /// The id of the call.
    pub call: Str<'a>,
    /// The result for the model: a text, or a list of content blocks of the API.
    pub content: Json<'a>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The output of the tool in its own form, for programs and not for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Json<'a>>,
}

/// The command `compact`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactCommand<'a> {
    /// The origin of the compaction.
    #[serde(serialize_with = "trigger_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub trigger: Trigger,
    /// The summary of the conversation before.
    pub summary: Str<'a>,
    /// The names of the entries that stay in the context word for word, in order. Optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preserved: Vec<Str<'a>>,
    /// The number of turns at the end that stay in the context word for word, in the place of
    /// `preserved`. Optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_turns: Option<u64>,
    /// The number of tokens before; 0 and absent if it is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub pre_tokens: u64,
}

/// A system prompt, as the commands `prompt` and `changes` have it: the sections that are sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PromptCommand<'a> {
    /// The sections. They are ordered as [`SystemPrompt`] orders them; of two with one name the last
    /// one counts.
    pub sections: Vec<PromptSectionRecord<'a>>,
    /// The text between sections; an empty line if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<Str<'a>>,
}

/// A section of a system prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PromptSectionRecord<'a> {
    /// Its name, such as `base` or `git`.
    pub name: Str<'a>,
    /// Its text.
    pub text: Str<'a>,
}

impl<'a> CommandLine<'a> {
    /// Returns a command without an id.
    #[must_use]
    pub fn new(command: Command<'a>) -> Self {
        Self { id: None, command }
    }
}

// By hand: a derived `flatten` or `tag` copies values into a buffer of serde, from which no verbatim JSON can be read.
impl<'de: 'a, 'a> Deserialize<'de> for CommandLine<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Raw::deserialize(deserializer)?;
        let object = Object::parse(line.text()).map_err(D::Error::custom)?;
        let id = object.get("id").map(Json::from);
        let command =
            Command::from_object(&object).map_err(|error| D::Error::custom(error.message))?;
        Ok(Self { id, command })
    }
}

/// The names of all commands.
const OPS: &str = "hello, append, appendAll, queue, meta, record, compact, tombstone, rewind, prompt, \
                       changes, title, tag, endTurn, count, counters, completeCalls, context, state, fork, request, entries, \
                       story, findEntry, usage, leaf, sync and close";

/// Returns the error for an unknown `op`. Like all errors, it has nothing of the line.
fn unknown_op() -> CommandError {
    CommandError::bad_command(format!("unknown `op`; there are {OPS}"))
}

/// The error for a `client` that is not an action.
const BAD_CLIENT_MESSAGE: &str = "`client` must be an object with one of interrupt, rejection, cancelled, \
                              command, shell, memoryNote and prompt, each an object with its fields";

/// The error for a `toolResult` that is not a result.
const BAD_TOOL_RESULT_MESSAGE: &str = "`toolResult` must be an object with `call`, `content`, and optionally `isError` and `toolUseResult`";

impl<'a> Command<'a> {
    /// Reads the command that a line of the input contains, beside its `id`.
    ///
    /// # Errors
    /// The answer to a line that is not a command, or has a field that the command does not have.
    pub fn from_object(object: &Object<'a>) -> Result<Self, CommandError> {
        let op = object.str("op");
        let op = op.as_deref();
        let op = op.ok_or_else(|| CommandError::bad_command("missing op"))?;
        let known = Self::fields(op).ok_or_else(unknown_op)?;
        // A misspelt field would otherwise be ignored.
        let names = object.members().iter().map(|(name, _)| name.as_ref());
        let mut others = names.filter(|name| !["id", "op"].contains(name) && !known.contains(name));
        if others.next().is_some() {
            let known = match known {
                [] => "no field".to_owned(),
                known => known.join(", "),
            };
            // The field itself is not named: messages never quote the input, which may be a part of an entry.
            let message = format!("a field that {op} does not have; it has {known}");
            return Err(CommandError::bad_command(message));
        }
        let text = |name: &'static str| optional_text(object, name);
        Ok(match op {
            "hello" => Self::Hello,
            "append" => Self::Append(Append::from_object(object)?),
            "queue" => Self::Queue(Append::from_object(object)?),
            "meta" => {
                let entry = object.get("entry");
                // Refused here, where the field is known: the writer would only say that a line is not an entry.
                let entry = entry.filter(|raw| raw.kind() == JsonKind::Object);
                let entry = field(entry, "`entry` must be an object")?.into();
                Self::Meta { entry }
            }
            "record" => {
                let messages = field(object.array("messages"), "`messages` must be a list")?;
                // Bindings pass the JSON of their callers as strings: pasted into the command, it could end it.
                let messages = messages.into_iter().map(unquoted).collect();
                Self::Record { messages }
            }
            "appendAll" => {
                let entries = field(object.array("entries"), "`entries` must be a list")?;
                let entries = entries.into_iter().map(unquoted).collect();
                Self::AppendAll { entries }
            }
            "compact" => Self::Compact(CompactCommand::read(object)?),
            "prompt" => Self::Prompt(PromptCommand::read(object)?),
            "changes" => Self::Changes(PromptCommand::read(object)?),
            "tombstone" => {
                let uuid = object.get("uuid").and_then(entry_name);
                let uuid = field(uuid, "`uuid` must name an entry")?;
                Self::Tombstone { uuid }
            }
            "rewind" => {
                // Only a written `null` leaves the whole conversation; a `to` that was forgotten must not.
                let to = match object.get("to") {
                    Some(raw) if raw.is_null() => Some(None),
                    to => to.and_then(entry_name).map(Some),
                };
                let to = field(to, "`to` must name an entry or be null")?;
                Self::Rewind { to }
            }
            "title" => {
                let title = field(object.str("title"), "`title` must be a string")?;
                Self::Title { title }
            }
            // Without a tag it is taken, but not by mistake.
            "tag" if object.get("tag").is_none() => {
                return Err(CommandError::bad_command("`tag` must be a string or null"));
            }
            "tag" => Self::Tag { tag: text("tag")? },
            "endTurn" => {
                let prompt = text("prompt")?;
                Self::EndTurn { prompt }
            }
            "count" => Self::Count(CountCommand::read(object)?),
            "counters" => Self::Counters,
            "completeCalls" => {
                let text = field(object.str("text"), "`text` must be a string")?;
                Self::CompleteCalls { text }
            }
            "context" => Self::Context {
                git_branch: text("gitBranch")?,
                entrypoint: text("entrypoint")?,
            },
            "state" => Self::State,
            "fork" => {
                // `null` is the same as no option, which some languages cannot leave out of an object.
                let at = object.get("at").filter(|raw| !raw.is_null());
                let at = at.map(|at| field(entry_name(at), "`at` must name an entry"));
                Self::Fork {
                    at: at.transpose()?,
                    title: text("title")?,
                    out: text("out")?,
                }
            }
            "request" => Self::Request,
            "entries" => Self::Entries,
            "story" => Self::Story,
            "findEntry" => {
                let name = object.get("name").and_then(entry_name);
                let name = field(name, "`name` must name an entry")?;
                Self::FindEntry { name }
            }
            "usage" => Self::Usage,
            "leaf" => Self::Leaf,
            "sync" => Self::Sync,
            "close" => Self::Close,
            // Not reached while `fields` has the same names.
            _ => return Err(unknown_op()),
        })
    }

    /// Returns the names of the fields of a command, without `id` and `op`; `None` if there is no such command.
    fn fields(op: &str) -> Option<&'static [&'static str]> {
        Some(match op {
            "append" | "queue" => &["entry", "user", "assistant", "client", "toolResult"],
            "appendAll" => &["entries"],
            "meta" => &["entry"],
            "record" => &["messages"],
            "compact" => &["summary", "trigger", "preserved", "keepTurns", "preTokens"],
            "prompt" | "changes" => &["sections", "separator"],
            "tombstone" => &["uuid"],
            "rewind" => &["to"],
            "title" => &["title"],
            "tag" => &["tag"],
            "endTurn" => &["prompt"],
            "count" => &CountCommand::FIELDS,
            "completeCalls" => &["text"],
            "context" => &["gitBranch", "entrypoint"],
            "fork" => &["at", "title", "out"],
            "findEntry" => &["name"],
            // Without this row the commands that have no field would be unknown.
            "hello" | "counters" | "state" | "request" | "entries" | "story" | "usage" | "leaf"
            | "sync" | "close" => &[],
            _ => return None,
        })
    }
}

impl<'a> Append<'a> {
    /// Reads the content of an `append` from an object, under one of the names of the variants.
    ///
    /// # Errors
    /// When it has none of them, or several.
    pub fn from_object(object: &Object<'a>) -> Result<Self, CommandError> {
        let added = ["entry", "user", "assistant", "client", "toolResult"];
        let added = added.map(|key| object.get(key));
        // Exactly one: of two, the one that is meant cannot be known, and to add both would be two commands.
        match added {
            [Some(entry), None, None, None, None] => Ok(Self::Entry(unquoted(entry))),
            [None, Some(user), None, None, None] => {
                field(user.str(), "`user` must be a string").map(Self::User)
            }
            [None, None, Some(message), None, None] => Ok(Self::Assistant(unquoted(message))),
            [None, None, None, Some(action), None] => {
                // The error of serde would quote the input, which messages never do.
                let action = serde_json::from_str(action.text()).ok();
                field(action, BAD_CLIENT_MESSAGE).map(Self::Client)
            }
            [None, None, None, None, Some(result)] => {
                let result = serde_json::from_str(result.text()).ok();
                field(result, BAD_TOOL_RESULT_MESSAGE).map(Self::ToolResult)
            }
            _ => Err(CommandError::bad_command(
                "append needs one of `entry`, `user`, `assistant`, `client` and `toolResult`",
            )),
        }
    }
}

impl ToolResultRecord<'_> {
    /// Returns its entry.
    ///
    /// # Errors
    /// When the content is neither a text nor a list.
    pub fn entry(&self) -> Result<NewEntry, CommandError> {
        let content = Raw::parse(self.content.text()).ok();
        let text = content.and_then(Raw::str);
        let result = match (text, content.and_then(Raw::array)) {
            (Some(text), _) => ToolResult::text(&self.call, &text),
            (None, Some(blocks)) => ToolResult::blocks(&self.call, &blocks),
            (None, None) => {
                let message = "`content` must be a text or a list of blocks";
                return Err(CommandError::bad_command(message));
            }
        };
        let result = if self.is_error {
            result.failed()
        } else {
            result
        };
        // Verbatim, like the content: a number beyond 2^53 keeps its digits.
        let output = self.tool_use_result.as_ref();
        let output = output.and_then(|output| Raw::parse(output.text()).ok());
        Ok(make::tool_result(match output {
            Some(output) => result.output(output),
            None => result,
        }))
    }
}

impl<'a> CompactCommand<'a> {
    fn read(object: &Object<'a>) -> Result<Self, CommandError> {
        let name = object.str("trigger");
        let mut triggers = [Trigger::Manual, Trigger::Auto].into_iter();
        let trigger = triggers.find(|trigger| name.as_deref() == Some(trigger.name()));
        // A list with one wrong name is refused as a whole: the context would lack an entry that the caller counts on.
        let names = |list: Raw<'a>| list.array()?.into_iter().map(entry_name).collect();
        let preserved = object.get("preserved").map_or(Some(Vec::new()), names);
        let pre_tokens = object.get("preTokens").map_or(Some(0), Raw::u64);
        let keep_turns = object.get("keepTurns").filter(|turns| !turns.is_null());
        let keep_turns =
            keep_turns.map(|turns| field(turns.u64(), "`keepTurns` must be a number of turns"));
        // Both say which entries stay, and may differ. An empty list is what bindings pass for none.
        if keep_turns.is_some() && preserved.as_ref().is_some_and(|kept| !kept.is_empty()) {
            let message = "there must be only one of `preserved` and `keepTurns`";
            return Err(CommandError::bad_command(message));
        }
        Ok(Self {
            trigger: field(trigger, "`trigger` must be \"manual\" or \"auto\"")?,
            summary: field(object.str("summary"), "`summary` must be a string")?,
            preserved: field(preserved, "`preserved` must be a list of entries")?,
            keep_turns: keep_turns.transpose()?,
            pre_tokens: field(pre_tokens, "`preTokens` must be a number of tokens")?,
        })
    }
}

impl<'a> PromptCommand<'a> {
    fn read(object: &Object<'a>) -> Result<Self, CommandError> {
        let section = |section: Raw<'a>| {
            let section = section.object()?;
            let (name, text) = (section.str("name")?, section.str("text")?);
            Some(PromptSectionRecord { name, text })
        };
        let sections = object.array("sections").unwrap_or_default().into_iter();
        let sections: Option<Vec<_>> = sections.map(section).collect();
        // A prompt without sections is a mistake of the caller; recorded, all sections would count as removed.
        let sections = sections.filter(|sections| !sections.is_empty());
        let separator = object.get("separator").filter(|raw| !raw.is_null());
        let separator = separator.map(|raw| field(raw.str(), "`separator` must be a string"));
        Ok(Self {
            sections: field(
                sections,
                "`sections` must be a list of at least one object with `name` and `text`, which are strings",
            )?,
            separator: separator.transpose()?,
        })
    }

    /// Returns the prompt.
    #[must_use]
    pub fn assembled(&self) -> AssembledPrompt {
        let mut prompt = SystemPrompt::new();
        for section in &self.sections {
            prompt = prompt.section(&section.name, &section.text);
        }
        if let Some(separator) = &self.separator {
            prompt = prompt.separator(separator);
        }
        prompt.assemble()
    }
}

/// Returns the JSON of an entry. A string has it as its text: whatever the text, it adds nothing to the command around it.
fn unquoted(entry: Raw<'_>) -> Json<'_> {
    match entry.str() {
        Some(text) => Json::new(text.into_owned()),
        None => entry.into(),
    }
}

fn optional_text<'a>(
    object: &Object<'a>,
    name: &'static str,
) -> Result<Option<Str<'a>>, CommandError> {
    let value = object.get(name).filter(|value| !value.is_null());
    let text = value.map(|value| {
        let wrong = || CommandError::bad_command(format!("`{name}` must be a string"));
        value.str().ok_or_else(wrong)
    });
    text.transpose()
}

/// Reads the name of an entry: a text, or the number of a line.
fn entry_name(raw: Raw<'_>) -> Option<Str<'_>> {
    // As a text, since names of entries are looked up in one way: a text of digits only is a line, too.
    let number = || raw.u64().map(|line| Str::Owned(line.to_string()));
    raw.str().or_else(number)
}

fn field<T>(value: Option<T>, message: &'static str) -> Result<T, CommandError> {
    value.ok_or_else(|| CommandError::bad_command(message))
}

fn trigger_name<S: serde::Serializer>(trigger: &Trigger, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(trigger.name())
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line of the output of `append`: the answer to one command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
#[must_use]
pub struct Answer<'a> {
    /// The id of the command; absent if it has none.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    // `null` is an id like any other, which the answer repeats; serde alone would read it as absent.
    pub id: Option<Json<'a>>,
    /// Whether the command succeeded.
    pub ok: bool,
    /// The version of the protocol, [`SCHEMA`]; only of `hello`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<u32>,
    /// The version of the program; only of `hello`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Name>,
    /// The written entries; only of commands that write.
    #[serde(flatten)]
    pub written: Option<WrittenEntries>,
    /// The differences between a system prompt and the last recorded one; only of
    /// `changes`, and absent if none was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<PromptChangesRecord>,
    /// The path of a copy; only of `fork`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The counters of the session; only of `count` and `counters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<transcript_resume::Costs>")
    )]
    pub counters: Option<Json<'a>>,
    /// The state of the session; only of `state`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<transcript_resume::PathState>")
    )]
    pub state: Option<Json<'a>>,
    /// The request with its messages; only of `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<super::RequestRecord<'static>>")
    )]
    pub request: Option<Json<'a>>,
    /// The entries of the whole conversation; only of `story`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<super::StoryPreview<'static>>>")
    )]
    pub story: Option<Json<'a>>,
    /// The entries of the conversation; only of `entries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<super::EntryPreview<'static>>>")
    )]
    pub list: Option<Json<'a>>,
    /// The token counts by model, as the answers report them; only of `usage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<transcript_resume::Usage>>")
    )]
    pub models: Option<Json<'a>>,
    /// The new session that is written, because the given one is in use; only with
    /// [`OnBusy::Fork`](transcript_session::OnBusy::Fork).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<WrittenFork>,
    /// The error; only if [`ok`](Self::ok) is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CommandError>,
}

/// A copy of a session that is written instead of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WrittenFork {
    /// The id of the new session.
    pub session_id: String,
    /// The path of its file.
    pub path: PathBuf,
}

/// The differences between two system prompts, as names of sections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptChangesRecord {
    /// The sections that only the new prompt has, in its order.
    pub added: Vec<String>,
    /// The sections that only the old prompt has, in its order.
    pub removed: Vec<String>,
    /// The sections that both have, with different texts, in the order of the new prompt.
    pub changed: Vec<String>,
    /// Whether the texts of both are different although all sections are equal: their order changed,
    /// or the separator.
    pub is_rearranged: bool,
}

impl From<PromptChanges> for PromptChangesRecord {
    fn from(changes: PromptChanges) -> Self {
        Self {
            added: changes.added,
            removed: changes.removed,
            changed: changes.changed,
            is_rearranged: changes.is_rearranged,
        }
    }
}

/// The entries that a command wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WrittenEntries {
    /// The entries, in file order; none for `rewind` and `tombstone`.
    pub entries: Vec<WrittenEntry>,
    /// The uuid of the entry from which the conversation continues; `None` for metadata, and before
    /// the first entry.
    pub uuid: Option<String>,
    /// The messages of a `record` that were not written, except those that are in the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedMessages>,
}

/// Messages of one type that a `record` did not write, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SkippedMessages {
    /// Their type, such as `stream_event`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// `not-stored`, `tombstoned` or `unknown-entry`.
    pub reason: Name,
    /// Their number.
    pub count: u64,
    /// The place of the first of them in the list of messages, from 0.
    pub first: u64,
}

/// An entry that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WrittenEntry {
    /// Its uuid; `None` for metadata.
    pub uuid: Option<String>,
    /// Its parent; `None` for metadata and for the first entry.
    pub parent_uuid: Option<String>,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes, without the newline.
    pub len: u64,
}

/// Reads a field that is present, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json<'static>>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

impl Answer<'_> {
    /// The answer to a command that writes nothing.
    pub fn done() -> Self {
        Self {
            ok: true,
            ..Self::default()
        }
    }

    /// The answer to `hello` of a program of this version.
    pub fn hello(version: &'static str) -> Self {
        Self {
            schema: Some(SCHEMA),
            version: Some(version.into()),
            ..Self::done()
        }
    }

    /// The answer to a command that wrote these entries.
    pub fn written(entries: Vec<Written>) -> Self {
        let leaf = entries.last().and_then(|last| last.uuid.clone());
        Self::written_with_leaf(entries, leaf)
    }

    /// The answer to a command that wrote these entries, after which the conversation continues from
    /// `leaf`.
    pub fn written_with_leaf(entries: Vec<Written>, leaf: Option<EntryId>) -> Self {
        let text = |id: Option<EntryId>| id.map(|id| id.to_string());
        let entries = entries.into_iter().map(|entry| WrittenEntry {
            uuid: text(entry.uuid),
            parent_uuid: text(entry.parent),
            offset: entry.offset,
            len: entry.len,
        });
        Self {
            written: Some(WrittenEntries {
                entries: entries.collect(),
                // Not always that of the last entry: a rewind writes none, and moves the leaf.
                uuid: text(leaf),
                skipped: Vec::new(),
            }),
            ..Self::done()
        }
    }

    /// An answer of which `set` sets a field.
    pub(crate) fn done_with(set: impl FnOnce(&mut Self)) -> Self {
        let mut answer = Self::done();
        set(&mut answer);
        answer
    }

    /// The same answer, with the messages that were not written.
    pub(crate) fn skipping(mut self, skipped: Vec<Skipped>) -> Self {
        if let Some(written) = &mut self.written {
            let skipped = skipped.into_iter().map(|skipped| SkippedMessages {
                type_name: skipped.type_name,
                reason: skipped.reason.name().into(),
                count: skipped.count as u64,
                first: skipped.first as u64,
            });
            written.skipped = skipped.collect();
        }
        self
    }

    /// The same answer, with the path of the fork that is written.
    pub(crate) fn in_fork(mut self, path: Option<&Path>) -> Self {
        self.fork = path.map(|path| WrittenFork {
            // A session has the id that its file is named after.
            session_id: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: path.to_owned(),
        });
        self
    }

    /// The answer to a command that failed.
    pub fn failed(error: CommandError) -> Self {
        Self {
            // `ok` is false by default: an answer is never a success by mistake.
            error: Some(error),
            ..Self::default()
        }
    }
}
