//! The search: one pass over the decoded text for whatever a secret has a part of, and a rule for each such part.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::anchors::{Anchor, Anchors};
use crate::class::ALNUM;
use crate::commands::PASSWORD_OPTIONS;
use crate::form::Form;
use crate::headers::{AUTH_SCHEMES, header};
use crate::lines::{LINE_RULES, LineRule};
use crate::names::{
    FOREIGN_PASSWORD_NAMES, Meaning, SECRET_NAME_PARTS, Trust, meaning, meaning_of_two, name_around,
};
use crate::own::OwnRules;
use crate::tokens::TOKENS;
use crate::view::View;
use crate::{addresses, commands, files, headers, keys, people, value};

/// A secret in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Secret {
    /// Its kind for people, such as `GitHub token`.
    pub kind: &'static str,
    /// Its bytes.
    pub range: Range<usize>,
    /// Whether it is a number of JSON, which has no quotes: its mask needs them.
    pub is_bare: bool,
}

/// The secrets of a line, the values that only look like one, and the persons that it names.
#[derive(Debug, Default)]
pub(crate) struct LineSecrets {
    /// The secrets to redact, in order and without overlaps.
    pub(crate) secrets: Vec<Secret>,
    /// Values that look like a secret and are left, in order.
    pub(crate) left: Vec<Secret>,
    /// The offsets of the e-mail addresses and names in paths that are left.
    pub(crate) people: Vec<(Person, usize)>,
}

/// A text that identifies a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// An e-mail address.
    Email,
    /// A name in a path.
    Home,
}

/// The kind of secrets that a rule of the user finds.
const OWN_RULE_KIND: &str = "own rule";

/// The rule that is tried at the position of an anchor.
#[derive(Clone, Copy, Debug)]
enum AnchorRule {
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
    rules: Vec<AnchorRule>,
    forms: Vec<(&'static str, Form)>,
    lines: Vec<LineRule>,
    encoded: Vec<String>,
    own: OwnRules,
    redacts_emails: bool,
    redacts_homes: bool,
}

/// The search for the rules of this crate alone.
static DEFAULT_SEARCH: LazyLock<Arc<Search>> =
    LazyLock::new(|| Arc::new(Search::build(false, false, OwnRules::default())));

impl Search {
    pub(crate) fn new(emails: bool, homes: bool, own: OwnRules) -> Arc<Self> {
        match (emails, homes, own.is_empty()) {
            // Building the automaton takes time, and most callers have no rules of their own.
            (false, false, true) => Arc::clone(&DEFAULT_SEARCH),
            _ => Arc::new(Self::build(emails, homes, own)),
        }
    }

