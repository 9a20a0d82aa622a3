//! Samples of secrets that are drawn from tables of kinds, and texts as tools print them.

use std::path::PathBuf;

/// Random numbers that are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// A kind of secret, from a table.
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) class: String,
    secret: String,
    context: String,
}

/// A secret in the text around it.
pub(crate) struct Sample {
    pub(crate) secret: String,
    pub(crate) text: String,
}

/// Reads a table of kinds.
pub(crate) fn table(name: &str) -> Vec<Kind> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/secrets")
        .join(name);
    let text = std::fs::read_to_string(path).expect("the table");
    let rows = text.lines().skip(1).filter(|line| !line.is_empty());
    let kinds = rows.map(|row| {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, class, secret, context] = columns[..] else {
            panic!("{row}")
        };
        let lines = |text: &str| text.replace("\\n", "\n");
        Kind {
            name: name.into(),
            class: class.into(),
            secret: lines(secret),
            context: lines(context),
        }
    });
    kinds.collect()
}

impl Kind {
    /// Draws a secret of this kind.
    pub(crate) fn sample(&self, random: &mut Random) -> Sample {
        let secret = drawn(&self.secret, random);
        let text = self.context.replacen('@', &secret, 1);
        Sample { secret, text }
    }
}

/// Draws a text of a template: the grammar is that of `fixtures/secrets/README.md`.
pub(crate) fn drawn(template: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        let inner = &rest[open + 1..];
        let close = if inner.starts_with('[') {
            inner.find("]:").map_or(0, |at| at + 2)
        } else {
            0
        };
        let close = close + inner[close..].find('}').expect("a closing brace");
        let (inner, after) = (&inner[..close], &inner[close + 1..]);
        rest = after;
        if inner == "uuid" {
            text.push_str(&drawn("{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}", random));
            continue;
        }
        let (class, count) = inner.rsplit_once(':').expect("a count");
        let (min, max): (usize, usize) = match count.split_once('-') {
            Some((min, max)) => (min.parse().unwrap(), max.parse().unwrap()),
            None => (count.parse().unwrap(), count.parse().unwrap()),
        };
        let letters = alphabet(class);
        let len: usize = min + random.below(max - min + 1);
        text.extend((0..len).map(|_| *random.pick(&letters)));
    }
    text.push_str(rest);
    text
}

fn alphabet(class: &str) -> Vec<char> {
    let lower = "abcdefghijklmnopqrstuvwxyz";
    let (upper, digit) = (lower.to_uppercase(), "0123456789");
    let text = match class {
        "alnum" => format!("{lower}{upper}{digit}"),
        "lower" => format!("{lower}{digit}"),
        "upper" => format!("{upper}{digit}"),
        "alpha" => format!("{lower}{upper}"),
        "digit" => digit.into(),
        "hex" => format!("{digit}abcdef"),
        "HEX" => format!("{digit}ABCDEF"),
        "b64" => format!("{lower}{upper}{digit}+/"),
        "b64url" => format!("{lower}{upper}{digit}-_"),
        "word" => format!("{lower}{upper}{digit}_"),
        _ => {
            let set = class
                .strip_prefix('[')
                .and_then(|set| set.strip_suffix(']'))
                .expect("a class");
            let set: Vec<char> = set.chars().collect();
            let mut letters = Vec::new();
            let mut at = 0;
            while at < set.len() {
                if at + 2 < set.len() && set[at + 1] == '-' {
                    letters.extend(set[at]..=set[at + 2]);
                    at += 3;
                } else {
                    letters.push(set[at]);
                    at += 1;
                }
            }
            return letters;
        }
    };
    text.chars().collect()
}

/// How tools print a text.
pub(crate) const RENDERINGS: [&str; 7] = [
    "plain",
    "numbered",
    "grep",
    "patch",
    "json twice",
    "indented",
    "wrapped",
];

/// Returns a line of a transcript in which a text stands as a tool printed it.
pub(crate) fn rendered(text: &str, rendering: &str) -> String {
    let by_line = |make: &dyn Fn(usize, &str) -> String| {
        let lines: Vec<String> = text
            .split('\n')
            .enumerate()
            .map(|(at, line)| make(at + 1, line))
            .collect();
        lines.join("\n")
    };
    let result = |text: String| {
        let content =
            serde_json::json!([{"type": "tool_result", "tool_use_id": "t1", "content": text}]);
        serde_json::json!({"type": "user", "uuid": "u1", "message": {"role": "user", "content": content}}).to_string()
    };
    match rendering {
        "plain" => result(format!("before\n{text}\nafter")),
        "numbered" => result(by_line(&|number, line| format!("{number:6}\u{2192}{line}"))),
        "grep" => result(by_line(&|number, line| {
            let middle = line
                .char_indices()
                .nth(line.chars().count() / 2)
                .map_or(0, |(at, _)| at);
            let (start, end) = line.split_at(middle);
            format!(
                "\u{1b}[35m\u{1b}[Kconf/app.env\u{1b}[m\u{1b}[K:{number}:{start}\u{1b}[01;31m\u{1b}[K{end}\u{1b}[m\u{1b}[K"
            )
        })),
        "patch" => {
            let lines: Vec<String> = text.split('\n').map(|line| format!("-{line}")).collect();
            let patch = serde_json::json!([{"oldStart": 1, "oldLines": 9, "newStart": 1, "newLines": 1, "lines": lines}]);
            serde_json::json!({"type": "user", "uuid": "u1", "toolUseResult": {"filePath": "a", "structuredPatch": patch}}).to_string()
        }
        "json twice" => {
            let inner = serde_json::json!({"stdout": text, "code": 0}).to_string();
            result(serde_json::json!({"output": inner}).to_string())
        }
        "indented" => result(by_line(&|_, line| format!("    > {line}"))),
        "wrapped" => {
            let mut wrapped = String::new();
            for line in text.split('\n') {
                let letters: Vec<char> = line.chars().collect();
                for part in letters.chunks(100) {
                    wrapped.extend(part);
                    wrapped.push('\n');
                }
            }
            result(wrapped)
        }
        _ => panic!("no such rendering: {rendering}"),
    }
}
