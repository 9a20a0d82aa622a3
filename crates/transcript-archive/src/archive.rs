//! An archive that is open.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use transcript_storage::{Disk, File, ReadFile, Reader, RealDisk, Space, folder_of};

use crate::catalogue::{Catalogue, Piece, VersionId};
use crate::encryption::{Encryption, Identities, Recipient};
use crate::error::{AtPath, Error, ErrorKind};
use crate::files::{lock, remove_if_there};
use crate::frame::{Dictionary, decompress, decompress_after};
use crate::layout::Layout;
use crate::record::{Coding, DictionaryId, FramePosition, PackId, Version, hash};

/// The format that a marker file names.
const FORMAT: &str = "transcript-archive";
/// The version of the format.
const FORMAT_VERSION: u32 = 1;
/// The maximum length of a marker file, in bytes.
const MAX_MARKER_LEN: usize = 4096;
/// The maximum total size of the cached content of frames, in bytes.
const MAX_CACHED_BYTES: usize = 24 << 20;
/// The maximum length of the summaries of a pack that are kept on this machine, in bytes.
const MAX_SUMMARIES_LEN: usize = 64 << 20;
/// The maximum length of a dictionary, in bytes.
const MAX_DICTIONARY_LEN: usize = 64 << 20;
/// The minimum of free space that is left on a disk, in bytes.
const MIN_FREE_SPACE: u64 = 64 << 20;
/// The maximum number of packs that are kept open.
const MAX_OPEN_PACKS: usize = 64;

/// The buckets in which archives may be.
pub trait Buckets: Send + Sync {
    /// Returns whether a folder is in a bucket.
    fn has(&self, folder: &Path) -> bool;

    /// Opens the disk of the bucket in which a folder is.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, folder: &Path) -> io::Result<Arc<dyn Disk>>;
}

/// Options for opening an archive.
#[derive(Clone)]
pub struct ArchiveOptions {
    disk: Arc<dyn Disk>,
    buckets: Option<Arc<dyn Buckets>>,
    machine: Option<String>,
    recipients: Vec<Recipient>,
    identities: Option<Identities>,
    local: Option<PathBuf>,
}

impl fmt::Debug for ArchiveOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveOptions")
            .field("recipients", &self.recipients)
            .field("identities", &self.identities)
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ArchiveOptions {
    /// Opens an archive on the disk of this machine. One that is created is not encrypted.
    #[must_use]
    pub fn new() -> Self {
        Self {
            disk: Arc::new(RealDisk),
            buckets: None,
            machine: None,
            recipients: Vec::new(),
            identities: None,
            local: None,
        }
    }

    /// Opens it on another disk, on which the captured sessions are, too.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Opens archives in these buckets, too. Such an archive is written by several machines at once. It needs a
    /// [local folder](Self::local_folder), and a capture into it the name of the [machine](Self::machine).
    #[must_use]
    pub fn buckets(mut self, buckets: Arc<dyn Buckets>) -> Self {
        self.buckets = Some(buckets);
        self
    }

    /// Sets the name of this machine, under which an archive in a bucket has its sessions.
    #[must_use]
    pub fn machine(mut self, name: &str) -> Self {
        self.machine = Some(name.to_owned());
        self
    }

    /// Returns the name of this machine.
    pub(crate) fn machine_name(&self) -> Option<&str> {
        self.machine.as_deref()
    }

    /// Returns whether a folder is in a bucket. Nothing is opened.
    #[must_use]
    pub fn is_in_bucket(&self, folder: &Path) -> bool {
        let buckets = self.buckets.as_ref();
        buckets.is_some_and(|buckets| buckets.has(folder))
    }

    /// Returns the disk that has the folder of an archive.
    ///
    /// # Errors
    /// When the bucket cannot be opened.
    pub fn disk_of(&self, folder: &Path) -> io::Result<Arc<dyn Disk>> {
        match &self.buckets {
            Some(buckets) if buckets.has(folder) => buckets.open(folder),
            _ => Ok(Arc::clone(&self.disk)),
        }
    }

    /// Encrypts an archive that is created: only an identity for one of these public keys can read it. An existing archive
    /// keeps its own keys.
    #[must_use]
    pub fn encrypt_to(mut self, recipients: Vec<Recipient>) -> Self {
        self.recipients = recipients;
        self
    }

    /// Reads an encrypted archive with these. Without them sessions can be captured, and nothing else.
    #[must_use]
    pub fn identities(mut self, identities: Identities) -> Self {
        self.identities = Some(identities);
        self
    }

    /// Sets the folder for the parts of an archive in a bucket that are looked at often, and of an encrypted one those that captures need in the clear. It should be on a disk of this machine. If it
    /// is lost, everything is captured again, unless there is an identity.
    #[must_use]
    pub fn local_folder(mut self, folder: &Path) -> Self {
        self.local = Some(folder.to_owned());
        self
    }
}

