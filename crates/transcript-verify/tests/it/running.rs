//! Calls without a result that still run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_testkit::running_client::RunningClient;
use transcript_verify::{Verdict, VerifyOptions, verify};

const MINUTE: Duration = Duration::from_secs(60);

/// A session with two answers that make a call, of which the last one has no result.
struct Live {
    _home: TempDir,
    path: PathBuf,
    lines: Vec<Value>,
}

impl Live {
    /// The calls are as old as `age`.
    fn new(age: Duration) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = RunningClient::session_in(home.path()).unwrap();
        let written = (SystemTime::now() - age)
            .duration_since(UNIX_EPOCH)
            .unwrap();
        let time = transcript_format::time::text(written.as_millis().try_into().unwrap()).unwrap();
        let entry = |kind: &str, uuid: &str, parent: Option<&str>, content: Value| {
            json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
                "sessionId": "1999463e-ee08-4b08-99d5-2d9a36fd8293", "timestamp": time,
                "message": {"role": kind, "content": content,
                    "id": (kind == "assistant").then(|| format!("msg_{uuid}"))}})
        };
        let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "-"}]);
        let lines = vec![
            entry("user", "u1", None, json!("How high?")),
            entry("assistant", "a1", Some("u1"), call("t1")),
            entry("user", "r1", Some("a1"), result),
            entry("assistant", "a2", Some("r1"), call("t2")),
        ];
        let live = Self {
            _home: home,
            path,
            lines,
        };
        live.write(age);
        live
    }

    fn write(&self, age: Duration) {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&self.path, text).unwrap();
        #[cfg(unix)]
        for (path, mode) in [(&*self.path, 0o600), (self.path.parent().unwrap(), 0o700)] {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let file = File::options().append(true).open(&self.path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn client(&self, since: SystemTime) -> RunningClient {
        let since = since.duration_since(UNIX_EPOCH).unwrap().as_millis();
        RunningClient::of(&self.path, &format!("\"startedAt\":{since},")).unwrap()
    }

    fn verdict(&self) -> (Verdict, Vec<&'static str>) {
        verdict(&self.path)
    }
}

fn verdict(path: &Path) -> (Verdict, Vec<&'static str>) {
    let report = verify(&crate::disk(), path, &VerifyOptions::new()).unwrap();
    let codes = report.findings.iter().map(|finding| finding.code.as_str());
    let codes = codes.collect();
    assert_eq!(report.measure.vendor, report.measure.conversation);
    assert!(report.lint.vendor && report.lint.recover);
    (report.verdict(), codes)
}

fn damaged() -> (Verdict, Vec<&'static str>) {
    (Verdict::Damaged, vec!["P-NORESULT"])
}

fn running() -> (Verdict, Vec<&'static str>) {
    (Verdict::Clean, vec!["P-RUNNING"])
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_of_a_client_that_runs_is_not_damage_however_old_it_is() {
    let live = Live::new(60 * MINUTE);
    assert_eq!(live.verdict(), damaged());
    let client = live.client(SystemTime::now() - 90 * MINUTE);
    assert_eq!(live.verdict(), running());
    drop(client);
    assert_eq!(live.verdict(), damaged());
    // A client that started after the call did not make it.
    let _client = live.client(SystemTime::now() - 30 * MINUTE);
    assert_eq!(live.verdict(), damaged());
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_of_a_client_that_was_killed_is_damage_however_new_it_is() {
    let live = Live::new(Duration::ZERO);
    drop(live.client(SystemTime::now() - MINUTE));
    assert_eq!(live.verdict(), damaged());
}

#[test]
fn without_a_registration_call_and_file_must_be_new() {
    let mut live = Live::new(Duration::ZERO);
    assert_eq!(live.verdict(), running());
    live.write(5 * MINUTE);
    assert_eq!(live.verdict(), damaged());
    // An old file that was copied.
    let old = Live::new(5 * MINUTE);
    old.write(Duration::ZERO);
    assert_eq!(old.verdict(), damaged());
    // After a prompt, and after a later answer, nothing runs.
    for kind in ["user", "assistant"] {
        let mut next = live.lines[0].clone();
        next["type"] = kind.into();
        next["uuid"] = "n1".into();
        next["parentUuid"] = "a2".into();
        next["message"] = json!({"role": kind, "id": "msg_n1",
            "content": [{"type": "text", "text": "x"}]});
        live.lines.push(next);
        live.write(Duration::ZERO);
        assert_eq!(live.verdict(), damaged(), "{kind}");
        live.lines.pop();
    }
}
