//! Filters: a summary of each piece of a file in the cache, so that a search does not read it again if nothing in it
//! can match (docs/search.md).

use std::mem;
use std::path::Path;
use std::sync::Arc;

use memchr::{memchr, memrchr};
use transcript_format::scan::{Envelope, Scanner, utf8};

use crate::cache::{Cache, Lookup, PieceMaker, ScanPlan};
use crate::files::{Catalog, FileRole};
use crate::fold::folded;
use crate::fuse::{Builder, Filter};
use crate::grams::{Grams, TextNeed};
use crate::matches::millis_of;
use crate::query::{Condition, Query};
use crate::sidecar::{Piece, SidecarKind, StoredPiece, hash, numbers};
use crate::texts::{ToolPart, Unit};

/// The number changes with the format, and with the texts that are searched or how they are folded.
const SIDECAR_KIND: SidecarKind = SidecarKind {
    magic: concat!("transcript filters 4 ", env!("CARGO_PKG_VERSION")),
    extension: "filters",
    // Filters can be made again from the transcripts, so no older format is read.
    older: &[],
};
/// The minimum number of bytes of a piece for each of its grams; a piece with more grams has no filter.
const BYTES_PER_GRAM: usize = 24;
/// The maximum number of grams of a short piece.
const MIN_PIECE_GRAMS: usize = 8192;

/// The filters of one search.
#[derive(Debug)]
pub(crate) struct Filters<'c> {
    pub(crate) cache: Cache<'c, PieceSummary>,
    needs: Arc<QueryNeeds>,
}

/// A summary of the units of a part of a file, as its filter has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnitSummary {
    /// A bit for each field that a text has.
    fields: u16,
    /// A bit for each role.
    roles: u8,
    has_error: bool,
    /// The bits of the names of the tools that are called.
    tools: u64,
    /// The first and the last time, in milliseconds since 1970; the first is later if there is none.
    times: (i64, i64),
}

impl Default for UnitSummary {
    fn default() -> Self {
        Self {
            fields: 0,
            roles: 0,
            has_error: false,
            tools: 0,
            times: (i64::MAX, i64::MIN),
        }
    }
}

impl UnitSummary {
    fn write(self, out: &mut Vec<u8>) {
        let bits =
            u64::from(self.fields) | u64::from(self.roles) << 16 | u64::from(self.has_error) << 24;
        let (first, last) = self.times;
        for number in [
            bits,
            self.tools,
            first.cast_unsigned(),
            last.cast_unsigned(),
        ] {
            out.extend(number.to_le_bytes());
        }
    }

    /// Reads the facts before a filter.
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let [bits, tools, first, last] = numbers(bytes)?;
        Some(Self {
            fields: bits as u16,
            roles: (bits >> 16) as u8,
            has_error: bits >> 24 & 1 == 1,
            tools,
            times: (first.cast_signed(), last.cast_signed()),
        })
    }
}

/// The part of a filter that a search keeps in memory for each piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceSummary {
    tools: u64,
    /// Whether a unit in it may match, as far as the piece alone can say.
    may_match: bool,
    /// For each `path:` filter as a bit, whether a path in the piece may have it.
    paths: u32,
}

impl<'c> Filters<'c> {
    pub(crate) fn new(folder: &Path, catalog: &'c Catalog, query: &Query) -> Self {
        let needs = Arc::new(QueryNeeds::of(query));
        let see = {
            let needs = Arc::clone(&needs);
            move |payload: &[u8]| needs.see(payload)
        };
        Self {
            cache: Cache::new(SIDECAR_KIND, folder, catalog, see),
            needs,
        }
    }

