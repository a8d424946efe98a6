//! A recorded trace as a program: its instructions are those of the trace, whatever the machine's timing.

use proto::simt::{Inst, InstKind, LANES, Tape};

use crate::program::{Kernel, Program, Space, WarpAt};
use crate::simt_trace::code::{Paths, Place, Reader, Static, Warp};
use crate::simt_trace::space::Layout;

/// A kernel of a trace.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) kernel: Kernel,
    /// Its warps, block by block.
    pub(super) warps: Vec<Warp>,
}

/// Instructions of a step at most.
const STEP: usize = 32;

/// A warp at work.
#[derive(Clone, Copy, Debug)]
struct Running {
    reader: Reader,
    /// Its number in the grid.
    number: u64,
}

/// A recorded trace.
#[derive(Clone)]
pub(super) struct Trace {
    name: &'static str,
    kernels: Vec<Recorded>,
    insts: Vec<Static>,
    paths: Paths,
    layout: Layout,
    launched: usize,
    slots: Vec<Option<Running>>,
}

impl Trace {
    pub(super) fn new(
        name: &'static str,
        kernels: Vec<Recorded>,
        insts: Vec<Static>,
        paths: Paths,
        layout: Layout,
    ) -> Trace {
        Trace { name, kernels, insts, paths, layout, launched: 0, slots: Vec::new() }
    }

    /// Bytes that the instructions of all warps are held in.
    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        let warps: usize = self.kernels.iter().map(|kernel| kernel.warps.len()).sum();
        self.paths.bytes() + (warps * size_of::<Warp>()) as u64
    }
}

impl Program for Trace {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> &Space {
        &self.layout.space
    }

    fn copy(&self) -> Box<dyn Program> {
        Box::new(self.clone())
    }

    fn launch(&mut self) -> Option<Kernel> {
        let recorded = self.kernels.get(self.launched)?;
        self.launched += 1;
        Some(recorded.kernel)
    }

    fn start(&mut self, slot: u32, at: WarpAt) {
        let recorded = &self.kernels[self.launched - 1];
        let warps = recorded.kernel.threads.div_ceil(LANES as u32);
        let number = u64::from(at.block) * u64::from(warps) + u64::from(at.warp);
        let reader = Reader::new(recorded.warps[number as usize]);
        let slot = slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        self.slots[slot] = Some(Running { reader, number });
    }

    fn step(&mut self, slot: u32, origin: u32, tape: &mut Tape) -> bool {
        let Some(running) = &mut self.slots[slot as usize] else { return false };
        for _ in 0..STEP {
            let Some((number, mask)) = running.reader.next(&self.paths) else { return false };
            let inst = &self.insts[number as usize];
            let kind = execute(inst, mask, origin, running, &self.paths, &self.layout, tape);
            if kind == InstKind::Barrier {
                break;
            }
        }
        running.reader.more(&self.paths)
    }
}

/// Writes an instruction to the tape.
#[inline]
fn execute(
    inst: &Static,
    mask: u32,
    origin: u32,
    running: &mut Running,
    paths: &Paths,
    layout: &Layout,
    tape: &mut Tape,
) -> InstKind {
    let start = tape.addresses.len();
    let mut write = |kind, width| {
        let Static { to, from, pc, .. } = *inst;
        let addresses = start as u32;
        tape.insts.push(Inst { kind, width, to, from, count: 1, pc: origin + pc, mask, addresses });
        kind
    };
    // Where no lane is at work, an instruction only takes its turn.
    if mask == 0 {
        return write(InstKind::Alu, 0);
    }
    if !inst.class.is_access() {
        return write(inst.class.kind(false), 0);
    }
    let place = running.reader.access(paths, &mut tape.addresses);
    let addresses = &mut tape.addresses[start..];
    match place {
        Place::Global => layout.global(addresses),
        Place::Shared => {}
        Place::Local => layout.local(running.number, inst.width, mask, addresses),
    }
    write(inst.class.kind(place == Place::Shared), inst.width)
}
