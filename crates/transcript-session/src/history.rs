//! The contents of a session file.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use transcript_messages::OmissionReason;
use transcript_reader::{
    Bodies, EndOptions, FileEnd, Index, LoadOptions, OtherFiles, SessionFile, SessionRow, Source,
};
use transcript_resume::items::ItemList;
use transcript_resume::request::{self, Request};
use transcript_resume::{
    PathState, Policy, TailDependency, Tree, Usage, UsageTotals, self_contained_index,
};
use transcript_storage::ReadDisk;

use crate::error::Error;
use crate::options::SessionOptions;

/// A session as it was when it was read. Read-only: nothing here writes, takes a lock or needs
/// write permission. Its memory grows with the number of lines, not with their bytes: at most 96
/// bytes a line.
#[derive(Debug)]
pub struct History {
    source: Source,
    index: Index,
    others: OnceLock<OtherFiles>,
}

/// The result of [`History::read_end`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "returned once and taken apart")]
pub enum ReadEnd {
    /// The end of the file, which is enough for the conversation.
    Enough(History),
    /// The file has to be read from its start, and why.
    ReadAll(Source, TailDependency),
}

impl History {
    /// Reads the session at `path`. Damage in it is not an error: the index has the findings.
    ///
    /// ```
    /// use transcript_session::History;
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # let answer = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    /// #     [{"type": "text", "text": "Most fourth ones."}], "usage": {"output_tokens": 5}}"#;
    /// # session.append_all(Draft::assistant(answer)?)?;
    /// # session.close()?;
    /// let history = History::open(&path)?;
    /// assert_eq!(history.index().len(), 2);
    /// assert_eq!(history.index().findings().len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is not a regular file or the system fails to read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(Source::open(path)?)
    }

    /// Reads the session at `path` on `disk`, such as that of an archive, as [`open`](Self::open) does on the disk of this
    /// machine.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        Self::read(Source::open_on(disk, path)?)
    }

    /// Reads an open file.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn read(source: Source) -> Result<Self, Error> {
        Self::read_with(source, &LoadOptions::new())
    }

    /// Reads an open file with `options`.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn read_with(source: Source, options: &LoadOptions) -> Result<Self, Error> {
        let index = options.load(&source)?;
        Ok(Self {
            source,
            index,
            others: OnceLock::new(),
        })
    }

    /// Reads the end of an open file, from its last compaction on, if the conversation depends on
    /// nothing before it: then path and request are those of the whole file under either policy, as
    /// long as they are [whole](Self::is_enough_for). Everything else that is asked of such a history
    /// covers the end of the file alone: state, findings, [`Self::usage`], entries and branches. The
    /// numbers of lines are not known.
    ///
    /// The time is that of the end, whatever the size of the file. What is assumed of the rest is
    /// that it was written before the compaction and not again after it.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn read_end(source: Source) -> Result<ReadEnd, Error> {
        let end = FileEnd::load(&source, &EndOptions::new())?;
        let index = end.map_or(Err(TailDependency::NoCompaction), self_contained_index);
        match index {
            Ok(index) => Ok(ReadEnd::Enough(Self {
                source,
                index,
                others: OnceLock::new(),
            })),
            Err(reason) => Ok(ReadEnd::ReadAll(source, reason)),
        }
    }

    /// Returns the scope of the index: `file`, or `tail` if it was the end of the file alone.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        match self.index.starts_at() {
            0 => "file",
            _ => "tail",
        }
    }

    /// Returns whether `request`, which was built from this history, is that of the whole file. It is
    /// not when the [end](Self::read_end) of a file has an entry with an unusable body: what replaces
    /// it may be further up.
    #[must_use]
    pub fn is_enough_for(&self, request: &Request) -> bool {
        let mut omissions = request.omissions.iter();
        self.index.starts_at() == 0
            || !omissions.any(|omitted| omitted.reason == OmissionReason::UnusableBody)
    }

    /// Returns the open file.
    #[must_use]
    pub fn into_source(self) -> Source {
        self.source
    }

    /// Returns the file.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the index of the file.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Links the entries under `policy`. Entries that [`Policy::Recover`] misses are looked up in
    /// the other files of the session, then in those of its folder; these files are only read.
    #[must_use]
    pub fn tree(&self, policy: Policy) -> Tree<'_> {
        let tree = Tree::new(&self.index, policy);
        let missing = tree.missing_parents();
        if missing.is_empty() || self.source.path() == Path::new("-") {
            return tree;
        }
        let search = || OtherFiles::search(&self.source, &self.index, &missing);
        let others = self.others.get_or_init(search);
        if others.is_empty() {
            return tree;
        }
        Tree::with_others(&self.index, others)
    }

    /// Returns the id of the session: see [`Index::session_id`].
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.index.session_id(self.source.path())
    }

    /// Reads the row of the session in a list: see [`SessionRow`].
    #[must_use]
    pub fn row(&self) -> SessionRow {
        let disk = self.source.disk();
        let file = SessionFile::at(&*disk, self.source.path());
        SessionRow::of_file(&disk, &file)
    }

    /// Builds the request that continues the session, as
    /// [`Session::resume`](crate::Session::resume) does, but writes nothing. Of `options` only
    /// those about requests are used, such as the policy and the model.
    ///
    /// When a client would not continue the session, there are no messages, and
    /// [`ConversationPath::refusal`](transcript_resume::ConversationPath::refusal) is the reason.
    ///
    /// ```
    /// use transcript_session::History;
    /// use transcript_session::SessionOptions;
    /// # use transcript_session::{Draft, Session};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # let answer = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    /// #     [{"type": "text", "text": "Most fourth ones."}], "usage": {"output_tokens": 5}}"#;
    /// # session.append_all(Draft::assistant(answer)?)?;
    /// # session.close()?;
    /// let request = History::open(&path)?.request(&SessionOptions::new())?;
    /// for message in &request.messages {
    ///     println!("{}", message.json());
    /// }
    /// # assert_eq!(request.messages.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn request(&self, options: &SessionOptions) -> Result<Request, Error> {
        self.build_request(options, &options.request())
    }

    pub(crate) fn build_request(
        &self,
        options: &SessionOptions,
        request: &request::RequestOptions,
    ) -> Result<Request, Error> {
        let tree = self.tree(options.policy);
        Ok(request.request(&tree, &mut Bodies::new(&self.source))?)
    }

    /// Returns the state of the session at the end of its conversation: title, mode, model, to-do list,
    /// the files that the model knows, denials, counts.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn state(&self, policy: Policy) -> Result<PathState, Error> {
        let tree = self.tree(policy);
        let (state, _) = PathState::read(&tree, &tree.path(), &mut Bodies::new(&self.source))?;
        Ok(state)
    }

    /// Returns the tokens of all answers in the file by model, sorted by model name. Abandoned
    /// branches and sidechains are included, because they were paid for. The tokens of the
    /// conversation alone come with [`PathState::read`].
    ///
    /// ```
    /// use transcript_session::History;
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # let answer = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    /// #     [{"type": "text", "text": "Most fourth ones."}], "usage": {"output_tokens": 5}}"#;
    /// # session.append_all(Draft::assistant(answer)?)?;
    /// # session.close()?;
    /// let usage = History::open(&path)?.usage()?;
    /// assert_eq!(usage[0].model.as_deref(), Some("m"));
    /// assert_eq!(usage[0].output_tokens, Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn usage(&self) -> Result<Vec<Usage>, Error> {
        let mut totals = UsageTotals::new();
        totals.add_file(&self.index, &mut Bodies::new(&self.source))?;
        Ok(totals.models())
    }

    /// Returns the conversation as a person sees it: prompts, answers, calls with their results,
    /// compactions.
    ///
    /// ```
    /// use transcript_session::{History, Policy};
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # let answer = r#"{"id": "msg_01", "role": "assistant", "model": "m", "content":
    /// #     [{"type": "text", "text": "Most fourth ones."}], "usage": {"output_tokens": 5}}"#;
    /// # session.append_all(Draft::assistant(answer)?)?;
    /// # session.close()?;
    /// let items = History::open(&path)?.items(Policy::Recover)?;
    /// for item in items.items() {
    ///     println!("{:?}", item.kind());
    /// }
    /// # assert_eq!(items.items().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn items(&self, policy: Policy) -> Result<ItemList, Error> {
        let tree = self.tree(policy);
        Ok(ItemList::new(
            &tree,
            &tree.path(),
            &mut Bodies::new(&self.source),
        )?)
    }
}
