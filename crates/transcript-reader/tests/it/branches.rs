//! Branches of small sessions whose shape is known, and what holds for any file.

use std::collections::HashSet;
use std::fmt::Write;

use transcript_format::scan::Flags;
use transcript_reader::{
    BranchStart, Branches, ConversationPath, EntryNo, Index, PathEntry, Policy, Tree,
};
use transcript_testkit::{damage, generate, shared};

use crate::index;
use crate::same_index::transcripts_under;

/// A session, line by line.
#[derive(Default)]
struct Session(String);

impl Session {
    fn line(mut self, kind: &str, uuid: &str, parent: &str, members: &str) -> Self {
        let parent = if parent.is_empty() {
            "null".to_owned()
        } else {
            format!("\"{parent}\"")
        };
        writeln!(
            self.0,
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-01-01T00:00:00.000Z"{members}}}"#
        )
        .unwrap();
        self
    }

    fn user(self, uuid: &str, parent: &str) -> Self {
        let message = r#","message":{"role":"user","content":"text"}"#;
        self.line("user", uuid, parent, message)
    }

    fn answer(self, uuid: &str, parent: &str) -> Self {
        let message = format!(
            r#","message":{{"id":"m-{uuid}","role":"assistant","content":[{{"type":"text","text":"text"}}]}}"#
        );
        self.line("assistant", uuid, parent, &message)
    }

    fn call(self, uuid: &str, parent: &str, message: &str) -> Self {
        let message = format!(
            r#","message":{{"id":"{message}","role":"assistant","content":[{{"type":"tool_use","id":"t-{uuid}","name":"Bash","input":{{}}}}]}}"#
        );
        self.line("assistant", uuid, parent, &message)
    }

    fn result(self, uuid: &str, call: &str) -> Self {
        let message = format!(
            r#","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t-{call}","content":"text"}}]}}"#
        );
        self.line("user", uuid, call, &message)
    }

