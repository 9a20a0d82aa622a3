//! Examples at the end of each help. Each line is a whole shell command: tests run all of them, or read those that do not end.

/// The examples of each command. `1f0a` is the start of an id.
pub(crate) const EXAMPLES: [(&str, &[&str]); 26] = [
    (
        "append",
        &[
            r#"echo '{"op":"append","user":"Go on."}' | transcript append 1f0a"#,
            r#"echo '{"op":"title","title":"Login bug"}' | transcript append 1f0a"#,
        ],
    ),
    ("browse", &["transcript browse", "transcript browse latest"]),
    (
        "completions",
        &[
            "mkdir -p ~/.local/share/bash-completion/completions && transcript completions bash > ~/.local/share/bash-completion/completions/transcript",
            "mkdir -p ~/.local/share/zsh && transcript completions zsh > ~/.local/share/zsh/_transcript",
            "mkdir -p ~/.config/fish/completions && transcript completions fish > ~/.config/fish/completions/transcript.fish",
        ],
    ),
    (
        "convert",
        &[
            "transcript convert 1f0a --to codex --out copies",
            "transcript convert latest --to atif --out latest.json",
        ],
    ),
    (
        "export",
        &[
            "transcript export latest --html session.html",
            "transcript export 1f0a --markdown - --emails --names",
            "transcript export latest --to atif --out trajectory.json",
        ],
    ),
    (
        "fork",
        &[
            "transcript fork latest",
            "transcript fork 1f0a --at 3 --title 'Another way'",
        ],
    ),
    (
        "help",
        &["transcript help replay", "transcript help sessions"],
    ),
    (
        "import",
        &[
            "transcript import session.html --out session.jsonl",
            "transcript import session.html --out - | transcript replay -",
        ],
    ),
    ("keep", &["transcript keep", "transcript keep --install"]),
    (
        "list",
        &[
            "transcript list --since yesterday",
            "transcript list --text login --json",
        ],
    ),
    (
        "man",
        &[
            "transcript man | man -l -",
            "transcript man --dir ~/.local/share/man/man1",
        ],
    ),
    (
        "merge",
        &[
            "transcript merge here.jsonl laptop.jsonl --out both.jsonl",
            "transcript merge 1f0a laptop.jsonl --out merged.jsonl --json",
        ],
    ),
    (
        "move",
        &[
            "transcript move ~/old ~/new --dry-run",
            "transcript move ~/old ~/new",
        ],
    ),
    (
        "prune",
        &["transcript prune", "transcript prune --older-than 90 --yes"],
    ),
    (
        "pull",
        &["transcript pull 1f0a", "transcript pull 1f0a --json"],
    ),
    (
        "push",
        &["transcript push latest", "transcript push 1f0a --json"],
    ),
    (
        "repair",
        &["transcript repair 1f0a", "transcript repair 1f0a --keep-id"],
    ),
    (
        "replay",
        &[
            "transcript replay latest",
            "transcript replay 1f0a --role user --since 2026-01-01",
        ],
    ),
    (
        "restore",
        &[
            "transcript restore 1f0a",
            "transcript restore --all --to copies",
        ],
    ),
    (
        "resume",
        &[
            "transcript resume latest",
            "transcript resume 1f0a --request --prompt 'Go on.'",
            "transcript resume latest --to codex",
            "transcript resume 1f0a --to claude-code --write",
        ],
    ),
    (
        "search",
        &[
            "transcript search login bug",
            r#"transcript search '"exact words" role:user since:2026-01-01'"#,
        ],
    ),
    (
        "serve",
        &[
            "transcript serve --open",
            "transcript serve --port 8000 --redact",
        ],
    ),
    (
        "tail",
        &[
            "transcript tail -f latest",
            "transcript tail 1f0a --until turn-end --timeout 5",
        ],
    ),
    (
        "tree",
        &[
            "transcript tree latest",
            "transcript tree 1f0a --sidechains",
        ],
    ),
    (
        "usage",
        &["transcript usage --by day", "transcript usage 1f0a"],
    ),
    (
        "verify",
        &[
            "transcript verify latest",
            "transcript verify ~/.claude/projects --json",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::command_line::parsed;

    /// Returns the words of each call of the command in a line of a shell.
    fn calls(line: &str) -> Vec<Vec<OsString>> {
        let (mut calls, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None, None);
        for c in line.chars().chain([' ', '|']) {
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert(String::new());
                }
                (None, ' ') => words.extend(word.take().map(OsString::from)),
                (None, '|' | '&' | '>') => calls.push(std::mem::take(&mut words)),
                _ => word.get_or_insert(String::new()).push(c),
            }
        }
        calls.retain(|words| words.first().is_some_and(|first| first == "transcript"));
        calls
    }

    #[test]
    fn every_example_is_read() {
        let mut count = 0;
        for (command, examples) in EXAMPLES {
            for line in examples {
                let calls = calls(line);
                assert!(!calls.is_empty(), "{line}");
                for call in calls {
                    // The light form has no such commands.
                    let is_built = (cfg!(feature = "browse") || command != "browse")
                        && (cfg!(feature = "import") || command != "convert")
                        && (cfg!(feature = "serve") || command != "serve");
                    let read = parsed(&call);
                    assert!(read.is_ok() || !is_built, "{line}: {:?}", read.err());
                    count += 1;
                }
            }
        }
        assert!(count >= 2 * EXAMPLES.len(), "{count}");
    }
}
