//! Runs of the study: programs and mixes of them, and the systems that run them.

use super::super::reading::{Choice, Variant, sets, study};
use super::super::study::Point;
use super::super::{Effort, Reading};
use super::{Choices, Inputs};
use programs::kernels::mixes;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

/// The rival: the same accelerator behind a host and a drive.
pub(super) const SIMD: &str = "flashabacus-simd";
/// Static inter-kernel.
pub(super) const INTER_ST: &str = "flashabacus-inter-st";
/// Dynamic inter-kernel.
pub(super) const INTER_DY: &str = "flashabacus-inter-dy";
/// In-order intra-kernel.
pub(super) const INTRA_IO: &str = "flashabacus-intra-io";
/// Out-of-order intra-kernel.
pub(super) const INTRA_O3: &str = "flashabacus";
/// All schedulers.
pub(super) const SCHEDULERS: [&str; 4] = [INTER_ST, INTER_DY, INTRA_IO, INTRA_O3];

/// Table 2.
const PROGRAMS: [&str; 14] = [
    "atax", "bicg", "2dcon", "mvt", "adi", "fdtd", "gesum", "syrk", "3mm", "covar", "gemm", "2mm", "syr2k",
    "corr",
];
/// Instances of a program (section 5.1).
const INSTANCES: u32 = 6;
/// Assignments of programs to mixes, and those with everything.
const ASSIGNMENTS: (u32, u32) = (20, 200);

/// Behind a workload whose instances have input of their own.
pub(super) const OWN: &str = ",inputs=own";

/// Workloads.
#[derive(Clone, Copy)]
pub(super) enum Group {
    /// Instances of each of these programs.
    Programs(&'static [&'static str]),
    /// All of Table 2.
    Homogeneous,
    /// Given mixes, by their numbers.
    Mixes(&'static [u32]),
    /// All mixes.
    Heterogeneous,
    /// All of Table 2 and all mixes.
    All,
}

/// Suite of a study.
#[derive(Clone)]
pub(super) struct Suite {
    programs: Vec<String>,
    mixes: &'static [u32],
    assignments: u32,
    /// Choices on how figures are read.
    pub(super) choices: Choices,
    /// A variant's choices beside the reading's.
    varied: Vec<Choice>,
}

impl Suite {
    pub(super) fn of(effort: Effort, reading: &Reading) -> Suite {
        let (programs, mixes, assignments) = match effort {
            Effort::Whole => (&PROGRAMS[..], &ALL_MIXES[..], ASSIGNMENTS.1),
            Effort::Full => (&PROGRAMS[..], &ALL_MIXES[..], ASSIGNMENTS.0),
            Effort::Quick => (&PROGRAMS[..2], &ALL_MIXES[..1], 1),
        };
        let programs = programs.iter().map(|program| (*program).to_owned()).collect();
        Suite { programs, mixes, assignments, choices: study(&reading.choices), varied: Vec::new() }
    }

    /// The suite under a variant of the reading: its choices, and its programs of Table 2 alone where it names some.
    pub(super) fn varied(self, reading: &Reading, variant: &Variant) -> Suite {
        let choices = study(&[&reading.choices[..], &variant.choices].concat());
        let programs = if variant.programs.is_empty() { self.programs } else { variant.programs.clone() };
        Suite { programs, choices, varied: variant.choices.clone(), ..self }
    }

    /// The workloads that a figure is read from, once for each assignment if there are mixes among them.
    pub(super) fn worlds(&self, group: Group) -> Vec<Vec<String>> {
        let of = |programs: &[&str]| -> Vec<String> {
            let known = programs.iter().filter(|program| self.runs(program));
            let of = |program: &&str| format!("{program}:instances={INSTANCES}{}", self.inputs_of(program));
            known.map(of).collect()
        };
        let all: Vec<&str> = self.programs.iter().map(String::as_str).collect();
        let mixes = |mixes: &[u32], assignment: u32| -> Vec<String> {
            let known = mixes.iter().filter(|mix| self.mixes.contains(mix));
            known.map(|mix| self.mix(*mix, assignment)).collect()
        };
        let each = |world: &dyn Fn(u32) -> Vec<String>| (0..self.assignments).map(world).collect();
        match group {
            Group::Programs(programs) => vec![of(programs)],
            Group::Homogeneous => vec![of(&all)],
            Group::Mixes(some) => each(&|assignment| mixes(some, assignment)),
            Group::Heterogeneous => each(&|assignment| mixes(self.mixes, assignment)),
            Group::All => each(&|assignment| [of(&all), mixes(self.mixes, assignment)].concat()),
        }
    }

