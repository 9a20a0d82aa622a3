//! Everything that `--json` prints, and everything that `append` reads, is a type of
//! [`transcript_engine::wire`]; `docs/cli.md` documents its fields and names the type above each shape.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use transcript_engine::wire::{
    self, Answer, ArchiveCheckReport, ClientAction, CommandLine, CostRecord, ErrorRecord,
    ForkRecord, HandOverRecord, KeepReport, MergeReport, MoveReport, PruneReport, RedactionRecord,
    ReferenceRecord, RepairReport, ReplayRecord, RestoreReport, ResumeRefusal, ResumeReport,
    SearchRecord, ServeRecord, SessionRecord, TailRecord, TreeReport, VerifyRecord,
    VerifySumRecord,
};

use transcript_format::context_refs::Reference;

use crate::append::{self, Session};
use crate::{fixture, sessions, stderr, stdout, transcript};

/// The values of these fields are copied from a file.
const VERBATIM: [&str; 4] = ["message", "messages", "entry", "block"];

fn documentation() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    fs::read_to_string(path).unwrap()
}

fn fixtures() -> Vec<String> {
    let folders = ["sessions", "pains", "hostile"].map(|name| sessions().join("..").join(name));
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = files.map(|file| file.unwrap().path().to_str().unwrap().to_owned());
    let paths: Vec<_> = paths.filter(|path| path.ends_with(".jsonl")).collect();
    assert!(paths.len() > 60, "{}", paths.len());
    paths
}

/// The names of all fields that were printed.
#[derive(Default)]
struct Printed(BTreeSet<String>);

impl Printed {
    /// Parses a line. A field that the type does not have would be missing from its own JSON.
    fn parse<T: DeserializeOwned + Serialize>(&mut self, line: &str) -> T {
        let parsed: T =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(wire::text(&parsed).unwrap(), wire::escaped(line));
        self.add(line);
        parsed
    }

    /// Verbatim values may contain what `serde_json` does not read, such as half a surrogate pair.
    fn add(&mut self, json: &str) {
        if let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
            for (name, value) in fields {
                if !VERBATIM.contains(&&*name) {
                    self.add(value.get());
                }
                self.0.insert(name);
            }
        } else if let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(json) {
            values.iter().for_each(|value| self.add(value.get()));
        }
    }

    fn assert_documented(&self, some: &[&str]) {
        let documentation = documentation();
        let is_missing = |name: &&String| {
            let forms = [format!("\"{name}\""), format!("`{name}`")];
            !forms.iter().any(|form| documentation.contains(form))
        };
        let missing: Vec<_> = self.0.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "not in docs/cli.md: {missing:?}");
        for name in some {
            assert!(self.0.contains(*name), "{name} was never printed");
        }
    }
}

fn lines(arguments: &[&str]) -> Vec<String> {
    let output = transcript(arguments);
    let text = stdout(&output);
    assert!(!text.is_empty(), "{arguments:?}: {}", stderr(&output));
    let lines = text.split_terminator('\n');
    lines.map(str::to_owned).collect()
}

#[test]
fn every_field_of_replay_is_documented() {
    let mut printed = Printed::default();
    for path in fixtures() {
        let options = ["--json", "--raw-entries", "--all-branches", "--sidechains"];
        for line in lines(&[&["replay", &path][..], &options].concat()) {
            let record: ReplayRecord<'_> = printed.parse(&line);
            assert!(!matches!(record, ReplayRecord::Unknown(_)), "{line}");
        }
    }
    printed.assert_documented(&["from", "agent", "subtype", "entry", "decisions"]);
}

#[test]
fn every_field_of_resume_is_documented() {
    let mut printed = Printed::default();
    for path in fixtures() {
        for policy in ["recover", "vendor"] {
            let [line] = &lines(&["resume", "--json", "--policy", policy, &path])[..] else {
                panic!("{path}: not one line");
            };
            let report: ResumeReport<'_> = printed.parse(line);
            assert!(report.resumable || report.messages.is_empty());
        }
    }
    let some = [
        "persist", "omitted", "severity", "warnings", "todos", "models",
    ];
    printed.assert_documented(&some);
}