    /// Decides which parts of a file have to be read.
    pub(crate) fn plan(&self, file: usize) -> ScanPlan {
        let cache = &self.cache;
        let is_result = matches!(cache.catalog.files[file].kind, FileRole::Result(_));
        let again = |state| ScanPlan {
            build: cache.build(state, 0, 0),
            ..ScanPlan::whole()
        };
        let known = match cache.look_up(file) {
            Lookup::Unknown | Lookup::Damaged(_) => return ScanPlan::whole(),
            Lookup::New(state) => return again(state),
            Lookup::Known(known) => known,
        };
        let (pieces, rest) = (&known.pieces, known.rest);
        if is_result && rest > 0 {
            return again(known.state);
        }
        // The call of a stored result is in another file.
        let may_match = rest > 0 || is_result || self.needs.may_match_file(pieces);
        let mut plan = ScanPlan::default();
        for piece in pieces
            .iter()
            .filter(|piece| may_match && piece.kept.may_match)
        {
            match plan.parts.last_mut() {
                Some((_, end)) if *end == piece.start => *end = piece.end,
                _ => plan.parts.push((piece.start, piece.end)),
            }
        }
        if is_result {
            // They are read as a whole.
            plan.parts = plan
                .parts
                .first()
                .map(|_| (0, u64::MAX))
                .into_iter()
                .collect();
            return plan;
        }
        // Bytes after the cached pieces have no filter yet, so they are always read, with those that are appended until then.
        if rest > 0 {
            let (start, build) = cache.rest(&known);
            plan.build = build;
            plan.parts.retain(|part| part.0 < start);
            if let Some(part) = plan.parts.last_mut() {
                part.1 = part.1.min(start);
            }
            plan.parts.push((start, u64::MAX));
        }
        plan
    }
}

/// The conditions of a query that a piece must meet so that a unit in it may match.
#[derive(Debug)]
struct QueryNeeds {
    terms: Vec<TextNeed>,
    /// The positive filters: one of each key must hold.
    filters: Query,
    /// The folded values of `path:`.
    paths: Vec<TextNeed>,
}

impl QueryNeeds {
    fn of(query: &Query) -> Self {
        let mut filters = query.filters.clone();
        filters.retain(|filter| !filter.is_negative);
        let path = |condition: &Condition| match condition {
            Condition::Path(path) => Some(TextNeed::of_bytes(path.as_bytes())),
            _ => None,
        };
        let paths = filters.iter().filter_map(|filter| path(&filter.condition));
        let terms = query.positive().map(|term| TextNeed::of(&term.matcher));
        Self {
            terms: terms.collect(),
            paths: paths.take(u32::BITS as usize).collect(),
            filters: Query {
                terms: Vec::new(),
                filters,
            },
        }
    }

    fn see(&self, mut payload: &[u8]) -> PieceSummary {
        let Some(facts) = UnitSummary::read(&mut payload) else {
            return PieceSummary {
                tools: u64::MAX,
                may_match: true,
                paths: u32::MAX,
            };
        };
        let filter = Filter::of(payload);
        let may_be = |need: &TextNeed| filter.as_ref().is_none_or(|filter| need.may_be_in(filter));
        let holds = self.filters.holds(|condition| {
            Some(match condition {
                Condition::In(field) => facts.fields >> *field as u16 & 1 == 1,
                Condition::Role(role) => facts.roles >> *role as u8 & 1 == 1,
                // Both may be asked for: one of a key must hold.
                Condition::Error(wanted) => !wanted || facts.has_error,
                Condition::Since(time) => facts.times.1 >= *time,
                Condition::Until(time) => facts.times.0 <= *time,
                _ => return None,
            })
        });
        let mut paths = 0;
        for (bit, need) in self.paths.iter().enumerate() {
            paths |= u32::from(may_be(need)) << bit;
        }
        PieceSummary {
            tools: facts.tools,
            may_match: holds && self.terms.iter().all(may_be),
            paths,
        }
    }

    /// Returns whether a unit of a file may match that has these pieces and nothing else. A result and
    /// its call can be in different pieces.
    fn may_match_file(&self, pieces: &[StoredPiece<PieceSummary>]) -> bool {
        let known = pieces.iter().map(|piece| &piece.kept);
        let tools = known.clone().fold(0, |tools, known| tools | known.tools);
        let paths = known.fold(0, |paths, known| paths | known.paths);
        self.filters.holds(|condition| {
            Some(match condition {
                Condition::Tool(name) => tools & tool_bit(name) != 0,
                Condition::Path(_) => self.paths.len() == u32::BITS as usize || paths != 0,
                _ => return None,
            })
        })
    }
}

