//! State `steady`: overwritten at random until write amplification is steady.

use super::session::{Halt, Session};
use super::{Draw, zipf};
use config::Diagnostic;
use config::units::Share;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rounds in a drive write.
const ROUNDS: u64 = 5;
/// Least size of a round, as one part in this many of the device.
const SHORTEST_ROUND: u64 = 1000;
/// Number of windows to compare.
const WINDOWS: usize = 5;
/// Drive writes since the first reclaim after which preconditioning ends in any case.
const MOST_WRITES: usize = 20;

config::policies! {
    /// Distribution of overwrites.
    pub family Distribution: choice {
        /// Every unit with equal likelihood.
        default uniform,
        /// Popular units more often.
        zipf(ZipfParams),
    }
}

/// Parameters of `zipf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ZipfParams {
    /// Skew, above 0 and at most 50: the unit of rank k is written in proportion to k to the power of minus theta.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 50))]
    pub theta: f64,
}

impl Default for ZipfParams {
    fn default() -> ZipfParams {
        ZipfParams { theta: 0.99 }
    }
}

/// Parameters of `steady`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of the logical space, from its beginning.
    pub share: Share,
    /// Distribution of overwrites.
    pub distribution: Distribution,
    /// Largest remaining change of write amplification, relative to its mean.
    pub tolerance: Share,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            share: Share::percent(100),
            distribution: Distribution::default(),
            tolerance: Share::percent(1),
        }
    }
}

pub(super) fn apply(params: &Params, session: &mut Session<'_>) -> Result<(), Halt> {
    let units = session.share(params.share)?;
    if params.tolerance == Share::ZERO {
        return Err(Diagnostic::new("tolerance 0%: write amplification is never steady to within 0 %")
            .help("a tolerance of 1% is the default")
            .into());
    }
    let draw = match &params.distribution {
        Distribution::uniform => Draw::Uniform(units),
        Distribution::zipf(by) => zipf::draw(by.theta, units, session)?,
    };
    session.require_spare()?;
    session.fill_in_order();
    // Rounds must be few enough that the checks of a small share cost less than the writes.
    let round = units.div_ceil(ROUNDS).max(session.ftl.geo.slots / SHORTEST_ROUND);
    // Rounds before the first reclaim carry no information.
    while session.ftl.counters.erases == 0 {
        session.overwrite_drawn(&draw, round)?;
    }
    let mut rounds = Vec::new();
    let mut steady = false;
    while !steady && rounds.len() < MOST_WRITES * ROUNDS as usize {
        rounds.push(session.overwrite_drawn(&draw, round)?);
        steady = is_steady(&rounds, params.tolerance.get());
    }
    session.steady = Some(steady);
    session.overwrite_into_step(&draw)?;
    Ok(())
}

/// Returns whether the last windows agree, at any window length.
fn is_steady(rounds: &[f64], tolerance: f64) -> bool {
    let mut length = 1;
    while length * WINDOWS <= rounds.len() {
        let last = &rounds[rounds.len() - length * WINDOWS..];
        let windows: Vec<f64> =
            last.chunks_exact(length).map(|w| w.iter().sum::<f64>() / length as f64).collect();
        if agree(&windows, tolerance) {
            return true;
        }
        length *= 2;
    }
    false
}

/// Criterion of the SNIA Performance Test Specification, with its 20 % and 10 % made `2 tolerance` and `tolerance`: the
/// range of the values, and the rise or fall of their least-squares line from the first to the last.
fn agree(windows: &[f64], tolerance: f64) -> bool {
    let count = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / count;
    let (low, high) = windows.iter().fold((f64::MAX, f64::MIN), |(l, h), w| (l.min(*w), h.max(*w)));
    let middle = (count - 1.0) / 2.0;
    let (products, squares) = windows.iter().enumerate().fold((0.0, 0.0), |(p, s), (at, w)| {
        let x = at as f64 - middle;
        (p + x * (w - mean), s + x * x)
    });
    let rise = products / squares * (count - 1.0);
    high - low <= 2.0 * tolerance * mean && rise.abs() <= tolerance * mean
}

#[cfg(test)]
mod tests {
    use super::{agree, is_steady};

    #[test]
    fn the_rule_of_the_test_specification() {
        // Range 20 % of the mean 10, flat.
        assert!(agree(&[9.0, 11.0, 10.0, 11.0, 9.0], 0.1));
        assert!(!agree(&[8.9, 11.1, 10.0, 11.1, 8.9], 0.1));
        // A straight rise of 10 % from first to last, and a little more.
        assert!(agree(&[9.5, 9.75, 10.0, 10.25, 10.5], 0.1 + 1e-9));
        assert!(!agree(&[9.49, 9.745, 10.0, 10.255, 10.51], 0.1));
    }

    #[test]
    fn noise_is_averaged_over_longer_windows_and_a_trend_is_not() {
        let noise: Vec<f64> = (0..20).map(|n| 3.0 + if n % 2 == 0 { 0.1 } else { -0.1 }).collect();
        assert!(!is_steady(&noise[..9], 0.01));
        assert!(is_steady(&noise, 0.01));
        let trend: Vec<f64> = (0..80).map(|n| 3.0 + 0.01 * f64::from(n)).collect();
        assert!(!is_steady(&trend, 0.01));
    }
}
