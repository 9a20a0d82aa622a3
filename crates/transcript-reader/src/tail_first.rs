//! Whether the end of a file is enough for its conversation.
//!
//! `docs/tail-first.md` has the proof, condition by condition: the names of [`TailDependency`] are those
//! in its table.

use std::collections::HashSet;

use transcript_format::kind::EntryKind;
use transcript_format::named;
use transcript_format::scan::{Flags, ToolRole};

use crate::file_end::FileEnd;
use crate::index::{EntryMarks, EntryNo, EntryRef, Id, Index, Preserved};
use crate::path::leaf::MessagesAbove;
use crate::path::{ConversationPath, PathEntry};
use crate::tree::decision::{Decision, LeafReason};
use crate::tree::{Parent, Policy, Tree, has_usable_body};

named! {
    /// The reason why a file has to be read from its start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum TailDependency {
        /// The file is small, or there is no compaction near its end.
        NoCompaction = "no-compaction": "no compaction is near the end of the file, or the file is small",
        /// The last boundary was salvaged, belongs to a subagent or names a parent.
        Boundary = "boundary": "the last boundary is not the root of a conversation",
        /// Lines are written twice.
        Repeated = "repeated": "a uuid is repeated",
        /// Entries are removed.
        Tombstone = "tombstone": "an entry is tombstoned",
        /// A parent is further down the file than its child.
        ForwardParent = "forward-parent": "a parent follows its child",
        /// An entry has no uuid.
        NoUuid = "no-uuid": "an entry has no uuid",
        /// An entry names another session than the file name, or the file name is that of none.
        Session = "session": "an entry may be of another session",
        /// All messages are of subagents.
        Sidechain = "sidechain": "all messages are those of a subagent",
        /// A preserved entry, or what it was linked to, is not among the lines.
        Preserved = "preserved": "what the boundary preserves is not whole",
        /// An entry names a parent that is not among the lines.
        Parent = "parent": "the parent of an entry is further up",
        /// Lines were written again under a root of their own, or the conversation started again.
        Root = "root": "another conversation starts after the boundary",
        /// A result answers a call that is not among the lines.
        Call = "call": "the call of a result is further up",
        /// Lines before the boundary have a message or a call in common with lines after it.
        Shared = "shared": "a message or a call is on both sides of the boundary",
        /// A line before the boundary is not older than one after it.
        Time = "time": "a line before the boundary is newer than one after it",
        /// A `last-prompt` line names an entry that is not among the lines.
        Pin = "pin": "a pin names an entry that is further up",
        /// The conversation does not end at the last tip, or does not start at the boundary.
        Leaf = "leaf": "the conversation is not that of the last tip below the boundary",
        /// A line was lost, and the client finds its way around it by time.
        Client = "client": "Claude Code takes another path",
    }
}

/// Returns the index of the entries from the last boundary on, with those that it preserves, when
/// the conversation depends on nothing before them: then path, leaf and request are those of the
/// whole file, under either policy.
///
/// This assumes that the lines that were not read were written before the boundary, and refer to no
/// line after them (`docs/tail-first.md`).
///
/// # Errors
/// The first condition that does not hold.
pub fn self_contained_index(end: FileEnd) -> Result<Index, TailDependency> {
    let boundary = end.boundary();
    let kept = {
        let lines = TailLines {
            index: end.index(),
            boundary,
        };
        lines.check_links()?;
        let kept = lines.kept()?;
        lines.check_lines(&kept, end.named_session())?;
        if kept.is_empty() {
            lines.check_both_sides()?;
        }
        kept
    };
    let index = end.into_index(&kept);
    let paths = [Policy::Recover, Policy::Vendor].map(|policy| path_of(&index, policy, &kept));
    let [recovered, of_client] = paths;
    let (recovered, of_client) = (recovered?, of_client?);
    let shown: HashSet<EntryNo> = recovered.entries.iter().map(PathEntry::entry_no).collect();
    let mut of_client = of_client.entries.iter();
    if of_client.all(|entry| shown.contains(&entry.entry_no())) {
        Ok(index)
    } else {
        Err(TailDependency::Client)
    }
}

/// Returns whether the lines from a prompt on depend on nothing above it: each follows another one,
/// none is that of a subagent or a compaction. What this assumes of the lines above is what [`self_contained_index`]
/// does.
#[must_use]
pub fn is_turn_closed(index: &Index, session: &str) -> bool {
    let boundary = EntryNo::default();
    let lines = TailLines { index, boundary };
    let check = || {
        lines.check_links()?;
        lines.check_lines(&HashSet::new(), Some(session))
    };
    let is_linked = |line: EntryRef<'_>| {
        let is_above = |id| {
            let named = lines.find(id);
            named.is_some_and(|named| named.number() < line.number())
        };
        match line.kind() {
            EntryKind::LastPrompt => line.leaf_uuid().is_none_or(is_above),
            kind if !kind.is_chain() => true,
            _ => {
                line.session() == Some(session)
                    && !line.flags().contains(Flags::SIDECHAIN)
                    && !line.is_boundary()
                    && (line.number() == boundary || line.parent().is_some_and(is_above))
            }
        }
    };
    index.is_empty() || check().is_ok() && index.entries().all(is_linked)
}

