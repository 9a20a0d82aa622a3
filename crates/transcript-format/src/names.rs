//! The names of project folders and of the files in them.
//!
//! Text from a person, a program or a transcript becomes part of a path only when it is an id
//! ([`is_id`]).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The maximum length of a key without a hash, in characters.
const MAX_KEY: usize = 200;

/// The maximum length of an id; file systems allow 255 bytes.
const MAX_ID: usize = 128;

/// Returns the name of the folder of the project at `path`, an absolute path without symbolic links
/// (FILE-13).
///
/// Every UTF-16 unit of the path other than ASCII letters and digits becomes a `-`. A key of more
/// than 200 characters is truncated and a hash of the whole path is appended, so that long paths
/// remain distinct. Short paths may collide.
///
/// ```
/// use transcript_format::names::project_key;
///
/// assert_eq!(project_key("/home/ada/My Notes"), "-home-ada-My-Notes");
/// ```
#[must_use]
pub fn project_key(path: &str) -> String {
    key(path.encode_utf16().map(u32::from))
}

/// Returns whether `name` is the folder of the project at `path` for any client. The Python SDK
/// counts code points, and older clients append another hash to the key of a long path, so of a
/// long key only the part before the hash is compared. Characters may be composed or not, and the letter of
/// a drive may have either case: see [`same_path`].
///
/// ```
/// use transcript_format::names::is_key_of;
///
/// assert!(is_key_of("-p---q", "/p/🦉q"));
/// assert!(is_key_of("-p--q", "/p/🦉q"));
/// assert!(!is_key_of("-p-q", "/p/🦉q"));
/// ```
#[must_use]
pub fn is_key_of(name: &str, path: &str) -> bool {
    let path = &*plain(path);
    if path.is_ascii() && !is_windows(path) {
        return is_key(name, path);
    }
    let mut forms = vec![path.to_owned(), path.nfc().collect(), path.nfd().collect()];
    if is_windows(path) {
        for change in [char::to_ascii_uppercase, char::to_ascii_lowercase] {
            let others = forms
                .iter()
                .map(|form| with_drive(form, |drive| change(&drive)));
            forms.extend(others.collect::<Vec<_>>());
        }
    }
    forms.iter().any(|form| is_key(name, form))
}

fn is_key(name: &str, path: &str) -> bool {
    let keys = [project_key(path), key(path.chars().map(u32::from))];
    let is_cut = |key: &String| {
        let start = key.get(..=MAX_KEY);
        start.is_some_and(|start| name.starts_with(start))
    };
    keys.iter().any(|key| key == name || is_cut(key))
}

fn with_drive(path: &str, change: impl Fn(char) -> char) -> String {
    let mut characters = path.chars();
    let drive = characters.next().map(change);
    drive.into_iter().chain(characters).collect()
}

/// Returns whether a path is one of Windows, with a drive or a server.
///
/// ```
/// use transcript_format::names::is_windows;
///
/// assert!(is_windows("c:/Users/Ada") && is_windows(r"\\server\share"));
/// assert!(!is_windows("/home/ada") && !is_windows("c:"));
/// ```
#[must_use]
pub fn is_windows(path: &str) -> bool {
    match path.as_bytes() {
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        [b'\\', b'\\', rest @ ..] => !rest.is_empty(),
        _ => false,
    }
}

/// Returns a path of Windows without the prefix of its long form (`\\?\`), which systems give for real paths and clients do
/// not write.
///
/// ```
/// use transcript_format::names::plain;
///
/// assert_eq!(plain(r"\\?\C:\Users"), r"C:\Users");
/// assert_eq!(plain(r"\\?\UNC\server\share"), r"\\server\share");
/// assert_eq!(plain("/home/ada"), "/home/ada");
/// ```
#[must_use]
pub fn plain(path: &str) -> Cow<'_, str> {
    match path.strip_prefix(r"\\?\") {
        Some(rest) if is_windows(rest) => Cow::Borrowed(rest),
        Some(rest) => match rest.strip_prefix(r"UNC\") {
            Some(rest) => Cow::Owned(format!(r"\\{rest}")),
            None => Cow::Borrowed(path),
        },
        None => Cow::Borrowed(path),
    }
}

