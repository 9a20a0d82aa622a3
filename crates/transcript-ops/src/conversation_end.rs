//! The end of a conversation: the entry that options name.

use jiff::Zoned;
use transcript_reader::Index;
use transcript_render::{and_more, clock, joined};
use transcript_resume::{ConversationPath, NodeId, Story, Tree};
use transcript_session::{EntryId, EntryMatch, entries_named};

use crate::failure::Failure;

/// The maximum number of matches of an ambiguous name that are listed.
const MAX_LISTED_MATCHES: usize = 20;

/// The end of a conversation: the leaf that the policy chooses, unless an entry is named.
#[derive(Clone, Debug, Default)]
pub struct ConversationEnd {
    /// Ends the conversation at this entry instead of the leaf that the policy chooses.
    pub leaf: Option<String>,
    /// Stops after this entry of the path.
    pub at: Option<String>,
    /// The line of `SESSION:LINE`: like `leaf`, but of a line that is not part of a conversation, such
    /// as a title, the last entry before it is taken.
    pub line: Option<u64>,
}

impl ConversationEnd {
    /// Returns whether an entry is named, which may be anywhere in the file.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.leaf.is_some() || self.at.is_some() || self.line.is_some()
    }

    /// Returns the conversation.
    ///
    /// # Errors
    /// When an entry is named that is not in the file, or not on the path.
    pub fn path(&self, tree: &Tree<'_>) -> Result<ConversationPath, Failure> {
        if let Some(leaf) = self.leaf_node(tree)? {
            return Ok(tree.path_to_leaf(leaf));
        }
        let mut path = tree.path();
        if let (Some(name), Some(node)) = (&self.at, self.at_node(tree)?)
            && !path.cut_after(tree.entry(node).number())
        {
            return Err(not_on_path(name));
        }
        Ok(path)
    }

    /// Returns the whole conversation, and the tree that it is in: an entry that was compacted away
    /// may be named as well.
    ///
    /// # Errors
    /// As [`Self::path`].
    pub fn story<'i>(&self, tree: Tree<'i>) -> Result<(Tree<'i>, Story), Failure> {
        let mut leaf = self.leaf_node(&tree).ok().flatten();
        let mut tree = tree;
        if leaf.is_none() && (self.leaf.is_some() || self.line.is_some()) {
            let whole = tree.unspliced();
            leaf = self.leaf_node(&whole)?;
            tree = match leaf {
                Some(leaf) => whole.as_of(leaf),
                None => whole,
            };
        }
        let context = leaf.map_or_else(|| tree.path(), |leaf| tree.path_to_leaf(leaf));
        let tree = tree.unspliced();
        let mut story = tree.story(&context);
        if let (Some(name), Some(node)) = (&self.at, self.at_node(&tree)?)
            && !story.cut_after(tree.entry(node).number())
        {
            return Err(not_on_path(name));
        }
        Ok((tree, story))
    }

    /// Checks the names before any body is read. Walks the path only for [`Self::at`].
    ///
    /// # Errors
    /// As [`Self::path`].
    pub fn validate(&self, tree: &Tree<'_>) -> Result<(), Failure> {
        self.leaf_node(tree)?;
        if self.at.is_some() {
            self.path(tree)?;
        }
        Ok(())
    }

    /// Returns the entry of [`Self::leaf`] or [`Self::line`].
    ///
    /// # Errors
    /// When no entry or several have the name.
    pub fn leaf_node(&self, tree: &Tree<'_>) -> Result<Option<NodeId>, Failure> {
        match self.line {
            Some(line) => at_line(tree, line),
            None => find(tree, "leaf", self.leaf.as_deref()),
        }
    }

    /// Returns the entry of [`Self::at`].
    ///
    /// # Errors
    /// When no entry or several have the name.
    pub fn at_node(&self, tree: &Tree<'_>) -> Result<Option<NodeId>, Failure> {
        find(tree, "at", self.at.as_deref())
    }
}

fn not_on_path(name: &str) -> Failure {
    let message = format!("the entry is not on the path; --leaf {name} shows the branch it is on");
    Failure::option("at", message).with_kind("unknown-entry")
}

/// Returns the last entry of a conversation up to this line.
fn at_line(tree: &Tree<'_>, line: u64) -> Result<Option<NodeId>, Failure> {
    let entries = || tree.index().entries();
    if !entries().any(|entry| entry.known_line() == Some(line)) {
        let message = format!("there is no entry in line {line}");
        return Err(Failure::new("unknown-entry", message));
    }
    let above = entries().filter(|entry| entry.known_line().is_some_and(|at| at <= line));
    let mut nodes = above.filter_map(|entry| tree.node_with_uuid(entry.uuid()?));
    Ok(nodes.next_back())
}

fn find(
    tree: &Tree<'_>,
    option: &'static str,
    name: Option<&str>,
) -> Result<Option<NodeId>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let entry = find_entry(tree.index(), option, name)?.to_string();
    let id = tree.index().id(&entry);
    match id.and_then(|id| tree.node_with_uuid(id)) {
        Some(node) => Ok(Some(node)),
        None => {
            let message = format!("entry {name} is not part of a conversation");
            Err(Failure::option(option, message).with_kind("unknown-entry"))
        }
    }
}

/// Returns the entry that the value of an option names: a uuid, the start of one, or a line.
///
/// # Errors
/// When no entry or several have the name; names those.
pub fn find_entry(index: &Index, option: &'static str, name: &str) -> Result<EntryId, Failure> {
    let mut found = entries_named(index, name);
    match found.len() {
        0 => Err(Failure::option(option, no_entry_message(index, name)).with_kind("unknown-entry")),
        1 => Ok(found.remove(0).id),
        count => {
            let listed = found.iter().take(MAX_LISTED_MATCHES);
            let shown: String = listed.map(describe).collect();
            let more = match and_more(count, MAX_LISTED_MATCHES) {
                more if more.is_empty() => more,
                more => format!("\n  …{more}"),
            };
            let message = format!("{name} is ambiguous: {count} entries match:{shown}{more}");
            Err(Failure::option(option, message).with_kind("ambiguous"))
        }
    }
}

/// Says that no entry has this name; of a line what is there.
fn no_entry_message(index: &Index, name: &str) -> String {
    let Ok(line) = name.parse::<u64>() else {
        return format!(
            "no entry {name}: give the number of its line, or the start of its uuid, at \
             least 4 characters (`transcript replay --ids` shows both)"
        );
    };
    let is_above = |above: &u64| *above < line;
    let mut entries = index.entries().rev();
    let before = entries.find_map(|entry| {
        let above = entry.known_line().filter(is_above);
        above.filter(|_| entry.uuid().is_some())
    });
    let lines = index.line_count();
    let what = if line > lines {
        format!("there is no line {line} ({lines} in the file)")
    } else {
        format!("line {line} is not an entry of the conversation")
    };
    match before {
        Some(before) => format!("{what}; the last entry before it is line {before}"),
        None => what,
    }
}

/// Describes an entry without its content.
fn describe(entry: &EntryMatch) -> String {
    let line = entry.line.map(|line| format!("line {line}"));
    let zone = Zoned::now().time_zone().clone();
    let time = entry.millis.and_then(|millis| clock(millis, &zone));
    let time = time.map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    let id = entry.id.to_string();
    let parts = [line, time, Some(entry.role.to_owned()), Some(id)];
    format!("\n  {}", joined(parts, "  "))
}
