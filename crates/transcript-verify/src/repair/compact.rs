//! Moves lines that no resume reads into an archive, and proves that nothing else changes.
//!
//! Only whole lines are moved, and all others keep their bytes and their order, so that the file as
//! it was can be put together again. Entries of a conversation are never moved, whatever branch they
//! are on and however long ago they were compacted away.

use std::cmp::Reverse;
use std::collections::hash_map::{self, DefaultHasher};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::ops::Range;

use transcript_format::entry::Entry;
use transcript_format::kind::{Counts, EntryKind, ProgressKind};
use transcript_format::named;
use transcript_format::object::Object;
use transcript_format::progress::AgentProgress;
use transcript_messages::{Message, StoredReader};
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Id, Index, Source};
use transcript_resume::request::RequestOptions;
use transcript_resume::{Branches, ConversationPath, NodeId, Policy, Tree};

use super::action::{Action, ActionKind};
use super::changes::copy;
use super::reading::Reading;
use super::{Repair, RepairRefusal, new_source};

/// The requests at the ends of branches are built and compared, the last branch first, until about
/// this number of bytes was read for them. The paths of all are compared, and the text of each entry.
const MAX_REBUILT_BYTES: u64 = 4 << 30;

named! {
    /// The reason why no resume needs a line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Bloat {
        /// A line of progress that leads to no entry of a conversation.
        Progress = "progress",
        /// A later line of its kind counts.
        Superseded = "superseded",
        /// It is the same as another line.
        Copy = "copy",
    }
}

/// A line that is moved to the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedLine {
    /// Its bytes in the file before the compaction, with the newline that ends it.
    pub range: Range<u64>,
    /// Its 1-based number there.
    pub line: u64,
    /// Its type.
    pub kind: EntryKind,
    /// The reason why no resume needs it.
    pub why: Bloat,
}

/// The size of the lines of one type, with their newlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindSize {
    /// The type.
    pub kind: EntryKind,
    /// Before the compaction.
    pub before: u64,
    /// After it.
    pub after: u64,
    /// The number of moved lines.
    pub lines: usize,
}

/// The lines that a compaction moves out of a file.
#[derive(Debug)]
pub struct Compaction {
    base: Source,
    moved: Vec<MovedLine>,
    sizes: Vec<KindSize>,
}

impl Compaction {
    /// Returns the file that the lines are moved out of: the old file if it needs no repair except
    /// that copies of lines are omitted, else the repaired one.
    #[must_use]
    pub fn base(&self) -> &Source {
        &self.base
    }

    /// Returns the moved lines in file order. [`Self::base`] without them is the new file.
    #[must_use]
    pub fn moved(&self) -> &[MovedLine] {
        &self.moved
    }

    /// Returns the bytes by type, the type of which most bytes are moved first.
    #[must_use]
    pub fn sizes(&self) -> &[KindSize] {
        &self.sizes
    }
}

impl Repair {
    /// Moves lines that no resume needs out of the new file, and proves that it resumes as before
    /// ([`resumes_alike`]); if that fails, the repair is [refused](Self::refusal). Without such lines
    /// nothing happens, and neither does when the repair is refused already.
    ///
    /// # Errors
    /// When the system fails to read, or to write a temporary file.
    pub fn compact(&mut self) -> Result<(), Error> {
        if self.refusal.is_some() || self.compaction.is_some() {
            return Ok(());
        }
        let repaired = self.repaired.clone().map(Reading::new).transpose()?;
        let before = repaired.as_ref().unwrap_or(&self.original);
        let mut moved = bloat(before)?;
        let copies = self.dropped_lines()?;
        // If the repair only omits copies, these are moved lines as well. The old file is then the base, and all of its
        // bytes are in the new file or in the archive.
        let (base, index) = if copies.is_empty() {
            (before.source.clone(), &before.index)
        } else {
            (self.original.source.clone(), &self.original.index)
        };
        put_among(&mut moved, copies);
        if moved.is_empty() {
            return Ok(());
        }
        let new = new_source(base.path(), base.len(), |out| {
            write_without(&base, &moved, out)
        })?;
        let after = Reading::new(new)?;
        // The rules of `bloat` are only reasons to try; this comparison is the proof that no resume changes.
        if !is_alike(before, &after)? {
            self.refusal = Some(RepairRefusal::Compaction);
        }
        let sizes = sizes(index, &moved);
        self.repaired = Some(after.source);
        self.compaction = Some(Compaction { base, moved, sizes });
        Ok(())
    }

