//! The machines that capture in one archive: in a bucket, the paths of each are below `machines/NAME`.

/// The folder in the archive that has one folder for each machine.
pub(crate) const MACHINES: &str = "machines";

/// Returns what the paths of the files of a machine start with.
pub(crate) fn prefix(machine: &str) -> String {
    format!("{MACHINES}/{machine}/")
}

/// Returns the name of the machine that captured a file, by its path in the archive, and the path as on that machine. In archives that
/// are not in a bucket, paths name no machine.
pub(crate) fn on_machine(name: &str) -> (Option<&str>, &str) {
    let below = name.strip_prefix(MACHINES);
    let below = below.and_then(|below| below.strip_prefix('/')?.split_once('/'));
    below.map_or((None, name), |(machine, below)| (Some(machine), below))
}
