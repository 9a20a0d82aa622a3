//! Joins small packs: a capture every hour would otherwise make thousands of them in a year.
//!
//! The new pack has the content of every frame of the old ones, all their versions, and where they are now. So other packs can
//! refer to the old ones for ever, also those that a machine writes which does not know of the new one yet.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use crate::archive::Archive;
use crate::catalogue::VersionId;
use crate::error::{AtPath, Error, ErrorKind};
use crate::files::remove_if_there;
use crate::frame::Effort;
use crate::limits::{FULL_INDEX_LEN, joined_len};
use crate::packer::{Limits, Packer};
use crate::record::{
    BaseVersion, Coding, Extent, Frame, FramePosition, PackIndex, Replaced, Slice, Version, hash,
};

/// Packs shorter than the first length are joined with each other, those shorter than the second, and so on, in bytes. Longer ones
/// stay as they are.
const LENGTH_CLASSES: [u64; 3] = [128 << 10, 1 << 20, 8 << 20];
/// The age of a joined pack in a bucket from which the packs that it replaces are removed. Clocks may differ by hours.
const MIN_AGE_IN_BUCKET: Duration = Duration::from_secs(24 * 60 * 60);
/// The minimum number of packs of about the same length that are joined.
pub(crate) const MIN_PACKS_TO_JOIN: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The slices of a prefix, each with the number of its pack, or `None` for the one that is being written; and their content.
type SourcedPrefix = (Vec<(Option<u32>, Slice)>, Vec<u8>);

/// The frames and versions that were moved to the pack that is being written.
#[derive(Default)]
struct MovedContent {
    frames: HashMap<(u32, u32), FramePosition>,
    versions: HashMap<VersionId, u32>,
}

impl Archive {
    /// Joins packs of about the same length when there are `many`, and removes the old ones after each byte of them was read in the
    /// new one and compared by its hash. The caller has the lock. Returns the number of packs that were joined.
    pub(crate) fn repack_small(
        &mut self,
        many: NonZeroUsize,
        threads: usize,
    ) -> Result<u64, Error> {
        let mut joined = 0;
        if self.layout.encryption.is_sealed() {
            return Ok(joined);
        }
        while let Some(packs) = self.small_packs(many) {
            joined += packs.len() as u64;
            // The old packs stay until the new one was compared with them.
            let join = self.join(&packs, threads);
            join.map_err(|error| self.after_failure(error))?;
            self.refresh()?;
            if self.remove_replaced()? == 0 {
                break;
            }
        }
        Ok(joined)
    }

    /// Returns packs to join, oldest first, all of which can be read.
    fn small_packs(&self, many: NonZeroUsize) -> Option<Vec<u32>> {
        // One alone cannot be joined.
        let many = many.get().max(2);
        let mut by_length: [Vec<u32>; LENGTH_CLASSES.len()] = Default::default();
        for (number, pack) in (0..).zip(&self.catalogue.packs) {
            let frames = pack.index.frames.iter();
            let len: u64 = frames.map(|frame| u64::from(frame.stored)).sum();
            let place = LENGTH_CLASSES.iter().position(|most| len < *most);
            if let Some(place) = place
                && pack.is_there
                && !self.catalogue.is_replaced(number)
            {
                by_length[place].push(number);
            }
        }
        for mut packs in by_length {
            if packs.len() < many {
                continue;
            }
            // A damaged pack is not joined: its bytes stay as they are, so that they can still be repaired.
            packs.retain(|pack| {
                let frames = &self.catalogue.packs[*pack as usize].index.frames;
                (0..frames.len() as u32).all(|frame| self.read_frame(*pack, frame).is_ok())
            });
            packs.sort_by_key(|pack| {
                let pack = &self.catalogue.packs[*pack as usize];
                (pack.index.captured, pack.id)
            });
            // Only as many as one index can describe.
            let (mut len, mut side) = (0, 0);
            let fits = packs.iter().take_while(|pack| {
                let index = &self.catalogue.packs[**pack as usize].index;
                len += joined_len(index);
                side += side_len(index);
                len.max(side) <= FULL_INDEX_LEN
            });
            let fits = fits.count();
            packs.truncate(fits);
            if packs.len() >= many {
                return Some(packs);
            }
        }
        None
    }

    /// Writes a pack with everything of some packs.
    fn join(&mut self, packs: &[u32], threads: usize) -> Result<(), Error> {
        let dictionary = self.longest_dictionary()?;
        let times = packs.iter();
        let times = times.map(|pack| self.catalogue.packs[*pack as usize].index.captured);
        let captured = times.max().unwrap_or_default();
        let limits = Limits {
            threads,
            // One pack, so that all packs that it replaces are replaced at once.
            pack_len: u64::MAX,
            effort: Effort::Dense,
        };
        thread::scope(|scope| {
            let mut packer = Packer::start(scope, self, dictionary, captured, limits);
            let mut moved = MovedContent::default();
            for pack in packs {
                moved.add_pack(&mut packer, *pack)?;
            }
            packer.finish().map(drop)
        })
    }

