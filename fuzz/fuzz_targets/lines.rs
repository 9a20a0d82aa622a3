//! Both framers give the lines of a naive split, however the bytes are cut into chunks.
//!
//! The first byte is the cap, the second says how many of the next bytes are places of cuts; the
//! rest is the file.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/transcript-format/tests/it/lines/naive.rs"]
mod naive;

fuzz_target!(|input: &[u8]| {
    let [cap, cut_count, rest @ ..] = input else {
        return;
    };
    let (cuts, data) = rest.split_at(rest.len().min(usize::from(*cut_count % 16)));
    // A cut is a share of the length, so that files of any length are cut everywhere.
    let mut cuts: Vec<usize> = cuts
        .iter()
        .map(|share| data.len() * usize::from(*share) / 255)
        .chain([0, data.len()])
        .collect();
    cuts.sort_unstable();
    let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &data[cut[0]..cut[1]]).collect();
    naive::check(data, &chunks, usize::from(*cap));

    let size = usize::from(*cut_count).max(1);
    let chunks: Vec<&[u8]> = data.chunks(size).collect();
    naive::check(data, &chunks, usize::from(*cap) * 64);
});
