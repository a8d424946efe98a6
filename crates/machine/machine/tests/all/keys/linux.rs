//! The kernel of a host: its cores, page cache, write-back, file system, block layer and driver.

use super::Case;
use super::Predicted::{Differ, Falls, Rises};

const FLUSH: &str = "/io/flush/latency_ns/mean";
const READ_MEAN: &str = "/io/read/latency_ns/mean";

/// Less than memory, with no advice to the kernel; and more.
const READ: &[&str] = &["fio:rw=read,bs=4k,size=8m,direct=0,fadvise_hint=0"];
const READ_FAR: &[&str] =
    &["fio:rw=randread,bs=4k,size=256m,number_ios=60000,random_distribution=zipf:0.8,direct=0"];
/// More than may be dirty.
const WRITE: &[&str] = &["fio:rw=write,bs=64k,size=256m,direct=0"];
const SYNCED: &[&str] = &["fio:rw=randwrite,bs=4k,size=16m,number_ios=400,fsync=4,direct=0"];
/// Writes slow enough that data grow old.
const SLOW: &[&str] = &["fio:rw=write,bs=64k,rate=1m,size=6m,direct=0"];
const MIXED: &[&str] = &[
    "fio:rw=randread,bs=16k,size=256m,number_ios=600,numjobs=6,offset=512m,norandommap=1,direct=0",
    "fio:rw=randwrite,bs=4k,size=256m,number_ios=12000,direct=0",
];
const LONG_MIXED: &[&str] = &[
    "fio:rw=randread,bs=4k,size=1g,numjobs=6,offset=2g,norandommap=1,direct=0,time_based,runtime=1200ms",
    "fio:rw=randwrite,bs=4k,size=512m,norandommap=1,direct=0,time_based,runtime=1200ms",
];
/// Past the page cache, with more requests of each process than the drive takes.
const QUEUED: &[&str] =
    &["fio:rw=randread,bs=4k,size=256m,number_ios=2000,numjobs=3,iodepth=32,direct=1,ioengine=libaio"];
/// Past the page cache, with a thread that looks for completions.
const POLLED: &[&str] =
    &["fio:rw=randread,bs=4k,size=256m,number_ios=400,direct=1,ioengine=io_uring,hipri=1"];
/// Programs that compute, and wait for each other's core.
const CROWD: &[&str] = &["ungzip:processes=3"];
const LARGE_CROWD: &[&str] = &["ungzip:processes=12"];
const UPLOAD: &[&str] = &["apache-u:size=64MiB,rate=2000,fsync=yes,requests=400"];

/// A file is cut to nothing, written anew and closed.
const UNSYNCED: &[&str] = &["apache-u:size=64MiB,rate=2000,fsync=no,requests=2000"];
/// Neighbours are read at the same time.
const CLOSE: &[&str] = &["fio:rw=randread,bs=4k,size=8m,number_ios=256,numjobs=16,norandommap=1,direct=0"];
const REWRITE: &[&str] = &["strace:file=tests/keys/rewrite.strace"];

const ONE_CORE: &[&str] = &["host.linux.cores.count=1", "host.linux.memory=1GiB", "sim.until=400ms"];
/// A drive that is slower than memory.
const LINK: &[&str] = &["flash.host.link={ plain = { bandwidth = \"200MB/s\", latency = \"1us\" } }"];
/// A drive whose buffer fills, and says so.
const FILLS: &[&str] = &[
    "flash.buffer.capacity=8MiB",
    "flash.buffer.in_flight=4MiB",
    "flash.buffer.look_ahead=none",
    "flash.buffer.high=80%",
    "flash.buffer.low=20%",
    "flash.buffer.destage=two_speed",
    "host.linux.victimization={ announce = true, full = { dirty_background_ratio = \"5%\", dirty_ratio = \"10%\" } }",
];
const WRITTEN: &[&str] = &["flash.precondition=sequential"];
/// Blocks are allocated when pages are written, and are the file's at once.
const PLAIN: &[&str] = &["host.linux.fs.ext4.dioread_nolock=false"];
/// A drive that takes few commands at a time.
const NARROW: &[&str] =
    &["host.linux.block.wbt_lat=0s", "flash.host.nvme.queues=1", "flash.host.nvme.depth=4"];
