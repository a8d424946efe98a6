//! Spec of the data buffer and the SLC cache.

use super::{FlashSpec, FtlSpec, GcScope, SpecError};
use crate::device::{BufferMemory, BufferParts, FoldPolicy};
use config::units::{Bandwidth, Bytes, Duration, Energy, Share};
use ftl::buffer::admit::AdmissionPolicy;
use ftl::buffer::ahead::{LookAheadContext, LookAheadPolicy};
use ftl::buffer::destage::{Destage, DestageContext, DestagePolicy};
use ftl::buffer::evict::EvictionPolicy;
use ftl::buffer::{Buffer, BufferShape};
use ftl::page_map::{alloc::Allocator, slc::SlcRule};
use nand::{dies::timing::SlcTimes, geometry::Geometry};
use net::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Data buffer in the drive's DRAM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Capacity.
    pub capacity: Bytes,
    /// Read caching: keeps data read from flash, and flushed data, for later reads.
    pub reads: bool,
    /// Write caching: a write is acknowledged from the buffer. If false, it is acknowledged from flash.
    pub writes: bool,
    /// Handling of reads that miss while every line is dirty; `pass` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_reads: Option<FullReads>,
    /// Dirty share above which flushing begins; `destage` defines the units that count.
    pub high: Share,
    /// Dirty share at which flushing stops.
    pub low: Share,
    /// Write-back policy: when dirty data leaves the buffer, and for which die; `watermarks` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage: Option<DestagePolicy>,
    /// Limit on data in flight from the buffer to flash.
    pub in_flight: Bytes,
    /// Host writes wait while at least this much written data, counted in 512 B sectors, is being flushed or waits to
    /// be. If omitted, they wait only for room.
    pub throttle: Option<Bytes>,
    /// Data rewritten within this time stays until room or a flush command requires its write-back, as in MQSim. The
    /// time is divided into consecutive windows of this length. If omitted, such data is flushed like any other.
    pub keep_rewrites: Option<Duration>,
    /// Channel transfer when a unit that has no data on flash is programmed.
    pub moves: Moves,
    /// Power-loss protection: capacitors keep the buffer through a power cut, so flush and forced unit access cost
    /// nothing more.
    pub protected: bool,
    /// Eviction policy: the clean line that makes room, and the dirty line that is flushed next.
    pub eviction: EvictionPolicy,
    /// Admission policy for data read from flash.
    pub admission: AdmissionPolicy,
    /// Read-ahead policy: data read into the buffer before the host asks for it; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_ahead: Option<LookAheadPolicy>,
    /// Bandwidth of the DRAM, in bytes per second.
    pub bandwidth: Bandwidth,
    /// Latency of an access, up to its first byte.
    pub latency: Duration,
}

config::policies! {
    /// Channel transfer when a unit that has no data on flash is programmed from the buffer.
    #[derive(Copy, Eq)]
    pub family Moves: choice {
        /// The whole unit; sectors that were not written are zeroes.
        default units,
        /// Only the written sectors, at their column addresses, as in MQSim.
        sectors,
    }
}

config::policies! {
    /// Handling of reads that miss in the buffer while every line is dirty.
    #[derive(Copy, Eq)]
    pub family FullReads: choice {
        /// Reads go to flash at once; their data enters the buffer if a line is free by then.
        default pass,
        /// Each read waits until the data that has been dirty longest is on flash.
        ///
        /// As in SimpleSSD's cache: the read begins when the line that it takes is clean.
        wait,
    }
}

