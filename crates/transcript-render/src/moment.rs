//! Times of a place.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Converts a timestamp to a local time.
pub fn clock(millis: i64, zone: &TimeZone) -> Option<Zoned> {
    Timestamp::from_millisecond(millis)
        .ok()
        .map(|time| time.to_zoned(zone.clone()))
}
