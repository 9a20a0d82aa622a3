//! Verifies one file.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use transcript_format::finding::Code;
use transcript_format::units::grouped;
use transcript_messages::{
    Block, Message, Omission, OmissionReason, Problem, Rule, join_roles, lint,
};
use transcript_reader::{Bodies, EntryNo, Error, Index, LoadOptions, OtherFiles, Source};
use transcript_resume::request::{Request, RequestOptions};
use transcript_resume::{ConversationPath, Decision, Evidence, Policy, Refusal, Tree};

use crate::abridged::AbridgedBodies;
use crate::bytes::MAX_SENT;
use crate::conversation::ConversationMeasure;
use crate::located_finding::LocatedFinding;
use crate::options::VerifyOptions;
use crate::report::{PolicyLint, Report};
use crate::{bytes, imported, recorded_requests, running, secrets, unknown_keys, writers};

/// A conversation with more bytes is checked with shortened strings, so that its messages take little
/// memory.
const MAX_WHOLE: u64 = 16 << 20;

/// Verifies the session in `source`: its lines, its links, the requests of both policies, and its
/// sizes. Other files are only read where the session names an entry that it does not contain.
///
/// The file is read twice, by several threads if it is large. The memory grows with the number of
/// lines, and with the text of the longest conversation only up to 64 MiB.
///
/// ```
/// use transcript_reader::Source;
/// use transcript_verify::{Verdict, VerifyOptions, verify_source};
///
/// let lines = r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"One?"}}
/// {"type":"assistant","uuid":"a1","parentUuid":"gone","message":{"role":"assistant","content":[]}}
/// "#;
/// let source = Source::from_bytes(lines.as_bytes(), "-".as_ref());
/// let report = verify_source(&source, &VerifyOptions::new())?;
/// assert_eq!(report.verdict(), Verdict::Lossy);
/// assert_eq!(report.findings[0].code.as_str(), "G-DANGLING");
/// assert_eq!(report.findings[0].line, Some(2));
/// # Ok::<(), transcript_reader::Error>(())
/// ```
///
/// # Errors
/// When the system fails to read. Damage is not an error.
pub fn verify_source(source: &Source, options: &VerifyOptions) -> Result<Report, Error> {
    verify_with(source, options, |_| Ok(Vec::new()))
}

/// Verifies a session, and adds the findings of `beside` about the files next to it.
pub(crate) fn verify_with(
    source: &Source,
    options: &VerifyOptions,
    beside: impl FnOnce(&Index) -> Result<Vec<LocatedFinding>, Error>,
) -> Result<Report, Error> {
    let mut load = LoadOptions::new().find_unknown_keys();
    if let Some(counter) = &options.counter {
        load = load.count_bytes(counter.clone());
    }
    if options.is_single {
        load = load.threads(1);
    }
    let index = load.load(source)?;
    // The search for secrets needs only the bytes, and most files leave a processor for it.
    thread::scope(|scope| {
        let search = || secrets::search(source, options);
        let secrets = if options.is_single {
            None
        } else {
            thread::Builder::new().spawn_scoped(scope, search).ok()
        };
        let (mut report, mut findings) = of_index(source, &index, options)?;
        findings.extend(beside(&index)?);
        let secrets = match secrets {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => search(),
        };
        findings.extend(secrets::findings(&index, source, secrets?)?);
        if index.is_imported() {
            findings.retain(|finding| !imported::is_about_client(finding.code));
            findings.extend(imported::imported_findings(&index, source)?);
        }
        report.findings = in_order(&index, findings);
        Ok(report)
    })
}

