//! State `zipf`: overwritten with Zipf-distributed popularity.

use super::Draw;

use super::session::{Halt, Session};
use config::Diagnostic;
use config::units::Share;
use requests::synth::{Permutation, Zipf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Windows of write amplification in a drive write.
const WINDOWS: f64 = 5.0;
/// Most drive writes: more are taken for a mistake.
const MOST_WRITES: f64 = 1000.0;

/// Parameters of `zipf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of the logical space, from its beginning.
    pub share: Share,
    /// Skew, above 0 and at most 50: the unit of rank k is written in proportion to k to the power of minus theta.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 50))]
    pub theta: f64,
    /// Drive writes after the fill: units written for each unit of the share, at most 1000.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1_000))]
    pub writes: f64,
}

impl Default for Params {
    fn default() -> Params {
        Params { share: Share::percent(100), theta: 0.99, writes: 2.0 }
    }
}

/// Draws by popularity from a share.
pub(super) fn draw(theta: f64, units: u64, session: &Session<'_>) -> Result<Draw, Diagnostic> {
    if !(theta > 0.0 && theta <= Zipf::MAX_THETA) {
        let what = format!(
            "a Zipf skew of {theta} is out of range: it must be above 0 and at most {}",
            Zipf::MAX_THETA
        );
        return Err(Diagnostic::new(what).help("for no skew, use `uniform`"));
    }
    let scatter = Permutation::new(units, session.key("scatter"));
    Ok(Draw::Zipf(Box::new((Zipf::new(units, theta), scatter))))
}

pub(super) fn apply(params: &Params, session: &mut Session<'_>) -> Result<(), Halt> {
    let units = session.share(params.share)?;
    if !(params.writes > 0.0 && params.writes <= MOST_WRITES) {
        let what = format!(
            "{} drive writes are out of range: they must be above 0 and at most {MOST_WRITES}",
            params.writes
        );
        return Err(Diagnostic::new(what).help("for no overwrites, use `sequential`").into());
    }
    let draw = draw(params.theta, units, session)?;
    session.require_spare()?;
    session.fill_in_order();
    session.work = Some((params.writes * units as f64).round() as u64);
    let mut left = (params.writes * units as f64).round() as u64;
    let window = ((units as f64 / WINDOWS).ceil() as u64).max(1);
    while left > 0 {
        // Only the first window may be shorter than the others, if it is also the last: a rest joins the last window.
        let now = if left < 2 * window { left } else { window };
        session.overwrite_drawn(&draw, now)?;
        left -= now;
    }
    Ok(session.overwrite_into_step(&draw)?)
}
