//! The search: one pass over the decoded text for whatever a secret has a part of, and a rule for each such part.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::anchors::{Anchor, Anchors};
use crate::class::ALNUM;
use crate::commands::OPTIONS;
use crate::form::Form;
use crate::headers::{SCHEMES, header};
use crate::lines::{LINES, Line};
use crate::names::{FOREIGN, Meaning, PARTS, Trust, meaning, meaning_of_two, name_around};
use crate::own::OwnRules;
use crate::tokens::TOKENS;
use crate::view::View;
use crate::{addresses, commands, files, headers, keys, people, value};

/// A secret in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Secret {
    /// What it is, in words, such as `GitHub token`.
    pub kind: &'static str,
    /// Its bytes.
    pub range: Range<usize>,
    /// Whether it is a number of JSON, which has no quotes: its mask needs them.
    pub is_bare: bool,
}

/// What was found in a line.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What is redacted, in order and without overlaps.
    pub(crate) secrets: Vec<Secret>,
    /// What looks like a secret and is left, in order.
    pub(crate) left: Vec<Secret>,
    /// Where e-mail addresses and names in paths start that are left.
    pub(crate) people: Vec<(Person, usize)>,
}

/// What says who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// An e-mail address.
    Email,
    /// A name in a path.
    Home,
}

/// What is found by a rule of the user.
const OWN: &str = "own rule";