/// Returns the bit of the folded name of a tool.
fn tool_bit(name: &str) -> u64 {
    1 << (hash(name.as_bytes()) % 64)
}

/// Makes the pieces of a part of a file.
#[derive(Debug, Default)]
pub(crate) struct Maker {
    grams: Grams,
    filters: Builder,
    scanner: Scanner,
    facts: UnitSummary,
    maker: PieceMaker,
    pub(crate) pieces: Vec<Piece>,
}

impl Maker {
    /// Drops the unfinished piece.
    pub(crate) fn start(&mut self) {
        self.grams.clear();
        self.facts = UnitSummary::default();
        self.maker = PieceMaker::default();
        self.pieces.clear();
    }

    /// Adds lines. Those from `end` on are of another part. Returns false if one is damaged.
    pub(crate) fn add_lines(&mut self, offset: u64, bytes: &[u8], end: u64) -> bool {
        // A line without a line feed may still grow.
        let len = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let bytes = &bytes[..len];
        let mut scanner = mem::take(&mut self.scanner);
        let mut at = 0;
        let mut is_whole = true;
        while at < len && is_whole {
            let line_end = memchr(b'\n', &bytes[at..]).map_or(len, |feed| at + feed);
            let line = &bytes[at..line_end];
            match scanner.scan(line) {
                Ok(envelope) => self.add_line(line, &envelope),
                Err(_) => is_whole = line.trim_ascii().is_empty(),
            }
            at = line_end + 1;
        }
        self.scanner = scanner;
        self.maker.push(offset, bytes);
        if self.maker.is_full(end) {
            self.finish();
        }
        is_whole
    }

    fn add_line(&mut self, line: &[u8], envelope: &Envelope<'_>) {
        for tool in envelope.tools() {
            if let Some(name) = tool.name {
                self.facts.tools |= tool_bit(&folded(&name.decode()));
            }
        }
        let Some(unit) = utf8(line).and_then(|text| Unit::read(text, envelope)) else {
            return;
        };
        let facts = &mut self.facts;
        if let Some(role) = unit.role {
            facts.roles |= 1 << role as u8;
        }
        if let Some(millis) = millis_of(envelope) {
            facts.times = (facts.times.0.min(millis), facts.times.1.max(millis));
        }
        facts.has_error |= unit.is_api_error;
        for text in &unit.texts {
            facts.fields |= 1 << text.field as u16;
            match &text.tool {
                ToolPart::Call {
                    name: Some(name), ..
                } => facts.tools |= tool_bit(&folded(name)),
                ToolPart::Result { is_error: true, .. } => facts.has_error = true,
                _ => {}
            }
            self.grams.add(&text.text);
        }
    }

    /// Adds a stored result, which is a piece of its own. Filters of entries do not rule it out.
    pub(crate) fn add_result(&mut self, bytes: &[u8], text: &str) {
        self.start();
        self.facts = UnitSummary {
            fields: u16::MAX,
            roles: u8::MAX,
            has_error: true,
            tools: u64::MAX,
            times: (i64::MIN, i64::MAX),
        };
        self.grams.add(text);
        self.maker.push(0, bytes);
        self.finish();
    }

    /// Ends a piece.
    pub(crate) fn finish(&mut self) {
        let facts = mem::take(&mut self.facts);
        if let Some(mut piece) = self.maker.finish() {
            facts.write(&mut piece.payload);
            let numbers = self.grams.numbers();
            let len = piece.end - piece.start;
            // A filter of random texts would match every query: they have too many grams.
            if numbers.len() <= MIN_PIECE_GRAMS.max(len as usize / BYTES_PER_GRAM) {
                self.filters.build(numbers, &mut piece.payload);
            }
            self.pieces.push(piece);
        }
        self.grams.clear();
    }
}
