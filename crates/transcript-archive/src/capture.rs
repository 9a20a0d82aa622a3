//! Captures the files that changed since the last capture.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memchr::memrchr;
use transcript_storage::{ReadFile, parallel};

use crate::agent_files;
use crate::archive::Archive;
use crate::catalogue::{Piece, VersionId};
use crate::database::add_database;
use crate::error::{AtPath, Error, ErrorKind};
use crate::file_content::{Problem, base_version, fingerprint, read_file, state_of};
use crate::files::Summarize;
use crate::frame::{Dictionary, Effort};
use crate::home_files::find_home;
use crate::live_files::{LiveFile, LiveFiles};
use crate::machines::on_machine;
use crate::names::{project_of, session_of};
use crate::packer::{Limits, Packer};
use crate::record::Version;
use crate::repack::MIN_PACKS_TO_JOIN;

/// The minimum number of bytes for which a dictionary is made.
const MIN_TRAINING_LEN: u64 = 1 << 20;
/// The length of a dictionary: this part of the new bytes, and its limits, in bytes.
const BYTES_PER_DICTIONARY_BYTE: u64 = 384;
const DICTIONARY_LIMITS: (u64, u64) = (16 << 10, 1 << 20);
/// The growth that makes a new dictionary worthwhile: its length as a multiple of the last one.
const DICTIONARY_GROWTH: u64 = 4;
/// The number of sampled bytes for each byte of a dictionary.
const SAMPLE_BYTES_PER_DICTIONARY_BYTE: u64 = 6;
/// The length of a sample, in bytes.
const SAMPLE_LEN: u64 = 16 << 10;
/// The default length of a pack, in bytes: a pack ends after the file with which it reaches this length.
const DEFAULT_PACK_LEN: u64 = 256 << 20;
/// The number of new bytes from which a capture compresses fast.
const FAST_EFFORT_BYTES: u64 = 128 << 20;
/// The maximum number of attempts to read a file that changes while it is read.
const MAX_ATTEMPTS: usize = 3;

/// Options of a capture.
#[derive(Clone, Default)]
pub struct CaptureOptions {
    threads: Option<NonZeroUsize>,
    compares_all: bool,
    pack_len: Option<u64>,
    repack_at: Option<NonZeroUsize>,
    sessions: Option<Vec<(String, String)>>,
    files: Option<Vec<String>>,
    summarize: Option<Arc<Summarize>>,
    done: Option<Arc<AtomicU64>>,
}

impl fmt::Debug for CaptureOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureOptions")
            .field("threads", &self.threads)
            .field("compares_all", &self.compares_all)
            .finish_non_exhaustive()
    }
}

impl CaptureOptions {
    /// Captures changed files only, with all processors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses with this number of threads.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Compares the content of each file with its archived version. Otherwise a file counts as unchanged when its
    /// length, times, mode and inode are unchanged.
    #[must_use]
    pub fn compare_all(mut self, all: bool) -> Self {
        self.compares_all = all;
        self
    }

    /// Ends a pack after the file with which it reaches this length, in bytes; the default is 256 MiB. A program that syncs the folder may
    /// like short ones.
    #[must_use]
    pub fn pack_len(mut self, len: u64) -> Self {
        self.pack_len = Some(len);
        self
    }

    /// Joins packs of about the same length when there are this many of them, unless they are longer than 8 MiB; the default is 16. So
    /// the number of packs stays small however often sessions are captured.
    #[must_use]
    pub fn repack_at(mut self, many: NonZeroUsize) -> Self {
        self.repack_at = Some(many);
        self
    }

