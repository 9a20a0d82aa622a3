//! `transcript browse` in a real terminal: walks through it with the keys of tmux.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{stderr, stdout, transcript};

const LEAP: &str = "1a94a3e0-0000-4000-8000-000000000001";
const MOON: &str = "2b94a3e0-0000-4000-8000-000000000002";

/// A terminal with a shell in it.
struct Walk {
    socket: String,
    folder: TempDir,
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

impl Walk {
    /// Starts a shell in a terminal; `None`, with a word about it, without tmux.
    fn new(columns: usize, rows: usize) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            let _ = writeln!(std::io::stderr(), "skipped: no tmux");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let walk = Self {
            socket: format!("transcript-{}-{number}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
        };
        walk.write_sessions();
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let home = format!("HOME={}", walk.folder.path().display());
        let new = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
        ];
        let envs = [
            "-e",
            &home,
            "-e",
            "TZ=UTC",
            "-e",
            "PS1=> ",
            "-e",
            "TMPDIR=/tmp",
        ];
        walk.tmux(&[&new[..], &envs, &["sh"]].concat());
        walk.tmux(&["set-option", "-s", "set-clipboard", "on"]);
        Some(walk)
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket]).args(arguments);
        let output = tmux.env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        output
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("projects")
    }

    fn file(&self, project: &str, id: &str) -> PathBuf {
        self.root().join(project).join(format!("{id}.jsonl"))
    }

    /// Writes two projects with a session each: one of thirty turns, with a call, a thought, code, a
    /// subagent and a branch; and a short one.
    fn write_sessions(&self) {
        let mut lines = Lines::new(LEAP, self.folder.path().to_str().unwrap());
        lines.user("Which years have a leap day?");
        lines.assistant(&json!([{"type": "thinking", "thinking": "Gregorian rules.\nEvery fourth.", "signature": "s"}]));
        lines.assistant(&json!([{"type": "text", "text": "Most fourth ones:\n\n```python\nprint(2000 % 400)\n```\n\nand so on."}]));
        lines.call(
            "t1",
            "Bash",
            &json!({"command": "cal 2 2000"}),
            "February\nfull-calendar-row\n\u{1b}[31mred 29\u{1b}[0m",
        );
        lines.call(
            "t2",
            "Task",
            &json!({"prompt": "Count them", "description": "count"}),
            "counted",
        );
        let fork = lines.parent.clone();
        lines.user("an abandoned question");
        lines.assistant(&json!([{"type": "text", "text": "an abandoned answer"}]));
        lines.parent = fork;
        for number in 1..=30 {
            lines.user(&format!("question number {number} about 閏年 🎉"));
            let text = format!("answer number {number}\n\nwith a word{number} in it");
            lines.assistant(&json!([{"type": "text", "text": text}]));
        }
        lines.title("About leap years");
        lines.write(&self.file("-home-leap", LEAP));
        let mut agent = Lines::new(LEAP, "/home");
        agent.is_agent = true;
        agent.user("Count them");
        agent.assistant(&json!([{"type": "text", "text": "the subagent counted 97"}]));
        let agents = self.root().join("-home-leap").join(LEAP).join("subagents");
        agent.write(&agents.join("agent-a1b2.jsonl"));
        fs::write(agents.join("agent-a1b2.meta.json"), r#"{"toolUseId":"t2"}"#).unwrap();
        let mut lines = Lines::new(MOON, "/home/moon");
        lines.user("How far is the moon?");
        lines.assistant(&json!([{"type": "text", "text": "384,400 km"}]));
        lines.write(&self.file("-home-moon", MOON));
    }

    /// Starts the view, and waits for this text on the screen.
    fn browse(&self, arguments: &str, shown: &str) {
        self.run(&format!(
            "{} --root {} {arguments}",
            env!("CARGO_BIN_EXE_transcript"),
            self.root().display()
        ));
        self.see(shown);
    }

    fn run(&self, command: &str) {
        self.tmux(&["send-keys", "-l", command]);
        self.keys(&["Enter"]);
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn typed(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    fn screen(&self) -> String {
        stdout(&self.tmux(&["capture-pane", "-p"]))
    }

    fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "no {what} on\n{screen}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn see(&self, text: &str) -> String {
        self.see_all(&[text])
    }

    /// Waits for all these texts on one screen. What is seen of a screen while it is drawn may be
    /// half of it, so that a test waits for all that it checks.
    fn see_all(&self, texts: &[&str]) -> String {
        self.see_without(texts, &[])
    }

    /// Waits for a screen with all these texts and none of the others.
    fn see_without(&self, texts: &[&str], others: &[&str]) -> String {
        self.wait(&format!("{texts:?} without {others:?}"), |screen| {
            texts.iter().all(|text| screen.contains(text))
                && !others.iter().any(|text| screen.contains(text))
        })
    }

    fn miss(&self, text: &str) -> String {
        self.see_without(&[], &[text])
    }

    /// Waits for the name of a file after this text, and returns the file.
    fn see_name(&self, text: &str, file: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
        let named = |screen: &str| {
            let (_, name) = screen.rsplit_once(text)?;
            file(name.split_whitespace().next()?)
        };
        let screen = self.wait(&format!("file after {text}"), |screen| {
            named(screen).is_some()
        });
        named(&screen).unwrap()
    }

    /// Waits until this text is what the terminal was given to keep.
    fn see_copied(&self, text: &str) {
        let show = || {
            let mut tmux = Command::new("tmux");
            tmux.args(["-L", &self.socket, "show-buffer"]);
            stdout(&tmux.env("LC_ALL", "C.UTF-8").output().unwrap())
        };
        self.wait(&format!("copy of {text}"), |_| show() == text);
    }

    /// Waits until the cursor is on a line with this text.
    fn see_at_cursor(&self, text: &str) -> String {
        let is_there = |screen: &str| {
            screen.lines().any(|line| {
                line.contains('›') && line.split('›').next_back().unwrap().contains(text)
            })
        };
        self.wait(&format!("cursor at {text}"), is_there)
    }

    /// Opens the long session.
    fn at_leap(columns: usize, rows: usize) -> Option<Self> {
        let walk = Self::new(columns, rows)?;
        walk.browse(&format!("browse {LEAP}"), "with a word30 in it");
        walk.wait("all of it", |screen| screen.contains("100 %"));
        Some(walk)
    }

    /// Searches for a text.
    fn search(&self, text: &str) {
        self.keys(&["/"]);
        self.typed(text);
        self.keys(&["Enter"]);
    }

    /// The id of the view, a child of the shell.
    fn pid(&self) -> String {
        let shell = stdout(&self.tmux(&["display-message", "-p", "#{pane_pid}"]));
        let children = Command::new("pgrep")
            .args(["-P", shell.trim()])
            .output()
            .unwrap();
        stdout(&children).trim().to_owned()
    }

    /// The settings of the terminal.
    fn settings(&self) -> String {
        let tty = stdout(&self.tmux(&["display-message", "-p", "#{pane_tty}"]));
        stdout(
            &Command::new("stty")
                .args(["-a", "-F", tty.trim()])
                .output()
                .unwrap(),
        )
    }

    fn flag(&self, name: &str) -> String {
        let flag = self.tmux(&["display-message", "-p", &format!("#{{{name}}}")]);
        stdout(&flag).trim().to_owned()
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .args(["-L", &self.socket, "kill-server"])
            .output();
    }
}

/// The lines of a session.
struct Lines {
    session: String,
    cwd: String,
    lines: Vec<String>,
    parent: Value,
    is_agent: bool,
}

impl Lines {
    fn new(session: &str, cwd: &str) -> Self {
        Self {
            session: session.to_owned(),
            cwd: cwd.to_owned(),
            lines: Vec::new(),
            parent: Value::Null,
            is_agent: false,
        }
    }

    fn add(&mut self, kind: &str, message: &Value) {
        let number = self.lines.len();
        let uuid = format!("{:08x}-0000-4000-8000-{}", number + 1, &self.session[24..]);
        let line = json!({
            "type": kind, "uuid": uuid, "parentUuid": self.parent, "sessionId": self.session,
            "timestamp": format!("2026-03-04T05:{:02}:{:02}.000Z", number / 60, number % 60),
            "cwd": self.cwd, "version": "2.1.0", "isSidechain": self.is_agent, "userType": "external",
            "message": message,
        });
        self.parent = json!(uuid);
        self.lines.push(line.to_string());
    }

    fn user(&mut self, text: &str) {
        self.add("user", &json!({"role": "user", "content": text}));
    }

    fn assistant(&mut self, content: &Value) {
        let id = format!("msg_{}", self.lines.len());
        self.add("assistant", &json!({"id": id, "role": "assistant", "type": "message", "model": "m", "content": content}));
    }

    fn call(&mut self, id: &str, tool: &str, input: &Value, result: &str) {
        self.assistant(&json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]));
        self.add("user", &json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]}));
    }

    fn title(&mut self, title: &str) {
        self.lines.push(
            json!({"type": "custom-title", "customTitle": title, "sessionId": self.session})
                .to_string(),
        );
    }

    fn write(&self, path: &std::path::Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.lines.join("\n") + "\n").unwrap();
    }
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}

