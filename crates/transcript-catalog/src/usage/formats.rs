//! The formats in which builds cached the usage of files. The cached usage of deleted files cannot be read
//! again, so every earlier format is still read.
//!
//! To change the format: raise [`FORMAT_NUMBER`] and the numbers in [`SIDECAR_KIND`], keep here what the last format was, with
//! its step to the next one, and let the test write a file in the new format (see there).

use std::num::{NonZeroU64, NonZeroU128};

use serde::Deserialize;
use transcript_format::answers::Above;

use super::part::{
    ClientCount, Copy, Count, Counts, LineAbove, LineTime, Marks, NameNumber, Part, RequestSteps,
    RunTotal, ToolCall, id_bytes,
};
use crate::sidecar::{OlderKind, SidecarKind};

/// The number of the format. It changes with the format, and with the rules of counting. The version of the crate is not part
/// of it: the sums of deleted sessions stay.
const FORMAT_NUMBER: usize = 5;

pub(super) const SIDECAR_KIND: SidecarKind = SidecarKind {
    magic: "transcript usage 5",
    extension: "usage5",
    older: &OLDER_FORMATS,
};

/// All formats before, the newest first. The first three had the same file name.
const OLDER_FORMATS: [OlderKind; FORMAT_NUMBER - 1] = [
    OlderKind {
        kind: SidecarKind {
            magic: "transcript usage 4",
            extension: "usage4",
            older: &[],
        },
        convert: from_4,
    },
    OlderKind {
        kind: SidecarKind {
            magic: "transcript usage 3",
            extension: "usage",
            older: &[],
        },
        // Only the name of the file changed.
        convert: from_4,
    },
    OlderKind {
        kind: SidecarKind {
            magic: "transcript usage 2",
            extension: "usage",
            older: &[],
        },
        convert: |payload| {
            let part: Part2 = postcard::from_bytes(payload).ok()?;
            Some(Part::from(Part4::from(part)).write())
        },
    },
    OlderKind {
        kind: SidecarKind {
            magic: "transcript usage 1",
            extension: "usage",
            older: &[],
        },
        convert: |payload| {
            let part: Part1 = postcard::from_bytes(payload).ok()?;
            Some(Part::from(Part4::from(Part2::from(part))).write())
        },
    },
];

fn from_4(payload: &[u8]) -> Option<Vec<u8>> {
    let part: Part4 = postcard::from_bytes(payload).ok()?;
    Some(Part::from(part).write())
}

/// A part in formats 3 and 4, which had no lines between those of answers, and in which each line without a `message.id`
/// was a request.
#[derive(Debug, Deserialize)]
struct Part4 {
    names: Vec<Box<str>>,
    copies: Vec<Copy>,
    searches: Vec<(u64, u64)>,
    boundaries: Vec<(u64, Option<i64>)>,
    counted: Option<ClientCount>,
    run_totals: Vec<RunTotal>,
}

impl From<Part4> for Part {
    fn from(part: Part4) -> Self {
        let copies = (0..).zip(&part.copies);
        let others = copies.filter(|(_, copy)| !copy.is_unique && copy.marks.last_line != 0);
        let lines = others.map(|(number, copy)| LineAbove {
            line: copy.marks.last_line,
            above: Above::Answer(number),
        });
        Self {
            lines: lines.collect(),
            lanes: Vec::new(),
            names: part.names,
            copies: part.copies,
            searches: part.searches,
            boundaries: part.boundaries,
            counted: part.counted,
            run_totals: part.run_totals,
        }
    }
}

/// A part in format 2, which had no totals of results.
#[derive(Debug, Deserialize)]
struct Part2 {
    names: Vec<Box<str>>,
    copies: Vec<Copy>,
    searches: Vec<(u64, u64)>,
    boundaries: Vec<(u64, Option<i64>)>,
    counted: Option<ClientCount>,
}

