//! Ids of entries.

use std::fmt;

/// A uuid in its canonical form: 36 characters, lower-case hexadecimal, hyphens in their places.
///
/// Only that spelling is a [`Uuid`], so two of them are equal exactly when the strings are equal.
/// All other ids (tests and older tools write `u1` or upper case) are compared as strings.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub u128);

/// A one in each of eight bytes.
const ONE_IN_EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Reads eight lower-case hexadecimal digits at once. The second value is 0 if they are that.
#[inline(always)]
fn eight_digits(text: u64) -> (u32, u64) {
    let letters = text >> 6 & ONE_IN_EACH_BYTE;
    let digits = (text & (ONE_IN_EACH_BYTE * 0x0F)) + letters * 9;
    // Only the right digits give the text again.
    let wrong = text_of(digits) ^ text | digits & (ONE_IN_EACH_BYTE * 0xF0);
    let pairs = (digits | digits >> 4) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF;
    ((fours | fours >> 16) as u32, wrong)
}

/// Returns the text of eight digits, one in each byte.
#[inline(always)]
fn text_of(digits: u64) -> u64 {
    let above_nine = (digits + ONE_IN_EACH_BYTE * 6) >> 4 & ONE_IN_EACH_BYTE;
    digits + ONE_IN_EACH_BYTE * u64::from(b'0') + above_nine * u64::from(b'a' - b'9' - 1)
}

/// Returns the eight digits of `value` as text.
#[inline(always)]
fn digits_of(value: u32) -> [u8; 8] {
    let fours = u64::from(value);
    let fours = (fours | fours << 16) & 0x0000_FFFF_0000_FFFF;
    let pairs = (fours | fours << 8) & 0x00FF_00FF_00FF_00FF;
    text_of((pairs | pairs << 4) & 0x0F0F_0F0F_0F0F_0F0F).to_be_bytes()
}

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
        let four = |at: usize| u64::from(u32::from_be_bytes([0, 1, 2, 3].map(|i| text[at + i])));
        let eight = |first, second| eight_digits(four(first) << 32 | four(second));
        let (a, wrong_a) = eight(0, 4);
        let (b, wrong_b) = eight(9, 14);
        let (c, wrong_c) = eight(19, 24);
        let (d, wrong_d) = eight(28, 32);
        let value = [a, b, c, d]
            .into_iter()
            .fold(0, |value, part| value << 32 | u128::from(part));
        (wrong_a | wrong_b | wrong_c | wrong_d == 0).then_some(Self(value))
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
        let [a, b, c, d] = [96, 64, 32, 0].map(|shift| digits_of((self.0 >> shift) as u32));
        text[..8].copy_from_slice(&a);
        text[9..13].copy_from_slice(&b[..4]);
        text[14..18].copy_from_slice(&b[4..]);
        text[19..23].copy_from_slice(&c[..4]);
        text[24..28].copy_from_slice(&c[4..]);
        text[28..].copy_from_slice(&d);
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

/// Returns whether a `message.id` has the form of those that the API gives, which no two answers
/// share. Those of gateways may be the same for all answers, or numbered from 1 in each session.
#[must_use]
pub fn is_message_id_of_api(id: &str) -> bool {
    const MIN_LEN: usize = 20;
    let rest = id.strip_prefix("msg_");
    rest.is_some_and(|rest| rest.len() >= MIN_LEN && rest.bytes().any(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_read_and_it_is_written_again() {
        let ids = [0, u128::MAX, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210];
        for id in ids.map(|id| Uuid(id).text()) {
            for at in 0..id.len() {
                for byte in 0..=255 {
                    let mut text = id;
                    text[at] = byte;
                    let is_right = match at {
                        8 | 13 | 18 | 23 => byte == b'-',
                        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
                    };
                    let read = Uuid::parse(&text).map(Uuid::text);
                    assert_eq!(read, is_right.then_some(text), "{byte} at {at}");
                }
            }
        }
        assert_eq!(Uuid::parse(&ids[2].to_be_bytes()), None);
    }
}