#[test]
fn the_list_shows_projects_and_sessions_and_the_selected_one() {
    let Some(walk) = Walk::new(100, 40) else {
        return;
    };
    walk.browse("browse", "2 sessions");
    walk.see("with a word30 in it");
    walk.keys(&["Down"]);
    walk.see_all(&["384,400 km", "/home/moon 1", "About leap years"]);
    walk.keys(&["Escape"]);
    // The screen from before, with the command.
    walk.see("projects browse");
}

#[test]
fn without_a_command_the_view_starts_on_a_terminal() {
    let Some(walk) = Walk::new(100, 30) else {
        return;
    };
    walk.browse("", "2 sessions");
}

#[test]
fn typing_filters_the_list_and_enter_reads_the_session() {
    let Some(walk) = Walk::new(100, 30) else {
        return;
    };
    walk.browse("browse", "2 sessions");
    walk.typed("LEAP years");
    walk.see("1 of 2");
    walk.keys(&["Enter"]);
    walk.see_at_cursor("word30");
    walk.keys(&["Tab", "Escape"]);
    walk.see("2 sessions");
}

#[test]
fn a_filter_that_nothing_matches_says_so() {
    let Some(walk) = Walk::new(100, 30) else {
        return;
    };
    walk.browse("browse", "2 sessions");
    walk.typed("zzz");
    walk.see("nothing matches");
}

