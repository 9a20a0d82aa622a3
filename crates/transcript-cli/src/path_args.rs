//! Options that choose a conversation of a session.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use transcript_engine::History;
use transcript_resume::{ConversationPath, NodeId, Policy, Story, Tree};

use crate::session;
use crate::ui::Ui;

/// Options that choose a path.
#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// Rules that choose the path
    #[arg(long, value_enum, default_value_t = PolicyName::Recover)]
    policy: PolicyName,
    /// End the conversation at this entry instead of the leaf that the policy chooses. ENTRY is a line
    /// number, a uuid, or the start of one
    #[arg(long, value_name = "ENTRY", conflicts_with = "at")]
    leaf: Option<String>,
    /// Stop after this entry of the path
    #[arg(long, value_name = "ENTRY")]
    at: Option<String>,
    /// The line of `SESSION:LINE`: like `leaf`, but of a line that is not part of a conversation, such
    /// as a title, the last entry before it is taken.
    #[arg(skip)]
    line: Option<u64>,
}

/// The name of a policy.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PolicyName {
    /// Recover what can be proved
    Recover,
    /// Do exactly what the real client does with the file
    Vendor,
}

impl PolicyName {
    pub(crate) fn policy(self) -> Policy {
        match self {
            Self::Recover => Policy::Recover,
            Self::Vendor => Policy::Vendor,
        }
    }
}

impl PathArgs {
    /// Takes the line from `SESSION:LINE`, unless an option names an entry.
    pub(crate) fn take_line(&mut self, session: &mut PathBuf) {
        if !self.names_an_entry()
            && let Some((path, line)) = session::with_line(session)
        {
            (*session, self.line) = (path, Some(line));
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy.policy()
    }

    /// Returns whether `--leaf` or `--at` names an entry, which may be anywhere in the file.
    pub(crate) fn names_an_entry(&self) -> bool {
        self.leaf.is_some() || self.at.is_some() || self.line.is_some()
    }

    /// Returns the shell command that continues the conversation in the client, which only finds the
    /// sessions of the folder that it is started in. It continues a whole session: from an entry that is
    /// named, a fork. `None` for names that are not safe to paste into a shell,
    /// and `None` for files that no client finds: outside of the folder that is named after their working folder, or with
    /// another name than an id.
    pub(crate) fn continue_command(&self, ui: &Ui, session: &History) -> Option<String> {
        let word = |text: &str| {
            let is_shown = !text.contains(char::is_control) && ui.escaping.escape(text) == *text;
            is_shown.then(|| format!("'{}'", text.replace('\'', r"'\''")))
        };
        let file = session.source().path();
        if file == Path::new("-") {
            return None;
        }
        let row = session.row();
        let folder = word(row.home()?)?;
        let line = self.line.map(|line| line.to_string());
        let id = match self.at.as_ref().or(self.leaf.as_ref()).or(line.as_ref()) {
            None => row.continued_in().map(|_| row.session_id.clone())?,
            Some(entry) => {
                let file = std::path::absolute(file).ok()?;
                let (file, entry) = (word(file.to_str()?)?, word(entry)?);
                format!("\"$(transcript fork {file} --at {entry})\"")
            }
        };
        Some(format!("cd {folder} && claude --resume {id}"))
    }

    pub(crate) fn path(&self, tree: &Tree<'_>) -> Result<ConversationPath> {
        if let Some(leaf) = self.leaf(tree)? {
            return Ok(tree.path_to_leaf(leaf));
        }
        let mut path = tree.path();
        if let (Some(name), Some(node)) = (&self.at, self.at(tree)?)
            && !path.cut_after(tree.entry(node).number())
        {
            bail!(not_on_path(name));
        }
        Ok(path)
    }

    /// Returns the whole conversation, and the tree that it is in: an entry that was compacted away
    /// may be named as well.
    pub(crate) fn story<'i>(&self, tree: Tree<'i>) -> Result<(Tree<'i>, Story)> {
        let mut leaf = self.leaf(&tree).ok().flatten();
        let mut tree = tree;
        if leaf.is_none() && (self.leaf.is_some() || self.line.is_some()) {
            let whole = tree.unspliced();
            leaf = self.leaf(&whole)?;
            tree = match leaf {
                Some(leaf) => whole.as_of(leaf),
                None => whole,
            };
        }
        let context = leaf.map_or_else(|| tree.path(), |leaf| tree.path_to_leaf(leaf));
        let tree = tree.unspliced();
        let mut story = tree.story(&context);
        if let (Some(name), Some(node)) = (&self.at, self.at(&tree)?)
            && !story.cut_after(tree.entry(node).number())
        {
            bail!(not_on_path(name));
        }
        Ok((tree, story))
    }

    /// Checks `--leaf` and `--at`, before any body is read. Walks the path only for `--at`.
    pub(crate) fn validate(&self, tree: &Tree<'_>) -> Result<()> {
        self.leaf(tree)?;
        if self.at.is_some() {
            self.path(tree)?;
        }
        Ok(())
    }

    /// The entry of `--leaf`.
    pub(crate) fn leaf(&self, tree: &Tree<'_>) -> Result<Option<NodeId>> {
        match self.line {
            Some(line) => at_line(tree, line),
            None => find(tree, "--leaf", self.leaf.as_deref()),
        }
    }

    /// The entry of `--at`.
    pub(crate) fn at(&self, tree: &Tree<'_>) -> Result<Option<NodeId>> {
        find(tree, "--at", self.at.as_deref())
    }
}

fn not_on_path(name: &str) -> String {
    format!("--at: the entry is not on the path; --leaf {name} shows the branch it is on")
}

/// Returns the last entry of a conversation up to this line.
fn at_line(tree: &Tree<'_>, line: u64) -> Result<Option<NodeId>> {
    let entries = || tree.index().entries();
    if !entries().any(|entry| entry.known_line() == Some(line)) {
        bail!("there is no entry in line {line}");
    }
    let above = entries().filter(|entry| entry.known_line().is_some_and(|at| at <= line));
    let mut nodes = above.filter_map(|entry| tree.node_with_uuid(entry.uuid()?));
    Ok(nodes.next_back())
}

fn find(tree: &Tree<'_>, option: &str, name: Option<&str>) -> Result<Option<NodeId>> {
    let Some(name) = name else { return Ok(None) };
    let entry = session::find_entry(tree.index(), option, name)?.to_string();
    let id = tree.index().id(&entry);
    match id.and_then(|id| tree.node_with_uuid(id)) {
        Some(node) => Ok(Some(node)),
        None => bail!("{option}: entry {name} is not part of a conversation"),
    }
}
