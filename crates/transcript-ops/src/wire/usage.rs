//! The output of `usage --json`.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use transcript_catalog::usage::{
    Block, By, ClientTotal, ContextSize, Key, ModelTotal, Prices, Row, Sums,
};
use transcript_format::time;

use super::records::records;
use super::text::Json;
use super::{Name, SCHEMA};

records! {
    /// A line of `usage --json`: rows in the order of their keys, what the clients counted, and the total.
    pub enum CostRecord {
        /// The sums of a part of the requests.
        Row(CostRow) = "row",
        /// The cost of a session as a client counted it, next to our sum.
        Client(ClientCostRecord) = "client",
        /// The sums of all rows: the end of the output.
        Total(CostTotal) = "total",
        /// The answer of `--statusline`.
        Status(StatusRecord) = "status",
    }
}

/// Sums of requests. Costs are in nano-dollars, at most `u64::MAX`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CostSums {
    /// The number of requests.
    pub requests: u64,
    /// The number of them without final counts.
    pub incomplete: u64,
    /// Input tokens outside of the cache.
    pub input: u64,
    /// Tokens of the answers.
    pub output: u64,
    /// Tokens written to the cache for five minutes.
    #[serde(rename = "cacheWrite5m")]
    pub cache_write_5m: u64,
    /// Tokens written to the cache for an hour.
    #[serde(rename = "cacheWrite1h")]
    pub cache_write_1h: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Searches of the web.
    pub web_search: u64,
    /// The cost of all calls whose price is known; `None` if none is known.
    pub cost_nano_usd: Option<u64>,
    /// The models whose price is not known.
    pub unknown_models: Vec<String>,
    /// The tokens of calls whose price is not known.
    pub unpriced_tokens: u64,
    /// Pages that the API fetched.
    pub web_fetch: u64,
    /// The cost that lines of old clients record (`costUSD`).
    pub reported_nano_usd: Option<u64>,
    /// The number of requests of deleted sessions (`--keep-sums`).
    pub deleted: u64,
}

/// The sums of a part of the requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CostRow {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The group of the row: the key of each kind, `null` if it is unknown or none.
    pub by: BTreeMap<Name, Value>,
    /// The sums.
    #[serde(flatten)]
    pub sums: CostSums,
    /// The time of the first request.
    pub first: Option<String>,
    /// The time of the last request.
    pub last: Option<String>,
    /// With `branch`: whether a resume continues this branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<bool>,
    /// With `hour5` alone: the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockRecord>,
}

/// A block of five hours. The rates are those between its first and its last request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BlockRecord {
    /// The full hour at which it starts.
    pub start: Option<String>,
    /// Five hours later.
    pub end: Option<String>,
    /// Whether it continues.
    pub active: bool,
    /// All tokens of a minute.
    pub tokens_per_minute: Option<u64>,
    /// The cost of an hour.
    pub cost_per_hour_nano_usd: Option<u64>,
    /// The cost of the whole block if it continues like this; of an active one only.
    pub projected_nano_usd: Option<u64>,
}

/// The cost of a session as a client counted it (`cost-state`), next to our sum. `difference` is theirs minus ours: the
/// part that is not in the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCostRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The session.
    pub session_id: String,
    /// The cost that the client counted.
    pub theirs_nano_usd: Option<u64>,
    /// Our cost; `None` if it is not known.
    pub ours_nano_usd: Option<u64>,
    /// The sum of the client minus ours.
    pub difference_nano_usd: Option<i64>,
    /// The same for each model.
    pub models: Vec<ClientModelRecord>,
}

/// The cost of a model as a client counted it, next to our sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientModelRecord {
    /// The model.
    pub model: String,
    /// The cost that the client counted.
    pub theirs_nano_usd: Option<u64>,
    /// Our cost.
    pub ours_nano_usd: Option<u64>,
    /// The sum of the client minus ours.
    pub difference_nano_usd: Option<i64>,
    /// The tokens that the client counted: input, output, written to and read from the cache.
    pub their_tokens: Option<[u64; 4]>,
    /// Ours.
    pub our_tokens: [u64; 4],
}

/// The sums of all rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CostTotal {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The sums.
    #[serde(flatten)]
    pub sums: CostSums,
    /// The time of the first request.
    pub first: Option<String>,
    /// The time of the last request.
    pub last: Option<String>,
    /// The number of requests that were omitted because they have no time.
    pub without_time: u64,
    /// Searches whose call is not in the file of their result.
    pub unmatched_searches: u64,
    /// Damaged entries that could not be read.
    pub unread: u64,
    /// Files that could not be read: if there are any, the cost of all is higher.
    pub unread_files: u64,
    /// The table of prices.
    pub prices: PricesRecord,
}

/// The source of the prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PricesRecord {
    /// The date of the table.
    pub date: String,
    /// Its digest.
    pub digest: String,
}

/// The answer of `--statusline`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StatusRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The cost of all requests of today.
    pub today_nano_usd: Option<u64>,
    /// The session.
    pub session_id: Option<String>,
    /// Its cost.
    pub session_nano_usd: Option<u64>,
    /// The tokens of its context.
    pub context_tokens: Option<u64>,
    /// The largest context of its model.
    pub max_context_tokens: Option<u64>,
}

