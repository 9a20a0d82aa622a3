//! Sizes, durations and amounts in the words that people read. Every front end uses these, so that one number reads the
//! same everywhere; each is rounded once, half up, at the last digit that is shown.

/// Words a number of bytes: whole ones below 1000, else units of a power of 1000, with one decimal below ten.
///
/// ```
/// use transcript_format::units::size;
///
/// assert_eq!(size(999), "999 B");
/// assert_eq!(size(1_999_999), "2.0 MB");
/// assert_eq!(size(12_345), "12 KB");
/// ```
#[must_use]
pub fn size(bytes: u64) -> String {
    let rounded = |unit: u128| (u128::from(bytes) + unit / 2) / unit;
    let (mut unit, mut names) = (1, ["B", "KB", "MB", "GB", "TB", "PB"].into_iter());
    let name = loop {
        match names.next() {
            Some(_) if rounded(unit) >= 1000 => unit *= 1000,
            Some(name) => break name,
            None => break "EB",
        }
    };
    match unit {
        1 => format!("{bytes} {name}"),
        _ => match rounded(unit / 10) {
            tenths @ 0..100 => format!("{}.{} {name}", tenths / 10, tenths % 10),
            _ => format!("{} {name}", rounded(unit)),
        },
    }
}

/// Words a duration in at most two units: with tenths of a second below ten seconds, with seconds below an hour, with
/// minutes below a day, else with hours.
///
/// ```
/// use transcript_format::units::duration;
///
/// let shown = [450, 12_000, 192_000, 7_500_000, 273_600_000].map(duration);
/// assert_eq!(shown, ["0.5 s", "12 s", "3 min 12 s", "2 h 5 min", "3 d 4 h"]);
/// ```
#[must_use]
pub fn duration(millis: u64) -> String {
    let rounded = |unit: u64| (u128::from(millis) + u128::from(unit) / 2) / u128::from(unit);
    let (tenths, seconds) = (rounded(100), rounded(1000));
    let (minutes, hours) = (rounded(60_000), rounded(3_600_000));
    match (tenths, seconds, minutes) {
        (0..100, ..) => format!("{}.{} s", tenths / 10, tenths % 10),
        (_, 0..60, _) => format!("{seconds} s"),
        (_, 60..3600, _) => format!("{} min {} s", seconds / 60, seconds % 60),
        (.., 0..1440) => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// Words an amount in billionths of a dollar: in cents, amounts below a cent with four decimals.
///
/// ```
/// use transcript_format::units::dollars;
///
/// assert_eq!(dollars(1_234_567_890_000), "$1,234.57");
/// assert_eq!(dollars(2_500_000), "$0.0025");
/// ```
#[must_use]
pub fn dollars(billionths: u128) -> String {
    const DOLLAR: u128 = 1_000_000_000;
    let rounded =
        |unit: u128| billionths / unit + u128::from(billionths % unit >= unit.div_ceil(2));
    let cents = rounded(DOLLAR / 100);
    if billionths > 0 && cents == 0 {
        return match rounded(DOLLAR / 10_000) {
            0 => "<$0.0001".to_owned(),
            parts => format!("$0.{parts:04}"),
        };
    }
    format!("${}.{:02}", grouped(cents / 100), cents % 100)
}

/// Writes a number with commas between groups of three digits.
#[must_use]
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_half_up_at_the_last_digit() {
        let sizes = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 KB"),
            (1049, "1.0 KB"),
            (1050, "1.1 KB"),
            (9_949, "9.9 KB"),
            (9_950, "10 KB"),
            (12_500, "13 KB"),
            (999_499, "999 KB"),
            (999_500, "1.0 MB"),
            (1_999_999, "2.0 MB"),
            (999_500_000, "1.0 GB"),
            (2_000_000_000, "2.0 GB"),
            (u64::MAX, "18 EB"),
        ];
        for (bytes, shown) in sizes {
            assert_eq!(size(bytes), shown, "{bytes}");
        }
        let durations = [
            (0, "0.0 s"),
            (49, "0.0 s"),
            (50, "0.1 s"),
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (59_499, "59 s"),
            (59_500, "1 min 0 s"),
            (3_599_499, "59 min 59 s"),
            (3_599_500, "1 h 0 min"),
            (86_369_999, "23 h 59 min"),
            (86_370_000, "1 d 0 h"),
            (u64::MAX, "213503982334 d 14 h"),
        ];
        for (millis, shown) in durations {
            assert_eq!(duration(millis), shown, "{millis}");
        }
        let amounts = [
            (0, "$0.00"),
            (1, "<$0.0001"),
            (50_000, "$0.0001"),
            (4_999_999, "$0.0050"),
            (5_000_000, "$0.01"),
            (12_345_678_900, "$12.35"),
            (999_995_000_000, "$1,000.00"),
        ];
        for (billionths, shown) in amounts {
            assert_eq!(dollars(billionths), shown, "{billionths}");
        }
    }

    /// Larger numbers never read as smaller ones.
    #[test]
    fn numbers_grow_with_their_words() {
        let value = |text: &str, units: &[(&str, f64)]| {
            let words: Vec<&str> = text.split(' ').collect();
            let parts = words.chunks(2).map(|part| {
                let unit = units.iter().find(|unit| unit.0 == part[1]).unwrap().1;
                part[0].parse::<f64>().unwrap() * unit
            });
            parts.sum::<f64>()
        };
        let sizes = [
            ("B", 1.0),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("PB", 1e15),
            ("EB", 1e18),
        ];
        let times = [("s", 1e3), ("min", 6e4), ("h", 3.6e6), ("d", 8.64e7)];
        let (mut number, mut last) = (0_u64, [0.0; 2]);
        while let Some(next) = number.checked_add(number / 997 + 1) {
            let shown = [
                value(&size(number), &sizes),
                value(&duration(number), &times),
            ];
            for (shown, last) in shown.iter().zip(last) {
                assert!(*shown >= last, "{number}");
                let error = (shown - number as f64).abs();
                assert!(error <= (number as f64 * 0.05).max(50.0), "{number}");
            }
            (number, last) = (next, shown);
        }
    }
}
