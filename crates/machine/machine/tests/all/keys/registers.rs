//! Registers of a drive that gather writes.

use super::Predicted::{Differ, Falls, Rises};
use super::{Case, OVERWRITE, SKEWED};

/// Few registers, so that pages leave all the time.
const GATHERED: &[&str] =
    &["flash.registers={ count = 3, network = 'nif', reserve = '0%', eviction = 'lru', protected = false }"];
/// A flush after every few writes.
const SYNCED: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=4,number_ios=1000,fsync=8"];
const MERGED: &str = "/flash/0/registers/merged";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.registers.count",
        context: GATHERED,
        jobs: SKEWED,
        values: &["2", "4", "16"],
        predicted: Rises(MERGED),
    },
    // A page of another plane may be written where the package has a free register.
    Case {
        key: "flash.registers.network",
        context: GATHERED,
        jobs: OVERWRITE,
        values: &["private", "swnet", "fcnet", "nif"],
        predicted: Differ,
    },
    Case {
        key: "flash.registers.network.nif.width",
        context: GATHERED,
        jobs: OVERWRITE,
        values: &["1B", "8B", "1KiB"],
        predicted: Falls("/simulated_ns"),
    },
    Case {
        key: "flash.registers.network.nif.rate",
        context: GATHERED,
        jobs: OVERWRITE,
        values: &["50MT/s", "800MT/s", "100GT/s"],
        predicted: Falls("/simulated_ns"),
    },
    Case {
        key: "flash.registers.reserve",
        context: GATHERED,
        jobs: SKEWED,
        values: &["75%", "25%", "0%"],
        predicted: Rises(MERGED),
    },
    Case {
        key: "flash.registers.eviction",
        context: GATHERED,
        jobs: SKEWED,
        values: &["fifo", "lru"],
        predicted: Rises(MERGED),
    },
    Case {
        key: "flash.registers.protected",
        context: GATHERED,
        jobs: SYNCED,
        values: &["true", "false"],
        predicted: Rises("/io/flush/latency_ns/mean"),
    },
];
