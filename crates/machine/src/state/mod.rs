//! States of drives after preconditioning: what they are, what they depend on, how they are kept.
//!
//! Preconditioning works without time, so its result depends on a part of the spec only: a [`StateSpec`]. Runs that agree in it can
//! share one state, whatever their timing, their buffers and their workloads. Who keeps states implements [`States`]: a run asks
//! for the one that it wants before it makes it.
//!
//! A state is that of the drive. What a server's memory is filled with before a run depends on the program's data, which
//! filling changes; flash as memory is filled with what its programs place there. Both are made by every run.

mod file;
mod spec;

pub use file::{Kept, LAYOUT, read, write};
pub use spec::{Difference, StateSpec};

use crate::precondition::{Precondition, Report};
use config::Diagnostic;
use flash::Device;
use flash::device::SnapshotFault;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What preconditioning has left: the device's part of it and the report.
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
            .and_then(|report| input.is_empty().then_some(report).ok_or(SnapshotFault::Damaged));
        loaded.map_err(|fault| {
            Diagnostic::new(format!("a state cannot be loaded: {fault}"))
                .help("remove what it was loaded from: it is made again")
        })
    }

    /// A state of these bytes, which loading looks at.
    pub fn from_bytes(bytes: Vec<u8>) -> State {
        State(Arc::new(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Who keeps states.
pub trait States {
    /// Looks for a state. Somebody else may be making it: then this waits for him, or until it is to stop.
    ///
    /// # Errors
    /// What is kept cannot be used. A place without a source is that of a key of the spec.
    fn find<'a>(&'a self, wanted: &StateSpec, stop: &AtomicBool) -> Result<Found<'a>, Diagnostic>;
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
