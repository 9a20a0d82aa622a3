//! E-mail addresses, and names of people in paths.

use std::ops::Range;

use crate::view::View;

/// Prefixes of the name of a person in a path.
pub(crate) const HOME_PREFIXES: [&str; 5] = ["/home/", "/Users/", "-home-", "-Users-", "\\Users\\"];

/// Returns the e-mail address around the `@` at `at`.
pub(crate) fn email(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let is_local =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte) || *byte >= 0x80;
    let before = text[at.saturating_sub(64)..at].iter().rev();
    let local = before.take_while(|byte| is_local(byte)).count();
    let rest = &text[at + 1..text.len().min(at + 1 + 253)];
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let len = rest.iter().take_while(|byte| is_host(byte)).count();
    let host = std::str::from_utf8(&rest[..len]).ok()?;
    let host = host.trim_end_matches(['.', '-']);
    let (domain, end) = host.rsplit_once('.')?;
    let is_address = local > 0
        && !domain.is_empty()
        && (2..=24).contains(&end.len())
        && end.bytes().all(|byte| byte.is_ascii_alphabetic())
        // An address of a repository.
        && &text[at - local..at] != b"git";
    is_address.then(|| at - local..at + 1 + host.len())
}

/// Returns the name of a person in a path, which starts at `at`.
pub(crate) fn home(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let is_dashed = text[..at].ends_with(b"-");
    let is_name = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || *byte == b'_'
            || !is_dashed && matches!(byte, b'.' | b'-')
            || *byte >= 0x80
    };
    let len = text[at..].iter().take_while(|byte| is_name(byte)).count();
    (len > 0 && len <= 64).then_some(at..at + len)
}
