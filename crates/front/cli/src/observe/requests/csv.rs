//! Requests as CSV: a line of names, then a line each; what a request does not have is empty.

use crate::observe::sink::Sink;
use crate::output::Fault;
use machine::result::requests::{COLUMNS, Cell, columns};
use std::path::Path;

/// Makes the file with its line of names.
///
/// # Errors
/// It cannot be made.
pub(super) fn create(path: &Path) -> Result<Sink, Fault> {
    let mut sink = Sink::create(path)?;
    let names = columns().map(|(name, _)| name);
    sink.write(format_args!("{}\n", names.join(",")));
    Ok(sink)
}

/// Writes a request.
pub(super) fn write(sink: &mut Sink, row: &[Cell; COLUMNS]) {
    for (at, cell) in row.iter().enumerate() {
        let end = if at + 1 == COLUMNS { "\n" } else { "," };
        match cell {
            Cell::Whole(number) => sink.write(format_args!("{number}{end}")),
            Cell::Time(time) => sink.write(format_args!("{}.{:03}{end}", time.ps() / 1000, time.ps() % 1000)),
            Cell::Word(word) => sink.write(format_args!("{word}{end}")),
            Cell::Empty => sink.write(format_args!("{end}")),
        }
    }
}
