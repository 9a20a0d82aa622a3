//! What a session of another agent says about itself.

use std::collections::HashMap;

use transcript_format::imported::imported;
use transcript_format::kind::EntryKind;
use transcript_reader::{Bodies, EntryNo, Index, Source};

use crate::Result;

/// Returns the name of the agent that wrote a session; `None` for Claude Code.
///
/// # Errors
/// When the system fails to read.
pub fn maker(source: &Source, index: &Index) -> Result<Option<String>> {
    let first = index.entries().next().filter(|_| index.is_imported());
    let Some(first) = first else { return Ok(None) };
    let mut bodies = Bodies::new(source);
    let body = bodies.get(&first)?;
    Ok(imported(body.text).and_then(|imported| Some(imported.str("agent")?.into_owned())))
}

/// The reasons why branches of a session of another agent are not in the conversation.
#[derive(Clone, Debug, Default)]
pub struct BranchReasons(HashMap<String, String>);

impl BranchReasons {
    /// Reads the reasons; there are none in a session of Claude Code.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn read(source: &Source, index: &Index) -> Result<Self> {
        let mut reasons = HashMap::new();
        if index.is_imported() {
            let mut bodies = Bodies::new(source);
            let lines = index.entries();
            for line in lines.filter(|line| line.kind() == EntryKind::TranscriptEngine) {
                let body = bodies.get(&line)?;
                let imported = imported(body.text);
                let text = |key| Some(imported.as_ref()?.str(key)?.into_owned());
                reasons.extend(text("from").zip(text("branch")));
            }
        }
        Ok(Self(reasons))
    }

    /// Returns the reason of the branch that begins with an entry, in a word: `rewound`, `superseded`, `deleted` …
    #[must_use]
    pub fn of(&self, index: &Index, first: EntryNo) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let uuid = index.id_text(index.entry(first).uuid()?);
        self.0.get(&*uuid).map(String::as_str)
    }

    /// Returns the title of the branch that begins with an entry: `branch`, and its reason if that is known.
    #[must_use]
    pub fn title(&self, index: &Index, first: Option<EntryNo>) -> String {
        match first.and_then(|first| self.of(index, first)) {
            Some(reason) => format!("branch · {reason}"),
            None => "branch".to_owned(),
        }
    }
}
