//! The multiprocessors' constants as the model uses them.

use super::spec::GpuSpec;
use engine::Time;

/// Bytes that a translation entry covers. Mostly a power of two; a flash block of 384 pages is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    bytes: u64,
    /// 64 when `bytes` is no power of two.
    shift: u32,
}

impl Reach {
    pub(super) fn new(bytes: u64) -> Reach {
        Reach { bytes, shift: if bytes.is_power_of_two() { bytes.trailing_zeros() } else { 64 } }
    }

    #[inline]
    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }

    /// The page of an address.
    #[inline]
    pub(super) fn page(self, address: u64) -> u64 {
        if self.shift < 64 { address >> self.shift } else { address / self.bytes }
    }
}

/// Constants of every multiprocessor, latencies in cycles.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub period: Time,
    pub reach: Reach,
    pub issue: u32,
    pub warps: u32,
    pub blocks: u32,
    pub threads: u32,
    pub block_threads: u32,
    pub registers: u32,
    pub shared_bytes: u64,
    pub alu: u64,
    pub sfu: u64,
    pub sfu_interval: u64,
    pub shared: u64,
    pub l1: u64,
    pub queue: usize,
}

impl Model {
    pub(super) fn new(spec: &GpuSpec, reach: u64) -> Model {
        Model {
            period: Time::period(spec.clock.hz()),
            reach: Reach::new(reach),
            issue: spec.issue.into(),
            warps: spec.resident.warps.into(),
            blocks: spec.resident.blocks.into(),
            threads: spec.resident.threads,
            block_threads: spec.resident.block_threads,
            registers: spec.resident.registers,
            shared_bytes: spec.resident.shared.get(),
            alu: spec.alu.latency.into(),
            sfu: spec.sfu.latency.into(),
            sfu_interval: spec.sfu.interval.into(),
            shared: spec.shared.latency.into(),
            l1: spec.l1.latency.into(),
            queue: spec.load_store.queue as usize,
        }
    }
}
