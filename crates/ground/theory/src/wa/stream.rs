//! What a block holds that is filled with the valid units of one victim after another.

/// Victims rarer than this do not count.
const NEGLIGIBLE: f64 = 1e-15;

/// Probabilities of 0 … `units` hot units in a window of `units` consecutive units of the endless stream of
/// relocated units, for `victims` of `(hot, cold, probability)`.
///
/// Victims are independent and their units in random order. Seen from the start of a block, the stream is a
/// stationary renewal process: it begins within a victim chosen in proportion to its size, at a uniform place
/// in it; whole victims follow; the last is cut where the block is full.
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
    // By length and hot count: cut off the end of a longer victim, a whole victim, and the units in place so
    // far.
    let (mut cut, mut whole) = (vec![0.0; wide * wide], vec![0.0; wide * wide]);
    for (i, k, p) in victims {
        whole[(i + k) * wide + i] += p / all;
    }
    // A random part of a victim is one unit shorter with one unit, hot or cold, taken away at random.
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
    // Greedy victims have few sizes, and at each of them few hot counts.
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
