//! The known faults of counting, each as a fixture with what is right (fixtures/v1/README.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript_catalog::Catalog;
use transcript_catalog::usage::{By, Key, Prices, Report, Row, Sums, UsageOptions};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1/usage")
}

fn sums(sums: &Sums) -> BTreeMap<&'static str, Value> {
    let tokens = &sums.tokens;
    let mut all = BTreeMap::from([
        ("requests", json!(sums.requests)),
        ("incomplete", json!(sums.incomplete)),
        ("input", json!(tokens.input)),
        ("output", json!(tokens.output)),
        ("cacheWrite5m", json!(tokens.cache_write_5m)),
        ("cacheWrite1h", json!(tokens.cache_write_1h)),
        ("cacheRead", json!(tokens.cache_read)),
        ("webSearch", json!(tokens.web_search)),
        ("costNanoUsd", json!(sums.cost.map(|cost| cost as u64))),
        (
            "unknownModels",
            json!(
                sums.unknown_models
                    .iter()
                    .map(|name| &**name)
                    .collect::<Vec<_>>()
            ),
        ),
    ]);
    if let Some(reported) = sums.reported_cost {
        all.insert("reportedNanoUsd", json!(reported as u64));
    }
    all
}

fn key(row: &Row) -> String {
    match &row.keys[0] {
        Key::None => String::new(),
        key => key.to_string(),
    }
}

#[test]
fn each_fault_of_counting_has_a_fixture_that_is_counted_right() {
    let prices = Prices::read(&folder().join("prices.json")).unwrap();
    let mut cases = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        cases += 1;
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
        let mut expected: BTreeMap<String, Value> = serde_json::from_str(&expected).unwrap();
        let (kinds, client) = (expected.remove("rows"), expected.remove("client"));
        let catalog = Catalog::open(&folder.join("projects")).unwrap();
        let usage = catalog.usage(&UsageOptions::new());
        let rows = usage.rows(&Report::by(&[]), &prices);
        let total = sums(&rows.total().sums).into_iter();
        let total: BTreeMap<String, Value> =
            total.map(|(key, value)| (key.to_owned(), value)).collect();
        assert_eq!(total, expected, "{name}");
        for (kind, expected) in kinds.iter().flat_map(|kinds| kinds.as_object().unwrap()) {
            let by = By::named(kind).unwrap();
            let rows = usage.rows(&Report::by(&[by]), &prices);
            let rows = rows.map(|row| {
                let cost = row.sums.cost.map(|cost| cost as u64);
                (key(&row), json!([row.sums.requests, cost]))
            });
            let rows: BTreeMap<String, Value> = rows.collect();
            assert_eq!(json!(rows), *expected, "{name} by {kind}");
        }
        if let Some(client) = client {
            let totals = usage.client_totals(&prices);
            let (theirs, ours) = (totals[0].theirs.unwrap(), totals[0].ours.cost.unwrap());
            let found = json!({
                "theirs": theirs as u64, "ours": ours as u64, "difference": (theirs - ours) as u64,
            });
            assert_eq!(found, client, "{name}");
        }
    }
    assert_eq!(cases, 20);
}
