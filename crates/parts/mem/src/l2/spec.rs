//! Spec of the shared cache.

use super::prefetch::Prefetching;
use crate::cache::replace::ReplacementPolicy;
use config::SpecError;
use config::schema::product;
use config::units::{Bytes, Frequency};
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cache shared by all multiprocessors: all its banks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 24, "lines", &["banks", "sets", "ways"]),
    product(1 << 22, "miss registers", &["banks", "registers"]),
    product(1 << 22, "writes", &["banks", "write_slots"]),
]))]
pub struct L2Spec {
    /// Number of banks, each with one port: a bank serves one access at a time.
    #[schemars(range(min = 1, max = 1_024))]
    pub banks: u16,
    /// Sets per bank.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Associativity: ways per set; a way holds a line.
    #[schemars(range(min = 1))]
    pub ways: u32,
    /// Line size: `64B` or `128B`, as in the first-level caches in front.
    #[schemars(extend("x-minimum" = "64B", "x-maximum" = "128B", "x-power-of-two" = true))]
    pub line: Bytes,
    /// Clock of the banks.
    pub clock: Frequency,
    /// Cycles that a look-up or the read of a line occupies a bank.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub read_latency: u32,
    /// Cycles that the write or fill of a line occupies a bank.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub write_latency: u32,
    /// Interleave: consecutive memory in one bank, a power of two of at least one line; at least a page to prefetch or
    /// park.
    #[schemars(extend("x-power-of-two" = true))]
    pub interleave: Bytes,
    /// Miss registers (MSHRs): fetches under way in a bank. A fetch is a line, or the lines of a page fetched together.
    #[schemars(range(min = 1))]
    pub registers: u32,
    /// Accesses that may wait for one fetch, including the one that began it.
    #[schemars(range(min = 1))]
    pub merges: u32,
    /// Write slots: writes to memory under way in a bank.
    #[schemars(range(min = 1))]
    pub write_slots: u32,
    /// Replacement policy: the line of a set that is evicted.
    pub replacement: ReplacementPolicy,
    /// Write policy.
    pub writes: WritePolicy,
    /// Prefetching: lines fetched with a line that a read misses.
    pub prefetch: Prefetching,
    /// Capacity that may be pinned for dirty pages handed back by overcrowded flash registers; `0B`: none.
    #[schemars(extend("x-maximum" = "64GiB"))]
    pub parked: Bytes,
}

config::policies! {
    /// Write policy of the shared cache.
    #[derive(Copy, Eq)]
    pub family WritePolicy: choice {
        /// Writes stay, and go to memory when their line is evicted.
        ///
        /// A write takes a line without fetching it. A partly written line is fetched when it is read.
        default write_back,
        /// Writes go through to memory, and drop a cached copy of the line.
        ///
        /// For cells that are slow to write: ZnG's STT-MRAM (section III-C). An atomic operation reads the line, from
        /// the cache or from memory, and writes through. Writes to a parked page stay in the cache.
        read_only,
    }
}

impl L2Spec {
    /// Capacity of all banks, in bytes.
    pub fn capacity(&self) -> u64 {
        u64::from(self.banks) * self.bank_lines() * self.line.get()
    }

    fn bank_lines(&self) -> u64 {
        u64::from(self.sets) * u64::from(self.ways)
    }

    /// Duration of `count` cycles.
    pub(super) fn cycles(&self, count: u32) -> Time {
        Time::period(self.clock.hz()).times(count.into())
    }

    /// Lines per page.
    pub(super) fn page_lines(&self) -> u32 {
        (PAGE / self.line.get()) as u32
    }

    /// Maximum number of pinned lines of a bank.
    pub(super) fn parked_lines(&self) -> u32 {
        (self.parked.get() / u64::from(self.banks) / self.line.get()) as u32
    }

    /// Checks that the spec can be built.
    ///
    /// # Errors
    /// Returns the first invalid value; its key is relative to this table.
    pub fn check(&self) -> Result<(), SpecError> {
        let counts = [
            ("banks", u64::from(self.banks)),
            ("sets", self.sets.into()),
            ("ways", self.ways.into()),
            ("clock", self.clock.hz()),
            ("read_latency", self.read_latency.into()),
            ("write_latency", self.write_latency.into()),
            ("registers", self.registers.into()),
            ("merges", self.merges.into()),
            ("write_slots", self.write_slots.into()),
        ];
        for (key, value) in counts {
            SpecError::positive(key, value)?;
        }
        if self.bank_lines() > 1 << 28 {
            let what = format!("{} sets of {} ways are above 2^28 lines a bank", self.sets, self.ways);
            return Err(SpecError::new("sets", what));
        }
        if ![64, 128].contains(&self.line.get()) {
            let what = format!("a line of {} is not supported", self.line);
            return Err(SpecError::new("line", what).help("set it to 64B or 128B"));
        }
        let interleave = self.interleave.get();
        if !interleave.is_power_of_two() || interleave < self.line.get() {
            let what = format!(
                "an interleave of {} is invalid; allowed are powers of two of at least the line size, {}",
                self.interleave, self.line
            );
            return Err(SpecError::new("interleave", what));
        }
        self.prefetch.check(self.line.get())?;
        if interleave < PAGE && (self.prefetch != Prefetching::none || self.parked.get() > 0) {
            let what = format!(
                "prefetching and parking need a whole page of {PAGE} B in one bank, but the interleave is {}",
                self.interleave
            );
            return Err(SpecError::new("interleave", what).help("set l2.interleave to 4KiB or more"));
        }
        self.check_parked()
    }

    fn check_parked(&self) -> Result<(), SpecError> {
        if self.parked.get() == 0 {
            return Ok(());
        }
        let fail = |what: String| Err(SpecError::new("parked", what));
        let lines = self.page_lines();
        if self.parked_lines() < lines {
            return fail(format!(
                "{} over {} banks are less than a page of {PAGE} B in each",
                self.parked, self.banks
            ));
        }
        if self.sets < lines {
            return fail(format!(
                "a page has {lines} lines, each in a different set, but a bank has only {} sets",
                self.sets
            ));
        }
        // One way of each set is never pinned, so that other accesses can proceed.
        let most = u64::from(self.sets) * u64::from(self.ways - 1);
        if u64::from(self.parked_lines()) > most {
            let most = Bytes::new(most * self.line.get() * u64::from(self.banks));
            return fail(format!("{} are above {most}, all ways but one of every set", self.parked));
        }
        Ok(())
    }
}
