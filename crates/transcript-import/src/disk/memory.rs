//! What is known about the sessions of a home folder, in a file of a cache folder for the next process.
//!
//! It is only a help: a file that is missing, damaged or of another version is as if there were none, and what it says counts
//! only as long as the files of the agent are as it says.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript_storage::{Disk, ReadDisk, RealDisk};
use uuid::Uuid;

use super::known::Known;
use crate::Agent;
use crate::dialect::Policy;
use crate::opencode::List;

/// Changes with the form of the file, and with the lines that conversions have.
const FORM: u32 = 2;

/// The ending of the name of the file.
const ENDING: &str = "agents";

/// The maximum length of the file in bytes.
const MAX_LEN: usize = 256 << 20;

/// Where the file is, and what it is about.
#[derive(Debug)]
pub(super) struct MemoryFile {
    path: PathBuf,
    subject: Subject,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Subject {
    form: u32,
    /// The version of this library.
    version: String,
    agent: String,
    home: PathBuf,
    is_as_agent: bool,
}

/// What a home folder had.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) sessions: BTreeMap<String, Known>,
    pub(super) lists: BTreeMap<PathBuf, List>,
}

impl MemoryFile {
    /// Returns the file in `folder` about a home folder.
    pub(super) fn of(folder: &Path, agent: Agent, home: &Path, policy: Policy) -> Self {
        let real = RealDisk.real_path(home);
        let subject = Subject {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent: agent.name().to_owned(),
            home: real.unwrap_or_else(|_| home.to_owned()),
            is_as_agent: policy == Policy::Vendor,
        };
        let mut hasher = DefaultHasher::new();
        (&subject.agent, &subject.home, subject.is_as_agent).hash(&mut hasher);
        let name = format!("{:016x}.{ENDING}", hasher.finish());
        Self {
            path: folder.join(name),
            subject,
        }
    }

    /// Reads the file.
    pub(super) fn read(&self) -> Memory {
        let bytes = RealDisk.read(&self.path, MAX_LEN).unwrap_or_default();
        let read: Result<(Subject, Memory), _> = serde_json::from_slice(&bytes);
        match read {
            Ok((subject, memory)) if subject == self.subject => memory,
            _ => Memory::default(),
        }
    }

    /// Writes the file in place of an older one, as far as that is possible.
    pub(super) fn write(&self, memory: &Memory) {
        let Ok(bytes) = serde_json::to_vec(&(&self.subject, memory)) else {
            return;
        };
        if let Some(folder) = self.path.parent() {
            let new = folder.join(format!("{}.new", Uuid::new_v4()));
            // Without it the next process reads the sessions again.
            let _ = RealDisk
                .create_folder(folder)
                .and_then(|()| RealDisk.replace(&self.path, &new, &bytes));
        }
    }
}
