//! No cipher: there are no keys, so nothing is encrypted or decrypted.

use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::str::FromStr;

use transcript_storage::Reader;

/// A public key. There is none: this was built without the feature `encryption`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {}

impl FromStr for Recipient {
    type Err = String;

    fn from_str(_: &str) -> Result<Self, String> {
        Err("this was built without encryption".to_owned())
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// A secret key. There is none.
#[derive(Clone)]
pub(crate) enum Identity {}

impl Identity {
    pub(crate) fn parse(_: &str) -> Option<Self> {
        None
    }

    pub(crate) fn recipient(&self) -> Recipient {
        match *self {}
    }
}

/// The decrypted content of a file. Without the feature `encryption` no value of it exists.
pub(crate) enum Stream {}

impl Read for Stream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl Seek for Stream {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        match *self {}
    }
}

/// An encrypting writer. Without the feature `encryption` no value of it exists.
pub(crate) struct Encrypted<W>(Never, PhantomData<W>);

enum Never {}

impl<W> Encrypted<W> {
    pub(crate) fn finish(self) -> io::Result<W> {
        match self.0 {}
    }
}

impl<W> Write for Encrypted<W> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

pub(crate) fn decrypt(_: &[Identity], _: BufReader<Reader>) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn encrypt<W: Write>(_: &[Recipient], _: W) -> io::Result<Encrypted<W>> {
    Err(io::ErrorKind::Unsupported.into())
}