    fn system(self, uuid: &str, parent: &str) -> Self {
        self.line("system", uuid, parent, r#","subtype":"turn_duration""#)
    }

    fn attachment(self, uuid: &str, parent: &str) -> Self {
        let attachment = r#","attachment":{"type":"todo_reminder"}"#;
        self.line("attachment", uuid, parent, attachment)
    }

    fn boundary(self, uuid: &str, logical: &str, metadata: &str) -> Self {
        let members = format!(
            r#","subtype":"compact_boundary","logicalParentUuid":"{logical}","compactMetadata":{{{metadata}}}"#
        );
        self.line("system", uuid, "", &members)
    }

    /// One line a branch: `number < parent start: entries`.
    fn branches(&self, policy: Policy, breaks: &[&str]) -> String {
        let index = index(self.0.as_bytes());
        let tree = Tree::new(&index, policy);
        let uuid = |entry: EntryNo| index.id_text(index.entry(entry).uuid().unwrap());
        let entry_ref = |uuid: &&str| index.with_uuid(index.id(uuid).unwrap()).next().unwrap();
        let breaks: Vec<EntryNo> = breaks.iter().map(entry_ref).collect();
        let branches = Branches::new(&tree, &breaks);
        let mut reported = String::new();
        for (number, branch) in branches.all().iter().enumerate() {
            let entries: Vec<_> = branches.entries(number).map(uuid).collect();
            let parent = branch
                .parent
                .map_or("-".to_owned(), |parent| parent.to_string());
            let (start, tip) = (branch.start.name(), if branch.is_tip { "." } else { "" });
            let entries = entries.join(" ");
            writeln!(reported, "{number} < {parent} {start}: {entries}{tip}").unwrap();
        }
        reported
    }
}

#[test]
fn a_straight_session_is_one_branch() {
    let session = Session::default()
        .user("u1", "")
        .answer("a1", "u1")
        .user("u2", "a1")
        .answer("a2", "u2");
    assert_eq!(
        session.branches(Policy::Recover, &[]),
        "0 < - root: u1 a1 u2 a2.\n"
    );
}

#[test]
fn a_rewind_is_a_fork_and_a_rewind_of_it_too() {
    let session = Session::default()
        .user("u1", "")
        .answer("a1", "u1")
        .user("u2", "a1")
        .answer("a2", "u2")
        .user("v2", "a1")
        .answer("b2", "v2")
        .user("v3", "b2")
        .user("w3", "b2")
        .answer("c3", "w3");
    assert_eq!(
        session.branches(Policy::Recover, &[]),
        "0 < - root: u1 a1\n\
         1 < 0 child: u2 a2.\n\
         2 < 0 child: v2 b2\n\
         3 < 2 child: v3.\n\
         4 < 2 child: w3 c3.\n"
    );
}

#[test]
fn parallel_calls_results_attachments_and_system_lines_are_not_forks() {
    let session = Session::default()
        .user("u1", "")
        .attachment("t1", "u1")
        .attachment("t2", "u1")
        .call("c1", "t1", "m")
        .call("c2", "c1", "m")
        .result("r1", "c1")
        .result("r2", "c2")
        .attachment("t3", "r1")
        .system("s1", "r1")
        .answer("a1", "r2")
        .system("s2", "a1")
        .user("u2", "a1");
    assert_eq!(
        session.branches(Policy::Recover, &[]),
        "0 < - root: u1 t1 t2 c1 c2 r1 r2 t3 s1 a1 s2 u2.\n"
    );
}

#[test]
fn two_prompts_under_two_results_of_one_message_are_a_fork() {
    let session = Session::default()
        .user("u1", "")
        .call("c1", "u1", "m")
        .call("c2", "c1", "m")
        .result("r1", "c1")
        .result("r2", "c2")
        .answer("a1", "r1")
        .answer("a2", "r2");
    assert_eq!(
        session.branches(Policy::Recover, &[]),
        "0 < - root: u1 c1 c2 r1 r2\n1 < 0 child: a1.\n2 < 0 child: a2.\n"
    );
}

#[test]
fn a_compaction_follows_the_entry_that_its_boundary_names() {
    let kept = r#""preservedSegment":{"anchorUuid":"u3","headUuid":"u2","tailUuid":"a2"}"#;
    let start = || {
        Session::default()
            .user("u1", "")
            .answer("a1", "u1")
            .user("u2", "a1")
            .answer("a2", "u2")
            .boundary("b", "a2", kept)
            .user("u3", "b")
    };
    let expected = "0 < - root: u1 a1 u2 a2\n1 < 0 boundary: b u3 u4 a4.\n";
    // The following entries are children of the summary, or of the last preserved entry.
    for parent in ["u3", "a2"] {
        let session = start().user("u4", parent).answer("a4", "u4");
        assert_eq!(session.branches(Policy::Recover, &[]), expected, "{parent}");
    }
}

#[test]
fn islands_cycles_and_bridges_say_how_they_start() {
    let session = Session::default()
        .user("u1", "")
        .line(
            "user",
            "u2",
            "gone",
            r#","message":{"role":"user","content":"x"}"#,
        )
        .answer("c1", "c2")
        .user("c2", "c1")
        .answer("c3", "c1");
    let reported = session.branches(Policy::Recover, &[]);
    assert!(reported.contains("bridge: u2"), "{reported}");
    assert!(reported.contains("bridge: c1"), "{reported}");
    let reported = session.branches(Policy::Vendor, &[]);
    assert!(reported.contains("lost: u2."), "{reported}");
    assert!(reported.contains("cycle: c1\n"), "{reported}");
}

#[test]
fn a_break_ends_a_branch_without_a_fork() {
    let session = Session::default()
        .user("u1", "")
        .answer("a1", "u1")
        .user("u2", "a1");
    assert_eq!(
        session.branches(Policy::Recover, &["a1"]),
        "0 < - root: u1 a1\n1 < 0 child: u2.\n"
    );
}

#[test]
fn a_chain_of_progress_lines_is_passed_over() {
    let mut session = Session::default().user("u1", "");
    let mut parent = "u1".to_owned();
    for n in 0..20_000 {
        let uuid = format!("p{n}");
        session = session.line("progress", &uuid, &parent, "");
        parent = uuid;
    }
    let session = session.answer("a1", &parent).user("u2", &parent);
    assert_eq!(
        session.branches(Policy::Recover, &[]),
        "0 < - root: u1\n1 < 0 child: a1.\n2 < 0 child: u2.\n"
    );
}

/// Each entry is in one branch or a sidechain, and branches are trees.
fn check(name: &str, index: &Index) {
    for policy in [Policy::Vendor, Policy::Recover] {
        let tree = Tree::new(index, policy);
        let path = tree.path();
        let breaks: Vec<EntryNo> = path.leaf.into_iter().collect();
        let branches = Branches::new(&tree, &breaks);
        let mut seen = HashSet::new();
        for (number, branch) in branches.all().iter().enumerate() {
            let entries: Vec<EntryNo> = branches.entries(number).collect();
            assert!(entries.contains(&branch.first), "{name}");
            assert!(entries.contains(&branch.last), "{name}");
            assert!(entries.is_sorted(), "{name}");
            for entry in entries {
                assert!(seen.insert(entry), "{name}: {entry} twice");
                assert_eq!(branches.branch_of(entry), Some(number), "{name}");
            }
            assert_eq!(branch.parent.is_some(), branch.from.is_some(), "{name}");
            if let (Some(parent), Some(from)) = (branch.parent, branch.from) {
                assert_eq!(branches.branch_of(from), Some(parent), "{name}");
                assert!(
                    branches.children(parent).any(|child| child == number),
                    "{name}"
                );
            }
            assert_eq!(
                branch.is_tip,
                branches.children(number).count() == 0,
                "{name}"
            );
            let is_single = branch.parent.is_some_and(|parent| {
                branch.start == BranchStart::Child
                    && branches.children(parent).count() == 1
                    && !branches
                        .entries(parent)
                        .any(|entry| breaks.contains(&entry))
            });
            assert!(
                !is_single,
                "{name}: branch {number} is the only one that continues a branch"
            );
        }
        for leaf in breaks {
            // The person may have chosen an entry of a subagent.
            let is_aside = index.entry(leaf).flags().contains(Flags::SIDECHAIN);
            assert!(
                is_aside || branches.branch_of(leaf).is_some(),
                "{name}: the leaf is in no branch"
            );
        }
        // Every branch is a child of a root: counting down from the roots finds all of them.
        let all = branches.all();
        let mut order: Vec<usize> = (0..all.len())
            .filter(|branch| all[*branch].parent.is_none())
            .collect();
        let mut at = 0;
        while let Some(branch) = order.get(at) {
            order.extend(branches.children(*branch));
            at += 1;
        }
        assert_eq!(order.len(), all.len(), "{name}");
        let aside: usize = branches
            .sidechains()
            .iter()
            .map(|chain| chain.entries)
            .sum();
        assert_eq!(seen.len() + aside, tree.nodes().count(), "{name}");
    }
}

#[test]
fn every_entry_of_a_generated_or_damaged_session_is_in_one_branch() {
    for seed in 0..1_000 {
        let session = generate::session(seed);
        check(&format!("seed {seed}"), &index(&session));
        let (bytes, kinds) = damage::damage(&session, seed);
        check(&format!("seed {seed}, damage {kinds:?}"), &index(&bytes));
    }
}

#[test]
fn every_entry_of_a_shared_file_is_in_one_branch() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut files = Vec::new();
    transcripts_under(&shared.join("corpus/files"), &mut files);
    transcripts_under(&shared.join("oracle"), &mut files);
    for file in files {
        check(
            &file.display().to_string(),
            &index(&std::fs::read(&file).unwrap()),
        );
    }
}

