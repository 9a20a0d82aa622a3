//! The cost of a call: against LiteLLM's answers, against a slow reading of the table, and from price files.

use std::collections::HashMap;

use proptest::prelude::*;
use tempfile::TempDir;
use transcript_catalog::usage::{Prices, PricesError, Terms, Tokens};

static TABLE: &str = include_str!("../../data/prices.tsv");
/// Made by `experiments/prices_check.py --sample`. Each line has a call, and what is right by LiteLLM or by the public price
/// page where `cause` says why they differ:
///
/// - An hour's cache writes in a batch: LiteLLM takes the price of five minutes; by the page it is half of that of an hour.
///   The file has no such price, so it is not known here.
/// - A service tier that has no price in the row: LiteLLM takes the standard price, or half of it in a batch. Committed
///   capacity (`priority`) is sold by contract, by the page; the price is not known here.
/// - A web search that has no price in the file: LiteLLM takes 0. By the page it costs the same with every model.
/// - `fast` without a multiplier: LiteLLM takes 1. The page had a price as long as it was sold, so where an earlier file
///   has the multiplier, that counts; else the price is not known here.
/// - A geo without a multiplier: LiteLLM takes 1. It is 1 for models that have none at all, by the page; where another geo
///   has one, the price of a new geo is not known here.
/// - Geo and speed of a batch: LiteLLM leaves the multipliers out; by the page they are multiplied with the discount.
static ANSWERS: &str = include_str!("prices.jsonl");

fn tokens(counts: [u64; 6]) -> Tokens {
    let [
        input,
        output,
        cache_write_5m,
        cache_write_1h,
        cache_read,
        web_search,
    ] = counts;
    Tokens {
        input,
        output,
        cache_write_5m,
        cache_write_1h,
        cache_read,
        web_search,
    }
}

fn cost(prices: &Prices, model: &str, counts: [u64; 6], terms: Terms<'_>) -> Option<u128> {
    prices.model(model).unwrap().cost(&tokens(counts), &terms)
}

/// The cost by the embedded prices on ordinary terms.
fn plain(model: &str, counts: [u64; 6]) -> Option<u128> {
    cost(&Prices::embedded(), model, counts, Terms::default())
}

