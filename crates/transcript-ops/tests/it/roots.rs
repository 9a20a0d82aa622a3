//! Operations on several roots.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_ops::{Call, Failure, Stop};

use crate::helpers::{Kept, make_store, run};

const BOTH: &str = "5e55a1d0-0000-4000-8000-000000000001";
const TORN: &str = "5e55a1d0-0000-4000-8000-000000000002";
const OTHER: &str = "5e55a1d0-0000-4000-8000-000000000003";

/// Two roots: both have the sessions [`BOTH`] and [`TORN`], the second one has [`OTHER`] as well.
fn two() -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let roots = ["one", "two"].map(|name| folder.path().join(name));
    for root in &roots {
        make_store(&root.join("-work-app"), BOTH, TORN);
    }
    make_store(&roots[1].join("-work-other"), OTHER, TORN);
    std::fs::remove_file(roots[1].join("-work-other").join(format!("{TORN}.jsonl"))).unwrap();
    (folder, roots)
}

fn call(function: &str, root: &Value, options: &Value) -> Result<Vec<Value>, Failure> {
    let mut given = options.clone();
    given["function"] = json!(function);
    given["root"] = root.clone();
    let call = Call::parse(&given.to_string())?;
    let context = call.place.context()?.cache_folder(None);
    let mut kept = Kept::default();
    match run(&call.operation, &context, &mut kept) {
        Err(Stop::Failed(failure)) => Err(failure),
        _ => Ok(kept.0.into_iter().flatten().collect()),
    }
}

fn name(path: &Path) -> Value {
    json!(path.display().to_string())
}

#[test]
fn a_root_may_be_one_or_a_list_and_several_are_told_apart() {
    let (_folder, roots) = two();
    let (one, both) = (json!(roots[0]), json!(roots));
    for root in [&one, &json!([roots[0]]), &json!([roots[0], roots[0]])] {
        let rows = call("list", root, &json!({})).unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row["root"].is_null()), "{rows:?}");
    }
    let rows = call("list", &both, &json!({})).unwrap();
    let of = |root: &Path| rows.iter().filter(|row| row["root"] == name(root)).count();
    assert_eq!((of(&roots[0]), of(&roots[1])), (2, 3), "{rows:?}");

    let hits = call("search", &both, &json!({ "query": "mat", "cache": false })).unwrap();
    let hits = hits.iter().filter(|hit| hit["kind"] == "hit");
    assert!(hits.clone().count() > 0);
    for hit in hits {
        let path = Path::new(hit["path"].as_str().unwrap());
        let root = roots.iter().find(|root| path.starts_with(root)).unwrap();
        assert_eq!(hit["root"], name(root));
    }
    let rows = call("usage", &both, &json!({ "by": ["root"], "cache": false })).unwrap();
    // The sessions are copies: their request counts once.
    let row = rows.iter().find(|row| row["kind"] == "row").unwrap();
    assert_eq!(row["by"]["root"], name(&roots[0]), "{rows:?}");
    assert_eq!(row["requests"], 1);
    assert!(call("list", &json!(3), &json!({})).is_err());
}

#[test]
fn the_functions_of_the_sdks_read_all_roots_and_write_to_that_of_the_session() {
    let (_folder, roots) = two();
    let both = json!(roots);
    let all = call("listSessions", &both, &json!({})).unwrap();
    assert_eq!(all.len(), 5);
    let part = call("listSessions", &both, &json!({ "limit": 2, "offset": 1 })).unwrap();
    assert_eq!(part, all[1..3]);

    let other = json!({ "sessionId": OTHER });
    assert_eq!(call("getSessionInfo", &both, &other).unwrap().len(), 1);
    assert!(call("getSessionMessages", &both, &other).unwrap().len() > 1);
    let title = json!({ "sessionId": OTHER, "title": "Keys" });
    call("renameSession", &both, &title).unwrap();
    let info = call("getSessionInfo", &json!(roots[1]), &other).unwrap();
    assert_eq!(info[0]["customTitle"], "Keys");

    let options = [
        ("getSessionInfo", json!({})),
        ("getSessionMessages", json!({})),
        ("listSubagents", json!({})),
        ("renameSession", json!({ "title": "Keys" })),
        ("tagSession", json!({ "tag": "house" })),
        ("forkSession", json!({})),
        ("deleteSession", json!({})),
    ];
    for (function, mut options) in options {
        options["sessionId"] = json!(BOTH);
        let failure = call(function, &both, &options).unwrap_err();
        assert_eq!(failure.kind, "ambiguous", "{function}: {failure}");
        options["sessionId"] = json!("00000000-0000-4000-8000-000000000009");
        // What no root has is missing, as with one root.
        let missing = call(function, &both, &options).map_err(|failure| failure.kind);
        let with_one = call(function, &json!(roots[0]), &options);
        assert_eq!(
            missing,
            with_one.map_err(|failure| failure.kind),
            "{function}"
        );
    }
}

#[test]
fn an_operation_without_a_session_needs_one_root_if_it_writes() {
    let (_folder, roots) = two();
    let options = json!({ "old": "/work/app", "new": "/work/new", "dryRun": true });
    let failure = call("move", &json!(roots), &options).unwrap_err();
    assert_eq!(failure.named_option(), Some("root"));
    for root in &roots {
        assert!(
            failure.message.contains(&root.display().to_string()),
            "{failure}"
        );
    }
    assert!(call("move", &json!(roots[0]), &options).is_ok());
}
