//! Range of a prediction: what the readings leave open, widened by how far fits of other drives were off.

use super::measure::Measure;

/// By figure: requests a second, mean, 99th percentile, and percentiles beyond.
type Factors = [f64; 4];

/// How far a prediction may be off though the readings agree, as a factor up and down. *Chosen*: the larger of two drives' 90th percentiles, each fitted
/// from the other by two points, rounded up; what that leaves out, and where it is thin, says `papers/drives/README.md`, "How far a fit may be off".
struct Factor {
    /// Where a saturated figure of that direction chose a value.
    known: Factors,
    /// Where none did.
    open: Factors,
}

const READS: Factor = Factor { known: [1.15, 1.15, 1.25, 1.3], open: [1.5, 1.5, 1.6, 1.8] };
const WRITES: Factor = Factor { known: [1.4, 1.4, 2.0, 2.5], open: [1.6, 1.6, 12.0, 17.0] };

/// The factor of a figure; `is_known`: a saturated figure of that direction chose a value.
pub fn factor(write: bool, measure: Measure, is_known: bool) -> f64 {
    let Factor { known, open } = if write { WRITES } else { READS };
    let factors = if is_known { known } else { open };
    factors[match measure {
        Measure::Iops => 0,
        Measure::Mean => 1,
        Measure::P99 => 2,
        Measure::P999 | Measure::P99999 => 3,
    }]
}

/// The range of a figure of which these are all readings.
pub(super) fn stated(readings: impl Iterator<Item = f64>, factor: f64) -> Option<(f64, f64)> {
    let widest = readings.fold(None, |range: Option<(f64, f64)>, value| {
        Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    widest.map(|(low, high)| (low / factor, high * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_all_readings_and_what_fits_are_off() {
        assert_eq!(stated([100.0, 80.0, 120.0].into_iter(), 1.25), Some((64.0, 150.0)));
        assert_eq!(stated([100.0].into_iter(), 1.25), Some((80.0, 125.0)));
        assert_eq!(stated(std::iter::empty(), 1.25), None);
    }

    /// Factors of figures without a point exceed those of measured kinds, and factors of percentiles exceed those of means.
    #[test]
    fn factors_rise_with_what_is_open() {
        for write in [false, true] {
            for measure in Measure::ALL {
                assert!(factor(write, measure, true) > 1.0);
                assert!(factor(write, measure, true) <= factor(write, measure, false));
            }
            let late = [Measure::Mean, Measure::P99, Measure::P999].map(|of| factor(write, of, true));
            assert!(late[0] <= late[1] && late[1] <= late[2]);
        }
    }
}