    /// Captures only these sessions: the names of their project folders, and their ids.
    #[must_use]
    pub fn sessions(mut self, sessions: Vec<(String, String)>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Captures only these files of an agent, by their paths below its home folder with `/` between names, and what their sessions need
    /// besides: files that all sessions share, and a database as a whole.
    #[must_use]
    pub fn files(mut self, files: Vec<String>) -> Self {
        self.files = Some(files);
        self
    }

    /// Returns whether a file is captured, by its path in the archive.
    fn includes(&self, name: &str) -> bool {
        let of_home = agent_files::in_home(name);
        match (of_home, &self.sessions, &self.files) {
            (Some((agent, below)), _, Some(wanted)) => agent_files::is_needed(agent, below, wanted),
            (None, Some(wanted), _) => wanted.iter().any(|(project, id)| {
                id == session_of(name) && project_of(name).is_none_or(|of| of == project)
            }),
            _ => true,
        }
    }

    /// Stores the summary that this function returns with each version of the file of a session.
    #[must_use]
    pub fn summarize(mut self, summarize: Arc<Summarize>) -> Self {
        self.summarize = Some(summarize);
        self
    }

    /// Adds the bytes that are done to this counter.
    #[must_use]
    pub fn count_bytes(mut self, counter: Arc<AtomicU64>) -> Self {
        self.done = Some(counter);
        self
    }
}

/// The result of a capture.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Captured {
    /// The number of files of which there is a new version.
    pub files: u64,
    /// The number of sessions with such a file.
    pub sessions: u64,
    /// The number of sessions without one.
    pub unchanged: u64,
    /// The bytes of the files that were not archived before.
    pub bytes: u64,
    /// The length of the new packs in bytes.
    pub stored: u64,
    /// The number of files that are never captured, as they may hold credentials.
    pub denied: u64,
    /// The sessions that are there, sorted by project and id, whether they were captured or not.
    pub live: Vec<LiveSession>,
    /// The time of the capture, which is later than that of all earlier ones. `None` if nothing had changed.
    pub time: Option<SystemTime>,
    /// The errors of files that could not be captured.
    pub problems: Vec<Error>,
}

/// A session whose file is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveSession {
    /// The name of its file without `.jsonl`.
    pub id: String,
    /// The name of its project folder.
    pub project: String,
    /// When its file was last changed, where the system says so.
    pub modified: Option<SystemTime>,
}

/// The work to do for a file.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Nothing,
    /// Read it from an offset on: the bytes before it are those of an earlier version.
    Read(Option<(VersionId, u64)>),
}

impl Archive {
    /// Captures the files of all sessions in `root` that changed since the last capture, and what lies next to them.
    /// Afterwards each pack is complete and survives a power cut; a kill leaves all of a pack or nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy); [`ErrorKind::LowSpace`](crate::ErrorKind::LowSpace) before the disk is full: 64 MB,
    /// or one hundredth of it if that is more, are left; when `root` cannot be read, or the archive cannot be written. Packs that
    /// were complete stay then, and of the one that was not nothing is left, unless the error says so. Files that cannot be read
    /// are [`Captured::problems`].
    pub fn capture(&mut self, root: &Path, options: &CaptureOptions) -> Result<Captured, Error> {
        if options.compares_all {
            self.check_readable()?;
        }
        let _lock = self.lock()?;
        self.refresh()?;
        self.remove_stale()?;
        self.remove_replaced()?;
        let live = LiveFiles::find_all(&*self.disk, root)?;
        self.capture_files(live.on_machine(&self.layout), options)
    }

    /// Captures the files with sessions in the home folder of another agent, as [`capture`](Self::capture) does. A database and
    /// the files beside it are captured as they are at one moment. In [`Captured`], `sessions` and `unchanged` count files.
    ///
    /// # Errors
    /// As there; [`ErrorKind::UnknownAgent`](crate::ErrorKind::UnknownAgent).
    pub fn capture_home(
        &mut self,
        agent: &str,
        home: &Path,
        options: &CaptureOptions,
    ) -> Result<Captured, Error> {
        if !agent_files::is_known(agent) {
            return Err(Error::new(ErrorKind::UnknownAgent, home));
        }
        if options.compares_all {
            self.check_readable()?;
        }
        let _lock = self.lock()?;
        self.refresh()?;
        self.remove_stale()?;
        self.remove_replaced()?;
        let live = find_home(&*self.disk, agent, home)?;
        self.capture_files(live.on_machine(&self.layout), options)
    }

