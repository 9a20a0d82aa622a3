//! Puts items into display order.

use std::collections::HashMap;

use super::{CallGroup, GroupRole, Item, ItemKind, NONE};

/// Returns the items in display order, and the groups with their places in it. `members` are the items
/// of each group, and `after` those that are shown after an item. Looks at each item once for each part.
pub(super) fn in_order(
    items: Vec<Item>,
    mut groups: Vec<CallGroup>,
    members: &[Vec<u32>],
    after: &HashMap<u32, Vec<u32>>,
) -> (Vec<Item>, Vec<CallGroup>) {
    let mut order = Order {
        items: &items,
        members,
        after,
        order: Vec::with_capacity(items.len()),
    };
    for item in 0..items.len() as u32 {
        order.show(item);
    }
    let shown = order.order;
    let mut left: Vec<Option<Item>> = items.into_iter().map(Some).collect();
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

struct Order<'b> {
    items: &'b [Item],
    members: &'b [Vec<u32>],
    after: &'b HashMap<u32, Vec<u32>>,
    order: Vec<u32>,
}

impl Order<'_> {
    fn show(&mut self, item: u32) {
        let shown = &self.items[item as usize];
        match shown.group {
            // Items that follow no other one are in a group.
            _ if shown.kind == ItemKind::Progress => {}
            NONE => self.order.push(item),
            group if shown.part == GroupRole::Opening => {
                let members = &self.members[group as usize];
                for part in GroupRole::ORDER {
                    let is_it = |member: &&u32| self.items[**member as usize].part == part;
                    self.order.extend(members.iter().filter(is_it));
                }
            }
            _ => {}
        }
        if let Some(after) = self.after.get(&item) {
            self.order.extend(after);
        }
    }
}