#[test]
fn every_field_of_resume_for_another_format_is_documented() {
    let mut printed = Printed::default();
    let session = Session::new();
    fs::write(&session.path, b"\xff\xfe{\0}\0\n\0").unwrap();
    let line = &lines(&["resume", "--json", session.path.to_str().unwrap()])[0];
    let refusal: ResumeRefusal = printed.parse(line);
    assert_eq!((refusal.resumable, refusal.session_id), (false, None));
    let report: ResumeReport<'_> = serde_json::from_str(line).unwrap();
    assert!(report.messages.is_empty() && report.entries.is_empty());
    printed.assert_documented(&["reason"]);
}

#[test]
fn every_field_of_tree_is_documented() {
    let mut printed = Printed::default();
    for path in fixtures() {
        let [line] = &lines(&["tree", "--json", &path])[..] else {
            panic!("{path}: not one line");
        };
        printed.parse::<TreeReport>(line);
    }
    printed.assert_documented(&["logicalParent", "resolves", "kept", "agent", "tip"]);
}

#[test]
fn every_field_of_tail_is_documented() {
    let mut printed = Printed::default();
    let sessions = sessions();
    let folder = ["tail", "--json", sessions.to_str().unwrap()].map(str::to_owned);
    let of_folder = lines(&folder.each_ref().map(|argument| &**argument));
    let of_files = fixtures().into_iter().flat_map(|path| {
        let output = transcript(&["tail", "--json", "--raw-entries", "--changes", &path]);
        let text = stdout(&output);
        let lines = text.split_terminator('\n').map(str::to_owned);
        lines.collect::<Vec<_>>()
    });
    let mut kinds = BTreeSet::new();
    for line in of_folder.into_iter().chain(of_files) {
        // The version is not a field of a type: it is in the first object, whichever that is.
        let line = line.replacen("{\"schema\":1,", "{", 1);
        let record: TailRecord<'_> = printed.parse(&line);
        assert!(!matches!(record, TailRecord::Unknown(_)), "{line}");
        let (_, kind) = line.split_once("\"kind\":\"").unwrap();
        kinds.insert(kind.split('"').next().unwrap().to_owned());
    }
    // The records of files that change are in the documentation only.
    let expected = [
        "bad",
        "boundary",
        "call-closed",
        "call-opened",
        "entry",
        "moved",
        "open",
        "turn-end",
    ];
    assert_eq!(kinds.iter().collect::<Vec<_>>(), expected);
    printed.assert_documented(&["fork", "name", "code", "entry"]);
}

#[test]
fn every_field_of_list_and_fork_is_documented() {
    let mut printed = Printed::default();
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-work");
    fs::create_dir(&project).unwrap();
    for (at, path) in fixtures().iter().enumerate() {
        let name = format!("1999463e-ee08-4b08-99d5-{at:012}.jsonl");
        fs::copy(path, project.join(name)).unwrap();
    }
    let root = root.path().to_str().unwrap();
    let rows = lines(&["list", "--json", "--root", root]);
    assert!(rows.len() > 60, "{}", rows.len());
    for line in rows {
        printed.parse::<SessionRecord<'_>>(&line);
    }
    let out = project.join("copy.jsonl");
    let out = ["--out", out.to_str().unwrap()];
    let copied = lines(&[&["fork", "--json", &fixture("linear.jsonl")][..], &out].concat());
    let record: ForkRecord = printed.parse(&copied[0]);
    assert_eq!(record.path, Path::new(out[1]));
    printed.assert_documented(&["hasFile", "source"]);
}

#[test]
fn every_field_of_verify_is_documented() {
    let mut printed = Printed::default();
    let folder = sessions().join("..");
    let mut arguments = vec!["verify", "--json", "--requests"];
    let folders = ["sessions", "pains", "findings"].map(|name| folder.join(name));
    arguments.extend(folders.iter().map(|folder| folder.to_str().unwrap()));
    let recorded = crate::verify::recorded();
    arguments.push(recorded.path().to_str().unwrap());
    let output = transcript(&arguments);
    let text = stdout(&output);
    let (sessions, sum) = text.trim_end().rsplit_once('\n').unwrap();
    for line in sessions.lines() {
        printed.parse::<VerifyRecord>(line);
    }
    assert_eq!(printed.parse::<VerifySumRecord>(sum).requests.recorded, 3);
    assert_eq!(output.status.code(), Some(3));
    printed.assert_documented(&[
        "visible",
        "reproduced",
        "uuid",
        "reason",
        "unknown",
        "files",
    ]);
}

