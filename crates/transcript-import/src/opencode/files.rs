//! The files of older versions: one for each session, message and part.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use transcript_format::object::Object;

use super::listed::Listed;
use super::rows::{Info, Messages, Row, Rows, repaired};
use crate::Error;
use crate::conversation::Conversation;
use crate::dialect::Session;
use crate::document;
use crate::place::{Place, SourceId};
use crate::source::{Store, is_file_name, name_of};

/// The folder of the files of older versions.
pub(super) const FILES_FOLDER: &str = "storage";

/// The largest file that is read: 256 MiB.
const MAX_LEN: usize = 256 << 20;

/// Returns the sessions that have files, in the order of their paths.
pub(super) fn sessions(store: Store<'_>) -> Result<Vec<Session>, Error> {
    let folder = store.path.join(FILES_FOLDER).join("session");
    if !store.disk.is_folder(&folder) {
        return Ok(Vec::new());
    }
    let of_sessions = Store {
        path: &folder,
        ..store
    };
    let files = of_sessions.files(&[""], &[".json"])?;
    let sessions = files.into_iter().map(|path| Session {
        id: id_of(&path),
        files: vec![path],
    });
    Ok(sessions.collect())
}

/// Returns what the file of a session says about where it is shown.
pub(super) fn describe(store: Store<'_>, session: &Session) -> Listed {
    let describe = |info: &Object<'_>| {
        let info = Info::of_json(info);
        Some((info.directory, info.parent))
    };
    let file = session.files.first();
    let described = file.and_then(|file| document::header(store, file, describe));
    let (directory, parent) = described.unwrap_or_default();
    Listed {
        id: session.id.clone(),
        directory,
        parent,
        version: None,
    }
}

/// Returns the id that a file is named after.
fn id_of(path: &Path) -> String {
    let name = name_of(path);
    name.strip_suffix(".json").unwrap_or(&name).to_owned()
}

/// The files of one session. The JSON of a message or part is read again when it is its turn.
pub(super) struct Files<'s> {
    store: Store<'s>,
    session: Option<(Place, String)>,
    /// The files of messages and parts.
    paths: HashMap<SourceId, PathBuf>,
    messages: Messages,
    /// The parts of each message.
    parts: HashMap<String, Vec<Row>>,
}

impl<'s> Files<'s> {
    /// Reads all of them.
    pub(super) fn open(
        store: Store<'s>,
        session: &Session,
        to: &mut Conversation,
    ) -> Result<Self, Error> {
        let root = store.path.join(FILES_FOLDER);
        let mut of_session = Vec::new();
        for path in &session.files {
            of_session.push(row(store, path, "", to)?);
        }
        let mut paths = HashMap::new();
        let mut later = |path: PathBuf, of: &str, to: &mut Conversation| {
            let mut row = row(store, &path, of, to)?;
            row.data = String::new();
            paths.insert(row.place.source, path);
            Ok::<Row, Error>(row)
        };
        let mut messages = Vec::new();
        for path in files(store, &root.join("message"), &session.id)? {
            messages.push(later(path, "", to)?);
        }
        let mut parts = HashMap::new();
        for message in &messages {
            let mut own = Vec::new();
            for path in files(store, &root.join("part"), &message.id)? {
                own.push(later(path, &message.id, to)?);
            }
            own.sort_by(|a, b| a.id.cmp(&b.id));
            parts.insert(message.id.clone(), own);
        }
        let session = of_session.into_iter().next();
        Ok(Self {
            store,
            paths,
            session: session.map(|row| (row.place, row.data)),
            messages: Messages::new(messages),
            parts,
        })
    }

    /// Returns a row with its JSON.
    fn with_data(&self, mut row: Row) -> Result<Row, Error> {
        let Some(path) = self.paths.get(&row.place.source) else {
            return Ok(row);
        };
        let bytes = read_file(self.store, path)?;
        if bytes.len() as u64 != row.place.len {
            return Err(Error::changed(path));
        }
        (row.data, row.is_utf8) = text_of(bytes);
        Ok(row)
    }
}

fn read_file(store: Store<'_>, path: &Path) -> Result<Vec<u8>, Error> {
    store.disk.read(path, MAX_LEN).map_err(Error::at(path))
}

/// Returns bytes as text, and whether they were UTF-8.
fn text_of(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            false,
        ),
    }
}

/// Returns the files in the folder that is named after an id.
fn files(store: Store<'_>, above: &Path, id: &str) -> Result<Vec<PathBuf>, Error> {
    let folder = above.join(id);
    if !is_file_name(id) || !store.disk.is_folder(&folder) {
        return Ok(Vec::new());
    }
    let of_folder = Store {
        path: &folder,
        ..store
    };
    of_folder.files(&[""], &[".json"])
}

/// Reads a file as a row.
fn row(store: Store<'_>, path: &Path, of: &str, to: &mut Conversation) -> Result<Row, Error> {
    let bytes = read_file(store, path)?;
    let source: SourceId = to.add_source(path.to_owned(), None);
    let len = bytes.len() as u64;
    to.sources[source.index()].len = len;
    let place = Place {
        source,
        offset: 0,
        len,
    };
    let (data, is_utf8) = text_of(bytes);
    Ok(Row {
        place,
        id: id_of(path),
        of: of.to_owned(),
        order: created(&data).unwrap_or_default(),
        data,
        is_utf8,
    })
}

/// Returns when a message was made.
fn created(data: &str) -> Option<i64> {
    let closed;
    let info = match Object::parse(data) {
        Ok(info) => info,
        Err(_) => {
            closed = repaired(data)?;
            Object::parse(&closed).ok()?
        }
    };
    info.object("time")?.i64("created")
}

impl Rows for Files<'_> {
    type Error = Error;

    fn is_damaged(&self) -> bool {
        false
    }

    fn session(&mut self) -> Result<Option<(Place, Option<Info>)>, Error> {
        let session = self.session.as_ref();
        Ok(session.map(|(place, data)| {
            let info = Object::parse(data).ok();
            (*place, info.map(|info| Info::of_json(&info)))
        }))
    }

    /// The files of the session and of its first message: neither is read again, so the files with the texts can take their places.
    /// Without a message there is no text.
    fn text_sources(&self) -> Option<[SourceId; 2]> {
        let (session, _) = self.session.as_ref()?;
        let message = self.messages.places().first().copied()?;
        Some([session.source, message.source])
    }

    fn messages(&mut self) -> Result<Vec<Place>, Error> {
        Ok(self.messages.places())
    }

    fn message(&mut self, place: Place) -> Result<Option<Row>, Error> {
        let message = self.messages.take(place);
        message.map(|row| self.with_data(row)).transpose()
    }

    fn parts(&mut self, message: &str, take: &mut dyn FnMut(Row)) -> Result<(), Error> {
        let parts = self.parts.remove(message).unwrap_or_default();
        for part in parts {
            take(self.with_data(part)?);
        }
        Ok(())
    }

    fn lost_parts(&mut self, _: &[u64]) -> Result<Vec<Row>, Error> {
        Ok(Vec::new())
    }

    fn events(&mut self, _: &mut dyn FnMut(Row)) -> Result<(), Error> {
        Ok(())
    }

    fn others(&mut self, _: &mut Conversation) -> Result<(), Error> {
        Ok(())
    }
}