impl CostSums {
    /// Describes sums.
    #[must_use]
    pub fn new(sums: &Sums) -> Self {
        let tokens = &sums.tokens;
        Self {
            requests: sums.requests,
            incomplete: sums.incomplete,
            input: tokens.input,
            output: tokens.output,
            cache_write_5m: tokens.cache_write_5m,
            cache_write_1h: tokens.cache_write_1h,
            cache_read: tokens.cache_read,
            web_search: tokens.web_search,
            cost_nano_usd: nano(sums.cost),
            unknown_models: sums
                .unknown_models
                .iter()
                .map(|name| name.to_string())
                .collect(),
            unpriced_tokens: sums.unpriced_tokens,
            web_fetch: sums.web_fetch,
            reported_nano_usd: nano(sums.reported_cost),
            deleted: sums.of_deleted,
        }
    }
}

impl CostRow {
    /// Describes a row of a report about `by`; `block` is that of its key.
    #[must_use]
    pub fn new(by: &[By], row: &Row, block: Option<&Block>) -> Self {
        let keys = by.iter().zip(&row.keys);
        // Programs that know the former name find it as well.
        let keys = keys.flat_map(|(by, of)| {
            let names = [Some(by.name()), by.former_name()];
            names.into_iter().flatten().map(move |name| (name, of))
        });
        let key = |key: &Key| match key {
            Key::Number(number) => (*number).into(),
            Key::Text(text) | Key::Branch { leaf: text, .. } => (**text).into(),
            _ => Value::Null,
        };
        let current = row.keys.iter().find_map(|key| match key {
            Key::Branch { is_current, .. } => Some(*is_current),
            _ => None,
        });
        let (first, last) = times(row.times);
        Self {
            schema: SCHEMA,
            by: keys.map(|(name, of)| (name.into(), key(of))).collect(),
            sums: CostSums::new(&row.sums),
            first,
            last,
            current,
            block: block.map(BlockRecord::new),
        }
    }
}

impl BlockRecord {
    fn new(block: &Block) -> Self {
        let rate = block.rate();
        Self {
            start: time::text(block.start),
            end: time::text(block.end),
            active: block.is_active,
            tokens_per_minute: rate.as_ref().map(|rate| rate.tokens_per_minute),
            cost_per_hour_nano_usd: rate.as_ref().and_then(|rate| nano(rate.cost_per_hour)),
            projected_nano_usd: rate.and_then(|rate| nano(rate.projected_cost)),
        }
    }
}

impl ClientCostRecord {
    /// Describes a comparison.
    #[must_use]
    pub fn new(total: &ClientTotal) -> Self {
        Self {
            schema: SCHEMA,
            session_id: total.session.to_string(),
            theirs_nano_usd: nano(total.theirs),
            ours_nano_usd: nano(total.ours.cost),
            difference_nano_usd: difference(total.theirs, total.ours.cost),
            models: total.models.iter().map(ClientModelRecord::new).collect(),
        }
    }
}

impl ClientModelRecord {
    fn new(total: &ModelTotal) -> Self {
        let tokens = |tokens: &transcript_catalog::usage::Tokens| {
            let written = tokens.cache_write_5m.saturating_add(tokens.cache_write_1h);
            [tokens.input, tokens.output, written, tokens.cache_read]
        };
        Self {
            model: total.model.to_string(),
            theirs_nano_usd: nano(total.theirs),
            ours_nano_usd: nano(total.ours.cost),
            difference_nano_usd: difference(total.theirs, total.ours.cost),
            their_tokens: total.their_tokens.as_ref().map(tokens),
            our_tokens: tokens(&total.ours.tokens),
        }
    }
}

impl CostTotal {
    /// Describes the total of a report.
    #[must_use]
    pub fn new(
        total: &Row,
        without_time: u64,
        unmatched_searches: u64,
        unread: u64,
        unread_files: u64,
        prices: &Prices,
    ) -> Self {
        let (first, last) = times(total.times);
        Self {
            schema: SCHEMA,
            sums: CostSums::new(&total.sums),
            first,
            last,
            without_time,
            unmatched_searches,
            unread,
            unread_files,
            prices: PricesRecord {
                date: prices.date().to_owned(),
                digest: prices.digest().to_owned(),
            },
        }
    }
}

impl StatusRecord {
    /// Describes a status.
    #[must_use]
    pub fn new(
        today: Option<u128>,
        session: Option<(&str, Option<u128>)>,
        context: Option<&ContextSize>,
        max_context: Option<u64>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            today_nano_usd: nano(today),
            session_id: session.map(|(id, _)| id.to_owned()),
            session_nano_usd: session.and_then(|(_, cost)| nano(cost)),
            context_tokens: context.map(|context| context.tokens),
            max_context_tokens: max_context,
        }
    }
}

fn nano(cost: Option<u128>) -> Option<u64> {
    cost.map(|cost| u64::try_from(cost).unwrap_or(u64::MAX))
}

fn difference(theirs: Option<u128>, ours: Option<u128>) -> Option<i64> {
    let (theirs, ours) = (nano(theirs)?, nano(ours)?);
    i64::try_from(i128::from(theirs) - i128::from(ours)).ok()
}

fn times(times: Option<(i64, i64)>) -> (Option<String>, Option<String>) {
    let (first, last) = times.unzip();
    (first.and_then(time::text), last.and_then(time::text))
}
