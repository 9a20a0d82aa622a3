//! The slow model against the requests that the real client sent, and the search against its model.

mod client_fixtures;
mod client_rules;
mod dependencies;
mod disks;
mod model;
mod model_today;
mod module_cycles;
mod oracle;
mod search;
