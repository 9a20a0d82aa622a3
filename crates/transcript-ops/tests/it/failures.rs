//! The table of failures, and the exceptions of other languages.

use std::fs;
use std::path::Path;

use transcript_ops::Failure;
use transcript_ops::failure::{CLASSES, FailureClass};

fn read(path: &str) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(workspace.join(path)).unwrap()
}

#[test]
fn each_class_of_failures_is_documented_and_an_exception_in_every_language() {
    let document = read("docs/bindings.md");
    let python = read("bindings/python/python/transcript_engine/_errors.py");
    let node = read("bindings/node/lib/errors.js");
    for (class, kinds) in CLASSES {
        let exception = format!("{class:?}Error");
        let kinds: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let row = format!("| `{exception}` | {} |\n", kinds.join(", "));
        assert!(document.contains(&row), "docs/bindings.md lacks {row}");
        // Twice: the class, and its place in the table by names.
        let count = |file: &str| file.matches(&exception).count();
        assert!(count(&python) >= 2, "{exception}");
        assert!(
            count(&node) >= 2 || class == FailureClass::Forked,
            "{exception}"
        );
    }
}

#[test]
fn a_failure_says_its_class_to_other_languages() {
    let class = |kind| {
        let failure: serde_json::Value =
            serde_json::from_str(&Failure::new(kind, "x").json()).unwrap();
        failure["class"].as_str().map(str::to_owned)
    };
    assert_eq!(class("answered-call").as_deref(), Some("Invalid"));
    assert_eq!(class("fork").as_deref(), Some("Busy"));
    assert_eq!(class("full").as_deref(), Some("Transcript"));
}
