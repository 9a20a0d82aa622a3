//! The system prompts that a session was sent with: engine lines with the fingerprint of each, and
//! with the text of each section once.

use std::collections::HashSet;

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::make::{self, NewEntry};
use transcript_format::object::Object;
use transcript_messages::builder::{
    AssembledPrompt, PromptChanges, PromptFingerprint, PromptSection, text_hash,
};
use transcript_reader::Bodies;
use transcript_writer::EntryId;

use crate::error::Error;
use crate::history::History;

/// A system prompt that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedPrompt {
    /// Its sections and their hashes.
    pub fingerprint: PromptFingerprint,
    /// The last entry of the conversation when it was recorded; `None` at the start.
    pub after: Option<String>,
}

impl History {
    /// Returns the system prompts that [`Session::record_prompt`](crate::Session::record_prompt)
    /// recorded, in the order of the file. Each is that of all turns up to the next. Lines that are
    /// damaged are omitted.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn prompts(&self) -> Result<Vec<RecordedPrompt>, Error> {
        let mut prompts = Vec::new();
        self.each_prompt(|line, fingerprint| {
            let after = line.str("after").map(|after| after.into_owned());
            prompts.push(RecordedPrompt { fingerprint, after });
        })?;
        Ok(prompts)
    }

    /// Returns the text of a section with that hash; `None` if it was not recorded or is no longer
    /// what was recorded, as in a copy without secrets.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn prompt_text(&self, hash: &str) -> Result<Option<String>, Error> {
        let mut found = None;
        self.each_prompt(|line, _| {
            if found.is_none() {
                let text = line
                    .object("texts")
                    .and_then(|texts| texts.str(hash).map(|text| text.into_owned()));
                found = text.filter(|text| text_hash(text) == hash);
            }
        })?;
        Ok(found)
    }

    /// Compares a system prompt with the one that was recorded last: what the model now reads
    /// differently from the turns before. `None` if none was recorded.
    ///
    /// ```
    /// use transcript::builder::SystemPrompt;
    /// use transcript::{Draft, Session, SessionOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let options = SessionOptions::new();
    /// # let session = Session::create(&path, &options)?;
    /// let prompt = SystemPrompt::new().section("base", "Be short.").section("git", "branch: main");
    /// session.append(Draft::user("Which years have a leap day?"))?;
    /// session.record_prompt(&prompt.assemble())?;
    /// # session.close()?;
    ///
    /// // Later, on another branch.
    /// let prompt = prompt.section("git", "branch: fix");
    /// let resumed = Session::resume(&path, &options)?;
    /// let changes = resumed.history.prompt_changes(&prompt.fingerprint())?;
    /// assert_eq!(changes.ok_or("none was recorded")?.changed, ["git"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn prompt_changes(&self, new: &PromptFingerprint) -> Result<Option<PromptChanges>, Error> {
        let last = self.prompts()?.pop();
        Ok(last.map(|last| PromptFingerprint::changes(&last.fingerprint, new)))
    }

    /// Passes each line with a recorded prompt to `take`.
    fn each_prompt(
        &self,
        mut take: impl FnMut(&Object<'_>, PromptFingerprint),
    ) -> Result<(), Error> {
        let mut bodies = Bodies::new(self.source());
        for entry in self.index().entries() {
            if entry.kind() != EntryKind::TranscriptEngine {
                continue;
            }
            let body = bodies.get(&entry)?;
            let Ok(line) = Object::parse(body.text) else {
                continue;
            };
            let prompt = line
                .get("prompt")
                .map(|prompt| serde_json::from_str(prompt.text()));
            if let Some(Ok(prompt)) = prompt {
                take(&line, prompt);
            }
        }
        Ok(())
    }
}

/// What of the prompts of a session is in its file.
#[derive(Debug, Default)]
pub(crate) struct KnownPrompts {
    last: Option<PromptFingerprint>,
    /// The hashes of the sections whose texts are there.
    texts: HashSet<String>,
}

impl KnownPrompts {
    pub(crate) fn read(history: &History) -> Result<Self, Error> {
        let mut known = Self::default();
        history.each_prompt(|line, prompt| {
            known.last = Some(prompt);
            let texts = line.object("texts");
            for (hash, text) in texts.iter().flat_map(Object::members) {
                if text.str().is_some_and(|text| text_hash(&text) == *hash) {
                    known.texts.insert(hash.to_string());
                }
            }
        })?;
        Ok(known)
    }

    /// Returns the line that records `prompt` after the entry `after`, with the texts that the file
    /// does not have; `None` if the prompt is the last one in the file.
    pub(crate) fn line(
        &self,
        prompt: &AssembledPrompt,
        after: Option<&EntryId>,
    ) -> Option<NewEntry> {
        let fingerprint = prompt.fingerprint();
        if self.last.as_ref() == Some(&fingerprint) {
            return None;
        }
        let mut texts = ObjectBuf::new();
        let hashes = fingerprint.sections.iter().map(|section| &section.hash);
        for (hash, PromptSection { text, .. }) in hashes.zip(&prompt.sections) {
            if !self.texts.contains(hash) {
                texts.set(hash.clone(), text.as_str());
            }
        }
        let sections = fingerprint.sections.iter().map(|section| {
            let json = ObjectBuf::new().with("name", section.name.as_str());
            let json = json.with("hash", section.hash.as_str());
            Json::from(json.with("tokens", section.tokens))
        });
        let recorded = ObjectBuf::new()
            .with("hash", fingerprint.hash.as_str())
            .with("sections", Json::array(sections));
        let line = ObjectBuf::new()
            .with("prompt", recorded)
            .with("after", after.map(Json::id))
            .with("texts", texts);
        Some(make::engine_line(&line))
    }

    /// Notes that the line of `prompt` was written.
    pub(crate) fn add(&mut self, prompt: &AssembledPrompt) {
        let fingerprint = prompt.fingerprint();
        let hashes = fingerprint
            .sections
            .iter()
            .map(|section| section.hash.clone());
        self.texts.extend(hashes);
        self.last = Some(fingerprint);
    }
}
