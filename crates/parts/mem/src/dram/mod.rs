//! DRAM, and other memories of rows and banks, behind controllers.
//!
//! Each controller has a channel: a data bus and banks with one open row each. A row stays open until an access needs a
//! different row of its bank, or until a refresh. The times between commands are those of data sheets, without rounding
//! to clock edges. Not modelled: bank groups (accesses in flight are assumed to spread over them, so that `ccd` is the
//! shorter tCCD), ranks, power-down, and the command bus.

mod controller;
pub mod energy;
pub mod sched;
pub mod spec;
#[cfg(test)]
mod tests;

pub use energy::DramEnergySpec;
pub use spec::{DramBanksSpec, DramBusSpec, DramRefreshSpec, DramSpec, DramTimingSpec};

use config::SpecError;
use controller::{Around, Controller, Piece};
use energy::DramMeter;
use engine::{Cx, Slab, Time};
use proto::memory::{MemCommand, PAGE, Stage, Tally};
use sched::Scheduler;
use stats::EnergyReport;

/// Messages sent by a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The lines of a command have been read or written.
    Done(MemCommand),
}

engine::events! {
    /// Internal events of a memory.
    pub enum Event {
        /// A controller can proceed.
        Wake(u16),
        /// Data of a part of a command have passed the bus.
        Moved(u32),
    }
}

/// Statistics of a memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DramStats {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Accesses (the lines of a command in one row) that found their row open.
    pub row_hits: u64,
    /// Accesses that found their bank closed.
    pub row_closed: u64,
    /// Accesses that found a different row open.
    pub row_conflicts: u64,
    /// Activations.
    pub activations: u64,
    /// Direction changes of the buses.
    pub turnarounds: u64,
    /// Busy time of the data buses, summed over controllers.
    pub bus_busy: Time,
    /// Lines moved over the buses: read, written.
    pub lines: [u64; 2],
}

/// Pair of counts that must agree, from different places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DramAccount {
    /// Name of the count.
    pub name: &'static str,
    /// Value counted or spent.
    pub found: u128,
    /// Value expected.
    pub due: u128,
}

/// Memory behind controllers.
pub struct Dram {
    /// Size of a line in bytes.
    line: u64,
    map: Map,
    timing: Timing,
    latency: Time,
    peak_bandwidth: u64,
    scheduler: Box<dyn Scheduler>,
    controllers: Vec<Controller>,
    commands: Slab<Inside>,
    meter: Option<Box<DramMeter>>,
    /// Pieces of the command that is just arriving.
    pieces: Vec<(Place, u8)>,
    bound: usize,
    /// Start of the measured window.
    window: Time,
    /// Transfers over each data bus.
    #[cfg(test)]
    transfers: Vec<(u16, controller::Transfer)>,
    /// Statistics of the window.
    pub stats: DramStats,
    /// Waiting time by stage.
    pub tally: Tally,
}

/// Command inside.
struct Inside {
    command: MemCommand,
    /// Pieces whose data have not passed yet.
    pieces: u8,
}

impl Dram {
    /// Creates an idle memory, every bank closed. The lines of commands have `line` bytes.
    ///
    /// # Errors
    /// Returns the first value that cannot be built.
    pub fn new(spec: &DramSpec, line: u64) -> Result<Dram, SpecError> {
        spec.check(line)?;
        let timing = Timing::new(spec, line);
        // Refreshes of the controllers are spread over the interval.
        let interval = timing.refresh.map_or(0, |refresh| refresh.interval.ps());
        let shift = |n: u16| Time::from_ps(interval / u64::from(spec.controllers) * u64::from(n));
        Ok(Dram {
            line,
            map: Map::new(spec),
            timing,
            latency: spec.latency.time(),
            peak_bandwidth: spec.bus.bandwidth().saturating_mul(spec.controllers.into()),
            scheduler: spec.scheduler.build(&()),
            controllers: (0..spec.controllers).map(|n| Controller::new(spec.banks.count, shift(n))).collect(),
            commands: Slab::default(),
            meter: spec.energy.map(|costs| {
                let bursts = line / spec.bus.burst_bytes();
                Box::new(DramMeter::new(costs, bursts, (0..spec.controllers).map(shift)))
            }),
            pieces: Vec::with_capacity((PAGE / line) as usize),
            bound: usize::MAX,
            window: Time::ZERO,
            #[cfg(test)]
            transfers: Vec::new(),
            stats: DramStats::default(),
            tally: Tally::default(),
        })
    }

    /// Number of controllers.
    pub fn controllers(&self) -> u16 {
        self.controllers.len() as u16
    }

