//! The name of this machine, under which it captures in an archive that several machines share.

use std::env;

/// The name of a machine that has none.
const NAMELESS: &str = "machine";
/// The maximum length of a name, in bytes.
const MAX_NAME_LEN: usize = 64;

/// Returns the name of this machine: `$TRANSCRIPT_MACHINE`, else its host name up to the first point, with `-` for what a name cannot have.
pub(crate) fn machine_name() -> String {
    let set = env::var("TRANSCRIPT_MACHINE").ok();
    match set.filter(|name| check_machine(name).is_ok()) {
        Some(name) => name,
        None => of_host(&gethostname::gethostname().to_string_lossy()),
    }
}

/// Checks the name of a machine, which is a folder in the archive.
///
/// # Errors
/// The reason why it cannot be one.
pub fn check_machine(name: &str) -> Result<(), String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty()
        && name.len() <= MAX_NAME_LEN
        && !name.starts_with('.')
        && name.chars().all(is_valid)
    {
        return Ok(());
    }
    Err(format!(
        "the name of a machine has letters, digits, '-', '_' and '.', at most {MAX_NAME_LEN} of them, and does not start with '.'"
    ))
}

fn of_host(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let valid = |c: char| {
        let is_valid = c.is_ascii_alphanumeric() || "-_".contains(c);
        if is_valid { c } else { '-' }
    };
    let name: String = first.chars().take(MAX_NAME_LEN).map(valid).collect();
    if name.is_empty() {
        return NAMELESS.to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_host_is_a_valid_name_of_a_machine() {
        for (host, name) in [
            ("tower", "tower"),
            ("tower.lan.example", "tower"),
            ("Jo\u{e9}'s Mac", "Jo--s-Mac"),
            ("", NAMELESS),
            (".hidden", NAMELESS),
        ] {
            assert_eq!(of_host(host), name);
            assert_eq!(check_machine(name), Ok(()));
        }
        for wrong in ["", ".", "..", "a/b", "a b", "\u{e9}", &"a".repeat(65)] {
            assert!(check_machine(wrong).is_err(), "{wrong}");
        }
    }
}
