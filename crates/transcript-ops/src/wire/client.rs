//! The actions of a person in a client, as `append` reads them from `client`.

use serde::{Deserialize, Serialize};
use transcript_format::context_refs::Reference;
use transcript_format::object::Str;
use transcript_format::texts::{RejectedBy, Rejection};

use super::Name;
use super::command_error::CommandError;
use transcript_session::make::{self, NewEntry};

/// An action of a person in a client, other than a plain prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum ClientAction<'a> {
    /// Stopped the turn.
    Interrupt {
        /// Whether a tool ran or waited for permission.
        #[serde(default)]
        tool_use: bool,
    },
    /// Did not permit a call; or a subagent or the automatic mode did not.
    Rejection {
        /// The id of the call.
        call: Str<'a>,
        /// The origin of the rejection: `person`, `subagent` or `automatic`.
        by: Name,
        /// The feedback of the person, or the reason of the automatic mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Str<'a>>,
    },
    /// Cancelled a call in a dialog that is not about a tool.
    Cancelled {
        /// The id of the call.
        call: Str<'a>,
    },
    /// Ran a slash command of the client.
    Command {
        /// Its name, with or without the slash.
        name: Str<'a>,
        /// The text after the name.
        #[serde(default)]
        arguments: Str<'a>,
        /// Its standard output; without output and errors there is no entry of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout: Option<Str<'a>>,
        /// Its errors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr: Option<Str<'a>>,
    },
    /// Ran a command in a shell.
    Shell {
        /// The command, without the `!`.
        command: Str<'a>,
        /// Its standard output; without output and errors there is no entry of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout: Option<Str<'a>>,
        /// Its errors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr: Option<Str<'a>>,
    },
    /// Added a note to the memory.
    MemoryNote {
        /// The note, without the `#`.
        text: Str<'a>,
    },
    /// Wrote a prompt with references before its text.
    Prompt {
        /// The references, at least one.
        references: Vec<ReferenceRecord<'a>>,
        /// The text.
        text: Str<'a>,
    },
}

/// A reference before the text of a prompt ([`Reference`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum ReferenceRecord<'a> {
    /// A file.
    File {
        /// Its path, usually relative to the project.
        path: Str<'a>,
    },
    /// A page.
    Web {
        /// Its address.
        url: Str<'a>,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<Str<'a>>,
    },
    /// A folder.
    Folder {
        /// Its path.
        path: Str<'a>,
        /// The number of files in it.
        files: u64,
    },
    /// A symbol of the code.
    Symbol {
        /// Its name.
        name: Str<'a>,
        /// Its type, such as `FUNCTION`.
        r#type: Str<'a>,
        /// The file that contains it.
        file: Str<'a>,
        /// The line of that file.
        line: u64,
    },
    /// The output of a terminal.
    Terminal {
        /// The number of lines.
        lines: u64,
        /// Whether it reports an error.
        #[serde(default)]
        is_error: bool,
    },
    /// The problems that an editor found in the code.
    Problems {
        /// The number of problems.
        count: u64,
        /// Their severity, such as `ERROR`; `None` for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        severity: Option<Str<'a>>,
    },
    /// Information from git.
    Git {
        /// Its kind, such as `DIFF`.
        what: Str<'a>,
    },
    /// The selection in the editor.
    Selection,
    /// The whole project.
    Workspace,
}

impl ClientAction<'_> {
    /// Returns the entries that a client writes for it, in order. A command and a shell command have
    /// the client's note before them, and their output after them.
    ///
    /// # Errors
    /// When the name of the cause of a rejection is unknown, or a reference cannot be written.
    pub fn entries(&self) -> Result<Vec<NewEntry>, CommandError> {
        Ok(match self {
            Self::Interrupt { tool_use } => vec![make::interrupt(*tool_use)],
            Self::Rejection { call, by, reason } => {
                let mut all = RejectedBy::ALL.into_iter();
                let by = all.find(|one| one.name() == by).ok_or_else(|| {
                    CommandError::bad_command("`by` must be person, subagent or automatic")
                })?;
                let rejection = Rejection::new(by, reason.as_deref());
                vec![make::rejection(call, rejection)]
            }
            Self::Cancelled { call } => vec![make::cancelled(call)],
            Self::Command {
                name,
                arguments,
                stdout,
                stderr,
            } => {
                let command = make::command(name, arguments);
                with_output(command, [stdout, stderr], make::command_output)
            }
            Self::Shell {
                command,
                stdout,
                stderr,
            } => with_output(make::shell(command), [stdout, stderr], make::shell_output),
            Self::MemoryNote { text } => vec![make::memory_note(text)],
            Self::Prompt { references, text } => {
                let references: Vec<_> = references.iter().map(Reference::from).collect();
                let prompt = make::user_with_references(&references, text);
                vec![prompt.map_err(|error| CommandError::bad_command(error.to_string()))?]
            }
        })
    }
}

fn with_output(
    command: NewEntry,
    [stdout, stderr]: [&Option<Str<'_>>; 2],
    output: fn(&str, &str) -> NewEntry,
) -> Vec<NewEntry> {
    let mut entries = vec![make::command_caveat(), command];
    if stdout.is_some() || stderr.is_some() {
        let [stdout, stderr] = [stdout, stderr].map(|text| text.as_deref().unwrap_or_default());
        entries.push(output(stdout, stderr));
    }
    entries
}

impl<'r> From<&'r ReferenceRecord<'_>> for Reference<'r> {
    fn from(record: &'r ReferenceRecord<'_>) -> Self {
        use ReferenceRecord as Record;

        match record {
            Record::File { path } => Self::File { path },
            Record::Web { url, title } => Self::Web {
                url,
                title: title.as_deref(),
            },
            Record::Folder { path, files } => Self::Folder {
                path,
                files: *files,
            },
            Record::Symbol {
                name,
                r#type,
                file,
                line,
            } => Self::Symbol {
                name,
                kind: r#type,
                file,
                line: *line,
            },
            Record::Terminal { lines, is_error } => Self::Terminal {
                lines: *lines,
                is_error: *is_error,
            },
            Record::Problems { count, severity } => Self::Problems {
                count: *count,
                severity: severity.as_deref(),
            },
            Record::Git { what } => Self::Git { what },
            Record::Selection => Self::Selection,
            Record::Workspace => Self::Workspace,
        }
    }
}
