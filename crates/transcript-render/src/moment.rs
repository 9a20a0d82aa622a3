//! Formats times and durations.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Formats a duration in at most two units: `0.4 s`, `12 s`, `3 min`, `2 h 5 m`, `3 d 4 h`.
pub(crate) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days > 0 {
        format!("{days} d {} h", hours % 24)
    } else if hours > 0 {
        format!("{hours} h {} m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes} min")
    } else {
        format!("{seconds} s")
    }
}

/// Like [`duration`], but with tenths of a second below ten seconds, and with seconds below an hour.
pub(crate) fn precise(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
        _ => duration(millis),
    }
}

/// Converts a timestamp to a local time.
pub fn clock(millis: i64, zone: &TimeZone) -> Option<Zoned> {
    Timestamp::from_millisecond(millis)
        .ok()
        .map(|time| time.to_zoned(zone.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let shown = [450, 12_000, 192_000, 7_500_000, 273_600_000].map(precise);
        assert_eq!(shown, ["0.4 s", "12 s", "3 min 12 s", "2 h 5 m", "3 d 4 h"]);
        assert_eq!(duration(192_000), "3 min");
    }
}
