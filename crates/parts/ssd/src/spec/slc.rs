//! A cache of one bit a cell as a user writes it.

use super::{FlashSpec, FtlSpec, GcScope, SpecError};
use crate::device::FoldPolicy;
use config::units::{Duration, Energy, Share};
use ftl::page_map::slc::SlcRule;
use nand::dies::timing::SlcTimes;
use nand::geometry::Geometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
