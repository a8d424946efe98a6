//! A host's path to its drives, and what takes block commands.

use linux::path::Host;
use programs::host::HostProgram;
use proto::file::Way;

/// A host's path to its drives, which its programs and its requests take.
pub(crate) struct Hosted {
    /// What the user calls it.
    pub(crate) name: String,
    pub(crate) host: Host<Box<dyn HostProgram>>,
    /// Its drives, by its numbers for them.
    pub(crate) drives: Vec<Target>,
    /// Its coprocessors, by its numbers for them.
    pub(crate) coprocessors: Vec<u16>,
}

/// What takes block commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A drive.
    Drive(u16),
    /// A stripe of several.
    Stripe(u16),
    /// The file that fills a drive of a host.
    File {
        /// Which host.
        host: u16,
        /// Which of its drives.
        disk: u16,
        /// How requests get there.
        way: Way,
    },
}
