//! Finds secrets in agent transcripts, and shows files without them.
//!
//! A transcript contains what tools print of files: with numbers and names of files before each line, as parts of a
//! diff, in colours, wrapped, escaped once more. So every line is decoded first (`view`), and what is found is led back to
//! its bytes. A secret is known by its own form (`tokens`, `keys`), by the name before it (`names`, `value`), or by where it
//! stands (`headers`, `addresses`, `commands`, `files`). One pass over the decoded text finds all parts of secrets
//! (`search`); no rule tries twice, so the time grows with the text alone.
//!
//! No search finds everything. [`Scan::left`] names what looks like a secret and was left.

mod addresses;
mod anchors;
mod class;
mod commands;
mod disk;
mod files;
mod form;
mod headers;
mod keys;
mod lines;
mod mask;
mod names;
mod own;
mod people;
mod random;
mod scan;
mod search;
mod tokens;
mod value;
mod view;
mod wrap;

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use disk::{KindInFile, RedactedDisk, Redaction, Redactions, by_kind};
pub use mask::mask;
pub use own::{OwnRules, RuleError};
pub use scan::{Bytes, Content, Located, Scan};
use search::Search;
pub use search::Secret;
use view::View;

/// Finds secrets, and redacts them.
#[derive(Clone, Debug)]
pub struct Redactor {
    search: Arc<Search>,
}

impl Redactor {
    /// Finds secrets.
    ///
    /// ```
    /// use transcript_redact::Redactor;
    ///
    /// let line = r#"{"stdout":"     1→DB_PASSWORD=\"my long pass phrase\"\n"}"#;
    /// let masked = Redactor::new().redact_line(line);
    /// assert_eq!(masked, r#"{"stdout":"     1→DB_PASSWORD=\"[redacted: password]\"\n"}"#);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds secrets, and the other texts of the options.
    #[must_use]
    pub fn with(options: RedactOptions) -> Self {
        let search = Search::new(options.emails, options.homes, options.own);
        Self { search }
    }

    pub(crate) fn search(&self) -> &Search {
        &self.search
    }

    /// Finds the secrets to redact in a line of a transcript, in order and without overlaps.
    #[must_use]
    pub fn find(&self, line: &[u8]) -> Vec<Secret> {
        self.search.find(line, &mut View::default()).secrets
    }

    /// Finds the secrets to redact in a text that is not a line of a transcript, in order and without overlaps.
    #[must_use]
    pub fn find_text(&self, text: &[u8]) -> Vec<Secret> {
        self.search.find(text, &mut View::of_text()).secrets
    }

    /// Returns a line of a transcript with masks in place of secrets. It is JSON if it was.
    #[must_use]
    pub fn redact_line(&self, line: &str) -> String {
        masked(line, &self.find(line.as_bytes()))
    }

    /// Returns a text with masks in place of secrets.
    ///
    /// ```
    /// let text = transcript_redact::Redactor::new().redact_text("mysql -psu_Gar9 shop");
    /// assert_eq!(text, "mysql -p[redacted: password] shop");
    /// ```
    #[must_use]
    pub fn redact_text(&self, text: &str) -> String {
        masked(
            text,
            &self
                .search
                .find(text.as_bytes(), &mut View::of_text())
                .secrets,
        )
    }

    /// Searches a file of `len` bytes, with `threads` threads or one for each processor, and counts the bytes that were searched.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn scan(
        &self,
        file: &dyn Bytes,
        len: u64,
        content: Content,
        threads: Option<NonZeroUsize>,
        counter: Option<&AtomicU64>,
    ) -> io::Result<Scan> {
        scan::scan(
            &self.search,
            file,
            0..len,
            scan::Options {
                content,
                threads,
                counter,
            },
        )
    }
}

fn masked(text: &str, secrets: &[Secret]) -> String {
    let text = text.as_bytes();
    let mut masked = Vec::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        masked.extend_from_slice(&text[at..secret.range.start]);
        masked.extend_from_slice(mask(secret.kind, secret.is_bare).as_bytes());
        at = secret.range.end;
    }
    masked.extend_from_slice(&text[at..]);
    match String::from_utf8(masked) {
        Ok(masked) => masked,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::with(RedactOptions::default())
    }
}

/// Options: values that are redacted besides secrets, and values that are kept.
#[derive(Clone, Debug, Default)]
pub struct RedactOptions {
    emails: bool,
    homes: bool,
    own: OwnRules,
}

impl RedactOptions {
    /// Redacts secrets only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also redacts e-mail addresses.
    #[must_use]
    pub fn emails(mut self, redact: bool) -> Self {
        self.emails = redact;
        self
    }

    /// Also redacts the names of people in paths, such as the one in `/home/ada`.
    #[must_use]
    pub fn homes(mut self, redact: bool) -> Self {
        self.homes = redact;
        self
    }

    /// Follows rules that a user adds.
    #[must_use]
    pub fn own(mut self, rules: OwnRules) -> Self {
        self.own = rules;
        self
    }
}

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
