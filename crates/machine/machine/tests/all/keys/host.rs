//! The host interface and the host's software.

use super::Predicted::{Differ, Falls, Rises};
use super::{Case, LARGE_READ, ONE_READ, ONE_WRITE, READ};

const READ_MEAN: &str = "/io/read/latency_ns/mean";
const FIRST: &str = "/io/flows/0/read/latency_ns/mean";

const PCIE: &[&str] = &[
    "flash.host.link={ pcie = { generation = 3, lanes = 4, max_payload = \"256B\", latency = \"250ns\" } }",
];
/// A SATA drive, whose queue is not NVMe's.
const SATA: &[&str] = &[
    "flash.host.link={ sata = { generation = 3, latency = \"100ns\" } }",
    "flash.host.ahci={ slots = 32, command = \"500ns\", interrupt = \"2us\" }",
];
/// The controller is the bottleneck, and holds few commands.
const FULL: &[&str] =
    &["flash.host.nvme.queues=4", "flash.host.nvme.in_controller=8", "flash.host.controller.command=20us"];
const WEIGHTED: &[&str] = &[
    "flash.host.nvme.queues=4",
    "flash.host.nvme.in_controller=4",
    "flash.host.controller.command=20us",
    "flash.host.nvme.arbitration={ weighted = { burst = 1, high = 8, medium = 4, low = 2, classes = [1, 2, 3] } }",
];
/// As [`WEIGHTED`], with two queues of one class.
const ALIKE: &[&str] = &[
    "flash.host.nvme.queues=4",
    "flash.host.nvme.in_controller=4",
    "flash.host.controller.command=20us",
    "flash.host.nvme.arbitration={ weighted = { burst = 1, high = 8, medium = 4, low = 2, classes = [2, 2, 3] } }",
];
/// Three jobs that fight for the controller.
const THREE: &[&str] = &["fio:rw=randread,bs=4k,iodepth=32,number_ios=1500,numjobs=3"];

