//! What sessions used, and what it cost.

mod prices;
mod tokens;

pub use prices::{ModelPrices, Prices, PricesError, Terms};
pub use tokens::Tokens;
