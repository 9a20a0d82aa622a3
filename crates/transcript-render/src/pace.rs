//! Replays with the recorded pauses.

use std::time::Duration;

/// The maximum pause, whatever was recorded.
const MAX_PAUSE: Duration = Duration::from_secs(3);

/// Decides how long to pause before an entry.
pub struct Pace<'o> {
    /// The speed as a multiple of the recorded one; `None` without pauses.
    speed: Option<f64>,
    sleep: &'o mut dyn FnMut(Duration),
    /// The time of the last printed entry.
    last: Option<i64>,
}

impl<'o> Pace<'o> {
    /// Calls `sleep` between entries, for the time between them divided by `speed`.
    pub fn new(speed: Option<f64>, sleep: &'o mut dyn FnMut(Duration)) -> Self {
        Self {
            speed,
            sleep,
            last: None,
        }
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.speed.is_some()
    }

    /// Pauses until the time of an entry, in milliseconds since 1970. Entries that are out of order are
    /// printed immediately.
    pub(crate) fn wait_until(&mut self, millis: i64) {
        let Some(speed) = self.speed else { return };
        let last = *self.last.get_or_insert(millis);
        self.last = Some(last.max(millis));
        let Ok(pause) = u64::try_from(millis.saturating_sub(last)) else {
            return;
        };
        let pause = Duration::from_millis(pause).as_secs_f64() / speed;
        let pause = Duration::try_from_secs_f64(pause).unwrap_or(MAX_PAUSE);
        if !pause.is_zero() {
            (self.sleep)(pause.min(MAX_PAUSE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_divided_and_capped() {
        let mut slept = Vec::new();
        let mut sleep = |pause: Duration| slept.push(pause.as_millis());
        let mut pace = Pace::new(Some(10.0), &mut sleep);
        for millis in [1_000, 6_000, 4_000, 6_100, 900_000_000, i64::MAX] {
            pace.wait_until(millis);
        }
        assert_eq!(slept, [500, 10, 3_000, 3_000]);
    }

    #[test]
    fn there_are_no_pauses_without_a_speed() {
        let mut sleep = |_| panic!("slept");
        let mut pace = Pace::new(None, &mut sleep);
        pace.wait_until(0);
        pace.wait_until(10_000);
    }
}
