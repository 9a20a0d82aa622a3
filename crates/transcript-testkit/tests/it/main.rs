//! The slow model against the requests that the real client sent.

mod model;
mod oracle;
