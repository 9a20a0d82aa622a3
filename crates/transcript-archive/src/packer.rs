//! Writes packs: divides files into frames, finds lines that are stored already, and compresses on several threads.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

use transcript_storage::File;

use crate::archive::Archive;
use crate::catalogue::Pack;
use crate::error::{AtPath, Error};
use crate::files::{append_all, lock, remove_if_there};
use crate::frame::{Compressor, Dictionary, Effort, compress_after, decompress};
use crate::limits::{self, FULL_INDEX_LEN, MAX_EXTENTS};
use crate::lines::{Feature, FrameLines, feature, first_line, is_similar};
use crate::pack;
use crate::record::{
    Coding, DictionaryId, Extent, Frame, FramePosition, Hash, PackId, PackIndex, Replaced, Slice,
    Version, hash,
};

/// The length of the content at which a frame ends, in bytes.
const FRAME_LEN: usize = 1 << 20;
/// The length of the content, in bytes, from which no other file shares a frame. Longer files are read alone.
const SHARED_FRAME_LEN: usize = 256 << 10;
/// The maximum length of a line in a frame, in bytes. Longer lines are divided, as a frame holds less than 4 GiB.
const MAX_LINE_LEN: usize = 32 << 20;
/// The length of a pack, in bytes, from which it has a copy of its dictionary.
const DICTIONARY_COPY_PACK_LEN: u64 = 64 << 20;
/// The maximum number of frames for each thread that are being compressed or wait for it.
const WAITING_FRAMES_PER_THREAD: usize = 3;
/// The maximum number of frames that are kept to compare lines with.
const MAX_ACTIVE_FRAMES: usize = 6;
/// One of this number of features is kept; more are kept of the first lines of a file.
const FEATURE_SAMPLING: Feature = 16;
const FULLY_SAMPLED_LINES: usize = 4;
/// The minimum number of lines of a file in a frame before the frame is read to compare lines with it.
const MIN_FRAME_HITS: u32 = 2;
/// After this number of copied lines in a row the next frame is expected to have the next one.
const LONG_COPY_RUN: u32 = 16;
/// The number of frames that are read to compare lines with: these, one more for each `SEARCHED_BYTES_PER_READ` bytes, and one more
/// for each `FOUND_BYTES_PER_READ` bytes that were found.
const BASE_READS: u64 = 8;
const SEARCHED_BYTES_PER_READ: u64 = 512 << 10;
const FOUND_BYTES_PER_READ: u64 = 32 << 10;
/// The number of the pack that is being written.
const THIS_PACK: u32 = u32::MAX;

/// A frame to which content is added.
#[derive(Debug, Default)]
struct OpenFrame {
    /// Its number, once it has content.
    number: Option<u32>,
    content: Vec<u8>,
    prefix: Vec<u8>,
    slices: Vec<Slice>,
}

/// A frame to compress.
struct Job {
    order: u64,
    number: u32,
    content: Arc<[u8]>,
    how: JobCoding,
    is_lines: bool,
}

/// The compression that a frame is to get.
enum JobCoding {
    Standalone,
    Dictionary,
    Prefix(Vec<u8>, Vec<Slice>),
}

/// A compressed frame.
struct CompressedFrame {
    number: u32,
    stored: io::Result<Vec<u8>>,
    len: usize,
    hash: Hash,
    coding: Coding,
    is_lines: bool,
}

/// The limits and the effort of writing packs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) threads: usize,
    /// A pack ends after the file with which it reaches this length, in bytes.
    pub(crate) pack_len: u64,
    pub(crate) effort: Effort,
}

/// The number and the length of the written packs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PackTotals {
    pub(crate) packs: u64,
    /// The length of the packs, in bytes.
    pub(crate) stored: u64,
}

/// An index of lines that later lines may repeat.
#[derive(Debug, Default)]
struct KnownLines {
    /// By the lower half of the feature: pack, frame and offset.
    places: HashMap<u32, (u32, u32, u32)>,
    /// The frames in which lines were found last.
    active: VecDeque<(u32, u32, Arc<FrameLines>)>,
    /// The line after the last one that was found.
    next: Option<(u32, u32, u32)>,
    /// The number of lines in a row that were found.
    run: u32,
    /// For frames that are not active, how many lines of the file may be in them.
    hits: HashMap<(u32, u32), u32>,
    /// The number of frames that were read, of bytes that were searched, and of those that were found.
    reads: u64,
    searched: u64,
    found: u64,
    /// The features of the pack that is being written.
    new: Vec<u8>,
    is_loaded: bool,
}