    /// Captures those of some files that changed. The caller has the lock.
    fn capture_files(
        &mut self,
        mut live: LiveFiles,
        options: &CaptureOptions,
    ) -> Result<Captured, Error> {
        live.files.retain(|file| options.includes(&file.name));
        live.databases
            .retain(|database| options.includes(&database.name));
        let now = SystemTime::now();
        let mut captured = Captured {
            problems: live.problems,
            denied: live.denied as u64,
            ..Captured::default()
        };
        let mut changed = Vec::new();
        let (mut session, mut is_changed) = (None, false);
        for file in &live.files {
            captured.live.extend(live_session(file));
            // Of other agents, files are counted: which of them are one session is not known here.
            let is_of_agent = agent_files::in_home(&file.name).is_some();
            let of = if is_of_agent {
                &file.name
            } else {
                session_of(&file.name)
            };
            if session != Some(of) {
                captured.count(session.is_some(), is_changed);
                (session, is_changed) = (Some(of), false);
            }
            match self.plan(file, now, options) {
                Ok(Plan::Nothing) => {}
                Ok(Plan::Read(from)) => {
                    is_changed = true;
                    changed.push((file, from));
                }
                Err(error) => captured.problems.push(error),
            }
        }
        captured.count(session.is_some(), is_changed);
        let mut databases = Vec::new();
        for database in &live.databases {
            let is_known = self.has_database(database, now, options.compares_all);
            captured.count(true, !is_known);
            databases.extend((!is_known).then_some(database));
        }
        if changed.is_empty() && databases.is_empty() {
            return Ok(captured);
        }
        let dictionary = self.dictionary_for(&changed)?;
        let threads = parallel::threads(options.threads, usize::MAX);
        let time = self.next_time(now);
        let of_databases = databases.iter().map(|database| database.len(&*self.disk));
        let of_databases: u64 = of_databases.sum();
        let new = changed.iter().map(|(file, from)| {
            let kept = from.map_or(0, |(_, keep)| keep);
            file.metadata.len - kept
        });
        let effort = match new.sum::<u64>() + of_databases {
            FAST_EFFORT_BYTES.. => Effort::Fast,
            _ => Effort::Dense,
        };
        let written = thread::scope(|scope| {
            let limits = Limits {
                threads,
                pack_len: options.pack_len.unwrap_or(DEFAULT_PACK_LEN),
                effort,
            };
            let mut packer = Packer::start(scope, self, dictionary, time, limits);
            let mut buffer = Vec::new();
            for (file, from) in changed {
                match add_file(&mut packer, file, from, now, options, &mut buffer) {
                    Ok(bytes) => {
                        captured.files += 1;
                        captured.bytes += bytes;
                    }
                    Err(Problem::OfFile(error)) => {
                        captured.problems.push(error);
                        // The own file makes the session.
                        let is_counted = live_session(file).is_some()
                            || agent_files::in_home(&file.name).is_some();
                        captured.sessions = captured.sessions.saturating_sub(u64::from(is_counted));
                    }
                    Err(Problem::OfArchive(error)) => return Err(error),
                }
            }
            for database in databases {
                let summarize = options.summarize.as_deref();
                let done = options.done.as_deref();
                match add_database(&mut packer, database, now, summarize, done) {
                    Ok(added) => {
                        captured.files += added.files;
                        captured.bytes += added.bytes;
                    }
                    Err(Problem::OfFile(error)) => {
                        captured.problems.push(error);
                        captured.sessions = captured.sessions.saturating_sub(1);
                    }
                    Err(Problem::OfArchive(error)) => return Err(error),
                }
            }
            packer.finish()
        });
        let written = written.map_err(|error| self.after_failure(error))?;
        captured.stored = written.stored;
        // The captured packs are complete and synced, so a failed repack is a problem and not an error of the capture.
        let repacked = self.repack_small(options.repack_at.unwrap_or(MIN_PACKS_TO_JOIN), threads);
        captured.problems.extend(repacked.err());
        captured.time =
            Some(UNIX_EPOCH + Duration::from_millis(u64::try_from(time).unwrap_or_default()));
        Ok(captured)
    }

