//! Counts of tokens.

/// The tokens of one call of a model, and what is paid apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// Input tokens that were neither read from nor written to the cache.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Input tokens written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Input tokens written to the cache for an hour.
    pub cache_write_1h: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Searches of the web.
    pub web_search: u64,
}

impl Tokens {
    /// Returns the tokens of the whole prompt.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        let written = self.cache_write_5m.saturating_add(self.cache_write_1h);
        self.input
            .saturating_add(written)
            .saturating_add(self.cache_read)
    }

    /// Returns the sums of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.map(other, u64::saturating_add)
    }

    /// Combines each count with that of `other`.
    #[must_use]
    pub(crate) fn map(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: with(self.input, other.input),
            output: with(self.output, other.output),
            cache_write_5m: with(self.cache_write_5m, other.cache_write_5m),
            cache_write_1h: with(self.cache_write_1h, other.cache_write_1h),
            cache_read: with(self.cache_read, other.cache_read),
            web_search: with(self.web_search, other.web_search),
        }
    }
}
