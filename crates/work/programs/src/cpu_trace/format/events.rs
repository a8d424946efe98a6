//! Texts of fetches and accesses, which follow the fetch of their instruction.

use config::Diagnostic;
use text::{Bad, Input};

use super::super::{Access, Instruction, Reader};
use crate::cpu_trace::format::text::Meant;

/// Accesses of an instruction at most; what has more goes on as another instruction of the same place. A gather of AVX-512 has 16.
const MOST: usize = 64;

/// What a line tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// An instruction at an address.
    Fetch(u64),
    /// An access.
    Access(Access),
    /// A load and a store of the same bytes, given as the load.
    Modify(Access),
}

/// What a line of the format tells; nothing if it is passed over.
pub(super) type Parse = fn(&[u8]) -> Result<Option<Told>, Bad>;

/// Puts accesses to their instructions. An access before all fetches is an instruction of its own: who
/// records or keeps accesses alone has a trace without fetches.
pub(super) struct Events {
    lines: Meant,
    parse: Parse,
    /// An instruction that has begun and of which no access has been read.
    begun: Option<u64>,
    /// A fetch has been read.
    fetched: bool,
}

impl Events {
    pub(super) fn new(input: Input, source: &str, parse: Parse) -> Events {
        Events { lines: Meant::new(input, source), parse, begun: None, fetched: false }
    }
}

impl Reader for Events {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic> {
        into.clear();
        into.pc = self.begun.take();
        while let Some(told) = self.lines.next(self.parse)? {
            match told {
                Told::Fetch(pc) => {
                    self.fetched = true;
                    if into.pc.is_some() {
                        self.begun = Some(pc);
                        return Ok(true);
                    }
                    into.pc = Some(pc);
                }
                Told::Access(access) => into.accesses.push(access),
                Told::Modify(load) => into.accesses.extend([load, Access { store: true, ..load }]),
            }
            let many = into.accesses.len() >= MOST;
            if many {
                self.begun = into.pc;
            }
            if many || !self.fetched {
                return Ok(true);
            }
        }
        Ok(into.pc.is_some())
    }
}
