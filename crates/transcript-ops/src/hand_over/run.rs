//! Hands a session over: reads it, plans the new one, and writes it.

use std::env;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use transcript_import::Error;
use transcript_import::handover::{Conversion, Home, Items, Options, Target};
use transcript_redact::Redactor;

use super::given::{Given, with_given};
use super::records::{file_record, record_of};
use super::redacted_items::RedactedItems;
use super::settings::HandOverSettings;
use super::target_home::{TargetHome, target_named};
use crate::context::Context;
use crate::failure::{Failure, message_of};
use crate::redact::redactor;
use crate::wire::HandOverRecord;

/// Hands a session over to another agent: plans the new session in the home folder of the agent, and writes it if that is wanted.
///
/// Nothing is overwritten, and nothing stays of a hand-over that fails. What an interruption leaves is not listed, or the whole
/// session.
///
/// # Errors
/// When the target is unknown, its home folder does not exist, the session cannot be found or read or has nothing to hand over, or the
/// new one cannot be written.
pub fn hand_over(
    settings: &HandOverSettings,
    context: &Context,
) -> Result<HandOverRecord, Failure> {
    let target = target_named(&settings.to)?;
    let disk = context.live_disk();
    let target_home = TargetHome::of(target, settings, &**disk)?;
    let home = Home {
        disk: &**disk,
        path: &target_home.path,
    };
    with_plan(
        settings,
        context,
        target,
        Some(home),
        |conversion, record| {
            let files = if settings.write {
                conversion.write_in(home)
            } else {
                conversion.changes_in(home)
            };
            let files = files.map_err(|error| not_written(error, target, &record.session_id))?;
            record.written = settings.write;
            record.files = files.into_iter().map(file_record).collect();
            record.home = Some(target_home.path.clone());
            if let Some(variables) = target_home.variables(target) {
                record.environment = variables;
                record.command = target.command(&record.session_id);
            }
            Ok(())
        },
    )
}

/// Converts a session: writes the file with the conversation to `out`. Small files that an agent keeps beside it are not written.
///
/// # Errors
/// As [`hand_over`], without a home folder; when `out` fails.
pub fn convert(
    settings: &HandOverSettings,
    context: &Context,
    out: &mut dyn Write,
) -> Result<HandOverRecord, Failure> {
    let target = target_named(&settings.to)?;
    with_plan(settings, context, target, None, |conversion, record| {
        conversion.write_to(out).map_err(failed)?;
        record.written = true;
        Ok(())
    })
}

/// Plans the new session, gives it to `write` with its record, and returns the record.
fn with_plan(
    settings: &HandOverSettings,
    context: &Context,
    target: Target,
    home: Option<Home<'_>>,
    write: impl FnOnce(&Conversion<'_>, &mut HandOverRecord) -> Result<(), Failure>,
) -> Result<HandOverRecord, Failure> {
    let redactor = redactor_of(settings);
    with_given(settings, context, |given| {
        let redacted = redactor
            .as_ref()
            .map(|redactor| RedactedItems::new(given.items, redactor));
        let mut options = options_of(settings, given, redactor.as_ref());
        options.start = modified(given.path, context);
        // What is written into a home folder is new there. Copies elsewhere can be compared.
        let is_in_home = home.is_some() && !settings.creates_home;
        options.written = is_in_home.then(|| Timestamp::now().as_millisecond());
        let items = items_of(given, redacted.as_ref());
        let conversion = match home {
            Some(home) => Conversion::plan_in(items, target, &options, home),
            None => Conversion::plan(items, target, &options),
        };
        let conversion = conversion.map_err(failed)?;
        check_carried(&conversion, target, given)?;
        let mut record = record_of(given, target, &options, &conversion);
        write(&conversion, &mut record)?;
        record.redactions = redacted.map(|items| items.found_count());
        Ok(record)
    })
}

/// Returns when a file was written, in milliseconds since 1970: the time of conversations without times. 0 if that is not known.
fn modified(path: &Path, context: &Context) -> i64 {
    let metadata = context.read_disk().metadata(path).ok();
    let time = metadata.and_then(|metadata| metadata.modified);
    let time = time.and_then(|time| Timestamp::try_from(time).ok());
    time.map_or(0, Timestamp::as_millisecond)
}

fn redactor_of(settings: &HandOverSettings) -> Option<Redactor> {
    let usual = || settings.redact.then(|| redactor(false, false, &[], &[]));
    settings.redactor.clone().or_else(usual)
}

fn items_of<'i>(given: &'i Given<'_>, redacted: Option<&'i RedactedItems<'_>>) -> &'i dyn Items {
    match redacted {
        Some(redacted) => redacted,
        None => given.items,
    }
}

fn options_of(
    settings: &HandOverSettings,
    given: &Given<'_>,
    redactor: Option<&Redactor>,
) -> Options {
    let title = settings.title.clone().or_else(|| given.title.clone());
    let redacted = |title: String| match redactor {
        Some(redactor) => redactor.redact_text(&title),
        None => title,
    };
    let asked = settings.cwd.as_ref();
    let asked = asked.map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone()));
    let asked = asked.map(|folder| folder.display().to_string());
    let present = || env::current_dir().unwrap_or_default().display().to_string();
    Options {
        cwd: asked.or_else(|| given.cwd.clone()).unwrap_or_else(present),
        title: title.map(redacted),
        // Without an id the conversation itself is what it is known by.
        seed: given.session_id.clone().unwrap_or_default(),
        agent: Some(given.agent.to_owned()),
        ..Options::default()
    }
}

/// Checks that something arrives: an empty session could not be continued.
fn check_carried(
    conversion: &Conversion<'_>,
    target: Target,
    given: &Given<'_>,
) -> Result<(), Failure> {
    if conversion.report().carried > 0 {
        return Ok(());
    }
    let message = match conversion.report().items {
        0 => "the session has no conversation to hand over".to_owned(),
        count => format!("{target} can hold none of the {count} items of the session"),
    };
    Err(Failure::new("not-resumable", message).in_file(given.path))
}

/// Says why nothing is written. Ids depend on what is handed over: a file of this name has the same conversation, perhaps with more behind it.
fn not_written(error: Error, target: Target, session_id: &str) -> Failure {
    let path = match error {
        Error::Io { path, error } if error.kind() == io::ErrorKind::AlreadyExists => path,
        error => return failed(error),
    };
    let failure = Failure::new(
        "exists",
        format!("this state of the session is already handed over to {target}, as {session_id}"),
    );
    let command = target.command(session_id).join(" ");
    let failure = failure.in_file(&path);
    if command.is_empty() {
        return failure;
    }
    failure.with_next(format!("continue it there: {command}"))
}

fn failed(error: Error) -> Failure {
    match error {
        Error::Io { path, error } => Failure::from(error).in_file(&path),
        Error::Write { error } => error.into(),
        error => Failure::new("unreadable", message_of(&error)),
    }
}
