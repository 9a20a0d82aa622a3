//! A disk in memory that fails, kills the process or loses power where a test says so.
//!
//! It keeps two images of each file: the bytes that processes see, and the bytes that a power cut
//! would leave. No call blocks, and equal seeds and calls give equal results.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use transcript_storage::{
    Disk, Entries, File, FileKind, Identity, LocalDisk, Metadata, NewFile, Opened, ReadDisk,
    ReadFile, Space, Status, UnnamedFile, entries_below,
};

use crate::rng::Rng;

/// An operation on a disk or on a file of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// [`Disk::open`] and [`ReadDisk::open_to_read`].
    Open,
    /// [`Disk::identity`], [`ReadDisk::metadata`] and [`ReadDisk::link_metadata`].
    IdentityOfPath,
    /// [`ReadDisk::list`].
    List,
    /// [`Disk::write_new`].
    WriteNew,
    /// [`Disk::rename`] and [`Disk::rename_new`].
    Rename,
    /// [`Disk::set_properties`].
    SetProperties,
    /// [`Disk::remove`].
    Remove,
    /// [`File::append`].
    Append,
    /// [`File::position`].
    Position,
    /// [`ReadFile::read_at`].
    ReadAt,
    /// [`File::truncate`].
    Truncate,
    /// [`File::sync`].
    Sync,
    /// [`File::status`].
    Status,
    /// [`File::identity`] and [`ReadFile::metadata`].
    Identity,
    /// [`File::try_lock`].
    TryLock,
    /// [`File::unlock`].
    Unlock,
}

impl Op {
    /// The operations that writing a session needs.
    pub const ALL: [Self; 12] = [
        Self::Open,
        Self::IdentityOfPath,
        Self::WriteNew,
        Self::Append,
        Self::Position,
        Self::ReadAt,
        Self::Truncate,
        Self::Sync,
        Self::Status,
        Self::Identity,
        Self::TryLock,
        Self::Unlock,
    ];
}

/// Something that goes wrong at one operation: the next one, unless [`Fault::at`] says otherwise.
#[derive(Debug)]
#[must_use]
pub struct Fault {
    op: Option<Op>,
    /// The number of operations of this kind until the fault; 1 is the next.
    left: u64,
    is_lasting: bool,
    what: FaultKind,
}

impl Fault {
    /// The operation fails and does nothing.
    pub fn error(kind: io::ErrorKind) -> Self {
        Self::new(FaultKind::Error(ErrorCause::Kind(kind)))
    }

    /// The operation fails with this number of the system and does nothing.
    pub fn errno(number: i32) -> Self {
        Self::new(FaultKind::Error(ErrorCause::Number(number)))
    }

    /// An append writes only this many bytes and returns their number; writing a new file fails.
    pub fn short(bytes: usize) -> Self {
        Self::new(FaultKind::Part(bytes, None))
    }

    /// An append writes this many bytes and returns an error. Other operations take effect and return
    /// an error.
    pub fn torn(bytes: usize, kind: io::ErrorKind) -> Self {
        Self::new(FaultKind::Part(bytes, Some(kind)))
    }

    /// A sync fails and its bytes are lost, but the next syncs succeed, as on Linux.
    pub fn lost_sync() -> Self {
        Self::new(FaultKind::LostSync)
    }

    /// The process dies during the operation; an append may have written any part of its bytes.
    pub fn kill() -> Self {
        Self::new(FaultKind::Kill(WrittenPart::Any))
    }

    /// The process dies during the operation; an append has written this many bytes.
    pub fn kill_after(bytes: usize) -> Self {
        Self::new(FaultKind::Kill(WrittenPart::First(bytes)))
    }

    /// The process dies during the operation; an append has written all but this many bytes.
    pub fn kill_before_last(bytes: usize) -> Self {
        Self::new(FaultKind::Kill(WrittenPart::AllBut(bytes)))
    }

    /// Calls `hook` immediately before the operation, for example to act as another process.
    pub fn hook(hook: impl FnOnce(&FakeDisk) + Send + 'static) -> Self {
        Self::new(FaultKind::Hook(Hook(Box::new(hook))))
    }

    /// Waits for operation `nth` of this kind, counted from 1 after the fault is set.
    pub fn at(mut self, op: Op, nth: u64) -> Self {
        self.op = Some(op);
        self.left = nth;
        self
    }

    /// Waits for operation `nth` of any kind, counted from 1 after the fault is set.
    pub fn at_any(mut self, nth: u64) -> Self {
        self.op = None;
        self.left = nth;
        self
    }

