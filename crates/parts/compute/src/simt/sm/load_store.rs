//! Load-store unit: lines of instructions, one per cycle, through the first-level TLB and cache.
//!
//! Every line is a request of its own, and its milestones tile its life. Until it leaves for the network, hits, or has
//! to wait for another request, it waits for [`Stage::L1`]. A line that waits for a translation has
//! [`Stage::Tlb`], except for the load or atomic that asked for it: that one takes the milestones over which the memory
//! management unit has tallied. A line that waits for one on its way has [`Stage::L1Merge`].

use super::coalesce::Coalescer;
use super::l1::{L1, Misses, page_key};
use super::{Env, Event, Line, Out};
use crate::simt::spec::{GpuSpec, Model};
use engine::{Cx, List, Lists, Slab, Time};
use mem::mmu::tlb::Tlb;
use proto::memory::{Absent, Access, AccessKind, LINE, Stage, Translation};
use std::collections::VecDeque;

/// Placeholder for an unknown physical address.
const UNKNOWN: u64 = u64::MAX;

/// Memory instruction whose lines are under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub kind: AccessKind,
    pub slot: u8,
    pub app: u8,
    /// Register that it writes; zero for none.
    pub to: u8,
    pub pc: u32,
    /// Number of unanswered lines.
    pub left: u32,
    pub issued: Time,
}

impl Op {
    fn stores(&self) -> bool {
        self.kind == AccessKind::Write
    }
}

/// Condition before the unit can take its next line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Nothing,
    MissRegister,
    Merge(u16),
    Store,
    Translation,
}

/// Load-store unit of one multiprocessor.
pub(super) struct LoadStore {
    port: u16,
    queue: VecDeque<Line>,
    /// Lines whose translation has arrived; they have priority.
    translated: VecDeque<Line>,
    wait: Wait,
    ops: Slab<Op>,
    coalescer: Coalescer,
    tlb: Tlb,
    translating: Translating,
    l1: L1,
    misses: Misses,
    miss_registers: u32,
    /// Instruction of each outstanding store and atomic, and the free places.
    stores: Vec<u32>,
    free_stores: Vec<u32>,
}

impl LoadStore {
    pub(super) fn new(port: u16, spec: &GpuSpec) -> LoadStore {
        LoadStore {
            port,
            queue: VecDeque::new(),
            translated: VecDeque::new(),
            wait: Wait::Nothing,
            ops: Slab::default(),
            coalescer: Coalescer::default(),
            tlb: Tlb::new(spec.tlb.entries, spec.tlb.ways),
            translating: Translating::new(spec.tlb.misses.into()),
            l1: L1::new(&spec.l1),
            misses: Misses::new(spec.l1.miss_registers, spec.l1.merges),
            miss_registers: spec.l1.miss_registers.into(),
            stores: vec![0; spec.load_store.stores as usize],
            free_stores: (0..spec.load_store.stores).rev().collect(),
        }
    }

    /// Returns whether the unit is full.
    #[inline]
    pub(super) fn is_full(&self, model: &Model) -> bool {
        self.queue.len() + self.translated.len() + self.translating.lines() >= model.queue
    }

    /// Enters an instruction with all of its lines; returns their number.
    pub(super) fn enter(&mut self, mut op: Op, addresses: &[u64], width: u8, env: &Env<'_>) -> u32 {
        let pieces = self.coalescer.merge(addresses, width, env.model.reach);
        let lines = pieces.len() as u32;
        if lines == 0 {
            return 0;
        }
        op.left = lines;
        let (since, op) = (op.issued, self.ops.insert(op));
        let outcome = env.cycle + env.model.l1;
        self.queue.extend(pieces.iter().map(|piece| Line {
            page: piece.page,
            offset: piece.offset,
            physical: UNKNOWN,
            outcome,
            since,
            op,
            bytes: piece.bytes,
            counts: piece.opens_page,
        }));
        lines
    }

    /// First cycle at or after `from` in which a line can be taken.
    #[inline]
    pub(super) fn due(&self, from: u64) -> Option<u64> {
        if self.wait != Wait::Nothing {
            return None;
        }
        let outcome = |lines: &VecDeque<Line>| lines.front().map_or(u64::MAX, |line| line.outcome);
        let first = outcome(&self.translated).min(outcome(&self.queue));
        (first != u64::MAX).then(|| first.max(from))
    }

    /// Takes the next line, if its outcome is due. Returns the instruction if that was its last line.
    pub(super) fn step(&mut self, env: &mut Env<'_>, cx: &mut impl Cx<Event, Out>) -> Option<Op> {
        if self.wait != Wait::Nothing {
            return None;
        }
        let cycle = env.cycle;
        let due = |line: &&mut Line| line.outcome <= cycle;
        let from_translated = self.translated.front_mut().filter(due).is_some();
        let lines = if from_translated { &mut self.translated } else { &mut self.queue };
        let mut line = *lines.front_mut().filter(due)?;
        let op = self.ops[line.op];
        if line.physical == UNKNOWN {
            self.translate(&mut line, &op, env);
        }
        let (wait, finished) = if line.physical == UNKNOWN {
            (self.wait_for_translation(line, &op, env, cx), None)
        } else {
            self.access(line, &op, env, cx)
        };
        self.wait = wait;
        let lines = if from_translated { &mut self.translated } else { &mut self.queue };
        if wait == Wait::Nothing {
            lines.pop_front();
        } else if let Some(front) = lines.front_mut() {
            *front = line;
        }
        finished
    }

