//! Prints the branches of a session as a tree.
//!
//! The path to the leaf runs straight down; a branch that leaves it is indented by one level and
//! printed before the path continues. Long lines, wide forks and deep nesting are folded into one row
//! with totals.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::object::{FromRaw, Object, Str};
use transcript_format::scan::Flags;
use transcript_format::units::duration;
use transcript_reader::{Bodies, EntryNo, EntryRef, Prompt};
use transcript_resume::{
    BranchStart, Branches, ConversationPath, Decision, LeafReason, PathEntry, Policy, is_prompt,
};
use unicode_width::UnicodeWidthStr;

use crate::Result;
use crate::blocks::{blocks, message_content};
use crate::compaction;
use crate::explain;
use crate::imported::BranchReasons;
use crate::options::RenderOptions;
use crate::session_tree::{BoundaryFacts, SessionTree, leaf_decision};
use crate::styles::Styles;
use crate::text::{Page, Span, cut_text as cut};
use crate::words::count;

/// The maximum depth of printed side branches.
const MAX_LEVELS: usize = 4;
/// The numbers of rows of a long line, a wide fork or many roots that are printed at the start and at the end.
const MAIN_LINE_LIMITS: (usize, usize) = (10, 30);
const SIDE_LINE_LIMITS: (usize, usize) = (3, 5);
const FORK_LIMITS: (usize, usize) = (2, 4);
const ROOT_LIMITS: (usize, usize) = (10, 20);
/// The maximum number of bodies that are read to find the title of a branch.
const MAX_BODIES: usize = 8;
/// The maximum length of a prompt, in characters; no line shows more.
const MAX_TITLE_CHARS: usize = 400;

/// Draws a tree of branches.
pub struct TreePrinter<'s> {
    session_tree: &'s SessionTree<'s>,
    bodies: Bodies<'s>,
    styles: Styles,
    width: usize,
    /// For each branch: whether it leads to the leaf.
    is_main: Vec<bool>,
    /// For each branch: the child that continues straight down.
    straight: Vec<Option<usize>>,
    below: Vec<FoldedTotal>,
    /// For each branch, whether its row is printed.
    is_shown: Vec<bool>,
    /// For each branch, whether its row or one below it is printed.
    leads: Vec<bool>,
    /// Whether subagents with files of their own are printed.
    agents: Vec<String>,
    reasons: BranchReasons,
}

/// Totals of a branch and its descendants.
#[derive(Clone, Copy)]
struct FoldedTotal {
    branches: usize,
    prompts: usize,
    lines: (u64, u64),
}

impl FoldedTotal {
    fn add(&mut self, other: Self) {
        self.branches += other.branches;
        self.prompts += other.prompts;
        self.lines.0 = self.lines.0.min(other.lines.0);
        self.lines.1 = self.lines.1.max(other.lines.1);
    }
}

/// A row, or rows, that must still be printed.
enum PendingRow {
    /// A branch, the branches straight below it, and their side branches.
    Line {
        top: usize,
        level: usize,
    },
    Row {
        branch: usize,
        level: usize,
        is_top: bool,
    },
    Fold {
        total: FoldedTotal,
        level: usize,
        is_line: bool,
    },
    Gap,
}

impl<'s> TreePrinter<'s> {
    /// Draws as `options` say.
    pub fn new(session_tree: &'s SessionTree<'s>, options: &RenderOptions) -> Self {
        let branches = &session_tree.branches;
        let mut is_main = vec![false; branches.len()];
        for branch in session_tree.main_line() {
            is_main[branch] = true;
        }
        let below = totals(session_tree);
        let straight = (0..branches.len())
            .map(|branch| {
                let children = branches.children(branch);
                // The main line stays straight. Elsewhere the branch that was written last does, as it is the one that
                // was continued.
                children.max_by_key(|child| (is_main[*child], below[*child].lines.1))
            })
            .collect();
        Self {
            session_tree,
            bodies: Bodies::new(session_tree.source),
            styles: options.styles(),
            width: options.width,
            is_main,
            straight,
            below,
            is_shown: vec![true; branches.len()],
            leads: vec![true; branches.len()],
            agents: Vec::new(),
            reasons: BranchReasons::default(),
        }
    }

