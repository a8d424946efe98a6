//! The state that a device is brought into before a run: functional, without time.

use config::Diagnostic;
use config::units::Share;
use flash::ftl::Ftl;
use flash::ftl::functional::FunctionalWriter;
use kernel::Rng;
use proto::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

config::policies! {
    /// The state that the device is brought into before the run.
    pub family Precondition = "precondition": choice {
        /// As it comes from the factory: nothing written.
        default none,
        /// Written once, in order.
        sequential(Fill),
        /// Written in order, then at random until write amplification is steady.
        steady(Fill),
    }
}

/// Reads the command line's form: a name, or a name with parameters (`steady:share=90%`).
///
/// # Errors
/// A name or parameter that does not exist.
pub fn parse(text: &str) -> Result<Precondition, Diagnostic> {
    let all: Vec<Precondition> = Precondition::all_defaults();
    all.into_iter().find(|p| p.name() == text).ok_or_else(|| {
        Diagnostic::new(format!("no state `{text}`"))
            .allowed(text, Precondition::FAMILY.entries.iter().map(|e| e.name))
    })
}

/// How much is filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fill {
    /// Share of the logical space, from its beginning.
    pub share: Share,
}

impl Default for Fill {
    fn default() -> Fill {
        Fill { share: Share::percent(100) }
    }
}

/// What preconditioning has done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The state's name.
    pub kind: &'static str,
    /// Share of the logical units that hold data.
    pub mapped_share: f64,
    /// Share of the programmed map units that are invalid.
    pub invalid_share: f64,
}

/// Brings the device into a state.
///
/// # Errors
/// If the state cannot be reached, with the arithmetic.
pub fn apply(state: &Precondition, ftl: &mut Ftl, seed: u64) -> Result<Report, Diagnostic> {
    match state {
        Precondition::none => {}
        Precondition::sequential(fill) => ftl.assume_sequential(fill.share.of(ftl.logical())),
        Precondition::steady(fill) => {
            let units = fill.share.of(ftl.logical());
            ftl.assume_sequential(units);
            let mut rng = Rng::stream(seed, "precondition");
            let mut writer = FunctionalWriter::new(ftl);
            for _ in 0..2 * units {
                let unit = rng.below(units);
                let group = ftl.geo.group_at(ftl.geo.stripe_of_unit(unit));
                writer
                    .write(ftl, group, Lpn(unit))
                    .map_err(|e| Diagnostic::new(format!("no space: {e:?}")))?;
            }
            writer.finish(ftl);
        }
    }
    Ok(Report {
        kind: state.name(),
        mapped_share: ftl.mapped() as f64 / ftl.logical() as f64,
        invalid_share: 0.0,
    })
}
