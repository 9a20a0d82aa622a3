//! Searches while a writer appends to the files, and while files are replaced, on several threads and by several
//! processes with the same filters.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use transcript_catalog::{Catalog, Query, SearchOptions};
use transcript_testkit::changes::Changes;
use transcript_testkit::rng::Rng;
use transcript_testkit::trees::{self, Tree};

use super::compare::{Caches, Compared};

/// The number of threads that search.
const THREADS: u64 = 2;
/// The number of queries that are compared with the model at the end.
const FINAL_QUERIES: usize = 4;
/// The time between two changes: files must not grow faster than they are searched.
const CHANGE_PAUSE: Duration = Duration::from_millis(20);

/// Asks `queries` on each of several threads, and the same in another process if `program` is given,
/// which is called with root, cache folder, seed and number, while files grow; then while files are replaced;
/// then compares all with the model. Returns the number of searches.
///
/// # Errors
/// The first difference.
pub(crate) fn run(seed: u64, queries: usize, program: Option<&Path>) -> Result<u64, String> {
    let tree = trees::tree(seed);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = folder.path();
    tree.write(root).map_err(|error| error.to_string())?;
    let caches = Caches::new();
    let sessions = tree.files.iter().map(|(path, _)| root.join(path));
    let sessions: Vec<PathBuf> = sessions
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    // A line feed ends each torn line, so that appends do not complete it.
    sessions.iter().try_for_each(|path| append(path, b"\n"))?;
    let searches = AtomicU64::new(0);
    for is_growing in [true, false] {
        let is_done = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = Rng::new(seed);
                let mut changes = Changes::default();
                while !is_done.load(Ordering::Relaxed) {
                    if is_growing {
                        let (_, other) = rng.pick(&tree.files);
                        let lines = whole_lines(other, &mut rng);
                        // A file that is gone by then is not written.
                        let path: &PathBuf = rng.pick(&sessions);
                        let _ = append(path, &lines);
                    } else {
                        let _ = changes.change(root, &tree, &mut rng);
                    }
                    thread::sleep(CHANGE_PAUSE);
                }
            });
            let other = program.map(|program| {
                let mut command = Command::new(program);
                command.arg("searcher").arg(root).arg(caches.warm());
                command.args([
                    seed.to_string(),
                    queries.to_string(),
                    is_growing.to_string(),
                ]);
                command.stdout(Stdio::piped()).spawn()
            });
            let search = |number: u64| {
                let cache = caches.warm();
                let (tree, searches) = (&tree, &searches);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed ^ number << 32);
                    for _ in 0..queries {
                        one(tree, root, &cache, is_growing, &mut rng)?;
                        searches.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            };
            let threads: Vec<_> = (1..=THREADS).map(search).collect();
            let mut results: Vec<Result<(), String>> = Vec::new();
            results.extend(threads.into_iter().map(|one| one.join().expect("no panic")));
            is_done.store(true, Ordering::Relaxed);
            match other.map(|other| other.and_then(Child::wait_with_output)) {
                Some(Ok(output)) if output.status.success() => {
                    searches.fetch_add(queries as u64, Ordering::Relaxed);
                }
                Some(Ok(output)) => {
                    results.push(Err(String::from_utf8_lossy(&output.stdout).into_owned()));
                }
                Some(Err(error)) => results.push(Err(error.to_string())),
                None => {}
            }
            results.into_iter().collect::<Result<Vec<()>, String>>()
        });
        result?;
        let compared = Compared::read(root);
        let mut rng = Rng::new(seed);
        for _ in 0..queries.min(FINAL_QUERIES) {
            let text = trees::query(&tree, &mut rng);
            compared
                .compare(&text, &caches)
                .map_err(|error| format!("afterwards, {text:?}: {error}"))?;
        }
    }
    Ok(searches.into_inner())
}

/// Searches with filters. Of files that only grow, the hits are at least those from before, and at
/// most those from afterwards.
///
/// # Errors
/// The first difference.
pub(crate) fn one(
    tree: &Tree,
    root: &Path,
    cache: &Path,
    is_growing: bool,
    rng: &mut Rng,
) -> Result<(), String> {
    // The matches in a file must not change when it grows, so the query is a single phrase.
    let text: &String = rng.pick(&tree.texts);
    let words: Vec<&str> = text.split_whitespace().collect();
    let word = words.get(rng.below(words.len())).copied().unwrap_or("e");
    let Ok(query) = format!("\"{}\"", word.replace(['"', '\\'], "")).parse::<Query>() else {
        return Ok(());
    };
    let plain = SearchOptions::new();
    if !is_growing {
        // Files may be gone by the time their hits are read: that is not a wrong answer.
        let _ = found(root, &query, &plain.cache(cache));
        return Ok(());
    }
    let before = found(root, &query, &plain)?;
    let cached = found(root, &query, &plain.clone().cache(cache))?;
    let after = found(root, &query, &plain)?;
    let is_right = before.is_subset(&cached) && cached.is_subset(&after);
    let lost: Vec<_> = before.difference(&cached).collect();
    let more: Vec<_> = cached.difference(&after).collect();
    if is_right {
        Ok(())
    } else {
        Err(format!("{word:?}: lost {lost:?}, not there {more:?}"))
    }
}

/// Returns the places of all that is found, copies included.
fn found(
    root: &Path,
    query: &Query,
    options: &SearchOptions,
) -> Result<BTreeSet<(PathBuf, Option<u64>)>, String> {
    let catalog = Catalog::open(root).map_err(|error| error.to_string())?;
    let mut search = catalog
        .search(query, options)
        .map_err(|error| error.to_string())?;
    let mut found = BTreeSet::new();
    for hit in &mut search {
        let hit = hit.map_err(|error| error.to_string())?;
        found.insert((hit.path.clone(), hit.line));
        found.extend(hit.also.iter().map(|copy| (copy.path.clone(), copy.line)));
    }
    match search.problems().first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(found),
    }
}

fn append(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let file = File::options().append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| error.to_string())
}

/// Returns some whole lines of a file, those that are JSON.
fn whole_lines(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let is_whole = |line: &&[u8]| {
        line.ends_with(b"}\n") && serde_json::from_slice::<serde_json::Value>(line).is_ok()
    };
    let lines: Vec<&[u8]> = lines.filter(is_whole).collect();
    let from = rng.below(lines.len());
    lines
        .into_iter()
        .skip(from)
        .take(3)
        .flatten()
        .copied()
        .collect()
}
