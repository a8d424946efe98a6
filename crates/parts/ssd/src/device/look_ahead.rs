//! Read-ahead in time: units that a policy wants read before the host asks for them enter the buffer.
//!
//! A unit read ahead enters the buffer only if it has no line there and the map still names the slot that was read:
//! data written by the host meanwhile is never covered. A read that arrives while its unit is in flight joins the
//! operation, if joining is enabled; the unit then does not enter, because its reader has it.

use super::{Device, Event, Out};
use crate::check::Check;
use engine::{Cx, Mutant, Slab, Snapshot, Time, planted};
use ftl::buffer::Sectors;
use ftl::buffer::ahead::LookAhead;
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
use proto::{Command, Lpn, Slot};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::ops::Range;

/// Counters of units read ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AheadCounters {
    /// Units whose read was queued.
    pub issued: u64,
    /// Units that a read requested while they were in flight.
    pub met: u64,
    /// Units that did not enter the buffer: written, moved or deallocated meanwhile, or no room.
    pub dropped: u64,
    /// Units that entered the buffer.
    pub entered: u64,
    /// Units that a read found in the buffer.
    pub used: u64,
    /// Units evicted, overwritten or deallocated before any read.
    pub wasted: u64,
}

engine::snapshot!(AheadCounters { issued, met, dropped, entered, used, wasted });

impl AheadCounters {
    /// Counts since `origin`.
    fn since(&self, origin: &AheadCounters) -> AheadCounters {
        AheadCounters {
            issued: self.issued - origin.issued,
            met: self.met - origin.met,
            dropped: self.dropped - origin.dropped,
            entered: self.entered - origin.entered,
            used: self.used - origin.used,
            wasted: self.wasted - origin.wasted,
        }
    }
}

/// Read-ahead under way.
pub(super) struct Ahead {
    policy: Box<dyn LookAhead>,
    /// Units in flight, with a flag for those that a read has requested meanwhile.
    flying: FxHashMap<Lpn, bool>,
    /// Units of each operation; lists are reused.
    carried: Slab<Vec<(Lpn, Slot)>>,
    spare: Vec<Vec<(Lpn, Slot)>>,
    /// Counters, except for those of units in the buffer, which the buffer keeps.
    counters: AheadCounters,
}

impl Ahead {
    pub(super) fn new(policy: Box<dyn LookAhead>) -> Ahead {
        Ahead {
            policy,
            flying: FxHashMap::default(),
            carried: Slab::default(),
            spare: Vec::new(),
            counters: AheadCounters::default(),
        }
    }

    /// Appends the state while no read-ahead is in flight.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Ahead { policy, flying: _, carried: _, spare: _, counters } = self;
        policy.save(out);
        counters.save(out);
    }

    /// Replaces the state with one saved under the same policy; `None` if it is truncated or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.policy.load(input)?;
        self.counters = AheadCounters::load(input)?;
        Some(())
    }
}

impl Device {
    /// Counters of read-ahead since the window began; `None` without read-ahead.
    pub fn look_ahead_counters(&self) -> Option<AheadCounters> {
        Some(self.ahead_totals()?.since(&self.stats.origin.ahead))
    }

    /// Counters of read-ahead since the beginning.
    pub(super) fn ahead_totals(&self) -> Option<AheadCounters> {
        let (ahead, buffered) = self.ahead.as_ref().zip(self.buffered.as_ref())?;
        let lines = buffered.buffer.counters();
        Some(AheadCounters { used: lines.ahead_used, wasted: lines.ahead_wasted, ..ahead.counters })
    }

    /// Checks that every unit read ahead has exactly one outcome.
    pub(super) fn check_look_ahead(&self) -> Option<Check> {
        let AheadCounters { issued, met, dropped, entered, used, wasted } = self.ahead_totals()?;
        let under_way = self.ahead.as_ref().map_or(0, |a| a.flying.len() as u64);
        let unread = self.buffered.as_ref().map_or(0, |b| b.buffer.unread());
        let sides = [[issued, met + dropped + entered + under_way], [entered, used + wasted + unread]];
        let detail = format!(
            "issued {issued}: {met} met, {dropped} dropped, {entered} entered, {under_way} under way; of those that \
             entered {used} used, {wasted} wasted, {unread} unread"
        );
        Some(Check::new("look_ahead", sides.iter().all(|[a, b]| a == b), detail))
    }

    /// Starts read-ahead behind a read command.
    #[inline]
    pub(super) fn look_ahead(&mut self, command: &Command, now: Time) {
        if self.ahead.is_some() {
            self.looks_ahead(command, now);
        }
    }

