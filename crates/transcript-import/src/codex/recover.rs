//! Brings back items that only their events still show.

use super::echo::Matches;
use super::rollout::{Action, Rollout, Step};
use crate::conversation::{Conversation, Holds, NodeId};

/// Makes nodes of the events whose items the rollout does not have, and returns them. With `in_place` they become items.
pub(super) fn recover(
    to: &mut Conversation,
    rollout: &mut Rollout,
    matches: Matches,
    in_place: bool,
) -> Vec<NodeId> {
    let mut recovered = Vec::new();
    let mut steps = Vec::new();
    for echo in matches.lost() {
        let nodes = echo.nodes(to);
        if let Ok(part) = to
            .parts
            .binary_search_by_key(&echo.place, |part| part.place)
        {
            to.parts[part].holds = Holds::Nodes(nodes.clone().into());
        }
        recovered.extend(&nodes);
        steps.extend(
            nodes
                .into_iter()
                .map(|node| (echo.after, echo.ordinal, node)),
        );
    }
    if in_place && !steps.is_empty() {
        let mut old = std::mem::take(&mut rollout.steps)
            .into_iter()
            .enumerate()
            .peekable();
        for (after, ordinal, node) in steps {
            while let Some((_, step)) = old.next_if(|(number, _)| *number < after) {
                rollout.steps.push(step);
            }
            let before = rollout.steps.last().map_or(0, |step| step.ordinal);
            rollout.steps.push(Step {
                ordinal: ordinal.unwrap_or(before),
                action: Action::Item(node),
            });
        }
        rollout.steps.extend(old.map(|(_, step)| step));
    }
    recovered
}
