//! fio's options: those of every job, and those of each kind of job.

/// fio's options for every job: plain system calls, no advice to the kernel, buffers of zeros.
pub(super) const COMMON_FIO: &[&str] = &[
    "ioengine=psync",
    "thread",
    "zero_buffers",
    "fallocate=none",
    "fadvise_hint=0",
    "invalidate=0",
    "norandommap",
    "randrepeat=1",
    "disable_slat=1",
    "disable_lat=1",
    // The others are system calls, which are slow in this guest.
    "clocksource=cpu",
];

/// Makes the files that jobs find.
pub(super) const PREPARE_FIO: &[&str] = &[
    "name=fit",
    "filename=fit",
    "rw=write",
    "bs=1M",
    "size=256M",
    "end_fsync=1",
    "stonewall",
    "name=large",
    "filename=large",
    "rw=write",
    "bs=1M",
    "size=1280M",
    "end_fsync=1",
    "stonewall",
];

pub(super) const SEQUENTIAL: &[&str] =
    &["name=write", "filename=new", "rw=write", "bs=64k", "size=1400M", "runtime=15"];
pub(super) const RANDOM: &[&str] =
    &["name=write", "filename=fit", "rw=randwrite", "bs=4k", "size=256M", "time_based", "runtime=20"];
pub(super) const SEQUENTIAL_SYNC: &[&str] =
    &["name=write", "filename=new", "rw=write", "bs=64k", "size=1400M", "fsync=32", "runtime=12"];
pub(super) const RANDOM_SYNC: &[&str] = &[
    "name=write",
    "filename=fit",
    "rw=randwrite",
    "bs=4k",
    "size=256M",
    "fsync=32",
    "time_based",
    "runtime=12",
];
pub(super) const SEQUENTIAL_READ: &[&str] =
    &["name=read", "filename=large", "rw=read", "bs=64k", "size=1280M", "runtime=10"];
pub(super) const RANDOM_READ: &[&str] =
    &["name=read", "filename=large", "rw=randread", "bs=4k", "size=1280M", "time_based", "runtime=25"];
pub(super) const SLOW_WRITER: &[&str] =
    &["name=write", "filename=new", "rw=write", "bs=64k", "size=1400M", "rate=20m", "runtime=25"];
pub(super) const FITTING_READ: &[&str] =
    &["name=read", "filename=fit", "rw=randread", "bs=4k", "size=256M", "time_based", "runtime=25"];
pub(super) const FITTING_MIX: &[&str] = &[
    "name=mix",
    "filename=fit",
    "rw=randrw",
    "rwmixread=70",
    "bs=4k",
    "size=256M",
    "time_based",
    "runtime=20",
];
pub(super) const LARGE_MIX: &[&str] = &[
    "name=mix",
    "filename=large",
    "rw=randrw",
    "rwmixread=70",
    "bs=4k",
    "size=1280M",
    "time_based",
    "runtime=20",
];
pub(super) const WRITE_READ: &[&str] = &[
    "name=write",
    "filename=large",
    "rw=write",
    "bs=64k",
    "size=640M",
    "stonewall",
    "name=read",
    "filename=large",
    "rw=read",
    "bs=64k",
    "size=640M",
    "stonewall",
];
pub(super) const TWO_WRITERS: &[&str] = &[
    "name=first",
    "filename=new",
    "rw=write",
    "bs=64k",
    "size=1000M",
    "runtime=15",
    "name=second",
    "filename=new2",
    "rw=write",
    "bs=64k",
    "size=1000M",
    "runtime=15",
];
pub(super) const DIRECT_BESIDE: &[&str] = &[
    "name=write",
    "filename=new",
    "rw=write",
    "bs=64k",
    "size=1400M",
    "runtime=15",
    "name=direct",
    "filename=fit",
    "rw=randwrite",
    "bs=4k",
    "size=256M",
    "direct=1",
    "time_based",
    "runtime=15",
];
pub(super) const DIRECT: &[&str] = &[
    "filename=device",
    "direct=1",
    "size=1G",
    "time_based",
    "runtime=2",
    "stonewall",
    "name=write-4k",
    "rw=write",
    "bs=4k",
    "name=write-64k",
    "rw=write",
    "bs=64k",
    "name=write-256k",
    "rw=write",
    "bs=256k",
    "name=read-4k",
    "rw=read",
    "bs=4k",
    "name=read-64k",
    "rw=read",
    "bs=64k",
    "name=read-256k",
    "rw=read",
    "bs=256k",
    "name=deep-write-4k",
    "ioengine=libaio",
    "iodepth=8",
    "rw=randwrite",
    "bs=4k",
    "name=deep-read-4k",
    "ioengine=libaio",
    "iodepth=8",
    "rw=randread",
    "bs=4k",
    "name=deep-write-256k",
    "ioengine=libaio",
    "iodepth=8",
    "rw=write",
    "bs=256k",
];

/// A sequential writer, and beside it a thread that writes 64 KiB and waits until they are durable.
pub(super) const SYNC_BESIDE: &[&str] = &[
    "name=write",
    "filename=new",
    "rw=write",
    "bs=64k",
    "size=1700M",
    "runtime=35",
    "name=sync",
    "filename=new2",
    "rw=write",
    "bs=64k",
    "size=400M",
    "fsync=1",
    "runtime=35",
];
pub(super) const SYNC_BESIDE_TWO: &[&str] = &[
    "name=first",
    "filename=new",
    "rw=write",
    "bs=64k",
    "size=900M",
    "runtime=35",
    "name=second",
    "filename=new3",
    "rw=write",
    "bs=64k",
    "size=900M",
    "runtime=35",
    "name=sync",
    "filename=new2",
    "rw=write",
    "bs=128k",
    "size=400M",
    "fsync=1",
    "runtime=35",
];
pub(super) const SYNC_ALONE: &[&str] =
    &["name=sync", "filename=new2", "rw=write", "bs=64k", "size=800M", "fsync=1", "runtime=12"];
pub(super) const READ_BESIDE: &[&str] = &[
    "name=write",
    "filename=new",
    "rw=write",
    "bs=64k",
    "size=1400M",
    "runtime=20",
    "name=read",
    "filename=fit",
    "rw=randread",
    "bs=4k",
    "size=256M",
    "direct=1",
    "time_based",
    "runtime=20",
];
