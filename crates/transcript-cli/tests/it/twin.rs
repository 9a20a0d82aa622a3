//! Every command that reads a session answers about an archived one as about its live twin.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::{command, fixture, stderr, stdout};

/// The arguments of each command. `ID` is the session, `OUT` a new file.
const QUESTIONS: [&[&str]; 27] = [
    &["replay", "ID"],
    &["replay", "ID", "--sidechains", "--all-branches"],
    &["replay", "ID", "--format", "json"],
    &["replay", "ID", "--format", "ids", "--policy", "vendor"],
    &["replay", "ID", "--format", "markdown"],
    &["tree", "ID"],
    &["tree", "ID", "--json"],
    &["resume", "ID", "--request"],
    &["resume", "ID", "--json"],
    &["resume", "ID", "--request", "--policy", "vendor"],
    &["tail", "ID"],
    &["tail", "ID", "--json", "--changes"],
    &["tail", "ID", "--json", "--sidechains"],
    &["tail", "ID", "-n", "2"],
    &["tail", "ID", "--from", "line:1", "--json"],
    &["tail", "ID", "--until", "turn-end", "--timeout", "0.1"],
    &["search", "--no-cache", "--json", "--all", "the"],
    &["usage", "--no-cache", "--json", "--all", "--by", "session"],
    &["verify", "ID"],
    &["verify", "ID", "--json", "--requests"],
    &["repair", "ID"],
    &["repair", "ID", "--json", "--compact"],
    &["repair", "ID", "--out", "OUT"],
    &["repair", "ID", "--salvage"],
    &["merge", "ID", "ID", "--out", "OUT"],
    &["export", "ID", "--markdown", "OUT"],
    &["export", "ID", "--html", "OUT"],
];
/// Questions that find damage in whatever file of a session it is.
const OF_DAMAGE: [&[&str]; 4] = [
    &["verify", "ID", "--json"],
    &["tail", "ID", "--json"],
    &["repair", "ID", "--json"],
    &["replay", "ID", "--format", "ids"],
];
/// Commands that change sessions or the archive, list all of them, write new ids, or read none. What they do with archived
/// sessions is in tests of their own.
const OTHERS: [&str; 16] = [
    "append",
    "browse",
    "completions",
    "convert",
    "fork",
    "help",
    "import",
    "keep",
    "list",
    "man",
    "move",
    "prune",
    "pull",
    "push",
    "restore",
    "serve",
];

struct Twins {
    folder: TempDir,
    ids: Vec<String>,
}

