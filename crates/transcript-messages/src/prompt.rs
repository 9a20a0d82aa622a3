//! System prompts in named sections, and what changed between two of them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use transcript_format::json::Json;

use super::estimate::TokenEstimate;

/// The sections with a place of their own, in the order in which they are sent, each with its
/// priority. Sections of other names follow them in the order in which they were added.
const STANDARD_SECTIONS: [(&str, u8); 6] = [
    ("base", SystemPrompt::ALWAYS),
    ("model", 200),
    ("memory", 100),
    ("git", 50),
    ("files", 25),
    ("tools", 150),
];

/// The priority of a section of any other name.
const OTHER_PRIORITY: u8 = 75;

/// A system prompt under construction: sections with names, the texts of which the caller gives.
///
/// | section | purpose | priority |
/// | --- | --- | --- |
/// | `base` | the instructions of the client | [`ALWAYS`](Self::ALWAYS) |
/// | `model` | what one model needs in addition | 200 |
/// | `memory` | the memory files of the user and the project | 100 |
/// | `git` | the state of the repository, as by [`GitContext`] | 50 |
/// | `files` | the folders and files of the project | 25 |
/// | `tools` | how to use the tools | 150 |
/// | any other | | 75 |
///
/// Sections are sent in the order of this table, however they were added; those of other names come
/// last, in the order in which they were added.
///
/// ```
/// use transcript_messages::builder::{GitContext, RequestSettings, SystemPrompt};
///
/// let mut git = GitContext::new();
/// git.branch = Some("main".to_owned());
/// let prompt = SystemPrompt::new()
///     .section("git", &git.text())
///     .section("base", "You answer questions about calendars.")
///     .limit(1_000)
///     .assemble();
/// assert_eq!(prompt.text, "You answer questions about calendars.\n\nbranch: main");
/// assert!(prompt.omitted.is_empty());
/// let settings = RequestSettings::new("claude-sonnet-5", 1024).system(&prompt);
/// # assert!(settings.body(&[]).contains("calendars"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct SystemPrompt {
    /// In the order in which they were added, with each name once.
    sections: Vec<Section>,
    places: HashMap<String, usize>,
    separator: String,
    limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    name: String,
    text: String,
    priority: u8,
}

impl Default for SystemPrompt {
    fn default() -> Self {
        Self {
            sections: Vec::new(),
            places: HashMap::new(),
            separator: "\n\n".to_owned(),
            limit: None,
        }
    }
}

impl SystemPrompt {
    /// The priority of a section that is never omitted.
    pub const ALWAYS: u8 = u8::MAX;

    /// Starts a prompt without sections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a section with the priority of its name. It replaces an earlier one of that name. A text
    /// of white space only is not sent. A NUL becomes U+FFFD, as in messages: not every API accepts
    /// it.
    pub fn section(self, name: &str, text: &str) -> Self {
        let standard = STANDARD_SECTIONS
            .iter()
            .find(|(standard, _)| *standard == name);
        let priority = standard.map_or(OTHER_PRIORITY, |(_, priority)| *priority);
        self.section_with_priority(name, text, priority)
    }

    /// Adds a section as [`section`](Self::section) does, with a priority of the caller's.
    pub fn section_with_priority(mut self, name: &str, text: &str, priority: u8) -> Self {
        let name = without_nul(name);
        let known = self.places.get(&name);
        let section = Section {
            name: name.clone(),
            text: without_nul(text),
            priority,
        };
        match known.and_then(|place| self.sections.get_mut(*place)) {
            Some(known) => *known = section,
            None => {
                self.places.insert(name, self.sections.len());
                self.sections.push(section);
            }
        }
        self
    }

    /// Sets the text between sections; an empty line by default.
    pub fn separator(mut self, separator: &str) -> Self {
        self.separator = without_nul(separator);
        self
    }

    /// Sets the most tokens of the prompt, as [`TokenEstimate`] counts them. There is no limit by
    /// default.
    pub fn limit(mut self, tokens: u64) -> Self {
        self.limit = Some(tokens);
        self
    }

