//! Attachments that list available tools, agents, and the instructions of servers.

use serde_json::Value;
use transcript_format::attachment_texts::{self as texts, filled};

use super::parts::strings;

/// Returns the paragraphs as one text; `None` if there are none.
fn joined(paragraphs: &[String]) -> Option<String> {
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// The subagents that can be called.
pub(super) fn agents(attachment: &Value) -> Option<String> {
    let added = strings(&attachment["addedLines"]);
    let removed = strings(&attachment["removedTypes"]);
    let is_first = attachment["isInitial"] == true;
    let mut paragraphs = Vec::new();
    if !strings(&attachment["addedTypes"]).is_empty() && !added.is_empty() {
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
    if is_first && !paragraphs.is_empty() && attachment["showConcurrencyNote"] == true {
        paragraphs.push(texts::AGENTS_AT_ONCE.to_owned());
    }
    if !removed.is_empty() {
        paragraphs.push(texts::AMBIENT.to_owned());
    }
    joined(&paragraphs)
}

/// The instructions of MCP servers.
pub(super) fn server_instructions(attachment: &Value) -> Option<String> {
    let added = strings(&attachment["addedBlocks"]);
    let removed = strings(&attachment["removedNames"]);
    let mut paragraphs = Vec::new();
    if !strings(&attachment["addedNames"]).is_empty() && !added.is_empty() {
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
pub(super) fn deferred_tools(attachment: &Value) -> Option<String> {
    let mut paragraphs = Vec::new();
    let added = strings(&attachment["addedLines"]);
    if !strings(&attachment["addedNames"]).is_empty() && !added.is_empty() {
        paragraphs.push(filled(texts::TOOLS_ADDED, &[("tools", &added.join("\n"))]));
    }
    let again = strings(&attachment["readdedNames"]);
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
    let removed = strings(&attachment["removedNames"]);
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

fn servers_to_authorise(attachment: &Value) -> Option<String> {
    let servers = strings(&attachment["needsAuthMcpServers"]);
    (!servers.is_empty()).then(|| {
        filled(
            texts::SERVERS_TO_AUTHORISE,
            &[("servers", &servers.join("\n"))],
        )
    })
}

fn failed_servers(attachment: &Value) -> Option<String> {
    let servers = attachment["failedMcpServers"]
        .as_array()
        .into_iter()
        .flatten();
    let lines: Vec<String> = servers
        .filter_map(|server| {
            let name = server["name"].as_str()?;
            let error = server["error"].as_str().filter(|error| !error.is_empty());
            Some(error.map_or(name.to_owned(), |error| format!("{name}: \"{error}\"")))
        })
        .collect();
    (!lines.is_empty()).then(|| filled(texts::SERVERS_FAILED, &[("servers", &lines.join("\n"))]))
}

fn servers_that_connect(attachment: &Value) -> Option<String> {
    let servers = strings(&attachment["pendingMcpServers"]);
    (!servers.is_empty()).then(|| {
        filled(
            texts::SERVERS_CONNECTING,
            &[("servers", &servers.join("\n"))],
        )
    })
}
