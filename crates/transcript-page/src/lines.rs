//! The lines of a session inside of its page, in a comment, and back.
//!
//! ```text
//! <!--transcript-lines 1
//! Base64 of a Zstandard frame with up to 2 MiB of the file
//! ... one frame a line ...
//! end BYTES BLAKE3
//! -->
//! ```

use std::io::{BufRead, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use transcript_reader::{Source, in_order};

use crate::{Error, Result};

/// The line that starts the comment.
const START: &str = "<!--transcript-lines 1";
/// The number of bytes of the file in a frame.
const FRAME_LEN: usize = 2 << 20;
/// The maximum length of a line of the comment, in bytes: that of a frame that is not compressed, in Base64.
const MAX_COMMENT_LINE: u64 = 4 << 20;
/// No page is longer, in bytes: what is read may never end.
const MAX_PAGE: u64 = 8 << 30;
/// A level above this takes much longer and saves little.
const LEVEL: i32 = 3;

/// Writes the comment.
pub(crate) fn write(out: &mut dyn Write, source: &Source) -> Result<()> {
    writeln!(out, "{START}")?;
    let frames = usize::try_from(source.len().div_ceil(FRAME_LEN as u64)).unwrap_or(usize::MAX);
    let mut hasher = blake3::Hasher::new();
    in_order(
        0..frames,
        || |number| frame(source, number).ok(),
        |number, made| -> Result<()> {
            let (bytes, encoded) = made.map_or_else(|| frame(source, number), Ok)?;
            hasher.update(&bytes);
            out.write_all(encoded.as_bytes())?;
            Ok(out.write_all(b"\n")?)
        },
    )?;
    writeln!(out, "end {} {}\n-->", hasher.count(), hasher.finalize())?;
    Ok(())
}

/// Returns the bytes of a frame, and the same compressed.
fn frame(source: &Source, number: usize) -> Result<(Vec<u8>, String)> {
    let start = number as u64 * FRAME_LEN as u64;
    let bytes = source.bytes(start..start + FRAME_LEN as u64)?;
    let packed = zstd::bulk::compress(&bytes, LEVEL)?;
    Ok((bytes, BASE64_STANDARD.encode(packed)))
}

/// The result of reading a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLines {
    /// The number of bytes of the session.
    pub bytes: u64,
}

/// Writes the lines that a page contains: those of the session, byte for byte, if nothing was redacted in the page.
///
/// # Errors
/// When the page cannot be read, has no lines or damaged ones, or the output cannot be written. The output up to
/// the error is incomplete.
pub fn read_lines(page: &mut dyn BufRead, out: &mut dyn Write) -> Result<ReadLines> {
    read_lines_up_to(page, out, MAX_PAGE)
}

fn read_lines_up_to(page: &mut dyn BufRead, out: &mut dyn Write, most: u64) -> Result<ReadLines> {
    let mut page = Lines {
        page,
        offset: 0,
        most,
    };
    let mut line = Vec::new();
    loop {
        // The lines of a page may be long; that of the comment is not.
        if !page.next(&mut line, START.len() as u64 + 2)? {
            return Err(Error::NoLines);
        }
        if line == START.as_bytes() {
            break;
        }
    }
    let mut hasher = blake3::Hasher::new();
    loop {
        let offset = page.offset;
        let damaged = |reason| Error::Damaged { offset, reason };
        if !page.next(&mut line, MAX_COMMENT_LINE)? {
            return Err(damaged("the page ends before the last line"));
        }
        if let Some(end) = line.strip_prefix(b"end ") {
            let expected = format!("{} {}", hasher.count(), hasher.finalize());
            if end != expected.as_bytes() {
                return Err(damaged("their checksum is wrong"));
            }
            let bytes = hasher.count();
            return Ok(ReadLines { bytes });
        }
        let packed = BASE64_STANDARD.decode(&line);
        let packed = packed.map_err(|_| damaged("no Base64"))?;
        let bytes = zstd::bulk::decompress(&packed, FRAME_LEN);
        let bytes = bytes.map_err(|_| damaged("no Zstandard frame"))?;
        hasher.update(&bytes);
        out.write_all(&bytes)?;
    }
}

