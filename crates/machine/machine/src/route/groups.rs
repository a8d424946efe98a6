//! What an accelerator asks of the flash that it governs, and what that answers.

use crate::parts::Parts;
use crate::wires::Wires;
use compute::vliw::accelerator::Out;
use proto::groups::Tell;

impl Parts {
    /// An accelerator asks its flash, or a kernel of it is over, which nobody waits for.
    #[inline]
    pub(super) fn accelerator_said(&mut self, from: u16, out: Out, wires: &mut Wires) {
        match out {
            Out::Ask(ask) => self.governed[usize::from(from)].flash.ask(ask, &mut wires.at(from)),
            Out::Over(_) => {}
        }
    }

    /// Flash of page groups answers the accelerator that governs it, or has work for its cores.
    #[inline]
    pub(super) fn flash_told(&mut self, from: u16, tell: Tell, wires: &mut Wires) {
        self.governed[usize::from(from)].accelerator.told(tell, &mut wires.at(from));
    }
}
