//! One function for each kind of damage.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde_json::{Value, json};

use super::healthy::{Healthy, Line, Role};
use super::kind::Kind;
use crate::generate;
use crate::rng::Rng;

/// A damaged session, and its damage.
#[derive(Debug)]
pub(super) struct Damage {
    pub(super) bytes: Vec<u8>,
    pub(super) loss: Loss,
    /// The messages of another session.
    pub(super) foreign: HashSet<String>,
    /// The line number in the healthy session of each line; only for [`Loss::Order`].
    pub(super) order: Vec<usize>,
}

/// The part of the session that the damage destroyed.
#[derive(Debug)]
pub(super) enum Loss {
    /// Every entry and every link is still there.
    Nothing,
    /// The lines `gone`; of those in `linked` the uuid and the uuid of the parent are readable.
    Lines {
        gone: HashSet<usize>,
        linked: HashSet<usize>,
    },
    /// The parents of these lines; `exchanged` when two lines have each other's.
    Links {
        touched: Vec<usize>,
        exchanged: bool,
    },
    /// The order of the lines.
    Order,
    /// Pointers of a boundary; nothing proves any more that it keeps the lines `unproven`.
    Pointers { unproven: HashSet<usize> },
}

impl Loss {
    /// Returns the lines that were destroyed.
    pub(super) fn gone(&self) -> impl Iterator<Item = usize> + '_ {
        let gone = match self {
            Self::Lines { gone, .. } => Some(gone),
            _ => None,
        };
        gone.into_iter().flatten().copied()
    }

    fn lines(gone: HashSet<usize>) -> Self {
        let linked = HashSet::new();
        Self::Lines { gone, linked }
    }
}

pub(super) fn mutate(healthy: &Healthy, kind: Kind, rng: &mut Rng) -> Option<Damage> {
    match kind {
        Kind::Cut => cut(healthy, rng),
        Kind::Glue => glue(healthy, rng),
        Kind::Nul => nul(healthy, rng),
        Kind::Drop => drop_lines(healthy, rng),
        Kind::Duplicate => duplicate(healthy, rng),
        Kind::Replay => replay(healthy, rng),
        Kind::Reorder => reorder(healthy, rng),
        Kind::SwappedParent => swapped_parent(healthy, rng),
        Kind::Cycle => cycle(healthy, rng),
        Kind::BadUtf8 => bad_utf8(healthy, rng),
        Kind::Surrogate => surrogate(healthy, rng),
        Kind::RemovedResult => removed_result(healthy, rng),
        Kind::DanglingPointer => dangling_pointer(healthy, rng),
        Kind::Foreign => foreign(healthy, rng),
    }
}

/// The lines of a session while they are damaged, by their numbers in the healthy session.
struct DamagedLines {
    lines: Vec<Vec<u8>>,
    /// New lines, with their newlines, by the number of the line that follows them.
    before: BTreeMap<usize, Vec<Vec<u8>>>,
}

impl DamagedLines {
    fn new(healthy: &Healthy) -> Self {
        let lines = healthy.lines.iter().map(|line| line.bytes.clone());
        Self {
            lines: lines.collect(),
            before: BTreeMap::new(),
        }
    }

    fn insert(&mut self, at: usize, line: Vec<u8>) {
        self.before.entry(at).or_default().push(line);
    }

    fn set(&mut self, at: usize, value: &Value) {
        self.lines[at] = format!("{value}\n").into_bytes();
    }

    fn finish(mut self, loss: Loss) -> Option<Damage> {
        let count = self.lines.len();
        let mut bytes = Vec::new();
        for at in 0..=count {
            let inserted = self.before.remove(&at).unwrap_or_default();
            // A writer ends the last line before it appends.
            if at == count && !inserted.is_empty() && bytes.last() != Some(&b'\n') {
                bytes.push(b'\n');
            }
            bytes.extend(inserted.concat());
            if at < count {
                bytes.append(&mut self.lines[at]);
            }
        }
        Some(Damage {
            bytes,
            loss,
            foreign: HashSet::new(),
            order: Vec::new(),
        })
    }
}

