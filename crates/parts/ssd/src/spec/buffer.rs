//! The data buffer as a user writes it.

use super::SpecError;
use crate::device::{BufferMemory, BufferParts};
use config::units::{Bandwidth, Bytes, Duration, Share};
use ftl::buffer::admit::AdmissionPolicy;
use ftl::buffer::ahead::{LookAheadContext, LookAheadPolicy};
use ftl::buffer::destage::{Destage, DestageContext, DestagePolicy};
use ftl::buffer::evict::EvictionPolicy;
use ftl::buffer::{Buffer, BufferShape};
use ftl::page_map::alloc::Allocator;
use nand::geometry::Geometry;
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
