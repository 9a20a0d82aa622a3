//! The cost of single calls, for views of a conversation.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use transcript_format::object::Object;

use super::part::Counts;
use super::prices::{ModelPrices, Prices, Terms};
use super::requests::tokens;

/// Prices of calls as they are in the file, one line at a time. The reports of [`Usage`](super::Usage) know more: they
/// look at all lines of a call.
#[derive(Debug)]
pub struct CallPrices {
    prices: Prices,
    /// The prices of each model that was asked for.
    models: Mutex<HashMap<String, Option<ModelPrices>>>,
}

impl CallPrices {
    /// Calls are paid by these prices.
    #[must_use]
    pub fn new(prices: Prices) -> Self {
        Self {
            prices,
            models: Mutex::default(),
        }
    }

    /// Returns the cost of a call of `model` with this `usage`, in billionths of a dollar; `None` where a price is not known.
    pub fn cost(&self, model: &str, usage: &Object<'_>) -> Option<u128> {
        let counts = Counts::read(usage);
        let term = |name| usage.str(name);
        let (tier, geo, speed) = (term("service_tier"), term("inference_geo"), term("speed"));
        let terms = Terms {
            service_tier: tier.as_deref(),
            inference_geo: geo.as_deref(),
            speed: speed.as_deref(),
        };
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if !models.contains_key(model) {
            models.insert(model.to_owned(), self.prices.model(model));
        }
        let prices = models.get(model)?.as_ref()?;
        prices.cost(&tokens(&counts), &terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_what_its_line_says() {
        let prices = CallPrices::new(Prices::embedded());
        let usage = r#"{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":10000,"service_tier":"standard"}"#;
        let usage = Object::parse(usage).unwrap();
        // 3, 15 and 0.30 dollars for a million.
        assert_eq!(
            prices.cost("claude-sonnet-4-20250514", &usage),
            Some(3_000_000 + 1_500_000 + 3_000_000)
        );
        assert_eq!(prices.cost("nobody-knows", &usage), None);
    }
}
