//! Reads the hits that are returned: their texts, and their places in conversations.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use transcript_format::salvage::repaired_text;
use transcript_format::scan::{Flags, Scanner, utf8};
use transcript_reader::{
    EntryNo, EntryRef, Error, Index, Listing, SessionFiles, SessionRow, Source,
};
use transcript_resume::{Policy, Tree};
use transcript_storage::parallel;

use crate::calls::Owner;
use crate::files::{CatalogSession, FileRole};
use crate::hit::{Copy, Group, Hit, SearchError};
use crate::matches::Match;
use crate::rank::Folded;
use crate::scan::{MAX_STORED_RESULT_LEN, Scan};
use crate::texts::{Text, ToolPart, Unit};

/// A cache of the sessions of hits, and the positions of their entries.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    sessions: HashMap<usize, (Arc<CatalogSession>, Option<Arc<SessionRow>>)>,
    /// The entries of hits whose places are not known yet, by file; sorted offsets.
    wanted: HashMap<usize, Vec<u64>>,
    /// Sorted by offset.
    places: HashMap<usize, Vec<EntryPlace>>,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug)]
struct EntryPlace {
    offset: u64,
    line: u32,
    is_live: bool,
    is_in_context: bool,
}

impl Reader {
    /// Records which entries will be asked for, so that the conversation of each file is computed once.
    pub(crate) fn want<'m>(&mut self, scan: &Scan<'_>, found: impl Iterator<Item = &'m Match>) {
        self.wanted.clear();
        for found in found {
            if let Some(file) = scan.entry_file(found) {
                self.wanted.entry(file).or_default().push(found.offset);
            }
        }
        // Files whose positions are known need no second look.
        self.wanted.retain(|file, offsets| {
            offsets.sort_unstable();
            offsets.dedup();
            !self.places.contains_key(file)
        });
    }

    /// Finds out whether entries are live; those of files that cannot be read any more count as live.
    pub(crate) fn place(
        &mut self,
        scan: &Scan<'_>,
        found: &[&Match],
        threads: Option<NonZeroUsize>,
    ) {
        let files = found.iter().filter_map(|found| scan.entry_file(found));
        let files: HashSet<usize> = files
            .filter(|file| !self.places.contains_key(file))
            .collect();
        let wanted = &mut self.wanted;
        let files: Vec<_> = files
            .into_iter()
            .filter_map(|file| wanted.remove_entry(&file))
            .collect();
        let read = |(file, offsets): &(usize, Vec<u64>)| {
            // A file that is gone by now gives no positions; its hits then have no line, and count as live.
            let places = places(scan, *file, offsets).unwrap_or_default();
            (*file, places)
        };
        self.places.extend(parallel::map(&files, threads, || read));
    }

    /// Returns whether the entry is live.
    pub(crate) fn is_live(&self, scan: &Scan<'_>, found: &Match) -> bool {
        self.place_of(scan, found).is_none_or(|place| place.is_live)
    }

    fn place_of(&self, scan: &Scan<'_>, found: &Match) -> Option<EntryPlace> {
        let places = self.places.get(&scan.entry_file(found)?)?;
        let at = places
            .binary_search_by_key(&found.offset, |place| place.offset)
            .ok()?;
        Some(places[at])
    }

    /// Reads hits, in their order.
    pub(crate) fn read(
        &mut self,
        scan: &Scan<'_>,
        found: &[Match],
        groups: &[Group],
        threads: Option<NonZeroUsize>,
        snippet: usize,
    ) -> Vec<Result<Hit, SearchError>> {
        let all = groups.iter().flat_map(|group| {
            let (best, copies) = group.of(found);
            copies.iter().chain([best])
        });
        self.place(scan, &all.collect::<Vec<_>>(), threads);
        let best = groups.iter().map(|group| group.of(found).0);
        self.read_rows(scan, best.clone());
        // In the order of files, which are then opened once.
        let mut order: Vec<(usize, &Match)> = best.enumerate().collect();
        order.sort_unstable_by_key(|(_, best)| (best.file, best.offset));
        let order: Vec<usize> = order.into_iter().map(|(number, _)| number).collect();
        let mut hits = parallel::map(&order, threads, || {
            let (hits, mut scratch) = (&*self, Scratch::default());
            move |number| {
                let group = groups[*number];
                let (best, copies) = group.of(found);
                let hit = hits.hit(scan, best, copies, snippet, &mut scratch);
                let score = group.score;
                (*number, hit.map(|hit| Hit { score, ..hit }))
            }
        });
        // Back in the order of the hits, after they were read in the order of files.
        hits.sort_unstable_by_key(|(number, _)| *number);
        hits.into_iter().map(|(_, hit)| hit).collect()
    }

    /// Returns the session of each hit, with its row.
    pub(crate) fn rows<'m>(
        &mut self,
        scan: &Scan<'_>,
        found: impl Iterator<Item = &'m Match> + Clone,
    ) -> Vec<(Arc<CatalogSession>, Option<Arc<SessionRow>>)> {
        self.read_rows(scan, found.clone());
        let session = |found: &Match| scan.catalog.files[found.file as usize].session;
        found
            .map(|found| self.sessions[&session(found)].clone())
            .collect()
    }

    /// Reads the rows of the sessions of hits.
    fn read_rows<'m>(&mut self, scan: &Scan<'_>, found: impl Iterator<Item = &'m Match>) {
        let catalog = scan.catalog;
        let session = |found: &Match| catalog.files[found.file as usize].session;
        let new: HashSet<usize> = found.map(session).collect();
        let new: Vec<usize> = new
            .into_iter()
            .filter(|session| !self.sessions.contains_key(session))
            .collect();
        if new.is_empty() {
            return;
        }
        let mut files = SessionFiles::on(Arc::clone(&catalog.disk));
        for session in &new {
            let session = &catalog.sessions[*session];
            if session.has_file {
                files.sessions.push(session.file.clone());
            } else {
                files.orphans.push(session.file.clone());
            }
        }
        let rows = Listing::of(files).rows.into_iter();
        let mut rows: HashMap<_, _> = rows.map(|row| (row.path.clone(), Arc::new(row))).collect();
        for number in new {
            let session = &catalog.sessions[number];
            let row = rows.remove(&session.path);
            self.sessions
                .insert(number, (Arc::new(session.clone()), row));
        }
    }

    fn hit(
        &self,
        scan: &Scan<'_>,
        found: &Match,
        copies: &[Match],
        snippet: usize,
        scratch: &mut Scratch,
    ) -> Result<Hit, SearchError> {
        let file = &scan.catalog.files[found.file as usize];
        let stored_result = matches!(file.kind, FileRole::Result(_)).then(|| file.path.clone());
        let entry_file = scan.entry_file(found);
        let changed = || SearchError::Changed(file.path.clone());
        // The entry, unless it is a stored result without one.
        let entry = match entry_file {
            None => String::new(),
            Some(file) => scratch.text(scan, file, found)?.ok_or_else(changed)?,
        };
        let mut scanner = Scanner::new();
        let envelope = scanner.scan(entry.as_bytes()).ok();
        let unit = match &file.kind {
            FileRole::Result(name) => {
                let bytes = scan
                    .catalog
                    .disk
                    .read(&file.path, MAX_STORED_RESULT_LEN as usize);
                let bytes = bytes.map_err(|error| Error::io(&file.path, None, error))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Some(Owner::unit(
                    scan.owners(file.session).get(name),
                    text.into(),
                ))
            }
            _ => envelope
                .as_ref()
                .and_then(|envelope| Unit::read(&entry, envelope)),
        };
        let tool_file = entry_file.unwrap_or(found.file as usize);
        // The bytes are read again and matched again: a file that was edited since must not give a hit that does not
        // match.
        let unit = unit.ok_or_else(changed)?;
        let best = scan
            .best(tool_file, &unit, &mut scratch.folded)
            .ok_or_else(changed)?;
        let text = &unit.texts[best.text];
        let excerpt = Excerpt::of(&text.text, &scan.query.places(&text.text), snippet);
        let decoded = |text: transcript_format::scan::Text<'_>| text.decode().into_owned();
        let place = self.place_of(scan, found);
        let (session, row) = &self.sessions[&file.session];
        let uuid = envelope
            .as_ref()
            .and_then(|envelope| envelope.uuid())
            .map(decoded);
        // A stored result is at the place of its entry, which is named once.
        let entry = |found: &Match| {
            let file = scan.entry_file(found).unwrap_or(found.file as usize);
            (file, found.offset)
        };
        let mut named = HashSet::from([entry(found)]);
        let copies = copies.iter().filter(|copy| named.insert(entry(copy)));
        let copies: Vec<Copy> = copies
            .map(|copy| self.copy(scan, copy, (found, &uuid), scratch))
            .collect();
        let agent = |file: usize| {
            let own = scan.catalog.agent_of(file).map(str::to_owned);
            own.or_else(|| envelope.as_ref()?.agent_id().map(decoded))
        };
        Ok(Hit {
            session: Arc::clone(session),
            row: row.clone(),
            path: scan.catalog.files[tool_file].path.clone(),
            line: place.map(|place| u64::from(place.line)),
            offset: found.offset,
            len: u64::from(found.len),
            timestamp: envelope
                .as_ref()
                .and_then(|envelope| envelope.timestamp())
                .map(decoded),
            role: unit.role,
            field: text.field,
            block: text.block,
            tool: tool(scan, tool_file, text),
            agent_id: entry_file.and_then(agent),
            is_live: place.is_none_or(|place| place.is_live),
            is_in_context: place.is_some_and(|place| place.is_in_context),
            stored_result,
            snippet: excerpt.text,
            is_cut: excerpt.is_cut,
            matches: excerpt.matches,
            score: found.score,
            also: copies,
            uuid,
        })
    }

    /// Returns the copy of a hit; a fork may have given it another uuid.
    fn copy(
        &self,
        scan: &Scan<'_>,
        copy: &Match,
        (found, uuid): (&Match, &Option<String>),
        scratch: &mut Scratch,
    ) -> Copy {
        let number = scan.entry_file(copy).unwrap_or(copy.file as usize);
        let file = &scan.catalog.files[number];
        // Most copies have the uuid of the hit, and then need no read.
        let uuid = if copy.key.ids[0] == found.key.ids[0] {
            uuid.clone()
        } else {
            let text = scratch.text(scan, number, copy).ok().flatten();
            let text = text.unwrap_or_default();
            let mut scanner = Scanner::new();
            let envelope = scanner.scan(text.as_bytes()).ok();
            let uuid = envelope.as_ref().and_then(|envelope| envelope.uuid());
            uuid.map(|uuid| uuid.decode().into_owned())
        };
        Copy {
            session_id: scan.catalog.sessions[file.session].id.clone(),
            path: file.path.clone(),
            line: self.place_of(scan, copy).map(|place| u64::from(place.line)),
            uuid,
        }
    }
}

