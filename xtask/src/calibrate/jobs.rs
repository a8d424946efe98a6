//! The fixed list of jobs.

use super::plan::Target;

/// One job: a guest boots for it, and boots anew for each repeat.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Its name: the letter of its group, and what is special.
    pub(super) name: &'static str,
    /// In words.
    pub(super) about: &'static str,
    /// The guest's memory.
    pub(super) memory_mib: u32,
    /// On what it works.
    pub(super) target: Target,
    /// Settings beside [`COMMON_SETTINGS`].
    pub(super) settings: &'static [(&'static str, &'static str)],
    /// fio's options beside [`COMMON_FIO`]. The files `fit` (256 MiB) and `large` (1280 MiB) are there; others come to be.
    pub(super) fio: &'static [&'static str],
}

/// Set before every job: the block layer adds nothing of its own, and a request has at most 256 KiB.
pub(super) const COMMON_SETTINGS: &[(&str, &str)] = &[
    ("queue.scheduler", "none"),
    ("queue.wbt_lat_usec", "0"),
    ("queue.rotational", "0"),
    ("queue.max_sectors_kb", "256"),
];

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

const SEQUENTIAL: &[&str] = &["name=write", "filename=new", "rw=write", "bs=64k", "size=1400M", "runtime=15"];
const RANDOM: &[&str] =
    &["name=write", "filename=fit", "rw=randwrite", "bs=4k", "size=256M", "time_based", "runtime=20"];
const SEQUENTIAL_SYNC: &[&str] =
    &["name=write", "filename=new", "rw=write", "bs=64k", "size=1400M", "fsync=32", "runtime=12"];
const RANDOM_SYNC: &[&str] = &[
    "name=write",
    "filename=fit",
    "rw=randwrite",
    "bs=4k",
    "size=256M",
    "fsync=32",
    "time_based",
    "runtime=12",
];
const SEQUENTIAL_READ: &[&str] =
    &["name=read", "filename=large", "rw=read", "bs=64k", "size=1280M", "runtime=10"];
const RANDOM_READ: &[&str] =
    &["name=read", "filename=large", "rw=randread", "bs=4k", "size=1280M", "time_based", "runtime=25"];

const RATIOS_10_5: &[(&str, &str)] = &[("vm.dirty_ratio", "10"), ("vm.dirty_background_ratio", "5")];
const RATIOS_40_10: &[(&str, &str)] = &[("vm.dirty_ratio", "40"), ("vm.dirty_background_ratio", "10")];
const BYTES_64_16: &[(&str, &str)] =
    &[("vm.dirty_bytes", "67108864"), ("vm.dirty_background_bytes", "16777216")];
const BYTES_32_8: &[(&str, &str)] =
    &[("vm.dirty_bytes", "33554432"), ("vm.dirty_background_bytes", "8388608")];
const BY_AGE: &[(&str, &str)] = &[
    ("vm.dirty_ratio", "60"),
    ("vm.dirty_background_ratio", "40"),
    ("vm.dirty_expire_centisecs", "300"),
    ("vm.dirty_writeback_centisecs", "100"),
];

const OWN_BLOCK_LAYER: &[(&str, &str)] = &[
    ("queue.rotational", "1"),
    ("queue.scheduler", "mq-deadline"),
    ("queue.wbt_lat_usec", "75000"),
    ("queue.max_sectors_kb", "1280"),
];

const fn job(
    name: &'static str,
    about: &'static str,
    memory_mib: u32,
    target: Target,
    settings: &'static [(&'static str, &'static str)],
    fio: &'static [&'static str],
) -> Job {
    Job { name, about, memory_mib, target, settings, fio }
}

