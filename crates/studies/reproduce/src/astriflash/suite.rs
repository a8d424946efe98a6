//! Runs of the study: programs and systems, with their sizes and lengths.

use super::super::Effort;
use super::super::study::Point;
use std::sync::{Arc, OnceLock};

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

/// Cores: a quarter of Table I's, so that 49 runs at saturation and the sweep of loads take minutes. Each core has its
/// own queue of jobs; what cores share is scaled with them.
const CORES: u32 = 4;
/// Cores of Table I.
const WHOLE: u32 = 16;
/// Gibibytes of the data set of a core (section V-A).
const GIBIBYTES: u32 = 16;
/// Jobs of a core at saturation: with at most 64 of them halted at a time, what is under way when a run ends is a few
/// per cent of it, and 99th percentiles rest on a hundred jobs and have confidence intervals.
const JOBS: u32 = 2_800;
/// Jobs of a core before the measured window: its caches and the queues behind them fill.
const WARMUP: u32 = 200;
/// Jobs of a core under random arrivals. At 96 % load a queue forgets within some 1 / (1 - 0.96)^2 = 625 jobs.
const JOBS_OF_A_LOAD: u32 = 20_000;

/// Jobs of a core over a drive that collects: each plane frees some hundred blocks meanwhile.
const AGED_JOBS: u32 = 84_000;

/// Values that are set on a system.
type Sets = &'static [(&'static str, &'static [&'static str])];

/// Section III-A, by which section V-B defines OS-Swap: a page costs 10 us of the core, "5 us" of them management of
/// memory and flash (III-B2), so that 5 are left for two switches. *Chosen*: how the first five are divided.
const TEN_MICROSECONDS: &[&str] = &[
    "cpu.threads.switch=2.5us",
    "swap.fault=1us",
    "swap.submit=1us",
    "swap.complete=1us",
    "swap.select=500ns",
    "swap.lock=0ns",
    "swap.shootdown.base=1500ns",
    "swap.shootdown.per_core=0ns",
    "swap.shootdown.respond=0ns",
];
/// Overrides of section III-A with the shoot-down of section II-C. *Chosen*: each other core loses what it loses on
/// `os-swap`.
const SHOOTDOWN: &[&str] = &[
    "cpu.threads.switch=2.5us",
    "swap.fault=1us",
    "swap.submit=1us",
    "swap.complete=1us",
    "swap.select=500ns",
    "swap.lock=0ns",
    "swap.shootdown.base=10us",
    "swap.shootdown.per_core=0ns",
    "swap.shootdown.respond=500ns",
];
/// Section II-C's parts: 10 us for the storage stack, divided as `os-swap` has it, 10 us for the shoot-down, 5 us for
/// the switch there and back.
const COMPONENTS: &[&str] = &[
    "cpu.threads.switch=2.5us",
    "swap.fault=3.1us",
    "swap.submit=2.8us",
    "swap.complete=4.1us",
    "swap.select=0ns",
    "swap.lock=0ns",
    "swap.shootdown.base=10us",
    "swap.shootdown.per_core=0ns",
    "swap.shootdown.respond=500ns",
];

/// Suite of a study.
#[derive(Clone)]
pub(super) struct Suite {
    /// Programs: the paper's name and ours.
    pub(super) programs: Vec<(&'static str, &'static str)>,
    seeds: Vec<u64>,
    /// Factor on the length of runs.
    longer: u32,
    cores: u32,
    /// The skew of the programs, if not their own.
    theta: Option<&'static str>,
    /// Overrides of single systems.
    sets: Sets,
    /// True if flash takes fixed times, whatever the load, instead of being planes with queues.
    fixed: bool,
    /// Fig. 1 with the programs' skew, once it has been drawn.
    pub(super) curve: Arc<OnceLock<Vec<f64>>>,
}

impl Suite {
    pub(super) fn of(effort: Effort) -> Suite {
        let (programs, seeds, longer): (&[_], &[u64], u32) = match effort {
            Effort::Whole => (&PROGRAMS, &[1, 2, 3], 4),
            Effort::Full => (&PROGRAMS, &[1], 1),
            Effort::Quick => (&PROGRAMS[5..6], &[1], 1),
        };
        let programs = programs.to_vec();
        Suite {
            programs,
            seeds: seeds.to_vec(),
            longer,
            cores: CORES,
            theta: None,
            sets: &[("os-swap", TEN_MICROSECONDS)],
            fixed: true,
            curve: Arc::default(),
        }
    }

    /// Same suite with planes that have queues.
    pub(super) fn with_planes(&self) -> Suite {
        Suite { fixed: false, ..self.clone() }
    }

    /// Short runs with one seed: enough for a sweep.
    fn short(&self) -> Suite {
        Suite { seeds: self.seeds[..1].to_vec(), longer: 1, ..self.clone() }
    }

    /// Programs whose objects have another skew.
    pub(super) fn skewed(&self, theta: &'static str) -> Suite {
        Suite { theta: Some(theta), curve: Arc::default(), ..self.short() }
    }