/// Buffers of a thread that reads hits.
#[derive(Default)]
struct Scratch {
    folded: Folded,
    bytes: Vec<u8>,
    /// The last file.
    source: Option<(usize, Source)>,
}

impl Scratch {
    /// Reads the JSON of an entry again; `None` if it is not there any more.
    fn text(
        &mut self,
        scan: &Scan<'_>,
        file: usize,
        found: &Match,
    ) -> Result<Option<String>, Error> {
        let source = match &mut self.source {
            Some((last, source)) if *last == file => source,
            last => &mut last.insert((file, scan.catalog.open_file(file)?)).1,
        };
        self.bytes.resize(found.len as usize, 0);
        let read = source.read_at(found.offset, &mut self.bytes)?;
        if read < self.bytes.len() {
            return Ok(None);
        }
        let mut scanner = Scanner::new();
        if !found.is_salvaged {
            let is_whole = scanner.scan(&self.bytes).is_ok();
            let text = utf8(&self.bytes).filter(|_| is_whole);
            return Ok(text.map(str::to_owned));
        }
        let mut text = repaired_text(&self.bytes);
        let end = scanner
            .scan_first(text.as_bytes())
            .ok()
            .map(|envelope| envelope.end());
        // Bytes after the object belong to the damaged line and not to the entry.
        text.truncate(end.unwrap_or_default());
        Ok(end.map(|_| text))
    }
}

