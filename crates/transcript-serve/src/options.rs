//! The options of the server.

use std::fmt;

use transcript_ops::Context;
use transcript_render::RenderOptions;

/// The options of the server: the sessions, and how they are shown.
pub struct ServeOptions {
    /// The store and the disks. [`Context::only_below_roots`] holds the server to their folders.
    pub context: Context,
    /// The rendering of items.
    pub render: RenderOptions,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// The token in the address; `None` for a new one. It gives access to every session of the context.
    pub token: Option<String>,
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ServeOptions");
        shown
            .field("context", &self.context)
            .field("port", &self.port);
        shown.finish_non_exhaustive()
    }
}