    /// The whole machine of Table I.
    pub(super) fn whole_machine(&self) -> Suite {
        Suite { cores: WHOLE, ..self.short() }
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

    /// Runs of a program on a system whose cores get jobs at random, each core one every `interval_ns` nanoseconds on
    /// average.
    pub(super) fn loaded(&self, system: &str, program: &str, interval_ns: f64) -> Point {
        let picoseconds = (interval_ns * 1e3).round();
        self.point(system, program, self.seeds[0], JOBS_OF_A_LOAD)
            .set(&format!("cpu.load.arrivals={{ poisson = {{ interval = \"{picoseconds}ps\" }} }}"))
    }

    /// Cores of every machine.
    pub(super) fn cores(&self) -> f64 {
        f64::from(self.cores)
    }

    /// OS-Swap with the shoot-down of section II-C.
    pub(super) fn shootdown(&self) -> Suite {
        Suite { sets: &[("os-swap", SHOOTDOWN)], ..self.clone() }
    }

    /// OS-Swap with the parts of section II-C.
    pub(super) fn components(&self) -> Suite {
        Suite { sets: &[("os-swap", COMPONENTS)], ..self.clone() }
    }

    /// OS-Swap with the overheads that the system has.
    pub(super) fn shipped(&self) -> Suite {
        Suite { sets: &[], ..self.clone() }
    }

    /// Flash-Sync whose cores wait for all pages of a window at once.
    pub(super) fn overlapped(&self) -> Suite {
        Suite { sets: &[("flash-sync", &["cpu.threads.miss=wait"])], ..self.clone() }
    }

    /// Page tables in flash that find no room in the cache.
    pub(super) fn uncached_tables(&self) -> Suite {
        const UNCACHED: Sets =
            &[("astriflash-nodp", &["cpu.tables=shared", "memory.dram_cache.partition=uncached"])];
        Suite { sets: UNCACHED, ..self.clone() }
    }

    /// Page tables in flash, one set for all cores.
    pub(super) fn shared_tables(&self) -> Suite {
        Suite { sets: &[("astriflash-nodp", &["cpu.tables=shared"])], ..self.clone() }
    }

    /// A program on a system at saturation, for this many thousand jobs in total.
    pub(super) fn of_length(&self, system: &str, program: &str, thousands: u32) -> Point {
        let short = self.short();
        short.point(system, program, short.seeds[0], thousands * 1000 / self.cores)
    }

    /// The skew as a parameter of a program; nothing if it is the program's own.
    pub(super) fn skew(&self) -> String {
        self.theta.map_or(String::new(), |theta| format!(",theta={theta}"))
    }

    /// A drive that is worn in behind AstriFlash, so that it collects while it serves: TATP, at saturation.
    pub(super) fn aged(&self) -> Point {
        Suite { longer: AGED_JOBS / JOBS, ..self.with_planes().short() }
            .saturated("astriflash", "tatp")
            .swap_remove(0)
            .set("flash.precondition=steady")
    }

    fn point(&self, system: &str, program: &str, seed: u64, jobs: u32) -> Point {
        let size = GIBIBYTES * self.cores;
        let workloads = vec![format!("{program}:size={size}GiB,seed={seed}{}", self.skew())];
        let jobs = u64::from(jobs) * u64::from(self.cores) * u64::from(self.longer);
        let point = Point { system: system.into(), workloads, seed, ..Point::default() };
        let own = self.sets.iter().filter(|(of, _)| *of == system).flat_map(|(_, sets)| sets.iter());
        slice(system, self.cores, self.fixed)
            .iter()
            .map(String::as_str)
            .chain(own.copied())
            .fold(point, Point::set)
            .set(&format!("cpu.warmup.fixed.jobs={}", WARMUP * self.cores))
            .set(&format!("cpu.load.jobs={jobs}"))
    }
}

/// The overrides that make a system of this many cores: with their share of the mesh, of the shared cache's banks, of
/// memory controllers (each with its part of the DRAM) and of the flash's planes.
fn slice(system: &str, cores: u32, fixed: bool) -> Vec<String> {
    let cache = !matches!(system, "dram-only" | "os-swap");
    let memory = if cache { "dram_cache.dram" } else { "dram" };
    let mut sets = Vec::new();
    if cores != WHOLE {
        let side = cores.isqrt();
        sets.extend([
            format!("cpu.cores={cores}"),
            format!("fabric.mesh.rows={side}"),
            format!("fabric.mesh.columns={side}"),
            format!("l2.banks={cores}"),
            format!("memory.{memory}.controllers={}", cores / 4),
        ]);
        if system != "dram-only" {
            sets.push(format!("flash.geometry.channels={cores}"));
        }
        if system == "os-swap" {
            // What Linux keeps free of so much: the root of 16 times its KiB.
            let memory = 8 * u64::from(cores) / u64::from(WHOLE);
            let free = (16 * (memory << 20)).isqrt() / 4 * 4;
            sets.extend([format!("swap.memory={memory}GiB"), format!("swap.free={free}KiB")]);
        }
    }
    if fixed && system != "dram-only" {
        let part = if cache { "memory.dram_cache" } else { "swap" };
        sets.push(format!("{part}.backing=fixed"));
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::{COMPONENTS, SHOOTDOWN, TEN_MICROSECONDS, slice};

    /// Overheads of one page cost what section III-A, and the parts of section II-C, say; four cores.
    #[test]
    fn overheads_add_up_to_what_the_paper_says() {
        let sum = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let loaded = machine::load("os-swap", &sets).expect("a system");
            let (swap, switch) =
                (&loaded.spec.swap[0].spec, loaded.spec.cpu[0].spec.cores.threads.switch.time());
            let shootdown = &swap.shootdown;
            let kernel = [swap.fault, swap.submit, swap.complete, swap.select, swap.lock, shootdown.base];
            let kernel: u64 = kernel.iter().map(|time| time.time().ns()).sum();
            (kernel + 3 * shootdown.per_core.time().ns() + 2 * switch.ns()) / 100
        };
        assert_eq!([sum(TEN_MICROSECONDS), sum(SHOOTDOWN), sum(COMPONENTS)], [100, 185, 250]);
    }

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
            for (cores, fixed) in [(4, false), (4, true), (16, true)] {
                let loaded = machine::load(system, &slice(system, cores, fixed));
                assert!(loaded.is_ok(), "{system}: {:?}", loaded.err());
            }
        }
    }
}
