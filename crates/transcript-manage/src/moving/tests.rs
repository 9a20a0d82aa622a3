use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_storage::MemoryDisk;
use transcript_testkit::running_client::RunningClient;

use super::*;

const ID: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8293";
const OTHER: &str = "2999463e-ee08-4b08-99d5-2d9a36fd8293";

/// A store beside two working folders that do not exist. The tests run one after another: a child
/// process that is being started holds a copy of each open file for a moment.
struct Fixture {
    folder: TempDir,
    store: Store,
    old: PathBuf,
    new: PathBuf,
    _serial: MutexGuard<'static, ()>,
}

/// Moving does the same on every disk.
fn disks() -> [Arc<dyn Disk>; 2] {
    [Arc::new(RealDisk), Arc::new(MemoryDisk::new())]
}

impl Fixture {
    fn new() -> Self {
        Self::on(Arc::new(RealDisk))
    }

    fn on(disk: Arc<dyn Disk>) -> Self {
        static SERIAL: Mutex<()> = Mutex::new(());
        let serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let at = fs::canonicalize(folder.path()).unwrap();
        disk.create_folder(&at.join("projects")).unwrap();
        Self {
            store: Store::on(disk, at.join("projects")),
            old: at.join("foo-bar"),
            new: at.join("baz"),
            folder,
            _serial: serial,
        }
    }

