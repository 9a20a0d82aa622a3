//! Token counts as the API reports them. An absent count is `None`, never 0.

use crate::object::{Raw, Str};
use crate::schema::schema;

schema! {
    /// The `usage` of one reply; all entries of one `message.id` repeat the same one.
    Usage {
        input_tokens: u64 = "input_tokens", "the input tokens that were neither read from nor written to the cache";
        output_tokens: u64 = "output_tokens", "the tokens of the reply";
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens", "the input tokens that were written to the cache";
        cache_read_input_tokens: u64 = "cache_read_input_tokens", "the input tokens that were read from the cache";
        cache_creation: CacheCreation<'a> = "cache_creation", "the tokens written to the cache, by lifetime";
        output_tokens_details: OutputTokensDetails<'a> = "output_tokens_details", "the tokens of the reply by purpose";
        server_tool_use: ServerToolCounts<'a> = "server_tool_use", "the calls of tools that the API runs";
        service_tier: Str<'a> = "service_tier", "the service tier: `standard`, `priority`, `batch`";
        inference_geo: Str<'a> = "inference_geo", "the region in which the model ran";
        speed: Str<'a> = "speed", "the speed: `standard` or `fast`";
        iterations: Vec<Iteration<'a>> = "iterations", "the steps of the request, each with its own counts";
        fallback_credit: Raw<'a> = "fallback_credit", "a credit for a reply of another model";
    }

    /// One step of a request.
    Iteration {
        kind: Str<'a> = "type", "the kind of step: `message`, `compaction`, …";
        model: Str<'a> = "model", "the model of the step, if it differs";
        input_tokens: u64 = "input_tokens", "the input tokens that were neither read from nor written to the cache";
        output_tokens: u64 = "output_tokens", "the tokens of the reply";
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens", "the input tokens that were written to the cache";
        cache_read_input_tokens: u64 = "cache_read_input_tokens", "the input tokens that were read from the cache";
        cache_creation: CacheCreation<'a> = "cache_creation", "the tokens written to the cache, by lifetime";
    }

    /// Tokens written to the prompt cache, by lifetime.
    CacheCreation {
        ephemeral_5m_input_tokens: u64 = "ephemeral_5m_input_tokens", "the tokens kept for five minutes";
        ephemeral_1h_input_tokens: u64 = "ephemeral_1h_input_tokens", "the tokens kept for one hour";
    }

    /// The tokens of a reply by purpose.
    OutputTokensDetails {
        thinking_tokens: u64 = "thinking_tokens", "the tokens spent on thinking";
    }

    /// The number of calls of tools that the API runs.
    ServerToolCounts {
        web_search_requests: u64 = "web_search_requests", "the web searches";
        web_fetch_requests: u64 = "web_fetch_requests", "the web fetches";
    }

    /// The cost of one model, in `modelUsage` of a `result` or `cost-state`.
    ModelUsage {
        input_tokens: u64 = "inputTokens", "the input tokens outside of the cache";
        output_tokens: u64 = "outputTokens", "the tokens of the replies";
        thinking_tokens: u64 = "thinkingTokens", "those of them that were spent on thinking";
        cache_read_input_tokens: u64 = "cacheReadInputTokens", "the input tokens read from the cache";
        cache_creation_input_tokens: u64 = "cacheCreationInputTokens", "the input tokens written to the cache";
        cache_creation_ephemeral_5m_input_tokens: u64 = "cacheCreationEphemeral5mInputTokens", "those of them that are kept for five minutes";
        cache_creation_ephemeral_1h_input_tokens: u64 = "cacheCreationEphemeral1hInputTokens", "those of them that are kept for one hour";
        web_search_requests: u64 = "webSearchRequests", "the web searches";
        context_window: u64 = "contextWindow", "the size of the context, in tokens";
        max_output_tokens: u64 = "maxOutputTokens", "the maximum number of output tokens";
        cost_usd: f64 = "costUSD", "the cost in US dollars";
    }
}

impl Usage<'_> {
    /// Returns the tokens that the request and its reply took of the context window: the input, in the cache or not, and
    /// the output. `None` if there are none: the client's own answers count nothing.
    #[must_use]
    pub fn context_tokens(&self) -> Option<u64> {
        let counts = [
            self.input_tokens(),
            self.cache_creation_input_tokens(),
            self.cache_read_input_tokens(),
            self.output_tokens(),
        ];
        let tokens = counts.into_iter().flatten().fold(0, u64::saturating_add);
        (tokens > 0).then_some(tokens)
    }
}
