//! What is run: programs on systems, at which size and how long.

use super::super::Effort;
use super::super::study::Point;

/// Programs, as the paper's tables name them and as ours are called.
const PROGRAMS: [(&str, &str); 7] = [
    ("masstree", "masstree"),
    ("silo", "silo"),
    ("array_swap", "swap"),
    ("rbt", "rbt"),
    ("hash_table", "hash"),
    ("tatp", "tatp"),
    ("tpcc", "tpcc"),
];

/// Cores: a quarter of Table I's, so that 49 runs at saturation and the sweep of loads take minutes. Each core has its own queue
/// of jobs; what cores share is scaled with them.
const CORES: u32 = 4;
/// Gibibytes of the data set: 16 a core, as in section V-A.
const GIBIBYTES: u32 = 16 * CORES;
/// Jobs of a core at saturation: with at most 64 of them halted at a time, what is under way when a run ends is a few per cent
/// of it, and 99th percentiles rest on tens of jobs.
const JOBS: u32 = 2_000;
/// Jobs of a core before the measured window: its caches and the queues behind them fill.
const WARMUP: u32 = 200;
/// Jobs of a core under random arrivals. At 96 % load a queue forgets within some 1 / (1 - 0.96)^2 = 625 jobs.
const JOBS_OF_A_LOAD: u32 = 20_000;

/// What a study runs.
#[derive(Clone)]
pub(super) struct Suite {
    /// Programs: the paper's name and ours.
    pub(super) programs: Vec<(&'static str, &'static str)>,
    seeds: Vec<u64>,
    /// How many times longer runs are.
    longer: u32,
    /// Whether flash takes its fixed times behind a DRAM cache, whatever the load, instead of being planes with queues.
    fixed: bool,
}

impl Suite {
    pub(super) fn of(effort: Effort) -> Suite {
        let (programs, seeds, longer): (&[_], &[u64], u32) = match effort {
            Effort::Whole => (&PROGRAMS, &[1, 2, 3], 10),
            Effort::Full => (&PROGRAMS, &[1], 1),
            Effort::Quick => (&PROGRAMS[5..6], &[1], 1),
        };
        Suite { programs: programs.to_vec(), seeds: seeds.to_vec(), longer, fixed: true }
    }

    /// The same with planes that have queues behind every DRAM cache.
    pub(super) fn with_planes(&self) -> Suite {
        Suite { fixed: false, ..self.clone() }
    }

    /// Our name for one of the paper's programs, if it is run.
    pub(super) fn program(&self, paper: &str) -> Option<&'static str> {
        self.programs.iter().find(|(name, _)| *name == paper).map(|(_, ours)| *ours)
    }

    /// A program on a system at saturation, with each seed.
    pub(super) fn saturated(&self, system: &str, program: &str) -> Vec<Point> {
        let point = |seed: &u64| self.point(system, program, *seed, JOBS);
        self.seeds.iter().map(point).collect()
    }

    /// A system at saturation on every program, with every seed.
    pub(super) fn on(&self, system: &str) -> Vec<Point> {
        self.programs.iter().flat_map(|(_, program)| self.saturated(system, program)).collect()
    }

    /// A program on a system whose cores get jobs at random, each one every so many nanoseconds on the mean.
    pub(super) fn loaded(&self, system: &str, program: &str, interval_ns: f64) -> Point {
        let picoseconds = (interval_ns * 1e3).round();
        self.point(system, program, self.seeds[0], JOBS_OF_A_LOAD)
            .set(&format!("cpu.0.load.arrivals={{ poisson = {{ interval = \"{picoseconds}ps\" }} }}"))
    }

    /// Cores of every machine.
    pub(super) fn cores(&self) -> f64 {
        f64::from(CORES)
    }

    fn point(&self, system: &str, program: &str, seed: u64, jobs: u32) -> Point {
        let workloads = vec![format!("{program}:size={GIBIBYTES}GiB,seed={seed}")];
        let jobs = u64::from(jobs) * u64::from(CORES) * u64::from(self.longer);
        let point = Point { system: system.into(), set: Vec::new(), workloads, seed, least_footprint: 0 };
        slice(system, self.fixed)
            .iter()
            .fold(point, |point, set| point.set(set))
            .set(&format!("cpu.warmup.fixed.jobs={}", WARMUP * CORES))
            .set(&format!("cpu.0.load.jobs={jobs}"))
    }
}

/// The overrides that make a quarter of a system: cores with their share of the mesh, of the shared cache's banks, of memory
/// controllers (each with its part of the DRAM) and of the flash's planes.
fn slice(system: &str, fixed: bool) -> Vec<String> {
    let cache = !matches!(system, "dram-only" | "os-swap");
    let memory = if cache { "dram_cache.dram" } else { "dram" };
    let mut sets = vec![
        format!("cpu.0.cores={CORES}"),
        "fabric.mesh.rows=2".into(),
        "fabric.mesh.columns=2".into(),
        format!("l2.banks={CORES}"),
        format!("memory.{memory}.controllers=1"),
    ];
    if system != "dram-only" {
        sets.push("flash.geometry.channels=4".into());
    }
    if cache && fixed {
        sets.push("memory.dram_cache.backing=fixed".into());
    }
    if system == "os-swap" {
        // What Linux keeps free of so much: the root of 16 times its KiB.
        sets.extend(["swap.memory=2GiB".into(), "swap.free=5792KiB".into()]);
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::slice;
    use crate::Loaded;

    #[test]
    fn every_slice_can_be_built() {
        for system in [
            "dram-only",
            "astriflash",
            "astriflash-ideal",
            "astriflash-nops",
            "astriflash-nodp",
            "os-swap",
            "flash-sync",
        ] {
            for fixed in [false, true] {
                let loaded = Loaded::load(system, &slice(system, fixed));
                assert!(loaded.is_ok(), "{system}: {:?}", loaded.err());
            }
        }
    }
}
