//! Damaged copies of the sessions that the agents wrote: every byte and node has its place, and what lies in whole lines is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript_import::{Agent, Policy, Store, dialect};
use transcript_storage::MemoryDisk;

use crate::faults::{Fault, Numbers, damage_lines};
use crate::support::{all_texts, check};

/// The number of damaged copies of all stores together.
const COPIES: u64 = 2_000;

/// The home folder of an agent, or one file of it, as a test has it.
struct Home {
    agent: Agent,
    case: PathBuf,
    /// The path of the store.
    store: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Home {
    fn of(agent: Agent, case: PathBuf) -> Self {
        let mut files = BTreeMap::new();
        let root = case.join("store");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.expect("it can be listed").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).expect("it can be read");
                    let name = path.strip_prefix(&root).expect("it is below");
                    files.insert(Path::new("/home").join(name), bytes);
                }
            }
        }
        let store = PathBuf::from("/home");
        Self {
            agent,
            case,
            store,
            files,
        }
    }

    /// Returns a store that is the damaged file of a case.
    fn of_file(case: PathBuf) -> Option<Self> {
        let text = fs::read_to_string(case.join("expected.json")).ok()?;
        let expected: Value = serde_json::from_str(&text).ok()?;
        let name = expected["file"].as_str()?;
        let store = Path::new("/home").join(name);
        let bytes = fs::read(case.join(name)).expect("it can be read");
        Some(Self {
            agent: expected["client"].as_str()?.parse().ok()?,
            files: BTreeMap::from([(store.clone(), bytes)]),
            store,
            case,
        })
    }

    /// Returns the texts of all sessions, with the lines that have them where the file is `of`.
    fn texts(&self, policy: Policy, of: &Path) -> BTreeSet<(String, Option<u64>)> {
        let disk = MemoryDisk::new();
        for (path, bytes) in &self.files {
            disk.put(path, bytes.clone());
        }
        let store = Store {
            disk: &disk,
            path: &self.store,
        };
        let sessions = dialect(self.agent)
            .sessions(store)
            .expect("they are listed");
        let mut found = BTreeSet::new();
        for session in sessions {
            let conversation = dialect(self.agent).read(store, &session.id, policy);
            let conversation = conversation.expect("it is read");
            check(&conversation);
            for (id, text) in all_texts(&conversation) {
                let origin = conversation.node(id).origin;
                let offset = origin.filter(|place| conversation.source(place.source).path == of);
                found.insert((text, offset.map(|place| place.offset)));
            }
        }
        found
    }
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let cases = fs::read_dir(folder).into_iter().flatten();
    let mut cases: Vec<PathBuf> = cases
        .map(|case| case.expect("it can be listed").path())
        .collect();
    cases.sort();
    cases
}

fn homes(shared: &Path) -> Vec<Home> {
    let of_files = cases(&shared.join("other-damage")).into_iter();
    let mut homes: Vec<Home> = of_files.filter_map(Home::of_file).collect();
    assert!(!homes.is_empty());
    for agent in Agent::ALL {
        for folder in [agent.name().to_owned(), format!("{}-damage", agent.name())] {
            let cases = cases(&shared.join(folder)).into_iter();
            homes.extend(cases.map(|case| Home::of(agent, case)));
        }
    }
    homes
}

/// Returns the whole lines of a file.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

#[test]
fn damage_costs_at_most_the_texts_of_the_damaged_lines() {
    let Some(shared) = transcript_testkit::shared().map(|folder| folder.join("import")) else {
        println!("skipped: no shared data");
        return;
    };
    let mut homes = homes(&shared);
    let mut faults: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept = 0;
    for seed in 0..COPIES {
        let mut numbers = Numbers::of(seed);
        let place = numbers.below(homes.len());
        let home = &mut homes[place];
        let is_session = |path: &&PathBuf| path.to_string_lossy().ends_with(".jsonl");
        let mut names: Vec<PathBuf> = home.files.keys().filter(is_session).cloned().collect();
        names.retain(|name| !name.ends_with("session_index.jsonl") && !home.files[name].is_empty());
        if names.is_empty() {
            continue;
        }
        let name = names.swap_remove(numbers.below(names.len()));
        let whole = home.files[&name].clone();
        let before = home.texts(Policy::Recover, &name);
        let mut bytes = whole.clone();
        let mut happened = Vec::new();
        for _ in 0..=numbers.below(3) {
            if !bytes.is_empty() {
                happened.push(damage_lines(&mut bytes, &mut numbers));
            }
        }
        let intact: BTreeSet<&[u8]> = lines(&bytes).collect();
        let mut offset = 0;
        let mut expected = BTreeSet::new();
        for line in lines(&whole) {
            let end = offset + line.len() as u64 + 1;
            let is_kept = intact.contains(line) || happened == [Fault::Glued];
            let of_line = before
                .iter()
                .filter(|(_, at)| at.is_some_and(|at| (offset..end).contains(&at)));
            expected.extend(of_line.filter(|_| is_kept).map(|(text, _)| text.clone()));
            offset = end;
        }
        home.files.insert(name.clone(), bytes.clone());
        home.texts(Policy::Vendor, &name);
        let after = home.texts(Policy::Recover, &name);
        let after: BTreeSet<&String> = after.iter().map(|(text, _)| text).collect();
        let lost: Vec<&String> = expected
            .iter()
            .filter(|text| !after.contains(text))
            .collect();
        assert!(
            lost.is_empty(),
            "{seed} {:?} {name:?} {happened:?}: {lost:?}",
            home.case
        );
        kept += expected.len();
        for fault in happened {
            *faults.entry(format!("{fault:?}")).or_default() += 1;
        }
        home.files.insert(name, whole);
    }
    println!("{faults:?}, {kept} texts of whole lines kept");
    assert!(faults.len() == 8 && kept > 1_000);
}
