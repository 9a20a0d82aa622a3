//! Reads all frames of an archive, and names the lost lines.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use transcript_storage::parallel;

use crate::archive::Archive;
use crate::catalogue::VersionId;
use crate::error::Error;
use crate::limits::MAX_VERSION_CHAIN;
use crate::record::{Coding, DictionaryId};

/// Options that select the parts of an archive to check.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    subset: Option<(u32, NonZeroU32)>,
    done: Option<Arc<AtomicU64>>,
}

impl CheckOptions {
    /// Reads everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads part `part` of `of` parts, counted from 0: all parts together are everything, whatever is added in the meantime.
    #[must_use]
    pub fn subset(mut self, part: u32, of: NonZeroU32) -> Self {
        self.subset = Some((part, of));
        self
    }

    /// Adds the bytes of frames that are done to this counter, out of [`Archive::stored_bytes`].
    #[must_use]
    pub fn count_bytes(mut self, counter: Arc<AtomicU64>) -> Self {
        self.done = Some(counter);
        self
    }
}

/// The result of a check.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Check {
    /// The number of frames that were read.
    pub frames: u64,
    /// The number of bytes of their content.
    pub bytes: u64,
    /// The damaged and missing parts, sorted by path.
    pub damages: Vec<Damage>,
    /// The losses that follow, sorted by file: of each the newest version that has the loss.
    pub losses: Vec<Loss>,
}

/// A part of the archive that is damaged or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// A pack or a dictionary.
    pub path: PathBuf,
    /// The offset of the damaged frame in the pack.
    pub offset: Option<u64>,
    /// The defect.
    pub reason: String,
}

/// A part of a file that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The file, as [`ArchiveDisk`](crate::ArchiveDisk) names it.
    pub path: PathBuf,
    /// When the version was captured.
    pub captured: SystemTime,
    /// The first and the last line that are lost, or parts of which are, counted from 1.
    pub lines: (u64, u64),
    /// The offsets at which the loss starts and ends.
    pub bytes: (u64, u64),
}

/// The versions of which nothing is lost, each with the number of those that it continues.
type IntactVersions = HashMap<VersionId, usize>;
/// The reason of each damaged frame, by pack and number.
type BadFrames = HashMap<(u32, u32), String>;