/// All jobs. Those whose figures say the most come first.
pub(super) const JOBS: &[Job] = &[
    job(
        "law-direct",
        "the device without a page cache: direct, one at a time and eight",
        512,
        Target::Raw,
        &[],
        DIRECT,
    ),
    job("a-ratio-20-10", "sequential write, the kernel's own limits", 512, Target::Ext4, &[], SEQUENTIAL),
    job("a-ratio-10-5", "sequential write, half of them", 512, Target::Ext4, RATIOS_10_5, SEQUENTIAL),
    job(
        "a-ratio-40-10",
        "sequential write, a wide range between them",
        512,
        Target::Ext4,
        RATIOS_40_10,
        SEQUENTIAL,
    ),
    job("a-bytes-64-16", "sequential write, limits in bytes", 512, Target::Ext4, BYTES_64_16, SEQUENTIAL),
    job(
        "a-bytes-32-8",
        "sequential write, narrow limits in bytes",
        512,
        Target::Ext4,
        BYTES_32_8,
        SEQUENTIAL,
    ),
    job("a-raw-ratio-20-10", "sequential write to the device", 512, Target::Raw, &[], SEQUENTIAL),
    job(
        "a-raw-bytes-64-16",
        "sequential write to the device, limits in bytes",
        512,
        Target::Raw,
        BYTES_64_16,
        SEQUENTIAL,
    ),
    job("c-sequential", "sequential write, fsync after each 32", 512, Target::Ext4, &[], SEQUENTIAL_SYNC),
    job("c-random", "random write, fsync after each 32", 512, Target::Ext4, &[], RANDOM_SYNC),
    job(
        "c-raw-sequential",
        "sequential write to the device, fsync after each 32",
        512,
        Target::Raw,
        &[],
        SEQUENTIAL_SYNC,
    ),
    job(
        "c-raw-random",
        "random write to the device, fsync after each 32",
        512,
        Target::Raw,
        &[],
        RANDOM_SYNC,
    ),
    job(
        "d-ahead-128",
        "sequential read, the kernel's own read-ahead",
        512,
        Target::Ext4,
        &[("queue.read_ahead_kb", "128")],
        SEQUENTIAL_READ,
    ),
    job(
        "d-ahead-0",
        "sequential read without read-ahead",
        512,
        Target::Ext4,
        &[("queue.read_ahead_kb", "0")],
        SEQUENTIAL_READ,
    ),
    job(
        "d-ahead-1024",
        "sequential read, much read-ahead",
        512,
        Target::Ext4,
        &[("queue.read_ahead_kb", "1024")],
        SEQUENTIAL_READ,
    ),
    job(
        "i-by-age",
        "a writer slower than the device: written back by age alone",
        512,
        Target::Ext4,
        BY_AGE,
        SLOW_WRITER,
    ),
    job("b-ratio-20-10", "random write, the kernel's own limits", 512, Target::Ext4, &[], RANDOM),
    job("b-bytes-64-16", "random write, limits in bytes", 512, Target::Ext4, BYTES_64_16, RANDOM),
    job("e-large", "random read of a file larger than memory", 512, Target::Ext4, &[], RANDOM_READ),
    job("e-fit", "random read of a file that fits", 512, Target::Ext4, &[], FITTING_READ),
    job("f-fit", "random, 70 % reads, of a file that fits", 512, Target::Ext4, &[], FITTING_MIX),
    job("f-large", "random, 70 % reads, of a file larger than memory", 512, Target::Ext4, &[], LARGE_MIX),
    job("g-write-read", "a file larger than memory is written and read", 512, Target::Ext4, &[], WRITE_READ),
    job("h-two-writers", "two sequential writers", 512, Target::Ext4, &[], TWO_WRITERS),
    job(
        "j-direct-beside",
        "direct random writes beside a buffered sequential writer",
        512,
        Target::Ext4,
        &[],
        DIRECT_BESIDE,
    ),
    job(
        "k-own-block-layer",
        "sequential write, the block layer as the kernel sets it up for this device",
        512,
        Target::Ext4,
        OWN_BLOCK_LAYER,
        SEQUENTIAL,
    ),
    job("a-1g-ratio-20-10", "sequential write, twice the memory", 1024, Target::Ext4, &[], SEQUENTIAL),
    job(
        "a-1g-bytes-64-16",
        "sequential write, twice the memory, limits in bytes",
        1024,
        Target::Ext4,
        BYTES_64_16,
        SEQUENTIAL,
    ),
    job("b-1g-ratio-20-10", "random write, twice the memory", 1024, Target::Ext4, &[], RANDOM),
    job(
        "e-1g-large",
        "random read of a file larger than memory, twice the memory",
        1024,
        Target::Ext4,
        &[],
        RANDOM_READ,
    ),
];

const SLOW_WRITER: &[&str] =
    &["name=write", "filename=new", "rw=write", "bs=64k", "size=1400M", "rate=20m", "runtime=25"];
const FITTING_READ: &[&str] =
    &["name=read", "filename=fit", "rw=randread", "bs=4k", "size=256M", "time_based", "runtime=25"];
const FITTING_MIX: &[&str] = &[
    "name=mix",
    "filename=fit",
    "rw=randrw",
    "rwmixread=70",
    "bs=4k",
    "size=256M",
    "time_based",
    "runtime=20",
];
const LARGE_MIX: &[&str] = &[
    "name=mix",
    "filename=large",
    "rw=randrw",
    "rwmixread=70",
    "bs=4k",
    "size=1280M",
    "time_based",
    "runtime=20",
];
const WRITE_READ: &[&str] = &[
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
const TWO_WRITERS: &[&str] = &[
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
const DIRECT_BESIDE: &[&str] = &[
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
const DIRECT: &[&str] = &[
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_times_are_bounded() {
        let names: BTreeSet<_> = JOBS.iter().map(|job| job.name).collect();
        assert_eq!(names.len(), JOBS.len());
        for option in JOBS.iter().flat_map(|job| job.fio).filter_map(|option| option.strip_prefix("runtime="))
        {
            assert!(option.parse::<u32>().unwrap() <= 40);
        }
    }
}
