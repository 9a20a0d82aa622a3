//! Random damage, the same on each run.

/// A generator of numbers that are the same on each run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("it fits") % limit.max(1)
    }
}

/// Damages bytes once: as a power cut, a second writer or a bad disk would, or by values of other types.
pub(crate) fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    let len = numbers.below(80).min(bytes.len() - at);
    match numbers.below(9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + len)),
        2 => bytes[at..at + len].fill(0),
        3 => bytes[at] = 0xff,
        4 => bytes.retain({
            let mut left = numbers.below(4);
            move |byte| {
                *byte != b'\n' || {
                    left = left.wrapping_sub(1);
                    left != 0
                }
            }
        }),
        5 => {
            let copy = bytes[at..at + len].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => bytes.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
        7 => {
            let piece: &[u8] =
                [&b"null"[..], b"[]", b"{}", b"-1", b"\"\\ud800\"", b"1e999"][numbers.below(6)];
            bytes.splice(at..at + len, piece.iter().copied());
        }
        _ => {
            let other = numbers.below(bytes.len());
            bytes.swap(at, other);
        }
    }
}

/// What happened to the lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    BitFlip,
    Cut,
    Glued,
    Nuls,
    Duplicated,
    Removed,
    Reordered,
    Bytes,
}

/// Damages the lines of a file once.
pub(crate) fn damage_lines(bytes: &mut Vec<u8>, numbers: &mut Numbers) -> Fault {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let line = numbers.below(lines.len());
    let other = numbers.below(lines.len());
    let fault = match numbers.below(8) {
        0 => {
            let at = numbers.below(bytes.len());
            bytes[at] ^= 1 << numbers.below(8);
            return Fault::BitFlip;
        }
        1 => {
            bytes.truncate(numbers.below(bytes.len()));
            return Fault::Cut;
        }
        2 => {
            let at = numbers.below(bytes.len());
            let end = bytes.len().min(at + 1 + numbers.below(4096));
            bytes[at..end].fill(0);
            return Fault::Nuls;
        }
        3 => {
            damage(bytes, numbers);
            return Fault::Bytes;
        }
        4 => {
            lines[line].pop_if(|byte| *byte == b'\n');
            Fault::Glued
        }
        5 => {
            lines.insert(other, lines[line].clone());
            Fault::Duplicated
        }
        6 => {
            lines.remove(line);
            Fault::Removed
        }
        _ => {
            lines.swap(line, other);
            Fault::Reordered
        }
    };
    *bytes = lines.concat();
    fault
}
