//! The advice for each finding.

use transcript_format::finding::Code;

/// The advice for codes without one of their own.
const DEFAULT_ADVICE: &str = "See docs/findings.md.";

/// Returns the advice for a finding of this code, in one sentence. `docs/findings.md` has more, with
/// an example for each.
#[must_use]
pub const fn advice(code: Code) -> &'static str {
    use Code as C;
    match code {
        C::Imported => {
            "What lies in the file is shown; `--policy vendor` shows what the agent itself would."
        }
        C::ImportUnknown => {
            "Nothing needs to be done: the records are kept in their file. Report the type, so that a later version reads it."
        }
        C::ImportRefused => "Without `--policy vendor` what lies in the file is shown.",
        C::TornTail => {
            "The last write was cut off: resume it with transcript, or let `transcript repair` set the rest aside."
        }
        C::TornMid | C::Control | C::NotObject | C::Depth => {
            "Claude Code skips the line: `transcript repair` writes what is left of it on a line of its own."
        }
        C::Glued => {
            "Claude Code reads only the first object of the line: `transcript repair` puts each on its own line."
        }
        C::Nul => {
            "The machine lost power or crashed: `transcript repair` removes the NULs and keeps the entries."
        }
        C::Split => "Claude Code skips all of these lines: `transcript repair` joins them.",
        C::Unterminated => "Nothing needs to be done: our writer ends the line before it appends.",
        C::TooLong => {
            "Claude Code cannot use the line: raise the limit, or let `transcript repair` set it aside."
        }
        C::TooMany => "The content of the entry cannot be sent: `transcript repair` sets it aside.",
        C::Utf8 => {
            "The bytes are shown as U+FFFD; the originals are only in this file, so keep a copy before you repair it."
        }
        C::Bom => "Remove the first three bytes, or let `transcript repair` do it.",
        C::Surrogate | C::NulEscape => {
            "Nothing needs to be done: the character is replaced when the request is made."
        }
        C::Shrunk => {
            "Another program truncated the file: verify it again when that has ended, and look for a backup."
        }
        C::Shape => {
            "Nothing needs to be done: the value is ignored, and everything else on the line is used."
        }
        C::UnknownKey => {
            "Check with `verify --requests` whether the recorded requests are still reproduced, and report the key."
        }
        C::NoId => {
            "Claude Code keeps only the last of such messages: `transcript repair` gives each a uuid."
        }
        C::Mixed => {
            "Nothing needs to be done: old versions of Claude Code, and a salvage, write subagents into the same file."
        }
        C::OtherSession => {
            "Two sessions were written to one file: `transcript repair` moves the foreign entries to a file of their own."
        }
        C::Dangling => {
            "Claude Code shows only what is below: `transcript repair` links the entry where there is evidence."
        }
        C::Stranded => {
            "Claude Code no longer shows the entries that were cut off: `transcript repair` joins the branch after it."
        }
        C::Repeated => {
            "`transcript repair` drops identical copies; others are kept, and the first decides the place."
        }
        C::Cycle => {
            "Claude Code may show only a part: `transcript repair` cuts the link that leads down the file."
        }
        C::Rewind => {
            "Nothing needs to be done: `transcript replay --all-branches` shows the abandoned branch."
        }
        C::Fork => {
            "Only one of the branches is continued: `transcript tree` shows both, `transcript fork --at` copies the other."
        }
        C::Sibling => {
            "Nothing needs to be done: Claude Code 2.1.80 and later, and this project, find them."
        }
        C::Leaf => {
            "To continue from newer entries, name one of them: `transcript resume --leaf UUID`. A lost entry may be in a backup."
        }
        C::LogicalParent | C::LogicalCycle => {
            "Nothing needs to be done: the pointer is only used to show older history."
        }
        C::Segment | C::Stale => {
            "Claude Code drops what the compaction preserved: `transcript repair` corrects the names in the boundary."
        }
        C::NoBoundary => {
            "Claude Code may show the compacted entries: `transcript repair` writes the boundary again."
        }
        C::NoResult => {
            "The request gets a synthetic result that says so: `transcript repair` writes it to the file."
        }
        C::Running => "Nothing needs to be done: verify the session again when the call has ended.",
        C::NoUse => {
            "The result is not sent: it stays in the file, and `transcript replay` shows it."
        }
        C::PairOrder => {
            "The result is moved after its call when the request is made: `transcript repair` moves it in the file."
        }
        C::Forward => {
            "Nothing needs to be done if the conversation is whole: links count, not the order of lines."
        }
        C::MessageId => {
            "Nothing needs to be done: only programs that index every id of a file mistake the line for the message."
        }
        C::Writers => {
            "Close all but one Claude Code of the session; `transcript tree` shows both branches."
        }
        C::ForkSource => "Nothing needs to be done: the copy is complete without its source.",
        C::EmptiedThought => {
            "Nothing needs to be done under policy `recover`; another program has to omit these blocks."
        }
        C::Window => {
            "Compact the session, or resume it with `--fit MODEL`, which omits the oldest media, results and turns."
        }
        C::MediaSize => {
            "Such a block makes the API refuse every request: under policy `recover` a note replaces it, and `transcript repair` writes that note."
        }
        C::Refused => {
            "Resume with transcript: under policy `recover` the request is changed so that it is accepted."
        }
        C::Recorded => {
            "Nothing is wrong with the session: this project predicts Claude Code wrongly there, so report the finding."
        }
        C::Size => {
            "Start a new session from it with `transcript fork`, which copies only the conversation."
        }
        C::Copies => {
            "`transcript fork` writes a session without the copies; the conversation is the same."
        }
        C::CountedTwice => {
            "Count each message id once: programs that add up lines report too much."
        }
        C::Secret => "Revoke it if it is real, and redact the session before you share it.",
        C::Mode => "Run `chmod go-rwx` on the file and its folder.",
        C::Stalled => {
            "Start Claude Code again and check that the file grows: `transcript repair --salvage` gathers what its other files have."
        }
        C::Absent => {
            "The conversation was never written, or was deleted: `transcript repair --salvage` gathers what its folder has."
        }
        C::Sweep => {
            "Copy the session out of the folder of Claude Code, or raise `cleanupPeriodDays` in its settings."
        }
        C::MissingAgent => {
            "What the subagent did is lost, except for its result: look for its file in a backup."
        }
        C::OrphanAgent => "Nothing needs to be done: read the file with `transcript replay`.",
        C::WrongFolder => {
            "Claude Code does not list the session where it was written: `transcript move` puts it there."
        }
        C::SameId => "Compare the copies before you resume one: `transcript merge` joins them.",
        C::Stub => "Nothing is lost: Claude Code was started and closed.",
        C::FileTime => {
            "A copy or another program changed the time, by which Claude Code chooses which sessions to continue and to delete."
        }
        // A code of another crate cannot be matched without this.
        _ => DEFAULT_ADVICE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_advice_of_its_own() {
        for code in Code::ALL {
            let advice = advice(*code);
            assert_ne!(
                advice,
                DEFAULT_ADVICE,
                "{}: what is to be done?",
                code.as_str()
            );
            assert!(advice.ends_with('.'), "{advice}");
        }
    }
}
