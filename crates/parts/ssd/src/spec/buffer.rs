//! The data buffer and the cache of one bit a cell, as a user writes them.

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

/// The data buffer in the drive's DRAM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Capacity.
    pub capacity: Bytes,
    /// Whether data read from flash, and data that has been flushed, is kept for reads.
    pub reads: bool,
    /// Whether written data waits here; without, a write is acknowledged from flash.
    pub writes: bool,
    /// Reads of data that has no line, while every line is dirty; left out, `pass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_reads: Option<FullReads>,
    /// Flushing begins when more than this share is dirty; `destage` says what counts.
    pub high: Share,
    /// Flushing goes on until no more than this share is dirty.
    pub low: Share,
    /// When dirty data leaves, and where to; left out, `watermarks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage: Option<DestagePolicy>,
    /// Most data that is on its way from here to flash at once.
    pub in_flight: Bytes,
    /// Host writes wait while as much written data, counted in sectors of 512 B, is on its way to flash or waits for it;
    /// left out, only for room.
    pub throttle: Option<Bytes>,
    /// What is written again within this time stays until room or a flush command asks for it, as in MQSim: windows of
    /// this length follow each other. Left out, it is flushed like anything else.
    pub keep_rewrites: Option<Duration>,
    /// What goes over the channel when a unit is programmed that flash has nothing of.
    pub moves: Moves,
    /// Whether capacitors keep the buffer through a power cut: flush and forced unit access then cost nothing more.
    pub protected: bool,
    /// Which clean line makes room, and which dirty line is flushed next.
    pub eviction: EvictionPolicy,
    /// Which data read from flash enters.
    pub admission: AdmissionPolicy,
    /// What is read into it before the host asks for it; nothing if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_ahead: Option<LookAheadPolicy>,
    /// Bytes a second that the DRAM delivers.
    pub bandwidth: Bandwidth,
    /// Time of an access before its first byte.
    pub latency: Duration,
}

config::policies! {
    /// What goes over the channel when a unit is programmed from the buffer that flash has nothing of.
    #[derive(Copy, Eq)]
    pub family Moves: choice {
        /// The whole unit; what was not written is zeroes.
        default units,
        /// The sectors that were written, at their column addresses, as in MQSim.
        sectors,
    }
}

config::policies! {
    /// Reads of data that has no line in the buffer, while every line is dirty.
    #[derive(Copy, Eq)]
    pub family FullReads: choice {
        /// They go to flash at once; what they bring enters if a line is free by then.
        default pass,
        /// Each waits until the data that has been dirty for longest is on flash.
        ///
        /// SimpleSSD's cache has it so: the read begins when the line that it takes is clean.
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
                "a buffer of {} holds {lines} map units; 1 to {} are possible",
                self.capacity,
                u32::MAX
            );
            return Err(SpecError::new("buffer.capacity", what));
        };
        if self.low.get() > self.high.get() {
            let what = format!("the watermarks cross: low {} lies above high {}", self.low, self.high);
            return Err(SpecError::new("buffer.low", what));
        }
        let share = |share: Share| share.of(u64::from(lines)) as u32;
        let in_flight = u32::try_from(self.in_flight.get() / unit).unwrap_or(u32::MAX);
        if in_flight < geo.units_per_program {
            let what = format!(
                "{} on the way to flash is less than one program unit of {} map units",
                self.in_flight, geo.units_per_program
            );
            return Err(SpecError::new("buffer.in_flight", what));
        }
        if self.throttle.is_some_and(|t| t.get() < 512) {
            let what = "a throttle of less than a sector of 512 B lets no write in";
            return Err(SpecError::new("buffer.throttle", what));
        }
        let reads_wait = self.full_reads == Some(FullReads::wait);
        if reads_wait && !self.reads {
            let what = "`wait` has reads wait for a line, but data read from flash takes none";
            let help = "set flash.buffer.reads = true, or choose `pass`";
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

    /// When dirty data leaves.
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
            let what = format!("`{name}` decides when written data leaves, but none waits here");
            return Err(SpecError::new("buffer.destage", what).help("set flash.buffer.writes = true"));
        }
        if low == lines {
            let what = format!("a buffer that is all dirty is what `{name}` would leave behind");
            return Err(
                SpecError::new("buffer.low", what).help("lower flash.buffer.low by a page for each plane")
            );
        }
        if destage.background().is_none() {
            return Ok(destage);
        }
        if allocator.lines(geo) > 1 {
            let what =
                format!("`{name}` sends data to idle dies, but the address has a say in where it goes");
            let help = "choose `round_robin`, `least_queued` or `full`";
            return Err(SpecError::new("ftl.allocation", what).help(help));
        }
        if geo.lanes > geo.die_planes {
            let what = format!("`{name}` sends data to idle dies, but a reclaim unit spreads over several");
            return Err(SpecError::new("ftl.reclaim_unit", what).help("choose `block` or `plane_set`"));
        }
        let set = geo.shape.planes * geo.units_per_program;
        if in_flight < set {
            let what = format!(
                "{} on the way to flash is less than a page on each plane of a die, {set} map units",
                self.in_flight
            );
            return Err(SpecError::new("buffer.in_flight", what));
        }
        Ok(destage)
    }
}

