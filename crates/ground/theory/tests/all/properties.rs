//! What must hold for every drive and every queue.

use proptest::prelude::*;
use theory::queue::{Md1, Mmk, mg1_mean_wait};
use theory::wa::{self, Skew, Spare, Split};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Greedy is optimal among rules that see valid counts only, and one choice is the worst of the d-choices.
    #[test]
    fn more_choices_amplify_less(units in 1u32..200, spare in 0.01f64..4.0, choices in 2u32..50) {
        let spare = Spare::of_logical(spare);
        let slack = 1.0 + 1e-9;
        let (greedy, some) = (wa::greedy(units, spare), wa::d_choices(units, spare, choices));
        prop_assert!(greedy >= 1.0 - 1e-12 && greedy <= f64::from(units) * slack);
        prop_assert!(greedy <= some * slack, "{} {}", greedy, some);
        prop_assert!(some <= wa::d_choices(units, spare, choices - 1) * slack);
        prop_assert!(some <= wa::random(spare) * slack);
        prop_assert!(greedy <= wa::fifo(spare) * slack);
    }

    /// Valid counts that steady states promise reproduce their amplification: a victim is a block like the others.
    #[test]
    fn histogram_and_amplification_agree(units in 2u32..200, spare in 0.02f64..4.0, choices in 1u32..20) {
        let spare = Spare::of_logical(spare);
        let shares = wa::d_choices_histogram(units, spare, choices);
        let mut at_least = 1.0f64;
        let mut victim = 0.0;
        for (j, m) in shares.iter().enumerate() {
            let above = (at_least - m).max(0.0);
            victim += j as f64 * (at_least.powi(choices as i32) - above.powi(choices as i32));
            at_least = above;
        }
        let amplification = f64::from(units) / (f64::from(units) - victim);
        let expected = wa::d_choices(units, spare, choices);
        prop_assert!((amplification / expected - 1.0).abs() < 1e-6, "{} for {}", amplification, expected);
    }

    #[test]
    fn more_spare_amplifies_less(units in 1u32..200, spare in 0.01f64..2.0) {
        let (less, more) = (Spare::of_logical(spare), Spare::of_logical(spare * 1.1));
        prop_assert!(wa::greedy(units, more) <= wa::greedy(units, less) + 1e-12);
        prop_assert!(wa::fifo(more) <= wa::fifo(less));
    }

    #[test]
    fn best_split_is_best(spare in 0.05f64..1.0, pages in 0.05f64..0.95, writes in 0.05f64..0.95, share in 0.0f64..1.0) {
        let (spare, skew) = (Spare::of_logical(spare), Skew::new(pages, writes));
        let (best, _) = wa::hot_cold_pools(32, spare, skew, Split::Optimal);
        prop_assert!(best <= wa::hot_cold_pools(32, spare, skew, Split::Hot(share)).0 * (1.0 + 1e-6));
        prop_assert!(best <= wa::hot_cold_pools(32, spare, skew, Split::Proportional).0 * (1.0 + 1e-6));
    }

    #[test]
    fn variability_costs_waiting(load in 0.01f64..0.99, servers in 1u32..32) {
        let exponential = Mmk { arrival_rate: load, service: 1.0, servers: 1 }.mean_wait();
        prop_assert!((mg1_mean_wait(load, 1.0, 1.0) / exponential - 1.0).abs() < 1e-9);
        let constant = Md1 { arrival_rate: load, service: 1.0 }.mean_wait();
        prop_assert!((constant * 2.0 / exponential - 1.0).abs() < 1e-9);
        // Pooled servers wait less than one of the pool's speed waits and serves together.
        let pool = Mmk { arrival_rate: load * f64::from(servers), service: 1.0, servers };
        prop_assert!(pool.mean_wait() <= exponential * (1.0 + 1e-9));
        let quantiles = [0.1, 0.5, 0.9, 0.999].map(|p| pool.response_quantile(p));
        prop_assert!(quantiles.is_sorted());
        for (p, t) in [0.1, 0.5, 0.9, 0.999].into_iter().zip(quantiles) {
            prop_assert!((pool.response_tail(t) - (1.0 - p)).abs() < 1e-9);
        }
    }
}
