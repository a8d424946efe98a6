//! Registers that gather writes, in time: units go into a register of their package, out of it when they are read, and
//! from it into the array when their set needs the room.
//!
//! Registers are the buffer's lines: the buffer decides which units they hold and which leave ([`Sets`]: one for each
//! package, or each plane if registers are private). This module tracks the register of each unit, and data in flight.
//! A unit is programmed into its home plane, which its address selects.
//!
//! Decisions, made before any result was seen:
//!
//! * A unit's data is in the controller until it is in its register: a read meanwhile is answered there; its flush waits.
//! * A unit that was written in part is completed by a read of the old page into the data register of its plane: a command
//!   and a sensing, no data on the channel (ZnG reads and programs in one; here other operations may come between).
//!   If the old page is in another plane, it goes out to the controller, and so does the rest from its register.
//! * A register is free when its page has been programmed, as in ZnG.
//!
//! [`Sets`]: ftl::buffer::Sets

use super::buffered::{Buffered, Place};
use super::gather::{Exit, Moving, RegisterCounters, home};
use super::{Device, Event, Out, milestone};
use engine::{Cx, Inside};
use ftl::buffer::Flush;
use nand::dies::op::NO_OP;
use nand::dies::{Transfer, Way};
use proto::{Lpn, Slot};

/// Purpose of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Errand {
    /// A part of a unit goes into its register, for a command.
    Store,
    /// A command reads a unit.
    Read,
    /// A unit goes out to the controller, to be programmed from there.
    TakeOut,
}

impl Errand {
    const ALL: [Errand; 3] = [Errand::Store, Errand::Read, Errand::TakeOut];
}

impl Device {
    /// Counters of registers that gather writes since the window began, if any.
    pub fn register_counters(&self) -> Option<RegisterCounters> {
        match &self.buffered.as_ref()?.place {
            Place::Dram { .. } => None,
            Place::Registers(registers) => Some(registers.since()),
        }
    }

    /// Stores a part of a unit in its register, for a command. Does nothing if the buffer is in DRAM.
    pub(super) fn store(
        &mut self,
        buffered: &mut Buffered,
        (id, lpn, is_new): (u32, Lpn, bool),
        cx: &mut impl Cx<Event, Out>,
    ) {
        let Place::Registers(registers) = &mut buffered.place else { return };
        if is_new {
            registers.take(lpn, home(&self.ftl.geo, lpn));
        }
        registers.counters.merged += u64::from(!is_new);
        registers.coming.entry(lpn).or_default().transfers += 1;
        let bytes = self.sectors(&self.active[id].command, lpn.0).count_ones() * 512;
        let owner = registers.moving.insert(Moving { lpn, command: id, bytes });
        let (die, _) = self.ftl.geo.die_of_plane(registers.held[&lpn]);
        self.active[id].pending += 1;
        let transfer = Transfer { die, bytes, way: Way::Into, tag: Errand::Store as u8, owner };
        self.backend.transfer(transfer, &mut Inside::of(cx));
    }

    /// Starts the read of a buffered unit, if a register holds it.
    pub(super) fn reads_register(
        &mut self,
        id: u32,
        unit: u64,
        bytes: u32,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let Some(Buffered { place: Place::Registers(registers), .. }) = &mut self.buffered else {
            return false;
        };
        let lpn = Lpn(unit);
        if registers.coming.contains_key(&lpn) {
            return false;
        }
        let owner = registers.moving.insert(Moving { lpn, command: id, bytes });
        let (die, _) = self.ftl.geo.die_of_plane(registers.held[&lpn]);
        let transfer = Transfer { die, bytes, way: Way::Out, tag: Errand::Read as u8, owner };
        self.backend.transfer(transfer, &mut Inside::of(cx));
        true
    }

