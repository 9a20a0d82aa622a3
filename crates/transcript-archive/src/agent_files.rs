//! Which files of the home folders of other agents are captured: those that hold sessions, and what lies beside them.
//!
//! Everything else stays outside: settings, logins, caches, and files that are named here but may hold credentials.

use transcript_storage::SessionLayout;
use transcript_storage::outside_names::{
    NameRefusal, is_plain, is_temporary, may_hold_credentials,
};

use crate::machines::on_machine;

/// The folder in the archive that has one folder for each agent.
pub(crate) const AGENTS: &str = "agents";
/// The endings of the files beside a database that belong to it: its log of changes, and the journal of an interrupted change.
pub(crate) const DATABASE_ENDINGS: [&str; 2] = ["-wal", "-journal"];
/// The maximum number of folders above a file, from the home folder on.
const MAX_FOLDERS: usize = SessionLayout::MAX_DEPTH + 2;

/// What a captured file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    /// It belongs to one session.
    Session,
    /// Several sessions need it.
    Shared,
    /// A database, with the sessions of the whole home folder.
    Database,
}

/// The files of an agent: paths below its home folder. `*` is any part of a name, `**` any number of folders.
struct AgentFiles {
    agent: &'static str,
    of_sessions: &'static [&'static str],
    shared: &'static [&'static str],
    databases: &'static [&'static str],
    /// The number of names after which the path of a file is that of its session; 0 if each file is a session.
    session_names: usize,
}

/// The agents whose home folders are captured.
const AGENT_FILES: [AgentFiles; 7] = [
    AgentFiles {
        agent: "codex",
        of_sessions: &[
            "sessions/**/*.jsonl",
            "sessions/**/*.jsonl.zst",
            "archived_sessions/**/*.jsonl",
            "archived_sessions/**/*.jsonl.zst",
        ],
        shared: &["session_index.jsonl"],
        databases: &[],
        session_names: 0,
    },
    AgentFiles {
        agent: "pi",
        of_sessions: &["sessions/**/*.jsonl"],
        shared: &[],
        databases: &[],
        session_names: 0,
    },
    AgentFiles {
        agent: "qwen",
        of_sessions: &["projects/*/chats/**/*.jsonl"],
        shared: &[],
        databases: &[],
        session_names: 0,
    },
    AgentFiles {
        agent: "gemini",
        of_sessions: &["tmp/*/chats/**/*.jsonl", "tmp/*/chats/**/*.json"],
        shared: &[
            "projects.json",
            "tmp/*/.project_root",
            "tmp/*/logs.json",
            "tmp/*/checkpoint*.json",
        ],
        databases: &[],
        session_names: 0,
    },
    AgentFiles {
        agent: "copilot",
        of_sessions: &[
            "session-state/*/events.jsonl",
            "session-state/*/workspace.yaml",
            "session-state/*/checkpoints/**/*",
        ],
        shared: &[],
        databases: &["session-store.db"],
        session_names: 2,
    },
    AgentFiles {
        agent: "opencode",
        of_sessions: &["storage/**/*.json"],
        shared: &[],
        databases: &["opencode*.db"],
        session_names: 0,
    },
    AgentFiles {
        agent: "claude-desktop",
        of_sessions: &[
            "local-agent-mode-sessions/**/audit.jsonl",
            "local-agent-mode-sessions/**/local_*.json",
            "local-agent-mode-sessions/**/.claude/projects/**/*.jsonl",
        ],
        shared: &[],
        databases: &[],
        session_names: 0,
    },
];

fn files_of(agent: &str) -> Option<&'static AgentFiles> {
    AGENT_FILES.iter().find(|files| files.agent == agent)
}

/// Returns whether the sessions of an agent are captured.
pub(crate) fn is_known(agent: &str) -> bool {
    files_of(agent).is_some()
}

/// Returns what a file is for, by its path below the home folder of an agent; `None` if it is not captured.
pub(crate) fn role_of(agent: &str, below: &str) -> Option<FileRole> {
    let files = files_of(agent)?;
    let names: Vec<&str> = below.split('/').collect();
    let is_one = |patterns: &[&'static str]| {
        let mut patterns = patterns.iter();
        patterns.any(|pattern| matches(&parts(pattern), &names))
    };
    if is_one(files.of_sessions) {
        Some(FileRole::Session)
    } else if is_one(files.shared) {
        Some(FileRole::Shared)
    } else {
        is_one(files.databases).then_some(FileRole::Database)
    }
}

