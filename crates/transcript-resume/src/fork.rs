//! Copies a path into a session of its own, as lines. Uses no file, no clock and no randomness.
//!
//! A copy is a path and nothing else: one run of entries in the order of the path, each with a new
//! id, then the system prompts that it was sent with, the counts of the client, the folder if it is another one than that of
//! the first line, and the title. Abandoned branches, entries of subagents and what a compaction summarized are not copied. Each line keeps its bytes except for those that tie it to its old place:
//!
//! - `uuid`, `sessionId`, `parentUuid` and `forkedFrom` are set, `isSidechain` becomes `false`;
//!   `teamName`, `agentName` and `slug` go; an answer without a `requestSessionId` gets the source.
//! - Every other id of an entry of the source, wherever it is in a line, becomes the id of its
//!   copy; the id of an entry that is not copied is removed. Content is not changed: `message` and
//!   `toolUseResult` stay as they are.
//! - The links are real. Where the source needs a bridge, a splice or a guess, an entry becomes a
//!   child of the one before it on the path, so that readers without such rules show the same. Only
//!   results of parallel calls stay below their calls, where every reader finds them by the calls
//!   (`links`).
//! - `logicalParentUuid` becomes `null` unless it names an earlier entry: after the boundary it
//!   would close a cycle for readers that follow it.
//! - A boundary names preserved entries only when the copy has all of them, right after its anchor.
//!   It has no parent (COMPACT-1), and a compaction that was never completed is omitted.
//!
//! - Under policy `recover`, calls without a result get one, as in its requests: a client drops the
//!   lines of such calls with all their text (TURN-2).
//!
//! Times are unchanged. The SDKs give the last line the time of the fork, for clients before
//! 2.1.197, which took the newest entry for the leaf; newer ones go by the order of lines (LEAF-1),
//! which is the order of the path here. A new time would claim a message that does not exist. Only
//! a last line without a valid time gets one, as the client refuses to resume without it (LEAF-17).

mod line;
mod links;
mod missing;
mod prompts;

use std::collections::{HashMap, HashSet};

use transcript_format::entry::Entry;
use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw};
use transcript_format::scan::Flags;
use transcript_reader::{
    BodySource, Boundary, ConversationPath, EntryNo, EntryRef, Id, Index, Policy, Preserved,
    Prompt, ToolKey, Tree, is_prompt,
};

use crate::state::{self, TitleSource};
use line::{Edit, edited, edited_list};
use links::entries;
pub use missing::{MissingResults, missing_results};

/// The maximum depth at which ids of entries are looked for. The known ones are three levels down.
const MAX_NESTING: usize = 8;

/// The ids, title and time of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkOptions {
    /// The id of the session that is copied: the name of its file. `forkedFrom` names it, and only
    /// `content-replacement` lines of this session are copied.
    pub source: String,
    /// The id of the copy.
    pub session: String,
    /// The title of the copy. If missing or blank, it is the title of the source, else its first
    /// prompt, with ` (fork)` appended.
    pub title: Option<String>,
    /// The folder that the copy belongs to; if the first line of the copy does not name it, a `relocated` line does.
    pub home: Option<String>,
    /// The time of the copy, as written to `timestamp` (ISO 8601).
    pub now: String,
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forked {
    /// The number of entries. When 0, nothing was written at all.
    pub entries: usize,
    /// The id of the last of them, where the copy continues.
    pub leaf: Option<Uuid>,
}

