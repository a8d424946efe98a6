//! Parts that execute loop nests: an accelerator, a coprocessor, a GPU or a server.

use super::Work;
use crate::build::{accelerator, gpu, host, server};
use crate::plan::{Bound, Plan, drives, of_kind, part_for, workloads};
use compute::vliw::GROUP;
use config::Diagnostic;
use config::units::Bytes;
use programs::kernels::{self, Application, Inputs, Room, Settled};
use programs::{program, service};
use spec::{Id, Kind, Loaded};

/// Parts that execute nests, by kind. The first kind that exists is the default.
fn executors(loaded: &Loaded) -> [Vec<Id>; 4] {
    [
        of_kind(loaded, Kind::Accelerator),
        accelerator::coprocessors_of_host(loaded),
        of_kind(loaded, Kind::Gpu),
        of_kind(loaded, Kind::Cpu),
    ]
}

/// Refuses a program whose data fit into none of its possible parts, before the data are generated.
///
/// # Errors
/// The data exceed the room of each part.
pub(crate) fn fits(loaded: &Loaded, bound: Bound<'_>) -> Result<(), Diagnostic> {
    let all = match bound.to {
        Some(id) => vec![id],
        None => executors(loaded).into_iter().find(|parts| !parts.is_empty()).unwrap_or_default(),
    };
    let room = |id: &Id| match id.kind {
        Kind::Accelerator => Some(loaded.spec.accelerator[id.number].spec.accelerator.section_bytes()),
        Kind::Coprocessor => Some(loaded.spec.coprocessor[id.number].spec.shared().step_bytes()),
        _ => None,
    };
    // With several parts, the largest may be meant.
    match all.iter().filter_map(room).max() {
        Some(room) if room > 0 => {
            kernels::fits(bound.text, Room { bytes: room / GROUP * GROUP, group: GROUP })
        }
        _ => Ok(()),
    }
}

/// Returns the part that executes kernels.
///
/// # Errors
/// No such part, or a part that cannot execute them.
pub(crate) fn executes(
    plan: &Plan,
    loaded: &Loaded,
    bound: Bound<'_>,
    applications: &[Application],
) -> Result<Id, Diagnostic> {
    let all = executors(loaded);
    let candidates = match bound.to {
        Some(_) => all.concat(),
        None => all.into_iter().find(|parts| !parts.is_empty()).unwrap_or_default(),
    };
    let Some(id) = part_for(loaded, bound, &candidates, "a kernel of an accelerator")? else {
        return Err(Diagnostic::new(format!(
            "the system `{}` has no accelerator, coprocessor, GPU or server to execute `{}`",
            loaded.name, bound.text
        ))
        .help("kernels need the tables `accelerator` and `group_flash`, a host with a `coprocessor`, a `gpu` or a `cpu`; systems that have them: flashabacus, flashabacus-simd, zng, dram-only"));
    };
    match id.kind {
        Kind::Gpu | Kind::Cpu if applications.iter().any(|one| one.inputs != Inputs::Shared) => {
            let what = format!(
                "`inputs` applies to accelerators and coprocessors only, but `{}` executes `{}`",
                loaded.spec.name_of(id),
                bound.text
            );
            return Err(Diagnostic::new(what).help("leave out `inputs`"));
        }
        Kind::Gpu | Kind::Cpu | Kind::Coprocessor if applications.iter().any(|one| one.in_turn) => {
            let what = format!(
                "`results` applies to accelerators only, but `{}` executes `{}`",
                loaded.spec.name_of(id),
                bound.text
            );
            return Err(Diagnostic::new(what).help("leave out `results`"));
        }
        Kind::Accelerator if applications.iter().any(|one| one.in_turn && one.inputs != Inputs::Shared) => {
            let what = format!(
                "instances of `{}` change the same data, so they cannot have separate input",
                bound.text
            );
            return Err(Diagnostic::new(what).help("leave out `inputs` or `results`"));
        }
        Kind::Gpu => {
            gpu::tables(loaded, id.number)?;
            program::of_kernels(applications)?;
        }
        Kind::Cpu => {
            server::tables(loaded, id.number)?;
            service::of_kernels(applications)?;
        }
        _ if plan.warmup.is_some() => {
            let what =
                "a run of kernels on an accelerator has no warm-up: kernels are measured from offload to end";
            return Err(Diagnostic::new(what).help("leave out --warmup"));
        }
        _ if applications.iter().any(|one| one.block.is_some()) => {
            let what = format!(
                "`block` applies to GPUs only, but `{}` executes `{}`",
                loaded.spec.name_of(id),
                bound.text
            );
            return Err(Diagnostic::new(what).help("leave out `block`"));
        }
        _ => {}
    }
    Ok(id)
}

/// Loop nests of a GPU program, where a part other than a GPU executes them.
///
/// # Errors
/// A program that is not a known loop nest.
pub(crate) fn of_programs(loaded: &Loaded, bound: Bound<'_>) -> Result<Option<Vec<Application>>, Diagnostic> {
    let kinds = match bound.to {
        Some(id) => vec![id.kind],
        None => executors(loaded).into_iter().flatten().map(|id| id.kind).collect(),
    };
    let is_elsewhere =
        kinds.first().is_some_and(|kind| *kind != Kind::Gpu) && !kinds[1..].contains(&Kind::Gpu);
    let executes = kinds.iter().any(|kind| [Kind::Accelerator, Kind::Coprocessor, Kind::Cpu].contains(kind));
    match is_elsewhere && executes && workloads::is_program(bound.text) {
        true => kernels::of_programs(bound.text).map(Some),
        false => Ok(None),
    }
}

/// Gives instances with `inputs=fit` separate input where it fits, part by part, and notes the outcome.
///
/// # Errors
/// Flash or a drive that cannot be built.
pub(super) fn settle_inputs(work: &mut Work, plan: &Plan, loaded: &Loaded) -> Result<(), Diagnostic> {
    for (id, applications) in &mut work.kernels {
        if applications.iter().all(|one| one.inputs != Inputs::Fit) {
            continue;
        }
        let (unit, room) = match id.kind {
            Kind::Accelerator => (GROUP, accelerator::groups(loaded, id.number, plan.seed)?),
            _ => match drives(loaded).get(usize::from(accelerator::DRIVE)) {
                Some(drive) => (1, host::file_bytes(loaded, *drive)?),
                None => (1, 0),
            },
        };
        let Some(Settled { inputs, needed }) = kernels::settle(applications, unit, room) else { continue };
        let whose = match inputs {
            Inputs::Own => "each instance has separate input",
            _ => "instances share their input",
        };
        work.warnings.push(format!(
            "`inputs=fit` on `{}`: {whose}; separate input for all instances takes {}, and there is room for {}",
            loaded.spec.name_of(*id),
            Bytes::new(needed * unit),
            Bytes::new(room * unit)
        ));
    }
    Ok(())
}

/// Assigns kernels to GPUs and servers.
///
/// # Errors
/// A server that already runs something else.
pub(super) fn hand_out(work: &mut Work) -> Result<(), Diagnostic> {
    for (id, applications) in std::mem::take(&mut work.kernels) {
        match id.kind {
            Kind::Gpu => {
                work.programs.entry(id.number).or_default().extend(program::of_kernels(&applications)?)
            }
            Kind::Cpu => work.serve(id.number, service::of_kernels(&applications)?)?,
            _ => drop(work.kernels.insert(id, applications)),
        }
    }
    Ok(())
}
