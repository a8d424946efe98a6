//! Formats whose lines say all there is to say, but for a header that may come first.

use crate::trace::fault::Fault;
use crate::trace::format::{LineParser, Settings, is_header};
use crate::trace::record::Sheet;

/// Units of a file.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    /// A unit of its times is 10^`exponent` ps.
    pub(crate) exponent: u32,
    /// Bytes of an address unit.
    pub(crate) sector: u64,
}

/// Reads a line and puts its requests on the sheet.
pub(crate) type ParseLine = fn(&[u8], Units, &mut Sheet) -> Result<(), Fault>;

struct PlainLines {
    units: Units,
    /// Columns of the header, until the first line has been seen.
    header: Option<&'static str>,
    parse: ParseLine,
}

/// A parser that reads line by line with `parse`; the first line may be a header of the columns `header`.
pub(crate) fn plain(
    settings: &Settings<'_>,
    header: Option<&'static str>,
    parse: ParseLine,
) -> Box<dyn LineParser> {
    let units = Units { exponent: settings.exponent, sector: settings.sector };
    Box::new(PlainLines { units, header, parse })
}

impl LineParser for PlainLines {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        match self.header.take() {
            Some(header) if is_header(line, header) => Ok(()),
            _ => (self.parse)(line, self.units, sheet),
        }
    }
}