    /// Removes packs of which another one has everything, after that was read and compared. Returns the number of packs
    /// that were removed.
    pub(crate) fn remove_replaced(&mut self) -> Result<u64, Error> {
        let mut removed = 0;
        let mut packs = Vec::new();
        for number in 0..self.catalogue.packs.len() as u32 {
            let is_there = self.catalogue.packs[number as usize].is_there;
            // Proved by reading, each time: only then the old pack is the second copy of each byte.
            if is_there
                && self.catalogue.is_replaced(number)
                && self.is_settled(number)
                && self.is_proved(number)
            {
                packs.push(number);
            }
        }
        for number in packs {
            let path = self.pack_path(number);
            self.store.remove(&path).at(&path)?;
            let summaries = self
                .layout
                .summaries(self.catalogue.packs[number as usize].id);
            let _ = remove_if_there(&*self.disk, &summaries);
            self.catalogue.packs[number as usize].is_there = false;
            removed += 1;
        }
        if removed > 0 {
            self.catalogue.write(&*self.disk, &self.layout)?;
            self.refresh()?;
        }
        Ok(removed)
    }

    /// Returns whether no other machine still reads a pack of which another one has everything: readers that know only the old one
    /// have opened the archive before.
    fn is_settled(&self, number: u32) -> bool {
        let id = self.catalogue.packs[number as usize].id;
        let of_new = self.catalogue.replaced(id);
        let written = of_new.map(|(new, _)| {
            let listed = self.catalogue.packs[new as usize].listed;
            listed.and_then(|listed| listed.modified)
        });
        let age = written
            .flatten()
            .map(|written| written.elapsed().unwrap_or_default());
        !self.layout.in_bucket || age.is_some_and(|age| age >= MIN_AGE_IN_BUCKET)
    }

    /// Returns whether another pack has everything of a pack, which is read for that.
    fn is_proved(&self, number: u32) -> bool {
        let pack = &self.catalogue.packs[number as usize];
        let Some((other, replaced)) = self.catalogue.replaced(pack.id) else {
            return false;
        };
        let of_other = &self.catalogue.packs[other as usize].index;
        let is_there = |(frame, place): (&Frame, &Option<FramePosition>)| {
            let Some(place) = place else {
                return true;
            };
            let content = self.content(other, place.frame);
            let (start, len) = (place.start as usize, frame.len as usize);
            content.is_ok_and(|content| {
                let part = content.get(start..start.saturating_add(len));
                // By the hash that the old pack stored when it was written, not by that of the new one.
                part.is_some_and(|part| hash(part) == frame.hash)
            })
        };
        let is_without_content = |(number, place): (u32, &Option<FramePosition>)| {
            place.is_some() || has_no_content(&pack.index, number)
        };
        let versions = of_other.versions.get(replaced.first_version as usize..);
        let is_version = |(one, other): (&Version, &Version)| {
            (&one.path, one.len, one.captured, one.state)
                == (&other.path, other.len, other.captured, other.state)
        };
        let copies = pack.index.copies.iter();
        let mut dictionaries = copies.map(|(of, _)| pack.index.dictionaries.get(*of as usize));
        replaced.frames.len() == pack.index.frames.len()
            && pack.index.frames.iter().zip(&replaced.frames).all(is_there)
            && (0..).zip(&replaced.frames).all(is_without_content)
            && versions.is_some_and(|versions| {
                versions.len() >= pack.index.versions.len()
                    && pack.index.versions.iter().zip(versions).all(is_version)
            })
            && dictionaries.all(|id| id.is_some_and(|id| of_other.copy_of(*id).is_some()))
    }
}

/// Returns the length of the frames with features and summaries of a pack, in bytes.
fn side_len(index: &PackIndex) -> usize {
    let frames = [index.features, index.summaries].into_iter().flatten();
    let frames = frames.filter_map(|frame| index.frames.get(frame as usize));
    frames.map(|frame| frame.len as usize).sum()
}

/// Returns whether a frame has no content of files.
fn has_no_content(index: &PackIndex, number: u32) -> bool {
    let mut copies = index.copies.iter();
    [index.features, index.summaries].contains(&Some(number))
        || copies.any(|(_, frame)| *frame == number)
}

