//! The nodes of a conversation in little memory, which grows with their number: names that many have are kept once, and what few
//! nodes have is kept beside them.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;

use compact_str::CompactString;

use crate::content::{Body, Image, Input, NewContent, StoredContent};
use crate::node::{Node, NodeKind, Usage};
use crate::node_ids::NodeId;
use crate::place::Place;
use crate::record_id::RecordId;
use crate::text::Text;
use crate::time::Time;

/// The number of a name in [`Nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(NonZeroU32);

/// The number of tokens in [`Nodes`].
#[derive(Clone, Copy, Debug)]
struct UsageId(NonZeroU32);

/// All nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    all: Vec<Kept>,
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Name>,
    usages: Vec<Usage>,
    made_of: HashMap<NodeId, Box<[NodeId]>>,
    images: HashMap<NodeId, Box<[Image]>>,
}

/// A node before it is added.
#[derive(Debug)]
pub(crate) struct NewNode {
    pub(crate) kind: NodeKind,
    pub(crate) origin: Option<Place>,
    pub(crate) record_id: Option<RecordId>,
    pub(crate) time: Option<Time>,
    pub(crate) model: Option<Name>,
    pub(crate) made_of: Vec<NodeId>,
    pub(crate) content: NewContent,
}

/// A node as it is kept.
#[derive(Clone, Debug)]
struct Kept {
    origin: Option<Place>,
    record_id: Option<RecordId>,
    text: Option<Text>,
    call_id: Option<CompactString>,
    time: Option<Time>,
    model: Option<Name>,
    name: Option<Name>,
    usage: Option<UsageId>,
    kind: NodeKind,
    role: TextRole,
    is_error: bool,
}

/// What the text of a node is.
#[derive(Clone, Copy, Debug)]
enum TextRole {
    Text,
    JsonInput,
    TextInput,
    Output,
}

impl NewNode {
    pub(crate) fn new(kind: NodeKind, content: NewContent) -> Self {
        Self {
            kind,
            origin: None,
            record_id: None,
            time: None,
            model: None,
            made_of: Vec::new(),
            content,
        }
    }
}

impl Kept {
    fn of(node: NewNode, name: Option<Name>) -> Self {
        let (role, text) = match node.content.body {
            Body::None => (TextRole::Text, None),
            Body::Text(text) => (TextRole::Text, Some(text)),
            Body::Input(Input::Json(text)) => (TextRole::JsonInput, Some(text)),
            Body::Input(Input::Text(text)) => (TextRole::TextInput, Some(text)),
            Body::Output(text) => (TextRole::Output, Some(text)),
        };
        Self {
            origin: node.origin,
            record_id: node.record_id,
            text,
            call_id: node.content.call_id,
            time: node.time,
            model: node.model,
            name,
            usage: None,
            kind: node.kind,
            role,
            is_error: node.content.is_error,
        }
    }
}

impl Nodes {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn add(&mut self, node: NewNode) -> NodeId {
        let mut node = node;
        let id = NodeId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let name = node.content.name.take();
        let name = name.map(|name| self.name(&name));
        if !node.made_of.is_empty() {
            let made_of = mem::take(&mut node.made_of);
            self.made_of.insert(id, made_of.into());
        }
        if !node.content.images.is_empty() {
            let images = mem::take(&mut node.content.images);
            self.images.insert(id, images.into());
        }
        self.all.push(Kept::of(node, name));
        id
    }

