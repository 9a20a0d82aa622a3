//! Finds the calls of results, and the results of stored files.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use memchr::memmem;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{Error, Source};

use crate::files::{Catalog, FileRole};
use crate::matches::{CopyKey, Hashes, millis_of};
use crate::query::{Field, Role};
use crate::reading::entries;
use crate::texts::{Text, ToolPart, Unit};

/// The folder before the name of a stored result in the text of its entry.
const STORED_RESULTS_FOLDER: &[u8] = b"tool-results/";

/// The calls of a file, by the hashes of their ids: there may be as many as lines.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    of_ids: HashMap<u64, Call>,
    /// Names and paths repeat.
    texts: HashSet<Arc<str>>,
    hasher: RandomState,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: Arc<str>,
    /// Empty if the input names no path, or paths were not read.
    pub(crate) path: Arc<str>,
}

impl Calls {
    /// Reads the calls of a file, and their paths if they are needed.
    pub(crate) fn read(source: &Source, needs_paths: bool) -> Result<Self, Error> {
        let mut calls = entries(source, may_call, |calls: &mut Self, _, text, envelope| {
            let is_call = |role| matches!(role, ToolRole::Use | ToolRole::ServerUse);
            let mut tools = envelope
                .tools()
                .filter(|tool| is_call(tool.role))
                .peekable();
            if tools.peek().is_none() {
                return;
            }
            let unit = needs_paths.then(|| Unit::read(text, envelope)).flatten();
            let texts = unit.into_iter().flat_map(|unit| unit.texts);
            let path = |text: Text<'_>| match text.tool {
                ToolPart::Call { id, path, .. } => Some((id?.into_owned(), path?.into_owned())),
                _ => None,
            };
            let mut paths: HashMap<_, _> = texts.filter_map(path).collect();
            for tool in tools {
                let id = tool.id.decode();
                let path = paths.remove(&*id).unwrap_or_default();
                let name = tool.name.map(|name| name.decode());
                let call = Call {
                    name: calls.text(&name.unwrap_or_default()),
                    path: calls.text(&path),
                };
                calls.of_ids.insert(calls.hasher.hash_one(&*id), call);
            }
        })?;
        calls.texts = HashSet::new();
        calls.of_ids.shrink_to_fit();
        Ok(calls)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.of_ids.get(&self.hasher.hash_one(id))
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        match self.texts.get(text) {
            Some(known) => Arc::clone(known),
            None => {
                let new: Arc<str> = text.into();
                self.texts.insert(Arc::clone(&new));
                new
            }
        }
    }
}

/// Returns whether a line may have a call: an escape could be part of the type of a block.
fn may_call(line: &[u8]) -> bool {
    memmem::find(line, b"tool_use").is_some() || memmem::find(line, b"\\u").is_some()
}

/// The results to which the stored files of a session belong, by the names of the files.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashMap<String, Owner>);

/// A result block, and the fields of its entry that filters compare.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// That of its [match](crate::matches::Match::key).
    pub(crate) key: CopyKey,
    pub(crate) millis: Option<i64>,
    pub(crate) agent: Option<String>,
    pub(crate) is_own: bool,
    block: Option<u32>,
    branch: Option<String>,
    call: Option<String>,
    is_error: bool,
    is_api_error: bool,
}