/// Returns the database that a file belongs to, by its path below the home folder: the file itself, or that beside it.
pub(crate) fn database_of<'b>(agent: &str, below: &'b str) -> Option<&'b str> {
    let mut endings = DATABASE_ENDINGS.iter();
    let stem = endings.find_map(|ending| below.strip_suffix(ending));
    let database = stem.unwrap_or(below);
    (role_of(agent, database) == Some(FileRole::Database)).then_some(database)
}

/// Returns whether a folder may have captured files, by its path below the home folder.
pub(crate) fn may_lead(agent: &str, folder: &str) -> bool {
    let names: Vec<&str> = folder.split('/').collect();
    let Some(files) = files_of(agent).filter(|_| names.len() <= MAX_FOLDERS) else {
        return false;
    };
    let all = [files.of_sessions, files.shared, files.databases];
    let mut patterns = all.into_iter().flatten();
    patterns.any(|pattern| leads(&parts(pattern), &names))
}

/// Returns the part of a path below the home folder that all files of its session begin with.
pub(crate) fn session_of<'b>(agent: &str, below: &'b str) -> &'b str {
    let names = files_of(agent).map_or(0, |files| files.session_names);
    let end = below.match_indices('/').nth(names.wrapping_sub(1));
    end.map_or(below, |(at, _)| &below[..at])
}

/// Checks a path below the home folder of an agent from an archive: captures make such a one.
///
/// # Errors
/// [`NameRefusal`], by the name alone.
pub(crate) fn check_name(agent: &str, below: &str) -> Result<(), NameRefusal> {
    let names = || below.split('/');
    if !names().all(is_plain) {
        return Err(NameRefusal::Unsafe);
    }
    let is_ours = role_of(agent, below).is_some() || database_of(agent, below).is_some();
    let is_deep = names().count() > MAX_FOLDERS + 1;
    if !is_ours || is_deep || names().any(is_temporary) {
        return Err(NameRefusal::NoSession);
    }
    if names().any(may_hold_credentials) {
        return Err(NameRefusal::Credentials);
    }
    Ok(())
}

/// Returns whether a file of an agent is needed for the sessions in these files and folders: all are paths below its home folder.
pub(crate) fn is_needed(agent: &str, below: &str, wanted: &[String]) -> bool {
    let is_in = |name: &String| {
        let rest = below.strip_prefix(&**name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of_database = database_of(agent, below);
    let session = session_of(agent, below);
    let is_beside =
        |name: &String| session_of(agent, name) == session || of_database == Some(&**name);
    role_of(agent, below) == Some(FileRole::Shared)
        || wanted.iter().any(is_in)
        || wanted.iter().any(is_beside)
}

/// Returns the agent and the path below its home folder of a path in an archive.
pub(crate) fn in_home(name: &str) -> Option<(&str, &str)> {
    let (_, name) = on_machine(name);
    let below = name.strip_prefix(AGENTS)?.strip_prefix('/')?;
    below.split_once('/')
}

/// Returns what the copies of one file have in common, by a path in an archive: Codex moves a rollout from one folder to another.
/// `None` for files that are not moved.
pub(crate) fn moved_name(name: &str) -> Option<&str> {
    let (agent, below) = in_home(name)?;
    let (_, file) = below.rsplit_once('/')?;
    (agent == "codex").then_some(file)
}

fn parts(pattern: &'static str) -> Vec<&'static str> {
    pattern.split('/').collect()
}

/// Returns whether names are a path of a pattern.
fn matches(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern, names) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=names.len()).any(|skipped| matches(rest, &names[skipped..])),
        ([part, rest @ ..], [name, names @ ..]) => is_name(part, name) && matches(rest, names),
        _ => false,
    }
}

/// Returns whether a path that begins with these names can be one of a pattern.
fn leads(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern, names) {
        ([], _) => false,
        (["**", ..], _) | (_, []) => true,
        ([part, rest @ ..], [name, names @ ..]) => is_name(part, name) && leads(rest, names),
    }
}

