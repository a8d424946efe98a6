//! Which hardware queue serves which core.

use std::ops::Range;

/// The map from cores to hardware queues: neighbours share a queue, and the first queues have one core more if they do not come out even
/// (`irq_create_affinity_masks`, `blk_mq_pci_map_queues`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    cores: u16,
    hctxs: u16,
}

impl Map {
    /// `hctxs` queues for `cores` cores.
    ///
    /// # Panics
    /// If there is none of either, or more queues than cores.
    pub fn new(cores: u16, hctxs: u16) -> Map {
        assert!(hctxs > 0 && hctxs <= cores, "{hctxs} hardware queues for {cores} cores");
        Map { cores, hctxs }
    }

    /// Hardware queues.
    #[inline]
    pub fn hctxs(&self) -> u16 {
        self.hctxs
    }

    /// Cores.
    #[inline]
    pub fn cores(&self) -> u16 {
        self.cores
    }

    /// The hardware queue of a core.
    #[inline]
    pub fn hctx(&self, core: u16) -> u16 {
        let (each, more) = (self.cores / self.hctxs, self.cores % self.hctxs);
        let long = more * (each + 1);
        if core < long { core / (each + 1) } else { more + (core - long) / each }
    }

    /// The cores of a hardware queue.
    #[inline]
    pub fn cores_of(&self, hctx: u16) -> Range<u16> {
        let (each, more) = (self.cores / self.hctxs, self.cores % self.hctxs);
        let first = hctx * each + hctx.min(more);
        first..first + each + u16::from(hctx < more)
    }
}
