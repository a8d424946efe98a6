//! A state: bytes that a drive, or a server's memory with its program's data, is saved as and brought into.

use crate::precondition::{Precondition, Report};
use config::Diagnostic;
use ssd::Device;
use ssd::device::SnapshotFault;
use std::sync::Arc;

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
    pub(super) fn unusable(fault: SnapshotFault) -> Diagnostic {
        Diagnostic::new(format!("a state cannot be loaded: {fault}"))
            .help("remove what it was loaded from: it is made again")
    }

    /// A state of these bytes, which loading looks at.
    pub fn from_bytes(bytes: Vec<u8>) -> State {
        State(Arc::new(bytes))
    }

    /// Its bytes, shared.
    pub(super) fn shared(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.0)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