// A cache of one bit a cell.

/// Reclaim units that hold one bit a cell and take what the host writes, until it is folded: moved to ordinary ones. Such a unit
/// holds the first of its program units only, one for each that `cell.bits` would fit; of a program unit of several pages, each page
/// is programmed in a time of its own. Mapping pages and whatever collection and folding move go to ordinary units. A drive that was
/// preconditioned has an empty cache. The controller reads and writes what is folded, without `gc.copy_back`.
///
/// Samsung's drives keep a part for it and add another out of what is free ("Intelligent TurboWrite": data sheets of the 970 EVO and
/// 980 PRO); Micron's "dynamic write acceleration" (technical brief, 2014) has the second part only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcSpec {
    /// Time to read a page.
    pub read: Duration,
    /// Time to program a page.
    pub program: Duration,
    /// Static: reclaim units of each group that are kept for the cache. They take turns with the others.
    #[schemars(range(max = 65536))]
    pub fixed: u32,
    /// Dynamic: the share that may be added of the reclaim units of a group that are free beyond `gc.stop`. It shrinks as the drive
    /// fills.
    pub dynamic: Share,
    /// What the host's writes do when the cache is full.
    pub full: SlcFull,
    /// Time without a command after which all groups fold in the background; left out, they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// Reclaim units of a group that folding in the background leaves in the cache, those written last.
    #[schemars(range(max = 65536))]
    pub keep: u32,
    /// A group folds in the foreground, too, when its cache may open so many more reclaim units, or fewer; left out, only where
    /// writes wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65536))]
    pub foreground: Option<u32>,
    /// What its pages spend, where `energy` says what the others do; else left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<SlcEnergySpec>,
}

/// What pages spend that hold one bit a cell.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcEnergySpec {
    /// Energy of a page that is read from its array.
    pub read: Energy,
    /// Energy of a page that is programmed.
    pub program: Energy,
}

config::policies! {
    /// What the host's writes do when the cache of one bit a cell is full.
    #[derive(Copy, Eq)]
    pub family SlcFull: choice {
        /// They go to ordinary reclaim units.
        default direct,
        /// They wait until folding has made room; ordinary units take them only while the cache may not have any.
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
            let what = "a cache that is kept no reclaim unit and gets no share of the free ones";
            return Err(SpecError::new("ftl.slc_cache.fixed", what).help("leave flash.ftl.slc_cache out"));
        }
        Ok(())
    }
}

impl FtlSpec {
    /// Reclaim units of each group that are kept for a cache.
    pub(crate) fn kept_for_cache(&self) -> u32 {
        self.slc_cache.as_ref().map_or(0, |slc| slc.fixed)
    }
}

impl FlashSpec {
    /// Whether the device can have the cache that it asks for.
    pub(crate) fn check_slc(&self, geo: &Geometry) -> Result<(), SpecError> {
        let Some(slc) = &self.ftl.slc_cache else { return Ok(()) };
        slc.check()?;
        let key = "ftl.slc_cache.energy";
        match (self.energy.is_some(), slc.energy.is_some()) {
            (true, false) => {
                let what =
                    "`energy` says what the drive spends, and `ftl.slc_cache` does not say what its pages do";
                let help =
                    "add ftl.slc_cache.energy = { read = \"…\", program = \"…\" }, or leave energy out";
                return Err(SpecError::new(key, what).help(help));
            }
            (false, true) => {
                let what = "what the pages of a cache spend counts for nothing without `energy`, which says what the others do";
                return Err(SpecError::new(key, what).help("add energy, or leave it out here too"));
            }
            _ => {}
        }
        let bits = self.cell.bits;
        let rows = geo.programs_per_ru / geo.lanes;
        if bits == 1 || rows < u32::from(bits) {
            let what = format!(
                "a cache of one bit a cell needs cells of two bits or more, and blocks of as many program units; here are {bits} bits and {rows} program units"
            );
            return Err(SpecError::new("ftl.slc_cache", what).help("leave flash.ftl.slc_cache out"));
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
            return Err(SpecError::new(key, what).help("leave one of the two out, or at its default"));
        }
        Ok(())
    }
}
