//! The source of the bodies of entries.

use transcript_storage::parallel::in_order;

use crate::bodies::Bodies;
use crate::error::Error;
use crate::index::EntryRef;
use crate::source::Source;

/// Provides the bodies of entries, so that their readers do not have to read a file.
pub trait BodySource {
    /// The reason why a body cannot be read.
    type Error: Send;

    /// Returns the text of `entry_ref`: one JSON object, or anything else when the file no longer
    /// contains it; the entry then counts as missing.
    ///
    /// # Errors
    /// When it cannot be read. The request is then abandoned.
    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Self::Error>;

    /// Returns the file that the bodies are in, if it is one: the title of a session may be beside it, or before the part
    /// that an index has.
    fn file(&self) -> Option<&Source> {
        None
    }

    /// Calls `take` with what `read` returns for each number below `count`, in order. `read` gets a
    /// source of the same bodies: this one, or one for each of several threads that are a few
    /// numbers ahead.
    ///
    /// # Errors
    /// The first of `take`, which ends it.
    fn in_parts<T: Send>(
        &mut self,
        count: usize,
        read: impl Fn(usize, &mut Self) -> T + Sync,
        mut take: impl FnMut(T) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        (0..count).try_for_each(|number| take(read(number, self)))
    }
}

impl<B: BodySource> BodySource for &mut B {
    type Error = B::Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Self::Error> {
        (**self).body(entry_ref)
    }

    fn file(&self) -> Option<&Source> {
        (**self).file()
    }
}

impl BodySource for Bodies<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        self.get(entry_ref).map(|body| body.text)
    }

    fn file(&self) -> Option<&Source> {
        Some(self.source())
    }

    fn in_parts<T: Send>(
        &mut self,
        count: usize,
        read: impl Fn(usize, &mut Self) -> T + Sync,
        mut take: impl FnMut(T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let source = self.source();
        let maker = || {
            let (read, mut bodies) = (&read, Bodies::new(source));
            move |number| read(number, &mut bodies)
        };
        in_order(0..count, maker, |_, made| take(made))
    }
}