/// Picks one to three of `lines`, in file order. Returns `None` when there are none.
fn places(lines: &[usize], rng: &mut Rng) -> Option<Vec<usize>> {
    let mut places = lines.to_vec();
    rng.shuffle(&mut places);
    places.truncate(rng.range(1, 3));
    places.sort_unstable();
    (!places.is_empty()).then_some(places)
}

/// Returns the lines that may be damaged: in three cases of four the messages on the path, else all.
fn any_lines(healthy: &Healthy, rng: &mut Rng) -> Vec<usize> {
    if rng.one_in(4) {
        let is_full = |line: &usize| !healthy.lines[*line].is_blank();
        (0..healthy.lines.len()).filter(is_full).collect()
    } else {
        messages(healthy)
    }
}

fn messages(healthy: &Healthy) -> Vec<usize> {
    let path = healthy.path.iter().copied();
    path.filter(|line| healthy.lines[*line].counts()).collect()
}

fn last_line(healthy: &Healthy) -> Option<usize> {
    (0..healthy.lines.len()).rfind(|line| !healthy.lines[*line].is_blank())
}

// ---------------------------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------------------------

fn cut(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let mut places = places(&any_lines(healthy, rng), rng)?;
    if rng.one_in(3) {
        places[0] = last_line(healthy)?;
    }
    let mut lines = DamagedLines::new(healthy);
    let (mut gone, mut linked) = (HashSet::new(), HashSet::new());
    for at in places {
        let content = healthy.lines[at].content();
        let mut torn = content[..rng.range(1, content.len() - 1)].to_vec();
        gone.insert(at);
        if shows_its_link(healthy, at, &torn) {
            linked.insert(at);
        }
        if rng.one_in(2) {
            torn.push(b'\n');
        }
        lines.lines[at] = torn;
    }
    lines.finish(Loss::Lines { gone, linked })
}

/// Returns whether `left`, the rest of a line, still contains both ids of the line.
fn shows_its_link(healthy: &Healthy, line: usize, left: &[u8]) -> bool {
    let left = String::from_utf8_lossy(left);
    let line = &healthy.lines[line];
    let shows = |name: &str| {
        let value = line.value[name].to_string();
        let quote = [
            format!("\"{name}\":{value}"),
            format!("\"{name}\": {value}"),
        ];
        // A truncated `null` does not count.
        quote.iter().any(|member| left.contains(member.as_str()))
    };
    line.uuid.is_some() && shows("uuid") && shows("parentUuid")
}

fn glue(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let candidates = any_lines(healthy, rng).into_iter().filter(|line| {
        healthy
            .lines
            .get(line + 1)
            .is_some_and(|next| !next.is_blank())
    });
    let candidates: Vec<usize> = candidates.collect();
    let mut lines = DamagedLines::new(healthy);
    let (mut gone, mut linked) = (HashSet::new(), HashSet::new());
    for at in places(&candidates, rng)? {
        let content = healthy.lines[at].content();
        let torn = &content[..rng.range(1, content.len() - 1)];
        match rng.below(4) {
            // Two whole objects.
            0..=1 => _ = lines.lines[at].pop(),
            // An append that failed half-way and was repeated completely.
            2 => lines.lines[at] = [torn, &healthy.lines[at].bytes].concat(),
            // A line that was never finished, directly followed by the next one.
            _ => {
                gone.insert(at);
                if shows_its_link(healthy, at, torn) {
                    linked.insert(at);
                }
                lines.lines[at] = torn.to_vec();
            }
        }
    }
    lines.finish(Loss::Lines { gone, linked })
}

fn nul(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let mut lines = DamagedLines::new(healthy);
    let (mut gone, mut linked) = (HashSet::new(), HashSet::new());
    for at in places(&any_lines(healthy, rng), rng)? {
        let nuls = vec![0; *rng.pick(&[1, 7, 64, 300, 512, 5_000])];
        let line = &mut lines.lines[at];
        let length = healthy.lines[at].content().len();
        match rng.below(6) {
            0 => _ = line.splice(0..0, nuls),
            1 => _ = line.splice(length..length, nuls),
            2 => lines.insert(at, [nuls, b"\n".to_vec()].concat()),
            3 => {
                let place = place_in_text(line, rng)?;
                line.splice(place..place, nuls);
            }
            4 => {
                line[..length].fill(0);
                gone.insert(at);
            }
            _ => {
                let from = rng.below(length);
                let to = length.min(from + nuls.len());
                line[from..to].fill(0);
                gone.insert(at);
                if shows_its_link(healthy, at, line) {
                    linked.insert(at);
                }
            }
        }
    }
    lines.finish(Loss::Lines { gone, linked })
}