    /// Joins the sections. While they have more tokens than the limit, the section with the lowest
    /// priority is omitted, of several the last; sections are never cut. Those with the priority
    /// [`ALWAYS`](Self::ALWAYS) stay even if they alone are more than the limit:
    /// see [`AssembledPrompt::is_within_limit`].
    #[must_use]
    pub fn assemble(&self) -> AssembledPrompt {
        let is_sent = |section: &&Section| !section.text.trim().is_empty();
        let mut sections: Vec<&Section> = self.sections.iter().filter(is_sent).collect();
        // A stable sort: sections of other names keep their order.
        sections.sort_by_key(|section| place(&section.name));

        let tokens = |text: &str| TokenEstimate::of_text(text).tokens;
        let separator = tokens(&self.separator);
        let mut sizes: Vec<u64> = Vec::with_capacity(sections.len());
        sizes.extend(sections.iter().map(|section| tokens(&section.text)));
        let gaps = sections.len().saturating_sub(1) as u64;
        let mut total = sizes.iter().sum::<u64>() + gaps * separator;

        let mut by_priority: Vec<usize> = (0..sections.len()).collect();
        by_priority.sort_by_key(|at| (sections[*at].priority, std::cmp::Reverse(*at)));
        let limit = self.limit.unwrap_or(u64::MAX);
        let mut dropped = HashSet::new();
        for at in by_priority {
            if total <= limit || sections[at].priority == Self::ALWAYS {
                break;
            }
            dropped.insert(at);
            let is_last = dropped.len() == sections.len();
            total -= sizes[at] + if is_last { 0 } else { separator };
        }

        let (mut texts, mut sent, mut omitted) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (section, tokens)) in sections.into_iter().zip(sizes).enumerate() {
            let name = section.name.clone();
            if dropped.contains(&at) {
                omitted.push(OmittedSection { name, tokens });
            } else {
                texts.push(section.text.as_str());
                let text = section.text.clone();
                sent.push(PromptSection { name, text, tokens });
            }
        }
        AssembledPrompt {
            text: texts.join(&self.separator),
            sections: sent,
            omitted,
            tokens: total,
            is_within_limit: total <= limit,
        }
    }

    /// Returns the fingerprint of what [`assemble`](Self::assemble) returns.
    #[must_use]
    pub fn fingerprint(&self) -> PromptFingerprint {
        self.assemble().fingerprint()
    }
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns the place of a section in the order of [`STANDARD_SECTIONS`].
fn place(name: &str) -> usize {
    let standard = STANDARD_SECTIONS
        .iter()
        .position(|(standard, _)| *standard == name);
    standard.unwrap_or(STANDARD_SECTIONS.len())
}

/// A system prompt as it is sent. [`RequestSettings::system`](super::builder::RequestSettings::system)
/// accepts a reference to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssembledPrompt {
    /// The sections with separators between them.
    pub text: String,
    /// The sections in [`Self::text`], in their order.
    pub sections: Vec<PromptSection>,
    /// The sections that the limit left no room for, in their order.
    pub omitted: Vec<OmittedSection>,
    /// The estimated tokens of the sections and the separators.
    pub tokens: u64,
    /// Whether these are at most the limit. If not, only sections that are never omitted are left.
    pub is_within_limit: bool,
}

/// A section that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptSection {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its estimated tokens.
    pub tokens: u64,
}

/// A section that the limit left no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OmittedSection {
    /// Its name.
    pub name: String,
    /// Its estimated tokens.
    pub tokens: u64,
}

impl AssembledPrompt {
    /// Returns the names and hashes of the sections that are sent.
    #[must_use]
    pub fn fingerprint(&self) -> PromptFingerprint {
        PromptFingerprint {
            hash: text_hash(&self.text),
            sections: self
                .sections
                .iter()
                .map(PromptSection::fingerprint)
                .collect(),
        }
    }
}

impl PromptSection {
    /// Returns the name and the hash.
    #[must_use]
    pub fn fingerprint(&self) -> SectionFingerprint {
        SectionFingerprint {
            name: self.name.clone(),
            hash: text_hash(&self.text),
            tokens: self.tokens,
        }
    }
}

impl From<&AssembledPrompt> for Json {
    fn from(prompt: &AssembledPrompt) -> Self {
        Self::from(prompt.text.as_str())
    }
}