impl From<Part2> for Part4 {
    fn from(part: Part2) -> Self {
        Self {
            names: part.names,
            copies: part.copies,
            searches: part.searches,
            boundaries: part.boundaries,
            counted: part.counted,
            run_totals: Vec::new(),
        }
    }
}

/// A part in format 1.
#[derive(Debug, Deserialize)]
struct Part1 {
    names: Vec<Box<str>>,
    copies: Vec<Copy1>,
    searches: Vec<(u64, u64)>,
    boundaries: Vec<(u64, Option<i64>)>,
    counted: Option<ClientCount>,
}

/// A copy in format 1, in which all answers with one `message.id` were one request.
#[derive(Debug, Deserialize)]
struct Copy1 {
    #[serde(with = "id_bytes")]
    id: Option<NonZeroU128>,
    offset: u64,
    first_time: LineTime,
    time: LineTime,
    is_forked: bool,
    is_sidechain: bool,
    is_own: bool,
    has_stop: bool,
    counts: Counts,
    model: NameNumber,
    service_tier: NameNumber,
    inference_geo: NameNumber,
    speed: NameNumber,
    agent: NameNumber,
    git_branch: NameNumber,
    reported: Option<Count>,
    calls: Vec<ToolCall>,
    steps: RequestSteps,
}

impl From<Part1> for Part2 {
    fn from(part: Part1) -> Self {
        Self {
            names: part.names,
            copies: part.copies.into_iter().map(Copy::from).collect(),
            searches: part.searches,
            boundaries: part.boundaries,
            counted: part.counted,
        }
    }
}

impl From<Copy1> for Copy {
    fn from(copy: Copy1) -> Self {
        Self {
            id: copy.id,
            // The id was enough to tell requests apart: it is taken for one that the API gave, and its hash stands
            // for that of the request. So one request stays one, and counts once beside a fork of it.
            is_unique: true,
            marks: Marks {
                request: copy.id.map_or(0, mark_of_id),
                ..Marks::default()
            },
            offset: copy.offset,
            first_time: copy.first_time,
            time: copy.time,
            is_forked: copy.is_forked,
            is_sidechain: copy.is_sidechain,
            is_own: copy.is_own,
            has_stop: copy.has_stop,
            counts: copy.counts,
            model: copy.model,
            service_tier: copy.service_tier,
            inference_geo: copy.inference_geo,
            speed: copy.speed,
            agent: copy.agent,
            git_branch: copy.git_branch,
            reported: copy.reported,
            is_result: false,
            calls: copy.calls,
            steps: copy.steps,
            client_searches: 0,
            is_merged: false,
        }
    }
}

