//! Devices that differ in every choice.

use crate::device::Device;
use crate::spec::{
    BufferSpec, Built, CellSpec, ChannelSpec, ControllerSpec, DieSpec, FlashSpec, FtlSpec, FullReads,
    GcModeSpec, GcScope, GcSpec, GcStreams, GeometrySpec, HostLinkSpec, HostSpec, Interface, Leaves,
    MapGranularity, MapMemorySpec, Mapping, Moves, MultiPlaneRule, NvmeArbitration, NvmeSpec, PageLayout,
    PlainSpec, Programming, ReclaimUnit, RegisterCacheSpec, SpecError, SpreadSpec, StripeOrder, SuspendSpec,
    UnwrittenRead, WearSpec,
};
use config::units::{Bandwidth, Bytes, Duration, Share, TransferRate};
use engine::{Rng, Time};
use ftl::buffer::admit::AdmissionPolicy;
use ftl::buffer::ahead::{LookAheadPolicy, sequential};
use ftl::buffer::destage::DestagePolicy;
use ftl::buffer::evict::EvictionPolicy;
use ftl::page_map::Ftl;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::functional::{FunctionalWriter, Placement};
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::pages::PageOrder;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::{Scheduling, read_first};
use nand::geometry::Digit;
use nand::registers::RegisterNetwork;
use proto::Lpn;
use std::fmt;

/// Initial contents of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// No data.
    Empty,
    /// Full, written in order.
    Sequential,
    /// Full, written in order and then twice at random.
    Steady,
}

/// Data buffer of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// No buffer.
    None,
    /// Write-back: written data waits in the buffer.
    WriteBack,
    /// Write-back, behind capacitors.
    Protected,
    /// Write-back without capacitors; data that is read stays in the buffer too.
    WriteBackAndReads,
    /// Write-through.
    WriteThrough,
    /// Write-through; data that is read stays in the buffer.
    WriteThroughAndReads,
    /// Written data waits in registers of the planes.
    Registers,
    /// Registers behind capacitors.
    ProtectedRegisters,
}

/// Location of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Map {
    /// In memory.
    Table,
    /// On flash; a few entries are cached.
    Entries,
    /// On flash in small pages; enough entries are cached that all of a page become dirty before one is evicted.
    SmallPages,
    /// On flash; two translation pages are cached.
    Pages,
}

