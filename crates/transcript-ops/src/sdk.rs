//! The session functions of the official SDKs, under their names: what a client that imports them from there
//! can import from here instead. They show and change the same sessions, find what the SDKs lose on damaged
//! files, and read no more than they need. `docs/bindings.md` lists every difference.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::ids::Uuid;
use transcript_format::kind::{AttachmentKind, EntryKind};
use transcript_format::object::{JsonKind, Object, Raw, Str};
use transcript_format::scan::Flags;
use transcript_format::time;
use transcript_reader::{
    Bodies, EntryRef, Listing, SessionFile, SessionFiles, SessionRow, Source, Subagent,
    project_folders, subagents_on,
};
use transcript_resume::{ConversationPath, Policy, Tree};
use transcript_storage::{ReadDisk, SessionLayout};
use transcript_writer::{Draft, EntryId, OnBusy, ResumePoint, WriterOptions};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use transcript_session::ForkOptions;
use transcript_session::Store;
use transcript_session::{Error, ErrorKind};
use transcript_session::{History, ReadEnd};

/// The sessions of a store as the SDKs show them.
///
/// A function that takes `directory` looks at the sessions of that project and of the other worktrees of its
/// repository, else at those of all projects. Under [`Policy::Vendor`] conversations are those that the client
/// shows; under [`Policy::Recover`] they are complete.
///
/// ```
/// use transcript_ops::sdk::{ListOptions, SdkSessions};
/// use transcript_session::Store;
/// # use transcript_session::{Draft, Session, SessionOptions};
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::new(folder.path().join("projects"));
/// # let session = Session::create(&store.new_session_path(folder.path()), &SessionOptions::new())?;
/// # session.append(Draft::user("Which years have a leap day?"))?;
/// # session.close()?;
///
/// let sessions = SdkSessions::new(store);
/// for session in sessions.list(&ListOptions::default())? {
///     println!("{} {:?}", session.session_id, session.summary);
/// #   assert_eq!(session.summary.as_deref(), Some("Which years have a leap day?"));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SdkSessions {
    store: Store,
    policy: Policy,
}

/// The options of [`SdkSessions::list`].
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// The folder of a project; `None` for all projects.
    pub directory: Option<PathBuf>,
    /// At most this many; `None` or 0 for all.
    pub limit: Option<usize>,
    /// The number of newest sessions to skip.
    pub offset: usize,
    /// Whether the other worktrees of the repository count as the project.
    pub include_worktrees: bool,
    /// Whether sessions of programs (`sdk-cli`, `sdk-ts`, `sdk-py`) are included.
    pub include_programmatic: bool,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            directory: None,
            limit: None,
            offset: 0,
            include_worktrees: true,
            include_programmatic: true,
        }
    }
}

/// The options for reading the messages of a conversation.
#[derive(Clone, Debug, Default)]
pub struct MessageOptions {
    /// At most this many; `None` or 0 for all.
    pub limit: Option<usize>,
    /// The number of oldest messages to skip.
    pub offset: usize,
    /// Whether messages before the last compaction, which the model no longer sees, are included.
    pub compacted: bool,
    /// Whether entries of the type `system` between the messages are included.
    pub system: bool,
}

/// A message of a conversation as it is read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SdkMessage<'a> {
    /// `user`, `assistant` or `system`.
    pub role: &'static str,
    /// The uuid of its entry; of a queued prompt the one with which it was queued, if the entry contains it.
    pub uuid: &'a str,
    /// The uuid of the entry that comes before it in the conversation; `None` for the first.
    pub parent_uuid: Option<&'a str>,
    /// The id of the session that the entry names; empty if it names none.
    pub session_id: &'a str,
    /// The message of the API, verbatim JSON; `null` if the entry has none. Of a queued prompt it is made from the prompt.
    pub message: &'a str,
    /// The time of the entry, as in the file.
    pub timestamp: Option<&'a str>,
    /// The call of the tool that started the subagent.
    pub parent_tool_use_id: Option<&'a str>,
    /// The subagent that started the subagent.
    pub parent_agent_id: Option<&'a str>,
    /// Whether it is the summary that a compaction left.
    pub is_compact_summary: bool,
    /// Whether clients mark it as not meant for people (`isVisibleInTranscriptOnly`).
    pub is_transcript_only: bool,
    /// Whether it is a prompt that was queued while the model was working, which then got it within that turn.
    pub is_queued: bool,
    /// Its author, such as `{"kind":"human"}`, verbatim JSON; `None` if the entry does not contain it.
    pub origin: Option<&'a str>,
}

