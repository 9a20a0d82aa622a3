//! A store to which every question takes a round trip.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use transcript_catalog::Catalog;
use transcript_reader::own_subagents_on;
use transcript_storage::{
    Entries, FileKind, LocalDisk, MemoryDisk, Metadata, ReadDisk, ReadFile, SessionLayout,
    entries_below,
};

/// A disk that has files and no folders, says their properties with each list, and counts every other question.
#[derive(Debug)]
struct Remote {
    layout: SessionLayout,
    files: MemoryDisk,
    names: Vec<PathBuf>,
    asked: Mutex<Vec<PathBuf>>,
}

impl Remote {
    fn new(layout: SessionLayout) -> Self {
        Self {
            layout,
            files: MemoryDisk::new(),
            names: Vec::new(),
            asked: Mutex::default(),
        }
    }

    fn put(&mut self, path: &str, text: &str) {
        self.files.put(path, text);
        self.names.push(path.into());
    }

    fn found(&self, path: &Path) -> io::Result<Metadata> {
        match self.files.metadata(path) {
            Ok(found) if found.is_file() => Ok(found),
            _ => entries_below(path, self.names.iter()).map(|_| Metadata::of_folder_in_memory()),
        }
    }
}

impl ReadDisk for Remote {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.files.open_to_read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let mut entries = entries_below(folder, self.names.iter())?;
        for entry in &mut entries {
            entry.metadata = Some(self.found(&folder.join(&entry.name))?);
        }
        Ok(Box::new(entries.into_iter().map(Ok)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.asked.lock().unwrap().push(path.to_owned());
        self.found(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        None
    }

    fn layout(&self) -> SessionLayout {
        self.layout
    }
}

#[test]
fn sessions_whose_properties_are_in_the_list_are_not_asked_for() {
    let mut remote = Remote::new(SessionLayout::CLIENT);
    for project in 0..3 {
        for session in 0..40 {
            let path =
                format!("/r/-p{project}/1999463e-ee08-4b08-99d5-2d9a36fd82{session:02}.jsonl");
            remote.put(&path, "{\"type\":\"user\",\"uuid\":\"u1\"}\n");
        }
    }
    let remote = Arc::new(remote);
    let disk: Arc<dyn ReadDisk> = Arc::clone(&remote) as _;
    let catalog = Catalog::open_on(&disk, Path::new("/r")).unwrap();
    assert_eq!(catalog.sessions().len(), 120);
    assert_eq!(catalog.bytes(), 120 * 28);
    let asked = remote.asked.lock().unwrap();
    // Only where the folder of all projects really is.
    assert_eq!(*asked, [Path::new("/r")]);
    let kinds = remote.list(Path::new("/r")).unwrap();
    assert!(kinds.flatten().all(|entry| entry.kind == FileKind::Folder));
}

#[test]
fn files_of_a_session_are_found_by_the_layout_of_the_disk() {
    let other = SessionLayout {
        subagents: "helpers",
        results: "outputs",
        ..SessionLayout::CLIENT
    };
    let line = "{\"type\":\"user\",\"uuid\":\"u1\"}\n";
    let id = "1999463e-ee08-4b08-99d5-2d9a36fd8293";
    let session = format!("/r/-p/{id}.jsonl");
    let found = |layout: SessionLayout| {
        let mut remote = Remote::new(layout);
        remote.put(&session, line);
        for name in [
            "helpers/agent-a1.jsonl",
            "subagents/agent-a2.jsonl",
            "outputs/a.txt",
        ] {
            remote.put(&format!("/r/-p/{id}/{name}"), line);
        }
        let disk: Arc<dyn ReadDisk> = Arc::new(remote);
        let agents = own_subagents_on(&disk, Path::new(&session)).unwrap();
        let agents: Vec<String> = agents.into_iter().map(|agent| agent.id).collect();
        let catalog = Catalog::open_on(&disk, Path::new("/r")).unwrap();
        (agents, catalog.bytes() / line.len() as u64)
    };
    assert_eq!(found(other), (vec!["a1".to_owned()], 3));
    assert_eq!(found(SessionLayout::CLIENT), (vec!["a2".to_owned()], 2));
}
