//! Puts items into display order.

use super::build::Builder;
use super::{CallGroup, GroupRole, Item, ItemKind, NONE};

/// Returns the items in display order, and the groups with their places in it. Looks at each item
/// once for each part.
pub(super) fn in_order(builder: &mut Builder<'_, '_>) -> (Vec<Item>, Vec<CallGroup>) {
    let mut order = Order {
        order: Vec::with_capacity(builder.items.len()),
        builder,
    };
    for item in 0..order.builder.items.len() as u32 {
        order.show(item);
    }
    let shown = order.order;
    let mut groups = std::mem::take(&mut builder.groups);
    let mut left: Vec<Option<Item>> = std::mem::take(&mut builder.items)
        .into_iter()
        .map(Some)
        .collect();
    let mut items = Vec::with_capacity(shown.len());
    items.extend(
        shown
            .into_iter()
            .filter_map(|item| left[item as usize].take()),
    );
    drop(left);
    for (place, item) in items.iter().enumerate() {
        if let Some((group, part)) = item.group() {
            let group = &mut groups[group];
            if part == GroupRole::Opening {
                group.items.start = place as u32;
            }
            group.items.end = place as u32 + 1;
        }
    }
    (items, groups)
}

struct Order<'b, 't, 'i> {
    builder: &'b mut Builder<'t, 'i>,
    order: Vec<u32>,
}

impl Order<'_, '_, '_> {
    fn show(&mut self, item: u32) {
        let builder = &self.builder;
        let shown = &builder.items[item as usize];
        match shown.group {
            // Items that follow no other one are in a group.
            _ if shown.kind == ItemKind::Progress => {}
            NONE => self.order.push(item),
            group if shown.part == GroupRole::Opening => {
                let members = &builder.members[group as usize];
                for part in GroupRole::ORDER {
                    let is_it = |member: &&u32| builder.items[**member as usize].part == part;
                    self.order.extend(members.iter().filter(is_it));
                }
            }
            _ => {}
        }
        if let Some(after) = self.builder.after.get(&item) {
            self.order.extend(after);
        }
    }
}
