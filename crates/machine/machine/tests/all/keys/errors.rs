//! Bits that are read wrong, and reads that are repeated for it.

use super::Case;
use super::Predicted::{Differ, Falls, Rises};
use super::accelerator::PASSES;

const MEAN: &str = "/io/read/latency_ns/mean";
const STEPS: &str = "/flash/0/retries/retry_steps";
const UNCORRECTABLE: &str = "/flash/0/retries/uncorrectable_reads";
/// One at a time, anywhere.
const READ_ONE: &[&str] = &["fio:rw=randread,bs=4k,number_ios=500"];
const READ: &[&str] = super::READ;

/// Some reads of fresh pages fail.
const ERRORS: &str = "flash.cell.errors={ fresh = 0.004, wear = 0.0, retention = 0.0, reads = 0.0, spread = \"30%\", \
     retry = { correctable = 0.005, gain = 0.5, limit = 20, latency = \"0us\" } }";
const FRESH: &[&str] = &[ERRORS];
/// All do, several times.
const FAILING: &[&str] = &[ERRORS, "flash.cell.errors.fresh=0.02"];
const HOPELESS: &[&str] = &[ERRORS, "flash.cell.errors.fresh=0.1"];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.cell.errors.fresh",
        context: FRESH,
        jobs: READ_ONE,
        values: &["0.001", "0.004", "0.02"],
        predicted: Rises(MEAN),
    },
    Case {
        key: "flash.cell.errors.wear",
        context: &[ERRORS, "flash.precondition=steady"],
        jobs: READ_ONE,
        values: &["0.0", "0.1", "0.5"],
        predicted: Rises(STEPS),
    },
    Case {
        key: "flash.cell.errors.retention",
        context: &[ERRORS, "flash.cell.errors.age=30.0"],
        jobs: READ_ONE,
        values: &["0.0", "0.0001", "0.0005"],
        predicted: Rises(MEAN),
    },
    Case {
        key: "flash.cell.errors.age",
        context: &[ERRORS, "flash.cell.errors.retention=0.0001"],
        jobs: READ_ONE,
        values: &["0.0", "10.0", "100.0"],
        predicted: Rises(MEAN),
    },
    Case {
        key: "flash.cell.errors.reads",
        context: FRESH,
        jobs: READ,
        values: &["0.0", "0.1", "0.5"],
        predicted: Rises(STEPS),
    },
    Case {
        key: "flash.cell.errors.types",
        context: FRESH,
        jobs: READ_ONE,
        values: &["[0.5]", "[1.0]", "[4.0]"],
        predicted: Rises(MEAN),
    },
    // The median is correctable.
    Case {
        key: "flash.cell.errors.spread",
        context: FRESH,
        jobs: READ_ONE,
        values: &["0%", "20%", "100%"],
        predicted: Rises(MEAN),
    },
    Case {
        key: "flash.cell.errors.retry.correctable",
        context: FRESH,
        jobs: READ_ONE,
        values: &["0.001", "0.003", "0.01"],
        predicted: Falls(MEAN),
    },
    Case {
        key: "flash.cell.errors.retry.gain",
        context: FAILING,
        jobs: READ_ONE,
        values: &["0.2", "0.5", "0.9"],
        predicted: Rises(STEPS),
    },
    Case {
        key: "flash.cell.errors.retry.limit",
        context: HOPELESS,
        jobs: READ_ONE,
        values: &["1", "4", "20"],
        predicted: Falls(UNCORRECTABLE),
    },
    Case {
        key: "flash.cell.errors.retry.latency",
        context: FAILING,
        jobs: READ_ONE,
        values: &["0us", "10us", "1ms"],
        predicted: Rises(MEAN),
    },
];

const READ_GROUP: &str = "/group_flash/0/group_read_ns/mean";
const GROUP_STEPS: &str = "/group_flash/0/retries/retry_steps";
const GROUP_UNCORRECTABLE: &str = "/group_flash/0/retries/uncorrectable_reads";
const GROUP_ERRORS: &str = "group_flash.cell.errors={ fresh = 0.004, wear = 0.0, retention = 0.0, reads = 0.0, spread = \"30%\", \
     retry = { correctable = 0.005, gain = 0.5, limit = 20, latency = \"0us\" } }";
/// A device small enough that blocks are reclaimed.
const TINY: [&str; 4] = [
    "accelerator.memory.size=4MiB",
    "group_flash.groups.geometry.packages=1",
    "group_flash.groups.geometry.blocks=12",
    GROUP_ERRORS,
];
const GROUP: &[&str] = &TINY;
const LONG: &[&str] = &["nest:file=tests/keys/passes.toml,instances=2,passes=12"];

/// Cases of flash of page groups.
pub(crate) const GROUPS: &[Case] = &[
    Case {
        key: "group_flash.cell.errors.fresh",
        context: GROUP,
        jobs: PASSES,
        values: &["0.001", "0.004", "0.02"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.wear",
        context: GROUP,
        jobs: LONG,
        values: &["0.0", "0.5"],
        predicted: Differ,
    },
    Case {
        key: "group_flash.cell.errors.retention",
        context: &[TINY[0], TINY[1], TINY[2], TINY[3], "group_flash.cell.errors.age=30.0"],
        jobs: PASSES,
        values: &["0.0", "0.0005"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.age",
        context: &[TINY[0], TINY[1], TINY[2], TINY[3], "group_flash.cell.errors.retention=0.0001"],
        jobs: PASSES,
        values: &["0.0", "100.0"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.reads",
        context: GROUP,
        jobs: PASSES,
        values: &["0.0", "0.5"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.types",
        context: GROUP,
        jobs: PASSES,
        values: &["[0.5]", "[4.0]"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.spread",
        context: GROUP,
        jobs: PASSES,
        values: &["0%", "100%"],
        predicted: Rises(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.retry.correctable",
        context: GROUP,
        jobs: PASSES,
        values: &["0.001", "0.01"],
        predicted: Falls(READ_GROUP),
    },
    Case {
        key: "group_flash.cell.errors.retry.gain",
        context: &[TINY[0], TINY[1], TINY[2], TINY[3], "group_flash.cell.errors.fresh=0.02"],
        jobs: PASSES,
        values: &["0.2", "0.9"],
        predicted: Rises(GROUP_STEPS),
    },
    Case {
        key: "group_flash.cell.errors.retry.limit",
        context: &[TINY[0], TINY[1], TINY[2], TINY[3], "group_flash.cell.errors.fresh=0.1"],
        jobs: PASSES,
        values: &["1", "20"],
        predicted: Falls(GROUP_UNCORRECTABLE),
    },
    Case {
        key: "group_flash.cell.errors.retry.latency",
        context: &[TINY[0], TINY[1], TINY[2], TINY[3], "group_flash.cell.errors.fresh=0.02"],
        jobs: PASSES,
        values: &["0us", "1ms"],
        predicted: Rises(READ_GROUP),
    },
];
