//! Counters of the engine.

use super::Engine;
use super::cache::{Busy, Outbound, Translation};
use crate::check::Check;
use engine::Time;

/// Outcomes of look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookUps {
    /// Requests looked up: sum of hits, merges and misses.
    pub requests: u64,
    /// Requests whose lines, or room for them, were in a buffer.
    pub hits: u64,
    /// Requests that joined work under way for their page.
    pub merges: u64,
    /// Requests that started work: a fetch, or taking a place in the write buffer.
    pub misses: u64,
}

/// Counters of one measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Look-ups of reads.
    pub reads: LookUps,
    /// Look-ups of writes.
    pub writes: LookUps,
    /// Hits of reads answered by the write buffer.
    pub write_buffer_reads: u64,
    /// Translations begun.
    pub ftl_requests: u64,
    /// Pages read from flash.
    pub flash_reads: u64,
    /// Pages written to flash.
    pub flash_writes: u64,
    /// Pages prefetched with their superpage.
    pub prefetched: u64,
    /// Prefetched pages that a request has used.
    pub prefetch_used: u64,
    /// Prefetched pages dropped before a request used them.
    pub prefetch_unused: u64,
    /// Pages evicted from the write buffer.
    pub evictions: u64,
    /// Evicted pages, written in part, completed from the read buffer.
    pub merged_from_buffer: u64,
    /// Evicted pages, written in part, completed from flash.
    pub merged_from_flash: u64,
    /// Writes that waited for a place in the write buffer.
    pub waits_for_place: u64,
    /// Commands that the device failed.
    pub failed: u64,
    /// Counters of the parts when the window began.
    pub(super) origin: Origin,
}

/// Counters of the parts when the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    bytes: u64,
    activations: u64,
    busy: EngineBusy,
}

/// Busy times of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineBusy {
    /// Busy time of the dispatcher.
    pub dispatcher: Time,
    /// Busy time of address translation, summed over those in service.
    pub ftl: Time,
    /// Busy time of the DRAM's bus.
    pub dram: Time,
}

/// Counts of the engine since the beginning, for the checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) entered: u64,
    pub(super) answered: u64,
    pub(super) translations: u64,
    pub(super) fetches: u64,
    pub(super) evictions: u64,
    /// Evicted pages that went to the device.
    pub(super) stored: u64,
    pub(super) submitted: u64,
    pub(super) completed: u64,
}

impl Engine {
    fn busy_since_start(&self, now: Time) -> EngineBusy {
        EngineBusy {
            dispatcher: self.dispatcher.busy(now),
            ftl: self.ftl.busy(now),
            dram: self.dram.busy(now),
        }
    }

    /// Busy times of the parts since the window began.
    pub fn busy(&self, now: Time) -> EngineBusy {
        let (all, before) = (self.busy_since_start(now), self.stats.origin.busy);
        EngineBusy {
            dispatcher: all.dispatcher.since(before.dispatcher),
            ftl: all.ftl.since(before.ftl),
            dram: all.dram.since(before.dram),
        }
    }

    /// Bytes moved over the DRAM's bus since the window began, and rows opened for them.
    pub fn dram_traffic(&self) -> (u64, u64) {
        let origin = &self.stats.origin;
        (self.dram.bytes - origin.bytes, self.dram.activations - origin.activations)
    }

    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, now: Time) {
        let origin = Origin {
            bytes: self.dram.bytes,
            activations: self.dram.activations,
            busy: self.busy_since_start(now),
        };
        self.stats = EngineStats { origin, ..EngineStats::default() };
        self.tally = proto::memory::Tally::default();
    }

    /// Checks the accounts of the engine against each other. They hold between any two events.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let inside = self.requests.len() as u64;
        let count = |which: fn(&Busy) -> bool| self.pages.live().filter(|(_, b)| which(b)).count() as u64;
        let untranslated =
            count(|b| b.leaving.is_some_and(|leaving| leaving.translation == Translation::Needed));
        let equal = |name, left: u64, right: u64, words: &str| Check {
            name,
            ok: left == right,
            detail: words.replacen("{}", &left.to_string(), 1).replacen("{}", &right.to_string(), 1),
        };
        vec![
            equal(
                "engine requests",
                ledger.entered,
                ledger.answered + inside,
                "{} entered, {} answered or inside",
            ),
            equal(
                "engine translations",
                ledger.translations,
                ledger.fetches + ledger.evictions - untranslated,
                "{} by the FTL, {} for fetches and evictions",
            ),
            equal(
                "engine device commands",
                ledger.submitted,
                ledger.completed + count(Busy::at_device),
                "{} submitted, {} completed or at the device",
            ),
            equal(
                "engine stored pages",
                ledger.evictions,
                ledger.stored + count(|b| b.leaving.is_some()) + count(|b| b.outbound == Outbound::ReadOut),
                "{} evicted, {} at the device or in flight",
            ),
            equal(
                "engine outbound pages",
                u64::from(self.outbound),
                count(|b| b.outbound != Outbound::No),
                "{} counted, {} in flight to flash",
            ),
        ]
    }
}
