//! What a flash device did.

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

/// Sizes in flash pages.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Capacity {
    /// Pages in the array.
    pub physical_pages: u64,
    /// Pages that the host sees.
    pub logical_pages: u64,
    /// Pages that garbage collection keeps free.
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
    /// Reads of the old data of map units that were written in part; contained in `host`.
    pub rmw: u64,
    /// Reads of the host, of whole pages and of mapping pages, that came to a die at work for garbage collection or wear levelling.
    pub behind_gc: u64,
    /// Their share of all such reads.
    pub behind_gc_share: f64,
}

/// What reads had their pages from, where the device has registers or sensings that they can share.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sensing {
    /// Read operations for which a page was sensed.
    pub sensed: u64,
    /// Read operations that found their page in the register of its plane.
    pub register_hits: u64,
    /// Read operations that shared the sensing of another read of their page.
    pub joined: u64,
}

/// Reads of pages with more errors than the code corrects at once.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Retries {
    /// Read operations of the host, of collection and of mapping whose page was read again.
    pub retried_reads: u64,
    /// Further steps that they took: commands, sensings and transfers.
    pub retry_steps: u64,
    /// Those of them that the last step could not correct either. Without parity their data counts as recovered, in no time.
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

/// A cache of one bit a cell, and what became of what it held. Programs of folding are part of `gc_programs`, its reads of `reads.gc`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlcCache {
    /// Map units of the host that went to the cache.
    pub hits: u64,
    /// Map units of the host that went past it.
    pub misses: u64,
    /// Reclaim units of the cache whose folding was begun.
    pub folds: u64,
    /// Map units that folding has programmed elsewhere.
    pub folded: u64,
    /// Programs of the host that had to wait for folding.
    pub stalls: u64,
    /// Reclaim units that the cache had in use at the end.
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
    /// Map units' worth of parity that was programmed: part of every write amplification.
    pub programs: u64,
    /// Reads whose page could not be corrected, and was rebuilt from the other dies of its set.
    pub rebuilt_reads: u64,
    /// Reads whose page could not be rebuilt, because one of the other dies' could not be corrected either. Its data counts as
    /// recovered none the less.
    pub lost_reads: u64,
}

impl Parity {
    fn collect(device: &Device) -> Option<Parity> {
        let ParityCounters { rebuilt, lost, .. } = device.parity()?;
        let programs = device.units_of_parity();
        Some(Parity { programs, rebuilt_reads: rebuilt, lost_reads: lost })
    }
}

/// Registers of the planes that gather writes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Registers {
    /// Parts of pages that went over a channel into a register.
    pub stores: u64,
    /// Writes of a page that a register held already.
    pub merged: u64,
    /// Reads of a page that a register served.
    pub reads: u64,
    /// Pages that left a register of another plane than the one that they were programmed into.
    pub moves: u64,
}

/// Map units read into the buffer before the host asked for them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LookAhead {
    /// Map units whose read ahead was begun.
    pub issued: u64,
    /// Map units that a read of the host asked for while they were on their way.
    pub met: u64,
    /// Map units that did not enter the buffer: written, moved or deallocated meanwhile, or no room there.
    pub dropped: u64,
    /// Map units that a read of the host found in the buffer.
    pub used: u64,
    /// Map units that left the buffer before anybody had read them.
    pub wasted: u64,
}

/// Erase counts of the blocks in use: without those that were bad from the factory (blocks of reclaim units that could not be put
/// together for them too) and those of retired reclaim units.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EraseCount {
    /// Erases since the beginning of the block in use with the fewest.
    pub min: u32,
    /// Mean erases of a block in use since the beginning.
    pub mean: f64,
    /// Erases since the beginning of the block in use with the most.
    pub max: u32,
    /// Blocks in use by their erases.
    pub histogram: EraseHistogram,
}

/// A histogram in columns, ascending by erases, at most 256 rows of one width.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EraseHistogram {
    /// The least erases of each row.
    pub erases: Vec<u32>,
    /// Blocks with so many, and fewer than the next row's.
    pub blocks: Vec<u64>,
}

/// Blocks that do not work, since the beginning.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BadBlocks {
    /// Blocks that were bad from the factory.
    pub factory: u64,
    /// Blocks that have failed with wear.
    pub grown: u64,
    /// Reclaim units out of use for one or the other.
    pub reclaim_units: u64,
}