#[test]
fn costs_are_those_of_litellm() {
    let prices = Prices::embedded();
    let mut wrong = Vec::new();
    for line in ANSWERS.lines() {
        let call: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| call[key].as_str();
        let terms = Terms {
            service_tier: text("service_tier"),
            inference_geo: text("inference_geo"),
            speed: text("speed"),
        };
        let counts = serde_json::from_value(call["tokens"].clone()).unwrap();
        let ours = cost(&prices, text("model").unwrap(), counts, terms);
        let same = match (ours, call["usd"].as_f64()) {
            // Half of our unit, and what a sum of floats may lose.
            (Some(ours), Some(usd)) => (ours as f64 - usd * 1e9).abs() <= 0.5 + usd * 1e9 * 1e-13,
            (ours, usd) => ours.is_none() && usd.is_none(),
        };
        if !same {
            wrong.push(format!("{ours:?}: {line}"));
        }
    }
    assert!(ANSWERS.lines().count() > 300);
    assert!(
        wrong.is_empty(),
        "{} calls\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn table_is_sorted_and_has_its_digest() {
    let (head, rows): (Vec<_>, Vec<_>) = TABLE
        .split_inclusive('\n')
        .partition(|line| line.starts_with('#'));
    assert!(head.len() >= 3);
    assert!(rows.is_sorted_by(|a, b| a.split('\t').next() < b.split('\t').next()));
    let digest = hmac_sha256::Hash::hash(rows.concat().as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(Prices::embedded().digest(), digest);
    assert!(head[0].contains(Prices::embedded().date()));
    assert_eq!(Prices::embedded().date().len(), "2026-11-20".len());
}

/// The cost by a row of the table, word by word: no order, no search, exact fractions. In 10⁻¹⁸ USD.
fn slow_cost(words: &str, counts: [u64; 6], terms: Terms<'_>) -> Option<u128> {
    let words: HashMap<&str, &str> = words
        .split(' ')
        .map(|word| word.split_once('=').unwrap())
        .collect();
    // As an integer with as many places.
    let number = |text: &str, places: usize| {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{part:0<places$}").parse::<u128>().unwrap()
    };
    let prompt: u64 = counts[0] + counts[2] + counts[3] + counts[4];
    let end = match terms.service_tier {
        Some("batch") => ":batches",
        Some("flex") => ":flex",
        Some("priority") => ":priority",
        _ => "",
    };
    let band = |kind: &str, end: &str| {
        let from = |key: &&str| match key.strip_suffix(end)?.strip_prefix(kind)? {
            "" => Some(0),
            from => from.strip_prefix('@')?.parse::<u64>().ok(),
        };
        words
            .keys()
            .filter_map(from)
            .filter(|from| *from <= prompt)
            .max()
    };
    let price = |kind: &str| {
        let (standard, own) = (band(kind, ""), band(kind, end));
        let own = own.filter(|own| standard.is_none_or(|standard| standard <= *own));
        let known = own.map(|own| {
            if own == 0 {
                format!("{kind}{end}")
            } else {
                format!("{kind}@{own}{end}")
            }
        });
        (
            standard.is_some(),
            known.map(|key| number(words[key.as_str()], 9)),
        )
    };
    let or = |first: (bool, Option<u128>), other| {
        if first.0 || first.1.is_some() {
            first
        } else {
            other
        }
    };
    let [input, output] = [price("in"), price("out")];
    let short = or(price("w5"), input);
    let all = [
        input,
        output,
        short,
        or(price("w1"), short),
        or(price("r"), input),
    ];
    let mut sum = 0;
    for (count, (_, price)) in counts.into_iter().zip(all) {
        sum += if count > 0 {
            u128::from(count) * price?
        } else {
            0
        };
    }
    if sum > 0 {
        let geos = words
            .keys()
            .any(|key| key.starts_with("x:") && *key != "x:fast");
        let geo = if geos && terms.inference_geo == Some("us") {
            number(words.get("x:us")?, 3)
        } else {
            1000
        };
        let speed = if terms.speed == Some("fast") {
            number(words.get("x:fast")?, 3)
        } else {
            1000
        };
        sum *= geo * speed;
    }
    if counts[5] > 0 {
        sum += u128::from(counts[5]) * number(words.get("search")?, 12) * 1_000_000;
    }
    Some((sum + 500_000_000_000) / 1_000_000_000_000)
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..10_u64,
        0..600_000_u64,
        prop::sample::select(vec![100_000, 128_000, 200_000, 200_001, 272_000])
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_row_of_the_table_gives_the_cost_of_a_slow_reading(
        counts in [count(), count(), count(), count(), count()],
        searches in 0..3_u64,
        tier in prop::sample::select(vec![None, Some("standard"), Some("batch"), Some("flex"), Some("priority")]),
        geo in prop::sample::select(vec![None, Some("global"), Some("us")]),
        speed in prop::sample::select(vec![None, Some("fast")]),
    ) {
        let terms = Terms { service_tier: tier, inference_geo: geo, speed };
        let [input, output, w5, w1, read] = counts;
        let counts = [input, output, w5, w1, read, searches];
        let prices = Prices::embedded();
        for (name, words) in TABLE.lines().filter_map(|line| line.split_once('\t')) {
            prop_assert_eq!(cost(&prices, name, counts, terms), slow_cost(words, counts, terms), "{}", name);
        }
    }

    #[test]
    fn a_price_may_be_written_in_any_form(femto in 0..10_000_000_000_u64, shift in -20..20_i32) {
        // The same number with its point elsewhere.
        let digits = format!("{femto:021}");
        let (whole, part) = digits.split_at(21 - usize::try_from(shift.rem_euclid(20)).unwrap());
        let number = format!("{}.{part}0e{}", whole.trim_start_matches('0').parse::<u64>().unwrap_or(0), part.len() as i32 - 15);
        let prices = read(&format!("{{\"m\":{{\"input_cost_per_token\":{number}}}}}")).unwrap();
        prop_assert_eq!(cost(&prices, "m", [1_000_000, 0, 0, 0, 0, 0], Terms::default()), Some(u128::from(femto)));
    }

    #[test]
    fn no_bytes_make_a_price_file_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), tail in "[0-9eE+.\\-]{0,12}") {
        _ = read_bytes(&bytes);
        _ = read(&format!("{{\"m\":{{\"input_cost_per_token\":{tail},\"max_input_tokens\":{tail}}}}}"));
        let bands = read(&format!("{{\"m\":{{\"input_cost_per_token_above_{tail}k_tokens\":1}}}}"));
        prop_assert!(bands.is_ok());
    }
}

