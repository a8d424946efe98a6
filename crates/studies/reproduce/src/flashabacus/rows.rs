//! Which runs each figure needs, and what it is worked out from: runs, constants, and kernels of whose work a share
//! is serial. The same under a choice beside the reading's, as `papers/flashabacus/readings.toml` lists them: these
//! do not count.

use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::reading::{Variant, variants};
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::super::{Effort, Reading};
use super::suite::Group::{All, Heterogeneous, Homogeneous, Mixes, Programs};
use super::suite::{Group, INTER_DY, INTER_ST, INTRA_IO, INTRA_O3, SCHEDULERS, SIMD, Suite};
use super::{
    Energy, Latency, access_power, bandwidth, compute_power, ends, items, least_latency, makespan,
    mean_latency, most_latency, of_work, transfer_time, whole_items, work,
};
use config::Diagnostic;
use ftl::page_groups::spec::ENTRY_BYTES;

/// The data-intensive programs (section 5.2).
const DATA: Group = Group::Programs(&["atax", "bicg", "2dcon", "mvt"]);
/// Programs of Figure 3d.
const MOVING: Group = Group::Programs(&["atax", "bicg", "mvt"]);
/// Programs that process only a few bytes per thousand instructions.
const COMPUTING: Group = Group::Programs(&["syrk", "3mm", "covar", "gemm", "2mm", "syr2k", "corr"]);
/// Programs of section 5.3.
const PRODUCTS: Group = Group::Programs(&["gemm", "2mm", "syr2k"]);
/// Section 5.6.
const REAL: Group = Group::Programs(&["nn", "bfs", "nw", "path", "wc"]);