impl BufferSpec {
    pub(crate) fn build(&self, geo: &Geometry, allocator: &dyn Allocator) -> Result<BufferParts, SpecError> {
        let unit = u64::from(geo.shape.unit_bytes);
        let lines = self.capacity.get() / unit;
        let fits = u32::try_from(lines).ok().filter(|n| *n > 0);
        let Some(lines) = fits else {
            let what = format!(
                "a buffer of {} holds {lines} map units; allowed are 1 to {} map units",
                self.capacity,
                u32::MAX
            );
            return Err(SpecError::new("buffer.capacity", what));
        };
        if self.low.get() > self.high.get() {
            let what = format!("the watermarks cross: low {} is above high {}", self.low, self.high);
            return Err(SpecError::new("buffer.low", what));
        }
        let share = |share: Share| share.of(u64::from(lines)) as u32;
        let in_flight = u32::try_from(self.in_flight.get() / unit).unwrap_or(u32::MAX);
        if in_flight < geo.units_per_program {
            let what = format!(
                "an in-flight limit of {} is less than one program unit of {} map units",
                self.in_flight, geo.units_per_program
            );
            return Err(SpecError::new("buffer.in_flight", what));
        }
        if self.throttle.is_some_and(|t| t.get() < 512) {
            let what = "a throttle below one sector (512 B) blocks every write";
            return Err(SpecError::new("buffer.throttle", what));
        }
        let reads_wait = self.full_reads == Some(FullReads::wait);
        if reads_wait && !self.reads {
            let what = "with `wait`, reads wait for a line, but data read from flash is not cached";
            let help = "set flash.buffer.reads = true, or choose `pass` here";
            return Err(SpecError::new("buffer.full_reads", what).help(help));
        }
        let shape = BufferShape {
            lines,
            unit_sectors: geo.shape.unit_bytes / 512,
            caches_reads: self.reads,
            caches_writes: self.writes,
            high: share(self.high),
            low: share(self.low),
        };
        let destage = self.destage(&shape, in_flight, geo, allocator)?;
        let context = LookAheadContext { step: u64::from(geo.shape.page_bytes.max(geo.shape.unit_bytes)) };
        Ok(BufferParts {
            buffer: Buffer::new(shape, self.eviction.build(&()), self.admission.build(&())).into(),
            destage,
            in_flight,
            throttle: self.throttle.map_or(u64::MAX, |t| t.get() / 512),
            moves_sectors: self.moves == Moves::sectors,
            reads_wait,
            keep: self.keep_rewrites.map(|window| window.time()),
            acknowledges_early: self.writes,
            protected: self.protected,
            memory: BufferMemory::Dram {
                rate: Rate::new(self.bandwidth.bytes_per_s()),
                latency: self.latency.time(),
            },
            look_ahead: self.look_ahead.as_ref().map(|policy| policy.build(&context)),
        })
    }

    /// Returns the write-back policy.
    fn destage(
        &self,
        shape: &BufferShape,
        in_flight: u32,
        geo: &Geometry,
        allocator: &dyn Allocator,
    ) -> Result<Box<dyn Destage>, SpecError> {
        let policy = self.destage.clone().unwrap_or_default();
        let BufferShape { lines, high, low, unit_sectors, .. } = *shape;
        let destage = policy.build(&DestageContext { high, low, unit_sectors });
        let name = policy.name();
        if destage.is_off() {
            return Ok(destage);
        }
        if !self.writes {
            let what = format!("`{name}` schedules write-backs, but the buffer takes no writes");
            return Err(SpecError::new("buffer.destage", what).help("set flash.buffer.writes = true"));
        }
        if low == lines {
            let what = format!("`{name}` would leave every line of the buffer dirty");
            return Err(
                SpecError::new("buffer.low", what).help("lower flash.buffer.low by one page per plane")
            );
        }
        if destage.background().is_none() {
            return Ok(destage);
        }
        if allocator.lines(geo) > 1 {
            let what =
                format!("`{name}` sends data to idle dies, but this allocation depends on the address");
            let help = "choose `round_robin`, `least_queued` or `full`";
            return Err(SpecError::new("ftl.allocation", what).help(help));
        }
        if geo.lanes > geo.die_planes {
            let what = format!("`{name}` sends data to idle dies, but a reclaim unit spans several dies");
            return Err(SpecError::new("ftl.reclaim_unit", what).help("choose `block` or `plane_set`"));
        }
        let set = geo.shape.planes * geo.units_per_program;
        if in_flight < set {
            let what = format!(
                "an in-flight limit of {} is less than one page on each plane of a die, {set} map units",
                self.in_flight
            );
            return Err(SpecError::new("buffer.in_flight", what));
        }
        Ok(destage)
    }
}

// SLC cache.

/// SLC cache: reclaim units that hold one bit a cell and take host writes until they are folded, that is, moved to
/// ordinary units. Such a unit has only the first of its program units, one for every `cell.bits`. If a program unit
/// has several pages, each page is programmed separately, in a time of its own. Mapping pages, and data moved by
/// garbage collection and folding, go to ordinary units. A preconditioned drive has an empty cache. The controller
/// reads and writes folded data, without `gc.copy_back`.
///
/// Samsung's drives have a fixed part and add a dynamic part out of free space ("Intelligent TurboWrite": data sheets
/// of the 970 EVO and 980 PRO). Micron's "dynamic write acceleration" (technical brief, 2014) has only the dynamic
/// part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcSpec {
    /// Read time of a page.
    pub read: Duration,
    /// Program time of a page.
    pub program: Duration,
    /// Static size: reclaim units of each group kept for the cache. They alternate with the others.
    #[schemars(range(max = 65536))]
    pub fixed: u32,
    /// Dynamic size: share of a group's reclaim units free beyond `gc.stop` that the cache may take. It shrinks as the
    /// drive fills.
    pub dynamic: Share,
    /// Handling of host writes when the cache is full.
    pub full: SlcFull,
    /// Idle time, without a command, after which all groups fold in the background; no background folding if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// Reclaim units of a group that background folding leaves in the cache; the newest ones stay.
    #[schemars(range(max = 65536))]
    pub keep: u32,
    /// Foreground folding: a group also folds when its cache may open only this many more reclaim units, or fewer. If
    /// omitted, it folds in the foreground only when writes wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65536))]
    pub foreground: Option<u32>,
    /// Energy of the cache's pages; given exactly if `energy` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<SlcEnergySpec>,
}

