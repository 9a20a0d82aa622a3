//! Framing: both framers against a naive split, and each kind of damage to lines.

mod naive;

use proptest::prelude::*;
use transcript_format::lines::{BackwardFramer, DEFAULT_LINE_CAP, Framed, Framer, Line};

use naive::{backward, check, forward};

/// Runs `check` on `data`, split into chunks of `size` bytes.
fn check_sized(data: &[u8], size: usize, cap: usize) {
    let chunks: Vec<&[u8]> = data.chunks(size).collect();
    check(data, &chunks, cap);
}

/// Returns the lines of `data`; both framers must agree.
fn lines_of(data: &[u8]) -> Vec<Vec<u8>> {
    check_sized(data, 3, DEFAULT_LINE_CAP);
    let lines = forward(&[data], 0, DEFAULT_LINE_CAP);
    lines.into_iter().filter_map(|line| line.bytes).collect()
}

#[test]
fn every_short_input_is_framed_as_a_naive_split_does_in_every_chunking_and_cap() {
    for len in 0..=8 {
        for pattern in 0..1u32 << len {
            let byte = |i| {
                if pattern >> i & 1 == 1 {
                    b'\n'
                } else {
                    b'a' + i as u8
                }
            };
            let data: Vec<u8> = (0..len).map(byte).collect();
            for size in 1..=len + 1 {
                for cap in 0..=len + 1 {
                    check_sized(&data, size, cap);
                }
            }
        }
    }
}

#[test]
fn a_chunk_that_ends_before_at_or_after_the_data_makes_no_difference() {
    for data in [&b"{}\n{\"a\":1}\n"[..], b"{}\n{\"a\":1}", b"\n\n\n", b"x"] {
        for size in [data.len() - 1, data.len(), data.len() + 1] {
            check_sized(data, size.max(1), DEFAULT_LINE_CAP);
        }
    }
}

proptest! {
    #[test]
    fn random_lines_in_random_chunks_are_framed_as_a_naive_split_does(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                &b"\n"[..],
                b"\n",
                b"\n",
                b"{}",
                b"{}",
                b"\r\n",
                b"\r",
                "\u{2028}".as_bytes(),
                "\u{85}\u{2029}\u{c}\u{b}".as_bytes(),
                b"\0\0\0",
                b"\xff\xfe",
                b"{\"key\":\"a longer line than the others\"}",
            ]),
            0..40,
        ),
        cuts in prop::collection::vec(0usize..200, 0..12),
        cap in 0usize..60,
    ) {
        let data = pieces.concat();
        // Some of the chunks are empty.
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(data.len())).collect();
        cuts.extend([0, data.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &data[cut[0]..cut[1]]).collect();
        check(&data, &chunks, cap);
        for size in 1..=data.len() {
            check_sized(&data, size, cap);
        }
    }
}

#[test]
fn a_line_of_exactly_the_cap_is_kept_and_one_byte_more_is_not() {
    for cap in [0usize, 1, 2, 63, 64, 65, 4096] {
        for len in [cap.saturating_sub(1), cap, cap + 1, cap + 2] {
            let line = vec![b'x'; len];
            for end in [&b""[..], b"\n", b"\n{}", b"\nx\n"] {
                let data = [&line, end].concat();
                for size in [1, 7, len.max(1), len + 1, len + 2] {
                    check_sized(&data, size, cap);
                }
            }
            let framed = forward(&[&line, b"\n"], 0, cap).remove(0);
            assert_eq!(framed.bytes.is_some(), len <= cap, "{len} bytes, cap {cap}");
        }
    }
}

#[test]
fn offsets_count_from_where_the_framer_starts() {
    let lines = forward(&[b"a\nbc\n\nd"], 1 << 40, 10);
    let offsets: Vec<u64> = lines.iter().map(|line| line.offset - (1 << 40)).collect();
    assert_eq!(offsets, [0, 2, 5, 6]);
}

#[test]
fn a_partial_tail_is_kept_separate_until_its_newline_arrives() {
    let mut framer = Framer::new();
    let mut input = &b"{}\n{\"a\""[..];
    assert!(matches!(framer.next(&mut input), Some(Framed::Line(line)) if line.bytes == b"{}"));
    assert_eq!(framer.next(&mut input), None);
    assert_eq!((framer.offset(), framer.pending()), (3, 4));
    let mut input = &b":1}"[..];
    assert_eq!(framer.next(&mut input), None);
    assert_eq!((framer.offset(), framer.pending()), (3, 7));
    let mut input = &b"\n"[..];
    let line = Line {
        offset: 3,
        bytes: b"{\"a\":1}",
        terminated: true,
    };
    assert_eq!(framer.next(&mut input), Some(Framed::Line(line)));
    assert_eq!((framer.offset(), framer.pending()), (11, 0));
    assert_eq!(framer.finish(), None);
}

