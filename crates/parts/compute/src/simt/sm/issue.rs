//! Issue: a warp's next instruction, its dependences, and its start. The helper thread issues beside the warps.

use super::load_store::Op;
use super::{Env, Sm, Wake};
use crate::simt::sched::{WarpView, Warps, slots};
use engine::{Mutant, planted_nth};
use proto::memory::{AccessKind, Help};
use proto::simt::{Inst, InstKind};
use std::collections::VecDeque;

impl Sm {
    /// Ready warps whose instruction can be issued in a cycle.
    #[inline]
    pub(super) fn open(&self, cycle: u64, model: &super::Model) -> Warps {
        let mut open = self.ready & self.allowed & !(self.to_memory & self.held);
        if open & self.to_memory != 0 && self.load_store.is_full(model) {
            open &= !self.to_memory;
        }
        if self.sfu_free > cycle {
            open &= !self.to_sfu;
        }
        if self.shared_free > cycle {
            open &= !self.to_shared;
        }
        open
    }

    #[inline]
    pub(super) fn pick(&mut self, env: &Env<'_>) -> Option<u32> {
        let ready = self.open(env.cycle, env.model);
        if ready == 0 {
            return None;
        }
        let slot = self.scheduler.pick(&WarpView { ready, far: self.far });
        debug_assert!(slot.is_none_or(|slot| ready >> slot & 1 == 1), "a warp that is not ready was picked");
        if slot.is_none() {
            self.declined = ready;
        }
        slot
    }

    /// Issues the next instruction of a warp, or one repetition of it.
    pub(super) fn issue(&mut self, slot: u32, env: &mut Env<'_>) {
        let warp = &mut self.warps[slot as usize];
        let inst = warp.inst;
        let counters = env.counters(warp.app);
        counters.warp_instructions += 1;
        counters.thread_instructions += u64::from(inst.mask.count_ones());
        if warp.left == 0 {
            warp.left = inst.count.max(1);
        }
        warp.left -= 1;
        let last = warp.left == 0;
        match inst.kind {
            InstKind::Alu if last => self.write(slot, inst.to, env.model.alu, env),
            InstKind::Alu => return,
            InstKind::Sfu => {
                self.sfu_free = env.cycle + env.model.sfu_interval;
                if !last {
                    return;
                }
                self.write(slot, inst.to, env.model.sfu, env);
            }
            InstKind::SharedLoad | InstKind::SharedStore => self.share(slot, &inst, env),
            InstKind::Load => self.access(slot, &inst, AccessKind::Read, env),
            InstKind::Store => self.access(slot, &inst, AccessKind::Write, env),
            InstKind::Atomic => self.access(slot, &inst, AccessKind::Atomic, env),
            InstKind::Barrier => {}
        }
        let warp = &mut self.warps[slot as usize];
        warp.left = 0;
        warp.next += 1;
        match inst.kind {
            InstKind::Barrier => self.arrive(slot, env),
            _ => self.advance(slot, env),
        }
    }

    /// Schedules the write of a register some cycles ahead.
    #[inline]
    fn write(&mut self, slot: u32, register: u8, cycles: u64, env: &Env<'_>) {
        if register != 0 {
            let warp = &mut self.warps[slot as usize];
            warp.pending.set(register);
            warp.outstanding += 1;
            self.ring.push(env.cycle + cycles, Wake { slot: slot as u8, register });
        }
    }

    fn share(&mut self, slot: u32, inst: &Inst, env: &mut Env<'_>) {
        let warp = &self.warps[slot as usize];
        let cycles = self.banks.cycles(warp.addresses(), inst.width);
        let counters = env.counters(warp.app);
        counters.shared += 1;
        counters.bank_conflicts += cycles - 1;
        self.shared_free = env.cycle + cycles;
        if inst.kind == InstKind::SharedLoad {
            self.write(slot, inst.to, env.model.shared + cycles - 1, env);
        }
    }

    fn access(&mut self, slot: u32, inst: &Inst, kind: AccessKind, env: &mut Env<'_>) {
        let warp = &mut self.warps[slot as usize];
        let to = if kind == AccessKind::Write { 0 } else { inst.to };
        let op = Op { kind, slot: slot as u8, app: warp.app, to, pc: inst.pc, left: 0, issued: env.now };
        let lines = self.load_store.enter(op, warp.addresses(), inst.width, env);
        if lines > 0 {
            warp.outstanding += 1;
            if to != 0 {
                warp.pending.set(to);
                warp.loading.set(to);
            }
        }
        let counters = env.counters(warp.app);
        counters.lines += u64::from(lines);
        match kind {
            AccessKind::Read | AccessKind::Own => counters.loads += 1,
            AccessKind::Write => counters.stores += 1,
            AccessKind::Atomic => counters.atomics += 1,
        }
    }

    /// Handles a warp's arrival at a barrier.
    fn arrive(&mut self, slot: u32, env: &mut Env<'_>) {
        self.withdraw(slot);
        self.far |= 1 << slot;
        let warp = &self.warps[slot as usize];
        let (app, block) = (warp.app, warp.block);
        env.counters(app).barriers += 1;
        self.blocks[block].waiting |= 1 << slot;
        self.release(block, env);
    }

    /// Releases the warps of a block from the barrier, if all running ones have arrived.
    fn release(&mut self, block: u32, env: &mut Env<'_>) {
        let waiting = self.blocks[block].waiting;
        if waiting == 0 || waiting.count_ones() < self.blocks[block].running {
            return;
        }
        self.blocks[block].waiting = 0;
        self.far &= !waiting;
        for slot in slots(waiting) {
            self.advance(slot, env);
        }
    }