    /// Controller of an address.
    pub fn controller_of(&self, address: u64) -> u16 {
        self.map.controller_of(address)
    }

    /// Bandwidth of all data buses, in bytes per second.
    pub fn peak_bandwidth(&self) -> u64 {
        self.peak_bandwidth
    }

    /// Number of commands inside.
    pub fn outstanding(&self) -> usize {
        self.commands.len()
    }

    /// Bounds the commands inside, to the number that all sources together can have outstanding. Exceeding it is a
    /// panic.
    pub fn bound(&mut self, commands: usize) {
        self.bound = commands;
    }

    /// Energy since the measured window began; `None` without energies in the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now, &self.timing))
    }

    /// Compares refreshes with their interval, and energy in attojoules with the counts of the measured window.
    pub fn accounts(&self, now: Time) -> Vec<DramAccount> {
        let mut accounts = Vec::new();
        let mut paid = 0;
        if let Some(refresh) = &self.timing.refresh {
            let due = |at: &Controller, until| at.due(until, refresh.interval);
            let controllers = self.controllers.iter();
            let found = controllers.clone().map(|at| u128::from(at.refreshes())).sum();
            let all = controllers.clone().map(|at| u128::from(due(at, at.looked))).sum();
            accounts.push(DramAccount { name: "refreshes", found, due: all });
            paid = controllers.map(|at| due(at, now) - due(at, self.window)).sum();
        }
        if let (Some(energy), Some(meter)) = (self.energy(now), &self.meter) {
            let DramStats { activations, lines: [read, written], .. } = self.stats;
            let counts = [("activate", activations), ("read", read), ("write", written), ("refresh", paid)];
            let account =
                |(name, count)| DramAccount { name, found: energy.of(name), due: meter.of(name, count) };
            accounts.extend(counts.map(account));
        }
        accounts
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.window = now;
        if let Some(meter) = &mut self.meter {
            meter.reset(now, &self.timing);
        }
        self.stats = DramStats::default();
        self.tally = Tally::default();
    }

    /// Accepts a command. Its lines in one row are one access; it is done when all of them have passed.
    ///
    /// # Panics
    /// Panics if the command has no lines, or if the bound of commands is exceeded.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        assert!(command.lines != 0, "a command without lines");
        if command.write {
            self.stats.writes += 1;
            self.stats.written_bytes += command.bytes(self.line);
        } else {
            self.stats.reads += 1;
            self.stats.read_bytes += command.bytes(self.line);
        }
        self.split(&command);
        let name = self.commands.insert(Inside { command, pieces: self.pieces.len() as u8 });
        assert!(self.commands.len() <= self.bound, "more than {} commands at the same time", self.bound);
        let now = cx.now();
        for n in 0..self.pieces.len() {
            let (place, lines) = self.pieces[n];
            let piece =
                Piece { command: name, number: 0, arrived: now, row: place.row, lines, write: command.write };
            let number = usize::from(place.controller);
            let metered = self.meter.as_deref_mut().map(|meter| (meter, number));
            let mut around =
                Around { timing: &self.timing, policy: &*self.scheduler, stats: &mut self.stats, metered };
            let controller = &mut self.controllers[number];
            if controller.arrive(place.bank, piece, &mut around) {
                self.decide(place.controller, cx);
            }
        }
    }

    /// Finds the places of a command's lines.
    fn split(&mut self, command: &MemCommand) {
        self.pieces.clear();
        let (mut lines, mut latest) = (command.lines, None);
        while lines != 0 {
            let address = command.page + u64::from(lines.trailing_zeros()) * self.line;
            lines &= lines - 1;
            let grain = self.map.grain_of(address);
            let at = match latest {
                Some((same, at)) if same == grain => at,
                _ => {
                    let place = self.map.place(address);
                    let found = self.pieces.iter().position(|(other, _)| *other == place);
                    found.unwrap_or_else(|| {
                        self.pieces.push((place, 0));
                        self.pieces.len() - 1
                    })
                }
            };
            self.pieces[at].1 += 1;
            latest = Some((grain, at));
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Wake(controller) => {
                self.controllers[usize::from(controller)].wake = None;
                self.decide(controller, cx);
            }
            Event::Moved(name) => self.moved(name, cx),
        }
    }

    /// Lets a controller do everything possible, and schedules its next decision.
    fn decide(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        let (now, latency) = (cx.now(), self.latency);
        let metered = self.meter.as_deref_mut().map(|meter| (meter, usize::from(number)));
        let mut around =
            Around { timing: &self.timing, policy: &*self.scheduler, stats: &mut self.stats, metered };
        let controller = &mut self.controllers[usize::from(number)];
        #[cfg(test)]
        let log = &mut self.transfers;
        let again = controller.decide(now, &mut around, |transfer| {
            #[cfg(test)]
            log.push((number, transfer));
            cx.after((transfer.end + latency).since(now), Event::Moved(transfer.command));
        });
        match (controller.wake, again) {
            // An earlier wake-up decides anew.
            (Some((at, _)), Some(again)) if at <= again => {}
            (wake, Some(again)) => {
                if let Some((_, ticket)) = wake {
                    cx.cancel(ticket);
                }
                controller.wake = Some((again, cx.after(again.since(now), Event::Wake(number))));
            }
            (_, None) => {}
        }
    }

    /// Completes a transfer of a command's data.
    fn moved(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let inside = &mut self.commands[name];
        inside.pieces -= 1;
        if inside.pieces == 0 {
            let mut command = inside.command;
            self.commands.remove(name);
            self.tally.command(Stage::Memory, &mut command, cx.now());
            cx.emit(Out::Done(command));
        }
    }
}

