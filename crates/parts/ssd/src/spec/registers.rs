//! Registers that gather writes, as a user writes them.

use super::SpecError;
use crate::device::{BufferMemory, BufferParts, Exit, RegisterParts};
use config::units::Share;
use ftl::buffer::admit::AdmissionPolicy;
use ftl::buffer::destage::{DestageContext, DestagePolicy};
use ftl::buffer::evict::{Eviction, EvictionPolicy};
use ftl::buffer::{Buffer, BufferShape, MAX_SECTORS, Sets};
use ftl::page_map::alloc::Allocator;
use nand::geometry::Geometry;
use nand::registers::Link;
use nand::registers::spec::RegisterNetwork;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Registers of the planes that gather writes, in place of a buffer in DRAM (ZnG, section III-C).
///
/// A write is done when its data is in a register of the package that its address names. A page is programmed from there
/// when its register is needed; reads find it there. Flash must be written page by page where the address says: a map unit
/// is a page and a program unit, `ftl.allocation` is `striped`, `ftl.reclaim_unit` is `block`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterCacheSpec {
    /// Registers of a page a plane: one is the data register of the array, the others gather writes.
    #[schemars(range(min = 2, max = 1_024))]
    pub count: u32,
    /// Which registers a page may use.
    pub network: RegisterNetwork,
    /// Share of the registers that a page may use, rounded down, that is kept free by having pages leave before room is
    /// needed.
    pub reserve: Share,
    /// Which page leaves next.
    pub eviction: Leaves,
    /// Whether capacitors keep the registers through a power cut: flush and forced unit access then cost nothing more.
    pub protected: bool,
}

config::policies! {
    /// Which page leaves the registers next. All that they hold is dirty.
    #[derive(Copy, Eq)]
    pub family Leaves: choice {
        /// The one used longest ago, for reading or writing: ZnG's.
        default lru,
        /// The one that came first.
        fifo,
    }
}

impl Leaves {
    fn policy(self) -> Box<dyn Eviction> {
        match self {
            Leaves::lru => EvictionPolicy::lru,
            Leaves::fifo => EvictionPolicy::fifo,
        }
        .build(&())
    }
}

impl RegisterCacheSpec {
    /// Whether pages are written one by one where the address says.
    fn check_pages(geo: &Geometry, allocator: &dyn Allocator) -> Result<(), SpecError> {
        let (page, unit) = (geo.shape.page_bytes, geo.shape.unit_bytes);
        if page != unit || u64::from(unit) > u64::from(MAX_SECTORS) * 512 {
            let what = format!("a register gathers one page of {page} B, but the map unit is {unit} B");
            return Err(SpecError::new("ftl.map_unit", what).help(format!(
                "choose `ftl.map_unit = \"{page}B\"`, or a `buffer` in place of `registers`"
            )));
        }
        if geo.units_per_program != 1 {
            let what =
                format!("a register gathers one page, but {} are programmed as one", geo.units_per_program);
            return Err(SpecError::new("cell.programming", what).help("choose `page`"));
        }
        if geo.lanes != 1 {
            let what = format!(
                "a page goes from its register to its plane, but a reclaim unit spreads over {} planes",
                geo.lanes
            );
            return Err(SpecError::new("ftl.reclaim_unit", what).help("choose `block`"));
        }
        if !allocator.is_static() {
            let what = "a page is gathered in the package where the address says that it goes, but the allocation is chosen at the write";
            return Err(SpecError::new("ftl.allocation", what).help("choose `striped`"));
        }
        Ok(())
    }

    pub(crate) fn build(&self, geo: &Geometry, allocator: &dyn Allocator) -> Result<BufferParts, SpecError> {
        self.network.check(self.count)?;
        RegisterCacheSpec::check_pages(geo, allocator)?;
        let each = self.count - 1;
        let package = geo.shape.dies * geo.shape.planes;
        let planes = if self.network == RegisterNetwork::private { 1 } else { package };
        let total = u64::from(geo.plane_count) * u64::from(each);
        if total > 1 << 24 {
            let what = format!("{total} registers of all planes; at most 16,777,216 are modelled");
            return Err(SpecError::new("registers.count", what));
        }
        let lines = planes * each;
        let high = lines - self.reserve.of(u64::from(lines)) as u32;
        let shape = BufferShape {
            lines,
            unit_sectors: geo.shape.unit_bytes / 512,
            caches_reads: false,
            caches_writes: true,
            high,
            low: high,
        };
        let admission = || AdmissionPolicy::always.build(&());
        let sets = (0..geo.plane_count / planes)
            .map(|_| Buffer::new(shape, self.eviction.policy(), admission()))
            .collect();
        // Positions of the stripe order, each a plane.
        let places = (0..u64::from(geo.groups)).map(|position| geo.group_at(position) / planes).collect();
        Ok(BufferParts {
            buffer: Sets::spread(sets, places),
            destage: DestagePolicy::watermarks.build(&DestageContext {
                high,
                low: high,
                unit_sectors: shape.unit_sectors,
            }),
            in_flight: u32::MAX,
            throttle: u64::MAX,
            moves_sectors: false,
            reads_wait: false,
            keep: None,
            acknowledges_early: true,
            protected: self.protected,
            memory: BufferMemory::Registers(RegisterParts {
                each,
                planes,
                exit: match self.network {
                    RegisterNetwork::swnet => Exit::Controller,
                    RegisterNetwork::private | RegisterNetwork::fcnet | RegisterNetwork::nif(_) => {
                        Exit::Inside
                    }
                },
            }),
            look_ahead: None,
        })
    }

    /// How pages go from one plane to another inside a package.
    pub(crate) fn link(&self, geo: &Geometry) -> Link {
        Link::new(&self.network, geo.plane_count, u64::from(geo.shape.page_bytes))
    }
}
