//! Changes the files of a [tree](crate::trees) as time does, and damages the filters that searches
//! leave behind, from random numbers.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::rng::Rng;
use crate::trees::Tree;

/// The length of planted words.
const WORD_LEN: usize = 6;

/// A change of a file.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its description.
    pub what: String,
    /// A word that is in the file since then, and nowhere else.
    pub word: Option<String>,
}

/// Changes files; each change has a time of its own, and as a rule one that is long ago.
#[derive(Debug, Default)]
pub struct Changes {
    clock: u64,
}

impl Changes {
    /// Makes all files of a tree look as if they were written some time ago, one after the other.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn age_all(&mut self, root: &Path, tree: &Tree) -> io::Result<()> {
        tree.files
            .iter()
            .try_for_each(|(path, _)| self.age(&root.join(path)))
    }

    fn age(&mut self, path: &Path) -> io::Result<()> {
        self.clock += 1;
        let long_ago = SystemTime::now() - Duration::from_secs(100_000);
        set_modified(path, long_ago + Duration::from_secs(self.clock))
    }

    /// Changes one file of a tree: appends to it, cuts, replaces, removes or rewrites it. Returns a description.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn change(&mut self, root: &Path, tree: &Tree, rng: &mut Rng) -> io::Result<Change> {
        let change = |what: String| Ok(Change { what, word: None });
        let (name, _) = rng.pick(&tree.files);
        let path = root.join(name);
        let (_, other) = rng.pick(&tree.files);
        let Ok(old) = fs::read(&path) else {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(&path, other)?;
            self.age(&path)?;
            return change(format!("{name} came back"));
        };
        let what = *rng.pick(&[
            "append",
            "append",
            "append",
            "tear",
            "end",
            "cut",
            "cut lines",
            "empty",
            "replace",
            "word",
            "word, append",
            "append, word",
            "remove",
            "touch",
        ]);
        let mut new = match what {
            "append" => [old.clone(), some_lines(other, rng)].concat(),
            "tear" => {
                let mut lines = some_lines(other, rng);
                lines.truncate(rng.below(lines.len() + 1));
                [old.clone(), lines].concat()
            }
            "end" => [&old[..], b"\n"].concat(),
            "cut" => old[..rng.below(old.len() + 1)].to_vec(),
            "cut lines" => {
                let at = rng.below(old.len() + 1);
                let end = old[..at].iter().rposition(|byte| *byte == b'\n');
                old[..end.map_or(0, |end| end + 1)].to_vec()
            }
            "empty" => Vec::new(),
            "replace" => other.clone(),
            "word, append" | "append, word" => [old.clone(), some_lines(other, rng)].concat(),
            "remove" => {
                fs::remove_file(&path)?;
                return change(format!("remove {name}"));
            }
            _ => old.clone(),
        };
        let word = match what {
            "append" => plant(&mut new, old.len(), rng),
            "word" | "replace" | "append, word" => plant(&mut new, 0, rng),
            // In the bytes from before it grew.
            "word, append" => plant(&mut new[..old.len()], 0, rng),
            _ => None,
        };
        let how = match rng.below(4) {
            // Another file takes its place, and its time.
            0 => {
                let time = fs::metadata(&path)?.modified()?;
                let temporary = path.with_extension("new");
                fs::write(&temporary, &new)?;
                fs::rename(&temporary, &path)?;
                set_modified(&path, time)?;
                "by another file"
            }
            // Just now.
            1 => {
                fs::write(&path, &new)?;
                "now"
            }
            _ => {
                fs::write(&path, &new)?;
                self.age(&path)?;
                "in place"
            }
        };
        let what = format!("{what} {name} {how}");
        Ok(Change { what, word })
    }
}

fn set_modified(path: &Path, time: SystemTime) -> io::Result<()> {
    File::options().append(true).open(path)?.set_modified(time)
}

/// Returns whole lines of a file that follow each other.
fn some_lines(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let from = rng.below(lines.len());
    let count = rng.range(1, 12);
    let mut lines: Vec<u8> = lines
        .into_iter()
        .skip(from)
        .take(count)
        .flatten()
        .copied()
        .collect();
    if !lines.ends_with(b"\n") {
        lines.push(b'\n');
    }
    lines
}

/// Writes a word that is nowhere else over one of the same length, not before `from`. Returns it, if there
/// is a place for it.
fn plant(bytes: &mut [u8], from: usize, rng: &mut Rng) -> Option<String> {
    let is_letter = |at: &usize| bytes.get(*at).is_some_and(u8::is_ascii_lowercase);
    // Behind a space: not in a key.
    let starts = (from..bytes.len().saturating_sub(WORD_LEN)).filter(|at| bytes[*at] == b' ');
    let is_place = |at: &usize| (at + 1..=at + WORD_LEN).all(|at| is_letter(&at));
    let places: Vec<usize> = starts.filter(is_place).collect();
    if places.is_empty() {
        return None;
    }
    let at = rng.pick(&places) + 1;
    for byte in &mut bytes[at..at + WORD_LEN] {
        *byte = *rng.pick(b"bcdfghjklmnpqrstvwxz");
    }
    String::from_utf8(bytes[at..at + WORD_LEN].to_vec()).ok()
}

/// Damages files of filters. It remembers them, and puts old ones in the place of new ones.
#[derive(Debug, Default)]
pub struct Filters {
    saved: Vec<(PathBuf, Vec<u8>)>,
}

impl Filters {
    /// Changes one file in the folder `cache`; `others` are filters of another tree. Returns a description.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn damage(
        &mut self,
        cache: &Path,
        others: &[Vec<u8>],
        rng: &mut Rng,
    ) -> io::Result<String> {
        let files = self::files(cache)?;
        if files.is_empty() {
            return Ok("no filters".to_owned());
        }
        let path = rng.pick(&files);
        let mut bytes = fs::read(path)?;
        self.saved.push((path.clone(), bytes.clone()));
        let what = match rng.below(10) {
            0 | 1 => {
                bytes.truncate(rng.below(bytes.len() + 1));
                "cut"
            }
            2 | 3 => {
                for _ in 0..rng.range(1, 8) {
                    let at = rng.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << rng.below(8);
                    }
                }
                "bits changed"
            }
            4 => {
                // The version in the first line.
                let digit = bytes.iter().position(u8::is_ascii_digit);
                if let Some(at) = digit {
                    bytes[at] = b'0' + (bytes[at] - b'0' + 1) % 10;
                }
                "another version"
            }
            5 => {
                fs::remove_file(path)?;
                return Ok("filters removed".to_owned());
            }
            6 => {
                bytes = fs::read(rng.pick(&files))?;
                "those of another project"
            }
            7 if !others.is_empty() => {
                bytes = rng.pick(others).clone();
                "those of another tree"
            }
            8 => {
                let old = self.saved.iter().filter(|(saved, _)| saved == path);
                let old: Vec<_> = old.collect();
                bytes = rng.pick(&old).1.clone();
                "old ones"
            }
            _ => {
                // The start of a record that another process did not finish.
                let part = bytes[..rng.below(bytes.len() + 1)].to_vec();
                bytes.extend(part);
                "more at the end"
            }
        };
        fs::write(path, bytes)?;
        Ok(format!("filters: {what}"))
    }
}

/// Returns the files in a folder, sorted; none if there is no such folder.
///
/// # Errors
/// Those of the file system.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}
