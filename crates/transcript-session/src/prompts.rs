//! The system prompts that a session was sent with: engine lines with the fingerprint of each, and
//! with the text of each section once.

use std::collections::HashSet;

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::make::{self, NewEntry};
use transcript_format::metadata::TranscriptEngine;
use transcript_format::object::Object;
use transcript_messages::builder::{
    AssembledPrompt, PromptChanges, PromptFingerprint, PromptSection,
};
use transcript_reader::Bodies;
use transcript_resume::Policy;
use transcript_resume::prompts::{PromptFilter, each_line, fingerprint, is_text_of};
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
    /// recorded, in the order of the file, also those of other branches. Each is that of all turns up
    /// to the next. Lines that are damaged are omitted.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn prompts(&self) -> Result<Vec<RecordedPrompt>, Error> {
        let mut prompts = Vec::new();
        self.each_prompt_line(|line| {
            let after = line.after().map(|after| after.into_owned());
            let fingerprint = fingerprint(line);
            prompts.extend(fingerprint.map(|fingerprint| RecordedPrompt { fingerprint, after }));
        })?;
        Ok(prompts)
    }

    /// Returns the text of a section with that hash; `None` if it was not recorded, or if its
    /// recorded text was changed, as in a copy without secrets.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn prompt_text(&self, hash: &str) -> Result<Option<String>, Error> {
        let mut found = None;
        self.each_prompt_line(|line| {
            if found.is_none() {
                let text = line.texts().and_then(|texts| texts.get(hash));
                let text = text.filter(|text| is_text_of(hash, *text));
                found = text.and_then(|text| Some(text.str()?.into_owned()));
            }
        })?;
        Ok(found)
    }

    /// Compares a system prompt with the one that was recorded last in the conversation: what the
    /// model now reads differently from the turns before. `None` if none was recorded.
    ///
    /// ```
    /// use transcript_session::builder::SystemPrompt;
    /// use transcript_session::{Draft, Policy, Session, SessionOptions};
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
    /// let changes = resumed.history.prompt_changes(Policy::Recover, &prompt.fingerprint())?;
    /// assert_eq!(changes.ok_or("none was recorded")?.changed, ["git"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn prompt_changes(
        &self,
        policy: Policy,
        new: &PromptFingerprint,
    ) -> Result<Option<PromptChanges>, Error> {
        let last = self.last_prompt(policy)?;
        Ok(last.map(|last| PromptFingerprint::changes(&last, new)))
    }

    /// Returns the prompt that was recorded last in the conversation.
    fn last_prompt(&self, policy: Policy) -> Result<Option<PromptFingerprint>, Error> {
        let prompts = self.prompts()?;
        if prompts.is_empty() {
            return Ok(None);
        }
        let tree = self.tree(policy);
        let context = tree.path();
        let filter = PromptFilter::new(self.index(), &tree.unspliced().story(&context));
        let mut prompts = prompts.into_iter().rev();
        let last = prompts.find(|prompt| filter.has(prompt.after.as_deref()));
        Ok(last.map(|prompt| prompt.fingerprint))
    }

    /// Passes each line with a recorded prompt, or with texts of one, to `take`.
    fn each_prompt_line(&self, mut take: impl FnMut(&TranscriptEngine<'_>)) -> Result<(), Error> {
        let mut bodies = Bodies::new(self.source());
        each_line(self.index(), &mut bodies, |_, line| {
            take(line);
            Ok(())
        })
    }
}

/// The system prompts that the file of a session already has.
#[derive(Debug, Default)]
pub(crate) struct KnownPrompts {
    /// The last one of the conversation.
    last: Option<PromptFingerprint>,
    /// The hashes of the sections whose texts are there.
    texts: HashSet<String>,
}

impl KnownPrompts {
    pub(crate) fn read(history: &History, policy: Policy) -> Result<Self, Error> {
        let mut known = Self {
            last: history.last_prompt(policy)?,
            ..Self::default()
        };
        history.each_prompt_line(|line| {
            let texts = line.texts();
            for (hash, text) in texts.iter().flat_map(Object::members) {
                if is_text_of(hash, *text) {
                    known.texts.insert(hash.to_string());
                }
            }
        })?;
        Ok(known)
    }

    /// Compares a prompt with the last one of the conversation.
    pub(crate) fn changes(&self, new: &PromptFingerprint) -> Option<PromptChanges> {
        let last = self.last.as_ref()?;
        Some(PromptFingerprint::changes(last, new))
    }

    /// Returns the line that records `prompt` after the entry `after`, with the texts that the file
    /// does not have; `None` if the prompt is the last one of the conversation.
    pub(crate) fn line(
        &self,
        prompt: &AssembledPrompt,
        after: Option<&EntryId>,
    ) -> Option<NewEntry> {
        let fingerprint = prompt.fingerprint();
        if self.last.as_ref() == Some(&fingerprint) {
            return None;
        }
        let mut new = HashSet::new();
        let hashes = fingerprint.sections.iter().map(|section| &section.hash);
        let texts = hashes
            .zip(&prompt.sections)
            .filter(|(hash, _)| !self.texts.contains(*hash) && new.insert(*hash))
            .map(|(hash, PromptSection { text, .. })| (hash.clone(), Json::from(text.as_str())));
        let texts: ObjectBuf = texts.collect();
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
