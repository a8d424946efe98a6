//! Networks on a chip as a user writes them.

use super::topology::Topology;
use config::SpecError;
use config::units::{Bytes, Frequency};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network between the multiprocessors, the banks of the shared cache and the controllers in front of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NocSpec {
    /// Which links packets take.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "crossbar"))]
    pub topology: Topology,
    /// Clock of the links.
    pub clock: Frequency,
    /// Bytes that a link carries in a cycle.
    #[schemars(extend("x-minimum" = "1B"))]
    pub width: Bytes,
    /// Bytes of a packet besides its data: address, command, routing.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub header: Bytes,
    /// Cycles from link to link: through a crossbar, or from one stop of a ring to the next.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

/// Whether a spec need not say it.
fn is_default(topology: &Topology) -> bool {
    *topology == Topology::default()
}

impl NocSpec {
    /// Whether it can be built.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the table `network`.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        SpecError::positive("width", self.width.get())?;
        SpecError::positive("header", self.header.get())
    }
}
