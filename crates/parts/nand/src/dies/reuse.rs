//! One sensing for several reads of a page.
//!
//! A plane's page register holds what was sensed last until something else goes through it, so that a read of the same
//! page needs a change of column and no sensing (ONFI 4.2, Change Read Column and its enhanced form; the cache register
//! holds the same page, since pipelined cache reads are not modelled). A program, an erase, a copy-back or another read
//! takes the register, so its content ends there, and where a suspended operation goes on.
//!
//! A read of a page whose sensing is still to come, or under way, joins that operation: one sensing, one transfer for all
//! of them. What has joined is chained to the operation that leads ([`Op::joined`]) and waits in no queue. Nothing can come
//! between: an erase waits for the reads of its block, and a page that has data is not programmed again before it.

use super::Backend;
use super::op::{NO_OP, Op, OpKind};
use crate::geometry::Geometry;
use engine::{Mutant, Slab, Snapshot, Time, planted};
use rustc_hash::FxHashMap;

/// No page.
const EMPTY: u64 = u64::MAX;

/// Which reads need no sensing of their own.
pub(super) struct Reuse {
    registers: bool,
    joins: bool,
    /// Planes that each unit has a register for, blocks of a plane, pages of a block.
    planes: u32,
    blocks: u64,
    pages: u64,
    /// The page in each plane's register, by plane.
    held: Vec<u64>,
    /// Reads whose page has not been sensed, by page.
    leads: FxHashMap<u64, u32>,
}

impl Reuse {
    pub(super) fn new(geo: &Geometry, registers: bool, joins: bool) -> Reuse {
        // Of a unit of several pages the register keeps the last: no read is served from it.
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

    /// Something goes through the registers of a die: what they held is gone.
    pub(super) fn clear(&mut self, die: u32, kind: OpKind) {
        let survives = planted(Mutant::MergeAcrossErase) && kind == OpKind::Erase;
        if self.registers && !survives {
            let first = (die * self.planes) as usize;
            self.held[first..first + self.planes as usize].fill(EMPTY);
        }
    }

    /// Appends what the registers hold; nothing is being read.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        self.held.save(out);
    }

    /// Replaces it by what a back end of the same parameters saved; `None` if that is cut short or malformed.
    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.held = Vec::load(input).filter(|held: &Vec<u64>| held.len() == self.held.len())?;
        Some(())
    }
}

impl Backend {
    /// Whether a read that has just been queued joins another of its page. If it is the more urgent one, it takes the lead
    /// and the other joins it: then it is queued as any read.
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

    /// A command goes out: whether all of its operations read what the registers hold. What it takes from the registers is
    /// noted.
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

    /// The array has sensed the pages of a command: nobody can join any more, and the registers hold them.
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

    /// The operation that follows in a command: what has joined it first, then that of the next plane.
    #[inline]
    pub(super) fn after(&self, at: u32) -> u32 {
        let op = &self.ops[at];
        if op.joined != NO_OP { op.joined } else { op.mate }
    }

    /// Calls `f` with the name of each operation of the command that a unit's array works on, and whether it reads what
    /// the register holds.
    pub fn at_work(&self, unit: u32, mut f: impl FnMut(u32, &Op, bool)) {
        let mut at = self.dies[unit as usize].active;
        let from_register = at != NO_OP && self.ops[at].from_register;
        while at != NO_OP {
            f(at, &self.ops[at], from_register);
            at = self.after(at);
        }
    }

    /// The operations of a command, with all that has joined them, begin now; it holds the channel for `tenure`.
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

    /// Whether data of a page leave its die: for the read that leads, or for one that has joined it.
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

    /// Whether data leave when a command has been sensed: of any of its pages. One that is completed in its register stays.
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

    /// The data of a command begins to leave now: how long it takes. What has joined an operation leaves with it, and no
    /// more than the page leaves for all of them. In a further step only that leaves which was sensed in it.
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

    /// Whether some reads need no sensing of their own.
    pub fn shares_sensings(&self) -> bool {
        self.reuse.registers || self.reuse.joins
    }

    /// Whether reads are served from registers.
    pub fn reads_registers(&self) -> bool {
        self.reuse.registers
    }

    /// Read operations that wait to be sensed and lead.
    pub fn reads_waiting(&self) -> u64 {
        let is_read = |name: &u32| self.ops[*name].kind == OpKind::Read;
        self.queues.names(&self.ops).iter().filter(|name| is_read(name)).count() as u64
    }
}