/// Copies `path` of `tree`, and calls `write` with one line after the other, each without a line
/// end: first the entries in the order of the path, then one `content-replacement` with all
/// replacements of the source if it has any, the lines with the [system prompts](crate::prompts) of the
/// path, the last `cost-state` if it has one, and the `custom-title`.
///
/// Holds one body at a time, and about 150 bytes for each entry of the path. `new_id` has to return
/// an id that it never returned before. It is called for all entries in order before any body is
/// read, as a boundary names entries that follow it.
///
/// A path without a message has nothing to continue: nothing is written. That is the case for a
/// path [cut](ConversationPath::cut_after) at a boundary; the conversation that the boundary ended
/// is the path to the leaf before it. Cut at a summary, a copy contains the boundary and the
/// summary.
///
/// An entry whose body turns out to be unusable is omitted, and its children become those of the
/// entry above it. The path is not computed again for that; the one of an
/// [`request::Request`](crate::request::Request) has no such entry. A path that a client would
/// [refuse](ConversationPath::refusal) for the time of its leaf is copied as well.
///
/// # Errors
/// The errors of `bodies` and of `write`. The lines written until then are not a complete copy.
///
/// # Panics
/// When `path` does not belong to the index of `tree`.
pub fn fork<B: BodySource, E: From<B::Error>>(
    tree: &Tree<'_>,
    path: &ConversationPath,
    options: &ForkOptions,
    bodies: &mut B,
    new_id: &mut dyn FnMut() -> Uuid,
    write: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<Forked, E> {
    let entries = entries(tree.index(), path);
    if entries.is_empty() {
        return Ok(Forked::default());
    }
    let mut copy = PathCopy::new(tree, entries, options, new_id);
    let mut forked = Forked::default();
    let mut first_cwd = None;
    for place in 0..copy.entries.len() {
        let entry_ref = copy.entry(place);
        let body = bodies.body(&entry_ref)?;
        if first_cwd.is_none() && options.home.is_some() {
            let line = Object::parse(body).ok();
            first_cwd = line.and_then(|line| Some(line.str("cwd")?.into_owned()));
        }
        match copy.line(place, body) {
            Some(line) => {
                missing::note(&mut copy.missing, &entry_ref, &copy.open, body);
                write(&line)?;
                forked.entries += 1;
            }
            None => copy.skip_entry(place),
        }
        if let Some(line) = copy.missing_results(place, new_id) {
            write(&line)?;
            forked.entries += 1;
        }
        forked.leaf = copy.ids[place];
    }
    if let Some(line) = replacements(tree.index(), bodies, options, new_id)? {
        write(&line)?;
    }
    let copies = prompts::Copies {
        session: &options.session,
        of: &|entry| copy.ids[*copy.places.get(&tree.index().id(entry)?)? as usize],
    };
    prompts::write(tree, path, &copies, bodies, write)?;
    if let Some(line) = costs(tree.index(), bodies, options)? {
        write(&line)?;
    }
    if let Some(home) = options.home.as_ref().filter(|_| first_cwd != options.home) {
        write(
            &side_line("relocated", options)
                .with("relocatedCwd", home.as_str())
                .text(),
        )?;
    }
    let title = match options.title.as_deref().map(str::trim) {
        Some(title) if !title.is_empty() => title.to_owned(),
        _ => derived_title(tree.index(), bodies)?,
    };
    let line = side_line("custom-title", options).with("customTitle", title.as_str());
    write(&finish(line, options, new_id))?;
    Ok(forked)
}

/// The entries of a copy by their places on it.
struct PathCopy<'c, 'i> {
    index: &'i Index,
    options: &'c ForkOptions,
    entries: Vec<EntryNo>,
    /// The id of each copy; for an omitted entry, that of the copy above it.
    ids: Vec<Option<Uuid>>,
    /// The place of the parent of each one.
    links: Vec<Option<u32>>,
    /// The place of each id of the source.
    places: HashMap<Id, u32>,
    /// Calls without a result, which get one after the message that makes them.
    open: HashSet<ToolKey>,
    /// The missing results of the message that is being copied.
    missing: Option<missing::Open>,
    /// For each message with an open call, the position at which its lines end.
    ends: HashSet<usize>,
}

impl<'c, 'i> PathCopy<'c, 'i> {
    fn new(
        tree: &Tree<'i>,
        entries: Vec<EntryNo>,
        options: &'c ForkOptions,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Self {
        let index = tree.index();
        let old_id = |(place, entry): (usize, &EntryNo)| {
            let id = index.entry(*entry).uuid()?;
            Some((id, place as u32))
        };
        let open = match tree.policy() {
            Policy::Vendor => HashSet::new(),
            _ => missing::unanswered(index, &entries),
        };
        let (links, ends) = links::links(tree, &entries, &open);
        Self {
            open,
            ends,
            missing: None,
            places: entries.iter().enumerate().filter_map(old_id).collect(),
            ids: entries.iter().map(|_| Some(new_id())).collect(),
            links,
            index,
            options,
            entries,
        }
    }

    fn entry(&self, place: usize) -> EntryRef<'i> {
        self.index.entry(self.entries[place])
    }

    /// Returns the copy that is the parent of `place`.
    fn parent(&self, place: usize) -> Option<Uuid> {
        self.ids[self.links[place]? as usize]
    }

    /// Returns the line with the missing results, when the message that lacks them ends at `place`.
    /// The following entry becomes a child of it.
    fn missing_results(
        &mut self,
        place: usize,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Option<String> {
        let (_, line) = self.ends.contains(&place).then(|| self.missing.take())??;
        let id = new_id();
        let line = line
            .with("parentUuid", Json::from(self.ids[place]))
            .with("isSidechain", false)
            .with("uuid", id)
            .with("sessionId", self.options.session.as_str());
        self.ids[place] = Some(id);
        Some(line.text())
    }

    /// Makes future children of `place` those of the entry above it.
    fn skip_entry(&mut self, place: usize) {
        self.ids[place] = self.parent(place);
    }

    /// Returns the copy of a line; `None` when `body` is not that of the entry.
    fn line(&self, place: usize, body: &str) -> Option<String> {
        let entry_ref = self.entry(place);
        let entry = Entry::parse(body).ok()?;
        if entry.kind() != entry_ref.kind() {
            return None;
        }
        let body = entry.object();
        let is_last = place + 1 == self.entries.len();
        let lacks_session = entry_ref.kind() == EntryKind::Assistant
            && body.get("requestSessionId").is_none_or(Raw::is_null);
        let options = self.options;
        let mut set = vec![
            ("parentUuid", Json::from(self.parent(place))),
            ("uuid", Json::from(self.ids[place])),
            ("sessionId", Json::from(options.session.as_str())),
            ("forkedFrom", self.origin(&entry_ref)),
        ];
        if lacks_session {
            set.push(("requestSessionId", Json::from(options.source.as_str())));
        }
        if is_last && entry_ref.millis().is_none() {
            set.push(("timestamp", Json::from(options.now.as_str())));
        }
        let edit = |key: &str, value: Raw<'_>| {
            if let Some((_, new)) = set.iter().find(|(name, _)| *name == key) {
                return Edit::set(new);
            }
            match key {
                "logicalParentUuid" => Edit::set(&self.before(place, value)),
                "isSidechain" => Edit::set(&false.into()),
                "teamName" | "agentName" | "slug" => Edit::Remove,
                "message" | "toolUseResult" => Edit::Keep,
                "compactMetadata" if !self.has_preserved(&entry_ref) => {
                    self.without_preserved(value)
                }
                _ => self.renamed(key, value),
            }
        };
        let is_absent = |(key, _): &&(&str, Json)| body.get(key).is_none();
        let more: Vec<_> = set.iter().filter(is_absent).cloned().collect();
        let mut line = edited(body, edit, &more);
        if line.contains(['\n', '\r']) {
            // A salvaged entry can span several lines. Their line feeds are between its tokens, as
            // strings contain only escaped ones.
            line = line.replace(['\n', '\r'], " ");
        }
        Some(line)
    }

    /// Returns `forkedFrom`: a copy of a copy names the copy.
    fn origin(&self, entry_ref: &EntryRef<'_>) -> Json {
        let old = entry_ref.uuid().map(|id| self.index.id_text(id));
        let origin = ObjectBuf::new()
            .with("sessionId", self.options.source.as_str())
            .with_some("messageUuid", old.as_deref());
        origin.into()
    }

    /// Returns the copy of the entry that `value` names, when it precedes `place`.
    fn before(&self, place: usize, value: Raw<'_>) -> Json {
        let named = value.str().and_then(|text| self.index.id(&text));
        let named = named.and_then(|id| self.places.get(&id).copied());
        let before = named.filter(|named| (*named as usize) < place);
        before.and_then(|before| self.ids[before as usize]).into()
    }

    /// Returns `value` of the member `key` with the ids of entries replaced by those of their
    /// copies. The id of an entry that is not copied is removed, with its key or its place in a list.
    fn renamed(&self, key: &str, value: Raw<'_>) -> Edit {
        let new = |id: Id| match self.places.get(&id) {
            None => Edit::Remove,
            Some(place) => Edit::set(&self.ids[*place as usize].into()),
        };
        renamed(self.index, key, value, MAX_NESTING, &new)
    }

    fn has_preserved(&self, boundary: &EntryRef<'_>) -> bool {
        let boundary = self.index.boundary(boundary.number());
        boundary.is_some_and(|boundary| self.preserved_in_place(boundary).is_some())
    }

    /// Returns `Some` when all entries that `boundary` preserves follow its anchor directly, in
    /// order, and list and segment agree: a reader that splices then changes nothing (COMPACT-4).
    fn preserved_in_place(&self, boundary: &Boundary) -> Option<()> {
        let place = |id: Option<Id>| self.places.get(&id?).copied();
        let [head, tail] = boundary.ends.map(place);
        let (first, last) = match &boundary.preserved {
            Preserved::Nothing => return None,
            Preserved::List { anchor, uuids } => {
                let first = place(*anchor)? + 1;
                let places = first..first + uuids.len() as u32;
                let mut kept = uuids.iter().zip(places.clone());
                let are_in_order = kept.all(|(id, expected)| place(*id) == Some(expected));
                (are_in_order && !uuids.is_empty()).then_some((first, places.end - 1))?
            }
            Preserved::Segment { anchor } => (place(*anchor)? + 1, tail?),
        };
        let has_segment = boundary.ends != [None, None];
        let is_segment = (head, tail) == (Some(first), Some(last));
        // Nothing names a result that was added between them.
        let mut ends = self.ends.iter();
        let is_split = ends.any(|end| (first..=last).contains(&(*end as u32)));
        (first <= last && (is_segment || !has_segment) && !is_split).then_some(())
    }

    /// Returns the metadata of a boundary that preserves nothing: the copies of entries that it
    /// preserved are linked directly.
    fn without_preserved(&self, metadata: Raw<'_>) -> Edit {
        let Some(metadata) = metadata.object() else {
            return Edit::Keep;
        };
        let edit = |key: &str, value: Raw<'_>| match key {
            "preservedSegment" | "preservedMessages" => Edit::Remove,
            _ => self.renamed(key, value),
        };
        Edit::Set(edited(&metadata, edit, &[]))
    }
}

