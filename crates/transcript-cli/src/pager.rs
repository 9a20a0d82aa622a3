//! Sends long output for people through a pager.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use transcript_ops::Failure;
use transcript_storage::outside_names::{OutputKind, is_session_in, output_at};
use transcript_storage::{Disk, NewFile, ReadDisk, RealDisk, folder_of, open_stream};

use crate::closed::is_closed_pipe;
use crate::complaint::io_failure;
use crate::progress::Progress;
use crate::session::context;
use crate::ui::{Ui, is_dumb};

const BUFFER_SIZE: usize = 64 << 10;

/// The destination of text for people.
pub(crate) struct Output {
    out: BufWriter<Box<dyn Write>>,
    pager: Option<Child>,
    /// A file that gets its name when it is complete, and whether it replaces one.
    file: Option<(NewFile, PathBuf, bool)>,
    /// Another output, which is complete only with this one.
    then: Option<Box<Self>>,
}

impl Output {
    fn new(out: impl Write + 'static, pager: Option<Child>) -> Self {
        let out = BufWriter::with_capacity(BUFFER_SIZE, Box::new(out) as _);
        Self {
            out,
            pager,
            file: None,
            then: None,
        }
    }

    /// Completes `other` after this one: of two files, an error leaves none.
    pub(crate) fn with(mut self, other: Option<Self>) -> Self {
        self.then = other.map(Box::new);
        self
    }

