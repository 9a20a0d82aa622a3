//! Copies of conversations.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use transcript_session::{ForkOptions, History};
use transcript_storage::folder_of;

use crate::context::{Context, PolicyName};
use crate::conversation_end::find_entry;
use crate::failure::Failure;
use crate::sink::{self, Sink};
use crate::wire::ForkRecord;

/// The options of `fork`: the conversation to copy, and the new file.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkSettings {
    /// The session.
    pub session: PathBuf,
    /// The rules that choose the conversation.
    #[serde(default)]
    pub policy: PolicyName,
    /// The last entry of the copy, which may be on any branch: the number of its line, its uuid, or the start of that. The
    /// last entry of the conversation by default.
    pub at: Option<String>,
    /// The new file; by default in the project of the session, named after the new id.
    pub out: Option<PathBuf>,
    /// The title of the copy; by default that of the session with "(fork)".
    pub title: Option<String>,
}

impl ForkSettings {
    /// Copies a conversation of `history`.
    ///
    /// # Errors
    /// When the entry cannot be found, or the copy not be written.
    pub fn copy(&self, history: &History, context: &Context) -> Result<ForkRecord, Failure> {
        context.check_own(history.source().path())?;
        let mut options = ForkOptions::new().disk(Arc::clone(context.live_disk()));
        if let Some(name) = &self.at {
            options = options.at(find_entry(history.index(), "at", name)?);
        }
        if let Some(title) = &self.title {
            options = options.title(title);
        }
        let source = history.source().path();
        if let Some(out) = &self.out {
            options = options.out(out);
        } else if let Some(place) = context.place_of_archived(source) {
            // Nothing is written to the archive: the copy is where the session was.
            options = options.folder(folder_of(&place));
        }
        let (path, id) = history.fork(self.policy.into(), &options)?;
        Ok(ForkRecord::new(id.to_string(), path, source.to_owned()))
    }
}

/// Copies a conversation, and writes the record of the copy.
pub(crate) fn fork(
    settings: &ForkSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> sink::Result<()> {
    context.follow_policy(settings.policy);
    let history = context.read(context.open(&settings.session)?)?;
    sink.record(&settings.copy(&history, context)?)
}