#[test]
fn bands_apply_to_the_whole_request_by_its_whole_prompt() {
    // 0.10 USD for a million tokens, and 0.50 above 100,000.
    assert_eq!(
        plain("claude-haiku-5-5", [100_000, 0, 0, 0, 0, 0]),
        Some(10_000_000)
    );
    assert_eq!(
        plain("claude-haiku-5-5", [100_001, 0, 0, 0, 0, 0]),
        Some(50_000_500)
    );
    // Tokens that are read from and written to the cache belong to the prompt, those of the answer do not.
    assert_eq!(
        plain("claude-haiku-5-5", [1, 10, 0, 0, 99_999, 0]),
        Some(100 + 5_000 + 999_990)
    );
    assert_eq!(
        plain("claude-haiku-5-5", [1, 10, 0, 1, 99_999, 0]),
        Some(500 + 25_000 + 1_000 + 4_999_950)
    );
    assert_eq!(
        plain("claude-haiku-5-5", [0, 100_001, 0, 0, 0, 0]),
        Some(50_000_500)
    );
}

#[test]
fn a_band_of_xai_begins_at_its_limit() {
    let price = "\"input_cost_per_token\":1e-6,\"input_cost_per_token_above_128k_tokens\":2e-6";
    let prices = read(&format!(
        "{{\"a\":{{{price},\"litellm_provider\":\"xai\"}},\"b\":{{{price},\"litellm_provider\":\"other\"}}}}"
    ));
    let prices = prices.unwrap();
    for (model, at_limit) in [("a", 256_000_000), ("b", 128_000_000)] {
        assert_eq!(
            cost(&prices, model, [127_999, 0, 0, 0, 0, 0], Terms::default()),
            Some(127_999_000)
        );
        assert_eq!(
            cost(&prices, model, [128_000, 0, 0, 0, 0, 0], Terms::default()),
            Some(at_limit)
        );
        assert_eq!(
            cost(&prices, model, [128_001, 0, 0, 0, 0, 0], Terms::default()),
            Some(256_002_000)
        );
    }
}