/// Verifies lines, links, requests and sizes. Returns a report without findings, and the findings.
fn of_index(
    source: &Source,
    index: &Index,
    options: &VerifyOptions,
) -> Result<(Report, Vec<LocatedFinding>), Error> {
    let first = Tree::new(index, Policy::Recover);
    let others = others(source, index, &first);
    let tree = match others.as_ref() {
        Some(others) => Tree::with_others(index, others),
        None => first,
    };
    // A client does not read the stream form, and its messages are those in the file.
    let is_stream_form = tree.is_stream_form();
    let client = if is_stream_form {
        Tree::new(index, Policy::Recover)
    } else {
        Tree::new(index, Policy::Vendor)
    };
    let (mut recover, mut vendor) = (tree.path(), client.path());
    let sent = bytes_of(index, &recover).max(bytes_of(index, &vendor));
    let mut findings = Vec::new();
    let mut lints = PolicyLint::default();
    let mut unusable = HashSet::new();
    if sent <= MAX_SENT {
        let (request, cut, beyond) = request(&tree, source, sent, &recover)?;
        let is_unusable = |omission: &&Omission| omission.reason == OmissionReason::UnusableBody;
        let origins = request.omissions.iter().filter(is_unusable);
        unusable = origins
            .map(|omission| EntryNo::new(omission.origin))
            .collect();
        let too_long = too_long(index, &request, cut, options);
        lints.recover = lint(&request.messages).is_ok() && too_long.is_none();
        findings.extend(of_request(index, &request));
        findings.extend(beyond.iter().filter_map(|entry| {
            let detail = media_finding(OmissionReason::RequestLimit)?;
            let entry = index.entry(*entry);
            Some(LocatedFinding::of_entry(Code::MediaSize, &entry, detail))
        }));
        let numbers = |path: &ConversationPath| -> Vec<EntryNo> {
            path.entries.iter().map(|entry| entry.entry_no()).collect()
        };
        // Without repairs the messages of both policies are the same.
        let is_same = request.synthetic.is_empty()
            && request.omissions.is_empty()
            && request.path.refusal == vendor.refusal
            && numbers(&request.path) == numbers(&vendor);
        recover = request.path;
        let omissions = request.omissions;
        drop(request.messages);
        lints.vendor = lints.recover;
        if !is_same {
            let (request, ..) = self::request(&client, source, sent, &vendor)?;
            let messages = join_roles(request.messages);
            let found = lint(&messages);
            lints.vendor = found.is_ok() && too_long.is_none();
            findings.extend(rejected(index, &omissions, &request.omissions));
            findings.extend(refused(index, &found.problems));
            let unsigned = unsigned(index, &omissions, &messages, &found.problems);
            lints.vendor &= unsigned.is_empty();
            findings.extend(unsigned);
            let of_path = vendor.refusal;
            vendor = request.path;
            // The file of a subagent is not resumed by itself, which is not damage (LEAF-19).
            if vendor.refusal == Some(Refusal::OnlySidechains) {
                vendor.refusal = of_path;
            }
        }
        lints.vendor &= beyond.is_empty();
        findings.extend(too_long);
    }
    let tree = if unusable.is_empty() {
        tree
    } else {
        tree.without(&unusable)
    };
    let mut of_links = tree.findings(&recover);
    running::note_calls(&mut of_links, index, &recover, source);
    if sent > MAX_SENT {
        // The request under `recover` is one that a strict provider accepts; that of the client is
        // the same if nothing had to be repaired.
        lints.recover = recover.refusal.is_none();
        lints.vendor = vendor.refusal.is_none() && of_links.is_empty();
    }
    findings.extend(match writers::overlap(&tree, &of_links) {
        None => writers::in_turns(&tree, source)?,
        overlap => overlap,
    });
    findings.extend(
        recover
            .decisions
            .iter()
            .filter_map(|decision| match *decision {
                Decision::Bridge {
                    entry,
                    evidence: evidence @ Evidence::OtherFile,
                    ..
                } => {
                    let entry = index.entry(entry);
                    Some(LocatedFinding::of_entry(
                        Code::Dangling,
                        &entry,
                        evidence.words(),
                    ))
                }
                _ => None,
            }),
    );
    findings.extend(unknown_keys::findings(index));
    let found = index.findings().iter().cloned().chain(of_links);
    findings.extend(found.map(LocatedFinding::from));
    findings.extend(bytes::findings(&tree, source, sent)?);
    let requests = if options.requests {
        Some(recorded_requests::rebuild(index, source, options)?)
    } else {
        None
    };
    findings.extend(requests.iter().flat_map(recorded_requests::findings));
    let report = Report {
        path: source.path().to_owned(),
        session_id: index.session_id(source.path()),
        lines: index.line_count(),
        entries: index.len(),
        is_stream_form,
        agent: imported::agent(index, source)?,
        measure: ConversationMeasure::new(&tree, &recover, &vendor),
        refusal: vendor.refusal,
        lint: lints,
        findings: Vec::new(),
        requests,
    };
    Ok((report, findings))
}

/// Returns the bytes of the entries of a path.
fn bytes_of(index: &Index, path: &ConversationPath) -> u64 {
    let entries = path
        .entries
        .iter()
        .map(|entry| index.entry(entry.entry_no()));
    entries.map(|entry| entry.byte_len()).sum()
}