fn bad_utf8(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let mut lines = DamagedLines::new(healthy);
    for at in places(&any_lines(healthy, rng), rng)? {
        let line = &mut lines.lines[at];
        let place = place_in_text(line, rng)?;
        // Removes the second byte of a non-ASCII character, if there is one within 200 bytes.
        let near = (place..line.len().min(place + 200)).find(|at| line[*at] >= 0xC0);
        match near.filter(|_| rng.one_in(2)) {
            Some(first) => _ = line.remove(first + 1),
            None => {
                let bad: [&[u8]; 5] = [b"\xff", b"\xc3", b"\xe6\x87", b"\xed\xa0\xbd", b"\xc0\x80"];
                line.splice(place..place, rng.pick(&bad).iter().copied());
            }
        }
    }
    lines.finish(Loss::Nothing)
}

fn surrogate(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let mut lines = DamagedLines::new(healthy);
    for at in places(&any_lines(healthy, rng), rng)? {
        let line = &mut lines.lines[at];
        let place = place_in_text(line, rng)?;
        line.splice(
            place..place,
            rng.pick(&["\\ud83d", "\\uD83D", "\\ude00"]).bytes(),
        );
    }
    lines.finish(Loss::Nothing)
}

/// The names of string fields that contain no ids.
const TEXT_FIELDS: [&str; 14] = [
    "text",
    "thinking",
    "content",
    "stdout",
    "stderr",
    "output",
    "command",
    "description",
    "lastPrompt",
    "customTitle",
    "aiTitle",
    "summary",
    "cwd",
    "gitBranch",
];

/// Returns a place between two characters of a text in `line`; `None` when it contains no text.
fn place_in_text(line: &[u8], rng: &mut Rng) -> Option<usize> {
    let texts = texts(line);
    let text = (!texts.is_empty()).then(|| rng.pick(&texts).clone())?;
    let mut places = Vec::new();
    let mut at = text.start;
    while at < text.end {
        places.push(at);
        at += match &line[at..] {
            [
                b'\\',
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
                ..,
            ] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            rest => {
                1 + rest[1..]
                    .iter()
                    .take_while(|byte| **byte & 0xC0 == 0x80)
                    .count()
            }
        };
    }
    Some(*rng.pick(&places))
}