    /// Prints only the branches that `matches` has, and those that a printed one leaves.
    ///
    /// # Panics
    /// When `matches` has fewer elements than there are branches.
    #[must_use]
    pub fn only(mut self, matches: &[bool]) -> Self {
        let branches = self.branches();
        self.leads.fill(false);
        for branch in (0..branches.len()).filter(|branch| matches[*branch]) {
            let mut next = Some(branch);
            // Stops at a branch that already leads to a match, so the time does not grow with the product of matches and
            // depth.
            while let Some(branch) = next.filter(|branch| !self.leads[*branch]) {
                self.leads[branch] = true;
                next = branches.all()[branch].parent;
            }
        }
        for (branch, matches) in matches.iter().enumerate() {
            // A branch that only continues straight can be omitted; one that a shown branch leaves is needed to show
            // where.
            let is_left = |child: usize| self.leads[child] && self.straight[branch] != Some(child);
            self.is_shown[branch] = *matches || branches.children(branch).any(is_left);
        }
        self
    }

    /// Also lists these subagents, which have files of their own.
    #[must_use]
    pub fn agents(self, agents: Vec<String>) -> Self {
        Self { agents, ..self }
    }

    /// Writes the tree.
    ///
    /// # Errors
    /// When a body cannot be read, or the output not be written.
    pub fn draw(mut self, out: &mut impl Write) -> Result<()> {
        let session_tree = self.session_tree;
        self.reasons = BranchReasons::read(session_tree.source, session_tree.index())?;
        self.head(out)?;
        let mut steps = self.first_steps();
        if self.branches().is_empty() {
            self.contents(out)?;
        } else if steps.is_empty() {
            writeln!(out, "no branch has such an entry")?;
        } else {
            self.columns(out)?;
        }
        // A stack instead of recursion, because the file decides how deep branches nest.
        while let Some(step) = steps.pop() {
            match step {
                PendingRow::Line { top, level } => self.push_line(&mut steps, top, level),
                PendingRow::Row {
                    branch,
                    level,
                    is_top,
                } => self.row(out, branch, level, is_top)?,
                PendingRow::Fold {
                    total,
                    level,
                    is_line,
                } => self.fold(out, total, level, is_line)?,
                PendingRow::Gap => writeln!(out)?,
            }
        }
        self.sidechains(out)?;
        self.leaves(out)
    }