    /// Returns the compaction of [`Self::compact`].
    #[must_use]
    pub fn compaction(&self) -> Option<&Compaction> {
        self.compaction.as_ref()
    }

    /// Returns the lines that the repair omits as copies of others, if it does nothing else.
    fn dropped_lines(&self) -> Result<Vec<MovedLine>, Error> {
        let is_drop = |action: &Action| action.action == ActionKind::Drop;
        let Some(repaired) = self
            .repaired
            .as_ref()
            // Another action changes lines, so that moved lines alone do not explain the difference of both files.
            .filter(|_| self.actions.iter().all(is_drop))
        else {
            return Ok(Vec::new());
        };
        let dropped: HashSet<_> = self.actions.iter().map(|action| action.line).collect();
        let entries = self.original.index.entries();
        let entries = entries.filter(|entry| dropped.contains(&entry.known_line()));
        let lines: Vec<_> = entries
            .map(|entry| MovedLine::new(&entry, Bloat::Copy))
            .collect();
        // The lines may not be whole ones.
        let mut rest = CompareWriter::new(repaired);
        write_without(&self.original.source, &lines, &mut rest)?;
        Ok(if rest.is_all() { lines } else { Vec::new() })
    }
}

impl MovedLine {
    fn new(entry: &EntryRef<'_>, why: Bloat) -> Self {
        Self {
            range: entry.offset()..entry.offset() + entry.byte_len() + 1,
            line: entry.line(),
            kind: entry.kind(),
            why,
        }
    }
}

/// Returns the lines that no resume needs, in file order.
fn bloat(reading: &Reading) -> Result<Vec<MovedLine>, Error> {
    let index = &reading.index;
    let mut found = repeated(reading)?;
    let progress = unneeded_progress(reading, &found)?;
    found.extend(progress.into_iter().map(|entry| (entry, Bloat::Progress)));
    let mut lines = Vec::with_capacity(found.len());
    for (entry, why) in found {
        let line = MovedLine::new(&index.entry(entry), why);
        // An entry of a damaged line shares it with other bytes, and moving the line would move these, too.
        if is_whole_line(&reading.source, &line.range)? {
            lines.push(line);
        }
    }
    lines.sort_by_key(|line| line.range.start);
    Ok(lines)
}

/// Returns whether these bytes are a line and its newline.
fn is_whole_line(source: &Source, range: &Range<u64>) -> Result<bool, Error> {
    let is_newline = |at: u64| {
        let mut byte = [0];
        Ok::<_, Error>(source.read_at(at, &mut byte)? == 1 && byte == *b"\n")
    };
    Ok((range.start == 0 || is_newline(range.start - 1)?) && is_newline(range.end - 1)?)
}