/// The error that ended a call of [`SdkSessions::messages`]: of the session, or of the caller.
#[derive(Debug)]
pub enum MessageError<E> {
    /// The session cannot be read.
    Session(Error),
    /// The caller wants no more messages.
    Stopped(E),
}

impl<E> From<Error> for MessageError<E> {
    fn from(error: Error) -> Self {
        Self::Session(error)
    }
}

impl<E> From<transcript_reader::Error> for MessageError<E> {
    fn from(error: transcript_reader::Error) -> Self {
        Self::Session(error.into())
    }
}

impl SdkSessions {
    /// The sessions of `store` under [`Policy::Recover`].
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            policy: Policy::Recover,
        }
    }

    /// Sets the policy by which conversations are rebuilt.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the sessions, the file that was changed last first. Sessions without a title and without a
    /// prompt, and those that only have entries of a subagent, are not among them; of copies with the same id
    /// only the newest is.
    ///
    /// # Errors
    /// When the folder of projects cannot be read. A store that does not exist yet has no sessions.
    pub fn list(&self, options: &ListOptions) -> Result<Vec<SessionRow>, Error> {
        let listing = match &options.directory {
            None => self.store.list()?,
            Some(path) => {
                let folders = self.folders(path, options.include_worktrees)?;
                Listing::of(SessionFiles::in_projects(self.read_disk(), &folders))
            }
        };
        let mut rows: Vec<SessionRow> = match &options.directory {
            None => listing.rows,
            Some(path) => {
                let rows = listing.of_project(path, options.include_worktrees);
                rows.into_iter().cloned().collect()
            }
        };
        let programs = ["sdk-cli", "sdk-ts", "sdk-py"].map(Some);
        let is_program = |row: &SessionRow| programs.contains(&row.entrypoint.as_deref());
        rows.retain(|row| is_shown(row) && (options.include_programmatic || !is_program(row)));
        // Sorted before ids are compared: of copies in several folders the newest stays.
        rows.sort_by_key(|row| std::cmp::Reverse(row.file_millis));
        let mut ids = std::collections::HashSet::new();
        rows.retain(|row| ids.insert(row.session_id.clone()));
        Ok(page(rows, options.limit, options.offset))
    }

    /// Returns one session; `None` if there is none with this id, or if [`Self::list`] would not show it.
    ///
    /// # Errors
    /// When the folder of projects cannot be read.
    pub fn info(&self, id: &str, directory: Option<&Path>) -> Result<Option<SessionRow>, Error> {
        let Some(path) = self.find(id, directory)? else {
            return Ok(None);
        };
        let disk = self.read_disk();
        let row = SessionRow::of_file(&disk, &SessionFile::at(&*disk, &path));
        Ok(Some(row).filter(is_shown))
    }

    /// Calls `each` with the messages of a session, oldest first: those of users and assistants that a person
    /// sees. An unknown id has none.
    ///
    /// Memory grows with the number of lines of the file, not with their bytes. If the end of the file is
    /// enough for the conversation, only that is read.
    ///
    /// # Errors
    /// When the file cannot be read, and what `each` returns.
    pub fn messages<E>(
        &self,
        id: &str,
        directory: Option<&Path>,
        options: &MessageOptions,
        each: &mut dyn FnMut(SdkMessage<'_>) -> Result<(), E>,
    ) -> Result<(), MessageError<E>> {
        let Some(path) = self.find(id, directory)? else {
            return Ok(());
        };
        let source = Source::open_on(&self.read_disk(), &path)?;
        // The end of the file does not have what compactions removed.
        let history = if options.compacted {
            History::read(source)?
        } else {
            match History::read_end(source)? {
                ReadEnd::Enough(history) => history,
                ReadEnd::ReadAll(source, _) => History::read(source)?,
            }
        };
        let tree = history.tree(self.policy);
        let path = tree.path();
        let (tree, path) = if options.compacted {
            let tree = tree.unspliced();
            let story = tree.story(&path);
            (tree, story.path)
        } else {
            (tree, path)
        };
        let hidden = Flags::META | Flags::SIDECHAIN | Flags::TEAM;
        let reading = MessageReader {
            history: &history,
            hidden,
            agent: None,
        };
        reading.run(&tree, &path, options, each)
    }

    /// Returns the ids of the subagents of a session that have a file of their own.
    ///
    /// # Errors
    /// When a folder exists and cannot be read.
    pub fn subagents(&self, id: &str, directory: Option<&Path>) -> Result<Vec<String>, Error> {
        let agents = self.agents(id, directory)?.into_iter();
        Ok(agents.map(|agent| agent.id).collect())
    }

    /// Calls `each` with the messages of a subagent, oldest first, also those that the client added. An unknown
    /// id has none.
    ///
    /// # Errors
    /// As [`Self::messages`].
    pub fn subagent_messages<E>(
        &self,
        (id, agent): (&str, &str),
        directory: Option<&Path>,
        options: &MessageOptions,
        each: &mut dyn FnMut(SdkMessage<'_>) -> Result<(), E>,
    ) -> Result<(), MessageError<E>> {
        let mut agents = self.agents(id, directory)?.into_iter();
        let Some(agent) = agents.find(|found| found.id == agent) else {
            return Ok(());
        };
        let history = History::open_on(&self.read_disk(), &agent.path)?;
        let tree = history.tree(self.policy);
        let reading = MessageReader {
            history: &history,
            hidden: Flags::empty(),
            agent: Some(&agent),
        };
        reading.run(&tree, &tree.path(), options, each)
    }

    /// Sets the title of a session, without surrounding white space. The line is whole and synced on return,
    /// also after a torn one.
    ///
    /// # Errors
    /// [`ErrorKind::Blank`] when nothing is left of the title, [`ErrorKind::NotAnId`],
    /// [`ErrorKind::NoSuchSession`], [`ErrorKind::Write`].
    pub fn rename(&self, id: &str, title: &str, directory: Option<&Path>) -> Result<(), Error> {
        let root = self.store.root();
        check_id(id, root)?;
        let title = title.trim();
        if title.is_empty() {
            return Err(Error::new(ErrorKind::Blank, root));
        }
        self.add_line(id, directory, Draft::custom_title(title))
    }

    /// Sets the tag of a session, in compatibility form and without invisible characters; `None` clears it.
    ///
    /// # Errors
    /// As [`Self::rename`].
    pub fn tag(&self, id: &str, tag: Option<&str>, directory: Option<&Path>) -> Result<(), Error> {
        let root = self.store.root();
        check_id(id, root)?;
        let tag = match tag.map(visible) {
            None => String::new(),
            Some(tag) if tag.trim().is_empty() => {
                return Err(Error::new(ErrorKind::Blank, root));
            }
            Some(tag) => tag.trim().to_owned(),
        };
        self.add_line(id, directory, Draft::tag(&tag))
    }

    /// Notes that a session is archived, or that it is not any more, in a file in its folder. The session stays as it is; what
    /// [`Self::list`] returns says so until a person writes a prompt in it.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnId`], [`ErrorKind::NoSuchSession`], [`ErrorKind::SideFile`].
    pub fn set_archived(
        &self,
        id: &str,
        is_archived: bool,
        directory: Option<&Path>,
    ) -> Result<(), Error> {
        let path = self.existing(id, directory)?;
        // Replaced as a whole: a reader sees the old mark or the new one, also after a kill.
        let path = path.with_extension("").join("archived.json");
        let new = path.with_extension(format!("json.{}.new", uuid::Uuid::new_v4()));
        let at = format!("{:.3}", jiff::Timestamp::now());
        let mark = format!(r#"{{"archived":{is_archived},"at":"{at}","by":"sdk"}}"#);
        let replaced = self.store.disk().replace(&path, &new, mark.as_bytes());
        replaced.map_err(|error| Error::io(ErrorKind::SideFile, &path, error))
    }

    /// Deletes a session: its file, then the folder with its subagents and side files. What `keep` archived of
    /// it stays.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnId`], [`ErrorKind::NoSuchSession`], [`ErrorKind::Delete`].
    pub fn delete(&self, id: &str, directory: Option<&Path>) -> Result<(), Error> {
        let path = self.existing(id, directory)?;
        // Another process may delete it as well; then it is deleted all the same.
        let removed = |removed: io::Result<()>, path: &Path| match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| Error::io(ErrorKind::Delete, path, error)),
        };
        let disk = self.store.disk();
        // The file first: without it the session is gone from every list, even if the folder cannot be removed.
        removed(disk.remove(&path), &path)?;
        let folder = path.with_extension("");
        removed(disk.remove_folder_with_content(&folder), &folder)
    }

    /// Copies the conversation of a session into a new one next to it, up to the entry `up_to` if it is given.
    /// Returns the id of the new session.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnId`], [`ErrorKind::NoSuchSession`], [`ErrorKind::NoSuchEntry`] if no entry has the
    /// uuid `up_to`, and those of [`History::fork`].
    pub fn fork(
        &self,
        id: &str,
        directory: Option<&Path>,
        up_to: Option<&str>,
        title: Option<&str>,
    ) -> Result<String, Error> {
        let path = self.existing(id, directory)?;
        let history = History::open_on(&self.read_disk(), &path)?;
        let mut options = ForkOptions::new().disk(Arc::clone(self.store.disk()));
        if let Some(up_to) = up_to {
            let index = history.index();
            let id = index.id(up_to);
            if id.is_none_or(|id| index.with_uuid(id).next().is_none()) {
                return Err(Error::new(ErrorKind::NoSuchEntry, &path));
            }
            options = options.at(EntryId::from(up_to));
        }
        if let Some(title) = title {
            options = options.title(title);
        }
        let (_, session) = history.fork(self.policy, &options)?;
        Ok(session.to_string())
    }

    /// Finds the file of a session. Empty files are skipped. `None` if there is none, and for a text that is not
    /// a uuid.
    ///
    /// # Errors
    /// When the folder of projects cannot be read.
    pub fn find(&self, id: &str, directory: Option<&Path>) -> Result<Option<PathBuf>, Error> {
        // The id becomes a part of a path: `..` must not lead out of the store.
        if check_id(id, self.store.root()).is_err() {
            return Ok(None);
        }
        let name = format!("{id}.jsonl");
        let files = self.candidates(directory)?.into_iter();
        let mut files = files.map(|folder| folder.join(&name));
        Ok(files.find(|file| {
            let found = self.store.disk().metadata(file);
            found.is_ok_and(|found| found.is_file() && found.len > 0)
        }))
    }

    fn existing(&self, id: &str, directory: Option<&Path>) -> Result<PathBuf, Error> {
        check_id(id, self.store.root())?;
        let found = self.find(id, directory)?;
        found.ok_or_else(|| Error::new(ErrorKind::NoSuchSession, self.store.root()))
    }

    fn add_line(&self, id: &str, directory: Option<&Path>, line: Draft) -> Result<(), Error> {
        let path = self.existing(id, directory)?;
        // A client that has the session open accepts titles and tags of others.
        let options = WriterOptions::new().on_busy(OnBusy::Share).session_id(id);
        let options = options.disk(Arc::clone(self.store.disk()));
        let writer = options.open(&path, ResumePoint::default())?;
        writer.append(line)?;
        Ok(writer.close()?)
    }

    fn read_disk(&self) -> Arc<dyn ReadDisk> {
        Arc::clone(self.store.disk()) as _
    }

    fn agents(&self, id: &str, directory: Option<&Path>) -> Result<Vec<Subagent>, Error> {
        if check_id(id, self.store.root()).is_err() {
            return Ok(Vec::new());
        }
        // The file of the session may be gone while those of its subagents are there.
        let disk = self.read_disk();
        for folder in self.candidates(directory)? {
            let session = folder.join(format!("{id}.jsonl"));
            if disk.exists(&session) || disk.exists(&SessionLayout::CLIENT.subagents(&session)) {
                return Ok(subagents_on(&disk, &session)?);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the folders in which sessions are looked up.
    fn candidates(&self, directory: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
        if let Some(directory) = directory {
            return self.folders(directory, true);
        }
        let (disk, root) = (self.store.disk(), self.store.root());
        let Ok(entries) = disk.list(root) else {
            return Ok(Vec::new());
        };
        let folders = entries.flatten().map(|entry| root.join(entry.name));
        let mut folders: Vec<_> = folders.filter(|path| disk.is_folder(path)).collect();
        // A disk lists folders in any order; of copies, the same one is to be found each time.
        folders.sort();
        Ok(folders)
    }

    fn folders(&self, path: &Path, with_worktrees: bool) -> Result<Vec<PathBuf>, Error> {
        let root = self.store.root();
        if !self.store.disk().exists(root) {
            return Ok(Vec::new());
        }
        let disk = self.read_disk();
        let mut folders = project_folders(&disk, root, path, with_worktrees)?;
        // The Python SDK names folders after the composed form of a path.
        let composed = path
            .to_str()
            .map(|path| PathBuf::from(path.nfc().collect::<String>()));
        if let Some(composed) = composed.filter(|composed| composed != path) {
            for folder in project_folders(&disk, root, &composed, with_worktrees)? {
                if !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
        }
        Ok(folders)
    }
}

/// Reads the messages of a path.
struct MessageReader<'h> {
    history: &'h History,
    hidden: Flags,
    agent: Option<&'h Subagent>,
}

impl MessageReader<'_> {
    fn run<E>(
        &self,
        tree: &Tree<'_>,
        path: &ConversationPath,
        options: &MessageOptions,
        each: &mut dyn FnMut(SdkMessage<'_>) -> Result<(), E>,
    ) -> Result<(), MessageError<E>> {
        let index = tree.index();
        let mut bodies = Bodies::new(self.history.source());
        let mut shown = Vec::new();
        // A conversation ends with a message.
        let mut end = 0;
        for entry in &path.entries {
            let entry = index.entry(entry.entry_no());
            if is_queued(&entry) {
                // The flags that hide a queued prompt are in its attachment, not in the envelope.
                let body = Object::parse(bodies.get(&entry)?.text).ok();
                let is_read = body.as_ref().and_then(QueuedPrompt::read).is_some();
                if !is_read || entry.flags().intersects(self.hidden - Flags::META) {
                    continue;
                }
            } else {
                let kind = entry.kind();
                let is_read = kind.is_message() || options.system && kind == EntryKind::System;
                if !is_read || entry.flags().intersects(self.hidden) {
                    continue;
                }
            }
            shown.push(entry);
            // System entries after the last message are dropped below.
            if entry.kind() != EntryKind::System {
                end = shown.len();
            }
        }
        shown.truncate(end);
        let meta = self.agent.and_then(Subagent::meta);
        let parent_call = meta.as_ref().and_then(|meta| meta.tool_use_id());
        let parent_agent = meta.as_ref().and_then(|meta| meta.parent_agent_id());
        let mut parent = None;
        for entry in page(shown, options.limit, options.offset) {
            // The message before it that is shown. Entries that are not shown may be between them, and their uuids would lead
            // nowhere.
            let own_parent = || entry.parent().map(|id| index.id_text(id));
            let parent_uuid = parent.take().or_else(own_parent);
            let body = Object::parse(bodies.get(&entry)?.text).ok();
            let text = |name: &str| body.as_ref().and_then(|body| body.str(name));
            let (session, timestamp) = (text("sessionId"), text("timestamp"));
            let queued = body.as_ref().filter(|_| is_queued(&entry));
            let mut queued = queued.and_then(QueuedPrompt::read);
            // The uuid with which the caller queued the prompt: that of the attachment is new to it.
            let given = queued.as_mut().and_then(|queued| queued.uuid.take());
            let own = || entry.uuid().map(|id| index.id_text(id));
            let uuid = given.or_else(own).unwrap_or_default();
            let (message, origin) = match &queued {
                Some(queued) => (Some(&*queued.message), queued.origin),
                None => {
                    let raw = |name: &str| Some(body.as_ref()?.get(name)?.text());
                    let origin = raw("origin").filter(|origin| *origin != "null");
                    (raw("message"), origin)
                }
            };
            let message = SdkMessage {
                role: role(&entry),
                uuid: &uuid,
                parent_uuid: parent_uuid.as_deref(),
                session_id: session.as_deref().unwrap_or_default(),
                message: message.unwrap_or("null"),
                timestamp: timestamp.as_deref(),
                parent_tool_use_id: parent_call.as_deref(),
                parent_agent_id: parent_agent.as_deref(),
                is_compact_summary: entry.flags().contains(Flags::COMPACT_SUMMARY),
                is_transcript_only: entry.flags().contains(Flags::TRANSCRIPT_ONLY),
                is_queued: queued.is_some(),
                origin,
            };
            each(message).map_err(MessageError::Stopped)?;
            parent = Some(uuid);
        }
        Ok(())
    }
}

/// A prompt that was queued while the model was working. The client writes it as an attachment.
struct QueuedPrompt<'a> {
    message: String,
    /// The uuid with which it was queued.
    uuid: Option<String>,
    origin: Option<&'a str>,
}

impl<'a> QueuedPrompt<'a> {
    /// Reads the prompt of an entry; `None` if the entry has none that is shown.
    fn read(entry: &Object<'a>) -> Option<Self> {
        let attachment = entry.object("attachment")?;
        let is_content = |kind: JsonKind| matches!(kind, JsonKind::String | JsonKind::Array);
        let prompt = attachment.get("prompt")?;
        if !is_content(prompt.kind()) || attachment.bool("isMeta") == Some(true) {
            return None;
        }
        let is_notification = attachment.str("commandMode").as_deref() == Some("task-notification");
        let origin = attachment.get("origin").filter(|origin| !origin.is_null());
        let origin = origin.map(Raw::text);
        Some(Self {
            message: format!(r#"{{"role":"user","content":{}}}"#, prompt.text()),
            uuid: attachment.str("source_uuid").map(Str::into_owned),
            origin: origin.or(is_notification.then_some(r#"{"kind":"task-notification"}"#)),
        })
    }
}

fn is_queued(entry: &EntryRef<'_>) -> bool {
    entry.attachment_kind() == Some(AttachmentKind::QueuedCommand)
}

fn role(entry: &EntryRef<'_>) -> &'static str {
    match entry.kind() {
        EntryKind::User | EntryKind::Attachment => "user",
        EntryKind::System => "system",
        _ => "assistant",
    }
}

/// Returns whether the SDKs show a session: it has a name of its own and is a conversation.
fn is_shown(row: &SessionRow) -> bool {
    let is_named = Uuid::parse(row.session_id.to_ascii_lowercase().as_bytes()).is_some();
    is_named && row.has_file && row.bytes > 0 && !row.is_sidechain && row.summary.is_some()
}

fn check_id(id: &str, root: &Path) -> Result<(), Error> {
    match Uuid::parse(id.to_ascii_lowercase().as_bytes()) {
        Some(_) => Ok(()),
        None => Err(Error::new(ErrorKind::NotAnId, root)),
    }
}

/// Returns the compatibility form of a text, without characters that are invisible or not assigned: they would
/// make tags differ that look the same.
fn visible(text: &str) -> String {
    /// Removing a character may leave two that are one in the compatibility form.
    const MAX_ROUNDS: usize = 10;
    let is_seen = |c: &char| {
        !matches!(
            c.general_category(),
            GeneralCategory::Format | GeneralCategory::PrivateUse | GeneralCategory::Unassigned
        )
    };
    let mut text = text.to_owned();
    for _ in 0..MAX_ROUNDS {
        let shorter: String = text.nfkc().filter(is_seen).collect();
        if shorter == text {
            break;
        }
        text = shorter;
    }
    text
}

/// Returns a page; a limit of 0 is none.
fn page<T>(all: Vec<T>, limit: Option<usize>, offset: usize) -> Vec<T> {
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    all.into_iter().skip(offset).take(limit).collect()
}

/// Returns the creation time of a session, in milliseconds since 1970.
#[must_use]
pub fn created_millis(row: &SessionRow) -> Option<i64> {
    time::millis(row.created.as_deref()?.as_bytes())
}
