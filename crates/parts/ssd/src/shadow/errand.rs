//! What one operation of the back end carries.

use super::data::Content;
use proto::{Lpn, Slot};

/// Where an operation takes its data from, and the data once it has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Errand {
    /// The command that gets what is read; without, it stays in the controller.
    pub(super) command: Option<u32>,
    /// Logical units that a host read is about, one a slot.
    pub(super) lpns: Vec<Lpn>,
    /// Slots that are sensed.
    pub(super) slots: Vec<Slot>,
    /// Data in the register: of a program from the start, of a read once the array is sensed.
    pub(super) data: Vec<Content>,
}

impl Errand {
    /// A read of units for a command.
    pub(super) fn fetch(&mut self, command: u32, units: &[(Lpn, Slot)]) {
        self.command = Some(command);
        self.lpns = units.iter().map(|(lpn, _)| *lpn).collect();
        self.take_from(units.iter().map(|(_, slot)| *slot));
    }

    /// A read of slots that concerns no command.
    pub(super) fn collect(&mut self, slots: impl Iterator<Item = Slot>) {
        self.command = None;
        self.take_from(slots);
    }

    fn take_from(&mut self, slots: impl Iterator<Item = Slot>) {
        self.slots = slots.collect();
    }
}
