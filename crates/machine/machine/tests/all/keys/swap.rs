//! Paging by the operating system of a server.

use super::Predicted::{Differ, Falls, Rises};
use super::{Case, SWAP, TATP};

const FAULTS: &str = "/cpu/0/memory/swap/faults";
const FAULT: &str = "/cpu/0/memory/swap/fault_ns";
const KERNEL: &str = "/cpu/0/time_share/kernel";
const SPINNING: &str = "/cpu/0/memory/swap/spinning_ns";
const SHOOTING: &str = "/cpu/0/memory/swap/shooting_ns";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "swap.memory",
        context: &[],
        jobs: TATP,
        values: &["512KiB", "2MiB", "8MiB"],
        predicted: Falls(FAULTS),
    },
    Case {
        key: "swap.free",
        context: &[],
        jobs: TATP,
        values: &["64KiB", "256KiB", "768KiB"],
        predicted: Rises(FAULTS),
    },
    Case {
        key: "swap.fault",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "swap.submit",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "swap.complete",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "swap.select",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(KERNEL),
    },
    Case {
        key: "swap.lock",
        context: &[],
        jobs: TATP,
        values: &["0us", "1us", "20us"],
        predicted: Rises(SPINNING),
    },
    Case {
        key: "swap.shootdown.base",
        context: &[],
        jobs: TATP,
        values: &["0us", "3us", "30us"],
        predicted: Rises(SHOOTING),
    },
    Case {
        key: "swap.shootdown.per_core",
        context: &[],
        jobs: TATP,
        values: &["0us", "3us", "30us"],
        predicted: Rises(SHOOTING),
    },
    Case {
        key: "swap.shootdown.respond",
        context: &[],
        jobs: TATP,
        values: &["0us", "3us", "30us"],
        predicted: Rises(SHOOTING),
    },
    Case {
        key: "swap.backing",
        context: &["flash.geometry.blocks=256"],
        jobs: TATP,
        values: &["device", "fixed"],
        predicted: Differ,
    },
    Case {
        key: "swap.backing.fixed.read",
        context: &[],
        jobs: TATP,
        values: &["10us", "50us", "100us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "swap.backing.fixed.write",
        context: &[],
        jobs: SWAP,
        values: &["10us", "1ms", "100ms"],
        predicted: Differ,
    },
];
