//! Formulas against small simulations that share only the rules of the model, and rules that hold for every drive and
//! every queue.

mod drive;

use drive::{Drive, Victim};
use proptest::prelude::*;
use theory::{
    fit::kolmogorov_smirnov,
    queue::{Delayed, Md1, Mmk, asymptotic_bounds, mg1_mean_wait, uniform_servers},
    wa::{self, Frontiers, Skew, Spare, Split},
};

// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Uniform in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (-self.unit()).ln_1p()
    }
}

// Write amplification with hot and cold data.

const BLOCKS: usize = 1500;

const UNITS: usize = 32;

fn simulate(spare: f64, skew: (f64, f64), victim: Victim, frontiers: Frontiers) -> (f64, Vec<f64>, Spare) {
    let physical = (BLOCKS * UNITS) as f64;
    let logical = (physical / (1.0 + spare)).round() as usize;
    let hot = (logical as f64 * skew.0).round() as usize;
    let mut drive = Drive::new(BLOCKS, UNITS, logical, hot, victim, frontiers);
    // Cold data must have turned over several times.
    let (amplification, census) = drive.measure(25.0, 10.0, skew.1);
    (amplification, census, Spare::of_units((BLOCKS * UNITS) as u64, logical as u64))
}

fn compare(frontiers: Frontiers, tolerance: f64) {
    for (spare, skew) in [(0.15, (0.2, 0.8)), (0.28, (0.1, 0.9)), (0.28, (0.5, 0.5))] {
        let (measured, census, of) = simulate(spare, skew, Victim::Choices(10), frontiers);
        let model = wa::hot_cold(UNITS as u32, of, Skew::new(skew.0, skew.1), 10, frontiers);
        let error = measured / model.amplification - 1.0;
        let what =
            format!("{frontiers:?} spare {spare} skew {skew:?}: {measured} for {}", model.amplification);
        println!("{what}");
        assert!(error.abs() < tolerance, "{what}");
        let apart: f64 = 0.5 * census.iter().zip(&model.histogram).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(apart < 0.03, "{what}, histograms {apart} apart");
    }
}

#[test]
fn single_frontier() {
    compare(Frontiers::Single, 0.01);
}

#[test]
fn host_and_collector_apart() {
    compare(Frontiers::HostAndGc, 0.02);
}

#[test]
fn hot_and_cold_apart() {
    compare(Frontiers::HotAndCold, 0.02);
}

#[test]
fn oldest_first() {
    for (spare, skew) in [(0.15, (0.2, 0.8)), (0.28, (0.1, 0.9))] {
        let (measured, _, of) = simulate(spare, skew, Victim::Oldest, Frontiers::Single);
        let expected = wa::fifo_classes(of, &Skew::new(skew.0, skew.1).classes());
        assert!((measured / expected - 1.0).abs() < 0.01, "spare {spare}: {measured} for {expected}");
    }
}

#[test]
fn without_skew_the_frontiers_make_no_difference() {
    let spare = Spare::of_logical(0.2);
    let plain = wa::d_choices(16, spare, 5);
    for frontiers in [Frontiers::Single, Frontiers::HostAndGc, Frontiers::HotAndCold] {
        let mixed = wa::hot_cold(16, spare, Skew::new(0.4, 0.4), 5, frontiers);
        assert!((mixed.amplification / plain - 1.0).abs() < 1e-7, "{frontiers:?}: {mixed:?} for {plain}");
        let valid: f64 = mixed.histogram.iter().enumerate().map(|(j, m)| j as f64 * m).sum();
        assert!((valid / 16.0 - spare.utilisation()).abs() < 1e-7);
    }
}

#[test]
fn separation_helps_in_the_known_order() {
    // Van Houdt 2014: one frontier is worst, separating the collector helps, knowing the temperature helps more.
    let (spare, skew) = (Spare::of_logical(0.15), Skew::new(0.2, 0.8));
    let of = |frontiers| wa::hot_cold(32, spare, skew, 10, frontiers).amplification;
    let (single, double, apart) =
        (of(Frontiers::Single), of(Frontiers::HostAndGc), of(Frontiers::HotAndCold));
    assert!(single > double && double > apart, "{single} {double} {apart}");
}

