//! Victims by valid count under uniform writes: greedy, d choices, random; and an exact solution of greedy on a drive
//! of few blocks.
//!
//! In the mean field a share `m(j)` of the closed blocks has `j` valid units. Per collected block the host writes
//! `b - E` units (`E` the victim's mean valid count), each of which invalidates a given valid unit with probability
//! `1/U`, so blocks pass from `j + 1` to `j` at a rate `h (j + 1) m(j + 1)` with `h = (b - E) / (rho b)`. The flow down
//! across a level equals the victims below it: `h (j + 1) m(j + 1) = P(victim has at most j)`. This is the stationary
//! point of the equations (B. Van Houdt, A mean field model for a class of garbage collection algorithms in flash-based
//! solid state drives, SIGMETRICS 2013), summed over levels.

use super::super::rising_root;
use super::{Spare, fifo};
use crate::fit::lambert_w0;
use std::collections::BTreeMap;

/// Returns the write amplification of choosing the block with the fewest valid units, `units` per block.
///
/// Exact in the limit of many blocks; a drive of `N` blocks amplifies more by a share of order `1/N`. This is the
/// meeting point of two regimes; see W. Bux, I. Iliadis, Performance of greedy garbage collection in flash-based
/// solid-state drives, Performance Evaluation 67(11), 2010. Their model of few blocks is [`super::exact_greedy`].
///
/// # Panics
/// If `units` is zero.
pub fn greedy(units: u32, spare: Spare) -> f64 {
    let g = Greedy::solve(units, spare);
    f64::from(units) / (f64::from(units - g.floor) + g.below)
}

/// Returns the share of closed blocks with 0, 1 … `units` valid units under [`greedy`].
///
/// # Panics
/// If `units` is zero.
pub fn greedy_histogram(units: u32, spare: Spare) -> Vec<f64> {
    let g = Greedy::solve(units, spare);
    let mut shares = vec![0.0; units as usize + 1];
    let mut above = 0.0;
    for j in (g.floor + 1..=units).rev() {
        shares[j as usize] = 1.0 / (g.rate * f64::from(j));
        above += shares[j as usize];
    }
    shares[g.floor as usize] = (1.0 - above).max(0.0);
    shares
}

/// Fixed point of greedy collection: no block is below `floor`, because a block that gets there is collected at once.
struct Greedy {
    /// Minimum number of valid units of a non-negligible share of the blocks.
    floor: u32,
    /// Share of the victims that have one unit less than `floor`.
    below: f64,
    /// Rate `h`.
    rate: f64,
}

impl Greedy {
    /// Solves the fixed point. With a floor of `j` the level above holds `1 / (h i)` for `i > j` and the rest is at
    /// `j`. With `s` the sum of `1 / i` over `i > j`, `h` runs from `s` (nothing at `j`) to `s + 1 / j` (nothing
    /// below), and balance gives `h (rho b - j) = b - j - j s`, linear: find the `j` whose range contains the
    /// utilisation.
    fn solve(units: u32, spare: Spare) -> Greedy {
        assert!(units > 0, "a block needs at least one unit");
        let (b, rho) = (f64::from(units), spare.utilisation());
        if rho >= 1.0 {
            return Greedy { floor: units, below: 0.0, rate: 1.0 / b };
        }
        let mut sum = 1.0 / b;
        for floor in (1..units).rev() {
            let j = f64::from(floor);
            // Utilisation if no block was at the next lower level.
            let lowest = (b - j + 1.0) / (b * (sum + 1.0 / j));
            if rho > lowest {
                let rate = (b - j * (1.0 + sum)) / (rho * b - j);
                return Greedy { floor, below: (j * (rate - sum)).clamp(0.0, 1.0), rate };
            }
            sum += 1.0 / j;
        }
        // Victims are always empty.
        Greedy { floor: 0, below: 0.0, rate: 1.0 / rho }
    }
}

/// Returns a closed-form approximation of [`greedy`]: its sums replaced by integrals between half-integers.
///
/// P. Desnoyers, Analytic modeling of SSD write performance, SYSTOR 2012, (12); also ACM Transactions on
/// Storage 10(2), 2014: `A = LRU(k alpha) / k` with `k = 1 + 1 / (2 b)`.
pub fn greedy_approximation(units: u32, spare: Spare) -> f64 {
    let k = 1.0 + 1.0 / (2.0 * f64::from(units));
    lru(k * spare.alpha()) / k
}

