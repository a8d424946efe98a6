//! Real drives: what was measured of them, or is printed on their data sheets, beside the same jobs on simulated ones.
//!
//! See `papers/drives/README.md` for what is compared, and which values chose a parameter.

mod axes;
mod measured;

use super::study::Entry;
use super::{Effort, Reading};
use fit::{Figures, Job, Measure};
use measured::{Measured, Set, State};
use std::path::PathBuf;

/// Rows of every point, and the errors of all axes.
pub(super) fn entries(effort: Effort, _: &Reading) -> Vec<Entry> {
    let mut points: Vec<Measured> = SETS.iter().flat_map(Set::points).collect();
    points.extend(self::points());
    let points: Vec<_> = points.into_iter().flat_map(|measured| axes::points(measured, effort)).collect();
    let axes = axes::entries(&points);
    let absent = SETS.iter().filter_map(Set::absent);
    points.iter().map(axes::Point::entry).chain(absent).chain(axes).collect()
}

/// The stand of a name.
fn stand(name: &str) -> Option<&'static Stand> {
    STANDS.iter().find(|stand| stand.name == name)
}

// Values from data sheets and reviews.

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

/// Random reads as a review has them: mean, 99th and 99.999th percentile, and requests a second where more than one is
/// in flight.
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
fn points() -> Vec<Measured> {
    let point = |printed: &Printed| {
        let Printed { stand, job, state, first, figures, place } = *printed;
        Measured { stand, job, state, first, figures, place: place.into() }
    };
    PRINTED.iter().map(point).collect()
}

// The drives: which system stands for which, and which figures chose its parameters.

/// A drive.
struct Stand {
    /// Name in the rows.
    name: &'static str,
    /// The system that stands for it.
    system: &'static str,
    /// Overrides of the spec: the host that measured it, how many there are.
    set: &'static [&'static str],
    /// Figures that chose a parameter.
    fitted: &'static [(Job, Measure)],
    /// Commands that the drive takes at once, if a host can have more in flight: what is beyond is its host adapter's.
    queue: u64,
    /// The host's block layer, where it is known: jobs of several threads with more in flight than `queue` go through
    /// it.
    block: &'static [&'static str],
    /// Changes that make its blocks small, so that a steady state is soon there.
    small: &'static [&'static str],
    /// Names of its parts, if there are several: each has its own job.
    parts: &'static [&'static str],
}

/// A drive alone, as its data sheet has it.
const ALONE: Stand = Stand {
    name: "",
    system: "",
    set: &[],
    fitted: &[],
    queue: u64::MAX,
    block: &[],
    small: &[],
    parts: &[],
};

/// Requests in flight from which a figure is one of saturation.
const MANY: u64 = 16;

impl Stand {
    /// Returns whether a saturated value of a direction chose a parameter.
    fn saturates(&self, write: bool) -> bool {
        let of = |(job, measure): &(Job, Measure)| {
            job.write == write && job.in_flight() >= MANY && *measure == Measure::Iops
        };
        self.fitted.iter().any(of)
    }
}

const fn job(write: bool, random: bool, depth: u32, span: Option<u64>) -> Job {
    Job { write, random, block: 4096, depth, jobs: 1, span }
}

/// Bytes that the ZNS study's jobs touch of the EVO, and of the conventional namespace.
const EVO_SPAN: Option<u64> = Some(107_373_134_336);

const ZNS_SPAN: Option<u64> = Some(4 << 30);

/// Thread time per request on the ZNS study's host, from reads in order of the EVO at depth 64.
const STUDY_HOST: &[&str] = &["host.thread=3.36us"];

/// Thread time per request on the SATA set's host, from random reads of the 860 PRO at depth 64.
const SATA_HOST: &[&str] = &["host.thread=13.5us"];

/// The SATA set's block layer: CFQ of a queue of 128 requests (`papers/drives/README.md`, "More in flight than the
/// queue holds").
const SATA_BLOCK: &[&str] = &[
    "host.linux.block.scheduler={ cfq = {} }",
    "host.linux.block.nr_requests=128",
    "host.linux.block.wbt_lat=0s",
];

/// Figures that chose the parameters of the 860 PRO, which met hardly any collection in its job at depth 64.
const FITS_860: &[(Job, Measure)] = &[
    (job(false, true, 1, None), Measure::Mean),
    (job(false, true, 64, None), Measure::Iops),
    (job(true, true, 1, None), Measure::Mean),
    (job(true, true, 8, None), Measure::Iops),
    (job(true, true, 8, None), Measure::P99),
];

