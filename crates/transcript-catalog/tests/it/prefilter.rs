//! The prefilter skips no line in which a query is.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use transcript_catalog::{Hit, SearchOptions};

use crate::store::Store;

/// Characters that are written, folded or compared in special ways.
const CHARS: &[char] = &[
    'a', 'A', 'b', 'e', 'E', 'é', 'É', 'o', 'ö', 'Ö', 'ọ', 'ß', 'ẞ', 'i', 'İ', 'ı', 'k',
    '\u{212A}', 'å', '\u{212B}', 'д', 'Д', 'ω', 'Ω', 'ǆ', 'ǅ', 'Ǆ', '日', '本', '한', 'か', '🦉',
    '👩', '\u{200d}', '\u{301}', '\u{300}', '"', '\\', '/', '\n', '\t', '\u{1b}', '\0', ' ', ' ',
    '.', '+', '#', '-', '_', '0', 'u', 'n', '\u{fffd}', '\u{7f}', '\u{2028}',
];

/// Writes a character in one of the ways that JSON allows.
fn write_char(c: char, way: u8, out: &mut String) {
    let escape = |out: &mut String| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&match way % 2 {
                0 => format!("\\u{unit:04x}"),
                _ => format!("\\u{unit:04X}"),
            });
        }
    };
    match (c, way) {
        (_, 0..=3) => escape(out),
        // A surrogate without its partner reads as U+FFFD.
        ('\u{fffd}', 4..=99) => out.push_str("\\ud83d"),
        ('"' | '\\', _) => out.extend(['\\', c]),
        ('/', 4..=20) => out.push_str("\\/"),
        ('\n', _) => out.push_str("\\n"),
        ('\t', _) => out.push_str("\\t"),
        (c, _) if c < ' ' => escape(out),
        _ => out.push(c),
    }
}

fn text(most: usize) -> impl Strategy<Value = Vec<(char, u8)>> {
    prop::collection::vec((prop::sample::select(CHARS), any::<u8>()), 0..most)
}

/// A place in a text, from which a term is cut, and how it is changed.
fn term() -> impl Strategy<Value = (usize, usize, usize, u8)> {
    (0..40usize, 0..200usize, 1..6usize, any::<u8>())
}

fn plain(text: &[(char, u8)]) -> Vec<char> {
    text.iter().map(|(c, _)| *c).collect()
}

fn json(text: &[(char, u8)]) -> String {
    let mut out = String::new();
    for (c, way) in text {
        write_char(*c, *way, &mut out);
    }
    out
}

/// Returns an item of a query from a part of a text.
fn item(
    texts: &[Vec<(char, u8)>],
    (text, from, len, how): (usize, usize, usize, u8),
) -> Option<String> {
    let chars = plain(texts.get(text % texts.len())?);
    let from = from % chars.len().max(1);
    let part = chars.get(from..(from + len).min(chars.len()))?;
    let part: String = match how % 4 {
        0 => part.iter().flat_map(|c| c.to_lowercase()).collect(),
        1 => part.iter().flat_map(|c| c.to_uppercase()).collect(),
        _ => part.iter().collect(),
    };
    // Without its marks, as people type it.
    let part = match how % 3 {
        0 => part
            .replace(['\u{301}', '\u{300}'], "")
            .replace('é', "e")
            .replace('ö', "o"),
        _ => part,
    };
    if part.is_empty() || part.ends_with('\\') {
        return None;
    }
    let minus = if how > 250 { "-" } else { "" };
    Some(match how % 5 {
        0 => format!("{minus}/{}/", regex_of(&part, how)),
        1 => format!("{minus}/{}/i", regex_of(&part, how)),
        _ => format!("{minus}\"{}\"", part.replace('"', "\\\"")),
    })
}

fn regex_of(part: &str, how: u8) -> String {
    let escaped: String = part
        .chars()
        .map(|c| {
            if c.is_alphanumeric() {
                c.to_string()
            } else {
                format!("\\x{{{:x}}}", u32::from(c))
            }
        })
        .collect();
    match how % 7 {
        0 => format!("{escaped}|d"),
        1 => format!("{escaped}.?"),
        2 => format!("[{escaped}]"),
        3 => format!("^{escaped}"),
        _ => escaped,
    }
}

