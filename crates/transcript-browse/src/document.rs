//! The conversation on the screen: which pages are laid out, where the cursor is, and what is above
//! and below it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::messages::{Block, BlockId, Folds, Layout, Page, Request, SessionFacts};
use crate::needle::{Needle, lines_with};
use transcript_render::{Detail, StyledLine};

/// The maximum size of the pages that are kept, in bytes of their texts.
const MAX_CACHED_BYTES: usize = 4 << 20;
/// The number of lines between the cursor and the edge of the screen.
const MARGIN_LINES: usize = 2;

/// A step of the cursor, done as soon as the pages that it needs are there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Motion {
    /// By lines.
    Lines(i64),
    /// By lines, the cursor staying where it is on the screen.
    Page(i64),
    /// To the next block, or the one before.
    Block(bool),
    /// To the next prompt, or the one before.
    Prompt(bool),
    Top,
    End,
    /// To a block, and a hit in it.
    To(usize, BlockId, Option<usize>),
}

struct CachedPage {
    page: Page,
    version: u64,
    needed: u64,
    bytes: usize,
    used: u64,
}

/// The position of the cursor, for the next layout.
#[derive(Clone, Debug, Default)]
struct Anchor {
    key: BlockId,
    /// The line in its block, and the number of lines of that.
    line: usize,
    lines: usize,
    text: String,
}

/// A conversation with the part of it that is on the screen.
#[derive(Default)]
pub(crate) struct Document {
    pub(crate) facts: SessionFacts,
    pub(crate) folds: Folds,
    pub(crate) needle: Option<Needle>,
    pages: HashMap<usize, CachedPage>,
    /// The versions that were asked for.
    asked: HashMap<usize, u64>,
    version: u64,
    /// The version of the last layout of everything.
    floor: u64,
    layout: Layout,
    part: usize,
    line: usize,
    /// The row of the cursor.
    row: usize,
    height: usize,
    motions: VecDeque<Motion>,
    anchor: Option<Anchor>,
    /// Whether the cursor is on the last line, and stays there.
    is_at_end: bool,
    clock: u64,
}

impl Document {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self {
            version: 1,
            floor: 1,
            layout: Layout {
                width,
                version: 1,
                ..Layout::default()
            },
            row: height.saturating_sub(1),
            height,
            is_at_end: true,
            ..Self::default()
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.layout.width
    }

    /// Lays everything out again, for another width or other folds.
    fn relayout(&mut self, part: Option<usize>) {
        self.version += 1;
        self.layout.version = self.version;
        self.layout.folds = Arc::new(self.folds.clone());
        match part {
            // Also for pages that are not kept: an answer to an earlier request may still arrive.
            None => self.floor = self.version,
            Some(part) => drop(self.asked.remove(&part)),
        }
        // The old layout stays on the screen until the new one arrives.
        for (number, laid) in &mut self.pages {
            if part.is_none_or(|part| part == *number) {
                laid.needed = self.version;
            }
        }
    }

    pub(crate) fn resize(&mut self, width: usize, height: usize) {
        self.height = height.max(1);
        self.row = self.row.min(self.height - 1);
        if width != self.layout.width {
            self.layout.width = width;
            self.relayout(None);
        }
    }

    /// Folds or unfolds the block of the cursor.
    pub(crate) fn toggle(&mut self) {
        let Some(block) = self.block() else { return };
        let (key, start) = (block.key, block.lines.start);
        let detail = match block.detail {
            Detail::Whole => Detail::Folded,
            _ => Detail::Whole,
        };
        // The block stays where it is on the screen.
        let above = self.line - start;
        if detail == Detail::Folded {
            self.row = self.row.saturating_sub(above);
            self.line = start;
            self.anchor = Some(Anchor {
                key,
                ..Anchor::default()
            });
        }
        // At the end, the next layout would put the cursor on the last line instead of this block.
        self.is_at_end = false;
        self.folds.changed.insert(key, detail);
        self.relayout(Some(self.part));
    }

    pub(crate) fn fold_all(&mut self, change: impl FnOnce(&mut Folds)) {
        change(&mut self.folds);
        self.folds.changed.clear();
        self.relayout(None);
    }

    /// Returns the request for the thread of a newer state of the session.
    pub(crate) fn locate(&self) -> Request {
        // At the end no offset is named, so that the cursor follows a session that grows.
        let anchor = self.anchor.as_ref().filter(|_| !self.is_at_end);
        Request::Locate {
            offset: anchor.map(|anchor| anchor.key.offset),
            layout: self.layout.clone(),
        }
    }

