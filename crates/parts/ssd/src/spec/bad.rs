//! Bad blocks as a user writes them.

use super::SpecError;
use config::units::Share;
use engine::Rng;
use ftl::page_map::bad::{Factory, Lives};
use nand::geometry::Geometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Blocks that do not work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BadBlocksSpec {
    /// Probability that a block is bad from the factory; each plane draws its own. Data sheets guarantee 98 % good blocks.
    pub factory: Share,
    /// Blocks that fail with wear; left out, none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grown: Option<GrownSpec>,
}

/// Lives of blocks: a Weibull distribution over erases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrownSpec {
    /// Erases after which 63.2 % of the blocks have failed.
    #[schemars(range(min = 1))]
    pub endurance: u32,
    /// How much alike the lives are: 1 is failure at a constant rate, larger is later and steeper.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub shape: f64,
}

impl BadBlocksSpec {
    pub(crate) fn factory(&self, geo: &Geometry, seed: u64, device: &str) -> Factory {
        Factory::draw(geo, self.factory.get(), seed, device)
    }

    pub(crate) fn lives(&self, seed: u64, device: &str) -> Result<Option<Lives>, SpecError> {
        let Some(grown) = &self.grown else { return Ok(None) };
        SpecError::positive("bad_blocks.grown.endurance", grown.endurance.into())?;
        if !(grown.shape.is_finite() && grown.shape > 0.0) {
            let what = format!("a Weibull shape of {} is not a positive number", grown.shape);
            return Err(SpecError::new("bad_blocks.grown.shape", what));
        }
        let seed = Rng::stream(seed, &format!("{device}/bad_blocks.grown")).next_u64();
        Ok(Some(Lives { endurance: f64::from(grown.endurance), shape: grown.shape, seed }))
    }
}
