//! Reading small files that a person has written.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::diag::{Diagnostic, Place};

/// The largest file. A system, a sweep or a job has a few kilobytes; what is larger is something else.
const LARGEST: u64 = 16 << 20;

/// Reads a text file.
///
/// # Errors
/// A file that cannot be read, is larger than 16 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    let shown = path.display().to_string();
    let unreadable = |fault: io::Error| {
        let help = match fault.kind() {
            io::ErrorKind::NotFound => {
                "is the path right? it is relative to the folder that the command runs in"
            }
            io::ErrorKind::IsADirectory => "name one of the files in it",
            _ => "the file must be readable by you",
        };
        Diagnostic::new(format!("cannot read `{shown}`: {fault}")).help(help)
    };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        let what = format!("`{shown}` is larger than {} MiB", LARGEST >> 20);
        return Err(
            Diagnostic::new(what).help("a file written by hand is expected; is it a trace or a result?")
        );
    }
    String::from_utf8(bytes).map_err(|fault| {
        let byte = fault.utf8_error().valid_up_to();
        let before = &fault.as_bytes()[..byte];
        let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
        let place = Place { source: shown.clone(), line, ..Place::default() };
        Diagnostic::new(format!("`{shown}` is not UTF-8 text (byte {byte})"))
            .at(place)
            .help("write it as UTF-8")
    })
}
