//! References that some clients put before the text of a prompt: files, pages, symbols and others.
//!
//! The text then starts with a region, a quote in Markdown, in exactly this form:
//!
//! ```text
//! ^> \*\*上下文资料\*\*\n(?:> \n)?((?:> - .+\n)+)\n
//! ```
//!
//! `.` is that of JavaScript: any character except LF, CR, U+2028 and U+2029. There is at most one
//! region, and only at the start; a region in any other form is plain text. The entry may list the
//! same references in its field `contexts` ([`User::contexts`](crate::entry::User::contexts)).
//!
//! ```
//! use transcript_format::context_refs::{self, Reference, Region};
//!
//! let references = [
//!     Reference::File { path: "src/main.rs" },
//!     Reference::Terminal { lines: 12, is_error: true },
//! ];
//! let prompt = context_refs::prompt(&references, "Why does it fail?")?;
//! assert_eq!(prompt, "> **上下文资料**\n> \n> - 📄 `src/main.rs`\n> - 💻 终端输出 (12行) ⚠️\n\nWhy does it fail?");
//!
//! let (region, text) = Region::split(&prompt).ok_or("no region")?;
//! assert!(region.references().eq(references));
//! assert_eq!(text, "Why does it fail?");
//! assert_eq!([region.text(), text].concat(), prompt);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use crate::object::Str;
use crate::schema::schema;

const HEADER: &str = "> **上下文资料**\n";
const SPACER: &str = "> \n";
const ITEM: &str = "> - ";

/// The line ends that the `.` of the grammar does not match.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// The references before the text of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region<'a> {
    text: &'a str,
    // Invariant: at least one line, each an item of the grammar.
    items: &'a str,
}

impl<'a> Region<'a> {
    /// Splits a prompt into the region at its start and the text after it. Returns `None` when the
    /// prompt does not start with a region.
    #[must_use]
    pub fn split(prompt: &'a str) -> Option<(Self, &'a str)> {
        let body = prompt.strip_prefix(HEADER)?;
        let items = body.strip_prefix(SPACER).unwrap_or(body);
        let mut rest = items;
        while let Some(after) = after_item(rest) {
            rest = after;
        }
        let items = &items[..items.len() - rest.len()];
        let text = rest.strip_prefix('\n').filter(|_| !items.is_empty())?;
        let region = Self {
            text: &prompt[..prompt.len() - text.len()],
            items,
        };
        Some((region, text))
    }

    /// Returns the region as it is in the prompt, with the blank line after it.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the references in order, at least one.
    pub fn references(&self) -> impl Iterator<Item = Reference<'a>> + use<'a> {
        let items = self.items.split_terminator('\n');
        items.map(|item| Reference::read(item.strip_prefix(ITEM).unwrap_or(item)))
    }
}

/// Returns whether a text is the start of a prompt with references that was put on one line, as clients
/// do in `last-prompt` lines: then the references cannot be told from the question any more.
#[must_use]
pub fn is_flattened(text: &str) -> bool {
    let rest = text.strip_prefix(HEADER.trim_end());
    rest.is_some_and(|rest| rest.starts_with(" >"))
}

/// Returns the text after the item at the start of `text`; `None` if there is none.
fn after_item(text: &str) -> Option<&str> {
    let item = text.strip_prefix(ITEM)?;
    let (item, rest) = item.split_at(item.find(LINE_ENDS)?);
    rest.strip_prefix('\n').filter(|_| !item.is_empty())
}

/// Returns a prompt with these references: their region, then the text.
///
/// # Errors
/// When there are no references, or one cannot be written so that it is read again: the form knows no
/// escapes, so a path cannot contain a line end, for example.
pub fn prompt(references: &[Reference<'_>], text: &str) -> Result<String, InvalidRegion> {
    if references.is_empty() {
        return Err(InvalidRegion::Empty);
    }
    let mut prompt = [HEADER, SPACER].concat();
    for (number, reference) in references.iter().enumerate() {
        let item = reference.to_string();
        let is_line = !item.is_empty() && !item.contains(LINE_ENDS);
        if !is_line || Reference::read(&item) != *reference {
            return Err(InvalidRegion::Reference(number));
        }
        prompt.push_str(ITEM);
        prompt.push_str(&item);
        prompt.push('\n');
    }
    prompt.push('\n');
    prompt.push_str(text);
    Ok(prompt)
}

/// The reason why references cannot be written before a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRegion {
    /// There are none.
    #[error("a region has at least one reference")]
    Empty,
    /// The one with this number, from 0, would be read as something else.
    #[error(
        "the reference with number {0} is empty, contains a line end, or would be read as another one"
    )]
    Reference(usize),
}

