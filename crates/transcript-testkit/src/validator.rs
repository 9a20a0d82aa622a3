//! A check of requests that shares no code with the crates: `tests/validate_request.py`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns what the validator objects to in `requests`, one list of messages a line; `None` when
/// there is no Python.
///
/// # Panics
/// When the validator cannot be given the requests, or fails.
pub fn validate(requests: &[u8]) -> Option<String> {
    let validator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/validate_request.py");
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(requests).expect("the requests are written");
    let child = Command::new("python3")
        .arg(validator)
        .arg(file.path())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let output = child.wait_with_output().expect("the validator ends");
    let said = String::from_utf8(output.stdout).expect("the validator writes UTF-8");
    assert_eq!(output.status.code(), Some(i32::from(!said.is_empty())));
    Some(said)
}
