//! Rules on splitting groups and distributing samples.

use crate::plan::Moments;
use crate::prediction::Bound;
use config::{Diagnostic, Place};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Number of samples below which Allegro takes a group as homogeneous, however large it is: `n_th` of its published
/// script (the trace generator of MacSim) and of the settings of its successor (STEM, MICRO 2025).
const THRESHOLD: f64 = 50.0;

/// Number of samples that a split cannot reduce: its parts need one each.
const LEAST: u64 = 2;

/// Rule that decides when to try a split, and what must satisfy the bound.
///
/// For a group of N kernels with mean mu and variance sigma^2, `q = (z sigma / (e mu))^2` samples keep an infinite
/// population within e at the quantile z, and `m = N q / (N - 1 + q)` the group itself, drawn without replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Allegro: a group of `q >= 50` is split; every group satisfies the bound on its own with `m` samples. The
    /// remaining spread of a group is taken as chance, so the bound also holds for durations that differ from those of
    /// the profile, as in a simulation, if their spread is the same.
    #[default]
    Allegro,
    /// Like `allegro`, but a split is tried wherever it may save samples. It takes fewer kernels, and the spread within
    /// groups is small; but the bound relies on kernels that were long in the profile being long in the simulation.
    Fewest,
    /// Groups of `allegro`; the total keeps the bound with the fewest samples, `m` in proportion to `N sigma` (J.
    /// Neyman, On the Two Different Aspects of the Representative Method, Journal of the Royal Statistical Society 97,
    /// 1934). A small group alone may be far off.
    Neyman,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 3] = [Rule::Allegro, Rule::Fewest, Rule::Neyman];

    /// Name of the rule.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Allegro => "allegro",
            Rule::Fewest => "fewest",
            Rule::Neyman => "neyman",
        }
    }

    /// Returns whether to try a split of a group that needs `samples`, and `endless` if it were infinite.
    pub(crate) fn tries(self, endless: f64, samples: u64) -> bool {
        let is_tried = match self {
            Rule::Allegro | Rule::Neyman => endless >= THRESHOLD,
            Rule::Fewest => true,
        };
        is_tried && samples > LEAST
    }

    /// Number of samples of each group.
    pub(crate) fn samples(self, bound: &Bound, groups: &[Moments], total_ns: f64) -> Vec<u64> {
        match self {
            Rule::Allegro | Rule::Fewest => groups.iter().map(|of| bound.samples(of, total_ns)).collect(),
            Rule::Neyman => neyman(bound, groups, total_ns),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Rule {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Rule, Diagnostic> {
        Rule::ALL.into_iter().find(|rule| rule.name() == text).ok_or_else(|| {
            Diagnostic::new(format!("unknown rule `{text}`"))
                .at(Place { source: "--rule".to_owned(), ..Place::default() })
                .allowed(text, Rule::ALL.map(Rule::name))
        })
    }
}

/// Minimises the sum of `m` under `sum N^2 S^2 (1/m - 1/N) <= V`, `V = (e T / z)^2`, `S^2 = sigma^2 N / (N - 1)`: `m =
/// N S sum(N S) / (V + sum(N S^2))`. A group that would need more samples than it has is taken whole, and the others
/// are solved again (W. G. Cochran, Sampling Techniques, 1977, chapter 5).
fn neyman(bound: &Bound, groups: &[Moments], total_ns: f64) -> Vec<u64> {
    let allowed = bound.error() * total_ns / bound.z();
    let spread = |of: &Moments| if of.count > 1 { (of.squares / (of.count - 1) as f64).sqrt() } else { 0.0 };
    let weight = |of: &Moments| of.count as f64 * spread(of);
    let mut whole = vec![false; groups.len()];
    let factor = loop {
        let open = || groups.iter().zip(&whole).filter(|(_, whole)| !**whole).map(|(of, _)| of);
        let sum: f64 = open().map(weight).sum();
        let finite: f64 = open().map(|of| weight(of) * spread(of)).sum();
        let factor = if sum > 0.0 { sum / (allowed * allowed + finite) } else { 0.0 };
        let mut again = false;
        for (of, whole) in groups.iter().zip(&mut whole) {
            if !*whole && weight(of) * factor >= of.count as f64 {
                (*whole, again) = (true, true);
            }
        }
        if !again {
            break factor;
        }
    };
    let share = |(of, whole): (&Moments, &bool)| {
        let samples = if *whole { of.count } else { (weight(of) * factor * (1.0 - 1e-12)).ceil() as u64 };
        bound.at_least(of, total_ns, samples)
    };
    groups.iter().zip(&whole).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(count: u64, mean: f64, sigma: f64) -> Moments {
        let squares = sigma * sigma * count as f64;
        Moments { count, mean, squares, min: (mean - 2.0 * sigma).max(0.0), max: mean + 2.0 * sigma }
    }

    /// z times the standard deviation of the predicted total, in parts of the total.
    fn half_width(groups: &[Moments], samples: &[u64], total: f64) -> f64 {
        let of = |(g, m): (&Moments, &u64)| {
            let (n, m) = (g.count as f64, *m as f64);
            n * n * g.variance() / m * (n - m) / (n - 1.0).max(1.0)
        };
        1.959_964 * groups.iter().zip(samples).map(of).sum::<f64>().sqrt() / total
    }

    #[test]
    fn both_keep_the_total_and_neyman_with_fewer() {
        let groups: Vec<Moments> = (1..=200)
            .map(|i| group(200 * i, 10.0 * f64::from(i as u32 % 17 + 1), 0.4 * f64::from(i as u32 % 23 + 1)))
            .collect();
        let total: f64 = groups.iter().map(Moments::sum).sum();
        for error in [0.01, 0.001] {
            let bound = Bound::new(error, 0.95).unwrap();
            let [allegro, neyman] =
                [Rule::Allegro, Rule::Neyman].map(|rule| rule.samples(&bound, &groups, total));
            assert!(half_width(&groups, &allegro, total) <= error);
            let kept = half_width(&groups, &neyman, total);
            assert!(kept <= error * (1.0 + 1e-9), "{kept}");
            assert!(neyman.iter().sum::<u64>() < allegro.iter().sum::<u64>());
        }
    }

    /// Cochran, chapter 5: without a finite population the optimum is (sum W S)^2 / (V / N^2) for two strata, by hand:
    /// W = 0.5 each, S = 10 and 30, V/N^2 = (0.01 x 100 / 1.959964)^2 = 0.260322: n = 400 / 0.260322 = 1536.6 in the
    /// ratio 1 : 3.
    #[test]
    fn two_strata_by_hand() {
        let groups = [group(1 << 30, 100.0, 10.0), group(1 << 30, 100.0, 30.0)];
        let bound = Bound::new(0.01, 0.95).unwrap();
        let total = groups.iter().map(Moments::sum).sum();
        assert_eq!(neyman(&bound, &groups, total), [385, 1153]);
    }

    #[test]
    fn a_group_that_is_all_spread_is_taken_whole() {
        let groups = [group(40, 1e6, 1e6), group(10_000, 1.0, 0.1)];
        let bound = Bound::new(0.001, 0.95).unwrap();
        let total = groups.iter().map(Moments::sum).sum();
        assert_eq!(neyman(&bound, &groups, total), [40, 2]);
    }

    #[test]
    fn names_read_back() {
        for rule in Rule::ALL {
            assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
        }
        let fault = "neymann".parse::<Rule>().unwrap_err();
        assert_eq!(fault.nearest.as_deref(), Some("neyman"));
    }
}
