//! The position of an entry of the file in the view: in a part of the conversation, in a branch that left it, or
//! nowhere.

use std::path::Path;
use std::sync::Arc;

use transcript_reader::{EntryNo, EntryRef};
use transcript_render::{Detail, Escaping};
use transcript_resume::items::Displays;

use crate::messages::{Answer, BlockId, Folds, Layout, Target};
use crate::needle::{Needle, most_alike};
use crate::parts::{FIRST_BRANCH_NUMBER, MAX_NESTED_ENTRIES};
use crate::session::Session;

impl Session<'_> {
    /// Returns the block of a target and the number of the hit in it; what is not shown is explained, with
    /// the block before it.
    pub(crate) fn reach(
        &self,
        displays: &mut Displays<'_, '_>,
        target: &Target,
        needle: Option<&Needle>,
        width: usize,
    ) -> Result<Answer, String> {
        let Some(entry) = self.target(target) else {
            let missing = match target {
                Target::Line(line) => format!("there is no entry in line {line}"),
                Target::Hit { .. } => "the file has changed: search again".to_owned(),
            };
            return Ok(Answer::Reached {
                place: None,
                missing: Some(missing),
            });
        };
        let number = entry.number();
        let block = match target {
            Target::Hit { block, .. } => *block,
            Target::Line(_) => None,
        };
        let found = match self.place_of(number) {
            Some(place) => {
                let part = self.parts.partition_point(|part| part.end <= place);
                let key = self.block_of(displays, part, number, block, width)?;
                key.map(|key| (part, key))
            }
            None => self.branch_of(number),
        };
        let Some((part, key)) = found else {
            let offset = self.offset(number);
            let place = (!self.parts.is_empty()).then(|| {
                let key = BlockId { offset, number: 0 };
                (self.part_at(offset), key, None)
            });
            let missing = Some(self.not_shown(&entry, target));
            return Ok(Answer::Reached { place, missing });
        };
        let mut folds = Folds::default();
        folds.changed.insert(key, Detail::Whole);
        let page = self.page(displays, part, &layout(folds, width))?;
        let block = page.blocks.iter().find(|block| block.key == key);
        let lines = block.map_or(&[][..], |block| &page.lines[block.lines.clone()]);
        let mut missing = lines.is_empty().then(|| self.not_shown(&entry, target));
        let mut hit = None;
        if let (Target::Hit { around, stored, .. }, Some(needle)) = (target, needle) {
            // In a branch there may be the same words elsewhere, and results are cut.
            let found = most_alike(lines, needle, around);
            let found = found.filter(|(_, is_same)| *is_same || key.number < FIRST_BRANCH_NUMBER);
            hit = found.map(|(hit, _)| hit);
            if let Some(stored) = stored {
                missing = Some(in_stored(stored));
            } else if hit.is_none() {
                missing = Some(self.not_shown(&entry, target));
            }
        }
        Ok(Answer::Reached {
            place: Some((part, key, hit)),
            missing,
        })
    }

    fn target(&self, target: &Target) -> Option<EntryRef<'_>> {
        let mut entries = self.index.entries();
        entries.find(|entry| match target {
            Target::Line(line) => entry.known_line() == Some(*line),
            Target::Hit { offset, .. } => self.base + entry.offset() == *offset,
        })
    }

    /// Returns the place of an entry in the conversation.
    fn place_of(&self, number: EntryNo) -> Option<usize> {
        let mut entries = self.path.entries.iter();
        entries.position(|entry| entry.entry_no() == number)
    }

    /// Returns the block with a block of an entry, else with another one of it.
    fn block_of(
        &self,
        displays: &mut Displays<'_, '_>,
        part: usize,
        number: EntryNo,
        block: Option<u32>,
        width: usize,
    ) -> Result<Option<BlockId>, String> {
        let main = self.conversation(displays, part)?;
        let items = main.display().items().iter().enumerate();
        let of_entry: Vec<(usize, Option<u32>)> = items
            .filter(|(_, item)| item.entry_no() == number)
            .map(|(place, item)| (place, u32::try_from(item.block()).ok()))
            .collect();
        let same = of_entry
            .iter()
            .find(|(_, at)| block.is_some() && *at == block);
        let Some((place, _)) = same.or(of_entry.first()) else {
            return Ok(None);
        };
        let page = self.page(displays, part, &layout(Folds::default(), width))?;
        let mut blocks = page.blocks.iter();
        let found = blocks.find(|block| block.items.contains(place));
        Ok(found.map(|block| block.key))
    }

    /// Returns the part where a branch with this entry leaves, and the block of the branch.
    fn branch_of(&self, number: EntryNo) -> Option<(usize, BlockId)> {
        let mut branches = (0..).zip(&self.branches);
        let (at, from) = branches.find_map(|(at, (from, path))| {
            let mut shown = path.entries.iter().take(MAX_NESTED_ENTRIES);
            let has = shown.any(|entry| entry.entry_no() == number);
            has.then_some((at, *from))
        })?;
        let place = self.place_of(from)?;
        let part = self.parts.partition_point(|part| part.end <= place);
        let key = BlockId {
            offset: self.offset(from),
            number: FIRST_BRANCH_NUMBER | at,
        };
        Some((part, key))
    }

    /// Names the place of a text that the view does not show.
    fn not_shown(&self, entry: &EntryRef<'_>, target: &Target) -> String {
        let line = target.line();
        match target {
            Target::Hit {
                stored: Some(stored),
                ..
            } => in_stored(stored),
            _ if entry.kind().is_message() && entry.uuid().is_some() => {
                let id = self.source.path().file_stem().unwrap_or_default();
                let id = id.to_string_lossy();
                format!("not shown here: transcript replay {id} --at {line}")
            }
            Target::Hit { what, .. } => {
                let what = what.replace('_', " ");
                format!("not shown: the {what} in line {line} of the file")
            }
            Target::Line(_) => format!("not shown: line {line} of the file"),
        }
    }
}

fn layout(folds: Folds, width: usize) -> Layout {
    Layout {
        width,
        folds: Arc::new(folds),
        ..Layout::default()
    }
}

/// Says that a text is in a stored result.
pub(crate) fn in_stored(stored: &Path) -> String {
    let path = stored.display().to_string();
    format!("the text is in {}", Escaping::Visible.one_line(&path))
}
