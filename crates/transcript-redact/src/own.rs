//! Rules that a user adds: names, texts and forms to redact, and values to keep.
//!
//! ```text
//! # One rule a line.
//! name ACME_LICENSE
//! text Project Nightingale
//! form acme_{alnum:32}
//! keep TEST_API_KEY
//! ```

use std::fmt;

use crate::form::Form;

/// Rules that a user adds.
#[derive(Clone, Debug, Default)]
pub struct OwnRules {
    pub(crate) names: Vec<String>,
    pub(crate) texts: Vec<String>,
    pub(crate) forms: Vec<String>,
    pub(crate) kept: Vec<String>,
}

/// A line that is not a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error in it.
    pub reason: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for RuleError {}

impl OwnRules {
    /// Reads rules, one a line: `name NAME` redacts the value of that name, `text TEXT` that text wherever it stands,
    /// `form FORM` tokens of that form, and `keep WORDS` leaves a kind, the value of a name, or a value as it is. Empty
    /// lines, and those that start with `#`, are not rules.
    ///
    /// # Errors
    /// When a line is not a rule.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        for (number, line) in text.lines().enumerate() {
            let failed = |reason| {
                Err(RuleError {
                    line: number + 1,
                    reason,
                })
            };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let rest = rest.trim();
            if rest.is_empty() {
                return failed("expected `name`, `text`, `form` or `keep`, and what it is about");
            }
            match word {
                "name" => rules.names.push(rest.into()),
                "text" => rules.texts.push(rest.into()),
                "keep" => rules.kept.push(rest.into()),
                "form" if Form::parse(rest).is_none_or(|form| form.anchor().len() < 2) => {
                    return failed(
                        "a form needs at least two fixed characters, and classes such as {alnum:32}",
                    );
                }
                "form" => rules.forms.push(rest.into()),
                _ => return failed("expected `name`, `text`, `form` or `keep`"),
            }
        }
        Ok(rules)
    }

    /// Also redacts the value of this name.
    pub fn add_name(&mut self, name: impl Into<String>) {
        self.names.push(name.into());
    }

    /// Keeps secrets of this kind, the value of this name, or this value.
    pub fn add_kept(&mut self, kept: impl Into<String>) {
        self.kept.push(kept.into());
    }

    /// Adds other rules to these.
    pub fn extend(&mut self, others: Self) {
        self.names.extend(others.names);
        self.texts.extend(others.texts);
        self.forms.extend(others.forms);
        self.kept.extend(others.kept);
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len() + self.texts.len() + self.forms.len() + self.kept.len()
    }

    /// Returns whether a text is to be kept.
    pub(crate) fn keeps(&self, text: &[u8]) -> bool {
        self.kept
            .iter()
            .any(|kept| kept.as_bytes().eq_ignore_ascii_case(text))
    }
}
