//! Hot and cold data in pools of their own.

use super::{Skew, Spare, greedy};
use crate::solve::minimum;

/// How the spare units are divided between the pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// So that the total write amplification is least.
    Optimal,
    /// In proportion to the pools' data.
    Proportional,
    /// This share to the hot pool, between 0 and 1.
    Hot(f64),
}

/// Write amplification with hot and cold data in two pools that never share a block, each collected greedily,
/// and the share of the spare that the hot pool has.
///
/// P. Desnoyers, Analytic modeling of SSD write performance, SYSTOR 2012, (20) to (22), here with the exact
/// mean-field [`greedy`]; the optimum is that of R. Stoica, A. Ailamaki, Improving flash write performance by
/// using update frequency, PVLDB 6(9), 2013.
///
/// # Panics
/// If `units` is zero or a given share is outside 0 to 1.
pub fn hot_cold_pools(units: u32, spare: Spare, skew: Skew, split: Split) -> (f64, f64) {
    let extra = spare.over_logical();
    let total = |hot_share: f64| {
        let pool = |share: f64, pages: f64, writes: f64| {
            writes * greedy(units, Spare::of_logical((share * extra / pages).max(0.0)))
        };
        pool(hot_share, skew.pages(), skew.writes())
            + pool(1.0 - hot_share, 1.0 - skew.pages(), 1.0 - skew.writes())
    };
    let share = match split {
        Split::Optimal => minimum(0.0, 1.0, total),
        Split::Proportional => skew.pages(),
        Split::Hot(share) => {
            assert!((0.0..=1.0).contains(&share), "share {share} of the spare");
            share
        }
    };
    (total(share), share)
}

#[cfg(test)]
mod tests {
    use super::{Split, hot_cold_pools};
    use crate::wa::{Skew, Spare, greedy};

    #[test]
    fn pools_without_skew_are_one_pool() {
        let (spare, skew) = (Spare::of_logical(0.2), Skew::new(0.3, 0.3));
        let one = greedy(64, spare);
        let (apart, share) = hot_cold_pools(64, spare, skew, Split::Proportional);
        assert!((apart / one - 1.0).abs() < 1e-12);
        assert_eq!(share, 0.3);
        let (best, share) = hot_cold_pools(64, spare, skew, Split::Optimal);
        assert!((best / one - 1.0).abs() < 1e-9 && (share - 0.3).abs() < 1e-3, "{best} {share}");
    }

    #[test]
    fn the_optimum_is_no_worse_than_any_share() {
        let (spare, skew) = (Spare::of_logical(0.12), Skew::new(0.2, 0.8));
        let (best, share) = hot_cold_pools(64, spare, skew, Split::Optimal);
        for i in 1..40 {
            let (other, _) = hot_cold_pools(64, spare, skew, Split::Hot(f64::from(i) / 40.0));
            assert!(best <= other + 1e-9, "{best} at {share}, {other} at {i}/40");
        }
        assert!(best < greedy(64, spare) && share > 0.2);
    }
}
