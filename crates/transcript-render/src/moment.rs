//! Times of a place.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Converts a timestamp to a local time.
pub fn clock(millis: i64, zone: &TimeZone) -> Option<Zoned> {
    Timestamp::from_millisecond(millis)
        .ok()
        .map(|time| time.to_zoned(zone.clone()))
}

/// Returns the local time of a timestamp to the minute: `2026-01-31 14:05`.
#[must_use]
pub fn minute(millis: Option<i64>, zone: &TimeZone) -> Option<String> {
    let time = clock(millis?, zone)?;
    Some(time.strftime("%Y-%m-%d %H:%M").to_string())
}
