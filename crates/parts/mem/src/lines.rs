//! The size of a line, as a memory is told it.

use config::SpecError;
use proto::memory::Lines;

/// The lines of a page, each of `line` bytes, for a memory that is built. Its spec does not say the size: the caches in front
/// of it have it.
///
/// # Errors
/// A size that memories do not have; its key is `line`.
pub fn lines_of(line: u64) -> Result<Lines, SpecError> {
    Lines::of(line).map_err(|error| SpecError::new("line", error.to_string()))
}
