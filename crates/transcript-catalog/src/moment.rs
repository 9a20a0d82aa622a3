//! Reads times as people write them.

use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp, Zoned};

/// Parses a time, in milliseconds since 1970: RFC 3339 with or without an offset, a date, a duration before
/// `now` such as `2h`, `today` or `yesterday`. Times without an offset are in the zone of `now`.
///
/// # Errors
/// Names the accepted forms if the text has none of them.
pub fn parse(text: &str, now: &Zoned) -> Result<i64, String> {
    let text = text.trim();
    let midnight = |day: &Zoned| day.with().time(Time::midnight()).build();
    let time = match text {
        "now" => Ok(now.clone()),
        "today" => midnight(now),
        "yesterday" => now.yesterday().and_then(|day| midnight(&day)),
        _ => {
            if let Ok(time) = text.parse::<Timestamp>() {
                return Ok(time.as_millisecond());
            }
            if let Ok(time) = text.parse::<jiff::civil::DateTime>() {
                time.to_zoned(now.time_zone().clone())
            } else if let Some(ago) = ago(text) {
                now.checked_sub(ago)
            } else {
                return Err(
                    "expected a time such as 2026-01-31T12:00:00Z, 2026-01-31, 2h, 3d or yesterday"
                        .to_owned(),
                );
            }
        }
    };
    let time = time.map_err(|error| error.to_string())?;
    Ok(time.timestamp().as_millisecond())
}

/// Parses a duration before now: `90s`, `15m`, `2h`, `3 days`, `1h30m`. Days have 24 hours, because an
/// elapsed time is meant and not a calendar date.
fn ago(text: &str) -> Option<SignedDuration> {
    let text = text.strip_suffix("ago").unwrap_or(text).trim();
    if let Some((count, seconds)) = days(text) {
        return SignedDuration::from_secs(seconds).checked_mul(count);
    }
    let duration: SignedDuration = text.parse().ok()?;
    duration.is_positive().then_some(duration)
}

/// Parses days and weeks, which are not units of `SignedDuration`.
fn days(text: &str) -> Option<(i32, i64)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let count = text[..end].parse().ok()?;
    match text[end..].trim() {
        "d" | "day" | "days" => Some((count, 86_400)),
        "w" | "week" | "weeks" => Some((count, 604_800)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-03-10T12:30:00+02:00[+02:00]".parse().unwrap()
    }

    fn read(text: &str) -> String {
        match parse(text, &now()) {
            Ok(millis) => Timestamp::from_millisecond(millis).unwrap().to_string(),
            Err(error) => error,
        }
    }

    #[test]
    fn times_are_exact_or_relative() {
        assert_eq!(read("2026-03-01T00:00:00Z"), "2026-03-01T00:00:00Z");
        assert_eq!(
            read("2026-03-01T00:00:00.250+01:00"),
            "2026-02-28T23:00:00.25Z"
        );
        assert_eq!(read("2026-03-01"), "2026-02-28T22:00:00Z");
        assert_eq!(read("2026-03-01T08:15"), "2026-03-01T06:15:00Z");
        assert_eq!(read("2h"), "2026-03-10T08:30:00Z");
        assert_eq!(read("1h30m"), "2026-03-10T09:00:00Z");
        assert_eq!(read("15 min ago"), "2026-03-10T10:15:00Z");
        assert_eq!(read("3d"), "2026-03-07T10:30:00Z");
        assert_eq!(read("2 weeks"), "2026-02-24T10:30:00Z");
        assert_eq!(read("today"), "2026-03-09T22:00:00Z");
        assert_eq!(read("yesterday"), "2026-03-08T22:00:00Z");
        assert_eq!(read("now"), "2026-03-10T10:30:00Z");
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "soon",
            "-2h",
            "h",
            "99999999999999d",
            "2147483647w",
            "2026-13-01",
        ] {
            assert!(parse(text, &now()).is_err(), "{text}");
        }
    }
}
