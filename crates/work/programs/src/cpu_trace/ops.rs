//! Translation of a trace's instructions to operations of a job.

use proto::{
    cpu::{NEEDS, Op, OpKind},
    memory::PAGE,
};

use super::{Branch, Instruction, LINE, MOST_COUNT};
use rustc_hash::FxHashMap;

/// Address of an instruction if the format does not record it: the end of the single line that all text then is.
const UNTOLD: u32 = LINE as u32 - 4;
/// Number of instructions in a line of text on the machine.
const LINE_COUNT: u16 = LINE as u16 / 4;

/// Pages of a program.
#[derive(Clone, Default, Debug)]
pub(super) struct Space {
    pub(super) data: Pages,
    pub(super) text: Pages,
}

impl Space {
    /// Marks the pages of an instruction as used.
    pub(super) fn touch(&mut self, one: &Instruction) {
        if let Some(pc) = one.pc {
            self.text.touch(pc);
        }
        for (address, _) in one.accesses.iter().flat_map(|access| access.parts()) {
            self.data.touch(address);
        }
    }
}

/// Consecutive instructions without accesses and dependences, not yet written.
#[derive(Clone, Copy, Default, Debug)]
struct Group {
    count: u16,
    /// Address of the last of them.
    pc: Option<u32>,
}

impl Group {
    /// Returns true if an instruction is in the same line of text.
    fn beside(self, pc: Option<u32>) -> bool {
        self.pc.map(|pc| pc / LINE as u32) == pc.map(|pc| pc / LINE as u32)
    }
}

/// Writer of a job's operations.
#[derive(Debug)]
pub(super) struct Ops {
    /// Number of operations of the job so far, which is the number of the last one.
    written: u32,
    /// Number of the operation that last wrote each register; zero if none of the job has.
    writers: [u32; 256],
    group: Group,
}

/// Effect of an operation, without its dependences.
struct Does {
    kind: OpKind,
    address: u64,
    width: u8,
}

const COMPUTES: Does = Does { kind: OpKind::Compute, address: 0, width: 0 };

impl Ops {
    /// Creates a writer at the beginning of a job.
    pub(super) fn new() -> Ops {
        Ops { written: 0, writers: [0; 256], group: Group::default() }
    }

    /// Adds the next instruction of the job. Part of it may be written together with the instructions after it.
    ///
    /// Returns `None` if it uses a page that the space does not have.
    pub(super) fn instruction(
        &mut self,
        one: &Instruction,
        space: &mut Space,
        tape: &mut Vec<Op>,
    ) -> Option<()> {
        let pc = match one.pc {
            Some(pc) => Some(space.text.place(pc)? as u32),
            None => None,
        };
        if one.is_plain() {
            self.plain(one.count, pc, tape);
            return Some(());
        }
        let mut count = self.lead(one.count, pc, tape);
        let pc = pc.unwrap_or(UNTOLD);
        let mut next = || std::mem::replace(&mut count, 1);
        let stores = one.accesses.iter().any(|access| access.store);
        // An instruction that needs all parts of the loaded data waits for an operation that joins them.
        let joined = stores || one.branch != Branch::None || one.to != [0; 2];
        let mut result = 0;
        for (address, width) in one.accesses.iter().filter(|a| !a.store).flat_map(|a| a.parts()) {
            let load = Does { kind: OpKind::Load, address: space.data.place(address)?, width };
            let needs = self.registers(0, one.from);
            let loaded = self.push(load, next(), needs, pc, tape);
            result = match joined && result > 0 {
                true => self.push(COMPUTES, 1, [result, loaded], pc, tape),
                false => loaded,
            };
        }
        if one.accesses.is_empty() || one.branch != Branch::None {
            let kind = match one.branch {
                Branch::None => OpKind::Compute,
                Branch::NotTaken => OpKind::NotTaken,
                Branch::Taken => OpKind::Taken,
            };
            let needs = self.registers(result, one.from);
            result = self.push(Does { kind, ..COMPUTES }, next(), needs, pc, tape);
        }
        let mut stored = 0;
        for (address, width) in one.accesses.iter().filter(|a| a.store).flat_map(|a| a.parts()) {
            let store = Does { kind: OpKind::Store, address: space.data.place(address)?, width };
            let needs = self.registers(result, one.from);
            stored = self.push(store, next(), needs, pc, tape);
        }
        let writer = if result > 0 { result } else { stored };
        one.to.iter().filter(|to| **to > 0).for_each(|to| self.writers[usize::from(*to)] = writer);
        Some(())
    }

