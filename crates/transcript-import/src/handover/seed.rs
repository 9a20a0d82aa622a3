//! Ids of a new session, made from what is handed over: equal conversations give equal ids.

use hmac_sha256::Hash;
use transcript_format::ids::Uuid;

/// What the ids of a new session are made from.
#[derive(Clone, Debug)]
pub(super) struct Seed([u8; 32]);

impl Seed {
    /// Returns the seed of texts in this order.
    pub(super) fn of(texts: &[&str]) -> Self {
        let mut hash = Hash::new();
        for text in texts {
            // With its length, so that the end of a text cannot be the start of the next one.
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        Self(hash.finalize())
    }

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
