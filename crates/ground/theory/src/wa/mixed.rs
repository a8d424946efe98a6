//! Hot and cold data in one drive whose blocks compete for garbage collection.
//!
//! The mean field of [`super::uniform`] with two kinds of valid units: a share `m(i, k)` of the closed blocks
//! has `i` hot and `k` cold ones. Victims are chosen by `i + k`; what a fresh block holds depends on which
//! writes share a frontier (B. Van Houdt, Performance of garbage collection algorithms for flash-based solid
//! state drives with hot/cold data, Performance Evaluation 70(10), 2013; On the necessity of hot and cold
//! data identification to reduce the write amplification in flash-based SSDs, Performance Evaluation 82,
//! 2014).

use super::super::rising_root;
use super::uniform::power;
use super::{Skew, Spare, binomial};

/// Which writes share an open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontiers {
    /// Everything: a victim's valid units open a block that host writes fill.
    Single,
    /// Host writes in one block, relocated units in another (Van Houdt's double write frontier).
    HostAndGc,
    /// Hot units in one block, cold units in another, host writes and relocations alike.
    HotAndCold,
}

/// Steady state of a drive with hot and cold data.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// Units programmed per unit that the host writes.
    pub amplification: f64,
    /// Share of closed blocks with 0, 1 … valid units.
    pub histogram: Vec<f64>,
    /// Mean valid hot units of a victim.
    pub hot_moved: f64,
    /// Mean valid cold units of a victim.
    pub cold_moved: f64,
}

/// Returns the steady state of d-choices garbage collection of blocks of `units` units with hot and cold data.
///
/// One choice is random victim selection, and 100 are greedy to within about a percent. Takes milliseconds at 32 units
/// per block and up to seconds at 128.
///
/// # Panics
/// If `units` or `choices` is zero, or the over-provisioning is zero.
pub fn hot_cold(units: u32, spare: Spare, skew: Skew, choices: u32, frontiers: Frontiers) -> Mixed {
    assert!(units > 0, "a block needs at least one unit");
    assert!(choices > 0, "at least one choice is needed");
    assert!(spare.over_physical() > 0.0, "no steady state without over-provisioning");
    let mut field = Field::new(units, spare, skew, choices, frontiers);
    // Each sweep is a generation of blocks; the slowest mode is the drift of cold units, whose memory fades
    // within some hundred generations even at strong skew.
    for _ in 0..100_000 {
        if field.sweep() < 1e-11 {
            break;
        }
    }
    field.result()
}

struct Field {
    units: usize,
    hot_writes: f64,
    choices: u32,
    frontiers: Frontiers,
    /// Probability that one host write invalidates a given hot or cold unit, times the number of blocks.
    hot_rate: f64,
    cold_rate: f64,
    /// Host writes per collected block.
    written: f64,
    /// Share of fresh blocks with 0, 1 … hot units.
    fresh: Vec<f64>,
    /// Flow into `(i, k)`, at `i * (units + 1) + k`.
    inflow: Vec<f64>,
    levels: Vec<f64>,
    /// Hot and cold units of a victim, and its probability.
    victims: Vec<(usize, usize, f64)>,
    /// Mean hot and cold units of a victim.
    moved: (f64, f64),
}

impl Field {
    fn new(units: u32, spare: Spare, skew: Skew, choices: u32, frontiers: Frontiers) -> Field {
        let b = f64::from(units);
        let per_block = spare.utilisation() * b;
        let mut fresh = binomial(units, skew.writes());
        if frontiers == Frontiers::HotAndCold {
            fresh.fill(0.0);
            fresh[0] = 1.0 - skew.pages();
            fresh[units as usize] = skew.pages();
        }
        Field {
            units: units as usize,
            hot_writes: skew.writes(),
            choices,
            frontiers,
            hot_rate: skew.writes() / (skew.pages() * per_block),
            cold_rate: (1.0 - skew.writes()) / ((1.0 - skew.pages()) * per_block),
            written: b,
            fresh,
            inflow: vec![0.0; (units as usize + 1) * (units as usize + 1)],
            levels: vec![0.0; units as usize + 1],
            victims: Vec::new(),
            moved: (0.0, 0.0),
        }
    }

