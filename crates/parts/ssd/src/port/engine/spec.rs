//! Spec of an SSD engine, and the DRAM of its buffers.

use config::SpecError;
use config::units::{Bandwidth, Bytes, Duration};
use engine::{Time, resource::Serial};
use net::Rate;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// SSD engine: an SSD's controller and its DRAM buffer, between a shared cache and a flash device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineSpec {
    /// Time of a request in the dispatcher, which takes one request at a time.
    pub dispatch_time: Duration,
    /// Time of a page's address translation, for reads and writes.
    pub ftl_time: Duration,
    /// Address translations in service at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub ftl_in_service: u32,
    /// Pages in flight from the write buffer to flash: read out of the DRAM and not yet programmed.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub evictions: u32,
    /// Buffer of pages read from flash.
    pub read_buffer: PageBufferSpec,
    /// Buffer of written pages.
    pub write_buffer: PageBufferSpec,
    /// DRAM of both buffers.
    pub dram: BufferDramSpec,
    /// Superpage prefetching; if omitted, pages are fetched one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchSpec>,
}

/// Page buffer with LRU eviction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageBufferSpec {
    /// Capacity.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "16GiB"))]
    pub capacity: Bytes,
    /// Associativity: pages per set.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub ways: u32,
}

/// DRAM of an SSD engine: one bus, first come, first served. A page of the buffers is a row; consecutive rows are in
/// consecutive banks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferDramSpec {
    /// Bandwidth of the bus, in bytes per second.
    pub bandwidth: Bandwidth,
    /// Time from the column command to the data (tCL).
    pub latency: Duration,
    /// Time to close a row and open another (tRP + tRCD); the bus serves other banks meanwhile.
    pub activate: Duration,
    /// Number of banks, each with one open row.
    #[schemars(range(min = 1, max = 65_536))]
    pub banks: u32,
}

/// Superpage prefetching: a table indexed by the address of the load instruction detects sequential reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Number of table entries, indexed by the instruction's address modulo this number.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
    /// Counter value at which a miss fetches its superpage; also the maximum. The instruction's counter goes up by one
    /// with every access to the superpage of the last access or to the page behind it, and down by one with every other
    /// access.
    #[schemars(range(min = 1))]
    pub after: u32,
    /// Pages per superpage.
    #[schemars(range(min = 2, max = 65_536))]
    pub pages: u32,
}

impl EngineSpec {
    /// Checks the whole spec.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("ftl_in_service", self.ftl_in_service.into())?;
        SpecError::positive("evictions", self.evictions.into())?;
        self.read_buffer.check("read_buffer")?;
        self.write_buffer.check("write_buffer")?;
        if self.read_buffer.pages() + self.write_buffer.pages() > u64::from(u32::MAX) {
            let what = format!(
                "buffers of {} and {} hold more than the limit of {} pages",
                self.read_buffer.capacity,
                self.write_buffer.capacity,
                u32::MAX
            );
            return Err(SpecError::new("read_buffer.capacity", what));
        }
        SpecError::positive("dram.bandwidth", self.dram.bandwidth.bytes_per_s())?;
        SpecError::positive("dram.banks", self.dram.banks.into())?;
        let Some(prefetch) = &self.prefetch else { return Ok(()) };
        SpecError::positive("prefetch.entries", prefetch.entries.into())?;
        SpecError::positive("prefetch.after", prefetch.after.into())?;
        if prefetch.pages < 2 {
            let what = format!("a superpage of {} pages leaves nothing to prefetch", prefetch.pages);
            return Err(SpecError::new("prefetch.pages", what)
                .help("set it to 2 or more, or omit the table `prefetch` to fetch single pages"));
        }
        Ok(())
    }
}

impl PageBufferSpec {
    /// Number of pages that the buffer holds.
    pub(super) fn pages(&self) -> u64 {
        self.capacity.get() / PAGE
    }

    fn check(&self, table: &str) -> Result<(), SpecError> {
        SpecError::positive(&format!("{table}.ways"), self.ways.into())?;
        let set = u64::from(self.ways) * PAGE;
        if self.capacity.get() == 0 || !self.capacity.get().is_multiple_of(set) {
            let what =
                format!("{} are not a multiple of the set size: {} pages, {set} B", self.capacity, self.ways);
            return Err(SpecError::new(&format!("{table}.capacity"), what)
                .help(format!("choose a multiple of {set} B")));
        }
        Ok(())
    }
}

