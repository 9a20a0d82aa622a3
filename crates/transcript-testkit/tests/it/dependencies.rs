//! Reading and printing a session needs no runtime, no file watcher and no error type of applications.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::process::Command;

use serde_json::{Value, json};

const GUARDED_CRATES: [&str; 10] = [
    "transcript-format",
    "transcript-storage",
    "transcript-messages",
    "transcript-reader",
    "transcript-redact",
    "transcript-resume",
    "transcript-render",
    "transcript-verify",
    "transcript-catalog",
    "transcript-import",
];
const FORBIDDEN_CRATES: [&str; 3] = ["tokio", "notify", "anyhow"];

/// Returns the answer of `cargo metadata` about this workspace, with all features of the guarded crates, for the machine that
/// the test runs on: other platforms, and features of other crates, may need packages that have not been fetched.
fn metadata() -> Value {
    let members = cargo_metadata(&["--no-deps"]);
    let packages = members["packages"].as_array().expect("a list of packages");
    let mut features = Vec::new();
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        if GUARDED_CRATES.contains(&name) {
            let of_package = package["features"].as_object().expect("a table");
            features.extend(of_package.keys().map(|feature| format!("{name}/{feature}")));
        }
    }
    cargo_metadata(&[
        "--filter-platform",
        &host(),
        "--features",
        &features.join(","),
    ])
}

fn cargo_metadata(arguments: &[&str]) -> Value {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {complaint}");
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

fn host() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc runs");
    let text = String::from_utf8(output.stdout).expect("rustc writes text");
    let host = text
        .split('\n')
        .find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_owned()
}

/// The packages that a build of `root` links, by name, each with the chain of names that leads
/// there. Dependencies of tests and build scripts are not among them.
fn linked(metadata: &Value, root: &str) -> BTreeMap<String, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, String> = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let (first, _) = names
        .iter()
        .find(|(_, name)| *name == root)
        .unwrap_or_else(|| panic!("the workspace has no package {root}"));

    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![(first.clone(), root.to_owned())];
    while let Some((id, chain)) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        for dependency in list(&nodes[&id]["deps"]) {
            let is_normal = list(&dependency["dep_kinds"])
                .iter()
                .any(|kind| kind["kind"].is_null());
            if is_normal {
                let id = text(&dependency["pkg"]);
                open.push((id.clone(), format!("{chain} -> {}", names[&id])));
            }
        }
        found.insert(names[&id].clone(), chain);
    }
    found
}

/// The chains that lead from `root` to what is to be kept out.
fn offences(metadata: &Value, root: &str) -> Vec<String> {
    let linked = linked(metadata, root);
    FORBIDDEN_CRATES
        .iter()
        .filter_map(|name| linked.get(*name).cloned())
        .collect()
}

/// A file for other programs appears complete or not at all, also when the process is killed; `NewFile` guarantees that.
#[test]
fn only_storage_makes_temporary_files() {
    let members = cargo_metadata(&["--no-deps"]);
    let packages = members["packages"].as_array().expect("a list of packages");
    let of_builds = packages.iter().filter(|package| {
        let dependencies = package["dependencies"].as_array().expect("a list");
        dependencies
            .iter()
            .any(|other| other["name"] == "tempfile" && other["kind"].is_null())
    });
    let names: BTreeSet<&str> = of_builds
        .filter_map(|package| package["name"].as_str())
        .collect();
    // The testkit is not part of a release.
    let expected = BTreeSet::from(["transcript-storage", "transcript-testkit"]);
    assert_eq!(names, expected);
}

#[test]
fn guarded_crates_link_no_tokio_no_notify_and_no_anyhow() {
    let metadata = metadata();
    for root in GUARDED_CRATES {
        assert_eq!(offences(&metadata, root), [""; 0], "{root}");
    }
    // The graph was read: what is known to be linked is found, also at a distance.
    let linked = linked(&metadata, "transcript-resume");
    for name in [
        "transcript-format",
        "transcript-storage",
        "transcript-messages",
        "transcript-reader",
        "memchr",
        "serde_json",
        "itoa",
    ] {
        assert!(linked.contains_key(name), "{name} not in {linked:?}");
    }
}

