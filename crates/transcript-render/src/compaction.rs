//! The wording for a compaction: on a page, in a document, in a tree, and as the reason for a path.

use transcript_format::units::{duration, grouped};
use transcript_resume::items::CompactionItem;
use transcript_resume::{Decision, SpliceForm};

use crate::conversation::CompactionPosition;
use crate::session_tree::BoundaryFacts;
use crate::words::{count, noun};

/// On a page, as the text of a rule.
pub(crate) fn ruled(compaction: Option<&CompactionItem>, place: CompactionPosition) -> String {
    let mut text = "compacted".to_owned();
    let Some(compaction) = compaction else {
        return text;
    };
    if let Some(trigger) = &compaction.trigger {
        text.push_str(&format!(" ({trigger})"));
    }
    match (compaction.pre_tokens, compaction.post_tokens) {
        (Some(before), Some(after)) => {
            let (before, after) = (grouped(before), grouped(after));
            text.push_str(&format!(" · {before} → {after} tokens"));
        }
        (Some(before), None) => text.push_str(&format!(" · {} tokens before", grouped(before))),
        _ => {}
    }
    let is_start = place == CompactionPosition::Start;
    if let Some(took) = compaction.duration_millis.filter(|_| is_start) {
        text.push_str(&format!(" · {}", duration(took)));
    }
    match compaction.kept {
        0 if compaction.is_keeping_ignored => text.push_str(" · its kept entries are missing"),
        0 => {}
        kept => text.push_str(&format!(" · {} kept", count(kept, "entry"))),
    }
    if let Some(hidden) = compaction.hidden.filter(|hidden| *hidden > 0 && is_start) {
        let messages = noun(hidden, "message");
        let hidden = grouped(u64::from(hidden));
        text.push_str(&format!(" · {hidden} {messages} compacted away"));
    }
    match place {
        CompactionPosition::Chapter(number, of) => format!("chapter {number} of {of} · {text}"),
        _ => text,
    }
}

/// In a document, as a sentence; `at` is the time of the compaction.
pub(crate) fn in_document(
    compaction: Option<&CompactionItem>,
    place: CompactionPosition,
    at: Option<&str>,
) -> String {
    if place != CompactionPosition::Start {
        let at = at.map_or(String::new(), |at| format!(" · {at}"));
        let text = ruled(compaction, place);
        return format!("{}{at}", text.replacen('c', "C", 1));
    }
    match compaction.map_or(0, |compaction| compaction.kept) {
        0 => "Compacted.".to_owned(),
        kept => format!("Compacted, {} kept word for word.", count(kept, "entry")),
    }
}

/// In a tree, above the branch that starts with it.
pub(crate) fn in_tree(facts: &BoundaryFacts, line: u64) -> String {
    let mut text = "compacted".to_owned();
    if let Some(trigger) = &facts.compaction.trigger {
        text.push_str(&format!(" ({trigger})"));
    }
    text.push_str(&format!(" in line {line}"));
    if let Some(tokens) = facts.compaction.pre_tokens {
        text.push_str(&format!(", {} tokens before", grouped(tokens)));
    }
    match facts.kept {
        Some(0) => {}
        Some(kept) => text.push_str(&format!(", {} kept", count(kept, "entry"))),
        None => text.push_str(", the last entries kept"),
    }
    if facts.missing > 0 {
        text.push_str(&format!(", {} of them missing", facts.missing));
    }
    text
}

/// As the decision about a path, where the boundary is called `name`.
pub(crate) fn decided(name: &str, decision: &Decision) -> String {
    match *decision {
        Decision::Cut { hidden, .. } => match hidden {
            Some(hidden) => format!(
                "the conversation starts at {name}; {hidden} earlier messages were compacted away"
            ),
            None => format!("the conversation starts at {name}; what is before it was not read"),
        },
        Decision::Chapter { messages, kept, .. } => {
            let kept = match kept {
                Some(0) => String::new(),
                Some(kept) => format!(", {} of it kept", count(kept, "entry")),
                None => ", the number of entries kept is not known".to_owned(),
            };
            format!(
                "{name} ends a chapter of {}{kept}",
                count(messages, "message")
            )
        }
        Decision::Splice {
            form,
            kept,
            removed,
            ..
        } => {
            let kept = format!("{name} keeps {kept} entries by {}", form_name(form));
            match removed {
                Some(removed) => format!("{kept}; {removed} others before it are removed"),
                None => format!("{kept}; all others before it are removed"),
            }
        }
        Decision::SpliceIgnored { form, .. } => format!(
            "{name} names entries by {}, and one of them is not in the file; nothing is kept",
            form_name(form)
        ),
        _ => name.to_owned(),
    }
}

fn form_name(form: SpliceForm) -> &'static str {
    match form {
        SpliceForm::List => "preservedMessages",
        SpliceForm::Segment => "preservedSegment",
    }
}
