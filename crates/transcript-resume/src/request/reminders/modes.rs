//! Attachments about the mode in which the model works.

use transcript_format::attachment_texts::{self as texts, filled};

use super::fields::{Fields, text};

/// Returns whether the text about plan mode is the full one, which is in our words: that of the client
/// is long.
pub(super) fn is_full_plan_mode(attachment: &Fields<'_>) -> bool {
    !attachment.is_set("isSubAgent") && attachment.str("reminderType") != "sparse"
}

/// The text about plan mode.
pub(super) fn plan_mode(attachment: &Fields<'_>) -> String {
    let path = attachment.get("planFilePath");
    let path = path.map(|path| text(Some(path)));
    let is_sparse = attachment.str("reminderType") == "sparse";
    match path {
        _ if attachment.is_set("isSubAgent") => plan_mode_of_subagent(attachment),
        Some(path) if is_sparse => filled(texts::PLAN_MODE_SPARSE, &[("path", &path)]),
        None if is_sparse => texts::PLAN_MODE_SPARSE_NO_FILE.to_owned(),
        _ => filled(texts::PLAN_MODE, &[("path", &path.unwrap_or_default())]),
    }
}

fn plan_mode_of_subagent(attachment: &Fields<'_>) -> String {
    let Some(path) = attachment.get("planFilePath") else {
        return filled(
            texts::PLAN_MODE_SUBAGENT_NO_FILE,
            &[("no_edits", texts::NO_EDITS)],
        );
    };
    let path = text(Some(path));
    let plan = if attachment.is_set("planExists") {
        filled(texts::PLAN_FILE_EXISTS, &[("path", &path)])
    } else {
        filled(texts::PLAN_FILE_MISSING, &[("path", &path)])
    };
    filled(
        texts::PLAN_MODE_SUBAGENT,
        &[("no_edits", texts::NO_EDITS), ("plan", &plan)],
    )
}

pub(super) fn plan_mode_exit(attachment: &Fields<'_>) -> String {
    let mut text = texts::PLAN_MODE_EXIT.to_owned();
    if attachment.is_set("planExists") {
        text += &filled(
            texts::PLAN_MODE_EXIT_FILE,
            &[("path", &attachment.text("planFilePath"))],
        );
    }
    text
}

pub(super) fn plan_mode_reentry(attachment: &Fields<'_>) -> String {
    filled(
        texts::PLAN_MODE_REENTRY,
        &[("path", &attachment.text("planFilePath"))],
    )
}

pub(super) fn plan_file(attachment: &Fields<'_>) -> String {
    let place = match attachment.get("planFilePath") {
        None => texts::PLAN_WITHOUT_FILE.to_owned(),
        path => filled(texts::PLAN_WITH_FILE, &[("path", &text(path))]),
    };
    filled(
        texts::PLAN,
        &[
            ("place", &place),
            ("content", &attachment.text("planContent")),
        ],
    )
}

/// Returns whether the text about auto mode is also about consent, which it says in our words: those
/// of the client are long.
pub(super) fn asks_for_consent(attachment: &Fields<'_>) -> bool {
    !attachment.is_set("bypass")
        && !attachment.is_set("steerOnly")
        && attachment.is_set("autoModeConsentFlow")
}

/// The text about auto mode.
pub(super) fn auto_mode(attachment: &Fields<'_>) -> String {
    if attachment.is_set("bypass") {
        return filled(
            texts::BASH_FIRST_IN_BYPASS_MODE,
            &[("bash_first", texts::BASH_FIRST)],
        );
    }
    if attachment.is_set("steerOnly") {
        return filled(
            texts::BASH_FIRST_IN_AUTO_MODE,
            &[("bash_first", texts::BASH_FIRST)],
        );
    }
    let mut text = texts::AUTO_MODE.to_owned();
    if asks_for_consent(attachment) {
        text += texts::AUTO_MODE_CONSENT;
    }
    if attachment.is_set("bashFirst") {
        text += "\n\n";
        text += texts::BASH_FIRST;
    }
    text
}

pub(super) fn ultra_effort(attachment: &Fields<'_>) -> &'static str {
    if attachment.str("reminderType") == "full" {
        texts::ULTRA_EFFORT
    } else {
        texts::ULTRA_EFFORT_SPARSE
    }
}
