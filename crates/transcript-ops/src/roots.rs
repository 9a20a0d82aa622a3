//! Roots: folders of projects, their names, and the archive of each. `docs/roots.md` describes the configuration file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use transcript_archive::{Archive, ArchiveDisk, ArchiveDisks, ArchiveOptions, Identities};
use transcript_manage::RootArchive;
use transcript_session::{
    Store, agent_homes, below_home, config_file, data_folder, home_projects_folder,
    named_archive_folder,
};
use transcript_storage::{Disk, ReadDisk, RealDisk};

use crate::agent_archives::AgentArchive;
use crate::agents::{CLAUDE_CODE, Homes, SessionsDisk, check_name as check_agent, is_home};
use crate::buckets::{KnownBuckets, is_address};
use crate::failure::{Failure, message_of};
use crate::machine::{check_machine, machine_name};

/// The name of the root that is used when nothing is configured.
pub const USUAL: &str = "default";
/// The maximum length of a configuration file, in bytes.
const MAX_FILE_LEN: usize = 64 << 10;
/// The maximum length of a file that names a root, in bytes.
const MAX_ROOT_FILE_LEN: usize = 4096;
/// The name of the archive that every root had in earlier versions, in the data folder.
const COMMON_ARCHIVE: &str = "archive";
/// The file in an archive that names its root. Only archives in their default folder have it.
const ROOT_FILE: &str = "root";

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    /// The names of the roots that are used if none is asked for.
    #[serde(default, rename = "use")]
    used: Vec<String>,
    /// The folder of each name.
    #[serde(default)]
    roots: BTreeMap<String, PathBuf>,
    /// The archive of each name.
    #[serde(default)]
    archives: BTreeMap<String, PathBuf>,
    /// The name of this machine in archives that several machines share.
    machine: Option<String>,
}

/// A folder of projects, and where its archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPlace {
    /// Its name; for a folder without a name, its path.
    pub name: Arc<str>,
    /// The folder.
    pub folder: PathBuf,
    /// The agent whose home folder it is; `None` for Claude Code.
    pub maker: Option<Arc<str>>,
    /// The folder of its archive, which need not exist. `None` if there is no data folder.
    pub archive: Option<PathBuf>,
    /// The archive that earlier versions captured it in, if that is another one.
    pub common_archive: Option<PathBuf>,
    /// Whether the archive is in its default folder and that of this root alone, so that it has a file that names the root.
    is_archive_by_default: bool,
    /// Whether all sessions of the archive are meant, also those of other roots: somebody asked for the archive, and for no root or for one that
    /// is gone.
    has_whole_archive: bool,
}

/// The roots of this user: the usual one, and those of the configuration file.
#[derive(Clone, Debug, Default)]
pub struct KnownRoots {
    file: Option<PathBuf>,
    roots: Vec<RootPlace>,
    /// The names of those that are used if none is asked for.
    used: Vec<String>,
    /// The archive of all roots, if somebody asked for that.
    archive: Option<PathBuf>,
    /// Whether an option asked for that archive, and not the environment.
    is_archive_given: bool,
    /// Other folders that archives name.
    others: Vec<PathBuf>,
    /// The archives of agents that are to be elsewhere, by the names of the agents.
    archives_of_agents: BTreeMap<String, PathBuf>,
    /// The buckets that archives are in.
    buckets: KnownBuckets,
    /// The name of this machine, if the configuration file has one.
    machine: Option<String>,
}

/// A root that is in use: its sessions, and its archived ones.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its name; for a folder without a name, its path.
    pub name: Arc<str>,
    /// Its sessions.
    pub store: Store,
    /// Its archives that exist, the one that is written first.
    pub archives: Vec<RootArchive>,
}

