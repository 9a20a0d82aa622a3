//! Encryption with age: the recipients of the files of an archive, and the identities that can read
//! them.
//!
//! To capture takes the public keys only. What a capture must know of earlier ones is kept in the clear in a
//! folder of this machine, which has the sessions in the clear anyway.

use std::fmt;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use transcript_storage::{Disk, File, Metadata, NamedInput, ReadFile, Reader};

pub use crate::cipher::Recipient;
use crate::cipher::{Identity, Stream, decrypt, encrypt};
use crate::error::{AtPath, Error, ErrorKind};
use crate::files::{append_all, lock, remove_if_there};

/// The size of reads and writes, in bytes.
const BUFFER_SIZE: usize = 64 << 10;
/// The maximum length of a file with keys, in bytes.
const MAX_KEYS: u64 = 1 << 20;

/// Secret keys of age, `AGE-SECRET-KEY-1…`.
#[derive(Clone)]
pub struct Identities(Arc<[Identity]>);

// The keys are secret.
impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} identities", self.0.len())
    }
}

impl Identities {
    /// Makes a new one.
    #[cfg(feature = "encryption")]
    #[must_use]
    pub fn generate() -> Self {
        Self([Identity::generate()].into())
    }

    /// Reads a file as `age-keygen` writes it: an identity a line, and lines that start with `#`.
    ///
    /// # Errors
    /// When the system fails to read; [`ErrorKind::NotAKey`]; [`ErrorKind::NoEncryption`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut text = String::new();
        let file = NamedInput::open(path).at(path)?;
        file.take(MAX_KEYS).read_to_string(&mut text).at(path)?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        if !cfg!(feature = "encryption") {
            return Err(Error::new(ErrorKind::NoEncryption, path));
        }
        let keys: Option<Vec<_>> = lines.map(Identity::parse).collect();
        match keys {
            Some(keys) if !keys.is_empty() => Ok(Self(keys.into())),
            _ => Err(Error::new(ErrorKind::NotAKey, path)),
        }
    }

    /// Writes them to a new file that only its owner can read, as `age-keygen` does.
    ///
    /// # Errors
    /// When the file exists, or the system fails to write.
    #[cfg(feature = "encryption")]
    pub fn write_new(&self, path: &Path) -> Result<(), Error> {
        let mut text = String::new();
        for (key, recipient) in self.0.iter().zip(self.recipients()) {
            text.push_str(&format!("# public key: {recipient}\n{}\n", key.secret()));
        }
        transcript_storage::RealDisk
            .write_new(path, text.as_bytes())
            .at(path)
    }

    fn decrypt(&self, file: &Arc<dyn ReadFile>) -> io::Result<Stream> {
        let file = Arc::clone(file);
        let reader = BufReader::with_capacity(BUFFER_SIZE, Reader::new(file));
        decrypt(&self.0, reader)
    }

    /// Returns their public keys.
    #[must_use]
    pub fn recipients(&self) -> Vec<Recipient> {
        self.0.iter().map(Identity::recipient).collect()
    }
}

/// The keys with which the files of an archive are encrypted and decrypted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encryption {
    /// Empty if they are not.
    pub(crate) recipients: Vec<Recipient>,
    pub(crate) identities: Option<Identities>,
}

impl Encryption {
    pub(crate) fn is_on(&self) -> bool {
        !self.recipients.is_empty()
    }

    /// Returns whether nothing that was written can be read.
    pub(crate) fn is_sealed(&self) -> bool {
        self.is_on() && self.identities.is_none()
    }

    /// Returns whether an identity is that of a recipient.
    pub(crate) fn is_for(&self, identities: &Identities) -> bool {
        let mut keys = identities.recipients().into_iter();
        keys.any(|key| self.recipients.contains(&key))
    }

    /// Returns a file as it was before it was encrypted.
    pub(crate) fn open(&self, file: Arc<dyn ReadFile>) -> io::Result<Arc<dyn ReadFile>> {
        if !self.is_on() {
            return Ok(file);
        }
        let identities = self.identities.clone().ok_or_else(sealed)?;
        let metadata = file.metadata()?;
        // A file that is cut off can be read up to there.
        let len = identities.decrypt(&file)?.seek(SeekFrom::End(0));
        let len = len.unwrap_or(u64::MAX);
        Ok(Arc::new(Decrypted {
            file,
            identities,
            metadata: Metadata { len, ..metadata },
            stream: Mutex::new(None),
        }))
    }

    /// Encrypts bytes.
    pub(crate) fn seal(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut writer = encrypt(&self.recipients, Vec::new())?;
        writer.write_all(bytes)?;
        writer.finish()
    }

    /// Encrypts a file to a new one, and syncs it.
    pub(crate) fn seal_file(&self, disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
        let source = disk.open_to_read(from)?;
        remove_if_there(disk, to)?;
        let file = disk.open(to, true)?.file;
        let out = BufWriter::with_capacity(16 * BUFFER_SIZE, Appender(Arc::clone(&file)));
        let mut writer = encrypt(&self.recipients, out)?;
        let mut buffer = vec![0; BUFFER_SIZE];
        let mut at = 0;
        loop {
            let read = source.fill(at, &mut buffer)?;
            if read == 0 {
                break;
            }
            writer.write_all(&buffer[..read])?;
            at += read as u64;
        }
        writer.finish()?.flush()?;
        file.sync()
    }
}

pub(crate) fn sealed() -> io::Error {
    let what = "the archive is encrypted, and no key was given";
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

/// An encrypted file, decrypted where it is read.
struct Decrypted {
    file: Arc<dyn ReadFile>,
    identities: Identities,
    metadata: Metadata,
    /// `None` before the first read, and after an error, as a stream cannot be read after one.
    stream: Mutex<Option<Stream>>,
}

impl fmt::Debug for Decrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decrypted").finish_non_exhaustive()
    }
}

impl ReadFile for Decrypted {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = lock(&self.stream);
        let mut stream = match kept.take() {
            Some(stream) if offset > 0 => stream,
            _ => self.identities.decrypt(&self.file)?,
        };
        // To seek to the start of a chunk, the stream would look for the end, which a file that is cut off has not.
        if let Some(before) = offset.checked_sub(1) {
            stream.seek(SeekFrom::Start(before))?;
            stream.read_exact(&mut [0])?;
        }
        let read = stream.read(buffer)?;
        *kept = Some(stream);
        Ok(read)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(self.metadata)
    }
}

struct Appender(Arc<dyn File>);

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        append_all(&*self.0, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
