//! Finds the quotes of a line, 64 bytes at a time, and checks the content of strings. Also counts the
//! escapes of a string.
//!
//! This is the only module of the crate with `unsafe`: two loads, and the call of code compiled for
//! AVX2 after a check that the machine supports it. Everything else works on bit masks.

use super::error::{ScanError, ScanErrorKind};

/// The number of bytes that are indexed at once; bounds the memory that a long line takes.
pub(super) const WINDOW: usize = 16 << 10;

/// The positions of the quotes that open or close a string, within one window of a line.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    /// The positions, as offsets in the line; only the first `len` are valid. As long as the
    /// longest window so far that consists only of quotes, plus the entries that `push` writes
    /// ahead: a scanner of one short line costs little.
    places: Vec<u32>,
    pub(super) len: usize,
}

const AHEAD: usize = 4;

impl Quotes {
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> u32 {
        self.places[i]
    }
}

/// Writes the positions that `mask` marks in the block at `base` to `places[len..]`; returns the
/// new length. The first few are written unconditionally, because a branch on their number would be
/// mispredicted often.
#[inline(always)]
fn push(places: &mut [u32], len: usize, base: u32, mut mask: u64) -> usize {
    let count = mask.count_ones() as usize;
    let slots = &mut places[len..len + 64];
    for slot in &mut slots[..AHEAD] {
        *slot = base.wrapping_add(mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
    }
    if count > AHEAD {
        for slot in &mut slots[AHEAD..count] {
            *slot = base + mask.trailing_zeros();
            mask &= mask - 1;
        }
    }
    len + count
}

/// State passed from one block to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockCarry {
    /// Bit 0: the first byte is escaped.
    escaped: u64,
    /// All ones if the block starts inside of a string.
    inside: u64,
    pub(super) odd: OddEscapes,
}

/// The first escapes of a line that are valid JSON but that other parsers reject.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OddEscapes {
    /// The offset of a surrogate without its partner.
    pub(super) lone_surrogate: Option<u32>,
    /// The offset of `\u0000`.
    pub(super) nul: Option<u32>,
}

/// One bit per byte, the lowest for the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masks {
    quote: u64,
    backslash: u64,
    /// Bytes that may follow a backslash, except `u` and the rare `b`.
    escape: u64,
    /// Whether a byte is below 0x20.
    has_control: bool,
}

/// Fills `quotes` with the quotes of one window: the part of `line` that starts at `start`, a
/// multiple of [`WINDOW`].
///
/// Windows must be indexed in order. `plain` forbids vector instructions. Returns an error for the
/// first byte of the window that is in a string and not allowed there.
pub(super) fn index(
    line: &[u8],
    start: usize,
    carry: &mut BlockCarry,
    quotes: &mut Quotes,
    plain: bool,
) -> Option<ScanError> {
    #[cfg(target_arch = "x86_64")]
    if !plain && has_avx2() {
        #[expect(unsafe_code, reason = "the features were just checked")]
        // SAFETY: the machine supports the features that the callee was compiled for.
        return unsafe { avx2::index(line, start, carry, quotes) };
    }
    let _ = plain;
    index_with(line, start, carry, quotes, classify)
}

/// See [`super::count_escapes`].
pub(super) fn count_escapes(body: &[u8]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        #[expect(unsafe_code, reason = "the features were just checked")]
        // SAFETY: the machine supports the features that the callee was compiled for.
        return unsafe { avx2::count_escapes(body) };
    }
    count_escapes_with(body, classify)
}

#[inline(always)]
fn count_escapes_with(body: &[u8], classify: impl Fn(&[u8; 64]) -> Masks) -> Option<usize> {
    let (blocks, rest) = body.as_chunks();
    let mut last = [b' '; 64];
    last[..rest.len()].copy_from_slice(rest);
    let (mut count, mut others, mut next_escaped) = (0, 0, 0);
    blocks.iter().chain([&last]).for_each(|block| {
        let masks = classify(block);
        let escaped = escaped(masks.backslash, &mut next_escaped);
        others |= escaped & !masks.escape;
        count += escaped.count_ones() as usize;
    });
    (others == 0).then_some(count)
}

