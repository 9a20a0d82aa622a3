//! The folders of this user, as the environment names them. No other library reads the environment, which a test holds
//! (`testkit/tests/it/disks.rs`).

use std::env;
use std::path::{Path, PathBuf};

use transcript_storage::{ReadDisk, RealDisk};

/// Returns the folder of projects of Claude Code.
pub(crate) fn projects_folder() -> Option<PathBuf> {
    match set("CLAUDE_CONFIG_DIR") {
        Some(config) => Some(config.join("projects")),
        None => home_projects_folder(),
    }
}

/// Returns the folder of projects that Claude Code has where `$CLAUDE_CONFIG_DIR` is not set: `.claude/projects` in the home
/// folder. `None` if there is no home folder.
#[must_use]
pub fn home_projects_folder() -> Option<PathBuf> {
    below_home(".claude/projects".as_ref())
}

/// Returns the folder that `$TRANSCRIPT_ARCHIVE` names, if it is set: the archive of every root.
#[must_use]
pub fn named_archive_folder() -> Option<PathBuf> {
    set("TRANSCRIPT_ARCHIVE")
}

/// Returns the configuration file of this user: `$TRANSCRIPT_CONFIG`, else `transcript/config.toml` in `$XDG_CONFIG_HOME`, else
/// in the configuration folder of the system: `Library/Application Support` (macOS), `%APPDATA%` (Windows), or `.config` in
/// the home folder, which must exist. `None` when none of them is known. The file need not exist.
#[must_use]
pub fn config_file() -> Option<PathBuf> {
    let below = ["Library/Application Support", ".config"];
    set("TRANSCRIPT_CONFIG").or_else(|| {
        let folder = folder_of_user("XDG_CONFIG_HOME", "APPDATA", below)?;
        Some(folder.join("transcript/config.toml"))
    })
}

/// Returns where other agents have their home folders, by the names of the agents. The folders need not exist.
#[must_use]
pub fn agent_homes() -> Vec<(&'static str, PathBuf)> {
    const BELOW_HOME: [(&str, &str); 4] = [
        ("pi", ".pi/agent"),
        ("qwen", ".qwen"),
        ("gemini", ".gemini"),
        ("copilot", ".copilot"),
    ];
    let codex = set("CODEX_HOME").or_else(|| below_home(".codex".as_ref()));
    let codex = codex.map(|home| ("codex", home));
    let opencode = folder_of_user("XDG_DATA_HOME", "APPDATA", [".local/share"; 2]);
    let opencode = opencode.map(|data| ("opencode", data.join("opencode")));
    let below = ["Library/Application Support", ".config"];
    let desktop = folder_of_user("XDG_CONFIG_HOME", "APPDATA", below);
    let desktop = desktop.map(|folder| ("claude-desktop", folder.join("Claude")));
    let others = BELOW_HOME.iter();
    let others = others.filter_map(|(agent, home)| Some((*agent, below_home(home.as_ref())?)));
    let others = others.chain(opencode).chain(desktop);
    codex.into_iter().chain(others).collect()
}

/// Returns a path in the home folder. `None` if there is no home folder.
#[must_use]
pub fn below_home(path: &Path) -> Option<PathBuf> {
    Some(set("HOME")?.join(path))
}

/// Returns the path in a variable, unless it is empty.
fn set(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Returns the folder of this user for what must be kept: `transcript` in `$XDG_DATA_HOME`, else in the data
/// folder of the system: `Library/Application Support` (macOS), `%APPDATA%` (Windows), or `.local/share` in the
/// home folder, which must exist. `None` when none of them is known. The folder `transcript` need not exist.
#[must_use]
pub fn data_folder() -> Option<PathBuf> {
    let below = ["Library/Application Support", ".local/share"];
    Some(folder_of_user("XDG_DATA_HOME", "APPDATA", below)?.join("transcript"))
}

/// Returns the folder of this user for what can be made again: `transcript` in `$XDG_CACHE_HOME`, else in
/// the cache folder of the system: `Library/Caches` (macOS), `%LOCALAPPDATA%` (Windows), or `.cache` in the
/// home folder, which must exist. `None` when none of them is known. The folder `transcript` need not exist.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    let below = ["Library/Caches", ".cache"];
    Some(folder_of_user("XDG_CACHE_HOME", "LOCALAPPDATA", below)?.join("transcript"))
}

/// Returns the folder that a variable names, else that of the system: below the home folder on macOS and on other
/// systems, or in another variable (Windows).
fn folder_of_user(variable: &str, on_windows: &str, below: [&str; 2]) -> Option<PathBuf> {
    let folder = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
    };
    let home = |below| {
        Some(
            folder("HOME")
                .filter(|home| RealDisk.is_folder(home))?
                .join(below),
        )
    };
    let of_system = || match env::consts::OS {
        "macos" => home(below[0]),
        "windows" => folder(on_windows),
        _ => home(below[1]),
    };
    folder(variable).or_else(of_system)
}
