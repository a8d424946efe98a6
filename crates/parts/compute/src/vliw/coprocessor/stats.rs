//! What a coprocessor has counted.

use engine::Time;

/// Orders of a kind that are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// How many.
    pub count: u64,
    /// Bytes that they have moved.
    pub bytes: u64,
    /// From an order until its end is known to the host, all together.
    pub time: Time,
}

impl Orders {
    pub(super) fn add(&mut self, bytes: u64, time: Time) {
        self.count += 1;
        self.bytes += bytes;
        self.time += time;
    }
}

/// What a coprocessor has counted in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoprocessorStats {
    /// Orders to send.
    pub sent: Orders,
    /// Orders to receive.
    pub received: Orders,
    /// Orders to execute a step; they move no bytes.
    pub worked: Orders,
    /// Time in which steps were executed, launches apart.
    pub executing: Time,
    /// Bytes that have crossed memory: between it and the link, and between it and caches.
    pub memory_bytes: u64,
    /// Of each core: time in which it computed, as steps cost it, and of that the part for which it waited for its caches or for memory.
    pub busy: Vec<Time>,
    /// The latter.
    pub stalled: Vec<Time>,
    /// Of each core: time in which it computed, from one event to the next.
    pub computed: Vec<Time>,
    /// Steps that were over before their longest core could be, or before all cores together could have done their work.
    pub short: u64,
}

impl CoprocessorStats {
    pub(super) fn new(cores: u16) -> CoprocessorStats {
        let none = vec![Time::ZERO; cores.into()];
        CoprocessorStats {
            busy: none.clone(),
            stalled: none.clone(),
            computed: none,
            ..CoprocessorStats::default()
        }
    }
}

/// Bytes to the memory and back since the run began: as orders said, and as plans have them for the steps that were ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// To the memory, by orders.
    pub sent: u64,
    /// To the memory, by plans.
    pub loads: u64,
    /// From it, by orders.
    pub received: u64,
    /// From it, by plans.
    pub stores: u64,
}
