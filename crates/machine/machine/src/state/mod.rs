//! States before the first event of a run: contents, keys, storage.
//!
//! Preconditioning of drives and filling of a server's memory work without time, so the results depend only on a part
//! of the spec: a [`StateSpec`]. Runs that agree in it can share one state, whatever their timing and their buffers,
//! and for a drive also whatever their workloads. A store implements [`States`]: a run asks it for states before it
//! makes them.
//!
//! Flash as memory is filled with the data of its programs in every run, without a state.

mod file;
mod key;

pub use file::{Kept, agree, read, write};
pub use key::{Difference, StateSpec};

use crate::build::Source;
use crate::plan::workloads::runs_on_a_server;
use crate::plan::{Plan, bind, of_kind, part_for};
use config::Diagnostic;
use key::is_filled;
use spec::precondition::{Precondition, Report};
use spec::{Kind, Loaded};
use ssd::Device;
use ssd::device::SnapshotFault;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

// Versions: which programs can read which states.

/// Version of the state format and of preconditioning: it grows with every change that moves a byte of a state.
pub const LAYOUT: u32 = 4;

/// Versions that a state depends on.
fn version() -> String {
    format!("{} (states {LAYOUT})", identity::VERSION)
}

/// Formats bytes as in a checksum.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// Stores of states, and how a run uses them.

/// Store of states.
pub trait States {
    /// Announces the states that a run will ask for, before the first request and in that order ([`Wanted`]); `None`
    /// where the inputs of a state cannot be known.
    ///
    /// # Errors
    /// A kept state that cannot be used. A place without a source is that of a key of the spec.
    fn expect(&self, _wanted: &[Option<StateSpec>]) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Looks for a state. If a different run is making it, this waits for that run, or until it is told to stop.
    ///
    /// # Errors
    /// As [`States::expect`].
    fn find<'a>(&'a self, wanted: &StateSpec, stop: &AtomicBool) -> Result<Found<'a>, Diagnostic>;

    /// Rejects a found state that the part refuses, because its contents contradict one another. If it is made again,
    /// the result is where to put it.
    ///
    /// # Errors
    /// The fault, if the state must not be made again because the user named it.
    fn refuse<'a>(
        &'a self,
        _wanted: &StateSpec,
        fault: Diagnostic,
    ) -> Result<Option<Box<dyn Place + 'a>>, Diagnostic> {
        Err(fault)
    }
}

/// Outcome of a search.
pub enum Found<'a> {
    /// Found.
    There(State),
    /// Absent: make it, and put it into the place if there is one.
    Absent(Option<Box<dyn Place + 'a>>),
    /// Stopped: an early end was wanted.
    Stopped,
}

/// Slot for an awaited state. If it is dropped empty, each waiting run makes the state itself.
pub trait Place {
    /// Stores the state.
    fn keep(self: Box<Self>, state: &State);
}

// State: the bytes of a drive, or of a server's memory with its program's data.

/// State of a preconditioned drive: the device's part and the report. Or of a server's filled memory: the number of
/// jobs, their changes to the program's data, and the memory.
#[derive(Clone, PartialEq, Eq)]
pub struct State(Arc<Vec<u8>>);

impl State {
    /// Saves the state of a device that no command has reached.
    ///
    /// # Panics
    /// If the device is at work.
    pub fn save(report: &Report, device: &Device) -> State {
        let mut bytes = Vec::new();
        report.save(&mut bytes);
        device.save_preconditioned(&mut bytes).expect("no command has reached the device");
        bytes.shrink_to_fit();
        State(Arc::new(bytes))
    }

    /// Loads the state into a newly built device; returns the report of preconditioning.
    ///
    /// # Errors
    /// A state of a different device.
    pub fn load(&self, precondition: &Precondition, device: &mut Device) -> Result<Report, Diagnostic> {
        let input = &mut self.0.as_slice();
        let loaded = Report::load(precondition.name(), input)
            .ok_or(SnapshotFault::Damaged)
            .and_then(|report| device.load_preconditioned(input).map(|()| report))
            .and_then(|report| {
                let is_whole = input.is_empty() && report.is_of(&device.ftl);
                is_whole.then_some(report).ok_or(SnapshotFault::Damaged)
            });
        loaded.map_err(State::unusable)
    }

