//! The cost of a session so far, counted while it runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::make::{self, NewEntry, SYNTHETIC_MODEL};
use transcript_format::object::{Object, Raw};
use transcript_format::usage::Usage;
use transcript_resume::{Costs, ModelCosts, PathState};

/// The counts of a session: dollars, tokens by model, time, lines of code.
///
/// They continue from the last `cost-state` line of the session, and [`to_line`](Self::to_line) makes
/// the next one, so that the counts of a client continue when the session is resumed (META-3).
/// [`Session::count`](crate::Session::count) keeps them for an open session and writes the line at the
/// end of each turn.
///
/// ```
/// use std::time::Duration;
/// use transcript_session::{Counters, Object};
/// # #[cfg(feature = "search")]
/// # {
/// use transcript_catalog::usage::{CallPrices, Prices};
///
/// let prices = CallPrices::new(Prices::embedded());
/// let usage = Object::parse(r#"{"input_tokens": 1000, "output_tokens": 100}"#)?;
/// let model = "claude-sonnet-4-20250514";
/// let mut counters = Counters::new();
/// counters.add_reply(model, &usage, prices.cost(model, &usage), Duration::from_millis(900));
/// counters.add_lines(12, 3);
/// assert_eq!(counters.costs().total_cost_usd, Some(0.0045));
/// assert!(counters.to_line().text().starts_with(r#"{"type":"cost-state","totalCostUSD":0.0045,"#));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Counters {
    /// None of its counts is `None`.
    costs: Costs,
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&PathState> for Counters {
    /// Continues the counts of a session.
    fn from(state: &PathState) -> Self {
        state.costs.clone().map_or_else(Self::new, Self::from)
    }
}

impl From<Costs> for Counters {
    /// Continues these counts; what they do not contain is 0.
    fn from(mut costs: Costs) -> Self {
        costs.total_cost_usd.get_or_insert(0.0);
        costs.has_unknown_model_cost.get_or_insert(false);
        costs.start_time.get_or_insert_with(now);
        for count in [
            &mut costs.api_duration_ms,
            &mut costs.api_duration_without_retries_ms,
            &mut costs.tool_duration_ms,
            &mut costs.duration_ms,
            &mut costs.lines_added,
            &mut costs.lines_removed,
        ] {
            count.get_or_insert(0);
        }
        for model in costs.models.get_or_insert_default() {
            fill(model);
        }
        Self { costs }
    }
}

impl Counters {
    /// Starts with nothing, at this time.
    #[must_use]
    pub fn new() -> Self {
        Self::from(Costs::default())
    }

    /// Returns the counts.
    #[must_use]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Adds a reply of the API: its `usage`, its cost in billionths of a dollar, and how long the
    /// request took that succeeded. Call it once for each reply, not for each of its entries. The cost
    /// is `None` if the price is not known; then the total is marked as too low. A reply that no
    /// model gave (`<synthetic>`) does not count.
    pub fn add_reply(
        &mut self,
        model: &str,
        usage: &Object<'_>,
        cost: Option<u128>,
        took: Duration,
    ) {
        if model == SYNTHETIC_MODEL {
            return;
        }
        add(&mut self.costs.api_duration_ms, millis(took));
        add(
            &mut self.costs.api_duration_without_retries_ms,
            millis(took),
        );
        if cost.is_none() {
            self.costs.has_unknown_model_cost = Some(true);
        }
        // Billionths below 2⁵³ are exact.
        let dollars = cost.unwrap_or(0) as f64 / 1e9;
        add_dollars(&mut self.costs.total_cost_usd, dollars);
        let models = self.costs.models.get_or_insert_default();
        let place = models.iter().position(|known| known.model == model);
        let place = place.unwrap_or_else(|| {
            let mut new = ModelCosts::default();
            new.model = model.to_owned();
            fill(&mut new);
            models.push(new);
            models.len() - 1
        });
        let counts = &mut models[place];
        add_dollars(&mut counts.cost_usd, dollars);
        add_usage(counts, &Usage::from(usage.clone()));
    }

    /// Adds the time of a request that failed and was tried again.
    pub fn add_failed_request(&mut self, took: Duration) {
        add(&mut self.costs.api_duration_ms, millis(took));
    }

    /// Adds the time that a tool ran.
    pub fn add_tool(&mut self, took: Duration) {
        add(&mut self.costs.tool_duration_ms, millis(took));
    }

    /// Adds lines that were added to files, and lines that were removed.
    pub fn add_lines(&mut self, added: u64, removed: u64) {
        add(&mut self.costs.lines_added, added);
        add(&mut self.costs.lines_removed, removed);
    }

