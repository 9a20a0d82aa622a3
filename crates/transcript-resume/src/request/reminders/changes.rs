//! Attachments about available tools, agents, and the instructions of servers.

use transcript_format::attachment_texts::{self as texts, filled};

use super::fields::Fields;

/// Returns the paragraphs as one text; `None` if there are none.
fn joined(paragraphs: &[String]) -> Option<String> {
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// The subagents that can be called.
pub(super) fn agents(attachment: &Fields<'_>) -> Option<String> {
    let added = attachment.strings("addedLines");
    let removed = attachment.strings("removedTypes");
    let is_first = attachment.is_true("isInitial");
    let mut paragraphs = Vec::new();
    if !attachment.strings("addedTypes").is_empty() && !added.is_empty() {
        let title = if is_first {
            texts::AGENTS
        } else {
            texts::AGENTS_ADDED
        };
        paragraphs.push(filled(title, &[("agents", &added.join("\n"))]));
    }
    if !removed.is_empty() {
        let names: Vec<String> = removed.iter().map(|name| format!("- {name}")).collect();
        paragraphs.push(filled(
            texts::AGENTS_REMOVED,
            &[("agents", &names.join("\n"))],
        ));
    }
    if is_first && !paragraphs.is_empty() && attachment.is_true("showConcurrencyNote") {
        paragraphs.push(texts::AGENTS_AT_ONCE.to_owned());
    }
    if !removed.is_empty() {
        paragraphs.push(texts::AMBIENT.to_owned());
    }
    joined(&paragraphs)
}

/// The instructions of MCP servers.
pub(super) fn server_instructions(attachment: &Fields<'_>) -> Option<String> {
    let added = attachment.strings("addedBlocks");
    let removed = attachment.strings("removedNames");
    let mut paragraphs = Vec::new();
    if !attachment.strings("addedNames").is_empty() && !added.is_empty() {
        paragraphs.push(filled(
            texts::SERVER_INSTRUCTIONS,
            &[("instructions", &added.join("\n\n"))],
        ));
    }
    if !removed.is_empty() {
        paragraphs.push(filled(
            texts::SERVERS_DISCONNECTED,
            &[("servers", &removed.join("\n"))],
        ));
        paragraphs.push(texts::AMBIENT.to_owned());
    }
    joined(&paragraphs)
}

/// The tools that a search can load, and the servers that have no tools yet.
pub(super) fn deferred_tools(attachment: &Fields<'_>) -> Option<String> {
    let mut paragraphs = Vec::new();
    let added = attachment.strings("addedLines");
    if !attachment.strings("addedNames").is_empty() && !added.is_empty() {
        paragraphs.push(filled(texts::TOOLS_ADDED, &[("tools", &added.join("\n"))]));
    }
    let again = attachment.strings("readdedNames");
    if !again.is_empty() {
        let tools_are = if again.len() == 1 {
            "tool is"
        } else {
            "tools are"
        };
        paragraphs.push(filled(
            texts::TOOLS_AGAIN,
            &[
                ("count", &again.len().to_string()),
                ("tools_are", tools_are),
                ("tools", &again.join(", ")),
            ],
        ));
    }
    let removed = attachment.strings("removedNames");
    if !removed.is_empty() {
        paragraphs.push(filled(
            texts::TOOLS_REMOVED,
            &[("tools", &removed.join("\n"))],
        ));
        paragraphs.push(texts::AMBIENT.to_owned());
    }
    paragraphs.extend(servers_to_authorise(attachment));
    paragraphs.extend(failed_servers(attachment));
    paragraphs.extend(servers_that_connect(attachment));
    joined(&paragraphs)
}

fn servers_to_authorise(attachment: &Fields<'_>) -> Option<String> {
    let servers = attachment.strings("needsAuthMcpServers");
    (!servers.is_empty()).then(|| {
        filled(
            texts::SERVERS_TO_AUTHORISE,
            &[("servers", &servers.join("\n"))],
        )
    })
}

fn failed_servers(attachment: &Fields<'_>) -> Option<String> {
    let servers = attachment.objects("failedMcpServers");
    let lines: Vec<String> = servers
        .filter_map(|server| {
            let name = server.get("name")?.str()?;
            let error = server.filled("error");
            Some(error.map_or_else(|| name.to_string(), |error| format!("{name}: \"{error}\"")))
        })
        .collect();
    (!lines.is_empty()).then(|| filled(texts::SERVERS_FAILED, &[("servers", &lines.join("\n"))]))
}

fn servers_that_connect(attachment: &Fields<'_>) -> Option<String> {
    let servers = attachment.strings("pendingMcpServers");
    (!servers.is_empty()).then(|| {
        filled(
            texts::SERVERS_CONNECTING,
            &[("servers", &servers.join("\n"))],
        )
    })
}
