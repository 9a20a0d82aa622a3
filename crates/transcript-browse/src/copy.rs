//! Puts a text where the person can paste it.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use transcript_format::units::size;
use transcript_storage::{Disk, NewFile, ReadDisk, RealDisk};

/// A longer sequence is not sent, because terminals drop it.
const MAX_CLIPBOARD: usize = 74_994;
/// The starts of `TERM` of terminals that take texts for the clipboard unless they are told not to.
const CLIPBOARD_TERMINALS: [&str; 5] = [
    "alacritty",
    "foot",
    "wezterm",
    "xterm-ghostty",
    "xterm-kitty",
];

/// Sends a text to the clipboard of the terminal, which may be on another machine, as OSC 52. No
/// terminal says whether it took it: unless it is known to, the text is also written to a file.
/// Returns the result as a message.
pub(crate) fn copy(text: &str) -> String {
    let size = size(text.len() as u64);
    let sent = send(text);
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let with = if text.contains(is_control) {
        " · with control characters"
    } else {
        ""
    };
    if matches!(sent, Ok(true)) && is_taken() {
        return format!("copied {size}{with}");
    }
    let done = match (sent, write(text)) {
        (Ok(true), Ok(file)) => format!("copied {size} · also in {}", file.display()),
        (Ok(true), Err(error)) => format!("copied {size} · no file: {error}"),
        (_, Ok(file)) => format!("{size} are in {}", file.display()),
        (_, Err(error)) => return format!("not copied: {error}"),
    };
    done + with
}

/// Returns false, and sends nothing, if the text is too long.
fn send(text: &str) -> io::Result<bool> {
    let encoded = STANDARD.encode(text);
    if encoded.len() > MAX_CLIPBOARD {
        return Ok(false);
    }
    let mut out = io::stdout();
    write!(out, "\u{1b}]52;c;{encoded}\u{7}")?;
    out.flush()?;
    Ok(true)
}

/// Returns whether this terminal is known to take a text for the clipboard.
fn is_taken() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("TMUX") {
        // Only if it is `on`, tmux takes texts of programs.
        let mut tmux = Command::new("tmux");
        tmux.args(["show-options", "-sv", "set-clipboard"]);
        let shown = tmux.stdin(Stdio::null()).output();
        return shown.is_ok_and(|shown| shown.stdout.trim_ascii() == b"on");
    }
    let term = env::var("TERM").unwrap_or_default();
    is_set("WT_SESSION")
        || CLIPBOARD_TERMINALS
            .iter()
            .any(|start| term.starts_with(start))
}

/// Writes a text to a file that only this user can read, in place of the last copied one.
fn write(text: &str) -> io::Result<PathBuf> {
    let folder = folder().ok_or_else(|| io::Error::other("no folder for it is known"))?;
    RealDisk.create_folder(&folder)?;
    let path = folder.join("copied.txt");
    let mut file = NewFile::output_beside(&path)?;
    file.write_all(text.as_bytes())?;
    file.replace(&path)?;
    Ok(path)
}

/// The folder of this user for files that need not stay: one that ends with the login, or the cache.
fn folder() -> Option<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute() && RealDisk.is_folder(folder));
    let runtime = runtime.map(|folder| folder.join("transcript"));
    runtime.or_else(transcript_engine::cache_folder)
}
