//! Preconditioning in progress.

use super::{Draw, FreeUnits, Report, shares};
use config::Diagnostic;
use config::units::Share;
use engine::Rng;
use ftl::page_map::Ftl;
use ftl::page_map::functional::{FunctionalWriter, NoSpace, Placement};
use nand::dies::MultiPlane;
use proto::Lpn;
use ssd::spec::FlashSpec;

/// Draws for each unit to hit, by group: units of popular groups are drawn more often than others.
const TRIES: u64 = 4;

/// Units written between two progress reports: about a millisecond.
const SLICE: u64 = 1 << 12;

/// Progress of preconditioning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the work done, if the total is known.
    pub share: Option<f64>,
    /// Drive writes so far, the fill included.
    pub drive_writes: f64,
}

/// Reason for an unfinished preconditioning.
#[derive(Debug)]
pub(super) enum Halt {
    /// The state cannot be reached.
    Unusable(Diagnostic),
    /// An early end was requested.
    Wanted,
}

impl From<Diagnostic> for Halt {
    fn from(fault: Diagnostic) -> Halt {
        Halt::Unusable(fault)
    }
}

/// Device during preconditioning.
pub(super) struct Session<'a> {
    pub(super) flash: &'a FlashSpec,
    pub(super) ftl: &'a mut Ftl,
    pub(super) writer: FunctionalWriter,
    pub(super) rng: Rng,
    seed: u64,
    /// Units of the share to fill, and units written.
    units: u64,
    written: u64,
    /// Work done, and the total if known, in the state's own measure.
    pub(super) worked: u64,
    pub(super) work: Option<u64>,
    watch: &'a mut dyn FnMut(Progress) -> bool,
    /// Write amplification of the last window.
    pub(super) amplification: Option<f64>,
    pub(super) steady: Option<bool>,
}