const WRITERS: &str = "flash.host.controller.write={ cores = 1, command = \"5us\", unit = \"0us\" }";
const WRITES: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=8,number_ios=200"];
/// Reads enough to include a few late ones.
const MANY_READS: &[&str] = &["fio:rw=randread,bs=4k,iodepth=8,norandommap=1,number_ios=4000"];
const MANY_WRITES: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=8,norandommap=1,number_ios=4000"];
/// Writes that wait for nothing but the work that follows them: the flash is fast.
const UPKEEP: &[&str] = &[
    "flash.host.controller.write={ cores = 1, command = \"1us\", unit = \"0us\", upkeep = { write = \"100us\", batch = 8 } }",
    "flash.cell.program=[\"1us\"]",
    "flash.cell.erase=1us",
];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.host.link",
        context: PCIE,
        jobs: ONE_READ,
        values: &["{ pcie = {} }", "{ plain = { bandwidth = \"1GB/s\", latency = \"0us\" } }"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.host.link.pcie.generation",
        context: PCIE,
        jobs: LARGE_READ,
        values: &["1", "3", "5"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "flash.host.link.pcie.lanes",
        context: PCIE,
        jobs: LARGE_READ,
        values: &["1", "4", "16"],
        predicted: Falls(READ_MEAN),
    },
    // Larger packets have fewer headers.
    Case {
        key: "flash.host.link.pcie.max_payload",
        context: PCIE,
        jobs: ONE_READ,
        values: &["128B", "256B", "512B"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "flash.host.link.pcie.latency",
        context: PCIE,
        jobs: ONE_READ,
        values: &["0ns", "250ns", "1us"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.host.link.plain.bandwidth",
        context: &[],
        jobs: ONE_READ,
        values: &["100MB/s", "1GB/s", "16GB/s"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "flash.host.link.plain.latency",
        context: &[],
        jobs: ONE_READ,
        values: &["0ns", "1us", "5us"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.host.controller.cores",
        context: &["flash.host.controller.command=20us"],
        jobs: READ,
        values: &["1", "2", "4"],
        predicted: Rises("/io/all/iops"),
    },
    Case {
        key: "flash.host.controller.command",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "5us", "20us"],
        predicted: Rises(READ_MEAN),
    },
    // Acknowledgements reduce the bandwidth of packets.
    Case {
        key: "flash.host.link.pcie.flow_control",
        context: PCIE,
        jobs: LARGE_READ,
        values: &["0%", "8.07%", "50%"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.host.link.sata.generation",
        context: SATA,
        jobs: LARGE_READ,
        values: &["1", "2", "3"],
        predicted: Falls(READ_MEAN),
    },
    // Each frame waits for two answers.
    Case {
        key: "flash.host.link.sata.latency",
        context: SATA,
        jobs: ONE_READ,
        values: &["0ns", "100ns", "1us"],
        predicted: Rises(READ_MEAN),
    },
    // A command that finds no slot waits at the host.
    Case {
        key: "flash.host.ahci.slots",
        context: SATA,
        jobs: READ,
        values: &["1", "8", "32"],
        predicted: Falls("/io/read/slat_ns/mean"),
    },
    // A link that sleeps later is found awake by a thread that comes back before.
    Case {
        key: "flash.host.sleep.after",
        context: &["host.thread=10us", "flash.host.sleep.exit=40us"],
        jobs: ONE_READ,
        values: &["5us", "15us"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "flash.host.sleep.exit",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "10us", "40us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.host.ahci.command",
        context: SATA,
        jobs: ONE_READ,
        values: &["0us", "1us", "10us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.host.ahci.interrupt",
        context: SATA,
        jobs: ONE_READ,
        values: &["0us", "2us", "20us"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.host.controller.unit",
        context: &[],
        jobs: LARGE_READ,
        values: &["0us", "1us", "5us"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.host.controller.write.cores",
        context: &[WRITERS],
        jobs: WRITES,
        values: &["1", "2", "4"],
        predicted: Rises("/io/all/iops"),
    },
    Case {
        key: "flash.host.controller.write.command",
        context: &[WRITERS],
        jobs: ONE_WRITE,
        values: &["0us", "5us", "20us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "flash.host.controller.write.unit",
        context: &[WRITERS],
        jobs: ONE_WRITE,
        values: &["0us", "5us", "20us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "flash.host.controller.spread",
        context: &["flash.host.controller.command=50us"],
        jobs: MANY_READS,
        values: &["0", "0.5", "2"],
        predicted: Rises("/io/read/latency_ns/p99"),
    },
    Case {
        key: "flash.host.controller.write.spread",
        context: UPKEEP,
        jobs: ONE_WRITE,
        values: &["0", "0.5", "2"],
        predicted: Differ,
    },
    Case {
        key: "flash.host.controller.write.upkeep.write",
        context: UPKEEP,
        jobs: MANY_WRITES,
        values: &["50us", "100us", "200us"],
        predicted: Falls("/io/all/iops"),
    },
    // The longer a batch, the longer the stop that follows it.
    Case {
        key: "flash.host.controller.write.upkeep.batch",
        context: UPKEEP,
        jobs: MANY_WRITES,
        values: &["1", "16", "128"],
        predicted: Rises("/io/write/latency_ns/max"),
    },
    Case {
        key: "flash.host.controller.write.upkeep.spread",
        context: UPKEEP,
        jobs: MANY_WRITES,
        values: &["0", "0.5", "2"],
        predicted: Rises("/io/write/latency_ns/p99"),
    },
    // Collection that waits for the controller holds writes up.
    Case {
        key: "flash.host.controller.moved",
        context: &[],
        jobs: &["fio:rw=randwrite,bs=4k,iodepth=16,norandommap=1,randrepeat=0,loops=4"],
        values: &["0us", "100us", "1ms"],
        predicted: Falls("/io/all/iops"),
    },
    // Three jobs have three queues, two, or one.
    Case {
        key: "flash.host.nvme.queues",
        context: &["flash.host.nvme.depth=8"],
        jobs: THREE,
        values: &["1", "2", "3"],
        predicted: Rises("/io/all/iops"),
    },
    // Requests that do not fit the queue wait at the host.
    Case {
        key: "flash.host.nvme.depth",
        context: &[],
        jobs: READ,
        values: &["2", "8", "64"],
        predicted: Falls("/io/read/slat_ns/mean"),
    },
    Case {
        key: "flash.host.nvme.in_controller",
        context: &[],
        jobs: READ,
        values: &["1", "8", "64"],
        predicted: Falls("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.host.nvme.arbitration",
        context: WEIGHTED,
        jobs: THREE,
        values: &["{ weighted = {} }", "{ round_robin = { burst = 1 } }"],
        predicted: Rises(FIRST),
    },
    Case {
        key: "flash.host.nvme.arbitration.round_robin.burst",
        context: FULL,
        jobs: THREE,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.host.nvme.arbitration.weighted.burst",
        context: ALIKE,
        jobs: THREE,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.host.nvme.arbitration.weighted.high",
        context: WEIGHTED,
        jobs: THREE,
        values: &["1", "4", "16"],
        predicted: Falls(FIRST),
    },
    Case {
        key: "flash.host.nvme.arbitration.weighted.medium",
        context: WEIGHTED,
        jobs: THREE,
        values: &["1", "4", "16"],
        predicted: Falls("/io/flows/1/read/latency_ns/mean"),
    },
    Case {
        key: "flash.host.nvme.arbitration.weighted.low",
        context: WEIGHTED,
        jobs: THREE,
        values: &["1", "4", "16"],
        predicted: Falls("/io/flows/2/read/latency_ns/mean"),
    },
    Case {
        key: "flash.host.nvme.arbitration.weighted.classes",
        context: WEIGHTED,
        jobs: THREE,
        values: &["[0, 2, 3]", "[1, 2, 3]", "[3, 2, 1]"],
        predicted: Rises(FIRST),
    },
    Case {
        key: "flash.host.nvme.doorbell",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "1us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.host.nvme.fetch",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "1us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.host.nvme.interrupt",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "1us", "5us"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "host.submit",
        context: &[],
        jobs: ONE_WRITE,
        values: &["0us", "1us", "5us"],
        predicted: Rises("/io/write/slat_ns/mean"),
    },
    Case {
        key: "host.complete",
        context: &[],
        jobs: ONE_WRITE,
        values: &["0us", "1us", "5us"],
        predicted: Rises("/io/write/clat_ns/mean"),
    },
    // A core that sleeps only after a longer wait than that for a read is awake.
    Case {
        key: "host.sleep.after",
        context: &["host.sleep.exit=40us"],
        jobs: ONE_READ,
        values: &["0us", "10ms"],
        predicted: Falls("/io/read/clat_ns/mean"),
    },
    Case {
        key: "host.sleep.exit",
        context: &[],
        jobs: ONE_READ,
        values: &["0us", "10us", "40us"],
        predicted: Rises("/io/read/clat_ns/mean"),
    },
    // A job of one request at a time does not count it as latency, and does less.
    Case {
        key: "host.thread",
        context: &[],
        jobs: ONE_WRITE,
        values: &["0us", "1us", "5us"],
        predicted: Falls("/io/all/iops"),
    },
];
