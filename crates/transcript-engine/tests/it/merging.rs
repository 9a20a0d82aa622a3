//! Two copies of one session become one.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_engine::{ErrorKind, History, Merged, Policy, merge};
use transcript_testkit::generate::tidy_session;
use transcript_testkit::rng::Rng;

use crate::support::POLICIES;

const ID: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8293";

struct Copies {
    folder: TempDir,
    a: PathBuf,
    b: PathBuf,
}

impl Copies {
    fn new(a: &[u8], b: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).join(format!("{ID}.jsonl"));
        let (path_a, path_b) = (path("a"), path("b"));
        for (path, bytes) in [(&path_a, a), (&path_b, b)] {
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self {
            a: path_a,
            b: path_b,
            folder,
        }
    }

    fn out(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder.join(format!("{ID}.jsonl"))
    }

    fn merge(&self, name: &str) -> Merged {
        merge(&self.a, &self.b, &self.out(name)).unwrap()
    }
}

fn line(uuid: &str, parent: Option<&str>, minute: u32) -> String {
    let line = json!({"parentUuid": parent, "type": "user", "uuid": uuid, "sessionId": ID,
        "isSidechain": false, "timestamp": format!("2026-01-01T00:{minute:02}:00.000Z"),
        "message": {"role": "user", "content": format!("say {uuid}")}});
    format!("{line}\n")
}

fn uuids(path: &Path) -> BTreeSet<String> {
    let bytes = fs::read(path).unwrap();
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines
        .filter_map(|line| Some(line["uuid"].as_str()?.to_owned()))
        .collect()
}

/// The uuid of the leaf.
fn leaf(path: &Path, policy: Policy) -> Option<String> {
    let history = History::open(path).unwrap();
    let index = history.index();
    let leaf = history.tree(policy).path().leaf?;
    Some(index.id_text(index.entry(leaf).uuid()?))
}

#[test]
fn both_branches_are_kept_and_the_newer_one_goes_on() {
    let common = [line("u1", None, 1), line("u2", Some("u1"), 2)].concat();
    let early = line("early", Some("u2"), 3);
    let late = line("late", Some("u2"), 9);
    for (own_a, own_b) in [(&early, &late), (&late, &early)] {
        // The pin of the older branch must not hold.
        let pin =
            format!("{{\"type\":\"last-prompt\",\"leafUuid\":\"early\",\"sessionId\":\"{ID}\"}}\n");
        let with_pin =
            |own: &String| format!("{common}{own}{}", if *own == early { &*pin } else { "" });
        let copies = Copies::new(with_pin(own_a).as_bytes(), with_pin(own_b).as_bytes());
        let merged = copies.merge("out");
        assert_eq!(
            (merged.entries, merged.both, merged.from_a + merged.from_b),
            (5, 2, 3)
        );
        for policy in POLICIES {
            assert_eq!(
                leaf(&merged.out, policy).as_deref(),
                Some("late"),
                "{policy:?}"
            );
        }
        assert_eq!(merged.leaf.as_deref(), Some("late"));
        let text = fs::read_to_string(&merged.out).unwrap();
        assert!(text.find(&*early) < text.find(&*late));
    }
}

/// Changes by newer clients and other writers around an entry, and within its message.
#[test]
fn an_entry_is_the_same_in_every_form_of_its_time_its_text_and_its_counts() {
    let entry = json!({"parentUuid": null, "type": "assistant", "uuid": "u1", "sessionId": ID, "isSidechain": false,
        "timestamp": "2026-01-01T00:01:00.000Z", "message": {"role": "assistant", "id": "m1", "model": "m",
            "content": "said", "usage": {"input_tokens": 1, "output_tokens": 2}}});
    let changed = |pointer: &str, key: &str, value: Value| {
        let mut entry = entry.clone();
        entry.pointer_mut(pointer).unwrap()[key] = value;
        entry
    };
    let same = [
        changed("", "timestamp", json!("2026-01-01T01:01:00+01:00")),
        changed("", "newKey", json!({"a": 1})),
        changed(
            "/message",
            "content",
            json!([{"type": "text", "text": "said"}]),
        ),
        changed("/message", "context_management", json!({"edits": []})),
        changed("/message/usage", "iterations", json!([])),
    ];
    let others = [
        changed("", "timestamp", json!("2026-01-01T00:01:00.001Z")),
        changed(
            "/message",
            "content",
            json!([{"type": "text", "text": "other"}]),
        ),
        changed("/message", "id", json!("m2")),
        changed("/message/usage", "output_tokens", json!(3)),
    ];
    let conflicts = |other: &Value| {
        // Both files have entries of their own, else they are not compared.
        let [a, b] = [(&entry, "a"), (other, "b")]
            .map(|(entry, own)| format!("{entry}\n{}", line(own, Some("u1"), 2)));
        let merged = Copies::new(a.as_bytes(), b.as_bytes()).merge("out");
        assert_eq!(merged.both + merged.conflicts.len() as u64, 1, "{other}");
        merged.conflicts.len()
    };
    for other in same {
        assert_eq!(conflicts(&other), 0, "{other}");
    }
    for other in others {
        assert_eq!(conflicts(&other), 1, "{other}");
    }
}