    /// Adds time for which the session was open.
    pub fn add_duration(&mut self, took: Duration) {
        add(&mut self.costs.duration_ms, millis(took));
    }

    /// Makes the `cost-state` line with these counts, its fields as clients write them. The writer adds
    /// the session id.
    pub fn to_line(&self) -> NewEntry {
        self.add_to(make::metadata(EntryKind::CostState))
    }

    /// The same with the id of the session, where clients write it.
    pub(crate) fn line_of(&self, session: &str) -> NewEntry {
        self.add_to(make::metadata(EntryKind::CostState).with("sessionId", session))
    }

    fn add_to(&self, line: NewEntry) -> NewEntry {
        let costs = &self.costs;
        let count = |count: Option<u64>| count.unwrap_or(0);
        let mut models = ObjectBuf::new();
        for model in costs.models.iter().flatten() {
            let counts = ObjectBuf::new()
                .with("inputTokens", count(model.input_tokens))
                .with("outputTokens", count(model.output_tokens))
                .with("thinkingTokens", count(model.thinking_tokens))
                .with("cacheReadInputTokens", count(model.cache_read_input_tokens))
                .with(
                    "cacheCreationInputTokens",
                    count(model.cache_creation_input_tokens),
                )
                .with(
                    "cacheCreationEphemeral5mInputTokens",
                    count(model.cache_creation_ephemeral_5m_input_tokens),
                )
                .with(
                    "cacheCreationEphemeral1hInputTokens",
                    count(model.cache_creation_ephemeral_1h_input_tokens),
                )
                .with("webSearchRequests", count(model.web_search_requests))
                .with("costUSD", number(model.cost_usd));
            models.set(model.model.clone(), counts);
        }
        line.with("totalCostUSD", number(costs.total_cost_usd))
            .with("totalAPIDuration", count(costs.api_duration_ms))
            .with(
                "totalAPIDurationWithoutRetries",
                count(costs.api_duration_without_retries_ms),
            )
            .with("totalToolDuration", count(costs.tool_duration_ms))
            .with("totalLinesAdded", count(costs.lines_added))
            .with("totalLinesRemoved", count(costs.lines_removed))
            .with("totalDuration", count(costs.duration_ms))
            .with("startTime", count(costs.start_time))
            .with("modelUsage", models)
            .with(
                "hasUnknownModelCost",
                costs.has_unknown_model_cost.unwrap_or(false),
            )
    }
}

/// Sets the counts that are not there to 0.
fn fill(model: &mut ModelCosts) {
    for count in counts_of(model) {
        count.get_or_insert(0);
    }
    model.cost_usd.get_or_insert(0.0);
}

fn counts_of(model: &mut ModelCosts) -> [&mut Option<u64>; 8] {
    [
        &mut model.input_tokens,
        &mut model.output_tokens,
        &mut model.thinking_tokens,
        &mut model.cache_read_input_tokens,
        &mut model.cache_creation_input_tokens,
        &mut model.cache_creation_ephemeral_5m_input_tokens,
        &mut model.cache_creation_ephemeral_1h_input_tokens,
        &mut model.web_search_requests,
    ]
}

fn add_usage(model: &mut ModelCosts, usage: &Usage<'_>) {
    let written = usage.cache_creation();
    let minutes = written
        .as_ref()
        .and_then(|of| of.ephemeral_5m_input_tokens());
    let hour = written.and_then(|of| of.ephemeral_1h_input_tokens());
    let nested = minutes.unwrap_or(0).saturating_add(hour.unwrap_or(0));
    let details = usage.output_tokens_details();
    let tools = usage.server_tool_use();
    let more = [
        usage.input_tokens(),
        usage.output_tokens(),
        details.and_then(|details| details.thinking_tokens()),
        usage.cache_read_input_tokens(),
        // Some clients report only the numbers for each lifetime.
        usage.cache_creation_input_tokens().max(Some(nested)),
        minutes,
        hour,
        tools.and_then(|tools| tools.web_search_requests()),
    ];
    for (count, more) in counts_of(model).into_iter().zip(more) {
        add(count, more.unwrap_or(0));
    }
}

fn add(count: &mut Option<u64>, more: u64) {
    *count = Some(count.unwrap_or(0).saturating_add(more));
}

fn add_dollars(sum: &mut Option<f64>, more: f64) {
    *sum = Some(sum.unwrap_or(0.0) + more);
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, millis)
}

/// Returns a number as JavaScript writes it: whole ones without a point.
fn number(number: Option<f64>) -> Json {
    let text = number.unwrap_or(0.0).to_string();
    Raw::parse(&text).map_or(Json::null(), Json::from)
}
