//! Builds accelerators with the flash that they govern, coprocessors, and the host program that drives a coprocessor.

use crate::parts::driven::{Driven, OffloadedKernels};
use crate::parts::governed::{Governed, Offload};
use compute::vliw::GROUP;
use compute::vliw::accelerator::Accelerator;
use compute::vliw::coprocessor::Coprocessor;
use config::units::Bytes;
use config::{Diagnostic, Place, SpecError};
use ftl::page_groups::spec::GroupGeometry;
use nest::executed::Executed;
use programs::host::offload;
use programs::kernels::{Application, Inputs, Program};
use proto::offload::Plan;
use spec::{DrivenSpec, Id, Loaded, Part};
use ssd::page_groups::GroupsFlash;
use ssd::spec::Built;
use std::sync::Arc;

/// Most page groups of an accelerator's flash: 512 GiB.
const MOST_GROUPS: u64 = 1 << 23;

/// Refuses accelerators and flash of page groups that cannot be built, or not together.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Diagnostic> {
    for (number, part) in loaded.spec.accelerator.iter().enumerate() {
        flash(loaded, number, 0)?;
        let explain = |error| loaded.explain(part.table(), error);
        Accelerator::new(&part.spec.accelerator, 1).map_err(explain)?;
        part.spec.offload.link().map_err(explain)?;
    }
    Ok(())
}

/// Erased flash of the accelerator with this number.
fn flash(loaded: &Loaded, number: usize, seed: u64) -> Result<(GroupsFlash, &str), Diagnostic> {
    let part = &loaded.spec.accelerator[number];
    let Some(storage) = part.link("storage").and_then(|id| loaded.spec.group_flash.get(id.number)) else {
        return Err(Diagnostic::new(format!("`{}` governs no flash", part.name)));
    };
    let explain = |error| loaded.explain(storage.table(), error);
    storage.spec.check().map_err(explain)?;
    let geometry = &storage.spec.groups.geometry;
    let key = |key: &str| format!("{}.groups.geometry.{key}", storage.table());
    let group = u64::from(geometry.channels) * u64::from(geometry.planes) * geometry.page.get();
    if group != GROUP {
        let what = format!(
            "a page group of {} channels x {} planes x {} pages has {group} B; an accelerator needs groups of {GROUP} B",
            geometry.channels, geometry.planes, geometry.page,
        );
        return Err(loaded.diagnose(&key("page"), &what).help(whole_groups(geometry, &key)));
    }
    let groups: u64 =
        [geometry.packages, geometry.dies, geometry.blocks, geometry.pages].map(u64::from).iter().product();
    if groups > MOST_GROUPS {
        let what = format!("{groups} page groups; an accelerator governs at most {MOST_GROUPS} page groups");
        return Err(loaded.diagnose(&key("blocks"), &what));
    }
    let context = Built { seed, name: storage.name.clone(), fold: loaded.spec.sim.fold };
    Ok((GroupsFlash::new(&storage.spec, &context).map_err(explain)?, &storage.name))
}

