//! What a program costs its host that works with a coprocessor.

use config::units::Bandwidth;
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a program does with data on its way between files and a coprocessor, on one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OffloadCosts {
    /// How often a program goes through all bytes to bring them into the order that kernels want, or files.
    #[schemars(range(min = 0, max = 16))]
    pub passes: u32,
    /// Bytes a second of one such pass.
    pub marshal: Bandwidth,
    /// Bytes a second of the copy between the program's memory and the driver's.
    pub copy: Bandwidth,
    /// Whether a program makes durable what it has written before it ends (`fsync`).
    pub sync: bool,
    /// Threads that take one instance after another, each with an equal share of the coprocessor's memory: one reads a file while another has a step executed. Where there are two buffers, each has a second one
    /// beside it that moves data.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 64))]
    pub threads: u32,
}

fn is_one(threads: &u32) -> bool {
    *threads == 1
}

impl Default for OffloadCosts {
    fn default() -> OffloadCosts {
        OffloadCosts {
            // Chosen: objects are "reconstructed and set in order" once (FlashAbacus, section 2.1); binary arrays, 1 to 4 GB/s.
            passes: 1,
            marshal: Bandwidth::new(2_000_000_000),
            // From memory: memcpy of one core, 5 to 7 GB/s.
            copy: Bandwidth::new(5_000_000_000),
            // A kernel of the rival's opponent waits until what it leaves is on flash.
            sync: true,
            threads: 1,
        }
    }
}

impl OffloadCosts {
    pub(super) fn marshalling(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.marshal.bytes_per_s()).times(self.passes.into())
    }

    pub(super) fn copying(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.copy.bytes_per_s())
    }
}