#[test]
fn every_field_of_search_is_documented() {
    let mut printed = Printed::default();
    let folder = sessions().join("..");
    let folder = folder.to_str().unwrap();
    for options in [&[][..], &["--files"], &["--count"], &["--sort", "time"]] {
        let arguments = ["search", "--json", "--in", folder, "/the|a/"];
        for line in lines(&[&arguments[..], options].concat()) {
            let record: SearchRecord<'_> = printed.parse(&line);
            assert!(!matches!(record, SearchRecord::Unknown(_)), "{line}");
        }
    }
    printed.assert_documented(&["match", "agentId", "tool", "also", "unread", "modified"]);
}

#[test]
fn every_field_of_repair_is_documented() {
    let mut printed = Printed::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dangling.jsonl");
    fs::copy(sessions().join("../pains/03-dangling.jsonl"), &path).unwrap();
    let out = folder.path().join("repaired.jsonl");
    let out = ["--json", "--out", out.to_str().unwrap()];
    for options in [&["--json"][..], &out, &["--json", "--keep-id"]] {
        let arguments = [&["repair"], options, &[path.to_str().unwrap()]].concat();
        let line = &lines(&arguments)[0];
        let report: RepairReport = printed.parse(line);
        assert_eq!(report.after.visible.vendor, 4, "{line}");
    }
    let mut session = fs::read_to_string(&path).unwrap();
    for mode in ["plan", "default", "plan"] {
        session += &format!("{{\"type\":\"permission-mode\",\"permissionMode\":\"{mode}\"}}\n");
    }
    fs::write(&path, session).unwrap();
    let line = &lines(&["repair", "--json", "--compact", path.to_str().unwrap()])[0];
    let report: RepairReport = printed.parse(line);
    assert_eq!(report.compacted.unwrap().lines, 1, "{line}");
    let fields = [
        "plan",
        "detail",
        "after",
        "recover",
        "out",
        "old",
        "compacted",
        "types",
    ];
    printed.assert_documented(&fields);
}

#[test]
fn every_field_of_append_is_documented() {
    let session = Session::new();
    let commands = [
        json!({"op": "hello"}),
        json!({"id": null, "op": "append", "user": "Which years have a leap day?"}),
        json!({"id": [1.50, "\u{e9}"], "op": "meta", "entry": {"type": "tag", "tag": "t"}}),
        json!({"op": "prompt", "sections": [{"name": "git", "text": "main"}]}),
        json!({"op": "changes", "sections": [{"name": "git", "text": "fix"}], "separator": "\n"}),
        json!({"op": "rewind", "to": null}),
        json!({"op": "rewind", "to": "nobody"}),
        json!({"op": "spell"}),
        json!({"op": "sync"}),
        json!({"id": "last", "op": "close"}),
    ];
    let output = session.run(&["--create"], &append::lines(&commands));
    let mut printed = Printed::default();
    let answers = stdout(&output);
    let answers = answers.split_terminator('\n');
    let answers: Vec<Answer<'_>> = answers.map(|line| printed.parse(line)).collect();
    let is_ok: Vec<_> = answers.iter().map(|answer| answer.ok).collect();
    let expected = [true, true, true, true, true, true, false, false, true, true];
    assert_eq!(is_ok, expected);
    let ids = answers
        .iter()
        .map(|answer| answer.id.as_ref().map(wire::Json::text));
    let ids: Vec<_> = ids.collect();
    let expected = [
        None,
        Some("null"),
        Some("[1.5,\"é\"]"),
        None,
        None,
        None,
        None,
        None,
        None,
    ];
    assert_eq!(ids[..9], expected);
    printed.assert_documented(&["schema", "parentUuid", "changes", "retry"]);
    for command in commands.iter().filter(|command| command["op"] != "spell") {
        let command = command.to_string();
        let parsed: CommandLine<'_> = serde_json::from_str(&command).unwrap();
        let printed: Value = serde_json::from_str(&wire::text(&parsed).unwrap()).unwrap();
        assert_eq!(printed, serde_json::from_str::<Value>(&command).unwrap());
    }
}

