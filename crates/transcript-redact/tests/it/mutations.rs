//! Secrets that are written otherwise than the tables have them: other case, spaces, quotes, escapes, colours, wrapped lines.
//!
//! `TRANSCRIPT_REDACT_ROUNDS=20000 cargo test -p transcript-redact mutations -- --nocapture` prints what defeats the rules.

use std::collections::BTreeMap;

use transcript_redact::Redactor;

use crate::kinds::{is_left, masked};
use crate::samples::{Random, Sample, table};

/// The name of a mutation, and its function.
type Mutation = (&'static str, fn(&mut Text, &mut Random));

/// A text around a secret, with what is changed only when it becomes JSON.
struct Text {
    sample: Sample,
    /// How often it is put into JSON within JSON.
    depth: usize,
    /// Whether some characters are written as `\\u0061`.
    is_escaped: bool,
}

const MUTATIONS: [Mutation; 12] = [
    ("upper case", |text, _| text.around(&str::to_uppercase)),
    ("lower case", |text, _| text.around(&str::to_lowercase)),
    ("spaces", |text, random| {
        let spaces = [" ", "  ", "\t"][random.below(3)];
        text.around(&|around| match around.trim_end().chars().last() {
            Some('=' | ':') => {
                let end = around.trim_end();
                format!(
                    "{}{spaces}{}{spaces}",
                    &end[..end.len() - 1],
                    &end[end.len() - 1..]
                )
            }
            _ => around.to_owned(),
        });
    }),
    ("quotes", |text, random| {
        let quote = ['"', '\'', '`'][random.below(3)];
        text.around(&|around| around.replace(['"', '\''], &quote.to_string()));
    }),
    ("in quotes", |text, random| {
        let quote = ["\"", "'", "`", "**", "("][random.below(5)];
        let end = if quote == "(" { ")" } else { quote };
        text.sample.text = format!("see {quote}{}{end}, please", text.sample.text);
    }),
    ("entities", |text, _| {
        text.around(&|around| {
            around
                .replace('"', "&quot;")
                .replace('=', "&#61;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
        });
    }),
    ("percent signs", |text, _| {
        text.around(&|around| {
            around
                .replace('=', "%3D")
                .replace('&', "%26")
                .replace('/', "%2F")
        });
    }),
    ("JSON within JSON", |text, random| {
        text.depth += 1 + random.below(2);
    }),
    ("escaped letters", |text, _| text.is_escaped = true),
    ("colours", |text, random| {
        let colour = format!("\u{1b}[{}m", ["31", "01;32", "38;5;9"][random.below(3)]);
        let secret = format!("{colour}{}\u{1b}[0m", text.sample.secret);
        text.sample.text = text.sample.text.replacen(&text.sample.secret, &secret, 1);
    }),
    ("numbers of lines", |text, random| {
        let mark = ["\u{2192}", "\t", ":", " | "][random.below(4)];
        let lines = text.sample.text.split('\n').enumerate();
        let lines: Vec<String> = lines
            .map(|(at, line)| format!("{:5}{mark}{line}", at + 95))
            .collect();
        text.sample.text = lines.join("\n");
    }),
    ("wrapped lines", |text, random| {
        let width = 60 + random.below(60);
        let mut wrapped = String::new();
        for line in text.sample.text.split('\n') {
            let letters: Vec<char> = line.chars().collect();
            for part in letters.chunks(width) {
                wrapped.extend(part);
                wrapped.push('\n');
            }
        }
        text.sample.text = wrapped;
    }),
];

impl Text {
    /// Changes what is before and behind the secret.
    fn around(&mut self, change: &dyn Fn(&str) -> String) {
        let Sample { secret, text } = &self.sample;
        if let Some((before, after)) = text.split_once(secret.as_str()) {
            self.sample.text = format!("{}{secret}{}", change(before), change(after));
        }
    }

    fn line(&self, random: &mut Random) -> String {
        let mut text = self.sample.text.clone();
        for _ in 0..self.depth {
            text = serde_json::json!({ "out": text }).to_string();
        }
        let mut line =
            serde_json::json!({"type": "user", "message": {"role": "user", "content": text}})
                .to_string();
        if self.is_escaped {
            let start = line.find("content").expect("the key") + 10;
            let mut escaped = line[..start].to_owned();
            let mut previous = ' ';
            for letter in line[start..].chars() {
                if letter.is_ascii_alphanumeric()
                    && previous != '\\'
                    && random.below(8) == 0
                    && !escaped.ends_with("\\u")
                {
                    escaped.push_str(&format!("\\u{:04x}", letter as u32));
                } else {
                    escaped.push(letter);
                }
                previous = letter;
            }
            // Letters of an escape are not escaped themselves.
            line = match serde_json::from_str::<serde_json::Value>(&escaped) {
                Ok(value) if value["message"]["content"] == text => escaped,
                _ => line,
            };
        }
        line
    }
}

#[test]
fn mutations_of_secrets_are_found() {
    let rounds = std::env::var("TRANSCRIPT_REDACT_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(4_000);
    let kinds: Vec<_> = ["gitleaks.tsv", "kingfisher.tsv", "trufflehog.tsv"]
        .iter()
        .flat_map(|name| table(name))
        .collect();
    let redactor = Redactor::new();
    let mut random = Random::new(20);
    let mut by_mutation: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut misses: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut found = 0;
    for _ in 0..rounds {
        let kind = random.pick(&kinds);
        let sample = kind.sample(&mut random);
        // A sample that is not found without a mutation shows nothing about the mutation.
        let mut text = Text {
            sample,
            depth: 0,
            is_escaped: false,
        };
        let secret = text.sample.secret.clone();
        if is_left(&masked(&redactor, &text.line(&mut random)), &secret) {
            found += 1;
            continue;
        }
        let mut names = Vec::new();
        for _ in 0..1 + random.below(2) {
            let (name, mutation) = random.pick(&MUTATIONS);
            mutation(&mut text, &mut random);
            names.push(*name);
        }
        let line = text.line(&mut random);
        let is_found = !is_left(&masked(&redactor, &line), &secret);
        found += usize::from(is_found);
        for name in names {
            let row = by_mutation.entry(name).or_default();
            row.1 += 1;
            row.0 += usize::from(is_found);
            if !is_found {
                *misses
                    .entry((format!("{} ({})", kind.name, kind.class), name))
                    .or_default() += 1;
            }
        }
    }
    for (name, (found, all)) in &by_mutation {
        println!("mutations: {name}: {found} of {all}");
    }
    println!("mutations: all: {found} of {rounds}");
    let mut misses: Vec<_> = misses.into_iter().collect();
    misses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((kind, mutation), count) in misses.iter().take(100) {
        println!("mutations: {count} × {mutation}: {kind}");
    }
    assert!(found * 100 >= rounds * 95, "{found} of {rounds}");
}
