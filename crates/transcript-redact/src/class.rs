//! Sets of characters.

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u128);

impl Class {
    pub(crate) const fn of(characters: &str) -> Self {
        let characters = characters.as_bytes();
        let mut set = 0;
        let mut at = 0;
        while at < characters.len() {
            set |= 1 << (characters[at] & 127);
            at += 1;
        }
        Self(set)
    }

    const fn range(from: u8, to: u8) -> Self {
        Self((u128::MAX >> (127 - to)) & (u128::MAX << from))
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, byte: u8) -> bool {
        byte < 128 && self.0 >> byte & 1 == 1
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        const DIGIT: Class = Class::range(b'0', b'9');
        const LOWER: Class = Class::range(b'a', b'z');
        const UPPER: Class = Class::range(b'A', b'Z');
        let alnum = DIGIT.or(LOWER).or(UPPER);
        Some(match name {
            "digit" => DIGIT,
            "alnum" => alnum,
            "lower" => DIGIT.or(LOWER),
            "upper" => DIGIT.or(UPPER),
            "alpha" => LOWER.or(UPPER),
            "hex" => DIGIT
                .or(Self::range(b'a', b'f'))
                .or(Self::range(b'A', b'F')),
            "b64" => alnum.or(Self::of("+/=")),
            "b64url" => alnum.or(Self::of("-_")),
            "word" => alnum.or(Self::of("_")),
            "dotted" => alnum.or(Self::of("-_.")),
            "crypt" => alnum.or(Self::of("./$=,+")),
            _ => {
                let mut set = name.strip_prefix('[')?.strip_suffix(']')?;
                let mut class = Self(0);
                for (text, range) in [("A-Z", UPPER), ("a-z", LOWER), ("0-9", DIGIT)] {
                    if let Some(rest) = set.strip_prefix(text) {
                        (class, set) = (class.or(range), rest);
                    }
                }
                class.or(Self::of(set))
            }
        })
    }
}

/// The letters and digits.
pub(crate) const ALNUM: Class = Class::range(b'0', b'9')
    .or(Class::range(b'a', b'z'))
    .or(Class::range(b'A', b'Z'));
/// The characters of base64, of both alphabets.
pub(crate) const BASE64: Class = ALNUM.or(Class::of("+/=-_"));