/// Returns whether the machine has AVX2 and the bit counting that always comes with it.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt")
}

#[inline(always)]
fn index_with(
    line: &[u8],
    start: usize,
    carry: &mut BlockCarry,
    quotes: &mut Quotes,
    classify: impl Fn(&[u8; 64]) -> Masks,
) -> Option<ScanError> {
    let end = line.len().min(start + WINDOW);
    if quotes.places.len() < end - start + 64 {
        quotes.places.resize(end - start + 64, 0);
    }
    let mut fault = None;
    let mut len = 0;
    let BlockCarry {
        escaped: mut next_escaped,
        mut inside,
        mut odd,
    } = *carry;
    let mut base = start;
    while base < end {
        let masks = match line[base..end].first_chunk() {
            Some(block) => classify(block),
            None => classify_last(&line[..end], end - base, &classify),
        };
        let escaped = escaped(masks.backslash, &mut next_escaped);
        let marks = masks.quote & !escaped;
        // Most blocks are text within one string.
        if marks != 0 {
            len = push(&mut quotes.places, len, base as u32, marks);
        }
        // Control bytes and unknown escapes are rare, and outside of strings they do not count. So the
        // fast path only detects them, and a cold function decides.
        let suspects = escaped & !masks.escape;
        if suspects != 0 || masks.has_control {
            fault = fault.or_else(|| first_fault(line, base, suspects, marks, inside, &mut odd));
        }
        // An odd number of quotes flips between inside and outside for the next block.
        inside ^= (u64::from(marks.count_ones()) & 1).wrapping_neg();
        base += 64;
    }
    *carry = BlockCarry {
        escaped: next_escaped,
        inside,
        odd,
    };
    quotes.len = len;
    fault
}

/// Classifies the last `count` bytes of a line, fewer than 64.
#[inline(always)]
fn classify_last(line: &[u8], count: usize, classify: impl Fn(&[u8; 64]) -> Masks) -> Masks {
    if let Some(block) = line.last_chunk() {
        // Reads a full block that overlaps earlier bytes, and shifts their bits out.
        let masks = classify(block);
        let shift = 64 - count;
        return Masks {
            quote: masks.quote >> shift,
            backslash: masks.backslash >> shift,
            escape: masks.escape >> shift,
            has_control: masks.has_control,
        };
    }
    let mut padded = [b' '; 64];
    padded[..count].copy_from_slice(line);
    classify(&padded)
}

/// Returns the escaped bytes: those after an odd number of backslashes.
#[inline(always)]
fn escaped(backslash: u64, carry: &mut u64) -> u64 {
    // Adding the start of a run makes it carry to one past its end; only runs that start on an odd
    // bit need it, because there the parity of the positions is reversed.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let backslash = backslash & !*carry;
    let follows = backslash << 1 | *carry;
    let odd_starts = backslash & !EVEN & !follows;
    let (carried, overflow) = odd_starts.overflowing_add(backslash);
    *carry = u64::from(overflow);
    (EVEN ^ carried << 1) & follows
}

/// Returns a mask in which each bit is the parity of the bits up to and including it.
fn running_parity(mut mask: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        mask ^= mask << shift;
    }
    mask
}

/// Returns the first byte of the block at `base` that is not allowed in a string: an invalid escape
/// or a control byte. `escaped` marks the escaped bytes to check, `inside` is all ones if the block
/// starts in a string. Valid but odd escapes before that byte are recorded in `odd`.
#[cold]
#[inline(never)]
fn first_fault(
    line: &[u8],
    base: usize,
    escaped: u64,
    quotes: u64,
    inside: u64,
    odd: &mut OddEscapes,
) -> Option<ScanError> {
    let in_strings = running_parity(quotes) ^ inside;
    let block = line[base..].iter().take(64).enumerate();
    let mut faults = block.filter_map(|(i, byte)| {
        let at = base + i;
        if in_strings >> i & 1 == 0 {
            None
        } else if *byte < 0x20 {
            Some(ScanError {
                kind: ScanErrorKind::Control,
                at,
            })
        } else if escaped >> i & 1 == 0 || *byte == b'b' {
            None
        } else if *byte == b'u' && has_four_digits(line, at + 1) {
            odd.look_at(line, at - 1);
            None
        } else {
            Some(ScanError {
                kind: ScanErrorKind::Syntax,
                at,
            })
        }
    });
    faults.next()
}