/// One device.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// Size of a map unit in bytes.
    pub map_unit: u64,
    /// Size of a page in bytes.
    pub page: u64,
    /// Unit that garbage collection frees as a whole.
    pub reclaim: ReclaimUnit,
    /// One-shot programming of a word line of three pages; page by page if false.
    pub one_shot: bool,
    /// Allocation policy for host data.
    pub allocation: Allocation,
    /// Victim policy of garbage collection.
    pub victim: VictimPolicy,
    /// Copy-back inside a plane.
    pub copy_back: bool,
    /// Die scheduler.
    pub scheduler: Scheduling,
    /// Arbitration of a channel.
    pub arbiter: Arbitration,
    /// Rule for planes that share a command.
    pub multi_plane: MultiPlaneRule,
    /// Suspension of programs and erases for reads.
    pub suspend: bool,
    /// Independent plane reads; not in any of the combinations that cover each other.
    pub independent_reads: bool,
    /// Host data streams.
    pub placements: u8,
    /// Commands in flight.
    pub depth: u32,
    /// Initial contents.
    pub fill: Fill,
    /// NVMe queues that hold commands back; a memory port if false.
    pub nvme: bool,
    /// Folding of stages.
    pub fold: bool,
    /// Dynamic wear levelling: the least-worn unit is opened next.
    pub least_worn: bool,
    /// Touching thresholds, minimum window and over-provisioning; generous values if false.
    pub tight: bool,
    /// Data buffer.
    pub memory: Memory,
    /// Location of the map.
    pub map: Map,
    /// Sharing of the device between garbage collection and the host.
    pub mode: GcModeSpec,
    /// Destination of moved data.
    pub scope: GcScope,
    /// Erases by which a unit may lag behind.
    pub gap: Option<u32>,
    /// Separation of placements when data is moved.
    pub streams: GcStreams,
    /// Reads of pages held in registers.
    pub registers: bool,
    /// Joining of reads of one page.
    pub joins: bool,
    /// Raw bit errors, with some pages read again.
    pub errors: bool,
    /// Read-ahead policy of the buffer, if any.
    pub look_ahead: LookAheadPolicy,
    /// Write-back policy of the buffer, if any.
    pub destage: DestagePolicy,
    /// Page order of a group's open blocks; choosing among several needs cells with pages of different types.
    pub pages: PageOrder,
    /// Program units protected by one parity unit.
    pub parity: Option<u32>,
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unit {} page {} {}{} {} {} {} {} multi_plane {} placements {} depth {} {:?} {:?} {:?} {} {}",
            Bytes::new(self.map_unit),
            Bytes::new(self.page),
            self.reclaim.name(),
            if self.one_shot { " one_shot" } else { "" },
            self.allocation.name(),
            self.victim.name(),
            self.scheduler.name(),
            self.arbiter.name(),
            self.multi_plane.name(),
            self.placements,
            self.depth,
            self.fill,
            self.memory,
            self.map,
            self.mode.name(),
            self.scope.name(),
        )?;
        let switches = [
            (self.copy_back, "copy_back"),
            (self.suspend, "suspend"),
            (self.nvme, "nvme"),
            (self.fold, "fold"),
            (self.least_worn, "least_worn"),
            (self.tight, "tight"),
            (self.gap.is_some(), "gap"),
            (self.streams == GcStreams::mixed, "mixed"),
            (self.registers, "registers"),
            (self.joins, "joins"),
            (self.errors, "errors"),
            (self.look_ahead != LookAheadPolicy::none, "look_ahead"),
            (self.destage == DestagePolicy::when_full, "when_full"),
            (self.is_two_speed(), "two_speed"),
            (matches!(self.pages, PageOrder::by_type(_)), "by_type"),
            (matches!(self.pages, PageOrder::write_point(_)), "write_point"),
            (self.parity.is_some(), "parity"),
        ];
        switches.iter().filter(|(on, _)| *on).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

/// Possible sizes of a map unit in bytes.
const MAP_UNITS: [u64; 4] = [512, 4096, 16384, 65536];

/// Number of values of each field of a combination, in field order.
pub(super) fn levels() -> Row {
    [
        4,
        2,
        3,
        2,
        Allocation::all_defaults().len(),
        VictimPolicy::all_defaults().len(),
        2,
        Scheduling::all_defaults().len(),
        Arbitration::all_defaults().len(),
        3,
        2,
        2,
        4,
        3,
        2,
        2,
        2,
        2,
        6,
        4,
        3,
        2,
        2,
        2,
        2,
        2,
        2,
        2,
    ]
}

pub(super) type Row = [usize; 28];

impl Combination {
    /// Returns a combination with several map units per program unit, reads that overtake and are overtaken, and
    /// several lanes per reclaim unit; constant garbage collection, no buffer, the map in memory.
    pub fn plain() -> Combination {
        let max_wait = Duration::new(Time::from_us(100));
        Combination {
            map_unit: 4096,
            page: 16384,
            reclaim: ReclaimUnit::plane_set,
            one_shot: false,
            allocation: Allocation::striped,
            victim: VictimPolicy::greedy,
            copy_back: false,
            scheduler: Scheduling::read_first(read_first::Params { max_wait }),
            arbiter: Arbitration::fifo,
            multi_plane: MultiPlaneRule::off,
            suspend: false,
            independent_reads: false,
            placements: 1,
            depth: 64,
            fill: Fill::Steady,
            nvme: false,
            fold: true,
            least_worn: false,
            tight: true,
            memory: Memory::None,
            map: Map::Table,
            mode: GcModeSpec::preemptible,
            scope: GcScope::local,
            gap: None,
            streams: GcStreams::isolated,
            registers: false,
            joins: false,
            errors: false,
            look_ahead: LookAheadPolicy::none,
            destage: DestagePolicy::watermarks,
            pages: PageOrder::in_order,
            parity: None,
        }
    }

