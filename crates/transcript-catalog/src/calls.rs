//! Finds the calls of results, and the results of stored files.

use std::borrow::Cow;
use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{Error, Source};

use crate::files::FileRole;
use crate::query::{Field, Role};
use crate::scan::{Key, Scan, entries, millis_of};
use crate::texts::{Text, ToolPart, Unit};

/// The calls of a file, by id.
#[derive(Debug, Default)]
pub(crate) struct Calls(HashMap<String, Call>);

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Empty if the input names no path.
    pub(crate) path: String,
}

impl Calls {
    pub(crate) fn read(source: &Source) -> Result<Self, Error> {
        entries(
            source,
            |_| true,
            |calls: &mut Self, _, text, envelope| {
                let is_call = |role| matches!(role, ToolRole::Use | ToolRole::ServerUse);
                let mut tools = envelope
                    .tools()
                    .filter(|tool| is_call(tool.role))
                    .peekable();
                if tools.peek().is_none() {
                    return;
                }
                let unit = Unit::read(text, envelope);
                let texts = unit.into_iter().flat_map(|unit| unit.texts);
                let path = |text: Text<'_>| match text.tool {
                    ToolPart::Call { id, path, .. } => Some((id?.into_owned(), path?.into_owned())),
                    _ => None,
                };
                let mut paths: HashMap<_, _> = texts.filter_map(path).collect();
                for tool in tools {
                    let id = tool.id.decode().into_owned();
                    let path = paths.remove(&id).unwrap_or_default();
                    let name = tool.name.map(|name| name.decode().into_owned());
                    let name = name.unwrap_or_default();
                    calls.0.insert(id, Call { name, path });
                }
            },
        )
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.0.get(id)
    }
}

/// The results to which the stored files of a session belong, by the names of the files.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashMap<String, Owner>);

/// A result block, and what filters compare of its entry.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// That of its [match](crate::scan::Match::key).
    pub(crate) key: Key,
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
    pub(crate) fn read(scan: &Scan<'_>, session: usize) -> Result<Self, Error> {
        let files = || {
            (0..)
                .zip(&scan.catalog.files)
                .filter(|(_, file)| file.session == session)
        };
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
                search.is_match(line) || memchr::memmem::find(line, b"\\u").is_some()
            };
            search.as_ref().is_none_or(is_in)
        };
        let mut owners = Self::default();
        for (number, file) in files() {
            if matches!(file.kind, FileRole::Result(_)) {
                continue;
            }
            let found: Vec<(String, Owner)> = entries(
                &scan.open(number)?,
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
                    let (is_own, agent) = scan.origin(number, envelope);
                    for result in &unit.texts {
                        let ToolPart::Result { call, is_error } = &result.tool else {
                            continue;
                        };
                        for (stem, name) in &names {
                            let is_named = || is_named(&result.text, name);
                            if call.as_deref() != Some(stem) && !is_named() {
                                continue;
                            }
                            let owner = Owner {
                                file: number,
                                offset: place.offset,
                                len: place.len,
                                key: scan.key(number, envelope, &unit),
                                millis: millis_of(envelope),
                                agent: agent.clone(),
                                is_own,
                                block: result.block,
                                branch: unit.branch.as_deref().map(str::to_owned),
                                call: call.as_deref().map(str::to_owned),
                                is_error: *is_error,
                                is_api_error: unit.is_api_error,
                            };
                            found.push(((*name).to_owned(), owner));
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

/// Returns whether a text names a stored file: no longer name, of which this is the start.
fn is_named(text: &str, name: &str) -> bool {
    let name = format!("tool-results/{name}");
    let is_part = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let mut ends = text.match_indices(&name).map(|(at, _)| at + name.len());
    ends.any(|end| {
        let rest = &text[end..];
        !rest.strip_prefix('.').unwrap_or(rest).starts_with(is_part)
    })
}

/// Returns the name of a file without its extension.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
