//! The files of a session's subagents.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use transcript_format::object::Object;
use transcript_reader::Source;
use transcript_resume::display::Origin;

use crate::progress;
use transcript_session::History;

/// How many folders below `SESSION/subagents` a file may stand: those of workflows have folders of
/// their own (`facts/corpus.md` 6).
const MAX_DEPTH: usize = 4;
/// What is said of a subagent is a few short fields.
const MAX_META: u64 = 1 << 20;

/// Finds the files of the subagents of the session at `path`, in the order of their paths.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(
        &path.with_extension("").join("subagents"),
        MAX_DEPTH,
        &mut found,
    );
    found.sort();
    found
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        // Links are not followed: they could lead anywhere.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        if is_folder && depth > 0 {
            collect(&path, depth - 1, found);
        } else if !is_folder && agent(&path).is_some() {
            found.push(path);
        }
    }
}

/// The id that the name of a file says.
fn agent(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// Reads the transcript of a subagent, and what is said of it beside it.
pub(crate) fn open(path: &Path) -> Result<(Origin, History)> {
    let history = progress::read(Source::open(path)?)?;
    let mut origin = Origin {
        agent: agent(path).map(str::to_owned),
        ..Origin::default()
    };
    let about = path.with_extension("meta.json");
    let is_small = |found: fs::Metadata| found.is_file() && found.len() <= MAX_META;
    if fs::symlink_metadata(&about).is_ok_and(is_small)
        && let Ok(text) = fs::read_to_string(&about)
        && let Ok(meta) = Object::parse(&text)
    {
        let field = |name: &str| meta.str(name).map(|text| text.into_owned());
        origin.tool_use_id = field("toolUseId");
        origin.parent_agent = field("parentAgentId");
    }
    Ok((origin, history))
}