/// Sorts the findings by place, and adds the uuids of their entries. A request that a provider
/// refuses for a reason that is already there is not mentioned again, nor is a result that is late on
/// the path as well as in the file.
fn in_order(index: &Index, mut findings: Vec<LocatedFinding>) -> Vec<LocatedFinding> {
    let places = |is_wanted: fn(Code) -> bool| -> HashSet<u64> {
        let wanted = findings.iter().filter(|finding| is_wanted(finding.code));
        wanted.map(|finding| finding.offset).collect()
    };
    let pairs = places(|code| code.as_str().starts_with("P-"));
    let late = places(|code| code == Code::PairOrder);
    findings.retain(|finding| match finding.code {
        Code::Refused => !pairs.contains(&finding.offset),
        Code::Forward => !late.contains(&finding.offset),
        _ => true,
    });
    findings.sort_by_key(|finding| (finding.line.is_some(), finding.offset, finding.code));
    let mut entries = index.entries().peekable();
    for finding in &mut findings {
        while entries
            .next_if(|entry| entry.offset() < finding.offset)
            .is_some()
        {}
        let here = entries
            .peek()
            .filter(|entry| entry.offset() == finding.offset);
        let here = here.filter(|_| finding.line.is_some());
        let id = here.and_then(|entry| entry.uuid());
        finding.uuid = id.map(|id| index.id_text(id));
    }
    findings
}

/// Returns the evidence of other files about missing parents; `None` if there is none.
fn others(source: &Source, index: &Index, tree: &Tree<'_>) -> Option<OtherFiles> {
    let missing = tree.missing_parents();
    if missing.is_empty() || source.path() == Path::new("-") {
        return None;
    }
    let others = OtherFiles::search(source, index, &missing);
    (!others.is_empty()).then_some(others)
}

/// Builds the request of a tree, whose `path` has this many bytes. Returns also the tokens that were cut off its
/// messages to build it, and the entries whose media the API does not accept with it.
fn request(
    tree: &Tree<'_>,
    source: &Source,
    bytes: u64,
    path: &ConversationPath,
) -> Result<(Request, u64, Vec<EntryNo>), Error> {
    let whole_from = path.leaf.filter(|_| bytes > MAX_WHOLE);
    let mut bodies = AbridgedBodies::new(Bodies::new(source), whole_from);
    let request = RequestOptions::new().request(tree, &mut bodies)?;
    let blocks = request.messages.iter().flat_map(|message| message.blocks());
    let size: usize = blocks.map(Block::json_len).sum();
    let omitted = request.omissions.iter();
    let omitted = omitted.filter(|omission| omission.reason == OmissionReason::RejectedMedia);
    let omitted = omitted.map(|omission| EntryNo::new(omission.origin));
    let beyond = bodies.beyond_limit(&request.path, size as u64, &omitted.collect());
    Ok((request, bodies.cut_tokens(), beyond))
}

/// Returns the finding about a request that is longer than the context window of its model. `cut` tokens are not in its
/// messages.
fn too_long(
    index: &Index,
    request: &Request,
    cut: u64,
    options: &VerifyOptions,
) -> Option<LocatedFinding> {
    let model = request.model.as_deref()?;
    let window = options.windows.and_then(|window| window(model))?;
    let found = request.tokens();
    // A session may have a longer one than its model has by default.
    let is_possible = found.recorded.is_none_or(|recorded| recorded <= window);
    let tokens = match cut {
        0 => found.request,
        // The count that the API returned includes the omitted bytes, so they are not added to it.
        _ => (found.messages.saturating_add(cut)).max(found.recorded.unwrap_or(0)),
    };
    let leaf = index.entry(request.path.leaf?);
    (is_possible && tokens > window).then(|| {
        let detail = format!(
            "the request has about {} tokens, {} more than the context window of its model",
            grouped(tokens),
            grouped(tokens - window)
        );
        LocatedFinding::of_entry(Code::Window, &leaf, detail)
    })
}

/// Returns the findings about content that cannot be sent as it is.
fn of_request(index: &Index, request: &Request) -> Vec<LocatedFinding> {
    let mut findings = Vec::new();
    let mut emptied = Vec::new();
    for omission in &request.omissions {
        let entry = index.entry(EntryNo::new(omission.origin));
        match omission.reason {
            OmissionReason::Refused(Rule::EmptiedThinking) => emptied.push(entry),
            reason => findings.extend(
                media_finding(reason)
                    .map(|detail| LocatedFinding::of_entry(Code::MediaSize, &entry, detail)),
            ),
        }
    }
    if let Some(first) = emptied.first() {
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        let safe = blocks.filter(|block| block.is_thinking()).count();
        let detail = format!(
            "thoughts that lost their text: {} must be omitted, {safe} are safe to send again",
            emptied.len()
        );
        findings.push(LocatedFinding::of_entry(
            Code::EmptiedThought,
            first,
            detail,
        ));
    }
    findings
}