/// Returns the entries of the branches off a path, as each of them is walked from its root.
fn walked_one_by_one(tree: &Tree<'_>, path: &ConversationPath) -> Vec<Vec<EntryNo>> {
    let leaf: Vec<EntryNo> = path.leaf.into_iter().collect();
    let mut shown: HashSet<EntryNo> = path.entries.iter().map(PathEntry::entry_no).collect();
    let mut found = Vec::new();
    for branch in Branches::new(tree, &leaf).all() {
        if branch.is_tip
            && !shown.contains(&branch.last)
            && let Some(leaf) = tree.node(branch.last)
        {
            let path = tree.path_to_leaf(leaf).entries.into_iter();
            let entries = path.map(|entry| entry.entry_no());
            found.push(entries.filter(|entry| shown.insert(*entry)).collect());
        }
    }
    found
}

fn walked_together(tree: &Tree<'_>, path: &ConversationPath) -> Vec<Vec<EntryNo>> {
    let branches = tree.branches_off(path).into_iter();
    let entries = branches.map(|branch| {
        branch
            .path
            .entries
            .iter()
            .map(PathEntry::entry_no)
            .collect()
    });
    entries.collect()
}

fn star(lines: usize) -> Session {
    let root = Session::default().user("root", "");
    (1..lines).fold(root, |file, number| {
        file.user(&format!("u{number}"), "root")
    })
}

