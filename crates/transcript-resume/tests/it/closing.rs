//! Each condition under which the end of a file is enough is needed: a session for which the end
//! alone says something else than the whole file, and that this condition refuses. Where no such
//! session is known, the test says so (`docs/tail-first.md`).

use std::collections::HashSet;
use std::path::Path;

use transcript_reader::{EndOptions, EntryNo, FileEnd, Index, Source};
use transcript_resume::{Policy, TailDependency, self_contained_index};
use transcript_testkit::rng::Rng;

use crate::tail_first::{Count, PlainRequest, check, request, said};

const SUMMARY: &str = r#","isCompactSummary":true,"message":{"content":"In short"}"#;
const ASK: &str = r#","message":{"role":"user","content":"And?"}"#;
const SIDE: &str = r#","isSidechain":true"#;

/// A line of session `s`; without a parent it is a root.
fn line(kind: &str, uuid: &str, parent: &str, more: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(r#"{{"parentUuid":{parent},"type":"{kind}","uuid":"{uuid}","sessionId":"s"{more}}}"#)
}

fn ask(uuid: &str, parent: &str) -> String {
    line("user", uuid, parent, ASK)
}

fn say(uuid: &str, parent: &str, message: &str, block: &str) -> String {
    let more = format!(r#","message":{{"id":"{message}","content":[{block}]}}"#);
    line("assistant", uuid, parent, &more)
}

fn answer(uuid: &str, parent: &str) -> String {
    say(uuid, parent, uuid, r#"{"type":"text","text":"Yes"}"#)
}

fn call(uuid: &str, parent: &str, message: &str, call: &str) -> String {
    let block = format!(r#"{{"type":"tool_use","id":"{call}","name":"Read","input":{{}}}}"#);
    say(uuid, parent, message, &block)
}

fn result(uuid: &str, parent: &str, call: &str) -> String {
    let more = format!(
        r#","message":{{"content":[{{"type":"tool_result","tool_use_id":"{call}","content":"Done"}}]}}"#
    );
    line("user", uuid, parent, &more)
}

fn boundary(more: &str) -> String {
    line(
        "system",
        "b",
        "",
        &format!(r#","subtype":"compact_boundary"{more}"#),
    )
}

/// A boundary that keeps these entries, as JSON strings, after `anchor`.
fn keeping(anchor: &str, kept: &str) -> String {
    boundary(&format!(
        r#","compactMetadata":{{"preservedMessages":{{"anchorUuid":"{anchor}","uuids":[{kept}]}}}}"#
    ))
}

fn summary(parent: &str) -> String {
    line("user", "s", parent, SUMMARY)
}

fn pin(leaf: &str) -> String {
    format!(r#"{{"type":"last-prompt","leafUuid":"{leaf}","sessionId":"s"}}"#)
}

fn tombstone(uuid: &str) -> String {
    format!(r#"{{"type":"transcriptEngine","v":1,"tombstone":"{uuid}"}}"#)
}

/// Gives a line a time.
fn at(line: &str, second: usize) -> String {
    let time = format!(r#"{{"timestamp":"2026-11-20T10:00:{second:02}.000Z","#);
    line.replacen('{', &time, 1)
}

/// A prompt and its answer.
fn turn(number: usize, parent: &str) -> [String; 2] {
    let prompt = format!("u{number}");
    [ask(&prompt, parent), answer(&format!("a{number}"), &prompt)]
}

/// A session whose end may be enough.
struct Session {
    name: &'static str,
    text: String,
    /// The number of lines before what the boundary needs that are read.
    margin: u64,
}

impl Session {
    /// A session with these lines, after one that is never read.
    fn new(margin: u64, lines: impl IntoIterator<Item = String>) -> Self {
        let filler = "x".repeat(16 << 10);
        let first = format!(r#"{{"type":"summary","summary":"{filler}"}}"#);
        let lines: Vec<String> = [first].into_iter().chain(lines).collect();
        Self {
            name: "s.jsonl",
            text: lines.join("\n") + "\n",
            margin,
        }
    }

    fn source(&self) -> Source {
        Source::from_bytes(self.text.as_bytes(), Path::new(self.name))
    }

    fn end(&self) -> Option<FileEnd> {
        FileEnd::load(&self.source(), &EndOptions::any_file(self.margin)).unwrap()
    }

    /// Returns what the tree of an index says about the entries of `end` under both policies.
    fn says(&self, index: &Index, end: &Index) -> [PlainRequest; 2] {
        let read: HashSet<u64> = end.entries().map(|entry| entry.offset()).collect();
        [Policy::Recover, Policy::Vendor].map(|policy| {
            let answer = request(&self.source(), index, policy);
            said(index, &answer, |offset| read.contains(&offset))
        })
    }

    /// Checks that the end is enough.
    #[track_caller]
    fn closes(&self) {
        let end = self_contained_index(self.end().unwrap()).unwrap();
        let index = Index::load(&self.source()).unwrap();
        assert_eq!(self.says(&end, &end), self.says(&index, &end));
    }

    /// Checks that the entries from the boundary on and those of `kept` say something else than the
    /// whole file, and that they are refused for this reason.
    #[track_caller]
    fn is_refused(&self, reason: TailDependency, kept: &[&str]) {
        let end = self.end().unwrap();
        let index = end.index();
        let kept = kept.iter().filter_map(|kept| index.id(kept));
        let kept: HashSet<EntryNo> = kept.flat_map(|id| index.with_uuid(id)).collect();
        let alone = end.into_index(&kept);
        let index = Index::load(&self.source()).unwrap();
        assert_ne!(self.says(&alone, &alone), self.says(&index, &alone));
        match self_contained_index(self.end().unwrap()) {
            Err(refused) => assert_eq!(refused, reason),
            Ok(end) => {
                assert_eq!(self.says(&end, &end), self.says(&index, &end));
                panic!("the end is enough");
            }
        }
    }
}

/// Returns the lines before the boundary.
fn before() -> Vec<String> {
    [turn(1, ""), turn(2, "a1")].concat()
}

/// Two turns, a boundary that keeps nothing, and these lines.
fn compacted(margin: u64, after: impl IntoIterator<Item = String>) -> Session {
    let lines = before().into_iter().chain([boundary("")]);
    Session::new(margin, lines.chain(after))
}

/// Two turns, a boundary that keeps the second one, a summary and these lines.
fn kept(after: impl IntoIterator<Item = String>) -> Session {
    let lines = [keeping("s", r#""u2","a2""#), summary("b")];
    Session::new(3, before().into_iter().chain(lines).chain(after))
}

fn after() -> Vec<String> {
    [summary("b")].into_iter().chain(turn(3, "s")).collect()
}

#[test]
fn a_session_without_any_of_these_is_closed() {
    for margin in [0, 2, 4] {
        compacted(margin, after()).closes();
        compacted(
            margin,
            [after(), turn(4, "a3").to_vec(), vec![pin("a4")]].concat(),
        )
        .closes();
    }
    kept(turn(3, "a2")).closes();
    kept([]).closes();
}

#[test]
fn a_file_without_a_compaction_has_no_end() {
    let is_none = |session: Session| assert!(session.end().is_none());
    is_none(Session::new(0, before()));
    // The quotes within a text are escaped.
    let text = r#","message":{"content":"\"subtype\":\"compact_boundary\""}"#;
    is_none(Session::new(
        0,
        before().into_iter().chain([line("user", "u", "a2", text)]),
    ));
    // An entry that the boundary keeps is in no line.
    let lines = [keeping("s", r#""u2","gone""#), summary("b")];
    is_none(Session::new(0, before().into_iter().chain(lines)));
}

#[test]
fn a_damaged_boundary_is_refused() {
    // For the client the line does not exist, and the summary follows `a2` by time.
    let torn = r#"{"type":"user","uu"#;
    let lines = before()
        .into_iter()
        .chain([boundary("")])
        .chain(after())
        .zip(10..);
    let lines = lines.map(|(line, second)| at(&line, second));
    let lines = lines.map(|line| {
        if line.contains("compact_boundary") {
            format!("{torn}{line}")
        } else {
            line
        }
    });
    Session::new(0, lines).is_refused(TailDependency::Boundary, &[]);
}

#[test]
fn a_boundary_with_a_parent_is_refused() {
    let more = r#","subtype":"compact_boundary""#;
    let lines = before()
        .into_iter()
        .chain([line("system", "b", "a2", more)]);
    Session::new(0, lines.chain(after())).is_refused(TailDependency::Boundary, &[]);
}

#[test]
fn a_boundary_of_a_subagent_is_refused() {
    // Nothing of the rest is known to matter to it.
    let more = format!(r#","subtype":"compact_boundary"{SIDE}"#);
    let lines = before().into_iter().chain([line("system", "b", "", &more)]);
    let session = Session::new(0, lines.chain(after()));
    assert_eq!(
        self_contained_index(session.end().unwrap()).unwrap_err(),
        TailDependency::Boundary
    );
}

#[test]
fn a_repeated_uuid_is_refused() {
    // The second line of `u2` has the place of the first, so `a2` ends the conversation.
    let again = after().into_iter().chain([ask("u2", "a3")]);
    compacted(2, again).is_refused(TailDependency::Repeated, &[]);
}

#[test]
fn a_tombstone_is_refused() {
    let lines = [tombstone("a2"), keeping("s", r#""u2","a2""#), summary("b")];
    let lines = before().into_iter().chain(lines).chain(turn(3, "s"));
    Session::new(1, lines).is_refused(TailDependency::Tombstone, &["u2", "a2"]);
}

#[test]
fn a_parent_below_its_child_is_refused() {
    // The last answer has a child above the boundary, which is the last tip.
    let lines = before()
        .into_iter()
        .chain([ask("early", "a3"), boundary("")]);
    Session::new(1, lines.chain(after())).is_refused(TailDependency::ForwardParent, &[]);
}

#[test]
fn an_entry_without_a_uuid_is_refused() {
    // The client takes the two for one, at the place of the first: the conversation ends with `b3`.
    let unnamed = |parent: &str| ask("", parent).replace(r#""uuid":"","#, "");
    let lines = before().into_iter().chain([unnamed("a2"), boundary("")]);
    let branches = [after(), turn(4, "a3").to_vec(), vec![unnamed("a3")]].concat();
    Session::new(0, lines.chain(branches)).is_refused(TailDependency::NoUuid, &[]);
}

#[test]
fn entries_of_another_session_are_refused() {
    let of_other = |line: String| line.replace(r#""sessionId":"s""#, r#""sessionId":"t""#);
    let end = [boundary("")].into_iter().chain(after()).map(of_other);
    Session::new(0, before().into_iter().chain(end)).is_refused(TailDependency::Session, &[]);
}

#[test]
fn a_conversation_of_a_subagent_is_refused() {
    let of_agent = |(kind, uuid, parent)| line(kind, uuid, parent, &format!("{SIDE}{ASK}"));
    let end = [("user", "u3", "b"), ("user", "u4", "u3")].map(of_agent);
    compacted(0, end).is_refused(TailDependency::Sidechain, &[]);
}

#[test]
fn kept_entries_after_an_anchor_above_the_boundary_are_refused() {
    let lines = [keeping("a1", r#""u2","a2""#), summary("b")];
    let lines = before().into_iter().chain(lines);
    Session::new(0, lines).is_refused(TailDependency::Preserved, &["u2", "a2"]);
}

#[test]
fn a_kept_entry_that_is_linked_to_an_unread_line_is_refused() {
    // The line is below what it is a child of: the link is cut as a cycle.
    let progress = line("progress", "p", "a3", "");
    let title = "x".repeat(2_000);
    let title = format!(r#"{{"type":"custom-title","customTitle":"{title}","sessionId":"s"}}"#);
    let lines = [
        progress,
        title,
        answer("a3", "p"),
        keeping("s", r#""a3""#),
        summary("b"),
    ];
    let lines = before().into_iter().chain(lines);
    Session::new(0, lines).is_refused(TailDependency::Preserved, &["a3"]);
}

#[test]
fn a_kept_progress_line_is_refused() {
    // It is not an entry, so not all of the list is there, and nothing proves that the rest of the
    // file is compacted away.
    let lines = [
        line("progress", "p", "a2", ""),
        answer("a3", "p"),
        keeping("s", r#""p","a3""#),
        summary("b"),
    ];
    let lines = before().into_iter().chain(lines);
    Session::new(3, lines).is_refused(TailDependency::Preserved, &["p", "a3"]);
}

#[test]
fn a_parent_above_the_boundary_is_refused() {
    compacted(0, [summary("b"), ask("u3", "a2")]).is_refused(TailDependency::Parent, &[]);
}

#[test]
fn a_root_below_the_boundary_is_refused() {
    // The first prompt is written again after a pin. It is not new, so the pin gives way.
    let after = after().into_iter().chain([pin("u3"), ask("u1", "")]);
    compacted(0, after).is_refused(TailDependency::Root, &[]);
}

#[test]
fn a_result_of_a_call_above_the_boundary_is_refused() {
    let lines = [
        call("a3", "a2", "m3", "c3"),
        tombstone("a3"),
        boundary(""),
        summary("b"),
    ];
    let lines = before()
        .into_iter()
        .chain(lines)
        .chain([result("r3", "s", "c3")]);
    Session::new(0, lines).is_refused(TailDependency::Call, &[]);
}

#[test]
fn a_message_on_both_sides_is_refused() {
    let block = r#"{"type":"text","text":"Yes"}"#;
    let lines = [
        say("a3", "a2", "m3", block),
        boundary(""),
        summary("b"),
        say("a4", "s", "m3", block),
    ];
    Session::new(1, before().into_iter().chain(lines)).is_refused(TailDependency::Shared, &[]);
}

#[test]
fn a_line_above_the_boundary_that_is_newer_is_refused() {
    // Nothing precedes it in the file, so it is joined to the last answer by time.
    let lines = [at(&ask("early", "gone"), 13)].into_iter().chain(before());
    let end = [boundary("")].into_iter().chain(after()).zip(10..);
    let end = end.map(|(line, second)| at(&line, second));
    Session::new(5, lines.chain(end)).is_refused(TailDependency::Time, &[]);
}

#[test]
fn a_pin_above_the_boundary_is_refused() {
    let end = after().into_iter().chain([pin("a1")]);
    compacted(0, end).is_refused(TailDependency::Pin, &[]);
}

#[test]
fn a_last_tip_without_a_message_is_refused() {
    // The last tip has no message above it, and no message has a time.
    let attachment = line(
        "attachment",
        "t",
        "b",
        r#","attachment":{"type":"hook_success"}"#,
    );
    let end = after().into_iter().chain([attachment]);
    compacted(0, end).is_refused(TailDependency::Leaf, &[]);
}

#[test]
fn an_end_that_the_client_reads_otherwise_is_refused() {
    // The line after the pin does not exist for the client, so its pin gives way to a path with
    // more messages. The whole file says the same here: no session is known where it does not.
    let torn = format!(r#"{{"type":"user","uu{}"#, ask("x", "u3"));
    let after = [after(), turn(4, "a3").to_vec(), vec![pin("a3"), torn]].concat();
    let session = compacted(0, after);
    let end = session.end().unwrap().into_index(&HashSet::new());
    let index = Index::load(&session.source()).unwrap();
    assert_eq!(session.says(&end, &end), session.says(&index, &end));
    assert_eq!(
        self_contained_index(session.end().unwrap()).unwrap_err(),
        TailDependency::Client
    );
}

/// Writes short sessions around a compaction, in which any line may be odd.
struct CompactedSessions {
    rng: Rng,
    lines: Vec<String>,
    uuids: Vec<String>,
    /// The number of uuids above the boundary.
    above: usize,
    has_times: bool,
}

impl CompactedSessions {
    fn session(seed: u64) -> Session {
        let mut rng = Rng::new(seed);
        let (before, after) = (rng.range(2, 7), rng.range(0, 7));
        let mut odd = Self {
            has_times: !rng.one_in(3),
            rng,
            lines: Vec::new(),
            uuids: Vec::new(),
            above: 0,
        };
        odd.entry("user", "", ASK);
        (1..before).for_each(|_| odd.line());
        odd.above = odd.uuids.len();
        odd.boundary();
        if !odd.rng.one_in(5) {
            let boundary = odd.uuids[odd.above].clone();
            odd.entry("user", &boundary, SUMMARY);
        }
        (0..after).for_each(|_| odd.line());
        let margin = *odd.rng.pick(&[0, 0, 2, 16]);
        Session::new(margin, odd.lines)
    }

    fn push(&mut self, line: String) {
        let torn = r#"{"type":"user","uu"#;
        let line = match self.rng.below(60) {
            0 => format!("{torn}{line}"),
            1 => format!("{line}{torn}"),
            _ => line,
        };
        self.lines.push(line);
    }

    fn entry(&mut self, kind: &str, parent: &str, more: &str) {
        let number = self.uuids.len();
        let uuid = if self.rng.one_in(60) && number > 0 {
            self.rng.pick(&self.uuids).clone()
        } else {
            format!("e{number}")
        };
        let mut line = line(kind, &uuid, parent, more);
        let side = if self.rng.one_in(10) { SIDE } else { "" };
        let second = match self.rng.below(8) {
            0 => number.saturating_sub(2),
            1 => number + 2,
            _ => number,
        };
        let time = if self.has_times && !self.rng.one_in(10) {
            format!(r#","timestamp":"2026-11-20T10:00:{second:02}.000Z""#)
        } else {
            String::new()
        };
        line.insert_str(line.len() - 1, &format!("{side}{time}"));
        match self.rng.below(80) {
            0 => line = line.replace(&format!(r#""uuid":"{uuid}","#), ""),
            1 => line = line.replace(r#""sessionId":"s""#, r#""sessionId":"t""#),
            2 => line = line.replace(r#""parentUuid":null,"#, ""),
            3 => line = line.replace(r#""message":{"#, r#""massage":{"#),
            _ => {}
        }
        self.uuids.push(uuid);
        self.push(line);
    }

    /// Returns the uuid of a line above, mostly of one on the same side of the boundary.
    fn near(&mut self) -> String {
        let first = if self.rng.one_in(6) { 0 } else { self.above };
        let first = first.min(self.uuids.len().saturating_sub(1));
        match self.rng.below(12) {
            0 => format!("e{}", self.uuids.len() + 1),
            1 => "gone".to_owned(),
            2..6 if first < self.uuids.len() => self.rng.pick(&self.uuids[first..]).clone(),
            _ => self.uuids.last().cloned().unwrap_or_default(),
        }
    }

    fn line(&mut self) {
        let parent = if self.rng.one_in(12) {
            String::new()
        } else {
            self.near()
        };
        let number = self.uuids.len();
        let near = number - self.rng.below(3).min(number);
        let message = if self.rng.one_in(3) { near } else { number };
        match self.rng.below(20) {
            0..6 => self.entry("user", &parent, ASK),
            6..9 => {
                let more = format!(
                    r#","message":{{"id":"m{message}","content":[{{"type":"text","text":"Yes"}}]}}"#
                );
                self.entry("assistant", &parent, &more);
            }
            9..12 => {
                let more = format!(
                    r#","message":{{"id":"m{message}","content":[{{"type":"tool_use","id":"c{number}","name":"Read","input":{{}}}}]}}"#
                );
                self.entry("assistant", &parent, &more);
            }
            12..15 => {
                let more = format!(
                    r#","message":{{"content":[{{"type":"tool_result","tool_use_id":"c{near}","content":"Done"}}]}}"#
                );
                self.entry("user", &parent, &more);
            }
            15 => self.entry(
                "attachment",
                &parent,
                r#","attachment":{"type":"hook_success"}"#,
            ),
            16 => self.entry("system", &parent, r#","subtype":"turn_duration""#),
            17 => self.entry("progress", &parent, ""),
            18 => {
                let leaf = self.near();
                self.push(pin(&leaf));
            }
            _ if self.rng.one_in(3) => {
                let uuid = self.near();
                self.push(tombstone(&uuid));
            }
            _ => self
                .push(r#"{"type":"custom-title","customTitle":"Old","sessionId":"s"}"#.to_owned()),
        }
    }

    fn boundary(&mut self) {
        let from = self.rng.below(self.above + 1);
        let kept = &self.uuids[from..];
        // That of the summary.
        let mut anchor = format!("e{}", self.above + 1);
        if self.rng.one_in(6) {
            anchor = if self.rng.one_in(2) {
                self.rng.pick(&self.uuids).clone()
            } else {
                format!("e{}", self.above + 2)
            };
        }
        let anchor = format!(r#""anchorUuid":"{anchor}""#);
        let form = match (self.rng.below(9), kept) {
            (0..3, kept) => {
                let uuids: Vec<_> = kept.iter().map(|uuid| format!("\"{uuid}\"")).collect();
                format!(
                    r#""preservedMessages":{{{anchor},"uuids":[{}]}}"#,
                    uuids.join(",")
                )
            }
            (3..5, [head, .., tail]) => {
                format!(
                    r#""preservedSegment":{{{anchor},"headUuid":"{head}","tailUuid":"{tail}"}}"#
                )
            }
            _ => String::new(),
        };
        let parent = if self.rng.one_in(12) {
            self.near()
        } else {
            String::new()
        };
        let more = format!(r#","subtype":"compact_boundary","compactMetadata":{{{form}}}"#);
        self.entry("system", &parent, &more);
    }
}

#[test]
fn short_odd_sessions_say_the_same_as_the_whole_file() {
    let seeds = 20_000;
    let mut count = Count::default();
    for seed in 0..seeds as u64 {
        let session = CompactedSessions::session(seed);
        let name = format!("{seed}: {}", &session.text[(16 << 10)..]);
        check(
            &name,
            session.text.as_bytes(),
            Path::new(session.name),
            session.margin,
            &mut count,
        );
    }
    println!("{count:#?}");
    assert!(count.closed > seeds / 20, "{count:?}");
}
