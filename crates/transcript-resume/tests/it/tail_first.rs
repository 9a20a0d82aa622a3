//! The end of a file gives the same request as the whole file.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use transcript_messages::OmissionReason;
use transcript_reader::{Bodies, EndOptions, EntryNo, FileEnd, Id, Index, Source};
use transcript_resume::request::{Request, RequestOptions};
use transcript_resume::{Decision, Policy, TailDependency, Tree, Usage, self_contained_index};
use transcript_testkit::campaign::{Healthy, Kind};
use transcript_testkit::{damage, generate, oracle, shared};

/// How often the end was enough, and why it was not.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) closed: usize,
    /// The unread lines were not written before the boundary: the end was enough, but wrong.
    wrong: usize,
    /// The same, but the end was right.
    lucky: usize,
    whole: BTreeMap<&'static str, usize>,
}

/// A request with offsets in place of the numbers of entries.
#[derive(Debug, PartialEq)]
pub(crate) struct PlainRequest {
    refusal: Option<&'static str>,
    leaf: Option<u64>,
    entries: Vec<(u64, String)>,
    decisions: Vec<String>,
    messages: Vec<String>,
    made_up: Vec<String>,
    usage: String,
}

/// Returns what `request` says about the entries that `counts` accepts; what only the whole file can
/// say is omitted.
pub(crate) fn said(
    index: &Index,
    (request, usage): &(Request, Vec<Usage>),
    counts: impl Fn(u64) -> bool,
) -> PlainRequest {
    let offset = |entry: EntryNo| index.entry(entry).offset();
    let decisions = request.path.decisions.iter();
    let decisions = decisions.filter(|decision| counts(offset(decision.entry())));
    let decisions = decisions.map(|decision| match *decision {
        Decision::Cut { boundary, .. } => format!("cut {}", offset(boundary)),
        Decision::Splice {
            boundary,
            form,
            kept,
            ..
        } => format!("splice {} {form:?} {kept}", offset(boundary)),
        Decision::Progress { entry, parent } => {
            format!("progress {} {}", offset(entry), offset(parent))
        }
        Decision::PinHidesNewer { entry, newer } => {
            format!("hides {} {}", offset(entry), offset(newer))
        }
        other => {
            let words = match other {
                Decision::Leaf { reason, .. } => reason.name().to_owned(),
                Decision::Siblings { recovered, .. } => recovered.to_string(),
                _ => String::new(),
            };
            format!("{} {} {words}", other.name(), offset(other.entry()))
        }
    });
    let entries = request.path.entries.iter();
    let place = |number: usize| offset(EntryNo::new(number));
    let synthetic = request.synthetic.iter().map(|one| {
        let (kind, place) = (one.kind.name(), one.origin.map(place));
        format!("{kind} {place:?} {}", one.block.json())
    });
    let omitted = request.omissions.iter();
    let omitted = omitted.map(|one| format!("{} {}", one.reason.name(), place(one.origin)));
    PlainRequest {
        refusal: request.path.refusal.map(|refusal| refusal.reason()),
        leaf: request.path.leaf.map(offset),
        entries: entries
            .map(|entry| (offset(entry.entry_no()), format!("{:?}", entry.via)))
            .collect(),
        decisions: decisions.collect(),
        messages: request
            .messages
            .iter()
            .map(|message| message.json().to_string())
            .collect(),
        made_up: synthetic.chain(omitted).collect(),
        usage: format!("{:?} {usage:?}", request.model),
    }
}

/// Returns why the lines before `start`, except those at `kept`, could not have been written before
/// the boundary at `boundary`: the assumption of `docs/tail-first.md`.
fn knows_of_the_end(index: &Index, boundary: u64, read: &HashSet<u64>) -> Option<&'static str> {
    let is_read = |entry: EntryNo| read.contains(&index.entry(entry).offset());
    let is_after = |entry: EntryNo| index.entry(entry).offset() >= boundary;
    let shares = |id: Id| index.with_uuid(id).any(is_read);
    let after = || index.entries().filter(|entry| entry.offset() >= boundary);
    let oldest = after().filter_map(|entry| entry.millis()).min();
    let messages: HashSet<_> = after().filter_map(|entry| entry.message()).collect();
    let calls: HashSet<_> = after()
        .flat_map(|entry| entry.tools().iter().map(|end| end.key()))
        .collect();
    index.entries().find_map(|entry| {
        if read.contains(&entry.offset()) || entry.offset() >= boundary {
            return None;
        }
        if entry.uuid().is_some_and(shares) {
            return Some("uuid");
        }
        if entry
            .parent()
            .is_some_and(|id| index.with_uuid(id).any(is_after))
        {
            return Some("parent");
        }
        if entry.message().is_some_and(|key| messages.contains(&key)) {
            return Some("message");
        }
        if entry.tools().iter().any(|end| calls.contains(&end.key())) {
            return Some("call");
        }
        let is_newer = entry.millis() >= oldest && entry.millis().is_some();
        (is_newer && oldest.is_some()).then_some("time")
    })
}

/// Returns what continues a conversation.
pub(crate) fn request(source: &Source, index: &Index, policy: Policy) -> (Request, Vec<Usage>) {
    let tree = Tree::new(index, policy);
    let options = RequestOptions::new().prompt("Go on.");
    let read = options.request_with_state(&tree, &mut Bodies::new(source));
    let (request, _, usage) = read.unwrap();
    (request, usage)
}

