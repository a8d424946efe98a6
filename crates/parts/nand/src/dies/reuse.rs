//! Shared sensing: one sensing for several reads of a page.
//!
//! A plane's page register holds the page sensed last until different data go through it. A read of the same page needs
//! a change of column and no sensing (ONFI 4.2, Change Read Column and its enhanced form; the cache register holds the
//! same page, because pipelined cache reads are not modelled). A program, an erase, a copy-back, a different read or a
//! resumed operation overwrites the register.
//!
//! A read of a page whose sensing is pending or in progress joins that operation: one sensing and one transfer for all
//! of them. A joined read is chained to the leading operation ([`Op::joined`]) and waits in no queue. Nothing can
//! intervene: an erase waits for the reads of its block, and a programmed page is not programmed again before it.

use super::Backend;
use super::op::{NO_OP, Op, OpKind};
use crate::geometry::Geometry;
use engine::{Mutant, Slab, Snapshot, Time, planted};
use rustc_hash::FxHashMap;

/// No page.
const EMPTY: u64 = u64::MAX;

/// Reads that need no sensing of their own.
pub(super) struct Reuse {
    registers: bool,
    joins: bool,
    /// Planes per unit with a register; blocks per plane and pages per block follow.
    planes: u32,
    blocks: u64,
    pages: u64,
    /// Page in each plane's register, by plane.
    held: Vec<u64>,
    /// Reads whose page has not been sensed, by page.
    leads: FxHashMap<u64, u32>,
}

impl Reuse {
    pub(super) fn new(geo: &Geometry, registers: bool, joins: bool) -> Reuse {
        // With several pages per unit the register keeps the last page: it serves no read.
        let registers = registers && geo.pages_per_unit() == 1;
        Reuse {
            registers,
            joins,
            planes: geo.die_planes,
            blocks: u64::from(geo.shape.blocks),
            pages: u64::from(geo.shape.pages),
            held: vec![EMPTY; if registers { (geo.die_count * geo.die_planes) as usize } else { 0 }],
            leads: FxHashMap::default(),
        }
    }

    fn plane(&self, op: &Op) -> usize {
        (op.die * self.planes) as usize + usize::from(op.plane)
    }

    fn page(&self, op: &Op) -> u64 {
        (self.plane(op) as u64 * self.blocks + u64::from(op.block)) * self.pages + u64::from(op.page)
    }

    /// Clears the registers of a die that other data go through.
    pub(super) fn clear(&mut self, die: u32, kind: OpKind) {
        let survives = planted(Mutant::MergeAcrossErase) && kind == OpKind::Erase;
        if self.registers && !survives {
            let first = (die * self.planes) as usize;
            self.held[first..first + self.planes as usize].fill(EMPTY);
        }
    }

    /// Appends the content of the registers; no read may be in flight.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        self.held.save(out);
    }

    /// Restores the content saved by a back end with the same parameters; `None` if it is truncated or malformed.
    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.held = Vec::load(input).filter(|held: &Vec<u64>| held.len() == self.held.len())?;
        Some(())
    }
}

impl Backend {
    /// Joins a read that has just been queued to a read of the same page, and returns whether it joined. If it is the
    /// more urgent one, it takes the lead and the older read joins it: then it is queued like any read.
    #[inline]
    pub(super) fn joins(&mut self, name: u32, now: Time) -> bool {
        self.reuse.joins && self.ops[name].kind == OpKind::Read && self.finds_lead(name, now)
    }

    fn finds_lead(&mut self, name: u32, now: Time) -> bool {
        let page = self.reuse.page(&self.ops[name]);
        let Some(lead) = self.reuse.leads.get(&page).copied() else {
            self.reuse.leads.insert(page, name);
            return false;
        };
        self.counters.joined_reads += 1;
        let (class, leading) = (self.ops[name].class, self.ops[lead].class);
        if !self.ops[lead].is_begun && !self.holds_line && self.scheduler.prefers(class, leading) {
            self.queues.remove(&mut self.ops, lead);
            self.ops[name].joined = lead;
            self.ops[lead].has_joined = true;
            self.reuse.leads.insert(page, name);
            return false;
        }
        let mut last = lead;
        while self.ops[last].joined != NO_OP {
            last = self.ops[last].joined;
        }
        self.ops[last].joined = name;
        let Op { is_begun, mate, .. } = self.ops[lead];
        let op = &mut self.ops[name];
        (op.has_joined, op.is_begun, op.mate) = (true, is_begun, mate);
        if is_begun {
            op.started = now;
            self.queued.depart(now, op.queued);
        }
        true
    }