/// Returns whether two paths are those of one folder, whatever wrote them: with composed characters or
/// not, as macOS names files; of Windows, with either case of the drive, either slash, and with the prefix of long paths or not.
///
/// ```
/// use transcript_format::names::same_path;
///
/// assert!(same_path("/home/ada/Über", "/home/ada/U\u{308}ber/"));
/// assert!(same_path(r"C:\Users\Ada", "c:/Users/Ada"));
/// assert!(!same_path("/home/ada", "/home/Ada"));
/// ```
#[must_use]
pub fn same_path(one: &str, other: &str) -> bool {
    one == other || rest_below(one, other).is_some_and(|rest| rest.is_empty())
}

/// Returns the parts of `path` below `folder`, none for the folder itself; `None` if it is elsewhere. The two
/// are compared as [`same_path`] does.
///
/// ```
/// use transcript_format::names::rest_below;
///
/// assert_eq!(rest_below(r"C:\Users", r"c:\Users\Ada\x"), Some(vec!["Ada", "x"]));
/// assert_eq!(rest_below("/home/ada", "/home/adam"), None);
/// ```
#[must_use]
pub fn rest_below<'p>(folder: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let is_of_windows = is_windows(folder) || is_windows(path);
    // With these slashes the address of a server is a path of other systems as well.
    let is_elsewhere = if is_of_windows {
        [folder, path]
            .iter()
            .any(|path| !is_windows(path) && !path.starts_with("//"))
    } else {
        folder.starts_with('/') != path.starts_with('/')
    };
    if is_elsewhere {
        return None;
    }
    let mut rest = path_parts(path, is_of_windows);
    for (place, part) in path_parts(folder, is_of_windows).enumerate() {
        let other = rest.next()?;
        let is_drive = is_of_windows && place == 0;
        let is_same = part == other
            || part.nfc().eq(other.nfc())
            || is_drive && part.eq_ignore_ascii_case(other);
        if !is_same {
            return None;
        }
    }
    Some(rest.collect())
}

fn path_parts(path: &str, is_of_windows: bool) -> impl Iterator<Item = &str> {
    let is_long = is_of_windows && path.starts_with(r"\\?\");
    let parts = path.split(move |c| c == '/' || is_of_windows && c == '\\');
    let parts = parts.filter(|part| !part.is_empty()).enumerate();
    let is_prefix = move |(place, part): &(usize, &str)| {
        is_long && (*place == 0 || *place == 1 && *part == "UNC")
    };
    let parts = parts.skip_while(is_prefix);
    parts.map(|(_, part)| part)
}

/// The folder of worktrees that a client makes in a repository.
const WORKTREES_FOLDER: &str = ".claude/worktrees";

/// Returns the repository of a worktree that a client made, by its path alone: the worktree may be gone.
///
/// ```
/// use transcript_format::names::repository_of;
///
/// assert_eq!(repository_of("/home/ada/owl/.claude/worktrees/fix"), Some("/home/ada/owl"));
/// assert_eq!(repository_of("/home/ada/owl"), None);
/// ```
#[must_use]
pub fn repository_of(path: &str) -> Option<&str> {
    let is_slash = |byte: u8| byte == b'/' || byte == b'\\' && is_windows(path);
    let is_here = |at: &usize| {
        let tail = &path.as_bytes()[*at..];
        let [before, after] = [0, WORKTREES_FOLDER.len() + 1].map(|place| tail.get(place).copied());
        let names = tail.get(1..=WORKTREES_FOLDER.len());
        let is_named = names.is_some_and(|names| {
            names
                .iter()
                .zip(WORKTREES_FOLDER.as_bytes())
                .all(|(one, other)| one == other || *other == b'/' && is_slash(*one))
        });
        let has_name = tail
            .get(WORKTREES_FOLDER.len() + 2)
            .is_some_and(|byte| !is_slash(*byte));
        is_named && has_name && [before, after].iter().flatten().all(|byte| is_slash(*byte))
    };
    let at = (1..path.len()).find(is_here)?;
    path.get(..at)
}

/// Returns whether a folder of this name is named like a project: after a path, with `-` for every separator.
#[must_use]
pub fn is_project(name: &str) -> bool {
    let is_drive =
        matches!(name.as_bytes(), [drive, b'-', b'-', ..] if drive.is_ascii_alphabetic());
    name.len() > 1 && name.starts_with('-') || is_drive
}

/// Returns the first of these folders that a project folder of this name is named after: where a client that has its
/// sessions there was started.
#[must_use]
pub fn named_after<'f>(name: &str, folders: impl IntoIterator<Item = &'f str>) -> Option<&'f str> {
    let mut folders = folders.into_iter();
    folders.find(|folder| is_key_of(name, folder))
}