#[test]
fn a_session_opens_at_its_end_and_is_read_line_by_line_and_page_by_page() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    walk.keys(&["k", "k"]);
    walk.see_at_cursor("answer number 30");
    walk.keys(&["g"]);
    walk.see("Which years have a leap day?");
    walk.keys(&["Space"]);
    walk.miss("Which years have a leap day?");
    walk.keys(&["b"]);
    walk.see("Which years have a leap day?");
    walk.keys(&["G"]);
    walk.see_at_cursor("word30");
}

#[test]
fn prompts_are_jumped_to() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    walk.keys(&["[", "["]);
    walk.see("question number 29");
    walk.keys(&["g", "]"]);
    walk.see("question number 1 ");
}

#[test]
fn the_outline_has_all_prompts_and_goes_to_one() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    walk.keys(&["p"]);
    walk.see("31 of 31 prompts");
    walk.typed("number 17");
    walk.see("1 of 31 prompts");
    walk.keys(&["Enter"]);
    walk.see_without(&["question number 17"], &["of 31 prompts"]);
}

#[test]
fn a_text_is_found_forward_backward_and_around_the_end() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    walk.search("ANSWER number 2");
    walk.see("not found: ANSWER number 2");
    walk.search("answer number 2");
    walk.see_at_cursor("answer number 2");
    walk.see("search continued at the other end");
    walk.keys(&["n"]);
    walk.see_at_cursor("answer number 20");
    walk.keys(&["N"]);
    walk.wait("first hit", |screen| {
        screen
            .lines()
            .any(|line| line.contains('›') && line.trim_end().ends_with("answer number 2"))
    });
}

#[test]
fn a_hit_in_a_folded_result_is_unfolded() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    assert!(!walk.screen().contains("full-calendar-row"));
    walk.search("full-calendar-row");
    walk.see_at_cursor("full-calendar-row");
}

#[test]
fn calls_and_thoughts_are_folded_and_unfolded() {
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    walk.keys(&["g"]);
    walk.see("~ thought · 2 lines");
    walk.keys(&["t"]);
    walk.see("Gregorian rules.");
    walk.keys(&["c"]);
    walk.see("full-calendar-row");
    walk.keys(&["c"]);
    walk.miss("Bash");
    walk.keys(&["c"]);
    walk.see("Bash");
    walk.search("cal 2 2000");
    walk.see("full-calendar-row");
    walk.keys(&["Enter"]);
    walk.miss("full-calendar-row");
}

#[test]
fn a_subagent_is_shown_within_its_call() {
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    walk.search("counted");
    walk.see("the subagent counted 97");
}