/// Returns the tool of a call or a result.
fn tool(scan: &Scan<'_>, file: usize, text: &Text<'_>) -> Option<String> {
    match &text.tool {
        ToolPart::None => None,
        ToolPart::Call { name, .. } => name.as_deref().map(str::to_owned),
        ToolPart::Result { call, .. } => {
            let id = call.as_deref()?;
            Some(scan.calls(file).get(id)?.name.to_string())
        }
    }
}

/// Returns the places of the entries at these offsets, in the conversation of their file.
fn places(scan: &Scan<'_>, file: usize, offsets: &[u64]) -> Result<Vec<EntryPlace>, Error> {
    let index = Index::load(&scan.catalog.open_file(file)?)?;
    let tree = Tree::new(&index, Policy::Recover);
    let context = tree.path();
    let story = tree.unspliced().story(&context);
    let entries = story.path.entries.iter();
    let in_story: HashMap<EntryNo, bool> = entries
        .map(|entry| (entry.entry_no(), entry.in_context))
        .collect();
    // Of several entries with the same uuid, the policy chooses one.
    let in_story = |entry: &EntryRef<'_>| {
        let copies = entry
            .uuid()
            .into_iter()
            .flat_map(|uuid| index.with_uuid(uuid));
        let found = |number: EntryNo| in_story.get(&number).copied();
        found(entry.number()).or_else(|| copies.filter_map(found).max())
    };
    let is_agents = scan.catalog.agent_of(file).is_some();
    let mut wanted = offsets.iter().copied().peekable();
    let mut places = Vec::with_capacity(offsets.len());
    for entry in index.entries() {
        while wanted.next_if(|offset| *offset < entry.offset()).is_some() {}
        if wanted.next_if_eq(&entry.offset()).is_none() {
            continue;
        }
        let in_story = in_story(&entry);
        let is_sidechain = entry.flags().contains(Flags::SIDECHAIN) && !is_agents;
        places.push(EntryPlace {
            offset: entry.offset(),
            line: u32::try_from(entry.line()).unwrap_or(u32::MAX),
            // Titles and other entries outside of the chain cannot be rewound.
            is_live: in_story.is_some() || !entry.kind().is_chain() || is_sidechain,
            is_in_context: in_story == Some(true),
        });
    }
    Ok(places)
}

