//! Formats working directories for people.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Replaces the home directory at the start of a path with `~`.
pub fn below_home(path: &str) -> String {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    let home = HOME.get_or_init(|| env::var_os("HOME").map(PathBuf::from));
    let below = home
        .as_ref()
        .and_then(|home| Path::new(path).strip_prefix(home).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => Path::new("~").join(below).display().to_string(),
        None => path.to_owned(),
    }
}

/// Shortens a path to its last two parts, which distinguish folders best.
pub fn last_parts(path: &str) -> String {
    let parts: Vec<_> = path.split(['/', '\\']).collect();
    match parts.len() {
        0..=3 => path.to_owned(),
        count => format!("…/{}", parts[count - 2..].join("/")),
    }
}
