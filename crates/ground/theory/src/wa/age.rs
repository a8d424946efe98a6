//! Victims by age: blocks are collected in the order in which they were closed (FIFO, "LRU cleaning").

use super::{Skew, Spare};
use crate::solve::rising_root;
use crate::wa::uniform::lru;

/// Write amplification of collecting the oldest block: `alpha / (alpha + W(-alpha e^-alpha))`, at any block
/// size.
///
/// P. Desnoyers, Analytic modeling of SSD write performance, SYSTOR 2012, (4); J. Menon, A performance
/// comparison of RAID-5 and log-structured arrays, HPDC 1995, in another form.
pub fn fifo(spare: Spare) -> f64 {
    if spare.over_physical() <= 0.0 { f64::INFINITY } else { lru(spare.alpha()) }
}

/// Write amplification of collecting the oldest block where logical units fall into classes `(share of units,
/// share of writes)`, all written to one frontier.
///
/// A unit is rewritten at rate `x = (writes / units) alpha / A` per turn of the log, so that each of its
/// writes is followed by `1 / (e^x - 1)` relocations: `A = 1 + sum writes / (e^x - 1)` (Desnoyers 2012, (14),
/// for two classes).
///
/// # Panics
/// Unless the shares of units and of writes each sum to one and every class has units.
pub fn fifo_classes(spare: Spare, classes: &[(f64, f64)]) -> f64 {
    let (units, writes) = classes.iter().fold((0.0, 0.0), |sum, c| (sum.0 + c.0, sum.1 + c.1));
    assert!((units - 1.0f64).abs() < 1e-9, "shares of units sum to {units}");
    assert!((writes - 1.0f64).abs() < 1e-9, "shares of writes sum to {writes}");
    assert!(classes.iter().all(|c| c.0 > 0.0 && c.1 >= 0.0), "class without units");
    if spare.over_physical() <= 0.0 {
        return f64::INFINITY;
    }
    let moved = |amplification: f64| -> f64 {
        let written = classes.iter().filter(|c| c.1 > 0.0);
        written.map(|(u, w)| w / (w / u * spare.alpha() / amplification).exp_m1()).sum()
    };
    // Units that are never written again travel round for ever: the limit of w / (e^x - 1) is u A / alpha.
    // Solved for 1 / A, where the sides differ by 1 / alpha - 1 < 0 at infinite A and by moved > 0 at A = 1.
    let unwritten: f64 = classes.iter().filter(|c| c.1 == 0.0).map(|c| c.0).sum();
    let travelling = unwritten / spare.alpha();
    rising_root(f64::MIN_POSITIVE, 1.0, |inverse| (1.0 + moved(1.0 / inverse)) * inverse + travelling - 1.0)
        .recip()
}

impl Skew {
    /// The two classes, for [`fifo_classes`].
    pub fn classes(self) -> [(f64, f64); 2] {
        [(self.pages(), self.writes()), (1.0 - self.pages(), 1.0 - self.writes())]
    }
}

/// Share of closed blocks with 0, 1 … `units` valid units under [`fifo`].
///
/// A block is closed full and its units die independently until it is the oldest, when each is valid with
/// probability `p = 1 - 1/A`. Over that life of `ln 1/p` unit lifetimes it spends `P(Binomial(b, p) <= j) /
/// (j + 1)` at level `j + 1`, because it crosses below that level with that probability.
///
/// # Panics
/// If there is no spare.
pub fn fifo_histogram(units: u32, spare: Spare) -> Vec<f64> {
    let amplification = fifo(spare);
    assert!(amplification.is_finite(), "no steady state without spare");
    let survive = 1.0 - 1.0 / amplification;
    let life = spare.alpha() / amplification;
    let mut shares = vec![0.0; units as usize + 1];
    let (mut at_most, mut rest) = (0.0, 1.0);
    for (j, p) in binomial(units, survive).into_iter().enumerate().take(units as usize) {
        at_most += p;
        shares[j + 1] = at_most / life / (j + 1) as f64;
        rest -= shares[j + 1];
    }
    shares[0] = rest.max(0.0);
    shares
}

/// Probabilities of 0 … `n` successes of probability `p`.
pub(super) fn binomial(n: u32, p: f64) -> Vec<f64> {
    if p <= 0.0 || p >= 1.0 {
        let certain = if p <= 0.0 { 0 } else { n as usize };
        return (0..=n as usize).map(|j| f64::from(u8::from(j == certain))).collect();
    }
    let (mut log_choose, mut all) = (0.0, Vec::with_capacity(n as usize + 1));
    for j in 0..=n {
        all.push((log_choose + f64::from(j) * p.ln() + f64::from(n - j) * (-p).ln_1p()).exp());
        log_choose += (f64::from(n - j) / f64::from(j + 1)).ln();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{fifo, fifo_classes, fifo_histogram};
    use crate::wa::{Skew, Spare};

    #[test]
    fn closed_form_solves_its_fixed_point() {
        for s in [0.01, 0.07, 0.28, 0.5, 2.0] {
            let spare = Spare::of_logical(s);
            let a = fifo(spare);
            assert!((a - 1.0 / (1.0 - (-spare.alpha() / a).exp())).abs() < 1e-9 * a);
            assert!((fifo_classes(spare, &[(1.0, 1.0)]) - a).abs() < 1e-9 * a);
            assert!((fifo_classes(spare, &Skew::new(0.3, 0.3).classes()) - a).abs() < 1e-9 * a);
        }
        assert!((fifo(Spare::of_logical(50.0)) - 1.0).abs() < 1e-12);
        assert_eq!(fifo(Spare::of_logical(0.0)), f64::INFINITY);
    }

    #[test]
    fn a_class_never_written_is_the_limit_of_one_hardly_written() {
        let spare = Spare::of_logical(0.2);
        let never = fifo_classes(spare, &[(0.5, 1.0), (0.5, 0.0)]);
        let hardly = fifo_classes(spare, &[(0.5, 1.0 - 1e-7), (0.5, 1e-7)]);
        assert!((never / hardly - 1.0).abs() < 1e-4, "{never} {hardly}");
    }

    #[test]
    fn histogram_is_a_distribution_with_the_right_mean() {
        for s in [0.07, 0.5, 3.0] {
            for b in [1, 8, 128] {
                let spare = Spare::of_logical(s);
                let shares = fifo_histogram(b, spare);
                let mean: f64 = shares.iter().enumerate().map(|(j, m)| j as f64 * m).sum();
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!((mean / f64::from(b) - spare.utilisation()).abs() < 1e-9);
            }
        }
    }
}
