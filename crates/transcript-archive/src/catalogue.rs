//! Everything that the packs say about themselves, in memory and in one file.
//!
//! The file has no authority: it is the indexes of the packs, one after another, and what it lacks is read
//! from the packs. So it never conflicts with that of another machine, and can be lost.

use std::collections::{BTreeMap, HashMap};
use std::io;

use transcript_storage::{Disk, Metadata};

use crate::error::{AtPath, Error};
use crate::files::{append_all, remove_if_there};
use crate::layout::Layout;
use crate::limits::MAX_VERSION_CHAIN;
use crate::pack;
use crate::record::{PackId, PackIndex, Replaced, Version, hash};

/// The length of the header of a section: the name of the pack, the length, and a checksum of both and of
/// the start of the section, which has a checksum of the rest.
const HEADER_LEN: usize = 16 + 8 + CHECKSUM_LEN;
const CHECKSUM_LEN: usize = 8;
/// The length of the part of the section that is in the checksum.
const CHECKED_START_LEN: usize = 32;
/// The maximum length of a catalogue, in bytes. A longer one is not read.
const MAX_CATALOGUE_LEN: usize = 512 << 20;

/// The packs, and the versions of files in them.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) packs: Vec<Pack>,
    by_id: HashMap<PackId, u32>,
    /// The packs of which another one has everything: its number, and that of its entry for them.
    replaced: HashMap<PackId, (u32, u32)>,
    /// The versions of each file, oldest first.
    pub(crate) files: BTreeMap<String, Vec<VersionId>>,
    /// Whether the file has all packs.
    is_complete: bool,
    /// The length of the part of the file that is whole.
    end: u64,
    /// The errors of unreadable parts.
    pub(crate) problems: Vec<Error>,
}

/// A pack.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) id: PackId,
    pub(crate) index: PackIndex,
    /// Whether its file is in the folder.
    pub(crate) is_there: bool,
    /// Its properties, by the list of a bucket; `None` on this machine.
    pub(crate) listed: Option<Metadata>,
}

/// A version of a file: the number of the pack, and its own in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VersionId {
    pub(crate) pack: u32,
    pub(crate) version: u32,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its offset in the file.
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// The number of line feeds before it.
    pub(crate) lines_before: u64,
    /// The number of line feeds in it; 0 where that is not known.
    pub(crate) lines: u64,
    /// Pack, frame, and offset in its content; `None` if the pack that has it is unknown.
    pub(crate) place: Option<(u32, u32, u32)>,
}

impl Piece {
    /// Returns the offset after it.
    pub(crate) fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

impl Catalogue {
    /// Reads the catalogue, and the indexes of packs that it lacks.
    pub(crate) fn read(disk: &dyn Disk, store: &dyn Disk, layout: &Layout) -> Result<Self, Error> {
        let mut catalogue = Self::default();
        let path = layout.catalogue();
        let mut damaged = false;
        match disk.read(&path, MAX_CATALOGUE_LEN) {
            Ok(bytes) => damaged = catalogue.read_sections(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&path, error)),
        }
        let names = layout.packs_on(store)?;
        catalogue.is_complete = !damaged;
        for (id, listed) in names {
            // On a file system a list may be older than the file, and a request costs nothing.
            let listed = listed.filter(|_| layout.in_bucket);
            if let Some(number) = catalogue.by_id.get(&id) {
                let pack = &mut catalogue.packs[*number as usize];
                (pack.is_there, pack.listed) = (true, listed);
                continue;
            }
            catalogue.is_complete = false;
            // An encrypted pack of another machine: its index cannot be read without a key.
            if layout.encryption.is_sealed() {
                continue;
            }
            let path = layout.pack(id);
            let read = layout.open_pack(store, id, listed.as_ref());
            let read = read.and_then(|file| pack::read(&*file));
            match read {
                Ok(index) => {
                    catalogue.add(id, index, true);
                    catalogue
                        .packs
                        .last_mut()
                        .into_iter()
                        .for_each(|pack| pack.listed = listed);
                }
                Err(error) => catalogue.problems.push(Error::io(&path, error)),
            }
        }
        catalogue.find_files();
        Ok(catalogue)
    }

