//! Who keeps states, and how a run asks for them.

use super::drive::State;
use super::spec::StateSpec;
use config::Diagnostic;
use std::sync::atomic::AtomicBool;

/// Who keeps states.
pub trait States {
    /// Told which states a run will ask for, before it asks for the first and in that order ([`Wanted`](super::Wanted)); `None` where what
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
