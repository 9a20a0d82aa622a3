//! The names of the folders that sessions are kept in (`facts/sdk.md` 1).

/// The longest key without a hash, in characters.
const MAX_KEY: usize = 200;

/// Returns the name of the folder of the project at `path`, an absolute path without links.
///
/// Every UTF-16 unit of the path but ASCII letters and digits becomes a `-`. A key of more than 200
/// characters is cut there and gets a hash of the whole path, so that long paths differ; short ones
/// may collide.
///
/// ```
/// use transcript_format::names::project_key;
///
/// assert_eq!(project_key("/home/ada/My Notes"), "-home-ada-My-Notes");
/// ```
#[must_use]
pub fn project_key(path: &str) -> String {
    let key: String = path.encode_utf16().map(key_character).collect();
    if key.len() <= MAX_KEY {
        return key;
    }
    format!("{}-{}", &key[..MAX_KEY], base_36(hash(path.encode_utf16())))
}

fn key_character(unit: u16) -> char {
    let character = u8::try_from(unit).map_or('-', char::from);
    if character.is_ascii_alphanumeric() {
        character
    } else {
        '-'
    }
}

/// 31 times the hash of what is before, plus the unit, in 32 bits; without the sign.
fn hash(units: impl Iterator<Item = u16>) -> u32 {
    let add = |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    units.fold(0, add).unsigned_abs()
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_letters_and_digits_becomes_a_dash_for_each_utf_16_unit() {
        assert_eq!(
            project_key("/Users/foo/my-project"),
            "-Users-foo-my-project"
        );
        assert_eq!(project_key("/p/😀q"), "-p---q");
        assert_eq!(project_key("/p/é_Ü.x"), "-p-----x");
    }

    #[test]
    fn a_key_of_200_characters_stays_and_a_longer_one_is_cut_and_hashed() {
        let path = format!("/{}", "a".repeat(199));
        assert_eq!(project_key(&path), path.replace('/', "-"));
        let longer = format!("/{}", "a".repeat(200));
        let key = project_key(&longer);
        assert_eq!(&key[..200], &path.replace('/', "-"));
        // By hand: sum of unit x 31^place, in 32 bits.
        let mut hash: i64 = 0;
        for byte in longer.bytes() {
            hash = (hash * 31 + i64::from(byte)) & 0xffff_ffff;
        }
        let hash = if hash >> 31 == 1 {
            (1 << 32) - hash
        } else {
            hash
        };
        let digits = key[201..].chars().map(|digit| digit.to_digit(36).unwrap());
        assert_eq!(
            digits.fold(0, |sum, digit| sum * 36 + i64::from(digit)),
            hash
        );
        assert_eq!(base_36(0), "0");
    }
}
