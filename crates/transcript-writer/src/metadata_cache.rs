//! The lines of state that a session has, for writing them again where readers look for them.

use std::collections::BTreeMap;

use transcript_format::kind::EntryKind;

use crate::draft::Draft;

/// The length of the end of a file that other readers look at to list sessions.
const WINDOW_LEN: u64 = 64 << 10;

/// The last line of each kind of state, and the offset where it starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetadataCache {
    lines: BTreeMap<EntryKind, (Draft, u64)>,
    /// The last prompt of the person, if a line has it.
    prompt: Option<String>,
}

impl MetadataCache {
    /// Creates the state of a file of `len` bytes. Lines after that are ignored: opening the file
    /// truncated them.
    pub(crate) fn new(lines: &[(Draft, u64)], len: u64) -> Self {
        let mut metadata = Self::default();
        for (line, offset) in lines.iter().filter(|(_, offset)| *offset < len) {
            metadata.note(line, *offset);
        }
        metadata
    }

    /// Returns the last prompt of the person.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// Adds a line of the file, unless a later one of its kind is known.
    pub(crate) fn note(&mut self, line: &Draft, offset: u64) {
        if !line.kind.is_state() {
            return;
        }
        let last = self.lines.get(&line.kind);
        if last.is_some_and(|(_, last)| *last > offset) {
            return;
        }
        if line.kind == EntryKind::LastPrompt
            && let Some(prompt) = line.text_of("lastPrompt")
        {
            self.prompt = Some(prompt);
        }
        self.lines.insert(line.kind, (line.clone(), offset));
    }

    /// Adds the state of kinds that `lines` does not have, shortest first, as long as all of it
    /// fits into the window.
    pub(crate) fn carry_into(&self, lines: &mut Vec<Draft>) {
        let mut taken: u64 = lines.iter().map(room).sum();
        let is_given = |line: &&Draft| lines.iter().any(|given| given.kind == line.kind);
        let others = self.lines.values().map(|(line, _)| line);
        let mut others: Vec<&Draft> = others.filter(|line| !is_given(line)).collect();
        others.sort_by_key(|line| line.len());
        for line in others {
            taken += room(line);
            if taken > WINDOW_LEN {
                break;
            }
            lines.push(line.clone());
        }
    }

    /// Returns those of `lines` that a file of `end` bytes does not have, or only before the window
    /// that will be its end after they are written. Each added line moves the window, so this
    /// repeats until no other line falls out of it.
    pub(crate) fn due(&self, lines: Vec<Draft>, end: u64) -> Vec<Draft> {
        let place = |line: &Draft| {
            let (metadata, offset) = self.lines.get(&line.kind)?;
            metadata.has_same_fields(line).then_some(*offset)
        };
        let placed: Vec<_> = lines.into_iter().map(|line| (place(&line), line)).collect();
        let mut window = end.saturating_sub(WINDOW_LEN);
        loop {
            let is_due = |place: Option<u64>| place.is_none_or(|place| place < window);
            let due = placed.iter().filter(|(place, _)| is_due(*place));
            let longer: u64 = due.map(|(_, line)| room(line)).sum();
            let moved = (end + longer).saturating_sub(WINDOW_LEN);
            if moved == window {
                let due = placed.into_iter().filter(|(place, _)| is_due(*place));
                return due.map(|(_, line)| line).collect();
            }
            window = moved;
        }
    }
}

/// Returns an upper estimate of the bytes of a draft in the file, with the fields that are filled
/// in and the newline.
fn room(line: &Draft) -> u64 {
    let filled_in = if line.kind.is_chain() { 1024 } else { 128 };
    (line.len() + filled_in) as u64
}
