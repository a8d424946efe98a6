//! Written once.

use super::session::Session;
use config::Diagnostic;
use config::units::Share;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

pub(super) fn sequential(fill: &Fill, session: &mut Session<'_>) -> Result<(), Diagnostic> {
    session.share(fill.share)?;
    session.fill_in_order();
    Ok(())
}

pub(super) fn interleaved(fill: &Fill, session: &mut Session<'_>) -> Result<(), Diagnostic> {
    session.share(fill.share)?;
    session.fill_in_turn();
    Ok(())
}
