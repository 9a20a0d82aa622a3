//! The tools of the client that the result of a tool search can refer to.
//!
//! The client removes a reference to any other tool when it resumes a session (MSG-14). Which tools it
//! has depends on how it is started and on the model. These are the tools of a start without options,
//! the same in 2.1.329 and 2.1.331, and the old names that still stand for one of them.

/// A name that a reference can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTool {
    /// The name.
    pub name: &'static str,
    /// Whether the newer models, those that get reminders as messages of their own, lack this tool.
    pub only_older_models: bool,
    /// For an old name: the tool that has to be referred to as well.
    pub only_beside: Option<&'static str>,
}

const fn all(name: &'static str) -> ClientTool {
    ClientTool {
        name,
        only_older_models: false,
        only_beside: None,
    }
}

const fn older(name: &'static str) -> ClientTool {
    ClientTool {
        name,
        only_older_models: true,
        only_beside: None,
    }
}

const fn beside(name: &'static str, tool: &'static str) -> ClientTool {
    ClientTool {
        name,
        only_older_models: false,
        only_beside: Some(tool),
    }
}

/// The names, sorted.
pub const CLIENT_TOOLS: &[ClientTool] = &[
    all("Agent"),
    all("Bash"),
    all("CronCreate"),
    all("CronDelete"),
    all("CronList"),
    all("Edit"),
    all("EnterWorktree"),
    all("ExitWorktree"),
    // Old names of a tool that is loaded on demand.
    beside("KillBash", "TaskStop"),
    beside("KillShell", "TaskStop"),
    all("ListAgents"),
    // Old name of `ListAgents`.
    all("ListPeers"),
    all("Monitor"),
    all("NotebookEdit"),
    all("Read"),
    all("ReportFindings"),
    all("ScheduleWakeup"),
    all("SendMessage"),
    all("Skill"),
    // Old name of `Agent`.
    all("Task"),
    older("TaskCreate"),
    older("TaskGet"),
    older("TaskList"),
    all("TaskStop"),
    older("TaskUpdate"),
    all("ToolSearch"),
    all("WebFetch"),
    all("WebSearch"),
    all("Workflow"),
    all("Write"),
];

/// Returns whether a client that works with one of the newer models, or with an older one, knows the
/// tool `name`. `is_referred` says of a tool whether the session refers to it.
///
/// ```
/// use transcript_format::client_tools::is_known;
///
/// let nothing = |_: &str| false;
/// assert!(is_known("TaskCreate", false, nothing) && !is_known("TaskCreate", true, nothing));
/// assert!(!is_known("mcp__server__tool", false, nothing));
/// assert!(is_known("KillShell", false, |tool| tool == "TaskStop"));
/// ```
#[must_use]
pub fn is_known(name: &str, newer_model: bool, is_referred: impl Fn(&str) -> bool) -> bool {
    let place = CLIENT_TOOLS.binary_search_by(|tool| tool.name.cmp(name));
    place.is_ok_and(|at| {
        let tool = CLIENT_TOOLS[at];
        !(newer_model && tool.only_older_models) && tool.only_beside.is_none_or(is_referred)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted_and_each_is_found() {
        assert!(CLIENT_TOOLS.is_sorted_by(|a, b| a.name < b.name));
        assert!(
            CLIENT_TOOLS
                .iter()
                .all(|tool| is_known(tool.name, false, |_| true))
        );
        let known = |name| is_known(name, true, |_| false);
        assert!(
            known("Agent")
                && known("Write")
                && !known("TaskList")
                && !known("KillShell")
                && !known("agent")
        );
    }
}