/// A tip at each entry of a chain.
fn comb(lines: usize) -> Session {
    let root = Session::default().user("c0", "");
    (1..lines / 2).fold(root, |file, number| {
        let above = format!("c{}", number - 1);
        file.user(&format!("c{number}"), &above)
            .answer(&format!("t{number}"), &above)
    })
}

#[test]
fn branches_off_a_path_are_those_that_are_walked_one_by_one() {
    let parallel = Session::default()
        .user("a", "")
        .call("b1", "a", "m")
        .call("b2", "b1", "m")
        .result("r1", "b1")
        .result("r2", "b2")
        .answer("c", "r1")
        .attachment("d", "c")
        .answer("e", "r2");
    let lost = Session::default()
        .user("a", "")
        .answer("b", "a")
        .user("c", "gone")
        .answer("d", "c")
        .user("e", "a")
        .user("f", "also-gone");
    let compacted = Session::default()
        .user("a", "")
        .answer("b", "a")
        .user("left", "a")
        .boundary("x", "b", "")
        .user("s", "x")
        .answer("t", "s")
        .user("u", "s");
    for (name, session) in [
        ("star", star(30)),
        ("comb", comb(30)),
        ("parallel", parallel),
        ("lost", lost),
        ("compacted", compacted),
    ] {
        for policy in [Policy::Vendor, Policy::Recover] {
            let index = index(session.0.as_bytes());
            let tree = Tree::new(&index, policy);
            let path = tree.path();
            let together = walked_together(&tree, &path);
            assert_eq!(
                together,
                walked_one_by_one(&tree, &path),
                "{name} {policy:?}"
            );
        }
    }
}

#[test]
fn no_entry_is_in_two_branches_and_none_is_missed() {
    for seed in 0..40 {
        let file = generate::session(seed);
        let index = index(&file);
        for policy in [Policy::Vendor, Policy::Recover] {
            let tree = Tree::new(&index, policy);
            let path = tree.path();
            let mut seen: HashSet<EntryNo> = path.entries.iter().map(PathEntry::entry_no).collect();
            for entry in walked_together(&tree, &path).into_iter().flatten() {
                assert!(seen.insert(entry), "seed {seed}: {entry} is there twice");
            }
            for entry in walked_one_by_one(&tree, &path).into_iter().flatten() {
                assert!(seen.contains(&entry), "seed {seed}: {entry} is missing");
            }
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn branches_are_walked_in_the_time_of_their_lines() {
    use transcript_format::work;
    for (name, session) in [("star", star(600)), ("comb", comb(600))] {
        let index = index(session.0.as_bytes());
        let tree = Tree::new(&index, Policy::Recover);
        let path = tree.path();
        let cost = |walk: &dyn Fn()| {
            let before = work::done();
            walk();
            (work::done() - before) / 600
        };
        let together = cost(&|| drop(walked_together(&tree, &path)));
        assert!(together <= 4, "{name}: {together} steps a line");
    }
    // The count sees what it is for.
    let session = comb(600);
    let index = index(session.0.as_bytes());
    let tree = Tree::new(&index, Policy::Recover);
    let before = work::done();
    walked_one_by_one(&tree, &tree.path());
    assert!(work::done() - before > 600 * 50);
}

#[cfg(debug_assertions)]
#[test]
fn a_chain_of_attachments_beside_a_message_is_walked_once() {
    use transcript_format::work;
    const LINES: u64 = 400;
    let mut session = Session::default()
        .user("a", "")
        .call("b1", "a", "m")
        .call("b2", "b1", "m")
        .result("r1", "b1");
    let mut above = "r1".to_owned();
    for number in 0..LINES {
        let uuid = format!("x{number}");
        session = session.attachment(&uuid, &above);
        above = uuid;
    }
    let session = session.result("r2", "b2").answer("c", "r2");
    let index = index(session.0.as_bytes());
    let tree = Tree::new(&index, Policy::Recover);
    let before = work::done();
    let path = tree.path();
    let done = work::done() - before;
    assert!(
        path.entries.len() as u64 > LINES,
        "the attachments are there"
    );
    assert!(done <= 8 * LINES, "{done} steps");
}