/// A figure of the paper: its workloads, the systems that run them, and what is worked out for each workload.
type Figured = (&'static str, Group, &'static [&'static str], Compute);

/// The figures that are means over workloads.
const FIGURES: &[Figured] = &[
    ("bw.intrao3_vs_simd", All, &[INTRA_O3, SIMD], |on| on.gain(INTRA_O3, SIMD, bandwidth)),
    ("bw.data_intensive", DATA, &EACH, |on| on.schedulers(|on, one| on.gain(one, SIMD, bandwidth))),
    ("bw.interst_vs_interdy", Homogeneous, &[INTER_ST, INTER_DY], |on| {
        on.below(INTER_ST, INTER_DY, bandwidth)
    }),
    ("bw.interst_vs_intrao3", Homogeneous, &[INTER_ST, INTRA_O3], |on| {
        on.below(INTER_ST, INTRA_O3, bandwidth)
    }),
    ("bw.intrao3_vs_intraio", Homogeneous, &[INTRA_O3, INTRA_IO], |on| {
        on.gain(INTRA_O3, INTRA_IO, bandwidth)
    }),
    ("bw.intrao3_vs_interdy_homo", Homogeneous, &[INTRA_O3, INTER_DY], |on| {
        on.below(INTRA_O3, INTER_DY, bandwidth)
    }),
    ("bw.simd_hetero", Heterogeneous, &[SIMD], |on| on.of(SIMD, bandwidth)),
    ("bw.simd_vs_interdy_hetero", Heterogeneous, &[SIMD, INTER_DY], |on| on.below(SIMD, INTER_DY, bandwidth)),
    ("bw.simd_vs_intrao3_hetero", Heterogeneous, &[SIMD, INTRA_O3], |on| on.below(SIMD, INTRA_O3, bandwidth)),
    ("bw.interst_vs_intraio_some", Mixes(&[2, 3, 4, 6, 7, 9, 13]), &[INTER_ST, INTRA_IO], |on| {
        on.gain(INTER_ST, INTRA_IO, bandwidth)
    }),
    ("bw.interst_vs_intraio_rest", Mixes(&[1, 5, 8, 10, 11, 12]), &[INTER_ST, INTRA_IO], |on| {
        on.below(INTER_ST, INTRA_IO, bandwidth)
    }),
    ("bw.interdy_vs_interst_hetero", Heterogeneous, &[INTER_DY, INTER_ST], |on| {
        on.gain(INTER_DY, INTER_ST, bandwidth)
    }),
    ("bw.intrao3_vs_interdy_hetero", Heterogeneous, &[INTRA_O3, INTER_DY], |on| {
        on.gain(INTRA_O3, INTER_DY, bandwidth)
    }),
    ("lat.simd_data_intensive.mean", DATA, &EACH, |on| on.longer(SIMD, &SCHEDULERS, mean_latency)),
    ("lat.simd_data_intensive.max", DATA, &EACH, |on| on.longer(SIMD, &SCHEDULERS, most_latency)),
    ("lat.simd_data_intensive.min", DATA, &EACH, |on| on.longer(SIMD, &SCHEDULERS, least_latency)),
    ("lat.interdy_vs_interst.mean", Homogeneous, &[INTER_DY, INTER_ST], |on| {
        on.shorter(INTER_DY, INTER_ST, mean_latency)
    }),
    ("lat.interdy_vs_interst.max", Homogeneous, &[INTER_DY, INTER_ST], |on| {
        on.shorter(INTER_DY, INTER_ST, most_latency)
    }),
    ("lat.inter_vs_intra_min", Homogeneous, &SCHEDULERS, inter_over_intra),
    ("lat.intrao3_vs_interdy_hetero.mean", Heterogeneous, &[INTRA_O3, INTER_DY], |on| {
        on.shorter(INTRA_O3, INTER_DY, mean_latency)
    }),
    ("lat.intrao3_vs_interdy_hetero.max", Heterogeneous, &[INTRA_O3, INTER_DY], |on| {
        on.shorter(INTRA_O3, INTER_DY, most_latency)
    }),
    ("lat.mx1_last_two", Mixes(&[1]), &[INTRA_O3, SIMD], last_two),
    ("energy.intrao3_vs_simd", All, &[INTRA_O3, SIMD], |on| on.below(INTRA_O3, SIMD, on.energy())),
    ("energy.simd_transfer_share", DATA, &[SIMD], |on| on.transfer_energy()),
    ("energy.interst_vs_simd_compute", PRODUCTS, &[INTER_ST, SIMD], |on| {
        on.gain(INTER_ST, SIMD, on.energy())
    }),
    ("energy.vs_interst.intraio", PRODUCTS, &[INTRA_IO, INTER_ST], |on| {
        on.below(INTRA_IO, INTER_ST, on.energy())
    }),
    ("energy.vs_interst.interdy", PRODUCTS, &[INTER_DY, INTER_ST], |on| {
        on.below(INTER_DY, INTER_ST, on.energy())
    }),
    ("energy.vs_interst.intrao3", PRODUCTS, &[INTRA_O3, INTER_ST], |on| {
        on.below(INTRA_O3, INTER_ST, on.energy())
    }),
    ("util.interdy_homo", Homogeneous, &[INTER_DY], |on| on.of(INTER_DY, on.utilisation())),
    ("util.intrao3_hetero", Heterogeneous, &[INTRA_O3], |on| on.of(INTRA_O3, on.utilisation())),
    ("util.intrao3_vs_interdy_hetero", Heterogeneous, &[INTRA_O3, INTER_DY], |on| {
        on.gain(INTRA_O3, INTER_DY, on.utilisation())
    }),
    ("util.simd_below_intrao3", DATA, &[SIMD, INTRA_O3], |on| on.below(SIMD, INTRA_O3, on.utilisation())),
    ("power.simd_storage_access", Programs(&["atax"]), &[SIMD, INTRA_O3], |on| {
        on.ratio(SIMD, INTRA_O3, access_power)
    }),
    ("power.intrao3_compute", Programs(&["atax"]), &[INTRA_O3, SIMD], |on| {
        on.gain(INTRA_O3, SIMD, compute_power)
    }),
    ("motivation.transfer_time_share.all", Homogeneous, &[SIMD], |on| on.of(SIMD, transfer_time)),
    ("motivation.transfer_time_share.data_intensive", MOVING, &[SIMD], |on| on.of(SIMD, transfer_time)),
    ("motivation.transfer_energy_share.all", Homogeneous, &[SIMD], |on| on.transfer_energy()),
    ("motivation.transfer_energy_share.computing", COMPUTING, &[SIMD], |on| on.transfer_energy()),
    ("real.bw_vs_simd.intraio", REAL, &[INTRA_IO, SIMD], |on| on.ratio(INTRA_IO, SIMD, bandwidth)),
    ("real.bw_vs_simd.interdy", REAL, &[INTER_DY, SIMD], |on| on.ratio(INTER_DY, SIMD, bandwidth)),
    ("real.bw_vs_simd.intrao3", REAL, &[INTRA_O3, SIMD], |on| on.ratio(INTRA_O3, SIMD, bandwidth)),
    ("real.energy_vs_simd.interst", REAL, &[INTER_ST, SIMD], |on| on.below(INTER_ST, SIMD, on.energy())),
    ("real.energy_vs_simd.intraio", REAL, &[INTRA_IO, SIMD], |on| on.below(INTRA_IO, SIMD, on.energy())),
    ("real.energy_vs_simd.interdy", REAL, &[INTER_DY, SIMD], |on| on.below(INTER_DY, SIMD, on.energy())),
    ("real.energy_vs_simd.intrao3", REAL, &[INTRA_O3, SIMD], |on| on.below(INTRA_O3, SIMD, on.energy())),
    ("real.interst_vs_simd.nw", Programs(&["nw"]), &[INTER_ST, SIMD], |on| {
        on.gain(INTER_ST, SIMD, bandwidth)
    }),
    ("real.interst_vs_simd.path", Programs(&["path"]), &[INTER_ST, SIMD], |on| {
        on.gain(INTER_ST, SIMD, bandwidth)
    }),
    ("real.simd_transfer_energy", REAL, &[SIMD], |on| on.transfer_energy()),
    ("series.intrao3_earlier", Programs(&["atax"]), &[SIMD, INTRA_O3], |on| {
        Ok(on.of(SIMD, makespan)?.plus(on.of(INTRA_O3, makespan)?.map(|ours| -ours)))
    }),
];

/// A figure's entry; none for a name that is not known.
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let id = figure.id.strip_prefix("flashabacus.")?;
    let known = FIGURES.iter().find(|(name, ..)| *name == id);
    if let Some((_, group, systems, compute)) = known {
        return Some(new(figure, suite, *group, systems, *compute));
    }
    match id {
        "motivation.serial_30.loss" => Some(serial_loss(figure, suite, 30)),
        "motivation.serial_30.utilisation" => Some(serial_utilisation(figure, suite, 30)),
        "motivation.serial_10" => Some(serial_utilisation(figure, suite, 10)),
        _ => constants_entry(figure),
    }
}

/// All schedulers, and the rival.
const EACH: [&str; 5] = [SIMD, INTER_ST, INTER_DY, INTRA_IO, INTRA_O3];

/// The runs of one world: those of an assignment.
pub(super) struct World<'a> {
    found: &'a Found,
    suite: &'a Suite,
    workloads: &'a [String],
}