#[test]
fn ranges_are_bands() {
    let prices = read(
        r#"{"m": {"tiered_pricing": [
            {"range": [0, 32000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
            {"range": [32000.0, 128000.0], "input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6}]}}"#,
    );
    let prices = prices.unwrap();
    for (input, usd) in [
        (32_000, 32_002_000),
        (32_001, 96_007_000),
        (999_999, 3_000_001_000),
    ] {
        assert_eq!(
            cost(&prices, "m", [input, 1, 0, 0, 0, 0], Terms::default()),
            Some(usd)
        );
    }
}

#[test]
fn a_call_is_rounded_once_half_up() {
    let prices =
        read(r#"{"m": {"input_cost_per_token": 6.25e-11, "output_cost_per_token": 4.375e-10}}"#)
            .unwrap();
    assert_eq!(
        cost(&prices, "m", [1, 1, 0, 0, 0, 0], Terms::default()),
        Some(1)
    );
    assert_eq!(
        cost(&prices, "m", [0, 1, 0, 0, 0, 0], Terms::default()),
        Some(0)
    );
    assert_eq!(
        cost(&prices, "m", [8, 0, 0, 0, 0, 0], Terms::default()),
        Some(1)
    );
    assert_eq!(
        cost(&prices, "m", [7, 0, 0, 0, 0, 0], Terms::default()),
        Some(0)
    );
}

#[test]
fn names_are_found_exactly_or_by_makers_of_one_price() {
    let prices = Prices::embedded();
    let found = |name: &str| prices.model(name);
    let opus = found("claude-opus-5");
    assert!(opus.is_some());
    assert_eq!(
        opus.as_ref().and_then(|model| model.max_input_tokens()),
        Some(1_000_000)
    );
    for name in [
        "claude-opus-5[1m]",
        "anthropic/claude-opus-5",
        "anthropic/claude-opus-5[1m]",
    ] {
        assert_eq!(found(name), opus, "{name}");
    }
    // Only with the name of its maker in the table.
    assert_eq!(found("kimi-k2.5"), found("moonshot/kimi-k2.5"));
    assert!(found("kimi-k2.5").is_some());
    // Merely alike.
    for name in [
        "",
        "claude",
        "claude-opus",
        "claude-opus-5-",
        "Claude-Opus-5",
        "my-claude-opus-5",
        "claude-opus-5[1m][1m]",
        "[1m]",
        "<synthetic>",
        "deepseek/claude-opus-5",
        "openai/anthropic/claude-opus-5",
        "anthropic/",
        "# date",
        "\t",
        "claude-opus-5\t",
    ] {
        assert_eq!(found(name), None, "{name}");
    }
    // Two makers, of different prices and of equal ones.
    let two = |price: &str| {
        read(&format!(
            r#"{{"zai/m": {{"input_cost_per_token": 1e-6}}, "xai/m": {{"input_cost_per_token": {price}, "max_input_tokens": 9}}}}"#
        ))
        .unwrap()
    };
    assert_eq!(two("2e-6").model("m"), None);
    assert!(two("2e-6").model("zai/m").is_some());
    assert!(two("1e-6").model("m").is_some());
}

#[test]
fn spellings_of_agents_have_the_prices_of_the_maker() {
    let prices = Prices::embedded();
    for (spelled, row) in [
        // Copilot CLI.
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-4.5[1m]", "claude-opus-4-5"),
        ("claude-haiku-4.5", "claude-haiku-4-5"),
        ("claude-sonnet-4", "claude-sonnet-4-20250514"),
        ("claude-3.7-sonnet", "claude-3-7-sonnet-20250219"),
        ("gpt-5", "gpt-5"),
        ("gpt-5.1-codex", "gpt-5.1-codex"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        // The API of Gemini, and platforms of OpenCode and Pi.
        ("models/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("google/gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("github-copilot/claude-sonnet-4", "claude-sonnet-4-20250514"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("x-ai/grok-4", "xai/grok-4"),
        ("moonshotai/kimi-k2.5", "moonshot/kimi-k2.5"),
        ("z-ai/glm-4.6", "zai/glm-4.6"),
    ] {
        assert!(prices.model(row).is_some(), "{row}");
        assert_eq!(prices.model(spelled), prices.model(row), "{spelled}");
    }
    // Another version, another variant, another maker, a date that no row has.
    for name in [
        "claude-sonnet-4.55",
        "claude-sonnet-4.5-mini",
        "claude-sonnet-.4.5",
        "claude-opus.4.5",
        "google/claude-sonnet-4.5x",
        "models/models/gemini-2.5-pro",
        "claude-sonnet-4-5-20990101",
        "models/",
        "openai/",
        "mock-model",
        "gemini-3-pro",
    ] {
        assert_eq!(prices.model(name), None, "{name}");
    }
    // Dates of different prices say nothing about the name without one; those of one price do.
    let dated = |price: &str| {
        read(&format!(
            r#"{{"m-2.1-20250101": {{"input_cost_per_token": 1e-6}}, "m-2.1-2025-02-02": {{"input_cost_per_token": {price}}},
                "m-2.1-2025": {{"input_cost_per_token": 9e-6}}, "m-2.1-turbo-20250101": {{"input_cost_per_token": 9e-6}}}}"#
        ))
        .unwrap()
    };
    assert_eq!(dated("2e-6").model("m-2.1"), None);
    assert_eq!(
        dated("1e-6").model("m-2.1"),
        dated("1e-6").model("m-2.1-20250101")
    );
    assert!(dated("1e-6").model("m-2.1").is_some());
}

#[test]
fn names_of_platforms_have_the_prices_of_their_rows() {
    let prices = Prices::embedded();
    let platforms = TABLE.lines().filter_map(|line| {
        let name = line.split_once('\t')?.0.strip_prefix("vertex_ai/")?;
        name.contains('@').then_some(name)
    });
    let mut count = 0;
    for name in platforms {
        let row = prices.model(&format!("vertex_ai/{name}"));
        assert!(row.is_some());
        assert_eq!(prices.model(name), row, "{name}");
        assert_eq!(prices.model(&format!("{name}[1m]")), row, "{name}");
        let address = format!("projects/p/locations/us-east5/publishers/anthropic/models/{name}");
        assert_eq!(prices.model(&address), row, "{name}");
        count += 1;
    }
    assert!(count > 10, "{count}");
    let profile = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
    for address in [
        "arn:aws:bedrock:us-west-2:123456789012:inference-profile/",
        "arn:aws:bedrock:us-west-2::foundation-model/",
        "bedrock/",
    ] {
        let found = prices.model(&format!("{address}{profile}"));
        assert!(found.is_some(), "{address}");
        assert_eq!(found, prices.model(profile), "{address}");
    }
    // A region with prices of its own.
    let model = "anthropic.claude-sonnet-5";
    let governmental = prices.model(&format!(
        "arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/{model}"
    ));
    assert_eq!(
        governmental,
        prices.model(&format!("bedrock/us-gov-west-1/{model}"))
    );
    assert_ne!(governmental, prices.model(model));
    for unknown in [
        "arn:aws:bedrock:us-west-2:123456789012:application-inference-profile/a1b2c3",
        "arn:aws:bedrock:us-west-2",
        "arn:aws:sagemaker:us-west-2:1:model/claude-opus-5",
        "arn:",
        "publishers/anthropic/models/",
        "bedrock/",
    ] {
        assert_eq!(prices.model(unknown), None, "{unknown}");
    }
}

#[test]
fn every_row_is_found_and_none_between_them() {
    let prices = Prices::embedded();
    for name in TABLE
        .lines()
        .filter_map(|line| Some(line.split_once('\t')?.0))
    {
        assert!(prices.model(name).is_some(), "{name}");
        assert_eq!(prices.model(&format!("{name}!")), None, "{name}");
    }
}

#[test]
fn models_that_are_no_longer_sold_keep_their_prices() {
    assert_eq!(
        plain("claude-sonnet-4-20250514", [200_001, 0, 0, 0, 0, 0]),
        Some(1_200_006_000)
    );
    assert_eq!(
        plain("claude-opus-4-1-20250805", [0, 1, 0, 1, 0, 0]),
        Some(105_000)
    );
    let fast = Terms {
        speed: Some("fast"),
        ..Terms::default()
    };
    assert_eq!(
        cost(
            &Prices::embedded(),
            "claude-opus-4-6",
            [0, 1, 0, 0, 0, 0],
            fast
        ),
        Some(150_000)
    );
}

#[test]
fn missing_price_is_unknown_and_zero_is_zero() {
    let prices = read(
        r#"{"free": {"input_cost_per_token": 0, "output_cost_per_token": 0.0, "cache_read_input_token_cost": null},
            "input only": {"input_cost_per_token": 1e-6, "cache_creation_input_token_cost_above_1hr": 3e-6},
            "nothing": {"mode": "chat"},
            "at night": {"input_cost_per_token": 1e-6, "off_peak_pricing": {"hours_utc": "00:00-06:00"}}}"#,
    );
    let prices = prices.unwrap();
    let plain = |model, counts| cost(&prices, model, counts, Terms::default());
    assert_eq!(plain("free", [9, 9, 9, 9, 9, 0]), Some(0));
    assert_eq!(plain("free", [9, 9, 9, 9, 9, 1]), None);
    assert_eq!(plain("input only", [1, 0, 0, 0, 0, 0]), Some(1_000));
    assert_eq!(plain("input only", [0, 1, 0, 0, 0, 0]), None);
    // Without a price, the cache costs what input costs.
    assert_eq!(plain("input only", [0, 0, 1, 0, 1, 0]), Some(2_000));
    assert_eq!(plain("input only", [0, 0, 0, 1, 0, 0]), Some(3_000));
    for model in ["nothing", "at night"] {
        assert_eq!(plain(model, [0; 6]), Some(0));
        assert_eq!(plain(model, [1, 0, 0, 0, 0, 0]), None);
    }
}

#[test]
fn an_hour_without_a_price_costs_what_five_minutes_cost() {
    let prices = read(
        r#"{"m": {"input_cost_per_token": 1e-6, "cache_creation_input_token_cost": 1.25e-6}}"#,
    )
    .unwrap();
    assert_eq!(
        cost(&prices, "m", [0, 0, 0, 4, 0, 0], Terms::default()),
        Some(5_000)
    );
}

#[test]
fn terms_count_as_they_are_written() {
    let prices = Prices::embedded();
    let on = |service_tier, inference_geo, speed| {
        let terms = Terms {
            service_tier,
            inference_geo,
            speed,
        };
        cost(&prices, "claude-opus-5-5", [1, 0, 0, 0, 0, 1], terms)
    };
    let search = 10_000_000;
    for geo in [
        None,
        Some(""),
        Some("global"),
        Some("not_available"),
        Some("Global"),
    ] {
        for speed in [None, Some(""), Some("standard")] {
            for tier in [None, Some(""), Some("standard"), Some("default")] {
                assert_eq!(on(tier, geo, speed), Some(search + 4_000));
            }
        }
    }
    assert_eq!(on(Some("batch"), None, None), Some(search + 2_000));
    assert_eq!(on(None, Some("us"), None), Some(search + 4_400));
    assert_eq!(on(None, Some("US"), Some("fast")), Some(search + 8_800));
    assert_eq!(on(Some("batch"), Some("us"), None), Some(search + 2_200));
    for (tier, geo, speed) in [
        (Some("priority"), None, None),
        (Some("some tier"), None, None),
        (None, Some("eu"), None),
        (None, Some("fast"), None),
        (None, None, Some("us")),
        (None, None, Some("faster")),
    ] {
        assert_eq!(on(tier, geo, speed), None, "{tier:?} {geo:?} {speed:?}");
    }
    // Models that cost more nowhere.
    let us = Terms {
        inference_geo: Some("us"),
        ..Terms::default()
    };
    assert_eq!(
        cost(&prices, "claude-haiku-4-5", [1, 0, 0, 0, 0, 0], us),
        Some(1_000)
    );
}

#[test]
fn a_tier_has_its_own_prices_in_each_band() {
    let prices = read(
        r#"{"m": {"input_cost_per_token": 4e-6, "input_cost_per_token_above_10k_tokens": 8e-6, "input_cost_per_token_flex": 2e-6,
            "input_cost_per_token_batches": 2e-6, "input_cost_per_token_above_10k_tokens_batches": 4e-6,
            "cache_read_input_token_cost": 1e-6}}"#,
    );
    let prices = prices.unwrap();
    let on = |tier, input, read| {
        let terms = Terms {
            service_tier: Some(tier),
            ..Terms::default()
        };
        cost(&prices, "m", [input, 0, 0, 0, read, 0], terms)
    };
    assert_eq!(
        [on("flex", 10_000, 0), on("flex", 10_001, 0)],
        [Some(20_000_000), None]
    );
    assert_eq!(
        [on("batch", 10_000, 0), on("batch", 10_001, 0)],
        [Some(20_000_000), Some(40_004_000)]
    );
    // Reads have a price, but none in a batch.
    assert_eq!(
        [on("batch", 1, 1), on("standard", 1, 1)],
        [None, Some(5_000)]
    );
}

#[test]
fn the_largest_counts_do_not_overflow() {
    let most = [u64::MAX; 6];
    let prices = read(
        r#"{"m": {"input_cost_per_token": 18446, "output_cost_per_token": 18446, "cache_read_input_token_cost": 18446,
            "search_context_cost_per_query": {"search_context_size_medium": 18446},
            "provider_specific_entry": {"us": 18446744073709551.615, "fast": 18446744073709551.615}}}"#,
    );
    let terms = Terms {
        inference_geo: Some("us"),
        speed: Some("fast"),
        service_tier: None,
    };
    assert!(cost(&prices.unwrap(), "m", most, terms).is_some());
    assert!(plain("claude-opus-5", most).unwrap() > 1 << 64);
    assert_eq!(tokens(most).prompt(), u64::MAX);
    assert_eq!(tokens(most).saturating_add(tokens([1; 6])), tokens(most));
    assert_eq!(
        tokens([1, 2, 3, 4, 5, 6]).saturating_add(tokens([1; 6])),
        tokens([2, 3, 4, 5, 6, 7])
    );
    assert_eq!(
        tokens([1, 9, 1, 9, 1, 9]).max(tokens([9, 1, 9, 1, 9, 1])),
        tokens([9; 6])
    );
    assert_eq!(tokens([1, 16, 2, 4, 8, 32]).prompt(), 15);
}

