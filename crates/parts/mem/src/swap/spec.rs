//! Spec of paging by the operating system.

use config::SpecError;
use config::units::{Bytes, Duration};
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Paging of a server by its operating system: DRAM holds some pages of the data, flash all of them. Times are core
/// time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwapSpec {
    /// DRAM available to pages.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1TiB"))]
    pub memory: Bytes,
    /// Free pages that the kernel keeps for incoming pages: below this, a fault also evicts a page.
    pub free: Bytes,
    /// Core time of a page fault before its command: exception, handler, look-up in the page cache, allocation of a
    /// frame.
    pub fault: Duration,
    /// Core time of submitting a command to the flash device: block layer, driver, doorbell.
    pub submit: Duration,
    /// Core time of completing a command: interrupt, driver, block layer, waking the thread.
    pub complete: Duration,
    /// Core time of choosing a victim page.
    pub select: Duration,
    /// Core time of a page table change, during which a core holds the lock shared by all cores; waiting cores spin.
    pub lock: Duration,
    /// TLB shoot-down of an evicted page's translation.
    pub shootdown: ShootdownSpec,
    /// Backing store of the pages.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "device"))]
    pub backing: SwapBacking,
}

config::policies! {
    /// Backing store of the operating system's pages.
    pub family SwapBacking: choice {
        /// A flash device.
        default device,
        /// Fixed times; any number of pages move concurrently.
        fixed(Fixed),
    }
}

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// Time from the command for a page until its arrival.
    pub read: Duration,
    /// Time to write a page.
    pub write: Duration,
}

impl Default for Fixed {
    /// Returns the times of AstriFlash, Table I.
    fn default() -> Fixed {
        Fixed { read: Duration::new(Time::from_us(50)), write: Duration::new(Time::from_us(100)) }
    }
}

/// Returns true if a spec may omit the backing store.
fn is_default(backing: &SwapBacking) -> bool {
    *backing == SwapBacking::default()
}

/// TLB shoot-down. A single core has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShootdownSpec {
    /// Time of the initiating core, for any number of cores: sending, and the first acknowledgement.
    pub base: Duration,
    /// Additional time of the initiating core, for each other core.
    pub per_core: Duration,
    /// Time of each other core: interrupt, invalidation, acknowledgement, return.
    pub respond: Duration,
}

impl SwapSpec {
    /// Checks the whole spec.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        let (memory, free) = (self.memory.get() / PAGE, self.free.get() / PAGE);
        if memory > u64::from(u32::MAX) {
            return Err(SpecError::new(
                "memory",
                format!("{memory} pages in {} exceed the limit of 2^32", self.memory),
            ));
        }
        SpecError::positive("memory", memory)?;
        if free >= memory {
            let what =
                format!("`free` keeps {free} of the {memory} pages in `memory`, which leaves none for data");
            return Err(SpecError::new("free", what).help("set a small share of `memory`, such as 0.1 %"));
        }
        Ok(())
    }
}