    /// Reads the sections of a catalogue; returns whether it is damaged.
    fn read_sections(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let Some((header, rest)) = bytes.split_at_checked(HEADER_LEN) else {
                return true;
            };
            let (mut id, mut len) = ([0; 16], [0; 8]);
            id.copy_from_slice(&header[..16]);
            len.copy_from_slice(&header[16..24]);
            let len = usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX);
            let Some((section, rest)) = rest.split_at_checked(len) else {
                return true;
            };
            // After a wrong checksum the length is not certain either, so all sections after it are read from their
            // packs.
            if header != entry(PackId(id), section) {
                return true;
            }
            let Ok(index) = pack::read_section(section) else {
                return true;
            };
            // Two captures may have appended the same pack.
            if !self.by_id.contains_key(&PackId(id)) {
                self.add(PackId(id), index, false);
            }
            self.end += (HEADER_LEN + len) as u64;
            bytes = rest;
        }
        false
    }

    fn add(&mut self, id: PackId, index: PackIndex, is_there: bool) {
        self.by_id.insert(id, self.packs.len() as u32);
        self.packs.push(Pack {
            id,
            index,
            is_there,
            listed: None,
        });
    }

    /// Returns whether the file has all packs.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Finds the versions of each file, and sorts them by the time of their capture. Two machines may have replaced
    /// the same packs, each by its own.
    fn find_files(&mut self) {
        for (number, pack) in (0..).zip(&self.packs) {
            if pack.is_there {
                for (entry, replaced) in (0..).zip(&pack.index.replaces) {
                    self.replaced.insert(replaced.pack, (number, entry));
                }
            }
        }
        for number in 0..self.packs.len() as u32 {
            if !self.is_replaced(number) {
                self.add_files(number);
            }
        }
        let packs = &self.packs;
        let version = |id: &VersionId| {
            let pack = &packs[id.pack as usize];
            (pack, &pack.index.versions[id.version as usize])
        };
        for versions in self.files.values_mut() {
            versions.sort_by_key(|id| {
                let (pack, of) = version(id);
                (of.captured, pack.index.captured, pack.id, id.version)
            });
            // After a repack on two machines, both packs have the same version.
            versions.dedup_by(|one, other| {
                let (one, other) = (version(one).1, version(other).1);
                (one.captured, one.len, one.state) == (other.captured, other.len, other.state)
            });
        }
    }

    /// Adds the versions of a pack to those of their files.
    fn add_files(&mut self, pack: u32) {
        let versions = &self.packs[pack as usize].index.versions;
        for (version, file) in (0..).zip(versions) {
            let id = VersionId { pack, version };
            match self.files.get_mut(&file.path) {
                Some(versions) => versions.push(id),
                None => drop(self.files.insert(file.path.clone(), vec![id])),
            }
        }
    }

    /// Returns whether another pack has everything of a pack.
    pub(crate) fn is_replaced(&self, pack: u32) -> bool {
        let pack = self.packs.get(pack as usize);
        pack.is_some_and(|pack| self.replaced.contains_key(&pack.id))
    }

    /// Adds a pack that was just written, and its section to the file. Without the file, or after an error, the next
    /// reader finds the pack all the same.
    pub(crate) fn append(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        id: PackId,
        index: PackIndex,
        section: &[u8],
    ) -> Result<(), Error> {
        self.add(id, index, true);
        self.add_files(self.packs.len() as u32 - 1);
        let bytes = [&entry(id, section)[..], section].concat();
        let path = layout.catalogue();
        if !self.is_complete {
            return self.write(disk, layout);
        }
        let append = || -> io::Result<()> {
            let file = disk.open(&path, true)?.file;
            // A killed capture left half of a section.
            if file.status()?.len != self.end {
                file.truncate(self.end)?;
            }
            append_all(&*file, &bytes)?;
            file.sync()
        };
        let appended = append();
        // After an error the end of the file is unknown, so the next append writes all of it.
        self.is_complete = appended.is_ok();
        self.end += bytes.len() as u64;
        appended.at(&path)
    }

    /// Writes the whole file again.
    pub(crate) fn write(&mut self, disk: &dyn Disk, layout: &Layout) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for (number, pack) in (0..).zip(&self.packs) {
            // Nothing refers to it any more.
            if self.is_replaced(number) && !pack.is_there {
                continue;
            }
            let section = pack::section(&pack.index).at(&layout.catalogue())?;
            bytes.extend(entry(pack.id, &section));
            bytes.extend(section);
        }
        let (path, new) = (layout.catalogue(), layout.new_catalogue());
        let write = || -> io::Result<()> {
            remove_if_there(disk, &new)?;
            let file = disk.open(&new, true)?.file;
            append_all(&*file, &bytes)?;
            file.sync()?;
            drop(file);
            disk.rename(&new, &path)
        };
        write().at(&path).map_err(|error| {
            // The old one stays. If the rename did happen, there is nothing to remove.
            match remove_if_there(disk, &new).at(&new) {
                Ok(()) => error,
                Err(left) => error.with_left(left),
            }
        })?;
        self.end = bytes.len() as u64;
        self.is_complete = true;
        Ok(())
    }

    /// Returns a version.
    pub(crate) fn version(&self, id: VersionId) -> Option<&Version> {
        let pack = self.packs.get(id.pack as usize)?;
        pack.index.versions.get(id.version as usize)
    }

    /// Returns the pack to which a pack refers by `number`.
    fn referred(&self, pack: u32, number: u32) -> Option<PackId> {
        let pack = self.packs.get(pack as usize)?;
        match number.checked_sub(1) {
            None => Some(pack.id),
            Some(number) => pack.index.packs.get(number as usize).copied(),
        }
    }

    /// Returns the pack that has everything of another one, and its entry for that.
    pub(crate) fn replaced(&self, id: PackId) -> Option<(u32, &Replaced)> {
        let (pack, entry) = *self.replaced.get(&id)?;
        let index = &self.packs.get(pack as usize)?.index;
        Some((pack, index.replaces.get(entry as usize)?))
    }

    /// Returns the version to which a pack refers by the number of a pack and its own in that.
    pub(crate) fn referred_version(
        &self,
        pack: u32,
        number: u32,
        version: u32,
    ) -> Option<VersionId> {
        let id = self.referred(pack, number)?;
        match self.replaced(id) {
            Some((pack, replaced)) => Some(VersionId {
                pack,
                version: replaced.first_version.checked_add(version)?,
            }),
            None => Some(VersionId {
                pack: *self.by_id.get(&id)?,
                version,
            }),
        }
    }

    /// Returns the pack, the frame, and the offset in its content to which a pack refers by the number of a pack and those in
    /// that.
    pub(crate) fn referred_place(
        &self,
        pack: u32,
        number: u32,
        frame: u32,
        start: u32,
    ) -> Option<(u32, u32, u32)> {
        let id = self.referred(pack, number)?;
        match self.replaced(id) {
            Some((pack, replaced)) => {
                let place = (*replaced.frames.get(frame as usize)?)?;
                Some((pack, place.frame, place.start.checked_add(start)?))
            }
            None => Some((*self.by_id.get(&id)?, frame, start)),
        }
    }

    /// Returns the newest version of a file.
    pub(crate) fn newest(&self, path: &str) -> Option<VersionId> {
        self.files.get(path)?.last().copied()
    }

    /// Returns the newest version of a file that was captured until a time, in milliseconds since 1970; without one, of all.
    pub(crate) fn newest_until(&self, path: &str, until: Option<i64>) -> Option<VersionId> {
        let Some(until) = until else {
            return self.newest(path);
        };
        let versions = self.files.get(path)?.iter().rev();
        let is_early = |id: &&VersionId| {
            let version = self.version(**id);
            version.is_some_and(|version| version.captured <= until)
        };
        versions.copied().find(|id| is_early(&id))
    }

    /// Returns the parts of a version, in order.
    ///
    /// # Errors
    /// The version continues too many others, or more of one than it has. [`Archive::pieces`] names its pack.
    ///
    /// [`Archive::pieces`]: crate::Archive::pieces
    pub(crate) fn pieces(&self, id: VersionId) -> Result<Vec<Piece>, String> {
        // The versions that it continues, itself first, and how much of each counts.
        let mut chain = Vec::new();
        let mut next = Some((id, u64::MAX));
        let mut missing = None;
        while let Some((id, keep)) = next {
            let Some(version) = self.version(id) else {
                missing = Some(keep);
                break;
            };
            if keep > version.len && !chain.is_empty() {
                return Err(format!(
                    "a version continues {keep} bytes of one that has {}",
                    version.len
                ));
            }
            chain.push((id, keep));
            next = version.before.map(|before| {
                let found = self.referred_version(id.pack, before.pack, before.version);
                // A number that no pack has: what is missing is named where it is used.
                let found = found.unwrap_or(VersionId {
                    pack: u32::MAX,
                    version: 0,
                });
                (found, before.keep.min(keep))
            });
            // Versions continue earlier ones; forged ones may not.
            if chain.len() >= MAX_VERSION_CHAIN && next.is_some() {
                return Err(format!(
                    "a version and those that it continues are more than {MAX_VERSION_CHAIN}, which is the limit"
                ));
            }
        }
        let mut pieces = Vec::new();
        let mut at = 0u64;
        if let Some(len) = missing.filter(|len| *len > 0) {
            pieces.push(Piece {
                at,
                len,
                lines_before: 0,
                lines: 0,
                place: None,
            });
            at = len;
        }
        for (id, keep) in chain.into_iter().rev() {
            let Some(version) = self.version(id) else {
                continue;
            };
            let mut lines;
            let mut start = version.before.map_or(0, |before| before.keep);
            lines = version.before.map_or(0, |before| before.lines);
            for extent in &version.extents {
                let left = keep.saturating_sub(start);
                let len = u64::from(extent.len).min(left);
                start = start.saturating_add(extent.len.into());
                if len == 0 {
                    break;
                }
                pieces.push(Piece {
                    at,
                    len,
                    lines_before: lines,
                    lines: extent.lines.into(),
                    place: Some((id.pack, extent.frame, extent.start)),
                });
                at = at.saturating_add(len);
                lines = lines.saturating_add(extent.lines.into());
            }
        }
        Ok(pieces)
    }

    /// Returns whether a version may be continued: not if too many others are continued by it.
    pub(crate) fn may_be_continued(&self, mut id: VersionId) -> bool {
        for _ in 1..MAX_VERSION_CHAIN {
            let before = self.version(id).and_then(|version| version.before);
            let Some(before) = before else {
                return true;
            };
            match self.referred_version(id.pack, before.pack, before.version) {
                Some(before) => id = before,
                None => return true,
            }
        }
        false
    }
}

/// Returns the header of the section of a pack.
fn entry(id: PackId, section: &[u8]) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..16].copy_from_slice(&id.0);
    header[16..24].copy_from_slice(&(section.len() as u64).to_le_bytes());
    let start = &section[..section.len().min(CHECKED_START_LEN)];
    let checksum = hash(&[&header[..24], start].concat());
    header[24..].copy_from_slice(&checksum[..CHECKSUM_LEN]);
    header
}