/// Sessions as they were each time they were captured (docs/archive.md).
pub struct Archive {
    /// The disk of this machine: of the captured sessions, and of what is not in the folder of the archive.
    pub(crate) disk: Arc<dyn Disk>,
    /// The disk of the folder of the archive: the same, unless that is in a bucket.
    pub(crate) store: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) catalogue: Catalogue,
    dictionaries: Mutex<HashMap<DictionaryId, Arc<Dictionary>>>,
    contents: Mutex<FrameCache>,
    open: Mutex<HashMap<u32, Arc<dyn ReadFile>>>,
}

/// The content of frames that were read last.
#[derive(Default)]
struct FrameCache {
    /// By pack and frame.
    frames: HashMap<(u32, u32), CachedFrame>,
    bytes: usize,
    clock: u64,
}

/// The content of a frame, with the time of the last use.
type CachedFrame = (Arc<[u8]>, u64);

impl FrameCache {
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
        // The newest frame stays even if it is larger than the cache, as the caller reads it in many small parts.
        while self.bytes > MAX_CACHED_BYTES && self.frames.len() > 1 {
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

impl Archive {
    /// Opens the archive in a folder, for reading and for capturing.
    ///
    /// # Errors
    /// [`ErrorKind::NoArchive`], [`ErrorKind::Newer`], or when the system fails to read. Packs that cannot be
    /// read are [problems](Self::problems).
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_with(folder, &ArchiveOptions::new())
    }

    /// Opens the archive in a folder, as [`open`](Self::open) does, with these options.
    ///
    /// # Errors
    /// As there; [`ErrorKind::WrongKey`] and [`ErrorKind::NoLocalFolder`] if it is encrypted.
    pub fn open_with(folder: &Path, options: &ArchiveOptions) -> Result<Self, Error> {
        let store = options.disk_of(folder).at(folder)?;
        let disk = Arc::clone(&options.disk);
        let in_bucket = options.is_in_bucket(folder);
        let marker = Layout::new(folder).marker();
        let text = match store.read(&marker, MAX_MARKER_LEN) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::new(ErrorKind::NoArchive, folder));
            }
            text => text.at(&marker)?,
        };
        let damaged = |what: &str| Error::new(ErrorKind::Damaged(what.into()), &marker);
        let found = serde_json::from_slice::<Marker>(&text).map_err(|_| {
            damaged("the file does not say which version of the format the archive has")
        })?;
        // A newer format can have other packs, so it is neither read nor captured into.
        if found.version != FORMAT_VERSION {
            return Err(Error::new(ErrorKind::Newer(found.version), folder));
        }
        if !cfg!(feature = "encryption") && !found.recipients.is_empty() {
            return Err(Error::new(ErrorKind::NoEncryption, folder));
        }
        let recipients: Result<Vec<Recipient>, _> =
            found.recipients.iter().map(|key| key.parse()).collect();
        let encryption = Encryption {
            recipients: recipients.map_err(|_| damaged("a public key is damaged"))?,
            identities: options.identities.clone(),
        };
        let layout = if encryption.is_on() || in_bucket {
            let given = encryption.identities.as_ref();
            // Checked at once. Otherwise each pack would fail with an error that looks like damage.
            let is_other =
                |identities: &Identities| encryption.is_on() && !encryption.is_for(identities);
            if given.is_some_and(is_other) {
                return Err(Error::new(ErrorKind::WrongKey, folder));
            }
            // The name of a folder, which the file must not choose.
            let is_name = !found.id.is_empty() && found.id.bytes().all(|b| b.is_ascii_hexdigit());
            let local = options.local.as_ref().filter(|_| is_name);
            let local = local.ok_or_else(|| Error::new(ErrorKind::NoLocalFolder, folder))?;
            let local = local.join(&found.id);
            let machine = options.machine.as_deref().filter(|_| in_bucket);
            Layout::apart(folder, &local, encryption).in_bucket(in_bucket, machine)
        } else {
            Layout::new(folder)
        };
        let catalogue = Catalogue::read(&*disk, &*store, &layout)?;
        let mut archive = Self {
            disk,
            store,
            layout,
            catalogue,
            dictionaries: Mutex::default(),
            contents: Mutex::default(),
            open: Mutex::default(),
        };
        if in_bucket && !archive.catalogue.is_complete() {
            archive.keep_catalogue();
        }
        Ok(archive)
    }

    /// Keeps the indexes of the packs of a bucket on this machine. Else they are read the next time.
    fn keep_catalogue(&mut self) {
        let _ = self.disk.create_folder(folder_of(&self.layout.catalogue()));
        // Another process that captures keeps it itself.
        if let Ok(_lock) = self.lock() {
            let _ = self.catalogue.write(&*self.disk, &self.layout);
        }
    }

    /// Returns the name of the folder for the archive of one projects folder: it depends on the path alone.
    #[must_use]
    pub fn folder_name(root: &Path) -> String {
        let [a, b, c, d, ..] = hash(root.as_os_str().as_encoded_bytes());
        format!("archive-{a:02x}{b:02x}{c:02x}{d:02x}")
    }

    /// Returns the public keys to which the archive is encrypted; none if it is not.
    #[must_use]
    pub fn recipients(&self) -> &[Recipient] {
        &self.layout.encryption.recipients
    }

    /// Opens the archive in a folder, or creates one if the folder is missing or empty.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`ErrorKind::OtherFolder`].
    pub fn open_or_create(folder: &Path) -> Result<Self, Error> {
        Self::open_or_create_with(folder, &ArchiveOptions::new())
    }

    /// Opens or creates an archive, as [`open_or_create`](Self::open_or_create) does, with these options.
    ///
    /// # Errors
    /// As there; [`ErrorKind::OtherRecipients`] if it exists, and is encrypted to other keys or to none.
    pub fn open_or_create_with(folder: &Path, options: &ArchiveOptions) -> Result<Self, Error> {
        let disk = &*options.disk_of(folder).at(folder)?;
        match Self::open_with(folder, options) {
            Err(error) if *error.kind() == ErrorKind::NoArchive => {}
            Ok(archive) => {
                let recipients = &archive.layout.encryption.recipients;
                return if options.recipients.is_empty() || options.recipients == *recipients {
                    Ok(archive)
                } else {
                    Err(Error::new(ErrorKind::OtherRecipients, folder))
                };
            }
            opened => return opened,
        }
        let is_empty = match disk.list(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(Error::io(folder, error)),
        };
        let marker = Layout::new(folder).marker();
        if !is_empty {
            // Another process may have made it meanwhile.
            return if disk.exists(&marker) {
                Self::open_or_create_with(folder, options)
            } else {
                Err(Error::new(ErrorKind::OtherFolder, folder))
            };
        }
        let in_bucket = options.is_in_bucket(folder);
        let text = Marker::new(folder, &options.recipients, in_bucket).to_json();
        match disk.write_new(&marker, text.as_bytes()) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => written.at(&marker)?,
        }
        Self::open_with(folder, options)
    }

    /// Returns the folder of the archive.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// Returns the parts that could not be read when the archive was opened. What else is damaged is found when it is read,
    /// or by [`check`](Self::check).
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.catalogue.problems
    }

    /// Takes the lock of the archive, which is held until the file is dropped.
    pub(crate) fn lock(&self) -> Result<Arc<dyn File>, Error> {
        let path = self.layout.lock();
        let busy = || Error::new(ErrorKind::Busy, &self.layout.folder);
        let file = match self.disk.open(&path, true) {
            // Another process opens it, which also captures.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(busy()),
            opened => opened.at(&path)?.file,
        };
        if file.try_lock().at(&path)? {
            Ok(file)
        } else {
            Err(busy())
        }
    }

    /// Reads the catalogue again if other processes may have changed it.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        self.catalogue = Catalogue::read(&*self.disk, &*self.store, &self.layout)?;
        // Numbers of packs are positions in the catalogue, which another process may have written in another order.
        lock(&self.open).clear();
        *lock(&self.contents) = FrameCache::default();
        Ok(())
    }

    pub(crate) fn version(&self, id: VersionId) -> Option<&Version> {
        self.catalogue.version(id)
    }

    /// Returns the parts of a version, in order. An error names its pack.
    pub(crate) fn pieces(&self, id: VersionId) -> io::Result<Vec<Piece>> {
        self.catalogue.pieces(id).map_err(|what| {
            let path = self.pack_path(id.pack);
            let what = format!("{}: version {}: {what}", path.display(), id.version);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
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
        let found = self.catalogue.packs.get(pack as usize);
        let found = found.ok_or(io::ErrorKind::NotFound)?;
        let listed = found.listed.as_ref();
        let file = self.layout.open_pack(&*self.store, found.id, listed)?;
        let mut open = lock(&self.open);
        // Closing all is rare and needs no order of use.
        if open.len() >= MAX_OPEN_PACKS {
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
        let of_file = self.dictionary_file(id).map(Dictionary::new);
        // Its name is the hash of its bytes, so a damaged file is noticed and a copy is used.
        let found = of_file.filter(|dictionary| dictionary.id == id);
        let found = found.or_else(|| self.copy_of(id));
        let Some(found) = found else {
            let what = "its dictionary is missing or damaged, and no pack has a copy";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let found = Arc::new(found);
        lock(&self.dictionaries).insert(id, Arc::clone(&found));
        Ok(found)
    }

    /// Reads the file of a dictionary: the unencrypted one first.
    pub(crate) fn dictionary_file(&self, id: DictionaryId) -> Option<Vec<u8>> {
        let [used, stored] = self.layout.dictionary(id);
        let known = self.disk.read(&used, MAX_DICTIONARY_LEN).ok();
        // A damaged one of this machine is as if there were none.
        let known = known.filter(|bytes| stored == used || Dictionary::id_of(bytes) == id);
        known.or_else(|| {
            let bytes = self.stored_dictionary(&stored)?;
            if self.layout.in_bucket && Dictionary::id_of(&bytes) == id {
                // Else it is read from the bucket the next time.
                let _ = self.disk.write_new(&used, &bytes);
            }
            Some(bytes)
        })
    }

    /// Reads the file of a dictionary in the archive.
    pub(crate) fn stored_dictionary(&self, path: &Path) -> Option<Vec<u8>> {
        let file = self.store.open_to_read(path).ok()?;
        let file = self.layout.encryption.open(file).ok()?;
        let len = usize::try_from(file.metadata().ok()?.len).ok();
        let mut bytes = vec![0; len.filter(|len| *len <= MAX_DICTIONARY_LEN)?];
        let read = file.fill(0, &mut bytes).ok()?;
        (read == bytes.len()).then_some(bytes)
    }

    fn copy_of(&self, id: DictionaryId) -> Option<Dictionary> {
        let packs = (0..).zip(&self.catalogue.packs);
        // A copy is in a frame without a dictionary, so reading it does not need the one that is missing.
        let mut copies = packs.filter_map(|(number, pack)| {
            let content = self.content(number, pack.index.copy_of(id)?);
            content.ok().map(|bytes| Dictionary::new(bytes.to_vec()))
        });
        copies.find(|copy| copy.id == id)
    }

    /// Adds a dictionary: its file first, then the packs that need it.
    pub(crate) fn add_dictionary(&self, bytes: Vec<u8>) -> Result<Arc<Dictionary>, Error> {
        let dictionary = Arc::new(Dictionary::new(bytes));
        let [used, stored] = self.layout.dictionary(dictionary.id);
        let write = |disk: &dyn Disk, path: &Path, bytes: &[u8]| match disk.write_new(path, bytes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            written => written.at(path),
        };
        if stored != used {
            let encryption = &self.layout.encryption;
            let sealed = encryption
                .is_on()
                .then(|| encryption.seal(&dictionary.bytes));
            let sealed = sealed.transpose().at(&stored)?;
            write(
                &*self.store,
                &stored,
                sealed.as_ref().unwrap_or(&dictionary.bytes),
            )?;
        }
        // After the file in the archive, which restores need. This one lets captures work without the key.
        write(&*self.disk, &used, &dictionary.bytes)?;
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
        // An index may state 64 MiB for a pack of a few bytes. Compared before the buffer is allocated.
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
                    // The packer never does this. A forged index could make a loop of frames that continue each other.
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
        // zstd also decompresses a frame with the wrong dictionary or prefix, to other bytes.
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
    pub(crate) fn features(&self, pack: u32) -> Vec<([u8; 4], FramePosition)> {
        let index = self.catalogue.packs.get(pack as usize);
        let frame = index.and_then(|pack| pack.index.features);
        let features = frame.and_then(|frame| self.content(pack, frame).ok());
        let features = features.unwrap_or_default();
        let kept = features.as_chunks::<4>().0.as_chunks::<3>().0.iter();
        kept.map(|[feature, frame, start]| {
            let (frame, start) = (u32::from_le_bytes(*frame), u32::from_le_bytes(*start));
            (*feature, FramePosition { frame, start })
        })
        .collect()
    }

    /// Returns the summary that the caller stored with a version.
    pub(crate) fn summary(&self, id: VersionId) -> Option<Vec<u8>> {
        let (start, len) = self.version(id)?.summary;
        let frame = self
            .catalogue
            .packs
            .get(id.pack as usize)?
            .index
            .summaries?;
        let summaries = self.summaries(id.pack, frame).ok()?;
        let (start, len) = (start as usize, len as usize);
        Some(summaries.get(start..start.checked_add(len)?)?.to_vec())
    }

    /// Returns the content of the frame with the summaries of a pack.
    fn summaries(&self, pack: u32, frame: u32) -> io::Result<Arc<[u8]>> {
        if let Some(content) = lock(&self.contents).get((pack, frame)) {
            return Ok(content);
        }
        let found = self.catalogue.packs.get(pack as usize);
        let Some(found) = found.filter(|_| self.keeps_summaries()) else {
            return self.content(pack, frame);
        };
        let expected = found.index.frames.get(frame as usize);
        let path = self.layout.summaries(found.id);
        if let (Some(expected), Ok(bytes)) = (expected, self.disk.read(&path, MAX_SUMMARIES_LEN))
            && hash(&bytes) == expected.hash
        {
            let content: Arc<[u8]> = bytes.into();
            lock(&self.contents).insert((pack, frame), &content);
            return Ok(content);
        }
        let content = self.content(pack, frame)?;
        self.keep_summaries(found.id, &content);
        Ok(content)
    }

    /// Returns whether summaries are kept on this machine: lists need all of them. Of an encrypted archive they are not, as they have the
    /// first words of sessions.
    pub(crate) fn keeps_summaries(&self) -> bool {
        self.layout.in_bucket && !self.layout.encryption.is_on()
    }

    /// Keeps the summaries of a pack on this machine. If that fails, they are read from the bucket the next time.
    pub(crate) fn keep_summaries(&self, id: PackId, content: &[u8]) {
        let path = self.layout.summaries(id);
        let _ = remove_if_there(&*self.disk, &path);
        let _ = self.disk.create_folder(folder_of(&path));
        let _ = self.disk.write_new(&path, content);
    }

    /// Gives a complete pack its name in the archive.
    pub(crate) fn publish(&self, pack: &Path, path: &Path) -> io::Result<()> {
        if self.layout.in_bucket {
            let mut new = self.store.new_file(path)?;
            io::copy(&mut Reader::new(self.disk.open_to_read(pack)?), &mut new)?;
            match new.keep(path) {
                // A request that seemed to fail, or a killed capture, wrote it: with this name it is the same.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                kept => kept?,
            }
            return remove_if_there(&*self.disk, pack);
        }
        match self.disk.rename_new(pack, path) {
            // A killed capture wrote it, and it is not in the catalogue: with this name it is the same.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.disk.rename(pack, path)
            }
            renamed => renamed,
        }
    }

    /// Refuses to write this number of bytes if too little would be left for clients: their disk is often the same.
    pub(crate) fn check_space(&self, len: u64) -> Result<(), Error> {
        // The path to which a pack is written first, and the one to which it is encrypted.
        for path in self.layout.new_pack() {
            let folder = folder_of(&path);
            // A system that does not say it fails when the disk is full.
            let Ok(Some(Space { free, total })) = self.disk.space(folder) else {
                continue;
            };
            let reserve = MIN_FREE_SPACE.max(total / 100);
            if free < reserve.saturating_add(len) {
                return Err(Error::new(ErrorKind::LowSpace { free, reserve }, folder));
            }
        }
        Ok(())
    }

    /// Removes the incomplete files of killed processes. The caller has the lock.
    pub(crate) fn remove_stale(&self) -> Result<(), Error> {
        let [written, stored] = self.layout.new_pack();
        for path in [written, stored, self.layout.new_catalogue()] {
            remove_if_there(&*self.disk, &path).at(&path)?;
        }
        Ok(())
    }

    /// Removes the files of a failed attempt: an incomplete pack, which takes room from the clients that write
    /// sessions. The caller has the lock. Returns the error, which then names what is left.
    pub(crate) fn after_failure(&self, error: Error) -> Error {
        match self.remove_stale() {
            Ok(()) => error,
            Err(left) => error.with_left(left),
        }
    }

    /// Returns an error if there is no key, for operations that need one.
    pub(crate) fn check_readable(&self) -> Result<(), Error> {
        if self.layout.encryption.is_sealed() {
            Err(Error::new(ErrorKind::Encrypted, &self.layout.folder))
        } else {
            Ok(())
        }
    }
}

/// The content of the file that makes a folder an archive. It is for people, too.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    #[serde(default)]
    format: String,
    version: u32,
    /// Names an archive that has files elsewhere, too: an encrypted one, and one in a bucket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    id: String,
    /// The recipients that can read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recipients: Vec<String>,
    #[serde(default)]
    read_without_transcript: String,
}

impl Marker {
    fn new(folder: &Path, recipients: &[Recipient], in_bucket: bool) -> Self {
        let mut marker = Self {
            format: FORMAT.into(),
            version: FORMAT_VERSION,
            id: String::new(),
            recipients: recipients.iter().map(Recipient::to_string).collect(),
            read_without_transcript: "zstd -d -D dictionaries/ID.dict -c packs/ID.jsonl.zst".into(),
        };
        if in_bucket || !recipients.is_empty() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now = now.unwrap_or_default().as_nanos();
            let what = format!("{now} {} {}", std::process::id(), folder.display());
            marker.id = PackId(hash(what.as_bytes())).to_hex();
        }
        if !recipients.is_empty() {
            marker.read_without_transcript = "age -d -i KEY dictionaries/ID.dict.age > DICT; \
                age -d -i KEY packs/ID.jsonl.zst.age | zstd -d -D DICT"
                .into();
        }
        marker
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
