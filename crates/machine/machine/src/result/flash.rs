//! Results of a flash device.

use super::eviction::{Evictions, PagesByType};
use crate::machine::Machine;
use crate::machine::course::Reading;
use engine::Time;
use ftl::page_map::Ftl;
use nand::dies::BackendCounters;
use nand::dies::op::Class;
use schemars::JsonSchema;
use serde::Serialize;
use spec::precondition;
use ssd::Device;
use ssd::device::{ParityCounters, SlcCounters};

/// Capacity in flash pages.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Capacity {
    /// Pages in the array.
    pub physical_pages: u64,
    /// Pages visible to the host.
    pub logical_pages: u64,
    /// Pages reserved for garbage collection.
    pub reserved_pages: u64,
}

/// Map units read, by reason.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Reads {
    /// Map units read for the host.
    pub host: u64,
    /// Map units read by garbage collection.
    pub gc: u64,
    /// Map units of mapping pages read.
    pub mapping: u64,
    /// Map units read because the host wrote only a part of them; contained in `host`.
    pub rmw: u64,
    /// Host reads, of whole pages and of mapping pages, that found their die busy with garbage collection or wear
    /// levelling.
    pub behind_gc: u64,
    /// Share of host reads that found their die busy with garbage collection or wear levelling.
    pub behind_gc_share: f64,
}

/// Sources of read pages, on devices with registers or shared sensing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sensing {
    /// Read operations that sensed a page.
    pub sensed: u64,
    /// Read operations that found their page in the plane's register.
    pub register_hits: u64,
    /// Read operations that shared the sensing of a different read of the page.
    pub joined: u64,
}

/// Reads of pages with more errors than the code corrects in one step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Retries {
    /// Read operations of the host, of garbage collection and of mapping whose page was read again.
    pub retried_reads: u64,
    /// Additional steps of such reads: commands, sensings and transfers.
    pub retry_steps: u64,
    /// Reads that the last step could not correct either. Without parity, their data count as recovered, in no time.
    pub uncorrectable_reads: u64,
}

impl Retries {
    pub(super) fn of(counters: &BackendCounters) -> Retries {
        Retries {
            retried_reads: counters.retried_reads,
            retry_steps: counters.retry_steps,
            uncorrectable_reads: counters.uncorrectable_reads,
        }
    }
}

/// SLC cache, and the fate of its data. Programs of folding are part of `gc_programs`, reads of folding part of
/// `reads.gc`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlcCache {
    /// Map units of the host written to the cache.
    pub hits: u64,
    /// Map units of the host written past the cache.
    pub misses: u64,
    /// Reclaim units of the cache whose folding began.
    pub folds: u64,
    /// Map units that folding programmed elsewhere.
    pub folded: u64,
    /// Host programs that waited for folding.
    pub stalls: u64,
    /// Reclaim units in use by the cache at the end.
    pub units: u64,
}

impl SlcCache {
    fn collect(device: &Device) -> Option<SlcCache> {
        let (SlcCounters { hits, misses, folds, folded, stalls }, units) = device.slc()?;
        Some(SlcCache { hits, misses, folds, folded, stalls, units })
    }
}

/// Superblock parity.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Parity {
    /// Parity programmed, in map units; part of every write amplification.
    pub programs: u64,
    /// Reads whose page could not be corrected and was rebuilt from the other dies of its set.
    pub rebuilt_reads: u64,
    /// Reads whose page could not be rebuilt, because a page of a different die could not be corrected either. Their
    /// data count as recovered.
    pub lost_reads: u64,
}

impl Parity {
    fn collect(device: &Device) -> Option<Parity> {
        let ParityCounters { rebuilt, lost, .. } = device.parity()?;
        let programs = device.units_of_parity();
        Some(Parity { programs, rebuilt_reads: rebuilt, lost_reads: lost })
    }
}

/// Plane registers that gather writes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Registers {
    /// Parts of pages transferred over a channel into a register.
    pub stores: u64,
    /// Writes to a page that a register already held.
    pub merged: u64,
    /// Reads served by a register.
    pub reads: u64,
    /// Pages moved from a register to a different plane for programming.
    pub moves: u64,
}

