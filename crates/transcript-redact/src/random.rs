//! Whether a text looks random, or like the name of something.

use crate::class::{ALNUM, Class};

/// Returns whether a text that is bounded by blanks or quotes looks like a random one.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    const SIGNS: Class = Class::of("+/=_-.~!$%&*:|@#^?,;");
    if value.len() < 14
        || !value
            .iter()
            .all(|byte| ALNUM.has(*byte) || SIGNS.has(*byte))
    {
        return false;
    }
    let count = |text: &[u8], of: fn(&u8) -> bool| text.iter().filter(|byte| of(byte)).count();
    let (digits, upper, lower) = (
        count(value, u8::is_ascii_digit),
        count(value, u8::is_ascii_uppercase),
        count(value, u8::is_ascii_lowercase),
    );
    if digits + upper + lower < value.len() / 2 || variety(value) < 6 {
        return false;
    }
    if digits == value.len() {
        return digits >= 24;
    }
    if digits >= 3 && upper >= 3 && lower >= 3 && value.len() >= 20 || is_uuid(value) {
        return true;
    }
    // In words and versions, letters and digits seldom take turns.
    if turns(value) * 5 >= value.len() && digits >= 4 && !is_name_like(value) {
        return true;
    }
    let parts = value.split(|byte| SIGNS.has(*byte));
    let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
    let digits = count(longest, u8::is_ascii_digit);
    let is_mixed = digits >= 2 && count(longest, u8::is_ascii_alphabetic) >= 2;
    longest.len() >= 12 && is_mixed && !is_name_like(value)
        || longest.len() >= 16 && is_cased(longest)
}

/// Returns whether capital and small letters alternate as they do by chance, and not as in names of several words.
pub(crate) fn is_cased(text: &[u8]) -> bool {
    let upper = text.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let lower = text.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    let changes = text
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() != pair[1].is_ascii_lowercase())
        .count();
    text.len() >= 10 && upper * 2 >= lower && lower * 2 >= upper && changes * 5 >= text.len() * 2
}

/// Counts the places where a letter follows a digit, or a digit a letter.
pub(crate) fn turns(text: &[u8]) -> usize {
    let is_turn = |pair: &[u8]| {
        pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
            || pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit()
    };
    text.windows(2).filter(|pair| is_turn(pair)).count()
}

/// Returns whether a text is a UUID.
pub(crate) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Counts the different bytes of a text.
pub(crate) fn variety(text: &[u8]) -> usize {
    let mut seen = [false; 256];
    text.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Returns whether a text is the name of something rather than a value: words with signs of names between them, with
/// at most some digits behind them.
pub(crate) fn is_name_like(value: &[u8]) -> bool {
    if !value
        .iter()
        .all(|byte| ALNUM.has(*byte) || b"_-./:".contains(byte))
    {
        return false;
    }
    let parts = value
        .split(|byte| b"_-./:".contains(byte))
        .filter(|part| !part.is_empty());
    let is_word = |part: &[u8]| {
        let letters = part
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        let digits = part[letters..].iter().all(u8::is_ascii_digit);
        let is_number = letters == 0 && part.len() <= 4;
        let is_cased = part[..letters].iter().skip(1).all(u8::is_ascii_lowercase)
            || part[..letters].iter().all(u8::is_ascii_uppercase);
        digits && (letters >= 2 && is_cased && part.len() - letters <= 2 || is_number)
    };
    let parts: Vec<&[u8]> = parts.collect();
    parts.len() >= 2 && parts.iter().all(|part| is_word(part))
}
