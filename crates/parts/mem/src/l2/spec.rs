//! The shared cache as a user writes it.

use super::prefetch::Prefetching;
use crate::cache::replace::ReplacementPolicy;
use config::SpecError;
use config::schema::product;
use config::units::{Bytes, Frequency};
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cache that all multiprocessors share: all its banks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 24, "lines", &["banks", "sets", "ways"]),
    product(1 << 22, "miss registers", &["banks", "registers"]),
    product(1 << 22, "writes", &["banks", "write_slots"]),
]))]
pub struct L2Spec {
    /// Banks, each with one port: it serves one access after another.
    #[schemars(range(min = 1, max = 1_024))]
    pub banks: u16,
    /// Sets of a bank.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Ways of a set; a way holds a line.
    #[schemars(range(min = 1))]
    pub ways: u32,
    /// Bytes of a line: `64B` or `128B`, as the first-level caches in front of it have them.
    #[schemars(extend("x-minimum" = "64B", "x-maximum" = "128B", "x-power-of-two" = true))]
    pub line: Bytes,
    /// Clock of the banks.
    pub clock: Frequency,
    /// Cycles for which a look-up, or reading a line, occupies a bank.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub read_latency: u32,
    /// Cycles for which writing or filling a line occupies a bank.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub write_latency: u32,
    /// Consecutive memory that lies in one bank: a power of two, one line at least; a page at least to prefetch or park.
    #[schemars(extend("x-power-of-two" = true))]
    pub interleave: Bytes,
    /// Fetches that a bank may have under way: miss registers. A fetch is a line, or the lines of a page that come with it.
    #[schemars(range(min = 1))]
    pub registers: u32,
    /// Accesses that may wait for one fetch, the one that began it included.
    #[schemars(range(min = 1))]
    pub merges: u32,
    /// Writes to memory that a bank may have under way.
    #[schemars(range(min = 1))]
    pub write_slots: u32,
    /// Which line of a set makes room.
    pub replacement: ReplacementPolicy,
    /// What becomes of writes.
    pub writes: WritePolicy,
    /// What is fetched with a line that a read misses.
    pub prefetch: Prefetching,
    /// Room that may be pinned for dirty pages which overcrowded flash registers hand back; `0B`: none.
    #[schemars(extend("x-maximum" = "64GiB"))]
    pub parked: Bytes,
}

config::policies! {
    /// What the shared cache does with writes.
    #[derive(Copy, Eq)]
    pub family WritePolicy: choice {
        /// They stay, and go to memory when their line makes room.
        ///
        /// A write takes a line without fetching it. A line written in part is fetched when it is read.
        default write_back,
        /// They go through to memory, and a cached copy of the line is dropped.
        ///
        /// For cells that are slow to write: ZnG's STT-MRAM (section III-C). An atomic operation reads the line, from
        /// here or from memory, and writes through. Writes to a parked page stay here.
        read_only,
    }
}

impl L2Spec {
    /// Bytes of all banks.
    pub fn capacity(&self) -> u64 {
        u64::from(self.banks) * self.bank_lines() * self.line.get()
    }

    fn bank_lines(&self) -> u64 {
        u64::from(self.sets) * u64::from(self.ways)
    }

    /// The time of so many cycles.
    pub(super) fn cycles(&self, count: u32) -> Time {
        Time::period(self.clock.hz()).times(count.into())
    }

    /// Lines of a page.
    pub(super) fn page_lines(&self) -> u32 {
        (PAGE / self.line.get()) as u32
    }

    /// Lines that a bank may pin.
    pub(super) fn parked_lines(&self) -> u32 {
        (self.parked.get() / u64::from(self.banks) / self.line.get()) as u32
    }

    /// Whether it can be built.
    ///
    /// # Errors
    /// The first value that does not fit; its key is relative to this table.
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
            let what = format!("{} sets of {} ways are more than 2^28 lines a bank", self.sets, self.ways);
            return Err(SpecError::new("sets", what));
        }
        if ![64, 128].contains(&self.line.get()) {
            let what = format!("a line of {} cannot be cached", self.line);
            return Err(SpecError::new("line", what).help("give 64B or 128B"));
        }
        let interleave = self.interleave.get();
        if !interleave.is_power_of_two() || interleave < self.line.get() {
            let what = format!(
                "an interleave of {} is not a power of two of at least a line, {}",
                self.interleave, self.line
            );
            return Err(SpecError::new("interleave", what));
        }
        self.prefetch.check(self.line.get())?;
        if interleave < PAGE && (self.prefetch != Prefetching::none || self.parked.get() > 0) {
            let what = format!(
                "prefetching and parking handle pages of {PAGE} B, but {} of a page lie in one bank",
                self.interleave
            );
            return Err(SpecError::new("interleave", what).help("raise l2.interleave to 4KiB"));
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
                "{} over {} banks leave less than a page of {PAGE} B in each",
                self.parked, self.banks
            ));
        }
        if self.sets < lines {
            return fail(format!(
                "a page has {lines} lines, one for each set, but a bank has {} sets",
                self.sets
            ));
        }
        // One way of each set stays free of them, so that everything else goes on.
        let most = u64::from(self.sets) * u64::from(self.ways - 1);
        if u64::from(self.parked_lines()) > most {
            let most = Bytes::new(most * self.line.get() * u64::from(self.banks));
            return fail(format!("{} are pinned, but all ways but one of every set are {most}", self.parked));
        }
        Ok(())
    }
}
