//! Options of printing a conversation.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use transcript_format::object::Object;

use crate::escape::Escaping;
use crate::styles::Styles;

/// The detail in which tool calls are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tools {
    /// Whole inputs and results.
    Full,
    /// One line per call and per result; changes of files and task lists.
    #[default]
    Short,
    /// No tool calls.
    None,
}

/// A function that returns the cost of calls.
#[derive(Clone)]
pub struct CallPrice(Arc<PriceOf>);

type PriceOf = dyn Fn(&str, &Object<'_>) -> Option<u128> + Send + Sync;

impl CallPrice {
    /// `price` returns the cost of a call of a model with this `usage`, in billionths of a dollar; `None` if it is unknown.
    pub fn new(price: impl Fn(&str, &Object<'_>) -> Option<u128> + Send + Sync + 'static) -> Self {
        Self(Arc::new(price))
    }

    pub(crate) fn of(&self, model: &str, usage: &Object<'_>) -> Option<u128> {
        (self.0)(model, usage)
    }
}

impl fmt::Debug for CallPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallPrice")
    }
}

/// The properties of the page, and the parts of a conversation that are shown.
#[derive(Clone, Debug)]
#[must_use]
pub struct RenderOptions {
    coloured: bool,
    pub(crate) escaping: Escaping,
    pub(crate) width: usize,
    pub(crate) zone: TimeZone,
    home: Option<PathBuf>,
    pub(crate) thinking: bool,
    pub(crate) tools: Tools,
    pub(crate) agent_hint: &'static str,
    pub(crate) ids: bool,
    pub(crate) price: Option<CallPrice>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            coloured: false,
            escaping: Escaping::Visible,
            width: 80,
            zone: TimeZone::UTC,
            home: None,
            thinking: false,
            tools: Tools::Short,
            agent_hint: "--sidechains shows it",
            ids: false,
            price: None,
        }
    }
}

impl RenderOptions {
    /// No colours, 80 columns, times in UTC, no thinking, calls in short.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether colours are used.
    pub fn coloured(self, coloured: bool) -> Self {
        Self { coloured, ..self }
    }

    /// Sets the hint for the reader how to see a subagent that is not shown.
    pub fn agent_hint(self, agent_hint: &'static str) -> Self {
        Self { agent_hint, ..self }
    }

    /// Sets the escaping of text of a transcript.
    pub fn escaping(self, escaping: Escaping) -> Self {
        Self { escaping, ..self }
    }

    /// The width of the page, in columns.
    pub fn width(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// The zone of times.
    pub fn zone(self, zone: TimeZone) -> Self {
        Self { zone, ..self }
    }

    /// The home directory, which is printed as `~`.
    pub fn home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// Whether thinking is printed.
    pub fn thinking(self, thinking: bool) -> Self {
        Self { thinking, ..self }
    }

    /// Sets the detail in which tool calls are printed.
    pub fn tools(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    /// Whether line and id are printed above each entry of a replay.
    pub fn ids(self, ids: bool) -> Self {
        Self { ids, ..self }
    }

    /// Sets the prices of calls, for pages, which show the cost of each turn.
    pub fn price(self, price: CallPrice) -> Self {
        let price = Some(price);
        Self { price, ..self }
    }

    /// Returns the zone of times.
    #[must_use]
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns the styles.
    #[must_use]
    pub fn styles(&self) -> Styles {
        Styles::new(self.coloured, self.escaping)
    }

    /// Replaces the home directory at the start of a path with `~`.
    #[must_use]
    pub fn below_home(&self, path: &str) -> String {
        let home = self.home.as_ref();
        match home.and_then(|home| Path::new(path).strip_prefix(home).ok()) {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => Path::new("~").join(below).display().to_string(),
            None => path.to_owned(),
        }
    }
}