fn read_bytes(bytes: &[u8]) -> Result<Prices, PricesError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("prices.json");
    std::fs::write(&path, bytes).unwrap();
    Prices::read(&path)
}

fn read(text: &str) -> Result<Prices, PricesError> {
    read_bytes(text.as_bytes())
}

#[test]
fn entries_of_a_file_replace_rows_and_the_rest_stays() {
    let text = r#"{"date": "2027-01-31", "sample_spec": {"input_cost_per_token": "what it costs"},
        "claude-opus-5": {"input_cost_per_token": 1e-6, "max_input_tokens": 5}, "zai/mine": {"input_cost_per_token": 2e-6},
        "claude-sonnet-5": {"mode": "embedding", "input_cost_per_token": 7}}"#;
    let prices = read(text).unwrap();
    assert_eq!(
        cost(
            &prices,
            "claude-opus-5[1m]",
            [1, 0, 0, 0, 0, 0],
            Terms::default()
        ),
        Some(1_000)
    );
    assert_eq!(
        cost(
            &prices,
            "claude-opus-5",
            [0, 1, 0, 0, 0, 0],
            Terms::default()
        ),
        None
    );
    assert_eq!(
        prices.model("claude-opus-5").unwrap().max_input_tokens(),
        Some(5)
    );
    assert_eq!(
        cost(&prices, "mine", [1, 0, 0, 0, 0, 0], Terms::default()),
        Some(2_000)
    );
    assert_eq!(
        cost(
            &prices,
            "claude-sonnet-5",
            [1, 0, 0, 0, 0, 0],
            Terms::default()
        ),
        Some(2_000)
    );
    assert_eq!(prices.model("sample_spec"), None);
    assert_eq!(prices.date(), "2027-01-31");
    let digest =
        hmac_sha256::Hash::hash(format!("{}{text}", Prices::embedded().digest()).as_bytes());
    assert_eq!(
        prices.digest(),
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    );
    assert_eq!(read("{}").unwrap().date(), Prices::embedded().date());
    assert_ne!(read("{}").unwrap().digest(), Prices::embedded().digest());
}