    fn translate(&mut self, line: &mut Line, op: &Op, env: &mut Env<'_>) {
        let found = self.tlb.look_up(op.app, line.page);
        if let Some(frame) = found {
            line.physical = frame * env.model.reach.bytes() + line.offset;
        }
        if line.counts {
            line.counts = false;
            let counters = env.counters(op.app);
            match found {
                Some(_) => counters.tlb_hits += 1,
                None => counters.tlb_misses += 1,
            }
        }
    }

    fn wait_for_translation(
        &mut self,
        mut line: Line,
        op: &Op,
        env: &mut Env<'_>,
        cx: &mut impl Cx<Event, Out>,
    ) -> Wait {
        if !self.translating.takes(op.app, line.page) {
            return Wait::Translation;
        }
        env.tally.reach(Stage::L1, op.stores(), &mut line.since, env.now);
        let (page, since) = (line.page, line.since);
        if self.translating.wait(op.app, line) {
            env.counters(op.app).translations_sent += 1;
            cx.emit(Out::Translate(Translation {
                port: self.port,
                app: op.app,
                page,
                frame: 0,
                absent: Absent::Wait,
                since,
            }));
        }
        Wait::Nothing
    }

    /// Takes a line with a physical address to the cache.
    fn access(
        &mut self,
        mut line: Line,
        op: &Op,
        env: &mut Env<'_>,
        cx: &mut impl Cx<Event, Out>,
    ) -> (Wait, Option<Op>) {
        let number = line.physical / LINE;
        if op.kind != AccessKind::Read {
            return (self.write_through(line, op, env, cx), None);
        }
        if self.l1.look_up(number) {
            env.counters(op.app).l1_hits += 1;
            env.tally.reach(Stage::L1, false, &mut line.since, env.now);
            return (Wait::Nothing, self.line_done(line.op, env));
        }
        if let Some(register) = self.misses.find(number) {
            if !self.misses.merge(register, line.op, env.now) {
                return (Wait::Merge(register), None);
            }
            env.counters(op.app).l1_merges += 1;
            env.tally.reach(Stage::L1, false, &mut line.since, env.now);
            return (Wait::Nothing, None);
        }
        let key = page_key(op.app, line.page);
        let Some(register) = self.misses.open(number, key, line.op, env.now) else {
            return (Wait::MissRegister, None);
        };
        env.counters(op.app).l1_misses += 1;
        self.send(register.into(), line, op, env, cx);
        (Wait::Nothing, None)
    }

    /// Sends a store or an atomic past the cache, and evicts the line: the cache is not coherent (write-evict, as in
    /// Fermi).
    fn write_through(
        &mut self,
        line: Line,
        op: &Op,
        env: &mut Env<'_>,
        cx: &mut impl Cx<Event, Out>,
    ) -> Wait {
        let Some(place) = self.free_stores.pop() else { return Wait::Store };
        self.stores[place as usize] = line.op;
        let number = line.physical / LINE;
        self.l1.evict(number);
        self.misses.spoil(number);
        let counters = env.counters(op.app);
        match op.kind {
            AccessKind::Write => counters.writes_sent += 1,
            _ => counters.atomics_sent += 1,
        }
        self.send(self.miss_registers + place, line, op, env, cx);
        Wait::Nothing
    }

    fn send(&self, tag: u32, line: Line, op: &Op, env: &mut Env<'_>, cx: &mut impl Cx<Event, Out>) {
        let mut access = Access {
            tag,
            kind: op.kind,
            address: line.physical,
            bytes: line.bytes,
            app: op.app,
            port: self.port,
            warp: (u32::from(self.port) * env.model.warps + u32::from(op.slot)) as u16,
            pc: op.pc,
            absent: Absent::Wait,
            since: line.since,
        };
        env.tally.access(Stage::L1, &mut access, env.now);
        cx.emit(Out::Access(access));
    }

    /// Notes an answered line. Returns the instruction if it was the last line.
    fn line_done(&mut self, number: u32, env: &mut Env<'_>) -> Option<Op> {
        let op = &mut self.ops[number];
        op.left -= 1;
        let latency = env.now.since(op.issued).ps();
        let histogram = if op.stores() { &mut env.stats.writes } else { &mut env.stats.reads };
        histogram.record(latency);
        let op = *op;
        (op.left == 0).then(|| {
            self.ops.remove(number);
            op
        })
    }

    /// Prefetches for an access that will be answered soon.
    #[inline]
    pub(super) fn expect(&self, access: &Access) {
        if access.kind == AccessKind::Read {
            self.misses.expect(access.tag as u16);
        }
    }

