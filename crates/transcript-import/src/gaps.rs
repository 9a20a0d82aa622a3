//! Completes the map of the rows of a table: those that no record of the session lies in belong to other sessions.

use crate::conversation::{Conversation, Holds, Part};
use crate::place::{Place, SourceId};

/// Puts the parts into the order of the sources, with a part for each range that no row of the session lies in.
pub(crate) fn fill_gaps(to: &mut Conversation) {
    let gap = |source: SourceId, from: u64, until: u64| Part {
        place: Place {
            source,
            offset: from,
            len: until - from,
        },
        holds: Holds::Raw("rows of other sessions".into()),
    };
    to.parts.sort_unstable_by_key(|part| part.place);
    let mut gaps = Vec::new();
    let mut own = to.parts.iter().peekable();
    for (source, of) in (0..).map(SourceId::at).zip(&to.sources) {
        let mut done = 0;
        while let Some(part) = own.next_if(|part| part.place.source == source) {
            let range = part.place.range();
            if range.start > done {
                gaps.push(gap(source, done, range.start));
            }
            done = range.end;
        }
        if of.len > done {
            gaps.push(gap(source, done, of.len));
        }
    }
    to.parts.append(&mut gaps);
    to.parts.sort_unstable_by_key(|part| part.place);
}
