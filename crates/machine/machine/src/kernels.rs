//! What executes the kernels of a run.

use crate::build::{accelerator, coprocessor};
use crate::driven::Driven;
use crate::governed::Governed;
use crate::plan::Plan;
use crate::spec::{Id, Kind, Loaded};
use compute::vliw::Observer as KernelObserver;
use compute::vliw::coprocessor::Observer as StepObserver;
use config::Diagnostic;
use flash::media::dies::observe::Observer as CommandObserver;
use std::collections::BTreeMap;
use workload::host::HostProgram;
use workload::host::offload::observe::Observer as PhaseObserver;
use workload::kernels::Application;

/// Who looks on at an accelerator, and at the flash that it governs.
type OfAccelerator = (Box<dyn KernelObserver>, Box<dyn CommandObserver>);

/// Who looks on at a coprocessor, and at the program that drives it.
type OfCoprocessor = (Box<dyn StepObserver>, Box<dyn PhaseObserver>);

/// Who looks on at what executes kernels, by number; nobody at those behind the last.
pub(crate) struct Looking {
    pub(crate) accelerators: Vec<Option<OfAccelerator>>,
    pub(crate) coprocessors: Vec<Option<OfCoprocessor>>,
}

/// Accelerators and coprocessors with their kernels; for each coprocessor that has some, a program of the host.
pub(crate) fn offloaded(
    plan: &Plan,
    loaded: &Loaded,
    kernels: BTreeMap<Id, Vec<Application>>,
    of_host: &mut Vec<Box<dyn HostProgram>>,
    mut looking: Looking,
) -> Result<(Vec<Governed>, Vec<Driven>), Diagnostic> {
    let (mut governed, mut driven) = (Vec::new(), coprocessor::all(loaded)?);
    for (id, applications) in kernels {
        if id.kind == Kind::Accelerator {
            let mut built = accelerator::build(loaded, id.number, applications, plan.seed, &plan.workloads)?;
            if let Some((cores, flash)) = looking.accelerators.get_mut(id.number).and_then(Option::take) {
                built.accelerator.observer = Some(cores);
                built.flash.observe(flash);
            }
            governed.push(built);
            continue;
        }
        let (number, program) = (id.number, of_host.len());
        let driven = &mut driven[number];
        let place = (number, program);
        let mut program = coprocessor::program(loaded, driven, place, applications, &plan.workloads)?;
        let looking = looking.coprocessors.get_mut(number).and_then(Option::take);
        (driven.coprocessor.observer, program.observer) = looking.unzip();
        of_host.push(Box::new(program));
    }
    Ok((governed, driven))
}