#[test]
fn an_entry_that_differs_is_kept_twice_and_reported() {
    let (first, other) = (line("u1", None, 1), line("u1", None, 2));
    let copies = Copies::new(first.as_bytes(), other.as_bytes());
    let merged = copies.merge("out");
    let [conflict] = &merged.conflicts[..] else {
        panic!("{merged:?}")
    };
    assert_eq!(
        (&*conflict.uuid, conflict.line_a, conflict.line_b),
        ("u1", 1, 1)
    );
    let text = fs::read_to_string(&merged.out).unwrap();
    assert!(text.contains(&first) && text.contains(&other));
}

#[test]
fn an_entry_that_is_written_differently_is_there_once() {
    let lines = [line("u1", None, 1), line("u2", Some("u1"), 2)];
    let parsed = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    // Of another folder, with spaces, with keys in another order, with a key of a newer client; and an empty parent.
    let rewritten = |change: &dyn Fn(&mut Value)| {
        let lines = lines.iter().map(|line| {
            let mut line = parsed(line);
            change(&mut line);
            line
        });
        lines.collect::<Vec<_>>()
    };
    let plain = |lines: Vec<Value>| {
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let reversed = |lines: Vec<Value>| {
        let reverse = |line: &Value| {
            let members = line.as_object().unwrap().iter().rev();
            let members: Vec<_> = members
                .map(|(key, value)| format!("{key:?} : {value}"))
                .collect();
            format!("{{ {} }}\n", members.join(" , "))
        };
        lines.iter().map(reverse).collect::<String>()
    };
    let moved = plain(rewritten(&|line| line["cwd"] = json!("/elsewhere")));
    let newer = plain(rewritten(&|line| {
        line["ownNote"] = json!(true);
        line["version"] = json!("9");
    }));
    let empty = plain(rewritten(&|line| {
        if line["parentUuid"].is_null() {
            line["parentUuid"] = json!("");
        }
    }));
    let own = [line("a1", Some("u2"), 3), line("b1", Some("u2"), 4)];
    for other in [moved, newer.clone(), empty, reversed(rewritten(&|_| ()))] {
        let [a, b] = [
            format!("{}{}", lines.concat(), own[0]),
            format!("{other}{}", own[1]),
        ];
        for (a, b) in [(&a, &b), (&b, &a)] {
            let copies = Copies::new(a.as_bytes(), b.as_bytes());
            let merged = copies.merge("out");
            assert_eq!((merged.entries, merged.both), (4, 2), "{other}");
            assert_eq!(merged.conflicts, [], "{other}");
            let text = fs::read_to_string(&merged.out).unwrap();
            assert_eq!(text.matches("say u1").count(), 1, "{text}");
            // A line with more keys says more.
            assert!(other != newer || text.contains("ownNote"), "{text}");
        }
    }
    // Another text for the model makes another entry.
    let [a, b] = [
        format!("{}{}", lines.concat(), own[0]),
        format!(
            "{}{}",
            plain(rewritten(&|line| {
                line["message"]["content"] = json!("say something else");
            })),
            own[1]
        ),
    ];
    let merged = Copies::new(a.as_bytes(), b.as_bytes()).merge("out");
    assert_eq!((merged.both, merged.conflicts.len()), (0, 2));
}

#[test]
fn damaged_bytes_of_both_are_kept_and_reported() {
    let (u1, u2, u3) = (
        line("u1", None, 1),
        line("u2", Some("u1"), 2),
        line("u3", Some("u1"), 3),
    );
    let a = format!("{u1}{u2}{{\"type\":\"user\",\"uu");
    let b = [u1.as_bytes(), b"\xff\0garbage\n", u3.as_bytes()].concat();
    let copies = Copies::new(a.as_bytes(), &b);
    let merged = copies.merge("out");
    assert!(
        merged.findings[0] > 0 && merged.findings[1] > 0,
        "{merged:?}"
    );
    let bytes = fs::read(&merged.out).unwrap();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(b"{\"type\":\"user\",\"uu\n") && has(b"\xff\0garbage\n"));
    assert_eq!(uuids(&merged.out).len(), 3);
}

