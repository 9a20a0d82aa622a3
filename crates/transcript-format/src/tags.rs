//! The texts that clients write in tags: one table of the tags, by which the texts are recognized and
//! written.
//!
//! [`Tagged`] has both directions for what a person typed in the client (commands, shell commands,
//! notes for the memory) and for its output. A text is written as it is, as in a command of a shell
//! `a < b && c`. Only a tag of the same kinds inside of it would end or change it: its `<` is written
//! as `&lt;`, and where such a tag is already written like that, `&` as `&amp;`. So every text is read
//! as it was written, and what a client wrote is read as it is, unless it contains `&lt;` before one of
//! these tags with its `>`: where clients escape, they escape that too.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;

/// Declares the groups of tags. A row has the name of a variant and that of the tag.
macro_rules! tags {
    ($($(#[doc = $about:literal])+ $GROUP:ident {
        $($(#[doc = $doc:literal])+ $Tag:ident = $name:literal;)+
    })+) => {
        /// A tag of a client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Tag {
            $($($(#[doc = $doc])+ $Tag,)+)+
        }

        impl Tag {
            $($(#[doc = $about])+ pub const $GROUP: &[Self] = &[$(Self::$Tag),+];)+

            /// Returns its name; of a tag that never is without an attribute, with the name of that.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$Tag => $name,)+)+ }
            }
        }
    };
}

tags! {
    /// Tags of input that a person typed in the client.
    TYPED {
        /// The name of a slash command, with the slash.
        CommandName = "command-name";
        /// The text that the client shows while the command runs; as a rule its name.
        CommandMessage = "command-message";
        /// The text after the name of the command.
        CommandArgs = "command-args";
        /// A command for the shell.
        BashInput = "bash-input";
    }

    /// Tags of output that clients show to the person; the content is used without the tag.
    PRINTED {
        /// The output of a slash command.
        LocalCommandStdout = "local-command-stdout";
        /// The errors of a slash command.
        LocalCommandStderr = "local-command-stderr";
        /// The output of a command of the shell.
        BashStdout = "bash-stdout";
        /// The errors of a command of the shell.
        BashStderr = "bash-stderr";
    }

    /// Tags of messages that clients write in place of a person. What follows them is of the client
    /// as well.
    MESSAGES {
        /// A task in the background ended.
        TaskNotification = "task-notification";
        /// A message of another agent of a team.
        TeammateMessage = "teammate-message";
        /// A message of another session.
        CrossSessionMessage = "cross-session-message";
        /// A message of a channel. Never without attributes; `<channel>` is a person's own.
        Channel = "channel source";
        /// Time went by.
        Tick = "tick";
        /// A command of the shell ended.
        BashNotification = "bash-notification";
        /// A note for the memory, which a person typed after `#`.
        UserMemoryInput = "user-memory-input";
        /// A resource of an MCP server changed.
        McpResourceUpdate = "mcp-resource-update";
        /// A value changed that the client polls an MCP server for.
        McpPollingUpdate = "mcp-polling-update";
    }

    /// Tags of notes that clients put before or after the words of a person, in one text.
    NOTES {
        /// A reminder for the model.
        SystemReminder = "system-reminder";
        /// The note before a command that ran in the client.
        LocalCommandCaveat = "local-command-caveat";
        /// The file that is open in the editor.
        IdeOpenedFile = "ide_opened_file";
        /// The text that is selected in the editor.
        IdeSelection = "ide_selection";
        /// The problems that the editor shows.
        IdeDiagnostics = "ide_diagnostics";
        /// Other facts of the editor.
        IdeContext = "ide_context";
        /// Problems that are new.
        NewDiagnostics = "new-diagnostics";
        /// The output of a hook for prompts.
        UserPromptSubmitHook = "user-prompt-submit-hook";
        /// The output of a hook for the start of a session.
        SessionStartHook = "session-start-hook";
        /// The start of an output that is stored beside the session.
        PersistedOutput = "persisted-output";
        /// The time of a prompt. Copilot CLI puts it before the words.
        CurrentDatetime = "current_datetime";
    }
}

impl Tag {
    /// Returns whether a text starts with the tag, without attributes.
    #[must_use]
    pub fn opens(self, text: &str) -> bool {
        let rest = text.strip_prefix('<');
        let rest = rest.and_then(|rest| rest.strip_prefix(self.name()));
        rest.is_some_and(|rest| rest.starts_with('>'))
    }

    /// Returns the text in the first element of this tag without attributes, up to the end of `text`
    /// if it has no end tag.
    #[must_use]
    pub fn find(self, text: &str) -> Option<Cow<'_, str>> {
        let (_, rest) = text.split_once(&format!("<{}>", self.name()))?;
        let content = rest.split_once(&format!("</{}>", self.name()));
        Some(unescaped(content.map_or(rest, |(content, _)| content)))
    }

    /// Returns a text in an element of this tag.
    pub(crate) fn element(self, text: &str) -> String {
        let (name, text) = (self.name(), escaped(text));
        format!("<{name}>{text}</{name}>")
    }
}

/// Input that a person typed in a client, or the output of it. It displays as the text that clients write,
/// and [`read`](Self::read) returns it from that text.
///
/// ```
/// use transcript_format::tags::Tagged;
///
/// let shell = Tagged::Shell("ls -l | tee a.txt".into());
/// assert_eq!(shell.to_string(), "<bash-input>ls -l | tee a.txt</bash-input>");
/// assert_eq!(Tagged::read(&shell.to_string()), Some(shell));
/// assert_eq!(Tagged::read("Why <b>?"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tagged<'t> {
    /// A slash command.
    Command {
        /// Its name, with the slash.
        name: Cow<'t, str>,
        /// The text after the name.
        arguments: Cow<'t, str>,
    },
    /// The output of a slash command.
    CommandOutput(Output<'t>),
    /// A command for the shell.
    Shell(Cow<'t, str>),
    /// The output of a shell command.
    ShellOutput(Output<'t>),
    /// A note for the memory.
    MemoryNote(Cow<'t, str>),
}

/// The output of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Output<'t> {
    /// Its output.
    pub stdout: Cow<'t, str>,
    /// Its errors.
    pub stderr: Cow<'t, str>,
}

impl<'t> Output<'t> {
    fn find(text: &'t str, [stdout, stderr]: [Tag; 2]) -> Self {
        Self {
            stdout: stdout.find(text).unwrap_or_default(),
            stderr: stderr.find(text).unwrap_or_default(),
        }
    }
}

impl<'t> Tagged<'t> {
    /// Reads the text of a user line, or of a `local_command`; `None` if it is not such a text.
    #[must_use]
    pub fn read(text: &'t str) -> Option<Self> {
        const COMMAND: [Tag; 2] = [Tag::LocalCommandStdout, Tag::LocalCommandStderr];
        const SHELL: [Tag; 2] = [Tag::BashStdout, Tag::BashStderr];
        let text = text.trim_start();
        // Clients write the parts of a command in several orders.
        if text.starts_with("<command-")
            && let Some(name) = Tag::CommandName.find(text)
        {
            let arguments = Tag::CommandArgs.find(text).unwrap_or_default();
            return Some(Self::Command { name, arguments });
        }
        if COMMAND.iter().any(|tag| tag.opens(text)) {
            return Some(Self::CommandOutput(Output::find(text, COMMAND)));
        }
        if SHELL.iter().any(|tag| tag.opens(text)) {
            return Some(Self::ShellOutput(Output::find(text, SHELL)));
        }
        let content = |tag: Tag| tag.find(text).filter(|_| tag.opens(text));
        let shell = content(Tag::BashInput).map(Self::Shell);
        shell.or_else(|| content(Tag::UserMemoryInput).map(Self::MemoryNote))
    }
}

impl fmt::Display for Tagged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { name, arguments } => {
                const INDENT: &str = "\n            ";
                let message = name.strip_prefix('/').unwrap_or(name);
                f.write_str(&Tag::CommandName.element(name))?;
                f.write_str(INDENT)?;
                f.write_str(&Tag::CommandMessage.element(message))?;
                f.write_str(INDENT)?;
                f.write_str(&Tag::CommandArgs.element(arguments))
            }
            Self::CommandOutput(Output { stdout, stderr }) => {
                if !stdout.is_empty() || stderr.is_empty() {
                    f.write_str(&Tag::LocalCommandStdout.element(stdout))?;
                }
                if !stderr.is_empty() {
                    f.write_str(&Tag::LocalCommandStderr.element(stderr))?;
                }
                Ok(())
            }
            Self::Shell(command) => f.write_str(&Tag::BashInput.element(command)),
            Self::ShellOutput(Output { stdout, stderr }) => {
                f.write_str(&Tag::BashStdout.element(stdout))?;
                f.write_str(&Tag::BashStderr.element(stderr))
            }
            Self::MemoryNote(note) => f.write_str(&Tag::UserMemoryInput.element(note)),
        }
    }
}

/// Writes a text so that it contains none of the tags of [`Tagged`].
fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, |sign| match sign {
        TagEscape::Plain => Some(("<", "&lt;")),
        TagEscape::Escaped | TagEscape::EscapedAgain => Some(("&", "&amp;")),
    })
}

/// Returns the text of which [`escaped`] made this one.
fn unescaped(text: &str) -> Cow<'_, str> {
    replaced(text, |sign| match sign {
        TagEscape::Plain => None,
        TagEscape::Escaped => Some(("&lt;", "<")),
        TagEscape::EscapedAgain => Some(("&amp;", "&")),
    })
}

