//! The script of live pages, and the policy of the pages of the server.

use transcript_page::assets::{self, STYLE, hash};

/// The script, which follows that of every page.
pub(crate) const SCRIPT: &str = include_str!("assets/live.js");

/// Returns the policy of a page that may ask this server for more.
pub(crate) fn policy() -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}' '{}'; img-src data:; connect-src 'self'; frame-src 'self'; \
         frame-ancestors 'self'; base-uri 'none'; form-action 'self'",
        hash(STYLE),
        hash(assets::SCRIPT),
        hash(SCRIPT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_names_nothing_outside() {
        assert!(SCRIPT.len() <= 10 << 10);
        assert!(!SCRIPT.contains("://") && !SCRIPT.contains("</script"));
    }
}