#[test]
fn without_async_fronts_and_server_nothing_links_tokio() {
    let metadata = cargo_metadata(&["--filter-platform", &host(), "--no-default-features"]);
    for root in [
        "transcript-writer",
        "transcript-tail",
        "transcript-engine",
        "transcript-browse",
        "transcript-cli",
        "transcript-python",
        "transcript-node",
    ] {
        let linked = linked(&metadata, root);
        for name in ["tokio", "tokio-util"] {
            assert_eq!(linked.get(name), None, "{root}");
        }
        assert!(linked.contains_key("transcript-format"), "{root}");
    }
}

/// The crates of this workspace on which each crate may depend (docs/architecture.md).
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 26] = [
    ("transcript-format", &[]),
    ("transcript-storage", &[]),
    (
        "transcript-reader",
        &["transcript-format", "transcript-storage"],
    ),
    ("transcript-messages", &["transcript-format"]),
    (
        "transcript-resume",
        &[
            "transcript-format",
            "transcript-messages",
            "transcript-reader",
        ],
    ),
    (
        "transcript-writer",
        &["transcript-format", "transcript-storage"],
    ),
    (
        "transcript-render",
        &[
            "transcript-format",
            "transcript-messages",
            "transcript-reader",
            "transcript-resume",
        ],
    ),
    (
        "transcript-tail",
        &[
            "transcript-format",
            "transcript-storage",
            "transcript-reader",
            "transcript-resume",
        ],
    ),
    ("transcript-redact", &["transcript-storage"]),
    (
        "transcript-verify",
        &[
            "transcript-format",
            "transcript-storage",
            "transcript-messages",
            "transcript-reader",
            "transcript-redact",
            "transcript-resume",
        ],
    ),
    (
        "transcript-catalog",
        &[
            "transcript-format",
            "transcript-storage",
            "transcript-messages",
            "transcript-reader",
            "transcript-resume",
        ],
    ),
    ("transcript-archive", &["transcript-storage"]),
    ("transcript-objects", &["transcript-storage"]),
    (
        "transcript-import",
        &["transcript-format", "transcript-storage"],
    ),
    (
        "transcript-session",
        &[
            "transcript-format",
            "transcript-messages",
            "transcript-reader",
            "transcript-resume",
            "transcript-storage",
            "transcript-tail",
            "transcript-catalog",
            "transcript-writer",
        ],
    ),
    (
        "transcript-manage",
        &[
            "transcript-archive",
            "transcript-format",
            "transcript-reader",
            "transcript-redact",
            "transcript-resume",
            "transcript-session",
            "transcript-storage",
            "transcript-verify",
        ],
    ),
    (
        "transcript-ops",
        &[
            "transcript-archive",
            "transcript-catalog",
            "transcript-format",
            "transcript-import",
            "transcript-manage",
            "transcript-messages",
            "transcript-objects",
            "transcript-page",
            "transcript-reader",
            "transcript-redact",
            "transcript-render",
            "transcript-resume",
            "transcript-session",
            "transcript-storage",
            "transcript-tail",
            "transcript-verify",
            "transcript-writer",
        ],
    ),
    (
        "transcript-engine",
        &[
            "transcript-catalog",
            "transcript-manage",
            "transcript-ops",
            "transcript-session",
        ],
    ),
    (
        "transcript-browse",
        &[
            "transcript-engine",
            "transcript-format",
            "transcript-ops",
            "transcript-reader",
            "transcript-render",
            "transcript-resume",
            "transcript-storage",
        ],
    ),
    (
        "transcript-page",
        &[
            "transcript-format",
            "transcript-reader",
            "transcript-render",
        ],
    ),
    (
        "transcript-serve",
        &[
            "transcript-catalog",
            "transcript-format",
            "transcript-ops",
            "transcript-page",
            "transcript-reader",
            "transcript-render",
            "transcript-resume",
            "transcript-storage",
        ],
    ),
    (
        "transcript-cli",
        &[
            "transcript-browse",
            "transcript-engine",
            "transcript-format",
            "transcript-messages",
            "transcript-ops",
            "transcript-page",
            "transcript-reader",
            "transcript-render",
            "transcript-resume",
            "transcript-serve",
            "transcript-storage",
            "transcript-tail",
            "transcript-writer",
        ],
    ),
    (
        "transcript-bindings",
        &[
            "transcript-engine",
            "transcript-format",
            "transcript-messages",
            "transcript-ops",
            "transcript-reader",
            "transcript-storage",
            "transcript-writer",
        ],
    ),
    ("transcript-python", &["transcript-bindings"]),
    ("transcript-node", &["transcript-bindings"]),
    (
        "transcript-testkit",
        &["transcript-format", "transcript-storage"],
    ),
];

