//! Prices (stub).
use std::path::Path;

use super::tokens::Tokens;

/// Terms of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// Tier.
    pub service_tier: Option<&'a str>,
    /// Geo.
    pub inference_geo: Option<&'a str>,
    /// Speed.
    pub speed: Option<&'a str>,
}
/// Prices.
#[derive(Debug)]
pub struct Prices {}
/// Prices of a model.
#[derive(Debug)]
pub struct ModelPrices {}
/// An error.
#[derive(Debug, thiserror::Error)]
#[error("prices")]
pub struct PricesError;
impl Prices {
    /// Embedded.
    pub fn embedded() -> Self {
        Self {}
    }
    /// Reads.
    /// # Errors
    /// x
    pub fn read(_: &Path) -> Result<Self, PricesError> {
        Ok(Self {})
    }
    /// Date.
    pub fn date(&self) -> &str {
        "2026-11-20"
    }
    /// Digest.
    pub fn digest(&self) -> String {
        String::new()
    }
    /// Model.
    pub fn model(&self, _: &str) -> Option<ModelPrices> {
        Some(ModelPrices {})
    }
}
impl ModelPrices {
    /// Cost.
    pub fn cost(&self, tokens: &Tokens, _: &Terms<'_>) -> Option<u128> {
        Some(u128::from(tokens.input + tokens.output) * 1000)
    }
    /// Max.
    pub fn max_input_tokens(&self) -> Option<u64> {
        Some(200_000)
    }
}
