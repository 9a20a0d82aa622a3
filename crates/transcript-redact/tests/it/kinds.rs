//! The kinds of secrets that public scanners know, as tools print them.

use std::collections::BTreeMap;

use transcript_redact::Redactor;

use crate::samples::{RENDERINGS, Random, rendered, table};

/// Returns a line with its secrets replaced.
pub(crate) fn masked(redactor: &Redactor, line: &str) -> String {
    let mut text = String::new();
    let mut at = 0;
    for secret in redactor.find(line.as_bytes()) {
        text.push_str(&line[at..secret.range.start]);
        text.push_str("[]");
        at = secret.range.end;
    }
    text + &line[at..]
}

/// Returns whether a part of a secret is left in a line.
pub(crate) fn is_left(line: &str, secret: &str) -> bool {
    const TRACE: usize = 10;
    let value: serde_json::Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let mut plain = String::new();
    collect(&value, &mut plain);
    let plain: String = plain
        .chars()
        .filter(|character| !character.is_whitespace())
        .collect();
    let parts = secret.split('\n').filter(|part| part.len() >= 4);
    for part in parts {
        let letters: Vec<char> = part
            .chars()
            .filter(|character| !character.is_whitespace())
            .collect();
        let traces = letters.windows(TRACE.min(letters.len()).max(1));
        for trace in traces {
            if plain.contains(&trace.iter().collect::<String>()) {
                return true;
            }
        }
    }
    false
}

/// Collects the texts of a value, decoded again where they are JSON, without colours.
fn collect(value: &serde_json::Value, text: &mut String) {
    match value {
        serde_json::Value::String(string) => match serde_json::from_str(string) {
            Ok(inner @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) => {
                collect(&inner, text);
            }
            _ => {
                let mut rest = string.as_str();
                while let Some(at) = rest.find("\u{1b}[") {
                    text.push_str(&rest[..at]);
                    let end = rest[at..]
                        .find(['m', 'K'])
                        .map_or(rest.len(), |end| at + end + 1);
                    rest = &rest[end..];
                }
                text.push_str(rest);
                text.push('\u{0}');
            }
        },
        serde_json::Value::Array(list) => list.iter().for_each(|value| collect(value, text)),
        serde_json::Value::Object(object) => object.values().for_each(|value| collect(value, text)),
        other => text.push_str(&other.to_string()),
    }
}

/// Measures a table: prints what is left by class, and returns the found and all samples.
fn measure(name: &str) -> (usize, usize) {
    let redactor = Redactor::new();
    let mut by_class: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut random = Random::new(39);
    for kind in table(name) {
        let mut missed = Vec::new();
        for rendering in RENDERINGS {
            let sample = kind.sample(&mut random);
            let line = rendered(&sample.text, rendering);
            // A second search of the redacted line finds nothing.
            let again = redactor.redact_line(&line);
            let found = redactor.find(again.as_bytes());
            assert!(found.is_empty(), "{}: {found:?}\n{again}", kind.name);
            let row = by_class.entry(kind.class.clone()).or_default();
            row.1 += 1;
            if is_left(&masked(&redactor, &line), &sample.secret) {
                missed.push(rendering);
            } else {
                row.0 += 1;
            }
        }
        if !missed.is_empty() {
            println!(
                "{name}: {} ({}): left in {}",
                kind.name,
                kind.class,
                missed.join(", ")
            );
        }
    }
    let mut sums = (0, 0);
    for (class, (found, all)) in &by_class {
        println!("{name}: {class}: {found} of {all}");
        sums = (sums.0 + found, sums.1 + all);
    }
    println!("{name}: all: {} of {}", sums.0, sums.1);
    sums
}

#[test]
fn nearly_all_kinds_of_two_public_scanners_are_found_as_tools_print_them() {
    for name in ["gitleaks.tsv", "kingfisher.tsv"] {
        let (found, all) = measure(name);
        assert!(found * 100 >= all * 99, "{name}: {found} of {all}");
    }
}

#[test]
fn most_kinds_of_scanners_that_were_held_back_are_found() {
    for name in ["trufflehog.tsv", "others.tsv"] {
        let (found, all) = measure(name);
        assert!(found * 100 >= all * 95, "{name}: {found} of {all}");
    }
}

#[test]
fn names_in_other_languages_are_found() {
    for text in [
        "contrase\u{f1}a: Zx81k3Lm",
        "mot de passe : Zx81k3Lm",
        "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}: Zx81k3Lm",
        "\u{5bc6}\u{7801}\u{662f}Zx81k3Lm",
        "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}: Zx81k3Lm",
        "Passwort ist jetzt Zx81k3Lm",
    ] {
        let masked = Redactor::new().redact_text(text);
        assert!(masked.ends_with("[redacted: password]"), "{masked}");
    }
}