    /// Returns whether the cursor is on one of these pages, or still at the offset that they were laid
    /// out for.
    pub(crate) fn is_within(&self, offset: Option<u64>, pages: &[(usize, Page)]) -> bool {
        let anchor = self.anchor.as_ref().filter(|_| !self.is_at_end);
        let at = anchor.map(|anchor| anchor.key.offset);
        let mut blocks = pages.iter().flat_map(|(_, page)| &page.blocks);
        at == offset || at.is_some_and(|at| blocks.any(|block| block.key.offset == at))
    }

    /// Returns the request to go to the entry at an offset.
    pub(crate) fn locate_at(&self, offset: u64) -> Request {
        Request::Locate {
            offset: Some(offset),
            layout: self.layout.clone(),
        }
    }

    /// Unfolds a block, so that a hit in it can be seen.
    pub(crate) fn show(&mut self, part: usize, key: BlockId) {
        if self.folds.changed.get(&key) != Some(&Detail::Whole) {
            self.folds.changed.insert(key, Detail::Whole);
            self.relayout(Some(part));
        }
    }

    /// Shows a newer state of the session, of which these pages were laid out.
    pub(crate) fn replace(
        &mut self,
        facts: SessionFacts,
        part: usize,
        version: u64,
        pages: Vec<(usize, Page)>,
    ) {
        self.facts = facts;
        // A jump to a part that is gone would wait for its page forever, and block the motions behind it.
        let is_there =
            |motion: &Motion| !matches!(motion, Motion::To(to, ..) if *to >= self.facts.parts);
        self.motions.retain(is_there);
        self.pages.clear();
        self.asked.clear();
        let anchor = self.anchor.as_ref().filter(|_| !self.is_at_end);
        let is_there = |(_, page): &&(usize, Page)| {
            let mut blocks = page.blocks.iter();
            anchor.is_some_and(|anchor| blocks.any(|block| block.key.offset == anchor.key.offset))
        };
        self.part = pages.iter().find(is_there).map_or(part, |(part, _)| *part);
        for (part, page) in pages {
            self.add(part, version, page);
        }
    }

    pub(crate) fn add(&mut self, part: usize, version: u64, page: Page) {
        let known = self.pages.get(&part);
        // A late answer to an earlier request must not replace a newer layout.
        if known.is_some_and(|known| known.version > version) {
            return;
        }
        let needed = known.map_or(0, |known| known.needed).max(self.floor);
        // A line costs more than its text: 64 bytes stand for its spans.
        let bytes: usize = page.lines.iter().map(|line| 64 + line.text().len()).sum();
        self.clock += 1;
        let laid = CachedPage {
            page,
            version,
            needed,
            bytes,
            used: self.clock,
        };
        self.pages.insert(part, laid);
        if part == self.part {
            self.find_anchor();
        }
        self.drop_old();
    }

    fn drop_old(&mut self) {
        let mut bytes: usize = self.pages.values().map(|laid| laid.bytes).sum();
        // The pages around the cursor stay, whatever their size: the screen would ask for them again at once.
        let near = self.part.saturating_sub(1)..=self.part + 1;
        while bytes > MAX_CACHED_BYTES {
            let far = self.pages.iter().filter(|(part, _)| !near.contains(part));
            let Some(oldest) = far.min_by_key(|(_, laid)| laid.used).map(|(part, _)| *part) else {
                return;
            };
            bytes -= self.pages.remove(&oldest).map_or(0, |laid| laid.bytes);
            self.asked.remove(&oldest);
        }
    }

    /// Puts the cursor on the line where it was before its page was laid out again.
    fn find_anchor(&mut self) {
        let Some(page) = self.pages.get(&self.part).map(|laid| &laid.page) else {
            return;
        };
        let last = page.lines.len().saturating_sub(1);
        let found = self.anchor.as_ref().and_then(|anchor| {
            let key = anchor.key;
            let same = |block: &&Block| block.key == key;
            // If its entry is not shown any more, the one before it in the file.
            let above = page
                .blocks
                .iter()
                .filter(|block| block.key.offset <= key.offset);
            let block = page.blocks.iter().find(same);
            let block = block.or_else(|| above.max_by_key(|block| block.key.offset))?;
            // The line with the same text, or with it beside the name of the speaker, else one as far down.
            let about = anchor.line * block.lines.len() / anchor.lines.max(1);
            let about = block.lines.start + about.min(block.lines.len() - 1);
            let mut lines: Vec<usize> = block.lines.clone().collect();
            lines.sort_by_key(|line| line.abs_diff(about));
            let text = |line: &usize| page.lines[*line].text().trim().to_owned();
            let is_part = |line: &&usize| {
                let (text, old) = (text(line), &anchor.text);
                !text.is_empty() && !old.is_empty() && (text.ends_with(old) || old.ends_with(&text))
            };
            let same = lines.iter().find(|line| text(line) == anchor.text);
            let same = same.or_else(|| lines.iter().find(is_part));
            Some(same.copied().unwrap_or(about))
        });
        self.line = match found {
            _ if self.is_at_end => last,
            Some(line) => line,
            None => self.line.min(last),
        };
    }