/// One reference. It displays as in its line, without the leading `> - `.
///
/// A reference that was read displays as the same bytes: a line in a form that its kind would not write
/// is read as [`Self::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reference<'a> {
    /// A file.
    File {
        /// Its path, usually relative to the project.
        path: &'a str,
    },
    /// A page.
    Web {
        /// Its address.
        url: &'a str,
        /// Its title.
        title: Option<&'a str>,
    },
    /// A folder.
    Folder {
        /// Its path.
        path: &'a str,
        /// The number of files in it.
        files: u64,
    },
    /// A symbol of the code.
    Symbol {
        /// Its name.
        name: &'a str,
        /// Its kind, such as `FUNCTION`.
        kind: &'a str,
        /// The file that contains it.
        file: &'a str,
        /// The line of that file.
        line: u64,
    },
    /// The output of a terminal.
    Terminal {
        /// The number of lines.
        lines: u64,
        /// Whether it reports an error.
        is_error: bool,
    },
    /// The problems that an editor found in the code.
    Problems {
        /// The number of problems.
        count: u64,
        /// Their severity, such as `ERROR`; `None` for all.
        severity: Option<&'a str>,
    },
    /// Information from git.
    Git {
        /// Its kind, such as `DIFF`.
        what: &'a str,
    },
    /// The selection in the editor.
    Selection,
    /// The whole project.
    Workspace,
    /// Another kind or form: the content of the line, including its mark.
    Other(&'a str),
}

impl<'a> Reference<'a> {
    /// Reads the text after `> - `.
    #[must_use]
    pub fn read(item: &'a str) -> Self {
        Self::of_kind(item)
            .filter(|reference| reference.writes(item))
            .unwrap_or(Self::Other(item))
    }

    fn of_kind(item: &'a str) -> Option<Self> {
        let (mark, form) = item.split_once(' ')?;
        let kind = ReferenceKind::ALL
            .into_iter()
            .find(|kind| kind.mark() == mark)?;
        Some(match kind {
            ReferenceKind::File => Self::File {
                path: between(form, "`", "`")?,
            },
            ReferenceKind::Web => match form.split_once(" (") {
                Some((url, title)) => Self::Web {
                    url,
                    title: Some(title.strip_suffix(')')?),
                },
                None => Self::Web {
                    url: form,
                    title: None,
                },
            },
            ReferenceKind::Folder => {
                let (path, files) = between(form, "`", "个文件)")?.rsplit_once("` (")?;
                let files = files.parse().ok()?;
                Self::Folder { path, files }
            }
            ReferenceKind::Symbol => {
                let (name, rest) = form.strip_prefix('`')?.split_once("` (")?;
                let (kind, place) = rest.split_once(") - ")?;
                let (file, line) = place.rsplit_once(':')?;
                let line = line.parse().ok()?;
                Self::Symbol {
                    name,
                    kind,
                    file,
                    line,
                }
            }
            ReferenceKind::Terminal => {
                let (lines, flag) = form.strip_prefix("终端输出 (")?.split_once("行)")?;
                Self::Terminal {
                    lines: lines.parse().ok()?,
                    is_error: !flag.is_empty(),
                }
            }
            ReferenceKind::Problems => {
                let (count, severity) = form.strip_prefix("问题报告 (")?.split_once("个)")?;
                Self::Problems {
                    count: count.parse().ok()?,
                    severity: between(severity, " [", "]"),
                }
            }
            ReferenceKind::Git => Self::Git {
                what: form.strip_prefix("Git ")?,
            },
            ReferenceKind::Selection => Self::Selection,
            ReferenceKind::Workspace => Self::Workspace,
        })
    }

    /// Returns whether the reference would be written exactly as `item`, so that nothing is lost.
    fn writes(&self, item: &str) -> bool {
        struct Expected<'t>(&'t str);