impl KnownRoots {
    /// Reads the configuration file, if there is one. With `archive`, else `$TRANSCRIPT_ARCHIVE`, all roots have this one: a folder, or
    /// the address of one in a bucket.
    ///
    /// # Errors
    /// When the file cannot be read or used.
    pub fn read(archive: Option<&Path>) -> Result<Self, Failure> {
        let file = config_file();
        let config = match &file {
            Some(file) => read_config(file)?,
            None => ConfigFile::default(),
        };
        let buckets = KnownBuckets::new();
        let named = archive.map(Path::to_owned).or_else(named_archive_folder);
        let named = named.map(|place| {
            if is_address(&place) {
                buckets.add(&place)
            } else {
                Ok(place)
            }
        });
        let mut known = Self {
            file,
            archive: named.transpose()?,
            is_archive_given: archive.is_some(),
            buckets,
            ..Self::default()
        };
        if let Some(machine) = &config.machine {
            check_machine(machine).map_err(|why| known.wrong(&format!("machine: {why}")))?;
        }
        known.machine.clone_from(&config.machine);
        if config.roots.contains_key(USUAL) {
            return Err(known.wrong(&format!("roots: {USUAL} is the name of the usual root")));
        }
        for (name, folder) in &config.roots {
            check_name(name).map_err(|why| known.wrong(&why))?;
            let folder = known.absolute(&format!("roots.{name}"), folder)?;
            known.add(name, folder, &config)?;
        }
        let usual = Store::from_env();
        let usual = usual.as_ref().map(Store::root);
        if let Some(usual) = usual.filter(|usual| known.at(usual).is_none()) {
            known.add(USUAL, usual.to_owned(), &config)?;
        }
        for (name, folder) in &config.archives {
            if known.named(name).is_none() && check_agent(name).is_ok() {
                let folder = known.archive_at(name, folder)?;
                known.archives_of_agents.insert(name.clone(), folder);
            }
        }
        let of_roots = config.archives.keys();
        let of_roots = of_roots.filter(|name| !known.archives_of_agents.contains_key(*name));
        for name in of_roots.chain(&config.used) {
            if known.named(name).is_none() {
                return Err(known.wrong(&format!("no root is named {name}")));
            }
        }
        known.used = config.used;
        if known.used.is_empty() {
            known.used.push(USUAL.to_owned());
        }
        known.others = named_by_archives();
        known.others.extend(home_projects_folder());
        Ok(known)
    }

    fn wrong(&self, why: &str) -> Failure {
        let file = self.file.clone().unwrap_or_default();
        Failure::options(format!("{}: {why}", file.display())).at(&file)
    }

    /// Returns a path of the configuration file: absolute, or below the home folder.
    fn absolute(&self, key: &str, path: &Path) -> Result<PathBuf, Failure> {
        let below = path.strip_prefix("~").ok().and_then(below_home);
        let path = below.unwrap_or_else(|| path.to_owned());
        if path.is_absolute() {
            return Ok(path);
        }
        Err(self.wrong(&format!(
            "{key}: {} is not an absolute path and does not start with ~/",
            path.display()
        )))
    }

    /// Returns the folder of the archive of a name.
    fn archive_at(&self, name: &str, place: &Path) -> Result<PathBuf, Failure> {
        if is_address(place) {
            let folder = self.buckets.add(place);
            return folder
                .map_err(|failure| self.wrong(&format!("archives.{name}: {}", failure.message)));
        }
        self.absolute(&format!("archives.{name}"), place)
    }

    fn add(&mut self, name: &str, folder: PathBuf, config: &ConfigFile) -> Result<(), Failure> {
        let placed = config.archives.get(name);
        let placed = placed.map(|placed| self.archive_at(name, placed));
        let archive = self.archive.clone().or(placed.transpose()?);
        self.roots
            .push(RootPlace::new(name.into(), folder, archive.as_deref()));
        Ok(())
    }

    /// Returns the root of a name. The usual root has two, if its folder is in the configuration file.
    fn named(&self, name: &str) -> Option<&RootPlace> {
        let mut roots = self.roots.iter();
        match roots.find(|root| &*root.name == name) {
            None if name == USUAL => self.at(Store::from_env()?.root()),
            named => named,
        }
    }

    fn at(&self, folder: &Path) -> Option<&RootPlace> {
        let folder = real(folder);
        self.roots.iter().find(|root| real(&root.folder) == folder)
    }