    fn session(&self, project: &Path, id: &str, cwd: &Path) -> PathBuf {
        let path = self.store.project(project).join(format!("{id}.jsonl"));
        let line = serde_json::json!({"type": "user", "uuid": id, "parentUuid": null, "cwd": cwd,
            "sessionId": id, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": "x"}});
        self.write(&path, &format!("{line}\n"));
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let disk = self.store.disk();
        disk.set_properties(&path, Some(time), None).unwrap();
        path
    }

    fn write(&self, path: &Path, text: &str) {
        let disk = self.store.disk();
        disk.write_new(path, text.as_bytes()).unwrap();
    }

    /// A session with all that can belong to one.
    fn whole_session(&self) -> PathBuf {
        let path = self.session(&self.old, ID, &self.old);
        let own = path.with_extension("");
        self.write(&own.join("subagents/agent-a1.jsonl"), "{}\n");
        self.write(&own.join("subagents/workflows/w1/agent-a2.jsonl"), "{}\n");
        self.write(&own.join("tool-results/r.txt"), "result");
        self.write(&path.with_extension("jsonl.torn-12"), "torn");
        let agent = format!("{{\"type\":\"user\",\"sessionId\":\"{ID}\"}}\n");
        self.write(&path.with_file_name("agent-old.jsonl"), &agent);
        path
    }

    fn run(&self, options: MoveOptions) -> Moves {
        let moves = move_project(&self.store, &self.old, &self.new, options);
        moves.unwrap()
    }

    /// Every file below the store, with its bytes and its time.
    fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let (mut all, disk) = (Vec::new(), &**self.store.disk());
        add(disk, &mut all, self.store.root(), self.store.root()).unwrap();
        let files = all.into_iter().filter(|one| !one.is_folder);
        files
            .map(|one| {
                let time = disk.metadata(&one.from).unwrap().modified.unwrap();
                let bytes = disk.read(&one.from, usize::MAX).unwrap();
                (one.from, (bytes, time))
            })
            .collect()
    }
}

fn names(files: &BTreeMap<PathBuf, (Vec<u8>, SystemTime)>) -> Vec<&PathBuf> {
    files.keys().collect()
}

#[test]
fn a_session_moves_with_all_that_belongs_to_it_and_back_exactly() {
    for (undo, disk) in [false, true]
        .into_iter()
        .flat_map(|undo| disks().map(|disk| (undo, disk)))
    {
        let fixture = Fixture::on(disk);
        let path = fixture.whole_session();
        let before = fixture.files();
        let moves = fixture.run(MoveOptions::new());
        assert!(moves.refused.is_empty(), "{moves:?}");
        let [moved] = &moves.moved[..] else {
            panic!("{moves:?}")
        };
        assert_eq!((&moved.from, &*moved.session_id), (&path, ID));
        assert_eq!(
            moved.to,
            fixture
                .store
                .project(&fixture.new)
                .join(format!("{ID}.jsonl"))
        );
        let after = fixture.files();
        assert_eq!(after.len(), before.len());
        for (old, (bytes, time)) in &before {
            let new = fixture.store.project(&fixture.new);
            let new = new.join(
                old.strip_prefix(fixture.store.project(&fixture.old))
                    .unwrap(),
            );
            let (now, now_time) = &after[&new];
            assert!(now.starts_with(bytes) && now_time == time, "{new:?}");
        }
        let listing = fixture.store.list().unwrap();
        assert_eq!(listing.rows[0].cwd.as_deref(), fixture.new.to_str());
        assert_eq!((listing.rows.len(), listing.rows[0].subagents), (1, 3));
        let old = fixture.store.project(&fixture.old);
        assert!(!fixture.store.disk().exists(&old));
        assert_eq!(fixture.run(MoveOptions::new()).moved, [], "it moved once");

        let back = if undo {
            fixture.run(MoveOptions::new().undo())
        } else {
            move_project(
                &fixture.store,
                &fixture.new,
                &fixture.old,
                MoveOptions::new(),
            )
            .unwrap()
        };
        assert_eq!(back.moved.len(), 1, "{back:?}");
        assert_eq!(fixture.files(), before);
    }
}

#[test]
fn a_kill_before_any_step_leaves_each_session_whole_and_the_same_call_finishes() {
    kill_before_each_step(&|| Arc::new(RealDisk));
}

#[test]
fn a_kill_leaves_each_session_whole_on_a_disk_in_memory_too() {
    kill_before_each_step(&|| Arc::new(MemoryDisk::new()));
}

fn kill_before_each_step(disk: &dyn Fn() -> Arc<dyn Disk>) {
    let mut step = 0;
    loop {
        for undo in [false, true] {
            let fixture = Fixture::on(disk());
            fixture.whole_session();
            let untouched = fixture.files();
            let options = if undo {
                MoveOptions::new().undo()
            } else {
                MoveOptions::new()
            };
            if undo {
                fixture.run(MoveOptions::new());
            }
            let before = fixture.files();
            let left = Cell::new(step);
            let killed = || match left.get() {
                0 => Err(io::Error::other("killed")),
                more => {
                    left.set(more - 1);
                    Ok(())
                }
            };
            move_in_steps(&fixture.store, &fixture.old, &fixture.new, options, &killed).unwrap();
            let now = fixture.files();
            let whole = [&fixture.old, &fixture.new].map(|folder| {
                let project = fixture.store.project(folder);
                let own = before.iter().map(|(path, (bytes, _))| {
                    (path.strip_prefix(fixture.store.root()).unwrap(), bytes)
                });
                own.into_iter().all(|(path, bytes)| {
                    let path = project.join(path.components().skip(1).collect::<PathBuf>());
                    let common = bytes.len().min(
                        untouched
                            .values()
                            .next()
                            .map_or(0, |(bytes, _)| bytes.len()),
                    );
                    now.get(&path).is_some_and(|(found, _)| {
                        found.starts_with(&bytes[..common.min(found.len())])
                    })
                })
            });
            assert!(
                whole[0] || whole[1],
                "step {step} undo {undo}: {:?}",
                names(&now)
            );
            fixture.run(options);
            let done = fixture.files();
            if undo {
                assert_eq!(done, untouched, "step {step}");
            } else {
                assert_eq!(done.len(), before.len(), "step {step}: {:?}", names(&done));
                assert!(
                    done.keys()
                        .all(|path| path.starts_with(fixture.store.project(&fixture.new)))
                );
                assert_eq!(
                    fixture.store.list().unwrap().rows[0].cwd.as_deref(),
                    fixture.new.to_str()
                );
                fixture.run(MoveOptions::new().undo());
                assert_eq!(fixture.files(), untouched, "step {step}");
            }
            if left.get() > 0 && undo {
                assert!(step > 20, "{step}");
                return;
            }
        }
        step += 1;
    }
}

#[test]
fn a_taken_name_is_refused_and_the_others_move() {
    let fixture = Fixture::new();
    let first = fixture.whole_session();
    fixture.session(&fixture.old, OTHER, &fixture.old);
    let taken = fixture.session(&fixture.new, ID, &fixture.new);
    let before = fixture.files();
    let moves = fixture.run(MoveOptions::new());
    assert_eq!(moves.refused[0].reason, MoveRefusal::Exists);
    assert_eq!((moves.refused.len(), moves.moved.len()), (1, 1));
    for path in [&first, &taken] {
        assert_eq!(fixture.files()[path], before[path]);
    }
    assert_eq!(fixture.files().len(), before.len());
}

#[test]
fn a_session_that_is_written_to_stays() {
    let fixture = Fixture::new();
    let path = fixture.session(&fixture.old, ID, &fixture.old);
    let before = fixture.files();
    let writer = fs::File::options().append(true).open(&path).unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(
            fixture.run(MoveOptions::new()).refused[0].reason,
            MoveRefusal::Busy
        );
        assert_eq!(fixture.files(), before);
    }
    drop(writer);
    if cfg!(target_os = "linux") {
        // Clients open the file for each write alone, and register themselves.
        let client = RunningClient::of(&path, "").unwrap();
        let refused = fixture.run(MoveOptions::new()).refused;
        assert_eq!(refused[0].reason, MoveRefusal::Busy);
        let words = format!("process {} runs it; end it first", client.id());
        assert_eq!(refused[0].detail, words);
        assert_eq!(fixture.files(), before);
    }
    assert_eq!(fixture.run(MoveOptions::new()).moved.len(), 1);
}

