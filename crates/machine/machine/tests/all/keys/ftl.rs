//! The translation layer and the buffer.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{Case, LARGE_READ, LONG_SKEWED, MIXED, ONE_READ, ONE_WRITE, OVERWRITE, READ, SKEWED};

const READ_MEAN: &str = "/io/read/latency_ns/mean";
const WRITE_MEAN: &str = "/io/write/latency_ns/mean";
const MAP_READS: &str = "/flash/0/reads/mapping";

const IOPS: &str = "/io/all/iops";
const MULTI_PLANE: &str = "/flash/0/multi_plane";

/// DDR4 beside the controller.
const MAPPED: &str = "flash.ftl.map_memory={ entry = \"4B\", latency = \"80ns\", bandwidth = \"10GB/s\" }";
/// The planes of a die are looked at one after another.
const GATHERED: &[&str] =
    &["flash.precondition=none", "flash.die.multi_plane=same_page", "flash.ftl.stripe=PWCD"];
/// Two writes at a time.
const BURST: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=2,number_ios=150"];
const DEMAND: &[&str] =
    &["flash.ftl.mapping={ demand = { capacity = \"4KiB\", granularity = \"entry\", cached_entry = \"8B\", \
     stored_entry = \"8B\", read = \"4KiB\" } }"];
const DEMAND_PAGE: &[&str] =
    &["flash.ftl.mapping={ demand = { capacity = \"8KiB\", granularity = \"page\", cached_entry = \"8B\", \
     stored_entry = \"8B\", read = \"4KiB\" } }"];
const BUFFER: &[&str] = &[
    "flash.buffer={ capacity = \"1MiB\", reads = true, writes = true, high = \"50%\", low = \"25%\", \
     in_flight = \"128KiB\", protected = true, eviction = \"lru\", admission = \"always\", moves = \"units\", \
     bandwidth = \"1GB/s\", latency = \"1us\" }",
];
/// The same, small, and drained when it is full only.
const FULL: &[&str] = &[
    BUFFER[0],
    "flash.buffer.capacity=256KiB",
    "flash.buffer.destage=when_full",
    "flash.buffer.high=100%",
    "flash.buffer.low=90%",
];
/// Settings of a buffer where dies are chosen at the write.
const DESTAGED: &[&str] = &[BUFFER[0], "flash.ftl.allocation=least_queued", "flash.ftl.reclaim_unit=block"];
const WATCHED: &[&str] =
    &[DESTAGED[0], DESTAGED[1], DESTAGED[2], "flash.buffer.destage={ two_speed = { window = \"500us\" } }"];
/// Pages of three types, some of which may be chosen.
const TYPED: &[&str] = &[
    DESTAGED[0],
    DESTAGED[1],
    DESTAGED[2],
    "flash.buffer.destage=two_speed",
    "flash.ftl.over_provisioning=50%",
    "flash.cell.bits=3",
    "flash.cell.program=[\"560us\", \"2200us\", \"5ms\"]",
];
const BAD: &[&str] = &["flash.ftl.over_provisioning=40%", "flash.bad_blocks={ factory = \"0%\" }"];
/// Blocks that live for 20 erases or so.
const WORN: &[&str] = &[
    "flash.ftl.over_provisioning=50%",
    "flash.bad_blocks={ factory = \"0%\", grown = { endurance = 30, shape = 4.0 } }",
];
const LONG_OVERWRITE: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=16,norandommap=1,randrepeat=0,loops=8"];
/// A device that holds nothing, behind a buffer.
const HALF: &[&str] = &[BUFFER[0], "flash.precondition=none"];
/// Reads in order, one at a time; and four such jobs, each in a quarter.
const STREAM: &[&str] = &["fio:rw=read,bs=4k,number_ios=500"];
const STREAMS: &[&str] = &[
    "fio:rw=read,bs=4k,number_ios=200",
    "fio:rw=read,bs=4k,number_ios=200,offset=25%",
    "fio:rw=read,bs=4k,number_ios=200,offset=50%",
    "fio:rw=read,bs=4k,number_ios=200,offset=75%",
];
/// Half of the reads go to units that fit the buffer.
const LOCAL_READ: &[&str] =
    &["fio:rw=randread,bs=4k,iodepth=8,randrepeat=0,loops=2,random_distribution=zoned:50/2:50/98"];