    /// Returns the roots that are asked for, by name or by folder; without any, those that are used by default. None of them
    /// is there twice.
    #[must_use]
    pub fn choose(&self, asked: &[PathBuf]) -> Vec<RootPlace> {
        let mut chosen: Vec<RootPlace> = if asked.is_empty() {
            let used = self.used.iter().filter_map(|name| self.named(name));
            used.cloned().collect()
        } else {
            let root = |asked: &PathBuf| {
                let named = asked.to_str().and_then(|name| self.named(name));
                let known = named.or_else(|| self.at(asked)).cloned();
                let known = known.map(|known| match named {
                    Some(_) => known,
                    // As it was written: so are the paths that are shown.
                    None => RootPlace {
                        folder: asked.clone(),
                        ..known
                    },
                });
                known.unwrap_or_else(|| {
                    let name = asked.display().to_string().into();
                    RootPlace::new(name, asked.clone(), self.archive.as_deref())
                })
            };
            asked.iter().map(root).collect()
        };
        let mut seen = Vec::new();
        chosen.retain(|root| {
            let real = real(&root.folder);
            let is_new = !seen.contains(&real);
            seen.push(real);
            is_new
        });
        if let [only] = &mut chosen[..] {
            // A root that is gone, such as one that was moved, has sessions in the archive only.
            let is_any = asked.is_empty() || !RealDisk.exists(&only.folder);
            only.has_whole_archive = self.is_archive_given && is_any;
        }
        chosen
    }

    /// Returns the roots that are asked for: of these agents, and in these folders. Without an agent and without a folder these are
    /// those of Claude Code that are used by default, and the home folders of all agents that are found. A folder is that of the
    /// agent, if one is named.
    ///
    /// # Errors
    /// When no agent has a name, or folders are given for several agents.
    pub fn choose_of(
        &self,
        agents: &[String],
        asked: &[PathBuf],
    ) -> Result<Vec<RootPlace>, Failure> {
        let others = agents.iter().filter(|agent| *agent != CLAUDE_CODE);
        let others: Vec<&String> = others.collect();
        others.iter().try_for_each(|agent| check_agent(agent))?;
        let has_own = agents.is_empty() || others.len() < agents.len();
        match (&others[..], asked) {
            ([], []) if agents.is_empty() => {
                let mut places = self.choose(&[]);
                places.extend(self.found_homes());
                Ok(places)
            }
            ([], []) => Ok(self.choose(&[])),
            ([], asked) => Ok(self.choose(asked)),
            (others, []) => {
                let mut places = if has_own {
                    self.choose(&[])
                } else {
                    Vec::new()
                };
                let homes = agent_homes().into_iter();
                let homes = homes.filter(|(agent, _)| others.iter().any(|other| other == agent));
                places.extend(homes.map(|(agent, home)| self.place_of(agent, home)));
                Ok(places)
            }
            ([agent], asked) if !has_own => {
                let places = asked.iter();
                let places = places.map(|home| self.place_of(agent, home.clone()));
                Ok(places.collect())
            }
            _ => Err(Failure::option(
                "agent",
                "a folder is that of one agent; name one agent with `root`",
            )),
        }
    }

    /// Returns the home folders of agents on this machine, and those that are gone and have an archive.
    fn found_homes(&self) -> impl Iterator<Item = RootPlace> {
        let homes = agent_homes().into_iter();
        let places = homes.map(|(agent, home)| (agent, self.place_of(agent, home)));
        let found = places.filter(|(agent, place)| {
            let has_archive = || place.is_archive_by_default && place.has_archive();
            // A build without other agents shows none of their archives.
            is_home(agent, &place.folder) || check_agent(agent).is_ok() && has_archive()
        });
        found.map(|(_, place)| place)
    }

    /// Returns the home folder of an agent as a root.
    fn place_of(&self, agent: &str, home: PathBuf) -> RootPlace {
        let asked = self.archive.as_deref();
        let placed = self.archives_of_agents.get(agent).map(PathBuf::as_path);
        RootPlace::of_agent(agent, home, asked.or(placed))
    }

    /// Returns the names of the roots, and their folders.
    pub fn names(&self) -> impl Iterator<Item = (&str, &Path)> {
        let roots = self.roots.iter();
        roots.map(|root| (&*root.name, &*root.folder))
    }

    /// Returns the configuration file, which need not exist.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the options to open the archives: with the keys in the file `identity`.
    ///
    /// # Errors
    /// When the keys cannot be read.
    pub fn archive_options(&self, identity: Option<&Path>) -> Result<ArchiveOptions, Failure> {
        let name = self.machine.clone().unwrap_or_else(machine_name);
        let mut options = self
            .buckets
            .in_options(ArchiveOptions::new().machine(&name));
        if let Some(folder) = data_folder() {
            options = options.local_folder(&folder.join("archives"));
        }
        let Some(file) = identity else {
            return Ok(options);
        };
        let identities = Identities::read(file);
        let bad = |error: transcript_archive::Error| {
            Failure::new("bad-identity", error.to_string()).at(file)
        };
        Ok(options.identities(identities.map_err(bad)?))
    }

