//! What of a user line a person said: clients wrap commands and what they print in tags.

use transcript_resume::texts;

/// The text of a user line, by who said it.
#[derive(Debug, PartialEq)]
pub(crate) enum Spoken<'t> {
    /// What a person wrote.
    Prompt(&'t str),
    /// A command to the client, as it was typed.
    Command(String),
    /// What the client printed or told the model.
    Client(&'t str),
    /// No text, or a fixed one that a client wrote in place of one.
    Nothing,
}

impl<'t> Spoken<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        if text.trim().is_empty() || texts::is_synthetic(text) {
            return Self::Nothing;
        }
        if let Some(command) = tag(text, "command-name") {
            let arguments = tag(text, "command-args").unwrap_or_default();
            return Self::Command(format!("{command} {arguments}").trim().to_owned());
        }
        if let Some(command) = tag(text, "bash-input") {
            return Self::Command(format!("! {command}"));
        }
        const PRINTED: [&str; 4] = [
            "local-command-stdout",
            "local-command-stderr",
            "bash-stdout",
            "bash-stderr",
        ];
        const TOLD: [&str; 2] = ["<local-command-", "<system-reminder>"];
        let start = text.trim_start();
        let printed = PRINTED.iter().find(|name| {
            let rest = start.strip_prefix('<');
            rest.is_some_and(|rest| rest.starts_with(*name))
        });
        if let Some(name) = printed {
            return Self::Client(tag(text, name).unwrap_or(text));
        }
        if start.starts_with("<task-notification>") {
            return Self::Client(tag(text, "summary").unwrap_or(text));
        }
        if TOLD.iter().any(|told| start.starts_with(told)) {
            return Self::Client(text);
        }
        Self::Prompt(text)
    }
}

/// What stands within the first element of this name.
fn tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let inner = rest.split_once("</").map_or(rest, |(inner, _)| inner);
    Some(inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_print_are_no_prompts() {
        let command = "<command-name>/compact</command-name>\n <command-args>all</command-args>";
        assert_eq!(
            Spoken::of(command),
            Spoken::Command("/compact all".to_owned())
        );
        assert_eq!(
            Spoken::of("<bash-input>ls</bash-input>"),
            Spoken::Command("! ls".to_owned())
        );
        let printed = "<local-command-stdout>Compacted</local-command-stdout>";
        assert_eq!(Spoken::of(printed), Spoken::Client("Compacted"));
        let told = "<local-command-caveat>x</local-command-caveat>";
        assert_eq!(Spoken::of(told), Spoken::Client(told));
        let ended = "<task-notification>\n<summary>Built</summary>\n</task-notification>";
        assert_eq!(Spoken::of(ended), Spoken::Client("Built"));
        assert_eq!(Spoken::of("Why <b>?"), Spoken::Prompt("Why <b>?"));
        assert_eq!(Spoken::of(" "), Spoken::Nothing);
    }
}
