//! Reproduction: rows of a reference value (a closed form, or a value of a different simulator) beside ours.
//!
//! A target is a list of cases; a case is a few rows from one run, or a few related runs. Cases share nothing, so they
//! run in parallel with the same result as one after another.
//!
//! * Knows papers, other simulators and measured drives, with their values.
//! * Does not know how a value arises: it runs plans and reads documents.
//! * Read first: `study.rs`; then a folder of a paper, such as `zng/`.

mod astriflash;
mod choose;
mod drives;
mod expected;
mod fastdrain;
mod flashabacus;
mod mean;
mod mqms;
mod peers;
mod reading;
mod row;
mod run;
mod stand;
mod study;
mod table;
mod theory;
mod zng;

pub use choose::{Chosen, choose};
use reading::Reading;
pub use row::{Difference, Evidence, Row, Rule};
pub use run::{Report, Request, Sharing, run};
pub use table::{Plot, plots, table};

use config::Diagnostic;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use study::Entry;

/// Target of a reproduction.
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Text of its `readings.toml`; empty for a target with a single reading.
    readings: &'static str,
    work: Work,
}

/// Work of a target.
enum Work {
    /// Independent cases.
    Cases(fn() -> Vec<Case>),
    /// Rows that share runs.
    Study(fn(Effort, &Reading) -> Vec<Entry>),
}

/// All targets. A new target is a folder and a line.
pub const TARGETS: &[Target] = &[
    Target {
        name: "theory",
        about: "closed forms and fixed points",
        readings: "",
        work: Work::Cases(theory::cases),
    },
    Target {
        name: "peers",
        about: "figures measured with other simulators",
        readings: "",
        work: Work::Cases(peers::cases),
    },
    Target {
        name: "drives",
        about: "real drives: measurements and data sheets, with the error by axis",
        readings: "",
        work: Work::Study(drives::entries),
    },
    Target {
        name: "zng",
        about: "Zhang and Jung, ZnG, ISCA 2020: seven platforms on graph and scientific programs",
        readings: zng::READINGS,
        work: Work::Study(zng::entries),
    },
    Target {
        name: "astriflash",
        about: "Gupta et al., AstriFlash, HPCA 2023: a server whose DRAM is a cache over flash, and what it is measured against",
        readings: astriflash::READINGS,
        work: Work::Study(astriflash::entries),
    },
    Target {
        name: "mqms",
        about: "Gundawar et al., MQMS, 2024: a GPU in the SSD, and the pair of simulators that it is measured against",
        readings: mqms::READINGS,
        work: Work::Study(mqms::entries),
    },
    Target {
        name: "fastdrain",
        about: "Zhang et al., FastDrain, 2020: a host whose page cache drains into a drive, and what it is measured against",
        readings: fastdrain::READINGS,
        work: Work::Study(fastdrain::entries),
    },
    Target {
        name: "flashabacus",
        about: "Zhang and Jung, FlashAbacus, EuroSys 2018: an accelerator that governs its own flash, and the same accelerator behind a host",
        readings: flashabacus::READINGS,
        work: Work::Study(flashabacus::entries),
    },
];

/// Length of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Full length, with several seeds and confidence intervals where rows are means: hours for a paper.
    Whole,
    /// Length required by the tolerances: minutes for everything.
    Full,
    /// Length of a test. Tolerances are widened by the remaining statistical uncertainty.
    Quick,
}

/// Context of a case.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) effort: Effort,
    pub(crate) stop: &'a AtomicBool,
    /// Count of checks that runs have passed beside their rows.
    pub(crate) checks: &'a AtomicUsize,
}

impl Context<'_> {
    /// Chooses one of two counts by the effort.
    pub(crate) fn choose<T>(&self, full: T, quick: T) -> T {
        match self.effort {
            Effort::Whole | Effort::Full => full,
            Effort::Quick => quick,
        }
    }
}

type Run = dyn Fn(&Context<'_>) -> Result<Vec<Row>, Diagnostic> + Send + Sync;

/// Related runs.
pub(crate) struct Case {
    /// Ids of its rows.
    ids: Vec<String>,
    run: Box<Run>,
}

impl Case {
    /// Creates a case that yields a row for each of `ids`.
    pub(crate) fn new(
        ids: impl IntoIterator<Item = String>,
        run: impl Fn(&Context<'_>) -> Result<Vec<Row>, Diagnostic> + Send + Sync + 'static,
    ) -> Case {
        Case { ids: ids.into_iter().collect(), run: Box::new(run) }
    }
}
