//! Compresses and decompresses the content of frames.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CCtx, CParameter, DCtx, compress_bound, get_error_name};

use crate::record::{DictionaryId, hash};

/// The compression effort: time that is spent to save space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// For much at once: as fast as a disk.
    Fast,
    /// For the changes of a day.
    Dense,
}

impl Effort {
    /// The level of zstd.
    fn level(self) -> i32 {
        match self {
            Self::Fast => 4,
            Self::Dense => 9,
        }
    }
}

/// The level of frames with a prefix, of which nearly all is in the prefix.
const PREFIX_LEVEL: i32 = 3;
/// The base-2 logarithm of the number of places in a prefix that the compressor remembers. By default it would
/// remember only the last part of a long one.
const PREFIX_HASH_LOG: u32 = 19;
/// The base-2 logarithm of the window, which holds the longest prefix and the content.
const PREFIX_WINDOW_LOG: u32 = 22;

/// A dictionary, prepared when it is needed.
pub(crate) struct Dictionary {
    pub(crate) id: DictionaryId,
    pub(crate) bytes: Vec<u8>,
    encoders: [OnceLock<EncoderDictionary<'static>>; 2],
    decoder: OnceLock<DecoderDictionary<'static>>,
}

// Omits the bytes, because they are part of conversations.
impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dictionary").field(&self.id).finish()
    }
}

impl Dictionary {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            id: Self::id_of(&bytes),
            bytes,
            encoders: [OnceLock::new(), OnceLock::new()],
            decoder: OnceLock::new(),
        }
    }

    /// Returns the id of a dictionary with these bytes.
    pub(crate) fn id_of(bytes: &[u8]) -> DictionaryId {
        DictionaryId(hash(bytes))
    }

    fn encoder(&self, effort: Effort) -> &EncoderDictionary<'static> {
        let encoder = &self.encoders[effort as usize];
        encoder.get_or_init(|| EncoderDictionary::copy(&self.bytes, effort.level()))
    }

    fn decoder(&self) -> &DecoderDictionary<'static> {
        self.decoder
            .get_or_init(|| DecoderDictionary::copy(&self.bytes))
    }
}

/// Compresses frames, one after another.
pub(crate) struct Compressor<'d> {
    with_dictionary: zstd::bulk::Compressor<'d>,
    alone: zstd::bulk::Compressor<'static>,
}

impl<'d> Compressor<'d> {
    pub(crate) fn new(dictionary: Option<&'d Dictionary>, effort: Effort) -> io::Result<Self> {
        let mut with_dictionary = match dictionary {
            Some(dictionary) => {
                zstd::bulk::Compressor::with_prepared_dictionary(dictionary.encoder(effort))?
            }
            None => zstd::bulk::Compressor::new(effort.level())?,
        };
        let mut alone = zstd::bulk::Compressor::new(effort.level())?;
        with_dictionary.set_parameter(CParameter::ChecksumFlag(true))?;
        alone.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self {
            with_dictionary,
            alone,
        })
    }

    /// Compresses with the dictionary, if there is one.
    pub(crate) fn compress(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        self.with_dictionary.compress(content)
    }

    /// Compresses without a dictionary.
    pub(crate) fn compress_without_base(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        self.alone.compress(content)
    }
}

/// Compresses with a prefix, which decompression needs, too.
pub(crate) fn compress_after(prefix: &[u8], content: &[u8]) -> io::Result<Vec<u8>> {
    let mut context = CCtx::create();
    for parameter in [
        CParameter::CompressionLevel(PREFIX_LEVEL),
        CParameter::WindowLog(PREFIX_WINDOW_LOG),
        CParameter::HashLog(PREFIX_HASH_LOG),
        CParameter::ChainLog(PREFIX_HASH_LOG),
        CParameter::ChecksumFlag(true),
    ] {
        context.set_parameter(parameter).map_err(failed)?;
    }
    context.ref_prefix(prefix).map_err(failed)?;
    let mut out = Vec::with_capacity(compress_bound(content.len()));
    context.compress2(&mut out, content).map_err(failed)?;
    Ok(out)
}

/// Decompresses a frame of `len` bytes.
pub(crate) fn decompress(
    frame: &[u8],
    len: usize,
    dictionary: Option<&Dictionary>,
) -> io::Result<Vec<u8>> {
    let mut context = DCtx::create();
    let mut out = room_for(len)?;
    match dictionary {
        Some(dictionary) => {
            context.decompress_using_ddict(&mut out, frame, dictionary.decoder().as_ddict())
        }
        None => context.decompress(&mut out, frame),
    }
    .map_err(failed)?;
    Ok(out)
}

/// Decompresses a frame of `len` bytes that was compressed with a prefix.
pub(crate) fn decompress_after(prefix: &[u8], frame: &[u8], len: usize) -> io::Result<Vec<u8>> {
    let mut context = DCtx::create();
    let mut out = room_for(len)?;
    context.ref_prefix(prefix).map_err(failed)?;
    context.decompress(&mut out, frame).map_err(failed)?;
    Ok(out)
}

/// Makes room for the content of a frame. A forged length is an error and does not abort the process.
fn room_for(len: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let reserved = out.try_reserve_exact(len);
    reserved.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"))?;
    Ok(out)
}

fn failed(code: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, get_error_name(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_repeats_the_start_of_its_prefix_is_short() {
        // Random enough that only the prefix helps.
        let mut state = 7u64;
        let mut byte = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let prefix: Vec<u8> = (0..2 << 20).map(|_| byte()).collect();
        // zstd ignores a prefix that shares memory with the content.
        let content = prefix[..1 << 20].to_vec();
        let frame = compress_after(&prefix, &content).unwrap();
        assert!(frame.len() < 2 << 10, "{} bytes", frame.len());
        let again = decompress_after(&prefix, &frame, content.len()).unwrap();
        assert!(again == content);
        assert!(decompress_after(&prefix[1..], &frame, content.len()).is_err());
    }
}