/// The shapes of the documentation, each with the type that is named above it.
fn shapes() -> Vec<(String, String)> {
    let mut shapes = Vec::new();
    let mut name = String::new();
    let mut block: Option<String> = None;
    for line in documentation().split('\n') {
        match &mut block {
            Some(json) if line == "```" => {
                let values = serde_json::Deserializer::from_str(json).into_iter::<Box<RawValue>>();
                let values = values.map(|value| value.unwrap().get().to_owned());
                shapes.extend(values.map(|json| (name.clone(), json)));
                block = None;
            }
            Some(json) => json.push_str(line),
            None if line == "```json" => block = Some(String::new()),
            None => {
                if let Some((_, after)) = line.split_once("`wire::") {
                    name = after.split('`').next().unwrap().to_owned();
                }
                // A shape in running text.
                let code = line.split('`').skip(1).step_by(2);
                let records = code.filter(|code| code.starts_with("{\"kind\":"));
                shapes.extend(records.map(|json| (name.clone(), json.to_owned())));
            }
        }
    }
    shapes
}

/// Checks that the type has every field of the shape, with its value.
fn assert_has<T: DeserializeOwned + Serialize>(json: &str) {
    let parsed: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let printed = serde_json::to_value(&parsed).unwrap();
    assert_contains(&printed, &serde_json::from_str(json).unwrap());
}

fn assert_contains(printed: &Value, documented: &Value) {
    match (printed, documented) {
        (Value::Object(printed), Value::Object(documented)) => {
            for (name, value) in documented {
                let field = printed.get(name);
                let field = field.unwrap_or_else(|| panic!("the type has no field {name}"));
                assert_contains(field, value);
            }
        }
        (Value::Array(printed), Value::Array(documented)) => {
            assert_eq!(printed.len(), documented.len());
            for (printed, documented) in printed.iter().zip(documented) {
                assert_contains(printed, documented);
            }
        }
        _ => assert_eq!(printed, documented),
    }
}

#[test]
fn types_have_every_field_of_the_documented_shapes() {
    let shapes = shapes();
    let mut seen = BTreeSet::new();
    for (name, json) in &shapes {
        match &**name {
            "SessionRecord" => assert_has::<SessionRecord<'_>>(json),
            "ReplayRecord" => {
                assert_has::<ReplayRecord<'_>>(json);
                let record = serde_json::from_str(json).unwrap();
                assert!(!matches!(record, ReplayRecord::Unknown(_)), "{json}");
            }
            "SearchRecord" => {
                assert_has::<SearchRecord<'_>>(json);
                let record = serde_json::from_str(json).unwrap();
                assert!(!matches!(record, SearchRecord::Unknown(_)), "{json}");
            }
            "CostRecord" => {
                assert_has::<CostRecord<'_>>(json);
                let record = serde_json::from_str(json).unwrap();
                assert!(!matches!(record, CostRecord::Unknown(_)), "{json}");
            }
            "ResumeReport" => assert_has::<ResumeReport<'_>>(json),
            "TreeReport" => assert_has::<TreeReport>(json),
            "TailRecord" => {
                assert_has::<TailRecord<'_>>(json);
                let record = serde_json::from_str(json).unwrap();
                assert!(!matches!(record, TailRecord::Unknown(_)), "{json}");
            }
            "Answer" => assert_has::<Answer<'_>>(json),
            "ErrorRecord" => assert_has::<ErrorRecord>(json),
            "ForkRecord" => assert_has::<ForkRecord>(json),
            "HandOverRecord" => assert_has::<HandOverRecord>(json),
            "VerifyRecord" => assert_has::<VerifyRecord>(json),
            "VerifySumRecord" => assert_has::<VerifySumRecord>(json),
            "MoveReport" => assert_has::<MoveReport>(json),
            "MergeReport" => assert_has::<MergeReport>(json),
            "ReferenceRecord" => assert_has::<ReferenceRecord<'_>>(json),
            "RepairReport" => assert_has::<RepairReport>(json),
            "KeepReport" => assert_has::<KeepReport>(json),
            "PruneReport" => assert_has::<PruneReport>(json),
            "RedactionRecord" => assert_has::<RedactionRecord>(json),
            "RestoreReport" => assert_has::<RestoreReport>(json),
            "ArchiveCheckReport" => assert_has::<ArchiveCheckReport>(json),
            "ServeRecord" => assert_has::<ServeRecord>(json),
            name => panic!("no type {name}: {json}"),
        }
        seen.insert(&**name);
    }
    assert_eq!((seen.len(), shapes.len()), (23, 47), "{seen:?}");
}

