//! The lines that belong to a message although they are not on the chain.

use std::collections::HashSet;

use super::graph::{Entry, Graph, Kind};

/// Returns the attachments below `index`, through other attachments, in file order.
pub(super) fn attachments_under(
    graph: &Graph,
    children: &[Vec<usize>],
    index: usize,
) -> Vec<usize> {
    under(graph, children, index, |entry| {
        entry.kind == Kind::Attachment
    })
}

/// Returns the loose lines below `index`, through other loose lines, in file order.
fn loose_under(graph: &Graph, children: &[Vec<usize>], index: usize) -> Vec<usize> {
    under(graph, children, index, Entry::is_loose)
}

fn under(
    graph: &Graph,
    children: &[Vec<usize>],
    index: usize,
    counts: impl Fn(&Entry) -> bool,
) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut open = vec![index];
    while let Some(parent) = open.pop() {
        for &child in &children[parent] {
            if counts(&graph.entries[child]) && !found.contains(&child) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found.retain(|&other| other != index);
    found.sort_unstable();
    found
}

/// Adds the parallel siblings of the messages on the chain: a message is written as several lines,
/// each call is followed by its own result, and only one of these lines is on the chain.
pub(super) fn with_siblings(
    graph: &Graph,
    children: &[Vec<usize>],
    mut chain: Vec<usize>,
) -> Vec<usize> {
    let mut done: HashSet<usize> = HashSet::new();
    for index in chain.clone() {
        if graph.entries[index].kind == Kind::Assistant && !done.contains(&index) {
            let members = members(graph, index);
            chain = with_siblings_of(graph, children, chain, &members);
            done.extend(members);
        }
    }
    chain
}

/// Adds the missing lines and results of one message, whose lines are `members`.
fn with_siblings_of(
    graph: &Graph,
    children: &[Vec<usize>],
    chain: Vec<usize>,
    members: &[usize],
) -> Vec<usize> {
    let results = results(graph, members);
    let loose = loose_lines_of(graph, children, members, &results);
    let lost = |index: &usize| !chain.contains(index);
    let lost_lines: Vec<usize> = members.iter().copied().filter(lost).collect();
    let mut lost_results: Vec<usize> = results.iter().copied().filter(lost).collect();
    lost_results.retain(|&result| is_found(graph, result, members));
    let mut lost_loose: Vec<usize> = loose.into_iter().filter(lost).collect();
    if lost_lines.is_empty() && lost_results.is_empty() && lost_loose.is_empty() {
        return chain;
    }
    let chain = with_lines(chain, members, &lost_lines);

    // Each stretch of the chain with consecutive lines of the message is followed by results and loose
    // lines. The lines come first, then the results, also the missing ones of the calls of these
    // lines. Loose lines go where the file has them.
    let is_line = |index: &usize| members.contains(index);
    let follows = |index: &usize| results.contains(index) || graph.entries[*index].is_loose();
    let mut out: Vec<usize> = Vec::new();
    let mut rest = &chain[..];
    while let Some(start) = rest.iter().position(is_line) {
        out.extend(&rest[..start]);
        rest = &rest[start..];
        let length = rest
            .iter()
            .take_while(|index| is_line(index) || follows(index))
            .count();
        let (lines, mut followers): (Vec<usize>, Vec<usize>) =
            rest[..length].iter().copied().partition(is_line);
        rest = &rest[length..];
        let next = rest.iter().find(|index| is_line(index));
        let answers = self::results(graph, &lines);
        let mut take = |lost: &mut Vec<usize>, belongs: &dyn Fn(usize) -> bool| {
            let taken = lost.extract_if(.., |index| next.is_none() || belongs(*index));
            followers.extend(taken);
        };
        take(&mut lost_results, &|result| answers.contains(&result));
        take(&mut lost_loose, &|loose| {
            next.is_some_and(|next| loose < *next)
        });
        followers.sort_unstable();
        out.extend(laid_out(graph, &lines, followers));
    }
    out.extend(rest);
    out
}

/// Returns the lines of a stretch with what follows them. A loose line below one of the lines that is sent
/// as text stands before the lines that the file has after it.
fn laid_out(graph: &Graph, lines: &[usize], followers: Vec<usize>) -> Vec<usize> {
    let is_between = |index: &usize| {
        let mut above = graph.ancestors(*index).into_iter();
        let above = above.find(|above| !graph.entries[*above].is_loose());
        let entry = &graph.entries[*index];
        entry.is_loose()
            && entry.kind != Kind::Attachment
            && above.is_some_and(|above| lines.contains(&above))
    };
    let mut out: Vec<usize> = Vec::new();
    let mut waiting = followers;
    for (at, &line) in lines.iter().enumerate() {
        if at > 0 {
            let before = waiting.extract_if(.., |index| *index < line && is_between(index));
            out.extend(before);
        }
        out.push(line);
    }
    out.extend(waiting);
    out
}

/// Returns whether the client finds a result that is not on the chain: below a line of the message, or
/// as the first result of a call in the file.
fn is_found(graph: &Graph, result: usize, members: &[usize]) -> bool {
    let is_first = |call: &String| {
        let mut entries = graph.entries.iter();
        entries.position(|entry| entry.answers.contains(call)) == Some(result)
    };
    let below = graph
        .parent(result)
        .is_some_and(|parent| members.contains(&parent));
    below || graph.entries[result].answers.iter().any(is_first)
}

/// Returns the chain with the missing lines of a message. Each comes after the last line of the
/// message on the chain that precedes it in the file, at the earliest after the first one (CHAIN-7).
fn with_lines(mut chain: Vec<usize>, members: &[usize], lost_lines: &[usize]) -> Vec<usize> {
    let on_chain = chain.clone();
    for &lost in lost_lines {
        let places = chain.iter().enumerate();
        let mut places = places.filter(|(_, index)| members.contains(index));
        let first = places.next().map_or(0, |(at, _)| at);
        let before = chain
            .iter()
            .rposition(|index| members.contains(index) && *index < lost);
        let mut at = before.unwrap_or(first).max(first) + 1;
        // After the missing lines that were already inserted at this place.
        while at < chain.len() && lost_lines.contains(&chain[at]) && !on_chain.contains(&chain[at])
        {
            at += 1;
        }
        chain.insert(at, lost);
    }
    chain
}

/// Returns all lines of the message of the line `index`, in file order. A line without a message id is
/// a message of its own. Empty when `index` is not an assistant line.
pub(super) fn members(graph: &Graph, index: usize) -> Vec<usize> {
    if graph.entries[index].kind != Kind::Assistant {
        return Vec::new();
    }
    let Some(id) = &graph.entries[index].message_id else {
        return vec![index];
    };
    (0..graph.entries.len())
        .filter(|&other| graph.entries[other].message_id.as_ref() == Some(id))
        .collect()
}

/// Returns the results of the calls of a message, whatever their parents.
pub(super) fn results(graph: &Graph, members: &[usize]) -> Vec<usize> {
    let calls: Vec<&String> = members
        .iter()
        .flat_map(|&index| &graph.entries[index].calls)
        .collect();
    if calls.is_empty() {
        return Vec::new();
    }
    let is_result = |&index: &usize| {
        graph.entries[index]
            .answers
            .iter()
            .any(|id| calls.contains(&id))
    };
    (0..graph.entries.len()).filter(is_result).collect()
}

/// Returns the loose lines of a message with calls, attachments and meta lines: all below its lines and
/// results, also between a call and its result, except those of a sidechain, and those that lead to a
/// line outside the message (CHAIN-9).
pub(super) fn loose_lines_of(
    graph: &Graph,
    children: &[Vec<usize>],
    members: &[usize],
    results: &[usize],
) -> Vec<usize> {
    let has_calls = |index: &usize| !graph.entries[*index].calls.is_empty();
    let has_id = |index: &usize| graph.entries[*index].message_id.is_some();
    if !members.iter().any(has_calls) || !members.iter().all(has_id) {
        return Vec::new();
    }
    let is_part = |index: &usize| members.contains(index) || results.contains(index);
    let leads_on = |loose: usize| {
        let mut under = loose_under(graph, children, loose);
        under.push(loose);
        let mut lines = under.iter().flat_map(|&index| &children[index]);
        lines.any(|line| !graph.entries[*line].is_loose() && !is_part(line))
    };
    let mut found: Vec<usize> = members
        .iter()
        .chain(results)
        .flat_map(|&line| loose_under(graph, children, line))
        .filter(|&loose| !leads_on(loose))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}
