//! The JSON schema of all operations, commands and records.
//!
//! `docs/operations.json` is [`document`], and the signatures for Python and TypeScript are made of it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::context::StoreOptions;
use crate::documents::ExportedDocument;
use crate::operation::Operation;
use crate::redact::RedactedText;
use crate::repair::UndoneRepair;
use crate::sdk_functions::{ForkedSession, SessionInfo};
use crate::sink::MessageRecord;
use crate::wire::{
    Answer, CommandLine, CostRecord, ForkRecord, HandOverRecord, ItemsRecord, MoveReport,
    RepairReport, ReplayRecord, ResumeRefusal, ResumeReport, SearchRecord, SessionRecord,
    TailRecord, TreeReport, VerifyRecord,
};

/// Makes the schema of one type.
type SchemaOf = fn(&mut SchemaGenerator) -> schemars::Schema;

/// Returns the types of the records of each operation.
const RECORDS: [(&str, &[SchemaOf]); 27] = [
    ("listSessions", &[of::<SessionInfo<'static>>]),
    ("getSessionInfo", &[of::<SessionInfo<'static>>]),
    ("getSessionMessages", &[of::<MessageRecord<'static>>]),
    ("listSubagents", &[of::<String>]),
    ("getSubagentMessages", &[of::<MessageRecord<'static>>]),
    ("renameSession", &[]),
    ("tagSession", &[]),
    ("deleteSession", &[]),
    ("forkSession", &[of::<ForkedSession<'static>>]),
    ("setArchived", &[]),
    ("listArchived", &[of::<SessionRecord<'static>>]),
    ("list", &[of::<SessionRecord<'static>>]),
    ("tree", &[of::<TreeReport>]),
    ("fork", &[of::<ForkRecord>]),
    ("handOver", &[of::<HandOverRecord>]),
    ("move", &[of::<MoveReport>]),
    ("entries", &[of::<ReplayRecord<'static>>]),
    ("items", &[of::<ItemsRecord>]),
    (
        "request",
        &[of::<ResumeReport<'static>>, of::<ResumeRefusal>],
    ),
    ("verify", &[of::<VerifyRecord>]),
    ("repair", &[of::<RepairReport>, of::<UndoneRepair<'static>>]),
    ("search", &[of::<SearchRecord<'static>>]),
    ("usage", &[of::<CostRecord<'static>>]),
    ("export", &[of::<ExportedDocument<'static>>]),
    ("redact", &[of::<RedactedText<'static>>]),
    ("follow", &[of::<TailRecord<'static>>]),
    ("watch", &[of::<TailRecord<'static>>]),
];

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

/// Returns the schema of all operations with their options and records, of the commands of an open session, and of failures.
///
/// `operations` has for each name its `description`, its `options`, the names of the `place` options that it has, and its
/// `records`: a record is one of these. `returns` is how many it has: `none`, `one`, `list` or `stream`. `commands` is the schema of a line of input of `append`, `answer` that of an answer.
#[must_use]
pub fn document() -> Value {
    let mut options = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    let mut records = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut operations = Map::new();
    for variant in variants(&of::<Operation>(&mut options), &mut options) {
        let name = variant["properties"]["function"]["const"].as_str();
        let name = name.unwrap_or_default().to_owned();
        let types = RECORDS.iter().find(|(operation, _)| *operation == name);
        let types = types.map_or(&[][..], |(_, types)| types);
        let types: Vec<_> = types.iter().map(|of| of(&mut records)).collect();
        operations.insert(
            name.clone(),
            json!({
                "description": variant["description"],
                "options": variant,
                "place": Operation::place_options(&name),
                "records": types,
                "returns": Operation::returns(&name),
            }),
        );
    }
    let place = of::<StoreOptions>(&mut options);
    let commands = of::<CommandLine<'static>>(&mut records);
    let answer = of::<Answer<'static>>(&mut records);
    let failure = of::<Failure>(&mut records);
    let mut definitions = options.take_definitions(true);
    definitions.extend(records.take_definitions(true));
    definitions.values_mut().for_each(remove_later_versions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Operations of transcript",
        "operations": operations,
        "place": place,
        "commands": commands,
        "answer": answer,
        "failure": failure,
        "$defs": definitions,
    })
}

/// Removes the variant for records of later versions, which allows anything.
fn remove_later_versions(schema: &mut Value) {
    if let Some(Value::Array(variants)) = schema.get_mut("anyOf") {
        let says_nothing = |variant: &Value| {
            variant
                .as_object()
                .is_some_and(|keys| keys.keys().all(|key| key == "description"))
        };
        variants.retain(|variant| !says_nothing(variant));
    }
}

/// Returns the schemas of the variants of an enum.
fn variants(schema: &schemars::Schema, generator: &mut SchemaGenerator) -> Vec<Value> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|reference| reference.rsplit('/').next());
    let definition = name.and_then(|name| generator.definitions().get(name));
    let variants = definition.and_then(|definition| definition["oneOf"].as_array());
    variants.cloned().unwrap_or_default()
}
