//! States before the first event of a run: what they are, what they depend on, how they are kept.
//!
//! Preconditioning of drives, and filling of a server's memory, work without time, so their results depend on a part of the spec only: a
//! [`StateSpec`]. Runs that agree in it can share one state, whatever their timing and their buffers; of a drive also whatever their
//! workloads. Who keeps states implements [`States`]: a run asks for those that it wants before it makes them.
//!
//! Flash as memory is filled with what its programs place there: every run does that.

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

// Which programs can read which states.

/// The number of the form of states, and of what preconditioning does: it grows with every change that moves a byte of one.
pub const LAYOUT: u32 = 4;

/// The versions that a state depends on.
fn version() -> String {
    format!("{} (states {LAYOUT})", identity::VERSION)
}

/// Bytes as a checksum is written.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// Who keeps states, and how a run asks for them.

/// Who keeps states.
pub trait States {
    /// Told which states a run will ask for, before it asks for the first and in that order ([`Wanted`]); `None` where what
    /// a state depends on cannot be known.
    ///
    /// # Errors
    /// What is kept cannot be used. A place without a source is that of a key of the spec.
    fn expect(&self, _wanted: &[Option<StateSpec>]) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Looks for a state. Somebody else may be making it: then this waits for him, or until it is to stop.
    ///
    /// # Errors
    /// As [`States::expect`].
    fn find<'a>(&'a self, wanted: &StateSpec, stop: &AtomicBool) -> Result<Found<'a>, Diagnostic>;

    /// A state that was found, and that the part refuses: its contents contradict one another. Where it is made again, this is where to
    /// put it.
    ///
    /// # Errors
    /// The fault, if the state is not to be made again: the user has named it.
    fn refuse<'a>(
        &'a self,
        _wanted: &StateSpec,
        fault: Diagnostic,
    ) -> Result<Option<Box<dyn Place + 'a>>, Diagnostic> {
        Err(fault)
    }
}

/// What became of a search.
pub enum Found<'a> {
    /// It is there.
    There(State),
    /// It has to be made, and put into the place if there is one.
    Absent(Option<Box<dyn Place + 'a>>),
    /// An early end was wanted.
    Stopped,
}

/// Where a state is awaited. If the place goes away empty, whoever waits makes the state himself.
pub trait Place {
    /// Takes the state.
    fn keep(self: Box<Self>, state: &State);
}

// A state: bytes that a drive, or a server's memory with its program's data, is saved as and brought into.

/// What preconditioning has left: the device's part of it and the report. Or what filling a server's memory has left: how many jobs it took,
/// what they have changed of the program's data, and memory.
#[derive(Clone, PartialEq, Eq)]
pub struct State(Arc<Vec<u8>>);

impl State {
    /// The state of a device that no command has reached.
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

    /// Brings a device as it was built into the state; the report of what had been done.
    ///
    /// # Errors
    /// It is no state of this device.
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

    /// What is said of a state that is none of the part that it was made for.
    fn unusable(fault: SnapshotFault) -> Diagnostic {
        Diagnostic::new(format!("a state cannot be loaded: {fault}"))
            .help("remove what it was loaded from: it is made again")
    }

    /// A state of these bytes, which loading looks at.
    pub fn from_bytes(bytes: Vec<u8>) -> State {
        State(Arc::new(bytes))
    }

    /// Its bytes, shared.
    fn shared(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.0)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

// The state of a server's memory, for who fills it.

/// What filling leaves of a server's memory, in the hands of who keeps states.
pub(crate) struct OfMemory<'a> {
    /// Who keeps states, and the one that is wanted.
    states: Option<(&'a dyn States, StateSpec)>,
    stop: &'a AtomicBool,
    /// Where the state is awaited.
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
            // Filling ends at once, and nothing of the run follows.
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
