//! Regions of references before the text of a prompt, checked against a regular expression.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

use regex_lite::Regex;
use transcript_format::context_refs::Region;
use transcript_format::entry::{Body, Entry};
use transcript_testkit::rng::Rng;

const HEADER: &str = "> **上下文资料**\n";

/// The number of regions, and of texts that only look like one.
const ROUNDS: usize = 5_000;

/// The grammar; `.` is spelled out, because that of the regex crate differs from JavaScript's.
fn grammar() -> Regex {
    Regex::new("^> \\*\\*上下文资料\\*\\*\n(?:> \n)?((?:> - [^\n\r\u{2028}\u{2029}]+\n)+)\n")
        .unwrap()
}

/// Texts that a parser may trip over.
const WORDS: [&str; 16] = [
    "src/main.rs",
    "a`b",
    "` (",
    " (x)",
    ") - ",
    "C:\\dir",
    "[ERROR]",
    "> - 📄 `x`",
    "**上下文资料**",
    "个文件)",
    "行) ⚠️",
    "\u{85}\t\u{0}",
    "日本",
    "https://e.org/?q=(1)",
    " ",
    "-",
];

fn word(rng: &mut Rng) -> String {
    (0..rng.range(1, 3)).map(|_| *rng.pick(&WORDS)).collect()
}

/// Generates a region, with or without the spacer line, and a text after it.
fn prompt(rng: &mut Rng) -> String {
    let spacer = if rng.one_in(3) { "" } else { "> \n" };
    let items: String = (0..rng.range(1, 6))
        .map(|_| format!("> - {}\n", word(rng)))
        .collect();
    let region = format!("{HEADER}{spacer}{items}\n");
    let texts = [
        "",
        "Why?",
        "\n\nWhy?\r\n",
        "> - 📄 `x`\n\n",
        "> **上下文资料**\n> - 📄 `x`\n\n",
    ];
    region + *rng.pick(&texts)
}

/// Checks that parser and grammar agree; returns whether the prompt has a region.
fn agree(grammar: &Regex, prompt: &str) -> bool {
    let found = Region::split(prompt);
    let captures = grammar.captures(prompt);
    assert_eq!(found.is_some(), captures.is_some(), "{prompt:?}");
    let (Some((region, text)), Some(captures)) = (found, captures) else {
        return false;
    };
    assert_eq!(text, &prompt[captures[0].len()..], "{prompt:?}");
    assert_eq!([region.text(), text].concat(), prompt);
    let lines: Vec<&str> = region.references().collect();
    let items: Vec<&str> = captures[1].lines().map(|line| &line[4..]).collect();
    assert_eq!(lines, items, "{prompt:?}");
    true
}

#[test]
fn regions_are_parsed_as_by_the_grammar_and_written_back_unchanged() {
    let (grammar, mut rng) = (grammar(), Rng::new(7));
    for _ in 0..ROUNDS {
        let prompt = prompt(&mut rng);
        assert!(agree(&grammar, &prompt), "{prompt:?}");
    }
}

/// Changes a prompt so that it may no longer match the grammar.
fn damage(rng: &mut Rng, prompt: &str) -> String {
    let places: Vec<usize> = prompt.char_indices().map(|(at, _)| at).collect();
    // The parts that define a region are at the start and around line ends: change those more
    // often.
    let ends = prompt.match_indices('\n').map(|(at, _)| at);
    let near: Vec<usize> = ends.collect();
    let at = if rng.one_in(2) {
        *rng.pick(&near)
    } else {
        *rng.pick(&places)
    };
    let (before, after) = prompt.split_at(at);
    let mut without = after.chars();
    without.next();
    let way = rng.below(9);
    let mut pick = |words: &[&'static str]| *rng.pick(words);
    match way {
        0 => format!("{before}{}", without.as_str()),
        1 => format!(
            "{before}{}{after}",
            pick(&["\r", "\n", "\u{2028}", " ", ">"])
        ),
        2 => prompt.replace('\n', "\r\n"),
        3 => format!("{}{prompt}", pick(&["\n", " ", "So: ", "\u{feff}"])),
        4 => before.to_owned(),
        5 => prompt.replacen("上下文资料", pick(&["上下文", "Context", "参考资料"]), 1),
        6 => prompt.replacen("\n\n", "\n", 1),
        7 => prompt.replacen("> - ", pick(&["> -", "- ", "> * ", "> - \n> - "]), 1),
        _ => prompt.replacen("> \n", pick(&[">\n", "> \n> \n", ">  \n", "\n"]), 1),
    }
}

#[test]
fn a_text_that_only_looks_like_a_region_is_left_alone() {
    let (grammar, mut rng) = (grammar(), Rng::new(8));
    let (mut left_alone, mut still) = (0, 0);
    while left_alone < ROUNDS {
        let prompt = prompt(&mut rng);
        if agree(&grammar, &damage(&mut rng, &prompt)) {
            still += 1;
        } else {
            left_alone += 1;
        }
    }
    assert!(
        still > ROUNDS / 20,
        "{still}: damage hardly ever breaks a region"
    );
}

#[test]
fn the_reader_and_the_grammar_agree_on_every_row_of_up_to_four_parts() {
    let parts = [
        "> \n", "> - ", "> - a\n", "\n", "a", "\r", "\u{2029}", ">", " ", HEADER,
    ];
    let grammar = grammar();
    let (mut rows, mut regions) = (vec![HEADER.to_owned()], 0);
    for _ in 0..4 {
        let longer = rows
            .iter()
            .flat_map(|row| parts.map(|part| [row, part].concat()));
        rows = longer.collect();
        regions += rows.iter().filter(|row| agree(&grammar, row)).count();
    }
    assert!(regions > 100, "{regions}");
}

#[test]
fn the_field_of_the_entry_names_kinds_and_paths() {
    let contexts = r#"[{"type":"FileReference","path":"a.rs","fullPath":"/p/a.rs","displayType":"TAG"},{"type":"ImageReference","extra":1}]"#;
    let line = format!(
        r#"{{"type":"user","message":{{"role":"user","content":"Hi."}},"contexts":{contexts}}}"#
    );
    let entry = Entry::parse(&line).unwrap();
    let Body::User(user) = entry.body() else {
        panic!("no user line");
    };
    let [file, image] = user.contexts().unwrap().try_into().unwrap();
    assert_eq!(file.type_name().as_deref(), Some("FileReference"));
    assert_eq!(file.path().as_deref(), Some("a.rs"));
    assert_eq!(file.full_path().as_deref(), Some("/p/a.rs"));
    assert_eq!(file.display_type().as_deref(), Some("TAG"));
    assert_eq!(image.path(), None);
    let written = [file.object().text(), image.object().text()].join(",");
    assert_eq!(format!("[{written}]"), contexts);
}