// Times as used by the controllers.

/// Refresh times of one controller.
#[derive(Clone, Copy, Debug)]
struct Refresh {
    interval: Time,
    duration: Time,
}

/// Times between commands.
#[derive(Clone, Copy, Debug)]
struct Timing {
    rcd: Time,
    cl: Time,
    cwl: Time,
    rp: Time,
    ras: Time,
    rrd: Time,
    faw: Time,
    wr: Time,
    wtr: Time,
    rtp: Time,
    turnaround: Time,
    /// Duration of a line on the data bus.
    transfer: Time,
    /// Time from the first column access of a line to that of the next.
    line: Time,
    /// Time from one column access to the next.
    column: Time,
    refresh: Option<Refresh>,
}

impl Timing {
    /// Creates the times of a memory that passes its check, for lines of `line` bytes.
    fn new(spec: &DramSpec, line: u64) -> Timing {
        let timing = &spec.timing;
        let bursts = line / spec.bus.burst_bytes();
        let transfer = Time::transfer(line, spec.bus.bandwidth());
        let column = transfer.max(timing.ccd.time().times(bursts));
        Timing {
            rcd: timing.rcd.time(),
            cl: timing.cl.time(),
            cwl: timing.cwl.time(),
            rp: timing.rp.time(),
            ras: timing.ras.time(),
            rrd: timing.rrd.time(),
            faw: timing.faw.time(),
            wr: timing.wr.time(),
            wtr: timing.wtr.time(),
            rtp: timing.rtp.time(),
            turnaround: timing.turnaround.time(),
            transfer,
            line: column,
            column: Time::from_ps(column.ps() / bursts),
            refresh: spec.refresh.as_ref().map(|refresh| Refresh {
                interval: refresh.interval.time(),
                duration: refresh.duration.time(),
            }),
        }
    }
}

// Address map.

/// Row of a bank of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    controller: u16,
    bank: u8,
    row: u64,
}

/// Address map: controllers by the interleave, then, from the highest bits down, row, bank, column.
#[derive(Clone, Debug)]
struct Map {
    controllers: u64,
    interleave: u64,
    row: u64,
    banks: u64,
    hash: bool,
    /// Size of an aligned block of bytes that is always in one row of one controller.
    grain: u64,
}

impl Map {
    /// Creates the map of a memory that passes its check.
    fn new(spec: &DramSpec) -> Map {
        let (interleave, row) = (spec.interleave.get(), spec.banks.row.get());
        Map {
            controllers: spec.controllers.into(),
            interleave,
            row,
            banks: spec.banks.count.into(),
            hash: spec.banks.hash,
            grain: greatest_common_divisor(interleave, row),
        }
    }

    /// Controller of an address.
    #[inline]
    fn controller_of(&self, address: u64) -> u16 {
        (address / self.interleave % self.controllers) as u16
    }

    /// Number of the aligned block around an address that is always in one place.
    #[inline]
    fn grain_of(&self, address: u64) -> u64 {
        address / self.grain
    }

    /// Place of an address.
    #[inline]
    fn place(&self, address: u64) -> Place {
        let (chunk, offset) = (address / self.interleave, address % self.interleave);
        let rows = (chunk / self.controllers * self.interleave + offset) / self.row;
        let (row, mut bank) = (rows / self.banks, rows % self.banks);
        if self.hash {
            bank ^= row & (self.banks - 1);
        }
        Place { controller: (chunk % self.controllers) as u16, bank: bank as u8, row }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
