//! The label above the output of one of several sessions.

use std::path::{Component, Path};

use transcript_format::ids::Uuid;
use transcript_format::title::TitleSource;

use crate::parsed_entry::ParsedEntry;
use crate::styles::TextStyle;
use crate::text::{Span, cut_text};

/// The maximum width of a name, in columns.
const MAX_NAME: usize = 40;
/// The number of printed characters of a uuid.
const SHORT_ID_CHARS: usize = 8;

/// A session by its title or project, the start of its id, and the subagent.
pub(super) struct Label {
    /// The last title of the person; an empty one clears those before.
    own_title: Option<String>,
    /// The last title of a model.
    title: Option<String>,
    /// The last part of the working directory.
    folder: Option<String>,
    /// The folder of the file.
    project: Option<String>,
    id: Option<String>,
    agent: Option<String>,
}

impl Label {
    /// Creates the label of the file at `path`, or of an agent; `is_of_file` means that the file is
    /// the agent's own.
    pub(super) fn new(path: &Path, agent: Option<&str>, is_of_file: bool) -> Self {
        let (project, id) = place(path, agent.is_some() && is_of_file);
        Self {
            own_title: None,
            title: None,
            folder: None,
            project,
            id,
            agent: agent.map(str::to_owned),
        }
    }

    /// Updates the label from an entry.
    pub(super) fn learn(&mut self, parsed: &ParsedEntry<'_>) {
        let Some(entry_ref) = parsed.entry_ref() else {
            return;
        };
        let kind = entry_ref.kind();
        let title = match kind.row().title {
            Some(TitleSource::Custom) => Some(&mut self.own_title),
            Some(TitleSource::Ai) => Some(&mut self.title),
            _ => None,
        };
        if let Some(title) = title
            && let Some(text) = parsed
                .body()
                .and_then(|body| Some(kind.text_of(body.object())?.into_owned()))
        {
            *title = Some(text);
        }
        if self.folder.is_none() {
            let cwd = parsed.str("cwd");
            self.folder = cwd.and_then(|cwd| Some(cwd.rsplit(['/', '\\']).next()?.to_owned()));
        }
        if self.id.is_none() {
            self.id = entry_ref.session().map(short);
        }
    }

    /// `▌ title · id ▸ agent-id`
    pub(super) fn line(&self, style: TextStyle) -> Vec<Span> {
        let name = [&self.own_title, &self.title, &self.folder, &self.project];
        let name = name.into_iter().flatten().find(|name| !name.is_empty());
        let parts = [name, self.id.as_ref()].into_iter().flatten();
        let parts: Vec<_> = parts
            .map(|part| cut_text(&style.escaping.one_line(part), MAX_NAME))
            .collect();
        let mut text = parts.join(" · ");
        match self.agent.as_deref() {
            Some("") => text.push_str(" ▸ subagent"),
            Some(agent) => text.push_str(&format!(" ▸ agent-{}", style.escaping.one_line(agent))),
            None => {}
        }
        vec![Span::new(style, "▌ "), Span::new(style, &text)]
    }
}

/// Returns the project and the session of a path. Files of subagents are in the folder of their
/// session; those of older clients are next to the session's file, and their path does not name the
/// session.
fn place(path: &Path, is_agent: bool) -> (Option<String>, Option<String>) {
    let text = |name: Component<'_>| name.as_os_str().to_string_lossy().into_owned();
    let names: Vec<_> = path.components().collect();
    let at = |place: usize| names.get(place).map(|name| text(*name));
    let is_folder = |name: &Component<'_>| name.as_os_str() == "subagents";
    let subagents = names.iter().rposition(is_folder).filter(|_| is_agent);
    if let Some(session) = subagents.and_then(|at| at.checked_sub(1)) {
        let project = session.checked_sub(1).and_then(at);
        return (project, at(session).as_deref().map(short));
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    let id = stem.filter(|_| !is_agent).map(|stem| short(&stem));
    (names.len().checked_sub(2).and_then(at), id)
}

/// Shortens a uuid to its start; other ids are not shortened.
fn short(id: &str) -> String {
    match Uuid::parse(id.to_ascii_lowercase().as_bytes()) {
        Some(_) => id.chars().take(SHORT_ID_CHARS).collect(),
        None => id.to_owned(),
    }
}
