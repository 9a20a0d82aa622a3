//! The facts about a session that metadata lines contain.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use transcript_format::metadata::{self, WorktreeSession};
use transcript_format::object::{FromRaw, Object, Raw, Str};
use transcript_format::usage::ModelUsage;

/// The files as they were before a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileHistory {
    /// The uuid of the prompt.
    pub message_id: String,
    /// When the snapshot was taken.
    pub timestamp: Option<String>,
    /// The paths of the tracked files. They are shared: most prompts have the same ones.
    #[serde(serialize_with = "as_texts", deserialize_with = "of_texts")]
    pub files: Arc<BTreeSet<Arc<str>>>,
}

fn as_texts<S: Serializer>(files: &BTreeSet<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(|file| &**file))
}

fn of_texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<BTreeSet<Arc<str>>>, D::Error> {
    let files = Vec::<String>::deserialize(deserializer)?;
    Ok(Arc::new(files.into_iter().map(Arc::from).collect()))
}

/// A worktree that a session works in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Worktree {
    /// Its name.
    pub name: Option<String>,
    /// Its folder.
    pub path: Option<String>,
    /// Its branch.
    pub branch: Option<String>,
    /// The folder before the session entered it.
    pub original_cwd: Option<String>,
    /// The branch before.
    pub original_branch: Option<String>,
    /// The commit before.
    pub original_head_commit: Option<String>,
}

/// A prompt that waits to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueuedPrompt {
    /// Its text.
    pub content: Option<String>,
    /// When it was queued.
    pub timestamp: Option<String>,
}

/// A pull request that the session created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PullRequest {
    /// Its number.
    pub number: Option<u64>,
    /// Its address.
    pub url: Option<String>,
    /// Its repository.
    pub repository: Option<String>,
    /// When it was first named.
    pub timestamp: Option<String>,
}

/// The counts of the client, from the last `cost-state` line. A resumed session continues from
/// these counts (META-3).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Costs {
    /// US dollars.
    #[serde(rename = "totalCostUSD")]
    pub total_cost_usd: Option<f64>,
    /// Whether the price of a model was unknown, so that the sum is too low.
    pub has_unknown_model_cost: Option<bool>,
    /// Milliseconds spent in the API.
    pub api_duration_ms: Option<u64>,
    /// Milliseconds spent in the API without attempts that failed.
    pub api_duration_without_retries_ms: Option<u64>,
    /// Milliseconds spent in tools.
    pub tool_duration_ms: Option<u64>,
    /// Milliseconds in all.
    pub duration_ms: Option<u64>,
    /// The start, in milliseconds since 1970.
    pub start_time: Option<u64>,
    /// Lines that were added to files.
    pub lines_added: Option<u64>,
    /// Lines that were removed.
    pub lines_removed: Option<u64>,
    /// The counts by model, in the order of the line.
    pub models: Option<Vec<ModelCosts>>,
}

/// The counts of the client for one model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelCosts {
    /// The model.
    pub model: String,
    /// Input tokens outside of the cache.
    pub input_tokens: Option<u64>,
    /// Tokens of the answers.
    pub output_tokens: Option<u64>,
    /// The output tokens that were spent on thinking.
    pub thinking_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: Option<u64>,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: Option<u64>,
    /// The tokens written to the cache for five minutes.
    #[serde(rename = "cacheCreationEphemeral5mInputTokens")]
    pub cache_creation_ephemeral_5m_input_tokens: Option<u64>,
    /// The tokens written to the cache for an hour.
    #[serde(rename = "cacheCreationEphemeral1hInputTokens")]
    pub cache_creation_ephemeral_1h_input_tokens: Option<u64>,
    /// Searches of the web by the API.
    pub web_search_requests: Option<u64>,
    /// US dollars.
    #[serde(rename = "costUSD")]
    pub cost_usd: Option<f64>,
}

impl Costs {
    /// Reads a `cost-state` line; `None` if it is not an object.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let line = metadata::CostState::from(Object::parse(line).ok()?);
        let model = |(model, raw): &(Str<'_>, Raw<'_>)| {
            let counts = ModelUsage::from_raw(*raw)?;
            Some(ModelCosts {
                model: model.clone().into_owned(),
                input_tokens: counts.input_tokens(),
                output_tokens: counts.output_tokens(),
                thinking_tokens: counts.thinking_tokens(),
                cache_read_input_tokens: counts.cache_read_input_tokens(),
                cache_creation_input_tokens: counts.cache_creation_input_tokens(),
                cache_creation_ephemeral_5m_input_tokens: counts
                    .cache_creation_ephemeral_5m_input_tokens(),
                cache_creation_ephemeral_1h_input_tokens: counts
                    .cache_creation_ephemeral_1h_input_tokens(),
                web_search_requests: counts.web_search_requests(),
                cost_usd: counts.cost_usd(),
            })
        };
        let models = line.model_usage();
        Some(Self {
            total_cost_usd: line.total_cost_usd(),
            has_unknown_model_cost: line.has_unknown_model_cost(),
            api_duration_ms: line.total_api_duration(),
            api_duration_without_retries_ms: line.total_api_duration_without_retries(),
            tool_duration_ms: line.total_tool_duration(),
            duration_ms: line.total_duration(),
            start_time: line.start_time(),
            lines_added: line.total_lines_added(),
            lines_removed: line.total_lines_removed(),
            models: models.map(|models| models.members().iter().filter_map(model).collect()),
        })
    }
}

/// Returns `None` when the session left the worktree.
pub(super) fn worktree(body: &str) -> Option<Worktree> {
    let session = Object::parse(body).ok()?.get("worktreeSession")?;
    let session = WorktreeSession::from_raw(session)?;
    Some(Worktree {
        name: owned(session.worktree_name()),
        path: owned(session.worktree_path()),
        branch: owned(session.worktree_branch()),
        original_cwd: owned(session.original_cwd()),
        original_branch: owned(session.original_branch()),
        original_head_commit: owned(session.original_head_commit()),
    })
}

pub(super) fn owned(text: Option<Str<'_>>) -> Option<String> {
    text.map(Str::into_owned)
}