/// A value of each workload, whose mean is the row's.
type Compute = fn(&World<'_>) -> Result<Values, Diagnostic>;

impl World<'_> {
    fn points(&self, system: &str) -> Vec<Point> {
        self.workloads.iter().map(|workload| self.suite.point(system, workload)).collect()
    }

    fn of(&self, system: &str, metric: Metric) -> Result<Values, Diagnostic> {
        Values::of(self.found, &self.points(system), metric)
    }

    /// Ratios of two systems.
    fn ratio(&self, over: &str, under: &str, metric: Metric) -> Result<Values, Diagnostic> {
        Ok(self.of(over, metric)?.over(self.of(under, metric)?))
    }

    /// Ratios of two systems less one, per cent.
    fn gain(&self, over: &str, under: &str, metric: Metric) -> Result<Values, Diagnostic> {
        Ok(self.ratio(over, under, metric)?.map(|ratio| 100.0 * (ratio - 1.0)))
    }

    /// One less the ratios, per cent.
    fn below(&self, over: &str, under: &str, metric: Metric) -> Result<Values, Diagnostic> {
        Ok(self.ratio(over, under, metric)?.map(|ratio| 100.0 * (1.0 - ratio)))
    }

    /// The mean over schedulers, workload by workload.
    fn schedulers(&self, of: fn(&Self, &str) -> Result<Values, Diagnostic>) -> Result<Values, Diagnostic> {
        let mut all = of(self, SCHEDULERS[0])?;
        for one in &SCHEDULERS[1..] {
            all = all.plus(of(self, one)?);
        }
        Ok(all.map(|sum| sum / SCHEDULERS.len() as f64))
    }

    /// Increase of latencies on `over` relative to the systems `under`, per cent, with the means of the reading.
    fn longer(&self, over: &str, under: &[&str], metric: Metric) -> Result<Values, Diagnostic> {
        match self.suite.choices.latency {
            Latency::RatioOfMeans => self.of_means(&[over], under, metric, |ratio| 100.0 * (ratio - 1.0)),
            Latency::MeanOfRatios => {
                let of = |one: &&str| self.gain(over, one, metric);
                let mut each = under.iter().map(of).collect::<Result<Vec<_>, _>>()?.into_iter();
                let first = each.next().unwrap_or_default();
                Ok(each.fold(first, Values::plus).map(|sum| sum / under.len() as f64))
            }
        }
    }

    /// Decrease of latencies on `one` relative to `other`, per cent.
    fn shorter(&self, one: &str, other: &str, metric: Metric) -> Result<Values, Diagnostic> {
        match self.suite.choices.latency {
            Latency::RatioOfMeans => self.of_means(&[one], &[other], metric, |ratio| 100.0 * (1.0 - ratio)),
            Latency::MeanOfRatios => self.below(one, other, metric),
        }
    }

    /// The ratio of the means over workloads and systems, changed.
    fn of_means(
        &self,
        over: &[&str],
        under: &[&str],
        metric: Metric,
        change: impl Fn(f64) -> f64,
    ) -> Result<Values, Diagnostic> {
        let mean = |systems: &[&str]| {
            let of = |system: &&str| Ok(self.of(system, metric)?.arithmetic());
            let all = systems.iter().map(of).collect::<Result<Vec<f64>, Diagnostic>>()?;
            Ok::<f64, Diagnostic>(all.iter().sum::<f64>() / all.len() as f64)
        };
        let (over, under) = (mean(over)?, mean(under)?);
        Ok(Values::new(vec![(format!("means {over:.0} and {under:.0} ns"), change(over / under))]))
    }

    fn energy(&self) -> Metric {
        self.suite.choices.energy()
    }

    fn utilisation(&self) -> Metric {
        self.suite.choices.utilisation()
    }

    /// The share of the rival's energy that moves and stores data, per cent, with the items that it consists of.
    fn transfer_energy(&self) -> Result<Values, Diagnostic> {
        let whole = self.suite.choices.energy == Energy::WholeRun;
        let of = |point: &Point| {
            let items = if whole { whole_items } else { items }(self.found.get(point)?)?;
            Ok((format!("{} ({items})", point.workloads.join("-")), items.transfer_share()))
        };
        self.points(SIMD).iter().map(of).collect::<Result<_, _>>().map(Values::new)
    }
}