    /// Repeats the fault at every later operation of the kind.
    pub fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    fn new(what: FaultKind) -> Self {
        Self {
            op: None,
            left: 1,
            is_lasting: false,
            what,
        }
    }
}

#[derive(Debug)]
enum FaultKind {
    Error(ErrorCause),
    Part(usize, Option<io::ErrorKind>),
    LostSync,
    Kill(WrittenPart),
    Hook(Hook),
}

/// The part of its bytes that an append writes before the process dies.
#[derive(Clone, Copy, Debug)]
enum WrittenPart {
    Any,
    First(usize),
    AllBut(usize),
}

impl WrittenPart {
    fn of(self, len: usize, rng: &mut Rng) -> usize {
        match self {
            Self::Any => rng.range(0, len),
            Self::First(bytes) => bytes.min(len),
            Self::AllBut(bytes) => len.saturating_sub(bytes),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum ErrorCause {
    Kind(io::ErrorKind),
    Number(i32),
}

impl ErrorCause {
    fn error(self) -> io::Error {
        match self {
            Self::Kind(kind) => kind.into(),
            Self::Number(number) => io::Error::from_raw_os_error(number),
        }
    }
}

struct Hook(Box<dyn FnOnce(&FakeDisk) + Send>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// The unsynced changes of a file that survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The first ones, of which the last may be torn. There may be NULs where the length was saved
    /// and the bytes were not.
    InOrder,
    /// The length after some of them, and any of their blocks.
    Reordered,
}

/// One operation that was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// Its kind.
    pub op: Op,
    /// The file, by the name that it was opened with.
    pub path: PathBuf,
    /// The number of bytes to append, write or read, or the length to truncate to.
    pub len: Option<u64>,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct FakeDisk {
    state: Arc<Mutex<State>>,
    /// The process that uses this handle of the disk; `None` is the one that runs now.
    process: Option<u64>,
}

struct State {
    rng: Rng,
    names: BTreeMap<PathBuf, usize>,
    files: Vec<Inode>,
    last_handle: u64,
    /// The number of the process that runs now. Handles of an earlier process fail.
    process: u64,
    is_killed: bool,
    faults: Vec<Fault>,
    log: Vec<DiskRequest>,
    space: Option<usize>,
    reported: Option<Space>,
    other_writer: Option<Option<bool>>,
    is_remote: bool,
}

#[derive(Debug, Default)]
struct Inode {
    buffered: Vec<u8>,
    durable: Vec<u8>,
    /// The changes since the last sync.
    changes: Vec<Change>,
    /// Ranges that a failed sync lost. Processes still see these bytes.
    lost: Vec<Range<usize>>,
    lock: Option<Owner>,
    is_linked: bool,
    modified: Option<SystemTime>,
    mode: Option<u32>,
    /// The open handles, each with the end of its last append.
    handles: BTreeMap<u64, u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Append { offset: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Handle(u64),
    SomebodyElse,
}

impl fmt::Debug for FakeDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeDisk")
    }
}

/// The interface for tests.
impl FakeDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            rng: Rng::new(seed),
            names: BTreeMap::new(),
            files: Vec::new(),
            last_handle: 0,
            process: 0,
            is_killed: false,
            faults: Vec::new(),
            log: Vec::new(),
            space: None,
            reported: None,
            other_writer: None,
            is_remote: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            process: None,
        }
    }

    /// Returns the disk for the process that runs now. Its operations fail once that process has
    /// ended, so that threads of a killed writer that still run do nothing.
    #[must_use]
    pub fn process(&self) -> Arc<dyn Disk> {
        Arc::new(Self {
            state: Arc::clone(&self.state),
            process: Some(self.state().process),
        })
    }

    /// Creates a file, complete and durable. A file that had the name before is unlinked.
    pub fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let mut state = self.state();
        state.unlink(path.as_ref());
        state.link(path.as_ref(), bytes);
    }

    /// Removes the name; open handles keep the file.
    pub fn remove(&self, path: impl AsRef<Path>) {
        self.state().unlink(path.as_ref());
    }

    /// Renames the file, as `mv` does.
    ///
    /// # Panics
    /// When the file does not exist.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let mut state = self.state();
        state.unlink(to.as_ref());
        let inode = state.names.remove(from.as_ref()).expect("such a file");
        state.names.insert(to.as_ref().to_owned(), inode);
    }

    /// Appends as another process that takes no lock.
    ///
    /// # Panics
    /// When the file does not exist.
    pub fn append_as_other(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let mut state = self.state();
        state.named(path.as_ref()).append(bytes);
    }

    /// Truncates the file as another process.
    ///
    /// # Panics
    /// When the file does not exist.
    pub fn cut_as_other(&self, path: impl AsRef<Path>, len: usize) {
        let mut state = self.state();
        state.named(path.as_ref()).truncate(len);
    }

    /// Takes the lock as another process, which holds it until [`FakeDisk::release_lock`].
    ///
    /// # Panics
    /// When the file does not exist.
    pub fn hold_lock(&self, path: impl AsRef<Path>) {
        self.state().named(path.as_ref()).lock = Some(Owner::SomebodyElse);
    }

    /// Releases the lock that [`FakeDisk::hold_lock`] took.
    ///
    /// # Panics
    /// When the file does not exist.
    pub fn release_lock(&self, path: impl AsRef<Path>) {
        let mut state = self.state();
        let inode = state.named(path.as_ref());
        if inode.lock == Some(Owner::SomebodyElse) {
            inode.lock = None;
        }
    }

    /// Returns whether any process holds the lock.
    ///
    /// # Panics
    /// When the file does not exist.
    #[must_use]
    pub fn is_locked(&self, path: impl AsRef<Path>) -> bool {
        self.state().named(path.as_ref()).lock.is_some()
    }

    /// Sets the report about other writers when a file is opened. By default it reports whether a handle
    /// of the file is open.
    pub fn set_other_writer(&self, answer: Option<bool>) {
        self.state().other_writer = Some(answer);
    }

    /// Sets whether files are on a network file system.
    pub fn set_remote(&self, is_remote: bool) {
        self.state().is_remote = is_remote;
    }

    /// Sets the number of free bytes; `None` is unlimited.
    pub fn set_space(&self, bytes: Option<usize>) {
        self.state().space = bytes;
    }

    /// Sets the free space that the disk reports; each appended byte takes one byte of it.
    pub fn report_space(&self, space: Option<Space>) {
        self.state().reported = space;
    }

    /// Adds a fault.
    pub fn set(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// Removes all faults, whether they occurred or not.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Returns the number of faults that wait for their operation. A lasting fault always counts.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.state().faults.len()
    }

    /// Kills the process at operation `nth` of any kind, counted from 1 after this call.
    pub fn kill_at(&self, nth: u64) {
        self.set(Fault::kill().at_any(nth));
    }

    /// Returns whether the process was killed.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.state().is_killed
    }

    /// Ends the process, if it was not killed, and starts another. The handles of the old process
    /// fail, its locks are released and its faults removed. What it wrote stays.
    pub fn restart(&self) {
        self.state().restart();
    }

    /// Cuts the power and restarts. Of each file the durable image is left, and a part of the
    /// unsynced changes that depends on `seed`. Returns which kind of loss it was.
    pub fn cut_power(&self, seed: u64) -> Loss {
        let loss = if seed & 1 == 0 {
            Loss::InOrder
        } else {
            Loss::Reordered
        };
        self.cut_power_with(loss, seed);
        loss
    }

    /// Cuts the power with this kind of loss.
    pub fn cut_power_with(&self, loss: Loss, seed: u64) {
        let mut state = self.state();
        let mut rng = Rng::new(seed ^ 0x00C0_FFEE);
        for inode in &mut state.files {
            let image = match loss {
                Loss::InOrder => inode.after_loss_in_order(&mut rng),
                Loss::Reordered => inode.after_reordered_loss(&mut rng),
            };
            inode.buffered.clone_from(&image);
            inode.durable = image;
            inode.changes.clear();
            inode.lost.clear();
        }
        state.restart();
    }

    /// Returns the bytes that processes see in the file; `None` when it does not exist.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.names.get(path.as_ref())?;
        Some(state.files[*inode].buffered.clone())
    }

    /// Returns the bytes of the file that every power cut leaves; `None` when it does not exist.
    #[must_use]
    pub fn durable(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.names.get(path.as_ref())?;
        Some(state.files[*inode].durable.clone())
    }

    /// Returns the names of all files in order.
    #[must_use]
    pub fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// Returns the operations that were requested so far, including those of processes that ended.
    #[must_use]
    pub fn log(&self) -> Vec<DiskRequest> {
        self.state().log.clone()
    }

    /// Returns how many operations of any kind were requested so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().log.len() as u64
    }

    /// Returns how many operations of this kind were requested so far.
    #[must_use]
    pub fn count(&self, op: Op) -> u64 {
        let state = self.state();
        state.log.iter().filter(|asked| asked.op == op).count() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A hook of a failed test may have panicked; the state is consistent even then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation, and finds the fault that applies to it.
    fn begin(
        &self,
        process: Option<u64>,
        op: Op,
        path: &Path,
        len: Option<u64>,
    ) -> io::Result<(MutexGuard<'_, State>, Turn)> {
        let mut state = self.state();
        let path = path.to_owned();
        state.log.push(DiskRequest { op, path, len });
        if state.is_killed || process.is_some_and(|process| process != state.process) {
            return Err(killed());
        }
        let mut hooks = Vec::new();
        let mut turn = Turn::Go;
        let faults = std::mem::take(&mut state.faults);
        for mut fault in faults {
            if fault.op.is_some_and(|of| of != op) {
                state.faults.push(fault);
                continue;
            }
            fault.left = fault.left.saturating_sub(1);
            if fault.left > 0 {
                state.faults.push(fault);
                continue;
            }
            match fault.what {
                FaultKind::Hook(hook) => {
                    hooks.push(hook);
                    continue;
                }
                // Only one fault applies to an operation; the other one waits for the next.
                _ if !matches!(turn, Turn::Go) => {
                    fault.left = 1;
                    state.faults.push(fault);
                    continue;
                }
                FaultKind::Error(cause) => turn = Turn::Fail(cause.error()),
                FaultKind::Part(bytes, kind) => turn = Turn::Part(bytes, kind.map(io::Error::from)),
                FaultKind::LostSync => turn = Turn::LostSync,
                FaultKind::Kill(taken) => turn = Turn::Die(taken),
            }
            if fault.is_lasting {
                fault.left = 1;
                state.faults.push(fault);
            }
        }
        if matches!(turn, Turn::Die(_)) {
            state.is_killed = true;
        }
        if !hooks.is_empty() {
            drop(state);
            for hook in hooks {
                hook.0(self);
            }
            state = self.state();
        }
        Ok((state, turn))
    }
}

