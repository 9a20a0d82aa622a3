//! A node of a conversation, and the tokens that it has cost.

use crate::node_ids::NodeId;
use crate::place::Place;
use crate::record_id::RecordId;
use crate::time::Time;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A prompt, or what the agent sends as one.
    User,
    /// A text of the model.
    Assistant,
    /// A thought of the model.
    Reasoning,
    /// A call of a tool.
    ToolCall,
    /// The result of a call.
    ToolResult,
    /// The summary of a compaction or of a branch.
    Summary,
    /// Text that the agent adds by itself, such as the date and the working folder.
    Context,
}

/// A message, or one block of it.
#[derive(Clone, Copy, Debug)]
pub struct Node<'c> {
    /// What it is.
    pub kind: NodeKind,
    /// Where it lies. `None` for a node that the agent makes for the request and stores nowhere.
    pub origin: Option<Place>,
    /// The nodes that a made node stands for, such as the prompts that are sent as one. They are not live themselves.
    pub made_of: &'c [NodeId],
    /// The id of its record.
    pub record_id: Option<&'c RecordId>,
    /// The time of its record.
    pub time: Option<&'c Time>,
    /// The model that wrote it.
    pub model: Option<&'c str>,
    /// The tokens of the response that ends with it.
    pub usage: Option<&'c Usage>,
}

/// Numbers of tokens, with one meaning for all agents: each token of a request and of a response is in exactly one of the first four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of requests that came from no cache and went into none.
    pub input: u64,
    /// Tokens of responses, those of thoughts included.
    pub output: u64,
    /// Tokens of requests that were read from the cache.
    pub cache_read: u64,
    /// Tokens of requests that were written to the cache.
    pub cache_write: u64,
    /// Tokens of thoughts, which are a part of the output.
    pub reasoning: u64,
}

impl Usage {
    /// Takes the tokens of the cache out of the input: an agent counted them as a part of it.
    pub(crate) fn of_whole_input(self) -> Self {
        let cached = self.cache_read.saturating_add(self.cache_write);
        Self {
            input: self.input.saturating_sub(cached),
            ..self
        }
    }

    /// Adds the tokens of thoughts to the output: an agent counted them apart.
    pub(crate) fn of_separate_thoughts(self) -> Self {
        Self {
            output: self.output.saturating_add(self.reasoning),
            ..self
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.input, other.input);
        add(&mut self.output, other.output);
        add(&mut self.cache_read, other.cache_read);
        add(&mut self.cache_write, other.cache_write);
        add(&mut self.reasoning, other.reasoning);
    }
}

impl NodeKind {
    /// Returns whether the model wrote it.
    pub(crate) fn is_of_model(self) -> bool {
        matches!(self, Self::Assistant | Self::Reasoning | Self::ToolCall)
    }
}