/// Map units written by the host and programmed into flash.
#[derive(Clone, Copy)]
pub(super) struct Done {
    written: u64,
    programmed: u64,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        flash: &'a FlashSpec,
        ftl: &'a mut Ftl,
        seed: u64,
        watch: &'a mut dyn FnMut(Progress) -> bool,
    ) -> Session<'a> {
        let allocator = flash.ftl.allocation.build(&ftl.geo);
        let by_address = allocator.is_static() || allocator.lines(&ftl.geo) > 1;
        let placement = if by_address { Placement::Striped } else { Placement::InTurn };
        Session {
            writer: FunctionalWriter::new(ftl, placement),
            rng: Rng::stream(seed, "precondition"),
            flash,
            ftl,
            seed,
            units: 0,
            written: 0,
            worked: 0,
            work: None,
            watch,
            amplification: None,
            steady: None,
        }
    }

    /// Key for a permutation, by name.
    pub(super) fn key(&self, name: &str) -> u64 {
        Rng::stream(self.seed, &format!("precondition/{name}")).next_u64()
    }

    /// Map units of a share of the logical space; drive writes are counted in these.
    pub(super) fn share(&mut self, share: Share) -> Result<u64, Diagnostic> {
        let logical = self.ftl.logical();
        self.units = share.of(logical);
        if self.units == 0 {
            let what = format!("a share of {share} of {logical} map units is zero units");
            return Err(Diagnostic::new(what).help("give a larger share, or `none` for an empty device"));
        }
        Ok(self.units)
    }

    /// Declares the share written in order.
    pub(super) fn fill_in_order(&mut self) {
        self.ftl.assume_sequential(self.units);
        self.written = self.units;
    }

    /// Declares the share written once, each unit to the next group in turn.
    pub(super) fn fill_in_turn(&mut self) {
        self.ftl.assume_interleaved(self.units);
        self.written = self.units;
    }

    /// Declares the share placed without a write.
    pub(super) fn declared(&mut self) {
        self.written = self.units;
    }

    /// Reports progress; fails if an early end is requested.
    pub(super) fn pause(&mut self) -> Result<(), Halt> {
        let share = self.work.map(|all| (self.worked as f64 / all.max(1) as f64).min(1.0));
        let progress = Progress { share, drive_writes: self.drive_writes() };
        if (self.watch)(progress) { Err(Halt::Wanted) } else { Ok(()) }
    }

    /// Counts work done; reports progress when enough has been done.
    pub(super) fn worked(&mut self, count: u64) -> Result<(), Halt> {
        let before = self.worked / SLICE;
        self.worked += count;
        if self.worked / SLICE > before { self.pause() } else { Ok(()) }
    }

    /// Writes units in order.
    pub(super) fn write(&mut self, units: impl Iterator<Item = u64>) -> Result<(), Halt> {
        let mut units = units.map(Lpn);
        loop {
            let mut count = 0;
            let slice = units.by_ref().take(SLICE as usize).inspect(|_| count += 1);
            let done = self.writer.write_all(self.ftl, slice);
            self.written += count;
            done.map_err(|refused| self.no_space(refused))?;
            if count == 0 {
                return Ok(());
            }
            self.worked(count)?;
        }
    }

    /// Writes one unit.
    pub(super) fn write_one(&mut self, unit: u64) -> Result<(), Halt> {
        self.written += 1;
        self.writer.write(self.ftl, Lpn(unit)).map_err(|refused| self.no_space(refused))?;
        self.worked(1)
    }

    /// Programs data that still wait for their program unit to fill up.
    pub(super) fn finish(&mut self) -> Result<(), Diagnostic> {
        self.writer.finish(self.ftl).map_err(|refused| self.no_space(refused))
    }

    /// Overwrites units; returns their write amplification.
    pub(super) fn overwrite(&mut self, units: impl Iterator<Item = u64>) -> Result<f64, Halt> {
        let before = self.done();
        self.write(units)?;
        Ok(self.amplified_since(before))
    }

    /// Write amplification since `before`.
    pub(super) fn amplified_since(&mut self, before: Done) -> f64 {
        let now = self.done();
        let written = now.written - before.written;
        let amplification = (now.programmed - before.programmed) as f64 / written.max(1) as f64;
        self.amplification = (written > 0).then_some(amplification);
        amplification
    }

    /// Work done so far.
    pub(super) fn done(&self) -> Done {
        // Erased units had been programmed whole.
        let erased = self.ftl.counters.erases * u64::from(self.ftl.geo.units_per_ru);
        Done { written: self.written, programmed: self.ftl.programmed_units() + erased }
    }

    /// Overwrites `count` drawn units; returns their write amplification.
    pub(super) fn overwrite_drawn(&mut self, draw: &Draw, count: u64) -> Result<f64, Halt> {
        let mut rng = self.rng.clone();
        let done = self.overwrite((0..count).map(|_| draw.unit(&mut rng)));
        self.rng = rng;
        done
    }

    /// Number of planes that share commands and need their frontiers in step.
    pub(super) fn planes_in_step(&self) -> u32 {
        let geo = &self.ftl.geo;
        let shares = self.flash.die.sharing().rule != MultiPlane::Off && geo.lanes == 1;
        if shares { geo.shape.planes } else { 1 }
    }

    fn lags(&self) -> Vec<u32> {
        self.ftl.lags(self.flash.die.sharing().rule)
    }

    /// Overwrites drawn units where planes lag behind, until all are in step or too few draws hit them.
    pub(super) fn overwrite_into_step(&mut self, draw: &Draw) -> Result<(), Diagnostic> {
        self.finish()?;
        let per_program = self.ftl.geo.units_per_program as usize;
        let mut lags = self.lags();
        if self.writer.placement() == Placement::InTurn {
            let mut lpns = Vec::with_capacity(per_program);
            for (group, lag) in (0u32..).zip(lags) {
                for _ in 0..lag {
                    lpns.clear();
                    lpns.extend((0..per_program).map(|_| Lpn(draw.unit(&mut self.rng))));
                    self.ftl.write_program(group, &lpns).map_err(|refused| self.no_space(refused))?;
                }
            }
            return Ok(());
        }
        lags.iter_mut().for_each(|lag| *lag *= per_program as u32);
        let mut missing: u64 = lags.iter().map(|lag| u64::from(*lag)).sum();
        let mut tries = missing * u64::from(self.ftl.geo.groups) * TRIES;
        while missing > 0 && tries > 0 {
            tries -= 1;
            let lpn = Lpn(draw.unit(&mut self.rng));
            let group = self.writer.group_of(self.ftl, lpn).expect("addresses decide") as usize;
            if lags[group] > 0 {
                lags[group] -= 1;
                missing -= 1;
                self.writer.write(self.ftl, lpn).map_err(|refused| self.no_space(refused))?;
            }
        }
        Ok(())
    }

    /// Drive writes, in units written per unit of the share.
    pub(super) fn drive_writes(&self) -> f64 {
        if self.units == 0 { 0.0 } else { self.written as f64 / self.units as f64 }
    }

    /// Refuses a share that leaves garbage collection nothing to gain.
    pub(super) fn require_spare(&self) -> Result<(), Diagnostic> {
        let geo = &self.ftl.geo;
        let per_group = self.units.div_ceil(u64::from(geo.groups));
        let (blocks, kept) = (self.ftl.fewest_usable(), self.ftl.thresholds.start);
        let closed = blocks.saturating_sub(kept + 2);
        let space = u64::from(closed) * u64::from(geo.units_per_ru);
        if per_group < space {
            return Ok(());
        }
        let what = format!(
            "not enough over-provisioning: a group has {blocks} reclaim units of {} map units, of which {kept} are kept free and 2 are frontiers; the other {closed} hold {space} map units, and {per_group} are mapped",
            geo.units_per_ru,
        );
        Err(Diagnostic::new(what)
            .help("lower the share, raise flash.ftl.over_provisioning or lower flash.ftl.gc.start"))
    }

    pub(super) fn no_space(&self, refused: NoSpace) -> Diagnostic {
        let geo = &self.ftl.geo;
        let first = u64::from(refused.group) * u64::from(geo.shape.blocks);
        let blocks = self.ftl.usable(refused.group);
        let valid: u64 = (0..u64::from(blocks)).map(|n| u64::from(self.ftl.valid_units(first + n))).sum();
        let what = format!(
            "group {} has no space after {:.2} drive writes: {valid} of its {} map units are valid, {} of its {} reclaim units are free and the last {} are reserved",
            refused.group,
            self.drive_writes(),
            u64::from(blocks) * u64::from(geo.units_per_ru),
            refused.free,
            blocks,
            self.ftl.thresholds.hard,
        );
        Diagnostic::new(what).help("lower the share or raise flash.ftl.over_provisioning")
    }

    /// Programs pending data, pads planes that are not in step, and summarises.
    pub(super) fn report(mut self, kind: &'static str) -> Result<Report, Diagnostic> {
        self.finish()?;
        for (group, lag) in (0u32..).zip(self.lags()) {
            self.ftl.pad(group, lag);
        }
        let (mapped_share, invalid_share) = shares(self.ftl);
        let report = Report {
            kind,
            mapped_share,
            invalid_share,
            free_reclaim_units: FreeUnits::of(self.ftl),
            drive_writes: self.drive_writes(),
            write_amplification: self.amplification,
            steady: self.steady,
        };
        self.ftl.reset_counters();
        Ok(report)
    }
}
