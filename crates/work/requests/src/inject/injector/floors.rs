//! Rate floors of the flows that have some.

use super::FLOWS;
use crate::fio::{Floors, Guards};
use engine::Time;
use proto::IoRequest;

/// Rate floors by the injector's number of the flow; empty if none has any.
#[derive(Debug, Default)]
pub(super) struct FloorsOfFlows(Vec<Option<Floors>>);

impl FloorsOfFlows {
    /// A flow is opened. The last number is shared by all that come later, and has none.
    pub(super) fn open(&mut self, index: u16, guards: Option<&Guards>) {
        let Some(floors) = guards.and_then(Floors::of) else { return };
        let at = usize::from(index);
        if at < FLOWS - 1 {
            self.0.resize(self.0.len().max(at + 1), None);
            self.0[at] = Some(floors);
        }
    }

    /// A request of a flow has completed.
    #[inline]
    pub(super) fn completed(&mut self, index: u16, request: &IoRequest, now: Time) {
        if let Some(Some(floors)) = self.0.get_mut(usize::from(index)) {
            floors.completed(request, now);
        }
    }

    /// Starts every first cycle anew.
    pub(super) fn reset(&mut self, now: Time) {
        self.0.iter_mut().flatten().for_each(|floors| floors.reset(now));
    }

    pub(super) fn of(&self, index: u16) -> Option<&Floors> {
        self.0.get(usize::from(index))?.as_ref()
    }
}
