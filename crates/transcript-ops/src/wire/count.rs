//! The command `count`.

use std::time::Duration;

use serde::Serialize;
use transcript_catalog::usage::CallPrices;
use transcript_format::object::Object;
use transcript_session::Counters;

use super::command_error::CommandError;
use super::text::Json;

/// The cost of a turn: the command `count`. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CountCommand<'a> {
    /// A message of the API, with its `model` and `usage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Json<'a>>,
    /// The duration of the API call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_ms: Option<f64>,
    /// The duration of requests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_api_ms: Option<f64>,
    /// The duration of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_ms: Option<f64>,
    /// The number of lines that were added to files.
    pub lines_added: u64,
    /// The number of lines that were removed from files.
    pub lines_removed: u64,
}

impl<'a> CountCommand<'a> {
    pub(super) const FIELDS: [&'static str; 6] = [
        "reply",
        "apiMs",
        "failedApiMs",
        "toolMs",
        "linesAdded",
        "linesRemoved",
    ];

    pub(super) fn read(object: &Object<'a>) -> Result<Self, CommandError> {
        let given = |name: &str| object.get(name).filter(|value| !value.is_null());
        let lines = |name: &str| match given(name) {
            None => Ok(0),
            Some(value) => value.u64().ok_or_else(|| {
                CommandError::bad_command(format!("`{name}` must be a whole number, 0 or more"))
            }),
        };
        // Clocks measure fractions of a millisecond.
        let millis = |name: &str| {
            let Some(value) = given(name) else {
                return Ok(None);
            };
            let wrong = || format!("`{name}` must be a number of milliseconds, 0 or more");
            let millis = value.f64().filter(|millis| duration(*millis).is_some());
            millis
                .map(Some)
                .ok_or_else(|| CommandError::bad_command(wrong()))
        };
        let count = Self {
            reply: given("reply").map(Json::from),
            api_ms: millis("apiMs")?,
            failed_api_ms: millis("failedApiMs")?,
            tool_ms: millis("toolMs")?,
            lines_added: lines("linesAdded")?,
            lines_removed: lines("linesRemoved")?,
        };
        match count.reply.as_ref().map(|reply| Reply::of(reply.text())) {
            Some(None) => Err(CommandError::bad_command(
                "`reply` must be a message of the API, with its `model` and `usage`",
            )),
            _ => Ok(count),
        }
    }

    /// Adds it to the counters of a session.
    pub(crate) fn add_to(&self, counters: &mut Counters, prices: &CallPrices) {
        let time = |millis: Option<f64>| millis.and_then(duration);
        let reply = self.reply.as_ref();
        if let Some(reply) = reply.and_then(|reply| Reply::of(reply.text())) {
            let cost = prices.cost(&reply.model, &reply.usage);
            let took = time(self.api_ms).unwrap_or_default();
            counters.add_reply(&reply.model, &reply.usage, cost, took);
        }
        if let Some(took) = time(self.failed_api_ms) {
            counters.add_failed_request(took);
        }
        if let Some(took) = time(self.tool_ms) {
            counters.add_tool(took);
        }
        counters.add_lines(self.lines_added, self.lines_removed);
    }
}

fn duration(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// The counted fields of a reply.
struct Reply<'r> {
    model: String,
    usage: Object<'r>,
}

impl<'r> Reply<'r> {
    fn of(text: &'r str) -> Option<Self> {
        let message = Object::parse(text).ok()?;
        Some(Self {
            model: message.str("model")?.into_owned(),
            usage: message.object("usage")?,
        })
    }
}