    pub(super) fn from_row(row: &Row) -> Combination {
        let scheduler = match Scheduling::all_defaults().swap_remove(row[7]) {
            // Short enough for other operations to overtake reads.
            Scheduling::read_first(_) => {
                Scheduling::read_first(read_first::Params { max_wait: Duration::new(Time::from_us(300)) })
            }
            other => other,
        };
        Combination {
            map_unit: MAP_UNITS[row[0]],
            page: [4096, 16384][row[1]],
            reclaim: [ReclaimUnit::block, ReclaimUnit::plane_set, ReclaimUnit::superblock][row[2]],
            one_shot: row[3] == 1,
            allocation: Allocation::all_defaults().swap_remove(row[4]),
            victim: VictimPolicy::all_defaults().swap_remove(row[5]),
            copy_back: row[6] == 1,
            scheduler,
            arbiter: Arbitration::all_defaults().swap_remove(row[8]),
            multi_plane: [MultiPlaneRule::off, MultiPlaneRule::same_page, MultiPlaneRule::same_block][row[9]],
            suspend: row[10] == 1,
            independent_reads: false,
            placements: [1, 3][row[11]],
            depth: [1, 4, 16, 64][row[12]],
            fill: [Fill::Empty, Fill::Sequential, Fill::Steady][row[13]],
            nvme: row[14] == 1,
            fold: row[15] == 1,
            least_worn: row[16] == 1,
            tight: row[17] == 1,
            memory: [
                Memory::None,
                Memory::WriteBack,
                Memory::Protected,
                Memory::WriteBackAndReads,
                Memory::WriteThrough,
                Memory::WriteThroughAndReads,
            ][row[18]],
            map: [Map::Table, Map::Entries, Map::Pages, Map::SmallPages][row[19]],
            mode: [GcModeSpec::preemptible, GcModeSpec::foreground, GcModeSpec::background][row[20]],
            scope: [GcScope::local, GcScope::global][row[21]],
            gap: [None, Some(2)][row[22]],
            streams: [GcStreams::isolated, GcStreams::mixed][row[23]],
            registers: row[24] == 1,
            joins: row[25] == 1,
            look_ahead: [LookAheadPolicy::none, few_units_ahead(row[0])][row[26]].clone(),
            errors: row[27] == 1,
            destage: DestagePolicy::watermarks,
            pages: PageOrder::in_order,
            parity: None,
        }
    }

    /// Returns true for possible combinations: one-shot word lines cannot have map units larger than a page.
    pub(super) fn is_possible(row: &Row) -> bool {
        let c = Combination::from_row(row);
        !c.one_shot || c.map_unit <= c.page
    }

    /// Builds the spec: 24 to 96 MiB on four dies.
    pub fn spec(&self) -> FlashSpec {
        let us = |n| Duration::new(Time::from_us(n));
        let (bits, program) = if self.one_shot { (3, vec![us(700)]) } else { (2, vec![us(200), us(500)]) };
        let read = if self.one_shot { vec![us(40), us(60), us(80)] } else { vec![us(30), us(50)] };
        FlashSpec {
            buffer: self.buffer(),
            registers: self.gathering(),
            bad_blocks: None,
            geometry: GeometrySpec {
                channels: 2,
                ways: 2,
                dies: 1,
                planes: 2,
                // Frontiers take a share of it.
                blocks: if self.placements > 1 && self.streams == GcStreams::isolated { 24 } else { 16 },
                pages: 48,
                page_size: Bytes::new(self.page),
            },
            cell: CellSpec {
                bits,
                layout: PageLayout::by_word_line,
                programming: if self.one_shot { Programming::one_shot } else { Programming::page },
                read,
                program,
                erase: us(2000),
                program_drift: Share::percent(0),
                erase_drift: Share::percent(0),
                spread: self.spread(),
                errors: self.errors(),
            },
            channel: ChannelSpec {
                interface: Interface::nv_ddr3,
                rate: TransferRate::new(1_200_000_000),
                width: 8,
                arbiter: self.arbiter.clone(),
            },
            die: DieSpec {
                interleave: true,
                scheduler: self.scheduler.clone(),
                multi_plane: self.multi_plane,
                partner_search: if self.least_worn { 4 } else { 1 },
                independent_reads: self.independent_reads.then_some(true),
                register_reads: self.registers.then_some(true),
                join_reads: self.joins.then_some(true),
                suspend: SuspendSpec {
                    program: self.suspend,
                    erase: self.suspend,
                    latency: us(10),
                    resume: us(5),
                    least: us(50),
                    limit: 3,
                },
                power: None,
            },
            ftl: self.ftl(),
            host: self.host(),
            inner: None,
            energy: None,
        }
    }