    /// The inputs of a program's instances, the same on every system.
    fn inputs_of(&self, program: &str) -> &'static str {
        static FITS: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
        let fits = |program: &str| {
            mixes::program_fits_with_own_inputs(program, INSTANCES).expect("a program of the paper")
        };
        let mut known = FITS.lock().expect("no panic");
        let is_own = self.choices.inputs == Inputs::OwnWherePossible
            && *known.entry(program.to_owned()).or_insert_with(|| fits(program));
        if is_own { OWN } else { "" }
    }

    /// A mix of an assignment. Those that hold the same programs, half of all, have one name, and so one run.
    fn mix(&self, mix: u32, assignment: u32) -> String {
        static FIRSTS: LazyLock<Vec<[(u32, usize); 14]>> = LazyLock::new(mixes::firsts);
        static FITS: LazyLock<Vec<[bool; 14]>> = LazyLock::new(mixes::with_own_inputs);
        let (assignment, place) = FIRSTS[assignment as usize][mix as usize - 1];
        let is_own = self.choices.inputs == Inputs::OwnWherePossible && FITS[assignment as usize][place];
        format!("{}:assignment={assignment}{}", mixes::NAMES[place], if is_own { OWN } else { "" })
    }

    /// Number of the workloads with one input for all instances, where the reading gives each its own.
    pub(super) fn sharing(&self, worlds: &[Vec<String>]) -> String {
        let shared = worlds.iter().flatten().filter(|workload| !workload.ends_with(OWN)).count();
        match self.choices.inputs {
            Inputs::OwnWherePossible if shared > 0 => {
                format!("; instances share input in {shared} of {} workloads", worlds.concat().len())
            }
            _ => String::new(),
        }
    }

    /// Returns whether a program is run; programs outside Table 2 always are.
    fn runs(&self, program: &str) -> bool {
        self.programs.iter().any(|known| known == program) || !PROGRAMS.contains(&program)
    }

    /// A workload on a system.
    pub(super) fn point(&self, system: &str, workload: &str) -> Point {
        let point =
            Point { system: system.into(), workloads: vec![workload.into()], seed: 1, ..Point::default() };
        let is_mix = workload.starts_with("mx");
        let coarse: &[&str] = if system == SIMD && is_mix { &COARSE } else { &[] };
        let point = coarse.iter().fold(point, |point, set| point.set(set));
        sets(&self.varied, system).into_iter().fold(point, Point::set)
    }
}

/// Of mixes, the rival's drive maps pages, not quarters of them, at the same controller's time a byte: its commands
/// have 128 KiB each, and half of a run's CPU time goes with the smaller units. The test below says what it changes.
const COARSE: [&str; 2] = ["flash.ftl.map_unit=16KiB", "flash.host.controller.unit=7380ns"];

const ALL_MIXES: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn mixes_with_the_same_programs_are_one_run() {
        let programs = |workload: &str| {
            let opened = programs::kernels::open(workload).expect("a mix");
            opened.iter().map(|application| application.program.name().to_owned()).collect::<Vec<_>>()
        };
        let mut runs = std::collections::BTreeMap::new();
        let mut drawn = 0;
        let worlds = Suite::of(Effort::Full, &Reading::default()).worlds(Group::Heterogeneous);
        for (assignment, mixes) in worlds.iter().enumerate() {
            for (mix, name) in mixes.iter().enumerate() {
                let held = programs(&format!("mx{}:assignment={assignment}", mix + 1));
                assert_eq!(programs(name), held);
                assert_eq!(runs.entry(held).or_insert(name), &name);
                drawn += 1;
            }
        }
        assert_eq!(drawn, 280);
        assert!(runs.len() < drawn, "no two of them hold the same programs");
    }

    #[test]
    fn larger_map_units_move_no_phase_of_a_kernel() {
        let fine = Point {
            system: SIMD.into(),
            workloads: vec!["gemm:ni=2048,nj=2048,nk=2048,instances=2".into()],
            seed: 1,
            ..Point::default()
        };
        let coarse = COARSE.iter().fold(fine.clone(), |point, set| point.set(set));
        let kernels = |point: Point| {
            let document = point.run(&AtomicBool::new(false)).unwrap_or_else(|e| panic!("{e}"));
            let kernels = document.coprocessor.into_iter().flat_map(|found| found.kernels);
            kernels.map(|kernel| kernel.phases).collect::<Vec<_>>()
        };
        let (fine, coarse) = (kernels(fine), kernels(coarse));
        assert_eq!((fine.len(), coarse.len()), (2, 2));
        for (fine, coarse) in fine.iter().zip(&coarse) {
            let moving = fine.iter().filter(|(name, _)| **name != "work");
            let all: f64 = moving.map(|(_, phase)| phase.time_ns).sum();
            for (name, phase) in fine {
                let apart = (phase.time_ns - coarse[name].time_ns).abs();
                assert!(apart <= 1e-3 * all, "{name}: {} and {} ns", phase.time_ns, coarse[name].time_ns);
            }
        }
    }
}