#[test]
fn a_branch_is_shown_where_it_leaves() {
    let Some(walk) = Walk::at_leap(100, 60) else {
        return;
    };
    walk.keys(&["g"]);
    walk.see("branch · 2 entries");
    assert!(!walk.screen().contains("an abandoned answer"));
    walk.search("branch · 2");
    walk.see("not found");
    walk.keys(&["]", "{", "Enter"]);
    walk.see("an abandoned answer");
    walk.keys(&["Enter"]);
    walk.miss("an abandoned answer");
}

#[test]
fn a_block_and_the_code_in_it_are_copied() {
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    walk.search("Most fourth");
    walk.see_at_cursor("Most fourth");
    walk.keys(&["y"]);
    walk.see("python 1 lines: print(2000 % 400)");
    walk.keys(&["1"]);
    let screen = walk.see("copied 18 B");
    assert!(!screen.contains("also in"), "{screen}");
    walk.see_copied("print(2000 % 400)\n");
    walk.keys(&["G", "y"]);
    walk.see("copied 37 B");
    walk.see_copied("answer number 30\n\nwith a word30 in it");
}

#[test]
fn the_raw_line_of_a_block_is_shown() {
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    walk.keys(&["o"]);
    walk.see_all(&["raw line", "\"parentUuid\":\"", "word30"]);
    walk.keys(&["Escape"]);
    walk.see_at_cursor("word30");
}

#[test]
fn a_fork_is_asked_first_and_is_a_session_of_what_is_above() {
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    let sessions = || fs::read_dir(walk.root().join("-home-leap")).unwrap();
    let count = || {
        sessions()
            .filter(|file| file.as_ref().unwrap().path().extension().is_some())
            .count()
    };
    walk.search("answer number 5");
    walk.see_at_cursor("answer number 5");
    walk.keys(&["f"]);
    walk.see("into a new session? (y/n)");
    walk.keys(&["n"]);
    walk.see("nothing was done");
    assert_eq!(count(), 1);
    walk.keys(&["f"]);
    walk.see("into a new session? (y/n)");
    walk.keys(&["y"]);
    let fork = walk.see_name("forked into ", |id| {
        Some(walk.file("-home-leap", id)).filter(|file| is_file(file))
    });
    let text = fs::read_to_string(fork).unwrap();
    assert!(
        text.contains("answer number 5") && !text.contains("question number 6"),
        "{text}"
    );
    walk.see("3 sessions");
}

#[test]
fn resuming_is_asked_first_and_runs_the_client_in_the_right_folder() {
    let Some(walk) = Walk::new(100, 30) else {
        return;
    };
    // Where the client looks for it.
    let key = transcript_format::names::project_key(walk.folder.path().to_str().unwrap());
    fs::rename(walk.root().join("-home-leap"), walk.root().join(key)).unwrap();
    let client = walk.folder.path().join("claude");
    let mut file = fs::File::create(&client).unwrap();
    writeln!(file, "#!/bin/sh\necho \"client $1 $2 in $(pwd)\"").unwrap();
    drop(file);
    let made = Command::new("chmod")
        .arg("+x")
        .arg(&client)
        .status()
        .unwrap();
    assert!(made.success());
    walk.run(&format!("PATH={}:$PATH", walk.folder.path().display()));
    walk.browse(&format!("browse {LEAP}"), "word30");
    walk.keys(&["r"]);
    walk.see("claude --resume");
    walk.keys(&["n"]);
    walk.see("nothing was done");
    walk.keys(&["r"]);
    walk.see("claude --resume");
    walk.keys(&["y"]);
    let folder = fs::canonicalize(walk.folder.path()).unwrap();
    let shown = format!("client --resume {LEAP} in {}", folder.display());
    walk.wait(&shown, |screen| {
        screen.lines().collect::<String>().contains(&shown)
    });
}

#[test]
fn a_session_grows_while_one_looks_and_stays_put_when_one_reads_above() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    let grow = |number: u32, parent: &str| {
        let mut lines = Lines::new(LEAP, "/home");
        lines.parent = json!(parent);
        lines.assistant(&json!([{"type": "text", "text": format!("grown {number}")}]));
        let line =
            lines.lines[0].replace("\"uuid\":\"00000001", &format!("\"uuid\":\"{number:08x}"));
        let mut file = fs::File::options()
            .append(true)
            .open(walk.file("-home-leap", LEAP))
            .unwrap();
        writeln!(file, "{line}").unwrap();
    };
    let text = fs::read_to_string(walk.file("-home-leap", LEAP)).unwrap();
    let last: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = last
        .iter()
        .rev()
        .find_map(|line| line["uuid"].as_str())
        .unwrap()
        .to_owned();
    grow(0x7777, &last);
    walk.see_at_cursor("grown 30583");
    walk.keys(&["g"]);
    let above = walk.see("Which years have a leap day?");
    grow(0x7778, &format!("00007777-0000-4000-8000-{}", &LEAP[24..]));
    walk.keys(&["k"]);
    assert!(above.contains("Which years"));
    walk.keys(&["G"]);
    walk.see_at_cursor("grown 30584");
}

