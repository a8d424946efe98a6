//! What a user writes about paging by the operating system.

use config::SpecError;
use config::units::{Bytes, Duration};
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Paging of a server by its operating system: DRAM holds pages of the data, flash all of them. Times are core time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwapSpec {
    /// DRAM that pages may take.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1TiB"))]
    pub memory: Bytes,
    /// Of it, what the kernel keeps free for pages that come: with less, a fault makes a page leave.
    pub free: Bytes,
    /// A page fault up to the command: exception, handler, look-up in the page cache, allocation of a frame.
    pub fault: Duration,
    /// A command to the flash device: block layer, driver, doorbell.
    pub submit: Duration,
    /// A command that is done: interrupt, driver, block layer, waking the thread.
    pub complete: Duration,
    /// Choosing the page that leaves.
    pub select: Duration,
    /// A change of the page table, for which a core has the lock that all cores share; who waits for it spins.
    pub lock: Duration,
    /// Taking the translation of a page that leaves out of all TLBs.
    pub shootdown: ShootdownSpec,
    /// Where pages come from.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "device"))]
    pub backing: SwapBacking,
}

config::policies! {
    /// Where the operating system's pages come from.
    pub family SwapBacking: choice {
        /// A flash device.
        default device,
        /// Fixed times; any number of pages move at the same time.
        fixed(Fixed),
    }
}

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// From the command for a page to the page.
    pub read: Duration,
    /// Time to take a page.
    pub write: Duration,
}

impl Default for Fixed {
    /// AstriFlash, Table I.
    fn default() -> Fixed {
        Fixed { read: Duration::new(Time::from_us(50)), write: Duration::new(Time::from_us(100)) }
    }
}

/// Whether a spec need not say it.
fn is_default(backing: &SwapBacking) -> bool {
    *backing == SwapBacking::default()
}

/// A TLB shoot-down. A core alone has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShootdownSpec {
    /// The core that begins it, whatever the number of cores: sending, and the first acknowledgement.
    pub base: Duration,
    /// The same core, for each other core.
    pub per_core: Duration,
    /// Each other core: interrupt, invalidation, acknowledgement, return.
    pub respond: Duration,
}

impl SwapSpec {
    /// Checks everything.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        let (memory, free) = (self.memory.get() / PAGE, self.free.get() / PAGE);
        if memory > u64::from(u32::MAX) {
            return Err(SpecError::new(
                "memory",
                format!("{memory} pages of {} are more than 2^32", self.memory),
            ));
        }
        SpecError::positive("memory", memory)?;
        if free >= memory {
            let what =
                format!("{free} pages (`free`) of {memory} (`memory`) are kept free: none is left for data");
            return Err(SpecError::new("free", what).help("keep a small part free, such as a thousandth"));
        }
        Ok(())
    }
}
