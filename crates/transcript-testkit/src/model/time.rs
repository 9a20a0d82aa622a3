//! Timestamps of entries.

/// Returns the milliseconds since 1970 of an ISO 8601 text such as `2026-11-20T10:00:08.000Z`; `None`
/// for any other text. The default offset is UTC.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00Z"));
    let (clock, offset_minutes) = split_offset(time)?;

    let mut date = date.splitn(3, '-');
    let (year, month, day) = (
        number(date.next())?,
        number(date.next())?,
        number(date.next())?,
    );
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (number(clock.next())?, number(clock.next())?);
    let (second, fraction) = {
        let text = clock.next().unwrap_or("0");
        text.split_once('.').unwrap_or((text, "0"))
    };
    let second = number(Some(second))?;
    // Digits after the milliseconds are ignored.
    let millis = number(format!("{fraction:0<3}").get(..3))?;

    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let minutes = days(year, month, day) * 1440 + hour * 60 + minute - offset_minutes;
    Some((minutes * 60 + second) * 1000 + millis)
}

/// Splits `10:00:08.000+01:00` into the clock and the minutes east of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let (hours, minutes) = time[at + 1..].split_once(':')?;
    let minutes = number(Some(hours))? * 60 + number(Some(minutes))?;
    Some((
        &time[..at],
        if time[at..].starts_with('-') {
            -minutes
        } else {
            minutes
        },
    ))
}

fn number(digits: Option<&str>) -> Option<i64> {
    let digits = digits?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar (Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn iso_times_become_milliseconds() {
        assert_eq!(parse("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(parse("2026-11-20T10:00:08.250Z"), Some(1_795_168_808_250));
        assert_eq!(
            parse("2026-11-20T11:00:08.25+01:00"),
            Some(1_795_168_808_250)
        );
        assert_eq!(parse("2024-03-01"), Some(1_709_251_200_000));
        assert_eq!(parse("garbage"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("2026-13-20T10:00:08Z"), None);
    }
}