impl Twins {
    /// Copies all sessions of the fixtures, whole and damaged, into one project.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("home/projects/-home-ada-notes");
        fs::create_dir_all(&project).unwrap();
        let mut twins = Self {
            folder,
            ids: Vec::new(),
        };
        for place in ["sessions", "salvage/stalled", "salvage/current"] {
            twins.add_folder(&Path::new(&fixture("..")).join(place));
        }
        let findings = Path::new(&fixture("..")).join("findings");
        for entry in fs::read_dir(findings).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                twins.add_folder(&path);
            }
        }
        twins.add_damaged_agent();
        // Whose rights count is a matter of the live store.
        private(twins.folder.path());
        twins
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("home/projects/-home-ada-notes")
    }

    fn add_folder(&mut self, folder: &Path) {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        paths.sort();
        for path in paths {
            let id = format!("{:08}-0000-4000-8000-000000000000", self.ids.len() + 1);
            fs::copy(&path, self.project().join(format!("{id}.jsonl"))).unwrap();
            copy(&path.with_extension(""), &self.project().join(&id));
            self.ids.push(id);
        }
    }

    /// Adds a whole session with a result in a file of its own and two subagents, one of them with a line torn in the
    /// middle.
    fn add_damaged_agent(&mut self) {
        let id = "abcdef01-0000-4000-8000-000000000000".to_owned();
        fs::copy(
            fixture("linear.jsonl"),
            self.project().join(format!("{id}.jsonl")),
        )
        .unwrap();
        let agents = self.project().join(&id).join("subagents");
        let results = self.project().join(&id).join("tool-results");
        fs::create_dir_all(&agents).unwrap();
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("toolu_1.txt"), "the stored result").unwrap();
        fs::copy(fixture("linear.jsonl"), agents.join("agent-a1.jsonl")).unwrap();
        let whole = fs::read(fixture("linear.jsonl")).unwrap();
        let middle = whole.iter().position(|byte| *byte == b'\n').unwrap();
        let damaged = [&whole[..middle - 9], &whole[middle..]].concat();
        fs::write(agents.join("agent-a2.jsonl"), damaged).unwrap();
        self.ids.push(id);
    }

    fn run(&self, question: &[&str], id: &str) -> Output {
        let out = self.out(question);
        let _ = fs::remove_dir_all(out.parent().unwrap());
        fs::create_dir_all(out.parent().unwrap()).unwrap();
        let arguments: Vec<&str> = question
            .iter()
            .map(|argument| match *argument {
                "ID" => id,
                "OUT" => out.to_str().unwrap(),
                argument => argument,
            })
            .collect();
        let mut command = command(&arguments);
        command.args([
            "--root",
            self.folder.path().join("home/projects").to_str().unwrap(),
        ]);
        command.env("TRANSCRIPT_ARCHIVE", self.folder.path().join("archive"));
        command.output().unwrap()
    }

    fn out(&self, question: &[&str]) -> PathBuf {
        let name = question.join("-").replace('/', "-");
        self.folder.path().join("out").join(name).join("new.jsonl")
    }

    /// Returns what the command said and wrote, without where the session is.
    fn answer(&self, question: &[&str], id: &str) -> String {
        let output = self.run(question, id);
        let said = stderr(&output);
        assert!(!said.contains("Usage: "), "{question:?}: {said}");
        let said = said.lines().filter(|line| !line.starts_with("archived: "));
        let mut answer = format!(
            "{:?}\n{}\n{}\n",
            output.status.code(),
            said.collect::<Vec<_>>().join("\n"),
            stdout(&output)
        );
        let mut files = Vec::new();
        list(self.out(question).parent().unwrap(), &mut files);
        for file in files {
            let content = fs::read(&file).unwrap();
            answer += &format!(
                "{}: {}\n",
                file.display(),
                String::from_utf8_lossy(&content)
            );
        }
        let projects = |at: &str| {
            let path = self.folder.path().join(at).join("projects");
            path.to_str().unwrap().to_owned()
        };
        let answer = answer.replace(&projects("archive"), "ROOT");
        answer.replace(&projects("home"), "ROOT")
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten() {
        let (from, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        if from.is_dir() {
            copy(&from, &to);
        } else {
            _ = fs::copy(from, to).unwrap();
        }
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn private(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            private(&entry.unwrap().path());
        }
    }
}

#[test]
fn every_command_that_reads_answers_about_an_archived_session_as_about_a_live_one() {
    let twins = Twins::new();
    let ask = || {
        let mut answers = Vec::new();
        for (number, id) in twins.ids.iter().enumerate() {
            let questions = if number % 5 == 0 || number + 1 == twins.ids.len() {
                &QUESTIONS[..]
            } else {
                &OF_DAMAGE[..]
            };
            for question in questions {
                answers.push((id, question, twins.answer(question, id)));
            }
        }
        answers
    };
    let live = ask();
    let kept = twins.run(&["keep"], "");
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    let gone = twins.folder.path().join("gone");
    fs::rename(twins.folder.path().join("home/projects"), gone).unwrap();
    fs::create_dir_all(twins.folder.path().join("home/projects")).unwrap();
    let mut different = Vec::new();
    for ((id, question, live), (.., archived)) in live.iter().zip(ask()) {
        if *live != archived {
            different.push(format!(
                "{question:?} {id}\n--- live\n{live}\n--- archived\n{archived}"
            ));
        }
    }
    let names: Vec<&str> = different
        .iter()
        .map(|one| one.lines().next().unwrap())
        .collect();
    assert!(
        different.is_empty(),
        "{} differ: {names:#?}\n{}",
        names.len(),
        different[0]
    );
    // Damage was among it.
    let is_lossy = |(.., question, answer): &(&String, &&[&str], String)| {
        question[0] == "verify" && answer.starts_with("Some(3)")
    };
    assert!(live.iter().any(is_lossy));
}

#[test]
fn every_command_is_asked_about_twins_or_reads_no_session() {
    let commands = crate::help::commands();
    let named: BTreeSet<&str> = commands.iter().map(String::as_str).collect();
    let asked = QUESTIONS.iter().map(|question| question[0]);
    let mut known: BTreeSet<&str> = asked.chain(OTHERS).collect();
    for (command, is_built) in [
        ("browse", cfg!(feature = "browse")),
        ("convert", cfg!(feature = "import")),
        ("serve", cfg!(feature = "serve")),
    ] {
        if !is_built {
            known.remove(command);
        }
    }
    assert_eq!(named, known);
}

#[test]
fn an_archived_session_is_not_waited_for_and_not_replaced() {
    let twins = Twins::new();
    let id = twins.ids.last().unwrap();
    assert_eq!(twins.run(&["keep"], "").status.code(), Some(0));
    fs::remove_dir_all(twins.project()).unwrap();
    let once = stdout(&twins.run(&["tail", "ID", "--json"], id));
    let followed = twins.run(&["tail", "ID", "--json", "-f"], id);
    assert_eq!(stdout(&followed), once);
    assert!(once.contains("\"uuid\""), "{once}");
    let waited = twins.run(&["tail", "ID", "--until", "text:never said"], id);
    assert_eq!(waited.status.code(), Some(1));
    let appended = twins.run(&["append", "ID"], id);
    assert_eq!(appended.status.code(), Some(2));
    let said = stderr(&appended);
    assert!(said.contains("only in the archive"), "{said}");
    assert!(said.contains(&format!("transcript restore {id}")), "{said}");
    assert!(!twins.project().exists());
    let damaged = &twins.ids[..twins.ids.len() - 1];
    let refused = damaged
        .iter()
        .map(|id| twins.run(&["repair", "ID", "--keep-id"], id));
    let refused: Vec<Output> = refused
        .filter(|output| stderr(output).contains("restore"))
        .collect();
    assert!(refused.iter().any(|output| {
        output.status.code() == Some(1) && stderr(output).contains("not on the disk")
    }));
}
