//! The slow model against the requests that the real client sent.

mod dependencies;
mod model;
mod oracle;
