//! A coprocessor of a host.

use super::Case;
use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::accelerator::{CHAIN, CONVOLUTION, PASSES, PRODUCT, ROOTS, THREE};

const MAKESPAN: &str = "/coprocessor/0/makespan_ns";
const STEPS: &str = "/coprocessor/0/steps/time_ns";
const SENDS: &str = "/coprocessor/0/sends/time_ns";
const RECEIVES: &str = "/coprocessor/0/receives/time_ns";
const MARSHAL: &str = "/coprocessor/0/kernels/0/phases/marshal/time_ns";
const COPY: &str = "/coprocessor/0/kernels/0/phases/copy/time_ns";
const SYNC: &str = "/coprocessor/0/kernels/0/phases/sync/time_ns";

const WITHOUT_MULTIPLY: &[&str] = &["coprocessor.core.units.multiply=64"];

const fn steps_rise(
    key: &'static str,
    jobs: &'static [&'static str],
    values: &'static [&'static str],
) -> Case {
    Case { key, context: &[], jobs, values, predicted: Rises(STEPS) }
}

const fn steps_fall(
    key: &'static str,
    jobs: &'static [&'static str],
    values: &'static [&'static str],
) -> Case {
    Case { key, context: &[], jobs, values, predicted: Falls(STEPS) }
}

const LATENCIES: &[&str] = &["2", "10", "40"];
const MORE: &[&str] = &["10", "20", "40"];