pub(crate) fn key(hit: &Hit) -> String {
    let mut also: Vec<_> = hit
        .also
        .iter()
        .map(|copy| (copy.path.clone(), copy.line))
        .collect();
    also.sort();
    format!(
        "{:?}",
        (
            &hit.path,
            hit.line,
            hit.offset,
            &hit.uuid,
            hit.field,
            hit.block,
            &hit.snippet,
            &hit.matches,
            also
        )
    )
}

fn keys(store: &Store, query: &str, options: &SearchOptions) -> Vec<String> {
    let (hits, end) = store.search_with(query, options);
    assert_eq!(end.hits, hits.len() as u64);
    let unread = format!("{} unread", end.unread);
    hits.iter().map(key).chain([unread]).collect()
}

#[test]
fn a_search_with_the_prefilter_finds_what_a_search_of_every_line_finds() {
    let mut runner = TestRunner::new(Config {
        cases: 400,
        failure_persistence: None,
        ..Config::default()
    });
    let strategy = (
        prop::collection::vec(text(60), 1..12),
        prop::collection::vec(prop::collection::vec(term(), 1..3), 1..10),
        any::<u8>(),
    );
    let found = std::cell::Cell::new(0);
    let run = runner.run(&strategy, |(texts, queries, damage)| {
        let mut file = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let line = format!(
                "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"message\":{{\"content\":\"{}\"}},\"toolUseResult\":\"é\\u0061\"}}\n",
                json(text)
            );
            let mut line = line.into_bytes();
            // Damage that a salvage repairs: a NUL in the middle, or a line glued to the next one.
            let middle = (0..line.len() / 2).rev().find(|at| line[*at].is_ascii_alphanumeric());
            match (damage, middle) {
                (0..=20, Some(middle)) if number % 3 == 0 => line.insert(middle, 0),
                (21..=40, _) if number % 4 == 0 => _ = line.pop(),
                _ => {}
            }
            file.extend(line);
        }
        let store = Store::with("-p/s.jsonl", file);
        store.write("-p/s/tool-results/t.txt", plain(&texts[0]).iter().collect::<String>());
        for terms in queries {
            let items: Vec<_> = terms.into_iter().filter_map(|term| item(&texts, term)).collect();
            let query = items.join(" ");
            if items.iter().all(|item| item.starts_with('-')) {
                continue;
            }
            let fast = keys(&store, &query, &SearchOptions::new());
            let slow = keys(&store, &query, &SearchOptions::new().without_prefilter());
            found.set(found.get() + slow.len());
            prop_assert_eq!(fast, slow, "{}", query);
        }
        Ok(())
    });
    run.unwrap();
    assert!(found.get() > 1000, "{}", found.get());
}

#[test]
fn lines_at_the_ends_of_reads_and_pieces_are_searched_once() {
    // Longer than a read, and than a piece of a file.
    for len in [
        262_142, 262_143, 262_144, 262_145, 4_194_302, 4_194_303, 4_194_304, 4_194_305,
    ] {
        let entry = |number: usize, text: &str| {
            format!(
                "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"message\":{{\"content\":\"{text}\"}}}}\n"
            )
        };
        let first = entry(0, "owl");
        let filled = len - first.len() - entry(1, "").len();
        let second = entry(1, &"x".repeat(filled));
        let all = [
            first,
            second,
            entry(2, "owl"),
            entry(3, &"y".repeat(5 << 20)),
            entry(4, "owl"),
        ];
        let store = Store::with("-p/s.jsonl", all.concat());
        for options in [
            SearchOptions::new(),
            SearchOptions::new().without_prefilter(),
        ] {
            let (hits, _) = store.search_with("owl", &options);
            let mut lines: Vec<_> = hits.iter().map(|hit| hit.line).collect();
            lines.sort_unstable();
            assert_eq!(lines, [Some(1), Some(3), Some(5)], "{len}");
            let (hits, _) = store.search_with("/^[xy]+$/", &options);
            assert_eq!(hits.len(), 2, "{len}");
        }
    }
}