/// The outcome of an operation.
#[derive(Debug)]
enum Turn {
    Go,
    Fail(io::Error),
    Part(usize, Option<io::Error>),
    LostSync,
    Die(WrittenPart),
}

impl Turn {
    /// Decides for an operation that takes effect completely or not at all. Returns `Err` when it has
    /// no effect, and the error to return after the effect, if any.
    fn whole(self, rng: &mut Rng) -> io::Result<Option<io::Error>> {
        match self {
            Self::Go | Self::Part(_, None) => Ok(None),
            Self::Fail(error) => Err(error),
            Self::Part(_, error) => Ok(error),
            Self::LostSync => Err(io::Error::other("lost")),
            Self::Die(_) if rng.one_in(2) => Err(killed()),
            Self::Die(_) => Ok(Some(killed())),
        }
    }
}

fn killed() -> io::Error {
    io::Error::other("the process was killed")
}

fn done<T>(value: T, error: Option<io::Error>) -> io::Result<T> {
    error.map_or(Ok(value), Err)
}

impl State {
    fn named(&mut self, path: &Path) -> &mut Inode {
        let inode = self.names.get(path).expect("a file with this name");
        &mut self.files[*inode]
    }

    fn link(&mut self, path: &Path, bytes: &[u8]) -> usize {
        self.files.push(Inode {
            buffered: bytes.to_vec(),
            durable: bytes.to_vec(),
            is_linked: true,
            ..Inode::default()
        });
        self.names.insert(path.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    fn unlink(&mut self, path: &Path) {
        if let Some(inode) = self.names.remove(path) {
            self.files[inode].is_linked = false;
        }
    }

    fn restart(&mut self) {
        self.process += 1;
        self.is_killed = false;
        self.faults.clear();
        for inode in &mut self.files {
            inode.lock = None;
            inode.handles.clear();
        }
    }

    /// Takes up to `len` of the free bytes.
    fn take_space(&mut self, len: usize) -> usize {
        if let Some(space) = &mut self.reported {
            space.free = space.free.saturating_sub(len as u64);
        }
        let Some(space) = &mut self.space else {
            return len;
        };
        let taken = len.min(*space);
        *space -= taken;
        taken
    }
}

impl Inode {
    fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let offset = self.buffered.len();
        let bytes = bytes.to_vec();
        self.buffered.extend_from_slice(&bytes);
        self.changes.push(Change::Append { offset, bytes });
    }

    fn truncate(&mut self, len: usize) {
        self.buffered.resize(len, 0);
        self.lost.retain_mut(|range| {
            range.end = range.end.min(len);
            range.start < range.end
        });
        self.changes.push(Change::Truncate { len });
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.buffered);
        self.changes.clear();
        for range in &self.lost {
            self.durable[range.clone()].fill(0);
        }
    }