/// Returns the limit of [`greedy`] for large blocks, equal to [`fifo`] at any block size.
///
/// Desnoyers 2012, (4), for least-recently-used cleaning; derived for greedy by X. Luojie, B. M. Kurkoski, An improved
/// analytic expression for write amplification in NAND flash, arXiv:1110.4245, 2011.
pub fn greedy_large_blocks(spare: Spare) -> f64 {
    fifo(spare)
}

/// Returns `alpha / (alpha + W(-alpha e^-alpha))`.
pub(super) fn lru(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w0(-alpha * (-alpha).exp()))
}

/// Returns the write amplification of choosing a victim uniformly at random: its valid share is the drive's, hence
/// `T / (T - U)` at any block size (Van Houdt 2013).
pub fn random(spare: Spare) -> f64 {
    1.0 / spare.over_physical()
}

/// Returns the share of closed blocks with 0, 1 … `units` valid units under [`random`].
pub fn random_histogram(units: u32, spare: Spare) -> Vec<f64> {
    d_choices_histogram(units, spare, 1)
}

/// Returns the write amplification of choosing, among `choices` blocks drawn uniformly at random, the one with the
/// fewest valid units (Van Houdt 2013). One choice is [`random`], many approach [`greedy`].
///
/// # Panics
/// If `units` or `choices` is zero.
pub fn d_choices(units: u32, spare: Spare, choices: u32) -> f64 {
    let rho = spare.utilisation();
    if rho >= 1.0 && choices == 1 {
        return f64::INFINITY;
    }
    // A = b / (b - E) and h = (b - E) / (rho b).
    1.0 / (rho * d_choices_rate(units, spare, choices))
}

/// Returns the share of closed blocks with 0, 1 … `units` valid units under [`d_choices`].
///
/// # Panics
/// If `units` or `choices` is zero.
pub fn d_choices_histogram(units: u32, spare: Spare, choices: u32) -> Vec<f64> {
    levels(units, choices, d_choices_rate(units, spare, choices))
}

/// Returns `h`, from the condition that the valid units of all levels sum to the utilisation.
fn d_choices_rate(units: u32, spare: Spare, choices: u32) -> f64 {
    assert!(units > 0, "a block needs at least one unit");
    assert!(choices > 0, "at least one choice is needed");
    let rho = spare.utilisation();
    let valid = |rate: f64| {
        let shares = levels(units, choices, rate);
        shares.iter().enumerate().map(|(j, m)| j as f64 * m).sum::<f64>() / f64::from(units)
    };
    // A victim is at most as full as the average, and at least empty.
    rising_root((1.0 - rho) / rho * (1.0 - 1e-12), 1.0 / rho, |rate| rho - valid(rate))
}

/// Returns the level shares from the fullest down: `h j m(j) = 1 - (G + m(j))^d`, with `G` the share of blocks above
/// level `j`.
fn levels(units: u32, choices: u32, rate: f64) -> Vec<f64> {
    let mut shares = vec![0.0; units as usize + 1];
    let mut above = 0.0;
    for j in (1..=units).rev() {
        let flow = rate * f64::from(j);
        let share = rising_root(0.0, 1.0 - above, |m| flow * m - 1.0 + power(above + m, choices));
        shares[j as usize] = share;
        above += share;
    }
    shares[0] = (1.0 - above).max(0.0);
    shares
}

pub(super) fn power(x: f64, exponent: u32) -> f64 {
    x.powi(exponent.min(i32::MAX as u32) as i32)
}

// Greedy collection of a drive of few blocks, as a Markov chain without approximation.

/// Maximum number of states of a chain.
const MOST_STATES: usize = 20_000;

/// Valid counts of all closed blocks in ascending order.
type State = Vec<u16>;

/// Returns the exact write amplification of greedy collection with `blocks` closed blocks of `units` units and
/// `logical` mapped logical units, under uniform random single-unit overwrites.
///
/// One cycle: the block with the fewest valid units is collected, its valid units open a fresh block, the host fills
/// the rest of it, and it is closed; host writes may invalidate units of the open block too. Ties need no rule, because
/// blocks of equal count are alike. This is the model of W. Bux, I. Iliadis, Performance of greedy garbage collection
/// in flash-based solid-state drives, Performance Evaluation 67(11), 2010, here solved over all joint states rather
/// than in the limit. `None` above 20 000 states: for small drives only (six blocks of eight units have a few hundred).
///
/// # Panics
/// Unless `0 < logical < blocks * units`.
pub fn exact_greedy(blocks: u32, units: u16, logical: u32) -> Option<f64> {
    let physical = blocks * u32::from(units);
    assert!(0 < logical && logical < physical, "{logical} logical of {physical} physical units");
    if partitions(blocks, units, logical) > MOST_STATES as f64 {
        return None;
    }
    let (states, rows) = reachable(blocks, units, logical);
    let stationary = stationary(&rows);
    let victim: f64 = stationary.iter().zip(&states).map(|(p, s)| p * f64::from(s[0])).sum();
    Some(f64::from(units) / (f64::from(units) - victim))
}