/// The crates of this workspace that a package depends on against [`ALLOWED_DEPENDENCIES`], except in tests.
fn wrong_directions(packages: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    for package in list(packages) {
        let name = package["name"].as_str().unwrap_or_default();
        let allowed = ALLOWED_DEPENDENCIES.iter().find(|(of, _)| *of == name);
        for dependency in list(&package["dependencies"]) {
            let to = dependency["name"].as_str().unwrap_or_default();
            let is_ours = to.starts_with("transcript-");
            let is_allowed = allowed.is_some_and(|(_, allowed)| allowed.contains(&to));
            if is_ours && dependency["kind"] != "dev" && !is_allowed {
                wrong.push(format!("{name} -> {to}"));
            }
        }
        if allowed.is_none() {
            wrong.push(format!("{name} has no place in the list of directions"));
        }
    }
    wrong
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let members = cargo_metadata(&["--no-deps"]);
    assert_eq!(wrong_directions(&members["packages"]), [""; 0]);
    let backward = json!([
        {"name": "transcript-format", "dependencies": [
            {"name": "transcript-reader", "kind": null},
            {"name": "transcript-testkit", "kind": "dev"},
            {"name": "memchr", "kind": null},
        ]},
        {"name": "transcript-new", "dependencies": []},
    ]);
    assert_eq!(
        wrong_directions(&backward),
        [
            "transcript-format -> transcript-reader",
            "transcript-new has no place in the list of directions",
        ]
    );
}

/// A graph of packages that have their names for ids: `(package, kind, dependency)`.
fn graph(edges: &[(&str, Option<&str>, &str)]) -> Value {
    let names: BTreeSet<&str> = edges.iter().flat_map(|edge| [edge.0, edge.2]).collect();
    let packages: Vec<Value> = names
        .iter()
        .map(|name| json!({"id": name, "name": name}))
        .collect();
    let deps = |name: &str| -> Vec<Value> {
        let of_name = edges.iter().filter(|edge| edge.0 == name);
        of_name
            .map(|(_, kind, to)| json!({"pkg": to, "dep_kinds": [{"kind": kind, "target": null}]}))
            .collect()
    };
    let nodes: Vec<Value> = names
        .iter()
        .map(|name| json!({"id": name, "deps": deps(name)}))
        .collect();
    json!({"packages": packages, "resolve": {"nodes": nodes}})
}

#[test]
fn a_runtime_after_another_package_is_found_and_one_for_tests_is_not() {
    let behind = graph(&[
        ("transcript-reader", None, "innocent"),
        ("innocent", None, "tokio"),
        ("tokio", None, "innocent"),
        ("transcript-reader", Some("build"), "anyhow"),
    ]);
    assert_eq!(
        offences(&behind, "transcript-reader"),
        ["transcript-reader -> innocent -> tokio"]
    );
    let for_tests = graph(&[
        ("transcript-reader", None, "innocent"),
        ("transcript-reader", Some("dev"), "tokio"),
        ("innocent", Some("dev"), "notify"),
    ]);
    assert_eq!(offences(&for_tests, "transcript-reader"), [""; 0]);
}

#[test]
fn the_guard_sees_anyhow_where_it_is_allowed() {
    let offences = offences(&metadata(), "transcript-cli");
    let anyhow = "transcript-cli -> anyhow".to_owned();
    assert!(offences.contains(&anyhow), "{offences:?}");
}
