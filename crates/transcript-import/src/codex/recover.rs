//! Brings back items that only their events still show.

use std::collections::{BTreeMap, BTreeSet};

use super::echo::{Echo, Shown};
use super::rollout::{Action, Rollout, Step};
use crate::conversation::{Conversation, Holds, NodeId};

/// Makes nodes of the events whose items the rollout does not have, and returns them. With `in_place` they become items.
pub(super) fn recover(to: &mut Conversation, rollout: &mut Rollout, in_place: bool) -> Vec<NodeId> {
    let mut items = Items::of(to, rollout);
    let lost = std::mem::take(&mut rollout.echoes);
    let lost: Vec<Echo> = lost
        .into_iter()
        .filter(|echo| !items.take(&echo.shown))
        .collect();
    let mut recovered = Vec::new();
    let mut steps = Vec::new();
    for echo in lost {
        let nodes = echo.nodes(to);
        if let Ok(part) = to
            .parts
            .binary_search_by_key(&echo.place, |part| part.place)
        {
            to.parts[part].holds = Holds::Nodes(nodes.clone());
        }
        recovered.extend(&nodes);
        steps.extend(
            nodes
                .into_iter()
                .map(|node| (echo.after, echo.ordinal, node)),
        );
    }
    if in_place {
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

/// The items of a rollout, to be matched with their events: each text as often as it stands there.
struct Items {
    texts: BTreeMap<(&'static str, String), usize>,
    calls: BTreeSet<String>,
}

impl Items {
    fn of(to: &Conversation, rollout: &Rollout) -> Self {
        let mut items = Self {
            texts: BTreeMap::new(),
            calls: BTreeSet::new(),
        };
        for step in &rollout.steps {
            let Action::Item(node) = &step.action else {
                continue;
            };
            let (kind, content) = (to.node(*node).kind, to.content_of(*node));
            items.calls.extend(content.call_id.clone());
            if let Some(text) = &content.text {
                let key = (kind.name(), key_of(text, content.images));
                *items.texts.entry(key).or_default() += 1;
            }
        }
        items
    }

    /// Returns whether an item is what an event shows.
    fn take(&mut self, shown: &Shown) -> bool {
        match shown {
            Shown::Text(kind, text) => {
                let count = self.texts.get_mut(&(kind.name(), key_of(text, 0)));
                let Some(count) = count.filter(|count| **count > 0) else {
                    // A text that was sent as part of a longer one.
                    return text.trim().is_empty();
                };
                *count -= 1;
                true
            }
            Shown::Command(call, ..) => self.calls.contains(call),
        }
    }
}

/// Returns the text by which an item is compared with its event: without the tags around images.
fn key_of(text: &str, images: usize) -> String {
    if images == 0 {
        return text.trim().to_owned();
    }
    let lines = text.split('\n');
    let lines = lines.filter(|line| !line.starts_with("<image ") && *line != "</image>");
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
