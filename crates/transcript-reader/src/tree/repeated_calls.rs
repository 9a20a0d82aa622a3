//! Says which call a result answers where the id of a call is not unique: some gateways number the
//! calls of each answer, so that every turn has a `call_0`.
//!
//! The parent of a result names the line of its call, or a result or line of the same answer below
//! it; the id counts only among those. [`Policy::Vendor`] gives all results of an id to the first
//! message that makes such a call, as the client does (TURN-4).

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use transcript_format::scan::ToolRole;

use super::{NodeId, Policy, RepeatedCalls, Tree};
use crate::index::ToolKey;

/// The number of entries above a result that are looked at for the line of its call.
const MAX_ABOVE: usize = 256;

impl Tree<'_> {
    /// Returns the line with the call that a result answers, if several lines have its id; `None` if
    /// the id alone says it, or under [`Policy::Vendor`].
    pub(crate) fn line_of_call(&self, result: NodeId) -> Option<NodeId> {
        if self.policy() == Policy::Vendor {
            return None;
        }
        let calls = self.tool_keys(result, ToolRole::Result);
        let mut lines = calls.filter_map(|call| {
            let repeated = &self.repeated_calls;
            repeated
                .get_or_init(|| self.find_repeated_calls())
                .get(&call)
        });
        lines.next().map(|lines| self.nearest_line(result, lines))
    }

    /// Returns the first of some lines above an entry, else the one before it in the file. Beyond a
    /// prompt is not a call of the same answer.
    fn nearest_line(&self, result: NodeId, lines: &[NodeId]) -> NodeId {
        let above = self.ancestors(result).skip(1).take(MAX_ABOVE);
        let mut above = above.take_while(|above| !self.asks(*above) || self.is_loose(*above));
        let found = above.find(|above| lines.binary_search(above).is_ok());
        found.unwrap_or_else(|| {
            let before = lines.partition_point(|line| *line < result);
            lines[before.saturating_sub(1)]
        })
    }

    fn find_repeated_calls(&self) -> RepeatedCalls {
        let mut first: HashMap<ToolKey, NodeId> = HashMap::new();
        let mut repeated = RepeatedCalls::new();
        for line in self.nodes().filter(|line| !self.is_foreign(*line)) {
            for call in self.tool_keys(line, ToolRole::Use) {
                match first.entry(call) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(line);
                    }
                    Entry::Occupied(first) if *first.get() != line => {
                        let lines = repeated.entry(call).or_insert_with(|| vec![*first.get()]);
                        if lines.last() != Some(&line) {
                            lines.push(line);
                        }
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        repeated
    }
}
