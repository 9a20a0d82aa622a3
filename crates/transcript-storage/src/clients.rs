//! Finds the running client of a session.
//!
//! A client opens the file of its session for each write alone, so neither a lease nor a lock shows
//! it. It registers the session instead: `sessions/PID.json`, next to the folder of projects, names
//! the session and the time at which the process started. The file is deleted when the client ends,
//! and stays when it is killed; the number of the process may then belong to another one.

use std::path::Path;

use crate::disk::ReadDisk;
use crate::file::folder_of;

/// The maximum number of bytes that are read of a registration.
const MAX_FILE_LEN: usize = 64 << 10;

/// The client of a session, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Client {
    /// The number of a process, other than this one, that has registered the session and runs.
    pub running: Option<u32>,
    /// When that process started, in milliseconds since 1970, if it says so.
    pub since: Option<i64>,
    /// Whether a process that has registered the session ended without deleting the registration.
    pub was_killed: bool,
}

impl Client {
    /// Looks for the client of the session at `path`, `PROJECTS/PROJECT/ID.jsonl`. Nothing is known
    /// about any other file, and nothing on systems that do not list their processes in `/proc`.
    #[must_use]
    pub fn of_session(disk: &dyn ReadDisk, path: &Path) -> Self {
        let mut client = Self::default();
        let id = path.file_stem().and_then(|stem| stem.to_str());
        let projects = folder_of(path).parent();
        let home = projects.and_then(Path::parent);
        let (Some(id), Some(home)) = (id.filter(|id| is_id(id)), home) else {
            return client;
        };
        let registry = home.join("sessions");
        for entry in disk.list(&registry).into_iter().flatten().flatten() {
            let name = Path::new(&entry.name);
            let process = name
                .file_stem()
                .and_then(|stem| stem.to_str()?.parse().ok());
            let (Some(process), Some("json")) =
                (process, name.extension().and_then(|end| end.to_str()))
            else {
                continue;
            };
            let registration = disk
                .read(&registry.join(name), MAX_FILE_LEN)
                .unwrap_or_default();
            let registration = String::from_utf8_lossy(&registration);
            if process == std::process::id() || value_of(&registration, "sessionId") != Some(id) {
                continue;
            }
            match is_running(disk, process, value_of(&registration, "procStart")) {
                Some(true) => {
                    client.running = Some(process);
                    client.since = number_of(&registration, "startedAt");
                }
                Some(false) => client.was_killed = true,
                None => {}
            }
        }
        client
    }
}

/// Returns whether a text is the id of a session: five groups of hexadecimal digits.
fn is_id(text: &str) -> bool {
    let is_hexadecimal = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let groups = || text.split('-');
    groups().all(is_hexadecimal) && groups().map(str::len).eq([8, 4, 4, 4, 12])
}

/// Returns the value of a member that is a string without escapes.
fn value_of<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let (value, _) = after(object, name)?.strip_prefix('"')?.split_once('"')?;
    Some(value)
}

/// Returns the value of a member that is a number without a sign and a fraction.
fn number_of(object: &str, name: &str) -> Option<i64> {
    let value = after(object, name)?;
    let end = value.find(|character: char| !character.is_ascii_digit());
    value[..end?].parse().ok()
}

/// Returns the text from the value of a member on. The first member with the name counts.
fn after<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = object.split_once(&format!("\"{name}\""))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// Returns whether the process runs that started at `start`, in ticks since the system started; any
/// process with the number, if `start` is not a number. `None` when the system does not say.
fn is_running(disk: &dyn ReadDisk, process: u32, start: Option<&str>) -> Option<bool> {
    // This process is listed, if any is.
    if !disk.is_folder(Path::new("/proc/self")) {
        return None;
    }
    let path = format!("/proc/{process}/stat");
    let Ok(file) = disk.open_to_read(Path::new(&path)) else {
        return Some(false);
    };
    let mut status = [0; 4096];
    let read = file.fill(0, &mut status).unwrap_or_default();
    let status = String::from_utf8_lossy(&status[..read]);
    let start = start.filter(|start| start.parse::<u64>().is_ok());
    Some(start.is_none_or(|start| started_at(&status).is_none_or(|at| at == start)))
}

/// Returns when a process started, from the line that describes it: the 20th word after its name,
/// which is in parentheses and may contain both.
fn started_at(status: &str) -> Option<&str> {
    let (_, rest) = status.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::fs;
    use std::process::{Child, Command};

    use super::*;
    use crate::RealDisk;

    const ID: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8293";

    /// A home of a client with one session, and a process that has registered it.
    struct ClientFolder {
        folder: tempfile::TempDir,
        process: Child,
    }

    impl ClientFolder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("projects/-p")).unwrap();
            fs::create_dir_all(folder.path().join("sessions")).unwrap();
            let process = Command::new("sleep").arg("600").spawn().unwrap();
            Self { folder, process }
        }

        fn register(&self, registration: &str) {
            let name = format!("sessions/{}.json", self.process.id());
            fs::write(self.folder.path().join(name), registration).unwrap();
        }

        fn client(&self) -> Client {
            let session = self.folder.path().join(format!("projects/-p/{ID}.jsonl"));
            Client::of_session(&RealDisk, &session)
        }

        fn start(&self) -> String {
            let status = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
            started_at(&status).unwrap().to_owned()
        }

        fn kill(&mut self) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }

    impl Drop for ClientFolder {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    #[test]
    fn a_process_that_registered_the_session_and_runs_is_its_client() {
        let mut rig = ClientFolder::new();
        assert_eq!(rig.client(), Client::default());
        let start = rig.start();
        rig.register(&format!(
            r#"{{"pid":1,"sessionId":"{ID}","startedAt":1795582634734,"procStart":"{start}"}}"#
        ));
        let running = Client {
            running: Some(rig.process.id()),
            since: Some(1_795_582_634_734),
            was_killed: false,
        };
        assert_eq!(rig.client(), running);
        rig.kill();
        let killed = Client {
            was_killed: true,
            ..Client::default()
        };
        assert_eq!(rig.client(), killed);
    }

    #[test]
    fn another_process_with_the_number_is_not_the_client() {
        let rig = ClientFolder::new();
        let later = rig.start().parse::<u64>().unwrap() + 1;
        rig.register(&format!(r#"{{"sessionId":"{ID}","procStart":"{later}"}}"#));
        assert_eq!(rig.client().running, None);
        assert!(rig.client().was_killed);
    }

    #[test]
    fn a_registration_without_a_time_counts_and_one_of_another_session_does_not() {
        let rig = ClientFolder::new();
        rig.register(&format!(r#"{{ "sessionId" : "{ID}" }}"#));
        assert_eq!(rig.client().running, Some(rig.process.id()));
        rig.register(&format!(
            r#"{{"sessionId":"2d9a36fd-ee08-4b08-99d5-1999463e8293","name":"{ID}"}}"#
        ));
        assert_eq!(rig.client(), Client::default());
    }

    #[test]
    fn a_process_does_not_get_in_its_own_way() {
        let rig = ClientFolder::new();
        let name = format!("sessions/{}.json", std::process::id());
        let registration = format!(r#"{{"sessionId":"{ID}"}}"#);
        fs::write(rig.folder.path().join(name), registration).unwrap();
        assert_eq!(rig.client(), Client::default());
    }
}
