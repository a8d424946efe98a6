//! How a replay reads a log, and what it leaves out.

use std::collections::BTreeMap;

/// Counts of what was read and is not replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// How its times were read, if they are not those of `strace -ttt`.
    pub(super) clock: Option<&'static str>,
    /// Calls that failed.
    pub(super) failed: u64,
    /// Calls on descriptors that are no files: pipes, sockets, terminals, directories, devices.
    pub(super) other: u64,
    /// Mappings of files, whose pages are touched without a call.
    pub(super) maps: u64,
    /// Calls on names, attributes and directories.
    pub(super) metadata: u64,
    /// Calls that were skipped because nothing is known of them, by name.
    pub(super) unknown: BTreeMap<String, u64>,
}

impl Notes {
    /// A sentence for each kind that occurred.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.clock.map(str::to_owned).into_iter().collect();
        let mut say = |n: u64, what: &str| {
            if n > 0 {
                sentences.push(format!("{n} {what}"));
            }
        };
        say(self.failed, "calls had failed: skipped");
        say(self.other, "calls on pipes, sockets, terminals, directories or devices: their time is slept");
        say(
            self.maps,
            "mappings of files: what is read or written through them is not in the log, and not replayed",
        );
        say(
            self.metadata,
            "calls on names, attributes or directories: their time is computed, what the file system does for them is left out",
        );
        for (name, n) in &self.unknown {
            say(*n, &format!("calls of `{name}`: skipped (unknown=skip)"));
        }
        sentences
    }
}
