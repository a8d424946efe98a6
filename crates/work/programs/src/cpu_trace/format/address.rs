//! Lists of addresses, as used in courses on caches: `l 0x1fffff58 6`, a load or store, its address in hexadecimal
//! and the instructions between it and the previous access. Source: the traces of UCSD's CSE 240A.
//!
//! The number of instructions between excludes the access itself: `mcf` has 727,230 accesses and 286,478 instructions
//! between.

use config::Diagnostic;
use text::{Bad, Base, Fields};

use super::super::{Access, Instruction, MOST_COUNT, Reader};
use crate::cpu_trace::format::Format;
use crate::cpu_trace::format::text::{Meant, begins_with};

pub(in crate::cpu_trace) static FORMAT: Format = Format {
    name: "addresses",
    title: "a list of addresses (`l|s address instructions-between`)",
    is: |start, all| begins_with(start, all, parse),
    reader: |input, source| Box::new(Addresses { lines: Meant::new(input, source), left: None }),
};

const HELP: &str = "a line is `l|s 0xADDRESS INSTRUCTIONS`: load or store, the address, and the instructions since the previous access";

/// Maximum instructions between two accesses: a larger number indicates a different format.
const MOST_BETWEEN: u64 = u32::MAX as u64;

/// An access, and the number of instructions between it and the previous one.
type Line = (Access, u64);

fn parse(line: &[u8]) -> Result<Option<Line>, Bad> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    fields(line).map(Some).map_err(|bad| bad.help(HELP))
}

fn fields(line: &[u8]) -> Result<Line, Bad> {
    let mut fields = Fields::new(line);
    let at = fields.at();
    let store = match fields.next("operation")? {
        b"l" => false,
        b"s" => true,
        word => return Err(Bad::new(format!("unknown operation: `{}`", word.escape_ascii())).at(at)),
    };
    let address = fields.number("address", Base::Hex)?;
    let at = fields.at();
    let between = fields.number("number of instructions", Base::Decimal)?;
    if between > MOST_BETWEEN {
        return Err(Bad::new(format!("too many instructions between two accesses: {between}")).at(at));
    }
    fields.end()?;
    Ok((Access::untold(address, store), between))
}

struct Addresses {
    lines: Meant,
    /// Access still to be returned, and the number of instructions before it.
    left: Option<Line>,
}

impl Reader for Addresses {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic> {
        into.clear();
        let told = match self.left.take() {
            Some(left) => Some(left),
            None => self.lines.next(parse)?,
        };
        let Some((access, between)) = told else { return Ok(false) };
        if between >= u64::from(MOST_COUNT) {
            into.count = MOST_COUNT;
            self.left = Some((access, between - u64::from(MOST_COUNT)));
        } else {
            into.count = between as u16 + 1;
            into.accesses.push(access);
        }
        Ok(true)
    }
}