    /// Drops the unsynced changes, so that the next sync succeeds without saving them.
    fn lose(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            if let Change::Append { offset, bytes } = change {
                let end = (offset + bytes.len()).min(self.buffered.len());
                if offset < end {
                    self.lost.push(offset..end);
                }
            }
        }
    }

    /// Returns the durable image with the first `count` changes.
    fn after(&self, count: usize) -> Vec<u8> {
        let mut image = self.durable.clone();
        for change in &self.changes[..count] {
            match change {
                Change::Append { offset, bytes } => {
                    image.resize(*offset, 0);
                    image.extend_from_slice(bytes);
                }
                Change::Truncate { len } => image.resize(*len, 0),
            }
        }
        for range in &self.lost {
            let end = range.end.min(image.len());
            if range.start < end {
                image[range.start..end].fill(0);
            }
        }
        image
    }

    fn after_loss_in_order(&self, rng: &mut Rng) -> Vec<u8> {
        let count = rng.range(0, self.changes.len());
        let mut image = self.after(count);
        if let Some(Change::Append { offset, bytes }) = self.changes.get(count) {
            // A device writes whole blocks.
            let unit = *rng.pick(&[512, 4096]);
            let end = offset + rng.range(0, bytes.len());
            let end = (end / unit * unit).max(*offset);
            image.resize(*offset, 0);
            image.extend_from_slice(&bytes[..end - offset]);
            if rng.one_in(4) {
                // The length was saved, the bytes were not.
                let len = rng.range(end, self.buffered.len().max(end));
                image.resize(len, 0);
            }
        }
        image
    }

    fn after_reordered_loss(&self, rng: &mut Rng) -> Vec<u8> {
        let count = rng.range(0, self.changes.len());
        let mut image = self.after(count);
        let unit = *rng.pick(&[512, 4096]);
        let odds = rng.range(2, 8);
        for start in (0..image.len()).step_by(unit) {
            let end = (start + unit).min(image.len());
            let kept = self.durable.len().clamp(start, end);
            let is_same = kept == end && image[start..end] == self.durable[start..end];
            if is_same || !rng.one_in(odds) {
                continue;
            }
            if start < kept {
                image[start..kept].copy_from_slice(&self.durable[start..kept]);
            }
            image[kept..end].fill(0);
        }
        image
    }
}