    /// Solves all levels from the fullest down for the current fresh blocks and host writes, then renews both from the
    /// victims; returns how far they moved.
    fn sweep(&mut self) -> f64 {
        let b = self.units;
        self.inflow.fill(0.0);
        for (i, p) in self.fresh.iter().enumerate() {
            self.inflow[i * (b + 1) + b - i] = *p;
        }
        self.victims.clear();
        let mut above = 0.0;
        for level in (0..=b).rev() {
            above += self.solve_level(level, above);
        }
        let sum = |units: fn(&(usize, usize, f64)) -> usize| -> f64 {
            self.victims.iter().map(|v| units(v) as f64 * v.2).sum()
        };
        let (hot, cold) = (sum(|v| v.0), sum(|v| v.1));
        self.moved = (hot, cold);
        let refilled = self.refill();
        let written = b as f64 - hot - cold;
        let change: f64 = self.fresh.iter().zip(&refilled).map(|(a, c)| (a - c).abs()).sum();
        let change = change + (written - self.written).abs() / b as f64;
        self.fresh = refilled;
        self.written = written;
        change
    }

    /// Finds the rate `s` at which blocks of a level are collected, from `s M(s) = (G + M)^d - G^d` with `M` the
    /// level's share, and passes on the blocks not collected. Returns `M`.
    fn solve_level(&mut self, level: usize, above: f64) -> f64 {
        let b = self.units;
        let occupied: Vec<(usize, f64, f64)> = (0..=level)
            .map(|i| (i, self.inflow[i * (b + 1) + level - i]))
            .filter(|(_, flow)| *flow > 0.0)
            .map(|(i, flow)| (i, flow, self.decay(i, level - i)))
            .collect();
        if occupied.is_empty() {
            self.levels[level] = 0.0;
            return 0.0;
        }
        let share = |s: f64| occupied.iter().map(|(_, flow, decay)| flow / (decay + s)).sum::<f64>();
        let collected = rising_root(f64::MIN_POSITIVE, f64::from(self.choices), |s| {
            let m = share(s);
            s * m - (power(above + m, self.choices) - power(above, self.choices))
        });
        for (i, flow, decay) in &occupied {
            let (i, k) = (*i, level - i);
            let here = flow / (decay + collected);
            self.victims.push((i, k, collected * here));
            if i > 0 {
                self.inflow[(i - 1) * (b + 1) + k] += self.written * self.hot_rate * i as f64 * here;
            }
            if k > 0 {
                self.inflow[i * (b + 1) + k - 1] += self.written * self.cold_rate * k as f64 * here;
            }
        }
        self.levels[level] = share(collected);
        self.levels[level]
    }

    fn decay(&self, hot: usize, cold: usize) -> f64 {
        self.written * (self.hot_rate * hot as f64 + self.cold_rate * cold as f64)
    }

    /// Returns the content of fresh blocks after these victims.
    fn refill(&self) -> Vec<f64> {
        let (b, (hot, cold)) = (self.units as f64, self.moved);
        let mut fresh = vec![0.0; self.units + 1];
        match self.frontiers {
            Frontiers::Single => {
                // The host fills the rest of the block that a victim's units open.
                let fills: Vec<_> = (0..=self.units as u32).map(|n| binomial(n, self.hot_writes)).collect();
                for (i, k, p) in &self.victims {
                    for (extra, chance) in fills[self.units - i - k].iter().enumerate() {
                        fresh[i + extra] += p * chance;
                    }
                }
            }
            Frontiers::HostAndGc => {
                let relocated = (hot + cold) / b;
                let by_host = binomial(self.units as u32, self.hot_writes);
                let by_gc = window(self.units, &self.victims);
                for ((to, h), g) in fresh.iter_mut().zip(by_host).zip(by_gc) {
                    *to = (1.0 - relocated) * h + relocated * g;
                }
            }
            Frontiers::HotAndCold => {
                let hot_blocks = (hot + self.hot_writes * (b - hot - cold)) / b;
                fresh[0] = 1.0 - hot_blocks;
                fresh[self.units] = hot_blocks;
            }
        }
        fresh
    }

    fn result(self) -> Mixed {
        let (hot_moved, cold_moved) = self.moved;
        let b = self.units as f64;
        Mixed {
            amplification: b / (b - hot_moved - cold_moved),
            histogram: self.levels,
            hot_moved,
            cold_moved,
        }
    }
}

// Content of a block that is filled with the valid units of one victim after another.

/// Probability below which a victim is ignored.
const NEGLIGIBLE: f64 = 1e-15;