/// Returns the line of an entry of `index` as one of another session: with the session id `from`
/// replaced by `to`, and each id of an entry by the one in `ids`. As in a copy of a path, `message`,
/// `toolUseResult` and the texts of system prompts are not changed. `None` when `body` is not an entry.
#[must_use]
pub fn with_new_ids(
    index: &Index,
    body: &str,
    ids: &HashMap<Id, Uuid>,
    (from, to): (&str, &str),
) -> Option<String> {
    let entry = Object::parse(body).ok()?;
    let new = |id: Id| {
        ids.get(&id)
            .map_or(Edit::Keep, |new| Edit::set(&(*new).into()))
    };
    let edit = |key: &str, value: Raw<'_>| match key {
        "sessionId" if value.str().as_deref() == Some(from) => Edit::set(&to.into()),
        "message" | "toolUseResult" | "texts" | "sessionId" => Edit::Keep,
        _ => renamed(index, key, value, MAX_NESTING, &new),
    };
    Some(edited(&entry, edit, &[]))
}

/// Returns `value` of the member `key` with the ids of entries changed by `new`, down to `depth`
/// levels.
fn renamed(
    index: &Index,
    key: &str,
    value: Raw<'_>,
    depth: usize,
    new: &dyn Fn(Id) -> Edit,
) -> Edit {
    let Some(deeper) = depth.checked_sub(1) else {
        return Edit::Keep;
    };
    if let Some(text) = value.str() {
        return named_entry(index, key, &text).map_or(Edit::Keep, new);
    }
    if let Some(object) = value.object() {
        let edit = |key: &str, value: Raw<'_>| renamed(index, key, value, deeper, new);
        return Edit::Set(edited(&object, edit, &[]));
    }
    match edited_list(value, |element| renamed(index, key, element, deeper, new)) {
        Some(list) => Edit::Set(list),
        None => Edit::Keep,
    }
}