/// Returns the number of ways to divide `total` among `parts` equal blocks of at most `most` each: the number of
/// states.
fn partitions(parts: u32, most: u16, total: u32) -> f64 {
    // ways[p][t]: into at most p parts, with part sizes allowed one by one.
    let total = total as usize;
    let mut ways = vec![vec![0.0; total + 1]; parts as usize + 1];
    ways.iter_mut().for_each(|of| of[0] = 1.0);
    for size in 1..=usize::from(most) {
        for p in 1..=parts as usize {
            for t in size..=total {
                ways[p][t] += ways[p - 1][t - size];
            }
        }
    }
    ways[parts as usize][total]
}

/// Targets and probabilities of the transitions out of one state.
type Row = Vec<(usize, f64)>;

/// Returns all states reachable from a drive filled in order, and the sparse rows of the transition matrix.
fn reachable(blocks: u32, units: u16, logical: u32) -> (Vec<State>, Vec<Row>) {
    let mut left = logical;
    let mut first: State = (0..blocks)
        .map(|_| {
            let here = left.min(u32::from(units));
            left -= here;
            here as u16
        })
        .collect();
    first.sort_unstable();
    let mut index = BTreeMap::from([(first.clone(), 0)]);
    let (mut states, mut rows) = (vec![first], Vec::new());
    while rows.len() < states.len() {
        let mut row = Vec::new();
        for (next, p) in cycle(&states[rows.len()], units, logical) {
            let at = *index.entry(next).or_insert_with_key(|next| {
                states.push(next.clone());
                states.len() - 1
            });
            row.push((at, p));
        }
        rows.push(row);
    }
    (states, rows)
}

/// Returns the distribution of the state after one collection and the host writes that fill the fresh block.
fn cycle(state: &State, units: u16, logical: u32) -> BTreeMap<State, f64> {
    let victim = state[0];
    // Closed blocks in ascending order, with the open block's valid count at the end.
    let mut open: State = state[1..].to_vec();
    open.push(victim);
    let mut now = BTreeMap::from([(open, 1.0)]);
    for _ in victim..units {
        let mut next = BTreeMap::new();
        for (counts, p) in &now {
            for (i, &valid) in counts.iter().enumerate().filter(|(_, v)| **v > 0) {
                let mut after = counts.clone();
                after[i] -= 1;
                let open = after.len() - 1;
                after[open] += 1;
                after[..open].sort_unstable();
                *next.entry(after).or_insert(0.0) += p * f64::from(valid) / f64::from(logical);
            }
        }
        now = next;
    }
    let mut closed = BTreeMap::new();
    for (mut counts, p) in now {
        counts.sort_unstable();
        *closed.entry(counts).or_insert(0.0) += p;
    }
    closed
}

