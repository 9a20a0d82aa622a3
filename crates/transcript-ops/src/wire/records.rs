//! Records that a field `kind` distinguishes.

use serde::Deserialize;
use serde_json::value::RawValue;
use transcript_format::object::Str;

/// Defines an enum of records with their kinds.
///
/// serde's own tagged enums cannot contain verbatim values: to find the tag they copy all values
/// into a form without them. So a record is first read for its `kind`, then as its type.
macro_rules! records {
    (
        $(#[doc = $doc:literal])*
        pub enum $Name:ident {
            $($(#[doc = $variant_doc:literal])* $Variant:ident($Record:ty) = $kind:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind")]
        #[non_exhaustive]
        pub enum $Name<'a> {
            $($(#[doc = $variant_doc])* #[serde(rename = $kind)] $Variant($Record),)*
            /// A record of a later version.
            #[serde(untagged)]
            Unknown(Json<'a>),
        }

        impl<'de> Deserialize<'de> for $Name<'_> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let record = Box::<RawValue>::deserialize(deserializer)?;
                let of_kind = match crate::wire::records::kind(&record).map_err(Error::custom)?.as_ref() {
                    $($kind => serde_json::from_str(record.get()).map(Self::$Variant),)*
                    _ => serde_json::from_str(record.get()).map(Self::Unknown),
                };
                of_kind.map_err(Error::custom)
            }
        }
    };
}
pub(super) use records;

pub(super) fn kind(record: &RawValue) -> serde_json::Result<Str<'_>> {
    #[derive(Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    struct Tagged<'a> {
        #[serde(borrow)]
        kind: Str<'a>,
    }
    serde_json::from_str(record.get()).map(|Tagged { kind }| kind)
}

#[cfg(test)]
mod tests {
    use crate::wire::{ReplayRecord, text};

    #[test]
    fn a_record_of_a_later_version_is_kept_and_one_without_a_kind_is_an_error() {
        let line = r#"{"kind":"later","n":1e400}"#;
        let record: ReplayRecord<'_> = serde_json::from_str(line).unwrap();
        assert!(matches!(record, ReplayRecord::Unknown(_)));
        assert_eq!(text(&record).unwrap(), line);
        let line = r#"{"kind":"end","findings":1,"decisions":2,"later":3}"#;
        let record: ReplayRecord<'_> = serde_json::from_str(line).unwrap();
        assert!(matches!(record, ReplayRecord::End(end) if end.decisions == 2));
        assert!(serde_json::from_str::<ReplayRecord<'_>>("{}").is_err());
    }
}
