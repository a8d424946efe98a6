//! The placement that misses a reclaim unit least gives one.

use super::{Pool, Victim, VictimContext, VictimView};

/// Takes the emptiest unit of the placement where one slot less costs the fewest programs.
///
/// A placement of `U` valid units that the host writes at a rate `w` takes `w A` programs, `A = 1 / (1 - u)` with `u` the valid
/// share of its victims. Under uniform writes in many slots `T` of large units, `T / U = -ln u / (1 - u)` (Menon, HPDC 1995;
/// Desnoyers, SYSTOR 2012, (4)). So one slot less costs `-w dA/dT = w / (U (1/u - 1 + ln u))`. A split of the spare space is
/// the best one where that is equal for all placements; no other then gives a slot more for less (Desnoyers, (20) to (22);
/// Stoica and Ailamaki, PVLDB 6(9), 2013). A placement with more than its share has emptier victims, gives up its units first,
/// and comes to rest there.
///
/// Rates are counted as the device runs: by the reclaim units that the host opens for each placement.
#[derive(Clone, Copy, Debug)]
pub struct MarginalGain;

impl MarginalGain {
    /// Builds the policy.
    pub fn new(_: &VictimContext) -> MarginalGain {
        MarginalGain
    }
}

/// One over what a slot less costs, up to a factor that all placements share.
fn cheapness(pool: Pool, units_per_ru: u32) -> f64 {
    if pool.moved == 0 {
        return f64::INFINITY;
    }
    let u = f64::from(pool.moved) / f64::from(units_per_ru);
    // One more than was seen (Laplace's rule of succession): what has not been written lately may still be.
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
mod tests;