/// Returns the entry whose id is `text`. A canonical uuid is always an id; another text is one only
/// where the key implies it.
fn named_entry(index: &Index, key: &str, text: &str) -> Option<Id> {
    let is_id = Uuid::parse(text.as_bytes()).is_some() || {
        let key = key.to_ascii_lowercase();
        key.ends_with("uuid") || key.ends_with("uuids")
    };
    let id = is_id.then(|| index.id(text))??;
    index.with_uuid(id).next().map(|_| id)
}

/// Returns one line with the replacements of all `content-replacement` lines of the source.
fn replacements<B: BodySource>(
    index: &Index,
    bodies: &mut B,
    options: &ForkOptions,
    new_id: &mut dyn FnMut() -> Uuid,
) -> Result<Option<String>, B::Error> {
    let mut all = Vec::new();
    let is_own = |line: &EntryRef<'_>| {
        line.kind() == EntryKind::ContentReplacement && line.session() == Some(&options.source)
    };
    for line in index.entries().filter(is_own) {
        let body = Object::parse(bodies.body(&line)?).ok();
        let listed = body.and_then(|body| body.get("replacements")?.array());
        all.extend(listed.into_iter().flatten().map(Json::from));
    }
    if all.is_empty() {
        return Ok(None);
    }
    let line = side_line("content-replacement", options).with("replacements", Json::array(all));
    Ok(Some(finish(line, options, new_id)))
}