/// Shares of the measured window, one a channel and one a die.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Utilisation {
    /// Share of the window in which each channel moved commands or data.
    pub channel: Vec<f64>,
    /// Share of the window in which each die was occupied by a command.
    pub die: Vec<f64>,
    /// The channel of each die.
    pub channel_of_die: Vec<u32>,
    /// Share of the window in which the host's link carried frames, both ways together; left out where it sends both ways at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<f64>,
}

/// What a flash device did in the measured window. Reads and programs count map units.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlashResult {
    /// What it is called.
    pub name: String,
    /// The state that it was brought into before the run; null where that is not known.
    pub precondition: Option<precondition::Report>,
    /// Sizes.
    pub capacity: Capacity,
    /// Units read.
    pub reads: Reads,
    /// Where reads had their pages from; left out where each senses its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensing: Option<Sensing>,
    /// Reads that were repeated; left out where `flash.cell.errors` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Look-ahead; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_ahead: Option<LookAhead>,
    /// Registers that gather writes; left out where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<Registers>,
    /// How dirty data left the buffer; left out where nothing tells foreground from background and nothing was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evictions: Option<Evictions>,
    /// Which pages were programmed; left out where blocks are filled in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_by_type: Option<PagesByType>,
    /// The cache of one bit a cell; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// Superblock parity; left out where there is none.
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
    /// Reclaim units collected.
    pub gc_runs: u64,
    /// Commands that worked on several planes.
    pub multi_plane: u64,
    /// Pages copied inside their plane, without the channel.
    pub copy_backs: u64,
    /// Interrupted programs and erases.
    pub suspends: u64,
    /// Times that a die had to wait for power before a program or an erase; left out where power is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_waits: Option<u64>,
    /// Moves of garbage collection that lost the race against a write of the host.
    pub moves_dropped: u64,
    /// Reads of map units that hold no data.
    pub unwritten_reads: u64,
    /// Bytes programmed over bytes written by the host, as far as the run has come: what still lies in the buffer is not programmed.
    /// Writes that were refused count for nothing, nor were they programmed.
    pub write_amplification: Option<f64>,
    /// The same once the buffer were flushed: its units programmed too, each with the programs of collections and mapping that a unit of
    /// the host took in the window (`ftl_write_amplification`); less those that the buffer held when the window began. Writes that others
    /// overwrote in the buffer are never programmed, in either.
    pub flushed_write_amplification: Option<f64>,
    /// Bytes written by the host that were not on flash at the end, those on their way among them.
    pub buffered_bytes: u64,
    /// Bytes of the host's writes that a worn-out drive refused; left out where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_write_bytes: Option<u64>,
    /// Map units programmed over those that the host's writes (behind the buffer) asked for.
    pub ftl_write_amplification: Option<f64>,
    /// Bytes of the controller's memory that the map takes, all of it or the part that is held; left out where
    /// `flash.ftl.map_memory` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping_bytes: Option<u64>,
    /// Fewest free reclaim units that a group had.
    pub free_blocks_min: u32,
    /// Erase counts since the beginning.
    pub erase_count: EraseCount,
    /// Blocks out of use; left out where `flash.bad_blocks` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<BadBlocks>,
    /// How busy everything was.
    pub utilisation: Utilisation,
    /// What it looked like over time: at most 513 spans, each as long as those of `io.series` or longer, that begin and end with a completion
    /// of the host's.
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
        // What the window's writes take in the end.
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

/// Rows of the histogram of erases, at most.
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

// What a drive looked like over time.

/// A drive over a span of time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DriveWindow {
    /// Its beginning, nanoseconds.
    pub start_ns: f64,
    /// Its length, nanoseconds.
    pub width_ns: f64,
    /// Bytes in the buffer that were not on flash, at its end.
    pub buffer_bytes: u64,
    /// Free reclaim units, at its end.
    pub free_blocks: u64,
    /// Bytes programmed over bytes written by the host in it; null where the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Share of it in which channels moved commands or data, the mean of all.
    pub channel_utilisation: f64,
    /// Share of it in which dies were occupied, the mean of all.
    pub die_utilisation: f64,
}

/// The spans between the readings of a drive, from the beginning of the measured window to its end.
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