    fn build(emails: bool, homes: bool, own: OwnRules) -> Self {
        let own_forms = own.forms.iter().map(|form| (OWN_RULE_KIND, form.as_str()));
        let forms = TOKENS.iter().copied().chain(own_forms);
        let forms: Vec<_> = forms
            .filter_map(|(kind, form)| Some((kind, Form::parse(form)?)))
            .collect();
        let lines: Vec<LineRule> = LINE_RULES.iter().map(|row| LineRule::parse(row)).collect();
        let encoded = keys::ENCODED_NAMES.map(keys::encodings).concat();
        let mut parts: Vec<(&str, AnchorRule)> = Vec::new();
        parts.extend(
            forms
                .iter()
                .enumerate()
                .map(|(number, (_, form))| (form.anchor(), AnchorRule::Form(number))),
        );
        let names = SECRET_NAME_PARTS.iter().chain(&FOREIGN_PASSWORD_NAMES);
        parts.extend(names.map(|part| (*part, AnchorRule::Name)));
        parts.extend(
            [keys::PEM_HEADER, keys::SSH2_HEADER, keys::PUTTY_HEADER]
                .map(|header| (header, AnchorRule::KeyHeader)),
        );
        parts.push((keys::PEM_FOOTER, AnchorRule::KeyFooter));
        parts.extend(keys::BODY_STARTS.map(|body| (body, AnchorRule::KeyBody)));
        parts.extend(
            encoded
                .iter()
                .map(|part| (part.as_str(), AnchorRule::Encoded)),
        );
        parts.extend(files::PRIVATE_NUMBER_NAMES.map(|name| (name, AnchorRule::Number)));
        parts.push((files::TERRAFORM_PASSWORD_MARK, AnchorRule::RandomPassword));
        parts.extend(AUTH_SCHEMES.map(|scheme| (scheme, AnchorRule::Scheme(scheme))));
        parts.push((addresses::ADDRESS_MARK, AnchorRule::Address));
        parts.extend(PASSWORD_OPTIONS.map(|option| (option, AnchorRule::Option(option))));
        parts.extend(commands::SECRET_CALLS.map(|(call, number)| (call, AnchorRule::Call(number))));
        let anchors = lines.iter().map(LineRule::anchor).enumerate();
        parts.extend(anchors.map(|(number, anchor)| (anchor, AnchorRule::Line(number))));
        parts.extend(files::PGPASS_MARKS.map(|fields| (fields, AnchorRule::Pgpass)));
        parts.extend(files::KUBERNETES_SECRET_MARKS.map(|kind| (kind, AnchorRule::Kubernetes)));
        parts.push((files::JWK_MARK, AnchorRule::Jwk));
        parts.push(("@", AnchorRule::Email));
        parts.extend(people::HOME_PREFIXES.map(|home| (home, AnchorRule::Home)));
        parts.extend(
            own.names
                .iter()
                .map(|name| (name.as_str(), AnchorRule::OwnName)),
        );
        parts.extend(
            own.texts
                .iter()
                .map(|text| (text.as_str(), AnchorRule::OwnText)),
        );
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

    /// Finds the secrets in a line, or in a part of one.
    pub(crate) fn find(&self, raw: &[u8], view: &mut View) -> LineSecrets {
        // A secret can be escaped several times, so the search reads the text as a person would.
        view.decode(raw);
        let view = &*view;
        let text = view.text();
        let mut hits = FoundSecrets::default();
        let mut anchors = Vec::new();
        // One pass for all rules. Only where it finds a part of a secret, a rule looks closer.
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
    fn apply(&self, rule: AnchorRule, view: &View, part: Range<usize>, hits: &mut FoundSecrets) {
        let Range { start, end } = part;
        hits.anchor = start;
        match rule {
            // A name has several parts, and its value is looked for once.
            AnchorRule::Name if end <= hits.name.end && start >= hits.name.start => {}
            AnchorRule::Name => {
                let name = name_around(view.text(), &part);
                hits.anchor = name.start;
                hits.name = name.clone();
                self.named(view, &name, hits);
            }
            AnchorRule::OwnName => self.own_name(view, part, hits),
            AnchorRule::OwnText => hits.push(1, OWN_RULE_KIND, part),
            // A token within another one is a part of it.
            AnchorRule::Form(_) if start < hits.token_end => {}
            AnchorRule::Form(number) => {
                let looked_at = hits.looked_at.entry(number).or_default();
                // A long run of characters with many anchors would be read once for each of them.
                if start < *looked_at {
                    return;
                }
                let (kind, form) = &self.forms[number];
                let token = form.find(view, start, looked_at);
                hits.token_end = token.as_ref().map_or(hits.token_end, |token| token.end);
                hits.add(0, kind, token);
            }
            AnchorRule::KeyHeader => hits.add(0, keys::PRIVATE_KEY_KIND, keys::block(view, start)),
            AnchorRule::KeyFooter => hits.add(1, keys::PRIVATE_KEY_KIND, keys::tail(view, start)),
            // The lines of one key may all start like one.
            AnchorRule::KeyBody if start < hits.key_end => {}
            AnchorRule::KeyBody => {
                let key = keys::body(view, start);
                hits.key_end = key.as_ref().map_or(end, |key| key.end);
                hits.add(1, keys::PRIVATE_KEY_KIND, key);
            }
            // The search does not regard the case of letters, and base64 does.
            AnchorRule::Encoded
                if start < hits.encoded_end || !self.is_encoded(&view.text()[part.clone()]) => {}
            AnchorRule::Encoded => {
                let secret = keys::encoded(view, start);
                hits.encoded_end = secret.as_ref().map_or(end, |secret| secret.end);
                hits.add(3, "encoded secret", secret);
            }
            AnchorRule::Number => hits.add_all(1, keys::PRIVATE_KEY_KIND, files::number(view, end)),
            AnchorRule::RandomPassword => {
                hits.add(2, "password", files::random_password(view, start));
            }
            AnchorRule::Scheme(scheme) => hits.add(
                2,
                "authorization header",
                headers::after_scheme(view, scheme, end),
            ),
            AnchorRule::Address => hits.add(2, "password", addresses::password(view, start)),
            // `-p` and `-P` are two options.
            AnchorRule::Option(option)
                if option.starts_with(" -")
                    && !view.text()[start..].starts_with(option.as_bytes()) => {}
            AnchorRule::Option(option) => {
                hits.add(2, "password", commands::password(view, option, start));
            }
            AnchorRule::Call(number) if commands::is_call(&view.text()[start..end]) => {
                hits.add(2, "secret", commands::argument_of_call(view, end, number));
            }
            AnchorRule::Line(number) => {
                hits.add_all(2, "password", self.lines[number].find(view, end));
            }
            AnchorRule::Call(_) => {}
            AnchorRule::Pgpass => hits.add(2, "password", files::pgpass(view, start)),
            AnchorRule::Kubernetes if start < hits.secret_end => {}
            AnchorRule::Kubernetes => {
                let (secrets, end) = files::kubernetes(view, start);
                hits.secret_end = end;
                hits.add_all(1, "Kubernetes secret", secrets);
            }
            AnchorRule::Jwk if start < hits.jwk_end => {}
            AnchorRule::Jwk => {
                let (secrets, end) = files::jwk(view, start);
                hits.jwk_end = end;
                hits.add_all(1, keys::PRIVATE_KEY_KIND, secrets);
            }
            AnchorRule::Email => hits.person(
                Person::Email,
                self.redacts_emails,
                people::email(view, start),
            ),
            AnchorRule::Home => {
                hits.person(Person::Home, self.redacts_homes, people::home(view, end));
            }
        }
    }

    fn is_encoded(&self, part: &[u8]) -> bool {
        self.encoded.iter().any(|text| text.as_bytes() == part)
    }

    /// Adds the value of a name of the user.
    fn own_name(&self, view: &View, word: Range<usize>, hits: &mut FoundSecrets) {
        // The name as a whole word: a short one of the user is often a part of other words.
        if name_around(view.text(), &word) == word {
            let meaning = Meaning {
                kind: OWN_RULE_KIND,
                trust: Trust::Always,
            };
            // Without a value, the name itself must not be shown.
            let values = value::values_of(view, &word, meaning, &mut hits.around);
            if values.is_empty() {
                hits.push(3, OWN_RULE_KIND, word.clone());
            }
            hits.values(values, meaning, word.start);
        }
    }

    /// Adds the value of a name.
    fn named(&self, view: &View, name: &Range<usize>, hits: &mut FoundSecrets) {
        let text = &view.text()[name.clone()];
        // The kind that a mask names is not a name.
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
struct FoundSecret {
    /// The lowest one names a place that several rules found.
    rank: u8,
    kind: &'static str,
    range: Range<usize>,
    is_bare: bool,
    is_sure: bool,
    /// A place in a string of the line, or in the text, that led to it.
    anchor: usize,
}

impl FoundSecret {
    /// Returns whether the secret is in a string, as its anchor is, or is a number, which is in none, and is not a mask.
    fn is_whole(&self, view: &View) -> bool {
        let (from, to) = (
            self.anchor.min(self.range.start),
            self.anchor.max(self.range.start),
        );
        let quotes = memchr::memchr_iter(b'"', &view.text()[from..to]);
        let outer = quotes.filter(|at| view.is_outer_quote(from + at)).count();
        let is_mask = is_in_mask(view.text(), self.range.start);
        // An odd number of quotes of the line itself means that the value is outside of the string of its name: in JSON,
        // where a mask would need quotes of its own.
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

/// Returns whether the text at `at` is a mask, or a part of one.
fn is_in_mask(text: &[u8], at: usize) -> bool {
    const MASK_START: &[u8] = b"[redacted: ";
    const MAX_MASK_LEN: usize = 64;
    // Redacting a redacted line must change nothing.
    let from = at.saturating_sub(MAX_MASK_LEN);
    let near = &text[from..text.len().min(at + MASK_START.len())];
    memchr::memmem::rfind(near, MASK_START)
        .is_some_and(|start| !text[from + start..at.max(from + start)].contains(&b']'))
}

#[derive(Debug, Default)]
struct FoundSecrets {
    list: Vec<FoundSecret>,
    people: Vec<(Person, usize)>,
    /// The ends of the last examined name, header, token and file: anchors inside of them are skipped.
    name: Range<usize>,
    word_end: usize,
    names_in_word: usize,
    header_end: usize,
    token_end: usize,
    secret_end: usize,
    jwk_end: usize,
    encoded_end: usize,
    key_end: usize,
    around: value::NameBudget,
    /// The end of the text that was examined for each form.
    looked_at: BTreeMap<usize, usize>,
    anchor: usize,
}

impl FoundSecrets {
    fn push(&mut self, rank: u8, kind: &'static str, range: Range<usize>) {
        self.list.push(FoundSecret {
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
        const MAX_WORD_LEN: usize = 4 << 10;
        const MAX_NAMES: usize = 16;
        if name.start >= self.word_end {
            let rest = text[name.end..].iter().take(MAX_WORD_LEN);
            let is_end = |byte: &&u8| byte.is_ascii_whitespace() || b"\"'`<>,;&".contains(byte);
            self.word_end = name.end + rest.take_while(|byte| !is_end(byte)).count();
            self.names_in_word = 0;
        }
        self.names_in_word += 1;
        self.names_in_word <= MAX_NAMES
    }

    /// Adds a text that identifies a person, to be redacted or to be counted.
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
            .map(|value| FoundSecret::of_value(value, meaning, anchor));
        self.list.extend(hits.filter(|hit| !hit.range.is_empty()));
    }

    /// Joins overlapping secrets, and converts their ranges to those of the line.
    fn into_found(mut self, view: &View) -> LineSecrets {
        self.list.retain(|hit| hit.is_whole(view));
        for hit in &mut self.list {
            hit.range = within_text(view, hit.range.clone());
        }
        self.list
            // The longest first of those with the same start, so that joining needs only the last one.
            .sort_by_key(|hit| (!hit.is_sure, hit.range.start, usize::MAX - hit.range.end));
        let sure = self.list.iter().take_while(|hit| hit.is_sure).count();
        let left = self.list.split_off(sure);
        let mut joined: Vec<FoundSecret> = Vec::new();
        for hit in self.list {
            match joined.last_mut() {
                Some(last) if hit.range.start < last.range.end => {
                    last.range.end = last.range.end.max(hit.range.end);
                    if hit.rank < last.rank {
                        (last.rank, last.kind) = (hit.rank, hit.kind);
                    }
                    // Joined with a text it is inside of a string, which has quotes already.
                    last.is_bare &= hit.is_bare;
                }
                _ => joined.push(hit),
            }
        }
        let people = self.people.into_iter();
        let people = people
            .map(|(person, at)| (person, view.raw_start(at)))
            .collect();
        let mut found = LineSecrets {
            people,
            ..LineSecrets::default()
        };
        for hit in &joined {
            // A key can have its lines in several strings of a list. The JSON between them has to stay valid.
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
