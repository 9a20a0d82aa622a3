//! The style and the script of the page, and the policy that allows nothing else.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The style.
pub const STYLE: &str = include_str!("assets/page.css");
/// The script.
pub const SCRIPT: &str = include_str!("assets/page.js");

/// Returns the policy of a page that makes no request: its own style and script, and images inside of it.
pub(crate) fn policy() -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Returns the hash of a style or a script, as policies name it.
#[must_use]
pub fn hash(text: &str) -> String {
    let hash = BASE64_STANDARD.encode(hmac_sha256::Hash::hash(text.as_bytes()));
    format!("sha256-{hash}")
}