/// The lines that were read, some of them before the boundary.
struct TailLines<'i> {
    index: &'i Index,
    /// The first line if there is none.
    boundary: EntryNo,
}

impl<'i> TailLines<'i> {
    /// Returns the entry with this uuid. None is repeated.
    fn find(&self, id: Id) -> Option<EntryRef<'i>> {
        let number = self.index.with_uuid(id).next()?;
        Some(self.index.entry(number))
    }

    fn before(&self) -> impl Iterator<Item = EntryRef<'i>> + use<'i> {
        let index = self.index;
        (0..self.boundary.get()).map(|number| index.entry(EntryNo::new(number)))
    }

    fn after(&self) -> impl Iterator<Item = EntryRef<'i>> + use<'i> {
        let index = self.index;
        (self.boundary.get()..index.len()).map(|number| index.entry(EntryNo::new(number)))
    }

    /// Checks that a boundary is a root, and that links lead up the file, each to one line.
    fn check_links(&self) -> Result<(), TailDependency> {
        let boundary = self.index.entry(self.boundary);
        let unusual = Flags::SIDECHAIN | Flags::PARENT_ODD;
        let unread = EntryMarks::SALVAGED | EntryMarks::GLUED | EntryMarks::LOSSY;
        let is_odd = boundary.parent().is_some()
            || boundary.flags().intersects(unusual)
            || boundary.marks().intersects(unread);
        if boundary.is_boundary() && is_odd {
            return Err(TailDependency::Boundary);
        }
        if self.index.has_repeated_uuids() {
            return Err(TailDependency::Repeated);
        }
        if self.index.tombstones().next().is_some() {
            return Err(TailDependency::Tombstone);
        }
        let is_below = |line: &EntryRef<'_>| {
            let parent = line.parent().and_then(|id| self.find(id));
            parent.is_some_and(|parent| parent.number() >= line.number())
        };
        if self.index.entries().any(|line| is_below(&line)) {
            return Err(TailDependency::ForwardParent);
        }
        Ok(())
    }

    /// Returns the preserved entries before the boundary, with the progress lines between them.
    fn kept(&self) -> Result<HashSet<EntryNo>, TailDependency> {
        let mut kept = HashSet::new();
        let Some(boundary) = self.index.boundary(self.boundary) else {
            return Err(TailDependency::Boundary);
        };
        let find = |id: Option<Id>| {
            id.and_then(|id| self.find(id))
                .ok_or(TailDependency::Preserved)
        };
        match &boundary.preserved {
            Preserved::List { uuids, .. } if !uuids.is_empty() => {
                for id in uuids {
                    kept.insert(find(*id)?.number());
                }
            }
            Preserved::Segment { .. } => {
                let head = find(boundary.ends[0])?.number();
                let mut at = find(boundary.ends[1])?;
                while kept.insert(at.number()) && at.number() != head {
                    // Links lead up the file.
                    at = find(at.parent())?;
                }
            }
            Preserved::List { .. } | Preserved::Nothing => return Ok(kept),
        }
        let anchor = find(boundary.anchor())?;
        if anchor.number() <= self.boundary {
            return Err(TailDependency::Preserved);
        }
        kept.retain(|number| *number < self.boundary);
        for number in &kept {
            self.check_kept(&self.index.entry(*number), &kept)?;
        }
        Ok(kept)
    }

    /// Checks that nothing can have happened to the link above a preserved entry, although what it
    /// leads to is omitted.
    fn check_kept(
        &self,
        entry: &EntryRef<'i>,
        kept: &HashSet<EntryNo>,
    ) -> Result<(), TailDependency> {
        if entry.is_salvaged() || entry.is_boundary() || !has_usable_body(entry) {
            return Err(TailDependency::Preserved);
        }
        let mut at = *entry;
        while let Some(id) = at.parent() {
            at = self.find(id).ok_or(TailDependency::Preserved)?;
            if at.kind() != EntryKind::Progress {
                break;
            }
        }
        let is_root = at.parent().is_none() && at.number() == entry.number();
        let is_entry = at.kind().is_in_tree();
        let is_whole = is_entry && has_usable_body(&at) && !at.is_salvaged();
        let leads_out = !kept.contains(&at.number());
        let is_loose = leads_out && entry.kind() == EntryKind::Attachment;
        let lost_key = Flags::PARENT_ABSENT | Flags::PARENT_ODD;
        if is_whole && !is_loose && !(is_root && entry.flags().intersects(lost_key)) {
            Ok(())
        } else {
            Err(TailDependency::Preserved)
        }
    }

    /// Checks the lines one by one.
    fn check_lines(
        &self,
        kept: &HashSet<EntryNo>,
        session: Option<&str>,
    ) -> Result<(), TailDependency> {
        let is_kept = |line: &EntryRef<'_>| kept.contains(&line.number());
        let lines = || self.before().filter(is_kept).chain(self.after());
        let entries = || lines().filter(|line| line.kind().is_chain());
        if entries().any(|entry| entry.uuid().is_none()) {
            return Err(TailDependency::NoUuid);
        }
        let is_foreign = |entry: EntryRef<'_>| {
            let named = entry.session();
            named.is_some() && named != session
        };
        if session.is_none() || entries().any(is_foreign) {
            return Err(TailDependency::Session);
        }
        let tools = |role: ToolRole| {
            let tools = entries().flat_map(|entry| entry.tools());
            tools.filter(move |end| end.role() == role)
        };
        let calls: HashSet<_> = tools(ToolRole::Use).map(|call| call.key()).collect();
        if tools(ToolRole::Result).any(|result| !calls.contains(&result.key())) {
            return Err(TailDependency::Call);
        }
        // An earlier pin is cleared by the boundary.
        let names_leaf = |line: &EntryRef<'_>| {
            line.kind() == EntryKind::LastPrompt && line.leaf_uuid().is_some()
        };
        let Some(pin) = self.after().filter(names_leaf).last() else {
            return Ok(());
        };
        let named = pin.leaf_uuid().and_then(|id| self.find(id));
        let is_there = |named: EntryRef<'_>| named.number() >= self.boundary || is_kept(&named);
        if named.is_some_and(is_there) && !pin.is_salvaged() {
            Ok(())
        } else {
            Err(TailDependency::Pin)
        }
    }

    /// Checks that lines before and after the boundary have nothing in common, where it preserves
    /// nothing and so removes nothing.
    fn check_both_sides(&self) -> Result<(), TailDependency> {
        let messages: HashSet<_> = self.before().filter_map(|line| line.message()).collect();
        let keys = |line: EntryRef<'i>| line.tools().iter().map(|end| end.key());
        let calls: HashSet<_> = self.before().flat_map(keys).collect();
        let is_shared = |line: EntryRef<'i>| {
            let message = line.message();
            message.is_some_and(|message| messages.contains(&message))
                || keys(line).any(|call| calls.contains(&call))
        };
        if self.after().any(is_shared) {
            return Err(TailDependency::Shared);
        }
        let newest = self.before().filter_map(|line| line.millis()).max();
        let oldest = self.after().filter_map(|line| line.millis()).min();
        match (newest, oldest) {
            (Some(newest), Some(oldest)) if newest >= oldest => Err(TailDependency::Time),
            _ => Ok(()),
        }
    }
}

