//! Puts archived files of another agent back into its home folder, and never over a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use transcript_storage::is_absent;
use transcript_storage::outside_names::check_folders;

use crate::agent_files::{self, FileRole, check_name, database_of, role_of};
use crate::archive::Archive;
use crate::catalogue::VersionId;
use crate::error::{AtPath, Error, ErrorKind, Existing};
use crate::restore::{RestoreOptions, Restored};

/// A file to restore.
struct HomeFile<'a> {
    /// Its path below the home folder.
    below: &'a str,
    version: VersionId,
}

impl Archive {
    /// Writes the newest versions of archived files of an agent to its home folder, with their times and modes. A file that exists is
    /// never changed, and of a database nothing is written if it or a file beside it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Encrypted`], [`ErrorKind::UnknownAgent`]. Everything else is one of [`Restored::problems`].
    pub fn restore_home(
        &self,
        agent: &str,
        home: &Path,
        options: &RestoreOptions,
    ) -> Result<Restored, Error> {
        self.check_readable()?;
        if !agent_files::is_known(agent) {
            return Err(Error::new(ErrorKind::UnknownAgent, home));
        }
        let mut restored = Restored::default();
        let mut databases = BTreeMap::<&str, Vec<HomeFile<'_>>>::new();
        for file in self.home_files(agent, options) {
            match database_of(agent, file.below) {
                Some(database) => databases.entry(database).or_default().push(file),
                None => self.put_back(agent, home, &file, options, &mut restored),
            }
        }
        for (database, files) in databases {
            self.put_database_back(agent, home, (database, files), options, &mut restored);
        }
        Ok(self.finish_restore(restored))
    }

    /// Returns the files to restore, sorted by name.
    fn home_files(&self, agent: &str, options: &RestoreOptions) -> Vec<HomeFile<'_>> {
        let until = options.as_of.map(|time| {
            let since = time.duration_since(std::time::UNIX_EPOCH);
            i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
        });
        let left = self.left_behind_until(until);
        let is_wanted = |below: &str| {
            let wanted = options.files.as_ref();
            wanted.is_none_or(|wanted| agent_files::is_needed(agent, below, wanted))
        };
        let files = self.catalogue.files.keys().filter_map(|name| {
            let (of, below) = agent_files::in_home(name)?;
            let is_meant = of == agent && options.is_of_machine(name);
            if !is_meant || left.contains(&**name) || !is_wanted(below) {
                return None;
            }
            let version = self.catalogue.newest_until(name, until)?;
            Some(HomeFile { below, version })
        });
        // Of files that several machines captured at the same place, that which was captured last.
        let mut last = BTreeMap::<&str, HomeFile<'_>>::new();
        for file in files {
            let is_older =
                |known: &HomeFile<'_>| self.captured(known.version) >= self.captured(file.version);
            if !last.get(file.below).is_some_and(is_older) {
                last.insert(file.below, file);
            }
        }
        last.into_values().collect()
    }

    /// Returns where a file is restored.
    fn home_target(&self, agent: &str, home: &Path, below: &str) -> Result<PathBuf, Error> {
        let refused = |refusal| {
            let name = format!("{}/{agent}/{below}", agent_files::AGENTS);
            Error::new(
                ErrorKind::RefusedName(refusal),
                &self.layout.virtual_path(&name),
            )
        };
        check_name(agent, below).map_err(refused)?;
        let path = home.join(below);
        let checked = check_folders(&*self.disk, home, &path).at(&path)?;
        checked.map_err(refused)?;
        Ok(path)
    }

    /// Restores a file that is not one of a database.
    fn put_back(
        &self,
        agent: &str,
        home: &Path,
        file: &HomeFile<'_>,
        options: &RestoreOptions,
        restored: &mut Restored,
    ) {
        let path = match self.home_target(agent, home, file.below) {
            Ok(path) => path,
            Err(error) => return restored.problems.push(error),
        };
        // The others of its sessions are there, so the program has written it since.
        let is_shared = role_of(agent, file.below) == Some(FileRole::Shared);
        if is_shared && self.disk.has_name(&path) {
            restored.present += 1;
            return;
        }
        let missing = self.missing_folders(&path);
        match self.restore_file(&path, file.version, options) {
            Ok(None) => restored.present += 1,
            Ok(Some(bytes)) => {
                restored.files += 1;
                restored.bytes += bytes;
                restored.sessions.extend((!is_shared).then_some(path));
            }
            Err(error) => {
                restored.problems.push(error);
                restored.unused.extend(missing);
            }
        }
    }

    /// Restores a database and the files beside it, or nothing of them.
    fn put_database_back(
        &self,
        agent: &str,
        home: &Path,
        (database, mut files): (&str, Vec<HomeFile<'_>>),
        options: &RestoreOptions,
        restored: &mut Restored,
    ) {
        // An empty one stands for a file that was gone by then.
        let len = |file: &HomeFile<'_>| self.version(file.version).map_or(0, |version| version.len);
        files.retain(|file| file.below == database || len(file) > 0);
        if files.iter().all(|file| len(file) == 0) {
            return;
        }
        // The database comes last: a program that opens it finds its log there.
        files.sort_by_key(|file| file.below == database);
        let mut targets = Vec::new();
        for file in &files {
            match self.home_target(agent, home, file.below) {
                Ok(path) => targets.push((path, file.version)),
                Err(error) => return restored.problems.push(error),
            }
        }
        let there = |ending: &str| {
            let path = home.join(format!("{database}{ending}"));
            let found = self.disk.link_metadata(&path);
            (!found.is_err_and(|error| is_absent(&error))).then_some(path)
        };
        let mut endings = agent_files::DATABASE_ENDINGS.into_iter();
        if let Some(path) = there("").or_else(|| endings.find_map(there)) {
            let is_same = |(path, version): &(PathBuf, VersionId)| {
                self.existing(path, *version).is_ok_and(|is_same| is_same)
            };
            // A log that this version lacks has later changes, unless it is empty.
            let is_later_log = |path: &PathBuf| {
                let found = self.disk.link_metadata(path);
                !found.is_ok_and(|found| found.len == 0)
                    && targets.iter().all(|(target, _)| target != path)
            };
            let mut logs = agent_files::DATABASE_ENDINGS.into_iter().filter_map(there);
            if !logs.any(|log| is_later_log(&log)) && targets.iter().all(is_same) {
                restored.present += targets.len() as u64;
            } else {
                let kind = ErrorKind::Exists(Existing::Other);
                restored.problems.push(Error::new(kind, &path));
            }
            return;
        }
        let mut written = Vec::new();
        for (path, version) in targets {
            let missing = self.missing_folders(&path);
            match self.restore_file(&path, version, options) {
                Ok(bytes) => written.push((path, bytes.unwrap_or_default())),
                Err(error) => {
                    // A log without its database would be taken for that of another one. Nothing opened it yet.
                    for (path, _) in written {
                        restored
                            .problems
                            .extend(self.disk.remove(&path).at(&path).err());
                    }
                    restored.problems.push(error);
                    restored.unused.extend(missing);
                    return;
                }
            }
        }
        for (path, bytes) in written {
            restored.files += 1;
            restored.bytes += bytes;
            restored.sessions.push(path);
        }
    }
}