/// Map units read into the buffer ahead of the host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LookAhead {
    /// Map units whose read-ahead began.
    pub issued: u64,
    /// Map units that the host read during their read-ahead.
    pub met: u64,
    /// Map units that did not enter the buffer: written, moved or deallocated meanwhile, or no room in the buffer.
    pub dropped: u64,
    /// Map units that the host found in the buffer.
    pub used: u64,
    /// Map units evicted from the buffer unread.
    pub wasted: u64,
}

/// Erase counts of the blocks in use. Factory-bad blocks, the rest of reclaim units that these made unusable, and
/// blocks of retired reclaim units do not count.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EraseCount {
    /// Lowest erase count of a block in use.
    pub min: u32,
    /// Mean erase count of the blocks in use.
    pub mean: f64,
    /// Highest erase count of a block in use.
    pub max: u32,
    /// Number of blocks in use by erase count.
    pub histogram: EraseHistogram,
}

/// Histogram in columns, ascending by erase count: at most 256 rows of one width.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EraseHistogram {
    /// Lowest erase count of each row.
    pub erases: Vec<u32>,
    /// Number of blocks in each row.
    pub blocks: Vec<u64>,
}

/// Blocks out of use since the beginning.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BadBlocks {
    /// Blocks bad from the factory.
    pub factory: u64,
    /// Blocks failed by wear.
    pub grown: u64,
    /// Reclaim units out of use because of bad blocks.
    pub reclaim_units: u64,
}

/// Busy shares of the measured window, one for each channel and each die.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Utilisation {
    /// Share of the window in which each channel moved commands or data.
    pub channel: Vec<f64>,
    /// Share of the window in which each die was occupied by a command.
    pub die: Vec<f64>,
    /// Channel of each die.
    pub channel_of_die: Vec<u32>,
    /// Share of the window in which the host's link carried frames, in either direction; left out for a full-duplex
    /// link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<f64>,
}

/// Results of a flash device in the measured window. Reads and programs count map units.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlashResult {
    /// Name of the device.
    pub name: String,
    /// Preconditioned state at the start of the run; null if unknown.
    pub precondition: Option<precondition::Report>,
    /// Capacity in pages.
    pub capacity: Capacity,
    /// Map units read.
    pub reads: Reads,
    /// Sources of read pages; left out if each read senses its own page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensing: Option<Sensing>,
    /// Repeated reads; left out without `flash.cell.errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Look-ahead; left out without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_ahead: Option<LookAhead>,
    /// Registers that gather writes; left out without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<Registers>,
    /// Evictions of dirty data; left out if foreground and background are not distinguished and nothing was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evictions: Option<Evictions>,
    /// Programmed pages by type; left out if blocks are filled in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_by_type: Option<PagesByType>,
    /// SLC cache; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// Superblock parity; left out without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// Map units programmed for the host.
    pub host_programs: u64,
    /// Map units programmed by garbage collection.
    pub gc_programs: u64,
    /// Map units programmed with mapping pages.
    pub mapping_programs: u64,
    /// Map units programmed by wear levelling.
    pub wear_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Reclaim units reclaimed by garbage collection.
    pub gc_runs: u64,
    /// Multi-plane commands.
    pub multi_plane: u64,
    /// Pages copied within their plane, without the channel.
    pub copy_backs: u64,
    /// Suspended programs and erases.
    pub suspends: u64,
    /// Number of times a die waited for power before a program or an erase; left out without a power limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_waits: Option<u64>,
    /// Garbage-collection moves that lost the race against a host write.
    pub moves_dropped: u64,
    /// Reads of map units without data.
    pub unwritten_reads: u64,
    /// Write amplification: bytes programmed per byte written by the host so far. Data in the buffer are not yet
    /// programmed. Refused writes count on neither side.
    pub write_amplification: Option<f64>,
    /// Write amplification as if the buffer were flushed: buffered units count as programmed, each with its share of
    /// garbage-collection and mapping programs (`ftl_write_amplification`), less the units buffered at the start of the
    /// window. Writes overwritten in the buffer are never programmed.
    pub flushed_write_amplification: Option<f64>,
    /// Bytes written by the host that were not on flash at the end, including those in transit.
    pub buffered_bytes: u64,
    /// Bytes of host writes refused by a worn-out drive; left out if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_write_bytes: Option<u64>,
    /// Write amplification of the FTL: map units programmed per map unit written from the buffer.
    pub ftl_write_amplification: Option<f64>,
    /// Bytes of the controller's memory used by the map, or by its cached part; left out without
    /// `flash.ftl.map_memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping_bytes: Option<u64>,
    /// Fewest free reclaim units of any group.
    pub free_blocks_min: u32,
    /// Erase counts of the blocks.
    pub erase_count: EraseCount,
    /// Blocks out of use; left out without `flash.bad_blocks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<BadBlocks>,
    /// Busy shares of channels, dies and link.
    pub utilisation: Utilisation,
    /// Drive over time: at most 513 spans, each at least as long as those of `io.series`. Each begins and ends with a
    /// completion of the host.
    pub series: Vec<DriveWindow>,
}