/// Ends of the two programs that end last on the rival, relative to those on FlashAbacus, less one, per cent.
fn last_two(on: &World<'_>) -> Result<Values, Diagnostic> {
    let document = |system: &str| match &on.points(system)[..] {
        [point] => on.found.get(point),
        points => Err(Diagnostic::new(format!("{} mixes instead of one", points.len()))),
    };
    let (theirs, ours) = (ends(document(SIMD)?)?, ends(document(INTRA_O3)?)?);
    let gain = |(program, end): (String, f64)| {
        let own = ours.iter().find(|(known, _)| *known == program);
        let gain = own.map(|(_, own)| 100.0 * (end / own - 1.0));
        gain.map(|gain| (program, gain)).ok_or_else(|| Diagnostic::new("a program did not run on both"))
    };
    let last = theirs.len().saturating_sub(2);
    theirs.into_iter().skip(last).map(gain).collect::<Result<Vec<_>, _>>().map(Values::new)
}

/// The shortest latency with inter-kernel schedulers over that with intra-kernel ones, less one, per cent: the mean of
/// two each, program by program.
fn inter_over_intra(on: &World<'_>) -> Result<Values, Diagnostic> {
    let (between, within) = ([INTER_ST, INTER_DY], [INTRA_IO, INTRA_O3]);
    if on.suite.choices.latency == Latency::RatioOfMeans {
        return on.of_means(&between, &within, least_latency, |ratio| 100.0 * (ratio - 1.0));
    }
    let of = |systems: [&str; 2]| {
        Ok::<_, Diagnostic>(on.of(systems[0], least_latency)?.plus(on.of(systems[1], least_latency)?))
    };
    Ok(of(between)?.over(of(within)?).map(|ratio| 100.0 * (ratio - 1.0)))
}