    pub(crate) fn page(&self, part: usize) -> Option<&Page> {
        self.pages.get(&part).map(|laid| &laid.page)
    }

    pub(crate) fn part(&self) -> usize {
        self.part
    }

    pub(crate) fn block(&self) -> Option<&Block> {
        let page = self.page(self.part)?;
        page.blocks
            .iter()
            .rfind(|block| block.lines.start <= self.line)
    }

    pub(crate) fn go(&mut self, motion: Motion) {
        // Keys that are held down must not queue up behind a page that takes long.
        if self.motions.len() < 8 {
            self.motions.push_back(motion);
        }
    }

    /// Does the motions that are possible, and returns what has to be laid out for the rest and for
    /// the screen.
    pub(crate) fn settle(&mut self) -> Vec<Request> {
        let mut wanted = vec![self.part];
        while let Some(motion) = self.motions.front().copied() {
            match self.apply(motion) {
                Ok(()) => {
                    self.motions.pop_front();
                    self.is_at_end = self.is_last(self.part, self.line);
                    self.set_anchor();
                }
                // The later motions wait as well: each continues from the position where the one before ends.
                Err(part) => {
                    wanted.push(part);
                    break;
                }
            }
        }
        if self.anchor.is_none() || self.is_at_end {
            self.set_anchor();
        }
        self.normalize();
        wanted.push(self.part);
        // One screen more than is shown in each direction, so that paging does not wait for a layout.
        let (above, below) = (self.row, self.height.saturating_sub(self.row));
        if self.line < above + self.height {
            wanted.extend(self.part.checked_sub(1));
        }
        let here = self.page(self.part).map_or(0, |page| page.lines.len());
        if here.saturating_sub(self.line) < below + self.height {
            wanted.push(self.part + 1);
        }
        wanted.dedup();
        let mut requests = Vec::new();
        for part in wanted {
            if part >= self.facts.parts {
                continue;
            }
            self.clock += 1;
            let (mut version, mut is_missing) = (self.version, true);
            if let Some(laid) = self.pages.get_mut(&part) {
                laid.used = self.clock;
                is_missing = laid.version < laid.needed;
                version = laid.needed.max(version);
            }
            let asked = self.asked.get(&part).copied().unwrap_or(0);
            let least = self.pages.get(&part).map_or(self.floor, |laid| laid.needed);
            if is_missing && asked < least {
                self.asked.insert(part, version);
                let layout = self.layout.clone();
                requests.push(Request::Lay { part, layout });
            }
        }
        requests
    }

    fn set_anchor(&mut self) {
        let Some(block) = self.block() else { return };
        let text = self
            .page(self.part)
            .and_then(|page| page.lines.get(self.line));
        self.anchor = Some(Anchor {
            key: block.key,
            line: self.line.saturating_sub(block.lines.start),
            lines: block.lines.len(),
            text: text.map_or(String::new(), |line| line.text().trim().to_owned()),
        });
    }

    /// Returns whether all of the screen is laid out as it was asked for.
    pub(crate) fn is_settled(&self) -> bool {
        let is_new = |laid: &CachedPage| laid.version >= laid.needed;
        self.motions.is_empty()
            && (self.facts.parts == 0 || self.pages.get(&self.part).is_some_and(is_new))
            && self.rows().iter().all(|row| !matches!(row, Row::Missing))
    }

    fn is_last(&self, part: usize, line: usize) -> bool {
        let page = self.page(part);
        part + 1 >= self.facts.parts && page.is_some_and(|page| line + 1 >= page.lines.len())
    }

