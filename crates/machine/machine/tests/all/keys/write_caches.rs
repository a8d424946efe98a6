//! What takes writes before a drive programs them for good: the cache of one bit a cell, and registers that gather
//! writes.

use super::Predicted::{Differ, Falls, Rises};
use super::{Case, OVERWRITE, SKEWED};

const HITS: &str = "/flash/0/slc_cache/hits";
const FOLDS: &str = "/flash/0/slc_cache/folds";
const ONE_WRITE: &[&str] = super::ONE_WRITE;
const SLC_OVERWRITE: &[&str] = super::OVERWRITE;
/// A write every 2 ms, for more than the cache takes.
const SLOW: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=1,number_ios=600,thinktime=2000"];

/// Cells of two bits, and four units of a group for the cache.
pub(crate) const CACHE: &[&str] = &[
    "flash.cell.bits=2",
    "flash.ftl.over_provisioning=40%",
    "flash.ftl.slc_cache={ read = \"20us\", program = \"100us\", fixed = 4, dynamic = \"0%\", full = \"direct\", keep = 0 }",
];
const WAITED: &[&str] = &[CACHE[0], CACHE[1], CACHE[2], "flash.ftl.slc_cache.full=wait"];
const RESTING: &[&str] = &[CACHE[0], CACHE[1], CACHE[2], "flash.ftl.slc_cache.idle=1ms"];

pub(crate) const SLC: &[Case] = &[
    Case {
        key: "flash.ftl.slc_cache.read",
        context: WAITED,
        jobs: super::MIXED,
        values: &["10us", "100us", "500us"],
        predicted: Rises("/io/read/latency_ns/mean"),
    },
    Case {
        key: "flash.ftl.slc_cache.program",
        context: CACHE,
        jobs: ONE_WRITE,
        values: &["50us", "100us", "500us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "flash.ftl.slc_cache.fixed",
        context: CACHE,
        jobs: SLC_OVERWRITE,
        values: &["1", "3", "5"],
        predicted: Rises(HITS),
    },
    Case {
        key: "flash.ftl.slc_cache.dynamic",
        context: &[CACHE[0], CACHE[1], CACHE[2], "flash.ftl.slc_cache.fixed=1"],
        jobs: SLC_OVERWRITE,
        values: &["0%", "50%", "100%"],
        predicted: Rises(HITS),
    },
    Case {
        key: "flash.ftl.slc_cache.full",
        context: CACHE,
        jobs: SLC_OVERWRITE,
        values: &["direct", "wait"],
        predicted: Rises(HITS),
    },
    Case {
        key: "flash.ftl.slc_cache.idle",
        context: CACHE,
        jobs: SLOW,
        values: &["1ms", "1s"],
        predicted: Falls(FOLDS),
    },
    Case {
        key: "flash.ftl.slc_cache.keep",
        context: RESTING,
        jobs: SLOW,
        values: &["0", "1", "3"],
        predicted: Falls(FOLDS),
    },
    Case {
        key: "flash.ftl.slc_cache.foreground",
        context: CACHE,
        jobs: SLC_OVERWRITE,
        values: &["0", "1", "3"],
        predicted: Rises(FOLDS),
    },
];

/// Few registers, so that pages leave all the time.
const GATHERED: &[&str] =
    &["flash.registers={ count = 3, network = 'nif', reserve = '0%', eviction = 'lru', protected = false }"];

/// A flush after every few writes.
const SYNCED: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=4,number_ios=1000,fsync=8"];

const MERGED: &str = "/flash/0/registers/merged";

pub(crate) const REGISTERS: &[Case] = &[
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
