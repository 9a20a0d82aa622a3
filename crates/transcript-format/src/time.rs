//! Timestamps in the form used by transcripts.

use jiff::Timestamp;

/// Returns the time in milliseconds since 1970; smaller fractions are truncated.
///
/// Accepts all that writers produce: RFC 3339 with any fraction and any offset. A time without an
/// offset and a date without a time are taken as UTC. Other texts, such as the empty string, give
/// `None`.
///
/// ```
/// use transcript_format::time::millis;
/// assert_eq!(millis(b"1970-01-01T00:00:01.250Z"), Some(1250));
/// assert_eq!(millis(b"garbage"), None);
/// ```
#[must_use]
pub fn millis(text: &[u8]) -> Option<i64> {
    written_form(text).or_else(|| lenient(std::str::from_utf8(text).ok()?))
}

/// Returns a time, given in milliseconds since 1970, as clients write it.
///
/// ```
/// use transcript_format::time::text;
/// assert_eq!(text(1250).as_deref(), Some("1970-01-01T00:00:01.250Z"));
/// ```
///
/// Returns `None` for years that do not have four digits.
#[must_use]
pub fn text(millis: i64) -> Option<String> {
    let time = Timestamp::from_millisecond(millis).ok()?;
    let text = format!("{time:.3}");
    (text.len() == "1970-01-01T00:00:01.250Z".len()).then_some(text)
}

/// The form that every known client writes: `2026-11-20T10:00:01.250Z`.
fn written_form(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let punctuation = [
        (4, b'-'),
        (7, b'-'),
        (10, b'T'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
        (23, b'Z'),
    ];
    if punctuation.iter().any(|&(at, byte)| text[at] != byte) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        text[range].iter().try_fold(0i64, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000 + number(20..23)?)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01. Years are counted from March, so that the leap day is the
/// last day of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

fn lenient(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    let local = text.parse::<jiff::civil::DateTime>().ok()?;
    let time = jiff::tz::TimeZone::UTC.to_timestamp(local).ok()?;
    Some(time.as_millisecond())
}
