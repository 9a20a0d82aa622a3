//! Sessions that are archived under several projects, because they were moved from one to another.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use transcript_storage::outside_names::is_session_name;

use crate::archive::Archive;
use crate::capture::session_of;
use crate::catalogue::VersionId;
use crate::restore::project_of;

/// The size of reads, in bytes.
const READ: usize = 256 << 10;

/// A file of a session: its path in the archive, and a version.
type File<'a> = (&'a str, VersionId);

impl Archive {
    /// Returns which of these files were left behind by a move: those of sessions of which another project has a file that
    /// starts with the same bytes. What is in them is in that file as well. Of equal ones the one that was captured last stays.
    /// A file of such a session that has no like there stays, too.
    pub(crate) fn left_behind<'a>(
        &self,
        files: impl Iterator<Item = File<'a>>,
    ) -> HashSet<&'a str> {
        let mut places = HashMap::<&str, Vec<File<'a>>>::new();
        for (name, version) in files {
            if let Some(below) = below_project(name).filter(|_| is_session_name(session_of(name))) {
                places.entry(below).or_default().push((name, version));
            }
        }
        places.retain(|_, files| files.len() > 1);
        let mut own = HashSet::new();
        let mut left = HashSet::new();
        // The own files of sessions come first.
        for is_own_turn in [true, false] {
            for (_, files) in places
                .iter()
                .filter(|(_, files)| is_own(files[0].0) == is_own_turn)
            {
                for one in files {
                    let session = |name| (project_of(name), session_of(name));
                    let mut others = files.iter();
                    let is_left = match is_own_turn {
                        true => others.any(|other| self.is_start_of(*one, *other, true)),
                        false => {
                            own.contains(&session(one.0))
                                && others
                                    .filter(|other| !own.contains(&session(other.0)))
                                    .any(|other| self.is_start_of(*one, *other, false))
                        }
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
        let files = self.catalogue.files.iter();
        self.left_behind(files.filter_map(|(name, versions)| Some((&**name, *versions.last()?))))
    }

    /// Returns when the version was captured, and an order of versions of the same time.
    fn age(&self, (name, version): File<'_>) -> impl Ord + use<'_> {
        (self.captured(version), version, name.len())
    }

    /// Returns whether all bytes of a file are the start of another one; of two files with the same bytes, with `by_age`
    /// only the older one is. What cannot be read is not.
    fn is_start_of(&self, one: File<'_>, other: File<'_>, by_age: bool) -> bool {
        if one.0 == other.0 {
            return false;
        }
        let len = |version| self.version(version).map(|version| version.len);
        let (Some(len), Some(other_len)) = (len(one.1), len(other.1)) else {
            return false;
        };
        match len.cmp(&other_len) {
            Ordering::Greater => return false,
            Ordering::Equal if by_age && self.age(one) >= self.age(other) => return false,
            _ => {}
        }
        let (Ok(pieces), Ok(other_pieces)) = (self.pieces(one.1), self.pieces(other.1)) else {
            return false;
        };
        let (mut of_one, mut of_other) = (vec![0; READ], vec![0; READ]);
        let mut at = 0;
        while at < len {
            let part = usize::try_from(len - at).map_or(READ, |left| left.min(READ));
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
}

/// Returns whether a path in the archive is that of the own file of a session.
pub(crate) fn is_own(name: &str) -> bool {
    let id = below_project(name).and_then(|file| file.strip_suffix(".jsonl"));
    id.is_some_and(is_session_name)
}

/// Returns whether `own` is the own file of the session that a file belongs to.
pub(crate) fn is_own_of(own: &str, name: &str) -> bool {
    is_own(own) && project_of(own) == project_of(name) && session_of(own) == session_of(name)
}

/// Returns the path below the project.
fn below_project(name: &str) -> Option<&str> {
    let (_, below) = name.strip_prefix("projects/")?.split_once('/')?;
    Some(below)
}
