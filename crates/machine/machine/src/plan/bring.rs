//! Policies that a caller brings along, and those that change while a machine runs.

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

/// Policies in place of those that the spec names, each with the number of its part in the order of declaration.
#[derive(Default)]
pub struct Policies {
    /// For flash devices: what collection takes back.
    pub victims: Vec<(usize, Box<dyn Victim>)>,
    /// For memories that are DRAM caches: which missing pages are kept.
    pub admissions: Vec<(usize, Box<dyn Admission>)>,
    /// For servers: which thread of a core runs next.
    pub schedulers: Vec<(usize, Schedulers)>,
}

/// The keys that can change while a machine runs: each names a policy that looks at the present alone.
const CHANGEABLE: [&str; 3] = ["flash.ftl.gc.victim", "memory.dram_cache.admission", "cpu.threads.scheduler"];

/// Lets collection of devices decide by policies that were brought along.
///
/// # Errors
/// There is no such device.
pub(crate) fn victims(
    victims: Vec<(usize, Box<dyn Victim>)>,
    spec: &Spec,
    devices: &mut [Device],
) -> Result<Vec<String>, Diagnostic> {
    let mut said = Vec::new();
    for (number, victim) in victims {
        let device = devices.get_mut(number).ok_or_else(|| {
            let what = format!("no flash device {number} to collect: the system has {}", spec.flash.len());
            Diagnostic::new(what)
        })?;
        device.ftl.set_victim(victim);
        let (name, own) = (&spec.flash[number].name, spec.flash[number].spec.flash.ftl.gc.victim.name());
        said.push(format!(
            "{name}: what collection takes back is decided by a policy brought along, not by `{own}`"
        ));
    }
    Ok(said)
}

impl Machine {
    /// Lets parts decide by other policies from now on; what a user must know of those that were brought along.
    ///
    /// # Errors
    /// There is no such part, or nothing of it decides so.
    pub(crate) fn bring(&mut self, policies: Policies, spec: &Spec) -> Result<Vec<String>, Diagnostic> {
        let Policies { victims: of_drives, admissions, schedulers } = policies;
        let mut said = Vec::new();
        for (number, victim) in of_drives {
            let Some(device) = self.drives_mut().nth(number) else {
                return Err(Diagnostic::new(format!("no flash device {number} to collect")));
            };
            device.ftl.set_victim(victim);
            let name = &spec.flash[number].name;
            said.push(format!("{name}: what collection takes back is decided by a policy brought along"));
        }
        for (number, admission) in admissions {
            let name = &spec.memory[number].name;
            let Some(Memory::DramCache(cache)) = self.memory_called(name) else {
                return Err(Diagnostic::new(format!("`{name}` is no DRAM cache that anything asks")));
            };
            cache.set_admission(admission);
            said.push(format!("{name}: which pages are kept is decided by a policy brought along"));
        }
        for (number, schedulers) in schedulers {
            let name = &spec.cpu[number].name;
            let complex = self.complexes_mut().find(|complex| complex.name == *name);
            let pages = complex.as_ref().is_some_and(|complex| complex.pager.is_some());
            let Some(Processor::Ooo(server)) = complex.map(|complex| &mut complex.processor) else {
                return Err(Diagnostic::new(format!("nothing runs on `{name}`")));
            };
            if pages {
                let what = format!(
                    "`{name}` pages from flash: an operating system wakes its threads when their pages have come"
                );
                return Err(Diagnostic::new(what).help("no other scheduler is modelled with `swap`"));
            }
            server.cores.set_schedulers(&*schedulers);
            said.push(format!("{name}: which thread runs next is decided by a policy brought along"));
        }
        Ok(said)
    }
}

/// The policies of a system that differ from those of another one, and the keys that say so, with their values there and here.
///
/// # Errors
/// Something differs that cannot change while a machine runs.
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

/// Refuses differences but for policies.
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
        return Err(fault.help("another value of it needs a machine of its own"));
    }
    Ok(())
}
