//! Reads type and size of an image from its first bytes, and whether it has all its parts.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Returns the media type, by its first bytes, of an image of a type that the API accepts.
pub(super) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Returns the shortest bytes with the type and the size of an image that a check of its limits looks at.
pub(super) fn stand_in(media_type: &str, width: u32, height: u32) -> Vec<u8> {
    let short = |number: u32| number.min(u32::from(u16::MAX)) as u16;
    let (wide, high) = (width.to_be_bytes(), height.to_be_bytes());
    let (short_wide, short_high) = (short(width), short(height));
    match media_type {
        "image/png" => {
            let header = [&wide[..], &high, b"\x08\x06\0\0\0"].concat();
            let start = b"\x89PNG\r\n\x1a\n".to_vec();
            [
                start,
                png_chunk(b"IHDR", &header),
                png_chunk(b"IDAT", b""),
                png_chunk(b"IEND", b""),
            ]
            .concat()
        }
        "image/gif" => [
            b"GIF89a".as_slice(),
            &short_wide.to_le_bytes(),
            &short_high.to_le_bytes(),
            b"\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\0;",
        ]
        .concat(),
        "image/webp" => [
            b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".as_slice(),
            &(width - 1).to_le_bytes()[..3],
            &(height - 1).to_le_bytes()[..3],
            b"VP8 \0\0\0\0",
        ]
        .concat(),
        _ => [
            b"\xff\xd8\xff\xc0\0\x0b\x08".as_slice(),
            &short_high.to_be_bytes(),
            &short_wide.to_be_bytes(),
            b"\x01\x01\x11\0\xff\xda\0\x02\xff\xd9",
        ]
        .concat(),
    }
}

fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let chunk = [kind, data].concat();
    let (len, sum) = (data.len() as u32, crc32fast::hash(&chunk));
    [&len.to_be_bytes()[..], &chunk, &sum.to_be_bytes()].concat()
}

/// Returns width and height in pixels; `None` when the header does not contain them.
pub(super) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let (width, height) = match media_type(bytes)? {
        "image/png" => (
            number(bytes, 16, 4)?.swap_bytes(),
            number(bytes, 20, 4)?.swap_bytes(),
        ),
        "image/gif" => (number(bytes, 6, 2)?, number(bytes, 8, 2)?),
        "image/webp" => webp_dimensions(bytes)?,
        _ => jpeg_dimensions(bytes)?,
    };
    (width > 0 && height > 0).then_some((width, height))
}

/// Returns whether an image has all its parts, and, of a PNG, whether they have their check sums. The data inside of them
/// is not decoded. Bytes may follow it.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let whole = match media_type(bytes) {
        Some("image/png") => png_end(bytes),
        Some("image/gif") => gif_frame_end(bytes),
        Some("image/webp") => webp_end(bytes),
        Some(_) => jpeg_end(bytes),
        None => None,
    };
    whole.is_some()
}

/// Walks the chunks to the last one. Readers look at the check sums of those that they need.
fn png_end(bytes: &[u8]) -> Option<usize> {
    let mut has_data = false;
    let mut at = 8;
    loop {
        let len = number(bytes, at, 4)?.swap_bytes() as usize;
        let sum_at = at.checked_add(8)?.checked_add(len)?;
        let chunk = bytes.get(at + 4..sum_at)?;
        let sum = number(bytes, sum_at, 4)?.swap_bytes();
        let (kind, _) = chunk.split_at_checked(4)?;
        if kind[0].is_ascii_uppercase() && crc32fast::hash(chunk) != sum {
            return None;
        }
        at = sum_at + 4;
        match kind {
            b"IDAT" => has_data = true,
            b"IEND" => return has_data.then_some(at),
            _ => {}
        }
    }
}

/// Walks the blocks up to the end of the first frame, with which readers are content.
fn gif_frame_end(bytes: &[u8]) -> Option<usize> {
    const GIF_HEADER_LEN: usize = 13;
    const GIF_FRAME_LEN: usize = 10;
    let colours = |flags: u8| match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    };
    let mut at = GIF_HEADER_LEN + colours(*bytes.get(GIF_HEADER_LEN - 3)?);
    loop {
        match *bytes.get(at)? {
            // An extension: its kind, and blocks.
            b'!' => at = blocks_end(bytes, at + 2)?,
            b',' => {
                let flags = *bytes.get(at + GIF_FRAME_LEN - 1)?;
                return blocks_end(bytes, at + GIF_FRAME_LEN + colours(flags) + 1);
            }
            _ => return None,
        }
    }
}

/// Walks blocks, each behind its length, to the empty one.
fn blocks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let len = usize::from(*bytes.get(at)?);
        at += 1 + len;
        if len == 0 {
            return Some(at);
        }
    }
}

/// Walks the chunks to the first one with an image, or a frame of one.
fn webp_end(bytes: &[u8]) -> Option<usize> {
    let all = number(bytes, 4, 4)? as usize;
    let bytes = bytes.get(..all.checked_add(8)?)?;
    let mut at = 12;
    loop {
        let kind = bytes.get(at..at + 4)?;
        let len = number(bytes, at + 4, 4)? as usize;
        let end = at.checked_add(8)?.checked_add(len)?;
        bytes.get(at..end)?;
        if matches!(kind, b"VP8 " | b"VP8L" | b"ANMF") {
            return Some(end);
        }
        // Chunks have an even length.
        at = end + len % 2;
    }
}

/// Walks the segments to the data, and looks for its end.
fn jpeg_end(bytes: &[u8]) -> Option<usize> {
    const END_MARKER: [u8; 2] = [0xff, 0xd9];
    let data = jpeg_segment(bytes, |marker| marker == 0xda)?;
    let end = memchr::memmem::find(bytes.get(data..)?, &END_MARKER)?;
    Some(data + end + END_MARKER.len())
}

