//! Reads the parts of values: by the scan, and where that gives up, by `serde_json`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::{JsonKind, MAX_PARTS, Object, ParseObjectError, Raw, Str};
use crate::scan::parts;
use crate::work;

impl<'a> Raw<'a> {
    /// Wraps `text`, which must be one JSON value, without the white space around it.
    ///
    /// # Errors
    /// [`ParseObjectError::Syntax`] when `text` is not exactly one JSON value.
    pub fn parse(text: &'a str) -> Result<Self, ParseObjectError> {
        work::add(text.len());
        if let Some(value) = parts::value(text) {
            return Ok(value);
        }
        serde_json::from_str(text).map_err(|error| ParseObjectError::syntax(&error))
    }

    /// Returns the elements of the array; `None` when there are more than [`MAX_PARTS`].
    #[must_use]
    pub fn array(self) -> Option<Vec<Raw<'a>>> {
        if self.kind() != JsonKind::Array {
            return None;
        }
        work::add(self.text().len());
        if let Some(elements) = parts::elements(self.text()) {
            return Some(elements);
        }
        self.array_slowly()
    }

    /// Reads the elements if the scan does not: those that are nested deeper.
    pub(crate) fn array_slowly(self) -> Option<Vec<Raw<'a>>> {
        if self.kind() != JsonKind::Array {
            return None;
        }
        // No recursion limit applies: the elements are skipped, and skipping is iterative.
        let Elements(elements) = serde_json::from_str(self.text()).ok()?;
        Some(elements)
    }

    /// Returns the object; `None` when it has more than [`MAX_PARTS`] members.
    #[must_use]
    pub fn object(self) -> Option<Object<'a>> {
        if self.kind() != JsonKind::Object {
            return None;
        }
        work::add(self.text().len());
        if let Some(object) = parts::object(self.text()) {
            return Some(object);
        }
        let Members(members) = serde_json::from_str(self.text()).ok()?;
        Some(Object { raw: self, members })
    }
}

impl<'a> Object<'a> {
    /// Reads the members of `text`, which must be one JSON object; their values are not parsed.
    ///
    /// # Errors
    /// [`ParseObjectError`] when `text` is not JSON or another kind of value.
    pub fn parse(text: &'a str) -> Result<Self, ParseObjectError> {
        work::add(text.len());
        if let Some(object) = parts::object(text) {
            return Ok(object);
        }
        Self::parse_slowly(text)
    }

    /// Parses what the scan does not read: objects that are nested deeper, and everything that is
    /// not one object.
    pub(crate) fn parse_slowly(text: &'a str) -> Result<Self, ParseObjectError> {
        match serde_json::from_str(text) {
            Ok(Members(members)) => {
                let raw = Raw(text.trim_matches([' ', '\t', '\r', '\n']));
                Ok(Self { raw, members })
            }
            // A value of another kind is also a syntax error for `Members`: find out which it is.
            Err(error) => Err(match Raw::parse(text)?.kind() {
                // The text is an object, and the visitor rejected its size.
                JsonKind::Object if error.is_data() => ParseObjectError::TooMany,
                JsonKind::Object => ParseObjectError::syntax(&error),
                kind => ParseObjectError::Kind(kind),
            }),
        }
    }
}

struct Members<'a>(Vec<(Str<'a>, Raw<'a>)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                // Keys are read raw as well: they may also contain lone surrogates.
                while let Some((key, value)) = map.next_entry::<Raw<'de>, Raw<'de>>()? {
                    if members.len() == MAX_PARTS {
                        return Err(A::Error::custom("too many members"));
                    }
                    members.push((key.str().unwrap_or_default(), value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

struct Elements<'a>(Vec<Raw<'a>>);

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementsVisitor;

        impl<'de> Visitor<'de> for ElementsVisitor {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    if elements.len() == MAX_PARTS {
                        return Err(A::Error::custom("too many elements"));
                    }
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }

        deserializer.deserialize_seq(ElementsVisitor)
    }
}
