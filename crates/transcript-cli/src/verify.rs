//! `transcript verify`: checks sessions for damage, and for what a resume would lose.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as ClapArgs;
use transcript_engine::RootArchive;
use transcript_engine::archive::{Archive, CheckOptions};
use transcript_engine::verify::{
    LocatedFinding, RebuiltRequests, Report, Verdict, VersionRequests, advice, verify_folder,
    verify_source,
};
use transcript_engine::wire::{ArchiveCheckReport, LossRecord, VerifyRecord, VerifySumRecord};
use transcript_format::units::size;
use transcript_ops::context::is_path;
use transcript_ops::verify::{VerifySettings, each_report};
use transcript_render::{TextStyle, count};
use transcript_storage::{ReadDisk, RealDisk};

use crate::closed::is_closed_pipe;
use crate::pager::Output;
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{archive, exit, record, session};

/// Check sessions for damage
///
/// Finds damage, and what `claude --resume` would lose. Checks every line, every link, and the requests that Claude Code and this program would send. The
/// exit code is 0 if nothing is wrong, 1 if there are findings, and 3 if Claude Code would show less
/// of a conversation than its file has.
///
/// Without a session, checks all; with `--archive` and no session, checks the archive and lists its lost parts: exit
/// code 0 or 1.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Paths of .jsonl files or of folders, ids of sessions (with their subagents), or - for
    /// standard input [default: all sessions]
    #[arg(conflicts_with = "subset", value_name = "SESSION|DIR")]
    sessions: Vec<PathBuf>,
    /// Rebuild every request that Claude Code recorded in the files; print for each of its versions how
    /// many are reproduced, and where the first one differs
    #[arg(long)]
    requests: bool,
    /// Report sessions that Claude Code deletes within this number of days
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    sweep: u32,
    /// With --archive: read only part K of N parts of the archive
    #[arg(long, value_name = "K/N", requires = "archive", value_parser = subset)]
    subset: Option<(u32, NonZeroU32)>,
    /// Print one JSON object per line for each session
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, mut args: Args) -> Result<u8> {
    match ui.archive.take() {
        // The word after `--archive` is the folder of the archive, and not a session that is to be verified.
        Some(Some(word)) if args.sessions.is_empty() && is_session(&word) => {
            args.sessions.push(word);
        }
        archive => ui.archive = archive,
    }
    if args.sessions.is_empty() && ui.archive.is_some() {
        return verify_archives(ui, &args);
    }
    let is_everything = args.sessions.is_empty();
    if is_everything {
        let folders = session::roots(ui)?.places.iter().map(|root| &root.folder);
        let there = folders.filter(|folder| RealDisk.is_folder(folder));
        args.sessions.extend(there.cloned());
        if args.sessions.is_empty() {
            session::note_no_sessions(ui);
            return Ok(exit::DONE);
        }
    }
    verify_sessions(ui, &args, is_everything)
}

/// Returns whether a word names a session: a file, or what can be no path.
fn is_session(word: &Path) -> bool {
    RealDisk.is_file(word) || !is_path(word) && !RealDisk.exists(word)
}

fn verify_sessions(ui: &Ui, args: &Args, is_everything: bool) -> Result<u8> {
    let mut out = Output::paged_unless(args.json);
    let mut printer = Printer {
        ui,
        is_json: args.json,
        is_table: false,
        needs_head: false,
        folder: match &args.sessions[..] {
            [folder] if RealDisk.is_folder(folder) => Some(folder.clone()),
            _ => None,
        },
        details: Vec::new(),
        files: 0,
        requests: args.requests.then(RebuiltRequests::default),
        code: exit::DONE,
    };
    let printed = printer.all(&mut out, args);
    out.finish_after(printed)?;
    if is_everything && printer.files == 0 && printer.code == exit::DONE && !args.json {
        session::note_no_sessions(ui);
    }
    Ok(printer.code)
}

/// Reads `K/N`, counted from 1.
fn subset(text: &str) -> Result<(u32, NonZeroU32), String> {
    let parts = text.split_once('/');
    let parts = parts.and_then(|(part, of)| Some((part.parse::<u32>().ok()?, of.parse().ok()?)));
    match parts {
        Some((part, of)) if (1..=NonZeroU32::get(of)).contains(&part) => Ok((part - 1, of)),
        _ => Err("it is not of the form K/N with K from 1 to N, such as 1/7".into()),
    }
}

