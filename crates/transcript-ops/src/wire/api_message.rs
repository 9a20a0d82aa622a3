//! The schema of a message of the API, which records have verbatim.

use std::borrow::Cow;

use schemars::{JsonSchema, SchemaGenerator};

/// A message of the API. What its blocks have is up to the API.
pub(crate) enum ApiMessage {}

impl JsonSchema for ApiMessage {
    fn schema_name() -> Cow<'static, str> {
        "ApiMessage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A message of the API. What its blocks have is up to the API.",
            "type": "object",
            "properties": {
                "role": { "description": "`user`, `assistant` or `system`.", "type": "string" },
                "content": {
                    "description": "A text, or blocks, each with its `type`.",
                    "anyOf": [
                        { "type": "string" },
                        { "type": "array", "items": { "type": "object", "additionalProperties": true } },
                    ],
                },
            },
            "required": ["role", "content"],
        })
    }
}