impl ReadDisk for FakeDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let (mut state, turn) = self.begin(self.process, Op::Open, path, None)?;
        if let Some(error) = turn.whole(&mut state.rng)? {
            return Err(error);
        }
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(FakeFile {
            disk: self.clone(),
            path: path.to_owned(),
            inode: *inode,
            handle: READER,
            process: state.process,
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let (mut state, turn) = self.begin(self.process, Op::List, folder, None)?;
        let error = turn.whole(&mut state.rng)?;
        let entries = entries_below(folder, state.names.keys())?;
        done(Box::new(entries.into_iter().map(Ok)), error)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let (mut state, turn) = self.begin(self.process, Op::IdentityOfPath, path, None)?;
        let error = turn.whole(&mut state.rng)?;
        let found = match state.names.get(path) {
            Some(inode) => metadata(*inode, &state.files[*inode]),
            None => {
                entries_below(path, state.names.keys())?;
                Metadata::of_folder_in_memory()
            }
        };
        done(found, error)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        None
    }
}

impl Disk for FakeDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        let (mut state, turn) = self.begin(self.process, Op::Open, path, None)?;
        let error = turn.whole(&mut state.rng)?;
        let (inode, is_new) = match state.names.get(path) {
            Some(inode) => (*inode, false),
            None if create => (state.link(path, b""), true),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        if let Some(error) = error {
            return Err(error);
        }
        let is_open = !state.files[inode].handles.is_empty();
        let has_other_writer = state.other_writer.unwrap_or(Some(is_open));
        state.last_handle += 1;
        let handle = state.last_handle;
        state.files[inode].handles.insert(handle, 0);
        Ok(Opened {
            file: Arc::new(FakeFile {
                disk: self.clone(),
                path: path.to_owned(),
                inode,
                handle,
                process: state.process,
            }),
            is_new,
            has_other_writer,
            is_remote: state.is_remote,
            others_may_write: false,
        })
    }

    /// Checks only that the file exists: on this disk a name is durable as soon as it is created.
    fn sync_name(&self, path: &Path) -> io::Result<()> {
        let is_there = self.state().names.contains_key(path);
        is_there
            .then_some(())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn space(&self, _folder: &Path) -> io::Result<Option<Space>> {
        Ok(self.state().reported)
    }

    /// The new name is durable at once, as all names on this disk.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, turn) = self.begin(self.process, Op::Rename, to, None)?;
        let error = turn.whole(&mut state.rng)?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.unlink(to);
        state.names.insert(to.to_owned(), inode);
        done((), error)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, turn) = self.begin(self.process, Op::Rename, to, None)?;
        let error = turn.whole(&mut state.rng)?;
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        done((), error)
    }

    fn set_properties(
        &self,
        path: &Path,
        modified: Option<SystemTime>,
        mode: Option<u32>,
    ) -> io::Result<()> {
        let (mut state, turn) = self.begin(self.process, Op::SetProperties, path, None)?;
        let error = turn.whole(&mut state.rng)?;
        if let Some(inode) = state.names.get(path).copied() {
            let inode = &mut state.files[inode];
            inode.modified = modified.or(inode.modified);
            inode.mode = mode.or(inode.mode);
        }
        done((), error)
    }

    /// Does nothing: a folder exists on this disk as long as it has a file.
    fn create_folder(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        match entries_below(path, self.state().names.keys()) {
            Ok(_) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
            Err(error) => Err(error),
        }
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len();
        let (mut state, turn) = self.begin(self.process, Op::WriteNew, path, Some(len as u64))?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (wanted, error) = match turn {
            Turn::Go => (len, None),
            Turn::Fail(error) => return Err(error),
            Turn::Part(part, None) => (part, Some(io::ErrorKind::StorageFull.into())),
            Turn::Part(part, error) => (part, error),
            Turn::LostSync => (len, Some(io::Error::other("lost"))),
            Turn::Die(taken) => (taken.of(len, &mut state.rng), Some(killed())),
        };
        // A new file exists completely or not at all; a failed one takes no space.
        let wanted = wanted.min(len);
        let is_there = wanted == len && state.space.is_none_or(|space| len <= space);
        if is_there {
            state.take_space(len);
            state.link(path, bytes);
        }
        match error {
            Some(error) => Err(error),
            None if !is_there => Err(io::ErrorKind::StorageFull.into()),
            None => Ok(()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (mut state, turn) = self.begin(self.process, Op::Remove, path, None)?;
        let error = turn.whole(&mut state.rng)?;
        state.unlink(path);
        done((), error)
    }

    /// The file is written when it gets its name, as by [`write_new`](Self::write_new).
    fn new_file(&self, _path: &Path) -> io::Result<NewFile> {
        Ok(NewFile::of_disk(Box::new(FakeNewFile {
            disk: self.clone(),
            bytes: Vec::new(),
        })))
    }
}

/// A file without a name.
#[derive(Debug)]
struct FakeNewFile {
    disk: FakeDisk,
    bytes: Vec<u8>,
}

impl UnnamedFile for FakeNewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn set_properties(&self, _: Option<SystemTime>, _: Option<u32>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reader(&self) -> io::Result<Arc<dyn ReadFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn keep(self: Box<Self>, path: &Path) -> io::Result<()> {
        self.disk.write_new(path, &self.bytes)
    }

    fn replace(self: Box<Self>, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        self.disk.write_new(&new, &self.bytes)?;
        let renamed = Disk::rename(&self.disk, &new, path);
        if renamed.is_err() {
            let _ = Disk::remove(&self.disk, &new);
        }
        renamed
    }
}

/// The number of handles that are open for reading; it counts nowhere.
const READER: u64 = 0;

fn metadata(number: usize, inode: &Inode) -> Metadata {
    Metadata {
        kind: FileKind::File,
        len: inode.buffered.len() as u64,
        modified: inode.modified,
        changed: None,
        mode: inode.mode,
        identity: Identity::of_file(Some((1, number as u64)), None),
    }
}

#[derive(Debug)]
struct FakeFile {
    disk: FakeDisk,
    path: PathBuf,
    inode: usize,
    handle: u64,
    process: u64,
}

impl FakeFile {
    fn begin(&self, op: Op, len: Option<u64>) -> io::Result<(MutexGuard<'_, State>, Turn)> {
        self.disk.begin(Some(self.process), op, &self.path, len)
    }
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        let inode = &mut state.files[self.inode];
        inode.handles.remove(&self.handle);
        if inode.lock == Some(Owner::Handle(self.handle)) {
            inode.lock = None;
        }
    }
}

