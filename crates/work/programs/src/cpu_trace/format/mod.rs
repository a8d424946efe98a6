//! Formats of CPU traces: one file each, and one line in [`FORMATS`].

mod address;
mod champsim;
pub(super) mod compact;
pub(super) mod lackey;
mod memtrace;
mod text;

use ::text::Input;

use super::Reader;

/// A format.
pub(super) struct Format {
    /// Name in lists.
    pub(super) name: &'static str,
    /// Title of the format.
    pub(super) title: &'static str,
    /// Returns true if a file with this beginning has the format; `all` says that it is complete.
    pub(super) is: fn(start: &[u8], all: bool) -> bool,
    /// Creates a reader; the text is the file's name in diagnostics.
    pub(super) reader: fn(Input, &str) -> Box<dyn Reader>,
}

/// All formats, in the order in which content is tried.
pub(super) static FORMATS: &[&Format] =
    &[&compact::FORMAT, &lackey::FORMAT, &memtrace::FORMAT, &address::FORMAT, &champsim::FORMAT];
