//! Closed forms beside simulated values.
//!
//! The formulas are those of the `theory` crate, which shares no code with the simulator, or sums written out here
//! from the constants of the spec.

mod constants;
mod loads;
mod queue;
mod server;
mod skew;
mod uniform;

use super::Case;
use crate::stand::d16;
use config::Diagnostic;
use spec::Loaded;
use ssd::Device;
use theory::wa::Spare;

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    [
        loads::idle_cases(),
        loads::saturated_cases(),
        queue::cases(),
        server::station_cases(),
        server::cases(),
        uniform::cases(),
        skew::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

// A device whose spare follows from its configuration alone: what formulas of write amplification are held against.

/// A device of few large groups, so that its spare is what a formula is about.
///
/// Blocks compete for collection inside their group, a plane. A collection starts when `start` blocks of the group are
/// free and the next starts at once while fewer than `stop` are: with every net gain of a block the count of free
/// blocks at a choice goes from `start` to `stop - 1`, so `(start + stop - 1) / 2` on average. For each stream of host
/// data one block is open, and one for what is moved of it. All others are closed, and they are what a victim is chosen
/// from:
///
/// `T = blocks - (start + stop - 1) / 2 - open frontiers`, and `spare = (T - U) / U`.
#[derive(Clone, Copy, Debug)]
struct Drive {
    planes: u32,
    blocks: u32,
    pages: u32,
    start: u32,
    stop: u32,
    /// Streams of host data.
    placements: u32,
}

/// One plane with thresholds as low as they go.
const DRIVE: Drive = Drive { planes: 1, blocks: 2048, pages: 64, start: 1, stop: 2, placements: 1 };

impl Drive {
    /// Free blocks that a group keeps, on average at the choice of a victim.
    fn kept(&self) -> f64 {
        f64::from(self.start + self.stop - 1) / 2.0
    }

    /// Open blocks of a group: one a stream of host data, one for what is moved of it.
    fn frontiers(&self) -> u32 {
        2 * self.placements
    }

    /// Closed blocks of a group at the choice of a victim.
    fn closed(&self) -> f64 {
        f64::from(self.blocks) - self.kept() - f64::from(self.frontiers())
    }

    /// The device, with over-provisioning that leaves a `spare` of the logical space.
    ///
    /// # Errors
    /// A spec that cannot be built.
    fn load(&self, victim: &str, spare: f64) -> Result<Loaded, Diagnostic> {
        let hidden = 1.0 - self.closed() / (1.0 + spare) / f64::from(self.blocks);
        let number = |key: &str, value: u32| format!("flash.{key}={value}");
        d16(&[
            number("geometry.channels", 1),
            number("geometry.ways", 1),
            number("geometry.planes", self.planes),
            number("geometry.blocks", self.blocks),
            number("geometry.pages", self.pages),
            number("ftl.placements", self.placements),
            number("ftl.gc.hard", 1),
            number("ftl.gc.start", self.start),
            number("ftl.gc.stop", self.stop),
            format!("flash.ftl.gc.victim{victim}"),
            format!("flash.ftl.over_provisioning={hidden:.12}"),
        ])
    }

    /// The spare that the configuration gives, and how it comes about.
    fn spare(&self, device: &Device) -> (Spare, String) {
        let logical = device.ftl.logical();
        let closed = self.closed() * f64::from(self.planes);
        // Half blocks are kept by counting twice.
        let physical = (2.0 * closed * f64::from(self.pages)).round() as u64;
        let spare = Spare::of_units(physical, 2 * logical);
        let text = format!(
            "spare {:.6} = (T - U) / U, T = {closed} blocks = {} x ({} - {} kept free - {} frontiers), U = {logical} \
             units, {} units a block",
            spare.over_logical(),
            self.planes,
            self.blocks,
            self.kept(),
            self.frontiers(),
            self.pages
        );
        (spare, text)
    }
}
