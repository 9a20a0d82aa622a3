//! Sessions that are archived under several projects, because they were moved from one to another.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use transcript_storage::outside_names::is_session_name;

use crate::agent_files::moved_name;
use crate::archive::Archive;
use crate::catalogue::VersionId;
use crate::names::{below_project, is_own, place_of_project, session_of};

/// The size of reads, in bytes.
const READ_SIZE: usize = 256 << 10;

/// A file of a session: its path in the archive, and a version.
type ArchivedVersion<'a> = (&'a str, VersionId);

impl Archive {
    /// Returns which of these files were left behind by a move: those of sessions of which another project has a file that
    /// starts with the same bytes, or has the same entries. What is in them is in that file as well. Of equal ones the one that was captured last stays.
    /// A file of such a session that has no like there stays, too.
    pub(crate) fn left_behind<'a>(
        &self,
        files: impl Iterator<Item = ArchivedVersion<'a>>,
    ) -> HashSet<&'a str> {
        let mut places = HashMap::<&str, Vec<ArchivedVersion<'a>>>::new();
        let mut of_agents = HashMap::<&str, Vec<ArchivedVersion<'a>>>::new();
        for (name, version) in files {
            if let Some(file) = moved_name(name) {
                of_agents.entry(file).or_default().push((name, version));
            } else if let Some(below) =
                below_project(name).filter(|_| is_session_name(session_of(name)))
            {
                places.entry(below).or_default().push((name, version));
            }
        }
        places.retain(|_, files| files.len() > 1);
        let mut own = HashSet::new();
        let mut left = HashSet::new();
        for files in of_agents.values().filter(|files| files.len() > 1) {
            let is_left = |one: &&ArchivedVersion<'_>| {
                let mut others = files.iter();
                others.any(|other| self.is_copy_of(**one, *other))
            };
            left.extend(files.iter().filter(is_left).map(|(name, _)| *name));
        }
        // The own files of sessions come first.
        for is_own_turn in [true, false] {
            for (_, files) in places
                .iter()
                .filter(|(_, files)| is_own(files[0].0) == is_own_turn)
            {
                for one in files {
                    let session = |name| (place_of_project(name), session_of(name));
                    let mut others = files.iter();
                    let is_left = if is_own_turn {
                        others.any(|other| self.is_left_for(*one, *other))
                    } else {
                        own.contains(&session(one.0))
                            && others
                                .filter(|other| !own.contains(&session(other.0)))
                                .any(|other| self.is_start_of(*one, *other))
                    };
                    if is_left {
                        left.insert(one.0);
                        own.extend(is_own_turn.then(|| session(one.0)));
                    }
                }
            }
        }
        left
    }

    /// Returns the files that were left behind by a move, by their newest versions.
    pub(crate) fn newest_left_behind(&self) -> HashSet<&str> {
        self.left_behind_until(None)
    }

    /// Returns the files that were left behind by a move, by their newest versions until a time.
    pub(crate) fn left_behind_until(&self, until: Option<i64>) -> HashSet<&str> {
        let files = self.catalogue.files.keys();
        let newest = |name| self.catalogue.newest_until(name, until);
        self.left_behind(files.filter_map(|name| Some((&**name, newest(name)?))))
    }

    /// Returns whether a file of an agent has nothing that another one of the same name lacks. Of equal ones the one that was
    /// captured last stays.
    fn is_copy_of(&self, one: ArchivedVersion<'_>, other: ArchivedVersion<'_>) -> bool {
        let is_older = self.age(one) < self.age(other);
        self.is_start_of(one, other) && (self.len(one) < self.len(other) || is_older)
    }

    /// Returns when the version was captured, and an order of versions of the same time.
    fn age(&self, (name, version): ArchivedVersion<'_>) -> impl Ord + use<'_> {
        (self.captured(version), version, name.len())
    }

    /// Returns whether `one` of two own files of a session was left behind when the session was moved to where `other` is: what
    /// is in it is in the other one as well, or is only a move. What cannot be read was not.
    fn is_left_for(&self, one: ArchivedVersion<'_>, other: ArchivedVersion<'_>) -> bool {
        let (Some(len), Some(other_len)) = (self.len(one), self.len(other)) else {
            return false;
        };
        let is_newer = self.age(one) > self.age(other);
        match len.cmp(&other_len) {
            _ if one.0 == other.0 => false,
            Ordering::Equal if self.is_start_of(one, other) => !is_newer,
            // A session that was moved back is without the lines of the moves.
            Ordering::Less if self.is_start_of(one, other) => {
                !(is_newer && self.has_only_moves(other, len))
            }
            Ordering::Greater if self.is_start_of(other, one) => {
                !is_newer && self.has_only_moves(one, other_len)
            }
            _ => self.has_entries_of(one, other, is_newer),
        }
    }

    fn len(&self, (_, version): ArchivedVersion<'_>) -> Option<u64> {
        self.version(version).map(|version| version.len)
    }

    /// Returns whether all bytes of a file are the start of another one.
    fn is_start_of(&self, one: ArchivedVersion<'_>, other: ArchivedVersion<'_>) -> bool {
        let (Some(len), Some(other_len)) = (self.len(one), self.len(other)) else {
            return false;
        };
        if one.0 == other.0 || len > other_len {
            return false;
        }
        let (Ok(pieces), Ok(other_pieces)) = (self.pieces(one.1), self.pieces(other.1)) else {
            return false;
        };
        let (mut of_one, mut of_other) = (vec![0; READ_SIZE], vec![0; READ_SIZE]);
        let mut at = 0;
        while at < len {
            let part = usize::try_from(len - at).map_or(READ_SIZE, |left| left.min(READ_SIZE));
            let read = self.fill(&pieces, at, &mut of_one[..part]);
            let other_read = self.fill(&other_pieces, at, &mut of_other[..part]);
            let is_read = matches!((read, other_read), (Ok(read), Ok(other)) if read == part && other == part);
            if !is_read || of_one[..part] != of_other[..part] {
                return false;
            }
            at += part as u64;
        }
        true
    }

    /// Returns whether the lines of a file from this offset on only say where the session was moved.
    fn has_only_moves(&self, file: ArchivedVersion<'_>, from: u64) -> bool {
        let is_move = |line: &[u8]| {
            let line: Option<LineIds<'_>> = serde_json::from_slice(line).ok();
            line.is_some_and(|line| line.kind.as_deref() == Some("relocated"))
        };
        let mut is_only = true;
        let is_read = self.each_line(file, from, &mut |line| is_only &= is_move(line));
        is_read && is_only
    }

    /// Returns whether `other` has all entries of a file: it was written again, with the new folder in each line. Of files with
    /// the same entries the newer one stays.
    fn has_entries_of(
        &self,
        one: ArchivedVersion<'_>,
        other: ArchivedVersion<'_>,
        is_newer: bool,
    ) -> bool {
        let uuids = |file| {
            let mut uuids = HashSet::new();
            let is_read = self.each_line(file, 0, &mut |line| {
                let line: Option<LineIds<'_>> = serde_json::from_slice(line).ok();
                uuids.extend(line.and_then(|line| line.uuid.map(Cow::into_owned)));
            });
            Some(uuids).filter(|uuids| is_read && !uuids.is_empty())
        };
        let (Some(own), Some(others)) = (uuids(one), uuids(other)) else {
            return false;
        };
        own.is_subset(&others) && (own.len() < others.len() || !is_newer)
    }

    /// Passes the lines of a file from an offset on to `see`. Returns whether all of them could be read.
    fn each_line(&self, file: ArchivedVersion<'_>, from: u64, see: &mut dyn FnMut(&[u8])) -> bool {
        let (Some(len), Ok(pieces)) = (self.len(file), self.pieces(file.1)) else {
            return false;
        };
        let (mut at, mut buffer, mut line) = (from, vec![0; READ_SIZE], Vec::new());
        while at < len {
            let part = usize::try_from(len - at).map_or(READ_SIZE, |left| left.min(READ_SIZE));
            if !matches!(self.fill(&pieces, at, &mut buffer[..part]), Ok(read) if read == part) {
                return false;
            }
            for piece in buffer[..part].split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    see(&line);
                    line.clear();
                }
            }
            at += part as u64;
        }
        if !line.is_empty() {
            see(&line);
        }
        true
    }
}

/// The fields of a line that identify its entry.
#[derive(Deserialize)]
struct LineIds<'l> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    uuid: Option<Cow<'l, str>>,
}
