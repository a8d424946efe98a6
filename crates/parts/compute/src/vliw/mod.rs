//! Cores of an accelerator: in-order, with several operations per cycle, scheduled by the compiler.

pub mod accelerator;
pub mod coprocessor;
pub mod frames;
pub mod issue;
pub mod memory;
mod program;
pub mod recorded;
pub mod sched;
mod spec;
pub mod stalls;

pub use spec::{
    AcceleratorMemory, AcceleratorSpec, AcceleratorSums, AcceleratorWork, CacheSpec, CoreSpec, ExpansionSpec,
    FirmwareSpec, LatencySpec, PrefetchSpec, UnitsSpec,
};

use config::units::Energy;
use engine::{Mutant, Time, planted_nth};
use spec::WorkerPower;
use stats::{Activity, Attojoules, EnergyReport, Meter};

/// Size of a page group, bytes: the unit in which programs learn which parts of their arrays are in memory.
pub const GROUP: u64 = 64 << 10;

// Observation of an accelerator: actions of its cores, and locks of data sections.

/// Kind of action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act<'a> {
    /// Screen on a worker, from Flashvisor's decision until it knows of the end.
    Screen {
        /// Number of the worker.
        worker: u16,
        /// Microblock of the screen, in the kernel.
        microblock: u32,
        /// Number of the screen in the microblock.
        screen: u32,
    },
    /// Section of a screen, computed by a worker.
    Section {
        /// Number of the worker.
        worker: u16,
        /// Time for which the worker waited for its caches or for memory.
        stalled: Time,
    },
    /// Wait of a kernel for the lock on a data section.
    Waits {
        /// Array of the section.
        array: &'a str,
    },
    /// Lock held by a kernel on a data section.
    Holds {
        /// Array of the section.
        array: &'a str,
    },
    /// Work of Flashvisor's core.
    Flashvisor,
    /// Work of Storengine's core.
    Storengine,
}

/// Action of an accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// Kind of action.
    pub act: Act<'a>,
    /// Kernel of the action; `None` for firmware.
    pub kernel: Option<Instance>,
    /// Program of the kernel.
    pub program: &'a str,
    /// Start of the action.
    pub from: Time,
    /// End of the action; for the firmware's cores, it may lie ahead.
    pub to: Time,
}

/// Observer of an accelerator's actions, called when their end is known.
///
/// An observer cannot schedule anything: a result is bit for bit the same with and without it.
pub trait Observer {
    /// Reports an action that is done, or will be.
    fn done(&mut self, done: &Done<'_>);
}

// Energy of a chip that executes programs: cores by state, memory by bytes, and the rest of the chip.

/// State of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Without work.
    Idle,
    /// With work, waiting.
    Waits,
    /// Computing, stalls included.
    Computes,
}

/// First activities of a chip's meter, in the order of [`State`].
const CORES: [Activity; 3] =
    [Activity::state("worker idle"), Activity::state("worker waits"), Activity::state("worker computes")];

/// Activity of bytes that cross memory.
const MEMORY_TRANSFER: Activity = Activity::operation("memory transfer");

/// Activity of memory that is on.
const MEMORY_ON: Activity = Activity::state("memory on");

/// Activity of the rest of the chip.
const CHIP_ON: Activity = Activity::state("chip on");

/// Energy meter of a chip.
struct ChipMeter {
    power: WorkerPower,
    /// Number of cores in each state.
    count: [u64; 3],
    /// Energy of a transferred byte, by activity.
    bytes: [Attojoules; MOST],
    meter: Meter,
}

/// Most activities of a chip.
const MOST: usize = 8;

impl ChipMeter {
    /// Creates a meter for `cores` idle cores, whose activities come first. Other activities have a power, in
    /// microwatts, or an energy per byte.
    fn new(
        activities: &'static [Activity; MOST],
        (power, cores): (WorkerPower, u16),
        on: impl IntoIterator<Item = (usize, u64)>,
        carries: impl IntoIterator<Item = (usize, Energy)>,
    ) -> ChipMeter {
        let mut meter = Meter::new(activities);
        on.into_iter().for_each(|(activity, power)| meter.set_power(activity, Time::ZERO, power));
        let mut bytes = [0; MOST];
        carries.into_iter().for_each(|(activity, byte)| bytes[activity] = byte.attojoules().into());
        let mut chip = ChipMeter { power, count: [cores.into(), 0, 0], bytes, meter };
        chip.set(Time::ZERO);
        chip
    }

    fn set(&mut self, now: Time) {
        let each = [self.power.idle, self.power.waits, self.power.computes];
        for (state, (power, cores)) in each.into_iter().zip(self.count).enumerate() {
            self.meter.set_power(state, now, power.microwatts() * cores);
        }
    }

