//! Coverage of batch-means intervals on sequences whose mean is known.

use stats::BatchMeans;

/// Standard normal numbers: SplitMix64 (G. Steele et al., OOPSLA 2014) and Box-Muller.
struct Normal(u64);

impl Normal {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    fn next(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// Share of `runs` AR(1) sequences x' = mean + phi (x - mean) + noise whose interval holds the mean.
fn coverage(phi: f64, length: u32, confidence: f64, runs: u32) -> f64 {
    const MEAN: f64 = 100.0;
    let mut noise = Normal(7);
    let mut held = 0;
    for _ in 0..runs {
        let mut b = BatchMeans::new();
        // Started in the stationary distribution.
        let mut x = noise.next() / (1.0 - phi * phi).sqrt();
        for _ in 0..length {
            b.push(MEAN + x);
            x = phi * x + noise.next();
        }
        let i = b.interval(confidence).unwrap();
        held += u32::from((i.mean - MEAN).abs() <= i.half_width);
    }
    f64::from(held) / f64::from(runs)
}

/// Four standard errors of a share estimated from `runs`.
fn slack(share: f64, runs: u32) -> f64 {
    4.0 * (share * (1.0 - share) / f64::from(runs)).sqrt()
}

#[test]
fn covers_independent_observations() {
    for confidence in [0.95, 0.99] {
        let c = coverage(0.0, 1000, confidence, 2000);
        assert!((c - confidence).abs() < slack(confidence, 2000), "{c} for {confidence}");
    }
}

#[test]
fn covers_correlated_observations_once_batches_are_long() {
    for confidence in [0.95, 0.99] {
        let c = coverage(0.8, 10_000, confidence, 1000);
        assert!((c - confidence).abs() < slack(confidence, 1000), "{c} for {confidence}");
    }
}

#[test]
fn short_batches_of_correlated_observations_cover_too_little() {
    assert!(coverage(0.95, 100, 0.95, 500) < 0.85);
}

#[test]
fn batches_stay_bounded_and_match_the_plain_formula() {
    let mut b = BatchMeans::new();
    assert!(b.interval(0.95).is_none());
    let xs: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 101)).collect();
    xs.iter().for_each(|x| b.push(*x));
    let i = b.interval(0.95).unwrap();
    // 100 observations: 25 batches of 4.
    assert_eq!((i.batches, i.batch_size), (25, 4));
    let means: Vec<f64> = xs.chunks(4).map(|c| c.iter().sum::<f64>() / 4.0).collect();
    let mean = means.iter().sum::<f64>() / 25.0;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / 24.0;
    // t(0.975, 24) = 2.064 (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    let expected = 2.064 * (variance / 25.0).sqrt();
    assert!((i.mean - mean).abs() < 1e-12);
    assert!((i.half_width - expected).abs() < 3e-4 * expected, "{} for {expected}", i.half_width);
}
