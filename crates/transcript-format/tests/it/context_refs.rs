//! Regions of references before the text of a prompt, checked against a regular expression.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

use std::collections::HashSet;

use regex_lite::Regex;
use transcript_format::context_refs::{
    InvalidRegion, Reference, ReferenceKind, Region, prompt as written,
};
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

fn number(rng: &mut Rng) -> u64 {
    *rng.pick(&[0, 1, 45, 1_000, u64::MAX])
}

/// The parts of a reference, owned so that references can borrow them.
struct Words([String; 3]);

impl Words {
    fn new(rng: &mut Rng) -> Self {
        Self([word(rng), word(rng), word(rng)])
    }

    fn reference(&self, rng: &mut Rng) -> Reference<'_> {
        let [one, two, three] = &self.0;
        match rng.below(10) {
            0 => Reference::File { path: one },
            1 => Reference::Web {
                url: one,
                title: rng.one_in(2).then_some(two),
            },
            2 => Reference::Folder {
                path: one,
                files: number(rng),
            },
            3 => Reference::Symbol {
                name: one,
                kind: two,
                file: three,
                line: number(rng),
            },
            4 => Reference::Terminal {
                lines: number(rng),
                is_error: rng.one_in(2),
            },
            5 => Reference::Problems {
                count: number(rng),
                severity: rng.one_in(2).then_some(one),
            },
            6 => Reference::Git { what: one },
            7 => Reference::Selection,
            8 => Reference::Workspace,
            _ => Reference::Other(one),
        }
    }
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
    let lines: Vec<String> = region.references().map(|line| line.to_string()).collect();
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
fn a_text_that_only_looks_like_a_region_is_unchanged() {
    let (grammar, mut rng) = (grammar(), Rng::new(8));
    let (mut unchanged, mut still) = (0, 0);
    while unchanged < ROUNDS {
        let prompt = prompt(&mut rng);
        if agree(&grammar, &damage(&mut rng, &prompt)) {
            still += 1;
        } else {
            unchanged += 1;
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

/// Parses a region with one reference, and checks that it displays as the same text.
fn check(item: &str, expected: Reference<'_>) {
    let prompt = format!("{HEADER}> - {item}\n\nWhy?");
    let (region, text) = Region::split(&prompt).unwrap();
    assert!(region.references().eq([expected]), "{item}");
    assert_eq!(text, "Why?");
    assert_eq!(expected.to_string(), item);
}

#[test]
fn each_kind_has_its_form() {
    let (url, path) = ("https://e.org", "a b.rs");
    let web = |title| Reference::Web { url, title };
    let symbol = Reference::Symbol {
        name: "C.f()",
        kind: "FUNCTION",
        file: "src/c.kt",
        line: 45,
    };
    let terminal = |is_error| Reference::Terminal {
        lines: 50,
        is_error,
    };
    let problems = |severity| Reference::Problems { count: 3, severity };
    let items = [
        ("📄 `a b.rs`", Reference::File { path }),
        ("🌐 https://e.org", web(None)),
        ("🌐 https://e.org (A page (old))", web(Some("A page (old)"))),
        (
            "📁 `a b.rs` (15个文件)",
            Reference::Folder { path, files: 15 },
        ),
        ("🔗 `C.f()` (FUNCTION) - src/c.kt:45", symbol),
        ("💻 终端输出 (50行)", terminal(false)),
        ("💻 终端输出 (50行) ⚠️", terminal(true)),
        ("⚠️ 问题报告 (3个)", problems(None)),
        ("⚠️ 问题报告 (3个) [ERROR]", problems(Some("ERROR"))),
        ("🔀 Git DIFF", Reference::Git { what: "DIFF" }),
        ("✏️ 当前选择内容", Reference::Selection),
        ("🏠 当前工作区", Reference::Workspace),
    ];
    for (item, expected) in items {
        check(item, expected);
        assert!(item.starts_with(expected.kind().unwrap().mark()));
        let prompt = format!("{HEADER}> \n> - {item}\n\nWhy?");
        assert_eq!(written(&[expected], "Why?"), Ok(prompt));
    }
    let kinds: HashSet<_> = items.iter().filter_map(|(_, item)| item.kind()).collect();
    assert_eq!(kinds.len(), ReferenceKind::ALL.len());
}

#[test]
fn a_reference_of_another_kind_or_form_is_kept_as_it_is() {
    let items = [
        "🖼 `a.png` (12KB)",
        "📄 a.rs",
        "📄`a.rs`",
        "📁 `src` (015个文件)",
        "📁 `src` (many个文件)",
        "🔗 `f` (FUNCTION) - c.kt:+45",
        "💻 终端输出 (50行)!",
        "⚠️ 问题报告 (3个)[ERROR]",
        "⚠ 问题报告 (3个)",
        "🏠 当前工作区 ",
        "✏️",
        " ",
    ];
    for item in items {
        check(item, Reference::Other(item));
        assert_eq!(Reference::Other(item).kind(), None);
    }
}

#[test]
fn a_reference_that_would_be_read_as_another_one_is_not_written() {
    assert_eq!(written(&[], "Why?"), Err(InvalidRegion::Empty));
    let invalid = [
        Reference::File { path: "a\nb" },
        Reference::File { path: "a\rb" },
        Reference::Git { what: "\u{2028}" },
        Reference::Git { what: "\u{2029}" },
        Reference::Other(""),
        Reference::Other("📄 `a.rs`"),
        Reference::Web {
            url: "https://e.org (x)",
            title: None,
        },
        Reference::Symbol {
            name: "f` (g",
            kind: "FUNCTION",
            file: "c.kt",
            line: 1,
        },
    ];
    for reference in invalid {
        let references = [Reference::Selection, reference];
        let error = Err(InvalidRegion::Reference(1));
        assert_eq!(written(&references, "Why?"), error, "{reference:?}");
    }
}

#[test]
fn references_survive_a_round_trip() {
    let (grammar, mut rng) = (grammar(), Rng::new(9));
    let (mut read, mut kinds) = (0, HashSet::new());
    for _ in 0..ROUNDS {
        let words: Vec<Words> = (0..rng.range(1, 4)).map(|_| Words::new(&mut rng)).collect();
        let references: Vec<_> = words
            .iter()
            .map(|words| words.reference(&mut rng))
            .collect();
        let text = *rng.pick(&[
            "",
            "Why?",
            "\n\nWhy?\r\n",
            "> **上下文资料**\n> - 📄 `x`\n\n",
        ]);
        let Ok(prompt) = written(&references, text) else {
            continue;
        };
        read += 1;
        kinds.extend(references.iter().filter_map(Reference::kind));
        assert!(agree(&grammar, &prompt), "{prompt:?}");
        let (region, rest) = Region::split(&prompt).unwrap();
        assert!(
            region.references().eq(references.iter().copied()),
            "{references:?}"
        );
        assert_eq!(rest, text);
    }
    assert!(read > ROUNDS / 2, "{read}");
    assert_eq!(kinds.len(), ReferenceKind::ALL.len());
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
    assert_eq!(file.reference_kind(), Some(ReferenceKind::File));
    assert_eq!(file.path().as_deref(), Some("a.rs"));
    assert_eq!(file.full_path().as_deref(), Some("/p/a.rs"));
    assert_eq!(file.display_type().as_deref(), Some("TAG"));
    assert_eq!((image.reference_kind(), image.path()), (None, None));
    let written = [file.object().text(), image.object().text()].join(",");
    assert_eq!(format!("[{written}]"), contexts);
}
