//! Victim from the placement that loses least by giving up a reclaim unit.

use super::{PoolView, Victim, VictimContext, VictimView};

/// Takes the emptiest unit of the placement where one slot less costs the fewest programs.
///
/// A placement of `U` valid units that the host writes at a rate `w` takes `w A` programs, `A = 1 / (1 - u)` with `u`
/// the valid share of its victims. Under uniform writes in many slots `T` of large units, `T / U = -ln u / (1 - u)`
/// (Menon, HPDC 1995; Desnoyers, SYSTOR 2012, (4)). So one slot less costs `-w dA/dT = w / (U (1/u - 1 + ln u))`. A
/// split of the over-provisioning is optimal if this cost is equal for all placements; then no placement can give up a
/// slot for less (Desnoyers, (20) to (22); Stoica and Ailamaki, PVLDB 6(9), 2013). A placement with more than its share
/// has emptier victims, gives up its units first, and settles at that split.
///
/// Rates are measured during the run, by the reclaim units that the host opens for each placement.
#[derive(Clone, Copy, Debug)]
pub struct MarginalGain;

impl MarginalGain {
    /// Builds the policy.
    pub fn new(_: &VictimContext) -> MarginalGain {
        MarginalGain
    }
}

/// Returns the reciprocal of the cost of a slot less, up to a factor that all placements share.
fn cheapness(pool: PoolView, units_per_ru: u32) -> f64 {
    if pool.moved == 0 {
        return f64::INFINITY;
    }
    let u = f64::from(pool.moved) / f64::from(units_per_ru);
    // One more than was seen (Laplace's rule of succession): data not written recently may still be written.
    let rate = f64::from(pool.opened) + 1.0;
    pool.valid as f64 * (1.0 / u - 1.0 + libm::log(u)) / rate
}