#[test]
fn errors_of_a_price_file_say_where() {
    for (text, place) in [
        (
            "",
            "not an object in JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "[]",
            "not an object in JSON: invalid type: sequence, expected a map at line 1 column 0",
        ),
        (
            "{\"m\":\n{\"input_cost_per_token\": 1,}}",
            "not an object in JSON: key must be a string at line 2 column 28",
        ),
        ("{\"date\": 7}", "date: not a string"),
        ("{\"m\": 7}", "m: not an object"),
        ("{\"m\": null}", "m: not an object"),
        (
            "{\"m\": {\"input_cost_per_token\": \"1\"}}",
            "m, input_cost_per_token: not a price in USD",
        ),
        (
            "{\"m\": {\"input_cost_per_token\": -1e-6}}",
            "m, input_cost_per_token: not a price in USD",
        ),
        (
            "{\"m\": {\"input_cost_per_token\": 1e300}}",
            "m, input_cost_per_token: not a price in USD",
        ),
        (
            "{\"m\": {\"input_cost_per_token\": 18447}}",
            "m, input_cost_per_token: not a price in USD",
        ),
        (
            "{\"m\": {\"output_cost_per_token_above_9k_tokens_flex\": []}}",
            "m, output_cost_per_token_above_9k_tokens_flex: not a price in USD",
        ),
        (
            "{\"m\": {\"cache_creation_input_token_cost_above_1hr\": {}}}",
            "m, cache_creation_input_token_cost_above_1hr: not a price in USD",
        ),
        (
            "{\"m\": {\"max_input_tokens\": \"many\"}}",
            "m, max_input_tokens: not a number of tokens",
        ),
        (
            "{\"m\": {\"tiered_pricing\": {}}}",
            "m, tiered_pricing: not an array of objects",
        ),
        (
            "{\"m\": {\"tiered_pricing\": [{\"range\": [0]}]}}",
            "m, tiered_pricing: a range that is not two numbers of tokens",
        ),
        (
            "{\"m\": {\"tiered_pricing\": [{\"range\": [0, 1], \"input_cost_per_token\": true}]}}",
            "m, tiered_pricing: not a price in USD",
        ),
        (
            "{\"m\": {\"search_context_cost_per_query\": 1}}",
            "m, search_context_cost_per_query: not an object",
        ),
        (
            "{\"m\": {\"search_context_cost_per_query\": {\"search_context_size_medium\": -1}}}",
            "m, search_context_cost_per_query: not a price in USD",
        ),
        (
            "{\"m\": {\"provider_specific_entry\": {\"us\": -1.1}}}",
            "m, provider_specific_entry: a multiplier that is not a number",
        ),
    ] {
        let error = read(text)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            error.ends_with(&format!("prices.json: {place}")),
            "{text}: {error}"
        );
    }
    let bands = (0..201).map(|limit| format!("\"input_cost_per_token_above_{limit}k_tokens\": 1"));
    let error = read(&format!(
        "{{\"m\": {{{}}}}}",
        bands.collect::<Vec<_>>().join(",")
    ))
    .unwrap_err()
    .to_string();
    assert!(
        error.ends_with("prices.json: m: more than 200 prices"),
        "{error}"
    );
    let error = Prices::read(std::path::Path::new("no such folder/prices.json"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("no such folder/prices.json: cannot be read: "),
        "{error}"
    );
}

