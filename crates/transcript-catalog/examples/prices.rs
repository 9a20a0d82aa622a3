//! Prints the cost of each call on standard input, one JSON object a line, in billionths of a dollar: for
//! `experiments/prices_check.py`, which compares them with those of LiteLLM.
//!
//! ```text
//! echo '{"model":"claude-opus-5","tokens":[10,200,0,0,3000,0],"service_tier":null,"inference_geo":"us","speed":null}' |
//!     cargo run --example prices
//! ```

#![expect(clippy::print_stdout, reason = "an example")]

use serde_json::Value;
use transcript_catalog::usage::{Prices, Terms, Tokens};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prices = Prices::embedded();
    for line in std::io::stdin().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let count = |at: usize| {
            call["tokens"][at]
                .as_u64()
                .ok_or("a number of tokens is missing")
        };
        let tokens = Tokens {
            input: count(0)?,
            output: count(1)?,
            cache_write_5m: count(2)?,
            cache_write_1h: count(3)?,
            cache_read: count(4)?,
            web_search: count(5)?,
        };
        let terms = Terms {
            service_tier: call["service_tier"].as_str(),
            inference_geo: call["inference_geo"].as_str(),
            speed: call["speed"].as_str(),
        };
        let model = prices.model(call["model"].as_str().ok_or("a model is missing")?);
        match model.and_then(|model| model.cost(&tokens, &terms)) {
            Some(cost) => println!("{cost}"),
            None => println!("null"),
        }
    }
    Ok(())
}