    /// Returns the time of a capture, which is later than that of all others.
    fn next_time(&self, now: SystemTime) -> i64 {
        let millis = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        let millis = i64::try_from(millis).unwrap_or_default();
        let last = self
            .catalogue
            .packs
            .iter()
            .map(|pack| pack.index.captured)
            .max();
        // The clock may have been set back, and times order the versions of a file.
        last.map_or(millis, |last| millis.max(last.saturating_add(1)))
    }

    fn plan(
        &self,
        file: &LiveFile,
        now: SystemTime,
        options: &CaptureOptions,
    ) -> Result<Plan, Error> {
        let Some(id) = self.catalogue.newest(&file.name) else {
            return Ok(Plan::Read(None));
        };
        let Some(known) = self.version(id) else {
            return Ok(Plan::Read(None));
        };
        let state = state_of(&file.metadata, now);
        let len = file.metadata.len;
        // Without a settled state, a change within the resolution of the clock of the file system would not be noticed.
        if known.len == len && known.state == state && state.is_settled && !options.compares_all {
            return Ok(Plan::Nothing);
        }
        let live = self.disk.open_to_read(&file.path).at(&file.path)?;
        let same = self.common_start(&*live, id, known, len);
        // The damaged part of the archive cannot prove that the bytes are equal, so they are stored again.
        let Ok(same) = same else {
            return Ok(Plan::Read(None));
        };
        if same == known.len && same == len {
            return Ok(if known.state == state {
                Plan::Nothing
            } else {
                // Its properties changed; or only now it is certain that it does not change unnoticed.
                Plan::Read(self.catalogue.may_be_continued(id).then_some((id, same)))
            });
        }
        let is_continued = same > 0 && self.catalogue.may_be_continued(id);
        Ok(Plan::Read(is_continued.then_some((id, same))))
    }

    /// Returns how many bytes of a file are those of the start of a version, up to the end of a line.
    pub(crate) fn common_start(
        &self,
        live: &dyn ReadFile,
        id: VersionId,
        known: &Version,
        len: u64,
    ) -> io::Result<u64> {
        if self.layout.encryption.is_sealed() {
            let is_longer = len >= known.len && known.fingerprint.is_some();
            return Ok(
                match is_longer && known.fingerprint == Some(fingerprint(live, known.len)?) {
                    true if len == known.len => len,
                    // The fingerprint covers the whole version. Where it ends in a cut line, that line is stored again
                    // as a whole.
                    true => known.len - known.partial.min(known.len),
                    false => 0,
                },
            );
        }
        let pieces = self.pieces(id)?;
        let same = self.compare(live, &pieces, known.len.min(len))?;
        if same == known.len && len == known.len {
            return Ok(same);
        }
        // A line that continues, or is another one, is stored as a whole.
        if same == known.len {
            return Ok(same - known.partial.min(same));
        }
        self.line_start(&pieces, same)
    }

    /// Returns the parts of the newest version of a file, if they can be read.
    pub(crate) fn readable_pieces(&self, name: &str) -> Option<Vec<Piece>> {
        let id = self.catalogue.newest(name)?;
        let pieces = (!self.layout.encryption.is_sealed()).then(|| self.pieces(id).ok());
        pieces.flatten()
    }

    /// Returns the length of the common start of a file and a version, up to `len`.
    fn compare(&self, live: &dyn ReadFile, pieces: &[Piece], len: u64) -> io::Result<u64> {
        let (mut one, mut other) = (vec![0; 256 << 10], vec![0; 256 << 10]);
        let mut at = 0;
        while at < len {
            let wanted = usize::try_from(len - at).map_or(one.len(), |left| left.min(one.len()));
            let read = live.fill(at, &mut one[..wanted])?;
            let read = read.min(self.fill(pieces, at, &mut other[..wanted])?);
            let pairs = one[..read].iter().zip(&other[..read]);
            let same = pairs.take_while(|(one, other)| one == other).count();
            at += same as u64;
            if same < wanted {
                break;
            }
        }
        Ok(at)
    }