/// The commands in the first column of the table: `…` and words stand for values.
#[test]
fn commands_have_every_field_of_the_documented_ones() {
    let documentation = documentation();
    let rows = documentation.split('\n');
    let commands = rows.filter_map(|row| row.strip_prefix("| `{\"op\":")?.split('`').next());
    let mut count = 0;
    for command in commands {
        let json = format!("{{\"op\":{command}")
            .replace("[{…}…]", r#"[{"type":"tag"}]"#)
            .replace("{…}", r#"{"type":"tag"}"#)
            .replace("[…]", "[{}]")
            .replace("[uuid…]", r#"["u"]"#)
            .replace(":uuid}", r#":"u"}"#)
            .replace(":uuid,", r#":"u","#)
            .replace(r#""manual"\|"auto""#, r#""manual""#)
            .replace(":N}", ":7}");
        let parsed: CommandLine<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(wire::text(&parsed).unwrap(), json);
        count += 1;
    }
    assert_eq!(count, 33);
}

/// The actions in a client, and the references, of the first columns of their tables.
#[test]
fn every_documented_action_and_reference_is_one() {
    let documentation = documentation();
    let (_, section) = documentation.split_once("### Actions in a client").unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let rows = section
        .split('\n')
        .filter_map(|row| row.strip_prefix("| `{"));
    let (mut actions, mut kinds) = (0, 0);
    for row in rows {
        let json = format!("{{{}", row.split('`').next().unwrap());
        if json.starts_with("{\"kind\":") {
            let reference: ReferenceRecord<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(wire::text(&reference).unwrap(), json);
            // The second column shows it as it is written, then what is optional.
            let written = Reference::from(&reference).to_string();
            let shown = row.split(" | ").nth(1).unwrap().trim_end_matches(" |");
            let shown = shown.split("; ").next().unwrap();
            assert_eq!(shown, written);
            kinds += 1;
        } else {
            let action: ClientAction<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(wire::text(&action).unwrap(), json);
            assert!(!action.entries().unwrap().is_empty(), "{json}");
            actions += 1;
        }
    }
    assert_eq!((actions, kinds), (7, 9));
}

#[test]
fn every_field_of_move_and_merge_is_documented() {
    let mut printed = Printed::default();
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    let line = |id: &str, text: &str| {
        let cwd = root.join("old");
        let line = json!({"type": "user", "uuid": id, "sessionId": id, "cwd": cwd,
            "message": {"role": "user", "content": text}});
        format!("{line}\n")
    };
    let store = transcript_engine::Store::new(root.join("projects"));
    let [old, new] = ["old", "new"].map(|name| store.project(&root.join(name)));
    let ids = [1, 2].map(|number| format!("1999463e-ee08-4b08-99d5-{number:012}"));
    for folder in [&old, &new] {
        fs::create_dir_all(folder).unwrap();
    }
    let place = |folder: &Path, id: &str| folder.join(format!("{id}.jsonl"));
    fs::write(place(&old, &ids[0]), line(&ids[0], "x")).unwrap();
    fs::write(place(&old, &ids[1]), line(&ids[1], "x")).unwrap();
    fs::write(place(&new, &ids[1]), line(&ids[1], "y")).unwrap();
    let [from, to] = ["old", "new"].map(|name| root.join(name).to_str().unwrap().to_owned());
    let projects = store.root().to_str().unwrap();
    let moved = lines(&["move", "--json", "--root", projects, &from, &to]);
    let report: MoveReport = printed.parse(&moved[0]);
    assert_eq!((report.moved.len(), report.refused.len()), (1, 1));
    let [a, b] = [&old, &new].map(|folder| place(folder, &ids[1]).to_str().unwrap().to_owned());
    let out = root.join("merged.jsonl").to_str().unwrap().to_owned();
    let merged = lines(&["merge", "--json", "--out", &out, &a, &b]);
    let report: MergeReport = printed.parse(&merged[0]);
    assert_eq!(report.conflicts.len(), 1);
    printed.assert_documented(&["moved", "refused", "left", "fromA", "lineB", "findings"]);
}