/// Verifies the archives of all roots that are in use.
fn verify_archives(ui: &Ui, args: &Args) -> Result<u8> {
    archive::check(ui)?;
    let context = session::context(ui);
    let (mut seen, mut code) = (HashSet::new(), exit::DONE);
    for archive in context.archives().map(RootArchive::disk) {
        if seen.insert(archive.folder()) {
            code = code.max(verify_archive(ui, args, archive.folder())?);
        }
    }
    Ok(code)
}

fn verify_archive(ui: &Ui, args: &Args, folder: &Path) -> Result<u8> {
    let archive = Archive::open_with(folder, &ui.archive_options()?)?;
    let progress = Progress::start(ui);
    progress.expect(archive.stored_bytes());
    let mut options = CheckOptions::new().count_bytes(progress.counter());
    if let Some((part, of)) = args.subset {
        options = options.subset(part, of);
    }
    let check = archive.check(&options)?;
    drop(progress);
    let report = ArchiveCheckReport::new(folder, &check);
    let mut out = Output::plain();
    if args.json {
        record::write(&mut out, &report)?;
    } else {
        let shown = |path: &str| ui.escaping.one_line(path);
        for damage in &report.damages {
            let at = damage.offset.map(|offset| format!(", offset {offset}"));
            let at = at.unwrap_or_default();
            writeln!(
                out,
                "{}{at}: {}",
                shown(&damage.path),
                shown(&damage.reason)
            )?;
        }
        for loss in &report.losses {
            let LossRecord {
                path,
                first_line,
                last_line,
                ..
            } = loss;
            writeln!(
                out,
                "lost: {}, lines {first_line} to {last_line}",
                shown(path)
            )?;
        }
        let read = format!("{}, {}", count(report.frames, "frame"), size(report.bytes));
        if report.damages.is_empty() {
            writeln!(
                out,
                "nothing is damaged: {read} in {}",
                shown(&report.archive)
            )?;
        } else {
            writeln!(
                out,
                "{} in {}; {read} read; {} lost. Sessions whose files are still there are whole again \
             after `transcript keep --full`",
                count(report.damages.len(), "damage"),
                shown(&report.archive),
                count(report.losses.len(), "part of a file")
                    .replace("part of a files", "parts of files"),
            )?;
        }
    }
    out.finish()?;
    Ok(exit::done_if(report.damages.is_empty()))
}

struct Printer<'u> {
    ui: &'u Ui,
    is_json: bool,
    /// Whether several sessions are printed: a line each, and the details below.
    is_table: bool,
    /// Whether the names of the columns are still to be printed, before the first line.
    needs_head: bool,
    /// The folder to which paths are shown relative.
    folder: Option<PathBuf>,
    details: Vec<Report>,
    files: u64,
    /// The recorded requests of all sessions, if they are to be built.
    requests: Option<RebuiltRequests>,
    code: u8,
}

