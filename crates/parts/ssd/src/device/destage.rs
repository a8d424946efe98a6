//! Write-back of the buffer: a partial dirty unit is completed, joins an assembly of units until a program unit is
//! full, is programmed, and committed. Requests that waited for room or durability then go on.

use super::buffered::{Buffered, Place};
use super::evict::{Evictions, pace_of, purpose_of};
use super::{Device, Event, Out, milestone};
use engine::{Cx, Mutant, Time, planted};
use ftl::buffer::Flush;
use ftl::buffer::destage::Pace;
use ftl::purpose::Purpose;
use nand::dies::op::{Class, NO_OP, Op, OpKind};
use proto::{Lpn, Slot};

impl Device {
    /// Starts flushes of dirty units, up to the limit.
    pub(super) fn flush(&mut self, buffered: &mut Buffered, cx: &mut impl Cx<Event, Out>) {
        self.before_evictions(buffered, cx);
        while buffered.buffer.flushing() < buffered.parts.in_flight {
            let next = self.next_flush(buffered, cx.now());
            let asked = buffered.barriers.back().into_iter().chain(buffered.reads.back());
            let barrier = asked.map(|(barrier, _)| *barrier).max();
            let next = next.or_else(|| barrier.and_then(|b| buffered.buffer.flush_until(b)));
            let Some(flush) = next else { break };
            if let Some(shadow) = &mut self.shadow {
                shadow.line_leaves(flush.lpn, flush.present);
            }
            if Device::awaits_register(buffered, &flush) {
                continue;
            }
            buffered.translating += 1;
            if self.translates_flush(&flush, cx) {
                buffered.translating -= 1;
                self.destage(buffered, &flush, cx);
            }
        }
        self.after_evictions(buffered, cx);
        // No further unit will fill up the assemblies, and a request waits: pad them.
        let idle = buffered.programs + buffered.translating == 0
            && buffered.merging.is_empty()
            && buffered.stalled.is_empty();
        let somebody_waits =
            buffered.waiters > 0 || !buffered.barriers.is_empty() || !buffered.reads.is_empty();
        if idle && somebody_waits {
            for assembly in 0..buffered.assemblies.len() {
                self.program_assembly(buffered, assembly, cx);
            }
        }
    }

    /// Next flush wanted now, other than those of flush commands.
    fn next_flush(&mut self, buffered: &mut Buffered, now: Time) -> Option<Flush> {
        if buffered.evictions.is_some() {
            return self.next_eviction(buffered, now);
        }
        let is_throttled = buffered.waiters > 0 && buffered.is_throttled();
        let wanted = is_throttled || buffered.buffer.wants_flush();
        if wanted { buffered.buffer.next_flush() } else { None }
    }

    /// Continues the flush of a unit whose map entry is available.
    pub(super) fn destage_translated(&mut self, flush: &Flush, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        buffered.translating -= 1;
        self.destage(&mut buffered, flush, cx);
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
    }

    pub(super) fn destage(&mut self, buffered: &mut Buffered, flush: &Flush, cx: &mut impl Cx<Event, Out>) {
        let whole = flush.present == buffered.buffer.shape().unit();
        match self.ftl.lookup(flush.lpn) {
            Some(slot) if !whole => {
                self.stats.merge_reads += 1;
                self.ftl.pin(slot);
                let name = buffered.begin_merge(flush.lpn);
                let at = self.ftl.geo.address(slot);
                let bytes = self.bytes_of_rest(buffered, flush.lpn, slot);
                let mut op = Op::new(OpKind::Read, Class::HostRead, at, slot, 1, bytes, name);
                op.erases = self.erases_of_read(slot);
                op.is_slc = self.ftl.is_slc(slot);
                let name = self.backend.enqueue(cx.now(), Purpose::FlushMerge.tags(op));
                self.ledger.read_ops += 1;
                if let Some(shadow) = &mut self.shadow {
                    shadow.line_fetches(name, slot);
                }
            }
            None if !whole && self.merges_absent(buffered, flush, cx.now()) => {}
            _ => self.leaves(buffered, flush.lpn, cx),
        }
    }

