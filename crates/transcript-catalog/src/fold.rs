//! Compares texts without regard to case or diacritics (docs/search.md).

/// The differences that are ignored when a term is compared with a text: case, diacritics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fold {
    /// Whether diacritics are ignored.
    pub(crate) plain: bool,
    /// Whether case is ignored.
    pub(crate) lower: bool,
}

/// U+00C0 to U+024F: the ASCII letters that canonical decompositions start with, else a dot.
const LATIN: &[u8; 0x190] = b"\
    AAAAAA.CEEEEIIII.NOOOOO..UUUUY..aaaaaa.ceeeeiiii.nooooo..uuuuy.y\
    AaAaAaCcCcCcCcDd..EeEeEeEeEeGgGgGgGgHh..IiIiIiIiI...JjKk.LlLlLl.\
    ...NnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTt..UuUuUuUuUuUuWwYyYZzZzZz.\
    ................................Oo.............Uu...............\
    .............AaIiOoUuUuUuUuUu.AaAa....GgKkOoOo..j...Gg..NnAa....\
    AaAaEeEeIiIiOoOoRrRrUuUuSsTt..Hh......AaEeOoOoOoOoYy............\
    ................";

/// The same for U+1E00 to U+1EFF.
const LATIN_ADDITIONAL: &[u8; 0x100] = b"\
    AaBbBbBbCcDdDdDdDdDdEeEeEeEeEeFfGgHhHhHhHhHhIiIiKkKkKkLlLlLlLlMm\
    MmMmNnNnNnNnOoOoOoOoPpPpRrRrRrRrSsSsSsSsSsTtTtTtTtUuUuUuUuUuVvVv\
    WwWwWwWwWwXxXxYyZzZzZzhtwy......AaAaAaAaAaAaAaAaAaAaAaAaEeEeEeEe\
    EeEeEeEeIiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUuUuUuYyYyYyYy......";

/// Returns the character without its diacritics; `None` if it is a combining mark.
pub(crate) fn plain(c: char) -> Option<char> {
    let letter = match u32::from(c) {
        code @ 0xC0..0x250 => LATIN[code as usize - 0xC0],
        0x300..=0x36F => return None,
        code @ 0x1E00..0x1F00 => LATIN_ADDITIONAL[code as usize - 0x1E00],
        _ => b'.',
    };
    Some(if letter == b'.' {
        c
    } else {
        char::from(letter)
    })
}

/// Returns the number of bytes before the first one that is not ASCII.
pub(crate) fn ascii_len(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<32>();
    let whole = 32 * chunks.iter().take_while(|chunk| chunk.is_ascii()).count();
    let rest = bytes[whole..].iter().position(|byte| !byte.is_ascii());
    rest.map_or(bytes.len(), |at| whole + at)
}

/// Returns the lower-case character. Characters whose lower case is ASCII without being ASCII
/// themselves, or is more than one character, stay as they are.
pub(crate) fn lower(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    // Arrows, boxes, emoji, and the characters of Chinese, Japanese and Korean: a look at the table is
    // slower.
    if matches!(c, '\u{2190}'..='\u{245F}' | '\u{2500}'..='\u{2BFF}' | '\u{2E80}'..='\u{A63F}' | '\u{AC00}'..='\u{FAFF}' | '\u{1F000}'..='\u{323AF}')
    {
        return c;
    }
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) if !one.is_ascii() => one,
        _ => c,
    }
}

impl Fold {
    pub(crate) const NOTHING: Self = Self {
        plain: false,
        lower: false,
    };
    pub(crate) const CASE: Self = Self {
        plain: false,
        lower: true,
    };

    /// Returns what a term ignores: what it does not use itself.
    pub(crate) fn of(term: &str) -> Self {
        Self {
            plain: term.chars().all(|c| plain(c) == Some(c)),
            lower: term.chars().all(|c| lower(c) == c),
        }
    }

    pub(crate) fn char(self, c: char) -> Option<char> {
        let c = if self.plain { plain(c)? } else { c };
        Some(if self.lower { lower(c) } else { c })
    }

