//! Queues of operations at each die: one list per class and plane.

use super::op::{Class, NO_OP, Op, OpKind};
use super::{MultiPlane, Sharing};
use engine::{Slab, Time};

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct DieQueues {
    /// Classes with waiting operations.
    classes: u16,
    /// Planes with waiting operations, by class.
    planes: [u16; Class::COUNT],
    /// Position of the oldest operation in the order of arrival, by class; meaningless for an empty class.
    oldest: [u64; Class::COUNT],
    /// Plane of that operation.
    lead: [u8; Class::COUNT],
    count: u32,
}

/// All waiting operations.
pub(super) struct Queues {
    dies: Vec<DieQueues>,
    lists: Vec<List>,
    planes: usize,
    /// Planes of the same die, including the plane, by plane: only these may share its command.
    mates: Vec<u16>,
    arrivals: u64,
    /// Order of arrival, by operation name.
    arrived: Vec<u64>,
}

impl Queues {
    /// Creates queues for `dies` that work in parallel, each of `planes` planes, which share commands `together` at a
    /// time.
    pub(super) fn new(dies: u32, planes: u32, together: u32) -> Queues {
        assert!(planes <= 16, "a die has at most 16 planes");
        let mates = |plane: u32| (u16::MAX >> (16 - together)) << (plane / together * together);
        let none = DieQueues {
            classes: 0,
            planes: [0; Class::COUNT],
            oldest: [0; Class::COUNT],
            lead: [0; Class::COUNT],
            count: 0,
        };
        let lists = dies as usize * Class::COUNT * planes as usize;
        Queues {
            dies: vec![none; dies as usize],
            lists: vec![List { head: NO_OP, tail: NO_OP }; lists],
            planes: planes as usize,
            mates: (0..planes).map(mates).collect(),
            arrivals: 0,
            arrived: Vec::new(),
        }
    }

    #[inline]
    fn list(&self, die: u32, class: Class, plane: usize) -> usize {
        (die as usize * Class::COUNT + class as usize) * self.planes + plane
    }

    #[inline]
    pub(super) fn waiting(&self, die: u32) -> u16 {
        self.dies[die as usize].classes
    }

    pub(crate) fn planes_of_a_die(&self) -> usize {
        self.planes
    }

    pub(super) fn backlog(&self, die: u32) -> u32 {
        self.dies[die as usize].count
    }

    #[inline]
    pub(super) fn push(&mut self, ops: &mut Slab<Op>, name: u32) {
        let op = &mut ops[name];
        op.next = NO_OP;
        op.mate = NO_OP;
        if self.arrived.len() <= name as usize {
            self.arrived.resize(name as usize + 1, 0);
        }
        self.arrivals += 1;
        self.arrived[name as usize] = self.arrivals;
        let (die, class, plane) = (op.die, op.class, op.plane);
        let list = self.list(die, class, usize::from(plane));
        let tail = std::mem::replace(&mut self.lists[list].tail, name);
        if tail == NO_OP {
            self.lists[list].head = name;
            let d = &mut self.dies[die as usize];
            if d.planes[class as usize] == 0 {
                d.classes |= 1 << class as u8;
                d.oldest[class as usize] = self.arrivals;
                d.lead[class as usize] = plane;
            }
            d.planes[class as usize] |= 1 << plane;
        } else {
            ops[tail].next = name;
        }
        self.dies[die as usize].count += 1;
    }

    /// Returns the planes with waiting operations of a class.
    #[inline]
    pub(super) fn planes(&self, die: u32, class: Class) -> u16 {
        self.dies[die as usize].planes[class as usize]
    }

    /// Returns block and page of the youngest operation of a class at a plane.
    #[inline]
    pub(super) fn last(&self, ops: &Slab<Op>, die: u32, class: Class, plane: usize) -> Option<(u32, u32)> {
        let tail = self.lists[self.list(die, class, plane)].tail;
        (tail != NO_OP).then(|| (ops[tail].block, ops[tail].page))
    }

    /// Returns whether the command that [`Queues::take`] would form for a class has an operation on every plane that
    /// could share it.
    pub(super) fn fills_command(&self, ops: &Slab<Op>, die: u32, class: Class, sharing: Sharing) -> bool {
        let lead_plane = usize::from(self.dies[die as usize].lead[class as usize]);
        let lead = &ops[self.lists[self.list(die, class, lead_plane)].head];
        let mates = self.mates[lead_plane];
        let shares = |plane: usize| {
            plane == lead_plane || self.partner(ops, self.list(die, class, plane), lead, sharing).is_some()
        };
        self.planes(die, class) & mates == mates
            && (0..self.planes).filter(|plane| mates >> plane & 1 == 1).all(shares)
    }