    /// Writes the instructions that are not written yet.
    pub(super) fn flush(&mut self, tape: &mut Vec<Op>) {
        let Group { count, pc } = std::mem::take(&mut self.group);
        if count > 0 {
            // The machine takes four bytes of text for each instruction: all of them are in the line.
            let least = |pc: u32| pc / LINE as u32 * LINE as u32 + 4 * u32::from(count.min(LINE_COUNT) - 1);
            let pc = pc.map_or(UNTOLD, |pc| pc.max(least(pc)));
            self.push(COMPUTES, count, [0; 2], pc, tape);
        }
    }

    /// Makes the following instructions independent of all earlier ones.
    pub(super) fn forget(&mut self, tape: &mut Vec<Op>) {
        self.flush(tape);
        self.writers = [0; 256];
    }

    /// Adds instructions without any effect to describe.
    fn plain(&mut self, count: u16, pc: Option<u32>, tape: &mut Vec<Op>) {
        let most = if pc.is_some() { LINE_COUNT } else { MOST_COUNT };
        if !self.group.beside(pc) || self.group.count + count > most {
            self.flush(tape);
        }
        self.group = Group { count: self.group.count + count, pc };
    }

    /// Returns the number of instructions for the first operation of an instruction, including those of the group if
    /// they precede it in its line.
    fn lead(&mut self, count: u16, pc: Option<u32>, tape: &mut Vec<Op>) -> u16 {
        let both = self.group.count + count;
        let fits = match pc {
            Some(pc) => 4 * u32::from(both - 1) <= pc % LINE as u32,
            None => both <= MOST_COUNT,
        };
        if self.group.beside(pc) && fits {
            self.group = Group::default();
            return both;
        }
        self.flush(tape);
        count
    }

    /// Returns the dependences of an operation that needs a result and registers: of more than two writers the latest
    /// two, which usually finish last.
    fn registers(&self, result: u32, from: [u8; 4]) -> [u32; 2] {
        let mut latest = [result, 0];
        for writer in from.map(|register| self.writers[usize::from(register)]) {
            if writer > latest[0] {
                latest = [writer, latest[0]];
            } else if writer < latest[0] {
                latest[1] = latest[1].max(writer);
            }
        }
        latest
    }

    /// Appends an operation; returns its number.
    fn push(&mut self, does: Does, count: u16, needs: [u32; 2], pc: u32, tape: &mut Vec<Op>) -> u32 {
        self.written += 1;
        let needs = needs.map(|number| match self.written - number {
            away if number > 0 && away <= u32::from(NEEDS) => away as u16,
            _ => 0,
        });
        let Does { kind, address, width } = does;
        tape.push(Op { kind, width, count, needs, pc, address });
        self.written
    }
}

// Translation of a program's addresses to the address space of a service: pages in the order of their first use.

/// Pages, in the order of use.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// New place of each page.
    places: FxHashMap<u64, u64>,
    /// Page that was looked up last, and its place: most accesses are to the same page again.
    last: (u64, u64),
}

impl Default for Pages {
    fn default() -> Pages {
        // No page has the largest number.
        Pages { places: FxHashMap::default(), last: (u64::MAX, 0) }
    }
}

impl Pages {
    /// Returns the number of used pages.
    pub(super) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Marks the page of an address as used.
    #[inline]
    pub(super) fn touch(&mut self, address: u64) {
        let page = address / PAGE;
        if page != self.last.0 {
            let next = self.places.len() as u64;
            self.last = (page, *self.places.entry(page).or_insert(next));
        }
    }

    /// Returns the new address, if its page has been used.
    #[inline]
    pub(super) fn place(&mut self, address: u64) -> Option<u64> {
        let page = address / PAGE;
        if page != self.last.0 {
            self.last = (page, *self.places.get(&page)?);
        }
        Some(self.last.1 * PAGE + address % PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn pages_lie_in_the_order_of_their_first_use() {
        let mut pages = Pages::default();
        for address in [0x7fff_f123, 0x40_0000, 0x7fff_f000, 0x40_1000, u64::MAX] {
            pages.touch(address);
        }
        assert_eq!(pages.len(), 4);
        let placed = [0x7fff_fffe, 0x40_0000, 0x40_1001, u64::MAX, 0x40_2000, 0].map(|at| pages.place(at));
        assert_eq!(placed, [Some(0xffe), Some(0x1000), Some(0x2001), Some(0x3fff), None, None]);
    }
}