impl OddEscapes {
    /// Checks the `\u` escape at `at`.
    fn look_at(&mut self, line: &[u8], at: usize) {
        let is_odd = match unit(line, at) {
            Some(0) => &mut self.nul,
            Some(0xD800..=0xDBFF) if !matches!(unit(line, at + 6), Some(0xDC00..=0xDFFF)) => {
                &mut self.lone_surrogate
            }
            Some(0xDC00..=0xDFFF) if !follows_a_high_surrogate(line, at) => {
                &mut self.lone_surrogate
            }
            _ => return,
        };
        is_odd.get_or_insert(at as u32);
    }
}

/// Returns the UTF-16 unit of the escape at `at`, if there is one.
fn unit(line: &[u8], at: usize) -> Option<u32> {
    let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let value = |unit, digit: &u8| Some(unit << 4 | char::from(*digit).to_digit(16)?);
    digits.iter().try_fold(0, value)
}

fn follows_a_high_surrogate(line: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(6) else {
        return false;
    };
    // That backslash may itself be escaped.
    let backslashes = line[..=before]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\');
    matches!(unit(line, before), Some(0xD800..=0xDBFF)) && backslashes.count() % 2 == 1
}

/// Returns whether four digits follow. When the line ends among them the answer is yes: the string
/// then has no end, and the line must be reported as torn, not as invalid.
fn has_four_digits(line: &[u8], at: usize) -> bool {
    line[at..].iter().take(4).all(u8::is_ascii_hexdigit)
}

/// Classifies a block without SIMD, eight bytes at a time.
fn classify(block: &[u8; 64]) -> Masks {
    let mut masks = Masks {
        quote: 0,
        backslash: 0,
        escape: 0,
        has_control: false,
    };
    for (i, word) in block.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let equal = |byte: u8| gather(zero_bytes(word ^ splat(byte))) << (8 * i);
        masks.quote |= equal(b'"');
        masks.backslash |= equal(b'\\');
        masks.escape |= b"\"\\/fnrt"
            .iter()
            .fold(0, |mask, byte| mask | equal(*byte));
        masks.has_control |= zero_bytes(word & splat(0xE0)) != 0;
    }
    masks
}

const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// Returns the top bit of every byte that is zero. Exact: no carry runs into the next byte.
const fn zero_bytes(word: u64) -> u64 {
    let low = splat(0x7F);
    !(((word & low) + low) | word | low)
}

