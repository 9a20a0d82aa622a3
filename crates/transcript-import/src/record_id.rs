//! Ids of records, as they are written, in little memory.

use std::sync::Arc;

use compact_str::CompactString;
use uuid::Uuid;

/// The id of a record. Most agents write UUIDs, whose bits take less than half of the memory of their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordId(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// A UUID in the usual form: lower case, with hyphens.
    Uuid(Uuid),
    /// Short enough to take no memory besides itself.
    Short(CompactString),
    /// One that all nodes of its record can share.
    Long(Arc<str>),
}

impl From<&str> for RecordId {
    fn from(id: &str) -> Self {
        let uuid = Uuid::try_parse(id).ok();
        let mut buffer = Uuid::encode_buffer();
        let is_usual = |uuid: &Uuid| uuid.hyphenated().encode_lower(&mut buffer) == id;
        Self(match uuid.filter(is_usual) {
            Some(uuid) => Form::Uuid(uuid),
            None if id.len() <= size_of::<CompactString>() => Form::Short(id.into()),
            None => Form::Long(id.into()),
        })
    }
}

impl From<&Arc<str>> for RecordId {
    fn from(id: &Arc<str>) -> Self {
        match Self::from(&**id) {
            Self(Form::Long(_)) => Self(Form::Long(Arc::clone(id))),
            short => short,
        }
    }
}

impl RecordId {
    /// Returns it as it is written.
    #[must_use]
    pub fn text(&self) -> CompactString {
        match &self.0 {
            Form::Uuid(uuid) => {
                CompactString::from(&*uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
            }
            Form::Short(text) => text.clone(),
            Form::Long(text) => CompactString::from(&**text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_as_it_was_written() {
        let usual = "01a21092-ec9d-70dc-b810-00000000002a";
        let simple = usual.replace('-', "");
        let upper = usual.to_uppercase();
        for id in [
            "",
            "a",
            usual,
            &simple,
            &upper,
            "msg_00000000000000000000000001",
        ] {
            assert_eq!(RecordId::from(id).text(), id);
        }
        assert_ne!(RecordId::from(usual), RecordId::from(&*upper));
    }

    #[test]
    fn nodes_of_a_record_share_a_long_id() {
        let id: Arc<str> = "msg_00000000000000000000000001".into();
        let of_nodes = [RecordId::from(&id), RecordId::from(&id)];
        assert_eq!(Arc::strong_count(&id), 3);
        assert!(of_nodes.iter().all(|of_node| of_node.text() == *id));
    }

    /// Memory grows with the number of records, so its size counts.
    #[test]
    fn an_id_is_small() {
        assert_eq!(size_of::<Option<RecordId>>(), 24);
    }
}
