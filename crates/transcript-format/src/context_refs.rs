//! References that some clients put before the text of a prompt: files, pages, symbols and the like.
//!
//! The text then starts with a region, a quote in Markdown, in exactly this form:
//!
//! ```text
//! ^> \*\*上下文资料\*\*\n(?:> \n)?((?:> - .+\n)+)\n
//! ```
//!
//! `.` is that of JavaScript: anything but LF, CR, U+2028 and U+2029. There is one region at most,
//! and only at the start; a text that merely looks like it is text. The entry may list the same in
//! its field `contexts` ([`User::contexts`](crate::entry::User::contexts)).
//!
//! ```
//! use transcript_format::context_refs::{Reference, Region};
//!
//! let prompt = "> **上下文资料**\n> \n> - 📄 `src/main.rs`\n> - 💻 终端输出 (12行) ⚠️\n\nWhy does it fail?";
//! let (region, text) = Region::split(prompt).ok_or("no region")?;
//! assert_eq!(region.references()[0], Reference::File { path: "src/main.rs" });
//! assert_eq!(region.references()[1], Reference::Terminal { lines: 12, is_error: true });
//! assert_eq!(text, "Why does it fail?");
//! assert_eq!(format!("{region}{text}"), prompt);
//! # Ok::<(), &str>(())
//! ```

use std::fmt;

use crate::object::Str;
use crate::view::view;

const HEADER: &str = "> **上下文资料**\n";
const SPACER: &str = "> \n";
const ITEM: &str = "> - ";

/// What ends a line, for the `.` of the grammar.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// The references before the text of a prompt.
///
/// Displays as the bytes that it was read from, the blank line behind it included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region<'a> {
    /// A line with nothing but the mark of the quote stands between header and references.
    is_spaced: bool,
    // Invariant: at least one, each of one line that is not empty.
    references: Vec<Reference<'a>>,
}

impl<'a> Region<'a> {
    /// Makes a region of `references`, in the form that the clients write.
    ///
    /// # Errors
    /// [`InvalidRegion`] when there are none, or one is empty or holds the end of a line.
    pub fn new(references: Vec<Reference<'a>>) -> Result<Self, InvalidRegion> {
        let is_line = |reference: &Reference<'_>| {
            let line = reference.to_string();
            !line.is_empty() && !line.contains(LINE_ENDS)
        };
        if references.is_empty() || !references.iter().all(is_line) {
            return Err(InvalidRegion);
        }
        Ok(Self {
            is_spaced: true,
            references,
        })
    }

    /// Splits the text of a prompt into the region that it starts with, and the text itself. `None`
    /// when it starts with none: then all of it is the text.
    #[must_use]
    pub fn split(prompt: &'a str) -> Option<(Self, &'a str)> {
        let body = prompt.strip_prefix(HEADER)?;
        let (is_spaced, mut rest) = match body.strip_prefix(SPACER) {
            Some(rest) => (true, rest),
            None => (false, body),
        };
        let mut references = Vec::new();
        while let Some((item, after)) = split_item(rest) {
            references.push(Reference::parse(item));
            rest = after;
        }
        let text = rest.strip_prefix('\n').filter(|_| !references.is_empty())?;
        let region = Self {
            is_spaced,
            references,
        };
        Some((region, text))
    }

    /// Returns the references in their order, at least one.
    #[must_use]
    pub fn references(&self) -> &[Reference<'a>] {
        &self.references
    }
}

/// The line at the start of `text` when it is an item, without its mark and its end, and the rest.
fn split_item(text: &str) -> Option<(&str, &str)> {
    let item = text.strip_prefix(ITEM)?;
    let (item, rest) = item.split_at(item.find(LINE_ENDS)?);
    let rest = rest.strip_prefix('\n')?;
    (!item.is_empty()).then_some((item, rest))
}

impl fmt::Display for Region<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADER)?;
        if self.is_spaced {
            f.write_str(SPACER)?;
        }
        for reference in &self.references {
            writeln!(f, "{ITEM}{reference}")?;
        }
        f.write_str("\n")
    }
}

/// Why something is no [`Region`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRegion;

impl fmt::Display for InvalidRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a region has at least one reference, each of one line")
    }
}

impl std::error::Error for InvalidRegion {}

/// One reference. Displays as it stands in its line, behind `> - `.
///
/// What was read displays as the same bytes: a line that a kind would write otherwise is
/// [`Self::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reference<'a> {
    /// A file.
    File {
        /// Its path, within the project as a rule.
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
        /// How many files are in it.
        files: u64,
    },
    /// A symbol of the code.
    Symbol {
        /// Its name.
        name: &'a str,
        /// What it is, such as `FUNCTION`.
        kind: &'a str,
        /// The file that it stands in.
        file: &'a str,
        /// The line of that file.
        line: u64,
    },
    /// The output of a terminal.
    Terminal {
        /// How many lines.
        lines: u64,
        /// Whether it tells of an error.
        is_error: bool,
    },
    /// What an editor found in the code.
    Problems {
        /// How many.
        count: u64,
        /// How bad, such as `ERROR`; `None` when all are meant.
        severity: Option<&'a str>,
    },
    /// Something of git.
    Git {
        /// What, such as `DIFF`.
        what: &'a str,
    },
    /// What is selected in the editor.
    Selection,
    /// The whole project.
    Workspace,
    /// Another kind, or another form: the line as it is, its mark included.
    Other(&'a str),
}

impl<'a> Reference<'a> {
    /// Reads what comes after `> - `.
    fn parse(item: &'a str) -> Self {
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

    /// Whether the reference is written as `item`, and nothing of it is lost.
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

    /// Returns the kind; `None` of [`Self::Other`].
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

/// What stands in `text` between `start` and `end`, which it starts and ends with.
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
        /// What a reference is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReferenceKind {
            $($(#[doc = $doc])+ $ReferenceKind,)+
        }

        impl ReferenceKind {
            /// Every kind.
            pub const ALL: [Self; 9] = [$(Self::$ReferenceKind),+];

            /// Returns the mark that a reference of this kind starts with.
            #[must_use]
            pub const fn mark(self) -> &'static str {
                match self { $(Self::$ReferenceKind => $mark,)+ }
            }

            /// Returns the `type` that a reference of this kind has in the field `contexts`.
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
    /// What an editor found in the code.
    Problems = "⚠️", "ProblemsReference";
    /// Something of git.
    Git = "🔀", "GitReference";
    /// What is selected in the editor.
    Selection = "✏️", "SelectionReference";
    /// The whole project.
    Workspace = "🏠", "WorkspaceReference";
}

view! {
    /// One element of the field `contexts` of a prompt.
    Context {
        /// the kind: see [`Context::reference_kind`].
        type_name: Str<'a> = "type";
        /// the path as it is shown.
        path: Str<'a> = "path";
        /// the absolute path.
        full_path: Str<'a> = "fullPath";
        /// how it is shown, such as `TAG`.
        display_type: Str<'a> = "displayType";
    }
}

impl Context<'_> {
    /// Returns the kind that the type names; `None` for types that are not known.
    #[must_use]
    pub fn reference_kind(&self) -> Option<ReferenceKind> {
        let name = self.type_name()?;
        ReferenceKind::ALL
            .into_iter()
            .find(|kind| kind.type_name() == name)
    }
}
