//! The entries of a file that a request contains, to compare policies. `examples/campaign.rs` uses it too.

use std::collections::BTreeSet;

use transcript_messages::OmissionReason;
use transcript_reader::{Bodies, EntryNo, Index, Source};
use transcript_resume::request::RequestOptions;
use transcript_resume::{Policy, Tree};

/// The entries of a file that a policy sends, by the offset of their line.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Messages that at least one block of the request comes from, and those that the request
    /// reports as omitted because the API would refuse them.
    pub(crate) messages: BTreeSet<u64>,
    /// How many blocks come from them.
    pub(crate) blocks: usize,
}

/// Returns the entries that `recover` and `vendor` send. Entries that `recover` omits on purpose count for neither:
/// those of another session, and those before the compaction that the path starts at.
pub(crate) fn both(source: &Source, index: &Index) -> [Sent; 2] {
    let recover = Tree::new(index, Policy::Recover);
    let vendor = Tree::new(index, Policy::Vendor);
    let path = recover.path();
    let first = path.entries.first().map(|entry| entry.entry_no());
    let boundary = first.filter(|first| index.entry(*first).is_boundary());
    let boundary = boundary.map_or(0, |boundary| index.entry(boundary).offset());
    let kept: BTreeSet<EntryNo> = path.entries.iter().map(|entry| entry.entry_no()).collect();
    [&recover, &vendor].map(|tree| {
        let request = RequestOptions::new()
            .prompt("NEXT")
            .request(tree, &mut Bodies::new(source))
            .unwrap();
        let mut sent = Sent::default();
        let mut add = |origin: usize| {
            let entry_no = EntryNo::new(origin);
            let entry = index.entry(entry_no);
            let is_foreign = recover
                .node(entry_no)
                .is_some_and(|node| recover.is_foreign(node));
            // Of several lines of one entry each policy may take another.
            let first = entry.uuid().and_then(|id| index.with_uuid(id).next());
            let first = first.map_or(entry, |first| index.entry(first));
            let is_summed_up = first.offset() < boundary && !kept.contains(&entry_no);
            if entry.kind().is_message() && !is_foreign && !is_summed_up {
                sent.messages.insert(first.offset());
                sent.blocks += 1;
            }
        };
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        blocks.filter_map(|block| block.origin()).for_each(&mut add);
        let refused = request.omissions.iter();
        let refused = refused.filter(|one| matches!(one.reason, OmissionReason::Refused(_)));
        refused.for_each(|one| add(one.origin));
        sent
    })
}