    /// A new file, which gets its name when everything is written. With `replaces` it may replace one. A pipe or a device is
    /// written to, and stays what it is.
    pub(crate) fn to_file(path: &Path, replaces: bool) -> io::Result<Self> {
        let path = match output_at(path)? {
            OutputKind::Stream => {
                return Ok(Self::new(open_stream(path)?, None));
            }
            // The file that a link leads to, and not the link.
            OutputKind::File(path) => path,
            _ => path.to_owned(),
        };
        let folder = folder_of(&path);
        if !RealDisk.is_folder(folder) {
            // The error names the folder, and not the temporary file.
            let what = format!("the folder {} does not exist", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        NewFile::remove_stale(folder);
        let new = NewFile::output_beside(&path)?;
        let mut output = Self::new(new.try_clone()?, None);
        output.file = Some((new, path, replaces));
        Ok(output)
    }

    /// Returns whether a file may be written; says so if it exists and may not be replaced.
    ///
    /// # Errors
    /// When it can never be: a folder, a disk, or a file of a session in the store.
    pub(crate) fn can_write(ui: &Ui, path: &Path, replaces: bool) -> Result<bool> {
        if path == Path::new("-") {
            return Ok(true);
        }
        let OutputKind::File(file) = output_at(path).map_err(|error| io_failure(path, &error))?
        else {
            return Ok(true);
        };
        let context = context(ui);
        let mut roots = context.roots().iter();
        if roots.any(|root| is_session_in(root.store.root(), &file)) {
            let refused = "refusing to overwrite a file of a session";
            let refused = Failure::options(refused).in_file(path);
            return Err(refused.with_next("name another file").into());
        }
        if !replaces {
            let exists = Failure::new("exists", "the file exists");
            ui.report(exists.in_file(path).with_next("--force replaces it"));
        }
        Ok(replaces)
    }

    /// Writes to a file that the user named, or to standard output for `-`.
    ///
    /// # Errors
    /// As [`to_file`](Self::to_file), with the path.
    pub(crate) fn named(path: &Path, replaces: bool) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::plain());
        }
        Ok(Self::to_file(path, replaces).map_err(|error| io_failure(path, &error))?)
    }

    /// Writes output for programs as it is, and text for people through the pager.
    pub(crate) fn paged_unless(is_for_programs: bool) -> Self {
        if is_for_programs {
            return Self::plain();
        }
        Self::paged()
    }

    /// Standard output, without a pager.
    pub(crate) fn plain() -> Self {
        Self::new(io::stdout().lock(), None)
    }

    /// Standard output, without a pager; the first output removes `progress`.
    pub(crate) fn after(progress: Progress) -> Self {
        let progress = Some(progress);
        let out = io::stdout().lock();
        Self::new(AfterProgress { progress, out }, None)
    }

    /// The pager when standard output is a terminal, else standard output.
    pub(crate) fn paged() -> Self {
        if !io::stdout().is_terminal() {
            return Self::plain();
        }
        let Some(mut child) = pager().and_then(|mut pager| pager.spawn().ok()) else {
            return Self::plain();
        };
        let Some(input) = child.stdin.take() else {
            return Self::plain();
        };
        ignore_interrupts();
        Self::new(input, Some(child))
    }

    /// Writes the rest and waits until the pager is closed. The exit status of the pager is ignored.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let written = self.flush();
        if let Some((new, path, replaces)) = self.file {
            written?;
            let replaces = replaces && RealDisk.has_name(&path);
            let place = if replaces {
                NewFile::replace
            } else {
                NewFile::keep
            };
            let placed = place(new, &path);
            placed.map_err(|error| name_file(&path, &error))?;
            let then = self.then.map_or(Ok(()), |then| then.finish());
            return then.map_err(|error| {
                if replaces {
                    error
                } else {
                    remove_incomplete(&path, error)
                }
            });
        }
        let Some(mut pager) = self.pager else {
            written?;
            return self.then.map_or(Ok(()), |then| then.finish());
        };
        // The pager may be closed before it has read everything.
        drop(self.out);
        let _ = pager.wait();
        Ok(())
    }

    /// [Finishes](Self::finish) the output, also if the user left the pager before its end. Returns the result of writing
    /// it; `None` if the user left.
    ///
    /// # Errors
    /// Other errors of writing, and those of finishing.
    pub(crate) fn finish_after<T>(self, written: Result<T>) -> Result<Option<T>> {
        let written = match written {
            Err(error) if !self.is_closed(&error) => return Err(error),
            written => written.ok(),
        };
        self.finish()?;
        Ok(written)
    }

    fn with_path(&self, error: io::Error) -> io::Error {
        match &self.file {
            Some((_, path, _)) => name_file(path, &error),
            None => error,
        }
    }

    /// Returns whether `error` means that the pager was closed before the end.
    pub(crate) fn is_closed(&self, error: &anyhow::Error) -> bool {
        self.pager.is_some() && is_closed_pipe(error)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        written.map_err(|error| self.with_path(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        flushed.map_err(|error| self.with_path(error))
    }
}

/// Returns an error that names its file.
fn name_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Removes a file after the other one, that belongs to it, failed. Returns the error, which then names what is left.
fn remove_incomplete(path: &Path, error: io::Error) -> io::Error {
    match RealDisk.remove(path) {
        Err(_) if RealDisk.has_name(path) => {
            let what = format!("{error}; {} is written", path.display());
            io::Error::new(error.kind(), what)
        }
        _ => error,
    }
}

/// Removes the progress bar at the first output, or when all was read.
struct AfterProgress<W> {
    progress: Option<Progress>,
    out: W,
}

impl<W: Write> Write for AfterProgress<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.progress = None;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.progress = None;
        self.out.flush()
    }
}

/// Returns `$PAGER`, or else `less` with colour and without paging for short output, which a terminal must be able to draw. The variable is
/// split at spaces and no shell runs it, so it cannot inject commands.
fn pager() -> Option<Command> {
    let named = env::var("PAGER").ok();
    let words: Vec<&str> = match &named {
        Some(named) => named.split_whitespace().collect(),
        // It would warn, and wait for a key.
        None if is_dumb() => vec![],
        None => vec!["less"],
    };
    // An empty variable, and `cat` by convention, mean no pager.
    let (program, arguments) = words
        .split_first()
        .filter(|(program, _)| **program != "cat")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", OsString::from("FRX"));
    }
    // What is printed is UTF-8 in every locale; without this, less shows codes for it where the locale names no character set.
    if env::var_os("LESSCHARSET").is_none() {
        command.env("LESSCHARSET", "utf-8");
    }
    Some(command)
}

/// Ignores Ctrl-C, which the pager handles: this process must not end before the pager and leave it
/// running on the terminal.
fn ignore_interrupts() {
    // If this fails, Ctrl-C ends both, which is acceptable.
    let flag = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, flag);
}