/// The escape for the `<` of a tag.
enum TagEscape {
    /// As `<`.
    Plain,
    /// As `&lt;`.
    Escaped,
    /// As `&amp;lt;`, `&amp;amp;lt;` and so on.
    EscapedAgain,
}

impl TagEscape {
    /// Reads the sign before the name of one of the tags of [`Tagged`] at the start of a text.
    fn at_start(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('<') {
            Some(rest) => (Self::Plain, rest),
            None => {
                let entity = text.strip_prefix('&')?;
                let rest = entity.trim_start_matches("amp;");
                let sign = if rest.len() == entity.len() {
                    Self::Escaped
                } else {
                    Self::EscapedAgain
                };
                (sign, rest.strip_prefix("lt;")?)
            }
        };
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let is_name = |tag: &Tag| {
            let rest = rest.strip_prefix(tag.name());
            rest.is_some_and(|rest| rest.starts_with('>'))
        };
        let mut tags = Tag::TYPED.iter().chain(Tag::PRINTED);
        (tags.any(is_name) || is_name(&Tag::UserMemoryInput)).then_some(sign)
    }
}

/// Replaces the sign of each tag of [`Tagged`] in a text: `with` returns its first part, and what is
/// written for that.
fn replaced(
    text: &str,
    with: impl Fn(TagEscape) -> Option<(&'static str, &'static str)>,
) -> Cow<'_, str> {
    let (mut new, mut done, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr2(b'<', b'&', &text.as_bytes()[at..]) {
        let start = at + found;
        at = start + 1;
        if let Some((part, written)) = TagEscape::at_start(&text[start..]).and_then(&with) {
            new.push_str(&text[done..start]);
            new.push_str(written);
            done = start + part.len();
            at = done;
        }
    }
    match done {
        0 => Cow::Borrowed(text),
        _ => {
            new.push_str(&text[done..]);
            Cow::Owned(new)
        }
    }
}
