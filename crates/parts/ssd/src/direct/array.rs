//! Operations of planes: their kinds, the choice of the next one, and the actions at its end.

use super::stats::Spending;
use super::{Direct, Event, Out};
use engine::{Cx, Time};
use ftl::log::mapping::Place;
use nand::planes::{Work, network::Way};
use nand::registers::RegisterNetwork;
use nand::{numbers::NONE, planes};
use proto::memory::PAGE;

impl Direct {
    /// Queues a program for its plane.
    pub(super) fn queue_program(&mut self, register: u32, cx: &mut impl Cx<Event, Out>) {
        let page = self.registers.get(register).page;
        let place = self.layout.place(page);
        self.ledger.leaving += 1;
        self.join(Op::new(Kind::Program { register }, place, page, self.lines.all(), NONE), cx.now());
        self.advance(place.plane, cx);
    }

    /// Starts the next operation of a plane, if its array and its data register are free.
    pub(super) fn advance(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        loop {
            if self.planes.get(plane).work != Work::Idle {
                return;
            }
            let step = self.helped_step(plane, cx);
            if step.is_none() && !self.planes.waits(plane) {
                return;
            }
            let state = self.planes.get(plane);
            if state.held > now {
                if !std::mem::replace(&mut state.woken, true) {
                    cx.after(state.held - now, Event::PlaneFree(plane));
                }
                return;
            }
            let Some(name) = self.planes.next(plane, now) else {
                self.start_step(plane, step, cx);
                return;
            };
            let op = *self.planes.op(name);
            match op.kind {
                Kind::Read => {
                    self.planes.get(plane).work = Work::Op(name);
                    self.work(plane, Spending(1, 0, 0), Time::ZERO, self.times.sense, cx);
                    return;
                }
                Kind::Program { register } if self.blocks.has_room(op.place) => {
                    self.planes.get(plane).work = Work::Op(name);
                    self.blocks.program_begins(op.place);
                    self.start_program(name, register, cx);
                    return;
                }
                Kind::Program { .. } => self.set_aside(name, cx),
            }
        }
    }

    /// Occupies the array of a plane for `service` after `delay`.
    pub(super) fn work(
        &mut self,
        plane: u32,
        does: Spending,
        delay: Time,
        service: Time,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let begins = cx.now() + delay;
        self.planes.works(plane, service, begins + service);
        if let Some(meter) = &mut self.meter {
            meter.work(does, begins, begins + service);
        }
        cx.after(delay + service, Event::ArrayDone(plane));
    }

    /// Brings a page to its plane, if it is in a register of another one, and programs it.
    fn start_program(&mut self, name: u32, register: u32, cx: &mut impl Cx<Event, Out>) {
        let (from, plane) = (self.registers.get(register).plane, self.planes.op(name).place.plane);
        if from == plane {
            return self.program(name, Time::ZERO, cx);
        }
        match self.register_network {
            RegisterNetwork::private => unreachable!("a private register is its plane's own"),
            RegisterNetwork::fcnet => self.program(name, Time::ZERO, cx),
            RegisterNetwork::nif(_) => {
                self.stats.moves += 1;
                let now = cx.now();
                let end = self.link.shift(from, now);
                self.program(name, end - now, cx);
            }
            RegisterNetwork::swnet => {
                self.stats.moves += 1;
                self.stats.bytes_out += PAGE;
                self.send(Cargo::CopyOut(name), from, self.lines.all(), cx);
            }
        }
    }

    /// Continues with a page at the controller, on its way to another plane.
    pub(super) fn copied_out(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let plane = self.planes.op(name).place.plane;
        self.stats.bytes_in += PAGE;
        self.send(Cargo::CopyIn(name), plane, self.lines.all(), cx);
    }

    /// Programs a page whose data reach its plane after `delay`. If not all lines were written, the old page is read
    /// into the data register first.
    pub(super) fn program(&mut self, name: u32, delay: Time, cx: &mut impl Cx<Event, Out>) {
        let op = *self.planes.op(name);
        let Kind::Program { register } = op.kind else { unreachable!("only programs have data to bring") };
        let whole = self.registers.get(register).lines == self.lines.all();
        let fill = if whole { Time::ZERO } else { self.times.sense };
        self.stats.fill_reads += u64::from(!whole);
        let does = Spending(u64::from(!whole), 1, 0);
        self.work(op.place.plane, does, delay, fill + self.times.program, cx);
    }

    /// Handles the end of an array operation.
    pub(super) fn array_done(&mut self, plane: u32, cx: &mut impl Cx<Event, Out>) {
        let work = std::mem::replace(&mut self.planes.get(plane).work, Work::Idle);
        match work {
            Work::Idle => unreachable!("only arrays at work finish"),
            Work::Step => self.step_done(plane, cx),
            Work::Op(name) => match self.planes.op(name).kind {
                Kind::Read => self.sensed(name, cx),
                Kind::Program { register } => self.programmed(name, register, cx),
            },
        }
        self.advance(plane, cx);
    }

    /// Frees the register of a page that has been programmed into its log block.
    fn programmed(&mut self, name: u32, register: u32, cx: &mut impl Cx<Event, Out>) {
        let op = *self.planes.op(name);
        self.planes.remove(name);
        let (old, _) = self.blocks.locate(op.place);
        let (log, new) = self.blocks.append(op.place);
        self.blocks.program_ends(log);
        if let Some(shadow) = &mut self.shadow {
            shadow.programmed(op.place.plane, old, new, register, &self.registers);
        }
        self.stats.eviction_programs += 1;
        self.stats.pages_programmed += u64::from(self.programmed.add(op.page));
        self.ledger.left += 1;
        let app = self.registers.get(register).app;
        if !self.blocks.has_room(op.place) {
            self.queue_merge(log, app, cx);
        }
        self.release(register, cx);
    }
}

// Types of flash as memory for its planes and its network.

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Reads a page for commands.
    Read,
    /// Programs the page of a register.
    Program {
        /// Number of the register.
        register: u32,
    },
}

/// Operation on a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) place: Place,
    pub(super) page: u64,
    /// Lines requested by a read.
    pub(super) lines: u64,
    /// First command of a read.
    pub(super) first: u32,
    /// Time until which the data register holds sensed data; `MAX` before it is sensed.
    pub(super) held: Time,
}

impl Op {
    pub(super) fn new(kind: Kind, place: Place, page: u64, lines: u64, first: u32) -> Op {
        Op { kind, place, page, lines, first, held: Time::MAX }
    }

    /// Kind of work for the plane.
    pub(super) fn work(&self) -> planes::Kind {
        match self.kind {
            Kind::Read => planes::Kind::Read,
            Kind::Program { .. } => planes::Kind::Program,
        }
    }
}

/// Cargo of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cargo {
    /// Lines from the array, for the commands of an operation.
    Fetched(u32),
    /// Lines from a register, for a command.
    Held(u32),
    /// Lines of a write.
    Write(u32),
    /// A page sent out to the controller, on its way to the data register of an operation's plane.
    CopyOut(u32),
    /// A page on its way back from the controller.
    CopyIn(u32),
    /// Lines taken by the shared cache; nothing waits for them.
    Parked,
}

impl Cargo {
    pub(super) fn way(self) -> Way {
        match self {
            Cargo::Write(_) | Cargo::CopyIn(_) => Way::Into,
            Cargo::Fetched(_) | Cargo::Held(_) | Cargo::CopyOut(_) | Cargo::Parked => Way::Out,
        }
    }
}
