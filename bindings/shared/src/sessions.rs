//! Finds the sessions that options name.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use transcript_engine::archive::{ArchiveDisk, ArchiveOptions, Identities};
use transcript_engine::catalog::Catalog;
use transcript_engine::places::{
    add_archived, add_folder, add_named, archived_sessions, keep_project,
};
use transcript_engine::{ErrorKind, Listing, Policy, Store, data_folder, list_archived};
use transcript_reader::{SessionFiles, Source};
use transcript_storage::{ReadDisk, RealDisk};

use crate::failure::Failure;

/// Where sessions are looked for: options that most functions have.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    /// The folder of projects; that of the client by default.
    root: Option<PathBuf>,
    /// The folder of an archive; `true` for that of this user. Sessions whose files are gone are read from it.
    archive: Option<ArchiveChoice>,
    /// The file with the keys of an encrypted archive.
    identity: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`archive` must be a folder, true or false")]
enum ArchiveChoice {
    Default(bool),
    Folder(PathBuf),
}

/// Refuses options that no other field takes: the last field of every function's options. A misspelt option would otherwise
/// be ignored. A structure that is itself flattened must not flatten others: serde would not see what those take.
#[derive(Debug, Default)]
pub(crate) struct NoOthers;

impl<'de> Deserialize<'de> for NoOthers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let others = BTreeMap::<String, IgnoredAny>::deserialize(deserializer)?;
        match others.keys().next() {
            None => Ok(Self),
            Some(name) => Err(D::Error::custom(format_args!(
                "there is no option `{name}`"
            ))),
        }
    }
}

/// The name of a policy as an option.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PolicyName {
    #[default]
    Recover,
    Vendor,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Recover => Self::Recover,
            PolicyName::Vendor => Self::Vendor,
        }
    }
}

/// Which sessions are searched or counted: options.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selection {
    /// Ids of sessions, files, and folders; all sessions if there are none.
    #[serde(default, rename = "in")]
    places: Vec<PathBuf>,
    /// Only those of the project at this path.
    project: Option<PathBuf>,
}

impl Place {
    /// The sessions below a folder of projects.
    pub(crate) fn at(root: Option<PathBuf>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    pub(crate) fn store(&self) -> Result<Store, Failure> {
        let store = self.root.as_ref().map(Store::new).or_else(Store::from_env);
        store.ok_or_else(|| {
            Failure::options("there is no home folder; name the folder of projects with `root`")
        })
    }

    /// Returns the disk of the archive, if one is to be read.
    pub(crate) fn archive(&self) -> Result<Option<Arc<ArchiveDisk>>, Failure> {
        let folder = match &self.archive {
            None | Some(ArchiveChoice::Default(false)) => return Ok(None),
            Some(ArchiveChoice::Folder(folder)) => folder.clone(),
            Some(ArchiveChoice::Default(true)) => {
                let set = env::var_os("TRANSCRIPT_ARCHIVE").filter(|folder| !folder.is_empty());
                let folder = set.map(PathBuf::from);
                let folder = folder.or_else(|| Some(data_folder()?.join("archive")));
                folder.ok_or_else(|| {
                    Failure::options("there is no data folder; name the folder of the archive")
                })?
            }
        };
        let mut options = ArchiveOptions::new();
        if let Some(folder) = data_folder() {
            options = options.local_folder(&folder.join("archives"));
        }
        if let Some(file) = &self.identity {
            let identities = Identities::read(file);
            let identities = identities
                .map_err(|error| Failure::new("bad-identity", error.to_string()).at(file))?;
            options = options.identities(identities);
        }
        let disk = Arc::new(ArchiveDisk::with(&folder, options));
        disk.archive()
            .map_err(|error| Failure::new("unreadable", error.to_string()).at(&folder))?;
        Ok(Some(disk))
    }

    /// Returns the disk that sessions are read from.
    pub(crate) fn disk(&self) -> Result<Arc<dyn ReadDisk>, Failure> {
        Ok(match self.archive()? {
            Some(archive) => archive,
            None => Arc::new(RealDisk),
        })
    }

    /// Opens the session that a path, an id or the start of one names.
    pub(crate) fn open(&self, session: &str) -> Result<Source, Failure> {
        let path = self.find(session)?;
        let source = Source::open_on(&self.disk()?, &path)?;
        source.check_messages()?;
        Ok(source)
    }

    /// Finds the file of a session by its path, its id or the start of one.
    pub(crate) fn find(&self, session: &str) -> Result<PathBuf, Failure> {
        if session.is_empty() {
            return Err(Failure::options("the name of the session is empty"));
        }
        let path = Path::new(session);
        if path.exists() {
            return Ok(path.to_owned());
        }
        if path.components().count() != 1 || path.extension().is_some() {
            return Err(Failure::new("not-found", format!("{session}: no such file")).at(path));
        }
        match self.store()?.find(session) {
            Err(error) if error.kind() == ErrorKind::NoSuchSession => {
                let archived = self.archived()?;
                let found = archived.as_ref().map(|files| files.matching(session));
                match found.as_deref() {
                    Some([one]) => Ok(one.path.clone()),
                    _ => Err(error.into()),
                }
            }
            found => Ok(found?),
        }
    }

    fn archived(&self) -> Result<Option<SessionFiles>, Failure> {
        let Some(disk) = self.archive()? else {
            return Ok(None);
        };
        Ok(Some(archived_sessions(&disk)?))
    }

    /// Lists the sessions of the archive.
    pub(crate) fn list_archived(&self) -> Result<Listing, Failure> {
        match self.archive()? {
            Some(disk) => Ok(list_archived(&disk)?),
            None => Ok(Listing::default()),
        }
    }
}

impl Selection {
    /// Whether sessions are named, in place of all.
    pub(crate) fn is_named(&self) -> bool {
        !self.places.is_empty()
    }

    /// Returns the sessions, looked for at `place`.
    pub(crate) fn catalog(&self, place: &Place) -> Result<Catalog, Failure> {
        let disk = place.disk()?;
        let mut files = SessionFiles::on(Arc::clone(&disk));
        if self.places.is_empty() {
            let store = place.store()?;
            // The folder need not exist before the first session.
            if store.root().exists() {
                files = SessionFiles::in_root_on(&disk, store.root())?;
            }
            if let Some(archived) = place.archived()? {
                add_archived(&mut files, archived);
            }
            if let Some(project) = &self.project {
                let mut listing = store.list()?;
                if let Some(archive) = place.archive()? {
                    transcript_engine::add_archived(&mut listing, &archive)?;
                }
                keep_project(&disk, &mut files, &listing, project);
            }
        }
        let mut seen = HashSet::new();
        for named in &self.places {
            if named.is_dir() {
                let added = add_folder(&disk, named, &mut seen, &mut files);
                added.map_err(|error| Failure::from(error).at(named))?;
            } else {
                let path = place.find(&named.to_string_lossy())?;
                add_named(&disk, &path, &mut seen, &mut files)?;
            }
        }
        Ok(Catalog::of(&disk, files))
    }
}
