//! A process that has registered a session as a client does, and does nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A running client. It ends when this is dropped, and its registration stays, as after a kill.
#[derive(Debug)]
pub struct RunningClient {
    process: Child,
}

impl RunningClient {
    /// Starts a process and registers the session at `path`, `HOME/projects/PROJECT/ID.jsonl`, as its
    /// own. `more` is added to the registration: members, each followed by a comma.
    ///
    /// # Errors
    /// When the system fails, or the path has not that many folders.
    pub fn of(path: &Path, more: &str) -> io::Result<Self> {
        let home = path.ancestors().nth(3).ok_or(io::ErrorKind::NotFound)?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        fs::create_dir_all(home.join("sessions"))?;
        let process = Command::new("sleep").arg("600").spawn()?;
        let number = process.id();
        let registration = format!(r#"{{{more}"pid":{number},"sessionId":"{id}"}}"#);
        fs::write(home.join(format!("sessions/{number}.json")), registration)?;
        Ok(Self { process })
    }

    /// Returns a path for a session of a new project below `home`.
    ///
    /// # Errors
    /// When the system fails.
    pub fn session_in(home: &Path) -> io::Result<PathBuf> {
        let project = home.join("projects/-home-ada-almanac");
        fs::create_dir_all(&project)?;
        Ok(project.join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"))
    }

    /// Returns the number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for RunningClient {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
