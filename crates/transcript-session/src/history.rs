//! What stands in the file of a session.

use std::cell::OnceCell;
use std::path::Path;

use transcript_format::ids::Uuid;
use transcript_reader::{Bodies, Index, LoadOptions, OtherFiles, Source};
use transcript_resume::items::ItemList;
use transcript_resume::request::{self, Request};
use transcript_resume::{PathState, Policy, Tree, Usage, UsageTotals};

use crate::error::Error;
use crate::options::SessionOptions;

/// A session as it was when it was read, to look at: nothing here writes, takes a lock or needs the
/// right to write. It grows with the lines of the file, never with their
/// bytes: at most 96 bytes a line.
#[derive(Debug)]
pub struct History {
    source: Source,
    index: Index,
    others: OnceCell<OtherFiles>,
}

impl History {
    /// Reads the session at `path`. Damage in it is no error: the index has the findings.
    ///
    /// # Errors
    /// When it is no regular file or the system fails to read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(Source::open(path)?)
    }

    /// Reads an open file.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn read(source: Source) -> Result<Self, Error> {
        Self::read_with(source, &LoadOptions::new())
    }

    /// Reads an open file as `options` say.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn read_with(source: Source, options: &LoadOptions) -> Result<Self, Error> {
        let index = options.load(&source)?;
        Ok(Self {
            source,
            index,
            others: OnceCell::new(),
        })
    }

    /// Returns the file.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the index over it.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Links the entries under `policy`. What [`Policy::Recover`] misses is looked for in the other
    /// files of the session, then in those of its folder; they are only read.
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

    /// Returns the id of the session: the name of the file, as its lines may name another session;
    /// else what the first line says that names one.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        let stem = self.source.path().file_stem();
        let stem = stem.and_then(|stem| stem.to_str());
        let named = stem.filter(|stem| Uuid::parse(stem.to_ascii_lowercase().as_bytes()).is_some());
        let named = named.map(str::to_owned);
        named.or_else(|| self.index.sessions().next().map(str::to_owned))
    }

    /// Makes the request that continues the session, as [`Session::resume`](crate::Session::resume)
    /// does, without writing anything: of `options` the policy and the model count.
    ///
    /// When a client would not go on, [`Path::refusal`](transcript_resume::Path::refusal) says why and
    /// there are no messages.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn request(&self, options: &SessionOptions) -> Result<Request, Error> {
        self.request_as(options, request::RequestOptions::new())
    }

    pub(crate) fn request_as(
        &self,
        options: &SessionOptions,
        mut request: request::RequestOptions,
    ) -> Result<Request, Error> {
        if let Some(model) = &options.model {
            request = request.model(model);
        }
        let tree = self.tree(options.policy);
        Ok(request.request(&tree, &mut Bodies::new(&self.source))?)
    }

    /// Returns what the session was set to where its conversation ends: title, mode, model, to-do list.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn state(&self, policy: Policy) -> Result<PathState, Error> {
        let tree = self.tree(policy);
        let (state, _) = PathState::read(&tree, &tree.path(), &mut Bodies::new(&self.source))?;
        Ok(state)
    }

    /// Returns the tokens of all answers in the file, by model in the order of their names: those of
    /// abandoned branches and of sidechains as well, as they were paid for. The tokens of the
    /// conversation alone are in [`Request::usage`].
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn usage(&self) -> Result<Vec<Usage>, Error> {
        let mut totals = UsageTotals::new();
        totals.add_file(&self.index, &mut Bodies::new(&self.source))?;
        Ok(totals.models())
    }

    /// Returns what a person sees of the conversation: prompts, answers, calls with their results,
    /// compactions.
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
