//! Homes of agents in memory, and conversations as short texts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use transcript_import::{
    Agent, BranchKind, Conversation, Holds, ImportDisk, NodeId, NodeKind, Policy, SourceId, Store,
    dialect,
};
use transcript_storage::{MemoryDisk, ReadDisk};

/// The home folder of an agent.
pub(crate) struct Home {
    disk: MemoryDisk,
    agent: Agent,
}

impl Home {
    pub(crate) fn of(agent: Agent) -> Self {
        Self {
            disk: MemoryDisk::new(),
            agent,
        }
    }

    /// Writes a file of one record a line.
    pub(crate) fn put(&self, name: &str, records: &[Value]) -> &Self {
        self.put_bytes(name, lines(records).as_bytes())
    }

    pub(crate) fn put_bytes(&self, name: &str, bytes: &[u8]) -> &Self {
        self.disk.put(Path::new("/home").join(name), bytes);
        self
    }

    pub(crate) fn sessions(&self) -> Vec<String> {
        let sessions = dialect(self.agent)
            .sessions(self.store())
            .expect("they are listed");
        sessions.into_iter().map(|session| session.id).collect()
    }

    pub(crate) fn read(&self, id: &str) -> Conversation {
        self.read_as(Policy::Recover, id)
    }

    pub(crate) fn vendor(&self, id: &str) -> Conversation {
        self.read_as(Policy::Vendor, id)
    }

    fn read_as(&self, policy: Policy, id: &str) -> Conversation {
        let conversation = dialect(self.agent).read(self.store(), id, policy);
        let conversation = conversation.expect("the session is read");
        check(&conversation);
        conversation
    }

    /// Returns the disk on which its sessions are files of our own format.
    pub(crate) fn files(&self, policy: Policy) -> ImportDisk {
        ImportDisk::with(Arc::new(self.disk.clone()), self.agent, "/home", policy)
    }

    /// Returns the disk that it lies on.
    pub(crate) fn disk(&self) -> &MemoryDisk {
        &self.disk
    }

    fn store(&self) -> Store<'_> {
        Store {
            disk: &self.disk,
            path: Path::new("/home"),
        }
    }
}

/// Reads the only session of one file on a disk.
pub(crate) fn read_file(
    disk: &dyn ReadDisk,
    agent: Agent,
    path: &Path,
    policy: Policy,
) -> Conversation {
    let store = Store { disk, path };
    let sessions = dialect(agent).sessions(store).expect("it is listed");
    let conversation = dialect(agent).read(store, &sessions[0].id, policy);
    let conversation = conversation.expect("it is read");
    check(&conversation);
    conversation
}

pub(crate) fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Holds what every conversation promises: each node has one place, and each byte of each source one part.
pub(crate) fn check(conversation: &Conversation) {
    let mut places: BTreeMap<NodeId, usize> = BTreeMap::new();
    let in_branches = conversation
        .branches
        .iter()
        .flat_map(|branch| &branch.nodes);
    for id in conversation.live.iter().chain(in_branches) {
        *places.entry(*id).or_default() += 1;
    }
    let mut within = conversation.live.clone();
    while let Some(id) = within.pop() {
        for part in conversation.node(id).made_of {
            if places.insert(*part, 1).is_none() {
                within.push(*part);
            }
        }
    }
    for id in conversation.ids() {
        assert_eq!(places.get(&id), Some(&1), "{:?}", conversation.node(id));
        let branch = conversation.branch_of(id);
        let is_in = branch.is_some_and(|at| conversation.branches[at].nodes.contains(&id));
        assert_eq!(is_in, branch.is_some());
    }
    check_contents(conversation);
    let origins = conversation.ids().map(|id| conversation.node(id).origin);
    let origins: Vec<_> = origins.map(|origin| (origin.is_none(), origin)).collect();
    assert!(origins.is_sorted(), "nodes have the order of their bytes");
    let mut ends: BTreeMap<SourceId, u64> = BTreeMap::new();
    for part in &conversation.parts {
        let end = ends.entry(part.place.source).or_default();
        assert_eq!(part.place.offset, *end, "parts have no gaps");
        *end += part.place.len;
        if let Holds::Nodes(nodes) = &part.holds {
            for id in nodes {
                let origin = conversation.node(*id).origin.expect("it lies in a file");
                let (inner, outer) = (origin.range(), part.place.range());
                assert!(outer.start <= inner.start && inner.end <= outer.end);
            }
        }
    }
    let lens = ends.keys().map(|id| conversation.source(*id).len);
    assert!(lens.eq(ends.values().copied()), "every byte has a part");
    let filled = conversation.sources.iter().filter(|source| source.len > 0);
    assert_eq!(filled.count(), ends.len());
}