const DEADLINE: &[&str] = &[
    "host.linux.block.scheduler={ mq_deadline = {} }",
    "host.linux.block.wbt_lat=0s",
    "flash.host.nvme.queues=1",
    "flash.host.nvme.depth=4",
];
const ALONE: &[&str] = &[
    "host.linux.block.scheduler={ mq_deadline = {} }",
    "host.linux.page_cache.readahead=none",
    "flash.host.nvme.queues=1",
    "flash.host.nvme.depth=3",
];
const DEEP: &[&str] = &[
    "host.linux.block.scheduler={ mq_deadline = {} }",
    "host.linux.block.nr_requests=128",
    "host.linux.block.wbt_lat=0s",
    "flash.host.nvme.queues=1",
    "flash.host.nvme.depth=4",
];
const CFQ: &[&str] = &[
    "host.linux.block.scheduler={ cfq = {} }",
    "host.linux.block.nr_requests=128",
    "host.linux.block.wbt_lat=0s",
    "flash.host.nvme.queues=1",
    "flash.host.nvme.depth=4",
];
const KYBER: &[&str] = &[
    "host.linux.block.scheduler={ kyber = {} }",
    "host.linux.block.nr_requests=512",
    "host.linux.block.wbt_lat=0s",
    "flash.host.nvme.queues=1",
    "flash.host.nvme.depth=8",
];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "host.linux.memory",
        context: &[],
        jobs: READ_FAR,
        values: &["32MiB", "64MiB", "128MiB"],
        predicted: Rises("/host/0/page_cache/pages"),
    },
    Case {
        key: "host.linux.memory_at_boot",
        context: &[],
        jobs: WRITE,
        values: &["128MiB", "1GiB"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.hz",
        context: LINK,
        jobs: WRITE,
        values: &["100", "250", "300", "1000"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.cores.count",
        context: &[],
        jobs: SYNCED,
        values: &["1", "2", "4"],
        predicted: Falls("/host/0/cores/system_share"),
    },
    Case {
        key: "host.linux.cores.sched_latency",
        context: ONE_CORE,
        jobs: CROWD,
        values: &["1ms", "24ms"],
        predicted: Falls("/host/0/cores/preemptions"),
    },
    Case {
        key: "host.linux.cores.sched_min_granularity",
        context: ONE_CORE,
        jobs: LARGE_CROWD,
        values: &["100us", "12ms"],
        predicted: Falls("/host/0/cores/preemptions"),
    },
    Case {
        key: "host.linux.cores.sched_wakeup_granularity",
        context: ONE_CORE,
        jobs: CROWD,
        values: &["100us", "50ms"],
        predicted: Falls("/host/0/cores/preemptions"),
    },
    Case {
        key: "host.linux.cores.context_switch",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "5us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.cores.idle_exit",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "2us", "10us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.page_cache.read_ahead_kb",
        context: WRITTEN,
        jobs: READ,
        values: &["16KiB", "64KiB", "256KiB"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "host.linux.page_cache.readahead",
        context: WRITTEN,
        jobs: READ,
        values: &["on_demand", "none"],
        predicted: Rises("/host/0/page_cache/misses"),
    },
    Case {
        key: "host.linux.page_cache.reclaim",
        context: &[],
        jobs: READ_FAR,
        values: &["two_lists", "mglru"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.page_cache.workingset",
        context: &[],
        jobs: READ_FAR,
        values: &["true", "false"],
        predicted: Falls("/host/0/page_cache/refaults"),
    },
    Case {
        key: "host.linux.page_cache.min_free_kbytes",
        context: &[],
        jobs: READ_FAR,
        values: &["1MiB", "8MiB"],
        predicted: Falls("/host/0/page_cache/pages"),
    },
    Case {
        key: "host.linux.page_cache.watermark_scale_factor",
        context: &[],
        jobs: READ_FAR,
        values: &["10", "1000"],
        predicted: Falls("/host/0/page_cache/pages"),
    },
    Case {
        key: "host.linux.writeback.dirty_ratio",
        context: &[],
        jobs: WRITE,
        values: &["20%", "30%", "60%"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.dirty_background_ratio",
        context: &[],
        jobs: WRITE,
        values: &["4%", "10%", "15%"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.dirty_bytes",
        context: &[],
        jobs: WRITE,
        values: &["8MiB", "16MiB"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.dirty_background_bytes",
        context: &[],
        jobs: WRITE,
        values: &["2MiB", "4MiB"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.dirty_expire",
        context: &["host.linux.writeback.dirty_writeback=500ms"],
        jobs: SLOW,
        values: &["1s", "2s"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.dirty_writeback",
        context: &[],
        jobs: SLOW,
        values: &["500ms", "2s"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.min_ratio",
        context: LINK,
        jobs: WRITE,
        values: &["0%", "50%"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.writeback.max_ratio",
        context: &[],
        jobs: WRITE,
        values: &["20%", "100%"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.victimization.announce",
        context: &[],
        jobs: WRITE,
        values: &["false", "true"],
        predicted: Rises("/host/0/writeback/announced"),
    },
    Case {
        key: "host.linux.victimization.full.dirty_background_ratio",
        context: FILLS,
        jobs: WRITE,
        values: &["2%", "5%", "8%"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.victimization.full.dirty_ratio",
        context: FILLS,
        jobs: WRITE,
        values: &["12%", "60%"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.fs",
        context: &[],
        jobs: SYNCED,
        values: &["{ ext4 = {} }", "raw"],
        predicted: Falls("/host/0/drives/0/block/requests/1"),
    },
    Case {
        key: "host.linux.fs.ext4.data",
        context: PLAIN,
        jobs: UPLOAD,
        values: &["ordered", "writeback", "journal", "none"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.fs.ext4.delalloc",
        context: &[],
        jobs: UPLOAD,
        values: &["true", "false"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.fs.ext4.dioread_nolock",
        context: &[],
        jobs: UPLOAD,
        values: &["true", "false"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.fs.ext4.commit",
        context: &[],
        jobs: UNSYNCED,
        values: &["50ms", "500ms"],
        predicted: Falls("/host/0/drives/0/fs/commits_interval"),
    },
    Case {
        key: "host.linux.fs.ext4.barrier",
        context: &["flash.buffer.protected=false"],
        jobs: SYNCED,
        values: &["false", "true"],
        predicted: Rises("/host/0/drives/0/block/requests/2"),
    },
    Case {
        key: "host.linux.fs.ext4.auto_da_alloc",
        context: &[],
        jobs: REWRITE,
        values: &["true", "false"],
        predicted: Falls("/host/0/writeback/written"),
    },
    Case {
        key: "host.linux.fs.ext4.journal_size",
        context: &[],
        jobs: UPLOAD,
        values: &["4MiB", "64MiB"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler",
        context: NARROW,
        jobs: MIXED,
        values: &["none", "{ mq_deadline = {} }", "{ kyber = {} }", "{ cfq = {} }"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.nr_requests",
        context: &["host.linux.block.wbt_lat=0s"],
        jobs: MIXED,
        values: &["4", "32"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.max_sectors",
        context: &[],
        jobs: WRITE,
        values: &["64KiB", "256KiB"],
        predicted: Rises("/host/0/drives/0/block/write_bytes_mean"),
    },
    Case {
        key: "host.linux.block.contiguous",
        context: &[],
        jobs: WRITE,
        values: &["4KiB", "1MiB"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.merges",
        context: &[],
        jobs: WRITE,
        values: &["true", "false"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.wbt_lat",
        context: &[],
        jobs: MIXED,
        values: &["0s", "2ms"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.hardware_queues",
        context: &[],
        jobs: MIXED,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.mq_deadline.read_expire",
        context: DEADLINE,
        jobs: MIXED,
        values: &["10us", "500ms"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.mq_deadline.write_expire",
        context: DEADLINE,
        jobs: MIXED,
        values: &["10us", "5s"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.mq_deadline.fifo_batch",
        context: DEADLINE,
        jobs: MIXED,
        values: &["1", "16"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.mq_deadline.writes_starved",
        context: DEADLINE,
        jobs: MIXED,
        values: &["0", "8"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.mq_deadline.front_merges",
        context: ALONE,
        jobs: CLOSE,
        values: &["true", "false"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.mq_deadline.async_depth",
        context: DEEP,
        jobs: MIXED,
        values: &["1", "100"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.cfq.quantum",
        context: CFQ,
        jobs: QUEUED,
        values: &["1", "8"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "host.linux.block.scheduler.cfq.slice_sync",
        context: CFQ,
        jobs: QUEUED,
        values: &["1ms", "100ms"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.cfq.slice_async",
        context: CFQ,
        jobs: MIXED,
        values: &["1ms", "40ms"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.cfq.target_latency",
        context: CFQ,
        jobs: MIXED,
        values: &["1ms", "300ms"],
        predicted: Differ,
    },
    Case {
        key: "host.linux.block.scheduler.kyber.read_lat",
        context: KYBER,
        jobs: LONG_MIXED,
        values: &["1us", "1s"],
        predicted: Rises(READ_MEAN),
    },
    Case {
        key: "host.linux.block.scheduler.kyber.write_lat",
        context: KYBER,
        jobs: LONG_MIXED,
        values: &["1us", "1s"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "host.linux.driver.coalescing_threshold",
        context: &[],
        jobs: SYNCED,
        values: &["1", "8"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.driver.coalescing_time",
        context: &["host.linux.driver.coalescing_threshold=8"],
        jobs: SYNCED,
        values: &["20us", "200us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.driver.poll_queues",
        context: &[],
        jobs: POLLED,
        values: &["0", "1"],
        predicted: Falls(READ_MEAN),
    },
    Case {
        key: "host.linux.costs.call",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "host.linux.costs.lookup",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "host.linux.costs.allocate",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "host.linux.costs.insert",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "host.linux.costs.dirty",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises("/io/write/latency_ns/mean"),
    },
    Case {
        key: "host.linux.costs.copy",
        context: &[],
        jobs: SYNCED,
        values: &["1GB/s", "10GB/s"],
        predicted: Falls("/io/write/latency_ns/mean"),
    },
    Case {
        key: "host.linux.costs.write_page",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.map",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.bio",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.request",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.interrupt",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.complete",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.end_page",
        context: &[],
        jobs: SYNCED,
        values: &["0s", "1us", "3us"],
        predicted: Rises(FLUSH),
    },
    Case {
        key: "host.linux.costs.handle",
        context: &[],
        jobs: UPLOAD,
        values: &["0s", "1us", "9us"],
        predicted: Rises("/host/0/cores/system_share"),
    },
    Case {
        key: "host.linux.costs.scan",
        context: &[],
        jobs: READ_FAR,
        values: &["0s", "1us", "3us"],
        predicted: Rises("/host/0/cores/system_share"),
    },
];
