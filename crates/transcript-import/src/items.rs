//! A conversation as provider-neutral items.

use std::io::Write;

use crate::Error;
use crate::contents::write;
use crate::conversation::{Branch, BranchKind, Conversation, NodeId};
use crate::node::NodeKind;
use crate::text::Text;

impl NodeKind {
    /// Returns its name in items.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Summary => "summary",
            Self::Context => "context",
        }
    }
}

impl Conversation {
    /// Writes the conversation as one JSON object on one line: `schema` is 1, `live` the items that go to the model in their order,
    /// `branches` a list of lists with the items of the branches that a compaction did not cause, `compacted` those that summaries
    /// took the place of. At most a chunk of a content is in memory.
    ///
    /// An item has a `kind` ([`NodeKind::name`]) and, where the node has one: `text`, `name`, `callId`, `input`, `output`, `error`
    /// and `images`, their number.
    ///
    /// # Errors
    /// [`Error::Write`], and those of [`content`](Self::content). Part of the object may have been written then.
    pub fn write_items(&self, to: &mut dyn Write) -> Result<(), Error> {
        let is_compacted = |branch: &&Branch| branch.kind == BranchKind::Compacted;
        write(to, "{\"schema\":1,\"live\":[")?;
        self.write_list(self.live.iter(), to)?;
        write(to, "],\"branches\":[")?;
        let branches = self.branches.iter();
        for (number, branch) in branches.filter(|branch| !is_compacted(branch)).enumerate() {
            write(to, if number > 0 { ",[" } else { "[" })?;
            self.write_list(branch.nodes.iter(), to)?;
            write(to, "]")?;
        }
        write(to, "],\"compacted\":[")?;
        let compacted = self.branches.iter().filter(is_compacted);
        self.write_list(compacted.flat_map(|branch| &branch.nodes), to)?;
        write(to, "]}")
    }

    fn write_list<'n>(
        &self,
        nodes: impl Iterator<Item = &'n NodeId>,
        to: &mut dyn Write,
    ) -> Result<(), Error> {
        for (number, id) in nodes.enumerate() {
            if number > 0 {
                write(to, ",")?;
            }
            self.write_item(*id, to)?;
        }
        Ok(())
    }

    fn write_item(&self, id: NodeId, to: &mut dyn Write) -> Result<(), Error> {
        let stored = self.stored(id);
        write(to, "{\"kind\":\"")?;
        write(to, self.node(id).kind.name())?;
        write(to, "\"")?;
        if let Some(text) = stored.text {
            self.write_member("text", text, to)?;
        }
        if let Some(name) = stored.name {
            self.write_member("name", &Text::held(name), to)?;
        }
        if let Some(call) = stored.call_id {
            self.write_member("callId", &Text::held(call), to)?;
        }
        if let Some(input) = stored.input {
            write(to, ",\"input\":")?;
            self.write_input(input, to)?;
        }
        if let Some(output) = stored.output {
            self.write_member("output", output, to)?;
        }
        if stored.is_error {
            write(to, ",\"error\":true")?;
        }
        if !stored.images.is_empty() {
            write(to, &format!(",\"images\":{}", stored.images.len()))?;
        }
        write(to, "}")
    }

    fn write_member(&self, key: &str, text: &Text, to: &mut dyn Write) -> Result<(), Error> {
        write(to, ",\"")?;
        write(to, key)?;
        write(to, "\":\"")?;
        self.write_escaped(text, to)?;
        write(to, "\"")
    }
}