#[test]
fn side_files_are_merged_and_differing_ones_refused() {
    let u1 = line("u1", None, 1);
    let copies = Copies::new(u1.as_bytes(), u1.as_bytes());
    let write = |session: &Path, name: &str, text: &str| {
        let path = session.with_extension("").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(&copies.a, "subagents/agent-a.jsonl", "{}\n");
    write(&copies.b, "subagents/agent-a.jsonl", "{}\n{}\n");
    write(&copies.b, "tool-results/b.txt", "b");
    let merged = copies.merge("out");
    let own = merged.out.with_extension("");
    assert_eq!(
        fs::read(own.join("subagents/agent-a.jsonl")).unwrap(),
        b"{}\n{}\n"
    );
    assert_eq!(fs::read(own.join("tool-results/b.txt")).unwrap(), b"b");

    write(&copies.a, "tool-results/b.txt", "a");
    let out = copies.out("refused");
    let error = merge(&copies.a, &copies.b, &out).unwrap_err();
    assert_eq!(
        (error.kind(), error.candidates().len()),
        (ErrorKind::SideFiles, 2)
    );
    assert!(!out.exists() && !out.with_extension("").exists());
    let error = merge(&copies.a, &copies.b, &merged.out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let other = line("x1", None, 1).replace(ID, "2999463e-ee08-4b08-99d5-2d9a36fd8293");
    let strangers = Copies::new(u1.as_bytes(), other.as_bytes());
    let renamed = strangers
        .b
        .with_file_name("2999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    fs::rename(&strangers.b, &renamed).unwrap();
    let error = merge(&strangers.a, &renamed, &strangers.out("out")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherSession);
}

/// The faults of a merged file: lines of a copy that it has not or too often, the end of the older
/// copy, an end that nothing leads to.
fn faults(copies: &Copies, merged: &Path, newer: &Path, ends: [&str; 2]) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let bytes = |path: &Path| fs::read(path).unwrap();
    let (a, b, all) = (bytes(&copies.a), bytes(&copies.b), bytes(merged));
    let count = |bytes: &[u8], line: &[u8]| {
        let lines = bytes.split(|byte| *byte == b'\n');
        lines.filter(|other| *other == line).count()
    };
    for line in a
        .split(|byte| *byte == b'\n')
        .chain(b.split(|byte| *byte == b'\n'))
    {
        let most = count(&a, line).max(count(&b, line));
        match count(&all, line).cmp(&most) {
            _ if line.is_empty() => {}
            Ordering::Less => faults.push("a line is missing"),
            Ordering::Greater => faults.push("a line is there too often"),
            Ordering::Equal => {}
        }
    }
    let history = History::open(merged).unwrap();
    for policy in POLICIES {
        if leaf(merged, policy) != leaf(newer, policy) {
            faults.push("another end");
        }
        let tree = history.tree(policy);
        let reaches = |end: &&str| {
            let node = history
                .index()
                .id(end)
                .and_then(|id| tree.node_with_uuid(id));
            node.is_some_and(|node| tree.path_to_leaf(node).leaf == Some(tree.entry(node).number()))
        };
        if !ends.iter().all(reaches) {
            faults.push("a branch is missing");
        }
    }
    faults.sort_unstable();
    faults.dedup();
    faults
}

/// Merging as people do it: one file after the other, and by line, of which the later one counts.
#[test]
fn naive_merges_are_distinguished_from_ours() {
    let mut common = line("u1", None, 1) + &line("u2", Some("u1"), 2);
    common += &format!("{{\"type\":\"ai-title\",\"aiTitle\":\"t\",\"sessionId\":\"{ID}\"}}\n");
    let (older, newer) = (line("older", Some("u2"), 3), line("newer", Some("u2"), 9));
    let copies = Copies::new(
        (common.clone() + &newer).as_bytes(),
        (common + &older).as_bytes(),
    );
    let faults_of = |name: &str, bytes: Vec<u8>| {
        let out = copies.out(name);
        fs::write(&out, bytes).unwrap();
        faults(&copies, &out, &copies.a, ["older", "newer"])
    };
    let (a, b) = (fs::read(&copies.a).unwrap(), fs::read(&copies.b).unwrap());
    let one_after_the_other = faults_of("concatenated", [&a[..], &b].concat());
    assert_eq!(
        one_after_the_other,
        ["a line is there too often", "another end"]
    );
    let lines = |bytes: &[u8]| {
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    let (mut by_line, of_b) = (lines(&a), lines(&b));
    by_line.splice(..of_b.len(), of_b);
    assert_eq!(
        faults_of("by-line", by_line.concat()),
        ["a branch is missing", "a line is missing", "another end"]
    );
    let merged = copies.merge("out");
    assert_eq!(
        faults(&copies, &merged.out, &copies.a, ["older", "newer"]),
        [""; 0]
    );
}

/// Splits sessions at random places and continues both halves apart.
#[test]
fn every_entry_of_both_copies_is_in_the_merged_one() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let bytes = tidy_session(seed);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mut common = lines[..rng.range(1, lines.len())].concat();
        if common.last() != Some(&b'\n') {
            common.push(b'\n');
        }
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("common.jsonl");
        fs::write(&whole, &common).unwrap();
        let parent = leaf(&whole, Policy::Recover);
        let mut continued = |name: &str, minute: u32| {
            let mut own = common.clone();
            let mut parent = parent.clone();
            for number in 0..rng.range(1, 5) as u32 {
                let uuid = format!(
                    "{seed:08x}-0000-4000-8000-{:0>12}",
                    format!("{name}{number}")
                );
                let entry = line(&uuid, parent.as_deref(), minute + number);
                own.extend(entry.replace("2026-01", "2036-01").bytes());
                parent = Some(uuid);
            }
            (own, parent.unwrap())
        };
        let ((a, end_a), (b, end_b)) = (continued("a", 1), continued("b", 20));
        for (first, second) in [(&a, &b), (&b, &a)] {
            let copies = Copies::new(first, second);
            let merged = copies.merge("out");
            let union: BTreeSet<_> = uuids(&copies.a).union(&uuids(&copies.b)).cloned().collect();
            assert_eq!(uuids(&merged.out), union, "seed {seed}");
            assert_eq!(merged.leaf.as_deref(), Some(&*end_b), "seed {seed}");
            // An old pin may hold the client at another branch, as it does in the newer copy alone.
            let newer = if *first == b { &copies.a } else { &copies.b };
            let found = faults(&copies, &merged.out, newer, [&end_a, &end_b]);
            assert_eq!(found, [""; 0], "seed {seed}");
            // Merging again adds nothing.
            for (number, other) in [&copies.a, &copies.b].into_iter().enumerate() {
                let again =
                    merge(&merged.out, other, &copies.out(&format!("again{number}"))).unwrap();
                assert!(
                    fs::read(&again.out).unwrap() == fs::read(&merged.out).unwrap(),
                    "seed {seed}"
                );
            }
            assert_eq!(
                (&fs::read(&copies.a).unwrap(), &fs::read(&copies.b).unwrap()),
                (first, second)
            );
        }
        let same = Copies::new(&a, &a);
        assert!(fs::read(same.merge("out").out).unwrap() == a, "seed {seed}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_credentials_beside_a_session_are_reported_and_not_copied() {
    let u1 = line("u1", None, 1);
    let copies = Copies::new(u1.as_bytes(), u1.as_bytes());
    let folder = copies.b.with_extension("");
    fs::create_dir_all(folder.join("tool-results")).unwrap();
    let secret = copies.b.with_file_name("secret");
    fs::write(&secret, "secret").unwrap();
    for name in [".env", "tool-results/id_rsa", "tool-results/r.txt"] {
        fs::write(folder.join(name), name).unwrap();
    }
    std::os::unix::fs::symlink(&secret, folder.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("/", folder.join("all")).unwrap();
    let omitted = |mut paths: Vec<std::path::PathBuf>| {
        paths.sort();
        let names = paths.into_iter();
        let names = names.map(|path| path.file_name().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let expected = [".env", "all", "link.txt", "id_rsa"];
    let merged = copies.merge("out");
    let of = merged.not_copied.iter().map(|file| file.path.clone());
    assert_eq!(omitted(of.collect()), expected);
    let new = merged.out.with_extension("");
    assert_eq!(
        fs::read(new.join("tool-results/r.txt")).unwrap(),
        b"tool-results/r.txt"
    );
    // The copy of a repaired session has the same rule.
    let out = copies.b.with_file_name("repaired.jsonl");
    let repair = transcript_engine::SessionRepair::plan(&copies.b).unwrap();
    repair.write(&out).unwrap();
    let of = repair.not_copied().into_iter().map(|file| file.path);
    assert_eq!(omitted(of.collect()), expected);
    for new in [new, out.with_extension("")] {
        for name in [".env", "all", "link.txt", "tool-results/id_rsa"] {
            assert!(fs::symlink_metadata(new.join(name)).is_err(), "{name}");
        }
        assert!(new.join("tool-results/r.txt").exists());
    }
}
