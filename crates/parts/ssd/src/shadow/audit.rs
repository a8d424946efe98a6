//! Final audit: the contents of every unit, and of every entry of a demand-cached map, at the end of a run.
//!
//! The audits cost as much as has been touched, not as much as the drive could hold. A unit is unchanged, and needs no
//! check, if no command has touched it, its place in the map has not been written since the shadow began, and its block
//! was neither programmed nor erased. A terabyte that stays empty costs nothing.

use super::data::{Sectors, Version};
use super::{Shadow, word};
use ftl::page_map::Ftl;
use proto::Lpn;
use std::collections::BTreeSet;

/// Units between two polls of the stop request.
const SLICE: u64 = 1 << 12;

/// Result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audit {
    /// All entries are correct; their number.
    Fine(u64),
    /// Number of wrong entries, and a description of the first.
    Wrong(u64, String),
    /// Stopped before the end.
    Interrupted,
}

impl Shadow {
    /// Compares every logical unit with the data that may be read from it now. `buffered` returns the sectors in the
    /// buffer, `stop` whether to stop early. O(units and blocks touched).
    pub fn audit(&self, ftl: &Ftl, buffered: impl Fn(Lpn) -> Sectors, stop: &dyn Fn() -> bool) -> Audit {
        let (mut wrong, mut first) = (0, None);
        for (looked, lpn) in (1_u64..).zip(self.touched(ftl).filter(|lpn| lpn.0 < ftl.logical())) {
            if looked % SLICE == 1 && stop() {
                return Audit::Interrupted;
            }
            let illegal = if self.is_as_it_was(lpn, ftl) { None } else { self.illegal(lpn, ftl, &buffered) };
            let Some(version) = illegal else { continue };
            wrong += 1;
            if first.is_none_or(|(known, _)| lpn < known) {
                first = Some((lpn, version));
            }
        }
        match first {
            None => Audit::Fine(ftl.logical()),
            Some((lpn, version)) => Audit::Wrong(wrong, format!("unit {} holds {version}", lpn.0)),
        }
    }

    /// Returns true if a unit has its initial place, in an unchanged block, and no command has touched it.
    fn is_as_it_was(&self, lpn: Lpn, ftl: &Ftl) -> bool {
        let slot = ftl.lookup(lpn);
        slot == self.truth.initial_slot(lpn, ftl)
            && !slot.is_some_and(|slot| self.truth.knows_block_of(slot, ftl))
            && !self.oracle.knows(lpn)
    }

    /// Version that a unit holds and must not.
    fn illegal(&self, lpn: Lpn, ftl: &Ftl, buffered: impl Fn(Lpn) -> Sectors) -> Option<Version> {
        let mut stamps = self.on_flash(lpn, ftl);
        if let Some(line) = self.lines.get(&lpn) {
            stamps = stamps.under(line, buffered(lpn));
        }
        let mut illegal = None;
        stamps.each(|version, sectors| {
            let legal = self.oracle.legal_now(lpn, version);
            let legal = legal.unwrap_or_else(|| self.truth.initially(lpn, ftl).of(version));
            if sectors & self.all_sectors() & !legal != 0 {
                illegal = Some(version);
            }
        });
        illegal
    }

    /// Units that may have changed, including hidden ones: each once, in arbitrary order.
    pub fn touched<'s>(&'s self, ftl: &'s Ftl) -> Box<dyn Iterator<Item = Lpn> + 's> {
        let before = self.truth.initial();
        if !ftl.based_on(before) {
            // After a power cut, the map was rebuilt: no unit's place is unchanged.
            return Box::new((0..ftl.logical() + ftl.hidden()).map(Lpn));
        }
        let now = ftl.written();
        let then = before.written().filter(|lpn| !ftl.is_written(*lpn));
        let is_written = |lpn: Lpn| ftl.is_written(lpn) || before.is_written(lpn);
        let known = self.oracle.known().filter(move |lpn| !is_written(*lpn));
        let in_blocks = self.truth.known_slots(ftl).filter_map(|slot| ftl.base_unit(slot));
        let in_blocks = in_blocks.filter(move |lpn| !is_written(*lpn) && !self.oracle.knows(*lpn));
        Box::new(now.chain(then).chain(known).chain(in_blocks))
    }