/// Figures that chose the D3-S4610's.
const FITS_S4610: &[(Job, Measure)] = &[
    (job(false, true, 1, None), Measure::Mean),
    (job(false, true, 64, None), Measure::Iops),
    (job(true, true, 1, None), Measure::Mean),
    (job(true, true, 64, None), Measure::Iops),
    (job(true, true, 8, None), Measure::P99),
];

/// Figures that chose the parameters of a drive with a review and a data sheet.
const SHEET_FITS: &[(Job, Measure)] = &[
    (job(false, true, 1, None), Measure::Mean),
    (job(false, true, 512, None), Measure::Iops),
    (job(true, true, 64, None), Measure::Iops),
];

/// Planar MLC blocks of 512 pages that are erased in 3 ms.
const SMALL_MLC: &[&str] = &["flash.geometry.pages=32", "flash.cell.erase=187.5us"];

/// Every drive.
const STANDS: &[Stand] = &[
    Stand {
        name: "evo",
        system: "evo-2tb",
        set: STUDY_HOST,
        fitted: &[
            (job(false, false, 64, EVO_SPAN), Measure::Iops),
            (job(false, true, 1, EVO_SPAN), Measure::Mean),
            (job(false, false, 1, EVO_SPAN), Measure::Mean),
        ],
        ..ALONE
    },
    Stand {
        name: "zns",
        system: "zn540",
        set: STUDY_HOST,
        fitted: &[
            (job(false, true, 1, ZNS_SPAN), Measure::Mean),
            (job(false, false, 1, ZNS_SPAN), Measure::Mean),
            (job(true, true, 64, ZNS_SPAN), Measure::Iops),
            (Job { block: 128 << 10, ..job(true, false, 4, ZNS_SPAN) }, Measure::Iops),
        ],
        ..ALONE
    },
    Stand {
        name: "860-pro",
        system: "860-pro",
        set: SATA_HOST,
        fitted: FITS_860,
        queue: 32,
        block: SATA_BLOCK,
        ..ALONE
    },
    Stand {
        name: "s4610",
        system: "d3-s4610",
        set: SATA_HOST,
        fitted: FITS_S4610,
        queue: 32,
        block: SATA_BLOCK,
        ..ALONE
    },
    Stand {
        name: "pm9a3",
        system: "pm9a3",
        fitted: &[
            (job(false, true, 512, None), Measure::Iops),
            (Job { block: 128 << 10, ..job(true, false, 64, None) }, Measure::Iops),
        ],
        small: &["flash.geometry.pages=96", "flash.cell.erase=219us"],
        ..ALONE
    },
    Stand {
        name: "z-ssd",
        system: "z-ssd",
        fitted: &[(job(false, true, 512, None), Measure::Iops), (job(true, true, 64, None), Measure::Iops)],
        small: &["flash.geometry.pages=24", "flash.cell.erase=62.5us"],
        ..ALONE
    },
    Stand { name: "p3700", system: "p3700", fitted: SHEET_FITS, small: SMALL_MLC, ..ALONE },
    Stand { name: "9100-max", system: "9100-max", fitted: SHEET_FITS, small: SMALL_MLC, ..ALONE },
    Stand {
        name: "980-pro",
        system: "980-pro",
        fitted: &[(job(false, true, 512, None), Measure::Iops)],
        ..ALONE
    },
    Stand {
        name: "980-pro-x2",
        system: "980-pro",
        set: &["flash.count=2"],
        parts: &["flash.0", "flash.1"],
        ..ALONE
    },
];

/// Measurements with fio.
const SETS: &[Set] = &[
    Set { stand: "evo", file: "device/zns_study_fio.csv", drive: "Samsung EVO 2TB NVMe" },
    Set { stand: "860-pro", file: "device/sata_fio.csv", drive: "Samsung 860 PRO" },
    Set { stand: "s4610", file: "device/sata_fio.csv", drive: "Intel D3-S4610" },
    Set { stand: "zns", file: "device/zns_study_fio.csv", drive: "ZNS SSD conventional ns" },
];

// Files of the data sets.

/// Finds a file of the data sets: under `NANDSCAPE_DATA`, else under `shared/data` beside the present folder or above
/// it.
pub(super) fn data(path: &str) -> Option<PathBuf> {
    let found = |root: PathBuf| Some(root.join(path)).filter(|file| file.is_file());
    if let Some(root) = std::env::var_os("NANDSCAPE_DATA") {
        return found(root.into());
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().find_map(|folder| found(folder.join("shared/data")))
}
