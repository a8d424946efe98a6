//! The cache of one bit a cell.

use super::Case;
use super::Predicted::{Falls, Rises};

const HITS: &str = "/flash/0/slc_cache/hits";
const FOLDS: &str = "/flash/0/slc_cache/folds";
const ONE_WRITE: &[&str] = super::ONE_WRITE;
const OVERWRITE: &[&str] = super::OVERWRITE;
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

pub(crate) const CASES: &[Case] = &[
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
        jobs: OVERWRITE,
        values: &["1", "3", "5"],
        predicted: Rises(HITS),
    },
    Case {
        key: "flash.ftl.slc_cache.dynamic",
        context: &[CACHE[0], CACHE[1], CACHE[2], "flash.ftl.slc_cache.fixed=1"],
        jobs: OVERWRITE,
        values: &["0%", "50%", "100%"],
        predicted: Rises(HITS),
    },
    Case {
        key: "flash.ftl.slc_cache.full",
        context: CACHE,
        jobs: OVERWRITE,
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
        jobs: OVERWRITE,
        values: &["0", "1", "3"],
        predicted: Rises(FOLDS),
    },
];
