//! Two writers of one session.

use transcript_format::finding::{Code, Finding};
use transcript_resume::{BranchStart, Branches, Tree};

use crate::report::LocatedFinding;

/// Returns the finding about branches that were written at the same time: where, and how many. One
/// process writes one branch at a time, so there were two.
pub(crate) fn overlap(tree: &Tree<'_>, of_links: &[Finding]) -> Option<LocatedFinding> {
    let forks: Vec<u64> = of_links
        .iter()
        .filter(|finding| finding.code == Code::Fork)
        .map(|finding| finding.offset)
        .collect();
    if forks.is_empty() {
        return None;
    }
    let index = tree.index();
    let branches = Branches::new(tree, &[]);
    let is_fork = |first| forks.contains(&index.entry(first).offset());
    let later = branches
        .all()
        .iter()
        .position(|branch| is_fork(branch.first))?;
    let siblings = |branch: &usize| {
        let (one, other) = (&branches.all()[*branch], &branches.all()[later]);
        one.parent == other.parent && one.start == BranchStart::Child
    };
    let earlier = (0..later).rev().find(siblings)?;
    let range = |branch: usize| {
        let mut entries = branches
            .entries(branch)
            .map(|entry| index.entry(entry).line());
        let first = entries.next()?;
        Some((first, entries.next_back().unwrap_or(first)))
    };
    let ((a, b), (c, d)) = (range(earlier)?, range(later)?);
    let detail = format!(
        "lines {a}–{b} and lines {c}–{d} are two branches, written at the same time{}",
        match forks.len() {
            1 => String::new(),
            count => format!("; so are {} more", count - 1),
        }
    );
    let entry = index.entry(branches.all()[later].first);
    Some(LocatedFinding::of_entry(Code::Writers, &entry, detail))
}
