//! Reads type and size of an image from its first bytes.

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
        "image/png" => [
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(),
            &wide,
            &high,
            b"\x08\x06\0\0\0\0\0\0\0\0\0\0\0IEND\0\0\0\0",
        ]
        .concat(),
        "image/gif" => [
            b"GIF89a".as_slice(),
            &short_wide.to_le_bytes(),
            &short_high.to_le_bytes(),
            b"\0\0\0;",
        ]
        .concat(),
        "image/webp" => [
            b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".as_slice(),
            &(width - 1).to_le_bytes()[..3],
            &(height - 1).to_le_bytes()[..3],
        ]
        .concat(),
        _ => [
            b"\xff\xd8\xff\xc0\0\x0b\x08".as_slice(),
            &short_high.to_be_bytes(),
            &short_wide.to_be_bytes(),
            b"\x01\x01\x11\0\xff\xd9",
        ]
        .concat(),
    }
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

/// Returns whether an image may have its end, by its last bytes. Of a JPEG and a WebP that is not asked: readers do
/// without it.
pub(super) fn seems_whole(media_type: &str, last: &[u8]) -> bool {
    match media_type {
        "image/png" => memchr::memmem::find(last, b"IEND").is_some(),
        "image/gif" => last.contains(&b';'),
        _ => true,
    }
}

/// Returns whether an image has its end, by all of it: bytes may follow it.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    match media_type(bytes) {
        Some("image/png") => png_has_end(bytes),
        Some("image/gif") => bytes.contains(&b';'),
        _ => true,
    }
}

/// Walks the chunks up to the last one.
fn png_has_end(bytes: &[u8]) -> bool {
    let mut at = 8;
    while let Some(kind) = bytes.get(at + 4..at + 8) {
        if kind == b"IEND" {
            return true;
        }
        let Some(len) = number(bytes, at, 4) else {
            return false;
        };
        at = match at.checked_add(12 + len.swap_bytes() as usize) {
            Some(next) => next,
            None => return false,
        };
    }
    false
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

/// Walks the segments up to the one that starts a frame.
fn jpeg_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(number(bytes, at, 2)?.swap_bytes() >> 16);
    let mut at = 2;
    loop {
        match bytes.get(at..at + 2)? {
            // Fill bytes, and markers without a segment.
            [0xff, 0xff] => at += 1,
            [0xff, 0x01 | 0xd0..=0xd8] => at += 2,
            [0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf] => {
                return Some((big(at + 7)?, big(at + 5)?));
            }
            // The data of the image, or its end, without a frame before it.
            [0xff, 0xd9 | 0xda] => return None,
            [0xff, _] => at += 2 + big(at + 2)? as usize,
            _ => return None,
        }
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
                assert!(seems_whole(media_type, &bytes) && is_whole(&bytes));
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
