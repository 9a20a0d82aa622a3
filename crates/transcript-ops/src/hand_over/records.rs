//! The record of a hand-over.

use std::collections::BTreeMap;

use transcript_import::handover::{
    Added, Addition, Changed, Conversion, FileChange, LossReport, Omitted, Options, Target,
};

use super::given::Given;
use crate::wire::{
    AddedItemRecord, ChangedItemRecord, HandOverRecord, HandOverReport, OmittedItemRecord, SCHEMA,
    WrittenFileRecord,
};

/// Returns the record of a new session that is not written.
pub(super) fn record_of(
    given: &Given<'_>,
    target: Target,
    options: &Options,
    conversion: &Conversion<'_>,
) -> HandOverRecord {
    HandOverRecord {
        schema: SCHEMA,
        kind: "handOver".into(),
        written: false,
        target: target.name().into(),
        session_id: conversion.session_id(),
        title: options.title.clone(),
        cwd: options.cwd.clone(),
        home: None,
        files: Vec::new(),
        command: Vec::new(),
        environment: BTreeMap::new(),
        source: given.path.to_owned(),
        source_agent: given.agent.to_owned().into(),
        source_session_id: given.session_id.clone(),
        redactions: None,
        report: report_of(conversion.report()),
    }
}

pub(super) fn file_record(file: FileChange) -> WrittenFileRecord {
    WrittenFileRecord {
        path: file.path,
        bytes: file.bytes,
        is_new: file.is_new,
    }
}

fn report_of(report: &LossReport) -> HandOverReport {
    let counts = report.counts.iter();
    HandOverReport {
        items: report.items as u64,
        carried: report.carried as u64,
        counts: counts
            .map(|(name, count)| ((*name).to_owned(), *count as u64))
            .collect(),
        omitted: report.omitted.iter().map(omitted_record).collect(),
        changed: report.changed.iter().map(changed_record).collect(),
        added: report.added.iter().map(added_record).collect(),
        models: report.models.clone(),
        usage: report.usage as u64,
        signatures: report.signatures as u64,
    }
}

fn omitted_record(omitted: &Omitted) -> OmittedItemRecord {
    OmittedItemRecord {
        item: omitted.item as u64,
        kind: omitted.kind.into(),
        reason: omitted.reason.name().into(),
    }
}

fn changed_record(changed: &Changed) -> ChangedItemRecord {
    ChangedItemRecord {
        item: changed.item as u64,
        change: changed.change.name().into(),
        from: changed.from.clone(),
        to: changed.to.clone(),
        images: changed.images.map(|images| images as u64),
    }
}

fn added_record(added: &Added) -> AddedItemRecord {
    let what = match added.what {
        Addition::Prompt => "prompt",
        Addition::Result => "result",
        Addition::Answer => "answer",
        other => other.name(),
    };
    AddedItemRecord {
        item: added.item as u64,
        what: what.into(),
    }
}
