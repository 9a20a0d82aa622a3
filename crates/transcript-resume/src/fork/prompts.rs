//! The copies of the lines that record system prompts.

use std::collections::{HashMap, HashSet};

use transcript_format::ids::Uuid;
use transcript_format::json::Json;
use transcript_format::metadata::TranscriptEngine;
use transcript_format::object::Raw;
use transcript_reader::EntryNo;

use super::line::{Edit, edited};
use crate::prompts::{PromptFilter, each_line, fingerprint, is_text_of};
use transcript_reader::BodySource;
use transcript_reader::ConversationPath;
use transcript_reader::Tree;

/// The lines that are copied.
#[derive(Default)]
struct Copied {
    /// The lines with the prompts of the path, and the copy of the entry that each follows; `None`
    /// before the first one.
    lines: HashMap<EntryNo, Option<Uuid>>,
    /// The hashes of the texts that they need.
    texts: HashSet<String>,
}

/// The session of a copy, and the copies of entries.
pub(super) struct Copies<'c> {
    pub(super) session: &'c str,
    /// Returns the id of the copy of the entry with this id.
    pub(super) of: &'c dyn Fn(&str) -> Option<Uuid>,
}

/// Writes the lines with the system prompts of `path`: those recorded after an entry of the copy,
/// and of others of the conversation the last one, which was in force where the copy starts. A text
/// that only another line has is written without the prompt of that line.
pub(super) fn write<B: BodySource, E: From<B::Error>>(
    tree: &Tree<'_>,
    path: &ConversationPath,
    copy: &Copies<'_>,
    bodies: &mut B,
    write: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let copied = copied(tree, path, copy, bodies)?;
    let mut written = HashSet::new();
    let session = Json::from(copy.session);
    each_line(tree.index(), bodies, |entry, line| {
        let after = copied.lines.get(&entry.number());
        let mut has_texts = false;
        let texts = line.texts().map(|texts| {
            let keep = |hash: &str, text: Raw<'_>| {
                if !copied.texts.contains(hash) || written.contains(hash) {
                    return Edit::Remove;
                }
                // One that was redacted may be there again as it was.
                if is_text_of(hash, text) {
                    written.insert(hash.to_owned());
                }
                has_texts = true;
                Edit::Keep
            };
            edited(&texts, keep, &[])
        });
        if after.is_none() && !has_texts {
            return Ok(());
        }
        let edit = |key: &str, _: Raw<'_>| match (key, &texts) {
            ("sessionId", _) => Edit::set(&session),
            ("texts", Some(texts)) => Edit::Set(texts.clone()),
            ("prompt", _) if after.is_none() => Edit::Remove,
            ("after", _) => after.map_or(Edit::Remove, |after| Edit::set(&Json::from(*after))),
            _ => Edit::Keep,
        };
        let line = edited(line.object(), edit, &[]);
        // A salvaged line can span several lines.
        write(&line.replace(['\n', '\r'], " "))
    })
}

fn copied<B: BodySource, E: From<B::Error>>(
    tree: &Tree<'_>,
    path: &ConversationPath,
    copy: &Copies<'_>,
    bodies: &mut B,
) -> Result<Copied, E> {
    let mut copied = Copied::default();
    let mut filter = None;
    // The line in force, while it follows no entry of the copy.
    let mut in_force: Option<(EntryNo, Vec<String>)> = None;
    each_line(tree.index(), bodies, |entry, line| {
        let Some(prompt) = fingerprint(line) else {
            return Ok(());
        };
        let filter = filter.get_or_insert_with(|| {
            let story = tree.clone().unspliced().story(path);
            PromptFilter::new(tree.index(), &story)
        });
        if !filter.has(line.after().as_deref()) {
            return Ok(());
        }
        let hashes = prompt.sections.into_iter().map(|section| section.hash);
        match copy_of_after(line, copy) {
            None => in_force = Some((entry.number(), hashes.collect())),
            after => {
                copied.start_with(in_force.take());
                copied.lines.insert(entry.number(), after);
                copied.texts.extend(hashes);
            }
        }
        Ok(())
    })?;
    copied.start_with(in_force);
    Ok(copied)
}

impl Copied {
    fn start_with(&mut self, in_force: Option<(EntryNo, Vec<String>)>) {
        if let Some((entry, hashes)) = in_force {
            self.lines.insert(entry, None);
            self.texts.extend(hashes);
        }
    }
}

/// Returns the copy of the entry after which a line was recorded.
fn copy_of_after(line: &TranscriptEngine<'_>, copy: &Copies<'_>) -> Option<Uuid> {
    (copy.of)(&line.after()?)
}