impl ReadFile for FakeFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut state, turn) = self.begin(Op::ReadAt, Some(buffer.len() as u64))?;
        let limit = match turn {
            Turn::Part(part, None) => part,
            _ => usize::MAX,
        };
        let error = turn.whole(&mut state.rng)?;
        let bytes = &state.files[self.inode].buffered;
        let start = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
        let len = buffer.len().min(bytes.len() - start).min(limit);
        buffer[..len].copy_from_slice(&bytes[start..start + len]);
        done(len, error)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let (mut state, turn) = self.begin(Op::Identity, None)?;
        let error = turn.whole(&mut state.rng)?;
        done(metadata(self.inode, &state.files[self.inode]), error)
    }
}

impl File for FakeFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len();
        let (mut state, turn) = self.begin(Op::Append, Some(len as u64))?;
        let (wanted, error) = match turn {
            Turn::Go => (len, None),
            Turn::Fail(error) => return Err(error),
            Turn::Part(part, error) => (part.min(len), error),
            Turn::LostSync => return Err(io::Error::other("lost")),
            Turn::Die(taken) => (taken.of(len, &mut state.rng), Some(killed())),
        };
        let taken = state.take_space(wanted);
        let inode = &mut state.files[self.inode];
        inode.append(&bytes[..taken]);
        let end = inode.buffered.len() as u64;
        if taken > 0 {
            inode.handles.insert(self.handle, end);
        }
        if let Some(error) = error {
            return Err(error);
        }
        if taken == 0 && wanted > 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(taken)
    }

    fn position(&self) -> io::Result<u64> {
        let (mut state, turn) = self.begin(Op::Position, None)?;
        let error = turn.whole(&mut state.rng)?;
        let position = state.files[self.inode].handles.get(&self.handle);
        done(position.copied().unwrap_or(0), error)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let (mut state, turn) = self.begin(Op::Truncate, Some(len))?;
        let error = turn.whole(&mut state.rng)?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let freed = state.files[self.inode].buffered.len().saturating_sub(len);
        if let Some(space) = &mut state.space {
            *space += freed;
        }
        state.files[self.inode].truncate(len);
        done((), error)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, turn) = self.begin(Op::Sync, None)?;
        if matches!(turn, Turn::LostSync) {
            state.files[self.inode].lose();
        }
        let error = turn.whole(&mut state.rng)?;
        state.files[self.inode].sync();
        done((), error)
    }

    fn status(&self) -> io::Result<Status> {
        let (mut state, turn) = self.begin(Op::Status, None)?;
        let error = turn.whole(&mut state.rng)?;
        let inode = &state.files[self.inode];
        let status = Status {
            len: inode.buffered.len() as u64,
            is_linked: inode.is_linked,
        };
        done(status, error)
    }

    fn try_lock(&self) -> io::Result<bool> {
        let (mut state, turn) = self.begin(Op::TryLock, None)?;
        let error = turn.whole(&mut state.rng)?;
        let me = Owner::Handle(self.handle);
        let lock = &mut state.files[self.inode].lock;
        let is_mine = *lock.get_or_insert(me) == me;
        done(is_mine, error)
    }

    fn unlock(&self) -> io::Result<()> {
        let (mut state, turn) = self.begin(Op::Unlock, None)?;
        let error = turn.whole(&mut state.rng)?;
        let lock = &mut state.files[self.inode].lock;
        if *lock == Some(Owner::Handle(self.handle)) {
            *lock = None;
        }
        done((), error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const PATH: &str = "a.jsonl";

    fn open(disk: &FakeDisk) -> Arc<dyn File> {
        disk.open(Path::new(PATH), true).unwrap().file
    }

    #[test]
    fn synced_bytes_survive_every_power_cut_and_a_part_of_the_rest() {
        let mut lengths = BTreeSet::new();
        for seed in 0..400 {
            let disk = FakeDisk::new(seed);
            let file = open(&disk);
            file.append(&[b'a'; 700]).unwrap();
            file.sync().unwrap();
            file.append(&[b'b'; 9000]).unwrap();
            file.append(&[b'c'; 9000]).unwrap();
            let loss = disk.cut_power(seed);
            let bytes = disk.bytes(PATH).unwrap();
            assert_eq!(bytes[..700], [b'a'; 700], "seed {seed}");
            assert!(bytes.len() <= 18_700, "seed {seed}");
            lengths.insert(bytes.len());
            if loss == Loss::InOrder {
                let kept = bytes.iter().position(|byte| *byte == 0);
                let kept = kept.unwrap_or(bytes.len());
                assert!(bytes[kept..].iter().all(|byte| *byte == 0), "seed {seed}");
                let whole = [vec![b'a'; 700], vec![b'b'; 9000], vec![b'c'; 9000]].concat();
                assert_eq!(bytes[..kept], whole[..kept], "seed {seed}");
            }
            file.append(b"x").unwrap_err();
        }
        assert!(lengths.len() > 40, "{lengths:?}");
    }

    #[test]
    fn a_lost_sync_is_reported_once_and_the_bytes_are_nuls_after_the_next() {
        let disk = FakeDisk::new(1);
        let file = open(&disk);
        file.append(b"one").unwrap();
        file.sync().unwrap();
        file.append(b"two").unwrap();
        disk.set(Fault::lost_sync().at(Op::Sync, 1));
        file.sync().unwrap_err();
        file.append(b"three").unwrap();
        file.sync().unwrap();
        assert_eq!(disk.bytes(PATH).unwrap(), b"onetwothree");
        assert_eq!(disk.durable(PATH).unwrap(), b"one\0\0\0three");
        disk.cut_power(2);
        assert_eq!(disk.bytes(PATH).unwrap(), b"one\0\0\0three");
    }

    #[test]
    fn a_full_disk_takes_a_part_and_then_nothing() {
        let disk = FakeDisk::new(1);
        let file = open(&disk);
        disk.set_space(Some(5));
        assert_eq!(file.append(b"abcdefgh").unwrap(), 5);
        let error = file.append(b"fgh").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        file.truncate(2).unwrap();
        assert_eq!(file.append(b"xyz").unwrap(), 3);
        assert_eq!(disk.bytes(PATH).unwrap(), b"abxyz");
        let error = disk.write_new(Path::new("b"), b"12").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn faults_hit_the_operation_that_they_name() {
        let disk = FakeDisk::new(1);
        let file = open(&disk);
        disk.set(Fault::error(io::ErrorKind::Interrupted).at(Op::Append, 2));
        disk.set(Fault::errno(5).at(Op::Sync, 1).lasting());
        file.append(b"1").unwrap();
        file.append(b"2").unwrap_err();
        file.append(b"3").unwrap();
        file.sync().unwrap_err();
        file.sync().unwrap_err();
        assert_eq!(disk.bytes(PATH).unwrap(), b"13");
        disk.clear_faults();
        disk.set(Fault::hook(|disk| disk.append_as_other(PATH, b"!")).at(Op::Append, 1));
        disk.set(Fault::short(1).at(Op::Append, 1));
        assert_eq!(file.append(b"45").unwrap(), 1);
        disk.set(Fault::torn(1, io::ErrorKind::TimedOut).at(Op::Append, 1));
        file.append(b"67").unwrap_err();
        assert_eq!(disk.bytes(PATH).unwrap(), b"13!46");
        assert_eq!(disk.faults_left(), 0);
    }

    #[test]
    fn handles_of_a_killed_process_do_nothing_and_its_locks_are_released() {
        let disk = FakeDisk::new(1);
        let file = open(&disk);
        assert!(file.try_lock().unwrap());
        let second = disk.open(Path::new(PATH), false).unwrap();
        assert_eq!(second.has_other_writer, Some(true));
        assert!(!second.file.try_lock().unwrap());
        disk.set(Fault::kill_after(1).at(Op::Append, 1));
        file.append(b"ab").unwrap_err();
        file.append(b"cd").unwrap_err();
        assert!(disk.is_killed());
        disk.restart();
        file.append(b"ef").unwrap_err();
        let third = disk.open(Path::new(PATH), false).unwrap();
        assert_eq!(third.has_other_writer, Some(false));
        assert!(third.file.try_lock().unwrap());
        assert_eq!(disk.bytes(PATH).unwrap(), b"a");
        assert_eq!(disk.count(Op::Append), 3);
    }

    #[test]
    fn files_can_be_replaced_shrunk_and_locked_by_others() {
        let disk = FakeDisk::new(1);
        let file = open(&disk);
        file.append(b"abc").unwrap();
        disk.cut_as_other(PATH, 1);
        assert_eq!(file.status().unwrap().len, 1);
        disk.hold_lock(PATH);
        assert!(!file.try_lock().unwrap());
        disk.release_lock(PATH);
        assert!(file.try_lock().unwrap());
        disk.put(PATH, b"new");
        assert!(!file.status().unwrap().is_linked);
        let there = Disk::identity(&disk, Path::new(PATH)).unwrap();
        assert_ne!(there, Some(file.identity().unwrap()));
    }
}