/// Returns whether `text` is safe as part of a file name on every system: 1 to 128 ASCII letters,
/// digits, `-` and `_`, and not a Windows device name.
///
/// ```
/// use transcript_format::names::is_id;
///
/// assert!(is_id("0b932c9f-9928-4cec-9e82-22c1703d5f54"));
/// assert!(!is_id("../0b932c9f"));
/// ```
#[must_use]
pub fn is_id(text: &str) -> bool {
    is_name(text, MAX_ID)
}

fn is_name(text: &str, longest: usize) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=longest).contains(&text.len()) && text.bytes().all(is_safe) && !is_device(text)
}

/// Returns whether `name` is a Windows device name, with any extension.
fn is_device(name: &str) -> bool {
    let is_one = |name: &str, devices: &[&str]| {
        let mut devices = devices.iter();
        devices.any(|device| name.eq_ignore_ascii_case(device))
    };
    if name.len() == 4 && name.ends_with(|c: char| matches!(c, '1'..='9')) {
        return is_one(&name[..3], &["com", "lpt"]);
    }
    is_one(name, &["con", "prn", "aux", "nul"])
}

/// The file of a conversation, as its path below the projects folder identifies it, in any of the
/// known layouts.
///
/// ```
/// use transcript_format::names::TranscriptFile;
///
/// let path = "-p/0b932c9f/subagents/workflows/run1/agent-a1.jsonl";
/// let file = TranscriptFile::at(path).unwrap();
/// let agent = TranscriptFile::Agent {
///     project: "-p",
///     session: Some("0b932c9f"),
///     below: "workflows/run1",
///     agent: "a1",
/// };
/// assert_eq!(file, agent);
/// assert_eq!(file.path().as_deref(), Some(path));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptFile<'p> {
    /// `PROJECT/SESSION.jsonl`
    Session {
        /// The folder of the project.
        project: &'p str,
        /// The id of the session.
        session: &'p str,
    },
    /// `PROJECT/SESSION/subagents/[BELOW/]agent-AGENT.jsonl`; for clients before 2.1.2
    /// `PROJECT/agent-AGENT.jsonl`, where only the lines of the file name the session.
    Agent {
        /// The folder of the project.
        project: &'p str,
        /// The id of the session.
        session: Option<&'p str>,
        /// The folders below `subagents`, with `/` between them.
        below: &'p str,
        /// The id of the agent.
        agent: &'p str,
    },
}

impl<'p> TranscriptFile<'p> {
    /// Parses a path below the projects folder, with `/` as separator. Returns `None` for paths of
    /// other files, and when a part is not an [id](is_id).
    #[must_use]
    pub fn at(path: &'p str) -> Option<Self> {
        let (project, rest) = path.split_once('/')?;
        let file = match rest.split_once('/') {
            Some((session, rest)) => {
                let (below, name) = rest.strip_prefix("subagents/").map(split_name)?;
                Self::Agent {
                    project,
                    session: Some(session),
                    below,
                    agent: agent_of(name)?,
                }
            }
            None => match (agent_of(rest), rest.strip_suffix(".jsonl")) {
                (Some(agent), _) => Self::Agent {
                    project,
                    session: None,
                    below: "",
                    agent,
                },
                (None, session) => Self::Session {
                    project,
                    session: session?,
                },
            },
        };
        (file.path()? == path).then_some(file)
    }