/// Returns the path in the tree of these entries alone, when no other entry can change it.
fn path_of(
    index: &Index,
    policy: Policy,
    kept: &HashSet<EntryNo>,
) -> Result<ConversationPath, TailDependency> {
    let tree = Tree::new(index, policy);
    let boundary = EntryNo::new(kept.len());
    if tree.is_all_sidechain {
        return Err(TailDependency::Sidechain);
    }
    let is_lost = |node| tree.parent(node) == Parent::Lost;
    // Whether the lines of a file name parents only the whole file shows.
    if tree.recovery.has_lost_parents() || tree.nodes().any(is_lost) || tree.is_stream_form() {
        return Err(TailDependency::Parent);
    }
    let is_root = |node| {
        let number = tree.entry_no_of(node);
        number > boundary && tree.parent(node) == Parent::Root && !tree.is_sidechain(node)
    };
    if tree.nodes().any(is_root) {
        return Err(TailDependency::Root);
    }
    let is_whole = |decision: &Decision| matches!(decision, Decision::Splice { boundary: spliced, .. } if *spliced == boundary);
    if !kept.is_empty() && !tree.decisions.iter().any(is_whole) {
        return Err(TailDependency::Preserved);
    }
    let mut messages = MessagesAbove::new(&tree);
    let tip = tree.last_tip_of(&mut messages);
    let path = tree.path();
    let first = path.entries.first().map(PathEntry::entry_no);
    let is_last = tip.is_some_and(|(_, reason)| reason == LeafReason::LastTip);
    if !is_last || tree.goes_by_time(&mut messages) || first != Some(boundary) {
        return Err(TailDependency::Leaf);
    }
    let is_of_client = |one: &Decision| matches!(one, Decision::Client { .. });
    if path.decisions.iter().any(is_of_client) {
        Err(TailDependency::Client)
    } else {
        Ok(path)
    }
}
