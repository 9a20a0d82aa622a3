//! The results of calls that were not permitted, with the source and the reason of each rejection.

use std::fmt;

use super::{
    REJECTED_AUTOMATICALLY, REJECTED_AUTOMATICALLY_SHORT, REJECTED_BY_PERSON, REJECTED_IN_SUBAGENT,
};
use crate::named;

named! {
    /// The cause of the rejection of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum RejectedBy {
        /// The person.
        Person = "person",
        /// A subagent, where no person can be asked.
        Subagent = "subagent",
        /// The classifier of the automatic mode.
        Automatic = "automatic",
    }
}

/// The result of a call that was not permitted. It displays as the text that clients write, and
/// [`read`](Self::read) returns it from that text.
///
/// ```
/// use transcript_format::texts::{RejectedBy, Rejection, is_synthetic};
///
/// let rejection = Rejection::new(RejectedBy::Person, Some("Use the branch."));
/// let text = rejection.to_string();
/// assert!(text.ends_with("the user said:\nUse the branch."));
/// assert!(is_synthetic(&text));
/// assert_eq!(Rejection::read(&text), Some(rejection));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rejection<'t> {
    /// The cause of the rejection.
    pub by: RejectedBy,
    /// The feedback of the person, or the reason of the classifier.
    pub reason: Option<&'t str>,
}

/// The words of a rejection, after its start.
struct RejectionText {
    start: &'static str,
    /// The text after the start when there is no reason.
    bare: &'static str,
    /// The texts before and after the reason.
    around: [&'static str; 2],
    /// The end of the words before the reason, and the start of those after it: they are the same in
    /// more versions of the client than the words themselves.
    marks: [&'static str; 2],
}

macro_rules! not_done {
    ($text:literal) => {
        concat!(
            " (eg. if it was a file edit, the new_string was NOT written to the file). ",
            $text
        )
    };
}

macro_rules! advice {
    () => {
        " If you have other tasks that don't depend on this action, continue working on those. \
         IMPORTANT: You *may* attempt to accomplish this action using other tools that might \
         naturally be used to accomplish this goal, e.g. using head instead of cat. But you *should \
         not* attempt to work around this denial in malicious ways, e.g. do not use your ability to \
         run tests to execute non-test actions. You should only try to work around this restriction \
         in reasonable ways that do not attempt to bypass the intent behind this denial. If you \
         believe this capability is essential to complete the user's request, STOP and explain to \
         the user what you were trying to do and why you need this permission. Let the user decide \
         how to proceed."
    };
}

impl RejectedBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Person, Self::Subagent, Self::Automatic];

    const fn words(self) -> RejectionText {
        match self {
            Self::Person => RejectionText {
                start: REJECTED_BY_PERSON,
                bare: not_done!(
                    "STOP what you are doing and wait for the user to tell you how to proceed."
                ),
                around: [
                    not_done!("To tell you how to proceed, the user said:\n"),
                    "",
                ],
                marks: [" user said:\n", ""],
            },
            Self::Subagent => RejectionText {
                start: REJECTED_IN_SUBAGENT,
                // The words of the client after the start were not observed: these are ours.
                bare: not_done!("Continue without it, or say what could not be done."),
                around: [not_done!("The user said:\n"), ""],
                marks: [" user said:\n", ""],
            },
            Self::Automatic => RejectionText {
                start: REJECTED_AUTOMATICALLY,
                bare: advice!(),
                around: [" Reason: ", concat!(".", advice!())],
                marks: [
                    " Reason: ",
                    ". If you have other tasks that don't depend on this action,",
                ],
            },
        }
    }
}

impl<'t> Rejection<'t> {
    /// Creates a rejection.
    #[must_use]
    pub fn new(by: RejectedBy, reason: Option<&'t str>) -> Self {
        Self { by, reason }
    }

    /// Reads the text of a result; `None` if it is not a rejection.
    #[must_use]
    pub fn read(text: &'t str) -> Option<Self> {
        let text = text.trim_start();
        let read_as = |by: RejectedBy| {
            let words = by.words();
            let rest = text.strip_prefix(words.start);
            let is_automatic = by == RejectedBy::Automatic;
            let short = || text.strip_prefix(REJECTED_AUTOMATICALLY_SHORT);
            let rest = rest.or_else(|| short().filter(|_| is_automatic))?;
            let [before, after] = words.marks;
            let reason = rest.split_once(before).map(|(_, reason)| reason);
            let reason = reason.map(|reason| match after {
                "" => reason,
                // A reason may contain the same words.
                _ => reason.rsplit_once(after).map_or(reason, |(text, _)| text),
            });
            Some(Self { by, reason })
        };
        RejectedBy::ALL.into_iter().find_map(read_as)
    }
}

impl fmt::Display for Rejection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.by.words();
        f.write_str(words.start)?;
        match self.reason {
            Some(reason) => write!(f, "{}{reason}{}", words.around[0], words.around[1]),
            None => f.write_str(words.bare),
        }
    }
}
