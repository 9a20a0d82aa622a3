//! Versions of the client, for the rules that hold only for some of them.

use std::fmt;
use std::str::FromStr;

/// The version of a client, such as `2.1.331`; versions are ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientVersion([u32; 3]);

impl ClientVersion {
    /// Returns the version with these three numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self([major, minor, patch])
    }

    /// Reads the first three numbers of a version; `None` when the text does not start with them.
    /// A suffix after them, as in `2.1.331-beta.2`, is ignored.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut bytes = text.iter().copied().peekable();
        let mut numbers = [0_u32; 3];
        for (at, number) in numbers.iter_mut().enumerate() {
            if at > 0 && bytes.next() != Some(b'.') || !bytes.peek()?.is_ascii_digit() {
                return None;
            }
            // By hand, as every line has a version.
            while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
                *number = number
                    .checked_mul(10)?
                    .checked_add(u32::from(digit - b'0'))?;
            }
        }
        Some(Self(numbers))
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A text is not the version of a client: three numbers with points between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version such as 2.1.331")]
pub struct ParseVersionError;

impl FromStr for ClientVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        Self::parse(text.as_bytes()).ok_or(ParseVersionError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_a_version_and_what_follows_them_is_ignored() {
        let version = ClientVersion::new(2, 1, 331);
        for text in ["2.1.331", "2.1.331-beta.2", "2.1.331 (agent)"] {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
        for text in ["", "2.1", "2.1.", "v2.1.331", "2..1", "2.1.99999999999"] {
            assert_eq!(
                text.parse::<ClientVersion>(),
                Err(ParseVersionError),
                "{text}"
            );
        }
        assert_eq!(version.to_string(), "2.1.331");
    }

    #[test]
    fn later_versions_are_greater() {
        let newer = ClientVersion::new(2, 1, 331);
        assert!(newer > ClientVersion::new(2, 1, 99) && newer < ClientVersion::new(2, 10, 0));
    }
}
