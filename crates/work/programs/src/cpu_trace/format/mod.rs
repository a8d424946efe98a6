//! The formats: one file each, and one line in [`FORMATS`].

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
    /// What it is called in lists.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) title: &'static str,
    /// Whether a file that begins so is one; `all` says that there is no more of it.
    pub(super) is: fn(start: &[u8], all: bool) -> bool,
    /// Reads one; the text is what diagnostics call the file.
    pub(super) reader: fn(Input, &str) -> Box<dyn Reader>,
}

/// Every format, in the order in which content is tried.
pub(super) static FORMATS: &[&Format] =
    &[&compact::FORMAT, &lackey::FORMAT, &memtrace::FORMAT, &address::FORMAT, &champsim::FORMAT];
