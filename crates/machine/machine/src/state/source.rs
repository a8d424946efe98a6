//! The state of a server's memory, for who fills it.

use super::drive::State;
use super::keeper::{Found, Place, States};
use super::spec::StateSpec;
use crate::build::Source;
use config::Diagnostic;
use ssd::device::SnapshotFault;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
