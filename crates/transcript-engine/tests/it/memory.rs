//! Memory files in layers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use transcript_engine::memory::{
    MAX_MEMORY_FILE, MemoryLayer, MemoryLayers, MemoryPlaces, MemoryReader,
};
use transcript_storage::{Entries, LocalDisk, MemoryDisk, Metadata, ReadDisk, ReadFile, RealDisk};

use MemoryLayer::{Local, Managed, Project, User};

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn layers_are_merged_in_their_order_and_files_in_that_of_the_caller() {
    let merged = MemoryLayers::new()
        .add(Local, "l", "local")
        .add(Project, "p1", "\nroot\n")
        .add(Project, "p2", "below")
        .add(User, "u", " \n")
        .add(Managed, "m", "managed")
        .separator("|")
        .merge();
    assert_eq!(merged.text, "managed|root|below|local");
    assert_eq!(merged.files, paths(&["m", "p1", "p2", "l"]));
    assert_eq!(merged.overridden, paths(&[]));
}

#[test]
fn directives_have_an_effect_only_if_they_are_asked_for() {
    let layers = MemoryLayers::new()
        .add(User, "u", "user")
        .add(Project, "p", "\n@override \r\n\nproject")
        .add(Project, "q", "text\n@override")
        .add(Local, "l", "@append\nlocal")
        .separator("|");
    let off = layers.merge();
    assert_eq!(off.files.len(), 4);
    assert!(off.text.contains("@override") && off.text.contains("@append"));
    let on = layers.clone().directives(true).merge();
    assert_eq!(on.text, "project|text\n@override|local");
    assert_eq!(on.files, paths(&["p", "q", "l"]));
    assert_eq!(on.overridden, paths(&["u"]));
    let nothing = layers.add(Local, "m", "@override").directives(true).merge();
    assert_eq!((nothing.text.as_str(), nothing.files.len()), ("", 0));
    assert_eq!(nothing.overridden, paths(&["u", "p", "q", "l"]));
}

#[test]
fn the_standard_places_go_from_the_root_down_to_the_working_folder() {
    let (config, root) = (Path::new("/home/ada/.claude"), Path::new("/work"));
    let places = MemoryPlaces::standard(config, root, Path::new("/work/a/b"));
    let of = |wanted: MemoryLayer| -> Vec<&Path> {
        let of_layer = places.paths().iter().filter(|(layer, _)| *layer == wanted);
        of_layer.map(|(_, path)| path.as_path()).collect()
    };
    let expected = paths(&[
        "/work/CLAUDE.md",
        "/work/.claude/CLAUDE.md",
        "/work/a/CLAUDE.md",
        "/work/a/.claude/CLAUDE.md",
        "/work/a/b/CLAUDE.md",
        "/work/a/b/.claude/CLAUDE.md",
    ]);
    assert_eq!(of(Project), expected);
    let expected = paths(&[
        "/work/CLAUDE.local.md",
        "/work/a/CLAUDE.local.md",
        "/work/a/b/CLAUDE.local.md",
    ]);
    assert_eq!(of(Local), expected);
    assert_eq!(of(User), paths(&["/home/ada/.claude/CLAUDE.md"]));
    assert_eq!(of(Managed).len(), 1);

    let outside = MemoryPlaces::standard(config, root, Path::new("/workshop"));
    let local = outside.paths().last().map(|(_, path)| path.as_path());
    assert_eq!(local, Some(Path::new("/workshop/CLAUDE.local.md")));
    assert_eq!(outside.paths().len(), 5);
}

/// The disk of this machine, which counts what is opened.
#[derive(Debug, Default)]
struct Counted(std::sync::atomic::AtomicUsize);

impl Counted {
    fn count(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl ReadDisk for Counted {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        RealDisk.open_to_read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        RealDisk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealDisk.metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        RealDisk.local()
    }
}

#[test]
fn a_file_is_read_again_only_when_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("u"), "user").unwrap();
    fs::write(at("p"), "project").unwrap();
    let places = MemoryPlaces::new()
        .add(User, at("u"))
        .add(Project, at("p"))
        .add(Local, at("absent"));
    let disk = Arc::new(Counted::default());
    let mut reader = MemoryReader::on(Arc::clone(&disk) as Arc<dyn ReadDisk>);
    let mut read = || {
        let found = reader.read(&places);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        (found.layers.separator("|").merge().text, disk.count())
    };
    assert_eq!(read(), ("user|project".to_owned(), 2));
    assert_eq!(read(), ("user|project".to_owned(), 2));

    // Of the same size, with another time.
    fs::write(at("p"), "PROJECT").unwrap();
    let file = fs::File::options().append(true).open(at("p")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(read(), ("user|PROJECT".to_owned(), 3));
    fs::remove_file(at("u")).unwrap();
    assert_eq!(read(), ("PROJECT".to_owned(), 3));
    fs::write(at("u"), "user").unwrap();
    assert_eq!(read(), ("user|PROJECT".to_owned(), 4));
}

#[test]
fn files_that_cannot_be_read_are_reported() {
    let disk = MemoryDisk::new();
    let len = usize::try_from(MAX_MEMORY_FILE).unwrap();
    disk.put("/w/large", vec![b'x'; len + 1]);
    disk.put("/w/full", vec![b'x'; len]);
    disk.put("/w/odd", [0xff, 0xfe]);
    disk.put("/w/folder/file", "x");
    let places = ["/w/large", "/w/odd", "/w/folder", "/w/absent", "/w/full"];
    let places = places.iter().fold(MemoryPlaces::new(), |places, path| {
        places.add(Project, *path)
    });
    let found = MemoryReader::on(Arc::new(disk)).read(&places);
    let problems: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "/w/large: a memory file of more than 1 MiB is not read",
            "/w/odd: not UTF-8",
            "/w/folder: not a regular file",
        ]
    );
    assert_eq!(found.layers.merge().files, paths(&["/w/full"]));
}
