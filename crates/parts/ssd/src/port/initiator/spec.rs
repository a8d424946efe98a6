//! What a user writes about storage that a GPU reaches by itself.

use config::SpecError;
use config::units::{Bytes, Duration};
use proto::INNER;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Storage that a GPU reaches by itself: what its shared cache misses becomes block commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitiatorSpec {
    /// By which entrance commands come to the device.
    pub entrance: EntranceChoice,
    /// Time of a request in the dispatcher, which takes one after another.
    pub dispatch_time: Duration,
    /// Submission queues, taken in turn.
    #[schemars(range(min = 1, max = 32_768))]
    pub queues: u16,
    /// Commands outstanding in each queue; more wait in front of them.
    #[schemars(range(min = 1))]
    pub depth: u32,
    /// Where written lines wait for the others of their sector.
    pub gather: GatherSpec,
}

config::policies! {
    /// By which entrance an initiator's commands come to the device.
    #[derive(Copy, Eq)]
    pub family EntranceChoice: choice {
        /// The host's link and queues: the GPU is a device beside the host's others.
        default host,
        /// That of processors inside the drive, `inner`: the GPU is one of them.
        inner,
    }
}

/// Pages of which lines have been written. The one written longest ago makes room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherSpec {
    /// Capacity, in whole pages of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "16GiB"))]
    pub capacity: Bytes,
    /// Pages of a set.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub ways: u32,
    /// Time of an access.
    pub latency: Duration,
}

impl InitiatorSpec {
    /// Checks everything.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("queues", self.queues.into())?;
        if self.queues > INNER {
            let what = format!("{} submission queues; at most {INNER} have a number", self.queues);
            return Err(SpecError::new("queues", what));
        }
        SpecError::positive("depth", self.depth.into())?;
        self.gather.check()
    }
}

impl GatherSpec {
    /// Sets.
    pub(super) fn sets(&self) -> u32 {
        (self.capacity.get() / PAGE / u64::from(self.ways)) as u32
    }

    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("gather.ways", self.ways.into())?;
        let set = u64::from(self.ways) * PAGE;
        if self.capacity.get() == 0 || !self.capacity.get().is_multiple_of(set) {
            let what =
                format!("{} are no whole number of sets of {} pages, {set} B each", self.capacity, self.ways);
            return Err(SpecError::new("gather.capacity", what).help(format!("choose a multiple of {set} B")));
        }
        Ok(())
    }
}
