//! The rules that the model of the search takes from the crates that define them.

use std::collections::HashMap;
use std::path::Path;

use transcript_format::author::Author;
use transcript_format::salvage;
use transcript_reader::{Index, MessageText, Source};
use transcript_resume::{Policy, Tree};
use transcript_testkit::model::search::{EntryPosition, ExternalRules};

/// The entries as the index has them, and the story under `recover`.
pub(crate) struct Reader;

impl ExternalRules for Reader {
    fn entries(&self, path: &Path) -> Vec<EntryPosition> {
        let source = Source::open(path).expect("a file");
        let index = Index::load(&source).expect("a file can be read");
        let tree = Tree::new(&index, Policy::Recover);
        let context = tree.path();
        let story = tree.unspliced().story(&context);
        let in_story = story.path.entries.iter();
        let in_story: HashMap<_, _> = in_story.map(|e| (e.entry_no(), e.in_context)).collect();
        let mut places = Vec::new();
        for entry in index.entries() {
            let mut bytes = vec![0; entry.byte_len() as usize];
            let read = source.read_at(entry.offset(), &mut bytes);
            assert_eq!(read.ok(), Some(bytes.len()));
            let text = if entry.is_salvaged() {
                salvage::repaired_text(&bytes)
            } else {
                String::from_utf8_lossy(&bytes).into_owned()
            };
            // Of several entries with the same uuid, the policy chooses one.
            let uuid = entry.uuid();
            let copies = uuid.into_iter().flat_map(|uuid| index.with_uuid(uuid));
            let copies = [entry.number()].into_iter().chain(copies);
            let in_context = copies.filter_map(|number| in_story.get(&number)).max();
            places.push(EntryPosition {
                line: entry.known_line(),
                offset: entry.offset(),
                text,
                in_story: in_context.is_some(),
                in_context: in_context == Some(&true),
            });
        }
        places.sort_by_key(|place| place.offset);
        places
    }

    fn is_of_client(&self, is_by_person: Option<bool>, text: &str) -> bool {
        let author = match is_by_person {
            Some(true) => Author::Person,
            Some(false) => Author::Other,
            None => Author::Unknown,
        };
        matches!(MessageText::by(author, text), MessageText::Client(_))
    }
}