    /// Reads a part of a version. Returns the number of bytes read, which is smaller than the buffer only at the end.
    pub(crate) fn fill(&self, pieces: &[Piece], at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_pieces(pieces, at + done as u64, &mut buffer[done..])? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    /// Returns the offset of the start of the line that has the byte at an offset.
    fn line_start(&self, pieces: &[Piece], offset: u64) -> io::Result<u64> {
        let mut end = offset;
        let mut buffer = vec![0; 64 << 10];
        while end > 0 {
            let start = end.saturating_sub(buffer.len() as u64);
            let part = &mut buffer[..(end - start) as usize];
            self.fill(pieces, start, part)?;
            if let Some(at) = memrchr(b'\n', part) {
                return Ok(start + at as u64 + 1);
            }
            end = start;
        }
        Ok(0)
    }

    /// Returns the number of line feeds before an offset of a version with `partial` bytes after the last one.
    pub(crate) fn lines_before(
        &self,
        pieces: &[Piece],
        offset: u64,
        partial: u64,
    ) -> io::Result<u64> {
        let Some(last) = pieces.last() else {
            return Ok(0);
        };
        // No line feed follows the last one of a version, so a position after it needs no read.
        if offset.saturating_add(partial) >= last.end() {
            return Ok(last.lines_before.saturating_add(last.lines));
        }
        let at = pieces.partition_point(|piece| piece.end() <= offset);
        let piece = pieces.get(at).unwrap_or(last);
        let end = offset.min(piece.end());
        let mut part = vec![0; usize::try_from(end.saturating_sub(piece.at)).unwrap_or_default()];
        self.fill(pieces, piece.at, &mut part)?;
        let count = memchr::memchr_iter(b'\n', &part).count() as u64;
        Ok(piece.lines_before.saturating_add(count))
    }

    /// Returns the longest dictionary of the archive.
    pub(crate) fn longest_dictionary(&self) -> Result<Option<Arc<Dictionary>>, Error> {
        let known = self.layout.dictionaries_on(&*self.store)?.into_iter();
        let known = known.filter_map(|id| self.dictionary(id).ok());
        Ok(known.max_by_key(|dictionary| (dictionary.bytes.len(), dictionary.id)))
    }

    /// Returns the dictionary for new frames, which is made if there is none.
    fn dictionary_for(
        &self,
        changed: &[(&LiveFile, Option<(VersionId, u64)>)],
    ) -> Result<Option<Arc<Dictionary>>, Error> {
        let longest = self.longest_dictionary()?;
        let (mut files, mut new, mut total) = (Vec::new(), 0, 0);
        for (file, from) in changed {
            if file.name.ends_with(".jsonl") {
                files.push(*file);
                total += file.metadata.len;
                new += file.metadata.len - from.map_or(0, |(_, keep)| keep);
            }
        }
        let len = (new / BYTES_PER_DICTIONARY_BYTE).clamp(DICTIONARY_LIMITS.0, DICTIONARY_LIMITS.1);
        let known = longest.as_ref().map_or(0, |known| known.bytes.len() as u64);
        if new < MIN_TRAINING_LEN || known > 0 && known >= len / DICTIONARY_GROWTH {
            return Ok(longest);
        }
        let (samples, sizes) = self.samples(&files, total, len * SAMPLE_BYTES_PER_DICTIONARY_BYTE);
        // Too few or too similar samples are not an error: then there is no dictionary yet.
        let dictionary = zstd::dict::from_continuous(&samples, &sizes, len as usize);
        match dictionary.ok().filter(|dictionary| !dictionary.is_empty()) {
            Some(bytes) => self.add_dictionary(bytes).map(Some),
            None => Ok(longest),
        }
    }

    /// Reads parts of files at equal distances.
    fn samples(&self, files: &[&LiveFile], total: u64, wanted: u64) -> (Vec<u8>, Vec<usize>) {
        let (mut samples, mut sizes) = (Vec::new(), Vec::new());
        let distance = (total / (wanted / SAMPLE_LEN).max(1)).max(SAMPLE_LEN);
        // The offset of the next sample in the file.
        let mut next = 0;
        for file in files {
            let len = file.metadata.len;
            let live = (next < len).then(|| self.disk.open_to_read(&file.path));
            if let Some(Ok(live)) = live {
                let mut at = next;
                while at < len {
                    let mut sample = vec![0; SAMPLE_LEN.min(len - at) as usize];
                    if let Ok(read) = live.fill(at, &mut sample) {
                        samples.extend(&sample[..read]);
                        sizes.push(read);
                    }
                    at += distance;
                }
            }
            // The distance continues over the ends of files, so that many short files give no more samples than a long
            // one.
            while next < len {
                next += distance;
            }
            next -= len;
        }
        sizes.retain(|size| *size > 0);
        (samples, sizes)
    }
}

impl Captured {
    fn count(&mut self, is_session: bool, is_changed: bool) {
        self.sessions += u64::from(is_session && is_changed);
        self.unchanged += u64::from(is_session && !is_changed);
    }
}

/// Returns the session whose own file it is.
fn live_session(file: &LiveFile) -> Option<LiveSession> {
    let (_, name) = on_machine(&file.name);
    let (project, name) = name.strip_prefix("projects/")?.split_once('/')?;
    let id = name.strip_suffix(".jsonl").filter(|id| !id.contains('/'))?;
    Some(LiveSession {
        id: id.to_owned(),
        project: project.to_owned(),
        modified: file.metadata.modified,
    })
}

/// Adds a file to the archive, or nothing of it. Returns the number of bytes that are new.
fn add_file(
    packer: &mut Packer<'_>,
    file: &LiveFile,
    from: Option<(VersionId, u64)>,
    now: SystemTime,
    options: &CaptureOptions,
    buffer: &mut Vec<u8>,
) -> Result<u64, Problem> {
    let added = try_add_file(packer, file, from, now, options, buffer);
    if let Err(Problem::OfFile(_)) = added {
        packer.drop_file();
    }
    added
}

fn try_add_file(
    packer: &mut Packer<'_>,
    file: &LiveFile,
    from: Option<(VersionId, u64)>,
    now: SystemTime,
    options: &CaptureOptions,
    buffer: &mut Vec<u8>,
) -> Result<u64, Problem> {
    let of_file = |error| Problem::OfFile(Error::io(&file.path, error));
    let (mut metadata, mut from) = (file.metadata, from);
    for _ in 0..MAX_ATTEMPTS {
        let live = packer
            .archive()
            .disk
            .open_to_read(&file.path)
            .map_err(of_file)?;
        let start = from.map_or(0, |(_, keep)| keep);
        let done = options.done.as_deref();
        let read = read_file(packer, &*live, file, start, metadata.len, done, buffer)?;
        // Clients append while it is read, which is no problem; a file that got shorter or was replaced is read again.
        let after = live.metadata().map_err(of_file)?;
        let is_same_file = after.identity == metadata.identity;
        let (Some(partial), true) = (read, is_same_file && after.len >= metadata.len) else {
            // It was cut or replaced while it was read.
            packer.drop_file();
            metadata = packer
                .archive()
                .disk
                .metadata(&file.path)
                .map_err(of_file)?;
            from = None;
            continue;
        };
        let before = base_version(packer, from).map_err(of_file)?;
        let fingerprint = if packer.archive().layout.encryption.is_on() {
            Some(fingerprint(&*live, metadata.len).map_err(of_file)?)
        } else {
            None
        };
        // Subagents and stored results are in deeper folders and have no row of their own in a list.
        let (_, name) = on_machine(&file.name);
        let is_session = name.starts_with("projects/") && name.matches('/').count() == 2;
        let summarize = options.summarize.as_ref().filter(|_| is_session);
        let version = Version {
            path: file.name.clone(),
            captured: packer.captured(),
            len: metadata.len,
            state: state_of(&metadata, now),
            before,
            extents: Vec::new(),
            partial,
            fingerprint,
            summary: (0, 0),
        };
        let summary = summarize.map(|summarize| summarize(&file.path));
        let added = packer.end_file(version, &summary.unwrap_or_default());
        added.map_err(Problem::OfArchive)?;
        return Ok(metadata.len - start);
    }
    let what = "it keeps changing; the next run captures it";
    Err(of_file(io::Error::new(io::ErrorKind::ResourceBusy, what)))
}
