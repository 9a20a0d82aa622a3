//! The slow model against the requests that the real client sent, the search against its model, and the engine against the
//! table of kinds.

mod client_fixtures;
mod client_rules;
mod dependencies;
mod disks;
mod kinds;
mod model;
mod model_today;
mod module_cycles;
mod oracle;
mod search;
