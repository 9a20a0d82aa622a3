//! Binary fuse filters: sets of numbers that answer "surely not" or "perhaps".
//!
//! They take about 10 bits for each number; of 256 numbers that are not in the set, one is "perhaps". See Graf and Lemire,
//! "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022.

/// The bytes before the fingerprints: the seed, the length of a segment as a power of two, and the
/// number of segments.
const HEADER_LEN: usize = 8;
/// The maximum number of seeds and sizes that are tried for the filter of a set; if none works, it has none.
const MAX_ATTEMPTS: u32 = 64;
/// Three segments that follow each other have the three places of a number.
const POSITIONS_PER_NUMBER: usize = 3;

/// A filter as it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter<'a> {
    shape: Shape,
    fingerprints: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    seed: u32,
    segment_bits: u8,
    segments: u16,
}

/// The place of a number in each of three segments, and its fingerprint.
struct Places([usize; POSITIONS_PER_NUMBER], u8);

impl Shape {
    fn places(self, number: u32) -> Places {
        self.places_of(self.hash(number))
    }

    fn hash(self, number: u32) -> u64 {
        let both = u64::from(number) << 32 | u64::from(self.seed);
        mix(both ^ 0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB)
    }

    fn places_of(self, hash: u64) -> Places {
        let starts = u64::from(self.segments) << self.segment_bits;
        let first = ((u128::from(hash) * u128::from(starts)) >> 64) as usize;
        let segment = 1 << self.segment_bits;
        let within = segment - 1;
        let second = (first + segment) ^ (hash as usize >> 18 & within);
        let third = (first + 2 * segment) ^ (hash as usize & within);
        Places([first, second, third], (hash ^ hash >> 32) as u8)
    }

    fn len(self) -> usize {
        (usize::from(self.segments) + POSITIONS_PER_NUMBER - 1) << self.segment_bits
    }
}

impl<'a> Filter<'a> {
    /// Takes the bytes that [`Builder::build`] made; `None` if they are others.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (head, fingerprints) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let [a, b, c, d, segment_bits, 0, e, f] = *head else {
            return None;
        };
        let shape = Shape {
            seed: u32::from_le_bytes([a, b, c, d]),
            segment_bits,
            segments: u16::from_le_bytes([e, f]),
        };
        let is_whole =
            segment_bits <= 18 && shape.segments > 0 && shape.len() == fingerprints.len();
        is_whole.then_some(Self {
            shape,
            fingerprints,
        })
    }

    /// Returns whether the number may be in the set.
    pub(crate) fn may_have(&self, number: u32) -> bool {
        let Places([a, b, c], fingerprint) = self.shape.places(number);
        let at = |place: usize| self.fingerprints[place];
        fingerprint == at(a) ^ at(b) ^ at(c)
    }
}

/// Makes filters; keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    slots: Vec<Slot>,
    /// The numbers in the order in which they can be placed, with the place that is left for each.
    order: Vec<(u64, u8)>,
    single: Vec<u32>,
}

/// The numbers that have a place here.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hashes: u64,
    count: u32,
    /// The XOR of the position numbers (0 to 2) with which all numbers are here; of a single number its own.
    which: u32,
}

impl Builder {
    /// Appends the filter of these numbers, which are different. Returns false, and appends nothing,
    /// if there is none.
    pub(crate) fn build(&mut self, numbers: &[u32], out: &mut Vec<u8>) -> bool {
        // Less room makes it smaller, but fails more often, so there is more with each try.
        for attempt in 0..MAX_ATTEMPTS {
            let Some(shape) = shape(numbers.len(), attempt) else {
                return false;
            };
            if self.peel(numbers, shape) {
                self.write(shape, out);
                return true;
            }
        }
        false
    }