/// Of the coprocessor, and of the program that drives it.
pub(crate) const CASES: &[Case] = &[
    steps_fall("coprocessor.cores", CONVOLUTION, &["1", "2", "4"]),
    steps_fall("coprocessor.core.clock", CONVOLUTION, &["500MHz", "1GHz", "2GHz"]),
    steps_fall("coprocessor.core.units.multiply", ROOTS, &["1", "2", "4"]),
    Case {
        key: "coprocessor.core.units.general",
        context: WITHOUT_MULTIPLY,
        jobs: ROOTS,
        values: &["1", "2", "4"],
        predicted: Falls(STEPS),
    },
    Case {
        key: "coprocessor.core.units.memory",
        context: &[
            "coprocessor.core.units.multiply=64",
            "coprocessor.core.units.general=64",
            "coprocessor.memory.bandwidth=100GB/s",
        ],
        jobs: ROOTS,
        values: &["1", "2", "4"],
        predicted: Falls(STEPS),
    },
    steps_rise("coprocessor.core.latency.load", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.latency.store", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.latency.add", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.latency.multiply", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.latency.compare", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.latency.divide", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.latency.square_root", CHAIN, LATENCIES),
    steps_rise("coprocessor.core.divide.multiply", ROOTS, MORE),
    Case {
        key: "coprocessor.core.divide.general",
        context: WITHOUT_MULTIPLY,
        jobs: ROOTS,
        values: MORE,
        predicted: Rises(STEPS),
    },
    steps_rise("coprocessor.core.square_root.multiply", ROOTS, MORE),
    Case {
        key: "coprocessor.core.square_root.general",
        context: WITHOUT_MULTIPLY,
        jobs: ROOTS,
        values: MORE,
        predicted: Rises(STEPS),
    },
    steps_fall("coprocessor.core.l1.size", PRODUCT, &["16KiB", "128KiB"]),
    Case {
        key: "coprocessor.core.l1.ways",
        context: &[],
        jobs: PRODUCT,
        values: &["1", "2"],
        predicted: Differ,
    },
    steps_fall("coprocessor.core.l1.line", CONVOLUTION, &["32B", "64B", "128B"]),
    steps_rise("coprocessor.core.l1.miss", CONVOLUTION, &["0", "8", "20"]),
    Case {
        key: "coprocessor.core.l2.size",
        context: &["coprocessor.core.write_back=0", "coprocessor.core.l1.size=4KiB"],
        jobs: PRODUCT,
        values: &["16KiB", "512KiB"],
        predicted: Falls(STEPS),
    },
    Case {
        key: "coprocessor.core.l2.ways",
        context: &["coprocessor.core.l2.size=64KiB"],
        jobs: PRODUCT,
        values: &["1", "4"],
        predicted: Differ,
    },
    steps_fall("coprocessor.core.l2.line", CONVOLUTION, &["64B", "128B", "256B"]),
    steps_rise("coprocessor.core.l2.miss", CONVOLUTION, &["0", "85", "200"]),
    Case {
        key: "coprocessor.core.prefetch.streams",
        context: &["coprocessor.core.prefetch.miss=10"],
        jobs: CONVOLUTION,
        values: &["1", "8"],
        predicted: Falls(STEPS),
    },
    Case {
        key: "coprocessor.core.prefetch.miss",
        context: &["coprocessor.core.prefetch.streams=8"],
        jobs: CONVOLUTION,
        values: &["0", "43", "85"],
        predicted: Rises(STEPS),
    },
    steps_rise("coprocessor.core.write_back", THREE, &["0", "100", "1000"]),
    Case {
        key: "coprocessor.memory.size",
        context: &[],
        jobs: PASSES,
        values: &["4MiB", "16MiB"],
        predicted: Falls(SENDS),
    },
    Case {
        key: "coprocessor.buffers",
        // Steps that compute for as long as their data are moved, and cost nothing else.
        context: &[
            "coprocessor.memory.size=1MiB",
            "coprocessor.core.clock=100MHz",
            "coprocessor.core.write_back=0",
            "coprocessor.parallel.one=0",
            "coprocessor.parallel.further=0",
        ],
        jobs: THREE,
        values: &["1", "2"],
        predicted: Falls(MAKESPAN),
    },
    steps_fall("coprocessor.memory.bandwidth", CONVOLUTION, &["100MB/s", "1GB/s", "6.4GB/s"]),
    // The table has the work of a product of 4,000 x 4,000.
    steps_rise("coprocessor.work", PRODUCT, &["nest", "table"]),
    // The sum of a product's inner loop waits for 9 cycles in memory, for 3 in a register.
    steps_fall("coprocessor.sums", PRODUCT, &["memory", "registers"]),
    Case {
        key: "coprocessor.sample",
        context: &[],
        jobs: THREE,
        values: &["1024", "65536"],
        predicted: Differ,
    },
    steps_rise("coprocessor.parallel.one", THREE, &["0", "10400", "100000"]),
    steps_rise("coprocessor.parallel.further", THREE, &["0", "2443", "20000"]),
    steps_rise("coprocessor.launch", THREE, &["0us", "20us", "1ms"]),
    Case {
        key: "coprocessor.link.send",
        context: &[],
        jobs: THREE,
        values: &["100MB/s", "814MB/s", "2GB/s"],
        predicted: Falls(SENDS),
    },
    Case {
        key: "coprocessor.link.receive",
        context: &[],
        jobs: CONVOLUTION,
        values: &["100MB/s", "875MB/s", "2GB/s"],
        predicted: Falls(RECEIVES),
    },
    Case {
        key: "coprocessor.link.latency",
        context: &[],
        jobs: THREE,
        values: &["0ns", "250ns", "1ms"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "coprocessor.offload.passes",
        context: &[],
        jobs: THREE,
        values: &["0", "1", "3"],
        predicted: Rises(MARSHAL),
    },
    Case {
        key: "coprocessor.offload.marshal",
        context: &[],
        jobs: THREE,
        values: &["500MB/s", "2GB/s", "4GB/s"],
        predicted: Falls(MARSHAL),
    },
    Case {
        key: "coprocessor.offload.copy",
        context: &[],
        jobs: THREE,
        values: &["1GB/s", "5GB/s", "7GB/s"],
        predicted: Falls(COPY),
    },
    Case {
        key: "coprocessor.offload.sync",
        context: &[],
        jobs: THREE,
        values: &["false", "true"],
        predicted: Rises(SYNC),
    },
    // Two instances, one after the other or side by side.
    Case {
        key: "coprocessor.offload.threads",
        context: &[],
        jobs: &["atax:m=512,n=512,instances=2,inputs=own"],
        values: &["1", "2"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "host.coprocessors",
        context: &[],
        jobs: THREE,
        values: &["coprocessor", "nowhere"],
        predicted: RefusedAfterFirst("the part `nowhere` does not exist"),
    },
];