/// Returns the last line with the counts of the client: they continue in the copy, as they do when
/// the session is resumed (META-3).
fn costs<B: BodySource>(
    index: &Index,
    bodies: &mut B,
    options: &ForkOptions,
) -> Result<Option<String>, B::Error> {
    let mut lines = index.entries().rev();
    let Some(line) = lines.find(|line| line.kind() == EntryKind::CostState) else {
        return Ok(None);
    };
    let Ok(body) = Object::parse(bodies.body(&line)?) else {
        return Ok(None);
    };
    let session = Json::from(options.session.as_str());
    let more = match body.get("sessionId") {
        Some(_) => Vec::new(),
        None => vec![("sessionId", session.clone())],
    };
    let edit = |key: &str, _: Raw<'_>| match key {
        "sessionId" => Edit::set(&session),
        _ => Edit::Keep,
    };
    let line = edited(&body, edit, &more);
    // A salvaged line can span several lines.
    Ok(Some(line.replace(['\n', '\r'], " ")))
}

fn side_line(kind: &str, options: &ForkOptions) -> ObjectBuf {
    ObjectBuf::new()
        .with("type", kind)
        .with("sessionId", options.session.as_str())
}

/// Unlike those of a client, the metadata lines of a copy have an id and a time.
fn finish(line: ObjectBuf, options: &ForkOptions, new_id: &mut dyn FnMut() -> Uuid) -> String {
    line.with("uuid", new_id())
        .with("timestamp", options.now.as_str())
        .text()
}

fn derived_title<B: BodySource>(index: &Index, bodies: &mut B) -> Result<String, B::Error> {
    let given = state::title(index, bodies)?;
    let given = given.filter(|(_, source)| *source != TitleSource::Summary);
    let mut title = given.map(|(title, _)| title);
    if title.is_none() {
        title = first_prompt(index, bodies)?;
    }
    let title = title.as_deref().unwrap_or("Forked session");
    Ok(format!("{title} (fork)"))
}

/// Returns the first text of the file that a person wrote, as lists show it.
fn first_prompt<B: BodySource>(index: &Index, bodies: &mut B) -> Result<Option<String>, B::Error> {
    let may_be_one =
        |line: &EntryRef<'_>| is_prompt(line) && !line.flags().contains(Flags::SIDECHAIN);
    for line in index.entries().filter(may_be_one) {
        let body = Object::parse(bodies.body(&line)?).ok();
        if let Some(Prompt::Text(text)) = body.map(|body| Prompt::of(&body)) {
            return Ok(Some(text));
        }
    }
    Ok(None)
}
