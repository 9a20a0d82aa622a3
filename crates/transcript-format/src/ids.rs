//! Ids of entries.

use std::fmt;

/// A uuid in its canonical form: 36 characters, lower-case hexadecimal, hyphens in their places.
///
/// Only that spelling is a [`Uuid`], so two of them are equal exactly when the strings are equal.
/// All other ids (tests and older tools write `u1` or upper case) are compared as strings.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub u128);

/// Offsets of the 32 digits in the canonical form.
const DIGITS: [usize; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 33, 34, 35,
];

/// The value of a lower-case hexadecimal digit; 0xFF for every other byte.
const HEX: [u8; 256] = {
    let mut table = [0xFF; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

impl Uuid {
    /// The all-zero uuid, with which a `last-prompt` line clears the pin (LEAF-6).
    pub const ZERO: Self = Self(0);

    /// Reads the canonical form; any other spelling is `None`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: &[u8; 36] = text.try_into().ok()?;
        if [text[8], text[13], text[18], text[23]] != [b'-'; 4] {
            return None;
        }
        let mut value = 0u128;
        let mut seen = 0u8;
        for at in DIGITS {
            let digit = HEX[usize::from(text[at])];
            seen |= digit;
            value = value << 4 | u128::from(digit & 0x0F);
        }
        (seen < 16).then_some(Self(value))
    }

    /// Returns the id of part `index` of this id: its first 24 characters, then `index` as 12
    /// hexadecimal digits. Equal inputs give equal ids, so splitting a message into entries again
    /// gives the same ones. Of an index of 2^48 or more only the low bits are used.
    ///
    /// ```
    /// # use transcript_format::ids::Uuid;
    /// let message = Uuid::parse(b"0b932c9f-9928-4cec-9e82-22c1703d5f54").unwrap();
    /// assert_eq!(message.child(26).to_string(), "0b932c9f-9928-4cec-9e82-00000000001a");
    /// ```
    #[must_use]
    pub const fn child(self, index: u64) -> Self {
        const LAST_DIGITS: u128 = (1 << 48) - 1;
        Self(self.0 & !LAST_DIGITS | index as u128 & LAST_DIGITS)
    }

    /// Returns the canonical form.
    #[must_use]
    pub fn text(self) -> [u8; 36] {
        let mut text = [b'-'; 36];
        let bytes = self.0.to_be_bytes();
        for (pair, byte) in DIGITS.chunks_exact(2).zip(bytes) {
            text[pair[0]] = b"0123456789abcdef"[usize::from(byte >> 4)];
            text[pair[1]] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        text
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.text()).expect("hexadecimal digits and hyphens"))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