impl Owners {
    /// Reads the transcripts of a session: the first block that a file belongs to counts.
    pub(crate) fn read(catalog: &Catalog, hashes: &Hashes, session: usize) -> Result<Self, Error> {
        let all = &catalog.files;
        let first = all.partition_point(|file| file.session < session);
        let own = all[first..]
            .iter()
            .take_while(|file| file.session == session);
        let files = || (first..).zip(own.clone());
        let names = files().filter_map(|(_, file)| match &file.kind {
            FileRole::Result(name) => Some((stem(name), name.as_str())),
            _ => None,
        });
        let names: Vec<(&str, &str)> = names.collect();
        // JSON writes such names as they are, and no client uses others.
        let is_plain = |stem: &str| {
            stem.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        let stems = names.iter().map(|(stem, _)| stem);
        let search = AhoCorasick::new(stems).ok();
        let search = search.filter(|_| names.iter().all(|(stem, _)| is_plain(stem)));
        // An escape could be part of a name.
        let may_name = |line: &[u8]| {
            let is_in = |search: &AhoCorasick| {
                search.is_match(line) || memmem::find(line, b"\\u").is_some()
            };
            search.as_ref().is_none_or(is_in)
        };
        let mut of_stems = HashMap::<&str, Vec<&str>>::new();
        for (stem, name) in &names {
            of_stems.entry(stem).or_default().push(name);
        }
        let known: HashSet<&str> = names.iter().map(|(_, name)| *name).collect();
        let lengths: BTreeSet<usize> = known.iter().map(|name| name.len()).collect();
        let mut owners = Self::default();
        for (number, file) in files() {
            if matches!(file.kind, FileRole::Result(_)) {
                continue;
            }
            let found: Vec<(String, Owner)> = entries(
                &catalog.open_file(number)?,
                may_name,
                |found: &mut Vec<_>, place, text, envelope| {
                    if !envelope.flags().contains(Flags::HAS_TOOL_RESULT)
                        && envelope.tools().len() == 0
                    {
                        return;
                    }
                    let Some(unit) = Unit::read(text, envelope) else {
                        return;
                    };
                    let (is_own, agent) = catalog.origin(number, envelope);
                    for result in &unit.texts {
                        let ToolPart::Result { call, is_error } = &result.tool else {
                            continue;
                        };
                        // Of the names that start at a place there are at most as many as lengths.
                        let places =
                            memmem::find_iter(result.text.as_bytes(), STORED_RESULTS_FOLDER);
                        let named = places.flat_map(|place| {
                            let rest = &result.text[place + STORED_RESULTS_FOLDER.len()..];
                            let names =
                                lengths.iter().filter_map(|len| rest.split_at_checked(*len));
                            let whole = names.filter(|(_, rest)| !continues_name(rest));
                            whole.filter_map(|(name, _)| known.get(name).copied())
                        });
                        let call = call.as_deref();
                        let of_call = call.and_then(|call| of_stems.get(call));
                        let of_call = of_call.into_iter().flatten().copied();
                        for name in of_call.chain(named) {
                            let owner = Owner {
                                file: number,
                                offset: place.offset,
                                len: place.len,
                                key: hashes.key(number, envelope, &unit),
                                millis: millis_of(envelope),
                                agent: agent.clone(),
                                is_own,
                                block: result.block,
                                branch: unit.branch.as_deref().map(str::to_owned),
                                call: call.map(str::to_owned),
                                is_error: *is_error,
                                is_api_error: unit.is_api_error,
                            };
                            found.push((name.to_owned(), owner));
                        }
                    }
                },
            )?;
            for (name, owner) in found {
                owners.0.entry(name).or_insert(owner);
            }
        }
        Ok(owners)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Owner> {
        self.0.get(name)
    }
}

impl Owner {
    /// Returns the text of a stored file as that of the entry it belongs to.
    pub(crate) fn unit<'a>(owner: Option<&Self>, text: Cow<'a, str>) -> Unit<'a> {
        let call = owner.and_then(|owner| owner.call.clone());
        Unit {
            texts: vec![Text {
                field: Field::ToolResult,
                block: owner.and_then(|owner| owner.block),
                text,
                tool: ToolPart::Result {
                    call: call.map(Cow::Owned),
                    is_error: owner.is_some_and(|owner| owner.is_error),
                },
            }],
            role: Some(Role::Tool),
            is_api_error: owner.is_some_and(|owner| owner.is_api_error),
            model: None,
            branch: owner.and_then(|owner| owner.branch.clone()).map(Cow::Owned),
            origin: None,
        }
    }
}

/// Returns whether the name of a file that ends here is only the start of a longer one.
fn continues_name(rest: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-".contains(c);
    rest.strip_prefix('.').unwrap_or(rest).starts_with(is_part)
}

/// Returns the name of a file without its extension.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
