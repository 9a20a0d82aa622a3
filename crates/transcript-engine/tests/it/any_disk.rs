//! Sessions on any disk: what is done on the file system of this machine is done on a disk in memory, and on no other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_engine::storage::{Disk, FileKind, MemoryDisk, ReadDisk, RealDisk};
use transcript_engine::{
    Draft, ForkOptions, History, MoveOptions, Policy, Session, SessionOptions, SessionRepair,
    SessionSalvage, Store, merge_on, move_project,
};

const ID: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8293";

/// A folder of projects that only exists on its disk.
struct Fixture {
    store: Store,
}

impl Fixture {
    /// Runs a test on each disk.
    fn on_each_disk(test: impl Fn(&Self)) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("projects");
        test(&Self {
            store: Store::on(Arc::new(RealDisk), &root),
        });
        // Nothing of this may be on the disk of this machine.
        let root = Path::new("/no such folder/projects");
        test(&Self {
            store: Store::on(Arc::new(MemoryDisk::new()), root),
        });
        assert!(!root.exists());
    }

    fn disk(&self) -> &dyn Disk {
        &**self.store.disk()
    }

    fn read_disk(&self) -> Arc<dyn ReadDisk> {
        Arc::clone(self.store.disk()) as _
    }

    fn path(&self, project: &str) -> PathBuf {
        self.store.root().join(project).join(format!("{ID}.jsonl"))
    }

    fn options(&self) -> SessionOptions {
        SessionOptions::new().disk(Arc::clone(self.store.disk()))
    }

    /// A session of two prompts with a subagent and a stored result.
    fn session(&self, path: &Path, cwd: &str) {
        let session = Session::create(path, &self.options().cwd(cwd)).unwrap();
        session
            .append(Draft::user("Which years are leap years?"))
            .unwrap();
        session.append(Draft::user("And 1900?")).unwrap();
        let agent = transcript_engine::AgentId::new("a1").unwrap();
        let meta = transcript_engine::AgentMeta::new("Explore", "toolu_01");
        let agent = session.agent(&agent, &meta).unwrap();
        agent.append(Draft::user("Find the next comet.")).unwrap();
        agent.close().unwrap();
        session.close().unwrap();
        let result = path.with_extension("").join("tool-results/r.txt");
        self.disk().write_new(&result, b"a long result").unwrap();
    }

    fn history(&self, path: &Path) -> History {
        History::open_on(&self.read_disk(), path).unwrap()
    }

    fn text(&self, path: &Path) -> String {
        String::from_utf8(self.disk().read(path, usize::MAX).unwrap()).unwrap()
    }

    /// The names of the files below a folder, sorted.
    fn files(&self, folder: &Path) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(at) = folders.pop() {
            for entry in self.disk().list(&at).unwrap() {
                let entry = entry.unwrap();
                let path = at.join(&entry.name);
                match entry.kind {
                    FileKind::Folder => folders.push(path),
                    _ => files.push(path.strip_prefix(folder).unwrap().display().to_string()),
                }
            }
        }
        files.sort();
        files
    }
}

/// The files of a session, in its project.
fn whole(id: &str) -> Vec<String> {
    [
        ".jsonl",
        "/subagents/agent-a1.jsonl",
        "/subagents/agent-a1.meta.json",
        "/tool-results/r.txt",
    ]
    .map(|end| format!("{id}{end}"))
    .to_vec()
}

#[test]
fn a_session_is_written_found_read_and_forked() {
    Fixture::on_each_disk(|fixture| {
        let path = fixture.path("-work");
        fixture.session(&path, "/work");
        assert_eq!(fixture.store.find(ID).unwrap(), path);
        assert_eq!(fixture.store.list().unwrap().rows[0].subagents, 1);
        let resumed = Session::resume(&path, &fixture.options()).unwrap();
        assert_eq!(resumed.request.messages.len(), 2);
        // The turn that was left without an answer has one now.
        assert_eq!(resumed.session.entries().unwrap().len(), 3);
        resumed.session.append(Draft::user("And 2000?")).unwrap();
        assert_eq!(resumed.session.request().unwrap().messages.len(), 3);
        let copy = resumed.session.fork(&ForkOptions::new()).unwrap();
        assert!(fixture.text(&copy).contains("And 2000?"));
        assert!(
            fixture
                .store
                .find(copy.file_stem().unwrap().to_str().unwrap())
                .is_ok()
        );
        resumed.session.close().unwrap();
    });
}

#[test]
fn sessions_are_moved_and_copied() {
    Fixture::on_each_disk(|fixture| {
        let old = fixture.path("-no-such-old");
        fixture.session(&old, "/no such/old");
        let (from, to) = (Path::new("/no such/old"), Path::new("/no such/new"));
        let copied = move_project(&fixture.store, from, to, MoveOptions::new().copy()).unwrap();
        let copy = &copied.moved[0];
        let project = copy.to.parent().unwrap();
        assert_eq!(fixture.files(project), whole(&copy.session_id));
        let agent = project
            .join(&copy.session_id)
            .join("subagents/agent-a1.jsonl");
        assert!(fixture.text(&agent).contains(&copy.session_id), "{copy:?}");
        fixture.disk().remove_folder_with_content(project).unwrap();

        let moved = move_project(&fixture.store, from, to, MoveOptions::new()).unwrap();
        assert!(moved.refused.is_empty(), "{moved:?}");
        assert_eq!(fixture.files(project), whole(ID));
        assert!(!fixture.disk().exists(old.parent().unwrap()));
        let back = MoveOptions::new().undo();
        assert_eq!(
            move_project(&fixture.store, from, to, back).unwrap().moved[0].to,
            old
        );
        assert!(!fixture.disk().exists(project));
    });
}

