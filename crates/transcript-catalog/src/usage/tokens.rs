//! The tokens of a call of a model.

/// The tokens and searches of one call of a model, by kind of price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt that came from no cache and went into none.
    pub input: u64,
    /// Tokens of the answer, thinking included.
    pub output: u64,
    /// Tokens of the prompt that were written to the cache for five minutes, or for a time that is not known.
    pub cache_write_5m: u64,
    /// Tokens of the prompt that were written to the cache for an hour.
    pub cache_write_1h: u64,
    /// Tokens of the prompt that were read from the cache.
    pub cache_read: u64,
    /// Web searches of the server.
    pub web_search: u64,
}

impl Tokens {
    /// Returns the size of the whole prompt in tokens: what bands of prices depend on.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        [self.cache_write_5m, self.cache_write_1h, self.cache_read]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }

    /// Returns the larger number of each field; for lines that repeat the usage of one call.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    /// Returns the sum of each field, [`u64::MAX`] at most.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    pub(super) fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: of(self.input, other.input),
            output: of(self.output, other.output),
            cache_write_5m: of(self.cache_write_5m, other.cache_write_5m),
            cache_write_1h: of(self.cache_write_1h, other.cache_write_1h),
            cache_read: of(self.cache_read, other.cache_read),
            web_search: of(self.web_search, other.web_search),
        }
    }
}