/// A line is never kept beyond the cap. The content of the framer is read from its `Debug` form,
/// which would show every byte.
#[test]
fn an_over_long_line_is_counted_in_constant_memory_and_the_next_line_is_whole() {
    let chunk = vec![b'x'; 64 << 10];
    let mut framer = Framer::starting_at(0, 100_000);
    for count in 1..=1_000u64 {
        let mut input = &chunk[..];
        assert_eq!(framer.next(&mut input), None);
        assert_eq!(framer.pending(), count * (64 << 10));
        assert!(count == 1 || format!("{framer:?}").len() < 500);
    }
    let len = 1_000 * (64 << 10);
    let mut input = &b"x\n{}\n"[..];
    let long = Framed::TooLong {
        offset: 0,
        len: len + 1,
        terminated: true,
    };
    assert_eq!(framer.next(&mut input), Some(long));
    let next = Line {
        offset: len + 2,
        bytes: b"{}",
        terminated: true,
    };
    assert_eq!(framer.next(&mut input), Some(Framed::Line(next)));

    let file_len = 3 + 1_000 * (64 << 10);
    let mut framer = BackwardFramer::new(file_len, 100_000);
    for count in 1..=1_000 {
        let mut input = &chunk[..];
        assert_eq!(framer.next(&mut input), None);
        assert!(count == 1 || format!("{framer:?}").len() < 500);
    }
    let mut input = &b"{}\n"[..];
    let long = Framed::TooLong {
        offset: 3,
        len: 1_000 * (64 << 10),
        terminated: false,
    };
    assert_eq!(framer.next(&mut input), Some(long));
    assert_eq!(framer.next(&mut input), None);
    let first = Line {
        offset: 0,
        bytes: b"{}",
        terminated: true,
    };
    assert_eq!(framer.finish(), Some(Framed::Line(first)));
}

// -------------------------------------------------------------------------------------------------
// Kinds of damage
// -------------------------------------------------------------------------------------------------

#[test]
fn blank_lines_are_lines_and_a_carriage_return_stays_in_its_line() {
    assert_eq!(
        lines_of(b"{}\r\n\r\n \n\n{}\r"),
        [&b"{}\r"[..], b"\r", b" ", b"", b"{}\r"]
    );
}

#[test]
fn a_torn_record_at_the_end_is_distinguished_by_its_missing_newline() {
    let lines = forward(&[b"{\"a\":1}\n{\"b\":"], 0, 100);
    assert!(lines[0].terminated && !lines[1].terminated);
    assert_eq!(
        (lines[1].offset, lines[1].bytes.as_deref()),
        (8, Some(&b"{\"b\":"[..]))
    );
}

#[test]
fn a_string_of_100_mb_is_kept_below_a_larger_cap_and_counted_above_the_default() {
    const MIB: usize = 1 << 20;
    let chunk = vec![b'x'; MIB];
    for (cap, is_kept) in [(128 * MIB, true), (DEFAULT_LINE_CAP, false)] {
        let mut framer = Framer::starting_at(0, cap);
        for _ in 0..100 {
            assert_eq!(framer.next(&mut &chunk[..]), None);
        }
        assert_eq!(framer.pending(), 100 * MIB as u64);
        match framer.next(&mut &b"\n"[..]) {
            Some(Framed::Line(line)) => assert!(is_kept && line.bytes.len() == 100 * MIB),
            Some(Framed::TooLong { len, .. }) => assert!(!is_kept && len == 100 * MIB as u64),
            None => panic!("the line has ended"),
        }
    }
}

#[test]
fn a_million_newlines_are_a_million_empty_lines() {
    let data = vec![b'\n'; 1_000_000];
    for lines in [forward(&[&data], 0, 10), backward(&[&data], 10)] {
        assert_eq!(lines.len(), data.len());
        assert!(
            lines
                .iter()
                .enumerate()
                .all(|(i, line)| line.offset == i as u64 && line.len == 0)
        );
    }
    check_sized(&data[..10_000], 4_096, 10);
}

#[test]
fn an_empty_file_has_no_line_and_a_file_of_one_byte_has_one() {
    assert_eq!(lines_of(b""), Vec::<Vec<u8>>::new());
    assert_eq!(lines_of(b"\n"), [b""]);
    assert_eq!(lines_of(b"x"), [b"x"]);
    assert_eq!(lines_of(b"\n\n"), [b"", b""]);
}

#[test]
fn a_complete_record_without_a_newline_is_returned_as_unterminated() {
    let lines = forward(&[b"{}\n{\"a\":1}"], 0, 100);
    let last = lines.last().expect("there are two lines");
    assert_eq!(
        (last.bytes.as_deref(), last.terminated),
        (Some(&b"{\"a\":1}"[..]), false)
    );
}

#[test]
fn utf_16_and_binary_files_are_framed_like_any_bytes() {
    let utf_16: Vec<u8> = "{}\n{}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(lines_of(&utf_16), [&b"{\0}\0"[..], b"\0{\0}\0", b"\0"]);
    let binary: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    check_sized(&binary, 512, 300);
}

#[test]
fn only_the_line_feed_ends_a_line() {
    let text = "{\"a\":\"\u{2028}\u{2029}\u{85}\u{feff}\u{b}\u{c}\r\"}";
    assert_eq!(
        lines_of(format!("{text}\n{text}\n").as_bytes()),
        [text.as_bytes(); 2]
    );
}
