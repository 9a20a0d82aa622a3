//! Files that grow: nodes keep their ids.

use std::path::Path;

use transcript_import::{Agent, Conversation, NodeId, Policy};
use transcript_storage::MemoryDisk;

use crate::damage::samples;
use crate::support::{all_texts, lines, read_file};

/// Returns the nodes that lie in the file, each with its id, its place and its texts.
fn stored(conversation: &Conversation) -> Vec<(NodeId, String)> {
    let texts = all_texts(conversation);
    let ids = conversation.ids().filter_map(|id| {
        let node = conversation.node(id);
        let of_node = texts.iter().filter(|(of, _)| *of == id);
        let of_node: Vec<&String> = of_node.map(|(_, text)| text).collect();
        let text = format!("{:?} {:?} {of_node:?}", node.origin?, node.record_id);
        Some((id, text))
    });
    ids.collect()
}

#[test]
fn nodes_keep_their_ids_when_the_file_grows() {
    for (agent, name, records) in samples() {
        let mut before: Vec<(NodeId, String)> = Vec::new();
        for count in 1..=records.len() {
            let disk = MemoryDisk::new();
            disk.put(Path::new(name), lines(&records[..count]));
            let conversation = read_file(&disk, agent, Path::new(name), Policy::Recover);
            let now = stored(&conversation);
            assert!(
                now.starts_with(&before),
                "{agent} {count}: {now:?} {before:?}"
            );
            // The node of an event that comes before its item is not there any more when the item is.
            let is_event = agent == Agent::Codex && records[count - 1]["type"] == "event_msg";
            if !is_event {
                before = now;
            }
        }
        assert!(before.len() > 2, "{agent}");
    }
}