impl Printer<'_> {
    fn all(&mut self, out: &mut Output, args: &Args) -> Result<()> {
        let settings = VerifySettings {
            requests: args.requests,
            sweep: Some(args.sweep),
            ..VerifySettings::default()
        };
        let is_folder = args
            .sessions
            .iter()
            .any(|session| RealDisk.is_folder(session));
        self.is_table = is_folder || args.sessions.len() > 1;
        self.needs_head = self.is_table;
        let are_several = args.sessions.len() > 1;
        for argument in &args.sessions {
            match self.one(out, argument, &settings) {
                // The others are verified all the same.
                Err(error) if are_several && !is_closed_pipe(&error) => {
                    self.ui.complain(&error);
                    self.code = self.code.max(exit::FAILED);
                }
                done => done?,
            }
        }
        let details = std::mem::take(&mut self.details);
        for report in &details {
            writeln!(out)?;
            self.detail(out, report)?;
        }
        self.sum(out)
    }

    /// Writes the number of recorded requests of several sessions that are reproduced, by version of the client.
    fn sum(&self, out: &mut Output) -> Result<()> {
        let Some(requests) = self.requests.as_ref().filter(|_| self.is_table) else {
            return Ok(());
        };
        if self.is_json {
            return record::write(out, &VerifySumRecord::new(self.files, requests));
        }
        writeln!(out)?;
        if requests.versions.is_empty() {
            writeln!(out, "no requests are recorded")?;
        }
        for version in &requests.versions {
            let path = version.first.as_ref().map(|first| self.name(&first.path));
            writeln!(out, "{}", reproduced(version, path.as_deref()))?;
        }
        Ok(())
    }

    fn one(&mut self, out: &mut Output, argument: &Path, settings: &VerifySettings) -> Result<()> {
        let progress = Progress::start(self.ui);
        let context = progress.of(session::context(self.ui));
        let options = settings.options(&context);
        if RealDisk.is_folder(argument) {
            let mut printed = Ok(());
            let mut each = |report: Result<Report, _>| {
                if printed.is_ok() {
                    printed = self.report(out, report.map_err(anyhow::Error::from));
                }
            };
            verify_folder(context.read_disk(), argument, &options, &mut each)?;
            return printed;
        }
        if argument == Path::new("-") {
            let source = session::source(self.ui, argument, None)?;
            let report = verify_source(&source, &options)?;
            drop(progress);
            return self.report(out, Ok(report));
        }
        let found = session::find_in(self.ui, argument, None)?;
        let (mut progress, mut printed) = (Some(progress), Ok(()));
        each_report(settings, &context, &found, &mut |report, is_session| {
            // It is removed before the first output.
            progress.take();
            self.is_table |= !is_session;
            if printed.is_ok() {
                printed = self.report(out, report.map_err(anyhow::Error::from));
            }
        })?;
        printed
    }

    fn report(&mut self, out: &mut Output, report: Result<Report>) -> Result<()> {
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                // The others are verified all the same.
                self.ui.complain(&error);
                self.code = self.code.max(exit::NO);
                return Ok(());
            }
        };
        self.code = self.code.max(match report.verdict() {
            Verdict::Clean => exit::DONE,
            Verdict::Noted | Verdict::Damaged => exit::NO,
            Verdict::Lossy => exit::LOSSY,
        });
        self.files += 1;
        if let (Some(sum), Some(requests)) = (&mut self.requests, &report.requests) {
            sum.add(requests);
        }
        if self.is_json {
            return record::write(out, &VerifyRecord::new(&report));
        }
        if !self.is_table {
            return self.detail(out, &report);
        }
        self.row(out, &report)?;
        if report.verdict() > Verdict::Noted {
            self.details.push(report);
        }
        Ok(())
    }

    /// Writes one line about a session: verdict, what the client shows, and the codes.
    fn row(&mut self, out: &mut Output, report: &Report) -> Result<()> {
        if std::mem::take(&mut self.needs_head) {
            let dim = self.ui.render.styles().dim;
            writeln!(out, "{dim}VERDICT           SEEN    LINES  SESSION{dim:#}")?;
        }
        let style = self.style(report.verdict());
        let verdict = report.verdict().name();
        let measure = &report.measure;
        let seen = format!("{} of {}", measure.vendor, measure.conversation);
        let codes: Vec<String> = by_code(report)
            .iter()
            .map(|findings| match findings.len() {
                1 => findings[0].code.as_str().to_owned(),
                count => format!("{} ×{count}", findings[0].code.as_str()),
            })
            .collect();
        let name = self.name(&report.path);
        let codes = codes.join(", ");
        let line = format!(
            "{style}{verdict:<8}{style:#} {seen:>13} {:>8}  {name}  {codes}",
            report.lines
        );
        Ok(writeln!(out, "{}", line.trim_end())?)
    }

    /// Writes everything about a session, with what to do.
    fn detail(&self, out: &mut Output, report: &Report) -> Result<()> {
        const MAX_PLACES: usize = 10;
        let (measure, style) = (&report.measure, self.style(report.verdict()));
        let name = self.name(&report.path);
        let verdict = report.verdict().name();
        let all = count(measure.conversation, "message");
        let mut seen = if let Some(agent) = &report.agent {
            format!("a session of {}, {all}", self.ui.escaping.one_line(agent))
        } else if report.is_stream_form {
            format!("output of the SDK (stream-json), {all}")
        } else if measure.vendor == measure.conversation {
            format!("Claude Code sees all {all}")
        } else {
            format!("Claude Code sees {} of {all}", measure.vendor)
        };
        if measure.recover != measure.vendor {
            seen.push_str(&format!(", transcript {}", measure.recover));
        }
        if measure.unnamed > 0 {
            seen.push_str(&format!(
                "; {} without a uuid are lost to it",
                measure.unnamed
            ));
        }
        if measure.foreign > 0 {
            seen.push_str(&format!(
                "; {} of another conversation are shown",
                measure.foreign
            ));
        }
        if let Some(refusal) = report.refusal {
            seen.push_str(&format!("; it would not resume: {}", refusal.reason()));
        }
        let text = format!("{name}: {verdict}, {seen}");
        self.ui.write_marked(out, &text, "  ", verdict, style)?;
        for version in report
            .requests
            .iter()
            .flat_map(|requests| &requests.versions)
        {
            writeln!(out, "  {}", reproduced(version, None))?;
        }
        for findings in by_code(report) {
            for finding in findings.iter().take(MAX_PLACES) {
                let text = format!("  {}", place(self.ui, finding));
                let plain = TextStyle::default();
                self.ui.write_wrapped(out, &text, "    ", plain)?;
            }
            if findings.len() > MAX_PLACES {
                writeln!(out, "  … and {} more", findings.len() - MAX_PLACES)?;
            }
            let dim = self.ui.render.styles().dim;
            let text = format!("    {}", advice(findings[0].code));
            self.ui.write_wrapped(out, &text, "    ", dim)?;
        }
        Ok(())
    }

    fn name(&self, path: &Path) -> String {
        let folder = self.folder.as_deref();
        let short = folder.and_then(|folder| path.strip_prefix(folder).ok());
        let name = short.unwrap_or(path).to_string_lossy();
        self.ui.escaping.one_line(&name)
    }

    fn style(&self, verdict: Verdict) -> TextStyle {
        let styles = self.ui.render.styles();
        match verdict {
            Verdict::Clean => styles.tool,
            Verdict::Noted => styles.dim,
            Verdict::Damaged => styles.agent,
            Verdict::Lossy => styles.error,
        }
    }
}

