//! What a session was set to at the end of a path, and what it used.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw};
use transcript_reader::{Candidate, Index};

use crate::api::BodySource;

/// The settings of a session where its path ends. What no line says is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct State {
    /// The working folder of the last entry of the path that names one.
    pub cwd: Option<String>,
    /// Its branch.
    pub git_branch: Option<String>,
    /// The version of the client that wrote the last entry.
    pub version: Option<String>,
    /// The model of the last real answer.
    pub model: Option<String>,
    /// The permission mode, from the line of the path or the `permission-mode` line that stands
    /// last in the file.
    pub permission_mode: Option<String>,
    /// The title that the person gave; else the one that a model gave (`facts/sdk.md` 4).
    pub title: Option<String>,
    /// The tag.
    pub tag: Option<String>,
}

/// Tokens of one model. What no answer reports is `None`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// The model.
    pub model: String,
    /// How many answers.
    pub answers: u64,
    /// Input tokens outside of the cache.
    pub input_tokens: Option<u64>,
    /// Tokens of the answers.
    pub output_tokens: Option<u64>,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: Option<u64>,
}

/// Model that stands on answers which no model gave.
pub(crate) const NO_MODEL: &str = "<synthetic>";

/// Reads state and usage off the bodies of a path, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Record {
    state: State,
    permission_mode_at: usize,
    answers: HashMap<Box<str>, Usage>,
}

impl Record {
    pub(crate) fn add(&mut self, candidate: &Candidate<'_>, body: &Object<'_>) {
        set(&mut self.state.cwd, body.get("cwd"));
        set(&mut self.state.git_branch, body.get("gitBranch"));
        set(&mut self.state.version, body.get("version"));
        match candidate.kind() {
            EntryKind::User if set(&mut self.state.permission_mode, body.get("permissionMode")) => {
                self.permission_mode_at = candidate.number();
            }
            EntryKind::Assistant => self.add_answer(body),
            _ => {}
        }
    }

    /// The lines of one answer repeat its usage, and the first of them often have less of it: each
    /// answer counts once, with the most that a line says.
    fn add_answer(&mut self, body: &Object<'_>) {
        let Some(message) = body.get("message").and_then(Raw::object) else {
            return;
        };
        let model = message.get("model").and_then(Raw::str).unwrap_or_default();
        if model == NO_MODEL || model.is_empty() {
            return;
        }
        set(&mut self.state.model, message.get("model"));
        let (Some(id), Some(usage)) = (
            message.get("id").and_then(Raw::str),
            message.get("usage").and_then(Raw::object),
        ) else {
            return;
        };
        let most = self.answers.entry(id.as_ref().into()).or_default();
        let count = |name: &str| usage.get(name).and_then(Raw::u64);
        if most.model.is_empty() {
            most.model = model.into_owned();
        }
        most.answers = 1;
        most.input_tokens = most.input_tokens.max(count("input_tokens"));
        most.output_tokens = most.output_tokens.max(count("output_tokens"));
        most.cache_creation_input_tokens = most
            .cache_creation_input_tokens
            .max(count("cache_creation_input_tokens"));
        most.cache_read_input_tokens = most
            .cache_read_input_tokens
            .max(count("cache_read_input_tokens"));
    }

    /// Adds what stands beside the chain: the last line of each kind counts.
    pub(crate) fn finish<B: BodySource>(
        self,
        index: &Index,
        bodies: &mut B,
    ) -> Result<(State, Vec<Usage>), B::Error> {
        let mut state = self.state;
        state.title = title(index, bodies)?;
        state.tag = last_line(index, bodies, EntryKind::Tag, "tag")?.0;
        let (mode, at) = last_line(index, bodies, EntryKind::PermissionMode, "permissionMode")?;
        if mode.is_some() && at > self.permission_mode_at {
            state.permission_mode = mode;
        }
        Ok((state, by_model(self.answers.into_values())))
    }
}

/// The title of a session (see [`State::title`]).
pub(crate) fn title<B: BodySource>(
    index: &Index,
    bodies: &mut B,
) -> Result<Option<String>, B::Error> {
    let (custom, _) = last_line(index, bodies, EntryKind::CustomTitle, "customTitle")?;
    let (made, _) = last_line(index, bodies, EntryKind::AiTitle, "aiTitle")?;
    Ok(custom.or(made))
}

/// Sets `field` to a text that is not empty. Returns whether there was one.
fn set(field: &mut Option<String>, value: Option<Raw<'_>>) -> bool {
    let Some(text) = value.and_then(Raw::str).filter(|text| !text.is_empty()) else {
        return false;
    };
    if field.as_deref() != Some(&*text) {
        *field = Some(text.into_owned());
    }
    true
}

/// The field of the last line of a kind, `None` when it is empty, and the place of the line.
fn last_line<B: BodySource>(
    index: &Index,
    bodies: &mut B,
    kind: EntryKind,
    key: &str,
) -> Result<(Option<String>, usize), B::Error> {
    let last = index.candidates().rev().find(|line| line.kind() == kind);
    let Some(line) = last else {
        return Ok((None, 0));
    };
    let mut field = None;
    if let Ok(body) = Object::parse(bodies.body(&line)?) {
        set(&mut field, body.get(key));
    }
    Ok((field, line.number()))
}

/// The sums of each model, in the order of their names.
fn by_model(answers: impl Iterator<Item = Usage>) -> Vec<Usage> {
    let mut models = BTreeMap::<String, Usage>::new();
    for usage in answers {
        let sum = models.entry(usage.model.clone()).or_default();
        sum.model = usage.model;
        sum.answers += usage.answers;
        add(&mut sum.input_tokens, usage.input_tokens);
        add(&mut sum.output_tokens, usage.output_tokens);
        add(
            &mut sum.cache_creation_input_tokens,
            usage.cache_creation_input_tokens,
        );
        add(
            &mut sum.cache_read_input_tokens,
            usage.cache_read_input_tokens,
        );
    }
    models.into_values().collect()
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}
