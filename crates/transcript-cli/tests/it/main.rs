//! The binary: wiring, output and exit codes. What the libraries can show is tested there.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "import")]
mod agents;
#[cfg(feature = "import")]
mod agents_home;
#[cfg(feature = "import")]
mod agents_usage;
mod agreement;
mod append;
#[cfg(all(unix, feature = "browse"))]
mod browse;
mod export;
mod filters;
mod fork;
#[cfg(feature = "import")]
mod hand_over;
mod healthy;
mod help;
mod hostile;
mod keep;
#[cfg(feature = "import")]
mod keep_agents;
#[cfg(unix)]
mod links;
mod list;
mod moving;
mod names;
mod odd_files;
mod repair;
mod replay;
mod resume;
mod roots;
mod search;
#[cfg(feature = "serve")]
mod serve;
#[cfg(unix)]
mod system;
mod tail;
mod titles;
mod tree;
mod turns;
mod twin;
mod units;
mod usage;
mod verify;
mod wire;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs `transcript` with these arguments and no standard input.
fn transcript(arguments: &[&str]) -> Output {
    command(arguments).stdin(Stdio::null()).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transcript"));
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("HOME", "/nowhere")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("CODEX_HOME")
        .env("TZ", "UTC");
    command.env_remove("COLUMNS");
    command
}

fn sessions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1/sessions")
}

fn fixture(name: &str) -> String {
    sessions().join(name).to_str().unwrap().to_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
