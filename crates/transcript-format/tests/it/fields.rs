//! `docs/fields.md` lists the fields of every view, and what lines of each kind are.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use transcript_format::entry;
use transcript_format::kind::{Counts, DisplayForm, EntryKind, KindRow, Link, SearchedContent};
use transcript_format::metadata::Metadata;
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
    add_kinds(&mut page);
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

const KINDS: &str = "
## Kinds of lines

What lines of each kind are to a session, from the table in `kind.rs`. The last row is for all other kinds, known or not.

- chain: whether the lines are entries of the chain, and which ones
- counts: which lines count, so which ones `repair --compact` moves out: all but the first and the last, those that are the same as the line before, or none
- names: the entry before it, a leaf, or entries that do not count any more
- text: the member with the text of the line; with `clears` an empty one removes what earlier lines gave
- title: the source of the session title, where the text is one
- list: whether lists of sessions read the text
- search: what the search finds
- shown: how the conversation shows it

| kind | chain | counts | names | text | title | list | search | shown |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

fn add_kinds(page: &mut String) {
    page.push_str(KINDS);
    let known = EntryKind::ALL.iter().copied();
    let known = known.filter(|kind| *kind.row() != KindRow::UNKNOWN);
    for kind in known.chain([EntryKind::Other]) {
        let row = kind.row();
        let name = match kind {
            EntryKind::Other => "any other".to_owned(),
            kind => format!("`{}`", kind.name()),
        };
        let counts = match row.counts {
            Counts::Each => "each".to_owned(),
            Counts::Last => "last".to_owned(),
            Counts::New(among) if among == kind => "new".to_owned(),
            Counts::New(among) => format!("new, with `{}`", among.name()),
            other => panic!("{other:?} has no words"),
        };
        let text = row.text.map_or("-".to_owned(), |text| format!("`{text}`"));
        let clears = if row.clears { ", clears" } else { "" };
        let title = row
            .title
            .map_or("-".to_owned(), |title| format!("{title:?}").to_lowercase());
        let list = if row.is_listed { "yes" } else { "-" };
        let (place, link) = (row.place.name(), row.link.name());
        let (search, shown) = (row.search.name(), row.shown.name());
        writeln!(
            page,
            "| {name} | {place} | {counts} | {link} | {text}{clears} | {title} | {list} | {search} | {shown} |"
        )
        .unwrap();
    }
}

#[test]
fn text_member_of_a_row_is_a_field_of_the_kind() {
    for kind in EntryKind::ALL {
        let row = kind.row();
        let fields = Metadata::fields_of(*kind).unwrap_or_default();
        let has = |name: &str| fields.iter().any(|field| field.keys.contains(&name));
        assert!(row.text.is_none_or(has), "{kind:?}");
        assert!(row.link != Link::Leaf || has("leafUuid"), "{kind:?}");
        let reads_text = row.clears
            || row.is_listed
            || row.title.is_some()
            || matches!(
                row.search,
                SearchedContent::Title | SearchedContent::Summary | SearchedContent::Queued
            );
        assert!(!reads_text || row.text.is_some(), "{kind:?}");
        // Entries of the tree are shown, and are linked by their parents.
        assert_eq!(
            row.shown != DisplayForm::Nowhere,
            kind.is_chain(),
            "{kind:?}"
        );
        assert!(!kind.is_chain() || row.link == Link::Parent, "{kind:?}");
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