    /// Moves `cores` cores from one state to another.
    fn turn(&mut self, now: Time, cores: usize, (from, to): (State, State)) {
        self.count[from as usize] -= cores as u64;
        self.count[to as usize] += cores as u64;
        if !planted_nth(Mutant::UnpaidWorker, 16) {
            self.set(now);
        }
    }

    /// Meters bytes transferred in a time, possibly ahead.
    fn carry(&mut self, activity: usize, from: Time, to: Time, bytes: u64) {
        self.meter.spread(activity, from, to, self.bytes[activity] * Attojoules::from(bytes));
    }

    /// Meters an additional power for a time.
    fn spend_over(&mut self, activity: usize, from: Time, to: Time, microwatts: u64) {
        self.meter.spend_over(activity, from, to, microwatts);
    }

    /// Energy since the measured window began.
    fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// Starts the measured window.
    fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

// Remaining work of each kernel, and the work that may begin now: the multi-app execution chain (FlashAbacus, section
// 4.2).

/// Offloaded kernel, by its position in the order of offload.
pub type Instance = u32;

/// Unit of work that a core executes without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Kernel, from its beginning to its end.
    Kernel(Instance),
    /// Screen of a kernel's current microblock.
    Screen(Instance),
}

/// Screen of a microblock: work for a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Kernel of the screen.
    pub instance: Instance,
    /// Microblock of the screen, by its position in the kernel.
    pub microblock: u32,
    /// Position of the screen in the microblock.
    pub screen: u32,
}

/// Consequence of the end of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// None: other screens of the microblock are not over.
    Screen,
    /// The microblock is over, and the next may begin.
    Microblock,
    /// The kernel is over.
    Kernel,
}

/// Kernel in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kernel {
    app: u16,
    /// Number of screens of each microblock.
    screens: Vec<u32>,
    /// Current microblock, and how many of its screens have begun and ended.
    microblock: u32,
    begun: u32,
    ended: u32,
    /// True if one core executes the whole kernel.
    whole: bool,
}

impl Kernel {
    fn is_over(&self) -> bool {
        self.microblock as usize == self.screens.len()
    }

    /// Number of screens that may begin.
    fn ready(&self) -> u32 {
        if self.is_over() { 0 } else { self.screens[self.microblock as usize] - self.begun }
    }

    fn has_begun(&self) -> bool {
        self.microblock > 0 || self.begun > 0
    }
}

/// Chain of kernels with their microblocks and screens. A screen may begin when every screen of the previous microblock
/// has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    kernels: Vec<Kernel>,
    /// First kernel that is not over.
    first: usize,
}

impl Chain {
    /// Adds an offloaded kernel of an application, with the number of screens of each microblock.
    ///
    /// # Panics
    /// If the kernel has no microblock, or one without screens.
    pub fn offload(&mut self, app: u16, screens: &[u32]) -> Instance {
        assert!(!screens.is_empty() && screens.iter().all(|count| *count > 0), "a kernel without work");
        let screens = screens.to_vec();
        self.kernels.push(Kernel { app, screens, microblock: 0, begun: 0, ended: 0, whole: false });
        self.kernels.len() as Instance - 1
    }

    /// Kernels that are not over, in the order of their offload.
    pub fn open(&self) -> impl Iterator<Item = Instance> + '_ {
        let kernels = self.kernels.iter().enumerate().skip(self.first);
        kernels.filter(|(_, kernel)| !kernel.is_over()).map(|(at, _)| at as Instance)
    }

    /// Returns whether every kernel is over.
    pub fn is_over(&self) -> bool {
        self.first == self.kernels.len()
    }

    /// Application of a kernel.
    pub fn app(&self, instance: Instance) -> u16 {
        self.kernels[instance as usize].app
    }

    /// Returns whether no screen of a kernel has begun.
    pub fn is_fresh(&self, instance: Instance) -> bool {
        !self.kernels[instance as usize].has_begun()
    }

    /// Number of screens that may begin in a kernel without a core of its own.
    pub fn ready(&self, instance: Instance) -> u32 {
        let kernel = &self.kernels[instance as usize];
        if kernel.whole { 0 } else { kernel.ready() }
    }

    /// Begins a unit on a core; returns its first screen.
    ///
    /// # Panics
    /// If the unit may not begin.
    pub fn begin(&mut self, unit: Unit) -> Screen {
        let (instance, whole) = match unit {
            Unit::Kernel(instance) => (instance, true),
            Unit::Screen(instance) => (instance, false),
        };
        let kernel = &mut self.kernels[instance as usize];
        assert!(!kernel.whole && (!whole || !kernel.has_begun()), "another core has the kernel");
        kernel.whole = whole;
        self.next(instance)
    }

    /// Begins the next screen of a kernel that has a core of its own.
    ///
    /// # Panics
    /// If the kernel is over, or its microblock's screens have all begun.
    pub fn next(&mut self, instance: Instance) -> Screen {
        let kernel = &mut self.kernels[instance as usize];
        assert!(kernel.ready() > 0, "no screen may begin");
        let screen = Screen { instance, microblock: kernel.microblock, screen: kernel.begun };
        kernel.begun += 1;
        screen
    }

    /// Returns whether a screen is the first of its kernel.
    pub fn is_first(&self, screen: Screen) -> bool {
        screen.microblock == 0 && screen.screen == 0
    }

    /// Ends a screen.
    pub fn end(&mut self, screen: Screen) -> Ended {
        let kernel = &mut self.kernels[screen.instance as usize];
        debug_assert_eq!(
            kernel.microblock, screen.microblock,
            "a microblock before the one that is under way"
        );
        kernel.ended += 1;
        if kernel.ended < kernel.screens[kernel.microblock as usize] {
            return Ended::Screen;
        }
        (kernel.microblock, kernel.begun, kernel.ended) = (kernel.microblock + 1, 0, 0);
        if !kernel.is_over() {
            return Ended::Microblock;
        }
        while self.kernels.get(self.first).is_some_and(Kernel::is_over) {
            self.first += 1;
        }
        Ended::Kernel
    }
}

