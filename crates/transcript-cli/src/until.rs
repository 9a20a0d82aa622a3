//! The condition of `tail --until`.

use transcript_engine::MIN_PREFIX;
use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::object::FromRaw;
use transcript_render::blocks::{blocks, message_content};
use transcript_tail as tail;

/// The condition of `--until`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Until {
    /// An entry with this uuid, or one that starts with this prefix, ignoring case, or the entry of
    /// this line is in the file.
    Entry(String),
    /// A message of the last turn has a text with this prefix, ignoring leading white space. An equal
    /// text of an earlier turn does not count: a hook must not mistake it for the new one.
    Text(String),
    /// The last turn has ended.
    TurnEnd,
}

impl Until {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match text.split_once(':') {
            Some(("uuid", uuid)) => some(uuid.trim()).map(Self::Entry),
            Some(("text", text)) => some(text.trim_start()).map(Self::Text),
            None if text == "turn-end" => Some(Self::TurnEnd),
            _ => None,
        }
    }

    /// Returns whether `entry` satisfies the condition. Texts of a subagent in the file of another
    /// conversation do not count. The end of a turn is not an entry and never matches here.
    pub(crate) fn is(&self, entry: &tail::FollowedEntry, is_of_agent: bool) -> bool {
        let parsed = || Entry::parse(&entry.text).ok();
        match self {
            Self::TurnEnd => false,
            Self::Entry(name) => {
                let is_it = |parsed: &Entry<'_>| {
                    let Some(uuid) = parsed.object().str("uuid") else {
                        return false;
                    };
                    let is_prefix = name.len() >= MIN_PREFIX
                        && (uuid.as_bytes().get(..name.len()))
                            .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
                    is_prefix
                        || uuid.eq_ignore_ascii_case(name)
                        || entry.line.is_some_and(|line| line.to_string() == *name)
                };
                parsed().as_ref().is_some_and(is_it)
            }
            Self::Text(start) => !is_of_agent && parsed().is_some_and(|entry| says(&entry, start)),
        }
    }
}

/// Returns whether a message has a text that starts with `start`.
fn says(entry: &Entry<'_>, start: &str) -> bool {
    let Some(content) = message_content(entry) else {
        return false;
    };
    let starts = |text: &str| text.trim_start().starts_with(start);
    if let Some(text) = content.str() {
        return starts(&text);
    }
    blocks(content)
        .into_iter()
        .any(|raw| match Block::from_raw(raw) {
            Some(Block::Text(text)) => text.text().is_some_and(|text| starts(&text)),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of a file with these lines.
    fn entries(lines: &str) -> Vec<tail::FollowedEntry> {
        use tail::{EventKind, FollowOptions, Follower};
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{lines}\n")).unwrap();
        let mut follower = Follower::new(file.path(), &FollowOptions::new().poll_only());
        let shown = std::iter::from_fn(|| follower.try_next().unwrap());
        let entries = shown.filter_map(|shown| match shown.kind {
            EventKind::Entry(entry) => Some(entry),
            _ => None,
        });
        entries.collect()
    }

    fn is(until: &str, line: &str) -> bool {
        let until = Until::parse(until).unwrap();
        let entries = entries(line);
        assert_eq!(entries.len(), 1);
        until.is(&entries[0], false)
    }

    #[test]
    fn three_things_can_be_waited_for() {
        assert_eq!(Until::parse("turn-end"), Some(Until::TurnEnd));
        assert_eq!(
            Until::parse("uuid: A1"),
            Some(Until::Entry("A1".to_owned()))
        );
        assert_eq!(
            Until::parse("text:  uuid: x"),
            Some(Until::Text("uuid: x".to_owned()))
        );
        for odd in ["", "turn", "text:", "uuid: ", "line:3", "turn-end:"] {
            assert!(Until::parse(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn an_entry_is_met_by_its_uuid_a_prefix_or_its_line() {
        let line = r#"{"type":"user","uuid":"0a1B2c3d-0000-4000-8000-000000000001"}"#;
        assert!(is("uuid:0A1b2C3D-0000-4000-8000-000000000001", line));
        assert!(is("uuid:0a1B", line));
        assert!(is("uuid:1", line));
        for other in ["uuid:0a1", "uuid:0a1c", "uuid:2", "uuid:01"] {
            assert!(!is(other, line), "{other}");
        }
    }

    #[test]
    fn a_text_is_met_by_any_block_of_a_message_and_by_nothing_else() {
        let blocks = r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Why not"},{"type":"text","text":"First."},{"type":"text","text":"\n  All \u0064one. More"},{"type":"tool_use","id":"t","name":"B","input":{"text":"Called"}}]}}"#;
        assert!(is("text:All done.", blocks));
        assert!(is("text: First", blocks));
        for other in ["text:Why", "text:done", "text:all", "text:Called"] {
            assert!(!is(other, blocks), "{other}");
        }
        let user = r#"{"type":"user","uuid":"u","message":{"role":"user","content":" Go on"}}"#;
        assert!(is("text:Go", user));
        let other = r#"{"type":"last-prompt","lastPrompt":"Go on"}"#;
        assert!(!is("text:Go", other));
        let of_agent = entries(user);
        let until = Until::parse("text:Go").unwrap();
        assert!(!until.is(&of_agent[0], true));
    }
}