    /// Writes the text as it is compared.
    pub(crate) fn text(self, text: &str, out: &mut String) {
        out.clear();
        let mut rest = text;
        loop {
            // ASCII has no diacritics, and most texts are ASCII for long stretches.
            let ascii = ascii_len(rest.as_bytes());
            let start = out.len();
            out.push_str(&rest[..ascii]);
            if self.lower {
                out[start..].make_ascii_lowercase();
            }
            rest = &rest[ascii..];
            if rest.is_empty() {
                return;
            }
            for c in rest.chars() {
                if c.is_ascii() {
                    break;
                }
                rest = &rest[c.len_utf8()..];
                out.extend(self.char(c));
            }
        }
    }

    /// Returns the places in `text` of places in its folded text, which are sorted.
    pub(crate) fn places(self, text: &str, folded: &[usize]) -> Vec<usize> {
        let mut at = 0;
        let mut wanted = folded.iter().copied().peekable();
        let mut places = Vec::with_capacity(folded.len());
        for (place, c) in text.char_indices() {
            let len = self.char(c).map_or(0, char::len_utf8);
            // A mark that is dropped belongs to the character before it.
            while len > 0 && wanted.next_if(|next| *next <= at).is_some() {
                places.push(place);
            }
            if wanted.peek().is_none() {
                return places;
            }
            at += len;
        }
        places.resize(folded.len(), text.len());
        places
    }
}

/// Returns a text without the differences of case that a search ignores.
pub(crate) fn folded(text: &str) -> String {
    let mut out = String::new();
    Fold::CASE.text(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        let all = Fold {
            plain: true,
            lower: true,
        };
        all.text(text, &mut out);
        out
    }

    #[test]
    fn case_and_diacritics_are_dropped_and_other_characters_kept() {
        assert_eq!(folded("Crème BRÛLÉE"), "creme brulee");
        assert_eq!(folded("cafe\u{301} Việt Łódź ĳ"), "cafe viet łodz ĳ");
        assert_eq!(folded("ДА Ñ 日本 ÆØ ß İ"), "да n 日本 æø ß i");
        // The Kelvin sign is not a letter K, and the lower case of İ alone would be two characters.
        assert_eq!(folded("\u{212A}"), "\u{212A}");
        assert!(!Fold::of("café").plain);
        assert!(!Fold::of("Cafe").lower);
    }

    #[test]
    fn characters_that_are_not_looked_up_have_no_case() {
        for c in '\u{80}'..=char::MAX {
            let mut all = c.to_lowercase();
            let is_other =
                all.len() == 1 && all.next().is_some_and(|low| !low.is_ascii() && low != c);
            assert_eq!(lower(c) != c, is_other, "{c}");
        }
    }

    #[test]
    fn the_first_character_that_is_not_ascii_is_found_at_any_place() {
        for len in 0..100 {
            let text = "x".repeat(len);
            assert_eq!(ascii_len(text.as_bytes()), len);
            assert_eq!(ascii_len(format!("{text}é{text}").as_bytes()), len);
        }
    }

    #[test]
    fn tables_have_the_letters_of_their_places() {
        for (c, letter) in [('é', 'e'), ('Ā', 'A'), ('ž', 'z'), ('ơ', 'o'), ('ǎ', 'a')] {
            assert_eq!(plain(c), Some(letter), "{c}");
        }
        for (c, letter) in [('ḁ', 'a'), ('ệ', 'e'), ('ỹ', 'y'), ('Ẁ', 'W'), ('ẙ', 'y')] {
            assert_eq!(plain(c), Some(letter), "{c}");
        }
    }

    #[test]
    fn places_in_folded_texts_are_found_again() {
        let fold = Fold {
            plain: true,
            lower: true,
        };
        // e, mark, É, x
        let text = "e\u{301}Éx";
        assert_eq!(fold.places(text, &[0, 1, 2, 3]), [0, 3, 5, 6]);
        assert_eq!(Fold::NOTHING.places("äb", &[0, 2, 3]), [0, 2, 3]);
    }
}
