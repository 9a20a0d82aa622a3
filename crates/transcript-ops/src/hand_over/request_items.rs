//! The messages of the next request of Claude Code as items, with what the entries say about them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use transcript_format::object::Object;
use transcript_format::scan::Flags;
use transcript_import::handover::{Items, SourceItem, item_of_block};
use transcript_import::{Error, NodeKind};
use transcript_messages::{Block, Role, StoredReader};
use transcript_reader::{Bodies, EntryNo};

use crate::failure::Failure;
use crate::request::BuiltRequest;

/// The messages of a request as items: one for each block.
pub(super) struct RequestItems<'r> {
    blocks: Vec<BlockItem<'r>>,
    reader: RefCell<StoredReader>,
    path: PathBuf,
}

/// A block, and what is known about it from its entry.
struct BlockItem<'r> {
    block: &'r Block,
    role: Role,
    flags: Flags,
    millis: Option<i64>,
    answer: Answer,
}

/// What the entry of an answer says about it.
#[derive(Clone, Default)]
struct Answer {
    model: Option<Arc<str>>,
    has_usage: bool,
}

impl<'r> RequestItems<'r> {
    /// Reads the entries of the answers once.
    pub(super) fn of(built: &'r BuiltRequest<'_>) -> Result<Self, Failure> {
        let (source, index) = (built.history.source(), built.history.index());
        let mut bodies = Bodies::new(source);
        let mut answers: HashMap<usize, Answer> = HashMap::new();
        let mut blocks = Vec::new();
        for message in &built.request.messages {
            for block in message.blocks() {
                let origin = block.origin();
                let entry = origin.map(|origin| index.entry(EntryNo::new(origin)));
                let mut answer = Answer::default();
                if let (Role::Assistant, Some(origin), Some(entry)) =
                    (message.role(), origin, &entry)
                {
                    answer = match answers.get(&origin) {
                        Some(known) => known.clone(),
                        None => answer_of(bodies.get(entry)?.text),
                    };
                    answers.insert(origin, answer.clone());
                }
                blocks.push(BlockItem {
                    block,
                    role: message.role(),
                    flags: entry.map(|entry| entry.flags()).unwrap_or_default(),
                    millis: entry.and_then(|entry| entry.millis()),
                    answer,
                });
            }
        }
        Ok(Self {
            blocks,
            reader: RefCell::default(),
            path: source.path().to_owned(),
        })
    }
}

fn answer_of(line: &str) -> Answer {
    let line = Object::parse(line).ok();
    let message = line.and_then(|line| line.object("message"));
    message.map_or_else(Answer::default, |message| Answer {
        model: message.str("model").map(|model| model.as_ref().into()),
        has_usage: message.object("usage").is_some(),
    })
}

impl Items for RequestItems<'_> {
    fn count(&self) -> usize {
        self.blocks.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        let of = &self.blocks[at];
        let kind = match of.role {
            Role::User => NodeKind::User,
            Role::Assistant => NodeKind::Assistant,
            Role::System => NodeKind::Context,
        };
        let mut reader = self.reader.borrow_mut();
        let json = reader.json(of.block).map_err(|error| Error::Io {
            path: self.path.clone(),
            error,
        })?;
        let mut item = item_of_block(json, kind);
        if item.kind == NodeKind::User && of.flags.contains(Flags::COMPACT_SUMMARY) {
            item.kind = NodeKind::Summary;
        }
        item.is_of_agent = of.flags.contains(Flags::META);
        item.time = of.millis;
        item.model = of.answer.model.as_deref().map(str::to_owned);
        item.has_usage = of.answer.has_usage;
        Ok(item)
    }
}
