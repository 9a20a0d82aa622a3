//! Whether a text looks random, or like the name of something.

use crate::class::{ALNUM, Class};

/// Returns whether a text that is bounded by blanks or quotes looks like a random one.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    const SIGN_CHARS: Class = Class::of("+/=_-.~!$%&*:|@#^?,;");
    if value.len() < 14
        || !value
            .iter()
            .all(|byte| ALNUM.has(*byte) || SIGN_CHARS.has(*byte))
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
    let parts = value.split(|byte| SIGN_CHARS.has(*byte));
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

/// Returns whether a text has letters and digits, or letters and signs that no name has.
pub(crate) fn is_mixed(value: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let has_letters = has(u8::is_ascii_alphabetic);
    has_letters && (has(u8::is_ascii_digit) || has(|byte| b"!#^*@+=~&?$%".contains(byte)))
}

pub(crate) fn is_camel(value: &[u8]) -> bool {
    value
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Returns whether a word is like no word and no name: letters of both cases and digits, most of them not in words.
pub(crate) fn is_tangled(value: &[u8]) -> bool {
    const MIN_LEN: usize = 8;
    const MAX_LEN: usize = 256;
    const MIN_WORD_LEN: usize = 3;
    const SIGN_CHARS: Class = Class::of("+/=_-.~!$%&*:@#^?,");
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let is_whole = |byte: &u8| ALNUM.has(*byte) || SIGN_CHARS.has(*byte);
    if !(MIN_LEN..=MAX_LEN).contains(&value.len())
        || !value.iter().all(is_whole)
        || !has(u8::is_ascii_digit)
        || !has(u8::is_ascii_uppercase)
        || !has(u8::is_ascii_lowercase)
    {
        return false;
    }
    // The letters between digits, signs and capital letters, and the places between them where no word ends.
    let (mut short, mut word, mut changes) = (0, 0, 0);
    let mut previous = b' ';
    for byte in value.iter().chain(b" ") {
        let is_start = byte.is_ascii_uppercase() && !previous.is_ascii_uppercase();
        if !byte.is_ascii_alphabetic() || is_start {
            short += usize::from(word > 0 && word < MIN_WORD_LEN);
            word = 0;
        }
        let is_lower_to_upper = previous.is_ascii_lowercase() && byte.is_ascii_uppercase();
        let is_turn = ALNUM.has(previous)
            && ALNUM.has(*byte)
            && previous.is_ascii_digit() != byte.is_ascii_digit();
        changes += usize::from(is_lower_to_upper || is_turn);
        word += usize::from(byte.is_ascii_alphabetic());
        previous = *byte;
    }
    short >= 2 && turns(value) >= 1 || changes * 3 >= value.len()
}

/// Returns whether a text is a long row of letters, digits and many signs, such as the keys of WordPress.
pub(crate) fn is_dense(value: &[u8]) -> bool {
    const MIN_LEN: usize = 32;
    const MIN_SIGNS: usize = 3;
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let signs: Vec<u8> = value
        .iter()
        .copied()
        .filter(u8::is_ascii_punctuation)
        .collect();
    let blanks = value.iter().filter(|byte| **byte == b' ').count();
    (MIN_LEN..=128).contains(&value.len())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && variety(&signs) >= MIN_SIGNS
        && blanks * 12 <= value.len()
        && turns(value) >= 2
}