    fn branches(&self) -> &'s Branches {
        &self.session_tree.branches
    }

    /// Returns the roots in reverse order, because steps are popped from the end.
    fn first_steps(&self) -> Vec<PendingRow> {
        let all = self.branches().all().iter().enumerate();
        let roots = all.filter(|(number, branch)| branch.parent.is_none() && self.leads[*number]);
        let roots: Vec<usize> = roots.map(|(number, _)| number).collect();
        let mut steps = Vec::new();
        for line in self.lines(&roots, 0, ROOT_LIMITS) {
            if !steps.is_empty() {
                steps.push(PendingRow::Gap);
            }
            steps.push(line);
        }
        steps.reverse();
        steps
    }

    /// Returns a line for each of `tops`; if there are many, those in the middle are folded.
    fn lines(&self, tops: &[usize], level: usize, limit: (usize, usize)) -> Vec<PendingRow> {
        let (fold, total) = self.folded(tops, limit);
        let line = |top: &usize| PendingRow::Line { top: *top, level };
        let mut lines: Vec<PendingRow> = tops[..fold.start].iter().map(line).collect();
        lines.extend(total.map(|total| PendingRow::Fold {
            total,
            level,
            is_line: false,
        }));
        lines.extend(tops[fold.end..].iter().map(line));
        lines
    }

    /// Returns the range of a list that is folded, and its totals.
    fn folded(
        &self,
        list: &[usize],
        (start, end): (usize, usize),
    ) -> (Range<usize>, Option<FoldedTotal>) {
        // Folding a single row would save nothing.
        let shown = start + end;
        if list.len() <= shown + usize::from(shown > 0) {
            return (0..0, None);
        }
        let fold = start..list.len() - end;
        let totals = list[fold.clone()].iter().map(|branch| self.below[*branch]);
        let total = totals.reduce(|mut sum, more| {
            sum.add(more);
            sum
        });
        (fold, total)
    }

    fn push_line(&self, steps: &mut Vec<PendingRow>, top: usize, level: usize) {
        let line: Vec<usize> = std::iter::successors(Some(top), |branch| self.straight[*branch])
            .filter(|branch| self.is_shown[*branch])
            .collect();
        // Readers mostly look for the main conversation, so more of it is shown than of side branches.
        let limit = if level == 0 {
            MAIN_LINE_LIMITS
        } else {
            SIDE_LINE_LIMITS
        };
        let (fold, _) = self.folded(&line, limit);
        let mut later = Vec::new();
        for (place, branch) in line.iter().enumerate() {
            if fold.contains(&place) {
                if place == fold.start {
                    // Includes the side branches of the folded rows, which are not printed either.
                    let total = self.between(*branch, line[fold.end]);
                    later.push(PendingRow::Fold {
                        total,
                        level,
                        is_line: true,
                    });
                }
                continue;
            }
            later.push(PendingRow::Row {
                branch: *branch,
                level,
                is_top: place == 0,
            });
            let aside =
                |child: &usize| Some(*child) != self.straight[*branch] && self.leads[*child];
            let sides: Vec<usize> = self.branches().children(*branch).filter(aside).collect();
            // Deeper levels are only counted, since each level takes columns from the titles; `--json` lists them.
            let limit = if level < MAX_LEVELS {
                FORK_LIMITS
            } else {
                (0, 0)
            };
            later.extend(self.lines(&sides, level + 1, limit));
        }
        // A stack returns the last step first.
        steps.extend(later.into_iter().rev());
    }

    /// Returns the totals from one branch of a line up to another, which is not counted.
    fn between(&self, from: usize, to: usize) -> FoldedTotal {
        let (all, rest) = (self.below[from], self.below[to]);
        FoldedTotal {
            branches: all.branches - rest.branches,
            prompts: all.prompts - rest.prompts,
            // Lines of branches can overlap, so the end is not before the start.
            lines: (all.lines.0, rest.lines.0.saturating_sub(1).max(all.lines.0)),
        }
    }

    fn head(&mut self, out: &mut impl Write) -> Result<()> {
        let index = self.session_tree.index();
        let id = self.session_tree.session_id.clone();
        let id = id.unwrap_or_else(|| "without an id".to_owned());
        let branches = self.branches().all();
        let tips = branches.iter().filter(|branch| branch.is_tip).count();
        let (id, lines) = (self.one_line(&id), count(index.line_count(), "line"));
        let mut text = format!("session {id} · {lines} · {}", count(tips, "tip"));
        let compactions = index.entries().filter(EntryRef::is_boundary).count();
        if compactions > 0 {
            text.push_str(&format!(" · {}", count(compactions, "compaction")));
        }
        if let Some((first, last)) = self.days()? {
            // Print the date once if both are on the same day.
            let span = match last.split_once(' ') {
                Some((day, time)) if first.starts_with(day) => format!("{first}–{time}"),
                _ => format!("{first} – {last}"),
            };
            text.push_str(&format!(" · {span}"));
        }
        Page::new(out, self.width).line(&[Span::new(self.styles.dim, &text)])?;
        Ok(())
    }

    /// Returns the times of the first and the last entry, to the minute.
    fn days(&mut self) -> Result<Option<(String, String)>> {
        let entries = || {
            let entries = self.session_tree.index().entries();
            // Metadata lines can be much later: a client appends a title to an old session.
            entries.filter(|entry| entry.kind().is_chain() && entry.millis().is_some())
        };
        let first = entries().min_by_key(EntryRef::millis);
        let Some((first, last)) = first.zip(entries().max_by_key(EntryRef::millis)) else {
            return Ok(None);
        };
        Ok(Some((self.minute(&first)?, self.minute(&last)?)))
    }

    fn minute(&mut self, entry: &EntryRef<'_>) -> Result<String> {
        let body = self.bodies.get(entry)?;
        let entry = Entry::parse(body.text).ok();
        let time = entry.and_then(|entry| Some(entry.object().str("timestamp")?.into_owned()));
        let minute: String = time.unwrap_or_default().chars().take(16).collect();
        Ok(self.one_line(&minute.replace('T', " ")))
    }

    /// Prints the types of the entries of a file without a conversation.
    fn contents(&self, out: &mut impl Write) -> Result<()> {
        let index = self.session_tree.index();
        let mut kinds: HashMap<&str, u64> = HashMap::new();
        for line in index.entries() {
            *kinds.entry(line.kind().name()).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        // By name as well, because the order of the map is random.
        kinds.sort_unstable_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        writeln!(out, "no entry of a conversation")?;
        for (name, count) in kinds {
            let name = match name {
                "" => "of other types",
                name => name,
            };
            writeln!(out, "{count:>7}  {name}")?;
        }
        Ok(())
    }

    fn columns(&self, out: &mut impl Write) -> Result<()> {
        let dim = self.styles.dim;
        let names = columns(self.width, ["prompts", "messages", "time", "lines"]);
        let room = self.width.saturating_sub(names.width());
        writeln!(out, "{dim}{:room$}{names}{dim:#}", "")?;
        Ok(())
    }

    fn row(
        &mut self,
        out: &mut impl Write,
        branch: usize,
        level: usize,
        is_top: bool,
    ) -> Result<()> {
        let connector = if is_top { "├─" } else { "│ " };
        let mut lead = lead(level, connector);
        if self.start(out, branch, &lead)? {
            lead = "│ ".repeat(level);
        }
        let dim = self.styles.dim;
        let (mark, mark_style, style) = if self.is_main[branch] {
            ("●", self.styles.person, self.styles.plain)
        } else {
            ("○", dim, dim)
        };
        let facts = self.facts(branch);
        let title = match self.reason(branch) {
            Some(reason) => format!("{reason}: {}", self.title(branch)?),
            None => self.title(branch)?,
        };
        let room = self.room(&lead).saturating_sub(2 + facts.width());
        // Titles are cut to their room, so that the columns of numbers stay below their heads.
        let title = cut(&title, room);
        let space = " ".repeat(room.saturating_sub(title.width()));
        write!(out, "{dim}{lead}{dim:#}{mark_style}{mark}{mark_style:#} ")?;
        writeln!(out, "{style}{title}{style:#}{space}{dim}{facts}{dim:#}")?;
        self.end(out, branch, level)
    }

    /// Returns why a branch of a session of another agent is not in the conversation.
    fn reason(&self, branch: usize) -> Option<String> {
        let first = self.branches().entries(branch).next()?;
        let reason = self.reasons.of(self.session_tree.index(), first);
        Some(self.one_line(reason.filter(|_| !self.is_main[branch])?))
    }

    fn facts(&self, branch: usize) -> String {
        let shown = &self.branches().all()[branch];
        let [prompts, messages] = [shown.prompts, shown.messages].map(|count| count.to_string());
        let time = time(self.session_tree, branch).map(duration);
        let lines = range(lines(self.session_tree, branch));
        let time = time.unwrap_or_default();
        columns(self.width, [&prompts, &messages, &time, &lines])
    }

    fn one_line(&self, text: &str) -> String {
        self.styles.escaping.one_line(text)
    }

    /// Returns the text of a person in an entry, on one line; `None` if the client wrote all of it.
    fn prompt(&mut self, entry: &EntryRef<'_>) -> Result<Option<String>> {
        let escaping = self.styles.escaping;
        let body = self.bodies.get(entry)?;
        let Ok(line) = Object::parse(body.text) else {
            return Ok(None);
        };
        Ok(Prompt::find(&line, |said| {
            let text = said.typed()?;
            // Cut before escaping: a prompt can have megabytes.
            Some(escaping.one_line(&text.chars().take(MAX_TITLE_CHARS).collect::<String>()))
        }))
    }

    fn room(&self, lead: &str) -> usize {
        self.width.saturating_sub(lead.width())
    }

    /// Prints the note above a branch: that it starts with a compaction, or why it has no parent.
    /// Returns whether it printed one.
    fn start(&mut self, out: &mut impl Write, branch: usize, lead: &str) -> Result<bool> {
        let shown = &self.branches().all()[branch];
        let first = self.session_tree.index().entry(shown.first);
        let line = first.line();
        let text = match shown.start {
            BranchStart::Boundary => self.boundary(&first)?,
            BranchStart::Lost => {
                let index = self.session_tree.index();
                let parent = first.parent().map(|id| index.id_text(id));
                let parent = parent.map(|id| format!(" ({})", self.one_line(&id)));
                let parent = parent.unwrap_or_default();
                let why = match self.link_decision(shown.first) {
                    Some(Decision::Gap { reason, .. }) => format!(", and {}", reason.words()),
                    _ => String::new(),
                };
                format!("line {line}: its parent{parent} is missing{why}")
            }
            BranchStart::Bridge => {
                let decision = self.link_decision(shown.first);
                let describe = |decision| explain::describe(self.session_tree.index(), &decision);
                decision.map(describe).unwrap_or_default()
            }
            BranchStart::Cycle => format!("line {line} is part of a cycle"),
            BranchStart::Sidechain => {
                format!("the parent of line {line} is an entry of a subagent")
            }
            _ => return Ok(false),
        };
        let text = cut(&text, self.room(lead).saturating_sub(3));
        let style = match shown.start {
            BranchStart::Boundary => self.styles.tool,
            _ => self.styles.error,
        };
        let dim = self.styles.dim;
        writeln!(out, "{dim}{lead}{dim:#}{style}── {text}{style:#}")?;
        Ok(true)
    }

    fn boundary(&mut self, boundary: &EntryRef<'_>) -> Result<String> {
        let facts = BoundaryFacts::read(self.session_tree, boundary, &mut self.bodies)?;
        let text = compaction::in_tree(&facts, boundary.line());
        Ok(self.one_line(&text))
    }

    /// Returns the decision about the missing parent of an entry.
    fn link_decision(&self, entry: EntryNo) -> Option<Decision> {
        let tree = &self.session_tree.tree;
        tree.link_decision(tree.node(entry)?)
    }

    /// Prints the notes below a branch: that it ends in a tip, and the policies whose leaf is on it.
    fn end(&self, out: &mut impl Write, branch: usize, level: usize) -> Result<()> {
        let shown = &self.branches().all()[branch];
        let index = self.session_tree.index();
        let paths = self.session_tree.paths.iter();
        let mut leaves: Vec<EntryNo> = paths.filter_map(|(_, path)| path.leaf).collect();
        leaves.retain(|leaf| self.branches().branch_of(*leaf) == Some(branch));
        leaves.sort_unstable();
        leaves.dedup();
        if shown.is_tip && leaves.is_empty() {
            // Also a tip that no policy chooses gets a name, because `replay --leaf` takes it.
            leaves.push(shown.last);
        }
        for (place, entry) in leaves.iter().enumerate() {
            let ends_here = |path: &&(Policy, ConversationPath)| path.1.leaf == Some(*entry);
            let paths: Vec<_> = self.session_tree.paths.iter().filter(ends_here).collect();
            let names: Vec<_> = paths.iter().map(|(policy, _)| policy.name()).collect();
            let is_pinned = paths.iter().any(|(_, path)| {
                let pinned = LeafReason::Pinned;
                matches!(leaf_decision(path), Some(Decision::Leaf { reason, .. }) if *reason == pinned)
            });
            let (mut name, style) = if names.is_empty() {
                ("tip".to_owned(), self.styles.dim)
            } else {
                (
                    format!("leaf of {}", names.join(" and ")),
                    self.styles.person,
                )
            };
            if is_pinned {
                name.push_str(", pinned by last-prompt");
            }
            let is_end = shown.is_tip && place + 1 == leaves.len();
            let corner = if is_end { "└─" } else { "├─" };
            let lead = format!("{}{corner} ", "│ ".repeat(level));
            // The name for `--leaf` comes first, so that a narrow page never truncates it.
            let entry = index.entry(*entry);
            let place = self.one_line(&explain::short_name(index, &entry));
            let text = format!("{place} · {name} · {}", explain::kind_name(&entry));
            let text = cut(&text, self.room(&lead));
            let dim = self.styles.dim;
            writeln!(out, "{dim}{lead}{dim:#}{style}{text}{style:#}")?;
        }
        Ok(())
    }

    fn fold(
        &self,
        out: &mut impl Write,
        total: FoldedTotal,
        level: usize,
        is_line: bool,
    ) -> Result<()> {
        let lead = lead(level, if is_line { "│ " } else { "├─" });
        let branches = count(total.branches, "branch");
        let (prompts, lines) = (count(total.prompts, "prompt"), range(total.lines));
        let text = format!("⋮ {branches} hidden, {prompts}, lines {lines}; --json lists them");
        let text = cut(&text, self.room(&lead));
        let dim = self.styles.dim;
        writeln!(out, "{dim}{lead}{text}{dim:#}")?;
        Ok(())
    }

    /// Returns the title of a branch: its first prompt, or a description of its first message.
    fn title(&mut self, branch: usize) -> Result<String> {
        let (index, branches) = (self.session_tree.index(), self.branches());
        let entries = || branches.entries(branch).map(|entry| index.entry(entry));
        let mut command = None;
        for entry in entries().filter(is_prompt).take(MAX_BODIES) {
            match self.prompt(&entry)? {
                // Prefer a prompt to a command: it describes the branch better.
                Some(text) if text.starts_with(['/', '!']) => command = command.or(Some(text)),
                Some(text) => return Ok(text),
                None => {}
            }
        }
        if let Some(command) = command {
            return Ok(command);
        }
        let messages = entries().filter(|entry| entry.kind().is_message());
        let others: Vec<_> = messages.take(MAX_BODIES).collect();
        for entry in &others {
            let flags = entry.flags();
            // The text of a summary starts with a sentence of the client that is the same in all of them.
            if flags.contains(Flags::COMPACT_SUMMARY) {
                return Ok("(summary of the earlier conversation)".to_owned());
            }
            let text = self.text(entry)?;
            let text = self.one_line(&text);
            if !text.is_empty() {
                return Ok(format!("{}: {text}", entry.kind().name()));
            }
        }
        Ok(match others.first() {
            Some(entry) => self.describe_without_text(entry)?,
            None => "(no message)".to_owned(),
        })
    }

    /// Returns the start of the text of a message.
    fn text(&mut self, entry: &EntryRef<'_>) -> Result<String> {
        let body = self.bodies.get(entry)?;
        let Ok(entry) = Entry::parse(body.text) else {
            return Ok(String::new());
        };
        let Some(content) = message_content(&entry) else {
            return Ok(String::new());
        };
        let start = |text: Str<'_>| text.chars().take(MAX_TITLE_CHARS).collect();
        if let Some(text) = content.str() {
            return Ok(start(text));
        }
        let text = blocks(content).into_iter().find_map(|raw| {
            let Block::Text(text) = Block::from_raw(raw)? else {
                return None;
            };
            text.text().map(start)
        });
        Ok(text.unwrap_or_default())
    }

    /// Describes a message without text by its first block.
    fn describe_without_text(&mut self, entry: &EntryRef<'_>) -> Result<String> {
        if entry.flags().contains(Flags::TOO_MANY) {
            return Ok(format!("({} with too many elements)", entry.kind().name()));
        }
        let body = self.bodies.get(entry)?;
        let message = Entry::parse(body.text).ok();
        let content = message.as_ref().and_then(message_content);
        let first = content.and_then(|content| blocks(content).into_iter().next());
        let shown = first.and_then(Block::from_raw).map(|block| match &block {
            Block::ToolUse(call) => {
                format!("calls {}", call.name().unwrap_or_default())
            }
            other => other.name().unwrap_or_default().replace('_', " "),
        });
        let shown = shown.unwrap_or_else(|| "without content".to_owned());
        let shown = self.one_line(&shown);
        Ok(format!("({} {shown})", entry.kind().name()))
    }

    fn sidechains(&self, out: &mut impl Write) -> Result<()> {
        let sidechains = self.branches().sidechains();
        let dim = self.styles.dim;
        if !self.agents.is_empty() {
            let agents = count(self.agents.len(), "subagent");
            writeln!(out, "\n{dim}{agents} with files of their own:{dim:#}")?;
            for agent in &self.agents {
                writeln!(
                    out,
                    "  {}",
                    cut(&self.one_line(agent), self.width.saturating_sub(2))
                )?;
            }
        }
        if sidechains.is_empty() {
            return Ok(());
        }
        let entries: usize = sidechains.iter().map(|sidechain| sidechain.entries).sum();
        writeln!(out, "\n{dim}sidechains: {}{dim:#}", count(entries, "entry"))?;
        // A file can have thousands of subagents; the rest is only counted.
        for sidechain in sidechains.iter().take(ROOT_LIMITS.1) {
            let name = sidechain.agent.as_deref().unwrap_or("without an agent id");
            let line = self.session_tree.index().entry(sidechain.first).line();
            let name = cut(&self.one_line(name), self.width / 2);
            let entries = count(sidechain.entries, "entry");
            writeln!(out, "  {name}  {entries}, from line {line} on")?;
        }
        if sidechains.len() > ROOT_LIMITS.1 {
            let more = sidechains.len() - ROOT_LIMITS.1;
            writeln!(out, "  {dim}⋮ {} more{dim:#}", count(more, "agent"))?;
        }
        Ok(())
    }

    /// Prints the leaf of each policy, and why it was chosen.
    fn leaves(&self, out: &mut impl Write) -> Result<()> {
        let index = self.session_tree.index();
        writeln!(out)?;
        let mut page = Page::new(out, self.width);
        let mut before = None;
        for (policy, path) in &self.session_tree.paths {
            let name = format!("{:<9}", policy.name());
            page.indent(name.len());
            page.head(vec![Span::new(self.styles.person, &name)]);
            let shown = path.entries.iter().map(PathEntry::entry_no);
            // Two policies with the same leaf can have different paths to it, so entries are compared, too.
            let is_same = before == Some((path.leaf, shown.clone().collect::<Vec<_>>()));
            before = Some((path.leaf, shown.collect()));
            let text = match leaf_decision(path) {
                _ if is_same => "the same".to_owned(),
                Some(decision) => {
                    let entries = count(path.entries.len(), "entry");
                    format!(
                        "{}; {entries} on its path",
                        explain::describe(index, decision)
                    )
                }
                None => "no leaf".to_owned(),
            };
            page.line(&[Span::plain(&text)])?;
            let hides = |decision: &&Decision| matches!(decision, Decision::PinHidesNewer { .. });
            let hidden = path.decisions.iter().find(hides);
            let more = [
                path.refusal
                    .map(|refusal| explain::describe_refusal(index, refusal)),
                hidden.map(|decision| explain::describe(index, decision)),
            ];
            for text in more.iter().flatten().filter(|_| !is_same) {
                page.line(&[Span::plain(text)])?;
            }
            page.pop();
        }
        if self.is_main.contains(&true) && self.is_main.contains(&false) {
            let text = format!(
                "● leads to the leaf of {}, ○ does not; replay --leaf LINE shows another branch",
                self.session_tree.paths[0].0.name()
            );
            page.line(&[Span::new(self.styles.dim, &text)])?;
        }
        Ok(())
    }
}

