//! The states that a run asks for.

use super::filled::is_filled;
use super::spec::StateSpec;
use crate::bind::{bind, of_kind, part_for};
use crate::plan::Plan;
use crate::spec::{Kind, Loaded};
use crate::workloads::runs_on_a_server;
use config::Diagnostic;
use std::collections::BTreeMap;

/// The states that a run of a plan asks for; `None` where what a state depends on cannot be known beforehand.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Those of the memory of servers that have work, by their number.
    pub(crate) servers: BTreeMap<usize, Option<StateSpec>>,
    /// Those of drives, by their number.
    pub(crate) drives: Vec<Option<StateSpec>>,
}

impl Wanted {
    /// The states that a run of a plan asks for.
    ///
    /// # Errors
    /// A workload for a part that is not there.
    pub fn of(plan: &Plan, loaded: &Loaded) -> Result<Wanted, Diagnostic> {
        let servers = programs(plan, loaded)?;
        let of_memory = |(number, program)| (number, StateSpec::of_memory(plan, loaded, number, program));
        let drives = 0..loaded.spec.flash.len();
        Ok(Wanted {
            servers: servers.into_iter().map(of_memory).collect(),
            drives: drives.map(|number| StateSpec::of(plan, loaded, number)).collect(),
        })
    }

    /// All of them, in the order in which a run asks for them: servers, then drives, each as they are declared.
    pub fn all(&self) -> Vec<Option<StateSpec>> {
        self.servers.values().chain(&self.drives).cloned().collect()
    }
}

/// Whether a run of a plan asks for any state.
///
/// # Errors
/// As [`Wanted::of`].
pub fn has_any(plan: &Plan, loaded: &Loaded) -> Result<bool, Diagnostic> {
    Ok(!loaded.spec.flash.is_empty() || !programs(plan, loaded)?.is_empty())
}

/// The programs of servers whose memory is filled, by the server's number.
fn programs<'a>(plan: &'a Plan, loaded: &Loaded) -> Result<BTreeMap<usize, &'a str>, Diagnostic> {
    let cpus = of_kind(loaded, Kind::Cpu);
    let mut programs = BTreeMap::new();
    if cpus.is_empty() {
        return Ok(programs);
    }
    for one in bind(loaded, &plan.workloads)? {
        if runs_on_a_server(one.text)
            && let Some(cpu) = part_for(loaded, one, &cpus, "a program of a server")?
            && is_filled(loaded, cpu.number)
        {
            programs.insert(cpu.number, one.text);
        }
    }
    Ok(programs)
}