    /// Returns the address of an archive in a bucket, with which it can be named; for one on this machine, its folder.
    #[must_use]
    pub fn address_of(&self, archive: &Path) -> String {
        let address = self.buckets.address_of(archive);
        address.unwrap_or_else(|| archive.display().to_string())
    }

    /// Says for each bucket that was used which requests were made, a line each.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.buckets.requests()
    }

    /// Opens roots, and returns them with a disk on which all archives of this user have sessions as files. An archive is read
    /// when something in it is asked for.
    #[must_use]
    pub fn open(
        &self,
        places: &[RootPlace],
        options: &ArchiveOptions,
    ) -> (Vec<Root>, Arc<dyn ReadDisk>, Arc<Homes>) {
        let mut disks = HashMap::<PathBuf, Arc<ArchiveDisk>>::new();
        let mut disk_at = |folder: &PathBuf| {
            let disk = disks.entry(folder.clone());
            let disk = disk.or_insert_with(|| Arc::new(ArchiveDisk::with(folder, options.clone())));
            Arc::clone(disk)
        };
        let named = self.roots.iter().map(|root| root.folder.clone());
        let all: Vec<PathBuf> = named.chain(self.others.clone()).collect();
        let homes = Arc::new(Homes::on(Arc::new(RealDisk)));
        for place in places {
            if let Some(agent) = &place.maker {
                // The name was checked when the place was chosen.
                let _ = homes.add(agent, &place.folder);
            }
        }
        let live: Arc<dyn Disk> = Arc::new(SessionsDisk::new(
            Arc::new(RealDisk) as Arc<dyn Disk>,
            Arc::clone(&homes),
        ));
        let roots = places.iter().map(|place| {
            // Whether one in a bucket is there is asked for when something in it is.
            let may_be = |folder: &&PathBuf| options.is_in_bucket(folder) || is_archive(folder);
            let archives = place.archives().filter(may_be);
            let archives = archives.map(|folder| {
                if let Some(agent) = &place.maker {
                    let disk = disk_at(folder);
                    let home = AgentArchive::new(agent, &disk, &homes);
                    // The name was checked when the place was chosen.
                    let _ = homes.add_archived(agent, &disk);
                    RootArchive::of_home(disk, Arc::new(home))
                } else if place.has_whole_archive {
                    RootArchive::new(disk_at(folder))
                } else {
                    RootArchive::of(disk_at(folder), &place.folder, &all)
                }
            });
            Root {
                name: Arc::clone(&place.name),
                archives: archives.collect(),
                store: Store::on(Arc::clone(&live), &place.folder),
            }
        });
        let roots = roots.collect();
        // A path in the archive of a root that is not in use leads there as well.
        let others = self.others.iter().map(|folder| {
            let name = folder.display().to_string().into();
            RootPlace::new(name, folder.clone(), self.archive.as_deref())
        });
        let others: Vec<RootPlace> = others.collect();
        for place in places.iter().chain(&self.roots).chain(&others) {
            for folder in place.archives() {
                disk_at(folder);
            }
        }
        let disks = disks.into_values().collect();
        let archives: Arc<dyn ReadDisk> = Arc::new(ArchiveDisks::new(disks));
        let disk = Arc::new(SessionsDisk::new(archives, Arc::clone(&homes)));
        (roots, disk, homes)
    }
}

impl RootPlace {
    /// The home folder of an agent, whose archive is in the folder that somebody asked for, else in its own.
    fn of_agent(agent: &str, home: PathBuf, asked: Option<&Path>) -> Self {
        let of_home = Self::new(agent.into(), home, asked);
        Self {
            maker: Some(agent.into()),
            ..of_home
        }
    }

    /// A root whose archive is in the folder that somebody asked for, else in its own.
    fn new(name: Arc<str>, folder: PathBuf, asked: Option<&Path>) -> Self {
        let common = data_folder().map(|data| data.join(COMMON_ARCHIVE));
        let real_folder = real(&folder);
        let is_home = home_projects_folder().is_some_and(|home| real(&home) == real_folder);
        let by_default = match &common {
            Some(common) if !is_home => {
                Some(common.with_file_name(Archive::folder_name(&real_folder)))
            }
            common => common.clone(),
        };
        Self {
            name,
            folder,
            maker: None,
            common_archive: common.filter(|_| asked.is_none() && !is_home),
            is_archive_by_default: asked.is_none() && !is_home,
            has_whole_archive: false,
            archive: asked.map(Path::to_owned).or(by_default),
        }
    }