/// Writes packs. Threads of `scope` compress.
pub(crate) struct Packer<'a> {
    archive: &'a mut Archive,
    dictionary: Option<Arc<Dictionary>>,
    jobs: SyncSender<Job>,
    done: Receiver<(u64, CompressedFrame)>,
    /// The compressed frames that wait for an earlier frame.
    early: BTreeMap<u64, CompressedFrame>,
    sent: u64,
    written: u64,
    most_waiting: u64,
    limits: Limits,
    lines: OpenFrame,
    other: OpenFrame,
    repeated: OpenFrame,
    known: KnownLines,
    index: PackIndex,
    frames: Vec<Option<Frame>>,
    layout: pack::Layout,
    file: Option<(Arc<dyn File>, PathBuf)>,
    hasher: blake3::Hasher,
    len: u64,
    total: PackTotals,
    /// The parts of the file that is being added.
    extents: Vec<Extent>,
    first_lines: usize,
    /// The summaries that callers store with the versions.
    summaries: Vec<u8>,
    /// The length of the index so far, at most, in bytes.
    index_len: usize,
    /// Dictionaries of which the pack gets a copy, besides its own.
    copies: Vec<(DictionaryId, Vec<u8>)>,
}

impl<'a> Packer<'a> {
    /// Starts to write packs.
    pub(crate) fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        archive: &'a mut Archive,
        dictionary: Option<Arc<Dictionary>>,
        captured: i64,
        limits: Limits,
    ) -> Self {
        let Limits {
            threads, effort, ..
        } = limits;
        let most_waiting = threads * WAITING_FRAMES_PER_THREAD;
        // Bounded, so that a fast disk does not fill the memory with frames that wait for the compressor.
        let (jobs, waiting) = sync_channel::<Job>(most_waiting);
        let (finished, done) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let (waiting, finished) = (Arc::clone(&waiting), finished.clone());
            let dictionary = dictionary.clone();
            scope.spawn(move || compress_all(&waiting, &finished, dictionary.as_deref(), effort));
        }
        Self {
            archive,
            dictionary,
            jobs,
            done,
            early: BTreeMap::new(),
            sent: 0,
            written: 0,
            most_waiting: most_waiting as u64,
            limits,
            lines: OpenFrame::default(),
            other: OpenFrame::default(),
            repeated: OpenFrame::default(),
            known: KnownLines::default(),
            index: PackIndex {
                captured,
                ..PackIndex::default()
            },
            frames: Vec::new(),
            layout: pack::Layout::default(),
            file: None,
            hasher: blake3::Hasher::new(),
            len: 0,
            total: PackTotals::default(),
            extents: Vec::new(),
            first_lines: 0,
            summaries: Vec::new(),
            index_len: 0,
            copies: Vec::new(),
        }
    }

    pub(crate) fn archive(&self) -> &Archive {
        self.archive
    }

    /// Returns the time of the capture, in milliseconds since 1970.
    pub(crate) fn captured(&self) -> i64 {
        self.index.captured
    }

    /// Returns the number by which the pack that is being written refers to a pack.
    pub(crate) fn refer_to(&mut self, pack: u32) -> u32 {
        if pack == THIS_PACK {
            return 0;
        }
        let Some(pack) = self.archive.catalogue.packs.get(pack as usize) else {
            return 0;
        };
        let known = self.index.packs.iter().position(|id| *id == pack.id);
        let at = known.unwrap_or_else(|| {
            self.index.packs.push(pack.id);
            self.index.packs.len() - 1
        });
        at as u32 + 1
    }

    /// Adds lines of a file, whole ones but for the last of the file. With `search` they may be copies of
    /// lines of other files.
    pub(crate) fn add_lines(&mut self, mut bytes: &[u8], search: bool) -> Result<(), Error> {
        while !bytes.is_empty() {
            let line = first_line(bytes);
            // A part of a long line is not a line for the search, but all parts together are the same bytes.
            let line = &line[..line.len().min(MAX_LINE_LEN)];
            bytes = &bytes[line.len()..];
            self.add_line(line, search)?;
        }
        Ok(())
    }

    fn add_line(&mut self, line: &[u8], search: bool) -> Result<(), Error> {
        let feature = feature(line);
        // A file of very many copied lines would get an index that no reader accepts.
        let search = search && self.extents.len() < MAX_EXTENTS;
        if search && let Some((pack, frame, start)) = self.find(line, feature)? {
            let Some((_, _, lines)) = self.known.active.front() else {
                return Ok(());
            };
            let lines = Arc::clone(lines);
            let base = lines.line_at(start).unwrap_or_default();
            self.known.next = Some((pack, frame, start + base.len() as u32));
            let pack = self.refer_to(pack);
            self.repeated.repeat(pack, frame, start, base);
            let number = self.number_of(FrameKind::Repeated);
            self.add_extent(number, self.repeated.content.len(), line);
            self.repeated.content.extend(line);
            let is_full =
                self.repeated.content.len() >= FRAME_LEN || self.repeated.prefix.len() >= FRAME_LEN;
            return if is_full {
                self.close(FrameKind::Repeated)
            } else {
                Ok(())
            };
        }
        // A line that is not a copy ends the run: the fork has a line of its own here.
        (self.known.next, self.known.run) = (None, 0);
        let number = self.number_of(FrameKind::Lines);
        let start = self.lines.content.len();
        if let Some(feature) = feature {
            // The first lines of a file are kept in any case, since a fork is recognized by the first lines that it
            // copies.
            let is_kept =
                feature.is_multiple_of(FEATURE_SAMPLING) || self.first_lines < FULLY_SAMPLED_LINES;
            self.first_lines += 1;
            if is_kept {
                let key = feature as u32;
                self.known.new.extend(key.to_le_bytes());
                self.known.new.extend(number.to_le_bytes());
                self.known.new.extend((start as u32).to_le_bytes());
                // The first of several copies: then those of a file are together.
                let place = (THIS_PACK, number, start as u32);
                self.known.places.entry(key).or_insert(place);
            }
        }
        self.add_extent(number, start, line);
        self.lines.content.extend(line);
        if self.lines.content.len() >= FRAME_LEN {
            self.close(FrameKind::Lines)
        } else {
            Ok(())
        }
    }

    /// Adds bytes of a file that is not lines.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for part in bytes.chunks(FRAME_LEN) {
            let number = self.number_of(FrameKind::Other);
            self.add_extent(number, self.other.content.len(), part);
            self.other.content.extend(part);
            if self.other.content.len() >= FRAME_LEN {
                self.close(FrameKind::Other)?;
            }
        }
        Ok(())
    }

    /// Adds bytes of a file that are nearly those of other frames, which `prefix` has, in a frame of their own. The packs of the
    /// slices are numbers in the catalogue.
    pub(crate) fn add_alike(
        &mut self,
        bytes: &[u8],
        slices: &[(u32, Slice)],
        prefix: Vec<u8>,
    ) -> Result<(), Error> {
        self.close(FrameKind::Repeated)?;
        for (pack, slice) in slices {
            let pack = self.refer_to(*pack);
            self.repeated.slices.push(Slice { pack, ..*slice });
        }
        self.repeated.prefix = prefix;
        let number = self.number_of(FrameKind::Repeated);
        self.add_extent(number, 0, bytes);
        self.repeated.content.extend(bytes);
        self.close(FrameKind::Repeated)
    }

    fn add_extent(&mut self, frame: u32, start: usize, bytes: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', bytes).count() as u32;
        let (start, len) = (start as u32, bytes.len() as u32);
        // Adjacent lines are one extent; a session that was not copied from elsewhere has a few instead of one for each
        // line.
        if let Some(last) = self.extents.last_mut()
            && last.frame == frame
            && last.start + last.len == start
        {
            last.len += len;
            last.lines += lines;
            return;
        }
        self.extents.push(Extent {
            frame,
            start,
            len,
            lines,
        });
    }

    /// Ends a file: `version` is complete except for its extents and the summary.
    pub(crate) fn end_file(&mut self, mut version: Version, summary: &[u8]) -> Result<(), Error> {
        version.extents = self.take_extents();
        // Hits count for one file: a frame is read only for a file that has several lines in it.
        self.known.hits.clear();
        self.end_files(vec![(version, summary)])
    }

    /// Returns the parts of the file that was being added, and begins another one. Its version is still to be added, with
    /// [`end_files`](Self::end_files) and before any other file ends.
    pub(crate) fn take_extents(&mut self) -> Vec<Extent> {
        let extents = mem::take(&mut self.extents);
        self.drop_file();
        extents
    }

    /// Ends files that are one moment together: all of their versions are in one pack.
    pub(crate) fn end_files(&mut self, versions: Vec<(Version, &[u8])>) -> Result<(), Error> {
        for (version, summary) in versions {
            self.add_version(version, summary);
        }
        // Small files share a frame, which compresses better. After a long one it ends, so that reading it does not read
        // others.
        if self.lines.content.len() >= SHARED_FRAME_LEN {
            self.close(FrameKind::Lines)?;
        }
        let is_full = self.len >= self.limits.pack_len || self.is_index_full();
        if is_full {
            self.end_pack()?;
        }
        Ok(())
    }

    /// Returns whether the index, the features or the summaries of the pack would soon exceed their limits.
    fn is_index_full(&self) -> bool {
        [self.index_len, self.summaries.len(), self.known.new.len()]
            .iter()
            .any(|len| *len >= FULL_INDEX_LEN)
    }

    /// Adds a version, and returns its number.
    pub(crate) fn add_version(&mut self, mut version: Version, summary: &[u8]) -> u32 {
        version.summary = (self.summaries.len() as u32, summary.len() as u32);
        self.summaries.extend(summary);
        self.index_len += limits::version_len(&version);
        self.index.versions.push(version);
        self.index.versions.len() as u32 - 1
    }

    /// Adds the content of a frame of another pack, and returns where it is now.
    pub(crate) fn add_content(
        &mut self,
        content: &[u8],
        is_lines: bool,
    ) -> Result<FramePosition, Error> {
        let which = if is_lines {
            FrameKind::Lines
        } else {
            FrameKind::Other
        };
        let frame = self.number_of(which);
        let open = if is_lines {
            &mut self.lines
        } else {
            &mut self.other
        };
        let start = open.content.len() as u32;
        open.content.extend(content);
        if open.content.len() >= FRAME_LEN {
            self.close(which)?;
        }
        Ok(FramePosition { frame, start })
    }

    /// Adds the content of a frame with a prefix, which is the content of slices, and returns where it is now. The packs of the
    /// slices are numbers in the catalogue, or `None` for this pack.
    pub(crate) fn add_repeated(
        &mut self,
        content: &[u8],
        slices: &[(Option<u32>, Slice)],
        prefix: &[u8],
    ) -> Result<FramePosition, Error> {
        for (pack, slice) in slices {
            let pack = pack.map_or(0, |pack| self.refer_to(pack));
            self.repeated.slices.push(Slice { pack, ..*slice });
        }
        self.repeated.prefix.extend(prefix);
        let frame = self.number_of(FrameKind::Repeated);
        let start = self.repeated.content.len() as u32;
        self.repeated.content.extend(content);
        if self.repeated.content.len() >= FRAME_LEN || self.repeated.prefix.len() >= FRAME_LEN {
            self.close(FrameKind::Repeated)?;
        }
        Ok(FramePosition { frame, start })
    }

    /// Adds the feature of a line of which the place is known.
    pub(crate) fn add_feature(&mut self, feature: [u8; 4], place: FramePosition) {
        self.known.new.extend(feature);
        self.known.new.extend(place.frame.to_le_bytes());
        self.known.new.extend(place.start.to_le_bytes());
    }

    /// Adds a copy of a dictionary to the pack.
    pub(crate) fn add_copy(&mut self, id: DictionaryId, bytes: &[u8]) {
        if !self.copies.iter().any(|(known, _)| *known == id) {
            self.copies.push((id, bytes.to_vec()));
        }
    }

    /// Says that the pack has everything of another one.
    pub(crate) fn replace(&mut self, replaced: Replaced) {
        self.index.replaces.push(replaced);
    }

    /// Leaves out the file that is being added.
    pub(crate) fn drop_file(&mut self) {
        self.extents.clear();
        self.first_lines = 0;
        self.known.next = None;
        if self.lines.content.last().is_some_and(|last| *last != b'\n') {
            self.lines.content.push(b'\n');
        }
    }

    /// Returns where a similar line is: pack, frame and offset. Its frame is the first active one then.
    fn find(
        &mut self,
        line: &[u8],
        feature: Option<Feature>,
    ) -> Result<Option<(u32, u32, u32)>, Error> {
        let found = self.find_next(line)?;
        let found = match (found, feature) {
            (None, Some(feature)) => self.find_feature(line, feature)?,
            (found, _) => found,
        };
        // The budget of frame reads grows with both: a capture without copies reads few frames, one full of forks many.
        self.known.searched += line.len() as u64;
        self.known.found += found.map_or(0, |_| line.len() as u64);
        self.known.run = found.map_or(0, |_| self.known.run + 1);
        Ok(found)
    }

    /// Looks at the line after the one that was found last.
    fn find_next(&mut self, line: &[u8]) -> Result<Option<(u32, u32, u32)>, Error> {
        let Some((pack, frame, start)) = self.known.next else {
            return Ok(None);
        };
        if self.is_base(pack, frame, start, line) {
            return Ok(Some((pack, frame, start)));
        }
        let active = self.known.active.front();
        // After a long run at the end of a frame the fork most likely continues with the next frame, which is worth a
        // read.
        let is_end = active.is_some_and(|(_, _, lines)| lines.line_at(start).is_none());
        if !is_end || self.known.run < LONG_COPY_RUN || !self.activate(pack, frame + 1)? {
            return Ok(None);
        }
        let is_base = self.is_base(pack, frame + 1, 0, line);
        Ok(is_base.then_some((pack, frame + 1, 0)))
    }

    /// Looks for a line with the same feature.
    fn find_feature(
        &mut self,
        line: &[u8],
        feature: Feature,
    ) -> Result<Option<(u32, u32, u32)>, Error> {
        self.load_features();
        for at in 0..self.known.active.len() {
            let (pack, frame, lines) = &self.known.active[at];
            let (pack, frame) = (*pack, *frame);
            if let Some(start) = lines.find(feature)
                && self.is_base(pack, frame, start, line)
            {
                return Ok(Some((pack, frame, start)));
            }
        }
        let Some((pack, frame, start)) = self.known.places.get(&(feature as u32)).copied() else {
            return Ok(None);
        };
        let hits = self.known.hits.entry((pack, frame)).or_default();
        *hits += 1;
        if *hits < MIN_FRAME_HITS || !self.activate(pack, frame)? {
            return Ok(None);
        }
        self.known.hits.remove(&(pack, frame));
        let is_base = self.is_base(pack, frame, start, line);
        Ok(is_base.then_some((pack, frame, start)))
    }

    /// Makes a frame one that lines are compared with. Returns false if that is not possible, or costs too much.
    fn activate(&mut self, pack: u32, frame: u32) -> Result<bool, Error> {
        let is_it = |(of, number, _): &(u32, u32, _)| (*of, *number) == (pack, frame);
        if self.known.active.iter().any(is_it) {
            return Ok(true);
        }
        // The frame that is being filled repeats its own lines without help.
        let is_open = pack == THIS_PACK && self.lines.number == Some(frame);
        let known = &self.known;
        let most = BASE_READS
            + known.searched / SEARCHED_BYTES_PER_READ
            + known.found / FOUND_BYTES_PER_READ;
        if is_open || known.reads > most {
            return Ok(false);
        }
        self.known.reads += 1;
        // A damaged frame is not a base: its lines are stored again, in full.
        let Ok(content) = self.content(pack, frame)? else {
            return Ok(false);
        };
        let lines = Arc::new(FrameLines::new(content));
        self.known.active.push_front((pack, frame, lines));
        self.known.active.truncate(MAX_ACTIVE_FRAMES);
        Ok(true)
    }

    /// Returns whether a line of an active frame is similar, and makes its frame the first one.
    fn is_base(&mut self, pack: u32, frame: u32, start: u32, line: &[u8]) -> bool {
        let active = &mut self.known.active;
        let Some(at) = active
            .iter()
            .position(|(of, number, _)| (*of, *number) == (pack, frame))
        else {
            return false;
        };
        let base = active[at].2.line_at(start);
        let is_similar = base.is_some_and(|base| is_similar(line, base));
        if is_similar
            && at > 0
            && let Some(found) = active.remove(at)
        {
            active.push_front(found);
        }
        is_similar
    }

    /// Returns the content of a frame, which may be in the pack that is being written.
    fn content(&mut self, pack: u32, frame: u32) -> Result<io::Result<Arc<[u8]>>, Error> {
        if pack != THIS_PACK {
            return Ok(if self.archive.is_with_prefix(pack, frame) {
                // Nothing repeats a line that repeats another one.
                Err(io::ErrorKind::InvalidData.into())
            } else {
                self.archive.content(pack, frame)
            });
        }
        let is_open = [&self.lines, &self.other, &self.repeated];
        // A frame can be read only after it was written. An open one repeats its own lines without help.
        let is_open = is_open.iter().any(|open| open.number == Some(frame));
        if is_open || frame as usize >= self.frames.len() {
            return Ok(Err(io::ErrorKind::NotFound.into()));
        }
        while self.frames[frame as usize].is_none() {
            if self.written == self.sent {
                return Ok(Err(io::ErrorKind::NotFound.into()));
            }
            self.receive()?;
        }
        let (Some(found), Some((file, _))) = (&self.frames[frame as usize], &self.file) else {
            return Ok(Err(io::ErrorKind::NotFound.into()));
        };
        let mut stored = vec![0; found.stored as usize];
        let mut read = || -> io::Result<Arc<[u8]>> {
            if file.fill(found.at, &mut stored)? < stored.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let dictionary = match found.coding {
                Coding::Dictionary(_) => self.dictionary.as_deref(),
                Coding::Plain => None,
                // A base never has a base itself, so a damaged frame costs only the lines that repeat it directly.
                Coding::Prefix(_) => return Err(io::ErrorKind::InvalidData.into()),
            };
            let content = decompress(&stored, found.len as usize, dictionary)?;
            if hash(&content) == found.hash {
                Ok(content.into())
            } else {
                Err(io::ErrorKind::InvalidData.into())
            }
        };
        Ok(read())
    }

    /// Reads where lines are that are in packs.
    fn load_features(&mut self) {
        if mem::replace(&mut self.known.is_loaded, true) {
            return;
        }
        for (number, pack) in (0..).zip(&self.archive.catalogue.packs) {
            if !pack.is_there || self.archive.catalogue.is_replaced(number) {
                continue;
            }
            for (feature, place) in self.archive.features(number) {
                let place = (number, place.frame, place.start);
                let feature = u32::from_le_bytes(feature);
                // The oldest pack first: copies of copies then all refer to the original.
                self.known.places.entry(feature).or_insert(place);
            }
        }
    }

    fn number_of(&mut self, which: FrameKind) -> u32 {
        let frames = &mut self.frames;
        let open = match which {
            FrameKind::Lines => &mut self.lines,
            FrameKind::Other => &mut self.other,
            FrameKind::Repeated => &mut self.repeated,
        };
        *open.number.get_or_insert_with(|| {
            frames.push(None);
            frames.len() as u32 - 1
        })
    }

    /// Sends a frame to be compressed, if it has content.
    fn close(&mut self, which: FrameKind) -> Result<(), Error> {
        let open = match which {
            FrameKind::Lines => &mut self.lines,
            FrameKind::Other => &mut self.other,
            FrameKind::Repeated => &mut self.repeated,
        };
        let open = mem::take(open);
        let Some(number) = open.number else {
            return Ok(());
        };
        let how = match which {
            FrameKind::Repeated => JobCoding::Prefix(open.prefix, open.slices),
            _ => JobCoding::Dictionary,
        };
        self.send(number, open.content, how, which == FrameKind::Lines)
    }

    fn send(
        &mut self,
        number: u32,
        content: Vec<u8>,
        how: JobCoding,
        is_lines: bool,
    ) -> Result<(), Error> {
        // Counts frames that are compressed and wait for an earlier one, too. The channel alone would not bound them.
        while self.sent - self.written >= self.most_waiting {
            self.receive()?;
        }
        let job = Job {
            order: self.sent,
            number,
            content: content.into(),
            how,
            is_lines,
        };
        self.sent += 1;
        let gone = || {
            Error::io(
                &self.archive.layout.folder,
                io::Error::other("a thread ended"),
            )
        };
        self.jobs.send(job).map_err(|_| gone())?;
        while let Ok((order, done)) = self.done.try_recv() {
            self.early.insert(order, done);
        }
        self.write_early()
    }

    /// Waits for a compressed frame.
    fn receive(&mut self) -> Result<(), Error> {
        let gone = || {
            Error::io(
                &self.archive.layout.folder,
                io::Error::other("a thread ended"),
            )
        };
        let (order, done) = self.done.recv().map_err(|_| gone())?;
        self.early.insert(order, done);
        self.write_early()
    }

    /// Writes the frames that are next.
    fn write_early(&mut self) -> Result<(), Error> {
        // In the order in which they were sent, so that offsets do not depend on the speed of the threads.
        while let Some(done) = self.early.remove(&self.written) {
            self.written += 1;
            let [path, _] = self.archive.layout.new_pack();
            let stored = done.stored.at(&path)?;
            let stored_len = stored.len() as u32;
            self.index_len += limits::frame_len(&done.coding);
            let (bytes, at) = self.layout.frame(stored, done.len, done.is_lines);
            self.write(&bytes)?;
            self.frames[done.number as usize] = Some(Frame {
                at,
                stored: stored_len,
                len: done.len as u32,
                hash: done.hash,
                is_lines: done.is_lines,
                coding: done.coding,
            });
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.file.is_none() {
            let [path, _] = self.archive.layout.new_pack();
            let disk = &*self.archive.disk;
            // A killed capture may have left a pack under the temporary name.
            remove_if_there(disk, &path).at(&path)?;
            let opened = disk.open(&path, true).at(&path)?;
            self.file = Some((opened.file, path));
        }
        if let Some((file, path)) = &self.file {
            // Before each write: clients write to the same disk meanwhile.
            self.archive.check_space(bytes.len() as u64)?;
            append_all(&**file, bytes).at(path)?;
        }
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Completes the pack: from now on its files are captured.
    ///
    /// # Errors
    /// The pack is not there then, except when only the sync of its folder failed: then it is there, whole, and the next capture
    /// finds it. Temporary files of it may be left, which the caller removes ([`Archive::after_failure`]).
    fn end_pack(&mut self) -> Result<(), Error> {
        for which in [FrameKind::Lines, FrameKind::Other, FrameKind::Repeated] {
            self.close(which)?;
        }
        while self.written < self.sent {
            self.receive()?;
        }
        if self.index.versions.is_empty() {
            return Ok(());
        }
        self.add_dictionary_copies()?;
        let (features, summaries) = (
            mem::take(&mut self.known.new),
            mem::take(&mut self.summaries),
        );
        // Compressed by the threads as well, so they are written before the index, which needs their offsets.
        let kept = self.archive.keeps_summaries().then(|| summaries.clone());
        self.index.features = self.add_hidden(features)?;
        self.index.summaries = self.add_hidden(summaries)?;
        while self.written < self.sent {
            self.receive()?;
        }
        self.index_len = 0;
        let captured = self.index.captured;
        let mut index = mem::take(&mut self.index);
        self.index.captured = captured;
        // Frames with content of a dropped file stay in the pack: no version refers to them, but they were already written.
        index.frames = mem::take(&mut self.frames).into_iter().flatten().collect();
        let [new, stored] = self.archive.layout.new_pack();
        let (end, section) = mem::take(&mut self.layout).finish(&index).at(&new)?;
        self.write(&end)?;
        let mut id = PackId([0; 16]);
        // The name is the hash of all bytes, so two captures of the same content can only write the same file.
        id.0.copy_from_slice(&self.hasher.finalize().as_bytes()[..16]);
        self.hasher = blake3::Hasher::new();
        self.total.packs += 1;
        let len = mem::take(&mut self.len);
        self.total.stored += len;
        let Some((file, new)) = self.file.take() else {
            return Ok(());
        };
        let path = self.archive.layout.pack(id);
        let archive = &mut *self.archive;
        let encryption = &archive.layout.encryption;
        if encryption.is_on() {
            drop(file);
            archive.check_space(len)?;
            encryption
                .seal_file(&*archive.disk, &new, &stored)
                .at(&stored)?;
            remove_if_there(&*archive.disk, &new).at(&new)?;
        } else {
            // Before the rename: a power cut must not leave a pack under its final name whose bytes are missing.
            file.sync().at(&new)?;
            drop(file);
        }
        archive.publish(&stored, &path).at(&path)?;
        if let Some(summaries) = kept.filter(|summaries| !summaries.is_empty()) {
            archive.keep_summaries(id, &summaries);
        }
        let number = archive.catalogue.packs.len() as u32;
        // Whatever happens to the catalogue, the pack is there.
        let appended =
            archive
                .catalogue
                .append(&*archive.disk, &archive.layout, id, index, &section);
        if let Err(error) = appended {
            archive.catalogue.problems.push(error);
        }
        for place in self.known.places.values_mut() {
            if place.0 == THIS_PACK {
                place.0 = number;
            }
        }
        for (pack, _, _) in &mut self.known.active {
            if *pack == THIS_PACK {
                *pack = number;
            }
        }
        if let Some((pack, _, _)) = &mut self.known.next
            && *pack == THIS_PACK
        {
            *pack = number;
        }
        Ok(())
    }

    /// Adds the dictionary to the pack, if no other pack has a copy or this one is long enough for another, and copies that were
    /// asked for.
    fn add_dictionary_copies(&mut self) -> Result<(), Error> {
        let is_with_dictionary = |frame: &Frame| matches!(frame.coding, Coding::Dictionary(_));
        let mut copies = mem::take(&mut self.copies);
        if let Some(dictionary) = self.dictionary.clone()
            && self.frames.iter().flatten().any(is_with_dictionary)
        {
            self.index.dictionaries.push(dictionary.id);
            copies.retain(|(id, _)| *id != dictionary.id);
            if !self.has_copy(dictionary.id) || self.len >= DICTIONARY_COPY_PACK_LEN {
                copies.insert(0, (dictionary.id, dictionary.bytes.clone()));
            }
        }
        for (id, bytes) in copies {
            let known = self.index.dictionaries.iter().position(|of| *of == id);
            let number = known.unwrap_or_else(|| {
                self.index.dictionaries.push(id);
                self.index.dictionaries.len() - 1
            });
            if let Some(frame) = self.add_hidden(bytes)? {
                self.index.copies.push((number as u32, frame));
            }
        }
        Ok(())
    }

    /// Returns whether a pack has a copy of a dictionary, and will have it.
    fn has_copy(&self, id: DictionaryId) -> bool {
        let is_left = |pack: &Pack| {
            let mut replaced = self.index.replaces.iter();
            pack.is_there && !replaced.any(|replaced| replaced.pack == pack.id)
        };
        let mut packs = self
            .archive
            .catalogue
            .packs
            .iter()
            .filter(|pack| is_left(pack));
        packs.any(|pack| pack.index.copy_of(id).is_some())
    }

    /// Adds a frame that no file has, and returns its number; `None` if it is empty.
    fn add_hidden(&mut self, content: Vec<u8>) -> Result<Option<u32>, Error> {
        if content.is_empty() {
            return Ok(None);
        }
        self.frames.push(None);
        let number = self.frames.len() as u32 - 1;
        self.send(number, content, JobCoding::Standalone, false)?;
        Ok(Some(number))
    }

    /// Completes the last pack.
    pub(crate) fn finish(mut self) -> Result<PackTotals, Error> {
        self.end_pack()?;
        Ok(self.total)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    Lines,
    Other,
    Repeated,
}

impl OpenFrame {
    /// Adds a line to the prefix.
    fn repeat(&mut self, pack: u32, frame: u32, start: u32, base: &[u8]) {
        let len = base.len() as u32;
        if let Some(last) = self.slices.last_mut()
            && (last.pack, last.frame) == (pack, frame)
            && last.start + last.len == start
        {
            last.len += len;
        } else {
            self.slices.push(Slice {
                pack,
                frame,
                start,
                len,
            });
        }
        self.prefix.extend(base);
    }
}

/// Compresses frames until no more can come.
fn compress_all(
    waiting: &Mutex<Receiver<Job>>,
    finished: &Sender<(u64, CompressedFrame)>,
    dictionary: Option<&Dictionary>,
    effort: Effort,
) {
    let mut compressor = None;
    loop {
        // The guard is dropped before the work starts.
        let Ok(job) = lock(waiting).recv() else {
            return;
        };
        let order = job.order;
        if finished
            .send((order, compress(&job, &mut compressor, dictionary, effort)))
            .is_err()
        {
            return;
        }
    }
}

fn compress<'d>(
    job: &Job,
    compressor: &mut Option<Compressor<'d>>,
    dictionary: Option<&'d Dictionary>,
    effort: Effort,
) -> CompressedFrame {
    let hash = hash(&job.content);
    let coding = match &job.how {
        JobCoding::Prefix(_, slices) => Coding::Prefix(slices.clone()),
        JobCoding::Dictionary if dictionary.is_some() => Coding::Dictionary(0),
        _ => Coding::Plain,
    };
    let mut run = || -> io::Result<Vec<u8>> {
        if let JobCoding::Prefix(prefix, _) = &job.how {
            return compress_after(prefix, &job.content);
        }
        let compressor = match compressor {
            Some(compressor) => compressor,
            None => compressor.insert(Compressor::new(dictionary, effort)?),
        };
        match job.how {
            JobCoding::Standalone => compressor.compress_without_base(&job.content),
            _ => compressor.compress(&job.content),
        }
    };
    CompressedFrame {
        number: job.number,
        stored: run(),
        len: job.content.len(),
        hash,
        coding,
        is_lines: job.is_lines,
    }
}
