//! Ids of calls and names of tools that every model accepts.

use std::collections::{HashMap, HashSet};

use super::seed::hex;

/// The greatest length of an id or a name, in characters: that of the strictest provider.
pub(super) const MAX_NAME: usize = 64;

/// The number of characters of a hash that keeps long names apart.
const HASH_LEN: usize = 16;

/// Returns a name of the characters that are allowed, and not too long: others become `_`.
pub(super) fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = name
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    if plain.len() <= MAX_NAME {
        return plain;
    }
    let kept = MAX_NAME - HASH_LEN - 1;
    format!("{}_{}", &plain[..kept], &hex(name)[..HASH_LEN])
}

/// The ids of calls so far.
#[derive(Default)]
pub(super) struct CallIds {
    taken: HashSet<String>,
    /// The number to try next for an id that several calls have.
    next: HashMap<String, usize>,
}

impl CallIds {
    /// Returns an id for the next call, which no call before has: its own if that is possible. `separator` is what must not be
    /// in an id.
    pub(super) fn take(&mut self, id: &str, separator: Option<&str>) -> String {
        let mut own = plain(id);
        while let Some(separator) = separator.filter(|separator| own.contains(separator)) {
            own = own.replace(separator, "_");
        }
        if own.is_empty() {
            "call".clone_into(&mut own);
        }
        let mut free = own.clone();
        while !self.taken.insert(free.clone()) {
            let number = self.next.entry(own.clone()).or_insert(1);
            *number += 1;
            let suffix = format!("_{number}");
            let kept = own.len().min(MAX_NAME - suffix.len());
            free = format!("{}{suffix}", &own[..kept]);
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_short_and_different() {
        let mut ids = CallIds::default();
        let long = "x".repeat(200);
        let given = ["a", "a", "a_2", "ü|1", "", "", &long, &long, "t__1"];
        let taken: Vec<String> = given.iter().map(|id| ids.take(id, Some("__"))).collect();
        assert_eq!(
            taken[..6],
            ["a", "a_2", "a_2_2", "_1", "call", "call_2"].map(str::to_owned)
        );
        assert_eq!(taken[8], "t_1");
        let different: HashSet<&String> = taken.iter().collect();
        assert_eq!(different.len(), taken.len());
        assert!(taken.iter().all(|id| id.len() <= MAX_NAME));
    }

    #[test]
    fn long_names_with_one_beginning_stay_apart() {
        let long = |end: &str| plain(&format!("{}{end}", "n".repeat(100)));
        assert_ne!(long("a"), long("b"));
        assert_eq!(long("a").len(), MAX_NAME);
    }
}
