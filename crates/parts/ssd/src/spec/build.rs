//! Builds a device from its spec.

use super::{CellSpec, ChannelSpec, FlashSpec, GcModeSpec, Programming, SpecError};
use crate::device::{BufferParts, Device, DeviceParts};
use config::units::Duration;
use engine::Time;
use ftl::page_map::Ftl;
use ftl::page_map::alloc::Allocator;
use ftl::page_map::gc::{Victim, VictimContext};
use nand::dies::BackendPolicy;
use nand::dies::timing::Timing;
use nand::dies::{FlashCosts, FlashEnergySpec};
use nand::geometry::{Geometry, Shape};
use net::Rate;

/// Context of a build, beyond the spec.
#[derive(Clone, Debug)]
pub struct Built {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the device, for named random streams.
    pub name: String,
    /// If true, stages without contention are folded; results do not depend on it.
    pub fold: bool,
}

impl FlashSpec {
    /// Checks the whole spec and computes the geometry.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn geometry(&self) -> Result<Geometry, SpecError> {
        self.geometry.check()?;
        self.cell.check(&self.geometry)?;
        self.channel.check()?;
        self.die.check(&self.geometry)?;
        let page = self.geometry.page_size.get();
        self.ftl.check(page, page * u64::from(self.geometry.pages))?;
        let unit_pages = (self.ftl.map_unit.get() / page).max(1) as u32;
        self.ftl.check_pages(&self.cell)?;
        if unit_pages > 1 && self.ftl.page_choice().is_some() {
            let what = format!("pages cannot be chosen by type with map units of {unit_pages} pages");
            return Err(SpecError::new("ftl.map_unit", what));
        }
        let program_pages = self.cell.program_pages();
        self.check_parity(program_pages.max(unit_pages))?;
        if unit_pages > 1 && program_pages > 1 {
            let what = format!(
                "a map unit of {unit_pages} pages cannot be combined with word lines of {program_pages} pages \
                 programmed as one"
            );
            return Err(SpecError::new("ftl.map_unit", what));
        }
        Ok(Geometry::new(Shape {
            channels: self.geometry.channels,
            ways: self.geometry.ways,
            dies: self.geometry.dies,
            planes: self.geometry.planes,
            blocks: self.geometry.blocks,
            pages: self.geometry.pages,
            page_bytes: page as u32,
            unit_bytes: self.ftl.map_unit.get() as u32,
            program_pages,
            reclaim: self.ftl.reclaim_unit.into(),
            stripe: self.ftl.stripe.0,
            interleave: self.die.interleave,
            parity: self.ftl.parity,
        }))
    }

    /// Returns the victim policy of garbage collection, in its initial state.
    pub fn victim(&self, context: &Built) -> Box<dyn Victim> {
        self.ftl.gc.victim.build(&VictimContext { seed: context.seed, device: context.name.clone() })
    }

    /// Builds an empty, idle device.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn build(&self, context: &Built) -> Result<Device, SpecError> {
        let geo = self.geometry()?;
        self.check_slc(&geo)?;
        let factory = self.bad_blocks.as_ref().map(|bad| bad.factory(&geo, context.seed, &context.name));
        let lost = factory.iter().flat_map(|f| f.lost.iter().copied()).max().unwrap_or(0);
        let logical = self.ftl.logical(&geo, lost)?;
        let mut timing = timing(&self.cell, &self.channel, &geo, context)?;
        let slc = self.ftl.slc_cache.as_ref();
        timing.slc = slc.map(|slc| slc.times());
        let (translation, hidden) = self.ftl.translation(logical)?.unzip();
        let map_memory = self.ftl.map_memory(&geo, logical)?;
        let victim = self.victim(context);
        let thresholds = self.ftl.thresholds();
        let mut ftl = Ftl::new(
            geo,
            (logical, hidden.unwrap_or(0)),
            self.ftl.placements,
            self.ftl.wear.rule(),
            thresholds,
            victim,
        );
        if let (Some(bad), Some(factory)) = (&self.bad_blocks, &factory) {
            let lives = bad.lives(context.seed, &context.name)?;
            ftl.set_bad_blocks(factory, lives, self.ftl.least_units(&ftl.geo));
        }
        if self.ftl.isolates() {
            ftl.isolate();
        }
        if let Some(choice) = self.ftl.page_choice() {
            let types = self.cell.page_types(ftl.geo.shape.pages);
            ftl.choose_pages(choice, types);
        }
        if let Some(slc) = slc {
            ftl.cache_in_slc(slc.rule(self.cell.bits));
        }
        let allocator = self.ftl.allocation.build(&ftl.geo);
        let buffer = self.buffer_parts(&ftl.geo, &*allocator)?;
        let seeks_idle = buffer.as_ref().is_some_and(|b| b.destage.background().is_some());
        let wanted = allocator.wanted();
        let link = self.registers.as_ref().map(|registers| registers.link(&ftl.geo));
        Ok(Device::new(DeviceParts {
            ftl,
            allocator,
            buffer,
            translation,
            map_memory,
            timing,
            policy: BackendPolicy {
                scheduler: self.die.scheduler.build(&()),
                arbiter: self.channel.arbiter.build(&()),
                sharing: self.die.sharing(),
                independent_reads: self.die.independent_reads == Some(true),
                register_reads: self.die.register_reads == Some(true),
                joins_reads: self.die.join_reads == Some(true),
                suspend: self.die.suspend(),
                budget: self.die.budget(),
                tells_idle: self.ftl.gc.mode == GcModeSpec::background || seeks_idle,
                fold: context.fold,
                wanted,
                link,
            },
            host: self.host.build(
                self.inner.as_ref(),
                self.energy.as_ref(),
                context.seed,
                &context.name,
                context.fold,
            )?,
            gc: self.ftl.reclaim(),
            folding: slc.map(|slc| slc.folds()),
            placements: self.ftl.placements,
            unwritten: self.ftl.unwritten_read.into(),
            energy: self.costs()?,
        }))
    }

    /// Energy of media operations, if given.
    fn costs(&self) -> Result<Option<FlashCosts>, SpecError> {
        let Some(spec) = &self.energy else { return Ok(None) };
        let slc = self.ftl.slc_cache.as_ref().and_then(|slc| slc.energy);
        Ok(Some(FlashCosts { spec: energy(spec, &self.cell)?, slc: slc.map(|slc| [slc.read, slc.program]) }))
    }

    /// Returns the write buffer: a DRAM buffer, registers, or none.
    fn buffer_parts(
        &self,
        geo: &Geometry,
        allocator: &dyn Allocator,
    ) -> Result<Option<BufferParts>, SpecError> {
        match (&self.buffer, &self.registers) {
            (Some(_), Some(_)) => {
                let what = "both `buffer` and `registers` are given; a drive gathers writes in one of them";
                Err(SpecError::new("registers", what).help("omit one of the two tables"))
            }
            (Some(buffer), None) => buffer.build(geo, allocator).map(Some),
            (None, Some(registers)) => registers.build(geo, allocator).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// Timing of media with these cells behind these channels.
///
/// # Errors
/// The number of times or factors differs from the number of page types; keys `cell.read`, `cell.program` and
/// `cell.errors.types`.
pub fn timing(
    cell: &CellSpec,
    channel: &ChannelSpec,
    geo: &Geometry,
    context: &Built,
) -> Result<Timing, SpecError> {
    let times = |key: &str, times: &[Duration]| -> Result<Vec<Time>, SpecError> {
        Ok(cell.by_type(key, times)?.into_iter().map(Duration::time).collect())
    };
    Ok(Timing {
        read: times("cell.read", &cell.read)?,
        program: times("cell.program", &cell.program)?,
        passes: cell.passes(),
        one_shot: cell.programming != Programming::page,
        erase: cell.erase.time(),
        page_type: cell.page_types(geo.shape.pages),
        wear_ppm: cell.wear(),
        spread: cell.spread.as_ref().map(|spread| spread.build(context.seed, &context.name)),
        slc: None,
        errors: cell
            .errors
            .as_ref()
            .map(|errors| errors.build(cell, context.seed, &context.name))
            .transpose()?,
        read_command: channel.read_command(),
        column_command: channel.column_command(),
        program_command: channel.program_command(),
        erase_command: channel.erase_command(),
        data_out: channel.data_out(),
        data_in: channel.data_in(),
        rate: Rate::new(channel.bytes_per_s()),
        most_bytes: geo.shape.page_bytes.max(geo.shape.unit_bytes),
        pages_per_unit: geo.pages_per_unit(),
        program_pages: geo.shape.program_pages,
    })
}

/// Energies of media with these cells, by page type; the spec may give one value for all types.
///
/// # Errors
/// The number of energies differs from the number of page types, or from one where a word line is programmed as one;
/// keys `energy.read` and `energy.program`.
pub fn energy(spec: &FlashEnergySpec, cell: &CellSpec) -> Result<FlashEnergySpec, SpecError> {
    let read = cell.by_type("energy.read", &spec.read)?;
    let program = match cell.programming {
        Programming::page => cell.by_type("energy.program", &spec.program)?,
        Programming::one_shot | Programming::two_pass if spec.program.len() == 1 => spec.program.clone(),
        Programming::one_shot | Programming::two_pass => {
            let what = format!(
                "`energy.program` has {} values; a word line that is programmed as one needs 1",
                spec.program.len()
            );
            return Err(SpecError::new("energy.program", what));
        }
    };
    Ok(FlashEnergySpec { read, program, ..spec.clone() })
}
