//! The tasks of this binary when a test runs it again.

use std::path::Path;

use crate::support::task;

/// Does nothing in an ordinary run of the tests.
#[test]
fn child() {
    let Some(words) = task() else {
        return;
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["limit", path, lines] => crate::hot::limited(Path::new(path), lines.parse().unwrap()),
        ["sparse", path, start, len] => {
            crate::damage::sparse(
                Path::new(path),
                start.parse().unwrap(),
                len.parse().unwrap(),
            );
        }
        ["look", path, lines] => crate::readonly::look(Path::new(path), lines.parse().unwrap()),
        #[cfg(target_os = "linux")]
        ["many", path, count] => {
            crate::shared::many(Path::new(path), count.parse().unwrap());
        }
        ["meddle", path] => crate::readonly::meddle(Path::new(path)),
        ["follow", path, output] => crate::kill::follow(Path::new(path), Path::new(output)),
        ref other => panic!("unknown task: {other:?}"),
    }
}
