//! What data sheets and reviews print.

use super::job::Job;
use super::measured::{Figures, Measured};

/// A figure that is printed.
struct Printed {
    stand: &'static str,
    job: Job,
    worn: bool,
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
const SZ985: &str = "data sheet: Tom's Hardware, January 2018";

const fn sheet(stand: &'static str, (job, figures): (Job, Figures), place: &'static str) -> Printed {
    Printed { stand, job, worn: false, figures, place }
}

const fn random_writes(depth: u32) -> Job {
    Job { write: true, ..Job::random_reads(depth) }
}

const PRINTED: &[Printed] = &[
    sheet("pm9a3", (Job::random_reads(512), iops(900_000.0)), PM9A3),
    sheet("pm9a3", in_order(false, 6_500.0), PM9A3),
    sheet("pm9a3", in_order(true, 3_500.0), PM9A3),
    Printed { worn: true, ..sheet("pm9a3", (random_writes(64), iops(200_000.0)), PM9A3) },
    sheet("z-ssd", (Job::random_reads(512), iops(750_000.0)), SZ985),
    sheet("z-ssd", (Job::random_reads(1), mean(16.0)), "983 ZET: AnandTech 13951"),
    sheet("z-ssd", in_order(false, 3_200.0), SZ985),
    sheet("z-ssd", in_order(true, 3_200.0), SZ985),
    sheet("z-ssd", (random_writes(1), mean(16.0)), SZ985),
    Printed { worn: true, ..sheet("z-ssd", (random_writes(64), iops(170_000.0)), SZ985) },
];

/// Every printed figure as a point.
pub(super) fn points() -> Vec<Measured> {
    let point = |printed: &Printed| {
        let Printed { stand, job, worn, figures, place } = *printed;
        Measured { stand, job, worn, figures, place: place.into() }
    };
    PRINTED.iter().map(point).collect()
}
