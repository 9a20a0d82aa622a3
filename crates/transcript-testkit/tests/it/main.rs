//! The slow model against the requests that the real client sent.

mod client_fixtures;
mod client_rules;
mod dependencies;
mod model;
mod oracle;
