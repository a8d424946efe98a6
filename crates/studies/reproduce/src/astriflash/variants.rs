//! The paper's figures under other assumptions than those of its rows: sweeps, which do not count.

use super::super::Effort;
use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::Entry;
use super::rows;
use super::suite::Suite;

/// An assumption.
struct Variant {
    /// What its rows' names begin with, behind the paper's.
    name: &'static str,
    /// Figures, or what their names begin with.
    figures: &'static [&'static str],
    /// Whether it takes so long that it is run only with everything.
    long: bool,
    suite: fn(&Suite) -> Suite,
}

/// Throughput, the knee, and the work between misses, which the skew was chosen from.
const OF_A_SKEW: &[&str] =
    &["tput.astriflash", "motivation.miss_curve_knee", "motivation.miss_ratio", "miss_interval."];

/// Table II's column of noDP, of the programs that its tables matter to most, and its mean.
const WITHOUT_PARTITION: &[&str] = &[
    "service_p99.geomean.astriflash-nodp",
    "service_p99.masstree.astriflash-nodp",
    "service_p99.silo.astriflash-nodp",
    "service_p99.tatp.astriflash-nodp",
    "service_p99.tpcc.astriflash-nodp",
];

const VARIANTS: &[Variant] = &[
    Variant {
        name: "planes",
        figures: &[
            "tput.astriflash",
            "tput.ideal",
            "tput.os_swap",
            "tput.flash_sync",
            "service_p99.geomean.",
        ],
        long: false,
        suite: Suite::with_planes,
    },
    Variant { name: "shootdown", figures: &["tput.os_swap"], long: false, suite: Suite::shootdown },
    Variant { name: "components", figures: &["tput.os_swap"], long: false, suite: Suite::components },
    Variant { name: "shipped", figures: &["tput.os_swap"], long: false, suite: Suite::shipped },
    Variant {
        name: "overlapped",
        figures: &["tput.flash_sync", "service_p99."],
        long: false,
        suite: Suite::overlapped,
    },
    Variant { name: "uncached", figures: WITHOUT_PARTITION, long: false, suite: Suite::uncached_tables },
    Variant { name: "shared_tables", figures: WITHOUT_PARTITION, long: false, suite: Suite::shared_tables },
    Variant { name: "skew.1.1", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.1") },
    Variant { name: "skew.1.15", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.15") },
    Variant { name: "skew.1.25", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.25") },
    Variant { name: "skew.1.3", figures: OF_A_SKEW, long: true, suite: |suite| suite.skewed("1.3") },
    Variant {
        name: "cores.16",
        figures: &[
            "tput.astriflash",
            "tput.ideal",
            "tput.os_swap",
            "tput.flash_sync",
            "service_p99.geomean.astriflash",
            "miss_interval.",
        ],
        long: true,
        suite: Suite::whole_machine,
    },
];

/// The rows that all variants have of these figures.
pub(super) fn entries(figures: &[Figure], suite: &Suite, effort: Effort) -> Vec<Entry> {
    let run = |variant: &&Variant| !variant.long || effort == Effort::Whole;
    VARIANTS.iter().filter(run).flat_map(|variant| of(variant, figures, suite)).collect()
}

fn of(variant: &Variant, figures: &[Figure], suite: &Suite) -> Vec<Entry> {
    let suite = (variant.suite)(suite);
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("astriflash.")?;
        let shown = |name: &&str| if name.ends_with('.') { id.starts_with(name) } else { id == *name };
        let entry = variant.figures.iter().any(shown).then(|| rows::entry(figure, &suite))??;
        let name = format!("astriflash.{}.{id}", variant.name);
        Some(entry.changed(name, Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}
