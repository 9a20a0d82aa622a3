//! The index of a pack: its frames, and the versions of files that they hold.
//!
//! The structures are written with postcard. The index of a pack is never changed; a new field needs a
//! new version of the format.

use serde::{Deserialize, Serialize};

/// Names a pack: the start of the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PackId(pub(crate) [u8; 16]);

/// Names a dictionary: the start of the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct DictionaryId(pub(crate) [u8; 16]);

/// The start of the BLAKE3 hash of bytes.
pub(crate) type Hash = [u8; 16];

/// Returns the hash of bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    first_bytes(blake3::hash(bytes))
}

/// Makes the [`hash()`] of bytes that come in parts.
#[derive(Debug, Default)]
pub(crate) struct Hasher(blake3::Hasher);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> Hash {
        first_bytes(self.0.finalize())
    }
}

fn first_bytes(whole: blake3::Hash) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(&whole.as_bytes()[..16]);
    hash
}

/// The index of a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackIndex {
    /// The time of the last capture in it, in milliseconds since 1970.
    pub(crate) captured: i64,
    /// Other packs that it refers to; number n of a reference is `packs[n - 1]`, and 0 is this pack.
    pub(crate) packs: Vec<PackId>,
    pub(crate) dictionaries: Vec<DictionaryId>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) versions: Vec<Version>,
    /// Frames that hold copies of dictionaries: the number of the dictionary, and that of the frame.
    pub(crate) copies: Vec<(u32, u32)>,
    /// The frame with features of lines (see `lines`), and where the lines are: 12 bytes each.
    pub(crate) features: Option<u32>,
    /// The frame with the summaries of callers for the versions.
    pub(crate) summaries: Option<u32>,
    /// The packs of which this one has everything.
    pub(crate) replaces: Vec<Replaced>,
}

impl PackIndex {
    /// Returns the frame with a copy of a dictionary.
    pub(crate) fn copy_of(&self, id: DictionaryId) -> Option<u32> {
        let mut copies = self.copies.iter();
        let is_it = |number: u32| self.dictionaries.get(number as usize) == Some(&id);
        let (_, frame) = copies.find(|(number, _)| is_it(*number))?;
        Some(*frame)
    }
}

/// A pack of which another one has everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replaced {
    pub(crate) pack: PackId,
    /// The number of its first version in the other pack, in which the rest follow in order.
    pub(crate) first_version: u32,
    /// The position of the content of each of its frames; `None` for frames with no content of files.
    pub(crate) frames: Vec<Option<FramePosition>>,
}

/// A place in the content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FramePosition {
    pub(crate) frame: u32,
    pub(crate) start: u32,
}

/// One zstd frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    /// The offset of the zstd frame in the pack.
    pub(crate) at: u64,
    /// Its length in the pack.
    pub(crate) stored: u32,
    /// The length of its content.
    pub(crate) len: u32,
    /// The hash of its content.
    pub(crate) hash: Hash,
    /// Whether any zstd shows it.
    pub(crate) is_lines: bool,
    pub(crate) coding: Coding,
}

/// The compression of the content of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Coding {
    /// By itself.
    Plain,
    /// With the dictionary of this number.
    Dictionary(u32),
    /// With the concatenated content of these slices as prefix. They are in frames of the other codings.
    Prefix(Vec<Slice>),
}

/// A part of the content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// The number of the pack, see [`PackIndex::packs`].
    pub(crate) pack: u32,
    pub(crate) frame: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A file as it was when it was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// The path below the folder of the client, with `/`: `projects/-home-ada/ID.jsonl`.
    pub(crate) path: String,
    /// When it was captured, in milliseconds since 1970.
    pub(crate) captured: i64,
    pub(crate) len: u64,
    pub(crate) state: FileState,
    /// The version that it continues.
    pub(crate) before: Option<BaseVersion>,
    /// The bytes after those of that version.
    pub(crate) extents: Vec<Extent>,
    /// The number of bytes after the last line feed.
    pub(crate) partial: u64,
    /// The hash of its content, where the packs cannot be read to compare it.
    pub(crate) fingerprint: Option<Hash>,
    /// The span of the summary of the caller in the frame of summaries: start and length.
    pub(crate) summary: (u32, u32),
}

/// An earlier version of a file, of which the first bytes are those of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseVersion {
    /// The number of its pack, see [`PackIndex::packs`].
    pub(crate) pack: u32,
    /// Its number in the pack.
    pub(crate) version: u32,
    /// The number of bytes that are the same.
    pub(crate) keep: u64,
    /// The number of line feeds in them.
    pub(crate) lines: u64,
}

/// The properties of a file. Equal ones mean that it was not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    /// The time of the last change of the content: seconds since 1970, and nanoseconds.
    pub(crate) modified: Option<(i64, u32)>,
    /// The same of a change of any property.
    pub(crate) changed: Option<(i64, u32)>,
    pub(crate) mode: Option<u32>,
    /// The device and the number of the file on it.
    pub(crate) number: Option<(u64, u64)>,
    /// Whether it had not been changed for some time, so that a later change has another time.
    pub(crate) is_settled: bool,
}

impl FileState {
    /// Returns the properties that a restored file gets: its time and its mode.
    pub(crate) fn restored(&self) -> (Option<(i64, u32)>, Option<u32>) {
        (self.modified, self.mode)
    }
}

/// A part of a file, in a frame of the same pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) frame: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// The number of line feeds in it.
    pub(crate) lines: u32,
}

macro_rules! hex_names {
    ($($name:ident)+) => {$(
        impl $name {
            /// Returns the name in hexadecimal digits.
            pub(crate) fn to_hex(self) -> String {
                let digits = self.0.iter().map(|byte| format!("{byte:02x}"));
                digits.collect()
            }

            pub(crate) fn from_hex(text: &str) -> Option<Self> {
                let mut id = [0; 16];
                if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                for (at, byte) in id.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
                }
                Some(Self(id))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.to_hex())
            }
        }
    )+};
}

hex_names! { PackId DictionaryId }