/// Returns metadata lines that say nothing new.
///
/// Of settings the last line of a type counts (META-1). The first one stays as well, as readers of
/// lists look at both ends of a file (LIST-2). Lines with other members or of another session are
/// another type here: only some `last-prompt` lines name a leaf (LEAF-6), and a line without a text
/// leaves the one before it in force.
///
/// Of references and backups of files every line counts, but not one that is the same as the line of
/// its type before it. Queues are logs, in which two same lines are two events. The table of kinds says
/// which is which.
fn repeated(reading: &Reading) -> Result<HashMap<EntryNo, Bloat>, Error> {
    let index = &reading.index;
    let mut bodies = Bodies::new(&reading.source);
    let mut found = HashMap::new();
    // For each type: whether a line was found that is the first one, and the last line so far.
    let mut last: HashMap<u64, Option<EntryNo>> = HashMap::new();
    let mut before: HashMap<EntryKind, EntryNo> = HashMap::new();
    for entry in index.entries() {
        let kind = entry.kind();
        match kind.row().counts {
            Counts::Last => {
                let Ok(body) = Object::parse(bodies.get(&entry)?.text) else {
                    continue;
                };
                let mut names: Vec<&str> = body.members().iter().map(|(name, _)| &**name).collect();
                // Clients write the members of a line in different orders.
                names.sort_unstable();
                let mut key = DefaultHasher::new();
                let (names_leaf, has_text) =
                    (entry.leaf_uuid().is_some(), kind.text_of(&body).is_some());
                (kind, entry.session(), names_leaf, has_text, names).hash(&mut key);
                match last.entry(key.finish()) {
                    hash_map::Entry::Vacant(first) => _ = first.insert(None),
                    hash_map::Entry::Occupied(mut last) => {
                        // A newer line of the same type counts. The very first one never gets here, so both ends of the
                        // file keep theirs.
                        if let Some(last) = last.insert(Some(entry.number())) {
                            found.insert(last, Bloat::Superseded);
                        }
                    }
                }
            }
            Counts::New(among) => {
                let before = before.insert(among, entry.number());
                let before = before.map(|before| index.entry(before));
                if let Some(before) = before.filter(|line| line.byte_len() == entry.byte_len()) {
                    // Compared by length first: most lines differ in it, and reading both bodies costs time.
                    let text = bodies.get(&before)?.text.to_owned();
                    if bodies.get(&entry)?.text == text {
                        found.insert(entry.number(), Bloat::Copy);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Returns lines of progress to which no line leads that stays. What a tool printed on its way is in
/// its result, and newer clients write no progress at all.
///
/// Those before the first message stay, as readers of lists take the start of a session from there;
/// and of each subagent the first one for a call, as it may be the only line that names both.
fn unneeded_progress(
    reading: &Reading,
    moved: &HashMap<EntryNo, Bloat>,
) -> Result<Vec<EntryNo>, Error> {
    let index = &reading.index;
    let mut bodies = Bodies::new(&reading.source);
    let mut is_started = false;
    let mut of_agents = HashSet::new();
    let mut progress = Vec::new();
    // The ids that lines name which stay.
    let mut named: Vec<Id> = Vec::new();
    for entry in index.entries() {
        is_started |= entry.kind().is_message();
        let stays = entry.kind() != EntryKind::Progress
            || !is_started
            || (entry.progress_kind() == Some(ProgressKind::AgentProgress)
                && names_agent_first(bodies.get(&entry)?.text, &mut of_agents));
        if !stays {
            progress.push(entry.number());
        } else if !moved.contains_key(&entry.number()) {
            let of_line = [entry.parent(), entry.leaf_uuid()].into_iter().flatten();
            named.extend(of_line.chain(entry.tombstones()));
            if let Some(boundary) = index.boundary(entry.number()) {
                named.extend(boundary.ids().chain(boundary.logical_parent));
            }
        }
    }
    let mut needed: HashSet<EntryNo> = HashSet::new();
    // Old clients linked messages to progress lines, and those to each other: a chain that a kept line starts stays
    // whole.
    while let Some(id) = named.pop() {
        let lines = index.with_uuid(id).map(|line| index.entry(line));
        for line in lines.filter(|line| line.kind() == EntryKind::Progress) {
            if needed.insert(line.number()) {
                named.extend(line.parent());
            }
        }
    }
    progress.retain(|line| !needed.contains(line));
    Ok(progress)
}

/// Returns whether no line before this one names the same subagent and the same call.
fn names_agent_first(body: &str, seen: &mut HashSet<u64>) -> bool {
    let Ok(entry) = Entry::parse(body) else {
        // A line that cannot be parsed may name a subagent, so it stays.
        return true;
    };
    let data = entry.object().read::<AgentProgress<'_>>("data");
    let agent = data.as_ref().and_then(AgentProgress::agent_id);
    let mut key = DefaultHasher::new();
    (agent.as_deref(), entry.parent_tool_use_id().as_deref()).hash(&mut key);
    seen.insert(key.finish())
}

/// Puts lines of the file before a repair, which omits them, among those to move from the file after
/// it.
fn put_among(moved: &mut Vec<MovedLine>, omitted: Vec<MovedLine>) {
    let mut shift = (0, 0);
    let mut above = omitted.iter().peekable();
    for line in moved.iter_mut() {
        while let Some(omitted) =
            above.next_if(|above| above.range.start <= line.range.start + shift.0)
        {
            shift = (
                shift.0 + omitted.range.end - omitted.range.start,
                shift.1 + 1,
            );
        }
        // These lines were found in the repaired file, which is shorter by all lines that were omitted above them.
        line.range = line.range.start + shift.0..line.range.end + shift.0;
        line.line += shift.1;
    }
    moved.extend(omitted);
    moved.sort_by_key(|line| line.range.start);
}

/// Writes a file without these lines, which are in its order.
fn write_without(source: &Source, lines: &[MovedLine], out: &mut dyn Write) -> Result<(), Error> {
    let mut at = 0;
    for line in lines {
        copy(source, at..line.range.start, out)?;
        at = line.range.end;
    }
    copy(source, at..source.len(), out)
}

/// Returns the bytes by type of the lines of `index`.
fn sizes(index: &Index, moved: &[MovedLine]) -> Vec<KindSize> {
    let mut sizes: BTreeMap<EntryKind, KindSize> = BTreeMap::new();
    for entry in index.entries() {
        let kind = entry.kind();
        let none = KindSize {
            kind,
            before: 0,
            after: 0,
            lines: 0,
        };
        let size = sizes.entry(kind).or_insert(none);
        size.before += entry.byte_len() + 1;
        size.after += entry.byte_len() + 1;
    }
    for line in moved {
        if let Some(size) = sizes.get_mut(&line.kind) {
            size.after -= line.range.end - line.range.start;
            size.lines += 1;
        }
    }
    let mut sizes: Vec<KindSize> = sizes.into_values().collect();
    sizes.sort_by_key(|size| (Reverse(size.before - size.after), Reverse(size.before)));
    sizes
}

/// Returns whether two files resume alike, under both policies: they have the same entries of
/// conversations in the same order with the same text and the same links; at the end of each branch
/// the same path; the same leaf, and there the same request, message for message, and the same state
/// of the session, for example title and permission mode. Requests at the ends of other branches are
/// compared as well, but for files of many branches only as many as 4 GiB of reading allow.
///
/// # Errors
/// When the system fails to read.
pub fn resumes_alike(one: Source, other: Source) -> Result<bool, Error> {
    is_alike(&Reading::new(one)?, &Reading::new(other)?)
}

fn is_alike(one: &Reading, other: &Reading) -> Result<bool, Error> {
    for policy in [Policy::Vendor, Policy::Recover] {
        let sides = [PolicyView::new(one, policy), PolicyView::new(other, policy)];
        let [one, other] = &sides;
        if !has_same_tree(one, other)? || !resumes_same(one, other, None)? {
            return Ok(false);
        }
        let branches = Branches::new(&one.tree, &[]);
        let tips = branches.all().iter().filter(|branch| branch.is_tip);
        let leaves = tips.filter_map(|tip| one.tree.entry_node(tip.last));
        // Each request reads the bodies of its path again, so a file of many branches would take quadratic time.
        let built = (MAX_REBUILT_BYTES / one.reading.source.len().max(1)).max(1) as usize;
        // The newest branches first: they are the ones that someone continues.
        for (at, leaf) in leaves.rev().enumerate() {
            let paths = [&one.tree, &other.tree].map(|tree| tree.path_to_leaf(leaf));
            let is_same = one.ids(&paths[0]).eq(other.ids(&paths[1]));
            if !is_same || (at < built && !resumes_same(one, other, Some(leaf))?) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A file under one policy.
struct PolicyView<'r> {
    reading: &'r Reading,
    tree: Tree<'r>,
}

impl<'r> PolicyView<'r> {
    fn new(reading: &'r Reading, policy: Policy) -> Self {
        let tree = reading.tree(policy);
        Self { reading, tree }
    }

    fn ids<'s>(&'s self, path: &'s ConversationPath) -> impl Iterator<Item = Option<String>> + 's {
        let entries = path.entries.iter();
        entries.map(|entry| {
            self.reading
                .uuid(&self.reading.index.entry(entry.entry_no()))
        })
    }
}

/// Returns whether the trees have the same nodes, with the same text and the same links.
fn has_same_tree(one: &PolicyView<'_>, other: &PolicyView<'_>) -> Result<bool, Error> {
    let (a, b) = (&one.tree, &other.tree);
    // Nodes are numbered in file order.
    if !a.nodes().eq(b.nodes()) || a.kept_entries() != b.kept_entries() {
        return Ok(false);
    }
    let mut bodies = [one, other].map(|side| Bodies::new(&side.reading.source));
    let [of_one, of_other] = &mut bodies;
    for node in a.nodes() {
        let is_same = a.parent(node) == b.parent(node)
            && a.parent_before_splice(node) == b.parent_before_splice(node)
            && a.is_removed(node) == b.is_removed(node)
            && a.is_sidechain(node) == b.is_sidechain(node)
            && a.is_foreign(node) == b.is_foreign(node)
            && of_one.get(&a.entry(node))? == of_other.get(&b.entry(node))?;
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether both have the same path and request at `leaf`; without one, at the leaf that the
/// policy chooses, and the same state of the session.
fn resumes_same(
    one: &PolicyView<'_>,
    other: &PolicyView<'_>,
    leaf: Option<NodeId>,
) -> Result<bool, Error> {
    let resume = |side: &PolicyView<'_>| {
        let mut bodies = Bodies::new(&side.reading.source);
        let options = RequestOptions::new().long_blocks_in(&side.reading.source);
        match leaf {
            Some(leaf) => {
                let options = options.leaf(side.tree.entry(leaf).number());
                Ok((options.request(&side.tree, &mut bodies)?, None))
            }
            None => {
                let (request, state, usage) =
                    options.request_with_state(&side.tree, &mut bodies)?;
                Ok::<_, Error>((request, Some((state.without_lines(), usage))))
            }
        }
    };
    let ((a, state), (b, other_state)) = (resume(one)?, resume(other)?);
    let leaf_id = |side: &PolicyView<'_>, path: &ConversationPath| {
        let leaf = path.leaf.map(|leaf| side.reading.index.entry(leaf));
        leaf.and_then(|leaf| side.reading.uuid(&leaf))
    };
    let is_same = state == other_state
        && a.model == b.model
        && a.path.refusal == b.path.refusal
        && leaf_id(one, &a.path) == leaf_id(other, &b.path)
        && one.ids(&a.path).eq(other.ids(&b.path))
        && a.messages.len() == b.messages.len();
    if !is_same {
        return Ok(false);
    }
    let mut readers = [StoredReader::default(), StoredReader::default()];
    for (of_one, of_other) in a.messages.iter().zip(&b.messages) {
        let [reader, other_reader] = &mut readers;
        if json(one, of_one, reader)? != json(other, of_other, other_reader)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn json(
    side: &PolicyView<'_>,
    message: &Message,
    reader: &mut StoredReader,
) -> Result<String, Error> {
    let mut text = String::new();
    let written = message.write(reader, |part| {
        text.push_str(part);
        Ok(())
    });
    written.map_err(|error| Error::io(side.reading.source.path(), None, error))?;
    Ok(text)
}

/// A writer that compares the written bytes with a file.
struct CompareWriter<'s> {
    source: &'s Source,
    at: u64,
    is_equal: bool,
}

impl<'s> CompareWriter<'s> {
    fn new(source: &'s Source) -> Self {
        Self {
            source,
            at: 0,
            is_equal: true,
        }
    }

    fn is_all(&self) -> bool {
        self.is_equal && self.at == self.source.len()
    }
}

impl Write for CompareWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut own = vec![0; bytes.len()];
        let read = self
            .source
            .read_at(self.at, &mut own)
            .map_err(io::Error::other)?;
        self.is_equal &= own[..read] == *bytes;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
