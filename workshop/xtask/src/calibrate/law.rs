//! The law of the block device: few numbers, so that a simulated device can have the same.
//!
//! Requests are served one at a time in the order in which they come. Each takes a fixed latency and its bytes at a fixed bandwidth; the device is idle
//! only when nothing waits.

use serde::{Deserialize, Serialize};

/// How long a request takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Law {
    /// Bandwidth, in bytes a second.
    pub(super) bytes_per_s: u64,
    /// What a request takes besides its bytes.
    pub(super) latency_us: u64,
}

impl Law {
    /// The time of one request, in nanoseconds, rounded up.
    pub(super) fn service_ns(self, bytes: u64) -> u64 {
        self.latency_us * 1000 + (bytes * 1_000_000_000).div_ceil(self.bytes_per_s)
    }
}

/// A device that follows a law.
pub(super) struct Device {
    law: Law,
    free_at_ns: u64,
}

impl Device {
    /// Idle at time zero.
    pub(super) fn new(law: Law) -> Self {
        Self { law, free_at_ns: 0 }
    }

    /// When a request is done that comes at `arrival_ns`. Requests come in the order of their arrival.
    pub(super) fn complete(&mut self, arrival_ns: u64, bytes: u64) -> u64 {
        self.free_at_ns = arrival_ns.max(self.free_at_ns) + self.law.service_ns(bytes);
        self.free_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 40 bytes a microsecond.
    const LAW: Law = Law { bytes_per_s: 40_000_000, latency_us: 200 };

    #[test]
    fn a_request_takes_its_latency_and_its_bytes() {
        // 4096 / 40 = 102.4 us; 262144 / 40 = 6553.6 us.
        assert_eq!(LAW.service_ns(4096), 302_400);
        assert_eq!(LAW.service_ns(262_144), 6_753_600);
        assert_eq!(LAW.service_ns(0), 200_000);
    }

    #[test]
    fn a_fraction_of_a_nanosecond_is_rounded_up() {
        // 10 bytes at 3 GB/s: 3.33 ns.
        assert_eq!(Law { bytes_per_s: 3_000_000_000, latency_us: 0 }.service_ns(10), 4);
    }

    #[test]
    fn requests_wait_for_each_other_and_the_device_rests_between_bursts() {
        let mut device = Device::new(LAW);
        // Two at once, one while the second is served, one long after.
        let arrivals = [(1_000, 4096), (1_000, 4096), (400_000, 0), (5_000_000, 8192)];
        let done = arrivals.map(|(at, bytes)| device.complete(at, bytes));
        // 1000 + 302400; + 302400; + 200000; 5000000 + 200000 + 204800.
        assert_eq!(done, [303_400, 605_800, 805_800, 5_404_800]);
    }
}
