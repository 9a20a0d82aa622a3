//! The light form of the command, which knows the names of what only the full one has.

#[cfg(not(all(feature = "browse", feature = "import", feature = "serve")))]
use {anyhow::Result, clap::Args as ClapArgs, std::ffi::OsString};

/// Only in the full form, which `cargo install transcript-cli` installs
#[cfg(not(all(feature = "browse", feature = "import", feature = "serve")))]
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Whatever the full form takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

/// Refuses a command of the full form, whatever its arguments.
#[cfg(not(all(feature = "browse", feature = "import", feature = "serve")))]
pub(crate) fn refuse(command: &str, Args { words: _ }: &Args) -> Result<u8> {
    Err(missing(command))
}

/// Returns the error for a part of the full form.
#[cfg(not(all(
    feature = "browse",
    feature = "import",
    feature = "serve",
    feature = "encryption"
)))]
pub(crate) fn missing(what: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{what}: this is the light form of transcript; install the full one: `cargo install transcript-cli`"
    )
}
