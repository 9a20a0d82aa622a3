//! A session that was moved from project to project is one session.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use transcript_archive::{
    Archive, ArchiveDisk, CaptureOptions, ErrorKind, RestoreOptions, Restored,
};
use transcript_storage::ReadDisk;

const ID: &str = "5c1d8a52-0b7e-4c3f-9d21-6a4e8f7b1c20";

/// A folder of projects, its archive, and a place to restore to.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, project: &str) -> PathBuf {
        let project = self.0.path().join("projects").join(project);
        fs::create_dir_all(&project).unwrap();
        project.join(format!("{ID}.jsonl"))
    }

    /// Writes a session with a file of a subagent.
    fn write(&self, project: &str, text: &str) {
        let path = self.path(project);
        fs::write(&path, text).unwrap();
        let agents = path.with_extension("").join("subagents");
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("agent-a1.jsonl"), "{}\n").unwrap();
    }

    fn remove(&self, project: &str) {
        fs::remove_dir_all(self.path(project).parent().unwrap()).unwrap();
    }

    fn keep(&self) -> SystemTime {
        let mut archive = super::open_or_create(&self.0.path().join("archive")).unwrap();
        archive
            .capture(&self.0.path().join("projects"), &CaptureOptions::new())
            .unwrap();
        // Versions have the time of their capture, in milliseconds.
        let now = SystemTime::now();
        while SystemTime::now() < now + Duration::from_millis(2) {}
        now
    }

    fn archive(&self) -> Archive {
        super::open(&self.0.path().join("archive")).unwrap()
    }

    /// Restores to a new folder; returns the result, and the files by their paths below it.
    fn restore(&self, options: &RestoreOptions) -> (Restored, Vec<String>) {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("projects");
        let restored = self.archive().restore(&root, options).unwrap();
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        files.sort();
        (restored, files)
    }

    fn listed(&self) -> Vec<String> {
        let disk = ArchiveDisk::of(Arc::new(self.archive()));
        let projects = super::projects(disk.folder());
        let mut all = Vec::new();
        for project in disk.list(&projects).unwrap() {
            let project = projects.join(project.unwrap().name);
            let files = disk
                .list(&project)
                .unwrap()
                .map(|file| project.join(file.unwrap().name));
            let below =
                files.map(|file| file.strip_prefix(&projects).unwrap().display().to_string());
            all.extend(below.filter(|name| name.ends_with(".jsonl")));
        }
        all
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

fn of(project: &str) -> Vec<String> {
    vec![
        format!("{project}/{ID}.jsonl"),
        format!("{project}/{ID}/subagents/agent-a1.jsonl"),
    ]
}

#[test]
fn a_session_that_was_moved_is_restored_once_where_it_was_last() {
    let place = Fixture::new();
    place.write("-old", "one\n");
    let before = place.keep();
    place.remove("-old");
    place.write("-new", "one\nmoved\n");
    place.keep();
    let (restored, files) = place.restore(&RestoreOptions::new());
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    assert_eq!(files, of("-new"));
    assert_eq!(place.listed(), [format!("-new/{ID}.jsonl")]);
    // As it was then, also under the present path of the session.
    let named = RestoreOptions::new().sessions(vec![("-new".into(), ID.into())]);
    for options in [RestoreOptions::new(), named] {
        let (restored, files) = place.restore(&options.as_of(before));
        assert!(restored.problems.is_empty());
        assert_eq!(files, of("-old"));
    }
    let (_, files) = place.restore(&RestoreOptions::new().as_of(UNIX_EPOCH));
    assert_eq!(files, [""; 0]);
}

#[test]
fn a_session_that_was_moved_unchanged_counts_where_it_was_captured_last() {
    let place = Fixture::new();
    place.write("-old", "one\n");
    place.keep();
    place.remove("-old");
    place.write("-a-new-place", "one\n");
    place.keep();
    let (restored, files) = place.restore(&RestoreOptions::new());
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    assert_eq!(files, of("-a-new-place"));
}

/// A move back removes the line of the move, so the file is shorter than where it was.
#[test]
fn a_session_that_was_moved_back_counts_where_it_was_captured_last() {
    let moved = "{\"type\":\"relocated\",\"relocatedCwd\":\"/new\"}\n";
    for (rest, expected) in [(moved, "-old"), ("{\"type\":\"user\"}\n", "-new")] {
        let place = Fixture::new();
        place.write("-old", "one\n");
        place.keep();
        place.remove("-old");
        place.write("-new", &format!("one\n{rest}"));
        place.keep();
        place.remove("-new");
        place.write("-old", "one\n");
        place.keep();
        let (restored, files) = place.restore(&RestoreOptions::new());
        assert!(restored.problems.is_empty(), "{:?}", restored.problems);
        // Lines that only the longer file has are kept.
        assert_eq!(files, of(expected), "{rest}");
    }
}

/// Programs that move sessions write the new folder into each line.
#[test]
fn a_session_that_was_written_again_where_it_was_moved_is_one_session() {
    let line = |uuid: &str, cwd: &str| format!("{{\"uuid\":\"{uuid}\",\"cwd\":\"{cwd}\"}}\n");
    let (old, new) = (
        line("1", "/old") + &line("2", "/old"),
        line("1", "/new") + &line("2", "/new"),
    );
    for (new, expected) in [
        (new.clone(), "-new"),
        (new.clone() + &line("3", "/new"), "-new"),
        // The entry that the new file lacks is not given up.
        (
            line("1", "/new") + &line("2", "/new").replace('2', "4"),
            "-new",
        ),
    ] {
        let place = Fixture::new();
        place.write("-old", &old);
        place.keep();
        place.remove("-old");
        place.write("-new", &new);
        place.keep();
        let (restored, files) = place.restore(&RestoreOptions::new());
        assert_eq!(files, of(expected));
        let is_other = new.contains('4');
        assert_eq!(restored.problems.len(), usize::from(is_other), "{new}");
        assert_eq!(place.listed().len(), 1 + usize::from(is_other), "{new}");
    }
}

#[test]
fn one_of_different_files_with_one_id_is_restored_and_the_others_are_refused() {
    let place = Fixture::new();
    place.write("-one", "one\n");
    place.keep();
    place.write("-two", "two\n");
    place.keep();
    assert_eq!(place.listed().len(), 2);
    let (restored, files) = place.restore(&RestoreOptions::new());
    assert_eq!(files, of("-two"));
    let [problem] = &restored.problems[..] else {
        panic!("{:?}", restored.problems)
    };
    assert!(
        matches!(problem.kind(), ErrorKind::IdInUse(other) if other.ends_with(format!("-two/{ID}.jsonl")))
    );
    // Each of them can be restored alone.
    let one = RestoreOptions::new().sessions(vec![("-one".into(), ID.into())]);
    let (restored, files) = place.restore(&one);
    assert!(restored.problems.is_empty());
    assert_eq!(files, of("-one"));
}

#[test]
fn old_files_get_a_new_time_if_that_is_wanted() {
    let place = Fixture::new();
    place.write("-old", "one\n");
    let set = |age: u64| {
        let time = SystemTime::now() - Duration::from_secs(age);
        let file = fs::File::options()
            .append(true)
            .open(place.path("-old"))
            .unwrap();
        file.set_modified(time).unwrap();
        time
    };
    let day = 24 * 60 * 60;
    for (age, is_old) in [(60 * day, true), (day, false)] {
        let time = set(age);
        place.keep();
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("projects");
        let now = SystemTime::now();
        let options = RestoreOptions::new().renew(now - Duration::from_secs(23 * day), now);
        place.archive().restore(&root, &options).unwrap();
        let restored = fs::metadata(root.join("-old").join(format!("{ID}.jsonl"))).unwrap();
        let expected = if is_old { now } else { time };
        assert_eq!(restored.modified().unwrap(), expected, "{age}");
    }
}