/// A row from runs of workloads on some systems: the median over assignments, if there are several.
fn new(figure: &Figure, suite: &Suite, group: Group, systems: &[&'static str], compute: Compute) -> Entry {
    let worlds = suite.worlds(group);
    let point = |system: &&str| {
        worlds.iter().flatten().map(|workload| suite.point(system, workload)).collect::<Vec<_>>()
    };
    let points = systems.iter().flat_map(point).collect();
    let (figure, suite) = (figure.clone(), suite.clone());
    Entry::new(figure.id.clone(), points, move |found| {
        let of = |workloads: &Vec<String>| compute(&World { found, suite: &suite, workloads });
        let values = worlds.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let mut means: Vec<f64> = values.iter().map(Values::arithmetic).collect();
        means.sort_by(f64::total_cmp);
        let quantile = |share: f64| means[((means.len() - 1) as f64 * share).round() as usize];
        let note = match &values[..] {
            [only] => only.each(),
            _ => {
                let (least, most) = (quantile(0.05), quantile(0.95));
                format!("median of {} assignments, 5 to 95 %: {least:.2} to {most:.2}", values.len())
            }
        };
        figure.row(quantile(0.5), [note, suite.sharing(&worlds)].concat())
    })
}

/// The flash of section 4.3.
const FLASH_BYTES: u64 = 32 << 30;

/// A figure's entry; none if it is not a constant.
pub(super) fn constants_entry(figure: &Figure) -> Option<Entry> {
    (figure.id == "flashabacus.map.table_size_32gb").then(|| map(figure))
}

/// An entry for each page group of the system's, over 32 GB.
fn map(figure: &Figure) -> Entry {
    let figure = figure.clone();
    Entry::new(figure.id.clone(), Vec::new(), move |_| {
        let loaded = machine::load(INTRA_O3, &[])?;
        let part = loaded.spec.group_flash.first();
        let groups = &part.ok_or_else(|| Diagnostic::new("no flash of page groups"))?.spec.groups.geometry;
        let group = u64::from(groups.channels) * u64::from(groups.planes) * groups.page.get();
        let entries = FLASH_BYTES / group;
        let note = format!("{entries} groups of {} KiB, {} B each", group >> 10, ENTRY_BYTES);
        figure.row((entries * ENTRY_BYTES) as f64 / 1024.0, note)
    })
}

/// Rows of the kernel.
const SERIAL_SHARES: u32 = 100_000;

/// Number of rows in the serial microblock for this share in per cent; one row at least.
fn serial_point(suite: &Suite, percent: u32) -> Point {
    let serial = (SERIAL_SHARES / 100 * percent).max(1);
    suite.point(SIMD, &format!("serial:p={},s={serial}", SERIAL_SHARES - serial))
}

/// Loss of throughput relative to the same work without a serial part, per cent.
pub(super) fn serial_loss(figure: &Figure, suite: &Suite, percent: u32) -> Entry {
    let [none, some] = [0, percent].map(|percent| serial_point(suite, percent));
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, vec![none.clone(), some.clone()], move |found| {
        let (none, some) = (work(found.get(&none)?)?, work(found.get(&some)?)?);
        figure.row(100.0 * (1.0 - none / some), "of the accelerator's work, without transfers")
    })
}

