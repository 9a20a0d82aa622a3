//! Finding codes are stable and documented.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use transcript_format::finding::Code;

#[test]
fn every_code_and_no_other_is_explained_in_the_document_of_findings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    let document = fs::read_to_string(path).expect("docs/findings.md is part of the repository");
    let headings = document
        .lines()
        .filter_map(|line| line.strip_prefix("### "));
    let explained: BTreeSet<&str> = headings.collect();
    let heading = |code: &Code| {
        let severity = format!("{:?}", code.severity()).to_lowercase();
        format!("`{}` ({severity})", code.as_str())
    };
    let codes: BTreeSet<String> = Code::ALL.iter().map(heading).collect();
    assert_eq!(explained, codes.iter().map(String::as_str).collect());
}

#[test]
fn codes_are_unique() {
    let names: HashSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), Code::ALL.len());
}