    /// Starts the transfer to the controller of a complete unit in a register, where it must go there. Returns true if
    /// it does.
    pub(super) fn takes_out(
        &mut self,
        buffered: &mut Buffered,
        lpn: Lpn,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let Place::Registers(registers) = &mut buffered.place else { return false };
        let plane = registers.held[&lpn];
        let is_away = plane != home(&self.ftl.geo, lpn);
        registers.counters.moves += u64::from(is_away);
        // Parts completed in the controller are there already; the register has the rest.
        let out = registers.out.contains(&lpn) || (is_away && registers.exit == Exit::Controller);
        if out {
            registers.out.insert(lpn);
            let bytes = buffered.buffer.flushing_sectors(lpn) * 512;
            let owner = registers.moving.insert(Moving { lpn, command: NO_OP, bytes });
            let (die, _) = self.ftl.geo.die_of_plane(plane);
            let transfer = Transfer { die, bytes, way: Way::Out, tag: Errand::TakeOut as u8, owner };
            // Earlier operations request their channel first.
            self.backend.kick(&mut Inside::of(cx));
            self.backend.transfer(transfer, &mut Inside::of(cx));
        }
        out
    }

    /// Bytes sent out when the old page of a partly written unit is read: none if it completes the unit in place.
    pub(super) fn bytes_of_rest(&self, buffered: &mut Buffered, lpn: Lpn, old: Slot) -> u32 {
        let whole = self.unit_bytes as u32;
        let Place::Registers(registers) = &mut buffered.place else { return whole };
        let geo = &self.ftl.geo;
        if geo.plane_of_block(geo.block_of_slot(old).0) == home(geo, lpn) {
            return 0;
        }
        registers.out.insert(lpn);
        whole
    }

    /// Returns true if a flush has to wait until its unit is in its register.
    pub(super) fn awaits_register(buffered: &mut Buffered, flush: &Flush) -> bool {
        let Place::Registers(registers) = &mut buffered.place else { return false };
        let Some(coming) = registers.coming.get_mut(&flush.lpn) else { return false };
        coming.flush = Some(*flush);
        true
    }

    /// Completes a transfer between the controller and a register.
    pub(super) fn transferred(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let transfer = self.backend.transferred(name, &mut Inside::of(cx));
        let Some(mut buffered) = self.buffered.take() else { return };
        let Place::Registers(registers) = &mut buffered.place else {
            unreachable!("only registers have transfers")
        };
        let Moving { lpn, command, bytes } = registers.moving[transfer.owner];
        registers.moving.remove(transfer.owner);
        match Errand::ALL[usize::from(transfer.tag)] {
            Errand::Store => self.stored(&mut buffered, lpn, command, cx),
            Errand::Read => {
                registers.counters.reads += 1;
                let queue = self.active[command].command.queue;
                self.host.data_out(queue, cx.now(), u64::from(bytes));
                self.end_transfer(command, cx);
            }
            Errand::TakeOut => self.assemble(&mut buffered, lpn, cx),
        }
        self.release_barriers(&mut buffered, cx);
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
    }

    /// Completes the arrival of a part of a unit in its register.
    fn stored(&mut self, buffered: &mut Buffered, lpn: Lpn, id: u32, cx: &mut impl Cx<Event, Out>) {
        let Place::Registers(registers) = &mut buffered.place else { return };
        registers.counters.stores += 1;
        let coming = registers.coming.get_mut(&lpn).expect("a unit that comes is known");
        coming.transfers -= 1;
        if coming.transfers == 0 {
            let flush = coming.flush;
            registers.coming.remove(&lpn);
            if let Some(flush) = flush {
                self.destage(buffered, &flush, cx);
            }
        }
        let command = self.active[id].command;
        if self.active[id].next == self.active[id].end && !buffered.promises_flash(&command) {
            self.end_transfer(id, cx);
        } else {
            // The command waits for room, or for a barrier.
            self.active[id].pending -= 1;
        }
    }

