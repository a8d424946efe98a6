//! The whole workloads of Table 1, predicted from the kernels of one input (section 3.1): Y = sum of N times the mean.

use super::super::row::{Row, Rule};
use super::super::study::{Entry, Point};
use super::Suite;
use config::Diagnostic;
use machine::result::Document;
use programs::program::{Kernel, launches};
use std::collections::BTreeMap;

/// The networks' whole workloads.
const WHOLE: [(&str, &str); 3] = [
    ("bert", "bert:pairs=10000"),
    ("gpt2", "gpt2:sentences=1000,tokens=100"),
    ("resnet50", "resnet50:images=13400"),
];
/// Two-sided 95 % of a normal distribution.
const Z: f64 = 1.96;

/// Properties that distinguish kernels: name, blocks, threads per block.
type Kind = (&'static str, u32, u32);

fn kind(kernel: &Kernel) -> Kind {
    (kernel.name, kernel.blocks, kernel.threads)
}

/// Durations of one kind, ns.
#[derive(Clone, Copy, Default)]
struct Durations {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Durations {
    fn add(&mut self, ns: f64) {
        self.count += 1.0;
        self.sum += ns;
        self.squares += ns * ns;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Variance of the mean; none is known of a single kernel.
    fn of_mean(&self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        let variance = (self.squares - self.sum * self.mean()) / (self.count - 1.0);
        variance.max(0.0) / self.count
    }
}

/// The predicted time of a whole workload.
struct Predicted {
    seconds: f64,
    half_width_s: f64,
    kernels: u64,
    /// Kernels of a grid that was not simulated: predicted from the same kernel on other grids.
    elsewhere: u64,
}

/// Speed-up of the whole workload on MQMS, with sequential and with strewn data.
pub(super) fn entries(suite: &Suite) -> Vec<Entry> {
    let placed = suite.placed("mqms.whole", "mqms.strewn.whole");
    let of = |(name, workload): &(&'static str, &'static str)| {
        placed.iter().filter_map(|(rows, suite)| entry(suite, rows, name, workload)).collect::<Vec<_>>()
    };
    suite.networks.iter().flat_map(of).collect()
}

fn entry(suite: &Suite, rows: &str, name: &str, workload: &'static str) -> Option<Entry> {
    let (_, whole) = WHOLE.iter().find(|(known, _)| *known == name)?;
    let points: [Point; 2] = ["mqsim-macsim", "mqms"].map(|system| suite.point(system, workload));
    let wanted = points.to_vec();
    Some(Entry::new(format!("{rows}.{name}"), wanted, move |found| {
        let [under, over] = &points;
        let (under, over) =
            (predict(found.get(under)?, workload, whole)?, predict(found.get(over)?, workload, whole)?);
        let row = Row::new("", "x", 1.0, under.seconds / over.seconds, Rule::AtLeast);
        let elsewhere = 100.0 * over.elsewhere as f64 / over.kernels as f64;
        let note = format!(
            "baseline {:.0} +-{:.0} s, MQMS {:.0} +-{:.0} s for the {} kernels of `{whole}`, from those of `{workload}`; {elsewhere:.1} % of them from other grids",
            under.seconds, under.half_width_s, over.seconds, over.half_width_s, over.kernels
        );
        Ok(row.swept().place("end time of the baseline over MQMS's, by sampling").note(note))
    }))
}

fn predict(document: &Document, workload: &str, whole: &str) -> Result<Predicted, Diagnostic> {
    let apps = document.gpu.iter().flat_map(|gpu| &gpu.applications);
    let simulated: Vec<f64> =
        apps.flat_map(|app| &app.kernels).filter_map(|k| Some(k.ended_ns? - k.begun_ns)).collect();
    let mut by_kind: BTreeMap<Kind, Durations> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, Durations> = BTreeMap::new();
    for ((_, kernel), ns) in launches(workload)?.zip(simulated) {
        by_kind.entry(kind(&kernel)).or_default().add(ns);
        by_name.entry(kernel.name).or_default().add(ns);
    }
    let mut counts: BTreeMap<Kind, u64> = BTreeMap::new();
    for (_, kernel) in launches(whole)? {
        *counts.entry(kind(&kernel)).or_default() += 1;
    }
    let (mut total, mut variance, mut elsewhere) = (0.0, 0.0, 0);
    for (kind, count) in &counts {
        let own = by_kind.get(kind);
        elsewhere += if own.is_some() { 0 } else { *count };
        let durations = own
            .or_else(|| by_name.get(kind.0))
            .ok_or_else(|| Diagnostic::new(format!("no kernel `{}` was simulated of `{whole}`", kind.0)))?;
        let n = *count as f64;
        total += n * durations.mean();
        variance += n * n * durations.of_mean();
    }
    Ok(Predicted {
        seconds: total / 1e9,
        half_width_s: Z * variance.sqrt() / 1e9,
        kernels: counts.values().sum(),
        elsewhere,
    })
}

#[cfg(test)]
mod tests {
    use super::Durations;

    #[test]
    fn a_mean_and_how_well_it_is_known() {
        let mut durations = Durations::default();
        durations.add(2.0);
        assert_eq!((durations.mean(), durations.of_mean()), (2.0, 0.0));
        [4.0, 6.0].into_iter().for_each(|ns| durations.add(ns));
        // Variance 4 of three values.
        assert!((durations.mean() - 4.0).abs() < 1e-12 && (durations.of_mean() - 4.0 / 3.0).abs() < 1e-12);
    }
}
