//! The home folder of the agent that gets a session, and the command that continues the session there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use transcript_import::handover::Target;
use transcript_session::{Store, agent_homes};
use transcript_storage::ReadDisk;

use super::settings::{AGENTS, FILE_FORMATS, HandOverSettings};
use crate::failure::Failure;

/// The home folder of an agent.
pub(super) struct TargetHome {
    pub(super) path: PathBuf,
    /// Whether it is the one that the agent uses if nothing else is said.
    is_usual: bool,
}

/// Returns the target of this name.
pub(super) fn target_named(name: &str) -> Result<Target, Failure> {
    name.parse::<Target>().map_err(|_| {
        let known: Vec<&str> = AGENTS.into_iter().chain(FILE_FORMATS).collect();
        let known = known.join(", ");
        let message = match name {
            "opencode" => format!("OpenCode keeps its sessions in a database, which it alone writes; known are {known}"),
            _ => format!("{name:?} is not an agent that a session can be handed over to; known are {known}"),
        };
        Failure::option("to", message)
    })
}

impl TargetHome {
    /// Returns the home folder that the settings name, else that of this user.
    pub(super) fn of(
        target: Target,
        settings: &HandOverSettings,
        disk: &dyn ReadDisk,
    ) -> Result<Self, Failure> {
        let usual = usual_home(target);
        let Some(path) = settings.target_home.clone().or_else(|| usual.clone()) else {
            let message = if Target::FILES.contains(&target) {
                "name the folder of the file"
            } else {
                "there is no home folder of this user; name that of the agent"
            };
            return Err(Failure::option("targetHome", message));
        };
        let path = std::path::absolute(&path).unwrap_or(path);
        if !settings.creates_home && !disk.is_folder(&path) {
            return Err(missing(target, &path, settings.target_home.is_some()));
        }
        let is_usual = usual.is_some_and(|usual| usual == path);
        Ok(Self { path, is_usual })
    }

    /// Returns the variables that must be set so that the agent uses this folder; `None` if it cannot be made to.
    pub(super) fn variables(&self, target: Target) -> Option<BTreeMap<String, String>> {
        if self.is_usual {
            return Some(BTreeMap::new());
        }
        let name = target.home_variable()?.to_owned();
        let path = self.path.to_str()?.to_owned();
        Some(BTreeMap::from([(name, path)]))
    }
}

fn usual_home(target: Target) -> Option<PathBuf> {
    if target == Target::ClaudeCode {
        let projects = Store::from_env()?;
        return projects.root().parent().map(Path::to_owned);
    }
    let homes = agent_homes().into_iter();
    let mut homes = homes.filter(|(agent, _)| *agent == target.name());
    homes.next().map(|(_, home)| home)
}

fn missing(target: Target, path: &Path, is_named: bool) -> Failure {
    if is_named {
        let message = format!("targetHome: {}: no such folder", path.display());
        return Failure::new("not-found", message).at(path);
    }
    let message = format!(
        "{}: no such folder: {target} was not used on this machine",
        path.display()
    );
    Failure::new("not-found", message)
        .at(path)
        .with_next(format!(
            "start {target} once, or name its home folder with --target-home"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_all_targets() {
        assert_eq!(Target::ALL.map(Target::name), AGENTS);
        assert_eq!(Target::FILES.map(Target::name), FILE_FORMATS);
    }
}
