//! What data sheets and reviews print.

use super::measured::{Measured, State};
use fit::{Figures, Job};

/// A figure that is printed.
struct Printed {
    stand: &'static str,
    job: Job,
    state: State,
    first: Option<u64>,
    figures: Figures,
    place: &'static str,
}

const NONE: Figures = Figures { iops: None, mean: None, p99: None, p99_9: None, p99_999: None };

const fn iops(iops: f64) -> Figures {
    Figures { iops: Some(iops), ..NONE }
}

const fn mean(mean: f64) -> Figures {
    Figures { mean: Some(mean), ..NONE }
}

/// Requests of 128 KiB in order, as many of them a second as these megabytes are.
const fn in_order(write: bool, megabytes: f64) -> (Job, Figures) {
    let job = Job { write, random: false, block: 128 << 10, depth: 64, jobs: 1, span: None };
    (job, iops(megabytes * 1e6 / (128 << 10) as f64))
}

const PM9A3: &str = "data sheet: heise online 4720224";
const P3700: &str = "data sheet: Intel 330566, of the series";
const P3700_OF_800_GB: &str = "data sheet: Intel 330566, of 800 GB (second-hand)";
const MICRON: &str = "data sheet: Tom's Hardware 4576, page 4";
const PRO: &str = "data sheet: Legit Reviews 222142";
const SZ985: &str = "data sheet: Tom's Hardware, January 2018";

const fn sheet(stand: &'static str, (job, figures): (Job, Figures), place: &'static str) -> Printed {
    Printed { stand, job, state: State::Filled, first: None, figures, place }
}

const fn random_writes(depth: u32) -> Job {
    Job { write: true, ..Job::random_reads(depth) }
}

/// Random reads as a review has them: mean, 99th and 99.999th percentile, and requests a second where more than one is in flight.
const fn reviewed(
    stand: &'static str,
    depth: u32,
    iops: Option<f64>,
    [mean, p99, p99_999]: [f64; 3],
) -> Printed {
    let figures = Figures { iops, mean: Some(mean), p99: Some(p99), p99_9: None, p99_999: Some(p99_999) };
    sheet(stand, (Job::random_reads(depth), figures), "AnandTech 11209, page 4")
}

/// The first bytes of one stream of 1 MiB to an empty drive, and megabytes a second.
const fn copied(stand: &'static str, bytes: u64, megabytes: f64) -> Printed {
    let job = Job { write: true, random: false, block: 1 << 20, ..Job::random_reads(1) };
    let figures = iops(megabytes * 1e6 / (1 << 20) as f64);
    let printed = sheet(stand, (job, figures), "TechPowerUp on the drive of 1 TB, page 6");
    Printed { state: State::Empty, first: Some(bytes), ..printed }
}

/// Random reads of a GPU's 262,144 threads over 128 queues of 1,024 entries, to each drive.
const FROM_GPU: Job = Job { jobs: 128, ..Job::random_reads(1_024) };

/// A request of 4 KiB in order, by itself.
const fn next(write: bool) -> Job {
    Job { write, random: false, ..Job::random_reads(1) }
}

const PRINTED: &[Printed] = &[
    sheet("pm9a3", (Job::random_reads(512), iops(900_000.0)), PM9A3),
    sheet("pm9a3", in_order(false, 6_500.0), PM9A3),
    sheet("pm9a3", in_order(true, 3_500.0), PM9A3),
    Printed { state: State::Worn, ..sheet("pm9a3", (random_writes(64), iops(200_000.0)), PM9A3) },
    sheet("z-ssd", (Job::random_reads(512), iops(750_000.0)), SZ985),
    sheet("z-ssd", (Job::random_reads(1), mean(16.0)), "983 ZET: AnandTech 13951"),
    sheet("z-ssd", in_order(false, 3_200.0), SZ985),
    sheet("z-ssd", in_order(true, 3_200.0), SZ985),
    sheet("z-ssd", (random_writes(1), mean(16.0)), SZ985),
    Printed { state: State::Worn, ..sheet("z-ssd", (random_writes(64), iops(170_000.0)), SZ985) },
    reviewed("p3700", 1, None, [77.9, 96.0, 2_768.0]),
    reviewed("p3700", 16, Some(167_200.0), [93.9, 163.0, 2_320.0]),
    sheet("p3700", (Job::random_reads(512), iops(460_000.0)), P3700),
    sheet("p3700", (next(false), mean(20.0)), P3700),
    sheet("p3700", (next(true), mean(20.0)), P3700),
    sheet("p3700", (random_writes(1), mean(25.0)), P3700),
    sheet("p3700", in_order(false, 2_800.0), P3700),
    sheet("p3700", in_order(true, 1_900.0), P3700_OF_800_GB),
    Printed { state: State::Worn, ..sheet("p3700", (random_writes(64), iops(90_000.0)), P3700_OF_800_GB) },
    reviewed("9100-max", 1, None, [107.7, 117.0, 306.0]),
    reviewed("9100-max", 16, Some(135_700.0), [116.2, 205.0, 1_560.0]),
    sheet("9100-max", (Job::random_reads(512), iops(750_000.0)), MICRON),
    sheet("9100-max", in_order(false, 3_200.0), MICRON),
    sheet("9100-max", in_order(true, 2_200.0), MICRON),
    Printed { state: State::Worn, ..sheet("9100-max", (random_writes(64), iops(300_000.0)), MICRON) },
    sheet("980-pro", (Job::random_reads(512), iops(1_000_000.0)), PRO),
    sheet("980-pro", in_order(false, 7_000.0), PRO),
    Printed { state: State::Empty, ..sheet("980-pro", in_order(true, 5_000.0), PRO) },
    copied("980-pro", 113_000_000_000, 4_000.0),
    copied("980-pro", 1_000_204_886_016, 1_900.0),
    sheet("980-pro", (FROM_GPU, iops(798_519.0)), "bam_gpu_initiated_io.csv: nvm_block_bench_1_sam.log"),
    sheet("980-pro-x2", (FROM_GPU, iops(1_523_550.0)), "bam_gpu_initiated_io.csv: nvm_block_bench_2_sam.log"),
];

/// Every printed figure as a point.
pub(super) fn points() -> Vec<Measured> {
    let point = |printed: &Printed| {
        let Printed { stand, job, state, first, figures, place } = *printed;
        Measured { stand, job, state, first, figures, place: place.into() }
    };
    PRINTED.iter().map(point).collect()
}