impl MovedContent {
    /// Adds everything of a pack to the one that is being written.
    fn add_pack(&mut self, packer: &mut Packer<'_>, number: u32) -> Result<(), Error> {
        let archive = packer.archive();
        let path = archive.pack_path(number);
        let pack = &archive.catalogue.packs[number as usize];
        let (id, index) = (pack.id, pack.index.clone());
        let features = archive.features(number);
        let mut frames = Vec::new();
        for (frame, of) in (0..).zip(&index.frames) {
            if has_no_content(&index, frame) {
                frames.push(None);
                continue;
            }
            // Not through the cache: each frame is needed once, and would drive out those that prefixes need.
            let content = packer.archive().read_frame(number, frame).at(&path)?;
            let place = match &of.coding {
                Coding::Prefix(slices) => {
                    let (slices, prefix) =
                        self.prefix(packer.archive(), number, slices).at(&path)?;
                    packer.add_repeated(&content, &slices, &prefix)?
                }
                _ => packer.add_content(&content, of.is_lines)?,
            };
            self.frames.insert((number, frame), place);
            frames.push(Some(place));
        }
        for (feature, place) in features {
            if let Some(place) = moved_place(&frames, place) {
                packer.add_feature(feature, place);
            }
        }
        for (of, frame) in &index.copies {
            if let Some(id) = index.dictionaries.get(*of as usize) {
                let bytes = packer.archive().read_frame(number, *frame).at(&path)?;
                packer.add_copy(*id, &bytes);
            }
        }
        let first_version = self.versions.len() as u32;
        for (version, of) in (0..).zip(&index.versions) {
            let id = VersionId {
                pack: number,
                version,
            };
            let summary = packer.archive().summary(id).unwrap_or_default();
            let moved = self.moved_version(packer, number, of, &frames);
            let moved = moved.ok_or_else(|| {
                let what = "the index of a pack is damaged; it is not joined with others";
                Error::new(ErrorKind::Damaged(what.into()), &path)
            })?;
            self.versions
                .insert(id, packer.add_version(moved, &summary));
        }
        // The new pack takes over the packs that this one replaced: another machine may still have them.
        for earlier in &index.replaces {
            let places = earlier.frames.iter();
            let places = places.map(|place| place.and_then(|place| moved_place(&frames, place)));
            packer.replace(Replaced {
                pack: earlier.pack,
                first_version: first_version.saturating_add(earlier.first_version),
                frames: places.collect(),
            });
        }
        packer.replace(Replaced {
            pack: id,
            first_version,
            frames,
        });
        Ok(())
    }

    /// Returns the slices of a prefix, where they are now, and their content.
    fn prefix(&self, archive: &Archive, pack: u32, slices: &[Slice]) -> io::Result<SourcedPrefix> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the index is damaged");
        let (mut moved, mut prefix) = (Vec::new(), Vec::new());
        for slice in slices {
            let place =
                archive
                    .catalogue
                    .referred_place(pack, slice.pack, slice.frame, slice.start);
            let (of, frame, start) = place.ok_or_else(damaged)?;
            let content = archive.content(of, frame)?;
            let end = (start as usize).checked_add(slice.len as usize);
            // The prefix must have the same bytes as before, or the frame decompresses to others.
            let part = end.and_then(|end| content.get(start as usize..end));
            prefix.extend(part.ok_or_else(damaged)?);
            moved.push(match self.frames.get(&(of, frame)) {
                Some(place) => {
                    let start = place.start.checked_add(start).ok_or_else(damaged)?;
                    let frame = place.frame;
                    (
                        None,
                        Slice {
                            frame,
                            start,
                            ..*slice
                        },
                    )
                }
                None => (
                    Some(of),
                    Slice {
                        frame,
                        start,
                        ..*slice
                    },
                ),
            });
        }
        Ok((moved, prefix))
    }

    /// Returns a version as it is in the pack that is being written.
    fn moved_version(
        &self,
        packer: &mut Packer<'_>,
        pack: u32,
        version: &Version,
        frames: &[Option<FramePosition>],
    ) -> Option<Version> {
        let before = match version.before {
            None => None,
            Some(before) => {
                let catalogue = &packer.archive().catalogue;
                let id = catalogue.referred_version(pack, before.pack, before.version)?;
                let (pack, version) = match self.versions.get(&id) {
                    Some(version) => (0, *version),
                    None => (packer.refer_to(id.pack), id.version),
                };
                Some(BaseVersion {
                    pack,
                    version,
                    ..before
                })
            }
        };
        let extents = version.extents.iter().map(|extent| {
            let place = FramePosition {
                frame: extent.frame,
                start: extent.start,
            };
            let place = moved_place(frames, place)?;
            Some(Extent {
                frame: place.frame,
                start: place.start,
                ..*extent
            })
        });
        Some(Version {
            before,
            extents: extents.collect::<Option<_>>()?,
            ..version.clone()
        })
    }
}

/// Returns where a place in a frame of the old pack is now.
fn moved_place(frames: &[Option<FramePosition>], place: FramePosition) -> Option<FramePosition> {
    let moved = (*frames.get(place.frame as usize)?)?;
    Some(FramePosition {
        frame: moved.frame,
        start: moved.start.checked_add(place.start)?,
    })
}