/// Returns the little-endian number of `len` bytes at `at`.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let digits = bytes.get(at..at + len)?.iter().rev();
    Some(digits.fold(0, |number, digit| number << 8 | u32::from(*digit)))
}

/// The first chunk determines which of three formats it is: lossy, lossless, extended.
fn webp_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    const BITS: u32 = (1 << 14) - 1;
    match bytes.get(12..16)? {
        b"VP8 " => Some((number(bytes, 26, 2)? & BITS, number(bytes, 28, 2)? & BITS)),
        b"VP8L" => {
            let sizes = number(bytes, 21, 4)?;
            Some(((sizes & BITS) + 1, (sizes >> 14 & BITS) + 1))
        }
        b"VP8X" => Some((number(bytes, 24, 3)? + 1, number(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

/// Returns the sizes in the segment that starts a frame.
fn jpeg_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    // The other markers of this range are tables.
    let is_frame = |marker| matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
    let at = jpeg_segment(bytes, is_frame)?;
    Some((big(bytes, at + 7)?, big(bytes, at + 5)?))
}

/// Walks the segments to the first one with such a marker. Returns `None` if the data of the image, or its end, comes
/// first.
fn jpeg_segment(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = 2;
    loop {
        let marker = match bytes.get(at..at + 2)? {
            [0xff, marker] => *marker,
            _ => return None,
        };
        match marker {
            _ if is_wanted(marker) => return Some(at),
            // Fill bytes, and markers without a segment.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xd9 | 0xda => return None,
            _ => at += 2 + big(bytes, at + 2)? as usize,
        }
    }
}

/// Returns the big-endian number of two bytes at `at`.
fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(number(bytes, at, 2)?.swap_bytes() >> 16)
}

/// Base64 with or without its padding.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Returns width and height of an image in pixels. A long colour profile may be before them.
pub(super) fn size_of(text: &str) -> Option<(u32, u32)> {
    let of_start = dimensions(&start_of(text)?);
    of_start.or_else(|| dimensions(&decode(text.as_bytes())?))
}

/// Decodes the first bytes of a base64 text, in which most images have their size.
pub(super) fn start_of(text: &str) -> Option<Vec<u8>> {
    const START_LEN: usize = 256 << 10;
    match text.as_bytes().get(..START_LEN) {
        Some(start) => decode(start),
        None => decode(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of an image of 300 times 200 pixels in each format.
    fn images() -> [(&'static str, Vec<u8>); 7] {
        let webp = |chunk: &[u8]| [b"RIFF\x20\0\0\0WEBP", chunk].concat();
        let jpeg = |frame: u8| {
            let frame = [0xff, frame, 0, 11, 8, 0, 200, 1, 44, 1, 1, 17, 0];
            // An application segment that looks like a frame inside, a fill byte, a lone marker.
            let before = b"\xff\xd8\xff\xe1\0\x0a\xff\xc0\0\x0b\x08\0\x01\0\xff\xff\x01";
            [before.as_slice(), &frame].concat()
        };
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x2c\0\0\0\xc8\x08\x06";
        [
            ("image/png", png.to_vec()),
            ("image/gif", b"GIF89a\x2c\x01\xc8\0\xf7".to_vec()),
            ("image/jpeg", jpeg(0xc0)),
            ("image/jpeg", jpeg(0xc2)),
            (
                "image/webp",
                webp(b"VP8 \x08\0\0\0\x10\0\0\x9d\x01\x2a\x2c\x41\xc8\x80"),
            ),
            ("image/webp", webp(b"VP8L\x08\0\0\0\x2f\x2b\xc1\x31\x10")),
            (
                "image/webp",
                webp(b"VP8X\x0a\0\0\0\x10\0\0\0\x2b\x01\0\xc7\0\0"),
            ),
        ]
    }

    #[test]
    fn type_and_size_are_in_the_header_of_each_format() {
        for (expected, image) in images() {
            assert_eq!(media_type(&image), Some(expected));
            assert_eq!(dimensions(&image), Some((300, 200)), "{expected}");
        }
        for other in [
            &b""[..],
            b"BM6\0",
            b"%PDF-1.7",
            b"RIFF\x20\0\0\0WAVE",
            b"GIF88a",
        ] {
            assert_eq!(media_type(other), None);
        }
    }

    #[test]
    fn a_stand_in_has_the_type_and_the_size_of_its_image() {
        for media_type in ["image/png", "image/gif", "image/jpeg", "image/webp"] {
            for (width, height) in [(1, 1), (300, 200), (8_000, 3)] {
                let bytes = stand_in(media_type, width, height);
                assert_eq!(super::media_type(&bytes), Some(media_type));
                assert_eq!(dimensions(&bytes), Some((width, height)), "{media_type}");
                assert!(is_whole(&bytes), "{media_type}");
                for end in 0..bytes.len() - 1 {
                    assert!(!is_whole(&bytes[..end]), "{media_type} up to {end}");
                }
            }
        }
    }

    #[test]
    fn a_header_that_is_cut_off_or_says_zero_has_no_size() {
        for (name, image) in images() {
            let whole = (0..image.len()).filter(|end| dimensions(&image[..*end]).is_some());
            // After the size come four bytes of the frame in a JPEG, fewer in a PNG and GIF.
            assert!(whole.count() <= 4, "{name}");
        }
        assert_eq!(dimensions(b"GIF89a\0\0\xc8\0"), None);
        assert_eq!(
            dimensions(b"\xff\xd8\xff\xda\0\x02\xff\xc0\0\x0b\x08\0\xc8\x01\x2c"),
            None
        );
    }
}