    fn apply(&mut self, motion: Motion) -> Result<(), usize> {
        match motion {
            Motion::Lines(lines) => {
                let moved = self.step(lines)?;
                let row = self.row as i64 + moved;
                let low = MARGIN_LINES.min(self.height / 2) as i64;
                let high = (self.height as i64 - 1 - low).max(low);
                self.row = usize::try_from(row.clamp(low, high)).unwrap_or_default();
            }
            Motion::Page(lines) => {
                self.step(lines)?;
            }
            // The first line of the end that is shown first is not the top.
            Motion::Top if !self.facts.is_whole => return Err(self.part),
            Motion::Top => {
                self.page(0).ok_or(0_usize)?;
                (self.part, self.line, self.row) = (0, 0, 0);
            }
            Motion::End => {
                let last = self.facts.parts.saturating_sub(1);
                let page = self.page(last).ok_or(last)?;
                let line = page.lines.len().saturating_sub(1);
                (self.part, self.line, self.row) = (last, line, self.height - 1);
            }
            Motion::Block(is_down) => self.go_to_block(is_down, |_| true)?,
            Motion::Prompt(is_down) => self.go_to_block(is_down, |block| block.is_prompt)?,
            Motion::To(part, key, hit) => {
                // In an outdated layout the block may still be folded, and its hit has no line.
                let laid = self
                    .pages
                    .get(&part)
                    .filter(|laid| laid.version >= laid.needed);
                let page = &laid.ok_or(part)?.page;
                let block = page.blocks.iter().find(|block| block.key == key);
                // A search also finds texts that are not shown: the entry counts then, or else the one above it.
                let block = block.or_else(|| {
                    page.blocks
                        .iter()
                        .find(|block| block.key.offset == key.offset)
                });
                let block = block.or_else(|| {
                    let above = page.blocks.iter();
                    let above = above.filter(|block| block.key.offset <= key.offset);
                    above.max_by_key(|block| block.key.offset)
                });
                let block = block.or(page.blocks.first());
                let mut line = block.map_or(0, |block| landing(page, block));
                if let (Some(block), Some(hit), Some(needle)) = (block, hit, &self.needle) {
                    let hits = lines_with(&page.lines[block.lines.clone()], needle);
                    line = block.lines.start + hits.get(hit).copied().unwrap_or(0);
                }
                let row = if hit.is_some() { self.height / 3 } else { 0 };
                (self.part, self.line, self.row) = (part, line, row);
            }
        }
        Ok(())
    }

    /// Moves the cursor by lines as far as there are any, and returns how far.
    fn step(&mut self, lines: i64) -> Result<i64, usize> {
        // The cursor moves only at the end of this: if a page is missing, the whole motion is tried again.
        let (mut part, mut line) = (self.part, self.line as i64 + lines);
        let mut page = self.page(part).ok_or(part)?;
        loop {
            let len = page.lines.len() as i64;
            if line < 0 && part > 0 {
                part -= 1;
                page = self.page(part).ok_or(part)?;
                line += page.lines.len() as i64;
            } else if line >= len && part + 1 < self.facts.parts {
                part += 1;
                page = self.page(part).ok_or(part)?;
                line -= len;
            } else {
                break;
            }
        }
        let last = page.lines.len().saturating_sub(1) as i64;
        let (over, line) = (line - line.clamp(0, last), line.clamp(0, last));
        (self.part, self.line) = (part, usize::try_from(line).unwrap_or_default());
        Ok(lines - over)
    }

    fn go_to_block(
        &mut self,
        is_down: bool,
        is_wanted: impl Fn(&Block) -> bool,
    ) -> Result<(), usize> {
        let (mut part, mut line) = (self.part, Some(self.line));
        loop {
            let page = self.page(part).ok_or(part)?;
            let mut wanted = page.blocks.iter().filter(|block| {
                let start = landing(page, block);
                let is_beyond = |line| if is_down { start > line } else { start < line };
                is_wanted(block) && line.is_none_or(is_beyond)
            });
            let found = if is_down {
                wanted.next()
            } else {
                wanted.next_back()
            };
            if let Some(found) = found {
                (self.part, self.line, self.row) = (
                    part,
                    landing(page, found),
                    MARGIN_LINES.min(self.height / 3),
                );
                return Ok(());
            }
            let next = if is_down {
                part + 1
            } else {
                part.wrapping_sub(1)
            };
            if next >= self.facts.parts {
                return Ok(());
            }
            // Parts that were searched are not searched again, even if their page is dropped meanwhile.
            let end = page.lines.len().saturating_sub(1);
            (self.part, self.line) = (part, if is_down { end } else { 0 });
            (part, line) = (next, None);
        }
    }

