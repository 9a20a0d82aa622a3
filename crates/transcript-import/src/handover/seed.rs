//! Ids of a new session, made from what is handed over: equal conversations give equal ids.

use hmac_sha256::Hash;
use transcript_format::ids::Uuid;
use transcript_format::json::Json;

use super::source_item::SourceItem;

/// What the ids of a new session are made from.
#[derive(Clone, Debug)]
pub(super) struct Seed([u8; 32]);

/// Takes texts, one after another, of which a seed is made.
#[derive(Default)]
pub(super) struct Texts(Hash);

impl Texts {
    pub(super) fn add(&mut self, text: &str) {
        // With its length, so that the end of a text cannot be the start of the next one.
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    /// Adds a text or its absence, which is not an empty text.
    pub(super) fn add_some(&mut self, text: Option<&str>) {
        self.add(if text.is_some() { "1" } else { "" });
        self.add(text.unwrap_or_default());
    }

    /// Adds all of an item that a target can hold.
    pub(super) fn add_item(&mut self, item: &SourceItem) {
        self.add(item.kind.name());
        self.add(&item.text);
        self.add_some(item.name.as_deref());
        self.add_some(item.call_id.as_deref());
        self.add_some(item.input.as_ref().map(Json::text));
        self.add(&item.output);
        self.add(if item.is_error { "1" } else { "" });
        self.add(&item.images.len().to_string());
        for image in &item.images {
            self.add(&image.media_type);
            self.add(&image.data);
        }
        self.add_some(item.time.map(|time| time.to_string()).as_deref());
    }

    pub(super) fn seed(self) -> Seed {
        Seed(self.0.finalize())
    }
}

impl Seed {
    /// Returns an id for a purpose. It has the form of a random one.
    pub(super) fn uuid(&self, purpose: &str) -> Uuid {
        let hash = self.hash(purpose);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        Uuid(u128::from_be_bytes(bytes))
    }

    /// Returns a number for a purpose.
    pub(super) fn number(&self, purpose: &str) -> u32 {
        let hash = self.hash(purpose);
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    fn hash(&self, purpose: &str) -> [u8; 32] {
        let mut hash = Hash::new();
        hash.update(self.0);
        hash.update(purpose.as_bytes());
        hash.finalize()
    }
}

/// Returns the hash of a text in hexadecimal digits.
pub(super) fn hex(text: &str) -> String {
    let hash = Hash::hash(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
