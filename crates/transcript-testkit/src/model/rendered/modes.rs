//! Attachments about the mode in which the model works.

use serde_json::Value;

use super::field;
use crate::model::js;

const BASH_FIRST: &str = "Do your work through the Bash tool wherever it can accomplish the job: \
                          read files with cat, head, or sed -n, search with grep and find, and make \
                          file changes with sed, heredocs, or short scripts, rather than using the \
                          dedicated Read, Edit, or Write tools. Fall back to a dedicated tool only \
                          when Bash genuinely cannot do the job.";

const NO_EDITS: &str = "The user indicated that they do not want you to execute yet -- you MUST NOT \
                        make any edits, run any non-readonly tools (including changing configs or \
                        making commits), or otherwise make any changes to the system. This \
                        supercedes any other instructions you have received";

/// The text about plan mode. The full one is in our words: that of the client is long.
pub(super) fn plan_mode(attachment: &Value) -> String {
    let path = attachment
        .get("planFilePath")
        .map(|path| js::text(Some(path)));
    let is_sparse = attachment["reminderType"] == "sparse";
    match path {
        _ if js::is_truthy(&attachment["isSubAgent"]) => plan_mode_of_subagent(attachment),
        Some(path) if is_sparse => format!(
            "Plan mode still active (see full instructions earlier in conversation). Read-only \
             except plan file ({path}). Follow 5-phase workflow. End turns with AskUserQuestion \
             (for clarifications) or ExitPlanMode (for plan approval). Never ask about plan \
             approval via text or AskUserQuestion."
        ),
        None if is_sparse => "Plan mode still active (see full instructions earlier in \
                              conversation). Read-only, and there is no plan file. Follow 5-phase \
                              workflow. When the plan is final, give it in your reply. Only the \
                              user can end plan mode, by changing the session's permission mode."
            .to_owned(),
        _ => format!(
            "Plan mode is active. Make no edits but to the plan file {}, and run nothing that \
             changes the system.",
            path.unwrap_or_default()
        ),
    }
}

fn plan_mode_of_subagent(attachment: &Value) -> String {
    let Some(path) = attachment.get("planFilePath") else {
        return format!(
            "Plan mode is active. {NO_EDITS}. Answer the query you were given comprehensively in \
             your final message, and do not write a plan or anything else to a file."
        );
    };
    let path = js::text(Some(path));
    let plan = if js::is_truthy(&attachment["planExists"]) {
        format!(
            "A plan file already exists at {path}. You can read it and make incremental edits using \
             the Edit tool if you need to."
        )
    } else {
        format!(
            "No plan file exists yet. You should create your plan at {path} using the Write tool if \
             you need to."
        )
    };
    format!(
        "Plan mode is active. {NO_EDITS} (for example, to make edits). Instead, you should:\n\n## \
         Plan File Info:\n{plan}\nYou should build your plan incrementally by writing to or \
         editing this file. NOTE that this is the only file you are allowed to edit - other than \
         this you are only allowed to take READ-ONLY actions.\nAnswer the user's query \
         comprehensively, using the AskUserQuestion tool if you need to ask the user clarifying \
         questions. If you do use the AskUserQuestion, make sure to ask all clarifying questions \
         you need to fully understand the user's intent before proceeding."
    )
}

pub(super) fn plan_mode_exit(attachment: &Value) -> String {
    let mut text = "## Exited Plan Mode\n\nYou have exited plan mode. You can now make edits, run \
                    tools, and take actions."
        .to_owned();
    if js::is_truthy(&attachment["planExists"]) {
        text += &format!(
            " The plan file is located at {} if you need to reference it.",
            field(attachment, "planFilePath")
        );
    }
    text
}