    /// Diagnostic for a state that its part cannot load.
    fn unusable(fault: SnapshotFault) -> Diagnostic {
        Diagnostic::new(format!("a state cannot be loaded: {fault}"))
            .help("remove the file that it was loaded from: it is made again")
    }

    /// Wraps bytes as a state; loading checks them.
    pub fn from_bytes(bytes: Vec<u8>) -> State {
        State(Arc::new(bytes))
    }

    /// Returns the bytes, shared.
    fn shared(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.0)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

// State of a server's memory, for the code that fills it.

/// State of a server's filled memory, in the hands of a store.
pub(crate) struct OfMemory<'a> {
    /// Store, and the state that is wanted.
    states: Option<(&'a dyn States, StateSpec)>,
    stop: &'a AtomicBool,
    /// Slot where the state is awaited.
    place: Option<Box<dyn Place + 'a>>,
}

impl<'a> OfMemory<'a> {
    pub(crate) fn new(
        states: Option<&'a dyn States>,
        wanted: Option<StateSpec>,
        stop: &'a AtomicBool,
    ) -> OfMemory<'a> {
        OfMemory { states: states.zip(wanted), stop, place: None }
    }
}

impl Source for OfMemory<'_> {
    fn find(&mut self) -> Result<Option<Arc<Vec<u8>>>, Diagnostic> {
        let Some((states, wanted)) = &self.states else { return Ok(None) };
        Ok(match states.find(wanted, self.stop)? {
            Found::There(state) => Some(state.shared()),
            Found::Absent(place) => {
                self.place = place;
                None
            }
            // Filling ends at once, and the run does not continue.
            Found::Stopped => None,
        })
    }

    fn is_awaited(&self) -> bool {
        self.place.is_some()
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        if let Some(place) = self.place.take() {
            place.keep(&State::from_bytes(bytes));
        }
    }

    fn refuse(&mut self) -> Result<(), Diagnostic> {
        let fault = State::unusable(SnapshotFault::Damaged);
        let Some((states, wanted)) = &self.states else { return Err(fault) };
        self.place = states.refuse(wanted, fault)?;
        Ok(())
    }

    fn stop(&self) -> &AtomicBool {
        self.stop
    }
}

/// States that a run of a plan asks for; `None` where the inputs of a state cannot be known beforehand.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// States of the memory of servers that have work, by server number.
    pub(crate) servers: BTreeMap<usize, Option<StateSpec>>,
    /// States of drives, by drive number.
    pub(crate) drives: Vec<Option<StateSpec>>,
}

impl Wanted {
    /// Lists the states that a run of a plan asks for.
    ///
    /// # Errors
    /// A workload for a part that does not exist.
    pub fn of(plan: &Plan, loaded: &Loaded) -> Result<Wanted, Diagnostic> {
        let servers = programs(plan, loaded)?;
        let of_memory = |(number, program)| (number, StateSpec::of_memory(plan, loaded, number, program));
        let drives = 0..loaded.spec.flash.len();
        Ok(Wanted {
            servers: servers.into_iter().map(of_memory).collect(),
            drives: drives.map(|number| StateSpec::of(plan, loaded, number)).collect(),
        })
    }

    /// All states in the order in which a run asks for them: servers, then drives, each as declared.
    pub fn all(&self) -> Vec<Option<StateSpec>> {
        self.servers.values().chain(&self.drives).cloned().collect()
    }
}

/// Returns whether a run of a plan asks for any state.
///
/// # Errors
/// As [`Wanted::of`].
pub fn has_any(plan: &Plan, loaded: &Loaded) -> Result<bool, Diagnostic> {
    Ok(!loaded.spec.flash.is_empty() || !programs(plan, loaded)?.is_empty())
}

/// Programs of servers whose memory is filled, by server number.
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