/// Finds the strings of [`TEXT_FIELDS`] in a line of JSON, without their quotes.
fn texts(line: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut name: Option<Range<usize>> = None;
    let mut at = 0;
    while at < line.len() {
        if line[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at + 1;
        at = start;
        while line.get(at).is_some_and(|byte| *byte != b'"') {
            at += if line[at] == b'\\' { 2 } else { 1 };
        }
        let string = start..at.min(line.len());
        at += 1;
        let next = line
            .iter()
            .skip(at)
            .find(|byte| !byte.is_ascii_whitespace());
        if next == Some(&b':') {
            name = Some(string);
        } else if let Some(name) = &name
            && !string.is_empty()
            && TEXT_FIELDS
                .iter()
                .any(|text| text.as_bytes() == &line[name.clone()])
        {
            found.push(string);
        }
    }
    found
}

// ---------------------------------------------------------------------------------------------
// Lines
// ---------------------------------------------------------------------------------------------

fn drop_lines(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let places = places(&any_lines(healthy, rng), rng)?;
    without(healthy, places)
}

fn removed_result(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let is_result = |line: &usize| {
        let line = &healthy.lines[*line];
        line.role == Role::User && !line.is_prompt()
    };
    let results: Vec<usize> = messages(healthy).into_iter().filter(is_result).collect();
    without(healthy, places(&results, rng)?)
}

pub(super) fn without(healthy: &Healthy, places: Vec<usize>) -> Option<Damage> {
    let mut lines = DamagedLines::new(healthy);
    for at in &places {
        lines.lines[*at].clear();
    }
    lines.finish(Loss::lines(places.into_iter().collect()))
}

fn duplicate(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let candidates = any_lines(healthy, rng).into_iter();
    let candidates: Vec<usize> = candidates
        .filter(|line| healthy.lines[*line].uuid.is_some())
        .collect();
    let mut lines = DamagedLines::new(healthy);
    for at in places(&candidates, rng)? {
        let mut again = [healthy.lines[at].content(), b"\n"].concat();
        if rng.one_in(2) {
            let mut value = healthy.lines[at].value.clone();
            renew(&mut value, rng);
            again = format!("{value}\n").into_bytes();
        }
        let end = healthy.lines.len();
        let to = if rng.one_in(2) {
            end
        } else {
            rng.range(at + 1, end)
        };
        lines.insert(to, again);
    }
    lines.finish(Loss::Nothing)
}

/// Changes a field that a later client, or one in another folder, writes differently.
fn renew(value: &mut Value, rng: &mut Rng) {
    match rng.below(3) {
        0 => value["cwd"] = json!("/home/dev/elsewhere"),
        1 => value["version"] = json!("2.1.400"),
        _ => value["slug"] = json!("quiet-amber-heron"),
    }
}

/// Writes a part of the conversation again, as a client does on a resume: with the same uuids and
/// newer fields, and the first of them without a parent.
fn replay(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let mut lines = DamagedLines::new(healthy);
    let ends: Vec<usize> = healthy
        .chain
        .iter()
        .copied()
        .filter(|line| *line >= 2)
        .collect();
    let mut ends = places(&ends, rng)?;
    if rng.one_in(2) {
        ends.truncate(1);
    }
    for end in ends {
        let first = end.saturating_sub(rng.range(1, 12));
        let to = if rng.one_in(3) {
            healthy.lines.len()
        } else {
            end + 1
        };
        let mut is_first = true;
        for at in first..=end {
            let line = &healthy.lines[at];
            if line.uuid.is_none() || line.is_sidechain {
                continue;
            }
            let mut value = line.value.clone();
            value["version"] = json!("2.1.400");
            value["slug"] = json!("quiet-amber-heron");
            if std::mem::take(&mut is_first) {
                value["parentUuid"] = Value::Null;
            }
            lines.insert(to, format!("{value}\n").into_bytes());
        }
    }
    lines.finish(Loss::Nothing)
}

fn reorder(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let mut order: Vec<usize> = (0..healthy.lines.len()).collect();
    for _ in 0..rng.range(1, 3) {
        let from = rng.below(order.len());
        let reach = if rng.one_in(2) { 1 } else { rng.range(2, 10) };
        let to = if rng.one_in(2) {
            from.saturating_sub(reach)
        } else {
            from + reach
        };
        let line = order.remove(from);
        order.insert(to.min(order.len()), line);
    }
    if order.is_sorted() {
        return None;
    }
    let mut lines = DamagedLines::new(healthy);
    lines.lines = order
        .iter()
        .map(|at| [healthy.lines[*at].content(), b"\n"].concat())
        .collect();
    let damage = lines.finish(Loss::Order)?;
    Some(Damage { order, ..damage })
}

// ---------------------------------------------------------------------------------------------
// Links
// ---------------------------------------------------------------------------------------------

/// Returns the messages of the chain that have a parent, nearest to the leaf first.
fn linked(healthy: &Healthy) -> Vec<usize> {
    let chain = healthy.chain.iter().copied();
    chain
        .filter(|line| healthy.lines[*line].is_message() && healthy.lines[*line].parent.is_some())
        .collect()
}

fn swapped_parent(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let chain = linked(healthy);
    // A single entry has no other to exchange parents with.
    let others = chain.len().checked_sub(1).filter(|others| *others > 0)?;
    let mut lines = DamagedLines::new(healthy);
    let mut touched = Vec::new();
    for _ in 0..rng.range(1, 2) {
        let at = rng.below(others);
        let other = rng.range(at + 1, (at + 6).min(chain.len() - 1));
        let pair = [chain[at], chain[other]];
        if pair.iter().any(|line| touched.contains(line)) {
            continue;
        }
        for (line, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let mut value = healthy.lines[line].value.clone();
            value["parentUuid"] = healthy.lines[other].value["parentUuid"].clone();
            lines.set(line, &value);
        }
        touched.extend(pair);
    }
    let exchanged = true;
    lines.finish(Loss::Links { touched, exchanged })
}

fn cycle(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let chain = linked(healthy);
    let mut lines = DamagedLines::new(healthy);
    let touched = places(&chain, rng)?;
    for line in &touched {
        let at = chain.iter().position(|other| other == line)?;
        let below = if rng.one_in(4) { at } else { rng.below(at + 1) };
        let mut value = healthy.lines[*line].value.clone();
        value["parentUuid"] = json!(healthy.lines[chain[below]].uuid);
        lines.set(*line, &value);
    }
    let exchanged = false;
    lines.finish(Loss::Links { touched, exchanged })
}

// ---------------------------------------------------------------------------------------------
// Compaction
// ---------------------------------------------------------------------------------------------

/// Changes one or two pointers of a boundary on the path to uuids that do not exist.
fn dangling_pointer(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let on_path = healthy.path.iter().copied();
    let at = on_path
        .rev()
        .find(|line| healthy.lines[*line].is_boundary())?;
    let mut value = healthy.lines[at].value.clone();
    let metadata = &value["compactMetadata"];
    let mut pointers = Vec::new();
    let count = metadata["preservedMessages"]["uuids"]
        .as_array()
        .map_or(0, Vec::len);
    pointers.extend((0..count).map(|at| format!("/compactMetadata/preservedMessages/uuids/{at}")));
    pointers.push("/compactMetadata/preservedMessages/anchorUuid".to_owned());
    for end in ["headUuid", "anchorUuid", "tailUuid"] {
        pointers.push(format!("/compactMetadata/preservedSegment/{end}"));
    }
    pointers.push("/logicalParentUuid".to_owned());
    pointers.retain(|pointer| value.pointer(pointer).is_some_and(Value::is_string));
    rng.shuffle(&mut pointers);
    pointers.truncate(if rng.one_in(4) { 2 } else { 1 });
    if pointers.is_empty() {
        return None;
    }
    for pointer in &pointers {
        *value.pointer_mut(pointer)? = json!(generate::uuid(rng));
    }
    let unproven = unnamed(healthy, at, &value);
    let mut lines = DamagedLines::new(healthy);
    lines.set(at, &value);
    lines.finish(Loss::Pointers { unproven })
}

/// Returns which of the entries that a boundary keeps are not proved by its remaining pointers.
/// `value` is the damaged boundary.
fn unnamed(healthy: &Healthy, boundary: usize, value: &Value) -> HashSet<usize> {
    let was = &healthy.lines[boundary].value["compactMetadata"];
    let metadata = &value["compactMetadata"];
    let (list, segment) = (
        &metadata["preservedMessages"],
        &metadata["preservedSegment"],
    );
    let line = |uuid: &Value| healthy.line_of.get(uuid.as_str()?).copied();
    let kept: Vec<usize> = if list.is_object() {
        let uuids = was["preservedMessages"]["uuids"].as_array();
        uuids.into_iter().flatten().filter_map(line).collect()
    } else {
        healthy
            .segment(&was["preservedSegment"])
            .unwrap_or_default()
    };
    let logical = line(&value["logicalParentUuid"]);
    let segment_line = |name: &str| line(&segment[name]);
    let list_is_whole = list.is_object()
        && list["uuids"]
            .as_array()
            .is_some_and(|uuids| uuids.iter().all(|uuid| line(uuid).is_some()));
    let segment_is_whole = healthy.segment(segment).is_some();

    // The anchor is the summary, as a rule: a summary is taken as the anchor even without a pointer.
    let was_anchor = [&was["preservedMessages"], &was["preservedSegment"]];
    let was_anchor = was_anchor.iter().find_map(|form| line(&form["anchorUuid"]));
    let is_summary = was_anchor.is_some_and(|anchor| healthy.lines[anchor].role == Role::User);
    let knows_anchor =
        is_summary || line(&list["anchorUuid"]).is_some() || segment_line("anchorUuid").is_some();
    let before = || (0..boundary).chain(kept.iter().copied()).collect();
    if kept.is_empty() || (knows_anchor && (list_is_whole || segment_is_whole)) {
        return HashSet::new();
    }
    if !knows_anchor {
        return before();
    }
    if !list.is_object() {
        // The last entry before the boundary and the head are known; the links between them give the
        // rest.
        let tail = kept.last().copied();
        let by_logical = segment_line("headUuid").is_some() && logical == tail;
        return if by_logical { HashSet::new() } else { before() };
    }
    let named: Vec<Option<usize>> = list["uuids"]
        .as_array()
        .into_iter()
        .flatten()
        .map(line)
        .collect();
    let is_proved = |at: usize| {
        let own = Some(kept[at]);
        let follower = kept
            .get(at + 1)
            .filter(|_| named.get(at + 1).is_some_and(Option::is_some));
        named[at].is_some()
            || (at > 0 && follower.is_some_and(|next| healthy.lines[*next].parent == own))
            || (at == 0 && segment_line("headUuid") == own)
            || (at + 1 == kept.len() && (segment_line("tailUuid") == own || logical == own))
    };
    (0..kept.len())
        .filter(|at| !is_proved(*at))
        .map(|at| kept[at])
        .collect()
}

// ---------------------------------------------------------------------------------------------
// Another session
// ---------------------------------------------------------------------------------------------

/// Inserts a run of lines of another session, fewer than half as many as this one has messages, with
/// the time of the line before them.
fn foreign(healthy: &Healthy, rng: &mut Rng) -> Option<Damage> {
    let other = (0..20).find_map(|_| Healthy::new(&generate::tidy_session(rng.next_u64())))?;
    let is_main = |line: &&Line| line.uuid.is_some() && !line.is_sidechain && !line.is_boundary();
    let rows: Vec<&Line> = other.lines.iter().filter(is_main).collect();
    let limit = (healthy.conversation().len() / 2)
        .saturating_sub(1)
        .clamp(1, 15);
    let from = if rng.one_in(2) {
        0
    } else {
        rng.below(rows.len())
    };
    let to = rows.len().min(from + rng.range(1, limit));
    let end = healthy.lines.len();
    let at = if rng.one_in(2) {
        end
    } else {
        rng.range(1, end)
    };
    let time = healthy.lines[..at]
        .iter()
        .rev()
        .find_map(|line| line.value["timestamp"].as_str());

    let mut lines = DamagedLines::new(healthy);
    let mut uuids = HashSet::new();
    for row in &rows[from..to] {
        let mut value = row.value.clone();
        if let Some(time) = time {
            value["timestamp"] = json!(time);
        }
        // The generator numbers these ids from the start in every session; real ids never repeat.
        let text = value.to_string();
        let text = text
            .replace("\"msg_", "\"msg_of_other_")
            .replace("\"toolu_", "\"toolu_of_other_");
        lines.insert(at, format!("{text}\n").into_bytes());
        uuids.extend(row.uuid.clone().filter(|_| row.is_message()));
    }
    let damage = lines.finish(Loss::Nothing)?;
    Some(Damage {
        foreign: uuids,
        ..damage
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_past_escapes_and_only_under_their_names() {
        let line =
            br#"{"uuid":"a","text":"x\"y","content":[{"type":"t"},"z"],"text": "","cwd" : "/w"}"#;
        let found: Vec<&str> = texts(line)
            .into_iter()
            .map(|range| std::str::from_utf8(&line[range]).unwrap())
            .collect();
        assert_eq!(found, [r#"x\"y"#, "/w"]);
    }

    #[test]
    fn a_place_in_a_text_is_never_within_a_character_or_an_escape() {
        let line = "{\"text\":\"a\\\\\\ud83d\\ude00é\\u00e9\"}".as_bytes();
        let places: std::collections::BTreeSet<usize> = (0..200)
            .filter_map(|seed| place_in_text(line, &mut Rng::new(seed)))
            .collect();
        let places: Vec<usize> = places.into_iter().collect();
        assert_eq!(places, [9, 10, 12, 24, 26]);
    }
}
