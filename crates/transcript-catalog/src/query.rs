//! Queries: terms and filters.

use std::fmt;

use memchr::memmem;
use regex::{Regex, RegexBuilder};
use transcript_format::named;
use transcript_format::names::project_key;
use transcript_format::time;
use unicode_normalization::UnicodeNormalization;

use crate::fold::Fold;

/// The maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 4096;
/// The maximum number of terms.
const MAX_TERMS: usize = 32;
/// The maximum size of a compiled expression, and of the cache of its automaton, in bytes.
const MAX_REGEX_LEN: usize = 4 << 20;

named! {
    /// The part of an entry that a text is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Field {
        /// A text that a person typed.
        Prompt = "prompt",
        /// A text of the model.
        Text = "text",
        /// Thinking.
        Thinking = "thinking",
        /// The input of a call.
        ToolInput = "tool_input",
        /// The result of a call.
        ToolResult = "tool_result",
        /// A title.
        Title = "title",
        /// A summary, of a compaction or of a session.
        Summary = "summary",
        /// A text that the client added.
        Attachment = "attachment",
        /// A prompt in the queue.
        Queued = "queued",
    }
}

named! {
    /// The role of the author of an entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Role {
        /// A person, or the client in a person's place.
        User = "user",
        /// The agent: its texts and its calls.
        Assistant = "assistant",
        /// Results of calls.
        Tool = "tool",
        /// The client: system entries and attachments.
        System = "system",
    }
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 9] = [
        Self::Prompt,
        Self::Text,
        Self::Thinking,
        Self::ToolInput,
        Self::ToolResult,
        Self::Title,
        Self::Summary,
        Self::Attachment,
        Self::Queued,
    ];
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::Tool, Self::System];
}

/// A query: terms, and filters that restrict where they are searched for.
///
/// ```
/// use transcript_catalog::Query;
///
/// let query: Query = r#"borrow "does not live" -lifetime role:tool since:2026-03-01"#.parse()?;
/// # assert_eq!(query.terms(), 3);
/// let error = "fine \"not closed".parse::<Query>().unwrap_err();
/// assert_eq!(error.position(), 5);
/// # Ok::<(), transcript_catalog::QueryError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub(crate) terms: Vec<Term>,
    pub(crate) filters: Vec<Filter>,
}

/// A word, phrase or expression.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) is_negative: bool,
    pub(crate) matcher: Matcher,
}

#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    /// The term as it is compared with the folded text: as typed, and with its characters composed and decomposed, where
    /// that is something else. macOS decomposes names of files.
    Literal {
        fold: Fold,
        finders: Vec<memmem::Finder<'static>>,
    },
    Regex(Regex),
}

#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) is_negative: bool,
    /// Whether it was added to the text of the query. Filters of a text are alternatives if they have the same
    /// key; so are added ones, but not one of each.
    pub(crate) is_added: bool,
    pub(crate) condition: Condition,
}

/// Texts are folded with [`Fold::CASE`].
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    In(Field),
    Tool(String),
    Path(String),
    Error(bool),
    Role(Role),
    Model(String),
    Agent(String),
    Since(i64),
    Until(i64),
    Branch(String),
    IsBranch(String),
    Live(bool),
    Project { name: String, keys: [String; 3] },
    Session(String),
}

/// A place in a query that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (character {position} of the query)")]
pub struct QueryError {
    position: usize,
    message: String,
}

impl QueryError {
    fn new(position: usize, message: impl fmt::Display) -> Self {
        Self {
            position,
            message: message.to_string(),
        }
    }

    /// Returns the place in the query, in characters from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Reads the value of `since:` and `until:`, in milliseconds since 1970.
pub type ReadTime<'r> = &'r dyn Fn(&str) -> Result<i64, String>;

/// Reads times in RFC 3339, and dates and times without an offset as UTC.
impl std::str::FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let expected = || "expected a time such as 2026-01-31T12:00:00Z or 2026-01-31".to_owned();
        Self::parse(text, &|value| {
            time::millis(value.as_bytes()).ok_or_else(expected)
        })
    }
}