    /// Removes the warp from those with an instruction to issue.
    #[inline]
    fn withdraw(&mut self, slot: u32) {
        let others = !(1 << slot);
        self.ready &= others;
        self.to_memory &= others;
        self.to_sfu &= others;
        self.to_shared &= others;
    }

    /// Fetches the warp's next instruction, from its program if the tape is at its end, and determines its dependences.
    pub(super) fn advance(&mut self, slot: u32, env: &mut Env<'_>) {
        self.withdraw(slot);
        let number = self.global(slot);
        let warp = &mut self.warps[slot as usize];
        if warp.next == warp.tape.insts.len() {
            warp.next = 0;
            warp.tape.clear();
            if warp.goes_on {
                warp.goes_on = env.programs.step(number, &mut warp.tape);
            }
            if warp.tape.insts.is_empty() {
                assert!(!warp.goes_on, "a program goes on without an instruction");
                return self.end(slot, env);
            }
        }
        warp.inst = warp.tape.insts[warp.next];
        let inst = &warp.inst;
        let bit = 1 << slot;
        match inst.kind {
            InstKind::Alu | InstKind::Barrier => {}
            InstKind::Sfu => self.to_sfu |= bit,
            InstKind::Load | InstKind::Store | InstKind::Atomic => self.to_memory |= bit,
            InstKind::SharedLoad | InstKind::SharedStore => self.to_shared |= bit,
        }
        if warp.pending.hold_up(inst) && !planted_nth(Mutant::EarlyIssue, 4) {
            warp.blocked = true;
            if warp.loading.hold_up(inst) {
                self.far |= bit;
            }
        } else {
            self.ready |= bit;
        }
    }

    /// Handles the issue of a warp's last instruction.
    fn end(&mut self, slot: u32, env: &mut Env<'_>) {
        self.scheduler.leave(slot);
        let warp = &mut self.warps[slot as usize];
        warp.over = true;
        let (block, quiet) = (warp.block, warp.outstanding == 0);
        self.blocks[block].running -= 1;
        self.release(block, env);
        if quiet {
            self.retire(slot, env);
        }
    }

    /// Frees the slot of a warp that has ended, with everything that it began.
    ///
    /// A slot is held until stores are acknowledged, as in GPGPU-Sim: a kernel's stores are visible to the next.
    fn retire(&mut self, slot: u32, env: &mut Env<'_>) {
        self.free |= 1 << slot;
        let number = self.warps[slot as usize].block;
        let block = &mut self.blocks[number];
        block.held -= 1;
        if block.held > 0 {
            return;
        }
        env.ended.push(block.app);
        let needs = block.needs;
        self.blocks.remove(number);
        self.blocks_left += 1;
        self.threads_left += needs.threads;
        self.registers_left += needs.registers;
        self.shared_left += needs.shared;
    }

    /// Handles a result of arithmetic or shared memory.
    #[inline]
    pub(super) fn written(&mut self, wake: Wake, env: &mut Env<'_>) {
        self.warps[usize::from(wake.slot)].pending.clear(wake.register);
        self.one_less(wake.slot.into(), env);
    }

    /// Handles a fully answered memory instruction.
    pub(super) fn finish(&mut self, op: Op, env: &mut Env<'_>) {
        let warp = &mut self.warps[usize::from(op.slot)];
        warp.pending.clear(op.to);
        warp.loading.clear(op.to);
        self.one_less(op.slot.into(), env);
    }

    /// Notes the end of something that the warp began.
    #[inline]
    fn one_less(&mut self, slot: u32, env: &mut Env<'_>) {
        let warp = &mut self.warps[slot as usize];
        warp.outstanding -= 1;
        if warp.over {
            if warp.outstanding == 0 {
                self.retire(slot, env);
            }
            return;
        }
        if !warp.blocked {
            return;
        }
        let inst = &warp.inst;
        let bit = 1 << slot;
        if !warp.pending.hold_up(inst) {
            warp.blocked = false;
            self.far &= !bit;
            self.ready |= bit;
        } else if !warp.loading.hold_up(inst) {
            self.far &= !bit;
        }
    }
}

// Helper thread of a multiprocessor: it executes instructions for other parts, beside the warps of applications.
//
// It has priority over them, and takes an issue slot per instruction. Each instruction needs the result of the previous
// one. The thread takes no slot of a warp, no registers and no cache: its instructions cost the same as arithmetic.

/// Work of the helper thread, first come, first served.
#[derive(Default)]
pub(super) struct Helper {
    waiting: VecDeque<Help>,
    /// Instructions of the first work item that have been issued.
    issued: u32,
    /// First cycle in which the next instruction may be issued.
    free: u64,
}

impl Helper {
    pub(super) fn push(&mut self, help: Help) {
        debug_assert!(help.instructions > 0, "nothing to execute: {help:?}");
        self.waiting.push_back(help);
    }

    /// First cycle at or after `from` in which an instruction can be issued; the last of all cycles without work.
    #[inline]
    pub(super) fn due(&self, from: u64) -> u64 {
        if self.waiting.is_empty() { u64::MAX } else { self.free.max(from) }
    }

    /// Issues an instruction, whose result is available `latency` cycles later; returns the work that ends with it.
    pub(super) fn issue(&mut self, cycle: u64, latency: u64) -> Option<Help> {
        self.free = cycle + latency;
        self.issued += 1;
        if self.waiting.front()?.instructions > self.issued {
            return None;
        }
        self.issued = 0;
        self.waiting.pop_front()
    }
}