/// The lines of a page.
struct Lines<'p> {
    page: &'p mut dyn BufRead,
    /// The offset of the next one.
    offset: u64,
    /// The maximum number of bytes that are read.
    most: u64,
}

impl Lines<'_> {
    /// Reads the next line, without its end, or up to `limit` bytes of it. Returns false at the end of the page.
    fn next(&mut self, line: &mut Vec<u8>, limit: u64) -> Result<bool> {
        line.clear();
        let mut read = 0_u64;
        loop {
            let available = self.page.fill_buf()?;
            if available.is_empty() {
                self.offset += read;
                return Ok(read > 0);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let room = usize::try_from(limit)
                .unwrap_or(usize::MAX)
                .saturating_sub(line.len());
            line.extend_from_slice(&available[..end.unwrap_or(taken).min(room)]);
            self.page.consume(taken);
            read += taken as u64;
            if self.offset + read > self.most {
                return Err(Error::TooLong(self.most));
            }
            if end.is_some() {
                self.offset += read;
                // An editor may have added carriage returns.
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn written(bytes: &[u8]) -> Vec<u8> {
        let source = Source::from_bytes(bytes, Path::new("-"));
        let mut page = b"<!DOCTYPE html><p>&lt;!--transcript-lines 1\n".to_vec();
        write(&mut page, &source).unwrap();
        page.extend_from_slice(b"</body></html>\n");
        page
    }

    #[test]
    fn a_page_that_never_ends_is_an_error() {
        let endless = || std::io::BufReader::new(std::io::repeat(0));
        let read = |page: &mut dyn BufRead| read_lines_up_to(page, &mut Vec::new(), 5 << 20);
        assert!(matches!(read(&mut endless()), Err(Error::TooLong(most)) if most == 5 << 20));
        let start = format!("{START}\n");
        let mut lines = std::io::Read::chain(start.as_bytes(), endless());
        assert!(matches!(read(&mut lines), Err(Error::TooLong(_))));
        // Also one of frames that are whole.
        let whole = written(b"{}\n");
        let text = String::from_utf8(whole).unwrap();
        let frame = text.lines().nth(2).unwrap();
        let many = format!(
            "{START}\n{}",
            format!("{frame}\n").repeat((5 << 20) / frame.len())
        );
        assert!(matches!(read(&mut many.as_bytes()), Err(Error::TooLong(_))));
    }

    fn read(mut page: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        read_lines(&mut page, &mut out)?;
        Ok(out)
    }

    #[test]
    fn lines_are_restored_byte_for_byte() {
        // Bytes that no line has as well: a session may be damaged.
        let noise: Vec<u8> = (0..3 * FRAME_LEN as u64 + 17)
            .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        for len in [0, 1, FRAME_LEN - 1, FRAME_LEN, FRAME_LEN + 1, noise.len()] {
            let page = written(&noise[..len]);
            assert!(read(&page).unwrap() == noise[..len], "{len}");
            let text = String::from_utf8(page).unwrap();
            assert!(read(text.replace('\n', "\r\n").as_bytes()).unwrap() == noise[..len]);
        }
    }

    #[test]
    fn damage_is_found() {
        assert!(matches!(read(b"<!DOCTYPE html>\n"), Err(Error::NoLines)));
        assert!(matches!(read(b""), Err(Error::NoLines)));
        let bytes: Vec<u8> = (0..300_u32).flat_map(u32::to_le_bytes).collect();
        let page = written(&bytes);
        let comment = page
            .windows(START.len())
            .rposition(|text| text == START.as_bytes());
        let comment = comment.unwrap() + START.len() + 1;
        let end = page.len() - "\n-->\n</body></html>\n".len();
        for at in comment..end {
            for damage in [b'A', b'\n', b'%'] {
                let mut hurt = page.clone();
                if hurt[at] == damage {
                    continue;
                }
                hurt[at] = damage;
                assert!(
                    matches!(read(&hurt), Err(Error::Damaged { .. })),
                    "byte {at}"
                );
            }
        }
        for end in comment..end {
            let cut = read(&page[..end]);
            assert!(matches!(cut, Err(Error::Damaged { .. })), "cut at {end}");
        }
    }
}