#[test]
fn a_small_terminal_shows_one_side_at_a_time() {
    let Some(walk) = Walk::at_leap(60, 20) else {
        return;
    };
    walk.keys(&["?"]);
    let help = "keys of transcript browse";
    walk.see_all(&[help, "Ctrl-C leaves", "any key closes this"]);
    walk.keys(&["Escape"]);
    // Escape and a key that are read at once are a key with Alt.
    walk.miss(help);
    walk.keys(&["Tab"]);
    walk.see_without(&["2 sessions"], &["word30"]);
    walk.keys(&["Tab"]);
    walk.see_at_cursor("word30");
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    walk.search("answer number 17");
    walk.see_at_cursor("answer number 17");
    for (columns, rows) in [("60", "20"), ("25", "5"), ("140", "50")] {
        walk.tmux(&["resize-window", "-x", columns, "-y", rows]);
        let shown = if columns == "25" {
            "too small"
        } else {
            "answer number 17"
        };
        walk.see(shown);
    }
    walk.see_at_cursor("answer number 17");
}

#[test]
fn the_terminal_is_as_it_was_after_leaving_and_after_signals() {
    for signal in ["", "TERM", "HUP", "INT"] {
        let Some(walk) = Walk::new(80, 24) else {
            return;
        };
        // Only the answer has the word: then the shell is there, and waits.
        walk.run("echo be''fore");
        walk.see("before");
        let before = walk.settings();
        walk.browse(&format!("browse {LEAP}"), "word30");
        assert_eq!(walk.flag("alternate_on"), "1");
        assert_ne!(walk.settings(), before, "raw mode");
        match signal {
            "" => walk.keys(&["q"]),
            signal => {
                let sent = Command::new("kill")
                    .args([&format!("-{signal}"), &walk.pid()])
                    .status();
                assert!(sent.unwrap().success());
            }
        }
        walk.see_without(&["before"], &["word30"]);
        walk.wait("end of the view", |_| walk.pid().is_empty());
        walk.run("echo after $?");
        walk.see("after ");
        assert_eq!(walk.flag("alternate_on"), "0", "{signal}");
        assert_eq!(walk.flag("cursor_flag"), "1", "{signal}");
        walk.wait("the settings from before", |_| walk.settings() == before);
    }
}

#[test]
fn a_terminal_that_is_gone_ends_the_view() {
    let Some(walk) = Walk::at_leap(80, 24) else {
        return;
    };
    let pid = walk.pid();
    assert!(!pid.is_empty());
    let hung = Command::new("tmux")
        .args(["-L", &walk.socket, "kill-server"])
        .status();
    assert!(hung.unwrap().success());
    let start = Instant::now();
    // A process that was not waited for yet is a zombie.
    let is_running = || {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z")
    };
    while is_running() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{pid} still runs"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn hostile_text_shows_no_control_character_and_no_escape_of_a_colour() {
    for file in ["hostile/terminal.jsonl", "hostile/compacted.jsonl"] {
        let Some(walk) = Walk::new(100, 40) else {
            return;
        };
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures/v1")
            .join(file);
        let title = || walk.flag("pane_title");
        let before = title();
        walk.browse(&format!("browse {}", path.display()), "100 %");
        for keys in [
            &["g"][..],
            &["c"],
            &["t"],
            &["Space"],
            &["Space"],
            &["b"],
            &["o"],
            &["Escape"],
            &["p"],
        ] {
            walk.keys(keys);
            let screen = walk.screen();
            let is_control = |c: char| c.is_control() && c != '\n';
            assert!(!screen.contains(is_control), "{file} {keys:?}\n{screen}");
        }
        assert_eq!(title(), before, "{file}");
        assert_eq!(walk.flag("alternate_on"), "1");
    }
    let Some(walk) = Walk::at_leap(100, 40) else {
        return;
    };
    walk.search("full-calendar-row");
    let screen = walk.see("red 29");
    assert!(!screen.contains("<ESC>"), "{screen}");
}

