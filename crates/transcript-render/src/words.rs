//! Numbers with their nouns.

use std::fmt::Display;

/// Returns a noun in the form that goes with a number: `entry` or `entries`.
pub(crate) fn noun(number: impl Copy + PartialEq + From<u8>, what: &str) -> String {
    if number == 1.into() {
        return what.to_owned();
    }
    if let Some((first, second)) = what.split_once(" or ") {
        return format!("{} or {}", noun(number, first), noun(number, second));
    }
    match what.strip_suffix('y') {
        Some(stem) if !stem.ends_with('a') => format!("{stem}ies"),
        _ if what.ends_with("ch") || what.ends_with("ss") => format!("{what}es"),
        _ => format!("{what}s"),
    }
}

/// Returns a number with its noun: `1 entry`, `2 entries`.
#[must_use]
pub fn count(number: impl Copy + Display + PartialEq + From<u8>, what: &str) -> String {
    format!("{number} {}", noun(number, what))
}

/// Returns the words after the first `shown` of `all` things: ` and 3 more`, or nothing.
#[must_use]
pub fn and_more(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

/// Joins those parts that are there.
#[must_use]
pub fn joined<const N: usize>(parts: [Option<String>; N], separator: &str) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(separator)
}

/// `⋯ 3 more lines`: the note below lines that were cut.
pub(crate) fn more_lines(more: usize) -> String {
    format!("⋯ {more} more {}", noun(more, "line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_shown_is_counted_as_more() {
        assert_eq!(and_more(2, 2), "");
        assert_eq!(and_more(5, 2), " and 3 more");
    }

    #[test]
    fn each_noun_goes_with_the_number() {
        for (number, what, expected) in [
            (1, "entry", "1 entry"),
            (2, "entry", "2 entries"),
            (2, "day", "2 days"),
            (0, "branch", "0 branches"),
            (1, "damaged line or file", "1 damaged line or file"),
            (3, "damaged line or file", "3 damaged lines or files"),
        ] {
            assert_eq!(count(number, what), expected);
        }
    }

    #[test]
    fn missing_parts_leave_no_separator() {
        let parts = [Some("a".to_owned()), None, Some("b".to_owned())];
        assert_eq!(joined(parts, " · "), "a · b");
    }

    #[test]
    fn a_noun_has_the_form_of_its_number() {
        assert_eq!(count(1_usize, "entry"), "1 entry");
        assert_eq!(count(0_u64, "entry"), "0 entries");
        assert_eq!(count(2_u32, "branch"), "2 branches");
        assert_eq!(noun(12_u64, "line"), "lines");
        assert_eq!(noun(2_u64, "day"), "days");
    }
}