    /// Returns the path below the projects folder, with `/` as separator. Returns `None` when a
    /// part is not an [id](is_id), because it could then lead out of the folder.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        self.is_safe().then(|| match self {
            Self::Session { project, session } => format!("{project}/{session}.jsonl"),
            Self::Agent {
                project,
                session: None,
                agent,
                ..
            } => format!("{project}/agent-{agent}.jsonl"),
            Self::Agent {
                project,
                session: Some(session),
                below,
                agent,
            } => {
                let slash = if below.is_empty() { "" } else { "/" };
                format!("{project}/{session}/subagents/{below}{slash}agent-{agent}.jsonl")
            }
        })
    }

    fn is_safe(&self) -> bool {
        // With a 32-bit hash in base 36.
        let is_key = |key| is_name(key, MAX_KEY + "-1z141z4".len());
        match *self {
            Self::Session { project, session } => is_key(project) && is_id(session),
            Self::Agent {
                project,
                session,
                below,
                agent,
            } => {
                let is_below = below.is_empty() || below.split('/').all(is_id);
                is_key(project) && session.is_none_or(is_id) && is_below && is_id(agent)
            }
        }
    }
}

/// Splits a path into the folders before the last part, and that part.
fn split_name(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the id of the agent whose file has this name.
#[must_use]
pub fn agent_of(file_name: &str) -> Option<&str> {
    file_name.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// Returns the key of a path whose characters are given as `units`.
fn key(units: impl Iterator<Item = u32> + Clone) -> String {
    let key: String = units.clone().map(key_character).collect();
    if key.len() <= MAX_KEY {
        return key;
    }
    format!("{}-{}", &key[..MAX_KEY], base_36(hash(units)))
}

fn key_character(unit: u32) -> char {
    let character = u8::try_from(unit).map_or('-', char::from);
    if character.is_ascii_alphanumeric() {
        character
    } else {
        '-'
    }
}

/// Returns the absolute value of the 32-bit hash `h = 31 * h + unit`.
fn hash(units: impl Iterator<Item = u32>) -> u32 {
    let add = |hash: i32, unit: u32| hash.wrapping_mul(31).wrapping_add(unit.cast_signed());
    units.fold(0, add).unsigned_abs()
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_letters_and_digits_becomes_a_dash_for_each_utf_16_unit() {
        assert_eq!(
            project_key("/Users/foo/my-project"),
            "-Users-foo-my-project"
        );
        assert_eq!(project_key("/p/😀q"), "-p---q");
        assert_eq!(project_key("/p/é_Ü.x"), "-p-----x");
    }

    #[test]
    fn a_folder_has_one_key_in_every_form_of_its_path() {
        let (composed, decomposed) = ("/p/Pr\u{16f}zkum", "/p/Pru\u{30a}zkum");
        for name in [composed, decomposed].map(project_key) {
            assert!(is_key_of(&name, composed) && is_key_of(&name, decomposed));
        }
        for path in ["c:/Users/Ada", r"C:\Users\Ada"] {
            assert!(is_key_of("c--Users-Ada", path) && is_key_of("C--Users-Ada", path));
            assert!(!is_key_of("d--Users-Ada", path));
        }
        assert!(!is_key_of("-P-q", "/p/q"));
    }

    #[test]
    fn paths_are_compared_part_by_part() {
        assert!(same_path("/", "/") && same_path("/a/", "/a"));
        assert_eq!(rest_below("/", "/a/b"), Some(vec!["a", "b"]));
        // A backslash is a character of a name outside of Windows.
        assert_eq!(rest_below("/a", r"/a\b"), None);
        assert_eq!(rest_below("a", "/a"), None);
        assert_eq!(rest_below("/c:/a", "c:/a"), None);
        // The name below keeps its bytes.
        let below = rest_below("/\u{fc}", "/u\u{308}/u\u{308}");
        assert_eq!(below, Some(vec!["u\u{308}"]));
        assert!(!same_path(r"C:\Ada", r"C:\ada"));
        // One address of a server, and texts that are none.
        for path in [
            "//server/share/a",
            r"\\server/share\a\",
            r"\\?\UNC\server\share\a",
        ] {
            assert!(same_path(r"\\server\share\a", path), "{path}");
            assert!(!same_path(r"\\server\share\b", path) && !same_path(r"C:\share\a", path));
        }
        assert!(same_path(r"\\?\c:\Ada", "C:/Ada") && !same_path("/c:/Ada", "c:/Ada"));
        assert_eq!(rest_below("c:/", r"\\?\C:\UNC\x"), Some(vec!["UNC", "x"]));
        assert!(is_key_of("C--Users-Ada", r"\\?\c:\Users\Ada"));
    }

    #[test]
    fn a_worktree_names_its_repository() {
        let found = repository_of("/r/.claude/worktrees/a/b");
        assert_eq!(found, Some("/r"));
        let found = repository_of(r"C:\r\.claude\worktrees\a");
        assert_eq!(found, Some(r"C:\r"));
        for path in [
            "/r/.claude/worktrees",
            "/r/.claude/worktrees/",
            "/r/x.claude/worktrees/a",
            "/r/.claude/worktreesx/a",
            r"/r\.claude\worktrees\a",
            "",
        ] {
            assert_eq!(repository_of(path), None, "{path}");
        }
    }

    #[test]
    fn the_folder_of_a_long_path_is_recognized_with_any_hash() {
        let path = format!("/{}", "a/".repeat(150));
        let key = project_key(&path);
        assert!(is_key_of(&key, &path));
        assert!(is_key_of(&format!("{}-1x2y3z", &key[..200]), &path));
        assert!(!is_key_of(&key[..200], &path));
        assert!(!is_key_of(&format!("{}b-1x2y3z", &key[..199]), &path));
        assert!(!is_key_of("-p-q-2", "/p/q"));
    }

    #[test]
    fn a_text_that_could_leave_the_folder_is_not_an_id() {
        let long = "a".repeat(129);
        for text in [
            "",
            ".",
            "..",
            "../x",
            "..%2f",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:x",
            "\\\\?\\x",
            "a\0",
            "a.",
            "a ",
            "é",
            "con",
            "NUL",
            "Com1",
            "lpt9",
            &long,
        ] {
            assert!(!is_id(text), "{text:?}");
            let session = TranscriptFile::Session {
                project: "-p",
                session: text,
            };
            assert_eq!(session.path(), None, "{text:?}");
            let agent = |session, below, agent| TranscriptFile::Agent {
                project: "-p",
                session: Some(session),
                below,
                agent,
            };
            assert_eq!(agent("s", "", text).path(), None, "{text:?}");
            assert_eq!(agent(text, "", "a").path(), None, "{text:?}");
            // There may be no folder in between, or several.
            if !text.is_empty() && text != "a/b" {
                assert_eq!(agent("s", text, "a").path(), None, "{text:?}");
            }
        }
        assert!(is_id("com0") && is_id("console") && is_id(&long[1..]));
    }

    #[test]
    fn the_three_layouts_are_read_and_written_the_same() {
        for path in [
            "-p/s-1.jsonl",
            "-p/agent-a.jsonl",
            "-p/s-1/subagents/agent-a.jsonl",
            "-p/s-1/subagents/workflows/r_1/agent-a.jsonl",
        ] {
            let file = TranscriptFile::at(path).unwrap();
            assert_eq!(file.path().as_deref(), Some(path));
        }
        for path in [
            "s-1.jsonl",
            "-p/s-1.json",
            "-p/s 1.jsonl",
            "-p/../s-1.jsonl",
            "../s-1.jsonl",
            "-p/s-1/agent-a.jsonl",
            "-p/s-1/subagents/a.jsonl",
            "-p/s-1/subagents/agent-.jsonl",
            "-p/s-1/subagents/../agent-a.jsonl",
            "-p/s-1/subagents//agent-a.jsonl",
            "-p/s-1/subagents/agent-a.meta.json",
        ] {
            assert_eq!(TranscriptFile::at(path), None, "{path}");
        }
    }

    #[test]
    fn a_key_of_200_characters_stays_and_a_longer_one_is_cut_and_hashed() {
        let path = format!("/{}", "a".repeat(199));
        assert_eq!(project_key(&path), path.replace('/', "-"));
        let longer = format!("/{}", "a".repeat(200));
        let key = project_key(&longer);
        assert_eq!(&key[..200], &path.replace('/', "-"));
        // Independent computation: sum of unit x 31^place, in 32 bits.
        let mut hash: i64 = 0;
        for byte in longer.bytes() {
            hash = (hash * 31 + i64::from(byte)) & 0xffff_ffff;
        }
        let hash = if hash >> 31 == 1 {
            (1 << 32) - hash
        } else {
            hash
        };
        let digits = key[201..].chars().map(|digit| digit.to_digit(36).unwrap());
        assert_eq!(
            digits.fold(0, |sum, digit| sum * 36 + i64::from(digit)),
            hash
        );
        assert_eq!(base_36(0), "0");
    }
}
