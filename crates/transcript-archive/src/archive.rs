//! An archive that is open.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transcript_storage::{Disk, File, ReadFile, RealDisk};

use crate::catalogue::{Catalogue, Piece, VersionId, remove_if_there};
use crate::error::{AtPath, Error, ErrorKind};
use crate::frame::{Dictionary, decompress, decompress_after};
use crate::layout::Layout;
use crate::record::{Coding, DictionaryId, Place, Version, hash};

/// The version of the format.
const FORMAT: u32 = 1;
/// The longest marker file that is read, in bytes.
const MAX_MARKER: usize = 4096;
/// So much content of frames is kept in memory, in bytes.
const CACHE: usize = 24 << 20;
/// So many packs are kept open.
const OPEN: usize = 64;

/// Sessions as they were each time they were captured (docs/archive.md).
pub struct Archive {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) catalogue: Catalogue,
    dictionaries: Mutex<HashMap<DictionaryId, Arc<Dictionary>>>,
    contents: Mutex<Contents>,
    open: Mutex<HashMap<u32, Arc<dyn ReadFile>>>,
}

/// The content of frames that were read last.
#[derive(Default)]
struct Contents {
    /// By pack and frame.
    frames: HashMap<(u32, u32), Used>,
    bytes: usize,
    clock: u64,
}

/// The content of a frame, with the time of the last use.
type Used = (Arc<[u8]>, u64);

impl Contents {
    fn get(&mut self, key: (u32, u32)) -> Option<Arc<[u8]>> {
        self.clock += 1;
        let (content, used) = self.frames.get_mut(&key)?;
        *used = self.clock;
        Some(Arc::clone(content))
    }