#[test]
fn only_the_sessions_of_the_folder_and_those_below_it_move() {
    let fixture = Fixture::new();
    let twin = fixture.folder.path().join("foo/bar");
    let twin = fs::canonicalize(fixture.folder.path())
        .unwrap()
        .join(twin.strip_prefix(fixture.folder.path()).unwrap());
    assert_eq!(
        fixture.store.project(&twin),
        fixture.store.project(&fixture.old),
        "one key"
    );
    let stays = fixture.session(&twin, ID, &twin);
    let below = fixture.session(&fixture.old.join("sub"), OTHER, &fixture.old.join("sub"));
    let sibling = fixture.session(
        &fixture.old.with_file_name("foo-bar-2"),
        OTHER,
        &fixture.old.with_file_name("foo-bar-2"),
    );
    fs::create_dir(
        fixture
            .store
            .project(&fixture.old.join("sub"))
            .join("memory"),
    )
    .unwrap();
    let moves = fixture.run(MoveOptions::new());
    assert_eq!(
        moves.left,
        [stays.clone(), folder_of(&below).join("memory")]
    );
    assert_eq!(moves.moved.len(), 1, "{moves:?}");
    assert_eq!(
        moves.moved[0].to,
        fixture
            .store
            .project(&fixture.new.join("sub"))
            .join(format!("{OTHER}.jsonl"))
    );
    assert_eq!(
        moves.moved[0].cwd,
        fixture.new.join("sub").to_str().unwrap()
    );
    assert!(stays.exists() && sibling.exists() && !below.exists());
    let below_itself = move_project(
        &fixture.store,
        &fixture.old,
        &fixture.old.join("x"),
        MoveOptions::new(),
    );
    assert_eq!(below_itself.unwrap_err().kind(), ErrorKind::BelowItself);
}

#[test]
fn a_dry_run_changes_nothing_and_names_the_same() {
    let fixture = Fixture::new();
    fixture.whole_session();
    let before = fixture.files();
    let planned = fixture.run(MoveOptions::new().dry_run());
    assert_eq!(fixture.files(), before);
    assert_eq!(planned.moved, fixture.run(MoveOptions::new()).moved);
}

#[test]
fn a_copy_has_its_own_id_and_the_original_stays() {
    for disk in disks() {
        copy_keeps_the_original(&Fixture::on(disk));
    }
}

fn copy_keeps_the_original(fixture: &Fixture) {
    let path = fixture.whole_session();
    let before = fixture.files();
    let moves = fixture.run(MoveOptions::new().copy());
    let [copy] = &moves.moved[..] else {
        panic!("{moves:?}")
    };
    assert_ne!(copy.session_id, ID);
    let after = fixture.files();
    assert!(before.iter().all(|(path, file)| after[path] == *file));
    let text = String::from_utf8(after[&copy.to].0.clone()).unwrap();
    let first = text.split('\n').next().unwrap();
    let original = String::from_utf8(before[&path].0.clone()).unwrap();
    assert_eq!(
        first,
        original.trim_end().replace(
            &format!("\"sessionId\":\"{ID}\""),
            &format!("\"sessionId\":\"{}\"", copy.session_id)
        )
    );
    let row = fixture.store.find(&copy.session_id).unwrap();
    assert_eq!(row, copy.to);
    assert_eq!(
        transcript_reader::subagents_on(&(Arc::clone(fixture.store.disk()) as _), &copy.to)
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        fixture.run(MoveOptions::new().copy()).refused[0].reason,
        MoveRefusal::Exists
    );
}

#[test]
fn a_line_that_was_written_since_is_kept_when_a_move_is_undone() {
    let fixture = Fixture::new();
    fixture.session(&fixture.old, ID, &fixture.old);
    let moved = fixture.run(MoveOptions::new()).moved;
    let mut bytes = fs::read(&moved[0].to).unwrap();
    bytes.extend(b"{\"type\":\"custom-title\",\"customTitle\":\"t\"}\n{\"torn");
    fs::write(&moved[0].to, &bytes).unwrap();
    let back = fixture.run(MoveOptions::new().undo()).moved;
    let now = fs::read(&back[0].to).unwrap();
    assert!(now.starts_with(&[&bytes[..], b"\n{\"type\":\"relocated\""].concat()));
    assert_eq!(
        fixture.store.list().unwrap().rows[0].cwd.as_deref(),
        fixture.old.to_str()
    );
}

#[test]
fn a_name_is_removed_only_while_the_file_has_the_other_one() {
    let fixture = Fixture::new();
    let from = fixture.session(&fixture.old, ID, &fixture.old);
    let to = fixture
        .store
        .project(&fixture.new)
        .join(format!("{ID}.jsonl"));
    let before = fixture.files();
    // A comparison that fails is an error: it must not count as a different file.
    let file = fixture.old.join("no folder");
    fs::create_dir_all(&fixture.old).unwrap();
    fs::write(&file, "").unwrap();
    assert!(same(&RealDisk, &file.join("a"), &file.join("a")).is_err());
    // Another process removes the new name right before the old one would be removed.
    let remove = || {
        let _ = fs::remove_file(&to);
        Ok(())
    };
    let options = MoveOptions::new();
    let moves = move_in_steps(&fixture.store, &fixture.old, &fixture.new, options, &remove);
    assert_eq!(moves.unwrap().refused[0].reason, MoveRefusal::Failed);
    assert_eq!(fixture.files()[&from], before[&from]);
}