/// What is looked for at a place where a part of a secret was found.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// The form with this number.
    Form(usize),
    /// A name with this part.
    Name,
    /// A name that the user added.
    OwnName,
    /// A text that the user added.
    OwnText,
    KeyHeader,
    KeyFooter,
    KeyBody,
    Encoded,
    Number,
    RandomPassword,
    Scheme(&'static str),
    Address,
    Option(&'static str),
    /// A call, and the number of the argument that is a secret.
    Call(usize),
    /// The line with this number.
    Line(usize),
    Pgpass,
    Kubernetes,
    Jwk,
    Email,
    Home,
}

/// Everything that is searched for.
#[derive(Debug)]
pub(crate) struct Search {
    /// Finds the parts of secrets.
    anchors: Anchors,
    /// The rule of each part.
    rules: Vec<Rule>,
    forms: Vec<(&'static str, Form)>,
    lines: Vec<Line>,
    encoded: Vec<String>,
    own: OwnRules,
    redacts_emails: bool,
    redacts_homes: bool,
}

/// The search for the rules of this crate alone.
static PLAIN: LazyLock<Arc<Search>> =
    LazyLock::new(|| Arc::new(Search::build(false, false, OwnRules::default())));

impl Search {
    pub(crate) fn new(emails: bool, homes: bool, own: OwnRules) -> Arc<Self> {
        match (emails, homes, own.is_empty()) {
            (false, false, true) => Arc::clone(&PLAIN),
            _ => Arc::new(Self::build(emails, homes, own)),
        }
    }

    fn build(emails: bool, homes: bool, own: OwnRules) -> Self {
        let own_forms = own.forms.iter().map(|form| (OWN, form.as_str()));
        let forms = TOKENS.iter().copied().chain(own_forms);
        let forms: Vec<_> = forms
            .filter_map(|(kind, form)| Some((kind, Form::parse(form)?)))
            .collect();
        let lines: Vec<Line> = LINES.iter().map(|row| Line::parse(row)).collect();
        let encoded = keys::ENCODED_NAMES.map(keys::encodings).concat();
        let mut parts: Vec<(&str, Rule)> = Vec::new();
        parts.extend(
            forms
                .iter()
                .enumerate()
                .map(|(number, (_, form))| (form.anchor(), Rule::Form(number))),
        );
        let names = PARTS.iter().chain(&FOREIGN);
        parts.extend(names.map(|part| (*part, Rule::Name)));
        parts.extend(
            [keys::HEADER, keys::SSH2_HEADER, keys::PUTTY].map(|header| (header, Rule::KeyHeader)),
        );
        parts.push((keys::FOOTER, Rule::KeyFooter));
        parts.extend(keys::BODIES.map(|body| (body, Rule::KeyBody)));
        parts.extend(encoded.iter().map(|part| (part.as_str(), Rule::Encoded)));
        parts.extend(files::NUMBERS.map(|name| (name, Rule::Number)));
        parts.push((files::RANDOM_PASSWORD, Rule::RandomPassword));
        parts.extend(SCHEMES.map(|scheme| (scheme, Rule::Scheme(scheme))));
        parts.push((addresses::MARK, Rule::Address));
        parts.extend(OPTIONS.map(|option| (option, Rule::Option(option))));
        parts.extend(commands::CALLS.map(|(call, number)| (call, Rule::Call(number))));
        let anchors = lines.iter().map(Line::anchor).enumerate();
        parts.extend(anchors.map(|(number, anchor)| (anchor, Rule::Line(number))));
        parts.extend(files::PGPASS.map(|fields| (fields, Rule::Pgpass)));
        parts.extend(files::KUBERNETES.map(|kind| (kind, Rule::Kubernetes)));
        parts.push((files::JWK, Rule::Jwk));
        parts.push(("@", Rule::Email));
        parts.extend(people::HOMES.map(|home| (home, Rule::Home)));
        parts.extend(own.names.iter().map(|name| (name.as_str(), Rule::OwnName)));
        parts.extend(own.texts.iter().map(|text| (text.as_str(), Rule::OwnText)));
        let texts: Vec<&str> = parts.iter().map(|(text, _)| *text).collect();
        Self {
            anchors: Anchors::new(&texts),
            rules: parts.iter().map(|(_, rule)| *rule).collect(),
            forms,
            lines,
            encoded: encoded.clone(),
            own,
            redacts_emails: emails,
            redacts_homes: homes,
        }
    }

    /// Finds what is in a line, or in a part of one.
    pub(crate) fn find(&self, raw: &[u8], view: &mut View) -> Found {
        view.decode(raw);
        let view = &*view;
        let text = view.text();
        let mut hits = Hits::default();
        let mut anchors = Vec::new();
        self.anchors.find(text, &mut anchors);
        for Anchor { part, start, end } in anchors {
            self.apply(self.rules[part], view, start..end, &mut hits);
        }
        if !self.own.kept.is_empty() {
            hits.list.retain(|hit| {
                !self.own.keeps(hit.kind.as_bytes()) && !self.own.keeps(&text[hit.range.clone()])
            });
        }
        hits.into_found(view)
    }

    /// Looks for a secret of a rule at a part of one.
    fn apply(&self, rule: Rule, view: &View, part: Range<usize>, hits: &mut Hits) {
        let Range { start, end } = part;
        hits.anchor = start;
        match rule {
            // A name has several parts, and its value is looked for once.
            Rule::Name if end <= hits.name.end && start >= hits.name.start => {}
            Rule::Name => {
                let name = name_around(view.text(), &part);
                hits.anchor = name.start;
                hits.name = name.clone();
                self.named(view, &name, hits);
            }
            Rule::OwnName => self.own_name(view, part, hits),
            Rule::OwnText => hits.push(1, OWN, part),
            // A token within another one is a part of it.
            Rule::Form(_) if start < hits.token_end => {}
            Rule::Form(number) => {
                let looked_at = hits.looked_at.entry(number).or_default();
                if start < *looked_at {
                    return;
                }
                let (kind, form) = &self.forms[number];
                let token = form.find(view, start, looked_at);
                hits.token_end = token.as_ref().map_or(hits.token_end, |token| token.end);
                hits.add(0, kind, token);
            }
            Rule::KeyHeader => hits.add(0, keys::KIND, keys::block(view, start)),
            Rule::KeyFooter => hits.add(1, keys::KIND, keys::tail(view, start)),
            // The lines of one key may all start like one.
            Rule::KeyBody if start < hits.key_end => {}
            Rule::KeyBody => {
                let key = keys::body(view, start);
                hits.key_end = key.as_ref().map_or(end, |key| key.end);
                hits.add(1, keys::KIND, key);
            }
            // The search does not regard the case of letters, and base64 does.
            Rule::Encoded
                if start < hits.encoded_end || !self.is_encoded(&view.text()[part.clone()]) => {}
            Rule::Encoded => {
                let secret = keys::encoded(view, start);
                hits.encoded_end = secret.as_ref().map_or(end, |secret| secret.end);
                hits.add(3, "encoded secret", secret);
            }
            Rule::Number => hits.add_all(1, keys::KIND, files::number(view, end)),
            Rule::RandomPassword => hits.add(2, "password", files::random_password(view, start)),
            Rule::Scheme(scheme) => hits.add(
                2,
                "authorization header",
                headers::after_scheme(view, scheme, end),
            ),
            Rule::Address => hits.add(2, "password", addresses::password(view, start)),
            // `-p` and `-P` are two options.
            Rule::Option(option)
                if option.starts_with(" -")
                    && !view.text()[start..].starts_with(option.as_bytes()) => {}
            Rule::Option(option) => {
                hits.add(2, "password", commands::password(view, option, start));
            }
            Rule::Call(number) if commands::is_call(&view.text()[start..end]) => {
                hits.add(2, "secret", commands::argument_of_call(view, end, number));
            }
            Rule::Line(number) => {
                hits.add_all(2, "password", self.lines[number].find(view, end));
            }
            Rule::Call(_) => {}
            Rule::Pgpass => hits.add(2, "password", files::pgpass(view, start)),
            Rule::Kubernetes if start < hits.secret_end => {}
            Rule::Kubernetes => {
                let (secrets, end) = files::kubernetes(view, start);
                hits.secret_end = end;
                hits.add_all(1, "Kubernetes secret", secrets);
            }
            Rule::Jwk if start < hits.jwk_end => {}
            Rule::Jwk => {
                let (secrets, end) = files::jwk(view, start);
                hits.jwk_end = end;
                hits.add_all(1, keys::KIND, secrets);
            }
            Rule::Email => hits.person(
                Person::Email,
                self.redacts_emails,
                people::email(view, start),
            ),
            Rule::Home => hits.person(Person::Home, self.redacts_homes, people::home(view, end)),
        }
    }

    fn is_encoded(&self, part: &[u8]) -> bool {
        self.encoded.iter().any(|text| text.as_bytes() == part)
    }

    /// Adds the value of a name of the user.
    fn own_name(&self, view: &View, word: Range<usize>, hits: &mut Hits) {
        if name_around(view.text(), &word) == word {
            let meaning = Meaning {
                kind: OWN,
                trust: Trust::Always,
            };
            // Without a value, the name itself is what must not be shown.
            let values = value::values_of(view, &word, meaning, &mut hits.around);
            if values.is_empty() {
                hits.push(3, OWN, word.clone());
            }
            hits.values(values, meaning, word.start);
        }
    }

    /// Adds the value of a name.
    fn named(&self, view: &View, name: &Range<usize>, hits: &mut Hits) {
        let text = &view.text()[name.clone()];
        // The kind that a mask names is no name.
        let is_none = is_in_mask(view.text(), name.start) || is_in_path(view.text(), name);
        if self.own.keeps(text) || is_none {
            return;
        }
        if let Some(header) = header(text).filter(|_| name.start >= hits.header_end) {
            let kind = match header {
                headers::Header::Authorization => "authorization header",
                _ => "cookie",
            };
            let (secret, end) = headers::value(view, name.end, header);
            hits.add(2, kind, secret);
            hits.header_end = end;
        }
        let two = meaning_of_two(view.text(), name);
        if let Some(meaning) = two
            .or_else(|| meaning(text))
            .filter(|_| hits.may_have_value(view.text(), name))
        {
            let values = value::values_of(view, name, meaning, &mut hits.around);
            hits.values(values, meaning, name.start);
        }
    }
}

/// A secret in the decoded text.
#[derive(Debug)]
struct Hit {
    /// The lowest one names a place that several rules found.
    rank: u8,
    kind: &'static str,
    range: Range<usize>,
    is_bare: bool,
    is_sure: bool,
    /// A place in a string of the line, or in the text, that led to it.
    anchor: usize,
}

impl Hit {
    /// Returns whether the secret is in a string, as its anchor is, or is a number, which is in none; and is no mask.
    fn is_whole(&self, view: &View) -> bool {
        let (from, to) = (
            self.anchor.min(self.range.start),
            self.anchor.max(self.range.start),
        );
        let quotes = memchr::memchr_iter(b'"', &view.text()[from..to]);
        let outer = quotes.filter(|at| view.is_outer_quote(from + at)).count();
        let is_mask = is_in_mask(view.text(), self.range.start);
        (outer % 2 == 1) == self.is_bare && !is_mask
    }

    fn of_value(value: value::Value, meaning: Meaning, anchor: usize) -> Self {
        Self {
            anchor,
            rank: 3,
            kind: meaning.kind,
            range: value.range,
            is_bare: value.is_bare_json,
            is_sure: value.is_sure,
        }
    }
}

/// Returns whether a name is a part of another one, as in `AWS::KMS::Key` and `arn:aws:…:secret:name`.
fn is_in_path(text: &[u8], name: &Range<usize>) -> bool {
    let before = &text[..name.start];
    let is_next = |at: usize| {
        text.get(at)
            .is_some_and(|byte| ALNUM.has(*byte) || *byte == b'[')
    };
    let is_tight = text.get(name.end) == Some(&b':') && is_next(name.end + 1);
    before.ends_with(b"::")
        || is_tight && before.ends_with(b":") && before.len() > 1 && {
            let further = before[before.len() - 2];
            ALNUM.has(further) || b")*}".contains(&further)
        }
}

/// Returns whether what starts at `at` is a mask, or a part of one.
fn is_in_mask(text: &[u8], at: usize) -> bool {
    const START: &[u8] = b"[redacted: ";
    const MAX_MASK: usize = 64;
    let from = at.saturating_sub(MAX_MASK);
    let near = &text[from..text.len().min(at + START.len())];
    memchr::memmem::rfind(near, START)
        .is_some_and(|start| !text[from + start..at.max(from + start)].contains(&b']'))
}

#[derive(Debug, Default)]
struct Hits {
    list: Vec<Hit>,
    people: Vec<(Person, usize)>,
    /// Where the name ends that was looked at last, the header, the token, and the file: what is in them is not looked at again.
    name: Range<usize>,
    word_end: usize,
    names_in_word: usize,
    header_end: usize,
    token_end: usize,
    secret_end: usize,
    jwk_end: usize,
    encoded_end: usize,
    key_end: usize,
    around: value::Around,
    /// The same for each form.
    looked_at: BTreeMap<usize, usize>,
    anchor: usize,
}

impl Hits {
    fn push(&mut self, rank: u8, kind: &'static str, range: Range<usize>) {
        self.list.push(Hit {
            anchor: self.anchor,
            rank,
            kind,
            range,
            is_bare: false,
            is_sure: true,
        });
    }

    fn add(&mut self, rank: u8, kind: &'static str, range: Option<Range<usize>>) {
        if let Some(range) = range {
            self.push(rank, kind, range);
        }
    }

    /// Returns whether a name is not one of many in a word: without blanks and quotes, hardly more than one has a value.
    fn may_have_value(&mut self, text: &[u8], name: &Range<usize>) -> bool {
        const MAX_WORD: usize = 4 << 10;
        const MAX_NAMES: usize = 16;
        if name.start >= self.word_end {
            let rest = text[name.end..].iter().take(MAX_WORD);
            let is_end = |byte: &&u8| byte.is_ascii_whitespace() || b"\"'`<>,;&".contains(byte);
            self.word_end = name.end + rest.take_while(|byte| !is_end(byte)).count();
            self.names_in_word = 0;
        }
        self.names_in_word += 1;
        self.names_in_word <= MAX_NAMES
    }

    /// Adds what says who somebody is, to be redacted or to be counted.
    fn person(&mut self, person: Person, is_redacted: bool, range: Option<Range<usize>>) {
        let Some(range) = range else { return };
        match (is_redacted, person) {
            (true, Person::Email) => self.push(4, "e-mail address", range),
            (true, Person::Home) => self.push(4, "name in a path", range),
            (false, _) => self.people.push((person, range.start)),
        }
    }

    fn add_all(&mut self, rank: u8, kind: &'static str, ranges: Vec<Range<usize>>) {
        for range in ranges {
            self.push(rank, kind, range);
        }
    }

    fn values(&mut self, values: Vec<value::Value>, meaning: Meaning, anchor: usize) {
        let hits = values
            .into_iter()
            .map(|value| Hit::of_value(value, meaning, anchor));
        self.list.extend(hits.filter(|hit| !hit.range.is_empty()));
    }

    /// Joins what overlaps, and leads all of it back to the line.
    fn into_found(mut self, view: &View) -> Found {
        self.list.retain(|hit| hit.is_whole(view));
        for hit in &mut self.list {
            hit.range = within_text(view, hit.range.clone());
        }
        self.list
            .sort_by_key(|hit| (!hit.is_sure, hit.range.start, usize::MAX - hit.range.end));
        let sure = self.list.iter().take_while(|hit| hit.is_sure).count();
        let left = self.list.split_off(sure);
        let mut joined: Vec<Hit> = Vec::new();
        for hit in self.list {
            match joined.last_mut() {
                Some(last) if hit.range.start < last.range.end => {
                    last.range.end = last.range.end.max(hit.range.end);
                    if hit.rank < last.rank {
                        (last.rank, last.kind) = (hit.rank, hit.kind);
                    }
                    last.is_bare &= hit.is_bare;
                }
                _ => joined.push(hit),
            }
        }
        let people = self.people.into_iter();
        let people = people
            .map(|(person, at)| (person, view.raw_start(at)))
            .collect();
        let mut found = Found {
            people,
            ..Found::default()
        };
        for hit in &joined {
            for part in within_strings(view, &hit.range) {
                found.secrets.push(Secret {
                    kind: hit.kind,
                    range: view.raw(&part),
                    is_bare: hit.is_bare,
                });
            }
        }
        let mut end = 0;
        for hit in left {
            let is_redacted = joined.iter().any(|other| {
                other.range.start < hit.range.end && hit.range.start < other.range.end
            });
            if !is_redacted && hit.range.start >= end {
                end = hit.range.end;
                found.left.push(Secret {
                    kind: hit.kind,
                    range: view.raw(&hit.range),
                    is_bare: hit.is_bare,
                });
            }
        }
        found
    }
}

/// Returns the quote that a value starts behind which is the byte `at` of the line, and how deep it is escaped.
pub(crate) fn open_quote(view: &View, raw: usize) -> Option<(u8, usize)> {
    let at = view.at_raw(raw).checked_sub(1)?;
    let quote = view.text()[at];
    matches!(quote, b'"' | b'\'').then(|| (quote, view.depth(at)))
}

/// Returns where a value in quotes ends that continues at the start of a text, and whether that is surely its end.
pub(crate) fn rest_of_value(view: &View, quote: u8, depth: usize) -> (usize, bool) {
    let text = view.text();
    let mut places = memchr::memchr2_iter(quote, b'"', text);
    let end = places
        .find(|at| view.is_outer_quote(*at) || text[*at] == quote && view.depth(*at) <= depth);
    (end.unwrap_or(text.len()), end.is_some())
}

/// Returns a range up to the end of the string that it starts in, or of the list of strings.
fn within_text(view: &View, range: Range<usize>) -> Range<usize> {
    match view.first_outer_quote(range.clone()) {
        Some(quote) if !keys::is_same_text(view, range.clone()) => {
            range.start..quote.max(range.start)
        }
        _ => range,
    }
}

/// Returns the parts of a range that are in strings of the line: what is between two strings is JSON, and stays.
fn within_strings(view: &View, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = Some(range.start);
    for at in memchr::memchr_iter(b'"', &view.text()[range.clone()]) {
        let at = range.start + at;
        if !view.is_outer_quote(at) {
            continue;
        }
        match start {
            Some(from) => {
                parts.push(from..at);
                start = None;
            }
            None => start = Some(at + 1),
        }
    }
    parts.extend(start.map(|from| from..range.end));
    parts.retain(|part| !part.is_empty());
    parts
}
