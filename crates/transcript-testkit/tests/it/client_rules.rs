//! `docs/client-behaviour.md` and the code cite the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const AREAS: [&str; 12] = [
    "FILE", "LEAF", "CHAIN", "COMPACT", "MSG", "NOTE", "TURN", "ERR", "REQ", "META", "LIST", "FORK",
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rules that a text names, such as `LEAF-4`; `LEAF-4 to LEAF-6` names three.
fn named(text: &str) -> BTreeSet<String> {
    let mut found: Vec<(usize, &str, u32)> = Vec::new();
    for area in AREAS {
        for (at, _) in text.match_indices(&format!("{area}-")) {
            let is_start = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
            let rest = &text[at + area.len() + 1..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if let (true, Ok(number)) = (is_start, rest[..digits].parse()) {
                found.push((at, area, number));
            }
        }
    }
    found.sort_unstable();
    let mut rules: BTreeSet<String> = BTreeSet::new();
    for (at, area, number) in &found {
        rules.insert(format!("{area}-{number}"));
        let before = text[..*at].strip_suffix(" to ");
        let first = found
            .iter()
            .rfind(|(place, first, _)| place < at && first == area);
        if let (Some(before), Some((_, _, first))) = (before, first)
            && before.ends_with(&format!("{area}-{first}"))
        {
            rules.extend((*first..*number).map(|number| format!("{area}-{number}")));
        }
    }
    rules
}

/// The rules of the document, and whether each is only background.
pub(crate) fn documented() -> BTreeMap<String, bool> {
    let text = fs::read_to_string(root().join("docs/client-behaviour.md"));
    let text = text.expect("docs/client-behaviour.md is there");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let rules = rows.filter_map(|row| {
        let (id, rule) = row.split_once(" | ")?;
        let is_rule = named(id).contains(id);
        is_rule.then(|| (id.to_owned(), rule.contains("(Background)")))
    });
    let mut all = BTreeMap::new();
    for (id, is_background) in rules {
        assert!(
            all.insert(id.clone(), is_background).is_none(),
            "{id} twice"
        );
    }
    all
}

/// The rules that the code cites, each with a file that does.
fn cited() -> BTreeMap<String, PathBuf> {
    let mut cited = BTreeMap::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("it/client_rules.rs")
            {
                let text = fs::read_to_string(&path).expect("a file in UTF-8");
                for rule in named(&text) {
                    cited.entry(rule).or_insert_with(|| path.clone());
                }
            }
        }
    }
    cited
}

#[test]
fn every_rule_that_the_code_cites_is_documented_and_the_other_way_round() {
    let (documented, cited) = (documented(), cited());
    assert!(documented.len() > 60, "{} rules", documented.len());
    let unknown = cited
        .iter()
        .filter(|(rule, _)| !documented.contains_key(*rule));
    assert_eq!(unknown.collect::<Vec<_>>(), [], "cited and not documented");
    let mut unused = documented
        .iter()
        .filter(|(rule, is_background)| !**is_background && !cited.contains_key(*rule));
    let unused: Vec<_> = unused.by_ref().map(|(rule, _)| rule).collect();
    assert!(
        unused.is_empty(),
        "relied on by no code, and not marked as background: {unused:?}"
    );
}

#[test]
fn nothing_cites_a_place_outside_the_repository() {
    let outside = [
        "facts/",
        "rig.md",
        "rig2.md",
        "corpus.md",
        "pains.md",
        "sdk.md",
    ];
    let mut found = Vec::new();
    let mut open = vec![
        root().join("crates"),
        root().join("docs"),
        root().join("README.md"),
    ];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let is_text = path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "md");
        if !is_text || path.ends_with("it/client_rules.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            if outside.iter().any(|name| line.contains(name)) || names_a_case(line) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether a line names a recorded case, such as "case 41-22", of which the repository has no copy.
fn names_a_case(line: &str) -> bool {
    let is_case = |rest: &str| {
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let bytes = rest.as_bytes();
        bytes.len() > 3
            && bytes[0] == b' '
            && bytes[1].is_ascii_digit()
            && bytes[2].is_ascii_digit()
            && bytes[3] == b'-'
    };
    let places = line.match_indices("case").chain(line.match_indices("Case"));
    places
        .into_iter()
        .any(|(at, word)| is_case(&line[at + word.len()..]))
}

#[test]
fn ranges_and_lists_of_rules_are_read() {
    let rules = |text: &str| named(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(
        rules("(LEAF-4 to LEAF-6, MSG-1)"),
        "LEAF-4 LEAF-5 LEAF-6 MSG-1"
    );
    assert_eq!(rules("PROFILE-4 and TURN-x"), "");
    assert!(names_a_case("as cases 91-70 to 91-72 show") && !names_a_case("in case 2 fails"));
}
