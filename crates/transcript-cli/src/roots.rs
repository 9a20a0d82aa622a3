//! The roots that are in use.

use std::sync::Arc;

use anyhow::Result;
use transcript_ops::roots::{Root, RootPlace};
use transcript_ops::{self as ops, Failure};
use transcript_resume::Policy;
use transcript_storage::{ReadDisk, RealDisk};

use crate::ui::{RootsInUse, Ui};

/// Returns the roots that are in use: those of `--root`, else those that the configuration file says, else that of Claude Code.
pub(crate) fn roots(ui: &Ui) -> Result<&RootsInUse> {
    let roots = ui.roots()?;
    if roots.places.is_empty() {
        let failure = Failure::options("cannot find the home directory");
        return Err(failure
            .with_next("name the projects folder with --root DIR")
            .into());
    }
    // A default folder may not exist yet (Claude Code creates it); one that --root names must.
    let mut places = roots.places.iter();
    let missing = places.find(|place| !RealDisk.exists(&place.folder));
    if let Some(missing) = missing.filter(|_| !ui.asked_roots.is_empty()) {
        let folder = missing.folder.display();
        let file = roots.known.file().filter(|file| RealDisk.exists(file));
        let file = file.filter(|_| missing.folder.components().count() == 1);
        let or_name = file.map_or_else(String::new, |file| {
            format!(", and no root of this name in {}", file.display())
        });
        let text = format!("--root: {folder}: no such directory{or_name}");
        return Err(Failure::new("not-found", text).at(&missing.folder).into());
    }
    Ok(roots)
}

/// Returns the only root that is in use, for commands that need one.
pub(crate) fn one_root(ui: &Ui) -> Result<(&RootPlace, &Root)> {
    let roots = roots(ui)?;
    context(ui)
        .store()
        .map_err(|error| Failure::from(error).with_next("choose one with --root NAME"))?;
    let own = roots.places.iter().position(|place| place.maker.is_none());
    let own = own.unwrap_or_default();
    Ok((&roots.places[own], &roots.roots[own]))
}

/// Returns the only root that is in use, as [`one_root`] does, or the home folder of the only agent.
pub(crate) fn one_root_or_home(ui: &Ui) -> Result<(&RootPlace, &Root)> {
    let roots = roots(ui)?;
    match (&roots.places[..], &roots.roots[..]) {
        ([place], [root]) => Ok((place, root)),
        _ if roots.places.iter().all(|place| place.maker.is_some()) => {
            let text = "several agents are in use, and this needs one";
            let failure = Failure::option("agent", text);
            Err(failure.with_next("choose one with --agent NAME").into())
        }
        _ => one_root(ui),
    }
}

/// Returns the folders of the roots that are in use, for a message.
pub(crate) fn root_folders(ui: &Ui) -> String {
    let context = context(ui);
    let folders = context
        .roots()
        .iter()
        .map(|root| root.store.root().display().to_string());
    folders.collect::<Vec<_>>().join(" and ")
}

/// Shows damaged sessions of other agents as these show them, if the policy is that of the client.
pub(crate) fn follow_policy(ui: &Ui, policy: Policy) {
    if let Ok(roots) = ui.roots()
        && policy == Policy::Vendor
    {
        roots.homes.show_as_agents_do();
    }
}

/// Returns the context of operations: the roots, their archives and the disks.
pub(crate) fn context(ui: &Ui) -> ops::Context {
    // A root that is gone may have archived sessions.
    match ui.roots() {
        Ok(roots) => ops::Context::of(roots.roots.clone())
            .disk(ui.disk())
            .homes(Arc::clone(&roots.homes)),
        Err(_) => ops::Context::new(None).disk(ui.disk()),
    }
}
