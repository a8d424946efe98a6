//! Runs of the study: pairs of programs, and machines scaled down together with their data.

use super::super::study::Point;
use super::super::{Effort, Reading};
use super::super::{mean::Metric, reading::study};
use super::slice;
use config::Diagnostic;
use machine::result::Document;
use proto::memory::Stage;
use serde::Deserialize;

/// The pairs that the paper's text names.
pub(super) const NAMED: [&str; 4] = ["betw-back", "bfs1-gaus", "bfs2-gaus", "bfs6-gaus"];
/// All pairs: a read-intensive program with a write-intensive one.
const PAIRS: [&str; 12] = [
    "betw-back",
    "bfs1-gaus",
    "bfs2-gaus",
    "bfs3-FDT",
    "bfs4-back",
    "bfs5-back",
    "bfs6-gaus",
    "gc1-FDT",
    "gc2-FDT",
    "sssp3-gram",
    "deg-gram",
    "pr-gaus",
];
/// The twelve workloads of Fig. 5, from three suites, each alone: the write-intensive programs, and of the graph
/// programs one of each but those searches that the text names.
const SINGLES: [&str; 12] =
    ["betw", "bfs1", "bfs2", "bfs6", "gc1", "sssp3", "deg", "pr", "back", "gaus", "FDT", "gram"];

/// Parameter that sets a program's footprint, at full size and halved repeatedly. A graph has two to its scale
/// vertices, at full size the million of GraphBIG's LDBC graph; `back` has a row of weights for each input; matrices
/// and fields lose rows and keep their length, so that a sweep over rows shrinks as the machine does.
pub(super) fn size(program: &str, halvings: usize) -> String {
    let halved = |whole: u32| whole >> halvings;
    match program {
        "back" => format!("n={}", halved(491_520)),
        "gaus" => format!("n=2944,rows={}", halved(2_944)),
        "FDT" | "gram" => format!("n=2560,rows={}", halved(2_560)),
        _ => format!("scale={}", 20 - halvings),
    }
}

/// Overrides by a variant of the whole table, for a system on a slice smaller by `factor`.
pub(super) type Variant = fn(system: &str, factor: u32) -> Vec<String>;

/// Suite of a study.
#[derive(Clone)]
pub(super) struct Suite {
    pub(super) pairs: Vec<&'static str>,
    /// The pairs on which designs of a part are compared.
    pub(super) design_pairs: Vec<&'static str>,
    pub(super) singles: Vec<&'static str>,
    halvings: usize,
    /// Simulated time at which runs are cut off.
    until: Option<&'static str>,
    /// Deviation from the decisions of the reading.
    variant: Variant,
    /// Components that count as the engine of an SSD.
    pub(super) engine: Engine,
}

/// Choices of the study, as `study` of `papers/zng/readings.toml` has them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Choices {
    engine: Engine,
}

impl Suite {
    pub(super) fn of(effort: Effort, reading: &Reading) -> Suite {
        let (pairs, design_pairs, singles): (&[&str], &[&str], &[&str]) = match effort {
            Effort::Whole => (&PAIRS, &NAMED, &SINGLES),
            Effort::Full | Effort::Quick => (&NAMED[1..2], &NAMED[1..2], &SINGLES[1..2]),
        };
        Suite {
            pairs: pairs.to_vec(),
            design_pairs: design_pairs.to_vec(),
            singles: singles.to_vec(),
            halvings: 3,
            until: None,
            variant: |_, _| Vec::new(),
            engine: study::<Choices>(&reading.choices).engine,
        }
    }

    /// Two of the named pairs.
    fn two(&self) -> Suite {
        let two = NAMED[..2].to_vec();
        Suite { pairs: two.clone(), design_pairs: two, ..self.clone() }
    }

    /// Two of the named pairs, cut off after a time.
    pub(super) fn cut(&self, until: &'static str) -> Suite {
        Suite { until: Some(until), ..self.two() }
    }

    /// Two of the named pairs, otherwise than decided.
    pub(super) fn varied(&self, variant: Variant) -> Suite {
        Suite { variant, ..self.two() }
    }

    /// One of the named pairs at another scale: a quarter, a half, all.
    pub(super) fn scaled(&self, halvings: usize) -> Suite {
        Suite { pairs: NAMED[..1].to_vec(), halvings, ..self.clone() }
    }