impl Query {
    /// Reads a query; `read_time` reads the times of filters.
    ///
    /// # Errors
    /// When a quote is not closed, an expression or the value of a filter is not valid, or the query
    /// is too long. A query without a positive term and without a filter is an error at its end.
    pub fn parse(text: &str, read_time: ReadTime<'_>) -> Result<Self, QueryError> {
        let query = Self::parse_part(text, read_time)?;
        query.check(text.chars().count())?;
        Ok(query)
    }

    /// Like [`Self::parse`], but the parsed part may be empty: filters may follow with
    /// [`Self::add_filter`], and [`Self::check`] must.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_part(text: &str, read_time: ReadTime<'_>) -> Result<Self, QueryError> {
        let chars: Vec<char> = text.chars().collect();
        // Positions of errors are characters, as an input line counts them, so the limit is in characters, too.
        if chars.len() > MAX_QUERY_CHARS {
            let message = format!("a query has at most {MAX_QUERY_CHARS} characters");
            return Err(QueryError::new(MAX_QUERY_CHARS, message));
        }
        let mut query = Self::default();
        let mut items = Items {
            chars: &chars,
            at: 0,
        };
        while items.skip_space() {
            query.add_item(&mut items, read_time)?;
            if query.terms.len() > MAX_TERMS {
                let message = format!("a query has at most {MAX_TERMS} terms");
                return Err(QueryError::new(items.at, message));
            }
        }
        Ok(query)
    }

    /// Adds a filter; a key that starts with `-` is negative. The key `branch-name` takes the whole name of
    /// a branch, in its case. Of the added filters with the same key one must hold, whatever
    /// those in the text are: they find less than the text alone.
    ///
    /// # Errors
    /// When the key or its value is not valid; the position is 0.
    pub fn add_filter(
        &mut self,
        key: &str,
        value: &str,
        read_time: ReadTime<'_>,
    ) -> Result<(), QueryError> {
        let positive = key.strip_prefix('-');
        let condition = condition(positive.unwrap_or(key), value, read_time);
        let unknown = || Err(format!("there is no filter {key}"));
        let condition = condition.unwrap_or_else(unknown);
        self.filters.push(Filter {
            is_negative: positive.is_some(),
            is_added: true,
            condition: condition.map_err(|message| QueryError::new(0, message))?,
        });
        Ok(())
    }

    /// Checks that there is something to look for.
    ///
    /// # Errors
    /// At `position` when there is neither a positive term nor a filter.
    pub fn check(&self, position: usize) -> Result<(), QueryError> {
        if self.filters.is_empty() && self.terms.iter().all(|term| term.is_negative) {
            let message = if self.terms.is_empty() {
                "empty query"
            } else {
                "the query only excludes; add a word to look for"
            };
            return Err(QueryError::new(position, message));
        }
        Ok(())
    }

    /// Returns for each positive term the query without the others.
    #[must_use]
    pub fn one_by_one(&self) -> Vec<Self> {
        let with = |number: usize| {
            let mut numbers = 0..;
            let mut query = self.clone();
            query
                .terms
                // Negative terms stay in each of them: they exclude hits whatever is searched for.
                .retain(|term| numbers.next() == Some(number) || term.is_negative);
            query
        };
        let terms = self.terms.iter().enumerate();
        let positive = terms.filter(|(_, term)| !term.is_negative);
        positive.map(|(number, _)| with(number)).collect()
    }

    /// Returns the positive terms in words, in the order of [`Self::one_by_one`]; those that match any case are in lower case.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let positive = self.terms.iter().filter(|term| !term.is_negative);
        let words = positive.map(|term| match &term.matcher {
            Matcher::Literal { finders, .. } => {
                let needle = finders.first().map_or(&[][..], |finder| finder.needle());
                String::from_utf8_lossy(needle).into_owned()
            }
            Matcher::Regex(regex) => format!("/{}/", regex.as_str()),
        });
        words.collect()
    }

    /// Returns the number of terms.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    fn add_item(
        &mut self,
        items: &mut Items<'_>,
        read_time: ReadTime<'_>,
    ) -> Result<(), QueryError> {
        let start = items.at;
        // `-` alone, `--option` and `->` are words that people search for.
        let is_negative = items.peek(0) == Some('-')
            && !items
                .peek(1)
                .is_none_or(|c| c.is_whitespace() || "->".contains(c));
        items.at += usize::from(is_negative);
        let matcher = match items.peek(0) {
            Some('"') => Matcher::literal(&items.phrase()?),
            // `/usr/bin` has no end and is a word.
            Some('/') if items.regex_end().is_some() => items.regex()?,
            _ => {
                if let Some(condition) = items.filter(read_time) {
                    let condition = condition?;
                    self.filters.push(Filter {
                        is_negative,
                        is_added: false,
                        condition,
                    });
                    return Ok(());
                }
                Matcher::literal(&items.word())
            }
        };
        // Otherwise `parse_part` would not end.
        debug_assert!(items.at > start, "every item has a character");
        self.terms.push(Term {
            is_negative,
            matcher,
        });
        Ok(())
    }
}