/// Gathers the top bits of the eight bytes in the lowest eight bits, in the same order.
const fn gather(tops: u64) -> u64 {
    (tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The AVX2 implementation.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_max_epu8, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_set1_epi8, _mm256_shuffle_epi8,
    };

    use super::{BlockCarry, Masks, Quotes, ScanError, count_escapes_with, index_with};

    /// Compiled as a whole for AVX2, so that the masks are inlined into the loop.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn index(
        line: &[u8],
        start: usize,
        carry: &mut BlockCarry,
        quotes: &mut Quotes,
    ) -> Option<ScanError> {
        index_with(line, start, carry, quotes, |block| classify(block))
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn count_escapes(body: &[u8]) -> Option<usize> {
        count_escapes_with(body, |block| classify(block))
    }

    /// Classifies a block.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn classify(block: &[u8; 64]) -> Masks {
        let halves: *const __m256i = block.as_ptr().cast();
        #[expect(unsafe_code, reason = "loads from a reference")]
        // SAFETY: `block` is 64 readable bytes, which is two unaligned loads of 32.
        let (low, high) = unsafe {
            (
                _mm256_loadu_si256(halves),
                _mm256_loadu_si256(halves.add(1)),
            )
        };
        let equal = |byte: u8| {
            let byte = _mm256_set1_epi8(byte.cast_signed());
            bits(_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte))
        };
        // The byte-wise minimum of both halves is at most 0x1F if either byte is.
        let last = _mm256_set1_epi8(0x1F);
        let lowest = _mm256_min_epu8(low, high);
        let controls = _mm256_cmpeq_epi8(_mm256_max_epu8(lowest, last), last);
        let quote = equal(b'"');
        Masks {
            quote,
            backslash: equal(b'\\'),
            escape: quote | bits(escape(low), escape(high)),
            has_control: _mm256_movemask_epi8(controls) != 0,
        }
    }

    /// Returns all ones in every byte that is one of `\/fnrt`: those that are equal to the byte in
    /// the table at their lower nibble.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn escape(bytes: __m256i) -> __m256i {
        // Bytes from 0x80 on look up 0, and the first entry must not equal the byte 0.
        const BY_LOW: [u8; 16] = *b"\x01\0r\0t\0f\0\0\0\0\0\\\0n/";
        _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table(&BY_LOW), bytes), bytes)
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn table(entries: &[u8; 16]) -> __m256i {
        #[expect(unsafe_code, reason = "loads from a reference")]
        // SAFETY: `entries` is 16 readable bytes.
        let entries = unsafe { _mm_loadu_si128(entries.as_ptr().cast()) };
        _mm256_broadcastsi128_si256(entries)
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn bits(low: __m256i, high: __m256i) -> u64 {
        let low = _mm256_movemask_epi8(low).cast_unsigned();
        let high = _mm256_movemask_epi8(high).cast_unsigned();
        u64::from(low) | u64::from(high) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_avx2_masks_are_the_same_for_every_byte_in_every_place() {
        for byte in 0..=255u8 {
            for at in 0..64 {
                let other = (at + 31) % 64;
                let mut block = [b'x'; 64];
                (block[at], block[other]) = (byte, byte.wrapping_add(1));
                let expect = |wanted: &dyn Fn(u8) -> bool| {
                    block
                        .iter()
                        .enumerate()
                        .fold(0, |mask, (i, b)| mask | u64::from(wanted(*b)) << i)
                };
                let expected = Masks {
                    quote: expect(&|b| b == b'"'),
                    backslash: expect(&|b| b == b'\\'),
                    escape: expect(&|b| b"\"\\/fnrt".contains(&b)),
                    has_control: expect(&|b| b < 0x20) != 0,
                };
                assert_eq!(classify(&block), expected, "byte {byte} at {at}");
                #[cfg(target_arch = "x86_64")]
                if has_avx2() {
                    #[expect(unsafe_code, reason = "the features were just checked")]
                    // SAFETY: the machine supports the features that the callee was compiled for.
                    let fast = unsafe { avx2::classify(&block) };
                    assert_eq!(fast, expected, "byte {byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn escapes_are_counted_wherever_they_are() {
        let count = |body: &str| {
            let plain = count_escapes_with(body.as_bytes(), classify);
            assert_eq!(count_escapes(body.as_bytes()), plain, "{body}");
            plain
        };
        for before in (0..130).map(|len| "é".repeat(len / 2) + &"x".repeat(len % 2)) {
            for (escapes, number) in [
                ("", 0),
                (r"\n", 1),
                (r"\\", 1),
                (r"\\n", 1),
                (r#"\\\n\"\/"#, 4),
                (r"\\\\", 2),
            ] {
                let body = format!("{before}{escapes}");
                assert_eq!(count(&body), Some(number), "{body}");
                assert_eq!(count(&format!("{body}{body}")), Some(2 * number), "{body}");
            }
            assert_eq!(count(&format!(r"{before}\u0041 ")), None, "{before}");
            assert_eq!(count(&format!(r"{before}\\u0041")), Some(1), "{before}");
        }
    }
}
