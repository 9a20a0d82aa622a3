//! `docs/fields.md` lists the fields of every view.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use transcript_format::entry;
use transcript_format::schema::View;

const HEAD: &str = "# Fields

The fields that the views of `transcript_format` read, written by a test from the tables in its
source. [format.md](format.md) describes what the lines mean together.

Every view reads its object when an accessor is called. A field that is absent, `null` or of another
type is `None`, and one that is not listed is read through the object itself. The stream form has the
same fields in snake_case.
";

#[test]
fn the_documentation_lists_every_field() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fields.md");
    let mut page = HEAD.to_owned();
    entry::views().for_each(|view| add(&mut page, view));
    if env::var_os("TRANSCRIPT_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let different = page
        .lines()
        .zip(found.lines())
        .find(|(new, old)| new != old);
    assert!(
        page == found,
        "docs/fields.md is not what the tables say ({different:?}); \
         TRANSCRIPT_WRITE_DOCS=1 cargo test -p transcript-format fields writes it"
    );
}

fn add(page: &mut String, view: &View) {
    write!(page, "\n## {}\n\n{}\n", view.name, plain(view.meaning)).unwrap();
    if !view.names.is_empty() {
        writeln!(page, "Named {}.", listed(view.names)).unwrap();
    }
    page.push('\n');
    for field in view.fields {
        let (keys, kind) = (listed(field.keys), json_type(field.type_name));
        writeln!(page, "- {keys} ({kind}): {}", plain(field.meaning)).unwrap();
    }
}

fn listed(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Removes the links of rustdoc, and the space that a comment starts each line with.
fn plain(markdown: &str) -> String {
    let lines: Vec<_> = markdown.lines().map(str::trim).collect();
    lines.join("\n").replace("[`", "`").replace("`]", "`")
}

fn json_type(rust: &str) -> String {
    let rust = rust.replace([' ', '\''], "").replace("<a>", "");
    if let Some(element) = rust.strip_prefix("Vec<") {
        return format!("list of {}", json_type(element.trim_end_matches('>')));
    }
    match &*rust {
        "Str" => "string".into(),
        "bool" => "boolean".into(),
        "u64" | "i64" => "integer".into(),
        "f64" => "number".into(),
        "Object" => "object".into(),
        "Raw" => "any".into(),
        "Content" => "string, blocks or one block".into(),
        "ToolUseResult" => "string, blocks or the result of a tool".into(),
        view => format!("`{view}`"),
    }
}
