//! Makes values on several threads and takes them in order.

use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;

/// More threads only wait for the one that takes the values.
const MAX_THREADS: usize = 8;

/// Calls `take` with each of `numbers` and what was made for it, in order, on this thread. The
/// values are made on others, each with a function that `maker` returns, ahead of `take` by at most
/// two for each thread. Without other threads there are none.
///
/// # Errors
/// The first of `take`, which ends it.
pub fn in_order<T: Send, E, M: FnMut(usize) -> Option<T>>(
    numbers: Range<usize>,
    maker: impl Fn() -> M + Sync,
    mut take: impl FnMut(usize, Option<T>) -> Result<(), E>,
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MAX_THREADS).min(numbers.len());
    if threads < 2 {
        return numbers
            .into_iter()
            .try_for_each(|number| take(number, None));
    }
    let maker = &maker;
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..threads)
            .map(|lane| {
                let (sender, made) = sync_channel(1);
                let mut numbers = numbers.clone().skip(lane).step_by(threads);
                // The receiver is gone after an error.
                let run = move || {
                    let mut make = maker();
                    numbers
                        .try_for_each(|number| sender.send(make(number)))
                        .ok()
                };
                let thread = thread::Builder::new().spawn_scoped(scope, run);
                thread.map(|_| made).ok()
            })
            .collect();
        for (number, lane) in numbers.zip(lanes.iter().cycle()) {
            let made = lane.as_ref().and_then(|lane| lane.recv().ok());
            take(number, made.flatten())?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_order_and_an_error_ends_them() {
        let mut taken = Vec::new();
        let mut take = |number: usize, value: Option<usize>| {
            taken.push(value.unwrap_or(2 * number));
            match number {
                70 => Err("enough"),
                _ => Ok(()),
            }
        };
        assert_eq!(
            in_order(0..1_000, || |number| Some(2 * number), &mut take),
            Err("enough")
        );
        assert_eq!(taken, (0..=70).map(|number| 2 * number).collect::<Vec<_>>());
        let none = |_, _| -> Result<(), ()> { panic!("nothing was made") };
        assert_eq!(in_order(0..0, || |_| Some(()), none), Ok(()));
    }
}