    /// Factor by which machines and data are reduced.
    pub(super) fn factor(&self) -> u32 {
        1 << self.halvings
    }

    /// Programs side by side, this many of each, on a system at the suite's scale.
    pub(super) fn point(&self, system: &str, programs: &str, instances: usize, seed: u64) -> Point {
        let one = |program: &str| {
            let size = size(program, self.halvings);
            let graph = size.starts_with("scale");
            let seed = if graph { format!(",seed={seed}") } else { String::new() };
            vec![format!("{program}:{size}{seed}"); instances]
        };
        let workloads = programs.split('-').flat_map(one).collect();
        let least_footprint = self.least_footprint(programs);
        let point = Point { system: system.into(), workloads, seed, least_footprint, ..Point::default() };
        let sets = [slice::of(system, self.halvings), (self.variant)(system, self.factor())];
        let point = sets.iter().flatten().fold(point, |point, set| point.set(set));
        match self.until {
            Some(until) => Point { least_footprint: 0, ..point }.set(&format!("sim.until={until}")),
            None => point,
        }
    }

    /// Sets of the shared cache when it is built of SRAM.
    pub(super) fn sram_sets(&self) -> u32 {
        1024 / self.factor()
    }

    /// Bytes that the programs of a run must have between them: of a pair four times the largest buffer of any
    /// platform, HybridGPU's flash cache of 32 MiB for reads and as much for writes; of one program, which only
    /// platforms without one run, four times the shared cache.
    fn least_footprint(&self, programs: &str) -> u64 {
        let largest: u64 = if programs.contains('-') { 64 << 20 } else { 6 << 20 };
        4 * largest / u64::from(self.factor())
    }

    /// A system on every pair.
    pub(super) fn on(&self, system: &str) -> Vec<Point> {
        self.pairs.iter().map(|pair| self.point(system, pair, 1, 1)).collect()
    }

    /// A system on those of the pairs that the text names.
    pub(super) fn named_on(&self, system: &str) -> Vec<Point> {
        let pairs = self.pairs.iter().filter(|pair| NAMED.contains(pair));
        pairs.map(|pair| self.point(system, pair, 1, 1)).collect()
    }

    /// A system on the programs of Fig. 5.
    pub(super) fn alone(&self, system: &str) -> Vec<Point> {
        self.singles.iter().map(|program| self.point(system, program, 1, 1)).collect()
    }
}

// The SSD engine of HybridGPU, whose share of a load's life section III-A gives.

/// Parts of the drive that count as its engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Engine {
    /// The dispatcher and the FTL.
    #[default]
    Processor,
    /// Dispatcher, FTL and the DRAM of the buffer.
    WithBuffer,
}

impl Engine {
    /// The other way to count.
    pub(super) fn other(self) -> Engine {
        match self {
            Engine::Processor => Engine::WithBuffer,
            Engine::WithBuffer => Engine::Processor,
        }
    }

    /// Name of the way to count, as readings have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::Processor => "processor",
            Engine::WithBuffer => "with_buffer",
        }
    }

    /// The share of a load's life below the first-level cache that it spends in the engine, per cent.
    pub(super) fn share(self) -> Metric {
        match self {
            Engine::Processor => |document| share(document, &[Stage::Controller, Stage::Ftl]),
            Engine::WithBuffer => |document| share(document, &[Stage::Controller, Stage::Ftl, Stage::Buffer]),
        }
    }
}

fn share(document: &Document, inside: &[Stage]) -> Result<f64, Diagnostic> {
    const ABOVE: [Stage; 5] = [Stage::L1, Stage::L1Merge, Stage::Tlb, Stage::Walk, Stage::Fault];
    let named =
        |stages: &[Stage], name: &str| stages.iter().any(|stage| Stage::NAMES[*stage as usize] == name);
    let parts = document.breakdown_ns.get("load").ok_or_else(|| Diagnostic::new("no load was measured"))?;
    let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
        parts.iter().filter(|(name, _)| wanted(name)).filter_map(|(_, ns)| ns.as_f64()).sum()
    };
    let below = sum(&|name| !named(&ABOVE, name));
    Ok(100.0 * sum(&|name| named(inside, name)) / below)
}