/// The share of the work's time in which cores compute, per cent.
pub(super) fn serial_utilisation(figure: &Figure, suite: &Suite, percent: u32) -> Entry {
    let point = serial_point(suite, percent);
    let (id, figure) = (figure.id.clone(), figure.clone());
    let used = suite.choices.utilisation();
    Entry::new(id, vec![point.clone()], move |found| {
        figure.row(of_work(found.get(&point)?, used)?, "of the accelerator's work, without transfers")
    })
}

/// The rows that variants have of these figures. They are choices beside the first reading: another one has none.
pub(super) fn variant_entries(figures: &[Figure], effort: Effort, reading: &Reading) -> Vec<Entry> {
    if !reading.is_first {
        return Vec::new();
    }
    let run = |variant: &Variant| effort == Effort::Whole || (variant.beside && effort == Effort::Full);
    let all = variants(super::READINGS).into_iter().filter(run);
    all.flat_map(|variant| of_variant(&variant, figures, reading)).collect()
}

fn of_variant(variant: &Variant, figures: &[Figure], reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(Effort::Full, reading).varied(reading, variant);
    let programs = variant.programs.iter().map(|program| format!("{program}.")).collect::<String>();
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("flashabacus.")?;
        let entry = variant.shows(id).then(|| self::entry(figure, &suite))??;
        // A figure of other programs has no run.
        let is_read = !entry.points.is_empty();
        let name = format!("flashabacus.{}.{programs}{id}", variant.id);
        is_read.then(|| entry.changed(name, Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::{Group, SCHEDULERS, SIMD};
    use super::*;
    use crate::reading::{readings, sets};
    use machine::run::{self, Plan};
    use std::collections::BTreeSet;

    fn reading() -> Reading {
        readings(super::super::READINGS).swap_remove(0)
    }

    fn spec(system: &str, set: &[&str]) -> String {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let loaded = machine::load(system, &set);
        loaded.unwrap_or_else(|fault| panic!("{system} {set:?}: {fault}")).spec.to_json().to_string()
    }

    #[test]
    fn every_choice_can_be_built_and_changes_something() {
        let reading = reading();
        for system in SCHEDULERS.into_iter().chain([SIMD]) {
            let read = sets(&reading.choices, system);
            assert_ne!(spec(system, &read), spec(system, &[]), "the reading leaves {system} as it is");
            for variant in variants(super::super::READINGS) {
                let own = sets(&variant.choices, system);
                let varied = spec(system, &[&read[..], &own].concat());
                assert!(
                    own.is_empty() || varied != spec(system, &read),
                    "{} sets what {system} has",
                    variant.id
                );
            }
        }
    }

    #[test]
    fn every_variant_has_rows_of_its_own() {
        let expected = super::super::expected();
        let mut seen = BTreeSet::new();
        for variant in variants(super::super::READINGS) {
            let rows = of_variant(&variant, expected.figures(), &reading());
            assert!(!rows.is_empty(), "{}", variant.id);
            for row in rows {
                assert!(seen.insert(row.id.clone()), "{} twice", row.id);
            }
        }
    }

    /// Six instances of every program with input of their own fit the flash.
    #[test]
    fn programs_fit_with_input_of_their_own() {
        let suite = Suite::of(Effort::Full, &reading());
        for workload in suite.worlds(Group::Homogeneous).concat() {
            assert!(workload.ends_with(",inputs=own"), "{workload}");
            let plan = Plan::new(SCHEDULERS[0], &workload);
            assert!(run::check(&plan).is_ok(), "{workload}: {:?}", run::check(&plan).err());
        }
    }
}
