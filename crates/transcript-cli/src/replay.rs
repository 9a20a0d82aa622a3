//! `transcript replay`: the conversation as a person or a program wants to read it.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;
use transcript_format::entry::Entry;
use transcript_format::finding::{Finding, Severity};
use transcript_format::kind::EntryKind;
use transcript_format::object::Raw;
use transcript_reader::{Bodies, Candidate, Id};
use transcript_resume::{Path, PathEntry, Tree};
use transcript_session::History;

use crate::choice::Choice;
use crate::escape::one_line;
use crate::tell::{Teller, Tools};
use crate::{exit, explain, screen, session};

/// Print the conversation of a session
///
/// From its first entry to its leaf: who said what, each tool call with its result, compactions and
/// gaps marked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Path of a .jsonl file, or - for standard input
    session: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Add the whole raw line to each entry of the JSON output
    #[arg(long)]
    raw_entries: bool,
    /// Show what the agent thought
    #[arg(long)]
    thinking: bool,
    /// How much of tool calls and results to show
    #[arg(long, value_enum, default_value_t = Tools::Short)]
    tools: Tools,
    /// Print the decisions behind the path, and the findings, on standard error
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// JSON Lines
    Json,
    /// Line, offset and uuid; reads no bodies
    Ids,
}

pub(crate) fn run(args: &Args, output: &screen::Options) -> Result<u8> {
    let session = session::open(&args.session)?;
    let tree = session.tree(args.choice.policy());
    let path = args.choice.path(&tree)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let format = if args.json { Format::Json } else { args.format };
    match format {
        Format::Ids => write_ids(&mut out, &session, &path)?,
        Format::Json => write_json(&mut out, args, &session, &tree, &path)?,
        Format::Text => {
            let teller = Teller::new(
                &session,
                &path,
                tree.policy(),
                output.styles(),
                args.thinking,
                args.tools,
            );
            teller.tell(&mut out)?;
        }
    }
    out.flush()?;
    if args.explain {
        explain::write(&mut io::stderr().lock(), &tree, &path)?;
    } else if !output.quiet {
        note_findings(&tree, &path);
    }
    Ok(exit::DONE)
}

/// Tells how much is damaged; what is merely worth knowing is for those who ask.
pub(crate) fn note_findings(tree: &Tree<'_>, path: &Path) {
    if let Some(refusal) = path.refusal {
        screen::note(&format!(
            "note: the client would not resume: {}",
            refusal.reason()
        ));
    }
    let is_damage = |finding: &Finding| finding.code.severity() == Severity::Damage;
    let findings = explain::findings(tree, path);
    let count = findings.into_iter().filter(is_damage).count();
    if count > 0 {
        let findings = if count == 1 { "finding" } else { "findings" };
        screen::note(&format!("note: {count} {findings}; --explain lists them"));
    }
}

fn write_ids(out: &mut impl Write, session: &History, path: &Path) -> Result<()> {
    let mut number = itoa::Buffer::new();
    for entry in &path.entries {
        let candidate = session.index().candidate(entry.candidate());
        out.write_all(number.format(candidate.line()).as_bytes())?;
        out.write_all(b" ")?;
        out.write_all(number.format(candidate.offset()).as_bytes())?;
        out.write_all(b" ")?;
        match candidate.uuid() {
            Some(Id::Uuid(uuid)) => out.write_all(&uuid.text())?,
            Some(odd) => out.write_all(one_line(&session.index().id_text(odd)).as_bytes())?,
            None => out.write_all(b"-")?,
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Record<'a> {
    #[serde(rename_all = "camelCase")]
    Session {
        schema: u32,
        session_id: Option<String>,
        path: String,
        policy: &'static str,
        leaf: Option<String>,
        lines: u64,
        entries: usize,
    },
    #[serde(rename_all = "camelCase")]
    Entry {
        line: u64,
        offset: u64,
        len: u64,
        uuid: Option<String>,
        parent_uuid: Option<String>,
        r#type: Option<&'a str>,
        subtype: Option<&'a str>,
        timestamp: Option<&'a str>,
    },
    End {
        findings: usize,
        decisions: usize,
    },
}

fn write_json(
    out: &mut impl Write,
    args: &Args,
    session: &History,
    tree: &Tree<'_>,
    path: &Path,
) -> Result<()> {
    let index = session.index();
    let uuid = |number: usize| index.candidate(number).uuid().map(|id| index.id_text(id));
    write_record(
        out,
        &Record::Session {
            schema: 1,
            session_id: session.session_id(),
            path: session.source().path().to_string_lossy().into_owned(),
            policy: tree.policy().name(),
            leaf: path.leaf.and_then(uuid),
            lines: index.line_count(),
            entries: index.len(),
        },
    )?;
    let mut bodies = Bodies::new(session.source());
    for entry in &path.entries {
        let candidate = index.candidate(entry.candidate());
        let body = bodies.get(&candidate)?;
        write_entry(out, args, session, entry, &candidate, body.text)?;
    }
    let findings = explain::findings(tree, path).len();
    let decisions = path.decisions.len();
    write_record(
        out,
        &Record::End {
            findings,
            decisions,
        },
    )
}

fn write_entry(
    out: &mut impl Write,
    args: &Args,
    session: &History,
    entry: &PathEntry,
    candidate: &Candidate<'_>,
    text: &str,
) -> Result<()> {
    // The scan accepts a little more than the parser: such a line is told without its body.
    let body = Entry::parse(text).ok();
    let object = body.as_ref().map(Entry::object);
    let text_of = |name: &str| object?.get(name)?.str();
    let id_text = |id| session.index().id_text(id);
    let kind = text_of("type");
    let subtype = text_of("subtype").filter(|_| candidate.kind() == EntryKind::System);
    let timestamp = text_of("timestamp");
    let message = object.and_then(|object| object.get("message"));
    let mut line = serde_json::to_vec(&Record::Entry {
        line: candidate.line(),
        offset: candidate.offset(),
        len: candidate.byte_len(),
        uuid: candidate.uuid().map(id_text),
        parent_uuid: candidate.parent().map(id_text),
        r#type: kind.as_deref(),
        subtype: subtype.as_deref(),
        timestamp: timestamp.as_deref(),
    })?;
    // What is verbatim is put in as it is: a serializer would look at every byte of it again.
    line.pop();
    line.extend_from_slice(b",\"message\":");
    line.extend_from_slice(message.map_or("null", Raw::text).as_bytes());
    line.extend_from_slice(b",\"via\":");
    line.extend(serde_json::to_vec(&entry.via.names().collect::<Vec<_>>())?);
    if let Some(body) = body.as_ref().filter(|_| args.raw_entries) {
        line.extend_from_slice(b",\"entry\":");
        line.extend_from_slice(body.text().as_bytes());
    }
    line.extend_from_slice(b"}\n");
    out.write_all(&line)?;
    Ok(())
}

fn write_record(out: &mut impl Write, record: &Record<'_>) -> Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(())
}