/// Returns the findings about media that an error is evidence against, by the omissions under `recover`, and that the
/// client sends again all the same, by its own omissions.
fn rejected(index: &Index, recover: &[Omission], vendor: &[Omission]) -> Vec<LocatedFinding> {
    let origins = |omissions: &[Omission]| -> BTreeSet<usize> {
        let rejected = omissions
            .iter()
            .filter(|omission| omission.reason == OmissionReason::RejectedMedia);
        rejected.map(|omission| omission.origin).collect()
    };
    let known = origins(vendor);
    let rejected = origins(recover)
        .into_iter()
        .filter(|origin| !known.contains(origin));
    let findings = rejected.map(|origin| {
        let entry = index.entry(EntryNo::new(origin));
        let detail = "the API refused an image or document here, and refuses every request with it";
        LocatedFinding::of_entry(Code::MediaSize, &entry, detail)
    });
    findings.collect()
}

/// Returns the findings about thinking that the model cannot have signed, which a request alone does not show: `recover`
/// omits it, and it is among the `messages` of the client without being one of their `problems`.
fn unsigned(
    index: &Index,
    recover: &[Omission],
    messages: &[Message],
    problems: &[Problem],
) -> Vec<LocatedFinding> {
    let is_unsigned = |rule: Rule| rule == Rule::UnsignedThinking;
    let known = problems.iter().filter(|problem| is_unsigned(problem.rule));
    let known: HashSet<usize> = known.filter_map(|problem| problem.origin).collect();
    let sent = messages.iter().flat_map(|message| message.blocks());
    let sent = sent.filter(|block| block.is_thinking());
    let sent: HashSet<usize> = sent.filter_map(Block::origin).collect();
    let unsigned = recover.iter().filter(|omission| {
        omission.reason == OmissionReason::Refused(Rule::UnsignedThinking)
            && sent.contains(&omission.origin)
            && !known.contains(&omission.origin)
    });
    let origins: BTreeSet<usize> = unsigned.map(|omission| omission.origin).collect();
    let findings = origins.into_iter().map(|origin| {
        let entry = index.entry(EntryNo::new(origin));
        LocatedFinding::of_entry(Code::Refused, &entry, Rule::UnsignedThinking.words())
    });
    findings.collect()
}

/// Returns the defect of an image or a document that is not sent as it is.
fn media_finding(reason: OmissionReason) -> Option<&'static str> {
    Some(match reason {
        OmissionReason::OversizedMedia | OmissionReason::Refused(Rule::MediaTooLarge) => {
            "an image or document is larger than the API accepts"
        }
        OmissionReason::RequestLimit => {
            "the request has more images, or larger ones, than the API accepts"
        }
        OmissionReason::Refused(Rule::MediaType) => "an image is of another type than it names",
        OmissionReason::Refused(Rule::UnusableMedia) => {
            "an image or document contains no data that the API accepts"
        }
        _ => return None,
    })
}

/// Returns what a strict provider refuses in the request of the client, except for what its
/// own provider accepts, such as adjacent messages of one role, and for what has a code of its own.
fn refused(index: &Index, problems: &[Problem]) -> Vec<LocatedFinding> {
    let is_usual = |rule| {
        matches!(
            rule,
            Rule::SameRole
                | Rule::SystemPlace
                | Rule::NoMessages
                | Rule::FirstNotUser
                | Rule::TrailingSpace
                | Rule::UnsafeText
                | Rule::MediaTooLarge
                | Rule::UnusableMedia
                | Rule::MediaType
                | Rule::RequestMedia
        )
    };
    let mut seen = HashSet::new();
    let located = problems.iter().filter(|problem| !is_usual(problem.rule));
    let located = located.filter_map(|problem| {
        let entry = index.entry(EntryNo::new(problem.origin?));
        let is_new = seen.insert((entry.number(), problem.rule));
        let words: Cow<'static, str> = problem.rule.words().into();
        is_new.then(|| LocatedFinding::of_entry(Code::Refused, &entry, words))
    });
    located.collect()
}