#[cfg(test)]
mod testing {
    // What tests of cores share.
    use super::spec::{
        AcceleratorMemory, CacheSpec, CoreSpec, ExpansionSpec, LatencySpec, UnitsSpec, WorkerPower,
    };
    use config::units::{Bandwidth, Bytes, Frequency, Power};
    use nest::Kernel;

    /// A C66x core at 1 GHz.
    pub(super) fn core() -> CoreSpec {
        CoreSpec {
            clock: Frequency::new(1_000_000_000),
            units: UnitsSpec { multiply: 2, general: 4, memory: 2 },
            latency: LatencySpec {
                load: 5,
                store: 1,
                add: 3,
                multiply: 4,
                compare: 1,
                divide: 27,
                square_root: 27,
            },
            divide: ExpansionSpec { multiply: 5, general: 7 },
            square_root: ExpansionSpec { multiply: 7, general: 5 },
            l1: cache(32, 2, 64, 8),
            l2: cache(512, 4, 128, 85),
            prefetch: None,
            write_back: 65,
        }
    }

    /// A level of caches, by its size in KiB, ways, bytes of a line, and cycles of a miss.
    pub(super) fn cache(kib: u64, ways: u32, line: u64, miss: u32) -> CacheSpec {
        CacheSpec { size: Bytes::from_kib(kib), ways, line: Bytes::new(line), miss }
    }

    /// 8 MiB at 6.4 GB/s.
    pub(super) fn memory() -> AcceleratorMemory {
        AcceleratorMemory { size: Bytes::from_kib(8 << 10), bandwidth: Bandwidth::new(6_400_000_000) }
    }

    /// A core's power by state, all different.
    pub(super) fn power() -> WorkerPower {
        WorkerPower { idle: Power::new(88), waits: Power::new(209), computes: Power::new(641) }
    }

    /// A shipped program with sizes of its own.
    fn sized(name: &str, of: impl Fn(&str) -> Option<i64>) -> Kernel {
        let (_, text) = nest::programs().iter().find(|(known, _)| *known == name).expect("a program");
        let whole = Kernel::read(text, name, &[]).expect("a program");
        let sizes: Vec<_> =
            whole.sizes().iter().filter_map(|(size, _)| Some((size.clone(), of(size)?))).collect();
        Kernel::read(text, name, &sizes).expect("sizes")
    }

    /// A shipped program as it is.
    pub(super) fn whole(name: &str) -> Kernel {
        sized(name, |_| None)
    }

    /// A shipped program with all its sizes so large.
    pub(super) fn shipped(name: &str, side: i64) -> Kernel {
        sized(name, |_| Some(side))
    }

    /// A shipped program with some sizes.
    pub(super) fn with_sizes(name: &str, sizes: &[(&str, i64)]) -> Kernel {
        sized(name, |size| sizes.iter().find(|(known, _)| *known == size).map(|(_, side)| *side))
    }

    /// A product element by element, each of which needs a column of 1,024 rows: 64 page groups.
    pub(super) fn columns() -> Kernel {
        let text = r#"
name = "columns"
[sizes]
n = 1024
[arrays.A]
shape = ["n", "n"]
element = "f32"
section = "input"
[arrays.B]
shape = ["n", "n"]
element = "f32"
section = "input"
[arrays.C]
shape = ["n", "n"]
element = "f32"
section = "output"
[[microblocks]]
split = "i"
code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += A[i][k] * B[k][j]; } } }"
"#;
        Kernel::read(text, "columns.toml", &[]).expect("a kernel")
    }
}