/// Returns the totals of each branch, including its descendants.
fn totals(session_tree: &SessionTree<'_>) -> Vec<FoldedTotal> {
    let branches = &session_tree.branches;
    let own = |number: usize| FoldedTotal {
        branches: 1,
        prompts: session_tree.prompts[number],
        lines: lines(session_tree, number),
    };
    let mut totals: Vec<FoldedTotal> = (0..branches.len()).map(own).collect();
    let all = branches.all();
    let mut order: Vec<usize> = (0..all.len())
        .filter(|branch| all[*branch].parent.is_none())
        .collect();
    let mut at = 0;
    while let Some(branch) = order.get(at) {
        order.extend(branches.children(*branch));
        at += 1;
    }
    for branch in order.into_iter().rev() {
        if let Some(parent) = all[branch].parent {
            let below = totals[branch];
            totals[parent].add(below);
        }
    }
    totals
}

/// Returns the first and the last line of a branch.
fn lines(session_tree: &SessionTree<'_>, branch: usize) -> (u64, u64) {
    let mut entries = session_tree.branches.entries(branch);
    let line = |entry: EntryNo| session_tree.index().entry(entry).line();
    let first = entries.next().map_or(0, line);
    (first, entries.next_back().map_or(first, line))
}

/// The minimum width for more than line numbers, in columns.
const MIN_TEXT_WIDTH: usize = 80;

/// Returns the columns after the title of a branch: prompts, messages, time, lines.
fn columns(width: usize, [prompts, messages, time, lines]: [&str; 4]) -> String {
    if width < MIN_TEXT_WIDTH {
        format!("{lines:>13}")
    } else {
        format!("{prompts:>9}{messages:>10}{time:>12}{lines:>13}")
    }
}

/// Returns the milliseconds between the oldest and the newest entry of a branch.
fn time(session_tree: &SessionTree<'_>, branch: usize) -> Option<u64> {
    let entries = session_tree.branches.entries(branch);
    let times = entries.filter_map(|entry| session_tree.index().entry(entry).millis());
    let span = times.fold(None, |span: Option<(i64, i64)>, time| match span {
        None => Some((time, time)),
        Some((first, last)) => Some((first.min(time), last.max(time))),
    });
    span.map(|(first, last)| last.abs_diff(first))
}

/// Returns the indentation of a row: one column of lines per level.
fn lead(level: usize, connector: &str) -> String {
    match level.checked_sub(1) {
        None => String::new(),
        Some(outer) => format!("{}{connector}", "│ ".repeat(outer)),
    }
}

fn range((first, last): (u64, u64)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}–{last}")
    }
}