/// Returns the probabilities of 0 … `units` hot units in a window of `units` consecutive units of the endless stream of
/// relocated units, for `victims` of `(hot, cold, probability)`.
///
/// Victims are independent and their units in random order. Seen from the start of a block, the stream is a stationary
/// renewal process: it begins within a victim chosen in proportion to its size, at a uniform position in it; whole
/// victims follow; the last is cut where the block is full.
pub(super) fn window(units: usize, victims: &[(usize, usize, f64)]) -> Vec<f64> {
    let victims: Vec<_> = victims.iter().filter(|v| v.0 + v.1 > 0 && v.2 > NEGLIGIBLE).collect();
    let mut hot = vec![0.0; units + 1];
    let all: f64 = victims.iter().map(|v| v.2).sum();
    if all <= 0.0 {
        hot[0] = 1.0;
        return hot;
    }
    let mean: f64 = victims.iter().map(|v| (v.0 + v.1) as f64 * v.2).sum::<f64>() / all;
    let wide = units + 1;
    // By length and hot count: the cut-off end of a longer victim, a whole victim, and the units placed so far.
    let (mut cut, mut whole) = (vec![0.0; wide * wide], vec![0.0; wide * wide]);
    for (i, k, p) in victims {
        whole[(i + k) * wide + i] += p / all;
    }
    // A random part of a victim is one unit shorter, with one hot or cold unit removed at random.
    for size in (2..wide).rev() {
        for i in 0..=size {
            let p = cut[size * wide + i] + whole[size * wide + i];
            if i > 0 {
                cut[(size - 1) * wide + i - 1] += p * i as f64 / size as f64;
            }
            if i < size {
                cut[(size - 1) * wide + i] += p * (size - i) as f64 / size as f64;
            }
        }
    }
    // Greedy victims have few sizes, and few hot counts at each of them.
    let extent = |row: &[f64]| {
        let first = row.iter().position(|p| *p > NEGLIGIBLE)?;
        Some((first, row.iter().rposition(|p| *p > NEGLIGIBLE)?))
    };
    let sizes: Vec<_> = (1..wide).filter_map(|n| Some((n, extent(&whole[n * wide..][..wide])?))).collect();
    let mut placed: Vec<f64> = cut.iter().zip(&whole).map(|(c, w)| (c + w) / mean).collect();
    for length in 1..units {
        for before in 0..=length {
            let p = placed[length * wide + before];
            if p <= NEGLIGIBLE {
                continue;
            }
            let rest = units - length;
            for x in 0..=rest {
                hot[before + x] += p * cut[rest * wide + x];
            }
            for (size, (first, last)) in sizes.iter().take_while(|s| s.0 <= rest) {
                for x in *first..=*last {
                    placed[(length + size) * wide + before + x] += p * whole[size * wide + x];
                }
            }
        }
    }
    for (to, p) in hot.iter_mut().zip(&placed[units * wide..]) {
        *to += p;
    }
    hot
}

#[cfg(test)]
mod tests {
    use super::window;

    fn mean(hot: &[f64]) -> f64 {
        hot.iter().enumerate().map(|(i, p)| i as f64 * p).sum()
    }

    #[test]
    fn single_units_are_binomial() {
        let hot = window(3, &[(1, 0, 0.25), (0, 1, 0.75)]);
        for (got, expected) in hot.iter().zip([27.0, 27.0, 9.0, 1.0]) {
            assert!((got - expected / 64.0).abs() < 1e-15);
        }
    }

    #[test]
    fn whole_blocks_cut_at_random_places() {
        // Victims of two units, both hot or both cold, blocks of two: aligned half of the time (2 or 0 hot
        // units with probability 1/2 each), otherwise two independent halves.
        let hot = window(2, &[(2, 0, 0.5), (0, 2, 0.5)]);
        for (got, expected) in hot.iter().zip([0.375, 0.25, 0.375]) {
            assert!((got - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn share_of_hot_units_is_kept() {
        let victims = [(3, 4, 0.3), (0, 2, 0.2), (5, 0, 0.1), (0, 0, 0.1), (1, 7, 0.3)];
        let (h, c) = victims.iter().fold((0.0, 0.0), |s, v| (s.0 + v.0 as f64 * v.2, s.1 + v.1 as f64 * v.2));
        let hot = window(8, &victims);
        assert!((hot.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((mean(&hot) / 8.0 - h / (h + c)).abs() < 1e-12);
    }
}