impl Victim for MarginalGain {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        let mut best: Option<(u32, f64)> = None;
        for pool in view.pools() {
            let cheap = cheapness(pool, view.units_per_ru);
            if best.is_none_or(|(_, most)| cheap > most) {
                best = Some((pool.emptiest, cheap));
            }
        }
        best.map(|(ru, _)| ru).or_else(|| view.by_valid().next())
    }

    fn weighs_pools(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    // Policy against the formula, and the pools that it uses against a recount.
    use super::*;
    use crate::page_map::space::Stream;
    use crate::page_map::testing::small;
    use crate::page_map::units::RuState;
    use crate::page_map::wear::WearRule;
    use crate::page_map::{Ftl, Thresholds};
    use engine::Rng;
    use nand::geometry::{Geometry, Reclaim, Shape};
    use proto::{Lpn, Slot};

    const LOGICAL: u64 = 20_000;
    const HOT: u64 = 4_000;

    /// Creates one plane with two placements that garbage collection keeps apart.
    fn device() -> Ftl {
        let one = Shape { channels: 1, ways: 1, dies: 1, planes: 1, ..small(Reclaim::Block) };
        let geo = Geometry::new(Shape { blocks: 720, pages: 32, page_bytes: 4096, program_pages: 1, ..one });
        let context = VictimContext { seed: 1, device: "flash".into() };
        let victim = Box::new(MarginalGain::new(&context));
        let thresholds = Thresholds { start: 1, stop: 2, hard: 1 };
        let mut ftl = Ftl::new(geo, (LOGICAL, 0), 2, WearRule::default(), thresholds, victim);
        ftl.isolate();
        ftl
    }

    fn write(ftl: &mut Ftl, unit: u64) {
        ftl.make_room(0).expect("over-provisioning leaves room");
        let slot = ftl.reserve(0, Stream::Host(u8::from(unit >= HOT))).expect("room was made");
        ftl.fill(slot, Some(Lpn(unit)));
        ftl.program(slot);
        ftl.commit(Lpn(unit), slot);
        ftl.programmed(slot);
    }

    /// Writes units, a share `share` of them hot.
    fn churn(ftl: &mut Ftl, share: f64, writes: u64, rng: &mut Rng) {
        for _ in 0..writes {
            let hot = rng.unit() < share;
            write(ftl, if hot { rng.below(HOT) } else { HOT + rng.below(LOGICAL - HOT) });
        }
    }

    fn filled() -> Ftl {
        let mut ftl = device();
        (0..LOGICAL).for_each(|unit| write(&mut ftl, unit));
        ftl
    }

    /// Returns the write amplification of a pool of `units` valid units in `slots`: the root of
    /// `T / U = -ln u / (1 - u)`, by bisection.
    fn amplification(slots: f64, units: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let u: f64 = 0.5 * (low + high);
            if -libm::log(u) / (1.0 - u) > slots / units { low = u } else { high = u }
        }
        1.0 / (1.0 - low)
    }

    #[test]
    fn what_a_slot_less_costs_is_the_slope_of_the_formula() {
        for (units, slots, opened) in [(1e4, 1.12e4, 9), (3e4, 3.9e4, 4), (5e4, 5.3e4, 0)] {
            let slope = (amplification(slots + 1.0, units) - amplification(slots - 1.0, units)) / 2.0;
            let u = 1.0 - 1.0 / amplification(slots, units);
            let of = 1_000_000;
            let pool = PoolView {
                emptiest: 0,
                moved: (u * f64::from(of)).round() as u32,
                valid: units as u64,
                opened,
            };
            let cost = 1.0 / cheapness(pool, of);
            let expected = -slope * f64::from(opened + 1);
            assert!((cost / expected - 1.0).abs() < 1e-3, "{cost} {expected}");
        }
    }

    #[test]
    fn what_moves_nothing_goes_first_and_what_gains_nothing_last() {
        let pool = |moved| PoolView { emptiest: 0, moved, valid: 1_000, opened: 3 };
        assert_eq!(cheapness(pool(0), 64), f64::INFINITY);
        assert_eq!(cheapness(pool(64), 64), 0.0);
        assert!((1..64).all(|moved| cheapness(pool(moved), 64) > cheapness(pool(moved + 1), 64)));
    }

    #[test]
    fn pools_are_what_a_recount_finds() {
        let mut ftl = filled();
        let mut rng = Rng::stream(3, "test");
        for turn in 0..20 {
            churn(&mut ftl, 0.7, 2_000, &mut rng);
            for _ in 0..100 {
                ftl.trim(Lpn(rng.below(LOGICAL)));
            }
            let group = &ftl.groups[0];
            let pools = group.pools.as_ref().expect("the policy weighs them");
            for (placement, pool) in (0u8..).zip(pools.all()) {
                let of = |ru: &&crate::page_map::units::Ru| {
                    ru.state == RuState::Closed && ru.placement == placement
                };
                let closed = || group.rus.iter().filter(of);
                assert_eq!(pool.index.len(), closed().count(), "turn {turn}");
                assert_eq!(pool.valid, closed().map(|ru| u64::from(ru.valid)).sum::<u64>(), "turn {turn}");
                let emptiest = pool.index.emptiest().map(|ru| group.ru(ru).valid);
                assert_eq!(emptiest, closed().map(|ru| ru.valid).min(), "turn {turn}");
            }
        }
    }

    /// The rates follow the host: when hot data turns cold and cold data hot, so does the split.
    #[test]
    fn the_split_follows_the_host() {
        let mut ftl = filled();
        let mut rng = Rng::stream(3, "test");
        let hot_spare = |ftl: &Ftl| {
            let pools = ftl.groups[0].pools.as_ref().expect("the policy weighs them").all();
            let slots = pools[0].index.len() as u64 * u64::from(ftl.geo.units_per_ru);
            (slots - pools[0].valid) as f64 / pools[0].valid as f64
        };
        let mut seen = Vec::new();
        for share in [0.8, 0.05, 0.8] {
            churn(&mut ftl, share, 10 * LOGICAL, &mut rng);
            seen.push(hot_spare(&ftl));
        }
        // The placement's share of the data is 20 %, and the whole over-provisioning 14 %.
        assert!(seen[0] > 0.2 && seen[1] < 0.1 && seen[2] > 0.2, "{seen:?}");
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let mut ftl = filled();
        let mut rng = Rng::stream(3, "test");
        churn(&mut ftl, 0.8, 2 * LOGICAL, &mut rng);
        let mut bytes = Vec::new();
        ftl.save(&mut bytes);
        let mut copy = device();
        assert_eq!(copy.load(&mut bytes.as_slice()), Some(()));
        let places = |ftl: &mut Ftl| {
            churn(ftl, 0.8, LOGICAL, &mut Rng::stream(4, "test"));
            (0..LOGICAL).map(|unit| ftl.lookup(Lpn(unit))).collect::<Vec<Option<Slot>>>()
        };
        assert_eq!(places(&mut copy), places(&mut ftl));
        assert_eq!(copy.counters, ftl.counters);
    }
}