    /// Spread of blocks that differ a lot.
    fn spread(&self) -> Option<SpreadSpec> {
        let share = Share::percent(20);
        self.least_worn.then_some(SpreadSpec { read: share, program: share, erase: share })
    }

    fn is_two_speed(&self) -> bool {
        matches!(self.destage, DestagePolicy::two_speed(_))
    }

    /// Spec with few registers, so that pages leave all the time.
    fn gathering(&self) -> Option<RegisterCacheSpec> {
        matches!(self.memory, Memory::Registers | Memory::ProtectedRegisters).then(|| RegisterCacheSpec {
            count: if self.tight { 2 } else { 4 },
            network: RegisterNetwork::all_defaults()
                .swap_remove(usize::from(self.copy_back) + 2 * usize::from(self.suspend)),
            reserve: Share::percent(if self.least_worn { 50 } else { 0 }),
            eviction: if self.nvme { Leaves::fifo } else { Leaves::lru },
            protected: self.memory == Memory::ProtectedRegisters,
        })
    }

    /// Buffer with room for little more than two program units, and flushes of little more than one.
    fn buffer(&self) -> Option<BufferSpec> {
        let pages = if self.one_shot { 3 } else { 1 };
        let units = (self.page * pages / self.map_unit).max(1);
        let reads = matches!(self.memory, Memory::WriteBackAndReads | Memory::WriteThroughAndReads);
        let writes = matches!(self.memory, Memory::WriteBack | Memory::Protected | Memory::WriteBackAndReads);
        let is_dram = !matches!(self.memory, Memory::None | Memory::Registers | Memory::ProtectedRegisters);
        // One page on each of the two planes leaves at a time.
        let sets = if self.is_two_speed() { 2 } else { 1 };
        is_dram.then(|| BufferSpec {
            capacity: Bytes::new((2 * sets * units + 8) * self.map_unit),
            reads,
            writes,
            full_reads: (reads && self.suspend).then_some(FullReads::wait),
            high: Share::percent(50),
            low: Share::percent(25),
            destage: (self.destage != DestagePolicy::watermarks).then(|| self.destage.clone()),
            in_flight: Bytes::new((sets * units + 3) * self.map_unit),
            throttle: self.suspend.then(|| Bytes::new((units + 2) * self.map_unit)),
            keep_rewrites: self.copy_back.then(|| Duration::new(Time::from_ms(3))),
            moves: if self.tight { Moves::sectors } else { Moves::units },
            protected: self.memory == Memory::Protected,
            eviction: {
                let mut policies = EvictionPolicy::all_defaults();
                policies.swap_remove(self.memory as usize % policies.len())
            },
            admission: AdmissionPolicy::all_defaults().swap_remove(0),
            look_ahead: Some(self.look_ahead.clone()),
            bandwidth: Bandwidth::new(10_000_000_000),
            latency: Duration::new(Time::from_ns(100)),
        })
    }

    /// Mapping with translation pages of 256 entries, few of them cached; or of four entries, many cached.
    fn mapping(&self) -> Mapping {
        let (granularity, capacity, entries) = match self.map {
            Map::Table => return Mapping::Table,
            Map::Entries => (MapGranularity::entry, 24 * 8, 256),
            Map::SmallPages => (MapGranularity::entry, 96 * 8, 8),
            Map::Pages => (MapGranularity::page, 2 * self.map_unit, 256),
        };
        Mapping::Demand {
            capacity: Bytes::new(capacity),
            granularity,
            cached_entry: Bytes::new(8),
            stored_entry: Bytes::new(self.map_unit / entries),
            read: Bytes::new(512),
        }
    }