pub(super) fn plan_mode_reentry(attachment: &Value) -> String {
    format!(
        "## Re-entering Plan Mode\n\nYou are returning to plan mode after having previously exited \
         it. A plan file exists at {} from your previous planning session.\n\n**Before proceeding \
         with any new planning, you should:**\n1. Read the existing plan file to understand what \
         was previously planned\n2. Evaluate the user's current request against that plan\n3. \
         Decide how to proceed:\n   - **Different task**: If the user's request is for a different \
         task—even if it's similar or related—start fresh by overwriting the existing plan\n   - \
         **Same task, continuing**: If this is explicitly a continuation or refinement of the \
         exact same task, modify the existing plan while cleaning up outdated or irrelevant \
         sections\n4. Continue on with the plan process and most importantly you should always \
         edit the plan file one way or the other before calling ExitPlanMode\n\nTreat this as a \
         fresh planning session. Do not assume the existing plan is relevant without evaluating it \
         first.",
        field(attachment, "planFilePath")
    )
}

pub(super) fn plan_file(attachment: &Value) -> String {
    let place = match attachment.get("planFilePath") {
        None => "A plan exists from plan mode.".to_owned(),
        path => format!("A plan file exists from plan mode at: {}", js::text(path)),
    };
    format!(
        "{place}\n\nPlan contents:\n\n{}\n\nIf this plan is relevant to the current work and not \
         already complete, continue working on it.",
        field(attachment, "planContent")
    )
}

/// The text about auto mode. What it says about consent is in our words: that of the client is long.
pub(super) fn auto_mode(attachment: &Value) -> String {
    if js::is_truthy(&attachment["bypass"]) {
        return format!("While bypass permissions mode is active:\n\n{BASH_FIRST}");
    }
    if js::is_truthy(&attachment["steerOnly"]) {
        return format!("While auto mode is active:\n\n{BASH_FIRST}");
    }
    let mut text = "## Auto Mode Active\n\nBias toward working without stopping for clarifying \
                    questions — when you'd normally pause to check, make the reasonable call and \
                    keep going; they'll redirect you if needed. If the user, a skill, or the shape \
                    of the task suggests they want you to ask (with AskUserQuestion or otherwise), \
                    do so. And even absent that signal, it's still fine to stop when you're \
                    genuinely blocked — unclear direction, missing input, a decision only they can \
                    make.\n\nBefore any command that could discard uncommitted work — `git \
                    checkout`/`restore`/`reset`/`clean`, `rm -rf` in the repo, restoring from a \
                    snapshot — run `git status` first and stash (with `-u` for untracked) or \
                    commit anything that's there. When staging or committing, review what's \
                    included (`git status` after a broad `git add`), and if you see anything \
                    suspicious that might reveal secrets — even if the filename looks innocuous — \
                    double-check the file's contents before pushing."
        .to_owned();
    if js::is_truthy(&attachment["autoModeConsentFlow"]) {
        text += "\n\nWhen an action is blocked, go on with something that is not, and ask for \
                 consent to all blocked actions at once.";
    }
    if js::is_truthy(&attachment["bashFirst"]) {
        text += &format!("\n\n{BASH_FIRST}");
    }
    text
}

pub(super) const AUTO_MODE_EXIT: &str = "## Exited Auto Mode\n\nYou have exited auto mode. The user \
                                         may now want to interact more directly. You should ask \
                                         clarifying questions when the approach is ambiguous rather \
                                         than making assumptions.";

pub(super) const ULTRATHINK: &str = "The user included the keyword \"ultrathink\", requesting deeper \
                                     reasoning on this turn. Reason as thoroughly as the task \
                                     warrants.";

pub(super) const WORKFLOW_KEYWORD: &str = "The user included the keyword \"ultracode\", opting this \
                                           turn into multi-agent orchestration — use the Workflow \
                                           tool to fulfill the request.";

pub(super) fn ultra_effort(attachment: &Value) -> &'static str {
    if attachment["reminderType"] == "full" {
        "Ultracode is on: optimize for the most exhaustive, correct answer — not the fastest or \
         cheapest. Use the Workflow tool on every substantive task; token cost is not a \
         constraint. See the **Ultracode** section and quality patterns in the workflow authoring \
         reference. Solo only on conversational/trivial turns."
    } else {
        "Ultracode is still on — use the Workflow tool; see the Ultracode section of the workflow \
         authoring reference."
    }
}

pub(super) const ULTRA_EFFORT_EXIT: &str =
    "Ultracode is off — the Workflow tool's standard opt-in rule applies again.";
