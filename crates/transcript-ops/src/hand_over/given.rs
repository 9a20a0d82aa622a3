//! The conversation that is handed over.

use std::path::Path;

use transcript_import::handover::{Items, NodeItems};
use transcript_import::{NodeId, ShownConversation};
use transcript_reader::Source;
use transcript_render::explain;
use transcript_session::Policy;

use super::file_items::{self, FileItems};
use super::request_items::RequestItems;
use super::settings::HandOverSettings;
use crate::agents::CLAUDE_CODE;
use crate::context::Context;
use crate::conversation_end::ConversationEnd;
use crate::failure::Failure;
use crate::request::{BuiltRequest, RequestSettings, with_request};

/// A conversation, and what its session is called.
pub(super) struct Given<'g> {
    pub(super) items: &'g dyn Items,
    /// The name of the agent that had it, or of the format of its file.
    pub(super) agent: &'g str,
    pub(super) path: &'g Path,
    pub(super) session_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) cwd: Option<String>,
}

/// Gives the conversation that the settings choose to `then`.
pub(super) fn with_given<T>(
    settings: &HandOverSettings,
    context: &Context,
    then: impl FnOnce(&Given<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (policy, end) = (Policy::from(settings.policy), settings.end());
    if policy == Policy::Vendor {
        context.agent_homes().show_as_agents_do();
    }
    if let Some(file) = file_items::read(&**context.read_disk(), &settings.session)? {
        return of_file(&file, &settings.session, &end, then);
    }
    let path = context.find(&settings.session, None)?.path;
    if let Some(conversation) = context.agent_homes().conversation(&path)? {
        return of_agent(&conversation, &path, (policy, &end), context, then);
    }
    let source = open(context, &path)?;
    let request = RequestSettings::of_conversation(policy, end);
    with_request(context, source, &request, |built| of_request(&built, then))
}

fn open(context: &Context, path: &Path) -> Result<Source, Failure> {
    let source = Source::open_on(context.read_disk(), path)?;
    source.check_messages()?;
    Ok(source)
}

fn of_file<T>(
    file: &FileItems,
    path: &Path,
    end: &ConversationEnd,
    then: impl FnOnce(&Given<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if end.is_named() {
        let message = format!("a file in {} has no entries to choose", file.format);
        return Err(Failure::options(message).in_file(path));
    }
    then(&Given {
        items: &file.items,
        agent: file.format.name(),
        path,
        session_id: file.session_id.clone(),
        title: file.title.clone(),
        cwd: None,
    })
}

/// Gives a session of another agent: what goes to the model next, or the nodes of the entries that are named.
fn of_agent<T>(
    conversation: &ShownConversation,
    path: &Path,
    (policy, end): (Policy, &ConversationEnd),
    context: &Context,
    then: impl FnOnce(&Given<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(refusal) = conversation.refusal {
        let message = format!(
            "{} itself refuses the session: {refusal}",
            conversation.agent
        );
        return Err(Failure::new("not-resumable", message).at(path));
    }
    let named;
    let items: &dyn Items = if end.is_named() {
        named = NodeItems {
            nodes: nodes_up_to(conversation, path, (policy, end), context)?,
            conversation,
        };
        &named
    } else {
        &**conversation
    };
    let metadata = &conversation.metadata;
    then(&Given {
        items,
        agent: conversation.agent.name(),
        path,
        session_id: Some(metadata.id.clone()),
        title: metadata.title.clone(),
        cwd: metadata.cwd.clone(),
    })
}

/// Returns the nodes of the conversation that ends at an entry.
fn nodes_up_to(
    conversation: &ShownConversation,
    path: &Path,
    (policy, end): (Policy, &ConversationEnd),
    context: &Context,
) -> Result<Vec<NodeId>, Failure> {
    let history = context.read(open(context, path)?)?;
    let tree = history.tree(policy);
    let chosen = end.path(&tree)?;
    let lines = chosen.entries.iter().filter_map(|entry| {
        let entry = history.index().entry(entry.entry_no());
        entry.known_line()
    });
    Ok(lines
        .filter_map(|line| conversation.node_of_line(line))
        .collect())
}

/// Gives the next request of a session of Claude Code.
fn of_request<T>(
    built: &BuiltRequest<'_>,
    then: impl FnOnce(&Given<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (history, request) = (built.history, &built.request);
    let path = history.source().path();
    if let Some(refusal) = request.path.refusal {
        let reason = explain::describe_refusal(history.index(), refusal);
        return Err(Failure::new("not-resumable", reason).in_file(path));
    }
    let row = history.row();
    let items = RequestItems::of(built)?;
    then(&Given {
        items: &items,
        agent: CLAUDE_CODE,
        path,
        session_id: history.session_id(),
        cwd: row.home().or(row.cwd.as_deref()).map(str::to_owned),
        title: row.title,
    })
}
