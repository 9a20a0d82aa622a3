//! What a request holds of a file, to compare policies. `examples/campaign.rs` uses it too.

use std::collections::BTreeSet;

use transcript_reader::{Bodies, Index, Source};
use transcript_resume::api::Options;
use transcript_resume::{Policy, Tree};

/// What a policy sends of a file: entries by the offset of their line.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Messages that at least one block of the request comes from.
    pub(crate) messages: BTreeSet<u64>,
    /// How many blocks come from them.
    pub(crate) blocks: usize,
}

/// What `recover` and `vendor` send. Entries of another session, which `recover` leaves out on
/// purpose, count for neither.
pub(crate) fn both(source: &Source, index: &Index) -> [Sent; 2] {
    let recover = Tree::new(index, Policy::Recover);
    let vendor = Tree::new(index, Policy::Vendor);
    [&recover, &vendor].map(|tree| {
        let request = Options::new()
            .prompt("NEXT")
            .request(tree, &mut Bodies::new(source))
            .unwrap();
        let mut sent = Sent::default();
        for block in request.messages.iter().flat_map(|message| message.blocks()) {
            let Some(candidate) = block.entry() else {
                continue;
            };
            let entry = index.candidate(candidate);
            let is_foreign = recover
                .node(candidate)
                .is_some_and(|node| recover.is_foreign(node));
            if entry.kind().is_message() && !is_foreign {
                // Of several lines of one entry each policy may take another.
                let first = entry.uuid().and_then(|id| index.with_uuid(id).next());
                let entry = first.map_or(entry, |first| index.candidate(first));
                sent.messages.insert(entry.offset());
                sent.blocks += 1;
            }
        }
        sent
    })
}