/// The sums are made by hand from the price pages of the makers: of uncached input, of output, and of input from the cache.
#[test]
fn models_of_all_makers_cost_what_their_makers_say() {
    for (model, [input, output, cache_read], expected) in [
        // 1.25, 10 and 0.125 dollars for a million.
        (
            "gpt-5",
            [600, 100, 400],
            600 * 1_250 + 100 * 10_000 + 400 * 125,
        ),
        (
            "gpt-5-codex",
            [600, 100, 400],
            600 * 1_250 + 100 * 10_000 + 400 * 125,
        ),
        ("gpt-5.1-codex", [1, 1, 1], 1_250 + 10_000 + 125),
        ("openai/gpt-5", [1, 1, 1], 1_250 + 10_000 + 125),
        // 5, 30 and 0.5, and another price for a prompt of more than 272,000.
        ("gpt-5.5", [1, 1, 271_999], 5_000 + 30_000 + 271_999 * 500),
        (
            "gpt-5.5",
            [1, 1, 272_000],
            10_000 + 45_000 + 272_000 * 1_000,
        ),
        (
            "gemini-2.5-pro",
            [100_000, 1, 100_000],
            100_000 * 1_250 + 10_000 + 100_000 * 125,
        ),
        (
            "gemini-2.5-pro",
            [100_001, 1, 100_000],
            100_001 * 2_500 + 15_000 + 100_000 * 250,
        ),
        ("gemini/gemini-2.5-pro", [1, 1, 0], 1_250 + 10_000),
        ("qwen3-coder-plus", [32_000, 1, 0], 32_000 * 1_000 + 5_000),
        (
            "qwen3-coder-plus",
            [32_000, 1, 1],
            32_000 * 1_800 + 9_000 + 180,
        ),
    ] {
        let counts = [input, output, 0, 0, cache_read, 0];
        assert_eq!(plain(model, counts), Some(expected), "{model} {counts:?}");
    }
    // Names that agents give to routes, and to models that are not sold.
    for model in [
        "coder-model",
        "gpt-5-codex-spark-preview",
        "gemini-2.5",
        "qwen3-coder",
        "mock-model",
        "unknown",
    ] {
        assert_eq!(Prices::embedded().model(model), None, "{model}");
    }
}
