//! Policies supplied by a caller, and policies that change while a machine runs.

use crate::machine::Machine;
use crate::parts::complex::Processor;
use crate::parts::memory::Memory;
use compute::ooo::sched::ThreadScheduler;
use config::Diagnostic;
use ftl::page_map::gc::Victim;
use mem::dram_cache::admit::Admission;
use spec::{Loaded, MemorySpec, Spec};
use ssd::Device;

/// Makes a scheduler for each core of a server.
pub type Schedulers = Box<dyn Fn() -> Box<dyn ThreadScheduler>>;

/// Policies that replace those of the spec, each with the number of its part in the order of declaration.
#[derive(Default)]
pub struct Policies {
    /// Victim policies of garbage collection, for flash devices.
    pub victims: Vec<(usize, Box<dyn Victim>)>,
    /// Admission policies, for memories that are DRAM caches.
    pub admissions: Vec<(usize, Box<dyn Admission>)>,
    /// Thread schedulers, for servers.
    pub schedulers: Vec<(usize, Schedulers)>,
}

/// Keys that can change while a machine runs: each names a policy without state.
const CHANGEABLE: [&str; 3] = ["flash.ftl.gc.victim", "memory.dram_cache.admission", "cpu.threads.scheduler"];

/// Installs supplied victim policies in devices.
///
/// # Errors
/// No such device.
pub(crate) fn victims(
    victims: Vec<(usize, Box<dyn Victim>)>,
    spec: &Spec,
    devices: &mut [Device],
) -> Result<Vec<String>, Diagnostic> {
    let mut said = Vec::new();
    for (number, victim) in victims {
        let device = devices.get_mut(number).ok_or_else(|| {
            let what =
                format!("no flash device {number} for a victim policy: the system has {}", spec.flash.len());
            Diagnostic::new(what)
        })?;
        device.ftl.set_victim(victim);
        let (name, own) = (&spec.flash[number].name, spec.flash[number].spec.flash.ftl.gc.victim.name());
        said.push(format!(
            "{name}: a supplied policy chooses the victims of garbage collection, not `{own}`"
        ));
    }
    Ok(said)
}

impl Machine {
    /// Installs policies in parts from now on; returns notes on those that were supplied.
    ///
    /// # Errors
    /// No such part, or a part without such a policy.
    pub(crate) fn bring(&mut self, policies: Policies, spec: &Spec) -> Result<Vec<String>, Diagnostic> {
        let Policies { victims: of_drives, admissions, schedulers } = policies;
        let mut said = Vec::new();
        for (number, victim) in of_drives {
            let Some(device) = self.drives_mut().nth(number) else {
                return Err(Diagnostic::new(format!("no flash device {number} for a victim policy")));
            };
            device.ftl.set_victim(victim);
            let name = &spec.flash[number].name;
            said.push(format!("{name}: a supplied policy chooses the victims of garbage collection"));
        }
        for (number, admission) in admissions {
            let name = &spec.memory[number].name;
            let Some(Memory::DramCache(cache)) = self.memory_called(name) else {
                return Err(Diagnostic::new(format!("`{name}` is not a DRAM cache in use")));
            };
            cache.set_admission(admission);
            said.push(format!("{name}: a supplied policy decides which pages are kept"));
        }
        for (number, schedulers) in schedulers {
            let name = &spec.cpu[number].name;
            let complex = self.complexes_mut().find(|complex| complex.name == *name);
            let pages = complex.as_ref().is_some_and(|complex| complex.pager.is_some());
            let Some(Processor::Ooo(server)) = complex.map(|complex| &mut complex.processor) else {
                return Err(Diagnostic::new(format!(
                    "`{name}` runs no program, so it has no thread scheduler"
                )));
            };
            if pages {
                let what = format!(
                    "`{name}` pages from flash with `swap`: the operating system wakes threads when their pages arrive"
                );
                return Err(
                    Diagnostic::new(what).help("`notified` is the only scheduler modelled with `swap`")
                );
            }
            server.cores.set_schedulers(&*schedulers);
            said.push(format!("{name}: a supplied policy decides which thread runs next"));
        }
        Ok(said)
    }
}

/// Policies in which two systems differ, and notes that give the keys with their new and old values.
///
/// # Errors
/// A difference that cannot change while a machine runs.
pub(crate) fn changed(old: &Loaded, new: &Loaded, seed: u64) -> Result<(Policies, Vec<String>), Diagnostic> {
    refuse_others(old, new)?;
    let mut policies = Policies::default();
    let mut said = Vec::new();
    for (number, (was, is)) in old.spec.flash.iter().zip(&new.spec.flash).enumerate() {
        let (was, policy) = (&was.spec.flash.ftl.gc.victim, &is.spec.flash.ftl.gc.victim);
        if was != policy {
            policies.victims.push((number, new.victim_at(number, seed)));
            said.push(format!("`{}.ftl.gc.victim` is `{}`, not `{}`", is.table(), policy.name(), was.name()));
        }
    }
    for (number, (was, is)) in old.spec.memory.iter().zip(&new.spec.memory).enumerate() {
        let (MemorySpec::DramCache(was), MemorySpec::DramCache(spec)) = (&was.spec, &is.spec) else {
            continue;
        };
        let (was, policy) = (&was.admission, &spec.admission);
        if was != policy {
            policies.admissions.push((number, policy.build(&spec.pages())));
            said.push(format!(
                "`{}.dram_cache.admission` is `{}`, not `{}`",
                is.table(),
                policy.name(),
                was.name()
            ));
        }
    }
    for (number, (was, is)) in old.spec.cpu.iter().zip(&new.spec.cpu).enumerate() {
        let (was, policy) = (&was.spec.cores.threads.scheduler, &is.spec.cores.threads.scheduler);
        if was != policy {
            let made = policy.clone();
            policies.schedulers.push((number, Box::new(move || made.build(&()))));
            said.push(format!(
                "`{}.threads.scheduler` is `{}`, not `{}`",
                is.table(),
                policy.name(),
                was.name()
            ));
        }
    }
    Ok((policies, said))
}

/// Refuses differences other than policies.
fn refuse_others(old: &Loaded, new: &Loaded) -> Result<(), Diagnostic> {
    let (before, after) = (old.resolved().values(), new.resolved().values());
    for (key, value, place) in &after {
        let same = before.iter().any(|(other, was, _)| other == key && was == value);
        let kind = new.as_kind(key);
        let may = CHANGEABLE
            .iter()
            .any(|may| kind.strip_prefix(may).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
        if same || may {
            continue;
        }
        let mut fault = Diagnostic::new(format!("`{key}` cannot change while a machine runs"))
            .at(place.clone())
            .allowed(key, CHANGEABLE);
        fault.nearest = None;
        return Err(fault.help("start a new run to change it"));
    }
    Ok(())
}