#[test]
fn two_copies_are_merged_with_their_side_files() {
    Fixture::on_each_disk(|fixture| {
        let (a, b, out) = (fixture.path("-a"), fixture.path("-b"), fixture.path("-out"));
        fixture.session(&a, "/a");
        fixture
            .disk()
            .write_new(&b, fixture.text(&a).as_bytes())
            .unwrap();
        let note = b.with_extension("").join("note.txt");
        fixture.disk().write_new(&note, b"of b").unwrap();
        for (path, text) in [(&a, "And 2000?"), (&b, "And 2100?")] {
            let session = Session::open(path, &fixture.options()).unwrap();
            session.append(Draft::user(text)).unwrap();
            session.close().unwrap();
        }
        let disk = fixture.read_disk();
        fixture.disk().create_folder(out.parent().unwrap()).unwrap();
        let merged = merge_on(&disk, [&a, &b], fixture.disk(), &out).unwrap();
        assert_eq!((merged.both, merged.from_a, merged.from_b), (2, 1, 1));
        let mut files = whole(ID);
        files.insert(1, format!("{ID}/note.txt"));
        assert_eq!(fixture.files(out.parent().unwrap()), files);
        let again = merge_on(&disk, [&a, &b], fixture.disk(), &out).unwrap_err();
        assert_eq!(again.kind(), transcript_engine::ErrorKind::Exists);

        // A file in the way of a side file is no reason to make a part.
        let taken = fixture.path("-taken");
        let result = taken.with_extension("").join("tool-results/r.txt");
        fixture.disk().write_new(&result, b"another").unwrap();
        let refused = merge_on(&disk, [&a, &b], fixture.disk(), &taken).unwrap_err();
        assert_eq!(refused.kind(), transcript_engine::ErrorKind::SideFiles);
        assert_eq!(
            fixture.files(taken.parent().unwrap()),
            [format!("{ID}/tool-results/r.txt")]
        );
    });
}

#[test]
fn damaged_and_lost_sessions_are_written_again() {
    Fixture::on_each_disk(|fixture| {
        let path = fixture.path("-work");
        fixture.session(&path, "/work");
        let text = fixture.text(&path);
        let torn = format!("{{\"type\":\"us{text}");
        fixture.disk().remove(&path).unwrap();
        fixture.disk().write_new(&path, torn.as_bytes()).unwrap();
        let repair = SessionRepair::plan_on(&fixture.read_disk(), &path).unwrap();
        let repair = repair.write_to(Arc::clone(fixture.store.disk()));
        let out = fixture.path("-repaired");
        fixture.disk().create_folder(out.parent().unwrap()).unwrap();
        repair.write(&out).unwrap();
        assert_eq!(fixture.text(&out), text);
        let mut files = whole(ID);
        files.splice(
            1..1,
            ["lost", "lost.json"].map(|end| format!("{ID}.jsonl.{end}")),
        );
        let mut found = fixture.files(out.parent().unwrap());
        found.sort();
        files.sort();
        assert_eq!(found, files);

        fixture.disk().remove(&out).unwrap();
        assert_eq!(
            SessionSalvage::find(&fixture.store, ID)
                .unwrap_err()
                .candidates()
                .len(),
            2
        );
        let salvage = SessionSalvage::plan_on(&fixture.read_disk(), &out).unwrap();
        salvage.write_on(fixture.disk(), &out).unwrap();
        assert_eq!(
            fixture
                .history(&out)
                .tree(Policy::Recover)
                .path()
                .entries
                .len(),
            1
        );
    });
}

#[cfg(feature = "ops")]
#[test]
fn the_functions_of_the_sdks_change_and_delete_sessions() {
    use transcript_engine::sdk::{ListOptions, SdkSessions};
    Fixture::on_each_disk(|fixture| {
        let path = fixture.path("-work");
        fixture.session(&path, "/work");
        let sessions = SdkSessions::new(fixture.store.clone());
        sessions.rename(ID, "Leap years", None).unwrap();
        sessions.set_archived(ID, true, None).unwrap();
        let rows = sessions.list(&ListOptions::default()).unwrap();
        assert_eq!(rows[0].summary.as_deref(), Some("Leap years"));
        assert_eq!(sessions.subagents(ID, None).unwrap(), ["a1"]);
        let fork = sessions.fork(ID, None, None, None).unwrap();
        assert!(sessions.info(&fork, None).unwrap().is_some());
        sessions.delete(ID, None).unwrap();
        assert_eq!(
            fixture.files(fixture.store.root()),
            [format!("-work/{fork}.jsonl")]
        );
    });
}