    /// Leaves no empty rows above the first line or below the last one, if there is enough text.
    fn normalize(&mut self) {
        self.row = self.row.min(self.height.saturating_sub(1));
        let mut below = 0;
        let mut at = (self.part, self.line);
        while below + self.row + 1 < self.height {
            match self.next(at) {
                Some(next) => (at, below) = (next, below + 1),
                None => break,
            }
        }
        // A missing page may have lines for the rows below, so the cursor stays until it arrives.
        let is_end = (at.0..self.facts.parts).all(|part| self.page(part).is_some());
        if is_end {
            self.row = self.height - 1 - below;
        }
        let mut above = 0;
        let mut at = (self.part, self.line);
        while above < self.row {
            match self.before(at) {
                Some(before) => (at, above) = (before, above + 1),
                None => break,
            }
        }
        if above < self.row && self.is_start_known() {
            self.row = above;
        }
    }

    fn next(&self, (mut part, line): (usize, usize)) -> Option<(usize, usize)> {
        if line + 1 < self.page(part)?.lines.len() {
            return Some((part, line + 1));
        }
        loop {
            part += 1;
            if !self.page(part)?.lines.is_empty() {
                return Some((part, 0));
            }
        }
    }

    fn before(&self, (mut part, line): (usize, usize)) -> Option<(usize, usize)> {
        if line > 0 {
            return Some((part, line - 1));
        }
        loop {
            part = part.checked_sub(1)?;
            let lines = self.page(part)?.lines.len();
            if lines > 0 {
                return Some((part, lines - 1));
            }
        }
    }

    /// Returns the rows of the screen.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = vec![Row::Empty; self.height];
        let block = self.block().map(|block| block.key);
        let cursor = (self.part, self.line);
        let row = |at: (usize, usize)| {
            let Some(page) = self.page(at.0) else {
                return Row::Missing;
            };
            // A page of which everything is hidden has no lines.
            let Some(line) = page.lines.get(at.1) else {
                return Row::Empty;
            };
            let blocks = self.page(at.0).map_or(&[][..], |page| &page.blocks);
            let of_line = blocks.iter().rfind(|block| block.lines.start <= at.1);
            let is_block = of_line.map(|block| block.key) == block;
            Row::Line {
                line,
                is_block,
                is_cursor: at == cursor,
            }
        };
        if self.facts.parts == 0 {
            return rows;
        }
        let mut at = Some(cursor);
        for place in (0..=self.row.min(self.height - 1)).rev() {
            let Some(here) = at else {
                rows[place] = if self.is_start_known() {
                    Row::Empty
                } else {
                    Row::Missing
                };
                continue;
            };
            rows[place] = row(here);
            at = self.before(here);
        }
        let mut at = self.next(cursor);
        let mut last = cursor;
        for shown in rows.iter_mut().skip(self.row + 1) {
            let Some(here) = at else {
                let is_end = (last.0..self.facts.parts).all(|part| self.page(part).is_some());
                *shown = if is_end { Row::Empty } else { Row::Missing };
                continue;
            };
            *shown = row(here);
            (last, at) = (here, self.next(here));
        }
        rows
    }

    fn is_start_known(&self) -> bool {
        // Walking up ended: at the first line, or at a page that is not there.
        let mut part = self.part;
        while part > 0 && self.page(part - 1).is_some() {
            part -= 1;
        }
        part == 0
    }

    /// The position of the cursor, in percent.
    pub(crate) fn percent(&self) -> usize {
        let lines = self
            .page(self.part)
            .map_or(1, |page| page.lines.len().max(1));
        // Each part counts the same: those that are not laid out have no known number of lines.
        let parts = self.facts.parts.max(1);
        if self.is_last(self.part, self.line) {
            100
        } else {
            (self.part * 100 + self.line * 100 / lines) / parts
        }
    }
}

/// The first line of a block that is not empty.
fn landing(page: &Page, block: &Block) -> usize {
    let mut lines = block.lines.clone();
    let first = lines.find(|line| !page.lines[*line].spans.is_empty());
    first.unwrap_or(block.lines.start)
}

/// A row of the screen.
#[derive(Clone, Debug)]
pub(crate) enum Row<'d> {
    Empty,
    /// A row of a page that is being laid out.
    Missing,
    Line {
        line: &'d StyledLine,
        is_block: bool,
        is_cursor: bool,
    },
}
