//! What an earlier version of a session had and the newest one lacks: its agent cut it out of the file, or wrote another file in its place.
//!
//! Nodes are the same if their kinds, ids of calls and contents are. So nothing of a file that only grew is taken for lost, wherever
//! it lies now.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use compact_str::CompactString;

use crate::Error;
use crate::content::{Body, Image, ImageData, Input, NewContent};
use crate::conversation::{BranchKind, Conversation, Holds, NewNode, NodeId, Part};
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
            let mut node = NewNode::new(then.node(id).kind, then.held(id)?);
            let of = then.node(id);
            node.origin = of.origin.map(moved);
            node.record_id = of.record_id.cloned();
            node.time = of.time.cloned();
            node.model = of.model.map(|model| self.name(model));
            let own = self.add(node);
            if let Some(usage) = of.usage {
                *self.nodes.usage_mut(own) = *usage;
            }
            added.insert(id, own);
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
        let input = content.input.map(|input| match input {
            Input::Json(text) | Input::Text(text) => text,
        });
        for text in [content.text, input, content.output] {
            text.map(|text| self.text(text))
                .transpose()?
                .hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    /// Returns the content of a node in memory.
    fn held(&self, id: NodeId) -> Result<NewContent, Error> {
        let stored = self.stored(id);
        let held = |text: &Text| Ok::<_, Error>(Text::held(&self.text(text)?));
        let body = match (stored.text, stored.input, stored.output) {
            (Some(text), ..) => Body::Text(held(text)?),
            (_, Some(Input::Json(text)), _) => Body::Input(Input::Json(held(text)?)),
            (_, Some(Input::Text(text)), _) => Body::Input(Input::Text(held(text)?)),
            (.., Some(text)) => Body::Output(held(text)?),
            (None, None, None) => Body::None,
        };
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
        Ok(NewContent {
            body,
            name: stored.name.map(CompactString::from),
            call_id: stored.call_id.map(CompactString::from),
            is_error: stored.is_error,
            images: images?,
        })
    }
}
