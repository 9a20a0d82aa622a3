//! Token counts as the API reports them. An absent count is `None`, never 0.

use crate::object::{Raw, Str};
use crate::view::view;

view! {
    /// The `usage` of one reply; all entries of one `message.id` repeat the same one.
    Usage {
        /// the input tokens that were neither read from nor written to the cache.
        input_tokens: u64 = "input_tokens";
        /// the tokens of the reply.
        output_tokens: u64 = "output_tokens";
        /// the input tokens that were written to the cache.
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens";
        /// the input tokens that were read from the cache.
        cache_read_input_tokens: u64 = "cache_read_input_tokens";
        /// the tokens written to the cache, by lifetime.
        cache_creation: CacheCreation<'a> = "cache_creation";
        /// the tokens of the reply by purpose.
        output_tokens_details: OutputTokensDetails<'a> = "output_tokens_details";
        /// the calls of tools that the API runs.
        server_tool_use: ServerToolCounts<'a> = "server_tool_use";
        /// the service tier: `standard`, `priority`, `batch`.
        service_tier: Str<'a> = "service_tier";
        /// the region in which the model ran.
        inference_geo: Str<'a> = "inference_geo";
        /// the speed: `standard` or `fast`.
        speed: Str<'a> = "speed";
        /// the steps of the request, each with its own counts.
        iterations: Vec<Iteration<'a>> = "iterations";
        /// a credit for a reply of another model.
        fallback_credit: Raw<'a> = "fallback_credit";
    }

    /// One step of a request.
    Iteration {
        /// the kind of step: `message`, `compaction`, …
        kind: Str<'a> = "type";
        /// the model of the step, if it differs.
        model: Str<'a> = "model";
        /// the input tokens that were neither read from nor written to the cache.
        input_tokens: u64 = "input_tokens";
        /// the tokens of the reply.
        output_tokens: u64 = "output_tokens";
        /// the input tokens that were written to the cache.
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens";
        /// the input tokens that were read from the cache.
        cache_read_input_tokens: u64 = "cache_read_input_tokens";
        /// the tokens written to the cache, by lifetime.
        cache_creation: CacheCreation<'a> = "cache_creation";
    }

    /// Tokens written to the prompt cache, by lifetime.
    CacheCreation {
        /// the tokens kept for five minutes.
        ephemeral_5m_input_tokens: u64 = "ephemeral_5m_input_tokens";
        /// the tokens kept for one hour.
        ephemeral_1h_input_tokens: u64 = "ephemeral_1h_input_tokens";
    }

    /// The tokens of a reply by purpose.
    OutputTokensDetails {
        /// the tokens spent on thinking.
        thinking_tokens: u64 = "thinking_tokens";
    }

    /// The number of calls of tools that the API runs.
    ServerToolCounts {
        /// the web searches.
        web_search_requests: u64 = "web_search_requests";
        /// the web fetches.
        web_fetch_requests: u64 = "web_fetch_requests";
    }

    /// The cost of one model, in `modelUsage` of a `result` or `cost-state`.
    ModelUsage {
        /// the input tokens outside of the cache.
        input_tokens: u64 = "inputTokens";
        /// the tokens of the replies.
        output_tokens: u64 = "outputTokens";
        /// the input tokens read from the cache.
        cache_read_input_tokens: u64 = "cacheReadInputTokens";
        /// the input tokens written to the cache.
        cache_creation_input_tokens: u64 = "cacheCreationInputTokens";
        /// the web searches.
        web_search_requests: u64 = "webSearchRequests";
        /// the cost in US dollars.
        cost_usd: f64 = "costUSD";
        /// the size of the context window in tokens.
        context_window: u64 = "contextWindow";
        /// the most tokens of one reply.
        max_output_tokens: u64 = "maxOutputTokens";
    }
}
