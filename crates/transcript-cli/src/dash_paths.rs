//! Paths that start with a dash, as the names of all project folders do.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Rewrites the arguments of a command line, so that no path is taken for options. A path that `exists` gets `./` before it.
/// Everything after `--`, and what can only be options, stays.
///
/// # Errors
/// An argument that cannot be an option, and is not a path that exists.
pub(crate) fn with_paths(
    arguments: impl Iterator<Item = OsString>,
    exists: impl Fn(&Path) -> bool,
) -> Result<Vec<OsString>, String> {
    let mut all: Vec<OsString> = Vec::new();
    let mut is_over = false;
    for (place, argument) in arguments.enumerate() {
        is_over |= argument == "--";
        let text = argument.to_string_lossy();
        // The value of this option may start with a dash.
        let is_value = all.last().is_some_and(|before| before == "--in");
        let is_project = all.last().is_some_and(|before| before == "--project");
        let is_option = place == 0 || is_over || !is_short(&text);
        if is_option {
            all.push(argument);
        } else if exists(Path::new(&argument)) || exists(Path::new(without_line(&text))) {
            all.push([OsStr::new("./"), &argument].into_iter().collect());
        } else if cannot_be_option(&text) && is_project {
            // The name of a project folder, as `usage` and `list --json` print it.
            all.pop();
            all.push([OsStr::new("--project="), &argument].into_iter().collect());
        } else if cannot_be_option(&text) && !is_value {
            return Err(format!(
                "{text}: no such option, file or folder; write a path that starts with a dash as ./{text}"
            ));
        } else {
            all.push(argument);
        }
    }
    Ok(all)
}

/// Returns whether an argument is short options, or looks like them: more than one, as no file has the name of an option.
fn is_short(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.chars().count() > 2
}

/// Returns whether no short options, with their values, are written so.
fn cannot_be_option(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let has_value = text.get(2..).is_some_and(is_number);
    let looks_like_path = text[1..].contains(['-', '/', '\\']) || text.ends_with(".jsonl");
    looks_like_path && !has_value && !is_number(text)
}

/// Returns the path of `SESSION:LINE`.
fn without_line(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((path, line)) if line.parse::<u64>().is_ok() => path,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(arguments: &[&str]) -> Result<Vec<String>, String> {
        let there = ["-home-ada", "-home-ada/s.jsonl", "-home", "-v", "-n"];
        let all = ["transcript"].iter().chain(arguments);
        let found = with_paths(all.map(OsString::from), |path| {
            there.iter().any(|one| Path::new(one) == path)
        })?;
        let rest = found.into_iter().skip(1);
        Ok(rest.map(|one| one.into_string().unwrap()).collect())
    }

    #[test]
    fn a_path_that_exists_is_not_an_option() {
        for path in [
            "-home-ada",
            "-home-ada/s.jsonl",
            "-home",
            "-home-ada/s.jsonl:7",
        ] {
            let expected = vec![
                "verify".to_owned(),
                format!("./{path}"),
                "--json".to_owned(),
            ];
            assert_eq!(given(&["verify", path, "--json"]), Ok(expected));
        }
    }

    #[test]
    fn options_and_their_values_stay() {
        for options in [
            &["list", "-n", "5", "-v"][..],
            &["list", "-n5", "-qf", "-n-1", "-2"],
            &["list", "--", "-home-ada", "-home-eve"],
            &["list", "--project=-home-ada", "-", "-h", "-help"],
            &["search", "--in", "-home-eve", "x"],
        ] {
            let expected: Vec<String> = options.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(given(options), Ok(expected));
        }
    }

    #[test]
    fn the_name_of_a_project_folder_is_the_value_of_its_option() {
        for (given_words, expected) in [
            (
                &["list", "--project", "-home-eve"][..],
                &["list", "--project=-home-eve"][..],
            ),
            (&["list", "--project", "-n5"], &["list", "--project", "-n5"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(given(given_words), Ok(expected));
        }
    }

    #[test]
    fn path_that_starts_with_a_dash_is_an_error_with_its_safe_form_and_never_help() {
        for path in [
            "-home-eve",
            "-h/s.jsonl",
            "-hour.jsonl",
            "-home-eve/s.jsonl:7",
        ] {
            let error = given(&["verify", path]).unwrap_err();
            assert!(error.contains(&format!("./{path}")), "{error}");
        }
    }
}
