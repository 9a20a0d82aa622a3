//! The page around the pieces.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets::{SCRIPT, STYLE};

/// The head of the page, above its pieces. Control characters in its texts are escaped already.
#[derive(Debug)]
pub struct Head<'a> {
    /// The title.
    pub title: &'a str,
    /// Facts about the session, one item each.
    pub facts: &'a [String],
    /// The policy that says what the page may load.
    pub policy: &'a str,
    /// The message for browsers without scripts; `None` if the page shows everything without them.
    pub no_script: Option<&'a str>,
    /// Links above the title.
    pub menu: Option<Markup>,
    /// Whether the page grows with its session. The policy is then a header of the answer.
    pub is_live: bool,
}

/// The marker of the pieces in the result of [`Head::start`]. Text of a transcript cannot contain it, as its brackets are
/// escaped.
const PIECES: &str = "<!--pieces-->";

impl Head<'_> {
    /// Returns the part before the pieces.
    #[must_use]
    pub fn start(&self) -> String {
        let whole = self.markup().into_string();
        let (start, _) = whole.split_once(PIECES).unwrap_or((&whole, ""));
        start.to_owned()
    }

    fn markup(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    @if !self.is_live { meta http-equiv="Content-Security-Policy" content=(self.policy); }
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#conversation" { "Skip to the conversation" }
                    header {
                        @if let Some(menu) = &self.menu { (menu) }
                        h1 { (self.title) }
                        ul.facts { @for fact in self.facts { li { (fact) } } }
                        @if let Some(text) = self.no_script {
                            noscript { p.gap { (text) } }
                        }
                    }
                    (tools(self.is_live))
                    main #conversation tabindex="-1" { (PreEscaped(PIECES)) }
                }
            }
        }
    }
}

/// The controls, which the script shows.
fn tools(is_live: bool) -> Markup {
    html! {
        div.tools role="search" aria-label="This session" hidden {
            input #find type="search" placeholder="Find" aria-label="Find in the session" autocomplete="off" spellcheck="false";
            span #found role="status" aria-live="polite" {}
            button #previous type="button" aria-label="Previous match" { "↑" }
            button #next type="button" aria-label="Next match" { "↓" }
            button #unfold type="button" aria-pressed="false" { "Unfold all" }
            select #show aria-label="What is shown" {
                option value="" { "Everything" }
                option value="talk" { "Prompts and answers" }
                option value="prompts" { "Prompts" }
            }
            @if is_live { span #live role="status" { "connecting" } }
        }
    }
}

/// Returns the part after the pieces.
pub(crate) fn end(prompts: &str, count: &str) -> String {
    end_with("Prompts", &format!("<h2>{count}</h2>\n"), prompts)
}

/// Returns the part after the pieces of a live page: `side` is a list of links in place of prompts.
#[must_use]
pub fn end_live(side: &str) -> String {
    end_with("Subagents", "", side)
}

fn end_with(label: &str, head: &str, list: &str) -> String {
    let mut nav = String::new();
    if !list.is_empty() {
        nav = format!("<nav aria-label=\"{label}\" tabindex=\"0\">{head}{list}</nav>\n");
    }
    format!("</main>\n{nav}<script>{SCRIPT}</script>\n")
}

/// The last lines.
pub const LAST: &str = "</body></html>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets;

    #[test]
    fn a_title_cannot_leave_its_place() {
        let text =
            "</title></style><script>alert(1)</script><!--pieces--><img src=x onerror=alert(1)>\"'";
        let head = Head {
            title: text,
            facts: &[text.to_owned()],
            policy: &assets::policy(),
            no_script: Some(text),
            menu: None,
            is_live: false,
        };
        let start = head.start();
        assert_eq!(start.matches("<script").count(), 0);
        assert_eq!(start.matches("<img").count(), 0);
        assert_eq!(start.matches("</style>").count(), 1);
        assert_eq!(start.matches("</title>").count(), 1);
        assert!(start.ends_with("<main id=\"conversation\" tabindex=\"-1\">"));
        assert!(start.contains("content=\"default-src 'none'; style-src 'sha256-"));
    }

    #[test]
    fn the_assets_are_small_and_name_nothing_outside() {
        assert!(STYLE.len() + SCRIPT.len() <= 30 << 10);
        for asset in [STYLE, SCRIPT] {
            assert!(
                !asset.contains("://") && !asset.contains("@import") && !asset.contains("url(")
            );
            assert!(!asset.contains("</script") && !asset.contains("</style"));
        }
    }
}