    /// Compares every entry with the map: entries that memory `knows` to be newer than flash, and all others as stored
    /// on flash. O(translation pages with a touched entry).
    pub(crate) fn audit_map(&self, ftl: &Ftl, knows: impl Fn(u64) -> bool, stop: &dyn Fn() -> bool) -> Audit {
        let per_page = self.map.per_page;
        let logical = ftl.logical();
        // A page that was never written back has the entries of the initial map.
        let touched = self.touched(ftl).chain(self.map.fresh.keys().copied().map(Lpn));
        let page_of = |lpn: Lpn| if lpn.0 < logical { lpn.0 / per_page } else { lpn.0 - logical };
        let pages: BTreeSet<u64> = touched.map(page_of).collect();
        let (mut wrong, mut first) = (0, 0);
        for page in pages {
            if stop() {
                return Audit::Interrupted;
            }
            let entries = self.page_on_flash(page, ftl);
            for lpn in page * per_page..((page + 1) * per_page).min(logical) {
                let fresh = self.map.fresh.get(&lpn).copied().filter(|_| knows(lpn));
                if fresh.unwrap_or_else(|| self.entry(&entries, lpn, ftl)) != word(ftl.lookup(Lpn(lpn))) {
                    first = if wrong == 0 { lpn } else { first };
                    wrong += 1;
                }
            }
        }
        if wrong == 0 {
            Audit::Fine(logical)
        } else {
            Audit::Wrong(wrong, format!("the first belongs to unit {first}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shadow::{Audit, Shadow};
    use crate::soak::{Fill, Host, combinations};
    use ftl::page_map::Ftl;
    use proto::{Lpn, Slot};
    use std::collections::BTreeSet;

    /// Changed units, found by checking every one.
    fn naive(shadow: &Shadow, ftl: &Ftl) -> BTreeSet<Lpn> {
        let all = (0..ftl.logical() + ftl.hidden()).map(Lpn);
        all.filter(|lpn| !shadow.is_as_it_was(*lpn, ftl)).collect()
    }

    #[test]
    fn the_touched_units_are_all_that_a_look_at_every_unit_would_find() {
        let mut changed = 0;
        for combination in combinations(1).into_iter().filter(|c| c.fill != Fill::Steady) {
            let mut device = combination.build(1).expect("it can be built");
            device.attach_shadow();
            let mut host = Host::new(device, 1, 4);
            host.drive(50);
            let ftl = &host.device.ftl;
            let shadow = host.device.shadow().expect("one is attached");
            let touched: Vec<Lpn> = shadow.touched(ftl).collect();
            let each: BTreeSet<Lpn> = touched.iter().copied().collect();
            assert_eq!(each.len(), touched.len(), "{combination:?}: none is looked at twice");
            let expected = naive(shadow, ftl);
            assert!(expected.is_subset(&each), "{combination:?}");
            changed += expected.len();
        }
        assert!(changed > 1000, "{changed}");
    }

    #[test]
    fn what_nobody_has_touched_is_not_looked_at() {
        let fits = |c: &crate::soak::Combination| c.fill == Fill::Sequential;
        let combination = combinations(1).into_iter().find(fits).expect("pairs are covered");
        let mut device = combination.build(1).expect("it can be built");
        device.attach_shadow();
        let shadow = device.shadow().expect("one is attached");
        assert_eq!(shadow.touched(&device.ftl).count(), 0);
        let looked = |stop: bool| shadow.audit(&device.ftl, |_| 0, &|| stop);
        assert_eq!(looked(false), Audit::Fine(device.ftl.logical()));
        // Only the slots of one block that has been erased.
        let mut device = combination.build(1).expect("it can be built");
        device.attach_shadow();
        let Some(slot) = device.ftl.lookup(Lpn(0)) else { panic!("the device is full") };
        let first = device.ftl.geo.first_slot(device.ftl.geo.block_of_slot(slot).0);
        let mut shadow = Shadow::new(&device.ftl, None);
        shadow.erased(first, &device.ftl);
        let inside: BTreeSet<Lpn> = shadow.touched(&device.ftl).collect();
        let per_block = u64::from(device.ftl.geo.units_per_block);
        let slots = (first.0..first.0 + per_block).map(Slot);
        let expected: BTreeSet<Lpn> = slots.filter_map(|slot| device.ftl.lpn_at(slot)).collect();
        assert_eq!(inside, expected);
        let wrong = shadow.audit(&device.ftl, |_| 0, &|| false);
        assert!(matches!(wrong, Audit::Wrong(units, _) if units == expected.len() as u64), "{wrong:?}");
    }

    #[test]
    fn an_audit_that_is_interrupted_says_so() {
        let fits = |c: &crate::soak::Combination| c.fill == Fill::Steady;
        let combination = combinations(1).into_iter().find(fits).expect("pairs are covered");
        let mut device = combination.build(1).expect("it can be built");
        device.attach_shadow();
        let checks = device.checks_unless(engine::Time::ZERO, &|| true);
        let audit = checks.iter().find(|check| check.name == "shadow_units").expect("a shadow is attached");
        assert!(!audit.ok && audit.detail.contains("interrupted"), "{audit:?}");
    }
}