        impl fmt::Write for Expected<'_> {
            fn write_str(&mut self, part: &str) -> fmt::Result {
                self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
                Ok(())
            }
        }

        let mut rest = Expected(item);
        fmt::write(&mut rest, format_args!("{self}")).is_ok() && rest.0.is_empty()
    }

    /// Returns the kind; `None` for [`Self::Other`].
    #[must_use]
    pub fn kind(&self) -> Option<ReferenceKind> {
        Some(match self {
            Self::File { .. } => ReferenceKind::File,
            Self::Web { .. } => ReferenceKind::Web,
            Self::Folder { .. } => ReferenceKind::Folder,
            Self::Symbol { .. } => ReferenceKind::Symbol,
            Self::Terminal { .. } => ReferenceKind::Terminal,
            Self::Problems { .. } => ReferenceKind::Problems,
            Self::Git { .. } => ReferenceKind::Git,
            Self::Selection => ReferenceKind::Selection,
            Self::Workspace => ReferenceKind::Workspace,
            Self::Other(_) => return None,
        })
    }
}

/// Returns the part of `text` between the prefix `start` and the suffix `end`, if it has both.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.strip_prefix(start)?.strip_suffix(end)
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.kind() {
            write!(f, "{} ", kind.mark())?;
        }
        match self {
            Self::File { path } => write!(f, "`{path}`"),
            Self::Web { url, title: None } => f.write_str(url),
            Self::Web {
                url,
                title: Some(title),
            } => write!(f, "{url} ({title})"),
            Self::Folder { path, files } => write!(f, "`{path}` ({files}个文件)"),
            Self::Symbol {
                name,
                kind,
                file,
                line,
            } => write!(f, "`{name}` ({kind}) - {file}:{line}"),
            Self::Terminal { lines, is_error } => {
                let flag = if *is_error { " ⚠️" } else { "" };
                write!(f, "终端输出 ({lines}行){flag}")
            }
            Self::Problems { count, severity } => {
                write!(f, "问题报告 ({count}个)")?;
                severity.map_or(Ok(()), |severity| write!(f, " [{severity}]"))
            }
            Self::Git { what } => write!(f, "Git {what}"),
            Self::Selection => f.write_str("当前选择内容"),
            Self::Workspace => f.write_str("当前工作区"),
            Self::Other(item) => f.write_str(item),
        }
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $ReferenceKind:ident = $mark:literal, $type_name:literal;)+) => {
        /// The kind of a reference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReferenceKind {
            $($(#[doc = $doc])+ $ReferenceKind,)+
        }

        impl ReferenceKind {
            /// Every kind.
            pub const ALL: [Self; 9] = [$(Self::$ReferenceKind),+];

            /// Returns the mark at the start of references of this kind.
            #[must_use]
            pub const fn mark(self) -> &'static str {
                match self { $(Self::$ReferenceKind => $mark,)+ }
            }

            /// Returns the `type` of references of this kind in the field `contexts`.
            #[must_use]
            pub const fn type_name(self) -> &'static str {
                match self { $(Self::$ReferenceKind => $type_name,)+ }
            }
        }
    };
}

kinds! {
    /// A file.
    File = "📄", "FileReference";
    /// A page.
    Web = "🌐", "WebReference";
    /// A folder.
    Folder = "📁", "FolderReference";
    /// A symbol of the code.
    Symbol = "🔗", "SymbolReference";
    /// The output of a terminal.
    Terminal = "💻", "TerminalReference";
    /// The problems that an editor found in the code.
    Problems = "⚠️", "ProblemsReference";
    /// Information from git.
    Git = "🔀", "GitReference";
    /// The selection in the editor.
    Selection = "✏️", "SelectionReference";
    /// The whole project.
    Workspace = "🏠", "WorkspaceReference";
}

schema! {
    /// One element of the field `contexts` of a prompt.
    Context {
        type_name: Str<'a> = "type", "the kind, such as `FileReference`";
        path: Str<'a> = "path", "the path as it is shown";
        full_path: Str<'a> = "fullPath", "the absolute path";
        display_type: Str<'a> = "displayType", "its presentation, such as `TAG`";
    }
}

impl Context<'_> {
    /// Returns the kind that the type names; `None` for unknown types.
    #[must_use]
    pub fn reference_kind(&self) -> Option<ReferenceKind> {
        let name = self.type_name()?;
        let mut kinds = ReferenceKind::ALL.into_iter();
        kinds.find(|kind| kind.type_name() == name)
    }
}