/// Help for a page group of the wrong size: a page size or a number of planes that fixes it and keeps the number of
/// groups.
fn whole_groups(geometry: &GroupGeometry, key: &dyn Fn(&str) -> String) -> String {
    let GroupGeometry { channels, planes, page, .. } = geometry;
    let of = |others: u64| GROUP.is_multiple_of(others).then(|| GROUP / others);
    let pages = of(u64::from(*channels) * u64::from(*planes)).filter(|page| *page >= 512);
    let planes = of(u64::from(*channels) * page.get()).filter(|planes| *planes <= 16);
    let ways = [
        pages.map(|bytes| format!("`{}={}`", key("page"), Bytes::new(bytes))),
        planes.map(|planes| format!("`{}={planes}`", key("planes"))),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    match &ways[..] {
        [] => "channels x planes x page must be 64KiB, each a power of two".to_owned(),
        ways => format!("also set {}: the number of page groups then stays the same", ways.join(" or ")),
    }
}

/// Page groups that the flash of the accelerator with this number holds.
///
/// # Errors
/// Flash that cannot be built.
pub(crate) fn groups(loaded: &Loaded, number: usize, seed: u64) -> Result<u64, Diagnostic> {
    flash(loaded, number, seed).map(|(flash, _)| flash.capacity().into())
}

/// Idle accelerator with this number, over erased flash.
fn governed(loaded: &Loaded, number: usize, seed: u64) -> Result<Governed, Diagnostic> {
    let part = &loaded.spec.accelerator[number];
    let (flash, storage) = flash(loaded, number, seed)?;
    let explain = |error| loaded.explain(part.table(), error);
    let accelerator = Accelerator::new(&part.spec.accelerator, flash.capacity()).map_err(explain)?;
    let offload = &part.spec.offload;
    let of_flash = part.link("storage").and_then(|id| loaded.spec.group_flash.get(id.number));
    let has_bad_blocks = of_flash.is_some_and(|storage| storage.spec.bad_blocks.is_some());
    let offload = Offload {
        link: offload.link().map_err(explain)?,
        table: offload.table.get(),
        interrupt: offload.interrupt.time(),
    };
    Ok(Governed {
        name: part.name.clone(),
        storage: storage.to_owned(),
        accelerator,
        flash,
        has_bad_blocks,
        offload,
        kernels: Vec::new(),
    })
}

/// Builds an accelerator with the kernels of a run; `asked` holds the user's workload texts.
///
/// # Errors
/// More data than the flash holds.
pub(crate) fn build(
    loaded: &Loaded,
    number: usize,
    applications: Vec<Application>,
    seed: u64,
    asked: &[String],
) -> Result<Governed, Diagnostic> {
    let mut governed = governed(loaded, number, seed)?;
    governed.place(applications, loaded.spec.sim.shadow).map_err(|error| {
        let text = asked.join(" ");
        let place = Place { source: "--workload".to_owned(), text, ..Place::default() };
        let mut fault = Diagnostic::new(error.what).at(place);
        fault.help = error.help;
        fault
    })?;
    Ok(governed)
}

/// Drive of a host that holds the files of kernels.
pub(crate) const DRIVE: u16 = 0;

/// Refuses coprocessors that cannot be built.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn check_coprocessors(loaded: &Loaded) -> Result<(), Diagnostic> {
    all_coprocessors(loaded).map(drop)
}

/// Coprocessors that programs of the host can drive.
pub(crate) fn coprocessors_of_host(loaded: &Loaded) -> Vec<Id> {
    loaded.spec.host.first().map_or(Vec::new(), |host| host.linked("coprocessors").to_vec())
}

/// Builds all coprocessors, idle.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn all_coprocessors(loaded: &Loaded) -> Result<Vec<Driven>, Diagnostic> {
    let build = |part: &Part<DrivenSpec>| {
        let coprocessor =
            Coprocessor::new(&part.spec.shared()).map_err(|error| loaded.explain(part.table(), error))?;
        // Only the first host has programs.
        Ok(Driven { name: part.name.clone(), coprocessor, host: 0, kernels: None })
    };
    loaded.spec.coprocessor.iter().map(build).collect()
}

/// Builds the program of the host that has a coprocessor execute the kernels of a run.
///
/// # Errors
/// A kernel that exceeds the coprocessor's memory, or whose work is unknown.
pub(crate) fn driving_program(
    loaded: &Loaded,
    driven: &mut Driven,
    (coprocessor, program): (usize, usize),
    applications: Vec<Application>,
    asked: &[String],
) -> Result<offload::Offload, Diagnostic> {
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
    let of_host = coprocessors_of_host(loaded);
    let device = of_host.iter().position(|id| id.number == coprocessor).unwrap_or_default();
    let costs = loaded.spec.coprocessor[coprocessor].spec.offload;
    Ok(offload::Offload::new(&driven.name, plans, costs, (device as u16, DRIVE)))
}

/// Work of each application's instances; applications of the same program are one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use programs::kernels::mixes::CAPACITY;

    /// Mixes are sized to fit the flash under every translation of page groups.
    #[test]
    fn mixes_are_drawn_for_the_flash_that_there_is() {
        let capacity = |system: &str, set: &[String]| {
            let loaded = crate::load(system, set).expect("a shipped system");
            flash(&loaded, 0, 0).expect("its flash").0.capacity()
        };
        for system in ["flashabacus", "flashabacus-inter-st", "flashabacus-inter-dy", "flashabacus-intra-io"]
        {
            let striped = "group_flash.groups.translation=striped".to_owned();
            assert!(capacity(system, &[]) >= CAPACITY, "{system}");
            assert_eq!(capacity(system, &[striped]), CAPACITY, "{system}");
        }
    }
}