    /// Finds an order in which each number has a place that no later number has.
    fn peel(&mut self, numbers: &[u32], shape: Shape) -> bool {
        self.slots.clear();
        self.slots.resize(shape.len(), Slot::default());
        self.order.clear();
        for number in numbers {
            let hash = shape.hash(*number);
            for (which, place) in (0..).zip(shape.places_of(hash).0) {
                let slot = &mut self.slots[place];
                slot.hashes ^= hash;
                slot.count += 1;
                slot.which ^= which;
            }
        }
        self.single.clear();
        let is_single = |place: &u32| self.slots[*place as usize].count == 1;
        let all = 0..shape.len() as u32;
        self.single.extend(all.filter(is_single));
        while let Some(place) = self.single.pop() {
            let slot = self.slots[place as usize];
            if slot.count != 1 {
                continue;
            }
            self.order.push((slot.hashes, slot.which as u8));
            for (which, place) in (0..).zip(shape.places_of(slot.hashes).0) {
                let other = &mut self.slots[place];
                other.hashes ^= slot.hashes;
                other.count -= 1;
                other.which ^= which;
                if other.count == 1 {
                    self.single.push(place as u32);
                }
            }
        }
        self.order.len() == numbers.len()
    }

    fn write(&self, shape: Shape, out: &mut Vec<u8>) {
        out.extend(shape.seed.to_le_bytes());
        out.extend([shape.segment_bits, 0]);
        out.extend(shape.segments.to_le_bytes());
        let start = out.len();
        out.resize(start + shape.len(), 0);
        let fingerprints = &mut out[start..];
        for (hash, which) in self.order.iter().rev() {
            let Places(places, mut fingerprint) = shape.places_of(*hash);
            let own = places[usize::from(*which)];
            for place in places {
                // Its own place is still zero.
                fingerprint ^= fingerprints[place];
            }
            fingerprints[own] = fingerprint;
        }
    }
}

/// Returns the shape to try; `None` if the set is too large.
fn shape(len: usize, attempt: u32) -> Option<Shape> {
    let n = len.max(2) as f64;
    // Found by trying: shorter segments round up less, but leave more numbers without a place.
    let bits = (n.ln() / 3.33_f64.ln() + 1.25).floor().clamp(2.0, 18.0);
    let room = 1.12 + 0.85 / n.ln() + f64::from(attempt) * (0.02 + 2.0 / n);
    let segment = bits.exp2();
    let all = (n * room / segment).ceil() as u64;
    Some(Shape {
        seed: attempt,
        segment_bits: bits as u8,
        segments: u16::try_from(all.saturating_sub(POSITIONS_PER_NUMBER as u64 - 1).max(1)).ok()?,
    })
}

/// Multiplies two numbers so that each bit of the result depends on all bits of both.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_of_a_set_are_found_and_few_others() {
        let mut builder = Builder::default();
        for len in [0, 1, 2, 3, 7, 10, 33, 100, 1_000, 4_400, 70_000] {
            let numbers: Vec<u32> = (0..len).map(|n| (n * 0x9E37) & 0xFF_FFFF).collect();
            let mut bytes = Vec::new();
            assert!(builder.build(&numbers, &mut bytes), "{len}");
            let filter = Filter::of(&bytes).unwrap();
            assert!(numbers.iter().all(|number| filter.may_have(*number)));
            let others = (0..100_000).map(|n| 0x0100_0000 | n);
            let wrong = others.filter(|number| filter.may_have(*number)).count();
            assert!(wrong < 800, "{len}: {wrong}");
            if len > 1_000 {
                assert!(
                    bytes.len() * 8 < len as usize * 11,
                    "{len}: {}",
                    bytes.len()
                );
            }
        }
    }

    #[test]
    fn other_bytes_are_not_a_filter_and_never_panic() {
        let mut bytes = Vec::new();
        assert!(Builder::default().build(&[1, 2, 3], &mut bytes));
        for len in 0..bytes.len() {
            assert!(Filter::of(&bytes[..len]).is_none(), "{len}");
        }
        for at in 0..HEADER_LEN {
            for value in 0..=255 {
                let mut other = bytes.clone();
                other[at] = value;
                if let Some(filter) = Filter::of(&other) {
                    filter.may_have(7);
                }
            }
        }
    }
}