// Queues against sample paths.

/// Returns the waits of `n` customers at `servers` servers, first come first served, after a warm-up.
fn waits(
    rng: &mut Rng,
    rate: f64,
    servers: usize,
    n: usize,
    mut service: impl FnMut(&mut Rng) -> f64,
) -> Vec<f64> {
    let mut free_at = vec![0.0f64; servers];
    let (mut now, mut all) = (0.0, Vec::with_capacity(n));
    for i in 0..n + n / 10 {
        now += rng.exponential(1.0 / rate);
        let first = (0..servers).min_by(|a, b| free_at[*a].total_cmp(&free_at[*b])).unwrap();
        let start = now.max(free_at[first]);
        free_at[first] = start + service(rng);
        if i >= n / 10 {
            all.push(start - now);
        }
    }
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn close(measured: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((measured / expected - 1.0).abs() < tolerance, "{what}: {measured} for {expected}");
}

#[test]
fn many_servers() {
    for (servers, load) in [(1u32, 0.5), (2, 0.8), (6, 0.7)] {
        let queue = Mmk { arrival_rate: load * f64::from(servers), service: 1.0, servers };
        let mut rng = Rng(7);
        let all = waits(&mut rng, queue.arrival_rate, servers as usize, 2_000_000, |r| r.exponential(1.0));
        close(mean(&all), queue.mean_wait(), 0.03, "mean wait");
        let waiting = all.iter().filter(|w| **w > 0.0).count() as f64 / all.len() as f64;
        close(waiting, queue.wait_probability(), 0.02, "probability of waiting");
        let mut responses: Vec<f64> = all.iter().map(|w| w + rng.exponential(1.0)).collect();
        responses.sort_unstable_by(f64::total_cmp);
        for p in [0.5, 0.9, 0.99] {
            let measured = responses[(p * responses.len() as f64) as usize];
            close(measured, queue.response_quantile(p), 0.03, "response quantile");
        }
    }
}

#[test]
fn station_of_six_at_three_loads() {
    // Mean service of six units at each of six servers; quantiles computed independently of this crate.
    for (load, p99) in [(0.3, 27.7), (0.7, 29.7), (0.9, 52.1)] {
        let queue = Mmk { arrival_rate: load, service: 6.0, servers: 6 };
        assert!((queue.response_quantile(0.99) - p99).abs() < 0.06, "load {load}");
    }
}

#[test]
fn constant_service() {
    let queue = Md1 { arrival_rate: 0.8, service: 1.0 };
    let mut all = waits(&mut Rng(3), 0.8, 1, 1_000_000, |_| 1.0);
    close(mean(&all), queue.mean_wait(), 0.03, "mean wait");
    all.sort_unstable_by(f64::total_cmp);
    for p in [0.5, 0.9, 0.99] {
        let measured = all[(p * all.len() as f64) as usize];
        close(measured + 1.0, queue.response_quantile(p), 0.03, "response quantile");
    }
}

#[test]
fn general_service() {
    // Uniform between 0 and 2: variance 1/3.
    let all = waits(&mut Rng(5), 0.7, 1, 1_000_000, |r| 2.0 * r.unit());
    close(mean(&all), mg1_mean_wait(0.7, 1.0, 1.0 / 3.0), 0.03, "mean wait");
}

/// Returns services per unit of time of `customers` that pick servers at random for ever.
fn closed_throughput(servers: usize, customers: usize, mut service: impl FnMut(&mut Rng) -> f64) -> f64 {
    let mut rng = Rng(11);
    let mut free_at = vec![0.0f64; servers];
    let mut done_at = vec![0.0f64; customers];
    let (total, warm_up) = (400_000, 40_000);
    let mut began = 0.0;
    for served in 0..total {
        // Customers choose again in order of completion, so each server's queue is first come first served.
        let next = (0..customers).min_by(|a, b| done_at[*a].total_cmp(&done_at[*b])).unwrap();
        if served == warm_up {
            began = done_at[next];
        }
        let server = rng.below(servers);
        let end = free_at[server].max(done_at[next]) + service(&mut rng);
        free_at[server] = end;
        done_at[next] = end;
    }
    let ended = done_at.iter().copied().fold(f64::INFINITY, f64::min);
    (total - warm_up) as f64 / (ended - began)
}

#[test]
fn customers_at_random_servers() {
    for (servers, customers) in [(8usize, 4usize), (8, 16), (32, 32)] {
        let exponential = closed_throughput(servers, customers, |r| r.exponential(1.0));
        let exact = uniform_servers(servers as u32, 1.0, customers as u32);
        close(exponential, exact, 0.01, "exponential service");
        let constant = closed_throughput(servers, customers, |_| 1.0);
        let demands = vec![1.0 / servers as f64; servers];
        let bounds = asymptotic_bounds(&demands, 0.0, customers as u32);
        assert!(constant > exact && constant <= bounds.throughput_high, "{exact} < {constant}");
        assert!(constant >= bounds.throughput_low);
    }
}

#[test]
fn exponential_numbers_pass_their_own_test_and_fail_another() {
    let mut rng = Rng(1);
    let mut sample: Vec<f64> = (0..20_000).map(|_| rng.exponential(2.0)).collect();
    assert!(kolmogorov_smirnov(&mut sample, |x| -(-x / 2.0).exp_m1()).p_value > 0.001);
    assert!(kolmogorov_smirnov(&mut sample, |x| -(-x / 2.1).exp_m1()).p_value < 0.001);
}

/// Returns the thread that is ready for the station first.
fn earliest(ready: &[(f64, f64)]) -> usize {
    (0..ready.len()).min_by(|a, b| ready[*a].0.total_cmp(&ready[*b].0)).unwrap()
}

#[test]
fn a_core_whose_threads_wait_for_flash() {
    let network = Delayed { service: 20.0, delay: 50.0 };
    for threads in [1, 2, 4, 8] {
        let mut rng = Rng(5);
        let mut ready = vec![(0.0, 0.0); threads as usize];
        let (mut free, periods) = (0.0f64, 400_000);
        for _ in 0..periods {
            let first = earliest(&ready);
            free = free.max(ready[first].0) + rng.exponential(20.0);
            ready[first].0 = free + 50.0;
        }
        close(f64::from(periods) / free, network.closed(threads).throughput, 0.01, "periods a unit of time");
    }
}

#[test]
fn a_core_whose_jobs_come_at_random_and_wait_for_flash() {
    // Three periods of 20 on average, with a geometric number of periods, at a load of 72 %.
    let (periods, rate) = (3.0, 0.012);
    let network = Delayed { service: 20.0, delay: 50.0 };
    let mut rng = Rng(9);
    let (mut ready, mut came, mut free) = (Vec::new(), rng.exponential(1.0 / rate), 0.0f64);
    let mut responses = Vec::new();
    while responses.len() < 400_000 {
        let first = (!ready.is_empty()).then(|| earliest(&ready));
        if first.is_none_or(|first| came <= ready[first].0) {
            ready.push((came, came));
            came += rng.exponential(1.0 / rate);
            continue;
        }
        let (at, since) = ready.swap_remove(first.unwrap());
        free = free.max(at) + rng.exponential(20.0);
        if rng.unit() < 1.0 / periods {
            responses.push(free - since);
        } else {
            ready.push((free + 50.0, since));
        }
    }
    close(mean(&responses), network.open_response(rate, periods), 0.02, "mean response");
}

// Rules that hold for every drive and every queue.

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

    /// Valid counts of steady states reproduce their amplification: a victim is a block like the others.
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
        // Pooled servers wait less than one server of the pool's speed waits and serves together.
        let pool = Mmk { arrival_rate: load * f64::from(servers), service: 1.0, servers };
        prop_assert!(pool.mean_wait() <= exponential * (1.0 + 1e-9));
        let quantiles = [0.1, 0.5, 0.9, 0.999].map(|p| pool.response_quantile(p));
        prop_assert!(quantiles.is_sorted());
        for (p, t) in [0.1, 0.5, 0.9, 0.999].into_iter().zip(quantiles) {
            prop_assert!((pool.response_tail(t) - (1.0 - p)).abs() < 1e-9);
        }
    }
}
