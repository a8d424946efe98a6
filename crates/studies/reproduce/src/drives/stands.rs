//! The drives: which system stands for which, and which figures chose its parameters.

use super::measured::Set;
use fit::{Job, Measure};

/// A drive.
pub(super) struct Stand {
    /// Its name in the rows.
    pub(super) name: &'static str,
    /// The system that stands for it.
    pub(super) system: &'static str,
    /// Its spec's changes: the host that measured it, how many there are.
    pub(super) set: &'static [&'static str],
    /// Figures that chose a parameter.
    pub(super) fitted: &'static [(Job, Measure)],
    /// Commands that the drive takes at once, if a host can have more in flight: what is beyond is its host adapter's.
    pub(super) queue: u64,
    /// The host's block layer, where it is known: jobs of several threads with more in flight than `queue` go through it.
    pub(super) block: &'static [&'static str],
    /// Changes that make its blocks small, so that a steady state is soon there.
    pub(super) small: &'static [&'static str],
    /// Its parts, if there are several: each has its own job.
    pub(super) parts: &'static [&'static str],
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
    /// Whether a saturated figure of a direction chose a parameter.
    pub(super) fn saturates(&self, write: bool) -> bool {
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

/// What one job of the ZNS study's host can do a request, from reads in order of the EVO at depth 64.
const STUDY_HOST: &[&str] = &["host.thread=3.36us"];

/// What one job of the SATA set's host can do a request, from random reads of the 860 PRO at depth 64.
const SATA_HOST: &[&str] = &["host.thread=13.5us"];

/// The SATA set's block layer: CFQ of a queue of 128 requests (`papers/drives/README.md`, "More in flight than the queue holds").
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
pub(super) const STANDS: &[Stand] = &[
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

/// What was measured with fio.
pub(super) const SETS: &[Set] = &[
    Set { stand: "evo", file: "device/zns_study_fio.csv", drive: "Samsung EVO 2TB NVMe" },
    Set { stand: "860-pro", file: "device/sata_fio.csv", drive: "Samsung 860 PRO" },
    Set { stand: "s4610", file: "device/sata_fio.csv", drive: "Intel D3-S4610" },
    Set { stand: "zns", file: "device/zns_study_fio.csv", drive: "ZNS SSD conventional ns" },
];
