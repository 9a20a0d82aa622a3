//! The lower bound of policy `recover`: it never shows fewer messages than the client does.
//!
//! Repairs of a damaged file follow evidence, and each rule is meant to find more than the client's
//! guess by time. Where several kinds of damage meet, that guess can still lead further. Then the
//! client's path is used: a message that a person sees in the client must not be missing here.

use std::collections::HashSet;

use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use super::{ConversationPath, PathEntry};
use crate::index::{EntryNo, EntryRef};
use crate::tree::decision::Decision;
use crate::tree::{NodeId, Tree};

impl Tree<'_> {
    /// Returns `path`, or the path of the client when that shows more of the conversation.
    pub(super) fn at_least_client_path(
        &self,
        client: &ConversationPath,
        path: ConversationPath,
    ) -> ConversationPath {
        let is_late = |number: EntryNo| {
            let node = self.entry_node(number);
            node.is_some_and(|node| self.is_on_left_branch(node))
        };
        // Entries that a person has left by a rewind are not missing.
        if client.leaf.is_some_and(is_late) {
            return path;
        }
        // Messages that a compaction summarized are not missing; a compaction without its summary
        // was not completed.
        let compaction = self.compaction_of(&path);
        let is_summed_up = |number: EntryNo| compaction.is_some_and(|boundary| number < boundary);
        // The client goes by message ids, and so may add lines of a subagent.
        let shown: HashSet<_> = path.entries.iter().map(PathEntry::entry_no).collect();
        let is_own = |number: EntryNo| {
            self.entry_node(number).is_none_or(|node| {
                let is_of_agent = self.is_sidechain(node) && !shown.contains(&number);
                !self.is_foreign(node) && !is_of_agent
            })
        };
        let messages = |path: &ConversationPath| -> HashSet<EntryNo> {
            let numbers = || path.entries.iter().map(|entry| entry.entry_no());
            let line = |number: EntryNo| self.index.entry(number);
            let with_content = numbers().map(line).filter(has_sent_content);
            let with_content: HashSet<_> = with_content.filter_map(|line| line.message()).collect();
            let ends = |role: ToolRole| {
                let tools = numbers().flat_map(move |number| line(number).tools());
                tools.filter(move |tool| tool.role() == role)
            };
            let calls: HashSet<_> = ends(ToolRole::Use).map(|tool| tool.key()).collect();
            let is_sent = |number: &EntryNo| {
                let line = line(*number);
                // A result without its call is not sent (TURN-3).
                let is_answer_to_nothing = line.kind() == EntryKind::User
                    && !line.flags().intersects(Flags::HAS_TEXT)
                    && line.flags().contains(Flags::HAS_TOOL_RESULT)
                    && line.tools().iter().all(|tool| !calls.contains(&tool.key()));
                if is_answer_to_nothing {
                    return false;
                }
                let is_thought_of_one = line.flags().contains(Flags::HAS_THINKING)
                    && line
                        .message()
                        .is_some_and(|message| with_content.contains(&message));
                (has_sent_content(&line) || is_thought_of_one) && is_own(*number)
            };
            let numbers = numbers().filter(is_sent);
            // Of several lines with one uuid each policy may use a different one.
            let first = |number: EntryNo| {
                let id = self.index.entry(number).uuid();
                id.and_then(|id| self.index.with_uuid(id).next())
                    .unwrap_or(number)
            };
            numbers.map(first).collect()
        };
        let mut own = messages(&path);
        let mut of_client = messages(client);
        of_client.retain(|number| own.contains(number) || !is_summed_up(*number));
        // Of two paths to the same end, that of the client may start with a later compaction, which
        // has summarized what only the other one shows.
        if client.leaf == path.leaf
            && let Some(boundary) = self.compaction_of(client)
        {
            own.retain(|number| of_client.contains(number) || *number > boundary);
        }
        let can_end = |node: NodeId| !self.is_foreign(node) && !self.is_sidechain(node);
        // The client may end in an entry of another session: end at the last one of this session.
        let last = client.entries.iter().rev().map(PathEntry::entry_no);
        let mut ends = client.leaf.into_iter().chain(last);
        let leaf = ends.find(|leaf| self.entry_node(*leaf).is_some_and(can_end));
        let (Some(leaf), true) = (leaf, of_client.len() > own.len()) else {
            return path;
        };
        let mut client = client.clone();
        client.refusal = None;
        client.leaf = Some(leaf);
        client.entries.retain(|entry| is_own(entry.entry_no()));
        let decision = Decision::Client {
            entry: leaf,
            more: (of_client.len() - own.len()) as u32,
        };
        client
            .decisions
            .insert(1.min(client.decisions.len()), decision);
        client
    }

    /// Returns the boundary that a path starts with, if its compaction was completed.
    fn compaction_of(&self, path: &ConversationPath) -> Option<EntryNo> {
        let entry = |entry: &PathEntry| self.index.entry(entry.entry_no());
        let is_summary =
            |path_entry: &PathEntry| entry(path_entry).flags().contains(Flags::COMPACT_SUMMARY);
        let first = path.entries.first()?;
        let is_complete = entry(first).is_boundary() && path.entries.iter().any(is_summary);
        is_complete.then_some(first.entry_no())
    }
}

/// Returns whether a request contains something of the line: lone thoughts (MSG-9), API errors and
/// virtual entries (MSG-6) are not sent.
fn has_sent_content(line: &EntryRef<'_>) -> bool {
    let unsent = Flags::API_ERROR | Flags::VIRTUAL;
    let sent =
        Flags::HAS_TEXT | Flags::HAS_TOOL_USE | Flags::HAS_TOOL_RESULT | Flags::HAS_OTHER_BLOCK;
    let flags = line.flags();
    line.kind().is_message() && flags.intersects(sent) && !flags.intersects(unsent)
}
