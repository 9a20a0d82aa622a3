//! The mask that replaces a secret: its kind, in a text that no format takes for markup, and whose length reveals nothing about the secret.

/// Returns the mask for a secret of this kind; in quotes if it replaces a number of JSON.
#[must_use]
pub fn mask(kind: &str, is_bare: bool) -> String {
    if is_bare {
        format!("\"[redacted: {kind}]\"")
    } else {
        format!("[redacted: {kind}]")
    }
}
