//! Encryption with age.

use std::fmt;
use std::io::{self, BufReader, Write};
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age::stream::{StreamReader, StreamWriter};
use age::{DecryptError, Decryptor, Encryptor, x25519};
use transcript_storage::Reader;

/// A public key of age, `age1…`. Data that is encrypted for it can be read with the identity that belongs to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient(x25519::Recipient);

impl FromStr for Recipient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = x25519::Recipient::from_str(text.trim());
        key.map(Self)
            .map_err(|_| "not a public key of age, which starts with age1".to_owned())
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A secret key of age, `AGE-SECRET-KEY-1…`.
#[derive(Clone)]
pub(crate) struct Identity(x25519::Identity);

impl Identity {
    pub(crate) fn generate() -> Self {
        Self(x25519::Identity::generate())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        x25519::Identity::from_str(text).ok().map(Self)
    }

    /// Returns the key as text.
    pub(crate) fn secret(&self) -> String {
        self.0.to_string().expose_secret().to_owned()
    }

    pub(crate) fn recipient(&self) -> Recipient {
        Recipient(self.0.to_public())
    }
}

/// The decrypted content of a file.
pub(crate) type Stream = StreamReader<BufReader<Reader>>;

/// Decrypts a file that is encrypted for one of the keys.
pub(crate) fn decrypt(keys: &[Identity], file: BufReader<Reader>) -> io::Result<Stream> {
    let invalid = |error| match error {
        DecryptError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    };
    let decryptor = Decryptor::new_buffered(file).map_err(invalid)?;
    let keys = keys.iter().map(|key| &key.0 as &dyn age::Identity);
    decryptor.decrypt(keys).map_err(invalid)
}

/// Encrypts the written bytes for all of the keys.
pub(crate) fn encrypt<W: Write>(keys: &[Recipient], out: W) -> io::Result<StreamWriter<W>> {
    let keys = keys.iter().map(|key| &key.0 as &dyn age::Recipient);
    let encryptor = Encryptor::with_recipients(keys);
    encryptor
        .map_err(|error| io::Error::other(error.to_string()))?
        .wrap_output(out)
}
