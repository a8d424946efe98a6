//! Recording: what lackey writes while the program runs, as a file of a few bytes an instruction.

use std::io::{Read, Write};

use config::Diagnostic;
use text::Input;

use crate::cpu_trace::format::{compact, lackey};
use crate::cpu_trace::instruction::Instruction;
use crate::cpu_trace::ops::Space;

/// What lackey's output is called in diagnostics.
const SOURCE: &str = "lackey's output";

/// What has been recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Loads, those of a load and store included.
    pub loads: u64,
    /// Stores, those of a load and store included.
    pub stores: u64,
    /// Pages of 4 KiB that are loaded or stored.
    pub data_pages: u64,
    /// Pages of 4 KiB that instructions lie on.
    pub text_pages: u64,
}

/// Reads what lackey writes and writes it as a capture, up to its end, to `limit` instructions or until `stop` says so, which it
/// is asked at every instruction. Whatever ends it, the capture is whole.
///
/// # Errors
/// What is no line of lackey, and what cannot be read or written.
pub fn record(
    from: impl Read + Send + 'static,
    to: impl Write,
    limit: Option<u64>,
    stop: impl Fn() -> bool,
) -> Result<Counts, Diagnostic> {
    let unreadable = |error: std::io::Error| Diagnostic::new(format!("cannot read {SOURCE}: {error}"));
    let unwritable = |error: std::io::Error| Diagnostic::new(format!("cannot write the capture: {error}"));
    let mut reader = (lackey::FORMAT.reader)(Input::new(from).map_err(unreadable)?, SOURCE);
    let mut writer = compact::Writer::new(to).map_err(unwritable)?;
    let (mut counts, mut space, mut one) = (Counts::default(), Space::default(), Instruction::default());
    while !stop() && limit.is_none_or(|limit| counts.instructions < limit) {
        match reader.next(&mut one) {
            Ok(true) => {}
            Ok(false) => break,
            // Who is stopped does not end his line.
            Err(_) if stop() => break,
            Err(fault) => return Err(fault),
        }
        writer.write(&one).map_err(unwritable)?;
        space.touch(&one);
        let stores = one.accesses.iter().filter(|access| access.store).count() as u64;
        counts.instructions += u64::from(one.count);
        counts.loads += one.accesses.len() as u64 - stores;
        counts.stores += stores;
    }
    writer.finish().and_then(|mut to| to.flush()).map_err(unwritable)?;
    Ok(Counts { data_pages: space.data.len(), text_pages: space.text.len(), ..counts })
}