    fn ftl(&self) -> FtlSpec {
        let (start, stop, hard, window) = if self.tight { (1, 2, 1, 1) } else { (2, 4, 1, 4) };
        FtlSpec {
            mapping: self.mapping(),
            map_memory: self.nvme.then(map_memory),
            map_unit: Bytes::new(self.map_unit),
            reclaim_unit: self.reclaim,
            stripe: StripeOrder([Digit::Channel, Digit::Way, Digit::Die, Digit::Plane]),
            allocation: self.allocation.clone(),
            slc_cache: None,
            parity: self.parity,
            pages: (self.pages != PageOrder::in_order).then(|| self.pages.clone()),
            over_provisioning: Share::percent(self.spare()),
            placements: self.placements,
            unwritten_read: match (self.tight, self.suspend) {
                (false, _) => UnwrittenRead::zero,
                (true, false) => UnwrittenRead::as_written,
                (true, true) => UnwrittenRead::created,
            },
            gc: GcSpec {
                victim: self.victim.clone(),
                start,
                stop,
                hard,
                mode: self.mode,
                scope: self.scope,
                window,
                copy_back: self.copy_back,
                streams: Some(self.streams),
            },
            wear: WearSpec { dynamic: self.least_worn, static_gap: self.gap },
        }
    }

    fn host(&self) -> HostSpec {
        let ns = |n| Duration::new(Time::from_ns(n));
        let nvme = NvmeSpec {
            queues: 3,
            depth: 64,
            in_controller: 24,
            arbitration: NvmeArbitration::Weighted {
                burst: 2,
                high: 4,
                medium: 2,
                low: 1,
                classes: vec![1, 2, 3],
            },
            doorbell: ns(300),
            fetch: ns(500),
            interrupt: ns(1000),
        };
        HostSpec {
            link: HostLinkSpec::Plain(PlainSpec {
                bandwidth: Bandwidth::new(4_000_000_000),
                latency: ns(200),
            }),
            controller: ControllerSpec {
                cores: 2,
                command: ns(1000),
                unit: ns(50),
                spread: None,
                // Garbage collection waits for cores in half of the combinations.
                write: self.writers(),
                moved: self.nvme.then_some(ns(700)),
            },
            sleep: None,
            nvme: self.nvme.then_some(nvme),
            ahci: None,
        }
    }

    /// Builds the device in its initial state.
    ///
    /// # Errors
    /// Returns an error if it cannot be built.
    pub fn build(&self, seed: u64) -> Result<Device, SpecError> {
        let device = self.build_empty(seed)?;
        self.filled(device, seed)
    }

    /// Fills a device with its initial contents.
    ///
    /// # Errors
    /// Returns an error if there is not enough space.
    pub fn filled(&self, mut device: Device, seed: u64) -> Result<Device, SpecError> {
        match self.fill {
            Fill::Empty => {}
            Fill::Sequential => device.ftl.assume_sequential(device.ftl.logical()),
            Fill::Steady => write_at_random(&mut device.ftl, seed)
                .ok_or_else(|| SpecError::new("ftl", "not enough space for random writes"))?,
        }
        device.format_map();
        Ok(device)
    }

    /// Builds the device in factory state.
    ///
    /// # Errors
    /// Returns an error if it cannot be built.
    pub fn build_empty(&self, seed: u64) -> Result<Device, SpecError> {
        let built = Built { seed, name: "soak".into(), fold: self.fold };
        let mut spec = self.spec();
        let mut device = spec.build(&built)?;
        for share in (10..self.spare()).rev().take_while(|_| self.tight) {
            spec.ftl.over_provisioning = Share::percent(share);
            match spec.build(&built) {
                Ok(smaller) => device = smaller,
                Err(_) => break,
            }
        }
        Ok(device)
    }
}

/// Read-ahead of up to four units of any read that continues where another ended.
fn few_units_ahead(map_unit: usize) -> LookAheadPolicy {
    let window = Bytes::new(4 * MAP_UNITS[map_unit]);
    LookAheadPolicy::sequential(sequential::Params { streams: 3, trigger: 1, window })
}

/// DRAM with slow look-ups.
fn map_memory() -> MapMemorySpec {
    MapMemorySpec {
        entry: Bytes::new(4),
        latency: Duration::new(Time::from_ns(80)),
        bandwidth: Bandwidth::new(100_000_000),
    }
}

fn write_at_random(ftl: &mut Ftl, seed: u64) -> Option<()> {
    let units = ftl.logical();
    ftl.assume_sequential(units);
    let mut rng = Rng::stream(seed, "soak/fill");
    let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
    for _ in 0..2 * units {
        let unit = rng.below(units);
        writer.write(ftl, Lpn(unit)).ok()?;
    }
    writer.finish(ftl).ok()?;
    Some(())
}