#[test]
fn without_a_terminal_it_is_refused_with_the_way_to_go() {
    let output = transcript(&["browse"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("browse needs a terminal"),
        "{}",
        stderr(&output)
    );
    let output = transcript(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage:"), "{}", stderr(&output));
}

#[test]
fn a_copy_that_the_terminal_may_not_have_taken_is_in_a_private_file_too() {
    let Some(walk) = Walk::new(160, 40) else {
        return;
    };
    walk.tmux(&["set-option", "-s", "set-clipboard", "off"]);
    walk.run("unset XDG_RUNTIME_DIR XDG_CACHE_HOME LOCALAPPDATA");
    walk.browse(&format!("browse {LEAP}"), "with a word30 in it");
    walk.wait("all of it", |screen| screen.contains("100 %"));
    let file = |name: &str| Some(PathBuf::from(name)).filter(|file| is_file(file));
    for (keys, text) in [
        (&["y"][..], "answer number 30\n\nwith a word30 in it"),
        (&["[", "y"], "question number 30 about 閏年 🎉"),
    ] {
        walk.keys(keys);
        let copied = format!("copied {} B · also in ", text.len());
        let copy = walk.see_name(&copied, file);
        assert!(copy.starts_with(walk.folder.path()), "{}", copy.display());
        assert_eq!(fs::read_to_string(&copy).unwrap(), text);
        let files = fs::read_dir(copy.parent().unwrap()).unwrap();
        assert_eq!(files.count(), 1, "only the last text is kept");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&copy).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[test]
fn a_suspended_view_gives_the_terminal_back_and_goes_on() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    walk.search("answer number 17");
    walk.see_at_cursor("answer number 17");
    let is_raw = || walk.settings().contains("-icanon");
    assert!(is_raw());
    for stop in ["key", "signal"] {
        match stop {
            "key" => walk.keys(&["C-z"]),
            _ => {
                let kill = Command::new("kill").args(["-TSTP", &walk.pid()]).status();
                assert!(kill.unwrap().success());
            }
        }
        walk.wait("the shell", |_| walk.flag("alternate_on") == "0");
        assert_eq!(walk.flag("cursor_flag"), "1", "{stop}");
        assert!(!is_raw(), "{stop}");
        walk.run(&format!("echo stopped by $((40 + 2)) {stop}"));
        walk.see(&format!("stopped by 42 {stop}"));
        walk.tmux(&["resize-window", "-x", "90", "-y", "24"]);
        walk.run("fg");
        walk.see_at_cursor("answer number 17");
        assert_eq!(walk.flag("alternate_on"), "1", "{stop}");
        assert!(is_raw(), "{stop}");
        walk.tmux(&["resize-window", "-x", "100", "-y", "30"]);
        walk.see_at_cursor("answer number 17");
    }
    walk.keys(&["q"]);
    walk.wait("end of the view", |_| walk.pid().is_empty());
}

#[test]
fn screen_has_no_colours_with_no_color() {
    for (variable, has_colour) in [("NO_COLOR=1", false), ("A=1", true)] {
        let Some(walk) = Walk::new(100, 30) else {
            return;
        };
        walk.run("unset NO_COLOR");
        walk.run(&format!("export {variable}"));
        walk.browse(&format!("browse {LEAP}"), "with a word30 in it");
        walk.search("full-calendar-row");
        walk.see_at_cursor("full-calendar-row");
        walk.keys(&["g"]);
        walk.see("Which years have a leap day?");
        let screen = stdout(&walk.tmux(&["capture-pane", "-e", "-p"]));
        let codes = screen.split("\u{1b}[").skip(1);
        let codes = codes
            .filter_map(|rest| rest.split_once('m'))
            .map(|(codes, _)| codes);
        let mut codes = codes.flat_map(|codes| codes.split(';'));
        let is_colour = |code: &str| {
            let code: u32 = code.parse().unwrap_or(0);
            matches!(code, 30..=38 | 40..=48 | 90..=107)
        };
        assert_eq!(codes.any(is_colour), has_colour, "{variable}\n{screen}");
    }
}

#[test]
fn a_compacted_session_shows_its_chapters_and_stays_put_when_it_is_compacted_again() {
    let Some(walk) = Walk::new(100, 30) else {
        return;
    };
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/v1/sessions/compact-plain.jsonl");
    let text = fs::read_to_string(fixture).unwrap();
    let file = walk.file("-home-ada", "8092491b-38ce-4499-914a-8b66071a5bc6");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &text).unwrap();
    walk.browse(&format!("browse {}", file.display()), "100 %");
    walk.keys(&["g"]);
    walk.see_all(&["What does `almanac week` print?", "chapter 1 of 2"]);
    walk.search("since that Friday");
    let before = walk.see_at_cursor("2026-W53");
    let place = |screen: &str| screen.lines().last().unwrap_or_default().to_owned();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let boundary = "7f93662b-0000-4000-8000-000000000001";
    let mut grown = text.clone();
    let mut lines = text.lines().filter(|line| line.contains("7f93662b"));
    // The boundary and the summary once more, below the last entry.
    for line in lines.by_ref().take(2) {
        let mut line: Value = serde_json::from_str(line).unwrap();
        match line["type"].as_str() {
            Some("system") => {
                line["uuid"] = json!(boundary);
                line["logicalParentUuid"] = last["uuid"].clone();
            }
            _ => {
                line["uuid"] = json!("06c4c43c-0000-4000-8000-000000000001");
                line["parentUuid"] = json!(boundary);
                line["message"]["content"] = json!("the second summary");
            }
        }
        line["timestamp"] = json!("2026-03-02T10:00:00.000Z");
        grown += &format!("{line}\n");
    }
    let added = &grown[text.len()..];
    let mut out = fs::File::options().append(true).open(&file).unwrap();
    out.write_all(added.as_bytes()).unwrap();
    // The place is a share of what is longer now. A screen that is half drawn has the new place and the old text.
    let after = walk.wait("the second compaction", |screen| {
        place(screen) != place(&before)
            && screen.contains("chapter 1 of 3")
            && screen.contains("since that Friday")
    });
    walk.keys(&["G"]);
    walk.see_all(&["chapter 2 of 3", "the second summary"]);
    let row = |screen: &str| {
        screen
            .lines()
            .position(|line| line.contains("since that Friday"))
    };
    assert_eq!(row(&after), row(&before));
}

#[test]
fn all_sessions_are_searched_and_a_hit_opens_at_its_place() {
    let Some(walk) = Walk::new(100, 40) else {
        return;
    };
    walk.browse("browse", "2 sessions");
    walk.keys(&["C-f"]);
    walk.see("type what to look for");
    // In a result that is folded at first, of a session that is not the selected one.
    walk.typed("calendar-row tool:Bash");
    walk.see_all(&["1 hit in 1 session", "About leap years", "› Bash result · "]);
    walk.keys(&["Enter"]);
    walk.see_at_cursor("full-calendar-row");
    walk.see("Esc results");
    walk.keys(&["Escape"]);
    walk.see("1 hit in 1 session");
    walk.keys(&["C-u"]);
    // A subagent, and a branch that was rewound.
    walk.typed("counted 97");
    walk.see_all(&["1 hit in 1 session", "subagent a1b2"]);
    walk.keys(&["Enter"]);
    walk.see_at_cursor("the subagent counted 97");
    walk.keys(&["C-f"]);
    walk.see("1 hit in 1 session");
    walk.keys(&["C-u"]);
    walk.typed("abandoned answer");
    walk.see_all(&["1 hit in 1 session", "rewound"]);
    walk.keys(&["Enter"]);
    walk.see_at_cursor("an abandoned answer");
}

#[test]
fn a_bad_query_is_explained_and_the_typed_text_stays() {
    let Some(walk) = Walk::at_leap(100, 30) else {
        return;
    };
    walk.keys(&["C-f"]);
    walk.see("type what to look for");
    walk.typed("moon role:robot");
    walk.see_all(&["moon role:robot▏", "expected one of user, assistant"]);
    walk.keys(&["C-w"]);
    walk.see_without(&["moon ▏", "How far is the moon?"], &["expected one of"]);
    walk.typed("\"km");
    walk.see_all(&["moon \"km▏", "the quote is not closed"]);
    // Nothing was opened: back to where one was.
    walk.keys(&["Escape"]);
    walk.see_at_cursor("word30");
}

#[test]
fn escape_goes_back_to_the_results_with_their_selection_and_then_to_the_list() {
    let Some(walk) = Walk::new(100, 40) else {
        return;
    };
    walk.browse("browse", "2 sessions");
    walk.keys(&["C-f"]);
    walk.see("type what to look for");
    walk.typed("\"question number\" in:prompt");
    walk.see("30 hits in 1 session");
    walk.keys(&["Down", "Down"]);
    let selected = |screen: &str| {
        let mut lines = screen.lines().skip_while(|line| !line.starts_with('›'));
        let text = lines.nth(1).unwrap_or_default();
        text.contains("question number")
            .then(|| text.trim().to_owned())
    };
    let is_moved = |screen: &str| {
        let at = screen.lines().position(|line| line.starts_with('›'));
        at == Some(9)
    };
    let screen = walk.wait("the third hit", |screen| {
        is_moved(screen) && selected(screen).is_some()
    });
    let hit = selected(&screen).unwrap();
    walk.keys(&["Enter"]);
    walk.see_at_cursor(&hit);
    // On within the session, and back.
    walk.keys(&["n"]);
    walk.wait("another hit", |screen| {
        // The first mark of a line may be that of the list.
        let mut cursors = screen.lines().filter_map(|line| line.rsplit_once('›'));
        cursors.any(|(_, line)| line.contains("question number") && !line.contains(&hit))
    });
    walk.keys(&["Escape"]);
    walk.see("30 hits in 1 session");
    walk.wait("the same hit", |screen| {
        is_moved(screen) && selected(screen).as_ref() == Some(&hit)
    });
    walk.keys(&["Escape"]);
    walk.see("2 sessions");
}

#[test]
fn a_small_terminal_without_colour_searches_all_sessions() {
    let Some(walk) = Walk::new(60, 20) else {
        return;
    };
    walk.run("export NO_COLOR=1");
    walk.browse("browse", "2 sessions");
    walk.keys(&["C-f"]);
    walk.see_all(&["type what to look for", "exactly these", "F1 help"]);
    walk.typed("word17 OR");
    walk.see("no hits in 2 sessions");
    walk.keys(&["C-w"]);
    walk.see_all(&["1 hit in 1 session", "with a word17 in it"]);
    walk.keys(&["Enter"]);
    walk.see_at_cursor("with a word17 in it");
    let screen = stdout(&walk.tmux(&["capture-pane", "-e", "-p"]));
    let marked = screen.lines().find(|line| line.contains("word17"));
    assert!(
        marked.is_some_and(|line| line.contains("\u{1b}[7mword17")),
        "{screen}"
    );
    walk.keys(&["Escape"]);
    walk.see("1 hit in 1 session");
    walk.keys(&["F1"]);
    walk.see_all(&["keys of transcript browse", "search all sessions"]);
}

#[test]
fn a_session_opens_at_the_line_that_search_names() {
    let Some(walk) = Walk::new(100, 30) else {
        return;
    };
    let root = walk.root();
    let found = transcript(&["--root", root.to_str().unwrap(), "search", "word17"]);
    let found = stdout(&found);
    let mut names = found
        .split_whitespace()
        .filter(|word| LEAP.starts_with(word.split(':').next().unwrap()));
    let name = names.find(|word| word.contains(':')).unwrap().to_owned();
    walk.browse(&format!("browse {name}"), "with a word17 in it");
    walk.see_at_cursor("answer number 17");
    walk.see_without(&[], &["with a word30 in it"]);
}

#[cfg(feature = "import")]
#[test]
fn sessions_of_other_agents_are_listed_opened_and_not_resumed_in_claude_code() {
    let Some(walk) = Walk::new(100, 40) else {
        return;
    };
    crate::agents_home::write(walk.folder.path());
    walk.run(&format!("{} browse", env!("CARGO_BIN_EXE_transcript")));
    walk.see_all(&["ask codex", "ask pi", "ask gemini"]);
    // The list filters by what its rows say, the agent included.
    walk.typed("codex");
    walk.see_without(&["1 of 3", "ask codex"], &["ask gemini"]);
    walk.keys(&["Enter"]);
    // The keys of the conversation are of use when it is open.
    walk.see("Enter unfolds");
    walk.see_all(&[
        "codex · /src",
        "▸ shell cargo test",
        "+ new line",
        "tell codex",
    ]);
    walk.keys(&["r"]);
    walk.see("a session of codex");
    walk.keys(&["q"]);
    walk.wait("end of the view", |_| walk.pid().is_empty());
    walk.run(&format!(
        "{} browse {}",
        env!("CARGO_BIN_EXE_transcript"),
        crate::agents_home::PI
    ));
    walk.see_all(&["pi · /src", "tell pi", "branch · rewound"]);
    walk.miss("an abandoned question");
}