    /// Handles the answer to an access. Appends the instructions that waited for nothing else.
    pub(super) fn answer(&mut self, mut access: Access, finished: &mut Vec<Op>, env: &mut Env<'_>) {
        env.tally.access(Stage::L1, &mut access, env.now);
        if access.kind != AccessKind::Read {
            let place = access.tag - self.miss_registers;
            self.free_stores.push(place);
            finished.extend(self.line_done(self.stores[place as usize], env));
            if self.wait == Wait::Store {
                self.wait = Wait::Nothing;
            }
            return;
        }
        let register = access.tag as u16;
        let mut arrived = self.misses.close(register);
        if arrived.keep {
            self.l1.fill(arrived.line, arrived.key);
        }
        let mut since = Some(access.since);
        while let Some(waiter) = self.misses.next_waiter(&mut arrived) {
            // The first waiter's milestones came with the access.
            let mut since = since.take().unwrap_or(waiter.since);
            env.tally.reach(Stage::L1Merge, false, &mut since, env.now);
            finished.extend(self.line_done(waiter.op, env));
        }
        if matches!(self.wait, Wait::MissRegister) || self.wait == Wait::Merge(register) {
            self.wait = Wait::Nothing;
        }
    }

    /// Handles the answer to a translation: the lines that waited for it go on.
    pub(super) fn translated(&mut self, translation: Translation, env: &mut Env<'_>) {
        let Translation { app, page, frame, since, .. } = translation;
        self.tlb.fill(app, page, frame);
        let Some(mut released) = self.translating.release(app, page) else {
            debug_assert!(false, "an unexpected translation");
            return;
        };
        let mut asked = Some(since);
        while let Some(mut line) = self.translating.next_line(&mut released) {
            let stores = self.ops[line.op].stores();
            if let Some(latest) = asked.take() {
                // Only the first line's wait belongs to the translation.
                if stores {
                    env.stats.store_translations += u128::from(latest.since(line.since).ps());
                } else {
                    line.since = line.since.max(latest);
                }
            }
            env.tally.reach(Stage::Tlb, stores, &mut line.since, env.now);
            line.physical = frame * env.model.reach.bytes() + line.offset;
            line.outcome = env.cycle + env.model.l1;
            self.translated.push_back(line);
        }
        self.wait = Wait::Nothing;
    }

    /// Removes a translation and the lines of its page. Translated lines that have not reached the cache request it
    /// again.
    pub(super) fn invalidate(&mut self, app: u8, page: u64) {
        self.tlb.invalidate(app, page);
        let key = page_key(app, page);
        self.l1.forget(key);
        self.misses.spoil_page(key);
        for line in self.translated.iter_mut().chain(self.queue.front_mut()) {
            if line.page == page && self.ops[line.op].app == app {
                line.physical = UNKNOWN;
            }
        }
    }

    /// Number of unanswered accesses and translations.
    pub(super) fn outstanding(&self) -> usize {
        self.misses.in_use() + self.stores.len() - self.free_stores.len() + self.translating.pages()
    }
}

#[cfg(test)]
impl LoadStore {
    pub(super) fn know(&mut self, app: u8, page: u64, frame: u64) {
        self.tlb.fill(app, page, frame);
    }
}

// Pages whose translation is under way, and the lines that wait for each.

struct Page {
    app: u8,
    page: u64,
    waiting: List,
}

/// Missing pages of a multiprocessor's TLB.
pub(super) struct Translating {
    pages: Vec<Page>,
    lines: Lists<Line>,
    most: usize,
}

impl Translating {
    /// Creates a set for at most `most` pages at once.
    pub(super) fn new(most: usize) -> Translating {
        Translating { pages: Vec::with_capacity(most), lines: Lists::default(), most }
    }

    fn find(&self, app: u8, page: u64) -> Option<usize> {
        self.pages.iter().position(|p| (p.page, p.app) == (page, app))
    }

    /// Returns whether a line of this page may wait: not if the limit of other missing pages is reached.
    pub(super) fn takes(&self, app: u8, page: u64) -> bool {
        self.pages.len() < self.most || self.find(app, page).is_some()
    }

    /// Adds a waiting line. Returns whether its translation must be requested.
    pub(super) fn wait(&mut self, app: u8, line: Line) -> bool {
        let page = line.page;
        let known = self.find(app, page);
        let at = known.unwrap_or(self.pages.len());
        if known.is_none() {
            self.pages.push(Page { app, page, waiting: List::EMPTY });
        }
        self.lines.push(&mut self.pages[at].waiting, line);
        known.is_none()
    }

    /// Releases a page whose translation has arrived. [`Translating::next_line`] returns its lines.
    pub(super) fn release(&mut self, app: u8, page: u64) -> Option<List> {
        let at = self.find(app, page)?;
        Some(self.pages.swap_remove(at).waiting)
    }

    /// Takes the next line of a released page, in the order of arrival.
    pub(super) fn next_line(&mut self, released: &mut List) -> Option<Line> {
        self.lines.pop(released)
    }

    /// Number of waiting lines.
    #[inline]
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Number of missing pages.
    #[inline]
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }
}