impl FlashResult {
    pub(super) fn collect(name: &str, device: &Device, machine: &Machine) -> FlashResult {
        let ftl = &device.ftl;
        let (backend, ftl_counters) = device.window_counters();
        let units = |class: Class| backend.units[class as usize];
        let waited = || Class::ALL.into_iter().filter(|class| class.is_waited_read());
        let host_reads = waited().filter(|class| *class != Class::MapRead).map(units).sum();
        let operations: u64 = waited().map(|class| backend.done[class as usize]).sum();
        let (host, gc, mapping) =
            (units(Class::HostProgram), units(Class::GcProgram), units(Class::MapProgram));
        let unit_bytes = u64::from(ftl.geo.shape.unit_bytes);
        let programmed = host + gc + mapping + device.units_of_parity();
        let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
        let left = device.left_in_buffer();
        // Programs that the window's writes will need in the end.
        let owed = (host + left.units) as f64 - left.units_before as f64;
        let written = device.stats.written_bytes;
        let flushed = owed * unit_bytes as f64 * ratio(programmed, host).unwrap_or(1.0);
        FlashResult {
            name: name.into(),
            precondition: None,
            capacity: capacity(ftl),
            reads: Reads {
                host: host_reads,
                gc: units(Class::GcRead),
                mapping: units(Class::MapRead),
                rmw: device.stats.merge_reads,
                behind_gc: backend.reads_behind_gc,
                behind_gc_share: ratio(backend.reads_behind_gc, operations).unwrap_or(0.0),
            },
            sensing: device.backend.shares_sensings().then_some(Sensing {
                sensed: backend.senses,
                register_hits: backend.register_hits,
                joined: backend.joined_reads,
            }),
            retries: device.backend.has_errors().then(|| Retries::of(&backend)),
            look_ahead: device.look_ahead_counters().map(|c| LookAhead {
                issued: c.issued,
                met: c.met,
                dropped: c.dropped,
                used: c.used,
                wasted: c.wasted,
            }),
            registers: device.register_counters().map(|c| Registers {
                stores: c.stores,
                merged: c.merged,
                reads: c.reads,
                moves: c.moves,
            }),
            evictions: Evictions::collect(device),
            pages_by_type: PagesByType::collect(device),
            slc_cache: SlcCache::collect(device),
            parity: Parity::collect(device),
            host_programs: host,
            gc_programs: gc - device.stats.wear_units,
            mapping_programs: mapping,
            wear_programs: device.stats.wear_units,
            erases: backend.done[Class::Erase as usize],
            gc_runs: device.stats.gc_runs,
            multi_plane: backend.multi_plane,
            copy_backs: backend.copy_backs,
            suspends: backend.suspends,
            power_waits: device.backend.has_budget().then_some(backend.power_waits),
            moves_dropped: ftl_counters.moves_dropped,
            unwritten_reads: device.stats.unwritten_reads,
            write_amplification: ratio(programmed * unit_bytes, written),
            flushed_write_amplification: (written > 0).then(|| flushed.max(0.0) / written as f64),
            buffered_bytes: left.bytes,
            failed_write_bytes: Some(device.stats.failed_bytes).filter(|bytes| *bytes > 0),
            ftl_write_amplification: ratio(programmed, host),
            mapping_bytes: device.map_memory().map(|memory| memory.bytes),
            free_blocks_min: ftl.free_min(),
            erase_count: erase_count(ftl),
            bad_blocks: bad_blocks(ftl),
            utilisation: utilisation(device, machine),
            series: Vec::new(),
        }
    }
}

