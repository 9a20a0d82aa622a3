//! Completes the map of the rows of a table: those that no record of the session lies in belong to other sessions.

use crate::conversation::{Conversation, Holds, Part};
use crate::place::{Place, SourceId};

/// Puts the parts into the order of the sources, with a part for each range that no row of the session lies in.
pub(crate) fn fill_gaps(to: &mut Conversation) {
    let mut own = std::mem::take(&mut to.parts);
    own.sort_by_key(|part| part.place);
    let mut own = own.into_iter().peekable();
    let lens: Vec<u64> = to.sources.iter().map(|source| source.len).collect();
    for (source, len) in (0..).map(SourceId::at).zip(lens) {
        let gap = |from: u64, until: u64| Part {
            place: Place {
                source,
                offset: from,
                len: until - from,
            },
            holds: Holds::Raw("rows of other sessions".into()),
        };
        let mut done = 0;
        while let Some(part) = own.next_if(|part| part.place.source == source) {
            let range = part.place.range();
            if range.start > done {
                to.parts.push(gap(done, range.start));
            }
            done = range.end;
            to.parts.push(part);
        }
        if len > done {
            to.parts.push(gap(done, len));
        }
    }
}
