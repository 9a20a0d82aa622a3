//! A file that is read line by line while others write to it.

use std::path::Path;
use std::sync::Arc;

use transcript_format::lines::Framed;
use transcript_reader::{FileChange, GrowingFile};
use transcript_storage::{Disk, File, MemoryDisk, ReadDisk};

const PATH: &str = "/s.jsonl";

struct Written {
    disk: MemoryDisk,
    file: Arc<dyn File>,
}

impl Written {
    fn new(text: &str) -> Self {
        let disk = MemoryDisk::new();
        let file = disk.open(Path::new(PATH), true).unwrap().file;
        file.append(text.as_bytes()).unwrap();
        Self { disk, file }
    }

    fn append(&self, text: &str) {
        self.file.append(text.as_bytes()).unwrap();
    }

    /// Replaces the text of the file, which remains the same file.
    fn rewrite(&self, text: &str) {
        self.file.truncate(0).unwrap();
        self.append(text);
    }

    fn open(&self) -> GrowingFile {
        let disk: Arc<dyn ReadDisk> = Arc::new(self.disk.clone());
        GrowingFile::open(&disk, Path::new(PATH)).unwrap()
    }
}

fn text_of(line: &Framed<'_>) -> String {
    match line {
        Framed::Line(line) => String::from_utf8(line.bytes.to_vec()).unwrap(),
        Framed::TooLong { len, .. } => format!("{len} bytes"),
    }
}

fn lines(file: &mut GrowingFile) -> Vec<String> {
    let mut lines = Vec::new();
    file.read_lines(|line| lines.push(text_of(&line))).unwrap();
    lines
}

#[test]
fn each_line_is_read_once_and_an_unfinished_one_is_shown_until_it_ends() {
    let written = Written::new("{\"a\":1}\n{\"b\"");
    let mut file = written.open();
    assert_eq!(lines(&mut file), ["{\"a\":1}"]);
    assert_eq!(file.unfinished().as_ref().map(text_of).unwrap(), "{\"b\"");
    assert_eq!(file.change(), FileChange::None);
    written.append(":2");
    assert_eq!(file.change(), FileChange::Grown);
    assert!(lines(&mut file).is_empty());
    assert_eq!(file.unfinished().as_ref().map(text_of).unwrap(), "{\"b\":2");
    written.append("}\n{\"c\":3}\n");
    assert_eq!(lines(&mut file), ["{\"b\":2}", "{\"c\":3}"]);
    assert!(file.unfinished().is_none());
    assert_eq!(file.change(), FileChange::None);
}

/// Same file, same length, same start, and an end that is the same on each line.
#[test]
fn file_rewritten_in_place_is_another_file_whether_it_grew_or_not() {
    let entry = |text: &str| {
        let end = "x".repeat(2000);
        format!("{{\"text\":\"{text}\",\"end\":\"{end}\"}}\n")
    };
    let old = [entry("first"), entry("old"), entry("last")].concat();
    let new = [entry("first"), entry("new"), entry("last")].concat();
    for more in ["", &entry("more")] {
        for is_read in [true, false] {
            let written = Written::new(&old);
            let mut file = written.open();
            if is_read {
                assert_eq!(lines(&mut file).len(), 3);
            } else {
                file.remember().unwrap();
            }
            assert_eq!(file.change(), FileChange::None);
            written.append(&entry("appended"));
            assert_eq!(file.change(), FileChange::Grown);
            written.rewrite(&format!("{new}{more}"));
            assert_eq!(file.change(), FileChange::Other);
            // It remains another one until it is opened again.
            assert_eq!(file.change(), FileChange::Other);
        }
    }
}

#[test]
fn a_file_that_lost_its_name_may_come_back_and_another_of_the_name_is_another() {
    let written = Written::new("{\"a\":1}\n");
    let mut file = written.open();
    assert_eq!(lines(&mut file).len(), 1);
    let (path, away) = (Path::new(PATH), Path::new("/away"));
    written.disk.rename(path, away).unwrap();
    assert_eq!(file.change(), FileChange::Gone);
    written.disk.rename(away, path).unwrap();
    assert_eq!(file.change(), FileChange::None);
    written.disk.put(PATH, "{\"a\":1}\n");
    assert_eq!(file.change(), FileChange::Other);
}

#[test]
fn lines_are_read_from_the_first_after_all_bytes_were_remembered() {
    let written = Written::new("{\"a\":1}\n{\"b\":2}\n");
    let mut file = written.open();
    file.remember().unwrap();
    written.append("{\"c\":3}\n");
    assert_eq!(file.change(), FileChange::Grown);
    assert_eq!(lines(&mut file), ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
    assert_eq!(file.change(), FileChange::None);
}