    /// Returns the plane with the oldest operation of a class, and that operation.
    #[inline]
    fn first(&self, die: u32, class: Class) -> (usize, u32) {
        let mut planes = self.dies[die as usize].planes[class as usize];
        let mut best = (usize::MAX, NO_OP);
        while planes != 0 {
            let plane = planes.trailing_zeros() as usize;
            planes &= planes - 1;
            let name = self.lists[self.list(die, class, plane)].head;
            if best.1 == NO_OP || self.arrived[name as usize] < self.arrived[best.1 as usize] {
                best = (plane, name);
            }
        }
        best
    }

    /// Returns the queueing time of the oldest operation of a class.
    pub(super) fn waiting_since(&self, ops: &Slab<Op>, die: u32, class: Class) -> Time {
        let plane = self.dies[die as usize].lead[class as usize];
        ops[self.lists[self.list(die, class, usize::from(plane))].head].queued
    }

    /// Returns the oldest operation of a waiting class.
    #[inline]
    pub(super) fn head<'a>(&self, ops: &'a Slab<Op>, die: u32, class: Class) -> &'a Op {
        let plane = self.dies[die as usize].lead[class as usize];
        &ops[self.lists[self.list(die, class, usize::from(plane))].head]
    }

    /// Returns the position of the oldest operation in the order of arrival, by class.
    #[inline]
    pub(super) fn oldest(&self, die: u32) -> &[u64; Class::COUNT] {
        &self.dies[die as usize].oldest
    }

    /// Updates the oldest operation of a class after it has been taken.
    #[inline]
    fn note_oldest(&mut self, die: u32, class: Class) {
        if self.dies[die as usize].planes[class as usize] != 0 {
            let (plane, name) = self.first(die, class);
            let d = &mut self.dies[die as usize];
            d.oldest[class as usize] = self.arrived[name as usize];
            d.lead[class as usize] = plane as u8;
        }
    }

    #[inline]
    fn pop(&mut self, ops: &Slab<Op>, die: u32, class: Class, plane: usize) -> u32 {
        let list = self.list(die, class, plane);
        let name = self.lists[list].head;
        let next = ops[name].next;
        self.lists[list].head = next;
        if next == NO_OP {
            self.lists[list].tail = NO_OP;
            let d = &mut self.dies[die as usize];
            d.planes[class as usize] &= !(1 << plane);
            if d.planes[class as usize] == 0 {
                d.classes &= !(1 << class as u8);
            }
        }
        self.dies[die as usize].count -= 1;
        name
    }

    /// Removes an operation from the middle of its queue: the one after `before`.
    fn unlink(&mut self, ops: &mut Slab<Op>, die: u32, class: Class, plane: usize, before: u32) -> u32 {
        let list = self.list(die, class, plane);
        let name = ops[before].next;
        let next = ops[name].next;
        ops[before].next = next;
        if next == NO_OP {
            self.lists[list].tail = before;
        }
        self.dies[die as usize].count -= 1;
        name
    }

    /// Removes an operation from its queue, wherever it waits.
    pub(super) fn remove(&mut self, ops: &mut Slab<Op>, name: u32) {
        let Op { die, class, plane, .. } = ops[name];
        let plane = usize::from(plane);
        let mut before = self.lists[self.list(die, class, plane)].head;
        if before == name {
            self.pop(ops, die, class, plane);
        } else {
            while ops[before].next != name {
                before = ops[before].next;
            }
            self.unlink(ops, die, class, plane, before);
        }
        self.note_oldest(die, class);
    }

    /// Returns the first of a plane's oldest operations that may share a command, or rather the one before it, unless
    /// it is the oldest.
    #[inline]
    fn partner(&self, ops: &Slab<Op>, list: usize, lead: &Op, sharing: Sharing) -> Option<u32> {
        let (mut before, mut at) = (NO_OP, self.lists[list].head);
        // Only reads may overtake: pages of a block are programmed in order.
        let search = if lead.kind == OpKind::Read { sharing.search } else { 1 };
        for _ in 0..search {
            let candidate = &ops[at];
            // An erase names no page; all other operations must agree in it.
            let same_page = candidate.page == lead.page || lead.kind == OpKind::Erase;
            let same_block = sharing.rule == MultiPlane::SamePage || candidate.block == lead.block;
            let same_cells = candidate.is_slc == lead.is_slc;
            if candidate.kind == lead.kind && same_page && same_block && same_cells {
                return Some(before);
            }
            if candidate.next == NO_OP {
                break;
            }
            (before, at) = (at, candidate.next);
        }
        None
    }

    /// Takes the oldest operation of a class, and those of the other planes' queues that share its command.
    #[inline]
    pub(super) fn take(&mut self, ops: &mut Slab<Op>, die: u32, class: Class, sharing: Sharing) -> u32 {
        let plane = usize::from(self.dies[die as usize].lead[class as usize]);
        let first = self.pop(ops, die, class, plane);
        if sharing.rule == MultiPlane::Off || ops[first].kind == OpKind::CopyBack {
            self.note_oldest(die, class);
            return first;
        }
        let lead = ops[first];
        let mut last = first;
        let mut others = self.dies[die as usize].planes[class as usize] & self.mates[plane] & !(1 << plane);
        while others != 0 {
            let other = others.trailing_zeros() as usize;
            others &= others - 1;
            if let Some(before) = self.partner(ops, self.list(die, class, other), &lead, sharing) {
                let mate = match before {
                    NO_OP => self.pop(ops, die, class, other),
                    before => self.unlink(ops, die, class, other, before),
                };
                ops[last].mate = mate;
                last = mate;
            }
        }
        self.note_oldest(die, class);
        first
    }

    /// Returns whether an operation of a class waits at a plane.
    pub(super) fn is_waiting(&self, die: u32, class: Class, plane: u32) -> bool {
        self.dies[die as usize].planes[class as usize] & 1 << plane != 0
    }

    /// Returns the classes with waiting operations at a plane.
    pub(super) fn classes_of(&self, die: u32, plane: u32) -> u16 {
        let is_there = |class: &&Class| self.is_waiting(die, **class, plane);
        Class::ALL.iter().filter(is_there).fold(0, |bits, class| bits | 1 << *class as u16)
    }

    /// Returns the plane of the oldest operation of a waiting class.
    pub(super) fn lead(&self, die: u32, class: Class) -> u32 {
        self.dies[die as usize].lead[class as usize].into()
    }

    /// Takes a plane's oldest operation of a class, ignoring the other planes.
    pub(super) fn take_alone(&mut self, ops: &mut Slab<Op>, die: u32, class: Class, plane: u32) -> u32 {
        let first = self.pop(ops, die, class, plane as usize);
        self.note_oldest(die, class);
        first
    }

    /// Returns the names of all waiting operations.
    pub(super) fn names(&self, ops: &Slab<Op>) -> Vec<u32> {
        let mut names = Vec::new();
        for list in &self.lists {
            let mut at = list.head;
            while at != NO_OP {
                names.push(at);
                at = ops[at].next;
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Address;
    use proto::Slot;

    fn queue(queues: &mut Queues, ops: &mut Slab<Op>, kind: OpKind, plane: u8, page: u32) -> u32 {
        let class = if kind == OpKind::Read { Class::HostRead } else { Class::HostProgram };
        let name =
            ops.insert(Op::new(kind, class, Address { die: 0, plane, block: 0, page }, Slot(0), 1, 0, 0));
        queues.push(ops, name);
        name
    }

    fn taken(queues: &mut Queues, ops: &mut Slab<Op>, class: Class, search: u32) -> Vec<u32> {
        let sharing = Sharing { rule: MultiPlane::SamePage, search };
        let mut at = queues.take(ops, 0, class, sharing);
        let mut names = Vec::new();
        while at != NO_OP {
            names.push(at);
            at = ops[at].mate;
        }
        names
    }

    #[test]
    fn a_partner_is_found_as_far_as_is_looked() {
        for search in 1..=3 {
            let (mut queues, mut ops) = (Queues::new(1, 2, 2), Slab::default());
            let lead = queue(&mut queues, &mut ops, OpKind::Read, 0, 7);
            let others = [1, 2, 7].map(|page| queue(&mut queues, &mut ops, OpKind::Read, 1, page));
            let expected = if search < 3 { vec![lead] } else { vec![lead, others[2]] };
            assert_eq!(taken(&mut queues, &mut ops, Class::HostRead, search), expected);
            // The end of the queue is correct, and the rest leaves in order.
            let last = queue(&mut queues, &mut ops, OpKind::Read, 1, 3);
            let rest: Vec<u32> = if search < 3 { others.to_vec() } else { others[..2].to_vec() };
            for name in rest.into_iter().chain([last]) {
                assert_eq!(taken(&mut queues, &mut ops, Class::HostRead, search), [name]);
            }
            assert_eq!((queues.waiting(0), queues.backlog(0)), (0, 0));
        }
    }

    #[test]
    fn programs_keep_the_order_of_their_plane() {
        let (mut queues, mut ops) = (Queues::new(1, 2, 2), Slab::default());
        let lead = queue(&mut queues, &mut ops, OpKind::Program, 0, 7);
        for page in [1, 7] {
            queue(&mut queues, &mut ops, OpKind::Program, 1, page);
        }
        assert_eq!(taken(&mut queues, &mut ops, Class::HostProgram, 9), [lead]);
    }

    #[test]
    fn only_planes_of_one_die_share_a_command() {
        // Two dies of two planes that take turns.
        let (mut queues, mut ops) = (Queues::new(1, 4, 2), Slab::default());
        let names = [1, 2, 0, 3].map(|plane| queue(&mut queues, &mut ops, OpKind::Read, plane, 5));
        assert_eq!(taken(&mut queues, &mut ops, Class::HostRead, 1), [names[0], names[2]]);
        assert_eq!(taken(&mut queues, &mut ops, Class::HostRead, 1), [names[1], names[3]]);
    }
}