const LOCAL_MIX: &[&str] =
    &["fio:rw=randrw,rwmixread=50,bs=4k,iodepth=8,randrepeat=0,loops=3,random_distribution=zoned:50/5:50/95"];
/// A tenth of the space takes nine tenths of the writes.
const HOT_AND_COLD: &[&str] = &[
    "fio:rw=randwrite,bs=4k,iodepth=9,size=10%,randrepeat=0,loops=30",
    "fio:rw=randwrite,bs=4k,iodepth=1,offset=10%,randrepeat=0",
];
/// Jobs whose data all move.
const HOT_AND_WARM: &[&str] = &[
    "fio:rw=randwrite,bs=4k,iodepth=8,size=20%,norandommap=1,randrepeat=0,loops=40",
    "fio:rw=randwrite,bs=4k,iodepth=4,offset=20%,norandommap=1,randrepeat=0,loops=6",
];
const SYNCED: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=8,number_ios=1000,fsync=16"];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "flash.ftl.parity",
        context: &["flash.ftl.over_provisioning=60%"],
        jobs: OVERWRITE,
        values: &["1", "3"],
        predicted: Falls("/flash/0/parity/programs"),
    },
    // Half a map unit must be read before it is written.
    Case {
        key: "flash.ftl.map_unit",
        context: &[],
        jobs: &["fio:rw=randwrite,bs=2k,iodepth=4,number_ios=500"],
        values: &["2KiB", "4KiB"],
        predicted: Rises("/flash/0/reads/rmw"),
    },
    Case {
        key: "flash.ftl.mapping",
        context: DEMAND,
        jobs: READ,
        values: &["table", "{ demand = {} }"],
        predicted: Rises(MAP_READS),
    },
    Case {
        key: "flash.ftl.map_memory.entry",
        context: &[MAPPED],
        jobs: ONE_READ,
        values: &["4B", "5B", "8B"],
        predicted: Rises("/flash/0/mapping_bytes"),
    },
    Case {
        key: "flash.ftl.map_memory.latency",
        context: &[MAPPED],
        jobs: ONE_READ,
        values: &["0ns", "80ns", "1us"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.ftl.map_memory.bandwidth",
        context: &[MAPPED],
        jobs: LARGE_READ,
        values: &["1MB/s", "10MB/s", "1GB/s"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "flash.ftl.mapping.demand.capacity",
        context: DEMAND,
        jobs: LOCAL_READ,
        values: &["1KiB", "4KiB", "32KiB"],
        predicted: Falls(MAP_READS),
    },
    Case {
        key: "flash.ftl.mapping.demand.granularity",
        context: DEMAND,
        jobs: LARGE_READ,
        values: &["entry", "page"],
        predicted: Falls(MAP_READS),
    },
    Case {
        key: "flash.ftl.mapping.demand.cached_entry",
        context: DEMAND,
        jobs: LOCAL_READ,
        values: &["4B", "8B", "32B"],
        predicted: Rises(MAP_READS),
    },
    Case {
        key: "flash.ftl.mapping.demand.stored_entry",
        context: DEMAND_PAGE,
        jobs: LOCAL_READ,
        values: &["4B", "8B", "16B"],
        predicted: Rises(MAP_READS),
    },
    Case {
        key: "flash.ftl.mapping.demand.read",
        context: DEMAND,
        jobs: ONE_READ,
        values: &["512B", "1KiB", "4KiB"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "flash.ftl.reclaim_unit",
        context: &[],
        jobs: OVERWRITE,
        values: &["block", "plane_set", "superblock"],
        predicted: Differ,
    },
    // Consecutive pages of 64 KiB lie on one channel, or on both.
    Case {
        key: "flash.ftl.stripe",
        context: &["flash.precondition=none"],
        jobs: &["fio:rw=randwrite,bs=8k,iodepth=1,number_ios=100"],
        values: &["CWDP", "WCDP", "PWDC"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.allocation",
        context: &[],
        jobs: MIXED,
        values: &["striped", "round_robin", "least_queued", "restricted", "full"],
        predicted: Differ,
    },
    // What comes from the host one by one shares commands if a die waits for it.
    Case {
        key: "flash.ftl.allocation.full.gather",
        context: GATHERED,
        jobs: BURST,
        values: &["0ns", "100us"],
        predicted: Rises(MULTI_PLANE),
    },
    Case {
        key: "flash.ftl.allocation.full.look",
        context: &[],
        jobs: MIXED,
        values: &["1", "2", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.pages",
        context: TYPED,
        jobs: OVERWRITE,
        values: &["in_order", "write_point", "by_type"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.pages.by_type.open",
        context: TYPED,
        jobs: OVERWRITE,
        values: &["1", "2", "6"],
        predicted: Differ,
    },
    // Without it, no page is ever skipped.
    Case {
        key: "flash.ftl.pages.by_type.region",
        context: TYPED,
        jobs: OVERWRITE,
        values: &["0B", "64GB"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.pages.write_point.region",
        context: TYPED,
        jobs: OVERWRITE,
        values: &["0B", "64GB"],
        predicted: Differ,
    },
    // The less is free, the longer waits a write whose plane is at work.
    Case {
        key: "flash.ftl.allocation.restricted.free",
        context: &[],
        jobs: OVERWRITE,
        values: &["P", "WP", "CWP"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.allocation.restricted.gather",
        context: GATHERED,
        jobs: BURST,
        values: &["0ns", "100us"],
        predicted: Rises(MULTI_PLANE),
    },
    Case {
        key: "flash.ftl.allocation.restricted.look",
        context: &[],
        jobs: MIXED,
        values: &["1", "2", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.allocation.least_queued.look",
        context: &[],
        jobs: MIXED,
        values: &["1", "2", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.over_provisioning",
        context: &[],
        jobs: OVERWRITE,
        values: &["20%", "30%", "40%"],
        predicted: Falls("/flash/0/write_amplification"),
    },
    Case {
        key: "flash.ftl.gc.victim",
        context: &["flash.precondition=steady"],
        jobs: SKEWED,
        values: &["greedy", "cost_benefit", "fifo", "random", "d_choices", "windowed_greedy"],
        predicted: Differ,
    },
    // Hot data gets more than its share of the spare space.
    Case {
        key: "flash.ftl.gc.victim",
        context: &["flash.ftl.over_provisioning=30%", "flash.ftl.placements=2"],
        jobs: HOT_AND_WARM,
        values: &["greedy", "marginal_gain"],
        predicted: Falls("/flash/0/write_amplification"),
    },
    // The best of more units is emptier.
    Case {
        key: "flash.ftl.gc.victim.d_choices.d",
        context: &[],
        jobs: OVERWRITE,
        values: &["1", "2", "8"],
        predicted: Falls("/flash/0/write_amplification"),
    },
    Case {
        key: "flash.ftl.gc.victim.windowed_greedy.window",
        context: &[],
        jobs: OVERWRITE,
        values: &["1", "4", "16"],
        predicted: Falls("/flash/0/write_amplification"),
    },
    Case {
        key: "flash.ftl.gc.start",
        context: &["flash.ftl.gc.stop=6"],
        jobs: OVERWRITE,
        values: &["1", "3", "5"],
        predicted: Rises("/flash/0/capacity/reserved_pages"),
    },
    // Reclaiming that goes on for longer frees more at a time.
    Case {
        key: "flash.ftl.gc.stop",
        context: &[],
        jobs: OVERWRITE,
        values: &["4", "5", "6"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.gc.hard",
        context: &["flash.ftl.gc.mode=background"],
        jobs: OVERWRITE,
        values: &["1", "2", "3"],
        predicted: Rises("/flash/0/free_blocks_min"),
    },
    Case {
        key: "flash.ftl.gc.mode",
        context: &[],
        jobs: MIXED,
        values: &["preemptible", "foreground", "background"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.gc.scope",
        context: &["flash.ftl.allocation=round_robin"],
        jobs: OVERWRITE,
        values: &["local", "global"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.gc.window",
        context: &[],
        jobs: OVERWRITE,
        values: &["1", "2", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.ftl.gc.copy_back",
        context: &[],
        jobs: OVERWRITE,
        values: &["false", "true"],
        predicted: Rises("/flash/0/copy_backs"),
    },
    Case {
        key: "flash.ftl.wear.dynamic",
        context: &[],
        jobs: LONG_SKEWED,
        values: &["false", "true"],
        predicted: Falls("/flash/0/erase_count/max"),
    },
    Case {
        key: "flash.ftl.wear.static_gap",
        context: &[],
        jobs: SKEWED,
        values: &["100", "2"],
        predicted: Rises("/flash/0/wear_programs"),
    },
    // Blocks of data that is written often empty themselves, if they hold no other.
    Case {
        key: "flash.ftl.placements",
        context: &["flash.ftl.over_provisioning=30%"],
        jobs: HOT_AND_COLD,
        values: &["1", "2"],
        predicted: Falls("/flash/0/write_amplification"),
    },
    Case {
        key: "flash.ftl.gc.streams",
        context: &["flash.ftl.over_provisioning=30%", "flash.ftl.placements=2"],
        jobs: HOT_AND_WARM,
        values: &["mixed", "isolated"],
        predicted: Differ,
    },
    // Every stream has a reclaim unit open, and what it has open is not spare.
    Case {
        key: "flash.ftl.placements",
        context: &["flash.ftl.over_provisioning=16%"],
        jobs: ONE_WRITE,
        values: &["1", "2"],
        predicted: RefusedAfterFirst("are frontiers"),
    },
    Case {
        key: "flash.ftl.unwritten_read",
        context: &["flash.precondition=none"],
        jobs: MIXED,
        values: &["zero", "as_written", "created"],
        predicted: Differ,
    },
    // Bad blocks are spare space lost.
    Case {
        key: "flash.bad_blocks.factory",
        context: BAD,
        jobs: OVERWRITE,
        values: &["0%", "4%", "8%"],
        predicted: Rises("/flash/0/write_amplification"),
    },
    Case {
        key: "flash.bad_blocks.grown.endurance",
        context: WORN,
        jobs: LONG_OVERWRITE,
        values: &["10", "20", "1000000"],
        predicted: Differ,
    },
    Case {
        key: "flash.bad_blocks.grown.shape",
        context: WORN,
        jobs: LONG_OVERWRITE,
        values: &["1.0", "2.0", "8.0"],
        predicted: Differ,
    },
    // The limit of writes under way bounds the write rate.
    Case {
        key: "flash.buffer.throttle",
        context: BUFFER,
        jobs: OVERWRITE,
        values: &["16KiB", "64KiB", "512KiB"],
        predicted: Falls(WRITE_MEAN),
    },
    // Data soon overwritten are flushed once.
    Case {
        key: "flash.buffer.keep_rewrites",
        context: BUFFER,
        jobs: LOCAL_MIX,
        values: &["1us", "10ms"],
        predicted: Falls("/flash/0/host_programs"),
    },
    // Half of every unit is written.
    Case {
        key: "flash.buffer.moves",
        context: HALF,
        jobs: &["fio:rw=randwrite,bs=2k,ba=4k,iodepth=8,number_ios=1000"],
        values: &["units", "sectors"],
        predicted: Falls("/flash/0/utilisation/channel/0"),
    },
    Case {
        key: "flash.buffer.capacity",
        context: BUFFER,
        jobs: LOCAL_READ,
        values: &["256KiB", "1MiB", "4MiB"],
        predicted: Falls("/flash/0/reads/host"),
    },
    Case {
        key: "flash.buffer.reads",
        context: BUFFER,
        jobs: LOCAL_READ,
        values: &["true", "false"],
        predicted: Rises("/flash/0/reads/host"),
    },
    Case {
        key: "flash.buffer.writes",
        context: BUFFER,
        jobs: ONE_WRITE,
        values: &["true", "false"],
        predicted: Rises(WRITE_MEAN),
    },
    // A small buffer that is all dirty: reads go to flash at once, or wait for a program first.
    Case {
        key: "flash.buffer.full_reads",
        context: FULL,
        jobs: &[
            "fio:name=w,rw=randwrite,bs=4k,iodepth=64,number_ios=4000",
            "fio:name=r,rw=randread,bs=4k,iodepth=1,number_ios=200",
        ],
        values: &["pass", "wait"],
        predicted: Rises(READ_MEAN),
    },
    // The later flushing begins, the more overwrites find their unit still here.
    Case {
        key: "flash.buffer.high",
        context: BUFFER,
        jobs: LOCAL_MIX,
        values: &["30%", "60%", "90%"],
        predicted: Falls("/flash/0/host_programs"),
    },
    Case {
        key: "flash.buffer.low",
        context: BUFFER,
        jobs: LOCAL_MIX,
        values: &["10%", "25%", "50%"],
        predicted: Falls("/flash/0/host_programs"),
    },
    Case {
        key: "flash.buffer.destage",
        context: DESTAGED,
        jobs: LOCAL_MIX,
        values: &["watermarks", "when_full", "two_speed"],
        predicted: Differ,
    },
    // One die at a time, and all.
    Case {
        key: "flash.buffer.destage.two_speed.at_once",
        context: DESTAGED,
        jobs: LOCAL_MIX,
        values: &["4KiB", "1MiB"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.destage.two_speed.window",
        context: DESTAGED,
        jobs: LOCAL_MIX,
        values: &["0ns", "100us", "1ms"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.destage.two_speed.busy",
        context: WATCHED,
        jobs: LOCAL_MIX,
        values: &["1%", "100%"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.in_flight",
        context: BUFFER,
        jobs: OVERWRITE,
        values: &["16KiB", "64KiB", "256KiB"],
        predicted: Falls(WRITE_MEAN),
    },
    Case {
        key: "flash.buffer.protected",
        context: BUFFER,
        jobs: SYNCED,
        values: &["true", "false"],
        predicted: Rises("/io/flush/latency_ns/mean"),
    },
    Case {
        key: "flash.buffer.eviction",
        context: BUFFER,
        jobs: LOCAL_MIX,
        values: &["lru", "fifo", "{ cflru = { window = 4 } }"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.eviction.cflru.window",
        context: BUFFER,
        jobs: LOCAL_MIX,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.admission",
        context: BUFFER,
        jobs: LOCAL_READ,
        values: &["always", "writes_only", "second_touch"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.admission.second_touch.ghosts",
        context: BUFFER,
        jobs: LOCAL_READ,
        values: &["16", "256", "4096"],
        predicted: Differ,
    },
    Case {
        key: "flash.buffer.look_ahead",
        context: BUFFER,
        jobs: STREAM,
        values: &["none", "sequential"],
        predicted: Rises(IOPS),
    },
    Case {
        key: "flash.buffer.look_ahead.sequential.window",
        context: BUFFER,
        jobs: STREAM,
        values: &["4KiB", "16KiB", "64KiB"],
        predicted: Rises(IOPS),
    },
    // The later it begins, the less is read ahead.
    Case {
        key: "flash.buffer.look_ahead.sequential.trigger",
        context: BUFFER,
        jobs: STREAM,
        values: &["1", "16", "256"],
        predicted: Falls("/flash/0/look_ahead/issued"),
    },
    // Four streams, of which one or two are lost sight of.
    Case {
        key: "flash.buffer.look_ahead.sequential.streams",
        context: BUFFER,
        jobs: STREAMS,
        values: &["1", "8"],
        predicted: Rises("/flash/0/look_ahead/used"),
    },
    Case {
        key: "flash.buffer.bandwidth",
        context: BUFFER,
        jobs: ONE_WRITE,
        values: &["100MB/s", "1GB/s", "10GB/s"],
        predicted: Falls(WRITE_MEAN),
    },
    Case {
        key: "flash.buffer.latency",
        context: BUFFER,
        jobs: ONE_WRITE,
        values: &["100ns", "1us", "10us"],
        predicted: Rises(WRITE_MEAN),
    },
];