/// Compares the end of a file, with `margin` lines before what it needs, with all of it.
pub(crate) fn check(name: &str, bytes: &[u8], path: &Path, margin: u64, count: &mut Count) {
    let source = Source::from_bytes(bytes, path);
    let end = FileEnd::load(&source, &EndOptions::any_file(margin)).unwrap();
    let closed = match end {
        Some(end) => self_contained_index(end),
        None => Err(TailDependency::NoCompaction),
    };
    let end = match closed {
        Ok(end) => end,
        Err(reason) => {
            *count.whole.entry(reason.name()).or_default() += 1;
            return;
        }
    };
    let index = Index::load(&source).unwrap();
    let read: HashSet<u64> = end.entries().map(|entry| entry.offset()).collect();
    let boundary = end.entries().find(|entry| entry.is_boundary()).unwrap();
    let mut is_equal = true;
    let mut differs = String::new();
    for policy in [Policy::Recover, Policy::Vendor] {
        let from_end = request(&source, &end, policy);
        let omissions = from_end.0.omissions.iter();
        if omissions
            .clone()
            .any(|one| one.reason == OmissionReason::UnusableBody)
        {
            *count.whole.entry("unusable-body").or_default() += 1;
            return;
        }
        let counts = |offset: u64| read.contains(&offset);
        let want = said(&index, &request(&source, &index, policy), counts);
        let got = said(&end, &from_end, counts);
        if want != got {
            is_equal = false;
            differs = format!("{policy:?}\nwant {want:#?}\ngot {got:#?}");
        }
    }
    match (knows_of_the_end(&index, boundary.offset(), &read), is_equal) {
        (None, true) => count.closed += 1,
        (Some(_), true) => count.lucky += 1,
        (Some(_), false) => count.wrong += 1,
        (None, false) => panic!("{name}, margin {margin}: {differs}"),
    }
}

/// Names the file after the session that most lines name, as a client does.
fn path_of(bytes: &[u8]) -> PathBuf {
    let index = Index::load(&Source::from_bytes(bytes, Path::new("-"))).unwrap();
    let session = index.own_session().unwrap_or("none");
    PathBuf::from(format!("{}.jsonl", session.replace('/', "_")))
}

#[expect(clippy::print_stdout, reason = "reports the comparison")]
fn check_all(what: &str, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> [Count; 3] {
    // The fewer lines are read before the boundary, the less is known about them.
    let mut counts = [const {
        Count {
            closed: 0,
            wrong: 0,
            lucky: 0,
            whole: BTreeMap::new(),
        }
    }; 3];
    for (name, bytes) in files {
        let path = path_of(&bytes);
        for (margin, count) in [0, 2, 16].into_iter().zip(&mut counts) {
            check(&name, &bytes, &path, margin, count);
        }
    }
    println!("{what}: {counts:#?}");
    // Even where the unread lines could not have been written before the boundary. With fewer lines
    // a replayed block that starts with the boundary itself is not seen as one.
    assert_eq!(counts[2].wrong, 0, "{what}");
    assert!(counts.iter().all(|count| count.wrong < 4), "{what}");
    counts
}

fn files_under(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    crate::transcripts_under(folder, &mut files);
    files.sort();
    let read = |file: PathBuf| (file.display().to_string(), fs::read(file).unwrap());
    files.into_iter().map(read).collect()
}

#[test]
fn sessions_of_clients_and_fixtures() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let [none, ..] = check_all("fixtures", files_under(&fixtures));
    assert!(none.closed >= 10, "{none:?}");
    let Some(shared) = shared() else { return };
    for count in check_all("corpus", files_under(&shared.join("corpus/files"))) {
        assert!(count.closed >= 6, "{count:?}");
    }
    for folder in oracle::FOLDERS {
        let cases = oracle::cases(folder).into_iter();
        let files = cases.map(|case| (case.name, fs::read(case.input).unwrap()));
        check_all(folder, files);
    }
}

#[test]
fn generated_and_damaged_sessions() {
    let mut whole: BTreeMap<&str, usize> = BTreeMap::new();
    let damaged = |seed| damage::damage(&generate::session(seed), seed).0;
    let tidy_damaged = |seed| damage::damage(&generate::tidy_session(seed), seed).0;
    for (kind, make) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>),
        ("unique", generate::session_of_unique_uuids),
        ("any", generate::session),
        ("damaged", damaged),
        ("damaged tidy", tidy_damaged),
    ] {
        let files = (0..400).map(|seed| (format!("{kind} {seed}"), make(seed)));
        for count in check_all(kind, files) {
            assert!(count.closed > 0, "{kind}: {count:?}");
            for (reason, files) in count.whole {
                *whole.entry(reason).or_default() += files;
            }
        }
    }
    let reasons = [
        "boundary",
        "call",
        "forward-parent",
        "root",
        "no-uuid",
        "parent",
        "pin",
        "preserved",
        "repeated",
        "sidechain",
        "time",
    ];
    for reason in reasons {
        assert!(whole.contains_key(reason), "{reason}: {whole:?}");
    }
}

#[test]
fn sessions_with_every_kind_of_damage() {
    let sessions = (0..400).filter_map(|seed| Healthy::new(&generate::tidy_session(seed)));
    let sessions: Vec<Healthy> = sessions.collect();
    for kind in Kind::ALL {
        let hurt = sessions.iter().zip(0..).filter_map(|(session, seed)| {
            let case = session.damaged(kind, seed)?;
            Some((format!("{} {seed}", kind.name()), case.bytes))
        });
        check_all(kind.name(), hurt);
    }
}
