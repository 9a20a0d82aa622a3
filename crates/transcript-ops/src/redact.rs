//! Texts without secrets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use transcript_redact::{OwnRules, RedactOptions, Redactor};

use crate::sink::{Result, Sink};

/// A text, and what is redacted in it: options.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedactSettings {
    /// The text.
    pub text: String,
    /// Whether the text is a line of a transcript, which stays JSON.
    #[serde(default)]
    pub line: bool,
    /// Whether e-mail addresses are replaced, too.
    #[serde(default)]
    pub emails: bool,
    /// Whether the names of people in paths are replaced, too.
    #[serde(default)]
    pub names: bool,
    /// Names whose values are replaced, too, or words.
    #[serde(default)]
    pub also: Vec<String>,
    /// Kinds, names and values that are kept.
    #[serde(default)]
    pub keep: Vec<String>,
}

/// A text without its secrets.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RedactedText<'a> {
    /// The text, with the kind of each secret in its place.
    text: &'a str,
    /// The number of secrets of each kind.
    kinds: BTreeMap<&'a str, u64>,
}

/// Writes the record of a text without its secrets, and of how many of each kind it had.
pub(crate) fn redact(settings: &RedactSettings, sink: &mut dyn Sink) -> Result<()> {
    let RedactSettings { text, line, .. } = settings;
    let redactor = redactor(
        settings.emails,
        settings.names,
        &settings.also,
        &settings.keep,
    );
    let (masked, found) = if *line {
        (redactor.redact_line(text), redactor.find(text.as_bytes()))
    } else {
        let found = redactor.find_text(text.as_bytes());
        (redactor.redact_text(text), found)
    };
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for secret in found {
        *kinds.entry(secret.kind).or_default() += 1;
    }
    sink.record(&RedactedText {
        text: &masked,
        kinds,
    })
}

/// Makes a redactor: of e-mail addresses and names of people, too, if that is wanted; of the values of the names `also`;
/// without what is to be kept.
pub(crate) fn redactor(emails: bool, names: bool, also: &[String], keep: &[String]) -> Redactor {
    let mut own = OwnRules::default();
    also.iter().for_each(|name| own.add_name(name));
    keep.iter().for_each(|kept| own.add_kept(kept));
    let options = RedactOptions::new().emails(emails).homes(names);
    Redactor::with(options.own(own))
}
