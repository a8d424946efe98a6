//! Checks that hold between any two events. Each side of an equation is counted in another part.

use super::Direct;
use super::op::Kind;
use crate::check::Check;
use engine::Time;

/// What has happened since the first command.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Commands.
    pub(super) arrived: u64,
    pub(super) done: u64,
    /// Reads of the array queued, and done.
    pub(super) fetches: u64,
    pub(super) sensed: u64,
    /// Pages queued to be programmed from registers, and programmed.
    pub(super) leaving: u64,
    pub(super) left: u64,
    /// Pages offered to the shared cache, taken and refused by it.
    pub(super) offered: u64,
    pub(super) taken: u64,
    pub(super) refused: u64,
    /// Lines of the pages taken.
    pub(super) given_up: u64,
    /// Pages moved and blocks erased by merges.
    pub(super) copied: u64,
    pub(super) erased: u64,
}

fn equal(name: &'static str, left: (&str, u64), right: (&str, u64)) -> Check {
    let detail = format!("{} {}, {} {}", left.0, left.1, right.0, right.1);
    Check { name, ok: left.1 == right.1, detail }
}

impl Direct {
    /// Lines of pages that the shared cache has taken from registers since the beginning.
    pub fn lines_given_up(&self) -> u64 {
        self.ledger.given_up
    }

    /// Whether what was counted in one place agrees with what was counted in another.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let (mut reads, mut programs) = (0, 0);
        for op in self.planes.live() {
            match op.kind {
                Kind::Read => reads += u64::from(op.held == Time::MAX),
                Kind::Program { .. } => programs += 1,
            }
        }
        let (used, _) = self.registers.used();
        let mut checks = vec![
            equal(
                "every command is answered once",
                ("arrived", ledger.arrived),
                ("done and inside", ledger.done + self.active.len() as u64),
            ),
            equal(
                "every fetch senses a page once",
                ("fetches", ledger.fetches),
                ("sensed and waiting", ledger.sensed + reads),
            ),
            equal(
                "every page that leaves for flash is programmed once",
                ("queued", ledger.leaving),
                ("programmed and waiting", ledger.left + programs),
            ),
            equal(
                "every page in a register is programmed or parked",
                ("taken in", self.registers.filled),
                ("programmed, parked and held", ledger.left + ledger.taken + used),
            ),
            equal(
                "every offered page is taken or refused",
                ("offered", ledger.offered),
                ("taken, refused and open", ledger.taken + ledger.refused + self.registers.open()),
            ),
            equal(
                "pages are programmed by evictions and merges",
                ("in blocks", self.blocks.programmed),
                ("by evictions and merges", ledger.left + ledger.copied),
            ),
            equal(
                "blocks are erased by merges",
                ("in blocks", self.blocks.erased),
                ("by merges", ledger.erased),
            ),
            self.blocks_are_kept(),
        ];
        if let Some(shadow) = &self.shadow {
            let detail = format!("{} of {} lines read were wrong", shadow.wrong, shadow.checked);
            checks.push(Check { name: "reads bring what was written", ok: shadow.wrong == 0, detail });
        }
        checks
    }

    /// Every block of a set of planes is data, log, free or part of the set's merge.
    fn blocks_are_kept(&self) -> Check {
        let merge = |set| self.merge_of(set);
        let all = (self.blocks.blocks as usize, self.blocks.blocks as usize);
        let lost = self.blocks.census(merge).filter(|census| *census != all).count();
        let detail = format!("{lost} sets of planes with blocks that are lost or in two places");
        Check { name: "no block is lost", ok: lost == 0, detail }
    }
}
