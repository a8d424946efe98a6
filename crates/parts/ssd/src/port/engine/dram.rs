//! The DRAM of the buffers: one bus, and banks with one open row each.

use super::spec::BufferDramSpec;
use engine::{Time, resource::Serial};
use net::Rate;

/// No row.
const CLOSED: u32 = u32::MAX;

/// Serves accesses first come first served. An access opens its row while the bus still serves those before it, and
/// occupies the bus for its data. Nobody overtakes, so the end of an access is known when it joins.
pub(super) struct Dram {
    rate: Rate,
    latency: Time,
    activate: Time,
    banks: Vec<Bank>,
    bus: Serial,
    /// Time that data have taken, or will have when the bus is free.
    moving: Time,
    /// Bytes moved, in and out.
    pub(super) bytes: u64,
    /// Rows opened.
    pub(super) activations: u64,
}

#[derive(Clone, Copy)]
struct Bank {
    open: u32,
    /// When the data of its last access has passed: before, its row stays open.
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

    /// Time that the bus has moved data, up to `now`; what is left to do counts as done without a gap.
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
        // Row 8 lies in bank 0 as well: it opens when the data of row 0 have passed.
        assert_eq!(dram.access(Time::ZERO, 8, 128), Time::from_ps(2 * (27_500 + 20_000) + 13_750));
    }
}
