//! Passwords in addresses: `scheme://user:password@host`.

use std::ops::Range;

use crate::class::{ALNUM, Class};
use crate::random::{is_uuid, looks_random};
use crate::value::stands_for_one;
use crate::view::View;

pub(crate) const ADDRESS_MARK: &str = "://";
/// The maximum length of a user with a password, in bytes.
const MAX_CREDENTIALS_LEN: usize = 1 << 10;

/// Returns the password of the address whose `://` is at `at`, or the token that it has in place of a user.
pub(crate) fn password(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let start = at + ADDRESS_MARK.len();
    let rest = &text[start..text.len().min(start + MAX_CREDENTIALS_LEN)];
    let is_end = |byte: &u8| b"/\\ <>`\"".contains(byte) || byte.is_ascii_control();
    let mut end = rest.iter().position(is_end).unwrap_or(rest.len());
    // A password may have a slash, too, where no path with an `@` is likely.
    if is_database(&text[..at]) {
        let is_blank = |byte: &u8| b"\\ <>`\"'".contains(byte) || byte.is_ascii_control();
        end = rest.iter().position(is_blank).unwrap_or(rest.len());
    }
    // A password may have an `@`, a host has none. What comes behind `?` belongs to no host.
    let end = memchr::memrchr(b'@', &rest[..end])?;
    let host = rest.get(end + 1).copied();
    if !host.is_some_and(|byte| ALNUM.has(byte) || b"[${<*".contains(&byte)) {
        return None;
    }
    let user = &rest[..end];
    let secret = match memchr::memchr(b':', user) {
        // A token may stand in place of the user, with an empty password, or a fixed one.
        Some(colon)
            if looks_random(&user[..colon])
                && !is_uuid(&user[..colon])
                && user.len() - colon < 20 =>
        {
            0..colon
        }
        Some(colon) => colon + 1..end,
        None => {
            return (user.len() >= 20 && looks_random(user)).then_some(start..start + end);
        }
    };
    let password = &user[secret.clone()];
    let is_name = password == user.split(|byte| *byte == b':').next().unwrap_or_default();
    let stands = is_name && !looks_random(password)
        || stands_for_one(password)
        || password.starts_with(b"$")
        || password.starts_with(b"{")
        || password.starts_with(b"%")
        || password.starts_with(b"[")
        || password.contains(&b'*') && password.len() < 8;
    (password.len() >= 3 && !stands).then(|| start + secret.start..start + secret.end)
}

/// Returns whether the scheme before an address is that of a database or a queue.
fn is_database(before: &[u8]) -> bool {
    const SCHEMES: [&[u8]; 14] = [
        b"postgres",
        b"postgresql",
        b"mysql",
        b"mariadb",
        b"mongodb",
        b"mongodb+srv",
        b"redis",
        b"rediss",
        b"amqp",
        b"amqps",
        b"mssql",
        b"sqlserver",
        b"clickhouse",
        b"cockroachdb",
    ];
    const SCHEME: Class = ALNUM.or(Class::of("+-"));
    let len = before
        .iter()
        .rev()
        .take(32)
        .take_while(|byte| SCHEME.has(**byte))
        .count();
    let scheme = &before[before.len() - len..];
    // `mysql+pymysql`.
    SCHEMES.contains(&scheme)
        || SCHEMES.contains(
            &scheme
                .split(|byte| *byte == b'+')
                .next()
                .unwrap_or_default(),
        )
}