/// Returns whether a name is one of a part with at most one `*`.
fn is_name(part: &str, name: &str) -> bool {
    match part.split_once('*') {
        None => part == name,
        Some((start, end)) => {
            let rest = name.strip_prefix(start);
            rest.is_some_and(|rest| rest.ends_with(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One path of each kind, for each agent.
    const CAPTURED: [(&str, &str, FileRole); 20] = [
        (
            "codex",
            "sessions/2026/01/02/rollout-a.jsonl",
            FileRole::Session,
        ),
        (
            "codex",
            "sessions/2026/01/02/rollout-a.jsonl.zst",
            FileRole::Session,
        ),
        (
            "codex",
            "archived_sessions/rollout-a.jsonl",
            FileRole::Session,
        ),
        ("codex", "session_index.jsonl", FileRole::Shared),
        ("pi", "sessions/--w--/t_a.jsonl", FileRole::Session),
        ("qwen", "projects/-w/chats/a.jsonl", FileRole::Session),
        ("gemini", "tmp/w/chats/session-a.jsonl", FileRole::Session),
        ("gemini", "tmp/w/chats/session-a.json", FileRole::Session),
        ("gemini", "tmp/w/chats/a/b.jsonl", FileRole::Session),
        ("gemini", "tmp/w/logs.json", FileRole::Shared),
        ("gemini", "tmp/w/.project_root", FileRole::Shared),
        ("gemini", "projects.json", FileRole::Shared),
        ("copilot", "session-state/a/events.jsonl", FileRole::Session),
        (
            "copilot",
            "session-state/a/workspace.yaml",
            FileRole::Session,
        ),
        (
            "copilot",
            "session-state/a/checkpoints/index.md",
            FileRole::Session,
        ),
        ("copilot", "session-store.db", FileRole::Database),
        ("opencode", "opencode.db", FileRole::Database),
        ("opencode", "opencode-dev.db", FileRole::Database),
        (
            "opencode",
            "storage/message/ses_a/msg_b.json",
            FileRole::Session,
        ),
        (
            "claude-desktop",
            "local-agent-mode-sessions/u/o/local_a/audit.jsonl",
            FileRole::Session,
        ),
    ];

    #[test]
    fn files_of_sessions_are_captured_and_the_way_to_them_is_walked() {
        for (agent, path, role) in CAPTURED {
            assert_eq!(role_of(agent, path), Some(role), "{agent} {path}");
            assert_eq!(check_name(agent, path), Ok(()), "{agent} {path}");
            for (at, _) in path.match_indices('/') {
                assert!(may_lead(agent, &path[..at]), "{agent} {path}");
            }
        }
    }

    #[test]
    fn settings_and_logins_are_neither_captured_nor_written() {
        let other = [
            ("codex", "auth.json"),
            ("codex", "config.toml"),
            ("codex", "history.jsonl"),
            ("codex", "sessions"),
            ("codex", "sessions/2026/state.json"),
            ("codex", "log/codex.jsonl"),
            ("pi", "auth.json"),
            ("pi", "settings.json"),
            ("qwen", "oauth_creds.json"),
            ("qwen", "projects/-w/settings.json"),
            ("gemini", "oauth_creds.json"),
            ("gemini", "settings.json"),
            ("gemini", "google_accounts.json"),
            ("copilot", "config.json"),
            ("copilot", "mcp-config.json"),
            ("copilot", "session-state/a/inuse.1.lock"),
            ("opencode", "auth.json"),
            ("opencode", "bin/tool.db"),
            ("claude-desktop", "config.json"),
            ("claude-desktop", "Cookies"),
            ("claude-desktop", "local-agent-mode-sessions/u/.audit-key"),
            ("unknown", "sessions/a.jsonl"),
        ];
        for (agent, path) in other {
            assert_eq!(
                check_name(agent, path),
                Err(NameRefusal::NoSession),
                "{agent} {path}"
            );
        }
        let held = check_name("copilot", "session-state/a/checkpoints/auth.json");
        assert_eq!(held, Err(NameRefusal::Credentials));
        for way in [
            "sessions/../auth.jsonl",
            "sessions//a.jsonl",
            "/sessions/a.jsonl",
        ] {
            assert_eq!(check_name("codex", way), Err(NameRefusal::Unsafe), "{way}");
        }
        assert!(!may_lead("codex", "log") && !may_lead("copilot", "logs"));
        let deep = format!("sessions/{}a.jsonl", "d/".repeat(MAX_FOLDERS + 1));
        assert_eq!(check_name("pi", &deep), Err(NameRefusal::NoSession));
    }

    #[test]
    fn what_lies_beside_a_database_belongs_to_it() {
        for name in ["opencode.db", "opencode.db-wal", "opencode.db-journal"] {
            assert_eq!(database_of("opencode", name), Some("opencode.db"));
            assert_eq!(check_name("opencode", name), Ok(()));
        }
        assert_eq!(database_of("opencode", "opencode.db-shm"), None);
        assert_eq!(database_of("codex", "opencode.db-wal"), None);
    }

    #[test]
    fn the_files_of_one_session_have_one_key() {
        let key = |path| session_of("copilot", path);
        assert_eq!(key("session-state/a/events.jsonl"), "session-state/a");
        assert_eq!(
            key("session-state/a/checkpoints/index.md"),
            "session-state/a"
        );
        assert_eq!(session_of("pi", "sessions/w/a.jsonl"), "sessions/w/a.jsonl");
    }
}