impl Matcher {
    fn literal(term: &str) -> Self {
        let mut forms = vec![term.to_owned()];
        if !term.is_ascii() {
            for form in [term.nfc().collect::<String>(), term.nfd().collect()] {
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        let finder = |form: &String| memmem::Finder::new(form.as_bytes()).into_owned();
        // The term ignores only differences that it does not use itself, so it is its own folded form.
        Self::Literal {
            fold: Fold::of(term),
            finders: forms.iter().map(finder).collect(),
        }
    }
}

/// The characters of a query, and the place of the next item.
struct Items<'q> {
    chars: &'q [char],
    at: usize,
}

impl Items<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Returns whether another item follows.
    fn skip_space(&mut self) -> bool {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        self.at < self.chars.len()
    }

    fn ends_at(&self, at: usize) -> bool {
        self.chars.get(at).is_none_or(|c| c.is_whitespace())
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while !self.ends_at(self.at) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn phrase(&mut self) -> Result<String, QueryError> {
        let start = self.at;
        let mut phrase = String::new();
        self.at += 1;
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return Err(QueryError::new(start, "the quote is not closed")),
                (Some('\\'), Some('"')) => {
                    phrase.push('"');
                    self.at += 2;
                }
                (Some('"'), _) => break,
                (Some(c), _) => {
                    phrase.push(c);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        if !self.ends_at(self.at) {
            return Err(QueryError::new(self.at, "a space must follow the quote"));
        }
        if phrase.is_empty() {
            return Err(QueryError::new(start, "the phrase is empty"));
        }
        Ok(phrase)
    }

    /// Returns the place of the slash that closes the expression which starts here, if it is one.
    fn regex_end(&self) -> Option<usize> {
        let mut at = self.at + 1;
        while *self.chars.get(at)? != '/' {
            // `\/` does not close it.
            at += if self.chars[at] == '\\' { 2 } else { 1 };
        }
        let flag = usize::from(self.chars.get(at + 1) == Some(&'i'));
        (at > self.at + 1 && self.ends_at(at + 1 + flag)).then_some(at)
    }

    fn regex(&mut self) -> Result<Matcher, QueryError> {
        let start = self.at;
        let end = self.regex_end().unwrap_or(start);
        let pattern: String = self.chars[start + 1..end].iter().collect();
        let ignores_case = self.chars.get(end + 1) == Some(&'i');
        self.at = end + 1 + usize::from(ignores_case);
        // The flags are part of the pattern, because the grams and the prefilter parse it again without the options of this builder.
        let flags = if ignores_case { "(?mi)" } else { "(?m)" };
        let built = RegexBuilder::new(&format!("{flags}{pattern}"))
            .size_limit(MAX_REGEX_LEN)
            .dfa_size_limit(MAX_REGEX_LEN)
            .nest_limit(64)
            .build();
        built.map(Matcher::Regex).map_err(|error| {
            // The error of the builder counts from the flags that were put before the pattern.
            let at = match regex_syntax::Parser::new().parse(&pattern) {
                Err(regex_syntax::Error::Parse(error)) => error.span().start.offset,
                Err(regex_syntax::Error::Translate(error)) => error.span().start.offset,
                _ => 0,
            };
            let chars = pattern.get(..at).map_or(0, |before| before.chars().count());
            let message = match error {
                regex::Error::CompiledTooBig(_) => "the expression is too large".to_owned(),
                error => {
                    let text = error.to_string();
                    // The lines before it draw the pattern with a mark below, which does not fit into one message.
                    let last = text.lines().last().unwrap_or_default();
                    format!(
                        "the expression is not valid: {}",
                        last.trim_start_matches("error: ")
                    )
                }
            };
            QueryError::new(start + 1 + chars, message)
        })
    }

    /// Reads a filter; `None`, and nothing is read, if the item is none.
    fn filter(&mut self, read_time: ReadTime<'_>) -> Option<Result<Condition, QueryError>> {
        let rest = &self.chars[self.at..];
        let key_len = rest.iter().position(|c| !c.is_ascii_lowercase())?;
        if rest[key_len] != ':' {
            return None;
        }
        let key: String = rest[..key_len].iter().collect();
        // Without a value it is a word: people search for `error:`.
        if !FILTER_KEYS.contains(&&*key) || self.ends_at(self.at + key_len + 1) {
            return None;
        }
        self.at += key_len + 1;
        let start = self.at;
        let value = match self.peek(0) {
            Some('"') => self.phrase(),
            _ => Ok(self.word()),
        };
        let read = |value: String| {
            condition(&key, &value, read_time)
                .unwrap_or_else(|| Err("there is no such filter".to_owned()))
                .map_err(|message| QueryError::new(start, format!("{key}:{value}: {message}")))
        };
        Some(value.and_then(read))
    }
}

/// The keys of filters.
const FILTER_KEYS: [&str; 13] = [
    "in", "tool", "path", "error", "role", "model", "agent", "since", "until", "branch", "live",
    "project", "session",
];

fn condition(key: &str, value: &str, read_time: ReadTime<'_>) -> Option<Result<Condition, String>> {
    let folded = || {
        let mut text = String::new();
        Fold::CASE.text(value, &mut text);
        text
    };
    if value.is_empty() {
        return Some(Err(format!("{key}: needs a value")));
    }
    let truth = || match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    };
    Some(match key {
        "in" => one_of(&Field::ALL, Field::name, value).map(Condition::In),
        "role" => one_of(&Role::ALL, Role::name, value).map(Condition::Role),
        "tool" => Ok(Condition::Tool(folded())),
        "path" => Ok(Condition::Path(folded())),
        "error" => truth().map(Condition::Error),
        "model" => Ok(Condition::Model(folded())),
        "agent" => Ok(Condition::Agent(folded())),
        "since" => read_time(value).map(Condition::Since),
        "until" => read_time(value).map(Condition::Until),
        // The two states of a branch of the conversation. A git branch of this name is found with `branch-name`.
        "branch" if value == "live" => Ok(Condition::Live(true)),
        "branch" if value == "rewound" => Ok(Condition::Live(false)),
        "branch" => Ok(Condition::Branch(folded())),
        "branch-name" => Ok(Condition::IsBranch(value.to_owned())),
        "live" => truth().map(Condition::Live),
        "project" => {
            // The folder is named after the path as it was written, with composed characters or without.
            let paths = [
                value.to_owned(),
                value.nfc().collect(),
                value.nfd().collect(),
            ];
            let keys = paths.map(|path: String| {
                let mut key = String::new();
                Fold::CASE.text(&project_key(&path), &mut key);
                key
            });
            let name = folded();
            Ok(Condition::Project { name, keys })
        }
        "session" => Ok(Condition::Session(folded())),
        _ => return None,
    })
}

fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str, value: &str) -> Result<T, String> {
    let found = all.iter().copied().find(|one| name(*one) == value);
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>();
    found.ok_or_else(|| format!("expected one of {}", names().join(", ")))
}
