//! Links between components, and transfer times at a fixed rate.
//!
//! * Knows PCIe and SATA links, the network on a GPU's chip (crossbar, ring), meshes; their bandwidth, latency, queues
//!   and energy.
//! * Does not know the payload of a transfer or the components at its ends.
//! * Read first: `pcie.rs`; then `noc/`.

pub mod energy;
pub mod fabric;
pub mod mesh;
pub mod noc;
pub mod pcie;
pub mod sata;

use engine::Time;

// Transfer times at a fixed rate.

/// Step and length of the table of transfer times: every multiple of a 512-byte sector up to 128 KiB.
const STEP: u64 = 512;

const STEPS: u64 = 256;

/// Byte rate. Times of common sizes are in a table, because a 128-bit division costs as much as an event.
#[derive(Clone, Debug)]
pub struct Rate {
    bytes_per_s: u64,
    table: Vec<Time>,
}

impl Rate {
    /// Creates a rate; `bytes_per_s` of zero is infinitely fast.
    pub fn new(bytes_per_s: u64) -> Rate {
        Rate { bytes_per_s, table: (0..=STEPS).map(|n| Time::transfer(n * STEP, bytes_per_s)).collect() }
    }
    /// Returns the time of `bytes`, rounded up to a picosecond.
    #[inline]
    pub fn time(&self, bytes: u64) -> Time {
        if bytes.is_multiple_of(STEP) && bytes <= STEP * STEPS {
            self.table[(bytes / STEP) as usize]
        } else {
            Time::transfer(bytes, self.bytes_per_s)
        }
    }
    /// Returns bytes per second.
    pub fn bytes_per_s(&self) -> u64 {
        self.bytes_per_s
    }
    /// Returns the minimum and maximum bytes moved by `transfers` transfers in a total time; `None` if bytes take no
    /// time.
    pub(crate) fn bytes_in(&self, time: Time, transfers: u64) -> Option<[u64; 2]> {
        let of = |ps: u64| (u128::from(self.bytes_per_s) * u128::from(ps) / 1_000_000_000_000) as u64;
        // Each transfer may have been rounded up by less than a picosecond.
        (self.bytes_per_s > 0).then(|| [of(time.ps().saturating_sub(transfers)), of(time.ps())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_division() {
        let rate = Rate::new(3_938_461_538);
        for bytes in [0, 1, 511, 512, 4096, 131_072, 131_073, 1 << 30] {
            assert_eq!(rate.time(bytes), Time::transfer(bytes, 3_938_461_538), "{bytes}");
        }
    }

    #[test]
    fn bytes_follow_from_the_time_that_they_took() {
        let rate = Rate::new(3_938_461_538);
        let sizes = [1, 511, 4096, 131_073];
        let time = sizes.iter().fold(Time::ZERO, |sum, bytes| sum + rate.time(*bytes));
        let [least, most] = rate.bytes_in(time, 4).expect("bytes take time");
        let sum: u64 = sizes.iter().sum();
        assert!((least..=most).contains(&sum) && most - least <= 1, "{sum} not in {least}..={most}");
        assert_eq!(Rate::new(0).bytes_in(time, 4), None);
    }
}
