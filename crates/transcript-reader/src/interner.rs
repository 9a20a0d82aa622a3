//! Interned texts: each is stored once and referred to by number.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use hashbrown::HashTable;

/// Hashes with random keys, one set per process, so that files cannot be crafted to collide.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(bytes)
}

/// A set of texts in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Vec<Box<str>>,
    places: HashTable<u32>,
    /// The number returned last: most lines repeat the name of the line before.
    last: u32,
}

impl Interner {
    /// Returns the number that was returned last if it is that of `text`.
    pub(crate) fn last(&self, text: &[u8]) -> Option<u32> {
        let last = self.texts.get(self.last as usize)?;
        (last.as_bytes() == text).then_some(self.last)
    }

    /// Returns the number of `text`, a new one if it is new.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(last) = self.last(text.as_bytes()) {
            return last;
        }
        let Self {
            texts,
            places,
            last,
        } = self;
        let next = texts.len() as u32;
        let entry = places.entry(
            hash(text.as_bytes()),
            |number| *texts[*number as usize] == *text,
            |number| hash(texts[*number as usize].as_bytes()),
        );
        *last = *entry.or_insert(next).get();
        if *last == next {
            texts.push(text.into());
        }
        *last
    }

    /// Returns the number of `text` if it is known.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let is_it = |number: &u32| *self.texts[*number as usize] == *text;
        self.places.find(hash(text.as_bytes()), is_it).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Forgets the texts from number `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        for (number, text) in self.texts.iter().enumerate().skip(len) {
            let is_it = |other: &u32| *other as usize == number;
            if let Ok(found) = self.places.find_entry(hash(text.as_bytes()), is_it) {
                found.remove();
            }
        }
        self.texts.truncate(len);
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}