fn capacity(ftl: &Ftl) -> Capacity {
    let shape = &ftl.geo.shape;
    let pages = |units: u64| units * u64::from(shape.unit_bytes) / u64::from(shape.page_bytes);
    let kept = u64::from(ftl.thresholds.start) * u64::from(ftl.geo.groups) * u64::from(ftl.geo.units_per_ru);
    Capacity {
        physical_pages: ftl.geo.block_count * u64::from(shape.pages),
        logical_pages: pages(ftl.logical()),
        reserved_pages: pages(kept),
    }
}

/// Most rows of the erase histogram.
const ERASE_ROWS: u32 = 256;

fn erase_count(ftl: &Ftl) -> EraseCount {
    let (mut min, mut max, mut sum, mut blocks) = (u32::MAX, 0, 0, 0u64);
    for erases in ftl.erases_in_use() {
        (min, max) = (min.min(erases), max.max(erases));
        sum += u64::from(erases);
        blocks += 1;
    }
    min = min.min(max);
    let width = (max - min) / ERASE_ROWS + 1;
    let mut rows = vec![0; if blocks == 0 { 0 } else { ((max - min) / width + 1) as usize }];
    for erases in ftl.erases_in_use() {
        rows[((erases - min) / width) as usize] += 1;
    }
    let histogram = EraseHistogram {
        erases: (0..rows.len() as u32).map(|row| min + row * width).collect(),
        blocks: rows,
    };
    EraseCount { min, mean: sum as f64 / blocks.max(1) as f64, max, histogram }
}

fn bad_blocks(ftl: &Ftl) -> Option<BadBlocks> {
    let counts = ftl.bad_counts()?;
    Some(BadBlocks { factory: counts.factory, grown: counts.grown, reclaim_units: counts.units })
}

fn utilisation(device: &Device, machine: &Machine) -> Utilisation {
    let now = machine.now();
    let window = now.since(machine.measured_from).as_s_f64();
    let (channel, die) = device.window_busy(now);
    let share = |busy: Time| if window > 0.0 { busy.as_s_f64() / window } else { 0.0 };
    let shares = |busy: Vec<Time>| busy.into_iter().map(share).collect();
    let geo = &device.ftl.geo;
    let channel_of_die = (0..geo.die_count).map(|die| geo.channel_of_die(die)).collect();
    let link = device.window_link(now).map(share);
    Utilisation { channel: shares(channel), die: shares(die), channel_of_die, link }
}

// Drive over time.

/// State of a drive over a span of time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DriveWindow {
    /// Start of the span, nanoseconds.
    pub start_ns: f64,
    /// Length of the span, nanoseconds.
    pub width_ns: f64,
    /// Bytes in the buffer that were not on flash, at the end of the span.
    pub buffer_bytes: u64,
    /// Free reclaim units, at the end of the span.
    pub free_blocks: u64,
    /// Bytes programmed per byte written by the host in the span; null if the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Mean share of the span in which a channel moved commands or data.
    pub channel_utilisation: f64,
    /// Mean share of the span in which a die was occupied.
    pub die_utilisation: f64,
}

/// Returns the spans between readings of a drive, from the beginning of the measured window to its end.
pub(super) fn collect(machine: &Machine, number: usize, device: &Device) -> Vec<DriveWindow> {
    let shape = &device.ftl.geo.shape;
    let (channels, dies) = (f64::from(shape.channels), f64::from(device.ftl.geo.die_count));
    let now = machine.now();
    let last = (now, Reading::of(device, now));
    let Some((first, others)) = machine.gauges().of(number).split_first() else { return Vec::new() };
    let mut before = first;
    let mut windows = Vec::new();
    for after in others.iter().chain([&last]) {
        let ((from, earlier), (at, reading)) = (before, after);
        let width = at.since(*from);
        if width == Time::ZERO {
            continue;
        }
        let since = |f: fn(&Reading) -> u64| f(reading) - f(earlier);
        let (written, programmed) = (since(|r| r.written), since(|r| r.programmed));
        let share =
            |f: fn(&Reading) -> u128, of: f64| (f(reading) - f(earlier)) as f64 / width.ps() as f64 / of;
        windows.push(DriveWindow {
            start_ns: from.as_ns_f64(),
            width_ns: width.as_ns_f64(),
            buffer_bytes: reading.buffered,
            free_blocks: reading.free,
            write_amplification: (written > 0).then(|| programmed as f64 / written as f64),
            channel_utilisation: share(|r| r.channels, channels),
            die_utilisation: share(|r| r.dies, dies),
        });
        before = after;
    }
    windows
}
