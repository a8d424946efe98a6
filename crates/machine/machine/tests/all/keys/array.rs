//! Geometry, cells, channels and dies.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{Case, LARGE_READ, MIXED, ONE_READ, ONE_WRITE, OVERWRITE, READ};

const PAGES: &str = "/flash/0/capacity/physical_pages";
const READ_MEAN: &str = "/io/read/latency_ns/mean";
const WRITE_MEAN: &str = "/io/write/latency_ns/mean";
const IOPS: &str = "/io/all/iops";

/// Reads wait behind programs and erases, and may interrupt them.
const SUSPENDING: &[&str] = &[
    "flash.die.scheduler.read_first.max_wait=50ms",
    "flash.die.suspend.program=true",
    "flash.die.suspend.erase=true",
    "flash.die.suspend.latency=20us",
    "flash.die.suspend.resume=20us",
    "flash.die.suspend.least=50us",
    "flash.die.suspend.limit=4",
];
/// Power for two dies that program.
const BUDGET: &[&str] = &["flash.die.power={ limit = \"20mW\", program = \"10mW\", erase = \"10mW\" }"];
/// One at a time, anywhere.
const READ_ONE: &[&str] = &["fio:rw=randread,bs=4k,number_ios=500"];
const WRITE_ONE: &[&str] = &["fio:rw=randwrite,bs=4k,number_ios=200"];
const LARGE_PAGES: &[&str] = &["flash.geometry.page_size=16KiB"];
const TLC: &[&str] = &[
    "flash.cell.bits=3",
    "flash.geometry.pages=24",
    "flash.cell.read=[\"40us\",\"60us\",\"90us\"]",
    "flash.cell.program=[\"300us\",\"600us\",\"900us\"]",
];
const ONE_SHOT: &[&str] =
    &["flash.cell.bits=3", "flash.geometry.pages=24", "flash.ftl.over_provisioning=40%"];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.geometry.channels",
        context: &[],
        jobs: READ,
        values: &["1", "2", "4"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.geometry.ways",
        context: &[],
        jobs: READ,
        values: &["1", "2", "4"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.geometry.dies",
        context: &[],
        jobs: READ,
        values: &["1", "2", "4"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.geometry.planes",
        context: &[],
        jobs: READ,
        values: &["1", "2", "4"],
        predicted: Rises(PAGES),
    },
    Case {
        key: "flash.geometry.blocks",
        context: &[],
        jobs: READ,
        values: &["32", "48", "64"],
        predicted: Rises(PAGES),
    },
    Case {
        key: "flash.geometry.pages",
        context: &[],
        jobs: READ,
        values: &["16", "24", "32"],
        predicted: Rises(PAGES),
    },
    // A page of 16 KiB moves four map units at once.
    Case {
        key: "flash.geometry.page_size",
        context: &[],
        jobs: LARGE_READ,
        values: &["4KiB", "8KiB", "16KiB"],
        predicted: Falls(READ_MEAN),
    },
    // Pages of more bits are of more types, each with its own time.
    Case {
        key: "flash.cell.bits",
        context: &["flash.geometry.pages=24", "flash.cell.programming=one_shot"],
        jobs: ONE_WRITE,
        values: &["1", "2", "3"],
        predicted: Differ,
    },
    Case {
        key: "flash.cell.layout",
        context: TLC,
        jobs: READ,
        values: &["by_word_line", "planar"],
        predicted: Differ,
    },
    Case {
        key: "flash.cell.programming",
        context: ONE_SHOT,
        jobs: OVERWRITE,
        values: &["page", "one_shot", "two_pass"],
        predicted: Differ,
    },
    Case {
        key: "flash.cell.read",
        context: &[],
        jobs: ONE_READ,
        values: &["[\"3us\"]", "[\"50us\"]", "[\"80us\"]"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.cell.program",
        context: &[],
        jobs: ONE_WRITE,
        values: &["[\"100us\"]", "[\"600us\"]", "[\"1ms\"]"],
        predicted: Rises(WRITE_MEAN),
    },
    Case {
        key: "flash.cell.erase",
        context: &[],
        jobs: OVERWRITE,
        values: &["1ms", "3ms", "10ms"],
        predicted: Rises(WRITE_MEAN),
    },
    // Blocks that preconditioning has worn: they are programmed faster and erased more slowly.
    Case {
        key: "flash.cell.program_drift",
        context: &["flash.precondition=steady"],
        jobs: ONE_WRITE,
        values: &["0%", "10%", "50%"],
        predicted: Falls("/breakdown_ns/write/array"),
    },
    Case {
        key: "flash.cell.erase_drift",
        context: &["flash.precondition=steady"],
        jobs: OVERWRITE,
        values: &["0%", "50%"],
        predicted: Rises(WRITE_MEAN),
    },
    // Times that differ from block to block.
    Case {
        key: "flash.cell.spread.read",
        context: &["flash.cell.spread={ program = \"0%\", erase = \"0%\", read = \"0%\" }"],
        jobs: READ_ONE,
        values: &["1%", "5%", "20%"],
        predicted: Rises("/io/read/latency_ns/max"),
    },
    Case {
        key: "flash.cell.spread.program",
        context: &["flash.cell.spread={ program = \"0%\", erase = \"0%\", read = \"0%\" }"],
        jobs: WRITE_ONE,
        values: &["1%", "5%", "20%"],
        predicted: Rises("/io/write/latency_ns/max"),
    },
    Case {
        key: "flash.cell.spread.erase",
        context: &["flash.cell.spread={ program = \"0%\", erase = \"0%\", read = \"0%\" }"],
        jobs: OVERWRITE,
        values: &["0%", "5%", "25%"],
        predicted: Differ,
    },
    Case {
        key: "flash.channel.interface",
        context: &["flash.channel.rate=50MT/s"],
        jobs: ONE_WRITE,
        values: &["sdr", "nv_ddr2", "toggle"],
        predicted: Differ,
    },
    // Their commands take equally long; what tells them apart is how fast they may be.
    Case {
        key: "flash.channel.interface",
        context: &["flash.channel.rate=1GT/s"],
        jobs: ONE_READ,
        values: &["nv_ddr3", "nv_ddr2", "sdr"],
        predicted: RefusedAfterFirst("`"),
    },
    Case {
        key: "flash.channel.interface",
        context: &["flash.channel.rate=2GT/s"],
        jobs: ONE_READ,
        values: &["nv_lpddr4", "nv_ddr3"],
        predicted: RefusedAfterFirst("`"),
    },
    Case {
        key: "flash.channel.rate",
        context: &[],
        jobs: ONE_READ,
        values: &["200MT/s", "400MT/s", "800MT/s"],
        predicted: Falls("/breakdown_ns/read/channel"),
    },
    Case {
        key: "flash.channel.width",
        context: &[],
        jobs: ONE_READ,
        values: &["8", "16"],
        predicted: Falls("/breakdown_ns/read/channel"),
    },
    Case {
        key: "flash.channel.arbiter",
        context: &["flash.channel.rate=100MT/s", "flash.geometry.ways=4"],
        jobs: MIXED,
        values: &["fifo", "data_first", "command_first"],
        predicted: Differ,
    },
    Case {
        key: "flash.die.scheduler",
        context: &[],
        jobs: MIXED,
        values: &["oldest", "in_order", "priority", "read_first"],
        predicted: Differ,
    },
    // The longer programs may have to wait, the sooner reads go.
    Case {
        key: "flash.die.scheduler.read_first.max_wait",
        context: &[],
        jobs: MIXED,
        values: &["100us", "2ms", "20ms"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "flash.die.multi_plane",
        context: &["flash.ftl.stripe=PCWD"],
        jobs: MIXED,
        values: &["off", "same_block", "same_page"],
        predicted: Rises("/flash/0/multi_plane"),
    },
    // One command at a time for all dies of a way, or one for each.
    Case {
        key: "flash.die.interleave",
        context: &["flash.geometry.dies=2"],
        jobs: READ,
        values: &["false", "true"],
        predicted: Rises(IOPS),
    },
    // The more reads are looked at, the more find a partner.
    Case {
        key: "flash.die.partner_search",
        context: &[],
        jobs: READ,
        values: &["1", "16"],
        predicted: Rises("/flash/0/multi_plane"),
    },
    // Reads of the planes of a die at the same time, or in turn.
    Case {
        key: "flash.die.independent_reads",
        context: &["flash.geometry.planes=2", "flash.die.multi_plane=off"],
        jobs: READ,
        values: &["false", "true"],
        predicted: Rises(IOPS),
    },
    // Four units a page, read one after another: three of four need no sensing.
    Case {
        key: "flash.die.register_reads",
        context: LARGE_PAGES,
        jobs: &["fio:rw=read,bs=4k,number_ios=400"],
        values: &["false", "true"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.die.join_reads",
        context: LARGE_PAGES,
        jobs: &["fio:rw=read,bs=4k,iodepth=16,number_ios=400"],
        values: &["false", "true"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.die.suspend.program",
        context: SUSPENDING,
        jobs: MIXED,
        values: &["false", "true"],
        predicted: Rises("/flash/0/suspends"),
    },
    Case {
        key: "flash.die.suspend.erase",
        context: SUSPENDING,
        jobs: MIXED,
        values: &["false", "true"],
        predicted: Rises("/flash/0/suspends"),
    },
    Case {
        key: "flash.die.suspend.latency",
        context: SUSPENDING,
        jobs: MIXED,
        values: &["1us", "20us", "200us"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.die.suspend.resume",
        context: SUSPENDING,
        jobs: MIXED,
        values: &["1us", "20us", "200us"],
        predicted: Rises(WRITE_MEAN),
    },
    Case {
        key: "flash.die.power.limit",
        context: BUDGET,
        jobs: OVERWRITE,
        values: &["10mW", "20mW", "40mW"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.die.power.program",
        context: BUDGET,
        jobs: OVERWRITE,
        values: &["5mW", "10mW", "20mW"],
        predicted: Falls(IOPS),
    },
    Case {
        key: "flash.die.power.erase",
        context: &[BUDGET[0], "flash.die.power.limit=21mW"],
        jobs: OVERWRITE,
        // Beside two programs; by itself.
        values: &["1mW", "21mW"],
        predicted: Falls(IOPS),
    },
    // Operations that have nearly ended are not interrupted.
    Case {
        key: "flash.die.suspend.least",
        context: SUSPENDING,
        jobs: MIXED,
        values: &["1us", "200us", "2ms"],
        predicted: Falls("/flash/0/suspends"),
    },
    Case {
        key: "flash.die.suspend.limit",
        context: SUSPENDING,
        jobs: MIXED,
        values: &["0", "1", "4"],
        predicted: Rises("/flash/0/suspends"),
    },
];
