//! Attachments about the mode in which the model works.

use serde_json::Value;
use transcript_format::attachment_texts::{self as texts, filled};

use super::parts::field;
use crate::model::js;

/// The text about plan mode. The full one is in our words: that of the client is long.
pub(super) fn plan_mode(attachment: &Value) -> String {
    let path = attachment
        .get("planFilePath")
        .map(|path| js::text(Some(path)));
    let is_sparse = attachment["reminderType"] == "sparse";
    match path {
        _ if js::is_truthy(&attachment["isSubAgent"]) => plan_mode_of_subagent(attachment),
        Some(path) if is_sparse => filled(texts::PLAN_MODE_SPARSE, &[("path", &path)]),
        None if is_sparse => texts::PLAN_MODE_SPARSE_NO_FILE.to_owned(),
        _ => filled(texts::PLAN_MODE, &[("path", &path.unwrap_or_default())]),
    }
}

fn plan_mode_of_subagent(attachment: &Value) -> String {
    let Some(path) = attachment.get("planFilePath") else {
        return filled(
            texts::PLAN_MODE_SUBAGENT_NO_FILE,
            &[("no_edits", texts::NO_EDITS)],
        );
    };
    let path = js::text(Some(path));
    let plan = if js::is_truthy(&attachment["planExists"]) {
        filled(texts::PLAN_FILE_EXISTS, &[("path", &path)])
    } else {
        filled(texts::PLAN_FILE_MISSING, &[("path", &path)])
    };
    filled(
        texts::PLAN_MODE_SUBAGENT,
        &[("no_edits", texts::NO_EDITS), ("plan", &plan)],
    )
}

pub(super) fn plan_mode_exit(attachment: &Value) -> String {
    let mut text = texts::PLAN_MODE_EXIT.to_owned();
    if js::is_truthy(&attachment["planExists"]) {
        text += &filled(
            texts::PLAN_MODE_EXIT_FILE,
            &[("path", &field(attachment, "planFilePath"))],
        );
    }
    text
}

pub(super) fn plan_mode_reentry(attachment: &Value) -> String {
    filled(
        texts::PLAN_MODE_REENTRY,
        &[("path", &field(attachment, "planFilePath"))],
    )
}

pub(super) fn plan_file(attachment: &Value) -> String {
    let place = match attachment.get("planFilePath") {
        None => texts::PLAN_WITHOUT_FILE.to_owned(),
        path => filled(texts::PLAN_WITH_FILE, &[("path", &js::text(path))]),
    };
    filled(
        texts::PLAN,
        &[
            ("place", &place),
            ("content", &field(attachment, "planContent")),
        ],
    )
}

/// The text about auto mode. What it says about consent is in our words: that of the client is long.
pub(super) fn auto_mode(attachment: &Value) -> String {
    if js::is_truthy(&attachment["bypass"]) {
        return filled(
            texts::BASH_FIRST_IN_BYPASS_MODE,
            &[("bash_first", texts::BASH_FIRST)],
        );
    }
    if js::is_truthy(&attachment["steerOnly"]) {
        return filled(
            texts::BASH_FIRST_IN_AUTO_MODE,
            &[("bash_first", texts::BASH_FIRST)],
        );
    }
    let mut text = texts::AUTO_MODE.to_owned();
    if js::is_truthy(&attachment["autoModeConsentFlow"]) {
        text += texts::AUTO_MODE_CONSENT;
    }
    if js::is_truthy(&attachment["bashFirst"]) {
        text += "\n\n";
        text += texts::BASH_FIRST;
    }
    text
}

pub(super) fn ultra_effort(attachment: &Value) -> &'static str {
    if attachment["reminderType"] == "full" {
        texts::ULTRA_EFFORT
    } else {
        texts::ULTRA_EFFORT_SPARSE
    }
}