/// Energy of pages that hold one bit a cell.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcEnergySpec {
    /// Energy of reading a page from its array.
    pub read: Energy,
    /// Energy of programming a page.
    pub program: Energy,
}

config::policies! {
    /// Handling of host writes when the SLC cache is full.
    #[derive(Copy, Eq)]
    pub family SlcFull: choice {
        /// Writes go to ordinary reclaim units.
        default direct,
        /// Writes wait until folding has made room; ordinary units take them only while the cache may not have any.
        wait,
    }
}

impl SlcSpec {
    pub(crate) fn times(&self) -> SlcTimes {
        SlcTimes { read: self.read.time(), program: self.program.time() }
    }

    pub(crate) fn rule(&self, bits: u8) -> SlcRule {
        SlcRule {
            bits: bits.into(),
            fixed: self.fixed,
            dynamic: self.dynamic,
            waits: self.full == SlcFull::wait,
        }
    }

    pub(crate) fn folds(&self) -> FoldPolicy {
        FoldPolicy {
            idle: self.idle.map(Duration::time),
            keep: self.keep,
            foreground: self.foreground.or((self.full == SlcFull::wait).then_some(0)),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        let counts = [
            ("ftl.slc_cache.fixed", self.fixed),
            ("ftl.slc_cache.keep", self.keep),
            ("ftl.slc_cache.foreground", self.foreground.unwrap_or(0)),
        ];
        if let Some((key, value)) = counts.into_iter().find(|(_, value)| *value > 65_536) {
            return Err(SpecError::new(key, format!("`{key}` is {value}; allowed are 0 to 65536")));
        }
        let times = [("ftl.slc_cache.read", self.read), ("ftl.slc_cache.program", self.program)];
        for (key, time) in times {
            SpecError::positive(key, time.time().ps())?;
        }
        if self.fixed == 0 && self.dynamic.get() == 0.0 {
            let what = "the cache has no reclaim units: `fixed` and `dynamic` are both zero";
            return Err(SpecError::new("ftl.slc_cache.fixed", what).help("set `fixed` or `dynamic`"));
        }
        Ok(())
    }
}

impl FtlSpec {
    /// Reclaim units of each group kept for a cache.
    pub(crate) fn kept_for_cache(&self) -> u32 {
        self.slc_cache.as_ref().map_or(0, |slc| slc.fixed)
    }
}

impl FlashSpec {
    /// Checks that the device can have the requested SLC cache.
    pub(crate) fn check_slc(&self, geo: &Geometry) -> Result<(), SpecError> {
        let Some(slc) = &self.ftl.slc_cache else { return Ok(()) };
        slc.check()?;
        let key = "ftl.slc_cache.energy";
        match (self.energy.is_some(), slc.energy.is_some()) {
            (true, false) => {
                let what = "`energy` is given, but `ftl.slc_cache` gives no energy for its pages";
                let help = "add ftl.slc_cache.energy = { read = \"…\", program = \"…\" }, or omit `energy`";
                return Err(SpecError::new(key, what).help(help));
            }
            (false, true) => {
                let what = "the energy of the cache has no effect without `energy` for the other pages";
                return Err(SpecError::new(key, what).help("add `energy`, or omit it here too"));
            }
            _ => {}
        }
        let bits = self.cell.bits;
        let rows = geo.programs_per_ru / geo.lanes;
        if bits == 1 || rows < u32::from(bits) {
            let what = format!(
                "an SLC cache needs 2 bits a cell or more, and a block of at least as many program units; found \
                 {bits} bits and {rows} program units"
            );
            return Err(SpecError::new("ftl.slc_cache", what).help("omit flash.ftl.slc_cache"));
        }
        let refused = [
            (self.ftl.page_choice().is_some(), "ftl.pages", "choosing pages by type"),
            (self.ftl.placements > 1, "ftl.placements", "more than one placement"),
            (self.ftl.gc.scope == GcScope::global, "ftl.gc.scope", "moving data to any group"),
            (self.ftl.wear.static_gap.is_some(), "ftl.wear.static_gap", "static wear levelling"),
            (self.cell.errors.is_some(), "cell.errors", "raw bit errors"),
            (self.registers.is_some(), "registers", "registers that gather writes"),
        ];
        if let Some((_, key, which)) = refused.into_iter().find(|(is_set, ..)| *is_set) {
            let what = format!("{which} (`{key}`) cannot be combined with `ftl.slc_cache`");
            return Err(SpecError::new(key, what).help("omit one of the two, or leave it at its default"));
        }
        Ok(())
    }
}
