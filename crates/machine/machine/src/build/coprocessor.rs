//! From a spec to coprocessors, and from kernels to the program of a host that drives one.

use crate::parts::driven::{Driven, OffloadedKernels};
use crate::spec::{DrivenSpec, Id, Loaded, Part};
use compute::vliw::coprocessor::Coprocessor;
use config::{Diagnostic, Place, SpecError};
use nest::executed::Executed;
use programs::host::offload::Offload;
use programs::kernels::{Application, Inputs, Program};
use proto::offload::Plan;
use std::sync::Arc;

/// Which of a host's drives has the files of kernels.
pub(crate) const DRIVE: u16 = 0;

/// Refuses coprocessors that cannot be built.
///
/// # Errors
/// The first value that cannot be.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Diagnostic> {
    all(loaded).map(drop)
}

/// The coprocessors that programs of the host can drive.
pub(crate) fn of_host(loaded: &Loaded) -> Vec<Id> {
    loaded.spec.host.first().map_or(Vec::new(), |host| host.linked("coprocessors").to_vec())
}

/// All coprocessors, idle.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn all(loaded: &Loaded) -> Result<Vec<Driven>, Diagnostic> {
    let build = |part: &Part<DrivenSpec>| {
        let coprocessor =
            Coprocessor::new(&part.spec.shared()).map_err(|error| loaded.explain(part.table(), error))?;
        // Hosts but the first have no programs.
        Ok(Driven { name: part.name.clone(), coprocessor, host: 0, kernels: None })
    };
    loaded.spec.coprocessor.iter().map(build).collect()
}

/// The program that has a coprocessor execute the kernels of a run, which a user asked for in these words. It is the host's of this number.
///
/// # Errors
/// A kernel that the coprocessor's memory has no room for, or whose work is not known.
pub(crate) fn program(
    loaded: &Loaded,
    driven: &mut Driven,
    (coprocessor, program): (usize, usize),
    applications: Vec<Application>,
    asked: &[String],
) -> Result<Offload, Diagnostic> {
    let plans = plans(&mut driven.coprocessor, &applications).map_err(|error| {
        let text = asked.join(" ");
        let place = Place { source: "--workload".to_owned(), text, ..Place::default() };
        let mut fault = Diagnostic::new(error.what).at(place);
        fault.help = error.help;
        fault
    })?;
    let about = |application: &Application| {
        (application.program.name().to_owned(), application.program.input_bytes())
    };
    let applications = applications.iter().map(about).collect();
    let instances = plans.iter().map(|(_, instances)| u64::from(*instances)).sum();
    driven.kernels = Some(OffloadedKernels { program, applications, instances });
    let of_host = of_host(loaded);
    let device = of_host.iter().position(|id| id.number == coprocessor).unwrap_or_default();
    let costs = loaded.spec.coprocessor[coprocessor].spec.offload;
    Ok(Offload::new(&driven.name, plans, costs, (device as u16, DRIVE)))
}

/// What instances of applications have to do; applications of the same program are one.
fn plans(coprocessor: &mut Coprocessor, applications: &[Application]) -> Result<Vec<(Plan, u32)>, SpecError> {
    let mut known: Vec<(&Program, u32)> = Vec::new();
    let mut plans = Vec::new();
    for Application { program, instances, inputs, .. } in applications {
        let number = match known.iter().find(|(other, _)| *other == program) {
            Some((_, number)) => *number,
            None => {
                let number = match program {
                    Program::Nest(kernel) => coprocessor.add(kernel.clone())?,
                    Program::Executed(on_data) => {
                        let program: Arc<dyn Executed> = on_data.clone();
                        coprocessor.add_executed(&program)?
                    }
                };
                known.push((program, number));
                number
            }
        };
        let mut plan = coprocessor.plan(number).clone();
        plan.arrays.iter_mut().for_each(|array| array.is_shared &= *inputs == Inputs::Shared);
        plans.push((plan, *instances));
    }
    Ok(plans)
}
