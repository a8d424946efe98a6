//! What is run: programs and mixes of them, on which systems.

use super::super::Effort;
use super::super::study::Point;

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

/// Workloads.
#[derive(Clone, Copy)]
pub(super) enum Group {
    /// Instances of each of these programs.
    Programs(&'static [&'static str]),
    /// All of Table 2.
    Homogeneous,
    /// These mixes, by their numbers.
    Mixes(&'static [u32]),
    /// All mixes.
    Heterogeneous,
    /// All of Table 2 and all mixes.
    All,
}

/// What a study runs.
#[derive(Clone)]
pub(super) struct Suite {
    programs: &'static [&'static str],
    mixes: &'static [u32],
    assignments: u32,
    /// Overrides of a system.
    set: fn(&str) -> Vec<String>,
}

impl Suite {
    pub(super) fn of(effort: Effort) -> Suite {
        let (programs, mixes, assignments) = match effort {
            Effort::Whole => (&PROGRAMS[..], &ALL_MIXES[..], ASSIGNMENTS.1),
            Effort::Full => (&PROGRAMS[..], &ALL_MIXES[..], ASSIGNMENTS.0),
            Effort::Quick => (&PROGRAMS[..2], &ALL_MIXES[..1], 1),
        };
        Suite { programs, mixes, assignments, set: |_| Vec::new() }
    }

    /// The same with other values in the specs.
    pub(super) fn with(self, set: fn(&str) -> Vec<String>) -> Suite {
        Suite { set, ..self }
    }

    /// The workloads that a figure is read from, once for each assignment if there are mixes among them.
    pub(super) fn worlds(&self, group: Group) -> Vec<Vec<String>> {
        let of = |programs: &[&str]| -> Vec<String> {
            let known = programs.iter().filter(|program| self.runs(program));
            known.map(|program| format!("{program}:instances={INSTANCES}")).collect()
        };
        let mixes = |mixes: &[u32], assignment: u32| -> Vec<String> {
            let known = mixes.iter().filter(|mix| self.mixes.contains(mix));
            known.map(|mix| format!("mx{mix}:assignment={assignment}")).collect()
        };
        let each = |world: &dyn Fn(u32) -> Vec<String>| (0..self.assignments).map(world).collect();
        match group {
            Group::Programs(programs) => vec![of(programs)],
            Group::Homogeneous => vec![of(self.programs)],
            Group::Mixes(some) => each(&|assignment| mixes(some, assignment)),
            Group::Heterogeneous => each(&|assignment| mixes(self.mixes, assignment)),
            Group::All => each(&|assignment| [of(self.programs), mixes(self.mixes, assignment)].concat()),
        }
    }

    /// Whether a program is among those that are run: all that are none of Table 2's are.
    fn runs(&self, program: &str) -> bool {
        self.programs.contains(&program) || !PROGRAMS.contains(&program)
    }

    /// A workload on a system.
    pub(super) fn point(&self, system: &str, workload: &str) -> Point {
        let point =
            Point { system: system.into(), workloads: vec![workload.into()], seed: 1, ..Point::default() };
        (self.set)(system).iter().fold(point, |point, set| point.set(set))
    }
}

const ALL_MIXES: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