    /// Continues the flush of a partial unit whose missing sectors have been read.
    pub(super) fn flush_merge_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        if self.ftl.unpin(op.slot) {
            self.reclaim_unpinned(op.slot, cx);
        }
        if let (Some(shadow), Some(buffered)) = (&mut self.shadow, &self.buffered) {
            shadow.line_is_completed(buffered.merging[op.owner], op.slot);
        }
        self.merged(op.owner, cx);
    }

    /// Continues the flush of a unit that is now complete.
    pub(super) fn merged(&mut self, merge: u32, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        let lpn = buffered.merging[merge];
        buffered.merging.remove(merge);
        self.leaves(&mut buffered, lpn, cx);
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
    }

    /// Adds a complete unit to the others of its program unit.
    fn leaves(&mut self, buffered: &mut Buffered, lpn: Lpn, cx: &mut impl Cx<Event, Out>) {
        if !self.takes_out(buffered, lpn, cx) {
            self.assemble(buffered, lpn, cx);
        }
    }

    pub(super) fn assemble(&mut self, buffered: &mut Buffered, lpn: Lpn, cx: &mut impl Cx<Event, Out>) {
        let placements = usize::from(buffered.placements);
        let of_pace = buffered.assemblies_of(buffered.buffer.pace(lpn));
        let mut assembly = if of_pace.len() == placements {
            of_pace.start
        } else {
            let stripe = self.ftl.geo.stripe_of_unit(lpn.0);
            of_pace.start + self.allocator.line(stripe, &self.ftl.geo) * placements
        };
        if placements > 1 {
            assembly += usize::from(buffered.buffer.placement(lpn));
        }
        buffered.assemblies[assembly].push(lpn);
        if buffered.buffer.pace(lpn) == Pace::Background {
            self.place_sets(buffered, assembly, cx);
        } else if buffered.assemblies[assembly].len() >= self.gathered(buffered) {
            self.program_assembly(buffered, assembly, cx);
        }
    }

    /// Number of units programmed at once: those of a program unit, or of a set if a policy decides on evictions.
    fn gathered(&self, buffered: &Buffered) -> usize {
        let geo = &self.ftl.geo;
        let units = if buffered.evictions.is_some() { Evictions::set(geo) } else { geo.units_per_program };
        units as usize
    }

    /// Groups of the next program units, beginning with `group`: that one alone, or for a set those of its die.
    fn groups_of_set(&self, buffered: &Buffered, group: u32) -> impl Iterator<Item = u32> + use<> {
        let geo = &self.ftl.geo;
        let (groups, planes) = if buffered.evictions.is_some() {
            (geo.groups_of_die(geo.first_die_of_group(group)), geo.shape.planes)
        } else {
            (group..=group, 1)
        };
        let before = (group - groups.start()) as usize;
        groups.cycle().skip(before).take(planes as usize)
    }

    /// Programs the units of an assembly; a partial program unit is padded.
    pub(super) fn program_assembly(
        &mut self,
        buffered: &mut Buffered,
        assembly: usize,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let stream = buffered.stream_of(assembly);
        while !buffered.assemblies[assembly].is_empty() {
            let stripe = self.ftl.geo.stripe_of_unit(buffered.assemblies[assembly][0].0);
            let group = self.allocator.place(stripe, stream, &self.ftl, &self.backend);
            for group in self.groups_of_set(buffered, group) {
                if buffered.assemblies[assembly].is_empty() {
                    break;
                }
                let closed = self.is_closed_to_host(group);
                if closed || !self.program_units(buffered, assembly, group, cx) {
                    if !buffered.stalled.contains(&(assembly, group)) {
                        buffered.stalled.push((assembly, group));
                    }
                    self.stalled |= !self.reclaim_for(group, cx);
                    return;
                }
            }
        }
    }

    /// Programs the first units of an assembly in a group, as many as fit into a program unit. Returns true if there
    /// was space.
    pub(super) fn program_units(
        &mut self,
        buffered: &mut Buffered,
        assembly: usize,
        group: u32,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let per_program = self.ftl.geo.units_per_program as usize;
        let stream = buffered.stream_of(assembly);
        let pace = buffered.pace_of(assembly);
        let slot = self.ftl.reserve_for_host(group, stream, pace);
        let units = buffered.assemblies[assembly].len().min(per_program);
        self.counts_cached(group, slot, units as u32);
        let Some(slot) = slot else { return false };
        for (n, lpn) in buffered.assemblies[assembly][..units].iter().enumerate() {
            self.ftl.fill(Slot(slot.0 + n as u64), Some(*lpn));
        }
        for n in units..per_program {
            self.ftl.fill(Slot(slot.0 + n as u64), None);
        }
        let at = self.ftl.geo.address(slot);
        let (bytes, register) = self.data_to_program(buffered, &buffered.assemblies[assembly][..units]);
        let mut op = Op::new(OpKind::Program, Class::HostProgram, at, slot, units as u16, bytes, 0);
        op.register = register;
        op.erases = self.erases_of(slot);
        op.is_slc = self.ftl.is_slc(slot);
        let name = self.program(purpose_of(pace), op, cx.now());
        if let Some(shadow) = &mut self.shadow {
            shadow.line_writes(name, &buffered.assemblies[assembly][..units]);
        }
        buffered.assemblies[assembly].drain(..units);
        buffered.programs += 1;
        if let Some(evictions) = &mut buffered.evictions {
            evictions.placed(pace, units as u32);
        }
        self.reclaim(group, cx);
        true
    }

    /// Bytes over the channel to program units from the buffer, or the plane of the register that has them.
    fn data_to_program(&self, buffered: &Buffered, lpns: &[Lpn]) -> (u32, u32) {
        let whole = self.unit_bytes as u32;
        if let Place::Registers(registers) = &buffered.place {
            // A program unit is one map unit where registers gather writes.
            let register = registers.source(lpns[0]);
            return (if register == NO_OP { whole } else { 0 }, register);
        }
        if !buffered.parts.moves_sectors {
            return (lpns.len() as u32 * whole, NO_OP);
        }
        // The unit's data on flash has been read, to be programmed with the rest.
        let of = |lpn: Lpn| match self.ftl.lookup(lpn) {
            Some(_) => whole,
            None => buffered.buffer.flushing_sectors(lpn) * 512,
        };
        (lpns.iter().map(|lpn| of(*lpn)).sum(), NO_OP)
    }

    /// Completes a durable program unit of flushed data.
    pub(super) fn flush_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        buffered.programs -= 1;
        if let Some(evictions) = &mut buffered.evictions {
            let pace = pace_of(op);
            evictions.done(pace, op.units.into());
            self.stats.evictions.units[pace as usize] += u64::from(op.units);
            self.stats.evictions.programs[pace as usize] += 1;
        }
        self.ftl.program(op.slot);
        let mut set = 0;
        for n in 0..u64::from(op.units) {
            let slot = Slot(op.slot.0 + n);
            let Some(lpn) = self.ftl.lpn_at(slot) else { continue };
            set = buffered.buffer.set_of(lpn);
            if !buffered.flushed(lpn).discarded || planted(Mutant::DiscardIgnored) {
                self.ftl.commit(lpn, slot);
                self.map_changed(lpn, cx);
            }
        }
        self.ftl.programmed(op.slot);
        self.mutate_program(op);
        // Room may have appeared, or data become durable: waiting requests go on.
        self.release_barriers(&mut buffered, cx);
        self.admit_waiting(&mut buffered, set, cx);
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
        self.resume_reads(cx);
    }

    /// Admits writes that wait for room in a set, while there is some.
    pub(super) fn admit_waiting(
        &mut self,
        buffered: &mut Buffered,
        set: usize,
        cx: &mut impl Cx<Event, Out>,
    ) {
        while let Some(id) = buffered.waiting[set].front().copied() {
            let before = self.active[id].next;
            self.accept_into(buffered, id, Some(set), cx);
            if buffered.waiting[set].front() == Some(&id) && self.active[id].next == before {
                break;
            }
        }
    }

    pub(super) fn release_barriers(&mut self, buffered: &mut Buffered, cx: &mut impl Cx<Event, Out>) {
        while let Some((barrier, id)) = buffered.barriers.front().copied() {
            // Data still on its way to a register is durable only if it has been deallocated since.
            if !buffered.buffer.is_durable(barrier) || self.active[id].pending > 0 {
                break;
            }
            buffered.barriers.pop_front();
            self.active[id].life.reach(milestone::DURABLE, cx.now());
            self.complete(id, cx);
        }
    }

    /// Groups in which assemblies wait for space.
    pub(super) fn groups_of_assemblies(&self) -> Vec<u32> {
        self.buffered.iter().flat_map(|b| &b.stalled).map(|(_, group)| *group).collect()
    }

    /// Programs assemblies that waited for space in a group.
    pub(super) fn wake_assemblies(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        let stalled = std::mem::take(&mut buffered.stalled);
        // An allocator that chooses the group may choose this one now.
        let may_go = |g: u32| g == group || !self.allocator.is_static();
        let (ready, rest): (Vec<_>, Vec<_>) = stalled.into_iter().partition(|(_, g)| may_go(*g));
        buffered.stalled = rest;
        for (assembly, _) in ready {
            self.program_assembly(&mut buffered, assembly, cx);
        }
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
    }
}