impl Archive {
    /// Returns the length of all frames in the archive, in bytes.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let packs = self.catalogue.packs.iter();
        let frames = packs.flat_map(|pack| &pack.index.frames);
        frames.map(|frame| u64::from(frame.stored)).sum()
    }

    /// Reads frames, compares them with their hashes, and names the damaged ones.
    ///
    /// # Errors
    /// [`ErrorKind::Encrypted`](crate::ErrorKind::Encrypted).
    pub fn check(&self, options: &CheckOptions) -> Result<Check, Error> {
        self.check_readable()?;
        let mut check = Check::default();
        for problem in &self.catalogue.problems {
            let text = problem.to_string();
            let path = format!("{}: ", problem.path().display());
            check.damages.push(Damage {
                path: problem.path().to_owned(),
                offset: None,
                reason: text.strip_prefix(&path).unwrap_or(&text).to_owned(),
            });
        }
        check.damages.extend(self.lost_dictionaries());
        let is_in_subset = |id: &[u8; 16]| {
            options.subset.is_none_or(|(part, of)| {
                u32::from_le_bytes([id[0], id[1], id[2], id[3]]) % of == part % of
            })
        };
        let mut bad = BadFrames::new();
        let mut frames = Vec::new();
        for (number, pack) in (0..).zip(&self.catalogue.packs) {
            let all = 0..pack.index.frames.len() as u32;
            if !pack.is_there && self.catalogue.is_replaced(number) {
                continue;
            }
            if !pack.is_there {
                check.damages.push(Damage {
                    path: self.layout.pack(pack.id),
                    offset: None,
                    reason: "the pack is missing".into(),
                });
                bad.extend(all.map(|frame| ((number, frame), String::new())));
            } else if is_in_subset(&pack.id.0) {
                frames.extend(all.map(|frame| (number, frame)));
            }
        }
        let read = |(pack, frame): &(u32, u32)| {
            let content = self.read_frame(*pack, *frame);
            if let Some(done) = &options.done {
                let pack = &self.catalogue.packs[*pack as usize];
                let stored = pack.index.frames[*frame as usize].stored;
                done.fetch_add(stored.into(), Ordering::Relaxed);
            }
            content.map(|content| content.len() as u64)
        };
        let read = parallel::map(&frames, None, || read);
        check.frames = frames.len() as u64;
        for ((pack, frame), len) in frames.into_iter().zip(read) {
            let reason = match len {
                Ok(len) => {
                    check.bytes += len;
                    continue;
                }
                Err(error) => error.to_string(),
            };
            let of = &self.catalogue.packs[pack as usize];
            check.damages.push(Damage {
                path: self.layout.pack(of.id),
                offset: Some(of.index.frames[frame as usize].at),
                reason: reason.clone(),
            });
            bad.insert((pack, frame), reason);
        }
        check
            .damages
            .sort_by(|one, other| (&one.path, one.offset).cmp(&(&other.path, other.offset)));
        self.add_losses(&bad, &mut check);
        Ok(check)
    }

    fn lost_dictionaries(&self) -> Vec<Damage> {
        let needs = self.catalogue.packs.iter().flat_map(|pack| {
            let is_used = |number: &usize| {
                let mut frames = pack.index.frames.iter();
                frames.any(|frame| frame.coding == Coding::Dictionary(*number as u32))
            };
            let dictionaries = pack.index.dictionaries.iter().enumerate();
            dictionaries
                .filter(move |(number, _)| is_used(number))
                .map(|(_, id)| *id)
        });
        let mut needed: Vec<DictionaryId> = needs.collect();
        needed.sort_unstable();
        needed.dedup();
        let lost = needed.into_iter().filter_map(|id| {
            let [_, path] = self.layout.dictionary(id);
            let is_it = |bytes: Vec<u8>| DictionaryId(crate::record::hash(&bytes)) == id;
            let is_there = self.stored_dictionary(&path).is_some_and(is_it);
            let reason = match is_there {
                true => return None,
                false if self.dictionary(id).is_ok() => {
                    "the dictionary is missing or damaged; a copy in a pack is used"
                }
                false => "the dictionary is missing or damaged, and no pack has a copy",
            };
            Some(Damage {
                path,
                offset: None,
                reason: reason.into(),
            })
        });
        lost.collect()
    }

    /// Finds the parts of files that are in bad frames.
    fn add_losses(&self, bad: &BadFrames, check: &mut Check) {
        let mut whole = IntactVersions::new();
        for (name, versions) in &self.catalogue.files {
            let mut known: Vec<(u64, u64)> = Vec::new();
            for version in versions {
                if let Some(depth) = self.depth_of_whole(*version, bad, &whole) {
                    whole.insert(*version, depth);
                }
            }
            for version in versions.iter().rev() {
                if whole.contains_key(version) {
                    continue;
                }
                let losses = match self.losses_of(name, *version, bad) {
                    Ok(losses) => losses,
                    Err(error) => {
                        check.damages.push(Damage {
                            path: self.pack_path(version.pack),
                            offset: None,
                            reason: error.to_string(),
                        });
                        // The earlier versions of such a file are the same, or can be read.
                        break;
                    }
                };
                // Versions share their common start, so a damaged frame is reported once.
                for loss in losses {
                    if !known.contains(&loss.bytes) {
                        known.push(loss.bytes);
                        check.losses.push(loss);
                    }
                }
            }
        }
    }

    /// Returns how many versions a version continues that has all its parts, as they have; `None` if it has not.
    fn depth_of_whole(
        &self,
        id: VersionId,
        bad: &BadFrames,
        whole: &IntactVersions,
    ) -> Option<usize> {
        let version = self.version(id)?;
        let mut parts = version.extents.iter();
        if parts.any(|part| self.is_bad(id.pack, part.frame, bad)) {
            return None;
        }
        let Some(before) = version.before else {
            return Some(0);
        };
        let catalogue = &self.catalogue;
        let of = catalogue.referred_version(id.pack, before.pack, before.version)?;
        let has_kept = self.version(of)?.len >= before.keep;
        let depth = whole.get(&of)? + 1;
        (has_kept && depth < MAX_VERSION_CHAIN).then_some(depth)
    }

    fn is_bad(&self, pack: u32, frame: u32, bad: &BadFrames) -> bool {
        let of = self.catalogue.packs.get(pack as usize);
        let is_known = of.is_some_and(|pack| (frame as usize) < pack.index.frames.len());
        !is_known || bad.contains_key(&(pack, frame))
    }

    fn losses_of(&self, name: &str, version: VersionId, bad: &BadFrames) -> io::Result<Vec<Loss>> {
        let mut losses: Vec<Loss> = Vec::new();
        for piece in self.pieces(version)? {
            let is_bad = match piece.place {
                None => true,
                Some((pack, frame, _)) => self.is_bad(pack, frame, bad),
            };
            if !is_bad {
                continue;
            }
            let first = piece.lines_before.saturating_add(1);
            let last = piece.lines_before.saturating_add(piece.lines);
            let lines = (first, first.max(last));
            let bytes = (piece.at, piece.end());
            if let Some(last) = losses.last_mut()
                && last.bytes.1 == bytes.0
            {
                last.bytes.1 = bytes.1;
                last.lines.1 = lines.1;
                continue;
            }
            losses.push(Loss {
                path: self.layout.virtual_path(name),
                captured: self.captured(version),
                lines,
                bytes,
            });
        }
        Ok(losses)
    }
}
