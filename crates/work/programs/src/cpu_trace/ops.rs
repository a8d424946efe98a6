//! From instructions of a trace to operations of a job.

use proto::{
    cpu::{NEEDS, Op, OpKind},
    memory::PAGE,
};

use super::{Branch, Instruction, LINE, MOST_COUNT};
use rustc_hash::FxHashMap;

/// Where an instruction lies if the format does not say: at the end of the one line that all text is then.
const UNTOLD: u32 = LINE as u32 - 4;
/// Instructions that the machine takes a line of text for.
const LINE_COUNT: u16 = LINE as u16 / 4;

/// The pages of a program.
#[derive(Clone, Default, Debug)]
pub(super) struct Space {
    pub(super) data: Pages,
    pub(super) text: Pages,
}

impl Space {
    /// Uses the pages of an instruction.
    pub(super) fn touch(&mut self, one: &Instruction) {
        if let Some(pc) = one.pc {
            self.text.touch(pc);
        }
        for (address, _) in one.accesses.iter().flat_map(|access| access.parts()) {
            self.data.touch(address);
        }
    }
}

/// Instructions in a row that touch no memory and need nothing, not yet written.
#[derive(Clone, Copy, Default, Debug)]
struct Group {
    count: u16,
    /// Where the last of them lies.
    pc: Option<u32>,
}

impl Group {
    /// Whether an instruction lies in the same line of text.
    fn beside(self, pc: Option<u32>) -> bool {
        self.pc.map(|pc| pc / LINE as u32) == pc.map(|pc| pc / LINE as u32)
    }
}

/// Writes the operations of a job.
#[derive(Debug)]
pub(super) struct Ops {
    /// Operations that the job has so far: the number of the last.
    written: u32,
    /// Numbers of the operations that wrote the registers last; zero if none of the job has.
    writers: [u32; 256],
    group: Group,
}

/// What an operation does, less what it needs.
struct Does {
    kind: OpKind,
    address: u64,
    width: u8,
}

const COMPUTES: Does = Does { kind: OpKind::Compute, address: 0, width: 0 };

impl Ops {
    /// At the beginning of a job.
    pub(super) fn new() -> Ops {
        Ops { written: 0, writers: [0; 256], group: Group::default() }
    }

    /// The next instruction of the job. Some of it may be written with the instructions behind it.
    ///
    /// `None` if it uses a page that the space does not have.
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
        // Who needs all parts of what is loaded waits for an operation that does.
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

    /// Writes what has not been written yet.
    pub(super) fn flush(&mut self, tape: &mut Vec<Op>) {
        let Group { count, pc } = std::mem::take(&mut self.group);
        if count > 0 {
            // The machine takes four bytes of text for each instruction: all of them lie in the line.
            let least = |pc: u32| pc / LINE as u32 * LINE as u32 + 4 * u32::from(count.min(LINE_COUNT) - 1);
            let pc = pc.map_or(UNTOLD, |pc| pc.max(least(pc)));
            self.push(COMPUTES, count, [0; 2], pc, tape);
        }
    }

    /// What follows needs nothing of what has been.
    pub(super) fn forget(&mut self, tape: &mut Vec<Op>) {
        self.flush(tape);
        self.writers = [0; 256];
    }

    /// Instructions of which nothing is to be told.
    fn plain(&mut self, count: u16, pc: Option<u32>, tape: &mut Vec<Op>) {
        let most = if pc.is_some() { LINE_COUNT } else { MOST_COUNT };
        if !self.group.beside(pc) || self.group.count + count > most {
            self.flush(tape);
        }
        self.group = Group { count: self.group.count + count, pc };
    }

    /// Instructions that the first operation of an instruction stands for, with those of the group if they lie before it in its line.
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

    /// What an operation needs that needs a result and registers: of more than two writers the latest, which are the last
    /// to be done as a rule.
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

    /// Appends an operation; its number.
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

// From a program's addresses to the address space of a service: pages one behind the other in the order of their first use.

/// Pages, as they have been used.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// Where each lies now.
    places: FxHashMap<u64, u64>,
    /// The page that was looked for last, and where it lies: most accesses are to it again.
    last: (u64, u64),
}

impl Default for Pages {
    fn default() -> Pages {
        // No page has the highest number of all.
        Pages { places: FxHashMap::default(), last: (u64::MAX, 0) }
    }
}

impl Pages {
    /// Pages that have been used.
    pub(super) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Uses the page of an address.
    #[inline]
    pub(super) fn touch(&mut self, address: u64) {
        let page = address / PAGE;
        if page != self.last.0 {
            let next = self.places.len() as u64;
            self.last = (page, *self.places.entry(page).or_insert(next));
        }
    }

    /// Where an address lies now, if its page has been used.
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