/// `2.1.331: 220 of 236 recorded requests reproduced, first difference at FILE, line 3, request ID: …`
fn reproduced(version: &VersionRequests, path: Option<&str>) -> String {
    let client = version.version.as_deref().unwrap_or("without a version");
    let counted = format!("{} of {}", version.reproduced, version.recorded);
    let mut text = format!("{client}: {counted} recorded requests reproduced");
    if version.unknown > 0 {
        text += &format!(", {} extend one that is not in the file", version.unknown);
    }
    if let Some(first) = &version.first {
        let line = first.line.map(|line| format!("line {line}"));
        let place: Vec<String> = path.map(str::to_owned).into_iter().chain(line).collect();
        text += &format!(
            ", first difference at {}, {}",
            place.join(", "),
            first.words()
        );
    }
    text
}

/// Groups the findings by code: damage first, and each in the order of its first place.
fn by_code(report: &Report) -> Vec<Vec<&LocatedFinding>> {
    let mut groups: Vec<Vec<&LocatedFinding>> = Vec::new();
    for finding in &report.findings {
        match groups
            .iter_mut()
            .find(|group| group[0].code == finding.code)
        {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups.sort_by_key(|group| Reverse(group[0].code.severity()));
    groups
}

/// `L-TORN-MID  line 3 at byte 812, 77 bytes: the line ends inside a value`
fn place(ui: &Ui, finding: &LocatedFinding) -> String {
    let (code, detail) = (finding.code.as_str(), ui.escaping.one_line(&finding.detail));
    match finding.line {
        Some(line) => format!(
            "{code}  line {line} at byte {}, {}: {detail}",
            finding.offset,
            count(finding.len, "byte")
        ),
        None => format!("{code}  {detail}"),
    }
}