/// Returns the lower half of the hash, which is not 0.
fn mark_of_id(id: NonZeroU128) -> u64 {
    let low = NonZeroU64::new(id.get() as u64);
    low.map_or(1, NonZeroU64::get)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use super::super::{By, Prices, Report, UsageOptions};
    use super::*;
    use crate::Catalog;
    use crate::sidecar::{Sidecar, hash};

    const PROJECT: &str = "-work-kites";

    fn fixture(format: usize) -> PathBuf {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept");
        tests.join(format!("{format}.usage"))
    }

    /// Returns the kind of each format, from 1 on.
    fn kinds() -> Vec<SidecarKind> {
        let older = OLDER_FORMATS.iter().rev().map(|older| older.kind);
        older.chain([SIDECAR_KIND]).collect()
    }

    /// Returns what is in a file about the usage of a folder, without its header.
    fn records(file: &[u8]) -> &[u8] {
        const CHECKSUM: usize = 8;
        let mut ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let (end, _) = ends.nth(1).expect("a header has two lines");
        &file[end + 1 + CHECKSUM..]
    }

    /// Puts a file in a format into a cache folder, as if that build had kept it about the project in `root`.
    fn put(cache: &Path, root: &Path, format: usize) {
        let kept = fs::read(fixture(format)).unwrap_or_else(|error| {
            panic!("format {format} has no file: {error}. TRANSCRIPT_WRITE_KEPT=FOLDER writes that of the current one, and leaves its sessions in the folder")
        });
        let folder = root.canonicalize().unwrap().join(PROJECT);
        let kind = kinds()[format - 1];
        assert!(kept.starts_with(format!("transcript usage {format}\n").as_bytes()));
        Sidecar::of(kind, cache, &folder).write_all(records(&kept));
    }

    fn line(entry: &Value) -> String {
        format!("{entry}\n")
    }

    fn answer(session: &str, uuid: &str, id: &str, more: &[(&str, Value)]) -> Value {
        let mut entry = json!({
            "type": "assistant", "uuid": uuid, "sessionId": session, "timestamp": "2026-11-20T10:00:00.000Z",
            "gitBranch": "main", "requestId": format!("req_{uuid}"),
            "message": {
                "id": id, "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": uuid}],
                "usage": {"input_tokens": 3, "output_tokens": 50, "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 20, "service_tier": "standard"},
            },
        });
        for (pointer, value) in more {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            entry.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        entry
    }

    /// Writes sessions that have all that is kept.
    fn write_sessions(root: &Path) {
        let api = |number: u32| format!("msg_0123456789abcdefghijk{number:03}");
        let calls = json!([
            {"type": "tool_use", "id": "toolu_1", "name": "WebSearch", "input": {}},
            {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}},
        ]);
        let steps = json!([
            {"type": "compaction", "model": "claude-haiku-4-5", "input_tokens": 10, "output_tokens": 4},
            {"type": "message", "input_tokens": 3, "output_tokens": 50, "cache_read_input_tokens": 100},
        ]);
        let searched = json!({"type": "user", "uuid": "r1", "sessionId": "aaaa",
            "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
            "toolUseResult": {"searchCount": 2}});
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "c1",
            "timestamp": "2026-11-20T11:00:00.000Z"});
        let counted = json!({"type": "cost-state", "totalCostUSD": 0.5,
            "modelUsage": {"claude-sonnet-4-5": {"inputTokens": 9, "outputTokens": 8, "costUSD": 0.5}}});
        // Long enough that a kept part ends after it.
        let long =
            json!({"type": "user", "uuid": "long", "message": {"content": "x".repeat(1 << 20)}});
        let split = |uuid, output| {
            let more = [
                ("/requestId", json!("req_split")),
                ("/message/usage/output_tokens", json!(output)),
            ];
            answer("aaaa", uuid, &api(3), &more)
        };
        let first = [
            answer("aaaa", "u1", &api(1), &[("/message/content", calls)]),
            searched,
            answer(
                "aaaa",
                "u2",
                &api(2),
                &[("/message/usage/iterations", steps)],
            ),
            split("u3", 1),
            long,
            split("u4", 70),
            answer(
                "aaaa",
                "u5",
                &api(5),
                &[("/costUSD", json!(0.25)), ("/gitBranch", json!("kites"))],
            ),
            boundary,
            answer(
                "aaaa",
                "u6",
                &api(6),
                &[("/timestamp", json!("2026-11-20T12:00:00.000Z"))],
            ),
            counted,
        ];
        // The fork has its own copy of an answer.
        let copied = (
            "/forkedFrom",
            json!({"sessionId": "aaaa", "messageUuid": "u6"}),
        );
        let fork = [
            answer(
                "bbbb",
                "f6",
                &api(6),
                &[
                    ("/timestamp", json!("2026-11-20T12:00:00.000Z")),
                    ("/requestId", json!("req_u6")),
                    copied,
                ],
            ),
            answer(
                "bbbb",
                "f7",
                &api(7),
                &[("/message/model", json!("claude-opus-4-5"))],
            ),
        ];
        let agent = [answer(
            "aaaa",
            "s1",
            &api(8),
            &[("/isSidechain", json!(true)), ("/agentId", json!("x"))],
        )];
        // A gateway gives all answers one id.
        let gateway = [1, 2, 3].map(|number| {
            answer(
                "gate",
                &format!("g{number}"),
                "msg_1",
                &[("/parentUuid", json!(format!("q{number}")))],
            )
        });
        let prompt = json!({"type": "user", "uuid": "q", "message": {"content": "on"}});
        let [one, two, three] = gateway;
        let gateway = [one, prompt.clone(), two, prompt, three];
        let mut streamed = answer("sdk", "k1", &api(9), &[("/session_id", json!("sdk"))]);
        streamed.as_object_mut().unwrap().remove("sessionId");
        let result =
            json!({"type": "result", "uuid": "k2", "session_id": "sdk", "total_cost_usd": 0.125});
        let files: [(&str, &[Value]); 5] = [
            ("aaaa.jsonl", &first),
            ("bbbb.jsonl", &fork),
            ("aaaa/subagents/agent-x.jsonl", &agent),
            ("gate.jsonl", &gateway),
            ("sdk.jsonl", &[streamed, result]),
        ];
        for (name, entries) in files {
            let path = root.join(PROJECT).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let lines: String = entries.iter().map(line).collect();
            fs::write(path, lines).unwrap();
        }
    }

    /// Returns the rows of these kinds, and how many requests are of deleted files.
    fn rows(root: &Path, cache: &Path, by: &[By]) -> (Vec<String>, u64) {
        let catalog = Catalog::open(root).unwrap();
        let options = UsageOptions::new().cache(cache.to_owned());
        let usage = catalog.usage(&options.keep_deleted(root.to_owned()));
        let rows = usage.rows(&Report::by(by), &Prices::embedded());
        let deleted = rows.total().sums.of_deleted;
        let rows = rows.map(|row| {
            let sums = super::super::Sums {
                of_deleted: 0,
                ..row.sums.clone()
            };
            format!("{:?} {sums:?}", row.keys)
        });
        (rows.collect(), deleted)
    }

    /// Writes the file of the current format, and leaves its sessions in this folder for builds of other formats.
    fn write_fixture(sessions: &Path) {
        write_sessions(sessions);
        let cache = tempfile::tempdir().unwrap();
        rows(sessions, cache.path(), &[]);
        let folder = sessions.canonicalize().unwrap().join(PROJECT);
        let kept = Sidecar::of(SIDECAR_KIND, cache.path(), &folder).read_all();
        // No folder of this machine.
        let header = format!("transcript usage {FORMAT_NUMBER}\n/projects/{PROJECT}\n");
        let checksum = hash(header.as_bytes()).to_le_bytes();
        let all = [header.as_bytes(), &checksum, records(&kept)].concat();
        fs::write(fixture(FORMAT_NUMBER), all).unwrap();
    }

    #[test]
    fn the_numbers_are_those_of_the_formats() {
        for (format, kind) in (1..).zip(kinds()) {
            assert_eq!(kind.magic, format!("transcript usage {format}"));
            let extension = if format < 4 {
                "usage".to_owned()
            } else {
                format!("usage{format}")
            };
            assert_eq!(kind.extension, extension);
        }
    }

    /// This build counts cache files that earlier ones wrote after the sessions are deleted. The sums are those of the existing
    /// sessions, without the values that the older format did not have.
    #[test]
    fn records_of_deleted_sessions_count_in_every_format() {
        if let Some(sessions) = std::env::var_os("TRANSCRIPT_WRITE_KEPT") {
            write_fixture(Path::new(&sessions));
        }
        let store = tempfile::tempdir().unwrap();
        let root = store.path();
        write_sessions(root);
        let cache = tempfile::tempdir().unwrap();
        let kinds_of_rows = [By::Session, By::Model, By::Tool, By::Subagent, By::Day];
        let read = |cache: &Path| kinds_of_rows.map(|by| rows(root, cache, &[By::Session, by]).0);
        let live = read(cache.path());
        fs::remove_dir_all(root.join(PROJECT)).unwrap();
        for format in 1..=FORMAT_NUMBER {
            let cache = tempfile::tempdir().unwrap();
            put(cache.path(), root, format);
            let kept = read(cache.path());
            for (live, kept) in live.iter().zip(&kept) {
                let but = |rows: &[String]| -> Vec<String> {
                    let is_known = |row: &&String| {
                        !(format < 2 && row.contains("gate") || format < 3 && row.contains("sdk"))
                    };
                    rows.iter().filter(is_known).cloned().collect()
                };
                assert_eq!(but(live), but(kept), "format {format}");
            }
            let requests = |session: &str| {
                let catalog = Catalog::open(root).unwrap();
                let options = UsageOptions::new().cache(cache.path().to_owned());
                let usage = catalog.usage(&options.keep_deleted(root.to_owned()));
                let rows = usage.rows(&Report::by(&[By::Session]), &Prices::embedded());
                let mut rows = rows.filter(|row| row.keys[0].to_string() == session);
                let sums = rows.next().unwrap().sums;
                (sums.requests, sums.reported_cost)
            };
            // In format 1 one id was one request, and before format 3 results were not read.
            assert_eq!(
                requests("gate").0,
                if format < 2 { 1 } else { 3 },
                "{format}"
            );
            let reported = (format >= 3).then_some(125_000_000);
            assert_eq!(requests("sdk"), (1, reported), "{format}");
        }
    }

    /// The file of the current format is what this build writes, so that a change of the format that forgets its
    /// number is noticed.
    #[test]
    fn the_current_format_is_that_of_its_file() {
        let root = tempfile::tempdir().unwrap();
        let cache = tempfile::tempdir().unwrap();
        put(cache.path(), root.path(), FORMAT_NUMBER);
        let folder = root.path().canonicalize().unwrap().join(PROJECT);
        let sidecar = Sidecar::of(SIDECAR_KIND, cache.path(), &folder);
        let mut payloads = Vec::new();
        sidecar.read(|payload| payloads.push(payload.to_vec()));
        assert!(payloads.len() > 4);
        for payload in payloads {
            let part = Part::read(&payload).expect("a payload of the current format");
            assert_eq!(part.write(), payload);
        }
    }

    /// A session that is still there is read again, and what an older build kept stays for when it is deleted.
    #[test]
    fn an_older_file_stays_beside_the_new_one() {
        let store = tempfile::tempdir().unwrap();
        let root = store.path();
        write_sessions(root);
        let cache = tempfile::tempdir().unwrap();
        put(cache.path(), root, 1);
        fs::remove_file(root.join(PROJECT).join("aaaa.jsonl")).unwrap();
        let (before, deleted) = rows(root, cache.path(), &[By::Session]);
        assert_eq!(deleted, 5);
        // The fork is known in the new format now, and the deleted session in the old one.
        fs::remove_file(root.join(PROJECT).join("bbbb.jsonl")).unwrap();
        let (after, deleted) = rows(root, cache.path(), &[By::Session]);
        assert_eq!((before, 6), (after, deleted));
        // Of what both files say, the new one counts.
        fs::remove_dir_all(root.join(PROJECT)).unwrap();
        let gate = |rows: &[String]| rows.iter().find(|row| row.contains("gate")).cloned();
        let (gone, _) = rows(root, cache.path(), &[By::Session]);
        assert!(gate(&gone).unwrap().contains("requests: 3"), "{gone:?}");
    }

    #[test]
    fn a_damaged_payload_of_an_older_format_says_nothing() {
        for older in &OLDER_FORMATS {
            for payload in [
                &b""[..],
                b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",
                b"\x01",
            ] {
                let converted = (older.convert)(payload).unwrap_or_default();
                assert!(Part::read(&converted).is_none());
            }
        }
    }
}