    /// Returns whether all operations of a command that goes out read what the registers hold. Marks those that the
    /// registers serve.
    #[inline]
    pub(super) fn begins(&mut self, unit: u32, first: u32) {
        if !self.reuse.registers {
            return;
        }
        let (mut hits, mut at) = (true, first);
        while at != NO_OP {
            let op = &self.ops[at];
            hits &= op.kind == OpKind::Read && self.reuse.held[self.reuse.plane(op)] == self.reuse.page(op);
            at = op.mate;
        }
        if self.ops[first].kind != OpKind::Read {
            let die = self.die_of(unit);
            self.reuse.clear(die, self.ops[first].kind);
        }
        let mut at = first;
        while at != NO_OP {
            let op = &mut self.ops[at];
            op.from_register = hits;
            self.counters.register_hits += u64::from(hits);
            if !hits && op.kind == OpKind::Read {
                let plane = self.reuse.plane(&self.ops[at]);
                self.reuse.held[plane] = EMPTY;
            }
            at = self.ops[at].mate;
        }
    }

    /// Registers that the array has sensed the pages of a command: no read can join any more, and the registers hold
    /// them.
    #[inline]
    pub(super) fn sensed(&mut self, first: u32, now: Time) {
        let mut at = first;
        while at != NO_OP {
            let mut chain = at;
            while chain != NO_OP {
                self.ops[chain].sensed = now;
                chain = self.ops[chain].joined;
            }
            if self.reuse.joins {
                let page = self.reuse.page(&self.ops[at]);
                self.reuse.leads.remove(&page);
            }
            if self.reuse.registers {
                let plane = self.reuse.plane(&self.ops[at]);
                self.reuse.held[plane] = self.reuse.page(&self.ops[at]);
            }
            at = self.ops[at].mate;
        }
    }

    /// Returns the next operation of a command: the reads joined to this one first, then the next plane's.
    #[inline]
    pub(super) fn after(&self, at: u32) -> u32 {
        let op = &self.ops[at];
        if op.joined != NO_OP { op.joined } else { op.mate }
    }

    /// Calls `f` with the name of each operation of the command that a unit's array works on, and whether the register
    /// serves it.
    pub fn at_work(&self, unit: u32, mut f: impl FnMut(u32, &Op, bool)) {
        let mut at = self.dies[unit as usize].active;
        let from_register = at != NO_OP && self.ops[at].from_register;
        while at != NO_OP {
            f(at, &self.ops[at], from_register);
            at = self.after(at);
        }
    }

    /// Starts the operations of a command, with all joined reads; it holds the channel for `tenure`.
    #[inline]
    pub(super) fn start(&mut self, first: u32, now: Time, tenure: Time) {
        let mut lead = first;
        while lead != NO_OP {
            let mate = self.ops[lead].mate;
            let mut at = lead;
            while at != NO_OP {
                let op = &mut self.ops[at];
                (op.is_begun, op.mate) = (true, mate);
                (op.started, op.sensed) = (now, now + tenure);
                self.queued.depart(now, op.queued);
                at = op.joined;
            }
            lead = mate;
        }
    }

    /// Returns whether data of a page leave their die: for the leading read, or for a joined one.
    #[inline]
    pub(super) fn page_leaves(ops: &Slab<Op>, lead: u32) -> bool {
        let mut at = lead;
        while at != NO_OP {
            if ops[at].bytes > 0 {
                return true;
            }
            at = ops[at].joined;
        }
        false
    }

    /// Returns whether data leave when a command has been sensed, for any of its pages. A read that is completed in its
    /// register stays.
    #[inline]
    pub(super) fn hands_out(&self, first: u32) -> bool {
        let mut lead = first;
        while lead != NO_OP {
            if Backend::page_leaves(&self.ops, lead) {
                return true;
            }
            lead = self.ops[lead].mate;
        }
        false
    }

    /// Starts the transfer of a command's data and returns its duration. Joined reads leave with their leader, and at
    /// most one page leaves for all of them. In a further step only the pages sensed in it leave.
    #[inline]
    pub(super) fn leave(&mut self, first: u32, step: u8, now: Time) -> Time {
        let (mut tenure, mut lead) = (Time::ZERO, first);
        while lead != NO_OP {
            let (mut bytes, mut at) = (0, lead);
            while at != NO_OP {
                let op = &mut self.ops[at];
                op.moved = now;
                bytes += u64::from(op.bytes);
                at = op.joined;
            }
            let op = &self.ops[lead];
            let most = u64::from(if op.joined == NO_OP { op.bytes } else { self.timing.most_bytes });
            if op.steps >= step && bytes > 0 {
                tenure += self.timing.leave(bytes.min(most));
            }
            lead = op.mate;
        }
        tenure
    }

    /// Returns whether some reads need no sensing of their own.
    pub fn shares_sensings(&self) -> bool {
        self.reuse.registers || self.reuse.joins
    }

    /// Returns whether reads are served from registers.
    pub fn reads_registers(&self) -> bool {
        self.reuse.registers
    }

    /// Returns the number of leading reads that wait to be sensed.
    pub fn reads_waiting(&self) -> u64 {
        let is_read = |name: &u32| self.ops[*name].kind == OpKind::Read;
        self.queues.names(&self.ops).iter().filter(|name| is_read(name)).count() as u64
    }
}