    fn looks_ahead(&mut self, command: &Command, now: Time) {
        let Some(mut ahead) = self.ahead.take() else { return };
        if let Some(range) = ahead.policy.reads(command.offset, command.offset + command.bytes) {
            self.read_ahead(&mut ahead, &range, now);
        }
        self.ahead = Some(ahead);
    }

    fn read_ahead(&mut self, ahead: &mut Ahead, range: &Range<u64>, now: Time) {
        let end = range.end.div_ceil(self.unit_bytes).min(self.ftl.logical());
        let mut run = ahead.spare.pop().unwrap_or_default();
        for lpn in (range.start / self.unit_bytes..end).map(Lpn) {
            let Some(slot) = self.wants_ahead(ahead, lpn) else { continue };
            let page = self.ftl.geo.page_name(slot);
            if run.first().is_some_and(|(_, first)| self.ftl.geo.page_name(*first) != page) {
                let next = ahead.spare.pop().unwrap_or_default();
                self.queue_ahead(ahead, std::mem::replace(&mut run, next), now);
            }
            run.push((lpn, slot));
        }
        if run.is_empty() {
            ahead.spare.push(run);
        } else {
            self.queue_ahead(ahead, run, now);
        }
    }

    /// Slot of a unit that is neither buffered nor in flight, and whose map entry is available.
    fn wants_ahead(&self, ahead: &Ahead, lpn: Lpn) -> Option<Slot> {
        let is_known = self.translation.as_ref().is_none_or(|t| t.cache.has(lpn.0));
        let is_here = self.buffered.as_ref().is_none_or(|b| b.buffer.has_line(lpn));
        (is_known && !is_here && !ahead.flying.contains_key(&lpn)).then(|| self.ftl.lookup(lpn))?
    }

    /// Queues the read of units of one page.
    fn queue_ahead(&mut self, ahead: &mut Ahead, run: Vec<(Lpn, Slot)>, now: Time) {
        let Some((_, slot)) = run.first().copied() else { return };
        self.ftl.pin(slot);
        ahead.counters.issued += run.len() as u64;
        ahead.flying.extend(run.iter().map(|(lpn, _)| (*lpn, false)));
        let (units, bytes) = (run.len() as u16, run.len() as u32 * self.unit_bytes as u32);
        let slots = run.iter().map(|(_, slot)| *slot);
        let at = self.ftl.geo.address(slot);
        let mut op = Op::new(OpKind::Read, Class::AheadRead, at, slot, units, bytes, 0);
        op.erases = self.erases_of_read(slot);
        op.is_slc = self.ftl.is_slc(slot);
        let name = self.backend.enqueue(now, Purpose::Ahead.tags(op));
        self.ledger.read_ops += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.fetches(name, slots);
        }
        self.backend.ops[name].owner = ahead.carried.insert(run);
    }

    /// Marks a unit that a read has not found in the buffer: it may be in flight.
    #[inline]
    pub(super) fn meets_ahead(&mut self, command: &Command, unit: u64) {
        if let Some(ahead) = &mut self.ahead
            && let Some(asked) = ahead.flying.get_mut(&Lpn(unit))
        {
            // A stream resumes what it has not read to its end.
            *asked |= command.offset + command.bytes >= (unit + 1) * self.unit_bytes;
        }
    }

    /// Handles units that have been read ahead.
    pub(super) fn ahead_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        if self.ftl.unpin(op.slot) {
            self.reclaim_unpinned(op.slot, cx);
        }
        let (Some(mut ahead), Some(mut buffered)) = (self.ahead.take(), self.buffered.take()) else { return };
        let mut run = std::mem::take(&mut ahead.carried[op.owner]);
        ahead.carried.remove(op.owner);
        let unit: Sectors = buffered.buffer.shape().unit();
        for (lpn, slot) in run.drain(..) {
            if ahead.flying.remove(&lpn) == Some(true) {
                ahead.counters.met += 1;
                continue;
            }
            let is_fresh = self.ftl.lookup(lpn) == Some(slot) || planted(Mutant::StaleFill);
            if !is_fresh || !buffered.buffer.read_ahead(lpn) {
                ahead.counters.dropped += 1;
                continue;
            }
            ahead.counters.entered += 1;
            if let Some(shadow) = &mut self.shadow {
                shadow.line_fills(lpn, slot, unit, &self.ftl);
            }
        }
        ahead.spare.push(run);
        (self.ahead, self.buffered) = (Some(ahead), Some(buffered));
    }
}