/// Holds that contents are read as they are written: escaped in the promised length, and with the same characters.
fn check_contents(conversation: &Conversation) {
    for id in conversation.ids() {
        let content = conversation.content(id).expect("it is read");
        let stored = conversation.stored(id);
        for (text, read) in [
            (stored.text, &content.text),
            (stored.output, &content.output),
        ] {
            let Some(text) = text else { continue };
            let mut written = b"\"".to_vec();
            let result = conversation.write_escaped(text, &mut written);
            result.expect("it is written");
            assert_eq!(written.len() as u64, text.escaped_len() + 1, "{text:?}");
            written.push(b'"');
            let decoded: String = serde_json::from_slice(&written).expect("it is a string");
            assert_eq!(Some(decoded), *read);
        }
        if let Some(input) = stored.input {
            let mut written = Vec::new();
            let result = conversation.write_input(input, &mut written);
            result.expect("it is written");
            let read = content.input.as_ref().map(|input| input.text().as_bytes());
            // Their escapes may differ, so values are compared; those that are nested deeply are not parsed.
            if read != Some(&written[..]) {
                let parse = |bytes| serde_json::from_slice::<Value>(bytes).map_err(drop);
                assert_eq!(read.map(parse), Some(parse(&written)));
            }
        }
    }
}

/// Returns all texts of a conversation: those of messages and results, and inputs of calls.
pub(crate) fn all_texts(conversation: &Conversation) -> Vec<(NodeId, String)> {
    let texts = conversation.ids().flat_map(|id| {
        let content = conversation.content(id).expect("it is read");
        let input = content.input.map(|input| input.text().to_owned());
        let texts = [content.text, content.output, input];
        texts.into_iter().flatten().map(move |text| (id, text))
    });
    texts.collect()
}

/// Returns the live nodes, each as a short text.
pub(crate) fn live(conversation: &Conversation) -> Vec<String> {
    texts(conversation, &conversation.live)
}

/// Returns the nodes of all branches of a kind.
pub(crate) fn branch(conversation: &Conversation, kind: BranchKind) -> Vec<String> {
    let branches = conversation.branches.iter();
    let of_kind = branches.filter(|branch| branch.kind == kind);
    of_kind
        .flat_map(|branch| texts(conversation, &branch.nodes))
        .collect()
}

fn texts(conversation: &Conversation, ids: &[NodeId]) -> Vec<String> {
    ids.iter().map(|id| text(conversation, *id)).collect()
}

fn text(conversation: &Conversation, id: NodeId) -> String {
    let content = conversation.content(id).expect("it is read");
    let name = content.name.as_deref().unwrap_or_default();
    let text = content.text.as_deref().unwrap_or_default();
    let output = content.output.as_deref().unwrap_or_default();
    let images = "+image".repeat(content.images.len());
    match conversation.node(id).kind {
        NodeKind::User => format!("U {text}{images}"),
        NodeKind::Assistant => format!("A {text}"),
        NodeKind::Reasoning => format!("R {text}"),
        NodeKind::Summary => format!("S {text}"),
        NodeKind::Context => format!("C {text}"),
        NodeKind::ToolResult if content.is_error => format!("E {output}{images}"),
        NodeKind::ToolResult => format!("O {output}{images}"),
        NodeKind::ToolCall => {
            let input = content.input.as_ref().map(|input| input.text());
            format!("T {name} {}", input.unwrap_or_default())
        }
    }
}
