//! Output of Valgrind's lackey, `valgrind --tool=lackey --trace-mem=yes`: `I  0401ab70,3`, ` L 1ffeffe7c8,8`, ` S …`,
//! ` M …` (a load and a store), addresses in hexadecimal and bytes in decimal. Source: `lackey/lk_main.c` and the
//! manual of lackey.

use text::{Bad, Base, unsigned};

use crate::cpu_trace::format::Format;
use crate::cpu_trace::format::text::{Events, Told, access, begins_with};

pub(in crate::cpu_trace) static FORMAT: Format = Format {
    name: "lackey",
    title: "Valgrind's lackey (`--trace-mem=yes`)",
    is: |start, all| begins_with(start, all, parse),
    reader: |input, source| Box::new(Events::new(input, source, parse)),
};

const HELP: &str = "a line is `I  address,size`, ` L address,size`, ` S address,size` or ` M address,size`; record with \
                    --log-file or --log-fd, so that the program's own output is not mixed in";

/// Reads a line. Valgrind's own messages begin with the process number between `==`, `--` or `**`.
fn parse(line: &[u8]) -> Result<Option<Told>, Bad> {
    if line.trim_ascii().is_empty() || [&b"=="[..], b"--", b"**"].iter().any(|mark| line.starts_with(mark)) {
        return Ok(None);
    }
    let bad = |what: String, at: usize| Bad::new(what).at(at).help(HELP);
    let blanks = line.iter().take_while(|byte| **byte == b' ').count();
    let (kind, rest) = (line.get(blanks), line.get(blanks + 1..).unwrap_or_default());
    let Some(kind) = kind.filter(|kind| b"ILSM".contains(kind) && rest.first() == Some(&b' ')) else {
        return Err(bad("not a line of lackey".to_owned(), 0));
    };
    let from = blanks + 1 + rest.iter().take_while(|byte| **byte == b' ').count();
    let Some(comma) = line[from..].iter().position(|byte| *byte == b',') else {
        return Err(bad("the line ends before the size".to_owned(), line.len()));
    };
    let number = |what: &str, text: &[u8], at: usize, base: Base| {
        unsigned(text, base).ok_or_else(|| {
            bad(format!("the {what} is not a number of 64 bits: `{}`", text.escape_ascii()), at)
        })
    };
    let address = number("address", &line[from..from + comma], from, Base::Hex)?;
    let at = from + comma + 1;
    let size = number("size", line[at..].trim_ascii_end(), at, Base::Decimal)?;
    Ok(Some(match kind {
        b'I' => Told::Fetch(address),
        b'M' => Told::Modify(access(address, size, false, at)?),
        kind => Told::Access(access(address, size, *kind == b'S', at)?),
    }))
}
