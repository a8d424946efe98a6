//! Output of memtrace, a lackey with words: `readi 0x4001ab70 3`, `readd 0x1ffeffe7c8 8`, `write 0x1ffeffe7c0 8`, the
//! size in decimal. Source: the repository oslab-ewha/memtrace.

use text::{Bad, Base, Fields};

use crate::cpu_trace::format::Format;
use crate::cpu_trace::format::text::{Events, Told, access, begins_with};

pub(in crate::cpu_trace) static FORMAT: Format = Format {
    name: "memtrace",
    title: "memtrace (`readi|readd|write address size`)",
    is: |start, all| begins_with(start, all, parse),
    reader: |input, source| Box::new(Events::new(input, source, parse)),
};

const WORDS: [&str; 3] = ["readi", "readd", "write"];
const HELP: &str = "a line is `readi|readd|write 0xADDRESS SIZE`";

/// Reads a line; none for a message of Valgrind or a blank line.
fn parse(line: &[u8]) -> Result<Option<Told>, Bad> {
    if line.trim_ascii().is_empty() || line.starts_with(b"==") {
        return Ok(None);
    }
    fields(line).map(Some).map_err(|bad| bad.help(HELP))
}

fn fields(line: &[u8]) -> Result<Told, Bad> {
    let mut fields = Fields::new(line);
    let at = fields.at();
    let word = fields.next("operation")?;
    let Some(kind) = WORDS.iter().position(|known| known.as_bytes() == word) else {
        let word = word.escape_ascii().to_string();
        return Err(Bad::new(format!("unknown operation: `{word}`")).at(at).nearest(&word, WORDS));
    };
    let address = fields.number("address", Base::Hex)?;
    let at = fields.at();
    let size = fields.number("size", Base::Decimal)?;
    fields.end()?;
    if kind == 0 { Ok(Told::Fetch(address)) } else { access(address, size, kind == 2, at).map(Told::Access) }
}