    /// Returns the folders in which its archived sessions may be.
    fn archives(&self) -> impl Iterator<Item = &PathBuf> {
        // Earlier versions captured no other agents.
        let common = self.common_archive.iter();
        let common = common.filter(|_| self.maker.is_none());
        self.archive.iter().chain(common)
    }

    /// Returns whether its archive exists.
    fn has_archive(&self) -> bool {
        self.archive.as_deref().is_some_and(is_archive)
    }

    /// Returns the public keys to which a new archive is to be encrypted: those of the archive that earlier versions captured every
    /// root in. So what somebody wants encrypted is not stored in the clear from now on.
    #[must_use]
    pub fn encrypted_like(&self, options: &ArchiveOptions) -> ArchiveOptions {
        let is_new = self
            .archive
            .as_ref()
            .is_some_and(|folder| !is_archive(folder));
        let common = self.common_archive.as_ref().filter(|_| is_new);
        let common = common.and_then(|folder| Archive::open_with(folder, options).ok());
        match common {
            Some(common) if !common.recipients().is_empty() => {
                options.clone().encrypt_to(common.recipients().to_vec())
            }
            _ => options.clone(),
        }
    }

    /// Writes the name of the root into its archive, if the archive is in its default folder: so the root is known when
    /// sessions of the archive of earlier versions are divided among the roots.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn mark_archive(&self) -> std::io::Result<()> {
        let Some(archive) = self.archive.as_ref().filter(|_| self.is_archive_by_default) else {
            return Ok(());
        };
        let file = archive.join(ROOT_FILE);
        let name = real(&self.folder);
        let name = name.as_os_str().as_encoded_bytes();
        if RealDisk
            .read(&file, MAX_ROOT_FILE_LEN)
            .is_ok_and(|text| text == name)
        {
            return Ok(());
        }
        let new = format!("{ROOT_FILE}.{}.new", uuid::Uuid::new_v4());
        RealDisk.replace(&file, &archive.join(new), name)
    }
}

/// Returns a folder with its links resolved, if it is there; else its absolute path.
fn real(folder: &Path) -> PathBuf {
    let real = RealDisk.real_path(folder);
    let real = real.or_else(|_| std::path::absolute(folder));
    real.unwrap_or_else(|_| folder.to_owned())
}

/// Says why a text cannot be the name of a root.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "roots: {name:?} is not a name: use letters, digits, - and _"
    ))
}

/// Returns whether there is an archive in a folder.
#[must_use]
pub fn is_archive(folder: &Path) -> bool {
    RealDisk.exists(&folder.join("archive.json"))
}

/// Returns the roots that the archives in the data folder name.
fn named_by_archives() -> Vec<PathBuf> {
    let Some(data) = data_folder() else {
        return Vec::new();
    };
    let entries = RealDisk.list(&data).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        let name = entry.name.to_string_lossy();
        name.starts_with("archive-")
    });
    let named = folders.filter_map(|entry| {
        let file = data.join(entry.name).join(ROOT_FILE);
        let name = RealDisk.read(&file, MAX_ROOT_FILE_LEN).ok()?;
        Some(PathBuf::from(String::from_utf8(name).ok()?))
    });
    named.collect()
}

fn read_config(file: &Path) -> Result<ConfigFile, Failure> {
    let wrong = |why: String| Failure::options(format!("{}: {why}", file.display())).at(file);
    let text = match RealDisk.read(file, MAX_FILE_LEN) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(ConfigFile::default());
        }
        text => text.map_err(|error| wrong(message_of(&error)))?,
    };
    let text = String::from_utf8(text).map_err(|_| wrong("it is not text in UTF-8".to_owned()))?;
    let config = toml::from_str::<ConfigFile>(&text);
    config.map_err(|error| {
        let line = error
            .span()
            .map(|span| text[..span.start].lines().count().max(1));
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        wrong(format!("{line}{}", error.message().trim_end()))
    })
}