// DRAM of the buffers: one bus, and banks with one open row each.

/// Row number of a closed bank.
const CLOSED: u32 = u32::MAX;

/// DRAM that serves accesses first come, first served. An access opens its row while the bus still serves earlier ones,
/// and occupies the bus for its data. Accesses never overtake, so the end of an access is known when it joins.
pub(super) struct Dram {
    rate: Rate,
    latency: Time,
    activate: Time,
    banks: Vec<Bank>,
    bus: Serial,
    /// Transfer time of all accesses so far; some may lie in the future.
    moving: Time,
    /// Bytes moved, in and out.
    pub(super) bytes: u64,
    /// Rows opened.
    pub(super) activations: u64,
}

#[derive(Clone, Copy)]
struct Bank {
    open: u32,
    /// Time at which the data of the last access has passed: until then, its row stays open.
    free_at: Time,
}

impl Dram {
    pub(super) fn new(spec: &BufferDramSpec) -> Dram {
        Dram {
            rate: Rate::new(spec.bandwidth.bytes_per_s()),
            latency: spec.latency.time(),
            activate: spec.activate.time(),
            banks: vec![Bank { open: CLOSED, free_at: Time::ZERO }; spec.banks as usize],
            bus: Serial::default(),
            moving: Time::ZERO,
            bytes: 0,
            activations: 0,
        }
    }

    /// Accesses `bytes` of a row; returns when the last byte has passed.
    #[inline]
    pub(super) fn access(&mut self, now: Time, row: u32, bytes: u64) -> Time {
        let banks = self.banks.len() as u32;
        let bank = &mut self.banks[(row % banks) as usize];
        let mut ready = now;
        if bank.open != row {
            ready = now.max(bank.free_at) + self.activate;
            bank.open = row;
            self.activations += 1;
        }
        let time = self.rate.time(bytes);
        let end = self.bus.grant(ready, time);
        self.moving += time;
        bank.free_at = end;
        self.bytes += bytes;
        end + self.latency
    }

    /// Busy time of the bus up to `now`; work left counts as gapless.
    pub(super) fn busy(&self, now: Time) -> Time {
        self.moving.since(self.bus.free_at().since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::{Bandwidth, Duration};

    fn dram() -> Dram {
        Dram::new(&BufferDramSpec {
            bandwidth: Bandwidth::new(6_400_000_000),
            latency: Duration::new(Time::from_ps(13_750)),
            activate: Duration::new(Time::from_ps(27_500)),
            banks: 8,
        })
    }

    #[test]
    fn an_idle_bank_costs_precharge_activate_and_column() {
        // DDR3-1600 11-11-11: 3 x 13.75 ns, and 20 ns for 128 B at 6.4 GB/s.
        assert_eq!(dram().access(Time::ZERO, 0, 128), Time::from_ps(3 * 13_750 + 20_000));
    }

    #[test]
    fn an_open_row_costs_the_column_alone() {
        let mut dram = dram();
        dram.access(Time::ZERO, 3, 4096);
        let now = Time::from_us(1);
        assert_eq!(dram.access(now, 3, 128), now + Time::from_ps(13_750 + 20_000));
        assert_eq!(dram.activations, 1);
    }

    #[test]
    fn other_banks_open_rows_behind_the_bus() {
        let mut dram = dram();
        let ends: Vec<Time> = (0..8).map(|row| dram.access(Time::ZERO, row, 128)).collect();
        // All eight rows are opened at once; the data follow each other without a gap.
        let first = 27_500 + 13_750;
        let expected: Vec<Time> = (1..=8).map(|n| Time::from_ps(first + n * 20_000)).collect();
        assert_eq!(ends, expected);
    }

    #[test]
    fn rows_of_one_bank_wait_for_each_other() {
        let mut dram = dram();
        dram.access(Time::ZERO, 0, 128);
        // Row 8 is in bank 0 too: it opens when the data of row 0 have passed.
        assert_eq!(dram.access(Time::ZERO, 8, 128), Time::from_ps(2 * (27_500 + 20_000) + 13_750));
    }
}