/// The part of a text that a hit shows.
struct Excerpt {
    text: String,
    is_cut: (bool, bool),
    matches: Vec<Range<usize>>,
}

impl Excerpt {
    /// Takes about `most` characters around these places, which are in bytes.
    fn of(text: &str, places: &[(usize, usize)], most: usize) -> Self {
        let (first, last) = match places {
            [] => (0, 0),
            [first, ..] => (first.0, places.last().map_or(first.1, |last| last.1)),
        };
        let shown = text[first..last].chars().take(most).count();
        // A match near one end of the text gets the missing context on the other side.
        let around = most - shown;
        let before = text[..first].chars().rev().take(around);
        let after = text[last..].chars().take(around).count();
        let before = before.count().min(around - after.min(around / 2));
        let back = text[..first].char_indices().rev().take(before).last();
        let start = back.map_or(first, |(at, _)| at);
        let end = text[start..].char_indices().nth(most);
        let end = end.map_or(text.len(), |(at, _)| start + at);
        let chars = |at: usize| text[start..at.clamp(start, end)].chars().count();
        let shown = places
            .iter()
            .filter(|place| place.0 < end || place.0 == start);
        Self {
            text: text[start..end].to_owned(),
            is_cut: (start > 0, end < text.len()),
            matches: shown.map(|place| chars(place.0)..chars(place.1)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_its_match_in_the_middle_or_as_near_as_the_text_allows() {
        let text = "0123456789éé*aa*ßß0123456789";
        let at = text.find('*').unwrap();
        let excerpt = |place: (usize, usize), most| {
            let found = Excerpt::of(text, &[place], most);
            (found.text, found.is_cut, found.matches[0].clone())
        };
        assert_eq!(
            excerpt((at, at + 4), 8),
            ("éé*aa*ßß".into(), (true, true), 2..6)
        );
        assert_eq!(
            excerpt((at, at + 4), 4),
            ("*aa*".into(), (true, true), 0..4)
        );
        assert_eq!(excerpt((at, at + 4), 2), ("*a".into(), (true, true), 0..2));
        assert_eq!(excerpt((0, 2), 6), ("012345".into(), (false, true), 0..2));
        let end = text.len();
        assert_eq!(
            excerpt((end - 2, end), 6),
            ("456789".into(), (true, false), 4..6)
        );
        assert_eq!(excerpt((0, end), 100).0, text);
        assert_eq!(Excerpt::of(text, &[], 3).text, "012");
    }
}