    fn insert(&mut self, key: (u32, u32), content: &Arc<[u8]>) {
        self.clock += 1;
        let old = self.frames.insert(key, (Arc::clone(content), self.clock));
        self.bytes += content.len();
        self.bytes -= old.map_or(0, |(old, _)| old.len());
        while self.bytes > CACHE && self.frames.len() > 1 {
            let oldest = self.frames.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            if let Some((gone, _)) = self.frames.remove(&oldest) {
                self.bytes -= gone.len();
            }
        }
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("folder", &self.layout.folder)
            .finish_non_exhaustive()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread that panicked left is a cache that can be read.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Archive {
    /// Opens the archive in a folder, for reading and for capturing.
    ///
    /// # Errors
    /// [`ErrorKind::NoArchive`], [`ErrorKind::Newer`], or when the system fails to read. Packs that cannot be
    /// read are [problems](Self::problems).
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_on(Arc::new(RealDisk), folder)
    }

    /// Opens the archive in a folder of `disk`, as [`open`](Self::open) does.
    ///
    /// # Errors
    /// As there.
    pub fn open_on(disk: Arc<dyn Disk>, folder: &Path) -> Result<Self, Error> {
        let layout = Layout {
            folder: folder.to_owned(),
        };
        let marker = layout.marker();
        let text = match disk.read(&marker, MAX_MARKER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::new(ErrorKind::NoArchive, folder));
            }
            text => text.at(&marker)?,
        };
        match format_of(&text) {
            Some(FORMAT) => {}
            Some(version) => return Err(Error::new(ErrorKind::Newer(version), folder)),
            None => {
                let what = "the file does not say which version of the format the archive has";
                return Err(Error::new(ErrorKind::Damaged(what.into()), &marker));
            }
        }
        let catalogue = Catalogue::read(&*disk, &layout)?;
        Ok(Self {
            disk,
            layout,
            catalogue,
            dictionaries: Mutex::default(),
            contents: Mutex::default(),
            open: Mutex::default(),
        })
    }

    /// Opens the archive in a folder, or creates one if the folder is missing or empty.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`ErrorKind::OtherFolder`].
    pub fn open_or_create(folder: &Path) -> Result<Self, Error> {
        Self::open_or_create_on(Arc::new(RealDisk), folder)
    }

    /// Opens or creates an archive on `disk`, as [`open_or_create`](Self::open_or_create) does.
    ///
    /// # Errors
    /// As there.
    pub fn open_or_create_on(disk: Arc<dyn Disk>, folder: &Path) -> Result<Self, Error> {
        match Self::open_on(Arc::clone(&disk), folder) {
            Err(error) if *error.kind() == ErrorKind::NoArchive => {}
            opened => return opened,
        }
        let is_empty = match disk.list(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(Error::io(folder, error)),
        };
        if !is_empty {
            return Err(Error::new(ErrorKind::OtherFolder, folder));
        }
        let layout = Layout {
            folder: folder.to_owned(),
        };
        match disk.write_new(&layout.marker(), marker().as_bytes()) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => written.at(&layout.marker())?,
        }
        Self::open_on(disk, folder)
    }

    /// Returns the folder of the archive.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// Returns what could not be read when the archive was opened. What else is damaged is found when it is read,
    /// or by [`check`](Self::check).
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.catalogue.problems
    }

    /// Takes the lock of the archive, which is held until the file is dropped.
    pub(crate) fn lock(&self) -> Result<Arc<dyn File>, Error> {
        let path = self.layout.lock();
        let file = self.disk.open(&path, true).at(&path)?.file;
        match file.try_lock().at(&path)? {
            true => Ok(file),
            false => Err(Error::new(ErrorKind::Busy, &self.layout.folder)),
        }
    }

    /// Reads the catalogue again if other processes may have changed it.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        self.catalogue = Catalogue::read(&*self.disk, &self.layout)?;
        lock(&self.open).clear();
        *lock(&self.contents) = Contents::default();
        Ok(())
    }

    pub(crate) fn version(&self, id: VersionId) -> Option<&Version> {
        self.catalogue.version(id)
    }

    /// Returns the path of a pack, for errors.
    pub(crate) fn pack_path(&self, pack: u32) -> PathBuf {
        match self.catalogue.packs.get(pack as usize) {
            Some(pack) => self.layout.pack(pack.id),
            None => self.layout.folder.clone(),
        }
    }

    fn open_pack(&self, pack: u32) -> io::Result<Arc<dyn ReadFile>> {
        if let Some(file) = lock(&self.open).get(&pack) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open_to_read(&self.pack_path(pack))?;
        let mut open = lock(&self.open);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(pack, Arc::clone(&file));
        Ok(file)
    }

    /// Returns a dictionary: its own file, or a copy in a pack.
    pub(crate) fn dictionary(&self, id: DictionaryId) -> io::Result<Arc<Dictionary>> {
        if let Some(dictionary) = lock(&self.dictionaries).get(&id) {
            return Ok(Arc::clone(dictionary));
        }
        let of_file = self.disk.read(&self.layout.dictionary(id), 64 << 20);
        let of_file = of_file.map(Dictionary::new);
        let found = of_file.ok().filter(|dictionary| dictionary.id == id);
        let found = found.or_else(|| self.copy_of(id));
        let Some(found) = found else {
            let what = "its dictionary is missing or damaged, and no pack has a copy";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let found = Arc::new(found);
        lock(&self.dictionaries).insert(id, Arc::clone(&found));
        Ok(found)
    }

    fn copy_of(&self, id: DictionaryId) -> Option<Dictionary> {
        let packs = (0..).zip(&self.catalogue.packs);
        let mut copies = packs.filter_map(|(number, pack)| {
            let content = self.content(number, pack.index.copy_of(id)?);
            content.ok().map(|bytes| Dictionary::new(bytes.to_vec()))
        });
        copies.find(|copy| copy.id == id)
    }

    /// Adds a dictionary: its file first, then the packs that need it.
    pub(crate) fn add_dictionary(&self, bytes: Vec<u8>) -> Result<Arc<Dictionary>, Error> {
        let dictionary = Arc::new(Dictionary::new(bytes));
        let path = self.layout.dictionary(dictionary.id);
        match self.disk.write_new(&path, &dictionary.bytes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => written.at(&path)?,
        }
        lock(&self.dictionaries).insert(dictionary.id, Arc::clone(&dictionary));
        Ok(dictionary)
    }

    /// Returns the content of a frame.
    pub(crate) fn content(&self, pack: u32, frame: u32) -> io::Result<Arc<[u8]>> {
        if let Some(content) = lock(&self.contents).get((pack, frame)) {
            return Ok(content);
        }
        let content: Arc<[u8]> = self.read_frame(pack, frame)?.into();
        lock(&self.contents).insert((pack, frame), &content);
        Ok(content)
    }

    /// Reads a frame, and checks its hash.
    pub(crate) fn read_frame(&self, pack: u32, frame: u32) -> io::Result<Vec<u8>> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
        let index = self.catalogue.packs.get(pack as usize);
        let index = &index.ok_or_else(|| damaged("a pack is missing"))?.index;
        let found = index.frames.get(frame as usize);
        let found =
            found.ok_or_else(|| damaged("the index names a frame that it does not have"))?;
        let file = self.open_pack(pack)?;
        let end = found.at.saturating_add(found.stored.into());
        if file.metadata()?.len < end {
            return Err(damaged("the pack is cut off"));
        }
        let mut stored = vec![0; found.stored as usize];
        if file.fill(found.at, &mut stored)? < stored.len() {
            return Err(damaged("the pack is cut off"));
        }
        let len = found.len as usize;
        let content = match &found.coding {
            Coding::Plain => decompress(&stored, len, None),
            Coding::Dictionary(number) => {
                let id = index.dictionaries.get(*number as usize);
                let id = id
                    .ok_or_else(|| damaged("the index names a dictionary that it does not have"))?;
                decompress(&stored, len, Some(&*self.dictionary(*id)?))
            }
            Coding::Prefix(slices) => {
                let mut prefix = Vec::new();
                for slice in slices {
                    let place =
                        self.catalogue
                            .referred_place(pack, slice.pack, slice.frame, slice.start);
                    let (pack, frame, start) =
                        place.ok_or_else(|| damaged("a pack that it continues is missing"))?;
                    if self.is_with_prefix(pack, frame) {
                        return Err(damaged("the index is damaged"));
                    }
                    let base = self.content(pack, frame)?;
                    let (start, len) = (start as usize, slice.len as usize);
                    let part = base.get(start..start + len);
                    prefix.extend(part.ok_or_else(|| damaged("the index is damaged"))?);
                }
                decompress_after(&prefix, &stored, len)
            }
        }?;
        if hash(&content) != found.hash {
            return Err(damaged("the content of a frame is not what its hash says"));
        }
        Ok(content)
    }

    pub(crate) fn is_with_prefix(&self, pack: u32, frame: u32) -> bool {
        let pack = self.catalogue.packs.get(pack as usize);
        let frame = pack.and_then(|pack| pack.index.frames.get(frame as usize));
        frame.is_none_or(|frame| matches!(frame.coding, Coding::Prefix(_)))
    }

    /// Reads a part of a version into `buffer`, at most to the end of a piece. Returns 0 at the end.
    pub(crate) fn read_pieces(
        &self,
        pieces: &[Piece],
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let at = pieces.partition_point(|piece| piece.end() <= offset);
        let Some(piece) = pieces.get(at) else {
            return Ok(0);
        };
        let within = offset - piece.at;
        let len = usize::try_from(piece.len - within).unwrap_or(usize::MAX);
        let len = len.min(buffer.len());
        let Some((pack, frame, start)) = piece.place else {
            let what = "a pack with a part of the session is missing; `transcript verify --archive` names what is lost";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let content = self.content(pack, frame)?;
        let start = start as usize + within as usize;
        let Some(part) = content.get(start..start + len) else {
            let what = "the index of a pack is damaged";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        buffer[..len].copy_from_slice(part);
        Ok(len)
    }

    /// Returns the features of lines of a pack, and where the lines are. What cannot be read only costs space.
    pub(crate) fn features(&self, pack: u32) -> Vec<([u8; 4], Place)> {
        let index = self.catalogue.packs.get(pack as usize);
        let frame = index.and_then(|pack| pack.index.features);
        let features = frame.and_then(|frame| self.content(pack, frame).ok());
        let features = features.unwrap_or_default();
        let kept = features.as_chunks::<4>().0.as_chunks::<3>().0.iter();
        kept.map(|[feature, frame, start]| {
            let (frame, start) = (u32::from_le_bytes(*frame), u32::from_le_bytes(*start));
            (*feature, Place { frame, start })
        })
        .collect()
    }

    /// Returns what the caller knows about a version.
    pub(crate) fn summary(&self, id: VersionId) -> Option<Vec<u8>> {
        let (start, len) = self.version(id)?.summary;
        let frame = self
            .catalogue
            .packs
            .get(id.pack as usize)?
            .index
            .summaries?;
        let summaries = self.content(id.pack, frame).ok()?;
        let (start, len) = (start as usize, len as usize);
        Some(summaries.get(start..start.checked_add(len)?)?.to_vec())
    }

    /// Removes what killed processes left. The caller has the lock.
    pub(crate) fn remove_stale(&self) -> Result<(), Error> {
        for path in [self.layout.new_pack(), self.layout.temporary("catalogue")] {
            remove_if_there(&*self.disk, &path).at(&path)?;
        }
        Ok(())
    }
}

/// The content of the file that makes a folder an archive. It is for people, too.
fn marker() -> String {
    format!(
        "{{\"format\":\"transcript-archive\",\"version\":{FORMAT},\"readWithoutTranscript\":\
         \"zstd -d -D dictionaries/ID.dict -c packs/ID.jsonl.zst\"}}\n"
    )
}

/// Returns the version in a marker.
fn format_of(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let rest = text.split_once("\"version\":")?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}
