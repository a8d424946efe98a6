//! What a program does on a coprocessor, before time: its steps, what memory must hold for each, and what each takes of the cores.

use super::deal::deal;
use super::kept::Kept;
use super::places::{Places, bytes, needs_of};
use super::spec::CoprocessorSpec;
use crate::vliw::program::{Cost, Program};
use crate::vliw::sharing::Sharing;
use config::SpecError;
use engine::{Known, Time};
use nest::executed::Area;
use nest::{Kernel, Section};
use proto::offload::{Action, Plan, PlannedArray};
use std::sync::Arc;

/// What a core does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// It issues.
    pub(super) issue: Time,
    /// It issues and waits for its caches.
    pub(super) alone: Time,
    /// The same beside the other cores of its step, with which it shares memory.
    pub(super) computes: Time,
    /// Bytes between its caches and memory meanwhile.
    pub(super) bytes: u64,
    /// Its caches are written back.
    pub(super) write_back: Time,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What a parallel loop costs before any core computes; nothing in a step of a serial microblock.
    pub(super) parallel: Time,
    /// By core, of those that have something to do.
    pub(super) shares: Vec<Share>,
    /// Bytes that must have come since the step before, and gone; for the last step, those that go afterwards as well.
    pub(super) loads: u64,
    pub(super) stores: u64,
}

/// A program with its plan.
#[derive(Clone)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) steps: Arc<[Step]>,
}

/// Plans of a study's programs.
static PLANS: Known<(Kernel, CoprocessorSpec), Planned> = Known::new(64);

/// Whether files have an array before a program starts, and when it has ended.
fn is_given(array: &Area) -> bool {
    matches!(array.section, Section::Input | Section::Inout)
}

fn is_kept(array: &Area) -> bool {
    matches!(array.section, Section::Output | Section::Inout)
}

impl Planned {
    /// The plan of a kernel as the program of a number.
    ///
    /// # Errors
    /// What [`Planned::of`] says, and `program` where it is not known yet.
    pub(super) fn of_kernel(
        kernel: Kernel,
        number: u32,
        spec: &CoprocessorSpec,
        program: impl FnOnce(Kernel) -> Result<Program, SpecError>,
    ) -> Result<Planned, SpecError> {
        let work_out =
            |(kernel, spec): &(Kernel, CoprocessorSpec)| Planned::of(&program(kernel.clone())?, number, spec);
        let Planned { plan, steps } = PLANS.ask((kernel, spec.clone()), work_out)?;
        Ok(Planned { plan: Plan { program: number, ..plan }, steps })
    }

    /// The plan of a program, whose number is `number`.
    ///
    /// # Errors
    /// A section that memory has no room for; more sections than a program may have.
    pub(super) fn of(program: &Program, number: u32, spec: &CoprocessorSpec) -> Result<Planned, SpecError> {
        let places = Places::of(&program.arrays);
        let mut kept = Kept::new(spec.frames() as usize, places.groups().map(is_given));
        let (mut actions, mut steps) = (Vec::new(), Vec::<Step>::new());
        let (mut needs, mut scratch) = (Vec::new(), Vec::new());
        for microblock in 0..program.microblocks() {
            for parts in deal(program, microblock, spec, &places)? {
                needs_of(program, &parts, &places, &mut needs);
                if needs.len() as u64 > spec.frames_of_a_step() {
                    return Err(program.too_large(needs.len(), spec.frames_of_a_step()));
                }
                let moves = kept.bring(&needs);
                let (stores, loads) = (places.stretches(&moves.stores), places.stretches(&moves.loads));
                let mut step = Step {
                    parallel: Time::ZERO,
                    shares: Vec::new(),
                    loads: bytes(&loads),
                    stores: bytes(&stores),
                };
                actions.extend(stores.into_iter().map(Action::Store));
                actions.extend(loads.into_iter().map(Action::Load));
                actions.push(Action::Work(steps.len() as u32));
                if program.is_split(microblock) {
                    step.parallel = spec.core.time(spec.parallel_cycles());
                }
                for part in parts {
                    needs_of(program, &[part], &places, &mut needs);
                    let Cost { issue, stall, bytes } = program.cost(&part, true, &spec.core, &mut scratch);
                    let alone = spec.core.time(issue + stall);
                    step.shares.push(Share {
                        issue: spec.core.time(issue),
                        alone,
                        computes: alone,
                        bytes,
                        write_back: spec.core.time(spec.core.cycles_to_write_back(needs.len() as u64)),
                    });
                }
                share(&mut step.shares, spec);
                steps.push(step);
            }
        }
        let is_left = |group: &u32| is_kept(&program.arrays[places.array_of(*group)]);
        let left = places.stretches(&kept.changed().filter(is_left).collect::<Vec<_>>());
        if let Some(last) = steps.last_mut() {
            last.stores += bytes(&left);
        }
        actions.extend(left.into_iter().map(Action::Store));
        let array = |array: &Area| PlannedArray {
            name: array.name.clone(),
            bytes: array.bytes,
            is_given: is_given(array),
            is_shared: array.section == Section::Input,
            is_kept: is_kept(array),
        };
        let arrays = program.arrays.iter().map(array).collect();
        let plan =
            Plan { name: program.name.clone(), program: number, arrays, ahead: spec.buffers > 1, actions };
        Ok(Planned { plan, steps: steps.into() })
    }
}

/// Cores that begin together share memory.
fn share(shares: &mut [Share], spec: &CoprocessorSpec) {
    let mut sharing = Sharing::new(spec.cores, spec.memory.bandwidth.bytes_per_s());
    for (core, share) in shares.iter().enumerate() {
        sharing.begin(Time::ZERO, core, share.alone, share.bytes);
    }
    loop {
        let next = sharing.ends_at().min_by_key(|(core, at)| (*at, *core));
        let Some((core, at)) = next else { return };
        if sharing.ends(at, core) {
            // What alone would be over at once counts a picosecond.
            shares[core].computes = at.max(shares[core].alone);
        }
    }
}
