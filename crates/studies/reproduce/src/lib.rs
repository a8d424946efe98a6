//! Reproduction: rows of a reference value (a closed form, another simulator's figure) beside ours.
//!
//! A target is a list of cases; a case is what one run, or a few that belong together, can say, as a few rows. Cases
//! share nothing, so that they run side by side with the same result as one after another.
//!
//! * Knows papers, other simulators and measured drives, with their figures.
//! * Does not know how a figure comes about: it runs plans and reads documents.
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

/// Something that is reproduced.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// The text of its `readings.toml`; empty for a target that is read in one way.
    readings: &'static str,
    work: Work,
}

/// What is to be done for a target.
enum Work {
    /// Cases that share nothing.
    Cases(fn() -> Vec<Case>),
    /// Rows that share runs.
    Study(fn(Effort, &Reading) -> Vec<Entry>),
}

/// Everything that can be reproduced. A new target is a folder and a line.
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

/// How long runs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Everything, with several seeds and confidence intervals where rows are means: hours for a paper.
    Whole,
    /// As long as the tolerances ask for: minutes for everything.
    Full,
    /// As short as a test may be. Where that leaves statistical uncertainty, tolerances are wider by it.
    Quick,
}

/// What a case is given.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) effort: Effort,
    pub(crate) stop: &'a AtomicBool,
    /// Counts the checks that runs have passed beside their rows.
    pub(crate) checks: &'a AtomicUsize,
}

impl Context<'_> {
    /// One of two counts, by the effort.
    pub(crate) fn choose<T>(&self, full: T, quick: T) -> T {
        match self.effort {
            Effort::Whole | Effort::Full => full,
            Effort::Quick => quick,
        }
    }
}

type Run = dyn Fn(&Context<'_>) -> Result<Vec<Row>, Diagnostic> + Send + Sync;

/// Runs that belong together.
pub(crate) struct Case {
    /// Ids of its rows.
    ids: Vec<String>,
    run: Box<Run>,
}

impl Case {
    /// A case that yields a row for each of `ids`.
    pub(crate) fn new(
        ids: impl IntoIterator<Item = String>,
        run: impl Fn(&Context<'_>) -> Result<Vec<Row>, Diagnostic> + Send + Sync + 'static,
    ) -> Case {
        Case { ids: ids.into_iter().collect(), run: Box::new(run) }
    }
}
