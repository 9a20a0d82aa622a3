//! Naive framing, and the results of both framers in the same form. Also used by the fuzz target.

use transcript_format::lines::{BackwardFramer, Framed, Framer, Line};

/// A line as returned by any of the three; without bytes when it is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) terminated: bool,
}

impl From<Framed<'_>> for Owned {
    fn from(framed: Framed<'_>) -> Self {
        match framed {
            Framed::Line(Line {
                offset,
                bytes,
                terminated,
            }) => Self {
                offset,
                len: bytes.len() as u64,
                bytes: Some(bytes.to_vec()),
                terminated,
            },
            Framed::TooLong {
                offset,
                len,
                terminated,
            } => Self {
                offset,
                len,
                bytes: None,
                terminated,
            },
        }
    }
}

/// Returns the lines of `data`, which starts at `start` in its file.
pub(crate) fn naive(data: &[u8], start: u64, cap: usize) -> Vec<Owned> {
    let mut lines = Vec::new();
    let mut offset = start;
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        lines.push(Owned {
            offset,
            len: bytes.len() as u64,
            bytes: (bytes.len() <= cap).then(|| bytes.to_vec()),
            terminated: bytes.len() < line.len(),
        });
        offset += line.len() as u64;
    }
    lines
}

/// Frames consecutive `chunks` forward.
pub(crate) fn forward(chunks: &[&[u8]], start: u64, cap: usize) -> Vec<Owned> {
    let mut framer = Framer::starting_at(start, cap);
    let mut lines = Vec::new();
    for chunk in chunks {
        let mut rest = *chunk;
        while let Some(framed) = framer.next(&mut rest) {
            lines.push(framed.into());
        }
        assert!(rest.is_empty(), "a chunk is taken in whole");
    }
    let (offset, pending) = (framer.offset(), framer.pending());
    let last: Option<Owned> = framer.finish().map(Owned::from);
    assert_eq!(
        pending,
        last.as_ref().map_or(0, |line| line.len),
        "pending is the last line"
    );
    assert_eq!(
        offset,
        last.as_ref().map_or(framer.offset(), |line| line.offset)
    );
    assert!(last.as_ref().is_none_or(|line| !line.terminated));
    lines.extend(last);
    assert_eq!(framer.pending(), 0);
    assert!(framer.finish().is_none(), "a second finish gives nothing");
    lines
}

/// Frames `chunks` from the last to the first, and returns the lines in file order.
pub(crate) fn backward(chunks: &[&[u8]], cap: usize) -> Vec<Owned> {
    let len = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let mut framer = BackwardFramer::new(len, cap);
    let mut lines: Vec<Owned> = Vec::new();
    for chunk in chunks.iter().rev() {
        let mut rest = *chunk;
        while let Some(framed) = framer.next(&mut rest) {
            lines.push(framed.into());
        }
        assert!(rest.is_empty(), "a chunk is taken in whole");
    }
    lines.extend(framer.finish().map(Owned::from));
    lines.reverse();
    lines
}

/// Compares both framers with the naive split; panics where they differ.
pub(crate) fn check(data: &[u8], chunks: &[&[u8]], cap: usize) {
    let expected = naive(data, 0, cap);
    assert_eq!(
        forward(chunks, 0, cap),
        expected,
        "forward, cap {cap}, {chunks:?}"
    );
    assert_eq!(
        backward(chunks, cap),
        expected,
        "backward, cap {cap}, {chunks:?}"
    );
}