/// Returns the SHA-256 of a text in lower-case hexadecimal digits, as fingerprints contain it.
#[must_use]
pub fn text_hash(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    for byte in hmac_sha256::Hash::hash(text.as_bytes()) {
        // Writing to a string does not fail.
        _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// A hash that identifies a system prompt without its text. Two prompts have equal fingerprints only if
/// their texts are equal.
///
/// ```
/// use transcript_messages::builder::{PromptFingerprint, SystemPrompt};
///
/// let old = SystemPrompt::new().section("base", "Be short.").section("git", "branch: main");
/// let new = SystemPrompt::new().section("base", "Be short.").section("git", "branch: fix");
/// let changes = PromptFingerprint::changes(&old.fingerprint(), &new.fingerprint());
/// assert_eq!(changes.changed, ["git"]);
/// assert!(changes.added.is_empty() && changes.removed.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptFingerprint {
    /// The SHA-256 of the whole text, with separators, in lower-case hexadecimal digits.
    pub hash: String,
    /// The sections in their order.
    pub sections: Vec<SectionFingerprint>,
}

/// A hash that identifies a section of a system prompt without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SectionFingerprint {
    /// Its name.
    pub name: String,
    /// The SHA-256 of its text in lower-case hexadecimal digits.
    pub hash: String,
    /// Its estimated tokens.
    pub tokens: u64,
}

/// The differences between two system prompts, as names of sections. They are in the order of the
/// new prompt, those removed in that of the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PromptChanges {
    /// The sections that only the new prompt has.
    pub added: Vec<String>,
    /// The sections that only the old prompt has.
    pub removed: Vec<String>,
    /// The sections that both have, with different texts.
    pub changed: Vec<String>,
    /// Whether the texts of both are different although all sections are equal: their order changed,
    /// or the separator.
    pub is_rearranged: bool,
}

impl PromptFingerprint {
    /// Compares two prompts.
    #[must_use]
    pub fn changes(old: &Self, new: &Self) -> PromptChanges {
        let hashes: HashMap<&str, &str> =
            old.sections.iter().map(SectionFingerprint::pair).collect();
        let mut changes = PromptChanges::default();
        for section in &new.sections {
            match hashes.get(section.name.as_str()) {
                None => changes.added.push(section.name.clone()),
                Some(hash) if *hash != section.hash => changes.changed.push(section.name.clone()),
                Some(_) => {}
            }
        }
        let names: HashSet<&str> = new
            .sections
            .iter()
            .map(|section| section.name.as_str())
            .collect();
        let is_gone = |section: &&SectionFingerprint| !names.contains(section.name.as_str());
        let removed = old.sections.iter().filter(is_gone);
        changes.removed = removed.map(|section| section.name.clone()).collect();
        changes.is_rearranged = changes.is_empty() && old.hash != new.hash;
        changes
    }
}

impl SectionFingerprint {
    fn pair(&self) -> (&str, &str) {
        (&self.name, &self.hash)
    }
}

impl PromptChanges {
    /// Returns whether the prompts are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let lists = [&self.added, &self.removed, &self.changed];
        !self.is_rearranged && lists.iter().all(|names| names.is_empty())
    }
}

/// The state of a repository, as the caller found it. Nothing here runs a command or opens a file.
///
/// ```
/// use transcript_messages::builder::GitContext;
///
/// let mut git = GitContext::new();
/// git.branch = Some("main".to_owned());
/// git.status = Some(" M src/lib.rs\n".to_owned());
/// git.commits = vec!["4f1c2aa lib: leap years".to_owned()];
/// assert_eq!(
///     git.text(),
///     "branch: main\nstatus:\n M src/lib.rs\ncommits:\n4f1c2aa lib: leap years"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct GitContext {
    /// The current branch; `None` if there is none, as outside of a repository.
    pub branch: Option<String>,
    /// The changes in the working tree, one file a line, empty if there are none; `None` if that is
    /// not known.
    pub status: Option<String>,
    /// The last commits, newest first, one line each.
    pub commits: Vec<String>,
    /// The changes themselves, as a diff.
    pub diff: Option<String>,
}

impl GitContext {
    /// Returns a context in which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the known facts as the text of a section; empty if there are none.
    #[must_use]
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(branch) = &self.branch {
            parts.push(format!("branch: {branch}"));
        }
        if let Some(status) = &self.status {
            parts.push(match status.trim_end() {
                "" => "status: clean".to_owned(),
                status => format!("status:\n{status}"),
            });
        }
        if !self.commits.is_empty() {
            parts.push(format!("commits:\n{}", self.commits.join("\n")));
        }
        if let Some(diff) = self.diff.as_deref().filter(|diff| !diff.trim().is_empty()) {
            parts.push(format!("diff:\n{}", diff.trim_end()));
        }
        parts.join("\n")
    }
}