    pub(crate) fn node(&self, id: NodeId) -> Node<'_> {
        let node = &self.all[id.index()];
        Node {
            kind: node.kind,
            origin: node.origin,
            made_of: self.made_of(id),
            record_id: node.record_id.as_ref(),
            time: node.time.as_ref(),
            model: node.model.map(|name| self.named(name)),
            usage: node.usage.map(|usage| &self.usages[usage.index()]),
        }
    }

    pub(crate) fn content(&self, id: NodeId) -> StoredContent<'_> {
        let node = &self.all[id.index()];
        let text = node.text.as_ref();
        let of_role = |is_role: bool| text.filter(|_| is_role);
        StoredContent {
            text: of_role(matches!(node.role, TextRole::Text)),
            name: node.name.map(|name| self.named(name)),
            call_id: node.call_id.as_deref(),
            input: match node.role {
                TextRole::JsonInput => text.map(Input::Json),
                TextRole::TextInput => text.map(Input::Text),
                TextRole::Text | TextRole::Output => None,
            },
            output: of_role(matches!(node.role, TextRole::Output)),
            is_error: node.is_error,
            images: self
                .images
                .get(&id)
                .map(|images| &**images)
                .unwrap_or_default(),
        }
    }

    /// Returns the nodes that a made node stands for.
    fn made_of(&self, id: NodeId) -> &[NodeId] {
        // Most conversations have none.
        if self.made_of.is_empty() {
            return &[];
        }
        self.made_of.get(&id).map(|ids| &**ids).unwrap_or_default()
    }

    /// Returns the number of a name.
    pub(crate) fn name(&mut self, name: &str) -> Name {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let shared: Arc<str> = name.into();
        self.names.push(shared.clone());
        let number = Name(number_of(self.names.len()));
        self.numbers.insert(shared, number);
        number
    }

    /// Returns the name with a number.
    pub(crate) fn named(&self, name: Name) -> &str {
        &self.names[name.0.get() as usize - 1]
    }

    pub(crate) fn set_kind(&mut self, id: NodeId, kind: NodeKind) {
        self.all[id.index()].kind = kind;
    }

    pub(crate) fn set_model(&mut self, id: NodeId, model: Option<Name>) {
        self.all[id.index()].model = model;
    }

    /// Makes a node name the same call as another one.
    pub(crate) fn set_call_of(&mut self, id: NodeId, other: NodeId) {
        let (name, call_id) = {
            let other = &self.all[other.index()];
            (other.name, other.call_id.clone())
        };
        let node = &mut self.all[id.index()];
        node.name = name;
        node.call_id = call_id;
    }

    /// Returns the tokens of a node, to be changed; none at first.
    pub(crate) fn usage_mut(&mut self, id: NodeId) -> &mut Usage {
        let usages = &mut self.usages;
        let usage = self.all[id.index()].usage.get_or_insert_with(|| {
            usages.push(Usage::default());
            UsageId(number_of(usages.len()))
        });
        &mut usages[usage.index()]
    }

    /// Returns the number of nodes at the start of which `is_before` holds, all of which come before the others.
    pub(crate) fn count_before(&self, is_before: impl Fn(Option<Place>) -> bool) -> usize {
        self.all.partition_point(|node| is_before(node.origin))
    }

    /// Puts the nodes into the order of their bytes. Returns the new ids by the old ones; `None` if nothing changed.
    pub(crate) fn sort(&mut self) -> Option<Vec<NodeId>> {
        let key = |node: &Kept| (node.origin.is_none(), node.origin);
        if self.all.is_sorted_by_key(key) {
            return None;
        }
        let mut order: Vec<u32> = (0..).take(self.all.len()).collect();
        order.sort_by_key(|at| key(&self.all[*at as usize]));
        let mut new = vec![NodeId(0); order.len()];
        for (number, at) in (0..).zip(&order) {
            new[*at as usize] = NodeId(number);
        }
        let mut places = new.clone();
        for at in 0..places.len() {
            while places[at].index() != at {
                let place = places[at].index();
                self.all.swap(at, place);
                places.swap(at, place);
            }
        }
        let made_of = mem::take(&mut self.made_of).into_iter();
        let made_of = made_of.map(|(id, mut ids)| {
            ids.iter_mut().for_each(|id| *id = new[id.index()]);
            (new[id.index()], ids)
        });
        self.made_of = made_of.collect();
        let images = mem::take(&mut self.images).into_iter();
        self.images = images
            .map(|(id, images)| (new[id.index()], images))
            .collect();
        Some(new)
    }
}

impl UsageId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

fn number_of(len: usize) -> NonZeroU32 {
    let number = u32::try_from(len).ok().and_then(NonZeroU32::new);
    number.unwrap_or(NonZeroU32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ImageData;
    use crate::place::SourceId;

    #[test]
    fn what_stands_beside_nodes_follows_them() {
        let mut nodes = Nodes::default();
        let added: Vec<NodeId> = [Some(3), None, Some(1), Some(2)]
            .into_iter()
            .map(|offset| {
                let image = Image {
                    media_type: offset.map(|offset: u64| offset.to_string().into()),
                    data: ImageData::Unknown,
                };
                let content = NewContent {
                    images: vec![image],
                    ..NewContent::text(Text::held(&format!("{offset:?}")))
                };
                let mut node = NewNode::new(NodeKind::User, content);
                node.origin = offset.map(|offset| Place {
                    source: SourceId::at(0),
                    offset,
                    len: 1,
                });
                node.made_of = offset.is_none().then_some(NodeId(0)).into_iter().collect();
                let id = nodes.add(node);
                nodes.usage_mut(id).input = offset.unwrap_or_default();
                id
            })
            .collect();
        let new = nodes.sort().expect("they were not in order");
        let made = nodes.node(new[added[1].index()]);
        assert_eq!((made.origin, made.made_of), (None, &[NodeId(2)][..]));
        for (number, offset) in (0..3).zip(1..) {
            let (node, content) = (nodes.node(NodeId(number)), nodes.content(NodeId(number)));
            assert_eq!(node.origin.map(|origin| origin.offset), Some(offset));
            assert_eq!(node.usage.map(|usage| usage.input), Some(offset));
            let media_type = content.images[0].media_type.as_deref();
            assert_eq!(media_type, Some(&*offset.to_string()));
            assert_eq!(
                content.text,
                Some(&Text::held(&format!("{:?}", Some(offset))))
            );
        }
        assert_eq!(nodes.sort(), None);
    }

    /// Memory grows with the number of nodes, so their size counts.
    #[test]
    fn a_node_is_small() {
        assert_eq!(size_of::<Kept>(), 128);
    }
}
