//! What an earlier version of a session had and the newest one lacks: its agent cut it out of the file, or wrote another file in its place.
//!
//! Nodes are the same if their kinds, ids of calls and contents are. So nothing of a file that only grew is taken for lost, wherever
//! it lies now.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::Error;
use crate::content::{Image, ImageData, Input, StoredContent};
use crate::conversation::{BranchKind, Conversation, Holds, Node, NodeId, Part};
use crate::place::{Place, SourceId};
use crate::text::Text;

/// The name of records of an earlier version that the newest one has as well.
const KNOWN_RECORD: &str = "record of an earlier version";

/// A hash of the kind and the content of a node.
type Likeness = u64;

impl Conversation {
    /// Adds the nodes that an earlier version of the session had and this one lacks, as a branch. `version` distinguishes its files
    /// from those of other versions. Of nodes that are made for a request nothing is added.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub(crate) fn with_earlier(mut self, then: &Self, version: &str) -> Result<Self, Error> {
        let mut counts = HashMap::<Likeness, u32>::new();
        for id in self.ids() {
            *counts.entry(self.likeness(id)?).or_default() += 1;
        }
        let mut lost = Vec::new();
        for id in then.ids().filter(|id| then.node(*id).origin.is_some()) {
            match counts.get_mut(&then.likeness(id)?) {
                Some(count) if *count > 0 => *count -= 1,
                _ => lost.push(id),
            }
        }
        if lost.is_empty() {
            return Ok(self);
        }
        let first = self.sources.len();
        for source in &then.sources {
            let id = self.add_source(source.path.clone(), None);
            let own = &mut self.sources[id.index()];
            own.table.clone_from(&source.table);
            own.len = source.len;
            own.version = Some(version.into());
        }
        let moved = |place: Place| Place {
            source: SourceId::at(first + place.source.index()),
            ..place
        };
        let mut added = HashMap::<NodeId, NodeId>::new();
        for id in lost {
            let mut node = Node::new(then.node(id).kind, then.held(id)?);
            let of = then.node(id);
            node.origin = of.origin.map(moved);
            node.record_id.clone_from(&of.record_id);
            node.time.clone_from(&of.time);
            node.model = of.model.as_deref().map(|model| self.name(model));
            node.usage.clone_from(&of.usage);
            added.insert(id, self.add(node));
        }
        for part in &then.parts {
            let holds = match &part.holds {
                Holds::Nodes(ids) => {
                    let own = ids.iter().filter_map(|id| added.get(id).copied());
                    let own: Vec<NodeId> = own.collect();
                    (!own.is_empty()).then(|| Holds::Nodes(own.into()))
                }
                Holds::Damaged => Some(Holds::Damaged),
                Holds::Metadata(_) | Holds::Raw(_) => None,
            };
            self.parts.push(Part {
                place: moved(part.place),
                holds: holds.unwrap_or(Holds::Raw(Cow::Borrowed(KNOWN_RECORD))),
            });
        }
        let mut nodes: Vec<NodeId> = added.into_values().collect();
        nodes.sort_unstable();
        self.branch(BranchKind::Deleted, nodes);
        Ok(self.finish())
    }

    fn likeness(&self, id: NodeId) -> Result<Likeness, Error> {
        let node = self.node(id);
        let content = self.stored(id);
        let mut hasher = DefaultHasher::new();
        node.kind.hash(&mut hasher);
        content.call_id.hash(&mut hasher);
        content.name.hash(&mut hasher);
        content.is_error.hash(&mut hasher);
        content.images.len().hash(&mut hasher);
        let input = content.input.as_ref().map(|input| match input {
            Input::Json(text) | Input::Text(text) => text,
        });
        for text in [content.text.as_ref(), input, content.output.as_ref()] {
            text.map(|text| self.text(text))
                .transpose()?
                .hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    /// Returns the content of a node in memory.
    fn held(&self, id: NodeId) -> Result<StoredContent, Error> {
        let stored = self.stored(id);
        let held = |text: &Text| Ok::<_, Error>(Text::held(&self.text(text)?));
        let optional = |text: &Option<Text>| text.as_ref().map(held).transpose();
        let input = stored.input.as_ref().map(|input| {
            Ok::<_, Error>(match input {
                Input::Json(text) => Input::Json(held(text)?),
                Input::Text(text) => Input::Text(held(text)?),
            })
        });
        let image = |image: &Image| {
            Ok::<_, Error>(Image {
                media_type: image.media_type.clone(),
                data: match &image.data {
                    ImageData::Base64(text) => ImageData::Base64(held(text)?),
                    ImageData::Url(text) => ImageData::Url(held(text)?),
                    ImageData::Path(text) => ImageData::Path(held(text)?),
                    ImageData::Unknown => ImageData::Unknown,
                },
            })
        };
        let images: Result<Vec<Image>, Error> = stored.images.iter().map(image).collect();
        Ok(StoredContent {
            text: optional(&stored.text)?,
            name: stored.name.clone(),
            call_id: stored.call_id.clone(),
            input: input.transpose()?,
            output: optional(&stored.output)?,
            is_error: stored.is_error,
            images: images?.into(),
        })
    }
}