    /// Ends a transfer of a command, and the command if it was the last.
    fn end_transfer(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.pending -= 1;
        if active.pending == 0 {
            active.reach(milestone::BUFFER, cx.now());
            self.complete(id, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    // Worked examples of registers that gather writes: one package of one die of two planes, a register each.
    use crate::device::{Device, Event, Out};
    use crate::soak::Combination;
    use crate::spec::{Built, FlashSpec};
    use config::units::Share;
    use engine::{Recorder, Time};
    use nand::registers::{NifSpec, RegisterNetwork};
    use proto::{Command, IoOp};

    const PAGE: u64 = 4096;

    fn spec(network: RegisterNetwork) -> FlashSpec {
        let combination = Combination { page: PAGE, tight: false, ..Combination::plain() };
        let mut spec = combination.with_registers(false).spec();
        (spec.geometry.channels, spec.geometry.ways, spec.geometry.dies, spec.geometry.planes) = (1, 1, 1, 2);
        let registers = spec.registers.as_mut().expect("it has registers");
        (registers.count, registers.network, registers.reserve) = (2, network, Share::ZERO);
        spec
    }

    struct Bench {
        device: Device,
        cx: Recorder<Event, Out>,
        spec: FlashSpec,
    }

    impl Bench {
        fn new(network: RegisterNetwork) -> Bench {
            let spec = spec(network);
            let context = Built { seed: 1, name: "drive".into(), fold: true };
            let mut device = spec.build(&context).expect("it can be built");
            device.attach_shadow();
            Bench { device, cx: Recorder::default(), spec }
        }

        fn submit(&mut self, op: IoOp, page: u64, bytes: u64) {
            self.device.submit(Command::new(0, op, page * PAGE, bytes), &mut self.cx);
        }

        /// Runs until this many answers have arrived; returns the time of the last one.
        fn until(&mut self, answers: usize) -> Time {
            while self.cx.sent.len() < answers {
                let event = self.cx.queue.pop().expect("something is under way");
                self.device.handle(event, &mut self.cx);
            }
            self.cx.sent.clear();
            self.cx.queue.now()
        }

        /// Time of a single command.
        fn one(&mut self, op: IoOp, page: u64, bytes: u64) -> Time {
            let begin = self.cx.queue.now();
            self.submit(op, page, bytes);
            self.until(1) - begin
        }

        /// As [`Bench::one`]; afterwards nothing is under way.
        fn flush(&mut self) -> Time {
            self.one(IoOp::Flush, 0, 0)
        }

        /// tR, tPROG of a block's first page, and bytes over the channel.
        fn times(&self) -> (Time, Time, Time) {
            let data = net::Rate::new(self.spec.channel.bytes_per_s()).time(PAGE);
            (self.spec.cell.read[0].time(), self.spec.cell.program[0].time(), data)
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                let failed: Vec<_> =
                    self.device.checks(self.cx.queue.now()).into_iter().filter(|c| !c.ok).collect();
                assert_eq!(failed, []);
            }
        }
    }

    fn nif() -> RegisterNetwork {
        RegisterNetwork::nif(NifSpec::default())
    }

    #[test]
    fn a_read_from_a_register_saves_the_sensing() {
        let mut bench = Bench::new(nif());
        bench.one(IoOp::Write, 0, PAGE);
        let held = bench.one(IoOp::Read, 0, PAGE);
        bench.flush();
        let sensed = bench.one(IoOp::Read, 0, PAGE);
        let (sensing, _, _) = bench.times();
        let channel = &bench.spec.channel;
        assert_eq!(sensed - held, channel.read_command() + sensing - channel.column_command());
        let counters = bench.device.register_counters().expect("it has registers");
        assert_eq!((counters.stores, counters.merged, counters.reads), (1, 0, 1));
    }

    #[test]
    fn a_die_takes_data_while_it_programs() {
        let mut bench = Bench::new(nif());
        let idle = bench.one(IoOp::Write, 0, PAGE);
        // The page is being programmed when the next write arrives, long after its data.
        bench.submit(IoOp::Flush, 0, 0);
        let until = bench.cx.queue.now() + Time::from_us(50);
        while bench.cx.queue.now() < until {
            let event = bench.cx.queue.pop().expect("the program ends");
            bench.device.handle(event, &mut bench.cx);
            if bench.device.backend.ops.len() == 1 && bench.cx.sent.is_empty() {
                break;
            }
        }
        let begin = bench.cx.queue.now();
        bench.submit(IoOp::Write, 1, PAGE);
        assert_eq!(bench.until(1) - begin, idle);
        bench.until(1);
    }

    #[test]
    fn a_page_in_part_is_completed_where_it_is() {
        let mut bench = Bench::new(nif());
        bench.one(IoOp::Write, 0, PAGE);
        let whole = bench.flush();
        // The other plane: again the first page of its block.
        bench.one(IoOp::Write, 1, PAGE);
        assert_eq!(bench.flush(), whole);
        let (sensing, program, _) = bench.times();
        bench.one(IoOp::Write, 0, 512);
        let part = bench.flush();
        // The second page of a word line takes longer to be programmed.
        let second = bench.spec.cell.program[1].time();
        assert_eq!(part - whole, bench.spec.channel.read_command() + sensing + second - program);
    }

    /// Two pages of one plane: the second is in the register of the other plane, and is programmed after the first.
    #[test]
    fn a_page_reaches_its_plane_by_the_network() {
        let both = |network| {
            let mut bench = Bench::new(network);
            bench.one(IoOp::Write, 0, PAGE);
            bench.one(IoOp::Write, 2, PAGE);
            let counters = bench.device.register_counters().expect("it has registers");
            assert_eq!(counters.stores, 2);
            let took = bench.flush();
            let moves = bench.device.register_counters().expect("it has registers").moves;
            (took, moves, bench.times().2, bench.spec.channel.data_in())
        };
        let (fcnet, moves, data, data_in) = both(RegisterNetwork::fcnet);
        assert_eq!(moves, 1);
        // 4 KiB by 8 bytes 800 million times a second.
        let shift = Time::from_ns(640);
        assert_eq!(both(nif()).0 - fcnet, shift);
        // Out to the controller while the first is programmed, and back in with the program.
        assert_eq!(both(RegisterNetwork::swnet).0 - fcnet, data_in + data);
    }

    /// Alone in its plane, the second page has no register until the first has been programmed.
    #[test]
    fn a_private_register_takes_one_page_of_its_plane() {
        let mut bench = Bench::new(RegisterNetwork::private);
        let first = bench.one(IoOp::Write, 0, PAGE);
        let other = bench.one(IoOp::Write, 1, PAGE);
        assert_eq!(first, other);
        let second = bench.one(IoOp::Write, 2, PAGE);
        let (_, program, _) = bench.times();
        assert_eq!(second, first + bench.spec.channel.program_command() + program);
        assert_eq!(bench.device.register_counters().expect("it has registers").moves, 0);
    }

    #[test]
    fn what_is_written_again_is_programmed_once() {
        let mut bench = Bench::new(nif());
        (0..5).for_each(|_| _ = bench.one(IoOp::Write, 0, 512));
        let counters = bench.device.register_counters().expect("it has registers");
        assert_eq!((counters.stores, counters.merged), (5, 4));
        bench.flush();
        assert_eq!(bench.device.window_counters().1.host_commits, 1);
    }

    #[test]
    fn what_registers_cannot_do_is_refused() {
        use crate::spec::ReclaimUnit;
        use ftl::page_map::alloc::Allocation;
        let fault = |change: &dyn Fn(&mut FlashSpec)| {
            let mut spec = spec(nif());
            change(&mut spec);
            let context = Built { seed: 1, name: "drive".into(), fold: true };
            spec.build(&context).err().map(|fault| fault.key)
        };
        assert_eq!(fault(&|_| ()), None);
        let told: Vec<_> = [
            fault(&|s| s.registers.as_mut().expect("registers").count = 1),
            fault(&|s| s.ftl.map_unit = config::units::Bytes::new(2048)),
            fault(&|s| s.ftl.reclaim_unit = ReclaimUnit::plane_set),
            fault(&|s| s.ftl.allocation = Allocation::round_robin),
        ]
        .into_iter()
        .flatten()
        .collect();
        assert_eq!(told, ["registers.count", "ftl.map_unit", "ftl.reclaim_unit", "ftl.allocation"]);
    }
}
