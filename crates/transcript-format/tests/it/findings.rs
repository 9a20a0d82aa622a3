//! Finding codes are stable and documented.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use transcript_format::finding::Code;

#[test]
fn every_code_is_listed_in_the_document_of_the_format() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let document = fs::read_to_string(path).expect("docs/format.md is part of the repository");
    for code in Code::ALL {
        let severity = format!("{:?}", code.severity()).to_lowercase();
        let row = format!("| `{}` | {severity} |", code.as_str());
        assert!(document.contains(&row), "no row `{row}`");
    }
}

#[test]
fn codes_are_unique() {
    let names: HashSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), Code::ALL.len());
}
