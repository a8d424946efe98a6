//! Times that are not always the same: firmware takes other paths, waits for its memory, or has something of its own to do.
//!
//! A time is drawn anew each time, from a gamma distribution about its mean: never below zero, close to a bell for small
//! spreads, mostly short and rarely very long for large ones. Sums of such times are gamma distributed too, so that a queue in
//! front of one core has a closed form.

use engine::{Rng, Time};

/// Draws about a mean.
#[derive(Clone, Debug)]
pub struct Varied {
    gamma: Gamma,
    rng: Rng,
}

impl Varied {
    /// Times whose standard deviation is `spread` times their mean; none, if they are always the same.
    pub fn new(spread: f64, rng: Rng) -> Option<Varied> {
        (spread > 0.0).then(|| Varied { gamma: Gamma::of_mean_one(spread), rng })
    }

    /// A time of that mean.
    pub(super) fn of(&mut self, mean: Time) -> Time {
        Time::from_ps((mean.ps() as f64 * self.gamma.draw(&mut self.rng)) as u64)
    }

    pub(super) fn state(&self) -> &Rng {
        &self.rng
    }

    pub(super) fn restore(&mut self, rng: Rng) {
        self.rng = rng;
    }
}

/// A gamma distribution, as Marsaglia and Tsang draw it ("A simple method for generating gamma variables", ACM TOMS 26, 2000).
/// Logarithms and powers are those of `libm`: the platform's own differ in their last bit.
#[derive(Clone, Copy, Debug)]
struct Gamma {
    /// Their `d`, of the shape or, where that is below one, of the shape and one.
    d: f64,
    /// Their `c`.
    c: f64,
    /// One over the shape, where that is below one.
    boost: Option<f64>,
    scale: f64,
}

impl Gamma {
    fn of_mean_one(spread: f64) -> Gamma {
        let scale = spread * spread;
        let shape = 1.0 / scale;
        let (shape, boost) = if shape < 1.0 { (shape + 1.0, Some(scale)) } else { (shape, None) };
        let d = shape - 1.0 / 3.0;
        Gamma { d, c: 1.0 / libm::sqrt(9.0 * d), boost, scale }
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        let boost = self.boost.map_or(1.0, |power| libm::pow(open_unit(rng), power));
        loop {
            let x = normal(rng);
            let root = 1.0 + self.c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            if libm::log(open_unit(rng)) < 0.5 * x * x + self.d * (1.0 - v + libm::log(v)) {
                return self.scale * self.d * v * boost;
            }
        }
    }
}

/// Above zero, below or at one.
fn open_unit(rng: &mut Rng) -> f64 {
    1.0 - rng.unit()
}

/// A standard normal number (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    libm::sqrt(-2.0 * libm::log(open_unit(rng))) * libm::cos(std::f64::consts::TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and percentiles of sums that have the shapes 1, 4 and 16 together, of draws of larger shapes and of much smaller ones, against
    /// those of the gamma distribution.
    #[test]
    fn sums_have_the_percentiles_of_the_sum() {
        // Quantiles 0.5 and 0.99 of the gamma distributions of shape 1, 4 and 16, from chi-squared tables: half of those of 2, 8
        // and 32 degrees of freedom.
        let tables = [
            (1.0, 1.386 / 2.0, 9.210 / 2.0),
            (4.0, 7.344 / 2.0, 20.090 / 2.0),
            (16.0, 31.336 / 2.0, 53.486 / 2.0),
        ];
        for (spread, together) in
            [(0.5, 1), (0.25, 1), (1.0, 1), (0.5, 4), (2.0, 4), (2.0, 64), (5.0, 25), (5.0, 400)]
        {
            let shape = f64::from(together) / (spread * spread);
            let (_, median, tail) =
                tables.into_iter().find(|(of, ..)| (of - shape).abs() < 1e-9).expect("it is in the tables");
            let mut varied = Varied::new(spread, Rng::stream(3, "test")).expect("it is spread");
            let mean = Time::from_us(1);
            let mut sums: Vec<f64> = (0..20_000)
                .map(|_| {
                    (0..together).map(|_| varied.of(mean).ps() as f64 / 1e6).sum::<f64>() / (spread * spread)
                })
                .collect();
            sums.sort_by(f64::total_cmp);
            let average = sums.iter().sum::<f64>() / sums.len() as f64;
            // Four standard errors of a mean of 20,000; those of the quantiles follow from the density there.
            assert!(
                (average - shape).abs() < 4.0 * shape.sqrt() / 141.0,
                "{spread} {together}: {average} {shape}"
            );
            let error = |sample: f64, exact: f64| (sample / exact - 1.0).abs();
            assert!(error(sums[10_000], median) < 0.04, "{spread} {together}: {} {median}", sums[10_000]);
            assert!(error(sums[19_800], tail) < 0.04, "{spread} {together}: {} {tail}", sums[19_800]);
        }
    }

    #[test]
    fn no_spread_is_no_draw() {
        assert!(Varied::new(0.0, Rng::stream(1, "test")).is_none());
    }
}