/// Returns the left eigenvector of eigenvalue one, by powers of the lazy chain (which cannot be periodic).
fn stationary(rows: &[Row]) -> Vec<f64> {
    let mut now = vec![1.0 / rows.len() as f64; rows.len()];
    for _ in 0..100_000 {
        let mut next: Vec<f64> = now.iter().map(|p| 0.5 * p).collect();
        for (row, p) in rows.iter().zip(&now) {
            for (to, q) in row {
                next[*to] += 0.5 * p * q;
            }
        }
        let change: f64 = next.iter().zip(&now).map(|(a, b)| (a - b).abs()).sum();
        now = next;
        if change < 1e-14 {
            break;
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::{
        d_choices, d_choices_histogram, exact_greedy, greedy, greedy_approximation, greedy_histogram,
        greedy_large_blocks, random, random_histogram,
    };
    use crate::wa::Spare;

    const SPARES: [f64; 6] = [0.01, 0.07, 0.12, 0.28, 0.5, 3.0];

    fn mean(shares: &[f64]) -> f64 {
        shares.iter().enumerate().map(|(j, m)| j as f64 * m).sum()
    }

    #[test]
    fn published_value_of_large_blocks() {
        // Luojie and Kurkoski 2011, abstract: over-provisioning (T - U) / U = 0.3.
        assert!((greedy_large_blocks(Spare::of_logical(0.3)) - 2.36).abs() < 0.005);
    }

    #[test]
    fn histograms_are_distributions_with_the_right_mean() {
        for spare in SPARES.map(Spare::of_logical) {
            for b in [1, 2, 16, 128] {
                for shares in [
                    greedy_histogram(b, spare),
                    random_histogram(b, spare),
                    d_choices_histogram(b, spare, 2),
                    d_choices_histogram(b, spare, 10),
                ] {
                    assert_eq!(shares.len(), b as usize + 1);
                    assert!(shares.iter().all(|m| (0.0..=1.0).contains(m)));
                    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                    let valid = spare.utilisation() * f64::from(b);
                    assert!((mean(&shares) - valid).abs() < 1e-9 * valid, "{} for {valid}", mean(&shares));
                }
            }
        }
    }

    #[test]
    fn one_choice_is_random_and_many_are_greedy() {
        for spare in SPARES.map(Spare::of_logical) {
            for b in [1, 8, 64] {
                assert!((d_choices(b, spare, 1) / random(spare) - 1.0).abs() < 1e-9);
                let (many, greedy) = (d_choices(b, spare, 100_000), greedy(b, spare));
                assert!((many / greedy - 1.0).abs() < 2e-3, "b {b}: {many} for {greedy}");
                assert!(d_choices(b, spare, 2) >= d_choices(b, spare, 10) - 1e-9);
                assert!(d_choices(b, spare, 10) >= many - 1e-9);
            }
        }
    }

    #[test]
    fn limits() {
        for b in [1, 4, 64] {
            assert!((greedy(b, Spare::of_logical(1000.0)) - 1.0).abs() < 1e-12);
            assert!((d_choices(b, Spare::of_logical(1000.0), 5) - 1.0).abs() < 1e-2);
            // Without over-provisioning, greedy still finds a block with one unit to gain.
            assert!((greedy(b, Spare::of_logical(1e-9)) / f64::from(b) - 1.0).abs() < 1e-6);
        }
        for spare in SPARES.map(Spare::of_logical) {
            // A block of one unit is reclaimed exactly when it is invalid.
            assert!((greedy(1, spare) - 1.0).abs() < 1e-12);
            let limit = greedy_large_blocks(spare);
            assert!((greedy(100_000, spare) / limit - 1.0).abs() < 1e-2);
            assert!(greedy(16, spare) <= greedy(64, spare) + 1e-12);
            assert!(greedy(64, spare) <= limit + 1e-12);
        }
    }

    #[test]
    fn approximation_is_close_at_usual_block_sizes() {
        for spare in [0.07, 0.12, 0.28, 0.5].map(Spare::of_logical) {
            for b in [32, 64, 128, 256] {
                let (full, short) = (greedy(b, spare), greedy_approximation(b, spare));
                assert!((short / full - 1.0).abs() < 0.01, "b {b}: {short} for {full}");
            }
        }
    }

    #[test]
    fn two_blocks_of_one_logical_unit() {
        // The one valid unit is in one block; the other is empty and is always the victim.
        assert_eq!(exact_greedy(2, 4, 1), Some(1.0));
    }

    #[test]
    fn one_block_carries_all_data_each_time() {
        // A single closed block of b units with u valid: each collection moves u and frees b - u.
        let wa = exact_greedy(1, 8, 6).unwrap();
        assert!((wa - 8.0 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn two_blocks_by_hand() {
        // b = 2, U = 3: counts at closing are (1, 2) always, since a block holds at most 2. The victim has 1
        // valid unit, and one host write follows: A = 2.
        assert!((exact_greedy(2, 2, 3).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn states_are_counted_before_they_are_built() {
        // 6 = 4+2 = 4+1+1 = 3+3 = 3+2+1 = 2+2+2: five ways into at most three parts of at most four.
        assert_eq!(super::partitions(3, 4, 6), 5.0);
        let (states, _) = super::reachable(4, 6, 15);
        assert!(states.len() as f64 <= super::partitions(4, 6, 15));
    }

    #[test]
    fn too_many_states_are_refused() {
        assert_eq!(exact_greedy(40, 32, 1000), None);
    }
}
