//! The author of a user line, as far as the line itself names it.

use crate::object::Object;

/// The author of a user line or a queued prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Author {
    /// The line says that a person wrote it.
    Person,
    /// The line says that someone or something else wrote it: a task, a hook, another agent, the client.
    Other,
    /// The line does not say it, as that of older clients; only its text can.
    #[default]
    Unknown,
}

impl Author {
    /// Returns the author that a `user` line, or a `queued_command` attachment, names. What names a sender (`origin`) counts
    /// before what names a way (`promptSource`, `rowSource`, `commandMode`). The prompt of a subagent is one from any sender.
    #[must_use]
    pub fn of(line: &Object<'_>) -> Self {
        match Self::named(line) {
            Self::Other if line.bool("isSidechain") == Some(true) => Self::Unknown,
            author => author,
        }
    }

    fn named(line: &Object<'_>) -> Self {
        let origin = line.object("origin").and_then(|origin| origin.str("kind"));
        let origin = origin.or_else(|| line.str("origin"));
        match origin.as_deref().filter(|kind| !kind.is_empty()) {
            Some("human") => return Self::Person,
            Some(_) => return Self::Other,
            None => {}
        }
        let says = |key: &str, value: &str| line.str(key).is_some_and(|found| found == value);
        // A program that sends prompts (`sdk`) or fills the queue (`queued`) may pass on those of a person.
        if says("promptSource", "typed") {
            return Self::Person;
        }
        let is_row_of_others = ["recorded", "harness", "hook"]
            .iter()
            .any(|source| says("rowSource", source));
        let is_of_others = is_row_of_others
            || says("promptSource", "system")
            || says("commandMode", "task-notification")
            || line.bool("isMeta") == Some(true);
        if is_of_others {
            Self::Other
        } else {
            Self::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_counts_before_the_way() {
        let of = |line: &str| Author::of(&Object::parse(line).unwrap());
        for line in [
            r#"{"origin":{"kind":"human"},"promptSource":"sdk"}"#,
            r#"{"origin":"human"}"#,
            r#"{"origin":{"kind":"human"},"promptSource":"system"}"#,
            r#"{"promptSource":"typed"}"#,
            r#"{"origin":null,"promptSource":"typed"}"#,
        ] {
            assert_eq!(of(line), Author::Person, "{line}");
        }
        for line in [
            r#"{"origin":{"kind":"task-notification"},"promptSource":"typed"}"#,
            r#"{"origin":{"kind":"hook"}}"#,
            r#"{"origin":{"kind":"a kind of tomorrow"}}"#,
            r#"{"promptSource":"system"}"#,
            r#"{"rowSource":"harness"}"#,
            r#"{"commandMode":"task-notification"}"#,
            r#"{"isMeta":true}"#,
        ] {
            assert_eq!(of(line), Author::Other, "{line}");
        }
        for line in [
            "{}",
            r#"{"origin":{}}"#,
            r#"{"origin":{"kind":""}}"#,
            r#"{"promptSource":"sdk"}"#,
            r#"{"promptSource":"queued","rowSource":"local","commandMode":"prompt"}"#,
            r#"{"origin":{"kind":"coordinator"},"isSidechain":true}"#,
        ] {
            assert_eq!(of(line), Author::Unknown, "{line}");
        }
    }
}
